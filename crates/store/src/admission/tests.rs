use super::*;
use crate::{Durability, Key, KeyKind, Options, Result, Store, Tree, TxnContext, TxnState};
use fulgurite_disk::MemoryDisk;
use std::path::Path;
use std::sync::Arc;
use std::thread;

fn two_chairs() -> Admission {
    let mut admission = Admission::new();
    admission.chairs = [Chair::default(), Chair::default()].into();
    admission
}

fn waits() -> Waits {
    Waits::new(None)
}

/// Enters as one who comes back at once, however long this thread did not run.
fn enter(admission: &Admission, visitor: &mut Visitor, patience: Duration) -> Option<usize> {
    visitor.ended = Duration::MAX;
    admission.enter(visitor, patience, &waits());
    visitor.chair
}

#[test]
fn without_a_limit_nobody_needs_a_chair() {
    let admission = two_chairs();
    let mut visitor = Visitor::new(1);
    assert_eq!(enter(&admission, &mut visitor, Duration::MAX), None);
    assert_eq!(admission.limit(), None);
}

#[test]
fn a_chair_is_kept_until_somebody_asks_and_then_left() {
    let admission = two_chairs();
    admission.set_limit(1);
    assert_eq!(admission.limit(), Some(1));
    let mut visitor = Visitor::new(1);
    for _ in 0..3 {
        assert_eq!(enter(&admission, &mut visitor, Duration::MAX), Some(0));
    }
    assert_eq!(admission.chairs[0].visits.load(Relaxed), 5);
    ask_longest(&admission.chairs[..1], waits().now() + TURN);
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 4 | ASKED);
    // It leaves, and as nobody waits after all, takes the same one again.
    assert_eq!(enter(&admission, &mut visitor, Duration::MAX), None);
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 0);
    assert_eq!(enter(&admission, &mut visitor, Duration::MAX), Some(0));
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 4);
    admission.leave_chair(&mut visitor);
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 0);
}

#[test]
fn another_limit_takes_all_chairs_away() {
    let admission = two_chairs();
    admission.set_limit(2);
    let [mut first, mut second] = [Visitor::new(1), Visitor::new(2)];
    assert_eq!(enter(&admission, &mut first, Duration::MAX), Some(0));
    assert_eq!(enter(&admission, &mut second, Duration::MAX), Some(1));
    admission.set_limit(1);
    assert_eq!(enter(&admission, &mut second, Duration::MAX), None);
    assert_eq!(enter(&admission, &mut second, Duration::MAX), Some(0));
    admission.set_limit(0);
    admission.enter(&mut first, Duration::MAX, &waits());
    assert_eq!(second.chair, Some(0), "it has not come since");
    admission.set_limit(1);
    assert_eq!(enter(&admission, &mut first, Duration::MAX), None);
    assert_eq!(enter(&admission, &mut first, Duration::MAX), Some(0));
    admission.leave_chair(&mut second);
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 4, "not its own");
}

#[test]
fn who_comes_now_and_then_or_has_no_time_does_not_wait() {
    let admission = two_chairs();
    admission.set_limit(1);
    let mut holder = Visitor::new(1);
    assert_eq!(enter(&admission, &mut holder, Duration::MAX), Some(0));
    let mut visitor = Visitor::new(2);
    admission.enter(&mut visitor, Duration::MAX, &waits());
    assert_eq!(visitor.chair, None, "it was never here");
    let short = PATIENCE_MIN - Duration::from_nanos(1);
    assert_eq!(enter(&admission, &mut visitor, short), None);
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 4);
}

/// A commit that replaced hundreds of nodes frees them before it returns, which takes longer
/// than one who comes back soon may be away: nobody waited for a chair after such commits.
#[test]
fn what_there_is_to_do_after_a_transaction_is_no_time_away() {
    let (admission, waits) = (two_chairs(), waits());
    let mut visitor = Visitor::new(1);
    admission.goes(&mut visitor, &waits);
    assert_eq!(visitor.ended, Duration::ZERO, "nobody needs a chair");
    admission.set_limit(1);
    admission.ended(&mut visitor, &waits);
    // It ended long ago, and goes now.
    visitor.ended = Duration::ZERO;
    let now = waits.now();
    admission.goes(&mut visitor, &waits);
    assert!(visitor.ended >= now);
}

#[test]
fn the_chair_of_one_who_is_away_is_taken() {
    let admission = two_chairs();
    admission.set_limit(1);
    let [mut gone, mut visitor] = [Visitor::new(1), Visitor::new(2)];
    assert_eq!(enter(&admission, &mut gone, Duration::MAX), Some(0));
    assert_eq!(enter(&admission, &mut visitor, Duration::MAX), Some(0));
    assert_eq!(admission.chairs[0].holder.load(Relaxed), 8);
}

/// The chair of who was in a transaction of more than a millisecond was taken, as of one
/// who is away, so that there was no limit to long transactions.
#[test]
fn who_is_in_a_transaction_keeps_its_chair_for_a_turn() {
    let admission = two_chairs();
    admission.set_limit(1);
    let [mut first, second] = [Visitor::new(1), Visitor::new(2)];
    let chair = &admission.chairs[0];
    for comes in [false, true] {
        assert_eq!(enter(&admission, &mut first, Duration::MAX), Some(0));
        let since = waits().now();
        assert!(!chair.take(&second, since));
        assert!(!chair.take(&second, since + AWAY));
        if comes {
            assert!(chair.take(&second, since + AT_WORK));
            break;
        }
        admission.ended(&mut first, &waits());
        admission.ended(&mut first, &waits());
        assert!(!chair.take(&second, since + AWAY));
    }
    assert!(!first.holds(chair.holder.load(Relaxed)));
    assert_eq!(enter(&admission, &mut first, Duration::MAX), None);
}

#[test]
fn the_chair_of_one_who_is_lent_to_nobody_may_be_taken() {
    let admission = two_chairs();
    admission.set_limit(1);
    let [mut first, second] = [Visitor::new(1), Visitor::new(2)];
    let (chair, now) = (&admission.chairs[0], waits().now());
    for _ in 0..2 {
        assert_eq!(enter(&admission, &mut first, Duration::MAX), Some(0));
        assert!(!chair.take(&second, now));
        admission.note_unlent(&first);
    }
    assert!(chair.take(&second, now));
    admission.note_unlent(&first);
    assert_eq!(chair.holder.load(Relaxed), 8);
    assert_eq!(enter(&admission, &mut first, Duration::MAX), None);
}

/// Contexts of one thread, of which one has a chair: the others get past it.
#[test]
fn a_thread_with_two_contexts_does_not_wait_for_itself() {
    let admission = two_chairs();
    admission.set_limit(1);
    let mut visitors = [1, 2, 3].map(Visitor::new);
    let mut seated = 0;
    for round in 0..30 {
        let got = enter(&admission, &mut visitors[round % 3], Duration::MAX);
        seated += usize::from(got == Some(0));
    }
    // The others had just lost it.
    assert!(seated >= 15, "{seated}");
}

#[test]
fn all_get_their_turns_whatever_the_limit_becomes() {
    let admission = two_chairs();
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=6)
            .map(|context| {
                let admission = &admission;
                scope.spawn(move || {
                    let mut visitor = Visitor::new(context);
                    for round in 0..400_u32 {
                        if round % 40 == 0 {
                            admission.set_limit((round / 40 + context as u32) % 3);
                        }
                        enter(admission, &mut visitor, Duration::MAX);
                        admission.ended(&mut visitor, &waits());
                    }
                    admission.leave_chair(&mut visitor);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("it got all its turns");
        }
    });
    assert_eq!(admission.waiting.load(Relaxed), 0);
}

#[test]
fn transactions_are_the_same_under_a_limit() {
    const EACH: u64 = 200;
    let store = Store::in_memory(Options::default()).expect("opens");
    let common = store.create_family("common", KeyKind::Int).expect("made");
    // No trial sets another limit meanwhile.
    let _trial = store.core().admission.trial.lock();
    store.core().admission.set_limit(1);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (store, common) = (store.clone(), common.clone());
            scope.spawn(move || {
                let own = store
                    .create_family(&format!("own {writer}"), KeyKind::Int)
                    .expect("made");
                let mut txn = store.txn();
                for n in 0..EACH {
                    txn.begin_statement(&[&own]).expect("begins");
                    txn.put(&own, Key::Int(n as i64), b"own").expect("put");
                    txn.commit().expect("committed");
                    let key = Key::Int((writer * EACH + n) as i64);
                    txn.begin(crate::Isolation::Serializable).expect("begins");
                    txn.put(&common, key, b"common").expect("put");
                    txn.commit().expect("nobody else writes that key");
                }
                assert_eq!(txn.state(), TxnState::Idle);
                txn.begin_read().expect("begins");
                assert_eq!(txn.count(&own).expect("counted"), EACH);
            });
        }
    });
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(&common).expect("counted"), 4 * EACH);
}

/// IMMEDIATE transactions took no turns, so that a crowd of them handed the lock on at
/// each; and who used two stores took a turn in both, so that two who had one each
/// waited for one another.
#[test]
fn every_way_to_write_takes_a_turn_unless_it_comes_after_others() {
    type Begin = fn(&mut TxnContext, &Tree) -> Result<()>;
    let ways: [Begin; 5] = [
        |txn, tree| txn.begin_statement(&[tree]),
        |txn, _| txn.begin(crate::Isolation::Serializable),
        |txn, _| txn.begin_immediate(),
        |txn, _| txn.begin_immediate_ahead(),
        |txn, _| {
            assert!(txn.take_turn()?);
            txn.begin_after_others(TxnContext::begin_immediate)
        },
    ];
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("made");
    let admission = &store.core().admission;
    let _trial = admission.trial.lock();
    admission.set_limit(1);
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for way in ways {
        for after in [false, true, false] {
            txn.put(&tree, Key::Int(0), b"").expect("put");
            txn.commit().expect("nobody else writes");
            admission.leave_chair(txn.visitor());
            txn.visitor().ended = Duration::MAX;
            let begun = match after {
                true => txn.begin_after_others(|txn| way(txn, &tree)),
                false => way(&mut txn, &tree),
            };
            begun.expect("begins");
            assert_eq!(txn.visitor().chair.is_some(), !after);
        }
    }
}

/// The newest number told how many commits there had been, so that leases, which need
/// no chair, had limits tried by the few commits that begin them.
#[test]
fn commits_under_leases_are_not_counted() {
    let counted = |durability| {
        let options = Options {
            durability,
            ..Options::default()
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, Path::new("a.db"), options).unwrap();
        let tree = store.create_family("t", KeyKind::Int).unwrap();
        let mut txn = store.txn();
        for key in 0..20_000 {
            txn.begin_statement(&[&tree]).unwrap();
            txn.put(&tree, Key::Int(key), b"").unwrap();
            txn.commit().unwrap();
        }
        store.core().admission.commits.load(Relaxed)
    };
    assert!(counted(Durability::Full) > 19_900);
    assert!(counted(Durability::Normal) < 2_000);
}
