//! Opening a log: what it holds is judged, handed to the caller, and only then
//! replaced by a fresh generation. Nothing is ever appended to what was replayed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskFile, OpenOptions};

use super::error::{Error, ReplayError, Result};
use super::flush::begin_record;
use super::generation::{self, CAPACITY_BYTES_MIN, Generation};
use super::header::{self, Header, RECORDS_START};
use super::record::Kind;
use super::survey::{self, Run};
use super::twin::{Durability, TwinLog, WalOptions};
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
    newest_number: u64,
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
    /// no head; `NewerFormat`; `Foreign`; `Disk`.
    pub fn open(
        disk: Arc<dyn Disk>,
        base: &Path,
        database: [u8; 16],
        after_seq: u64,
        read_only: bool,
    ) -> Result<Self> {
        let found = survey::find(&*disk, base, &database)?;
        let survey = survey::survey(&found, after_seq)?;
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
        let mut removed = false;
        for path in [
            header::path_of(base, 0),
            header::path_of(base, 1),
            header::new_path(base),
        ] {
            if disk.exists(&path)? {
                disk.remove(&path)?;
                removed = true;
            }
        }
        if removed {
            generation::sync_names(disk, base)?;
        }
        Ok(())
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
    /// gap. May be called again.
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
    /// a durable checkpoint, and discards the old ones; all of it durable when
    /// this returns.
    ///
    /// # Errors
    /// `Misuse` if the log was opened for reading, or if `next_seq` leaves out
    /// what was to be replayed; `Disk`: the old generations are still there, or
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
        let last = next_seq - 1;
        let synced = options.durability != Durability::Off;
        let header = Header {
            database: self.database,
            number: self.newest_number + 1,
            salt: self.replayed_salt().unwrap_or_else(|| options.fresh_salt()),
            durable: last,
        };
        let begin = begin_record(header.salt, RECORDS_START, last, last);
        let sync = |file: &dyn DiskFile| {
            if synced {
                Ok(file.sync_data()?)
            } else {
                Ok(())
            }
        };
        let disk = &*self.disk;
        let file = if self.replayed_salt().is_some() {
            let file = disk.open(&header::path_of(&self.base, 0), OpenOptions::WRITE)?;
            file.write_at(&begin, RECORDS_START)?;
            header.write(&*file, &sync)?;
            file
        } else {
            let capacity = CAPACITY_BYTES_MIN;
            generation::create_file(disk, &self.base, &header, &begin, capacity, &sync)?;
            generation::publish_file(disk, &self.base, 0, options.durability)?
        };
        let other = header::path_of(&self.base, 1);
        if disk.exists(&other)? {
            disk.remove(&other)?;
        }
        if synced {
            generation::sync_names(disk, &self.base)?;
        }
        let current = Generation {
            number: header.number,
            slot: 0,
            file,
            salt: header.salt,
            base: 0,
            capacity: CAPACITY_BYTES_MIN,
        };
        Ok(TwinLog::new(
            self.disk,
            self.base,
            self.database,
            options,
            current,
            next_seq,
        ))
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
