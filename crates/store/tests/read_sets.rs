//! A transaction that reads more than a list of its reads may take.
//!
//! Its reads beyond a megabyte became "the whole table", so that a long report
//! lost to any writer of any row.

use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn};

const ROWS: i64 = 300_000;

fn change(store: &Store, tree: &Tree, row: i64) {
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins");
    txn.put(tree, Key::Int(row), b"changed").expect("puts");
    txn.commit().expect("commits");
}

/// Reads 50,000 rows of the middle third, none of them beside another, and writes
/// one; then `row` is changed by somebody else.
fn commit_against(store: &Store, tree: &Tree, row: i64) -> Result<(), ErrorKind> {
    let mut txn: Txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let mut value = Vec::new();
    for i in 0..50_000 {
        let key = ROWS / 3 + (i * 7919) % 50_000 * 2;
        txn.get_into(tree, Key::Int(key), &mut value)
            .expect("reads");
    }
    txn.put(tree, Key::Int(ROWS / 3), b"the sum").expect("puts");
    change(store, tree, row);
    txn.commit().map_err(|error| error.kind())
}

#[test]
fn many_reads_depend_on_what_lies_around_them_alone() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for row in 0..ROWS {
        txn.put(&tree, Key::Int(row), b"as it was").expect("puts");
    }
    txn.commit().expect("commits");

    assert_eq!(commit_against(&store, &tree, 7), Ok(()));
    assert_eq!(commit_against(&store, &tree, ROWS - 7), Ok(()));
    assert_eq!(
        commit_against(&store, &tree, ROWS / 3 + 50_000),
        Err(ErrorKind::Conflict)
    );
}
