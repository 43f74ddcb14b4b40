//! What the models of threads at random did, in all tests of a process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub static CUTS: AtomicU64 = AtomicU64::new(0);
pub static KILLS: AtomicU64 = AtomicU64::new(0);
pub static FAULTS: AtomicU64 = AtomicU64::new(0);

pub fn print() {
    println!(
        "{} power cuts, {} ends of the process, {} calls failed",
        CUTS.load(Relaxed),
        KILLS.load(Relaxed),
        FAULTS.load(Relaxed)
    );
}
