//! What the models share: the scheduler's seeds, and a store on it.

#![allow(dead_code, reason = "each file of tests uses a part")]

mod explore;

use std::path::Path;
use std::sync::Arc;

pub use explore::{Schedulers, explore};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, Options, Store};

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
    Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options).expect("opens")
}
