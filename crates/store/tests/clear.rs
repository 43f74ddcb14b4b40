//! A tree that is emptied at once is as one of which every entry was deleted: to those who
//! overlap, to cursors, to savepoints and to recovery.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{
    Durability, ErrorKind, Isolation, Key, KeyKind, Options, Result, Seek, Store, Tree, Txn,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

const ROWS: i64 = 5_000;

fn filled(store: &Store, rows: i64) -> Tree {
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    let entries = (0..rows).map(|key| (key, b"value".as_slice()));
    txn.put_all(&tree, entries).expect("puts");
    txn.commit().expect("commits");
    tree
}

fn keys(txn: &mut Txn, tree: &Tree) -> Vec<i64> {
    let mut cursor = txn.cursor(tree).expect("a cursor");
    let mut more = cursor.seek(Seek::First).expect("a seek");
    let mut keys = Vec::new();
    while more {
        keys.push(cursor.key_int());
        more = cursor.next().expect("a step");
    }
    keys
}

fn there(store: &Store) -> Vec<i64> {
    let tree = store.family("t").expect("reads").expect("a family");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let found = keys(&mut txn, &tree);
    assert_eq!(txn.count(&tree).expect("a count"), found.len() as u64);
    assert_eq!(
        store.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
    found
}

/// What another transaction inserted meanwhile stays under `snapshot`, and under
/// `serializable` it is what the answer depends on.
#[test]
fn others_keep_what_they_inserted() {
    for (isolation, conflicts) in [
        (Isolation::Snapshot, false),
        (Isolation::Serializable, true),
    ] {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = filled(&store, ROWS);
        let (mut clears, mut inserts) = (store.txn(), store.txn());
        clears.begin(isolation).expect("begins");
        assert!(clears.contains(&tree, Key::Int(1)).expect("reads"));
        inserts.begin(isolation).expect("begins");
        inserts.put(&tree, Key::Int(ROWS + 7), b"").expect("a put");
        inserts.commit().expect("commits");
        let cleared = clears.clear(&tree, || true).expect("clears");
        assert_eq!(cleared, Some(ROWS as u64));
        match clears.commit() {
            Ok(()) => assert!(!conflicts),
            Err(error) => assert!(conflicts && error.kind() == ErrorKind::Conflict, "{error}"),
        }
        let left = there(&store);
        assert!(left.contains(&(ROWS + 7)));
        assert_eq!(left.len(), if conflicts { ROWS as usize + 1 } else { 1 });
    }
}

/// A savepoint before it brings all back, a cursor over what was there goes on, and what is
/// written after it is all there is.
#[test]
fn it_is_undone_seen_past_and_written_to() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = filled(&store, ROWS);
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    txn.put(&tree, Key::Int(-1), b"own").expect("a put");
    let before = txn.savepoint().expect("a savepoint");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.seek(Seek::First).expect("a seek"));
    for round in 0..3 {
        txn.clear(&tree, || true).expect("clears");
        assert_eq!(keys(&mut txn, &tree), []);
        let entries = (0..2_000).map(|key| (key, b"again".as_slice()));
        txn.put_all(&tree, entries).expect("puts");
        assert_eq!(txn.count(&tree).expect("a count"), 2_000, "{round}");
    }
    let mut seen = 1;
    while cursor.next().expect("a step") {
        seen += 1;
    }
    assert_eq!(seen, ROWS + 1);
    drop(cursor);
    txn.rollback_to(&before).expect("goes back");
    assert_eq!(keys(&mut txn, &tree).len(), ROWS as usize + 1);
    txn.clear(&tree, || true).expect("clears");
    txn.put(&tree, Key::Int(5), b"").expect("a put");
    txn.commit().expect("commits");
    assert_eq!(there(&store), [5]);
}

/// Whoever is told to stop has done nothing that a rollback does not undo.
#[test]
fn it_stops_when_it_is_told_to() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = filled(&store, 20_000);
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    assert_eq!(txn.clear(&tree, || false).expect("is told"), None);
    txn.rollback();
    assert_eq!(there(&store).len(), 20_000);
}

/// Who stopped it midway, and committed what had been written before, had the entries up to
/// there deleted in the log and nowhere else: they were gone when the file was opened again.
#[test]
fn what_stops_it_midway_leaves_all_entries() {
    let says_no = |txn: &mut Txn, tree: &Tree| {
        let cleared = txn.clear(tree, || false).expect("is told");
        assert_eq!(cleared, None);
    };
    let panics = |txn: &mut Txn, tree: &Tree| {
        let clears = || txn.clear(tree, || resume_unwind(Box::new("on purpose")));
        assert!(catch_unwind(AssertUnwindSafe(clears)).is_err());
    };
    for stop in [says_no, panics] {
        for others in [0, 1] {
            let disk = Arc::new(MemoryDisk::new());
            let open = |disk| Store::open_on(disk, "c.db", Options::default()).expect("opens");
            let store = open(disk.clone());
            let tree = filled(&store, 20_000);
            let mut txn = store.txn();
            txn.begin_immediate().expect("begins");
            for key in 0..others {
                txn.put(&tree, Key::Int(-1 - key), b"own").expect("a put");
            }
            stop(&mut txn, &tree);
            let wrote = txn.has_written();
            txn.commit().expect("commits");
            let left = there(&store);
            assert_eq!(left.len() as i64, 20_000 + others);
            let again = open(Arc::new(disk.copied()));
            assert_eq!(there(&again), left);
            assert_eq!(wrote, others > 0);
        }
    }
}

/// How it begins, and whether the log has each key then.
type Begins = (fn(&mut Txn, &[&Tree]) -> Result<()>, bool);

const BEGINS: [Begins; 4] = [
    (|txn, trees| txn.begin_statement(trees), false),
    (|txn, _| txn.begin_immediate(), false),
    (|txn, _| txn.begin(Isolation::Serializable), false),
    (|txn, _| txn.begin(Isolation::Snapshot), true),
];

/// Who has nobody to lose against, or depends on all entries, has no more in the log than
/// that they are gone. Otherwise the log has few entries one by one; beyond its limit the
/// transaction is bulk, and the pages it frees are in an attach record.
#[test]
fn a_crash_after_it_leaves_it_empty() {
    for (at, (begin, has_each_key)) in BEGINS.into_iter().enumerate() {
        for rows in [ROWS, 500_000] {
            let disk = Arc::new(MemoryDisk::new());
            let options = || Options {
                durability: Durability::Full,
                ..Options::default()
            };
            let store = Store::open_on(disk.clone(), "c.db", options()).expect("opens");
            let tree = filled(&store, rows);
            store.checkpoint().expect("a checkpoint");
            let bytes = || store.stats().log.map_or(0, |log| log.bytes);
            let (mut txn, before) = (store.txn(), bytes());
            begin(&mut txn, &[&tree]).expect("begins");
            let cleared = txn.clear(&tree, || true).expect("clears");
            assert_eq!(cleared, Some(rows as u64));
            txn.put(&tree, Key::Int(3), b"new").expect("a put");
            txn.commit().expect("commits");
            let logged = bytes() - before;
            let is_short = logged < ROWS as u64;
            assert_eq!(is_short, !has_each_key, "{logged} bytes, {rows} rows, {at}");
            // As the end of the process would leave it.
            let copy = Arc::new(disk.copied());
            let again = Store::open_on(copy, "c.db", options()).expect("opens");
            assert_eq!(there(&again), [3]);
            assert_eq!(there(&store), [3]);
        }
    }
}

/// What was written to the tree before and after it, or undone with it, is as it was done
/// when the log is replayed.
#[test]
fn the_log_has_it_in_its_place() {
    for (begin, _) in BEGINS {
        let disk = Arc::new(MemoryDisk::new());
        let open = |disk| Store::open_on(disk, "c.db", Options::default()).expect("opens");
        let store = open(disk.clone());
        let tree = filled(&store, ROWS);
        let other = store.create_family("u", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        begin(&mut txn, &[&tree, &other]).expect("begins");
        txn.put(&other, Key::Int(1), b"").expect("a put");
        let keys = [-4, -3, -2, -1];
        txn.put(&tree, Key::Int(keys[0]), b"gone").expect("a put");
        txn.clear(&tree, || true).expect("clears");
        txn.put(&tree, Key::Int(keys[1]), b"").expect("a put");
        let place = txn.savepoint().expect("a savepoint");
        txn.put(&tree, Key::Int(keys[2]), b"undone").expect("a put");
        txn.clear(&tree, || true).expect("clears");
        txn.clear(&other, || true).expect("clears");
        txn.rollback_to(&place).expect("goes back");
        txn.put(&tree, Key::Int(keys[3]), b"").expect("a put");
        txn.commit().expect("commits");
        let again = open(Arc::new(disk.copied()));
        assert_eq!(there(&again), [keys[1], keys[3]]);
        assert_eq!(there(&store), [keys[1], keys[3]]);
    }
}

/// A tree that holds nothing has nothing to empty.
#[test]
fn an_empty_one_is_left_as_it_is() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = filled(&store, 0);
    for (begin, _) in BEGINS {
        let mut txn = store.txn();
        begin(&mut txn, &[&tree]).expect("begins");
        assert_eq!(txn.clear(&tree, || true).expect("clears"), Some(0));
        txn.commit().expect("commits");
        assert_eq!(there(&store), []);
    }
}
