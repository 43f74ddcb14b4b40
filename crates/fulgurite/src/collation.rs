//! Collations of the program: orders of texts beside BINARY, NOCASE and RTRIM.
//!
//! A collation of the program compares texts and makes no keys of them. A panic of one ends the statement, and so does one that gives its
//! texts no order.

use std::cmp::Ordering;
use std::sync::Arc;

use fulgurite_sql::session::Prepared;
use fulgurite_sql::value::collate::CompareTexts;
use fulgurite_store::{Owned, caught};
use parking_lot::ReentrantMutex;

use crate::functions::text;
use crate::{Connection, Name, Result};

/// What is asked for collations that are missing.
pub(crate) type CollationNeeded = fn(&Connection, &str) -> Result<()>;

/// How the engine says that one is.
const MISSING: &str = "no such collation sequence: ";

impl Connection {
    /// Registers a collation, in place of one of that name. Texts that are not UTF-8 are
    /// compared as if their damaged parts were U+FFFD.
    ///
    /// A column may have one (`name TEXT COLLATE by_length`); an index may not, nor may a
    /// column that is UNIQUE or a PRIMARY KEY.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// let db = fulgurite::Connection::open_in_memory()?;
    /// db.create_collation("by_length", |a, b| a.len().cmp(&b.len()))?;
    /// let sql = "SELECT value FROM json_each('[\"ccc\", \"a\", \"bb\"]') ORDER BY value COLLATE by_length";
    /// let mut stmt = db.prepare(sql)?;
    /// let words = stmt.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    /// assert_eq!(words, ["a", "bb", "ccc"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `SQLITE_BUSY` where it would replace one while rows are being read, `SQLITE_MISUSE`
    /// for BINARY, NOCASE and RTRIM.
    pub fn create_collation<C, N: Name>(&self, collation_name: N, x_compare: C) -> Result<()>
    where
        C: Fn(&str, &str) -> Ordering + Send + 'static,
    {
        let compare = ReentrantMutex::new(Owned::new(x_compare));
        let compare = move |a: &[u8], b: &[u8]| {
            let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
            let compare = compare.lock();
            compare.get().map_or(Ordering::Equal, |it| it(&a, &b))
        };
        self.set_collation(collation_name, Some(Arc::new(compare)))
    }

    /// Has `x_coll_needed` be asked for a collation that a statement names, or a column of
    /// its tables has, and the connection lacks: it may register it.
    ///
    /// # Errors
    /// None today.
    pub fn collation_needed(
        &self,
        x_coll_needed: fn(&Connection, &str) -> Result<()>,
    ) -> Result<()> {
        self.collation_needed.set(Some(x_coll_needed));
        Ok(())
    }

    /// Removes a collation, if there is one of that name. A statement that would compare by
    /// it fails from then on.
    ///
    /// # Errors
    /// `SQLITE_BUSY` while rows are being read.
    pub fn remove_collation<N: Name>(&self, collation_name: N) -> Result<()> {
        self.set_collation(collation_name, None)
    }

    fn set_collation<N: Name>(&self, name: N, how: Option<CompareTexts>) -> Result<()> {
        let set = self.session().set_collation(&text(name)?, how);
        self.user_code_changed(set)
    }

    /// Asks the program for the collations that a statement lacks, each once; whether it is
    /// worth to compile again.
    pub(crate) fn asks_for_collations(
        &self,
        compiled: &fulgurite_sql::Result<(Option<Prepared>, usize)>,
        asked: &mut Vec<String>,
    ) -> bool {
        let Some(needed) = self.collation_needed.get() else {
            return false;
        };
        let names: Vec<String> = match compiled {
            Ok((Some(handle), _)) => handle.lacks().map(str::to_owned).collect(),
            Ok((None, _)) => Vec::new(),
            Err(error) => {
                let name = error.message().strip_prefix(MISSING);
                name.map(str::to_owned).into_iter().collect()
            }
        };
        let before = asked.len();
        for name in names {
            if !asked.contains(&name) {
                // What it cannot register is missing still, and the statement says so.
                let _ = caught(|| needed(self, &name));
                asked.push(name);
            }
        }
        asked.len() > before
    }
}
