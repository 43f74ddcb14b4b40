//! Contexts keep a few frames between transactions. In a small cache those of some
//! idle ones were all there are: whoever read next waited until the time was over.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Key, KeyKind, Options, Store};
use std::sync::Arc;
use std::time::Duration;

const ROWS: i64 = 1000;

#[test]
fn idle_contexts_leave_frames_to_others() {
    let smallest = Options {
        cache_bytes: 0,
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, "idle.db", smallest).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut idle = Vec::new();
    for context in 0..40 {
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        for key in (context..ROWS).step_by(40) {
            txn.put(&tree, Key::Int(key), &[7; 100]).expect("a put");
        }
        txn.commit().expect("commits");
        idle.push(txn);
    }
    store.checkpoint().expect("a checkpoint");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    for key in 0..ROWS {
        assert!(
            txn.get_into(&tree, Key::Int(key), &mut value)
                .expect("reads")
        );
    }
    drop(idle);
}
