//! Entries written in the order of their keys are there once they are finished, and what
//! is given up before leaves nothing behind.

use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Options, Seek, Store, Tree, Txn};
use std::sync::Arc;

fn open(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let disk: Arc<dyn Disk> = disk.clone();
    let store = Store::open_on(disk, "a.db", Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Bytes).expect("a family");
    (store, tree)
}

fn key(at: usize) -> String {
    format!("key/{at:08}")
}

fn append(txn: &mut Txn, tree: &Tree, keys: std::ops::Range<usize>) {
    let mut entries = txn.append(tree);
    for at in keys {
        let key = key(at);
        let inserted = entries.insert(Key::Bytes(key.as_bytes()), b"value");
        assert!(inserted.expect("inserts"));
    }
    entries.finish().expect("writes");
}

fn all(txn: &mut Txn, tree: &Tree) -> Vec<String> {
    let mut cursor = txn.cursor(tree).expect("a cursor");
    let mut there = Vec::new();
    let mut more = cursor.seek(Seek::First).expect("seeks");
    while more {
        assert_eq!(cursor.value().expect("reads"), b"value");
        let key = cursor.key_bytes().expect("reads");
        there.push(String::from_utf8(key.to_vec()).expect("text"));
        more = cursor.next().expect("goes on");
    }
    there
}

#[test]
fn they_survive_with_the_log_and_without_it() {
    // The second is too large for the log.
    for count in [5_000, 400_000] {
        let disk = Arc::new(MemoryDisk::new());
        let (store, tree) = open(&disk);
        let mut txn = store.txn();
        txn.begin(Isolation::Snapshot).expect("begins");
        append(&mut txn, &tree, 0..count);
        txn.commit().expect("commits");
        // As the end of the process would leave it.
        let (store, tree) = open(&Arc::new(disk.copied()));
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        let there = all(&mut txn, &tree);
        assert!(there.into_iter().eq((0..count).map(key)), "{count}");
        assert_eq!(txn.count(&tree).expect("counts"), count as u64);
        let findings = store.integrity_check().expect("checks");
        assert_eq!(findings, Vec::<String>::new());
    }
}

/// The transaction goes on as if it had not been begun, once it is rolled back; until then
/// it cannot be committed with a part of it missing.
#[test]
fn what_is_given_up_is_not_committed_in_part() {
    let (store, tree) = open(&Arc::new(MemoryDisk::new()));
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    append(&mut txn, &tree, 0..10);
    let savepoint = txn.savepoint().expect("a savepoint");
    let give_up = |txn: &mut Txn| {
        let made = txn.create_tree(KeyKind::Bytes).expect("a tree");
        let mut entries = txn.append(&made);
        for at in 0..1_000 {
            let inserted = entries.insert(Key::Bytes(key(at).as_bytes()), b"value");
            assert!(inserted.expect("inserts"));
        }
    };
    give_up(&mut txn);
    txn.rollback_to(&savepoint).expect("rolls back");
    assert_eq!(all(&mut txn, &tree), (0..10).map(key).collect::<Vec<_>>());
    txn.commit().expect("commits");

    txn.begin_immediate().expect("begins");
    give_up(&mut txn);
    let refused = txn.commit().expect_err("a part is missing");
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    txn.rollback();
}

/// That a key was not there is an answer, whoever it was written with.
#[test]
fn who_appends_and_who_reads_the_same_key_do_not_both_commit() {
    let (store, tree) = open(&Arc::new(MemoryDisk::new()));
    let (mut one, mut other) = (store.txn(), store.txn());
    one.begin(Isolation::Serializable).expect("begins");
    other.begin(Isolation::Serializable).expect("begins");
    append(&mut one, &tree, 0..500);
    append(&mut other, &tree, 499..900);
    one.commit().expect("commits");
    let refused = other.commit().expect_err("its answer is no longer right");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

/// Its own leaves are as full as they may be: keys that begin alike make less of them than
/// they would take one by one.
#[test]
fn leaves_are_full() {
    let leaves = |append_them: bool| {
        let disk = Arc::new(MemoryDisk::new());
        let (store, tree) = open(&disk);
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins");
        match append_them {
            true => append(&mut txn, &tree, 0..20_000),
            false => (0..20_000).for_each(|at| {
                let put = txn.put(&tree, Key::Bytes(key(at).as_bytes()), b"value");
                assert!(!put.expect("puts"));
            }),
        }
        txn.commit().expect("commits");
        txn.begin_read().expect("reads");
        let mut cursor = txn.cursor(&tree).expect("a cursor");
        let mut leaves = 0;
        let mut more = cursor.seek(Seek::First).expect("seeks");
        while more {
            leaves += 1;
            let entries = cursor.entries().len();
            more = cursor.skip(entries).expect("goes on");
        }
        leaves
    };
    let (appended, put) = (leaves(true), leaves(false));
    assert!(appended * 5 < put * 4, "{appended} and {put}");
}
