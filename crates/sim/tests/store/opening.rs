//! What opening and closing do to the files, and power cuts among it.
//!
//! The log is made for the first commit, and the last checkpoint begins no new
//! generation of it; a database that is only read is not touched.

use super::{PATH, Trace, open, options, seeds};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::{Durability, Key, KeyKind, Result, Store, Tree};
use std::path::Path;

fn put(store: &Store, tree: &Tree, key: i64) -> Result<()> {
    let mut txn = store.txn();
    txn.begin_statement(&[tree])?;
    txn.put(tree, Key::Int(key), b"x")?;
    txn.commit()
}

/// The keys from 0 on that are there, without a gap.
fn count(store: &Store) -> Result<i64> {
    let tree = store.family("t")?.expect("is there");
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut value = Vec::new();
    let mut key = 0;
    while txn.get_into(&tree, Key::Int(key), &mut value)? {
        key += 1;
    }
    assert!(
        !txn.get_into(&tree, Key::Int(key + 1), &mut value)?,
        "a gap"
    );
    Ok(key)
}

/// Closed well, with one key.
fn prepared() -> SimDisk {
    let disk = SimDisk::new(1);
    let store = open(&disk, &options()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    put(&store, &tree, 0).expect("commits");
    drop(tree);
    drop(store);
    disk
}

#[test]
fn reading_touches_nothing() {
    let disk = prepared();
    let calls = disk.calls();
    let store = open(&disk, &options()).expect("opens");
    assert_eq!(count(&store).expect("reads"), 1);
    store.tick().expect("nothing fails");
    store.checkpoint().expect("nothing fails");
    drop(store);
    assert_eq!(disk.calls(), calls);
    assert_eq!(disk.files(), [Path::new(PATH)]);
}

/// How many calls of a kind a life of one commit makes.
fn calls_of_a_life(call: Call) -> u64 {
    let makes_more_than = |after: &u64| {
        let disk = prepared();
        disk.fail(Fault {
            call: Some(call),
            after: *after,
            for_good: true,
            error: FaultError::Io,
        });
        // It ends with the failure, which is counted.
        let _ = live(&disk, &options(), 1, 1);
        disk.faults_met() > 0
    };
    (0..).take_while(makes_more_than).count() as u64
}

/// The last checkpoint made the log's next generation ready, for commits that had ended:
/// a second file, filled with zeros, synced and removed again, which took more time than
/// all the rest of a short life.
#[test]
fn a_life_of_one_commit_makes_seven_syncs() {
    // The log's file, the record, the pages, and the two copies of the meta page.
    assert_eq!(calls_of_a_life(Call::Sync), 5);
    // The log's name when it is made, and when it is removed.
    assert_eq!(calls_of_a_life(Call::SyncDir), 2);
    assert_eq!(calls_of_a_life(Call::Rename), 1);
    assert_eq!(calls_of_a_life(Call::Remove), 1);
}

/// Whether the database's file still has its name could not be told, which was taken for
/// a yes: closing then removed the log of another database that had been put in its place.
#[test]
fn a_log_stays_where_nobody_can_tell_whose_it_is() {
    let disk = prepared();
    let store = open(&disk, &options()).expect("opens");
    let tree = store.family("t").expect("reads").expect("is there");
    put(&store, &tree, 1).expect("commits");
    disk.fail(Fault {
        call: Some(Call::Read),
        after: 0,
        for_good: false,
        error: FaultError::Io,
    });
    drop(tree);
    drop(store);
    assert_eq!(disk.faults_met(), 1);
    assert!(disk.files().contains(&format!("{PATH}-wal0").into()));
    let disk = disk.crash_image(1);
    let store = open(&disk, &options()).expect("opens");
    assert_eq!(count(&store).expect("reads"), 2);
    drop(store);
    assert_eq!(disk.files(), [Path::new(PATH)]);
}

/// Opens, commits a few times and closes, with the power cut at every call in turn:
/// what was acknowledged is there, and what comes after it goes on from it, through a
/// second cut too.
#[test]
fn a_short_life_survives_power_cuts() {
    for seed in seeds(5_000, 3) {
        for durability in [Durability::Full, Durability::Normal] {
            let mut call = 0;
            while short_life(seed, durability, call) {
                call += 1;
            }
            assert!(call > 10, "{call} calls");
        }
    }
}

/// A life that is closed with nothing left to write: its log must not go before its mark.
fn live_idly(disk: &SimDisk) {
    let run = || -> Result<()> {
        let store = open(disk, &options())?;
        let first = count(&store)?;
        let tree = store.family("t")?.expect("is there");
        // Room in the log, and nothing committed.
        let mut txn = store.txn();
        txn.begin_immediate()?;
        txn.put(&tree, Key::Int(first), b"x")?;
        txn.rollback();
        put(&store, &tree, first)?;
        store.checkpoint()?;
        put(&store, &tree, first + 1)?;
        store.checkpoint()
    };
    // It ends with the power, which the caller looks at.
    let _ = run();
}

/// A database that needs its log says so (`checkpoint/mark.rs`); wherever the power is
/// cut, none says so whose log is gone, and a life that recovers neither.
#[test]
fn no_power_cut_leaves_a_log_missing() {
    for seed in seeds(9_000, 3) {
        let mut call = 0;
        loop {
            let _trace = Trace(format!("seed {seed}, cut at call {call}"));
            let disk = prepared();
            disk.stop_at(disk.calls() + call);
            live_idly(&disk);
            let was_cut = disk.is_stopped();
            // One after a power cut, and one after the end of the process, from which the
            // system has what was not synced.
            let later = [disk.crash_image(seed), disk.kill_image(), disk.kill_image()];
            for (second, at) in later.iter().zip([call / 3, call / 3, call % 13]) {
                second.stop_at(second.calls() + at);
                live_idly(second);
            }
            for disk in later.into_iter().chain([disk]) {
                for image in 0..3 {
                    let disk = disk.crash_image(seed + image);
                    let found = count(&open(&disk, &options()).expect("opens"));
                    assert!(found.expect("reads") >= 1);
                }
            }
            call += 1;
            if !was_cut {
                break;
            }
        }
        assert!(call > 20, "{call} calls");
    }
}

/// False where the life ended before that call.
fn short_life(seed: u64, durability: Durability, call: u64) -> bool {
    let _trace = Trace(format!("seed {seed}, {durability:?}, cut at call {call}"));
    let options = fulgurite_store::Options {
        durability,
        ..options()
    };
    let disk = prepared();
    disk.stop_at(disk.calls() + call);
    let acked = live(&disk, &options, 1, 3);
    let was_cut = disk.is_stopped();
    let kept = match (was_cut, durability) {
        (true, Durability::Full) => acked,
        (true, _) => 1,
        (false, _) => 4,
    };
    // The disk after the cut, and once more after a cut in the second life.
    let disk = disk.crash_image(seed);
    let second = disk.crash_image(seed);
    let found = count(&open(&disk, &options).expect("opens")).expect("reads");
    assert!(found >= kept, "{found} of {kept}");
    second.stop_at(second.calls() + call / 2);
    let acked = live(&second, &options, found, 3).max(found);
    let kept = match durability {
        Durability::Full => acked,
        _ => kept,
    };
    let third = second.crash_image(seed + 1);
    let found = count(&open(&third, &options).expect("opens")).expect("reads");
    assert!(found >= kept, "{found} of {kept} after a second cut");
    was_cut
}

/// Commits so many keys from `first` on and closes. Returns how many keys were
/// acknowledged in the end.
fn live(disk: &SimDisk, options: &fulgurite_store::Options, first: i64, count: i64) -> i64 {
    let mut acked = 0;
    let mut run = || -> Result<()> {
        let store = open(disk, options)?;
        let tree = store.family("t")?.expect("is there");
        for key in first..first + count {
            put(&store, &tree, key)?;
            acked = key + 1;
        }
        Ok(())
    };
    // It ends with the power, which the caller looks at.
    let _ = run();
    acked
}
