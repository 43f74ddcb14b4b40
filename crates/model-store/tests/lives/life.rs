//! One life of a process: writers, readers and checkpoints at once.

use super::common::open;
use super::history::{Front, History, SHARED, WRITERS};
use super::tally::FAULTS;
use super::world::World;
use super::writer::Writer;
use fulgurite_sim::{Fault, Journal, Rng, SimDisk};
use fulgurite_store_model::{ErrorKind, KeyKind, Options};
use shuttle::thread;
use std::sync::atomic::Ordering::Relaxed;

/// Transactions of a writer.
const STEPS: usize = 5;
const CHECKPOINTS: usize = 2;
const READINGS: usize = 3;

/// What was done.
pub struct Life {
    pub histories: [History; WRITERS],
    pub journal: Journal,
    /// How far the writers had come when a checkpoint began, with the call from which
    /// on it covers that.
    pub covered: Vec<(u64, Front)>,
}

pub fn live(options: &Options, fault: Option<Fault>, rng: &mut Rng) -> Life {
    let disk = SimDisk::new(rng.bits());
    let store = open(&disk, options.clone());
    let made = |name, kind| store.create_family(name, kind).expect("a family");
    let trees = [
        made(SHARED[0], KeyKind::Int),
        made(SHARED[1], KeyKind::Bytes),
    ];
    // A cut in `normal` might take the families with it.
    store.checkpoint().expect("a checkpoint");
    let before = disk.fork();
    disk.record();
    if let Some(fault) = fault {
        disk.fail(fault);
    }
    let world = World::new(disk.clone(), store, trees, fault.is_some());
    let mut threads: Vec<_> = (0..WRITERS)
        .map(|own| {
            let writer = Writer::new(world.clone(), own, rng.bits());
            thread::spawn(move || writer.run(STEPS))
        })
        .collect();
    let reading = world.clone();
    threads.push(thread::spawn(move || read(&reading)));
    let keeping = world.clone();
    threads.push(thread::spawn(move || keep(&keeping)));
    let mut covered = Vec::new();
    for _ in 0..CHECKPOINTS {
        let known = world.known();
        match world.store.checkpoint() {
            Ok(()) => covered.push((disk.calls(), known)),
            Err(error) => world.may_fail(&error),
        }
    }
    for thread in threads {
        thread.join().expect("no panic");
    }
    FAULTS.fetch_add(disk.faults_met(), Relaxed);
    disk.heal();
    look_around(&world);
    Life {
        histories: world.into_histories(),
        journal: disk.recorded(before),
        covered,
    }
}

/// A snapshot stays what it is, and the next one is no older.
fn read(world: &World) {
    let mut last = Front::default();
    for _ in 0..READINGS {
        let mut txn = world.store.txn();
        let looked = txn.begin_read().and_then(|()| world.look(&mut txn));
        let looked = looked.and_then(|front| {
            world.shown(&front);
            thread::yield_now();
            assert_eq!(world.look(&mut txn)?, front, "a snapshot stays");
            Ok(front)
        });
        match looked {
            Ok(front) => {
                let older = front.iter().zip(&last).any(|(now, before)| now < before);
                assert!(!older, "{front:?} was shown after {last:?}");
                last = front;
            }
            Err(error) => world.may_fail(&error),
        }
    }
}

/// A snapshot is kept, and the structure is sound meanwhile.
fn keep(world: &World) {
    let mut txn = world.store.txn();
    let kept = txn.begin_read().and_then(|()| world.look(&mut txn));
    for _ in 0..READINGS {
        match world.store.integrity_check() {
            Ok(problems) => assert!(world.faulted || problems.is_empty(), "{problems:?}"),
            Err(error) => world.may_fail(&error),
        }
    }
    match kept.and_then(|front| Ok((front, world.look(&mut txn)?))) {
        Ok((before, now)) => assert_eq!(before, now, "a snapshot stays"),
        Err(error) => world.may_fail(&error),
    }
}

/// When the threads have ended: reading goes on, the structure is sound, and so does
/// writing, unless a failure ended it.
fn look_around(world: &World) {
    let mut txn = world.store.txn();
    let looked = txn.begin_read().and_then(|()| world.look(&mut txn));
    looked.expect("reading goes on");
    drop(txn);
    let problems = world.store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
    if let Err(error) = world.store.txn().begin_immediate() {
        let ended = world.faulted && error.kind() == ErrorKind::Poisoned;
        assert!(ended, "{error}");
    }
}
