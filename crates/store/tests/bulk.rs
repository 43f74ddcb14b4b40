//! Transactions far larger than the cache and the log: committed, rolled back,
//! rolled back in part, found again.

mod common;

use common::Rng;
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Seek, Store, Tree, Txn};
use std::sync::Arc;
use std::time::Duration;

const ROWS: i64 = 150_000;

fn options() -> Options {
    Options {
        cache_bytes: 2 << 20,
        ..Options::default()
    }
}

fn value(key: i64) -> Vec<u8> {
    let mut rng = Rng::new(key as u64);
    (0..100)
        .map(|i| if i < 50 { rng.next() as u8 } else { b' ' })
        .collect()
}

fn fill(txn: &mut Txn, tree: &Tree, keys: impl Iterator<Item = i64>) {
    for key in keys {
        txn.put(tree, Key::Int(key), &value(key)).expect("puts");
    }
}

fn verify(store: &Store, tree: &Tree, expected: impl Iterator<Item = i64>) {
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut cursor = txn.cursor(tree).expect("a cursor");
    let mut more = cursor.seek(Seek::First).expect("seeks");
    for key in expected {
        assert!(more, "ends before {key}");
        assert_eq!(cursor.key_int(), key);
        assert_eq!(cursor.value().expect("a value"), value(key));
        more = cursor.next().expect("moves");
    }
    assert!(!more);
    assert_eq!(
        store.integrity_check().expect("checks"),
        Vec::<String>::new()
    );
}

#[test]
fn a_transaction_larger_than_cache_and_log() {
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk.clone(), "bulk.db", options()).expect("opens");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let mut txn = store.txn();

    // Rolled back: nothing is left, and the space is free again.
    txn.begin(Isolation::Serializable).expect("begins");
    fill(&mut txn, &tree, 0..ROWS);
    txn.rollback();
    verify(&store, &tree, 0..0);

    txn.begin(Isolation::Serializable).expect("begins");
    fill(&mut txn, &tree, 0..ROWS);
    let before = store.stats().writes.bytes;
    txn.commit().expect("commits");
    verify(&store, &tree, 0..ROWS);
    assert!(store.stats().writes.bytes - before < 20 << 20);
    drop((txn, tree, store));

    let store = Store::open_on(disk.clone(), "bulk.db", options()).expect("opens again");
    let tree = store.family("rows").expect("reads").expect("is there");
    verify(&store, &tree, 0..ROWS);

    // Scattered changes to most pages, a savepoint amid them.
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for key in (0..ROWS).step_by(2) {
        assert!(txn.delete(&tree, Key::Int(key)).expect("deletes"));
    }
    let savepoint = txn.savepoint().expect("a savepoint");
    fill(&mut txn, &tree, ROWS..2 * ROWS);
    txn.rollback_to(&savepoint).expect("rolls back");
    assert_eq!(txn.count(&tree).expect("counts"), ROWS as u64 / 2);
    txn.commit().expect("commits");
    verify(&store, &tree, (1..ROWS).step_by(2));

    // The next ordinary commit goes on from there.
    txn.begin_statement(&[&tree]).expect("begins");
    fill(&mut txn, &tree, ROWS + 1..ROWS + 2);
    txn.commit().expect("commits");
    drop((txn, tree, store));
    let store = Store::open_on(disk, "bulk.db", options()).expect("opens again");
    let tree = store.family("rows").expect("reads").expect("is there");
    verify(&store, &tree, (1..ROWS + 2).step_by(2));
}

#[test]
fn the_cache_limit_holds() {
    let store = Store::open_on(Arc::new(MemoryDisk::new()), "limit.db", options()).expect("opens");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    fill(&mut txn, &tree, 0..ROWS);
    txn.commit().expect("commits");
    let cache = store.stats().cache;
    // What each frame takes beside its page counts too.
    let pages = cache.frames * cache.page_size;
    assert!(pages <= 2 << 20 && pages > (2 << 20) * 9 / 10, "{pages}");
    assert!(
        store.stats().file_bytes > 4 * (2 << 20),
        "far more than the cache"
    );
    verify(&store, &tree, 0..ROWS);
}

/// How a transaction begins, and whether others commit to its tree meanwhile.
type Begin = fn(&mut Txn, &Tree) -> fulgurite_store::Result<()>;

/// Whether a transaction is too large for the log is asked before each operation, so what is
/// written last is seen to by the commit. That refused one of more than a record whose tree
/// had moved on, however little the others had done.
#[test]
fn what_is_written_last_may_be_larger_than_a_record() {
    let begins: [(Begin, bool, i64); 5] = [
        (|txn, _| txn.begin_immediate(), false, 0),
        (|txn, tree| txn.begin_statement(&[tree]), false, 0),
        (|txn, _| txn.begin(Isolation::Serializable), false, 0),
        (|txn, _| txn.begin(Isolation::Serializable), true, 0),
        (|txn, _| txn.begin(Isolation::Serializable), true, ROWS),
    ];
    let large: Vec<u8> = (0..65 << 20).map(|i: u32| (i / 1000) as u8).collect();
    for (begin, overlaps, more) in begins {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk.clone(), "last.db", options()).expect("opens");
        let tree = store.create_family("rows", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        begin(&mut txn, &tree).expect("begins");
        txn.put(&tree, Key::Int(1), b"first").expect("puts");
        if overlaps {
            let mut other = store.txn();
            other.begin_statement(&[&tree]).expect("begins");
            other.put(&tree, Key::Int(3), b"theirs").expect("puts");
            other.commit().expect("commits");
        }
        fill(&mut txn, &tree, 10..10 + more);
        txn.put(&tree, Key::Int(2), &large).expect("puts");
        txn.commit().expect("commits");
        drop((txn, tree, store));

        let store = Store::open_on(disk, "last.db", options()).expect("opens again");
        let tree = store.family("rows").expect("reads").expect("is there");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let mut found = Vec::new();
        for (key, value) in [(1, &b"first"[..]), (2, &large[..])] {
            assert!(
                txn.get_into(&tree, Key::Int(key), &mut found)
                    .expect("reads")
            );
            assert!(found == value, "{key}");
        }
        assert_eq!(txn.contains(&tree, Key::Int(3)).expect("reads"), overlaps);
        let rows = 2 + u64::from(overlaps) + more as u64;
        assert_eq!(txn.count(&tree).expect("counts"), rows);
        assert_eq!(
            store.integrity_check().expect("checks"),
            Vec::<String>::new()
        );
    }
}

/// It was told `Busy` by the operation with which it came to be too large for the log, which
/// was done all the same.
#[test]
fn who_is_refused_its_locks_has_written_nothing() {
    let store = Store::in_memory(Options {
        busy_timeout: Duration::ZERO,
        ..options()
    })
    .expect("opens");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let mut other = store.txn();
    other.begin_immediate().expect("begins");
    let value = [7; 50_000];
    let refused = (0..1000)
        .find(|key| match txn.put(&tree, Key::Int(*key), &value) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy);
                true
            }
        })
        .expect("it is too large at some time");
    for _ in 0..2 {
        assert_eq!(txn.count(&tree).expect("counts"), refused as u64);
        let deleted = txn.delete(&tree, Key::Int(0)).expect_err("still busy");
        assert_eq!(deleted.kind(), ErrorKind::Busy);
        let cleared = txn.clear(&tree, || true).expect_err("still busy");
        assert_eq!(cleared.kind(), ErrorKind::Busy);
    }
    other.rollback();
    assert!(!txn.put(&tree, Key::Int(refused), &value).expect("puts"));
    txn.commit().expect("commits");
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(&tree).expect("counts"), refused as u64 + 1);
}

/// It kept those of the locks that it had got. Its commit waited for one of them in vain and
/// forgot that it had it, so that nobody ever wrote to that tree again.
#[test]
fn who_is_refused_a_lock_keeps_none() {
    let store = Store::in_memory(Options {
        busy_timeout: Duration::ZERO,
        ..options()
    })
    .expect("opens");
    let [first, second] = ["a", "b"].map(|name| {
        let family = store.create_family(name, KeyKind::Int);
        family.expect("a family")
    });
    let value = [7; 50_000];
    let mut holder = store.txn();
    holder.begin(Isolation::Serializable).expect("begins");
    for key in 0..200 {
        let put = holder.put(&second, Key::Int(key), &value);
        put.expect("puts");
    }
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    txn.put(&first, Key::Int(0), b"v").expect("puts");
    let refused = (1_000..2_000).find_map(|key| txn.put(&second, Key::Int(key), &value).err());
    assert_eq!(refused.expect("too large").kind(), ErrorKind::Busy);

    let mut alone = store.txn();
    alone.begin_statement(&[&first]).expect("it is not held");
    alone.put(&first, Key::Int(1), b"v").expect("puts");
    alone.commit().expect("commits");

    assert_eq!(txn.commit().expect_err("held").kind(), ErrorKind::Busy);
    txn.rollback();
    alone.begin_statement(&[&first]).expect("it is not held");
    alone.rollback();
    holder.commit().expect("commits");
    alone
        .begin_statement(&[&first, &second])
        .expect("neither is held");
}

/// That a key is taken, or was there where the write was undone, was told by a transaction
/// that relied on its lock of the tree. It has none of a tree to which it writes nothing, or
/// lets go of it to wait for another one.
#[test]
fn what_it_was_told_of_trees_that_it_does_not_write_to_was_read() {
    type Ask = fn(&mut Txn, &Tree) -> bool;
    let asks: [Ask; 2] = [
        |txn, tree| !txn.insert(tree, Key::Int(1), b"own").expect("is taken"),
        |txn, tree| {
            let savepoint = txn.savepoint().expect("a savepoint");
            let replaced = txn.put(tree, Key::Int(1), b"own").expect("puts");
            txn.rollback_to(&savepoint).expect("goes back");
            replaced
        },
    ];
    for (ask, looks_before) in [(asks[0], false), (asks[0], true), (asks[1], false)] {
        let store = Store::in_memory(Options {
            busy_timeout: Duration::ZERO,
            ..options()
        });
        let store = store.expect("opens");
        let family = |name| store.create_family(name, KeyKind::Int).expect("a family");
        let [told, asked, filled] = ["told", "asked", "filled"].map(family);
        let [mut bulk, mut beside, mut other] = [store.txn(), store.txn(), store.txn()];
        beside.begin_statement(&[&asked]).expect("begins");
        beside.put(&asked, Key::Int(1), b"there").expect("puts");
        beside.commit().expect("commits");

        bulk.begin(Isolation::Serializable).expect("begins");
        assert!(!looks_before || ask(&mut bulk, &asked));
        fill(&mut bulk, &filled, 0..50_000);
        assert!(ask(&mut bulk, &asked));
        beside.begin_statement(&[&told]).expect("begins");
        let busy = bulk.put(&told, Key::Int(1), b"1 is there");
        assert_eq!(busy.expect_err("it waits").kind(), ErrorKind::Busy);
        beside.rollback();

        other.begin(Isolation::Serializable).expect("begins");
        let is_told = other.contains(&told, Key::Int(1));
        assert!(!is_told.expect("reads"), "it was not committed");
        assert!(other.delete(&asked, Key::Int(1)).expect("deletes"));
        other.commit().expect("commits");

        let put = bulk.put(&told, Key::Int(1), b"1 is there");
        let lost = put.and_then(|_| bulk.commit());
        let lost = lost.expect_err("they cannot be put in order");
        assert_eq!(lost.kind(), ErrorKind::Conflict);
    }
}
