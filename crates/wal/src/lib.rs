//! Write-ahead logs: that of a database, [`TwinLog`], and one on its own, [`Wal`].
//!
//! The second, for services that need a durable log and no database, has its description
//! and its rules with [`Wal`] (`solo/`). All that follows is about the first. They share who
//! writes and syncs for whom (`leading.rs`), how long that one waits for others
//! (`gather.rs`), and where those sleep meanwhile (`parking.rs`).
//!
//! A log keeps *records*, numbered by commit sequence numbers without a gap (but for
//! those that a lease left unused and its end record stands for: `lease.rs`), in two
//! files that take turns, `<db>-wal0` and `<db>-wal1`, each use of one being
//! a *generation* with a number and a salt of its own. It knows nothing of what
//! a record holds.
//!
//! A commit takes four calls:
//!
//! 1. [`TwinLog::reserve`] before any lock: the log's limit, the file space.
//! 2. [`TwinLog::place`] under the caller's commit lock: the record's sequence
//!    number and position. Nothing in it can fail or wait.
//! 3. [`TwinLog::fill`] outside all locks: the bytes go to the log buffer, or, where
//!    commits are not synced, to the file.
//! 4. [`TwinLog::wait`]: one committer leads, writes what is filled and syncs it;
//!    the others find themselves served. Where commits are not synced there is
//!    nothing left to do but to wait for those before (`in_place.rs`).
//!
//! Where commits are not synced, one committer may place many at once: a lease takes
//! [`TwinLog::reserve_lease`], [`TwinLog::place_lease`], [`TwinLog::begin_lease`], then
//! [`TwinLog::write_leased`] a record, and [`TwinLog::end_lease`].
//!
//! A checkpoint takes three: [`TwinLog::prepare_switch`] in the background,
//! [`TwinLog::switch`] under the commit lock, [`TwinLog::recycle`] once it is durable.
//!
//! # What holds at every moment
//!
//! 1. `acked` grows contiguously. In `full` mode everything up to it is synced, but for
//!    records of which a power cut may take what is said, since it is durable elsewhere
//!    ([`TwinLog::acknowledge_written`]).
//! 2. A record's *durable mark* is true: every sequence number up to it was
//!    synced, or in a durable checkpoint, when the record was filled.
//! 3. Nothing is written to a generation before its head is durable with its
//!    name, and in `full` mode not before its predecessor is durable.
//! 4. A generation's file is touched again only after [`TwinLog::recycle`].
//! 5. After a failed write or sync nothing is acknowledged any more, nothing
//!    recycled and nothing removed: the log is *poisoned*, with the first cause. (What
//!    was written under a lease had been acknowledged to its committer, and is to all.)
//!
//! # What a crash leaves, and why it is told apart
//!
//! Let `S` be the last durable checkpoint's sequence number. Records that are
//! lost or torn were not synced, so no mark reaches them, by 2: the log ends
//! before the first of them ([torn tail](Recovery::open)). Records that were
//! acknowledged and synced are there; where one cannot be read, a record that
//! was filled after its sync carries a mark that reaches it, or its successor
//! generation's begin record does, by 3: [`Error::Corrupt`]. What no later
//! record testifies for (rot in the very last groups) looks like a torn tail.
//! Files in the middle of being made or reused are covered by `switch.rs`,
//! what recovery concludes from marks by `survey.rs`.
//!
//! Recovery never appends to what it found: the caller makes a checkpoint of
//! what was replayed, and [`Recovery::start`] opens a new generation whose begin
//! record continues from there. A crash before that leaves the old generations
//! as they were, and they are judged the same again; a crash after it leaves
//! them, if at all, older than a generation that begins at the checkpoint, which
//! makes them irrelevant.
//!
//! # Where to find what
//!
//! * A commit, in its order: `space` (room), `twin` (a place), `commit` (the bytes),
//!   `buffer` and `ring` (where they lie until they are written), `leading` and `flush`
//!   (the write and the sync).
//! * The same without a sync: `in_place`, `lease`; and the way there: `relaxing`.
//! * The files: `files`, `generation`, `header`, `record`; `switch` for their life, and
//!   `continuation` for which of them a database names.
//! * Opening: `recovery`, `survey`, `window`, `stretches`.

pub(crate) mod bell;
mod buffer;
mod commit;
mod continuation;
mod crc;
mod error;
mod files;
mod flush;
mod gather;
mod generation;
mod giving_way;
mod growth;
mod header;
mod in_place;
mod leading;
mod lease;
mod locks;
mod parking;
#[cfg_attr(fulgurite_model, path = "../../model-wal/primitives.rs")]
mod primitives;
mod processors;
mod record;
mod recovery;
mod relaxing;
mod ring;
#[cfg(test)]
mod scheduled;
mod solo;
mod space;
mod stats;
mod stretches;
mod survey;
mod switch;
mod twin;
mod window;

pub use continuation::{BegunHook, Continuation};
pub use error::{Error, ReplayError, Result};
pub use gather::Waiting;
pub use growth::GrowthHook;
pub use lease::{Lease, LeasePermit, PlacedLease};
pub use record::{Kind, PAYLOAD_BYTES_MAX};
pub use recovery::{Record, Recovery};
pub use solo::{Device, Entries, Entry, Lone, Lsn, Measured, Options, Preallocation, Stats, Wal};
pub use space::RoomAttempt;
pub use stats::WalStats;
pub use twin::{
    Durability, GenerationId, MovedHook, Permit, Placed, PressureHook, Ticket, TwinLog, WalOptions,
};
