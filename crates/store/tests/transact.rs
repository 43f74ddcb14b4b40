//! `Store::txn` and `Store::transact` lend contexts that others let go of. What must hold
//! whatever they were used for: nobody can tell, and the store closes with its last
//! handle.

use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_store::{
    Durability, ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn, TxnState,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const KEY: Key<'static> = Key::Int(1);

/// Where nothing is synced.
fn open(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let store = Store::open_on(disk.clone(), "a.db", options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    (store, tree)
}

fn in_memory() -> (Store, Tree) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    (store, tree)
}

fn count_up(txn: &mut Txn, tree: &Tree) -> fulgurite_store::Result<u64> {
    let mut value = Vec::new();
    txn.get_into(tree, KEY, &mut value)?;
    let count = 1 + value.try_into().map_or(0, u64::from_le_bytes);
    txn.put(tree, KEY, &count.to_le_bytes())?;
    Ok(count)
}

fn transact(store: &Store, tree: &Tree) -> u64 {
    let counted = store.transact(Isolation::Serializable, |txn| count_up(txn, tree));
    counted.expect("commits")
}

/// An open store has a log.
fn is_open(disk: &MemoryDisk) -> bool {
    let logs = ["a.db-wal0", "a.db-wal1"];
    logs.iter()
        .any(|log| disk.exists(Path::new(log)).expect("looks"))
}

/// The same without a retry, in a context that is let go of.
fn begin_and_commit(store: &Store, tree: &Tree) -> u64 {
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let count = count_up(&mut txn, tree).expect("counts");
    txn.commit().expect("nobody else writes");
    count
}

fn run_statement(store: &Store, tree: &Tree) -> u64 {
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins");
    let count = count_up(&mut txn, tree).expect("counts");
    txn.commit().expect("commits");
    count
}

/// Each call began with a context that had learned nothing, so none ever came to have a
/// lease of the log, and all shared the commit lock.
#[test]
fn calls_that_follow_one_another_come_to_share_nothing() {
    for call in [transact, begin_and_commit, run_statement] {
        call_from_threads(call);
    }
}

fn call_from_threads(make_call: fn(&Store, &Tree) -> u64) {
    const CALLS: u64 = 4000;
    let (store, _) = open(&Arc::default());
    thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            let tree = store
                .create_family(&format!("of {thread}"), KeyKind::Int)
                .expect("a family");
            scope.spawn(move || {
                for call in 1..=CALLS {
                    assert_eq!(make_call(store, &tree), call);
                }
            });
        }
    });
    let stats = store.stats();
    assert!(stats.log.expect("a log").leases > 0);
    // One in eight that takes the lock is measured.
    let measured = stats.commit_lock.measured;
    assert!(measured < CALLS / 8, "{measured} of {}", 4 * CALLS);
}

#[test]
fn contexts_that_are_kept_do_not_keep_the_store_open() {
    let disk = Arc::default();
    for round in 1..=3 {
        let (store, tree) = open(&disk);
        assert_eq!(transact(&store, &tree), 2 * round - 1);
        let clone = store.clone();
        drop(store);
        assert_eq!(transact(&clone, &tree), 2 * round);
        assert!(is_open(&disk));
        drop(clone);
        assert!(!is_open(&disk), "its last handle closed it");
    }
}

#[test]
fn a_context_that_is_taken_away_keeps_the_store_open() {
    let disk = Arc::default();
    let (store, tree) = open(&disk);
    assert_eq!(transact(&store, &tree), 1);
    let mut taken = None;
    let outcome = store.transact(Isolation::Serializable, |txn| {
        count_up(txn, &tree)?;
        let other = txn.store().txn();
        taken = Some(std::mem::replace(txn, other));
        Ok(())
    });
    let error = outcome.expect_err("the context in its place has not begun");
    assert_eq!(error.kind(), ErrorKind::Misuse);
    drop(store);
    let mut taken = taken.expect("it was taken");
    taken.commit().expect("it is what it was");
    let handle = taken.store().clone();
    drop(taken);
    assert_eq!(transact(&handle, &tree), 3);
    assert!(is_open(&disk));
    drop(handle);
    assert!(!is_open(&disk));
}

#[test]
fn a_context_of_another_store_is_not_kept() {
    let (one, tree) = in_memory();
    let (other, other_tree) = in_memory();
    let mut stray = other.txn();
    let outcome = one.transact(Isolation::Serializable, |txn| {
        std::mem::swap(txn, &mut stray);
        txn.begin(Isolation::Serializable)?;
        count_up(txn, &other_tree)
    });
    assert_eq!(outcome.expect("commits to the other one"), 1);
    assert_eq!(stray.state(), TxnState::Optimistic);
    drop(stray);
    assert_eq!(transact(&one, &tree), 1);
    assert_eq!(transact(&other, &other_tree), 2);
}

#[test]
fn calls_within_calls_have_contexts_of_their_own() {
    let (store, tree) = in_memory();
    let inner_tree = store.create_family("u", KeyKind::Int).expect("a family");
    for round in 1..=3 {
        let outer = store.transact(Isolation::Serializable, |txn| {
            let inner = transact(&store, &inner_tree);
            assert_eq!(transact(&txn.store().clone(), &inner_tree), inner + 1);
            count_up(txn, &tree)
        });
        assert_eq!(outer.expect("commits"), round);
    }
    assert_eq!(transact(&store, &inner_tree), 7);
}

#[test]
fn what_fails_or_panics_leaves_nothing_to_the_next_call() {
    let (store, tree) = in_memory();
    for round in 1..=3 {
        let failed = store.transact(Isolation::Serializable, |txn| {
            count_up(txn, &tree)?;
            txn.put(&tree, Key::Bytes(b"1"), b"of another kind")
        });
        assert_eq!(failed.expect_err("told").kind(), ErrorKind::Misuse);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.transact(Isolation::Serializable, |txn| {
                count_up(txn, &tree)?;
                panic!("in the middle");
                #[expect(unreachable_code, reason = "it says what is answered")]
                Ok(())
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(transact(&store, &tree), round);
    }
}
