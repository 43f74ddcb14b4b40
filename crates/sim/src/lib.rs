//! A disk that loses power, tears writes and fails on demand, for proving what
//! the engine promises about durability. See [`SimDisk`].
//!
//! But for one that measurements use too ([`cut_log_everywhere`]), the harnesses
//! live in this crate's tests: each runs a seeded workload, cuts
//! the power at every call in turn, recovers from what the disk is left with,
//! and compares with what had been acknowledged.

mod disk;
mod file;
mod inode;
mod log_cuts;
mod rng;

pub use disk::{Call, Fault, FaultError, SimDisk};
pub use log_cuts::{LogCuts, cut_log_everywhere, log_after_a_failing_sync};
pub use rng::Rng;
