//! Code of the program that a connection calls: before a commit, after a rollback, for each
//! row that changes, and now and then while a statement runs.
//!
//! A hook must not use the connection: it is told so by `SQLITE_MISUSE`.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;

use fulgurite_sql::func::hooks::{Change, Hooks, Progress};
use fulgurite_store::Owned;
use parking_lot::ReentrantMutex;

use crate::{Connection, Error, Result};

/// What happened to a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
#[non_exhaustive]
#[expect(non_camel_case_types, reason = "rusqlite's names")]
pub enum Action {
    /// None of those below.
    UNKNOWN = -1,
    /// It was deleted.
    SQLITE_DELETE = 9,
    /// It was inserted.
    SQLITE_INSERT = 18,
    /// It was updated.
    SQLITE_UPDATE = 23,
}

impl From<i32> for Action {
    #[inline]
    fn from(code: i32) -> Self {
        match code {
            9 => Self::SQLITE_DELETE,
            18 => Self::SQLITE_INSERT,
            23 => Self::SQLITE_UPDATE,
            _ => Self::UNKNOWN,
        }
    }
}

impl From<Change> for Action {
    fn from(change: Change) -> Self {
        match change {
            Change::Delete => Self::SQLITE_DELETE,
            Change::Insert => Self::SQLITE_INSERT,
            Change::Update => Self::SQLITE_UPDATE,
        }
    }
}

/// A hook that may change what it holds. One that is called from within itself is not
/// called again.
pub(crate) struct Exclusive<F>(ReentrantMutex<RefCell<Owned<F>>>);

impl<F> Exclusive<F> {
    pub(crate) fn new(hook: F) -> Arc<Self> {
        Arc::new(Self(ReentrantMutex::new(RefCell::new(Owned::new(hook)))))
    }

    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut F) -> T) -> Option<T> {
        let hook = self.0.lock();
        let mut hook = hook.try_borrow_mut().ok()?;
        hook.get_mut().map(call)
    }
}

impl Connection {
    /// Has a hook be asked before each commit of a transaction that writes: true makes a
    /// rollback of it, and `SQLITE_CONSTRAINT_COMMITHOOK` of the statement. None removes it.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// let mut db = fulgurite::Connection::open_in_memory()?;
    /// db.execute("CREATE TABLE t (a)", [])?;
    /// db.commit_hook(Some(|| true))?;
    /// assert!(db.execute("INSERT INTO t VALUES (1)", []).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `SQLITE_MISUSE` from within a function or a hook.
    pub fn commit_hook<F>(&mut self, hook: Option<F>) -> Result<()>
    where
        F: FnMut() -> bool + Send + 'static,
    {
        let hook = hook.map(Exclusive::new);
        self.set_hooks(|hooks| {
            hooks.commit = hook.map(|it| Arc::new(move || it.with(|f| f()).unwrap_or(false)) as _);
        })
    }

    /// Has a hook be told of each rollback: of ROLLBACK, of a statement outside of a
    /// transaction that writes and fails, of a commit that lost against an overlapping
    /// transaction. None removes it.
    ///
    /// # Errors
    /// As [`Connection::commit_hook`].
    pub fn rollback_hook<F>(&mut self, hook: Option<F>) -> Result<()>
    where
        F: FnMut() + Send + 'static,
    {
        let hook = hook.map(Exclusive::new);
        self.set_hooks(|hooks| {
            hooks.rollback = hook.map(|it| {
                Arc::new(move || {
                    it.with(|f| f());
                }) as _
            });
        })
    }

    /// Has a hook be told of each row that changes: what happened to it, its database, its
    /// table, its rowid. As in SQLite, rows that REPLACE deletes and those of a DELETE
    /// without WHERE are not among them, unless triggers or foreign keys look at these.
    /// None removes it.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// # use fulgurite::hooks::Action;
    /// let mut db = fulgurite::Connection::open_in_memory()?;
    /// db.execute("CREATE TABLE t (a)", [])?;
    /// let (tell, changes) = std::sync::mpsc::channel();
    /// db.update_hook(Some(move |action, _: &str, table: &str, rowid| {
    ///     let _ = tell.send((action, table.to_owned(), rowid));
    /// }))?;
    /// db.execute("INSERT INTO t VALUES ('x')", [])?;
    /// assert_eq!(changes.recv(), Ok((Action::SQLITE_INSERT, "t".to_owned(), 1)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::commit_hook`].
    pub fn update_hook<F>(&mut self, hook: Option<F>) -> Result<()>
    where
        F: FnMut(Action, &str, &str, i64) + Send + 'static,
    {
        let hook = hook.map(Exclusive::new);
        self.set_hooks(|hooks| {
            hooks.update = hook.map(|it| {
                Arc::new(move |change: Change, database: &str, table: &str, rowid| {
                    it.with(|f| f(change.into(), database, table, rowid));
                }) as _
            });
        })
    }

    /// Has a handler be asked while statements run, about once in `num_ops` of SQLite's
    /// operations: true interrupts the statement. Statements that touch a single row are
    /// not asked for, and no handler more often than once in a thousand rows. None, or no
    /// positive number, removes it.
    ///
    /// # Errors
    /// As [`Connection::commit_hook`].
    pub fn progress_handler<F>(&mut self, num_ops: c_int, handler: Option<F>) -> Result<()>
    where
        F: FnMut() -> bool + Send + 'static,
    {
        let operations = u64::try_from(num_ops).unwrap_or(0);
        let handler = handler.filter(|_| operations > 0).map(Exclusive::new);
        self.set_hooks(|hooks| {
            hooks.progress = handler.map(|it| {
                let ask = Arc::new(move || it.with(|f| f()).unwrap_or(false));
                Progress::new(operations, ask)
            });
        })
    }

    fn set_hooks(&self, set: impl FnOnce(&mut Hooks)) -> Result<()> {
        self.session().set_hooks(set).map_err(Error::from_engine)
    }
}
