//! How a store is opened.

use fulgurite_disk::Driver;
use std::sync::Arc;
use std::time::Duration;

/// When `commit` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The commit is on the medium: it survives a power cut.
    #[default]
    Full,
    /// The commit is with the operating system: it survives the process, and a
    /// power cut may take the newest commits, never more and never a part.
    Normal,
    /// As `Normal`, and nothing is ever synced: for tests.
    Off,
}

/// How pages are packed on their way to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    None,
    /// LZ4 block format, skipped where it saves less than 512 bytes.
    #[default]
    Lz4,
}

/// What a transaction may observe of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if the transactions had run one after the other.
    #[default]
    Serializable,
    /// A fixed snapshot; two transactions may each overwrite what the other
    /// read (write skew).
    Snapshot,
}

/// What to do where a transaction over several files was left between being prepared in
/// this one and its outcome, which another file knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InDoubt {
    /// Ask that file; where it is not there the store is not opened.
    #[default]
    Ask,
    /// It counts as committed: for who has lost that file and knows.
    Commit,
    /// It counts as never committed.
    RollBack,
}

/// The settings of an open store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Hard limit of the page cache in bytes. At least 64 pages. From 1024 pages
    /// on, what the store and SQL buffers hold beside the pages counts too, up to
    /// three quarters of it: the cache gives up as many pages.
    pub cache_bytes: usize,
    /// Page size in bytes, a power of two from 4096 to 65536. Only used when
    /// the file is created.
    pub page_size: u32,
    /// When commits return.
    pub durability: Durability,
    /// How pages are packed.
    pub compression: Compression,
    /// Refuse writes and leave the files as they are.
    pub read_only: bool,
    /// Create the file when it is absent.
    pub create: bool,
    /// Go on without the log of a database where that is missing, as the last checkpoint
    /// left it: what was committed since is given up, for good once it is opened for
    /// writing. Otherwise such a database is refused
    /// ([`MissingLog`](crate::ErrorKind::MissingLog)).
    pub abandon_missing_log: bool,
    /// Bounds every wait for a lock, that of the file at opening included, or for space
    /// in the log.
    pub busy_timeout: Duration,
    /// The log's size in bytes at which a checkpoint starts; where the log fills in less
    /// than half a second it may grow on, to three quarters of its limit.
    pub checkpoint_bytes: u64,
    /// The log's hard limit in bytes: committers wait for the checkpoint. `None`: half of
    /// [`cache_bytes`](Self::cache_bytes), but 32 MiB at least and 128 MiB at most, since
    /// what the log holds is replayed in the cache.
    pub log_limit_bytes: Option<u64>,
    /// What becomes of a transaction over several files of which only another one knows
    /// whether it was committed. That is said of this file alone: attached ones ask.
    pub in_doubt: InDoubt,
    /// Who drives the store. `None`: a thread of its own, and the machine's clock.
    /// Otherwise it has no thread: [`Store::tick`](crate::Store::tick) is to be
    /// called now and then, a writer that cannot go on without a checkpoint makes
    /// it itself, and waits, ids and salts are the driver's.
    pub driver: Option<Arc<dyn Driver>>,
}

/// What the log may hold unless somebody says otherwise.
const LOG_LIMIT_MIN: u64 = 32 << 20;
const LOG_LIMIT_MAX: u64 = 128 << 20;

impl Options {
    /// The log's hard limit in bytes, given or by the cache.
    pub fn log_limit(&self) -> u64 {
        let by_cache = (self.cache_bytes / 2) as u64;
        self.log_limit_bytes
            .unwrap_or(by_cache.clamp(LOG_LIMIT_MIN, LOG_LIMIT_MAX))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            page_size: 4096,
            durability: Durability::Full,
            compression: Compression::Lz4,
            read_only: false,
            create: true,
            abandon_missing_log: false,
            busy_timeout: Duration::from_secs(5),
            checkpoint_bytes: 24 << 20,
            log_limit_bytes: None,
            in_doubt: InDoubt::Ask,
            driver: None,
        }
    }
}
