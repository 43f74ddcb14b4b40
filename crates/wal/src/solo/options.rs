//! How a log is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::{Disk, Lifetime, MemoryDisk, RealDisk};

use super::device::Device;
use super::gather::Waiting;

/// How the file is made ready before records are written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Preallocation {
    /// Not at all: the file grows with its records, and most flushes of its
    /// first lap pay for the new length.
    None,
    /// Room is reserved (`fallocate`); the first write of each block still
    /// changes its state, which a flush pays for.
    Allocate,
    /// Zeros are written and synced ahead: a flush writes data and nothing else.
    #[default]
    ZeroFill,
}

/// What to do where one side of a mirrored log is missing, or is damaged so that it does
/// not say any more whether it went on without the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Lone {
    /// Refuse with `SideMissing` or `SideUnreadable`.
    #[default]
    Refuse,
    /// Open the side that is there; a new membership is recorded on it first,
    /// so that the other one counts as stale when it comes back.
    Open,
    /// Rebuild the missing side from the one that is there. A log of one file becomes the
    /// side of a mirror by that.
    Rebuild,
}

/// How a log is opened. Begin with the function named after a device, or with
/// [`auto`](Self::auto), and change fields.
#[derive(Clone)]
pub struct Options {
    /// The device; `None` probes for the fastest durable one when the log is
    /// made, and takes the one recorded in the file later.
    pub device: Option<Device>,
    /// The most bytes of records the log holds. Fixed when it is made, rounded
    /// up to blocks of 4 KiB; between 64 KiB and 1 PiB.
    pub limit_bytes: u64,
    /// How the file is made ready.
    pub preallocation: Preallocation,
    /// How long an append waits at the limit for a truncation.
    pub append_timeout: Duration,
    /// When a leader waits for others before it writes and syncs.
    pub waiting: Waiting,
    /// Whether a thread of the log's own writes before the buffer is full and
    /// prepares the file ahead. Without one, whoever appends does.
    pub background: bool,
    /// How long the log's blocks live, for devices that place data by it.
    pub lifetime: Lifetime,
    /// Asks for write-back (`sync_file_range`) before each sync.
    pub start_writeback: bool,
    /// A second path, best on another disk: everything is written and synced to
    /// both, in parallel, and the log goes on where one fails.
    pub mirror: Option<PathBuf>,
    /// Whether the mirror's sides are written at the same time, or, so that the
    /// order of all calls can be reproduced, one after the other.
    pub mirror_in_parallel: bool,
    /// What to do where one side of the mirror is missing or damaged.
    pub lone: Lone,
    /// The file system.
    pub disk: Arc<dyn Disk>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("device", &self.device)
            .field("limit_bytes", &self.limit_bytes)
            .field("preallocation", &self.preallocation)
            .field("waiting", &self.waiting)
            .field("mirror", &self.mirror)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::file()
    }
}

impl Options {
    /// A device of the caller's choice.
    pub fn device(device: Device) -> Self {
        let disk: Arc<dyn Disk> = match device {
            Device::Memory => Arc::new(MemoryDisk::new()),
            _ => Arc::new(RealDisk),
        };
        Self {
            device: Some(device),
            limit_bytes: 64 << 20,
            preallocation: Preallocation::default(),
            append_timeout: Duration::from_secs(5),
            waiting: Waiting::default(),
            background: true,
            lifetime: Lifetime::NotSet,
            start_writeback: false,
            mirror: None,
            mirror_in_parallel: true,
            lone: Lone::default(),
            disk,
        }
    }

    /// Whichever device commits fastest at full durability. Found out when the
    /// log is made, in at most 200 ms, and recorded in its file. (A map is tried
    /// for logs of at most 64 MiB: it wants its whole file made ready at once.)
    pub fn auto() -> Self {
        Self {
            device: None,
            ..Self::file()
        }
    }

    /// An ordinary file: `pwrite` and `fdatasync`.
    pub fn file() -> Self {
        Self::device(Device::File)
    }

    /// Past the operating system's cache.
    pub fn direct() -> Self {
        Self::device(Device::Direct)
    }

    /// Through a map of the file.
    pub fn mmap() -> Self {
        Self::device(Device::Mmap)
    }

    /// Through io_uring.
    pub fn uring() -> Self {
        Self::device(Device::Uring)
    }

    /// In memory: for tests, gone with the last handle.
    pub fn memory() -> Self {
        Self::device(Device::Memory)
    }

    /// A log on two paths, each an ordinary file.
    pub fn mirror(second: impl Into<PathBuf>) -> Self {
        Self {
            mirror: Some(second.into()),
            ..Self::file()
        }
    }

    /// With another limit.
    pub fn limit_bytes(mut self, limit_bytes: u64) -> Self {
        self.limit_bytes = limit_bytes;
        self
    }

    /// With another preallocation.
    pub fn preallocation(mut self, preallocation: Preallocation) -> Self {
        self.preallocation = preallocation;
        self
    }

    /// With another waiting rule.
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// On another file system.
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }
}
