//! Opening a log: what it holds is judged, handed to the caller, and only then
//! replaced by a fresh generation. Nothing is ever appended to what was replayed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, OpenOptions};

use super::error::{Error, ReplayError, Result};
use super::generation::{self, Generation};
use super::header::{self, NUMBER_MAX};
use super::record::Kind;
use super::survey::{self, Run};
use super::twin::{TwinLog, WalOptions};
use super::window::Window;

/// A record that is handed to the replay.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its commit sequence number.
    pub seq: u64,
    /// What it means.
    pub kind: Kind,
    /// What was filled in.
    pub payload: &'a [u8],
}

/// A log that is closed, or was left by a crash: read and judged, not changed.
pub struct Recovery {
    disk: Arc<dyn Disk>,
    base: PathBuf,
    database: [u8; 16],
    read_only: bool,
    after_seq: u64,
    last_seq: u64,
    pub(super) newest_number: u64,
    runs: Vec<Run>,
}

impl std::fmt::Debug for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovery")
            .field("base", &self.base)
            .field("after_seq", &self.after_seq)
            .field("last_seq", &self.last_seq)
            .finish_non_exhaustive()
    }
}

impl Recovery {
    /// Reads the log of the database at `base`, whose last durable checkpoint
    /// covers everything up to `after_seq`. Changes nothing on disk.
    ///
    /// # Errors
    /// `Corrupt` where a record that was durable once is missing or a file has
    /// no head; `NewerFormat`; `Foreign`; `Disk`; `Misuse` where `after_seq` is 2^63 or
    /// more.
    pub fn open(
        disk: Arc<dyn Disk>,
        base: &Path,
        database: [u8; 16],
        after_seq: u64,
        read_only: bool,
    ) -> Result<Self> {
        if after_seq > NUMBER_MAX {
            return Err(Error::Misuse(
                "a checkpoint covers numbers below 2^63 only; give the one that the database's meta page names",
            ));
        }
        let found = survey::find(&*disk, base, &database)?;
        let survey = survey::survey(&found, after_seq, disk.boot_id())?;
        Ok(Self {
            disk,
            base: base.to_owned(),
            database,
            read_only,
            after_seq,
            last_seq: survey.last_seq,
            newest_number: found.last().map_or(0, |newest| newest.header.number),
            runs: survey.runs,
        })
    }

    /// The log file that lies beside `base` and is not empty, if there is one.
    ///
    /// # Errors
    /// `Disk`.
    pub fn left_behind(disk: &dyn Disk, base: &Path) -> Result<Option<PathBuf>> {
        for path in [header::path_of(base, 0), header::path_of(base, 1)] {
            if disk.exists(&path)? && disk.open(&path, OpenOptions::READ)?.len()? > 0 {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Removes the log files of a database that is about to be created, left by
    /// one that had the same path and is gone.
    ///
    /// # Errors
    /// `Disk`.
    pub fn discard(disk: &dyn Disk, base: &Path) -> Result<()> {
        generation::remove_files(disk, base)
    }

    /// The last record's sequence number; the checkpoint's where there is none.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Whether there is nothing to replay.
    pub fn is_empty(&self) -> bool {
        self.last_seq == self.after_seq
    }

    /// Hands out every record behind the checkpoint, in sequence, without a
    /// gap but for numbers that leases left unused. May be called again.
    ///
    /// # Errors
    /// `Replay` with what `apply` failed with; `Disk`; `Corrupt` where bytes
    /// changed since the log was opened.
    pub fn replay(
        &mut self,
        apply: &mut dyn FnMut(Record<'_>) -> std::result::Result<(), ReplayError>,
    ) -> Result<()> {
        for run in &self.runs {
            replay_run(run, apply)?;
        }
        Ok(())
    }

    /// Opens a fresh generation behind `next_seq - 1`, which must be covered by
    /// a durable checkpoint. Where there are old ones they are discarded, and all of it
    /// is durable when this returns; where there are none its file is made when the
    /// first record asks for room.
    ///
    /// # Errors
    /// `Misuse` if the log was opened for reading, if `next_seq` leaves out what was to be
    /// replayed, or where it or the generations' numbers have come to 2^62: those that
    /// follow must stay below 2^63; `Disk`: the old generations are still there, or
    /// not needed any more.
    pub fn start(self, options: WalOptions, next_seq: u64) -> Result<TwinLog> {
        if self.read_only {
            return Err(Error::Misuse(
                "a log that was opened for reading was started",
            ));
        }
        if next_seq <= self.last_seq {
            return Err(Error::Misuse("a log was started before what it holds"));
        }
        if next_seq.max(self.newest_number) > START_MAX {
            return Err(Error::Misuse(
                "a log was started with numbers that it would soon run out of; they are below 2^62",
            ));
        }
        let replayed_salt = self.replayed_salt();
        let current = Generation {
            number: self.newest_number + 1,
            slot: 0,
            salt: replayed_salt.unwrap_or_else(|| options.fresh_salt()),
            base: 0,
            capacity: 0,
        };
        let is_clean = self.was_closed();
        let log = TwinLog::new(
            self.disk,
            self.base,
            self.database,
            options,
            current,
            next_seq,
        );
        match replayed_salt {
            Some(_) => log.begin_in_replayed_file()?,
            None if is_clean => return Ok(log),
            None => log.make_sure_of_first_file()?,
        }
        log.remove_second_file()?;
        Ok(log)
    }
}

impl Recovery {
    /// A planted bug: the salt of what was replayed, whose file is gone on with.
    fn replayed_salt(&self) -> Option<u64> {
        if !planted(Mutation::AppendToReplayed) {
            return None;
        }
        let path = header::path_of(&self.base, 0);
        let run = self.runs.iter().find(|run| run.path == path)?;
        Some(run.salt)
    }
}

/// Where a life may begin: it comes to no number that recovery refuses.
const START_MAX: u64 = NUMBER_MAX / 2;

fn replay_run(
    run: &Run,
    apply: &mut dyn FnMut(Record<'_>) -> std::result::Result<(), ReplayError>,
) -> Result<()> {
    let mut window = Window::new(Arc::clone(&run.file), &run.path, run.salt)?;
    let mut position = run.position;
    let changed = |position| Error::Corrupt {
        file: run.path.clone(),
        position,
        what: "a record changed while it was being replayed".to_owned(),
    };
    for seq in run.first_seq..=run.last_seq {
        let head = window
            .valid_record_at(position)?
            .filter(|head| head.seq == seq);
        let Some((head, kind)) = head.and_then(|head| Some((head, Kind::from_byte(head.kind)?)))
        else {
            return Err(changed(position));
        };
        let Some(payload) = window.payload_at(position, head.len)? else {
            return Err(changed(position));
        };
        apply(Record { seq, kind, payload }).map_err(|source| Error::Replay {
            seq,
            source: Arc::from(source),
        })?;
        position += head.total_bytes();
    }
    Ok(())
}
