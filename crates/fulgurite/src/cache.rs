//! The cache of prepared statements behind [`Connection::prepare_cached`].
//!
//! A statement is out of the cache while it is used, so two uses of one text at
//! the same time compile it twice, and the one given back last is kept.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use fulgurite_sql::session::Prepared;
use hashlink::LruCache;

use crate::{Connection, Error, Result, Statement};

/// Least recently used statements go first.
pub(crate) struct StatementCache(RefCell<LruCache<Arc<str>, Box<Prepared>>>);

impl StatementCache {
    pub(crate) const CAPACITY_DEFAULT: usize = 16;

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(RefCell::new(LruCache::new(capacity)))
    }

    pub(crate) fn clear(&self) {
        let mut cache = self.0.borrow_mut();
        let empty = LruCache::new(cache.capacity());
        let cleared = std::mem::replace(&mut *cache, empty);
        // What they hold of the program is dropped after it is free again.
        drop(cache);
        drop(cleared);
    }
}

impl Connection {
    /// As [`Connection::prepare`], reusing a statement of the same text that
    /// was used before; dropping the statement gives it back.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # let db = fulgurite::Connection::open_in_memory()?;
    /// for i in 0..3 {
    ///     let mut stmt = db.prepare_cached("SELECT ? * 2")?; // compiled once
    ///     assert_eq!(stmt.query_row([i], |row| row.get::<_, i64>(0))?, i * 2);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::prepare`].
    #[inline]
    pub fn prepare_cached(&self, sql: &str) -> Result<CachedStatement<'_>> {
        let sql = sql.trim();
        let known = self.cache.0.borrow_mut().remove_entry(sql);
        let (key, stmt) = match known {
            Some((key, handle)) => (key, Statement::new(self, Some(handle))),
            None => (Arc::from(sql), self.prepare(sql)?),
        };
        Ok(CachedStatement {
            stmt,
            key: Some(key),
        })
    }

    /// How many statements [`Connection::prepare_cached`] keeps; 16 at first,
    /// 0 for none.
    #[inline]
    pub fn set_prepared_statement_cache_capacity(&self, capacity: usize) {
        self.cache.0.borrow_mut().set_capacity(capacity);
    }

    /// Forgets all statements that were compiled and are not in use.
    #[inline]
    pub fn flush_prepared_statement_cache(&self) {
        self.cache.clear();
        self.recent.clear();
    }

    /// Drops what was compiled with other functions and collations: it has to be compiled
    /// anew, and would keep those that were replaced or removed.
    pub(crate) fn user_code_changed(
        &self,
        changed: fulgurite_sql::error::Result<()>,
    ) -> Result<()> {
        changed.map_err(Error::from_engine)?;
        self.flush_prepared_statement_cache();
        Ok(())
    }
}

/// A statement that goes back into the cache when it is dropped.
pub struct CachedStatement<'conn> {
    stmt: Statement<'conn>,
    /// None once it is not to be kept.
    key: Option<Arc<str>>,
}

impl CachedStatement<'_> {
    /// Drops the statement without giving it back.
    #[inline]
    pub fn discard(mut self) {
        self.key = None;
        self.stmt.forget();
    }
}

impl<'conn> Deref for CachedStatement<'conn> {
    type Target = Statement<'conn>;

    #[inline]
    fn deref(&self) -> &Statement<'conn> {
        &self.stmt
    }
}

impl<'conn> DerefMut for CachedStatement<'conn> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Statement<'conn> {
        &mut self.stmt
    }
}

impl Drop for CachedStatement<'_> {
    #[inline]
    fn drop(&mut self) {
        if let (Some(key), Some(mut handle)) = (self.key.take(), self.stmt.handle.take()) {
            if !handle.put_away() {
                return;
            }
            // What falls out of the cache is dropped after it is free again.
            let replaced = self.stmt.conn.cache.0.borrow_mut().insert(key, handle);
            drop(replaced);
        }
    }
}
