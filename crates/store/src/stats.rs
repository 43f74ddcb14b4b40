//! What an open store tells of itself.

use crate::cache::CacheStats;
use crate::checkpoint::WriteStats;
use crate::primitives::atomic::Ordering::Relaxed;
use crate::store::Store;
use crate::txn::CommitLockStats;
use fulgurite_wal::{TwinLog, WalStats};

/// Counters and sizes of an open store.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Stats {
    /// The newest acknowledged commit.
    pub visible: u64,
    /// The newest durable checkpoint.
    pub checkpoint: u64,
    /// The cache.
    pub cache: CacheStats,
    /// Page writes.
    pub writes: WriteStats,
    /// The log; `None` in memory or read-only.
    pub log: Option<WalStats>,
    /// Bytes of the database file in use, free space in its middle included.
    pub file_bytes: u64,
    /// Bytes of the file that are free to be used again.
    pub free_bytes: u64,
    /// How long commits held the lock that all of them share.
    pub commit_lock: CommitLockStats,
    /// Commits that changed pages where they lay, and copied none: where nothing is synced,
    /// or quickly.
    pub commits_in_place: u64,
    /// How often a transaction lost against an overlapping one, and has to be run again.
    pub conflicts: u64,
    /// How many contexts write at a time, of those that write without end and wait for
    /// no sync, as commits most; `None` for all.
    pub writers_at_once: Option<u32>,
    /// Dead nodes that open snapshots keep.
    pub kept_nodes: u64,
}

impl Store {
    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        let core = self.core();
        core.settle();
        // One lock after the other: a checkpoint takes the second one first.
        let (end, free) = {
            let space = core.space.lock();
            (space.map.end(), space.map.free_units())
        };
        let kept_nodes = core.lock_reclaim().kept_len() as u64;
        Stats {
            visible: core.visible(),
            checkpoint: core.checkpoint_pins.durable(),
            cache: core.pool.stats(),
            writes: core.writes.read(),
            log: core.wal().map(TwinLog::stats),
            file_bytes: end * crate::codec::UNIT as u64,
            free_bytes: free * crate::codec::UNIT as u64,
            commit_lock: core.critical.read(),
            commits_in_place: core.leases.in_place(),
            conflicts: core.conflicts.load(Relaxed),
            writers_at_once: core.admission.limit(),
            kept_nodes,
        }
    }
}
