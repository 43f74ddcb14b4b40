//! What an autocommitted statement keeps, and what it sees.
//!
//! It works on trees that nobody else writes to while it does, so it pins no snapshot
//! until it reads something else. When it always pinned one, each thread that waited
//! for a processor inside a statement kept a copy of every page that the others
//! replaced meanwhile, in all trees: eight threads with a family each had a cache
//! full of them.

use fulgurite_store::{Key, KeyKind, Options, Seek, Store, Tree, Txn};

const ROWS: i64 = 400;

fn store() -> (Store, [Tree; 2]) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let trees = ["own", "other"].map(|name| {
        let made = store.create_family(name, KeyKind::Int);
        made.expect("a family")
    });
    let mut txn = store.txn();
    for tree in &trees {
        change_all(&mut txn, tree, 0);
    }
    (store, trees)
}

/// Writes every row, each in a statement of its own.
fn change_all(txn: &mut Txn, tree: &Tree, mark: u8) {
    for row in 0..ROWS {
        change(txn, tree, row, mark);
    }
}

fn change(txn: &mut Txn, tree: &Tree, row: i64, mark: u8) {
    txn.begin_statement(&[tree]).expect("begins");
    txn.put(tree, Key::Int(row), &[mark; 200]).expect("a put");
    txn.commit().expect("commits");
}

fn mark(txn: &mut Txn, tree: &Tree, row: i64) -> u8 {
    let mut value = Vec::new();
    let found = txn.get_into(tree, Key::Int(row), &mut value);
    assert!(found.expect("a read"));
    value[0]
}

/// How many more nodes are in memory after all rows of another tree were changed while
/// a transaction was open.
fn kept_by(begin: impl Fn(&mut Txn, &[Tree; 2])) -> i64 {
    let (store, trees) = store();
    let (mut open, mut txn) = (store.txn(), store.txn());
    begin(&mut open, &trees);
    let before = store.stats().cache.unwritten;
    change_all(&mut txn, &trees[1], 1);
    store.stats().cache.unwritten as i64 - before as i64
}

#[test]
fn it_keeps_nothing_of_trees_it_does_not_read() {
    let statement = kept_by(|txn, [own, _]| {
        txn.begin_statement(&[own]).expect("begins");
        txn.put(own, Key::Int(1), b"changed").expect("a put");
    });
    assert!(statement < 4, "{statement} nodes");
    let snapshot = kept_by(|txn, _| txn.begin_read().expect("begins"));
    assert!(snapshot > 20, "a snapshot keeps them all, not {snapshot}");
}

#[test]
fn it_reads_one_state_of_other_trees() {
    let (store, [own, other]) = store();
    let (mut statement, mut txn) = (store.txn(), store.txn());
    statement.begin_statement(&[&own]).expect("begins");
    statement.put(&own, Key::Int(0), &[9; 200]).expect("a put");
    // It began before this, and has not looked yet.
    change_all(&mut txn, &other, 1);
    assert_eq!(mark(&mut statement, &other, 0), 1);
    change_all(&mut txn, &other, 2);
    for row in 0..ROWS {
        assert_eq!(mark(&mut statement, &other, row), 1);
    }
    assert_eq!(mark(&mut statement, &own, 0), 9);
    assert_eq!(mark(&mut statement, &own, 1), 0);
    statement.commit().expect("commits");
    txn.begin_read().expect("reads");
    assert_eq!(mark(&mut txn, &own, 0), 9);
    assert_eq!(mark(&mut txn, &other, 0), 2);
}

#[test]
fn its_cursors_outlive_it() {
    let (store, [own, _]) = store();
    let (mut statement, mut txn) = (store.txn(), store.txn());
    statement.begin_statement(&[&own]).expect("begins");
    let mut before = statement.cursor(&own).expect("a cursor");
    statement.put(&own, Key::Int(7), &[9; 200]).expect("a put");
    let mut after = statement.cursor(&own).expect("a cursor");
    statement.commit().expect("commits");
    for round in 1..=3 {
        change_all(&mut txn, &own, round);
    }
    for (cursor, seventh) in [(&mut before, 0), (&mut after, 9)] {
        let mut more = cursor.seek(Seek::First).expect("a seek");
        for row in 0..ROWS {
            assert!(more, "ends before row {row}");
            let expected = if row == 7 { seventh } else { 0 };
            assert_eq!(cursor.value().expect("a value"), [expected; 200]);
            more = cursor.next().expect("a step");
        }
        assert!(!more);
    }
}
