use super::Hold;
use crate::error::ErrorKind;
use crate::primitives::LEASE_AFTER;
use crate::tree::cursor::Seek;
use crate::txn::TxnContext;
use crate::{Durability, Isolation, Key, KeyKind, Options, Store, Tree};
use fulgurite_disk::{Driver, Machine, MemoryDisk};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn store(durability: Durability) -> (Store, Tree, Tree) {
    store_with(durability, 1)
}

/// A clock by which everything takes so many microseconds.
#[derive(Debug)]
struct Paced(u64, AtomicU64);

impl Driver for Paced {
    fn now(&self) -> Duration {
        Duration::from_micros(self.1.fetch_add(self.0, Relaxed))
    }

    fn pass(&self, time: Duration) {
        self.1.fetch_add(time.as_micros() as u64, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

fn store_with(durability: Durability, micros: u64) -> (Store, Tree, Tree) {
    let options = Options {
        durability,
        // No thread of its own, which would end leases after a while.
        driver: Some(Arc::new(Paced(micros, AtomicU64::new(0)))),
        // Nobody needs to wait.
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, Path::new("h.db"), options).expect("opens");
    let one = store.create_family("one", KeyKind::Int).expect("a family");
    let two = store.create_family("two", KeyKind::Int).expect("a family");
    (store, one, two)
}

fn put(txn: &mut TxnContext, tree: &Tree, key: i64, value: u64) {
    txn.put(tree, Key::Int(key), &value.to_le_bytes())
        .expect("puts");
}

fn get(txn: &mut TxnContext, tree: &Tree, key: i64) -> Option<u64> {
    let mut value = Vec::new();
    let found = txn.get_into(tree, Key::Int(key), &mut value);
    let number = || u64::from_le_bytes(value.try_into().expect("eight bytes"));
    found.expect("reads").then(number)
}

/// An autocommitted statement of somebody else.
fn put_now(store: &Store, tree: &Tree, key: i64, value: u64) {
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins at once");
    put(&mut txn, tree, key, value);
    txn.commit().expect("commits");
}

fn get_now(store: &Store, tree: &Tree, key: i64) -> Option<u64> {
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    get(&mut txn, tree, key)
}

/// A context that begins its next transaction without a snapshot.
fn used_to(store: &Store, tree: &Tree) -> TxnContext {
    let mut txn = TxnContext::new(store);
    for count in 1..=u64::from(LEASE_AFTER) {
        txn.begin(Isolation::Serializable).expect("begins");
        assert!(txn.pinned);
        put(&mut txn, tree, 0, count);
        txn.commit().expect("commits");
    }
    assert_eq!(txn.restraint.left, 0);
    txn
}

/// One that holds the first tree and has written to it.
fn holder(store: &Store, tree: &Tree) -> TxnContext {
    let mut txn = used_to(store, tree);
    txn.begin(Isolation::Serializable).expect("begins");
    assert_eq!(txn.hold, Hold::Open);
    put(&mut txn, tree, 1, 1);
    assert_eq!((txn.hold, txn.pinned), (Hold::Held, false));
    txn
}

#[test]
fn what_is_held_is_committed_under_a_lease() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    txn.commit().expect("commits");
    for count in 2..=u64::from(2 * LEASE_AFTER) {
        txn.begin(Isolation::Serializable).expect("begins");
        let before = get(&mut txn, &one, 1).expect("a value");
        put(&mut txn, &one, 1, before + 1);
        txn.commit().expect("commits");
        assert_eq!(before + 1, count);
    }
    assert!(store.core().leases.any());
    let last = u64::from(2 * LEASE_AFTER);
    assert_eq!(get_now(&store, &one, 1), Some(last));
    assert!(!store.core().leases.any());
}

#[test]
fn whoever_asks_for_the_tree_gets_it_and_both_commit() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    put_now(&store, &one, 2, 2);
    put_now(&store, &one, 2, 3);
    assert_eq!(get(&mut txn, &one, 2), None, "not there when it began");
    assert_eq!(get(&mut txn, &one, 1), Some(1), "its own");
    put(&mut txn, &one, 3, 3);
    let lost = txn.commit().expect_err("it read what is there now");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    assert_eq!(get_now(&store, &one, 1), None);

    let mut txn = holder(&store, &one);
    put_now(&store, &one, 2, 4);
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &one, 1), Some(1));
    assert_eq!(get_now(&store, &one, 2), Some(4));
}

#[test]
fn a_row_that_others_wrote_meanwhile_loses() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    put_now(&store, &one, 1, 2);
    let lost = txn.commit().expect_err("loses");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    assert_eq!(get_now(&store, &one, 1), Some(2));
}

#[test]
fn an_overlapping_transaction_gets_the_tree_to_commit() {
    let (store, one, _) = store(Durability::Normal);
    let mut other = store.txn();
    let mut txn = used_to(&store, &one);
    other.begin(Isolation::Serializable).expect("begins");
    put(&mut other, &one, 2, 2);
    txn.begin(Isolation::Serializable).expect("begins");
    put(&mut txn, &one, 1, 1);
    assert_eq!(txn.hold, Hold::Held);
    other.commit().expect("commits");
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &one, 1), Some(1));
    assert_eq!(get_now(&store, &one, 2), Some(2));
}

#[test]
fn who_wants_to_be_alone_is_not_kept_waiting() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    let mut alone = store.txn();
    alone.begin_immediate().expect("begins at once");
    put(&mut alone, &one, 2, 2);
    let busy = txn.commit().expect_err("somebody is alone");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    alone.commit().expect("commits");
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &one, 1), Some(1));
}

#[test]
fn two_trees_are_seen_as_of_one_moment() {
    let (store, one, two) = store(Durability::Normal);
    put_now(&store, &two, 0, 1);
    let mut txn = holder(&store, &one);
    put_now(&store, &two, 0, 2);
    assert_eq!(get(&mut txn, &two, 0), Some(2), "of the moment it asks");
    assert_eq!((txn.hold, txn.pinned), (Hold::Held, false));
    put_now(&store, &one, 2, 2);
    put_now(&store, &two, 0, 3);
    assert_eq!(get(&mut txn, &two, 0), Some(2));
    assert_eq!(get(&mut txn, &one, 2), None);
    let lost = txn.commit().expect_err("it read the second tree");
    assert_eq!(lost.kind(), ErrorKind::Conflict);

    // Taken away before it asks: the second tree is seen as of then.
    let mut txn = holder(&store, &one);
    put_now(&store, &one, 2, 3);
    put_now(&store, &two, 0, 4);
    assert_eq!(get(&mut txn, &two, 0), Some(3));
    assert_eq!(get(&mut txn, &one, 2), Some(2));
}

#[test]
fn all_else_that_a_transaction_can_do_gives_it_a_snapshot() {
    let (store, one, two) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    let mut cursor = txn.cursor(&one).expect("a cursor");
    assert!(txn.pinned);
    put_now(&store, &one, 2, 2);
    cursor.seek(Seek::AtLeast(Key::Int(1))).expect("seeks");
    cursor.next().expect("moves");
    assert!(!cursor.valid(), "its own row is the last");
    drop(cursor);
    txn.rollback();

    let mut txn = holder(&store, &one);
    txn.depend_on(&two);
    put_now(&store, &two, 0, 1);
    let lost = txn.commit().expect_err("it depends on the other tree");
    assert_eq!(lost.kind(), ErrorKind::Conflict);

    let mut txn = holder(&store, &one);
    let stamp = txn.stamp(&two).expect("a stamp");
    put_now(&store, &two, 0, 2);
    assert_eq!(txn.stamp(&two).expect("a stamp"), stamp);
    txn.rollback();

    let mut txn = holder(&store, &one);
    txn.exclude_writers().expect("nobody else writes");
    let made = txn.create_tree(KeyKind::Int).expect("a tree");
    put(&mut txn, &made, 1, 1);
    txn.drop_tree(&two).expect("drops");
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &made, 1), Some(1));
    assert_eq!(get_now(&store, &one, 1), Some(1));
}

#[test]
fn two_trees_are_held_and_committed_together() {
    let (store, one, two) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    put(&mut txn, &two, 1, 1);
    assert!(!txn.pinned);
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &one, 1), Some(1));
    assert_eq!(get_now(&store, &two, 1), Some(1));
}

#[test]
fn of_two_that_come_to_each_others_trees_both_commit() {
    let (store, one, two) = store(Durability::Normal);
    let mut of_one = holder(&store, &one);
    let mut of_two = used_to(&store, &two);
    of_two.begin(Isolation::Serializable).expect("begins");
    put(&mut of_two, &two, 1, 2);
    assert_eq!(of_two.hold, Hold::Held);
    // Not to be had: what it held itself it gives up, too.
    assert_eq!(get(&mut of_one, &two, 0), Some(u64::from(LEASE_AFTER)));
    assert_eq!((of_one.hold, of_two.hold), (Hold::None, Hold::Held));
    put(&mut of_two, &one, 2, 2);
    assert_eq!(of_two.hold, Hold::Held);
    of_two.commit().expect("commits");
    of_one.commit().expect("they wrote other rows");
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let rows = [(&one, 1), (&one, 2), (&two, 1)];
    assert_eq!(
        rows.map(|(tree, key)| get(&mut txn, tree, key)),
        [Some(1), Some(2), Some(2)]
    );
}

#[test]
fn what_changes_only_where_writers_are_excluded_is_relied_on_without_a_snapshot() {
    let (store, one, schema) = store(Durability::Normal);
    let change = |value| {
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins at once");
        put(&mut txn, &schema, 0, value);
        txn.commit().expect("commits");
    };
    change(1);
    let mut txn = used_to(&store, &one);
    txn.begin(Isolation::Snapshot).expect("begins");
    txn.rely_on(&schema).expect("relies");
    let stamp = txn.stamp(&schema).expect("a stamp");
    assert_eq!((txn.hold, txn.pinned), (Hold::Held, false));
    put(&mut txn, &one, 1, 1);
    assert_eq!(txn.stamp(&schema).expect("a stamp"), stamp);
    assert!(!txn.pinned);
    txn.commit().expect("commits");

    // It was changed: the transaction sees it as it was, and loses.
    txn.begin(Isolation::Snapshot).expect("begins");
    txn.rely_on(&schema).expect("relies");
    let stamp = txn.stamp(&schema).expect("a stamp");
    change(2);
    assert_eq!(txn.stamp(&schema).expect("a stamp"), stamp);
    assert_eq!(get(&mut txn, &schema, 0), Some(1));
    put(&mut txn, &one, 1, 2);
    let lost = txn.commit().expect_err("it relied on what was there");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    assert_eq!(get_now(&store, &one, 1), Some(1));
    assert!(txn.rely_on(&schema).is_err(), "no transaction is under way");
}

#[test]
fn who_ends_otherwise_holds_nothing() {
    let (store, one, _) = store(Durability::Normal);
    let ends: [fn(TxnContext); 3] = [
        |mut txn| txn.rollback(),
        drop,
        |mut txn| {
            txn.rollback();
            txn.begin(Isolation::Serializable).expect("begins");
            let mut value = Vec::new();
            let tree = txn.store().family("one").expect("reads").expect("there");
            txn.get_into(&tree, Key::Int(0), &mut value).expect("reads");
            assert_eq!(txn.hold, Hold::Held);
            txn.commit().expect("it wrote nothing");
        },
    ];
    for end in ends {
        end(holder(&store, &one));
        assert!(one.0.writer.try_lock(), "the tree is free");
        // SAFETY: just taken.
        unsafe { one.0.writer.unlock() };
        put_now(&store, &one, 2, 2);
        assert_eq!(get_now(&store, &one, 1), None);
    }
}

#[test]
fn a_savepoint_takes_back_what_was_written_to_the_tree_that_is_held() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    let savepoint = txn.savepoint().expect("a savepoint");
    put(&mut txn, &one, 1, 7);
    put(&mut txn, &one, 2, 7);
    txn.rollback_to(&savepoint).expect("goes back");
    assert_eq!(txn.hold, Hold::Held);
    txn.commit().expect("commits");
    assert_eq!(get_now(&store, &one, 1), Some(1));
    assert_eq!(get_now(&store, &one, 2), None);
}

#[test]
fn where_others_ask_all_the_time_it_becomes_rare() {
    let (store, one, _) = store(Durability::Normal);
    let mut txn = store.txn();
    let mut held = 0;
    for count in 1..=4000 {
        txn.begin(Isolation::Snapshot).expect("begins");
        put(&mut txn, &one, 1, count);
        held += u32::from(txn.hold == Hold::Held);
        put_now(&store, &one, 2, count);
        txn.commit().expect("commits");
    }
    assert!((2..10).contains(&held), "{held} times");
    for count in 1..=20_000 {
        txn.begin(Isolation::Snapshot).expect("begins");
        put(&mut txn, &one, 1, count);
        txn.commit().expect("commits");
    }
    assert_eq!(txn.restraint.next, LEASE_AFTER, "it pays off again");
}

#[test]
fn where_commits_wait_for_syncs_every_transaction_has_a_snapshot() {
    let (store, one, _) = store_with(Durability::Full, 20);
    let mut txn = store.txn();
    for count in 1..=100 {
        txn.begin(Isolation::Serializable).expect("begins");
        assert!(txn.pinned);
        put(&mut txn, &one, 1, count);
        txn.commit().expect("commits");
    }
}

#[test]
fn where_syncs_are_quick_transactions_hold_as_in_normal() {
    let (store, one, _) = store(Durability::Full);
    let mut txn = holder(&store, &one);
    put_now(&store, &one, 9, 1);
    assert!(get(&mut txn, &one, 0).is_some(), "a snapshot of before");
    txn.commit().expect("nobody changed what it wrote");
    assert_eq!(get_now(&store, &one, 9), Some(1));
}

/// What decides whether the one context that writes may hold whatever was before: in a
/// queue, whose transactions scan, each began to hold in vain.
#[test]
fn who_scans_has_need_of_a_snapshot_and_who_is_asked_for_a_tree_has_not() {
    let (store, one, _) = store(Durability::Full);
    let mut txn = holder(&store, &one);
    assert!(txn.restraint.could);
    put_now(&store, &one, 9, 1);
    assert_eq!(get(&mut txn, &one, 1), Some(1));
    txn.commit().expect("nobody changed what it wrote");
    assert!(txn.restraint.could, "somebody asked for the tree");
    let mut txn = holder(&store, &one);
    let mut cursor = txn.cursor(&one).expect("a cursor");
    assert!(cursor.seek(Seek::First).expect("seeks"));
    drop(cursor);
    assert!(!txn.restraint.could, "it scans");
    txn.commit().expect("commits");
    assert!(!txn.restraint.could);
}

#[test]
fn where_writing_has_ended_what_is_held_is_refused_and_read() {
    let (store, one, two) = store(Durability::Normal);
    let mut txn = holder(&store, &one);
    let broken = crate::error::Error::new(ErrorKind::Io, "the disk is gone");
    store.core().fail(&broken);
    assert_eq!(get(&mut txn, &two, 0), None);
    assert_eq!(get(&mut txn, &one, 0), Some(u64::from(LEASE_AFTER)));
    let refused = txn.commit().expect_err("writing has ended");
    assert_eq!(refused.kind(), ErrorKind::Poisoned);
    let held = store.txn().begin(Isolation::Serializable);
    assert_eq!(held.expect_err("refused").kind(), ErrorKind::Poisoned);
    assert_eq!(
        get_now(&store, &one, 0),
        Some(u64::from(LEASE_AFTER)),
        "read all the same"
    );
}
