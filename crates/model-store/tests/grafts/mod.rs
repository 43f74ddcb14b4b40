//! Two transactions change leaves of their own and two that both change, while
//! checkpoints write what they replace and a reader counts: leaves are grafted onto
//! the other's head, frames taken back at once, and nothing is lost or left over.

use super::common::{open, options};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{ErrorKind, Isolation, Key, KeyKind, Store, Tree, Txn};
use shuttle::thread;

/// Some four to a leaf.
const ROWS: i64 = 40;
/// The row that both add to.
const SHARED: i64 = 20;
const ROUNDS: i64 = 3;
const CHECKPOINTS: usize = 4;

fn value(count: i64) -> Vec<u8> {
    let mut value = count.to_le_bytes().to_vec();
    value.resize(900, 0);
    value
}

fn add(txn: &mut Txn, tree: &Tree, key: i64) -> fulgurite_store_model::Result<()> {
    let mut old = Vec::new();
    assert!(txn.get_into(tree, Key::Int(key), &mut old)?);
    let count = old
        .first_chunk()
        .map_or(0, |count| i64::from_le_bytes(*count));
    txn.put(tree, Key::Int(key), &value(count + 1)).map(drop)
}

/// Adds one to each of these rows, and to the one that both want, in one
/// transaction, again where the other was first.
fn add_to_all(store: &Store, tree: &Tree, keys: [i64; 2]) {
    let mut txn = store.txn();
    for round in 0..ROUNDS {
        loop {
            txn.begin(Isolation::Serializable).expect("begins");
            for key in keys {
                add(&mut txn, tree, key).expect("adds");
            }
            if round == 0 {
                add(&mut txn, tree, SHARED).expect("adds");
            }
            match txn.commit() {
                Ok(()) => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
    }
}

fn sum(store: &Store, tree: &Tree) -> i64 {
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let mut found = Vec::new();
    let counts = (0..ROWS).map(|key| {
        assert!(
            txn.get_into(tree, Key::Int(key), &mut found)
                .expect("reads")
        );
        found
            .first_chunk()
            .map_or(0, |count| i64::from_le_bytes(*count))
    });
    counts.sum()
}

pub fn two_writers() {
    let disk = SimDisk::new(1);
    let store = open(&disk, options());
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..ROWS {
        txn.put(&tree, Key::Int(key), &value(0)).expect("a put");
    }
    txn.commit().expect("commits");
    let writers = [[1, 38], [2, 30]].map(|keys| {
        let (store, tree) = (store.clone(), tree.clone());
        thread::spawn(move || add_to_all(&store, &tree, keys))
    });
    let checkpoints = {
        let store = store.clone();
        thread::spawn(move || {
            for _ in 0..CHECKPOINTS {
                store.checkpoint().expect("a checkpoint");
            }
        })
    };
    let mut seen = 0;
    for _ in 0..2 {
        let now = sum(&store, &tree);
        assert!(now >= seen, "{now} after {seen}");
        seen = now;
    }
    for writer in writers {
        writer.join().expect("no panic");
    }
    checkpoints.join().expect("no panic");
    let all = 2 * 2 * ROUNDS + 2;
    assert_eq!(sum(&store, &tree), all);
    drop(txn);
    store.checkpoint().expect("a checkpoint");
    assert_eq!(store.stats().cache.unwritten, 0, "nodes of nobody");
    drop((store, tree));
    let store = open(&disk, options());
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    let tree = store.family("t").expect("looks").expect("a family");
    assert_eq!(sum(&store, &tree), all);
}
