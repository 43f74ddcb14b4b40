//! The store on the simulated disk: power cuts, failing calls, rot. Here is what
//! these tests share beside the model they compare with and the workload they
//! run.

mod closing;
mod ended;
mod failed_recovery;
mod failed_slot;
mod faults;
mod full_log;
mod opening;
mod rot;
mod unsynced;
mod writers;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Once};

use fulgurite_sim::SimDisk;
use fulgurite_store::{Options, Result, Store};

/// Where the database is.
pub const PATH: &str = "d/p.db";

/// Says on a panic which run it was.
pub struct Trace(pub String);

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in: {}", self.0);
        }
    }
}

/// How many times more than usual is to be run.
pub fn factor() -> u64 {
    std::env::var("FULGURITE_SIM_FACTOR")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}

/// The seeds of a test's workloads: `count` of them, times the factor asked for.
pub fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    first..first + count * factor()
}

/// The base of all options here: a small cache, and a log that does not ask for
/// checkpoints by itself.
pub fn options() -> Options {
    Options {
        cache_bytes: 2 << 20,
        ..Options::default()
    }
}

/// Opens the database.
pub fn open(disk: &SimDisk, options: &Options) -> Result<Store> {
    Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options.clone())
}

static BACKGROUND_PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of the checkpoint thread, which nobody else would notice.
pub fn watch_background() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some("fulgurite-checkpoint") {
                BACKGROUND_PANICS.fetch_add(1, SeqCst);
            }
            before(info);
        }));
    });
}

/// Fails if there was one.
pub fn assert_no_background_panic() {
    assert_eq!(
        BACKGROUND_PANICS.load(SeqCst),
        0,
        "the checkpoint thread panicked"
    );
}
