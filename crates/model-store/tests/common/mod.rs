//! What the models share: the scheduler's seeds, and a store on it.

#![allow(dead_code, reason = "each file of tests uses a part")]

mod explore;
mod stops;

use std::path::Path;
use std::sync::Arc;

pub use explore::{Schedulers, explore};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, Options, Store};
pub use stops::Stops;

pub fn options() -> Options {
    Options {
        cache_bytes: 1 << 20,
        durability: Durability::Full,
        ..Options::default()
    }
}

/// Where the database is.
pub const PATH: &str = "/m.db";

pub fn open(disk: &SimDisk, options: Options) -> Store {
    let disk = Arc::new(Stops(disk.clone()));
    Store::open_on(disk, Path::new(PATH), options).expect("opens")
}
