//! A disk that loses power, tears writes and fails on demand, for proving what
//! the engine promises about durability. See [`SimDisk`].
//!
//! The harnesses live in this crate's tests: each runs a seeded workload, cuts
//! the power at every call in turn, recovers from what the disk is left with,
//! and compares with what had been acknowledged.

mod disk;
mod file;
mod inode;
mod rng;

pub use disk::{Call, Fault, FaultError, SimDisk};
pub use rng::Rng;
