//! Whether a store may be written, and what ends it.
//!
//! A sync of the database file or the log that fails, or a write of the log or of a meta
//! slot, ends all writing, for good: what the disk holds since is unknown, and a later sync
//! that succeeds would not tell. Readers go on.

use super::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Durability;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{DiskError, DiskErrorKind, Due};
use fulgurite_wal::TwinLog;
use std::error::Error as _;

/// The way out once all writing has ended.
const OPEN_AGAIN: &str = "close all connections and open the database again";

impl Core {
    pub(super) fn read_only(&self) -> Error {
        Error::new(
            ErrorKind::ReadOnly,
            format!(
                "attempt to write a readonly database: {} was opened for reading",
                self.pool.path
            ),
        )
    }

    /// Fails if nothing may be written (any more).
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(self.read_only());
        }
        if let Some(failure) = self.failure.get() {
            return Err(poisoned(failure));
        }
        match self.wal.get().and_then(TwinLog::poisoned) {
            Some(error) => Err(log_error(error)),
            None => Ok(()),
        }
    }

    /// Syncs the database file, unless its mode says that nothing is. A failure ends
    /// all writing, for good, before anybody else's sync begins: that one would report
    /// nothing of what this one lost.
    ///
    /// # Errors
    /// Also where writing has ended.
    pub(crate) fn sync_file(&self) -> Result<()> {
        let _one_at_a_time = self.syncing.lock();
        self.check_writable()?;
        if self.options.durability == Durability::Off {
            return Ok(());
        }
        let file = &self.pool.file;
        let again = |error| match planted(Mutation::RetryFailedSync) {
            true => file.sync_data(),
            false => Err(error),
        };
        let synced = file.sync_data().or_else(again);
        synced.map_err(|error| self.ended_by(error.into()))
    }

    /// Lets pages go to the device, and waits for some of those before. What fails may have
    /// been lost, as in a sync, and poisons as that does.
    pub(crate) fn keep_pace(&self, due: &Due) -> Result<()> {
        let file = &*self.pool.file;
        due.ask(file);
        // Where no commit waits for a sync there is nobody to make room for.
        if self.options.durability != Durability::Full {
            return Ok(());
        }
        // A sync beside it would not be told what this is told.
        let _one_at_a_time = self.syncing.lock();
        due.wait(file).map_err(|error| self.ended_by(error.into()))
    }

    /// Whether the file was moved or removed, and its name is another one's. Where nobody
    /// has the name the log's are nobody's either.
    ///
    /// # Errors
    /// What keeps from telling: then they may be another one's.
    pub(crate) fn was_moved(&self) -> fulgurite_disk::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        match self.disk.identity_at(path) {
            Ok(named) => Ok(named != self.pool.file.identity()?),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first failure that ended all writing, as it was met.
    pub(crate) fn first_failure(&self) -> Option<Error> {
        let of_log = || match self.wal.get()?.poisoned()? {
            fulgurite_wal::Error::Poisoned(cause) => Some(log_error(cause.as_ref().clone())),
            other => Some(log_error(other)),
        };
        self.failure.get().cloned().or_else(of_log)
    }

    /// As [`fail`](Self::fail). What who met it is to be told is that writing has ended:
    /// the failure alone might say that it can be tried again.
    #[cold]
    pub(crate) fn ended_by(&self, error: Error) -> Error {
        self.fail(&error);
        self.check_writable().err().unwrap_or(error)
    }

    /// A write or sync of the data file failed: ends all writing, for good.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.failure.set(error.clone());
        if let Some(wal) = self.wal.get() {
            // Who is just committing hears of it from the log.
            let disk = error.source().and_then(|cause| cause.downcast_ref());
            wal.poison(match disk {
                Some(disk) => fulgurite_wal::Error::Disk(DiskError::clone(disk)),
                None => {
                    fulgurite_wal::Error::Misuse("the database file could not be written or synced")
                }
            });
        }
    }
}

fn poisoned(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Poisoned,
        format!("writing ended with an earlier failure ({cause}); {OPEN_AGAIN}"),
    )
}

/// A failure of the log, as the store reports it.
pub(crate) fn log_error(error: fulgurite_wal::Error) -> Error {
    use fulgurite_wal::Error as Log;
    if let Log::NoRoom { source, .. } = &error
        && let Some(own) = source.downcast_ref::<Error>()
    {
        return own
            .clone()
            .during("making room in the log, which has reached its limit");
    }
    let kind = match &error {
        Log::Disk(disk) => return Error::from(disk.clone()),
        Log::Corrupt { .. } | Log::Foreign { .. } => ErrorKind::Corrupt,
        Log::NewerFormat { .. } => ErrorKind::NewerFormat,
        Log::Missing { .. } | Log::Astray { .. } => ErrorKind::MissingLog,
        Log::Full { .. } | Log::NoRoom { .. } => ErrorKind::Busy,
        Log::TooBig { .. } => ErrorKind::TooBig,
        Log::Moved { .. } => ErrorKind::ReadOnly,
        Log::Poisoned(_) => ErrorKind::Poisoned,
        _ => ErrorKind::Misuse,
    };
    let message = error.to_string();
    match kind {
        ErrorKind::Corrupt => {
            Error::new(kind, format!("database disk image is malformed: {message}"))
        }
        ErrorKind::MissingLog => {
            Error::new(kind, format!("unable to open database file: {message}"))
        }
        ErrorKind::ReadOnly => Error::new(
            kind,
            format!("attempt to write a readonly database: {message}"),
        ),
        ErrorKind::Poisoned => Error::new(kind, format!("{message}; {OPEN_AGAIN}")),
        _ => Error::new(kind, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::store::Store;
    use fulgurite_disk::{Intercepted, Interceptor, MemoryDisk, Result as Done};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Who was committing while the database file failed heard of a misuse of the log.
    #[test]
    fn who_commits_when_the_database_file_fails_hears_why() {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, "failed.db", Options::default()).expect("opens");
        let gone = std::io::Error::other("the disk is gone");
        let failed = DiskError::new("sync", Path::new("failed.db"), gone);
        store.core().fail(&Error::from(failed));
        let log = store.core().wal().expect("a log");
        let told = log_error(log.poisoned().expect("it ended"));
        assert_eq!(told.kind(), ErrorKind::Poisoned);
        assert!(told.message().contains("the disk is gone"), "{told}");
        assert!(told.message().contains(OPEN_AGAIN), "{told}");
    }

    /// A full disk, as far as the syncs of the database file can tell.
    #[derive(Debug, Default)]
    struct Filled(AtomicBool);

    impl Interceptor for Filled {
        fn before_sync(&self, path: &Path) -> Done<()> {
            match path.ends_with("filled.db") && self.0.load(Ordering::SeqCst) {
                true => {
                    let full = std::io::ErrorKind::StorageFull.into();
                    Err(DiskError::new("sync", path, full))
                }
                false => Ok(()),
            }
        }
    }

    /// Whose sync of the database file failed was told that the disk is full, as if it could
    /// be tried again; only the next one heard that writing had ended.
    #[test]
    fn who_meets_a_failed_sync_hears_that_writing_has_ended() {
        let filled = Arc::<Filled>::default();
        let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &filled));
        let store = Store::open_on(disk, "filled.db", Options::default());
        let store = store.expect("opens");
        store
            .create_family("f", crate::KeyKind::Int)
            .expect("a tree");
        filled.0.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            let told = store.checkpoint().expect_err("its sync fails");
            assert_eq!(told.kind(), ErrorKind::Poisoned, "{told}");
            assert!(told.message().contains("no storage space"), "{told}");
        }
    }
}
