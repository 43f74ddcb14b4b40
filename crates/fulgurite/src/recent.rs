//! Statements that were compiled lately and are not in use.
//!
//! `execute`, `query_row` and the like compile their text each time, which takes longer
//! than to run a statement on one row. So a connection keeps the statements whose text
//! came before, once they are dropped, and gives one out again where compiling it would
//! give the same: while the schema is the one that it was compiled for and its tables
//! have about as many rows. Who prepares cannot tell, but by the time it takes.
//!
//! A text that comes once leaves numbers behind, no more. Where it has values in it, its
//! *shape* may come again: the text with parameters in their places. One that did is
//! compiled once for all its texts, where a statement of its own would be no better; one
//! that stands for many rows of VALUES is at once.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};

use fulgurite_sql::session::{Prepared, Session, Shape};

/// Statements that are kept; the one used longest ago goes first.
const KEPT: usize = 16;
/// Texts and shapes that are remembered by number.
const SEEN: usize = 64;
/// Rows of VALUES for which a text is compiled like one that comes for the first time.
const ROWS_FEW: usize = 8;
/// Longer texts are not looked for: to compile one takes long in any case.
const TEXT_MAX: usize = 4096;

/// See the module's header.
#[derive(Default)]
pub(crate) struct Recent {
    hasher: RandomState,
    inner: RefCell<Inner>,
    shape: Cell<Shape>,
}

struct Inner {
    /// Texts and shapes that came.
    seen: Numbers,
    /// Shapes that each text is to be compiled for itself.
    unfit: Numbers,
    kept: Vec<(u64, Box<Prepared>)>,
}

/// The numbers that were added last: each of them, however they are spread, so that
/// texts which come in turn never keep each other out.
struct Numbers {
    list: [u64; SEEN],
    /// Where the next one goes, in place of the oldest.
    next: usize,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            seen: Numbers::new(),
            unfit: Numbers::new(),
            kept: Vec::new(),
        }
    }
}

impl Numbers {
    const fn new() -> Self {
        Self {
            list: [0; SEEN],
            next: 0,
        }
    }

    fn has(&self, number: u64) -> bool {
        self.list.contains(&number)
    }

    /// Whether it was there already.
    fn add(&mut self, number: u64) -> bool {
        let is_there = self.has(number);
        if !is_there {
            self.list[self.next] = number;
            self.next = (self.next + 1) % SEEN;
        }
        is_there
    }
}

/// What is known of a text.
pub(crate) enum Known {
    /// It did not come lately.
    New,
    /// It came before; a statement that is as good as one compiled now, if there is one.
    Again(Option<Box<Prepared>>),
}

impl Recent {
    /// What is known of a text that is to be compiled, without blanks at its end.
    pub(crate) fn find(&self, sql: &str) -> Known {
        match sql.len() {
            0..=TEXT_MAX => self.find_kept(self.hasher.hash_one(sql), sql, false),
            _ => Known::New,
        }
    }

    /// A statement of this text by its shape, if that came before; and the bytes of the
    /// text that it takes.
    pub(crate) fn find_by_shape(
        &self,
        session: &Session,
        sql: &str,
    ) -> Option<(Box<Prepared>, usize)> {
        let mut shape = self.shape.take();
        let found = match shape.take(sql) {
            true => self.shaped(session, sql, &mut shape),
            false => None,
        };
        let read = shape.read();
        shape.let_go();
        self.shape.set(shape);
        found.map(|handle| (handle, read))
    }

    fn shaped(&self, session: &Session, sql: &str, shape: &mut Shape) -> Option<Box<Prepared>> {
        let number = self.number_of_shape(shape.text());
        let known = match self.find_kept(number, shape.text(), true) {
            // To compile it for two of many rows takes less time than for all of them.
            Known::New if shape.repeated_rows() > Some(ROWS_FEW) => Known::Again(None),
            known => known,
        };
        match known {
            Known::New => None,
            Known::Again(Some(mut handle)) => {
                handle.take_on(sql, shape);
                Some(handle)
            }
            Known::Again(None) if self.inner.borrow().unfit.has(number) => None,
            Known::Again(None) => {
                // An error is told of the text itself, by who compiles that.
                let handle = session.prepare_shape(sql, shape).ok()?;
                if handle
                    .as_ref()
                    .is_some_and(|it| it.lacks().next().is_some())
                {
                    return None;
                }
                if handle.is_none() {
                    self.inner.borrow_mut().unfit.add(number);
                }
                handle.map(Box::new)
            }
        }
    }

    /// A shape reads as a text with parameters, but is another thing.
    fn number_of_shape(&self, text: &str) -> u64 {
        self.hasher.hash_one((text, true))
    }

    fn find_kept(&self, number: u64, text: &str, is_shape: bool) -> Known {
        let mut inner = self.inner.borrow_mut();
        let same = |(other, handle): &(u64, Box<Prepared>)| {
            *other == number && handle.shape().is_some() == is_shape && key(handle) == text
        };
        if let Some(at) = inner.kept.iter().rposition(same) {
            let (_, handle) = inner.kept.remove(at);
            // One that is not current is dropped after this is free again.
            drop(inner);
            return Known::Again(Some(handle).filter(|handle| handle.is_current()));
        }
        match inner.seen.add(number) {
            true => Known::Again(None),
            false => Known::New,
        }
    }

    /// Keeps a statement whose text or shape came before.
    pub(crate) fn keep(&self, mut handle: Box<Prepared>) {
        // The program is asked again for what it lacks.
        if !handle.put_away_for_others() || handle.lacks().next().is_some() {
            return;
        }
        let number = match handle.shape() {
            Some(shape) => self.number_of_shape(shape),
            None => self.hasher.hash_one(key(&handle)),
        };
        let mut inner = self.inner.borrow_mut();
        let oldest = (inner.kept.len() == KEPT).then(|| inner.kept.remove(0));
        inner.kept.push((number, handle));
        drop(inner);
        drop(oldest);
    }

    /// Forgets all statements.
    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut self.inner.borrow_mut().kept);
        drop(kept);
    }
}

/// What a statement is looked for by.
fn key(handle: &Prepared) -> &str {
    handle
        .shape()
        .unwrap_or_else(|| handle.sql().trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use crate::{Connection, Result};

    fn shapes(connection: &Connection) -> Vec<String> {
        let inner = connection.recent.inner.borrow();
        let shapes = inner.kept.iter().filter_map(|(_, handle)| handle.shape());
        shapes.map(str::to_owned).collect()
    }

    #[test]
    fn texts_of_one_shape_share_a_statement() {
        let connection = Connection::open_in_memory().expect("opens");
        let table = "CREATE TABLE t (k INTEGER PRIMARY KEY, n)";
        connection.execute(table, []).expect("a table");
        for k in 1..=5 {
            let insert = format!("INSERT INTO t VALUES ({k}, 'n{k}')");
            assert_eq!(connection.execute(&insert, []), Ok(1));
            let select = format!("SELECT n FROM t WHERE k = {k}");
            let n: String = connection
                .query_row(&select, [], |row| row.get(0))
                .expect("a row");
            assert_eq!(n, format!("n{k}"));
        }
        let both = ["INSERT INTO t VALUES (?, ?)", "SELECT n FROM t WHERE k = ?"];
        assert_eq!(shapes(&connection), both);
    }

    #[test]
    fn so_do_texts_that_find_many_rows() {
        let connection = Connection::open_in_memory().expect("opens");
        let tables = "CREATE TABLE t (n, m); CREATE INDEX i ON t (m);
            CREATE TABLE u (n); INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1)";
        connection.execute_batch(tables).expect("tables");
        let texts = [
            "SELECT n FROM t WHERE m = ?",
            "SELECT m FROM t JOIN u USING (n) WHERE m > ? AND u.n < ? ORDER BY m",
            "UPDATE t SET n = n + ? WHERE m = ? OR n = ?",
            "DELETE FROM u WHERE n <> ? AND n IN (SELECT n FROM t WHERE m = 1)",
        ];
        for n in ["1", "2", "3"] {
            for text in texts {
                let sql = text.replace('?', n);
                connection.execute_batch(&sql).expect("runs");
            }
        }
        assert_eq!(shapes(&connection), texts);
    }

    /// Numbers once had one place each, by their lower bits: two shapes that shared one
    /// and came in turn were never known again, in one run of ten of the test above.
    #[test]
    fn shapes_that_come_in_turn_are_all_kept() {
        let connection = Connection::open_in_memory().expect("opens");
        connection
            .execute_batch("CREATE TABLE t (n)")
            .expect("a table");
        let texts: Vec<String> = (1..=super::KEPT)
            .map(|terms| format!("SELECT n FROM t WHERE n > ?{}", " + ?".repeat(terms)))
            .collect();
        for n in ["1", "2"] {
            for text in &texts {
                connection
                    .execute_batch(&text.replace('?', n))
                    .expect("runs");
            }
        }
        assert_eq!(shapes(&connection), texts);
    }

    #[test]
    fn where_an_index_could_be_for_the_value_each_text_is_compiled() {
        let connection = Connection::open_in_memory().expect("opens");
        let tables = "CREATE TABLE t (n, m); CREATE INDEX i ON t (m) WHERE n = 3";
        connection.execute_batch(tables).expect("a table");
        for row in 0..400 {
            let insert = "INSERT INTO t VALUES (?1 % 7, ?1)";
            connection.execute(insert, [row]).expect("a row");
        }
        for n in 1..=5 {
            let select = format!("SELECT m FROM t WHERE n = {n} AND m = 7");
            connection.execute_batch(&select).expect("runs");
            let explained = format!("EXPLAIN QUERY PLAN {select}");
            let mut explained = connection.prepare(&explained).expect("compiles");
            let steps = explained.query_map([], |row| row.get(3)).expect("runs");
            let plan: Vec<String> = steps.collect::<Result<_>>().expect("a plan");
            let is_used = plan.iter().any(|step| step.contains("INDEX i"));
            assert_eq!(is_used, n == 3, "{plan:?}");
        }
        assert_eq!(shapes(&connection), [""; 0]);
    }
}
