//! Old snapshots may keep far more than the cache holds.
//!
//! Found by a long run of the model test: nodes that only snapshots kept were
//! written by no checkpoint, could not be evicted, and filled the cache until
//! writers were refused.

use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_store::{Key, KeyKind, Options, Seek, Store, Tree, Txn};
use std::sync::Arc;

const ROWS: i64 = 40;
const ROUNDS: usize = 300;
const FRAMES: usize = 128;

fn value(round: usize, row: i64) -> Vec<u8> {
    let round = if row == 0 { round } else { 0 };
    let text = format!("round {round} row {row} ");
    text.bytes().cycle().take(700).collect()
}

fn write(txn: &mut Txn, tree: &Tree, round: usize, rows: i64) {
    txn.begin_statement(&[tree]).expect("begins");
    for row in 0..rows {
        txn.put(tree, Key::Int(row), &value(round, row))
            .expect("puts");
    }
    txn.commit().expect("commits");
}

#[test]
fn snapshots_larger_than_the_cache() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let options = Options {
        cache_bytes: FRAMES * 4096,
        page_size: 4096,
        ..Options::default()
    };
    let store = Store::open_on(disk, "snapshots.db", options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    let mut snapshots = Vec::new();
    for round in 0..ROUNDS {
        write(&mut txn, &tree, round, if round == 0 { ROWS } else { 1 });
        let mut snapshot = store.txn();
        snapshot.begin_read().expect("reads");
        snapshots.push(snapshot);
    }
    for (round, snapshot) in snapshots.iter_mut().enumerate() {
        let mut cursor = snapshot.cursor(&tree).expect("a cursor");
        let mut more = cursor.seek(Seek::First).expect("seeks");
        for row in 0..ROWS {
            assert!(more, "round {round} ends before row {row}");
            assert_eq!(cursor.value().expect("a value"), value(round, row));
            more = cursor.next().expect("moves");
        }
        assert!(!more);
    }
    drop(snapshots);
    store.checkpoint().expect("a checkpoint");
    let problems = store.integrity_check().expect("checks");
    assert_eq!(problems, Vec::<String>::new());
}
