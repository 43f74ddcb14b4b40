//! Code of the program that a connection calls when something happens to it.
//!
//! A panic in one becomes an error of the statement, but for that of the rollback hook:
//! what it is told of has happened already.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::user::guarded;
use crate::error::{Error, Result, code};
use crate::schema::MAIN;

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    Insert,
    Update,
    Delete,
}

/// Asked before a commit: true makes a rollback of it.
pub type CommitHook = Arc<dyn Fn() -> bool + Send + Sync>;
/// Told of a rollback.
pub type RollbackHook = Arc<dyn Fn() + Send + Sync>;
/// Told of a row that changed: what happened to it, its database, its table, its rowid.
pub type UpdateHook = Arc<dyn Fn(Change, &str, &str, i64) + Send + Sync>;
/// Asked while statements run: true interrupts them.
pub type ProgressHandler = Arc<dyn Fn() -> bool + Send + Sync>;

/// How many of SQLite's operations one of our looks at the clock stands for.
const OPERATIONS_A_LOOK: u64 = 1000;

/// A progress handler and how often it is asked.
#[derive(Clone)]
pub struct Progress {
    handler: ProgressHandler,
    /// Operations between two questions.
    operations: u64,
    /// Operations since the last one.
    done: Arc<AtomicU64>,
}

impl Progress {
    /// Asks the handler about every so many operations.
    pub fn new(operations: u64, handler: ProgressHandler) -> Self {
        Self {
            handler,
            operations,
            done: Arc::default(),
        }
    }
}

/// The hooks of a connection.
#[derive(Clone, Default)]
pub struct Hooks {
    /// See the type.
    pub commit: Option<CommitHook>,
    /// See the type.
    pub rollback: Option<RollbackHook>,
    /// See the type.
    pub update: Option<UpdateHook>,
    /// See the type.
    pub progress: Option<Progress>,
    /// What the connection calls the databases beside its main one, by their stores.
    pub databases: Vec<(u64, Arc<str>)>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("commit", &self.commit.is_some())
            .field("rollback", &self.rollback.is_some())
            .field("update", &self.update.is_some())
            .field("progress", &self.progress.is_some())
            .finish_non_exhaustive()
    }
}

impl Hooks {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.commit.is_none()
            && self.rollback.is_none()
            && self.update.is_none()
            && self.progress.is_none()
    }

    /// Whether one of them is told of rows that change.
    #[inline]
    pub fn tells_rows(&self) -> bool {
        self.update.is_some()
    }

    /// Before a commit.
    ///
    /// # Errors
    /// The hook refuses it, or panics.
    pub fn commits(&self) -> Result<()> {
        let refuses = match &self.commit {
            Some(hook) => guarded(|| Ok(hook()))?,
            None => false,
        };
        match refuses {
            true => Err(Error::new(code::CONSTRAINT_COMMITHOOK, "constraint failed")
                .with_hint("the commit hook of the connection made a rollback of it")),
            false => Ok(()),
        }
    }

    /// After a rollback.
    pub fn rolled_back(&self) {
        if let Some(hook) = &self.rollback {
            let _ = guarded(|| {
                hook();
                Ok(())
            });
        }
    }

    /// After a row of a table in a store has changed.
    ///
    /// # Errors
    /// The hook panics.
    pub fn changed(&self, change: Change, store: u64, table: &str, rowid: i64) -> Result<()> {
        let Some(hook) = &self.update else {
            return Ok(());
        };
        let found = self.databases.iter().find(|(other, _)| *other == store);
        let database = found.map_or(MAIN, |(_, name)| name);
        guarded(|| {
            hook(change, database, table, rowid);
            Ok(())
        })
    }

    /// Now and then while a statement runs.
    ///
    /// # Errors
    /// The handler wants it interrupted, or panics.
    pub fn goes_on(&self) -> Result<()> {
        let Some(progress) = &self.progress else {
            return Ok(());
        };
        let done = progress
            .done
            .fetch_add(OPERATIONS_A_LOOK, Ordering::Relaxed);
        if done.saturating_add(OPERATIONS_A_LOOK) < progress.operations {
            return Ok(());
        }
        progress.done.store(0, Ordering::Relaxed);
        match guarded(|| Ok((progress.handler)()))? {
            true => Err(Error::interrupted()),
            false => Ok(()),
        }
    }
}
