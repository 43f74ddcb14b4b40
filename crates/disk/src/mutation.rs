//! Bugs planted on purpose, to prove that the simulator sees them.
//!
//! Without the `mutations` feature, which only `fulgurite-sim`'s command and the
//! tests of planted bugs turn on, [`planted`] is `false` at compile time and
//! nothing of this is left in the program. With it, one mutation at a time can be
//! chosen for the process.

/// One planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// The data file is not synced before the meta slots are written.
    SkipDataSync = 1,
    /// A commit is acknowledged before the log is synced.
    SkipLogSync,
    /// A commit in `full` beside others in `normal` is not synced.
    SkipOwnSync,
    /// Readers see what is published and not yet acknowledged.
    ShowHead,
    /// The log's old generation is reused before the checkpoint is durable.
    RecycleEarly,
    /// A replaced node's extent is free at once, not after the next checkpoint.
    FreeExtentEarly,
    /// A record's checksum does not depend on its generation and position.
    NoSalt,
    /// A recovered log is gone on with: the records replayed keep their file and
    /// their generation.
    AppendToReplayed,
    /// The checkpoint says another sequence number than the log's switch.
    CheckpointOtherSequence,
    /// The second meta slot is left as it was.
    StaleMetaSlot,
    /// What a system call did not write is forgotten.
    IgnoreShortWrite,
    /// A failed sync is tried again, and believed.
    RetryFailedSync,
    /// A folder is not synced after its names changed.
    SkipDirectorySync,
    /// A transaction's attach record is logged before its pages are synced.
    SkipBulkSync,
    /// The log is removed before the last checkpoint when a store is closed.
    RemoveLogFirst,
    /// A torn record is replayed without looking at its checksum.
    TrustTornRecord,
    /// A page is taken as it is, whatever checksum its parent holds.
    TrustPage,
    /// A meta slot that a process which ended may have left unsynced is all there
    /// is while the other one is written.
    TrustUnsyncedSlot,
    /// After a power cut, what is left of leases is replayed though others of their
    /// phase are gone.
    TornPhase,
    /// A log ends where the process ended before a lease, though others go on.
    OpenLeaseIsEnd,
    /// A page that was just written is found a moment before it enters the queue
    /// of pages to evict.
    SeatLate,
    /// A transaction that is ahead of what is acknowledged tells of it unconfirmed.
    TellUnconfirmed,
    /// A transaction over several files is decided before the others are prepared.
    DecideFirst,
    /// The outcome of one is believed as it is read, durable or not.
    BelieveUnsyncedDecision,
    /// What decides one waits for no sync, as what ends it.
    DecideUnsynced,
    /// A store is changed, and shows it, before another one shows what was committed there
    /// by who has read it as it was.
    PassReaders,
}

impl Mutation {
    /// Those that are seen in transactions over several files.
    pub const OVER_FILES: [Self; 3] = [
        Self::DecideFirst,
        Self::BelieveUnsyncedDecision,
        Self::DecideUnsynced,
    ];

    /// Those that are seen in one file where one thread is at work at a time, in the order
    /// of their numbers. What is in neither list is for models of interleavings.
    pub const ALL: [Self; 20] = [
        Self::SkipDataSync,
        Self::SkipLogSync,
        Self::SkipOwnSync,
        Self::ShowHead,
        Self::RecycleEarly,
        Self::FreeExtentEarly,
        Self::NoSalt,
        Self::AppendToReplayed,
        Self::CheckpointOtherSequence,
        Self::StaleMetaSlot,
        Self::IgnoreShortWrite,
        Self::RetryFailedSync,
        Self::SkipDirectorySync,
        Self::SkipBulkSync,
        Self::RemoveLogFirst,
        Self::TrustTornRecord,
        Self::TrustPage,
        Self::TrustUnsyncedSlot,
        Self::TornPhase,
        Self::OpenLeaseIsEnd,
    ];
}

#[cfg(feature = "mutations")]
mod chosen {
    use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// Plants one mutation in this process, or none.
    pub fn plant(mutation: Option<super::Mutation>) {
        CHOSEN.store(mutation.map_or(0, |mutation| mutation as u8), SeqCst);
    }

    /// Whether this mutation is planted.
    pub fn planted(mutation: super::Mutation) -> bool {
        CHOSEN.load(SeqCst) == mutation as u8
    }
}

#[cfg(feature = "mutations")]
pub use chosen::{plant, planted};

/// Whether this mutation is planted: never, in this build.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn planted(_: Mutation) -> bool {
    false
}
