//! Transactions over several files on a disk that loses power or fails.
//!
//! A life is a row of transactions by one thread, each over one to three files, with
//! checkpoints and reopenings between them, and some too large for the log. Wherever it
//! ends, the files together are as they were after one of its transactions: after the last
//! that was acknowledged, or the one behind it. In which order they are opened again does
//! not matter, nor that the power goes a second time meanwhile.

mod life;

use fulgurite_disk::Disk;
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::{Durability, ErrorKind, InDoubt, Options, Result, Store};
use life::{FILES, State, Step, check, draw, live, path, recover, state};
use std::path::PathBuf;
use std::sync::Arc;

fn factor() -> u64 {
    let asked = std::env::var("FULGURITE_SIM_FACTOR").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn wherever_the_power_goes_all_files_have_a_transaction_or_none() {
    let mut cuts = 0;
    for seed in 0..2 * factor() {
        let (steps, mut rng) = draw(seed, 14);
        let whole = SimDisk::new(seed);
        assert_eq!(
            live(&whole, &steps, Durability::Full),
            steps.len(),
            "seed {seed}"
        );
        let calls = whole.calls();
        for call in 0..calls {
            let disk = SimDisk::new(seed);
            disk.stop_at(call);
            let acknowledged = live(&disk, &steps, Durability::Full);
            let left = disk.crash_image(rng.bits());
            let found = recover(left, &mut rng);
            check(
                &steps,
                acknowledged,
                &found,
                &format!("seed {seed}, call {call} of {calls}"),
            );
            cuts += 1;
        }
    }
    println!("{cuts} power cuts");
    assert!(cuts > 300, "{cuts}");
}

/// Commits over several files are synced in `normal`, too, and take along what is before them.
#[test]
fn without_syncs_of_single_commits_those_over_several_files_stay_whole() {
    for seed in 100..100 + factor() {
        let (steps, mut rng) = draw(seed, 14);
        let whole = SimDisk::new(seed);
        live(&whole, &steps, Durability::Normal);
        for call in 0..whole.calls() {
            let disk = SimDisk::new(seed);
            disk.stop_at(call);
            let acknowledged = live(&disk, &steps, Durability::Normal);
            let found = recover(disk.crash_image(rng.bits()), &mut rng);
            let story = format!("seed {seed}, call {call}");
            // Up to which transaction each file has come: those of one file may be lost.
            let reached: Vec<u64> = (0..FILES)
                .map(|file| reached(&steps, file, &found[file]).expect(&story))
                .collect();
            for step in steps.iter().filter(|step| step.writes.len() > 1) {
                let has = |file: &usize| reached[*file] >= step.number;
                let all = step.writes.keys().all(has);
                let is_acknowledged = step.number <= acknowledged as u64;
                assert!(
                    all || !is_acknowledged && !step.writes.keys().any(has),
                    "{story}, {acknowledged} acknowledged, {}: {reached:?}",
                    step.number
                );
            }
        }
    }
}

/// The last transaction after which the file held this.
fn reached(steps: &[Step], file: usize, found: &State) -> Option<u64> {
    let mut states = vec![State::new(); FILES];
    let mut last = (states[file] == *found).then_some(0);
    for step in steps {
        step.apply(&mut states);
        if states[file] == *found {
            last = Some(step.number);
        }
    }
    last
}

#[test]
fn whatever_call_fails_all_files_have_a_transaction_or_none() {
    let mut failures = 0;
    for seed in 200..200 + factor() {
        let (steps, mut rng) = draw(seed, 12);
        let whole = SimDisk::new(seed);
        live(&whole, &steps, Durability::Full);
        for after in 0..whole.calls() {
            for call in [None, Some(Call::Sync), Some(Call::Read)] {
                let disk = SimDisk::new(seed);
                disk.fail(Fault {
                    call,
                    after,
                    for_good: rng.one_in(3),
                    error: [FaultError::Io, FaultError::NoSpace][rng.index(2)],
                });
                let acknowledged = live(&disk, &steps, Durability::Full);
                if disk.faults_met() == 0 {
                    continue;
                }
                failures += 1;
                disk.heal();
                let left = match rng.one_in(2) {
                    true => disk.crash_image(rng.bits()),
                    false => disk.kill_image(),
                };
                let found = recover(left, &mut rng);
                let story = format!("seed {seed}, {call:?} {after}");
                check(&steps, acknowledged, &found, &story);
            }
        }
    }
    println!("{failures} failures");
    assert!(failures > 200, "{failures}");
}

fn open_as(disk: &SimDisk, path: &str, in_doubt: InDoubt) -> Result<Option<State>> {
    let options = Options {
        in_doubt,
        create: false,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), path, options)?;
    let tree = store.family("t")?;
    Ok(tree.map(|tree| state(&store, &tree)))
}

/// A file that was left in doubt is not opened without the one that knows, unless its
/// owner decides; it finds that one where both were moved to.
#[test]
fn who_coordinated_is_asked_wherever_it_is() {
    let write = |number, keys: &[usize]| Step {
        number,
        immediate: false,
        writes: keys.iter().map(|file| (*file, vec![(1, 9)])).collect(),
        checkpoint: None,
        reopens: false,
    };
    let steps = [write(1, &[0]), write(2, &[1]), write(3, &[0, 1])];
    let whole = SimDisk::new(5);
    live(&whole, &steps, Durability::Full);
    let (mut doubts, mut committed) = (0, 0);
    for call in 0..whole.calls() {
        let disk = SimDisk::new(5);
        disk.stop_at(call);
        live(&disk, &steps, Durability::Full);
        let left = disk.crash_image(call).settled_image();
        if left.contents(&path(0)).is_none() || left.contents(&path(1)).is_none() {
            continue;
        }
        let [moved, alone] = [left.fork(), left.fork()];
        for file in left.files() {
            let name = file.file_name().expect("a name").to_owned();
            let is_coordinator = name.to_string_lossy().starts_with("0.db");
            moved
                .rename(&file, &PathBuf::from("e").join(&name))
                .expect("moves");
            if is_coordinator {
                alone.remove(&file).expect("is lost");
            }
        }
        let Err(lost) = open_as(&alone.fork(), "d/1.db", InDoubt::Ask) else {
            continue;
        };
        if lost.kind() != ErrorKind::CantOpen || !lost.message().contains("0.db, which alone knows")
        {
            panic!("{lost}");
        }
        doubts += 1;
        let at = |disk: &SimDisk, path, in_doubt| {
            let state = open_as(&disk.fork(), path, in_doubt).expect("opens");
            state.expect("a family")[&1].0
        };
        assert_eq!(at(&alone, "d/1.db", InDoubt::Commit), 3);
        assert_eq!(at(&alone, "d/1.db", InDoubt::RollBack), 2);
        let known = at(&left, "d/1.db", InDoubt::Ask);
        assert_eq!(at(&moved, "e/1.db", InDoubt::Ask), known);
        assert_eq!(
            at(&left, "d/0.db", InDoubt::Ask),
            if known == 3 { 3 } else { 1 }
        );
        committed += u64::from(known == 3);
    }
    assert!(
        committed > 0 && doubts > committed,
        "{committed} of {doubts}"
    );
}
