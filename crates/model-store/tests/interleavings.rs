//! The real store and the real log, compiled on a scheduler that chooses at
//! every lock, wait and atomic step who runs next. What is checked in each: no
//! run hangs (no wait times out here; the scheduler reports who waits for ever),
//! and what the comment of the scenario says.

mod ahead;
mod common;
mod contexts;
mod elsewhere;
mod grafts;
mod holds;
mod in_place;
mod leases;
mod seats;
mod together;
mod turns;

use common::Schedulers::{All, Fair};
use common::{explore, open, options};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store_model::{Durability, ErrorKind, Isolation, Key, KeyKind, Options, Seek};
use fulgurite_store_model::{Store, Tree, Txn};
use shuttle::rand::RngCore;
use shuttle::thread;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn draw() -> u64 {
    shuttle::rand::thread_rng().next_u64()
}

fn put(txn: &mut Txn, tree: &Tree, key: i64, value: i64) {
    txn.put(tree, Key::Int(key), &value.to_le_bytes())
        .expect("a put");
}

fn get(txn: &mut Txn, tree: &Tree, key: i64) -> Option<i64> {
    let mut value = Vec::new();
    let found = txn.get_into(tree, Key::Int(key), &mut value);
    found
        .expect("a get")
        .then(|| i64::from_le_bytes(value.as_slice().try_into().expect("eight bytes")))
}

/// Adds to a value in an autocommitted statement.
fn add(txn: &mut Txn, tree: &Tree, key: i64, by: i64) -> fulgurite_store_model::Result<()> {
    txn.begin_statement(&[tree])?;
    let value = get(txn, tree, key).unwrap_or(0);
    put(txn, tree, key, value + by);
    txn.commit()
}

fn read(store: &Store, tree: &Tree, key: i64) -> Option<i64> {
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    get(&mut txn, tree, key)
}

/// Committers of one tree and of two, group commit between them, a checkpoint
/// with its generation switch beside them: whoever was told that it committed
/// sees it, and after reopening all of it is there.
fn commit_pipeline() {
    let disk = SimDisk::new(1);
    let store = open(&disk, options());
    let shared = store
        .create_family("shared", KeyKind::Int)
        .expect("a family");
    let own = store.create_family("own", KeyKind::Int).expect("a family");
    let threads: Vec<_> = (0..2)
        .map(|thread| {
            let (store, shared, own) = (store.clone(), shared.clone(), own.clone());
            let disk = disk.clone();
            thread::spawn(move || {
                let mut txn = store.txn();
                let mut crashed = disk.crash_image(0);
                for round in 1..=2 {
                    add(&mut txn, &shared, 0, 1).expect("commits");
                    crashed = disk.crash_image(round as u64);
                    assert!(read(&store, &shared, 0).is_some_and(|seen| seen >= round));
                    if thread == 0 {
                        add(&mut txn, &own, 0, 1).expect("commits");
                        assert_eq!(read(&store, &own, 0), Some(round));
                    }
                }
                crashed
            })
        })
        .collect();
    store.checkpoint().expect("a checkpoint");
    store.checkpoint().expect("a checkpoint");
    let crashed = threads.into_iter().map(|t| t.join().expect("no panic"));
    let crashed: Vec<SimDisk> = crashed.collect();
    drop((store, shared, own));
    // After a thread's second commit its power was cut; in the end it was not.
    for (disk, least) in crashed.into_iter().map(|disk| (disk, 2)).chain([(disk, 4)]) {
        let store = open(&disk, options());
        let shared = store.family("shared").expect("reads").expect("there");
        assert!(read(&store, &shared, 0).is_some_and(|seen| seen >= least));
        assert_eq!(
            store.integrity_check().expect("a check"),
            Vec::<String>::new()
        );
    }
}

#[test]
fn commits_group_switch_and_recover() {
    explore(60, All, commit_pipeline);
}

/// A sync fails at some moment: everybody returns, nobody after is told that it
/// committed, and readers go on with what was acknowledged.
fn poison() {
    let disk = SimDisk::new(1);
    let store = open(&disk, options());
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || {
                let mut txn = store.txn();
                let mut told = 0;
                for _ in 0..2 {
                    match add(&mut txn, &tree, 0, 1) {
                        Ok(()) => told += 1,
                        Err(error) => {
                            assert!(
                                matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::Io),
                                "{error}"
                            );
                            break;
                        }
                    }
                }
                told
            })
        })
        .collect();
    disk.fail(Fault {
        call: Some(Call::Sync),
        after: 0,
        for_good: true,
        error: FaultError::Io,
    });
    let told: i64 = threads
        .into_iter()
        .map(|t| t.join().expect("no panic"))
        .sum();
    let seen = read(&store, &tree, 0).unwrap_or(0);
    assert!(seen >= told, "{told} were told, {seen} are seen");
    let mut txn = store.txn();
    if told < 4 {
        assert!(add(&mut txn, &tree, 0, 1).is_err());
        assert_eq!(read(&store, &tree, 0).unwrap_or(0), seen, "readers go on");
    }
}

#[test]
fn poison_reaches_everybody() {
    explore(80, All, poison);
}

/// Two checkpoints are asked for, and one call fails: a sync may have lost what the
/// next one takes for written. Whoever waited for the failed one's turn must not go on
/// where it ended, and put a meta slot before pages that never arrived.
fn checkpoints_in_turn() {
    let disk = SimDisk::new(draw());
    let store = open(&disk, options());
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    disk.fail(Fault {
        call: [Some(Call::Sync), Some(Call::Write)][draw() as usize % 2],
        after: draw() % 12,
        for_good: false,
        error: FaultError::Io,
    });
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || {
                let told = add(&mut store.txn(), &tree, 0, 1);
                // Either may be the one that fails.
                let _ = store.checkpoint();
                told
            })
        })
        .collect();
    let told = threads.into_iter().map(|t| t.join().expect("no panic"));
    let told = told.filter(Result::is_ok).count();
    let left = [disk.crash_image(draw()), disk.crash_image(draw())];
    drop((store, tree));
    for disk in left.into_iter().chain([disk.crash_image(draw())]) {
        let store = open(&disk, options());
        let tree = store.family("t").expect("reads").expect("is there");
        let found = read(&store, &tree, 0).unwrap_or(0);
        assert!(found >= told as i64, "{told} were told, {found} is there");
        let problems = store.integrity_check().expect("a check");
        assert_eq!(problems, Vec::<String>::new());
    }
}

#[test]
fn nobody_goes_on_where_a_checkpoint_ended_writing() {
    explore(150, All, checkpoints_in_turn);
}

/// A snapshot is pinned while its versions are replaced, the rings of versions
/// turn over and the dead are reclaimed: two trees that change together are the
/// same in it however late it looks, and later snapshots never go back.
fn pinned_snapshot() {
    let store = Store::in_memory(options()).expect("opens");
    let trees = ["left", "right"].map(|name| {
        let made = store.create_family(name, KeyKind::Int);
        made.expect("a family")
    });
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let (store, trees) = (store.clone(), trees.clone());
            thread::spawn(move || {
                let mut txn = store.txn();
                for _ in 0..3 {
                    let named: Vec<&Tree> = trees.iter().collect();
                    txn.begin_statement(&named).expect("begins");
                    for tree in &trees {
                        let value = get(&mut txn, tree, 0).unwrap_or(0);
                        put(&mut txn, tree, 0, value + 1);
                    }
                    txn.commit().expect("commits");
                }
            })
        })
        .collect();
    let mut least = 0;
    for _ in 0..3 {
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        let first = get(&mut txn, &trees[0], 0).unwrap_or(0);
        assert!(first >= least, "went back from {least} to {first}");
        least = first;
        assert_eq!(get(&mut txn, &trees[1], 0).unwrap_or(0), first);
    }
    for writer in writers {
        writer.join().expect("no panic");
    }
    assert_eq!(read(&store, &trees[1], 0), Some(6));
}

#[test]
fn a_pinned_snapshot_keeps_its_answer() {
    explore(400, All, pinned_snapshot);
}

/// Each of two transactions reads what the other writes: under serializable at
/// most one commits, and one does unless both validated before either published.
fn write_skew() {
    let store = Store::in_memory(options()).expect("opens");
    let [left, right] =
        ["left", "right"].map(|name| store.create_family(name, KeyKind::Int).expect("a family"));
    let threads: Vec<_> = [(left.clone(), right.clone()), (right.clone(), left.clone())]
        .into_iter()
        .map(|(reads, writes)| {
            let store = store.clone();
            thread::spawn(move || {
                let mut txn = store.txn();
                txn.begin(Isolation::Serializable).expect("begins");
                let free = get(&mut txn, &reads, 0).is_none();
                if free {
                    put(&mut txn, &writes, 0, 1);
                }
                match txn.commit() {
                    Ok(()) => free,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                        false
                    }
                }
            })
        })
        .collect();
    let wrote = threads
        .into_iter()
        .map(|t| t.join().expect("no panic"))
        .filter(|wrote| *wrote)
        .count();
    let there = [&left, &right]
        .into_iter()
        .filter(|tree| read(&store, tree, 0).is_some())
        .count();
    assert_eq!(wrote, there);
    assert!(there <= 1, "both wrote what the other read as absent");
}

#[test]
fn of_two_that_read_what_the_other_writes_one_commits() {
    explore(300, All, write_skew);
}

/// IMMEDIATE, optimistic and autocommitted transactions add to one counter:
/// IMMEDIATE and statements never lose, and nothing is lost.
fn three_kinds() {
    let store = Store::in_memory(options()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let immediate = {
        let (store, tree) = (store.clone(), tree.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for _ in 0..2 {
                txn.begin_immediate().expect("begins");
                let value = get(&mut txn, &tree, 0).unwrap_or(0);
                put(&mut txn, &tree, 0, value + 1);
                txn.commit().expect("cannot lose");
            }
        })
    };
    let statements = {
        let (store, tree) = (store.clone(), tree.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for _ in 0..2 {
                add(&mut txn, &tree, 0, 1).expect("cannot lose");
            }
        })
    };
    let mut txn = store.txn();
    let mut committed = 0;
    for _ in 0..3 {
        txn.begin(Isolation::Serializable).expect("begins");
        let value = get(&mut txn, &tree, 0).unwrap_or(0);
        put(&mut txn, &tree, 0, value + 1);
        match txn.commit() {
            Ok(()) => committed += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
    immediate.join().expect("no panic");
    statements.join().expect("no panic");
    assert_eq!(read(&store, &tree, 0), Some(4 + committed));
}

#[test]
fn immediate_meets_optimistic_committers() {
    explore(200, All, three_kinds);
}

#[test]
fn who_is_ahead_tells_of_what_is_there() {
    explore(100, All, ahead::told_of_what_is_there);
}

#[test]
fn a_change_is_seen_after_those_who_read_what_was_there_before() {
    explore(60, All, elsewhere::readers_and_a_change);
}

/// Statements of three contexts wait for one tree's writer lock, in its seat, behind
/// it and without it, beside an explicit transaction that knows of no seat: all get
/// the lock, one at a time, and so nothing is lost.
fn one_tree() {
    let store = Store::in_memory(options()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let statements: Vec<_> = (0..3)
        .map(|_| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || {
                let mut txn = store.txn();
                for _ in 0..6 {
                    add(&mut txn, &tree, 0, 1).expect("cannot lose");
                }
            })
        })
        .collect();
    let mut txn = store.txn();
    for _ in 0..2 {
        txn.begin(Isolation::Snapshot).expect("begins");
        put(&mut txn, &tree, 1, 1);
        txn.commit().expect("nobody else writes this key");
    }
    for thread in statements {
        thread.join().expect("no panic");
    }
    assert_eq!(read(&store, &tree, 0), Some(18));
}

#[test]
fn writers_of_one_tree_take_turns() {
    explore(300, All, one_tree);
}

/// Two statements, each on a tree of its own, change two rows of it that are always
/// the same, and read those of the other's, while pages are written, evicted and freed.
/// Neither pins anything before it reads the other tree, which it then sees in one
/// state; its own stays whole without a pin.
fn late_pins() {
    let disk = SimDisk::new(1);
    let small = Options {
        cache_bytes: 24 * 4096,
        ..options()
    };
    let store = open(&disk, small);
    let [left, right] =
        ["left", "right"].map(|name| store.create_family(name, KeyKind::Int).expect("a family"));
    const FAR: i64 = 30;
    let mut txn = store.txn();
    for tree in [&left, &right] {
        txn.begin_statement(&[tree]).expect("begins");
        // Of four to a page.
        for key in 0..=FAR {
            put_wide(&mut txn, tree, key, 0);
        }
        txn.commit().expect("commits");
    }
    let threads = [(&left, &right), (&right, &left)].map(|(own, other)| {
        let (store, own, other) = (store.clone(), own.clone(), other.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for value in 1..=2 {
                txn.begin_statement(&[&own]).expect("begins");
                put_wide(&mut txn, &own, 0, value);
                let seen = get_wide(&mut txn, &other, 0);
                put_wide(&mut txn, &own, FAR, value);
                assert_eq!(get_wide(&mut txn, &other, FAR), seen);
                assert_eq!(get_wide(&mut txn, &own, FAR - 1), 0);
                txn.commit().expect("commits");
            }
        })
    });
    store.checkpoint().expect("a checkpoint");
    for thread in threads {
        thread.join().expect("no panic");
    }
    drop(txn);
    assert_eq!(
        store.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
}

fn put_wide(txn: &mut Txn, tree: &Tree, key: i64, value: u8) {
    let put = txn.put(tree, Key::Int(key), &[value; 900]);
    put.expect("a put");
}

fn get_wide(txn: &mut Txn, tree: &Tree, key: i64) -> u8 {
    let mut value = Vec::new();
    assert!(
        txn.get_into(tree, Key::Int(key), &mut value)
            .expect("a read")
    );
    value[0]
}

#[test]
fn statements_that_pin_nothing_lose_nothing() {
    explore(300, Fair, late_pins);
}

/// A cache much smaller than the data: readers walk and hold cursors while pages
/// are evicted, replaced and written, and their extents are used again.
fn eviction() {
    const ROWS: i64 = 24;
    let disk = SimDisk::new(1);
    let small = Options {
        cache_bytes: 0,
        checkpoint_bytes: 8 << 10,
        ..options()
    };
    let store = open(&disk, small);
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let filled = |mark: u8| vec![mark; 900];
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..ROWS {
        txn.put(&tree, Key::Int(key), &filled(0)).expect("a put");
    }
    txn.commit().expect("commits");
    store.checkpoint().expect("a checkpoint");
    let writer = {
        let (store, tree) = (store.clone(), tree.clone());
        thread::spawn(move || {
            let mut txn = store.txn();
            for mark in 1..=2 {
                txn.begin_statement(&[&tree]).expect("begins");
                for key in (0..ROWS).step_by(5) {
                    txn.put(&tree, Key::Int(key), &vec![mark; 900])
                        .expect("a put");
                }
                txn.commit().expect("commits");
                store.checkpoint().expect("a checkpoint");
            }
        })
    };
    for _ in 0..2 {
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        let mut cursor = txn.cursor(&tree).expect("a cursor");
        let mut more = cursor.seek(Seek::First).expect("a seek");
        let mark = cursor.value().expect("a value")[0];
        let mut rows = 0;
        while more {
            let expected = if cursor.key_int() % 5 == 0 { mark } else { 0 };
            assert_eq!(cursor.value().expect("a value"), filled(expected));
            rows += 1;
            more = cursor.next().expect("a step");
        }
        assert_eq!(rows, ROWS);
    }
    writer.join().expect("no panic");
    drop(txn);
    assert_eq!(
        store.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
}

#[test]
fn pages_are_evicted_and_extents_reused_under_readers() {
    explore(15, Fair, eviction);
}

/// A log that holds next to nothing, so that every writer waits for checkpoints,
/// IMMEDIATE and statements alike, and writes pages of them, which are all there after
/// the end of the process. No wait times out here: whoever held what a checkpoint needs
/// would be reported.
fn pressure() {
    let disk = SimDisk::new(1);
    let small = Options {
        cache_bytes: 64 << 12,
        checkpoint_bytes: 2 << 10,
        log_limit_bytes: Some(4 << 10),
        ..options()
    };
    let store = open(&disk, small.clone());
    let trees = ["left", "right"].map(|name| {
        let made = store.create_family(name, KeyKind::Int);
        made.expect("a family")
    });
    let writers: Vec<_> = trees
        .iter()
        .cloned()
        .map(|tree| {
            let store = store.clone();
            thread::spawn(move || {
                let mut txn = store.txn();
                for round in 0..3 {
                    txn.begin_statement(&[&tree]).expect("begins");
                    txn.put(&tree, Key::Int(round), &[7; 900]).expect("a put");
                    txn.commit().expect("commits");
                }
            })
        })
        .collect();
    let mut txn = store.txn();
    for round in 10..12 {
        txn.begin_immediate().expect("begins");
        for tree in &trees {
            txn.put(tree, Key::Int(round), &[8; 900]).expect("a put");
        }
        txn.commit().expect("commits");
    }
    for writer in writers {
        writer.join().expect("no panic");
    }
    let whole = |store: &Store, trees: &[Tree]| {
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        for tree in trees {
            assert_eq!(txn.count(tree).expect("counts"), 5);
            assert_eq!(get_wide(&mut txn, tree, 0), 7);
            assert_eq!(get_wide(&mut txn, tree, 11), 8);
        }
    };
    whole(&store, &trees);
    HELPED.fetch_add(store.stats().writes.helped, Relaxed);
    drop(txn);
    let killed = disk.kill_image();
    drop((store, trees));
    let store = open(&killed, small);
    let damage = store.integrity_check().expect("a check");
    assert_eq!(damage, Vec::<String>::new());
    let trees = ["left", "right"].map(|name| {
        let tree = store.family(name).expect("reads");
        tree.expect("is there")
    });
    whole(&store, &trees);
}

/// Pages of checkpoints that were written by who waited for them, in all runs.
static HELPED: AtomicU64 = AtomicU64::new(0);

#[test]
fn nobody_who_waits_holds_what_a_checkpoint_needs() {
    explore(60, Fair, pressure);
    assert!(HELPED.load(Relaxed) > 0, "nobody helped");
}

#[test]
fn a_page_freed_while_it_is_written_keeps_no_seat() {
    explore(60, Fair, seats::written_and_freed);
}

#[test]
fn grafts_meet_checkpoints_and_readers() {
    explore(1000, Fair, grafts::two_writers);
}

#[test]
fn writers_take_turns_whatever_the_limit_becomes() {
    let limited = std::sync::Arc::<turns::Limited>::default();
    let scenario = std::sync::Arc::clone(&limited);
    explore(40, Fair, move || turns::limited_writers(&scenario));
    assert!(limited.runs() > 0, "no run met a limit");
}

#[test]
fn leases_hide_nothing_and_lose_nothing() {
    explore(60, All, leases::statements_and_all_else);
}

#[test]
fn leases_free_nothing_that_a_reader_came_for() {
    explore(200, All, leases::a_reader_beside_one_writer);
}

#[test]
fn what_is_written_in_place_shows_in_no_snapshot() {
    for durability in [Durability::Normal, Durability::Full] {
        written_in_place(durability);
    }
}

fn written_in_place(durability: Durability) {
    in_place::IN_PLACE.store(0, std::sync::atomic::Ordering::Relaxed);
    explore(150, All, move || {
        in_place::snapshots_beside_who_writes_in_place(durability);
    });
    let commits = in_place::IN_PLACE.load(std::sync::atomic::Ordering::Relaxed);
    println!("{commits} commits in place, {durability:?}");
    assert!(commits > 0, "they are what this is about");
}

#[test]
fn held_trees_are_given_to_whoever_asks() {
    explore(60, All, holds::whoever_asks_gets_the_tree);
}

#[test]
fn nobody_waits_for_who_holds_a_tree() {
    explore(500, All, holds::nobody_waits_for_who_holds);
}

#[test]
fn trees_that_are_held_in_turn_are_seen_as_of_one_moment() {
    explore(400, All, holds::trees_are_taken_away_on_the_way_to_the_next);
}

#[test]
fn a_tree_that_was_held_is_seen_as_of_one_moment() {
    explore(400, All, holds::what_was_held_is_seen_as_of_one_moment);
}

#[test]
fn what_is_relied_on_without_a_snapshot_does_not_change() {
    explore(200, All, holds::what_is_relied_on_stays_as_it_was_told);
}
