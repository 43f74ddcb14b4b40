//! What the store holds beside its cached pages is counted, and does not grow
//! with the work done.
//!
//! The map from handles of written pages to their extents once kept an entry for
//! ever where the page's parent had been brought up to date before the page
//! died: about 40 bytes for every page ever written.

use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_store::{Key, KeyKind, Options, Store, Tree, Txn};
use std::sync::Arc;

const ROWS: i64 = 2_000;

fn options() -> Options {
    Options {
        cache_bytes: 16 << 20,
        page_size: 4096,
        ..Options::default()
    }
}

fn write(txn: &mut Txn, tree: &Tree, round: u8) {
    txn.begin_statement(&[tree]).expect("begins");
    for row in 0..ROWS {
        txn.put(tree, Key::Int(row), &[round; 1_000]).expect("puts");
    }
    txn.commit().expect("commits");
}

#[test]
fn overwriting_pages_leaves_nothing_behind() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, "memory.db", options()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    let mut after_few = 0;
    for round in 0..40 {
        write(&mut txn, &tree, round);
        store.checkpoint().expect("a checkpoint");
        if round == 4 {
            after_few = store.stats().cache.charged;
        }
    }
    let after_many = store.stats().cache.charged;
    assert!(
        after_many <= 2 * after_few,
        "{after_few} bytes after 5 rounds, {after_many} after 40"
    );
}

#[test]
fn buffers_beside_the_store_take_pages_from_its_cache() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, "buffers.db", options()).expect("opens");
    let before = store.stats().cache.charged;
    let mut charge = store.memory_counter().charge();
    charge.set(6 << 20);
    assert_eq!(store.stats().cache.charged, before + (6 << 20));
    // Work goes on with the pages that are left.
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    for round in 0..3 {
        write(&mut txn, &tree, round);
    }
    drop(charge);
    let stats = store.stats().cache;
    assert!(stats.charged < 2 << 20, "{stats:?}");
}
