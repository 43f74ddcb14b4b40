use super::{commit_together, exclude_together, read_together};
use crate::{ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn, TxnState};
use fulgurite_disk::{Machine, MemoryDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

fn stores(count: usize) -> Vec<(Store, Tree)> {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options {
        busy_timeout: Duration::from_secs(10),
        ..Options::default()
    };
    let open = |at: usize| {
        let store = Store::open_on(disk.clone(), format!("{at}.db"), options.clone());
        let store = store.expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    };
    (0..count).map(open).collect()
}

fn begin(stores: &[(Store, Tree)], isolation: Isolation) -> Vec<Txn> {
    let mut txns: Vec<Txn> = stores.iter().map(|(store, _)| store.txn()).collect();
    for txn in &mut txns {
        txn.begin(isolation).expect("begins");
    }
    txns
}

fn commit(txns: &mut [Txn]) -> crate::Result<()> {
    let mut contexts: Vec<_> = txns.iter_mut().map(|txn| &mut **txn).collect();
    commit_together(&mut contexts)
}

fn number(txn: &mut Txn, tree: &Tree, key: i64) -> u64 {
    let mut value = Vec::new();
    match txn
        .get_into(tree, Key::Int(key), &mut value)
        .expect("reads")
    {
        true => u64::from_le_bytes(*value.first_chunk().expect("a number")),
        false => 0,
    }
}

fn put(txn: &mut Txn, tree: &Tree, key: i64, value: u64) {
    txn.put(tree, Key::Int(key), &value.to_le_bytes())
        .expect("puts");
}

fn read_all(stores: &[(Store, Tree)], key: i64) -> Vec<u64> {
    let read = |(store, tree): &(Store, Tree)| {
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        number(&mut txn, tree, key)
    };
    stores.iter().map(read).collect()
}

#[test]
fn all_stores_have_it_or_none() {
    let stores = stores(3);
    for value in 1..20 {
        let mut txns = begin(&stores, Isolation::Serializable);
        for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
            put(txn, tree, 1, value);
        }
        if value % 3 == 0 {
            // Somebody else was faster in the last one.
            let (store, tree) = &stores[2];
            let mut other = store.txn();
            other.begin_statement(&[tree]).expect("begins");
            put(&mut other, tree, 1, value + 100);
            other.commit().expect("commits");
            let lost = commit(&mut txns).expect_err("it lost");
            assert_eq!(lost.kind(), ErrorKind::Conflict);
            assert_eq!(read_all(&stores, 1), [value - 1, value - 1, value + 100]);
        } else {
            commit(&mut txns).expect("commits");
            assert_eq!(read_all(&stores, 1), [value; 3]);
        }
        assert!(txns.iter().all(|txn| txn.state() == TxnState::Idle));
    }
    for (store, _) in &stores {
        // What it keeps for itself nobody sees.
        assert_eq!(store.families().expect("the names"), ["t"]);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        let own = super::decisions::DECIDED;
        assert!(store.create_family(own, KeyKind::Bytes).is_err() && store.family(own).is_err());
    }
    // Of the decisions the last one is left.
    let decided = super::decisions::find(&stores[0].0, super::decisions::DECIDED);
    let decided = decided.expect("reads").expect("it coordinated");
    let mut txn = stores[0].0.txn();
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(&decided).expect("counts"), 1);
}

/// A commit over two files took three syncs, one after the other, and the last of them
/// made nothing durable that was not.
#[test]
fn the_end_of_what_was_prepared_is_left_to_a_later_sync() {
    let disk = Arc::new(MemoryDisk::new());
    let stores = ["0.db", "1.db"].map(|name| {
        let options = Options {
            // No thread, which would sync at its own time.
            driver: Some(Arc::new(Machine)),
            ..Options::default()
        };
        let store = Store::open_on(disk.clone(), name, options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    });
    let syncs = || {
        let of = |(store, _): &(Store, Tree)| store.stats().log.expect("a log").syncs;
        [of(&stores[0]), of(&stores[1])]
    };
    let write = |value| {
        let mut txns = begin(&stores, Isolation::Serializable);
        for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
            put(txn, tree, 1, value);
        }
        commit(&mut txns).expect("commits");
        assert_eq!(read_all(&stores, 1), [value; 2]);
    };
    // It makes what the next one finds.
    write(1);
    let before = syncs();
    let since = || {
        let now = syncs();
        [now[0] - before[0], now[1] - before[1]]
    };
    write(2);
    assert_eq!(since(), [1, 1]);
    for _ in 0..2 {
        stores
            .iter()
            .for_each(|(store, _)| store.tick().expect("ticks"));
        assert_eq!(since(), [1, 2]);
    }
}

/// What the first commit over several stores makes for itself is nothing that a transaction
/// has read, neither of who coordinates nor of the others.
#[test]
fn who_listed_the_families_commits() {
    let stores = stores(3);
    for value in 1..3 {
        let mut txns = begin(&stores, Isolation::Serializable);
        for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
            let families = txn.families().expect("the names");
            assert_eq!(families.len(), 1);
            put(txn, tree, 1, value);
        }
        commit(&mut txns).expect("commits");
        assert_eq!(read_all(&stores, 1), [value; 3]);
    }
    // A family that somebody else made meanwhile is.
    let mut txns = begin(&stores, Isolation::Serializable);
    for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
        txn.families().expect("the names");
        put(txn, tree, 1, 9);
    }
    let (last, _) = &stores[2];
    last.create_family("", KeyKind::Int).expect("a family");
    assert_eq!(last.families().expect("the names"), ["", "t"]);
    let lost = commit(&mut txns).expect_err("it lost");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    assert_eq!(read_all(&stores, 1), [2; 3]);
}

/// Who read all names there are, the store's own too, loses to the first commit over
/// several stores before that is decided.
#[test]
fn who_read_the_tree_of_names_loses_and_can_go_on() {
    for at in 0..2 {
        let stores = stores(2);
        for read in [true, false] {
            let mut txns = begin(&stores, Isolation::Serializable);
            for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
                put(txn, tree, 1, 1);
            }
            if read {
                let names = stores[at].0.tree(crate::TreeId(0)).expect("the names");
                txns[at].depend_on(&names);
                let lost = commit(&mut txns).expect_err("it lost");
                assert_eq!(lost.kind(), ErrorKind::Conflict);
                assert_eq!(read_all(&stores, 1), [0; 2]);
            } else {
                commit(&mut txns).expect("commits");
                assert_eq!(read_all(&stores, 1), [1; 2]);
            }
        }
    }
}

/// Who made and dropped families keeps those that the first commit over several stores made
/// beside it: what is decided must be found by whoever asks after a crash.
#[test]
fn who_made_families_keeps_those_of_the_commit() {
    for immediate in [false, true] {
        let stores = stores(3);
        for value in 1..4 {
            let mut txns = begin(&stores, Isolation::Serializable);
            for (txn, (store, tree)) in txns.iter_mut().zip(&stores) {
                if immediate {
                    txn.rollback();
                    txn.begin_immediate().expect("begins");
                }
                let own = txn.create_family(&format!("f{value}"), KeyKind::Int);
                put(txn, &own.expect("a family"), 1, value);
                let place = txn.savepoint().expect("a place");
                txn.create_family("undone", KeyKind::Int).expect("a family");
                txn.rollback_to(&place).expect("goes back");
                if value == 3 {
                    assert_eq!(txn.drop_family("f1").expect("drops"), Some(true));
                }
                put(txn, tree, 1, value);
                assert_eq!(store.families().expect("the names").len(), value as usize);
            }
            commit(&mut txns).expect("commits");
            assert_eq!(read_all(&stores, 1), [value; 3]);
        }
        for (at, (store, _)) in stores.iter().enumerate() {
            let names = store.families().expect("the names");
            assert_eq!(names, ["f2", "f3", "t"]);
            let own = [super::decisions::DECIDED, super::decisions::PREPARED][at.min(1)];
            let found = super::decisions::find(store, own).expect("reads");
            assert!(found.is_some(), "{own:?} of {at} is gone");
            assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        }
    }
}

/// One that is too large for the log keeps nothing that it could do again. The first one over
/// its store lost to the family of decisions that its own commit made, IMMEDIATE or not.
#[test]
fn who_made_families_and_is_too_large_makes_that_of_the_commit() {
    let value = vec![7; 64 << 10];
    for immediate in [false, true] {
        let stores = stores(2);
        for turn in 0..2 {
            let mut txns = begin(&stores, Isolation::Serializable);
            if immediate {
                txns[0].rollback();
                txns[0].begin_immediate().expect("begins");
            }
            let made = txns[0].create_family(&format!("f{turn}"), KeyKind::Int);
            made.expect("a family");
            for key in 0..128 {
                let (_, tree) = &stores[0];
                let put = txns[0].put(tree, Key::Int(key), &value);
                put.expect("puts");
            }
            put(&mut txns[1], &stores[1].1, 1, turn);
            commit(&mut txns).expect("commits");
            let found =
                super::decisions::find(&stores[0].0, super::decisions::DECIDED).expect("reads");
            let family = found.expect("the family of decisions");
            let mut reader = stores[0].0.txn();
            reader.begin_read().expect("reads");
            assert_eq!(reader.count(&family).expect("counts"), 1);
        }
        assert_eq!(
            stores[0].0.families().expect("the names"),
            ["f0", "f1", "t"]
        );
        for (store, _) in &stores {
            assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        }
    }
}

/// Each reads in one store what the other writes there: write skew, over two files.
#[test]
fn what_was_read_in_one_store_counts_where_another_is_written() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let stores = stores(2);
        let mut both = [begin(&stores, isolation), begin(&stores, isolation)];
        for (at, txns) in both.iter_mut().enumerate() {
            let (here, there) = (at, 1 - at);
            assert_eq!(number(&mut txns[there], &stores[there].1, 1), 0);
            put(&mut txns[here], &stores[here].1, 1, 1);
        }
        let [first, second] = &mut both;
        commit(first).expect("the first commits");
        match isolation {
            Isolation::Serializable => {
                let lost = commit(second).expect_err("the second has read what is no more so");
                assert_eq!(lost.kind(), ErrorKind::Conflict);
            }
            Isolation::Snapshot => commit(second).expect("nobody asked for more"),
        }
    }
}

/// A transaction over several stores only reads one that takes no commits any more; who
/// wanted to make a family there heard of a misuse.
#[test]
fn who_reads_a_failed_store_hears_of_its_failure() {
    let stores = stores(2);
    let (failed, tree) = &stores[1];
    let cause = crate::Error::misuse("what a sync failed with");
    failed.core().fail(&cause);
    let mut txn = failed.txn();
    txn.begin_read().expect("reads");
    assert_eq!(number(&mut txn, tree, 1), 0);
    let value = &[1];
    for refused in [
        txn.put(tree, Key::Int(1), value).map(|_| ()),
        txn.create_tree(KeyKind::Int).map(|_| ()),
        txn.create_family("u", KeyKind::Int).map(|_| ()),
    ] {
        let error = refused.expect_err("nothing is written there");
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        assert!(error.message().contains("what a sync failed with"));
    }
    // Of one that is as it was nothing else is said than before.
    let mut reader = stores[0].0.txn();
    reader.begin_read().expect("reads");
    let misused = reader.create_tree(KeyKind::Int).expect_err("it reads");
    assert_eq!(misused.kind(), ErrorKind::Misuse);
}

#[test]
fn who_cannot_have_all_locks_in_time_is_as_it_was() {
    let stores = stores(2);
    let mut txns = begin(&stores, Isolation::Serializable);
    for (txn, (_, tree)) in txns.iter_mut().zip(&stores) {
        txn.set_busy_timeout(Duration::ZERO);
        put(txn, tree, 1, 7);
    }
    let mut other = stores[1].0.txn();
    other.begin_immediate().expect("begins");
    let busy = commit(&mut txns).expect_err("it is locked");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(txns.iter().all(|txn| txn.state() == TxnState::Optimistic));
    // The locks that it had are free again.
    let mut first = stores[0].0.txn();
    first.set_busy_timeout(Duration::ZERO);
    first.begin_immediate().expect("nobody holds it");
    first.rollback();
    other.rollback();
    commit(&mut txns).expect("commits");
    assert_eq!(read_all(&stores, 1), [7; 2]);
}

/// A connection with files attached, or temporary tables, kept all writers of its main
/// database out for each commit.
#[test]
fn who_uses_one_store_alone_keeps_nobody_out() {
    let stores = stores(2);
    let mut txns = begin(&stores, Isolation::Serializable);
    txns[0].set_busy_timeout(Duration::ZERO);
    put(&mut txns[0], &stores[0].1, 1, 7);
    // Another writer is at work, on another tree.
    let elsewhere = stores[0].0.create_family("u", KeyKind::Int);
    let elsewhere = elsewhere.expect("a family");
    let mut other = stores[0].0.txn();
    other.begin_statement(&[&elsewhere]).expect("begins");
    commit(&mut txns).expect("commits beside it");
    other.rollback();
    assert!(txns.iter().all(|txn| txn.state() == TxnState::Idle));
    assert_eq!(read_all(&stores, 1), [7, 0]);
}

#[test]
fn one_transaction_may_be_too_large_for_the_log() {
    let stores = stores(2);
    let fill = |large: &[usize]| {
        let mut txns = begin(&stores, Isolation::Serializable);
        for (at, (txn, (_, tree))) in txns.iter_mut().zip(&stores).enumerate() {
            for key in 0..if large.contains(&at) { 12_000 } else { 1 } {
                txn.put(tree, Key::Int(key), &[at as u8; 1000])
                    .expect("puts");
            }
        }
        commit(&mut txns)
    };
    for (large, (store, tree)) in stores.iter().enumerate() {
        fill(&[large]).expect("commits");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        assert_eq!(txn.count(tree).expect("counts"), 12_000);
    }
    let refused = fill(&[0, 1]).expect_err("neither can be prepared");
    assert_eq!(refused.kind(), ErrorKind::TooBig);
    assert!(refused.message().contains("0.db and 1.db"), "{refused}");
    for (store, _) in &stores {
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    }
}

/// Writers put the same number into all stores, or move a part of it from one to another;
/// the sum is always the same, for whoever reads all at once.
#[test]
fn who_reads_several_stores_sees_one_state() {
    const SUM: u64 = 1000;
    let stores = stores(3);
    let mut txns = begin(&stores, Isolation::Serializable);
    put(&mut txns[0], &stores[0].1, 1, SUM);
    commit(&mut txns).expect("commits");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3)
            .map(|mover| {
                let stores = &stores;
                scope.spawn(move || {
                    let mut moved = 0;
                    for round in 0..60 {
                        let (from, to) = ((mover + round) % 3, (mover + round + 1 + round % 2) % 3);
                        let mut txns = begin(stores, Isolation::Serializable);
                        let has = number(&mut txns[from], &stores[from].1, 1);
                        let had = number(&mut txns[to], &stores[to].1, 1);
                        put(&mut txns[from], &stores[from].1, 1, has - has / 2);
                        put(&mut txns[to], &stores[to].1, 1, had + has / 2);
                        match commit(&mut txns) {
                            Ok(()) => moved += 1,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        }
                    }
                    moved
                })
            })
            .collect();
        for reads in 0..2 {
            let (stores, done) = (&stores, &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    let mut txns: Vec<Txn> = stores.iter().map(|(store, _)| store.txn()).collect();
                    for txn in &mut txns {
                        match reads {
                            0 => txn.begin_read().expect("begins"),
                            _ => txn.begin(Isolation::Serializable).expect("begins"),
                        }
                    }
                    let mut contexts: Vec<_> = txns.iter_mut().map(|txn| &mut **txn).collect();
                    read_together(&mut contexts).expect("reads");
                    let numbers = txns.iter_mut().zip(stores);
                    let numbers = numbers.map(|(txn, (_, tree))| number(txn, tree, 1));
                    let numbers: Vec<u64> = numbers.collect();
                    assert_eq!(numbers.iter().sum::<u64>(), SUM, "{numbers:?}");
                    commit(&mut txns).expect("ends");
                }
            });
        }
        let moved: u64 = movers
            .into_iter()
            .map(|it| it.join().expect("no panic"))
            .sum();
        done.store(true, Relaxed);
        assert!(moved > 0);
    });
    assert_eq!(read_all(&stores, 1).iter().sum::<u64>(), SUM);
}

/// A transaction too large for the log holds what it writes to before it commits. It waited
/// with that for a store before the large one's, where who has that one's writers excluded
/// may come to exclude those of the large one's: both waited until a busy timeout was over.
#[test]
fn a_large_transaction_holds_nothing_while_it_waits_for_a_store_before() {
    type Wait = fn(&mut [&mut crate::TxnContext]) -> crate::Result<()>;
    let exclude_first: Wait = |all| {
        exclude_together(all)?;
        commit_together(all)
    };
    for wait in [commit_together, exclude_first] {
        let stores = stores(2);
        let mut large = begin(&stores, Isolation::Serializable);
        for key in 0..5 {
            large[1]
                .put(&stores[1].1, Key::Int(key), &vec![7; 1 << 20])
                .expect("puts");
        }
        put(&mut large[0], &stores[0].1, 1, 1);
        let mut first = stores[0].0.txn();
        first.begin_immediate().expect("nobody else is there");
        std::thread::scope(|scope| {
            let large = scope.spawn(move || {
                let mut contexts: Vec<_> = large.iter_mut().map(|txn| &mut **txn).collect();
                wait(&mut contexts)
            });
            let mut second = stores[1].0.txn();
            let excluded = second.begin_immediate();
            excluded.expect("the large transaction lets go of its tree");
            second.rollback();
            first.rollback();
            large.join().expect("no panic").expect("commits");
        });
        assert_eq!(read_all(&stores[..1], 1), [1]);
    }
}

/// Who keeps writers out of a store does not wait for one before it: a handler would be asked.
#[test]
fn a_store_before_one_that_is_excluded_is_not_waited_for() {
    let stores = stores(2);
    let mut txns = begin(&stores, Isolation::Serializable);
    txns[1].exclude_writers().expect("nobody else writes");
    let asked = Arc::new(AtomicBool::new(false));
    let tell = asked.clone();
    txns[0].set_busy_handler(Some(Arc::new(move |_| {
        tell.store(true, Relaxed);
        false
    })));
    let mut other = stores[0].0.txn();
    other.begin_immediate().expect("nobody else writes");
    let mut contexts: Vec<_> = txns.iter_mut().map(|txn| &mut **txn).collect();
    let refused = exclude_together(&mut contexts).expect_err("it is locked");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(!asked.load(Relaxed));
    other.rollback();
    exclude_together(&mut contexts).expect("nobody else writes any more");
}

/// What one store prepared was too large for a record, so that it was written where its pages
/// are, and the log had the place alone. But room for what follows the decision had been
/// reserved before, more than the log's limit: the record waited for that to be given back,
/// by its own transaction, until the busy timeout was over.
#[test]
fn what_is_prepared_has_its_room_first() {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options {
        page_size: 64 << 10,
        log_limit_bytes: Some(4 << 20),
        busy_timeout: Duration::from_secs(5),
        ..Options::default()
    };
    let stores = ["first.db", "second.db"].map(|name| {
        let store = Store::open_on(disk.clone(), name, options.clone()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        (store, tree)
    });
    let (rows, a_page, value) = (5_600, 8, [7; 8_000]);
    for at in (0..rows).step_by(400) {
        let (store, tree) = &stores[1];
        let mut fills = store.txn();
        fills.begin_immediate().expect("begins");
        let entries = (at..at + 400).map(|key| (key, &value[..]));
        fills.put_all(tree, entries).expect("puts");
        fills.commit().expect("commits");
    }
    let mut txns = begin(&stores, Isolation::Serializable);
    put(&mut txns[0], &stores[0].1, 1, 1);
    // Changes that lie far apart are in the log though they are many.
    for key in (0..rows).step_by(a_page) {
        let put = txns[1].put(&stores[1].1, Key::Int(key), &value[1..]);
        assert!(put.expect("puts"));
    }
    commit(&mut txns).expect("commits");
    assert_eq!(read_all(&stores[..1], 1), [1]);
    let (store, tree) = &stores[1];
    let mut reads = store.txn();
    reads.begin_read().expect("begins");
    for key in 0..rows {
        let len = value.len() - usize::from(key % a_page as i64 == 0);
        let mut found = Vec::new();
        let is_there = reads.get_into(tree, Key::Int(key), &mut found);
        assert!(is_there.expect("reads") && found.len() == len, "{key}");
    }
}
