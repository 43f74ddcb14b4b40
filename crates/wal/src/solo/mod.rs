//! The log on its own: [`Wal`], for services that need a durable log and no
//! database.
//!
//! One file, written around and around. A record's [`Lsn`] is its position in
//! the log, which grows for ever; in the file it lies at `8192 + LSN mod
//! capacity`. [`Wal::truncate`] moves the log's beginning, and what lies before
//! it is written over on a later lap.
//!
//! ```
//! use fulgurite_wal::{Lsn, Options, Wal};
//! # fn main() -> fulgurite_wal::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("fulgurite-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("orders.log");
//! let log = Wal::open(&path, Options::file())?;
//! log.commit(b"durable when this returns")?;
//! let second = log.append(b"durable after the next flush")?;
//! log.flush()?;
//! for record in log.replay(Lsn::FIRST)? {
//!     let (lsn, payload) = record?;
//!     println!("{lsn}: {} bytes", payload.len());
//! }
//! log.truncate(second)?;
//! log.close()?;
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # What holds at every moment
//!
//! 1. What `flush` or `commit` returned for is synced, and so is all before it.
//! 2. A record's checksum is seeded with its position in the log and the salt of
//!    the *life* of the log that wrote it. A life begins with every opening;
//!    the head names it, durably, before its first record is written. So neither
//!    an earlier lap nor a tail that an earlier recovery gave up can be taken
//!    for part of the log.
//! 3. Sequence numbers grow by one a record, so a gap is seen.
//! 4. The head says where the newest life began, and all before that was synced
//!    when the head was written. A record's durable mark says what was synced
//!    when it was appended. What a mark reaches and cannot be read is reported
//!    as damage; anything else that cannot be read is a torn tail.
//! 5. A record's bytes are written over only after a head that begins behind
//!    it is durable.
//! 6. After a failed write or sync nothing is acknowledged any more: the log is
//!    poisoned with the first cause, and opening it anew recovers.
//!
//! # Who does what
//!
//! `append` copies into a ring in memory under one short lock. Committers lead
//! in turns (`leading.rs`), waiting for a crowd where that pays (`gather.rs`). A
//! background thread writes what is appended and not flushed, and prepares the
//! file ahead on its first lap (`room.rs`); nothing depends on it but speed.

mod append;
mod background;
mod core;
mod device;
mod entry;
mod flush;
mod header;
mod label;
mod marks;
mod mend;
mod mirror;
mod open;
mod options;
mod passing;
mod probe;
mod reader;
mod room;
mod sectors;
mod settle;
mod spin;
mod truncate;
mod volume;

use std::path::Path;
use std::sync::Arc;

// What this kind of log shares with the store's.
use super::{error, gather, generation, header as twin_header, leading, locks, parking};
use super::{record, ring, window};

use self::background::Background;
use self::core::Core;
use self::error::Result;

pub use self::core::Stats;
pub use self::device::Device;
pub use self::entry::{Entry, Lsn};
pub use self::options::{Lone, Options, Preallocation};
pub use self::probe::Measured;
pub use self::reader::Entries;

/// An open log. Shared by threads: every method takes `&self`.
#[derive(Debug)]
pub struct Wal {
    background: Background,
    core: Arc<Core>,
}

impl Wal {
    /// Opens the log at `path`, or makes one. One process owns a log at a time.
    ///
    /// # Errors
    /// `Disk` (`Busy` naming the holder where another process has the log,
    /// `Unsupported` where the device is not to be had here, `NoSpace`);
    /// `NotALog`, `NewerFormat`; `Corrupt` where a record that was durable once
    /// cannot be read; `SideMissing`, `SideUnreadable`, `NotASide` and `SidesDiverged` of a
    /// mirror, `Mirrored` where the options name no other side, and `NotMirrored` where they
    /// name one and the log has none.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let core = Arc::new(open::open(path.as_ref(), options)?);
        Ok(Self {
            background: Background::start(&core)?,
            core,
        })
    }

    /// Appends one record. It is durable after the next [`flush`](Self::flush)
    /// or [`commit`](Self::commit) by anyone; until then a crash may lose it.
    /// Where the log is at its limit, waits for a truncation.
    ///
    /// # Errors
    /// `TooBig` over 64 MiB or half of the log's limit; `Full` when nobody truncated
    /// in time; `Disk` with `NoSpace` where the file cannot grow; `Poisoned` after a
    /// failed write or sync.
    pub fn append(&self, payload: &[u8]) -> Result<Lsn> {
        Ok(Lsn(self.core.append(payload)?.start))
    }

    /// Appends records one after the other, in one go where there is room. The
    /// positions where they begin. A crash may keep the first of them only.
    ///
    /// # Errors
    /// As [`append`](Self::append); records before the failing one are appended, but none
    /// where one is `TooBig`.
    pub fn append_all(&self, payloads: &[&[u8]]) -> Result<Vec<Lsn>> {
        self.core.append_all(payloads)
    }

    /// Appends one typed record.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_entry<E: Entry>(&self, entry: &E) -> Result<Lsn> {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        self.append(&bytes)
    }

    /// Makes everything appended before the call durable: it survives a power
    /// cut once this returns.
    ///
    /// # Errors
    /// `Poisoned`: the outcome is unknown until the log is opened anew.
    pub fn flush(&self) -> Result<()> {
        self.core.wait_durable(self.core.appended())
    }

    /// Hands everything appended before the call to the operating system. It
    /// then survives the end of this process. It is **not** promised to survive
    /// a power cut or a crash of the system: only [`flush`](Self::flush) and
    /// [`commit`](Self::commit) promise that.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn flush_async(&self) -> Result<()> {
        self.core.wait_written(self.core.appended())
    }

    /// Appends one record and returns when it is durable. Committers at the same
    /// time share writes and syncs.
    ///
    /// # Errors
    /// As [`append`](Self::append) and [`flush`](Self::flush).
    pub fn commit(&self, payload: &[u8]) -> Result<Lsn> {
        let place = self.core.append(payload)?;
        self.core.wait_durable(place.end)?;
        Ok(Lsn(place.start))
    }

    /// Commits one typed record.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_entry<E: Entry>(&self, entry: &E) -> Result<Lsn> {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        self.commit(&bytes)
    }

    /// The records from `from` on that were appended before the call, in order.
    /// `from` is where a record begins, or was [`end`](Self::end) once;
    /// [`Lsn::FIRST`] stands for the oldest record that is kept. As long as the iterator
    /// lives, the log's file stays locked, also when the log is closed.
    ///
    /// # Errors
    /// `NoRecord` where no record begins at `from`. The iterator ends with an
    /// error where a record cannot be read, or was truncated away meanwhile.
    pub fn replay(&self, from: Lsn) -> Result<Entries> {
        Entries::new(&self.core, from)
    }

    /// Calls `apply` with every typed record from `from` on.
    ///
    /// # Errors
    /// As [`replay`](Self::replay), and `Entry` with what decoding or `apply` failed
    /// with, and the record's position.
    pub fn replay_entries<E: Entry>(
        &self,
        from: Lsn,
        mut apply: impl FnMut(Lsn, E) -> std::result::Result<(), super::ReplayError>,
    ) -> Result<()> {
        for record in self.replay(from)? {
            let (lsn, payload) = record?;
            E::decode(&payload)
                .and_then(|entry| apply(lsn, entry))
                .map_err(|source| error::Error::Entry {
                    position: lsn.to_u64(),
                    source: Arc::from(source),
                })?;
        }
        Ok(())
    }

    /// Gives up all records before `before`, durably, so that their room can be
    /// used again. `before` is where a record begins, or was [`end`](Self::end)
    /// once.
    /// Giving up what was given up before does nothing.
    ///
    /// # Errors
    /// `NoRecord` where no record begins there; `Disk`, `Poisoned`: the records
    /// may still be there after the next opening.
    pub fn truncate(&self, before: Lsn) -> Result<()> {
        self.core.truncate(before)
    }

    /// Where the oldest record that is kept begins, or would.
    pub fn first(&self) -> Lsn {
        Lsn(self.core.head())
    }

    /// The position behind everything appended so far.
    pub fn end(&self) -> Lsn {
        Lsn(self.core.appended())
    }

    /// The device in use: with [`Options::auto`], the one the probe chose.
    pub fn device(&self) -> Device {
        self.core.device
    }

    /// What the probe measured, if this opening probed.
    pub fn measured(&self) -> &[Measured] {
        &self.core.measured
    }

    /// Counters since the log was opened.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Why the log takes no more records, if it takes none.
    pub fn poisoned(&self) -> Option<error::Error> {
        self.core.check().err()
    }

    /// Flushes and closes the log. Dropping it does the same, but cannot say
    /// whether the flush succeeded.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn close(mut self) -> Result<()> {
        self.background.stop();
        self.core.flush_at_last()
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.background.stop();
        // Nobody can be told; what was committed is durable without this.
        let _ = self.core.flush_at_last();
    }
}
