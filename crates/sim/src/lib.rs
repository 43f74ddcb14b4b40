//! The proof that nothing is lost: a disk that loses power, tears writes and
//! fails on demand ([`SimDisk`]), workloads over key-value transactions ([`kv`]), also
//! in several stores at once ([`together`]), and SQL ([`sql`]), and the harness that
//! cuts the power at every moment of each of them ([`proof`]).
//!
//! One seed is one run: the workload, its time, the schedule of commits between
//! the calls of a checkpoint, what fails, and what a power cut leaves all follow
//! from it, to the last byte written.
//! # The fault model, a zone
//!
//! | zone | until its file is synced | once it is synced |
//! | --- | --- | --- |
//! | meta slots | each sector of 512 bytes (now and then all eight of a block) holds any of its contents since the last sync, whatever the others hold; so a slot may be old, new or torn | stays, or rots: a bit flips, a sector is zero, a write that was reported done was lost or went elsewhere. One slot at a time: the other one must do |
//! | pages | the same, in any order among one another and among meta slots | stays, or rots in the same ways: the checksum in the parent must tell |
//! | log | the same; where the file grew and only its length arrived, zeros or junk | stays, or rots: what a later record vouches for must be reported, the very last flush may count as torn |
//! | length of a file | any since the last sync | stays |
//! | names | of the changes since the folder's sync the first so many | stay |
//!
//! Calls: any may fail once or for good, with an I/O error or a full disk; a
//! failing write may have done a part of its work, up to a sector's edge; what is
//! below the calls may be interrupted or transfer less than asked. A failing sync
//! may lose for good what was unsynced, though it is still read and later syncs
//! succeed. Not modelled: a write that damages synced neighbours within its block
//! (power-safe overwrite is assumed, as `docs/durability.md` says).
//!
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
pub mod together;
mod world;

pub use candidates::Candidates;
pub use disk::SimDisk;
pub use driver::SimDriver;
pub use fault::{Call, Fault, FaultError};
pub use frame::{OfOne, Oracle};
pub use gate::Gate;
pub use journal::{Journal, Moment, Replay};
pub use log_cuts::{AnyAccess, LogCuts, LogSize, cut_log_everywhere, log_after_a_failing_call};
pub use log_sides::lose_each_side_everywhere;
pub use rng::Rng;

/// Where the database of all workloads is.
pub const PATH: &str = "d/p.db";
