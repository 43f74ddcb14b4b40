//! The proof that nothing is lost: a disk that loses power, tears writes and
//! fails on demand ([`SimDisk`]), workloads over key-value transactions ([`kv`])
//! and SQL ([`sql`]), and the harness that cuts the power at every moment of
//! each of them ([`proof`]).
//!
//! One seed is one run: the workload, its time, the schedule of commits between
//! the calls of a checkpoint, what fails, and what a power cut leaves all follow
//! from it, to the last byte written.
//! `fulgurite-sim soak` runs seeds for as long as wanted, `fulgurite-sim replay`
//! one of them; `docs/testing.md` says what is covered.

mod busy;
mod candidates;
pub mod damage;
mod disk;
mod driver;
mod fault;
pub mod faults;
mod file;
mod frame;
pub mod fuzz;
mod gate;
mod inode;
mod journal;
pub mod kv;
mod log_cuts;
mod log_sides;
mod pages;
pub mod panics;
pub mod proof;
mod rng;
pub mod seed;
pub mod sql;
mod world;

pub use candidates::Candidates;
pub use disk::SimDisk;
pub use driver::SimDriver;
pub use fault::{Call, Fault, FaultError};
pub use frame::Oracle;
pub use gate::Gate;
pub use journal::{Journal, Moment, Replay};
pub use log_cuts::{LogCuts, cut_log_everywhere, log_after_a_failing_sync};
pub use log_sides::lose_each_side_everywhere;
pub use rng::Rng;

/// Where the database of all workloads is.
pub const PATH: &str = "d/p.db";
