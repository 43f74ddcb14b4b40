//! The power cut under several committers: who runs next follows from a seed, the
//! disk keeps a journal of the run, and the power is cut at each of its moments.
//!
//! After every cut what was acknowledged by then is there, each transaction is
//! whole or absent, the structure is sound, and the store can be written again. Of who
//! commits in `normal` what was acknowledged is there when the process ends instead, after
//! a cut whole transactions; also where others commit in `full` beside.
//! That coming back is done by the store on ordinary threads: only one is at work.

mod common;

use common::Schedulers::{All, Fair};
use common::{PATH, explore, open, options};
use fulgurite_sim::{SimDisk, SimDriver};
use fulgurite_store::{Key as RealKey, Options as RealOptions, Store as RealStore};
use fulgurite_store_model::{Durability, Isolation, Key, KeyKind, Options, Store, Tree};
use shuttle::thread;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const WRITERS: i64 = 3;
const COMMITS: i64 = 3;
const ALL_FULL: [bool; WRITERS as usize] = [true; WRITERS as usize];
/// Every how many moments the power is cut.
const CUT_EVERY: usize = 3;
const FAMILIES: [&str; 2] = ["left", "right"];

static CUTS: AtomicU64 = AtomicU64::new(0);

/// An acknowledged commit: the number of calls until then, whose, which.
type Acknowledged = (u64, i64, i64);

/// Writes its number into both families, as one transaction of either kind.
fn write(
    disk: &SimDisk,
    store: &Store,
    trees: &[Tree; 2],
    (writer, durability): (i64, Durability),
) -> Vec<Acknowledged> {
    let mut txn = store.txn();
    txn.set_durability(durability);
    let mut told = Vec::new();
    for commit in 1..=COMMITS {
        if (writer + commit) % 2 == 0 {
            let [left, right] = trees;
            txn.begin_statement(&[left, right]).expect("begins");
        } else {
            txn.begin(Isolation::Snapshot).expect("begins");
        }
        for tree in trees {
            let value = commit.to_le_bytes();
            txn.put(tree, Key::Int(writer), &value).expect("a put");
        }
        txn.commit()
            .expect("nobody else writes its keys, so it cannot lose");
        told.push((disk.calls(), writer, commit));
    }
    told
}

/// Those that `full` says commit so, the others as in `normal`.
fn committers(settings: &Options, full: [bool; WRITERS as usize]) {
    let disk = SimDisk::new(1);
    let store = open(&disk, settings.clone());
    let trees = FAMILIES.map(|name| {
        let made = store.create_family(name, KeyKind::Int);
        made.expect("a family")
    });
    // A cut in `normal` might take the families with it.
    store.checkpoint().expect("a checkpoint");
    let before = disk.fork();
    disk.record();
    let told = Arc::new(Mutex::new(Vec::new()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (disk, store, trees) = (disk.clone(), store.clone(), trees.clone());
            let told = Arc::clone(&told);
            let durability = match full[writer as usize] {
                true => Durability::Full,
                false => Durability::Normal,
            };
            thread::spawn(move || {
                let own = write(&disk, &store, &trees, (writer, durability));
                told.lock().expect("no panic").extend(own);
            })
        })
        .collect();
    store.checkpoint().expect("a checkpoint");
    for writer in writers {
        writer.join().expect("no panic");
    }
    store.checkpoint().expect("a checkpoint");
    let journal = disk.recorded(before);
    drop((store, trees));
    let told = std::mem::take(&mut *told.lock().expect("no panic"));
    let mut replay = journal.replay();
    while let Some(moment) = replay.next_moment() {
        if moment.index % CUT_EVERY == 0 {
            let least = |writer| {
                let own = told
                    .iter()
                    .filter(|(from, of, _)| *of == writer && *from <= moment.call);
                own.map(|(_, _, commit)| *commit).max().unwrap_or(0)
            };
            let least = [least(0), least(1), least(2)];
            let cut = moment.disk.crash_image(moment.index as u64);
            let durable = std::array::from_fn(|writer| least[writer] * i64::from(full[writer]));
            come_back(&cut, &durable);
            if durable != least {
                come_back(&moment.disk.kill_image(), &least);
            }
            CUTS.fetch_add(1, Relaxed);
        }
    }
}

fn come_back(disk: &SimDisk, least: &[i64; WRITERS as usize]) {
    let options = || RealOptions {
        cache_bytes: 1 << 20,
        driver: Some(SimDriver::new(disk)),
        ..RealOptions::default()
    };
    let open = || RealStore::open_on(Arc::new(disk.clone()), Path::new(PATH), options());
    let store = open().expect("opens after a power cut");
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
    let trees = FAMILIES.map(|name| store.family(name).expect("reads").expect("is there"));
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    for (writer, least) in (0..).zip(least) {
        let found = trees.each_ref().map(|tree| {
            let mut value = Vec::new();
            let there = txn.get_into(tree, RealKey::Int(writer), &mut value);
            let there = there.expect("reads");
            there.then(|| i64::from_le_bytes(value.as_slice().try_into().expect("a number")))
        });
        assert_eq!(found[0], found[1], "half a transaction of writer {writer}");
        let found = found[0].unwrap_or(0);
        assert!(
            (*least..=COMMITS).contains(&found),
            "writer {writer} was told {least}, {found} is there"
        );
    }
    txn.rollback();
    txn.begin_statement(&[&trees[0]]).expect("begins");
    txn.put(&trees[0], RealKey::Int(99), b"again")
        .expect("a put");
    txn.commit().expect("commits");
    drop((txn, trees, store));
    let store = open().expect("opens again");
    let tree = store.family(FAMILIES[0]).expect("reads").expect("is there");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    assert!(
        txn.get_into(&tree, RealKey::Int(99), &mut value)
            .expect("reads")
    );
}

#[test]
fn groups_of_committers_lose_nothing() {
    explore(40, All, || committers(&options(), ALL_FULL));
    println!("{} power cuts under several committers", CUTS.load(Relaxed));
}

/// Writers wait for the checkpoint in the background, whose generation switches
/// lie among their commits.
#[test]
fn committers_that_wait_for_the_log_lose_nothing() {
    let small = Options {
        cache_bytes: 64 << 12,
        checkpoint_bytes: 256,
        log_limit_bytes: Some(1 << 10),
        ..options()
    };
    explore(20, Fair, move || committers(&small, ALL_FULL));
}

/// Nobody leads: each writes its own record, and the process may end, or the power
/// fail, where a later one is there already.
#[test]
fn committers_in_normal_lose_nothing_with_the_process() {
    let normal = Options {
        durability: Durability::Normal,
        ..options()
    };
    let small = Options {
        cache_bytes: 64 << 12,
        checkpoint_bytes: 256,
        log_limit_bytes: Some(1 << 10),
        ..normal.clone()
    };
    let none = [false; WRITERS as usize];
    explore(20, All, move || committers(&normal, none));
    explore(10, Fair, move || committers(&small, none));
}

/// The log goes over from `full` to `normal` while they commit; two sync what they have
/// committed then, one does not.
#[test]
fn committers_in_full_beside_one_in_normal_lose_nothing() {
    let small = Options {
        cache_bytes: 64 << 12,
        checkpoint_bytes: 256,
        log_limit_bytes: Some(1 << 10),
        ..options()
    };
    let one_not = [true, false, true];
    explore(40, All, move || committers(&options(), one_not));
    explore(20, Fair, move || committers(&small, one_not));
}
