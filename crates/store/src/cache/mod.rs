//! The page cache: nodes in frames, found by hints, bounded by a hard limit.
//!
//! * [`frames`]: the region of page buffers and the rules for touching them.
//! * [`readers`]: snapshot pins, and the walks that keep evicted frames from
//!   being reused under somebody's feet.
//! * [`pool`]: following references, loading, evicting, taking frames, and giving
//!   frames up for what else the store holds.

pub(crate) mod frames;
pub(crate) mod pool;
pub(crate) mod readers;

pub(crate) use frames::{ChildRef, Frame, NO_HINT};
pub(crate) use pool::{Absent, Adjacent, Charge, Pinned, Pool, Topmost, Written};
pub use pool::{CacheStats, MemoryCharge, MemoryCounter};
pub(crate) use readers::{SlotId, Walk};
