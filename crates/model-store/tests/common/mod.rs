//! What the models share: the scheduler's seeds, and a store on it.

#![allow(dead_code, reason = "each file of tests uses a part")]

mod explore;
mod stops;

use std::path::Path;
use std::sync::Arc;

pub use explore::{Schedulers, explore};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Durability, KeyKind, Options, Store, Tree};
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

/// Two stores on one disk, each with a family of integer keys.
pub fn open_two(disk: &SimDisk) -> [(Store, Tree); 2] {
    ["/a.db", "/b.db"].map(|path| {
        let stops = Arc::new(Stops(disk.clone()));
        let store = Store::open_on(stops, Path::new(path), options()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    })
}
