//! Which log goes with a checkpoint.
//!
//! The log's files can be lost, or be taken for those of another moment, while the
//! database's file stays: somebody copies that one alone, or puts back files of
//! different times. So a database notes which generation the commits behind its
//! checkpoint are in, and recovery asks for just that one. What it must keep true:
//!
//! 1. A generation is named to the database only once its file is durable, with its
//!    name: [`WalOptions::begun`](super::twin::WalOptions::begun) for the first one,
//!    [`TwinLog::continuation`] for those that a switch goes to.
//! 2. It is given up only after the database has named another one, or none, durably.
//!
//! So a crash leaves no database without the generation that it names.

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::Disk;

use super::error::{Error, Result};
use super::generation::Generation;
use super::header;
use super::locks::lock;
use super::recovery::Recovery;
use super::survey;
use super::twin::TwinLog;

/// Names the generation that holds the first records behind a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// Its number, from 1.
    pub number: u64,
    /// What tells it from one of the same number in another copy of the database.
    pub salt: u64,
}

/// Told which generation is the first one, once it has its file and before any record
/// has a place in it. Called with locks of the log held.
pub type BegunHook = Arc<dyn Fn(Continuation) + Send + Sync>;

impl From<&Generation> for Continuation {
    fn from(generation: &Generation) -> Self {
        Self {
            number: generation.number,
            salt: generation.salt,
        }
    }
}

impl Recovery {
    /// Whether there is no log, as after a clean close.
    pub fn was_closed(&self) -> bool {
        self.newest_number == 0
    }

    /// Fails where the log of the database at `base` lacks the generation that it needs.
    /// Changes nothing on disk.
    ///
    /// # Errors
    /// `Missing` where no log is there, `Astray` where there is one of another moment or
    /// another copy; otherwise as [`open`](Self::open).
    pub fn require(
        disk: &dyn Disk,
        base: &Path,
        database: [u8; 16],
        needed: Continuation,
    ) -> Result<()> {
        let found = survey::find(disk, base, &database)?;
        let is_needed = |generation: &survey::Found| {
            let header = &generation.header;
            (header.number, header.salt) == (needed.number, needed.salt)
        };
        if found.iter().any(is_needed) {
            return Ok(());
        }
        let needed = needed.number;
        let base = base.to_owned();
        match found.last() {
            None => Err(Error::Missing {
                file: header::path_of(&base, 0),
                base,
                needed,
            }),
            Some(newest) => Err(Error::Astray {
                file: newest.path().to_owned(),
                found: newest.header.number,
                base,
                needed,
            }),
        }
    }
}

impl TwinLog {
    /// The generation that records go to from now on, once it has a file.
    pub fn continuation(&self) -> Option<Continuation> {
        let current = &lock(&self.placement).current;
        (current.capacity > 0).then(|| current.into())
    }

    /// The first generation's file is there and has its name.
    pub(super) fn tell_of_first_file(&self) {
        if let Some(begun) = &self.options.begun {
            let first = Continuation::from(&lock(&self.placement).current);
            begun(first);
        }
    }
}
