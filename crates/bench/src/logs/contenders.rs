//! What is measured: our log, the raw control, and published logs, all at full
//! durability: a commit returns when its record is synced.

use anyhow::{Result, anyhow};
use fulgurite_wal::{Lsn, Options, Wal};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A log that threads commit to.
pub trait Contender: Sync {
    /// Appends a record and returns when it is durable.
    fn commit(&self, payload: &[u8]) -> Result<()>;
}

/// Our log, truncated as it fills.
pub struct Ours {
    pub log: Wal,
    limit: u64,
    truncated: AtomicU64,
}

impl Ours {
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let log = Wal::open(path, options)?;
        Ok(Self {
            truncated: AtomicU64::new(log.end().to_u64()),
            limit: log.stats().limit_bytes,
            log,
        })
    }

    /// Writes one lap around the file, so that what is measured afterwards does
    /// not depend on whether a block is written for the first time.
    pub fn warm_up(&self) -> Result<()> {
        let start = self.log.end().to_u64();
        let payload = vec![0; 16 << 10];
        while self.log.end().to_u64() - start < self.limit {
            let lsn = self.log.append(&payload)?;
            self.make_room(lsn)?;
        }
        Ok(self.log.flush()?)
    }

    /// Gives up what is there, whenever half of the limit is used.
    fn make_room(&self, lsn: Lsn) -> Result<()> {
        let before = self.truncated.load(Ordering::Relaxed);
        if lsn.to_u64().saturating_sub(before) < self.limit / 2 {
            return Ok(());
        }
        let mine = self.truncated.compare_exchange(
            before,
            lsn.to_u64(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if mine.is_ok() {
            self.log.truncate(lsn)?;
        }
        Ok(())
    }
}

impl Contender for Ours {
    fn commit(&self, payload: &[u8]) -> Result<()> {
        let lsn = self.log.commit(payload)?;
        self.make_room(lsn)
    }
}

/// The floor: write and `fdatasync` on a zero-filled, synced file.
pub struct Raw {
    file: File,
    offset: Mutex<u64>,
}

const RAW_BYTES: u64 = 8 << 20;

impl Raw {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)?;
        let zeros = vec![0; 64 << 10];
        for offset in (0..RAW_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, offset)?;
        }
        file.sync_all()?;
        Ok(Self {
            file,
            offset: Mutex::new(0),
        })
    }
}

impl Contender for Raw {
    fn commit(&self, payload: &[u8]) -> Result<()> {
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        if *offset + payload.len() as u64 > RAW_BYTES {
            *offset = 0;
        }
        self.file.write_all_at(payload, *offset)?;
        self.file.sync_data()?;
        *offset += payload.len() as u64;
        Ok(())
    }
}

/// Many threads writing and syncing one file at the same time, each its own
/// blocks: what overlapping syncs could bring at most.
pub struct RawOverlapped {
    raw: Raw,
    next: AtomicU64,
}

impl RawOverlapped {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self {
            raw: Raw::create(path)?,
            next: AtomicU64::new(0),
        })
    }
}

impl Contender for RawOverlapped {
    fn commit(&self, payload: &[u8]) -> Result<()> {
        let block = self.next.fetch_add(4096, Ordering::Relaxed) % RAW_BYTES;
        self.raw.file.write_all_at(payload, block)?;
        Ok(self.raw.file.sync_data()?)
    }
}

/// `okaywal`: one entry a commit, synced by its own group commit.
pub struct Okay(okaywal::WriteAheadLog);

impl Okay {
    pub fn create(folder: &Path) -> Result<Self> {
        let log = okaywal::Configuration::default_for(folder).open(okaywal::LogVoid)?;
        Ok(Self(log))
    }
}

impl Contender for Okay {
    fn commit(&self, payload: &[u8]) -> Result<()> {
        let mut entry = self.0.begin_entry()?;
        entry.write_chunk(payload)?;
        entry.commit()?;
        Ok(())
    }
}

/// `commitlog`: append, flush and a sync under a lock, since it has no sharing of
/// its own. Its flush does not sync what it appended, so that is done here.
pub struct Commitlog {
    log: Mutex<commitlog::CommitLog>,
    segment: File,
}

impl Commitlog {
    pub fn create(folder: &Path) -> Result<Self> {
        let mut options = commitlog::LogOptions::new(folder);
        // One segment, for one handle to sync.
        options.segment_max_bytes(1 << 30);
        let log = commitlog::CommitLog::new(options)?;
        let segment = std::fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "log"))
            .ok_or_else(|| anyhow!("commitlog has no segment in {}", folder.display()))?;
        Ok(Self {
            log: Mutex::new(log),
            segment: File::open(segment)?,
        })
    }
}

impl Contender for Commitlog {
    fn commit(&self, payload: &[u8]) -> Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append_msg(payload)
            .map_err(|error| anyhow!("{error:?}"))?;
        log.flush()?;
        Ok(self.segment.sync_data()?)
    }
}
