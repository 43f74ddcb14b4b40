//! Transactions that begin ahead of what is acknowledged follow one another while the
//! commits before them are still on their way to the disk. None loses, nothing is lost, and
//! what one was told, once that is confirmed, readers see from then on.

use super::common::{open, options};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{Key, KeyKind, Result, Store, Tree, Txn};
use shuttle::thread;

const WRITERS: i64 = 3;
/// The row that all add to. Each has one of its own, by its number.
const SHARED: i64 = 0;
const ROUNDS: i64 = 3;

fn get(txn: &mut Txn, tree: &Tree, row: i64) -> Result<i64> {
    let mut value = Vec::new();
    let found = txn.get_into(tree, Key::Int(row), &mut value)?;
    Ok(if found { i64::from(value[0]) } else { 0 })
}

fn put(txn: &mut Txn, tree: &Tree, row: i64, value: i64) -> Result<bool> {
    txn.put(tree, Key::Int(row), &[value as u8])
}

/// Panics unless a reader sees at least this.
fn is_there(store: &Store, tree: &Tree, row: i64, told: i64) {
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    let seen = get(&mut reader, tree, row).expect("reads");
    assert!(
        seen >= told,
        "row {row} was told to be {told}, and is {seen}"
    );
}

/// Adds one to the writer's own row, and in every other round to the shared one.
fn write(store: &Store, tree: &Tree, own: i64) -> Result<()> {
    let mut txn = store.txn();
    for round in 0..ROUNDS {
        txn.begin_immediate_ahead()?;
        let mine = get(&mut txn, tree, own)?;
        txn.confirm()?;
        assert_eq!(mine, round, "nobody else writes it");
        let savepoint = txn.savepoint()?;
        let is_new = !put(&mut txn, tree, own, mine + 1)?;
        assert_eq!(is_new, round == 0);
        if (round + own) % 2 == 0 {
            let shared = get(&mut txn, tree, SHARED)?;
            if round == 1 {
                // What was answered before it was undone counts all the same.
                txn.rollback_to(&savepoint)?;
                put(&mut txn, tree, own, mine + 1)?;
            }
            txn.confirm()?;
            is_there(store, tree, SHARED, shared);
            put(&mut txn, tree, SHARED, shared + 1)?;
        }
        txn.commit()?;
        is_there(store, tree, own, round + 1);
    }
    Ok(())
}

pub fn told_of_what_is_there() {
    let disk = SimDisk::new(1);
    let store = open(&disk, options());
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let writers: Vec<_> = (1..=WRITERS)
        .map(|own| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || write(&store, &tree, own).expect("cannot lose"))
        })
        .collect();
    for writer in writers {
        writer.join().expect("no panic");
    }
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    let added =
        (1..=WRITERS).flat_map(|own| (0..ROUNDS).filter(move |round| (round + own) % 2 == 0));
    let shared = get(&mut reader, &tree, SHARED).expect("reads");
    assert_eq!(shared, added.count() as i64, "an addition is lost");
}
