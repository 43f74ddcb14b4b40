//! The store on a disk whose calls fail: each call of fixed workloads in turn,
//! once or for good, with an I/O error or a full disk; reads and syncs apart.
//!
//! Every failure is a typed error. Either the store goes on and what failed had
//! no effect, or all writing has ended with the first cause and reading goes on.
//! Nothing acknowledged is lost: neither where the process simply opens the
//! store again, nor after a `kill -9` or a power cut.
//!
//! `FULGURITE_SIM_FACTOR=20` runs twenty times as many workloads.

use super::{Trace, assert_no_background_panic, options, seeds, watch_background};
use fulgurite_sim::kv::Life;
use fulgurite_sim::kv::Oracle;
use fulgurite_sim::{Call, Fault, FaultError, Rng, SimDisk};
use fulgurite_store::ErrorKind;

const STEPS: usize = 16;

#[derive(Default)]
struct Tally {
    runs: usize,
    errors: usize,
    poisoned: usize,
}

fn run_with(seed: u64, fault: Fault, tally: &mut Tally) {
    let _trace = Trace(format!("seed {seed}, {fault:?}"));
    let mut rng = Rng::new(seed ^ fault.after << 32);
    let options = options();
    let disk = SimDisk::new(seed);
    disk.fail(fault);
    let mut oracle = Oracle::default();
    let mut life = Life::new(&disk, &options, &mut oracle, seed);
    tally.runs += 1;
    for _ in 0..STEPS {
        let Err(error) = life.step_or_start() else {
            continue;
        };
        tally.errors += 1;
        let known = [
            ErrorKind::Io,
            ErrorKind::Full,
            ErrorKind::CantOpen,
            ErrorKind::Poisoned,
        ];
        assert!(known.contains(&error.kind()), "{:?}: {error}", error.kind());
        let reads = fault.call != Some(Call::Read);
        match life.look_around(reads) {
            Ok(false) => {}
            Ok(true) => {
                tally.poisoned += 1;
                break;
            }
            Err(error) => panic!("reading does not go on: {error}"),
        }
    }
    drop(life);
    disk.heal();
    let disk = match rng.below(3) {
        0 => disk,
        1 => disk.kill_image(),
        _ => disk.crash_image(rng.bits()),
    };
    assert!(Life::new(&disk, &options, &mut oracle, rng.bits()).run(4));
    let disk = disk.crash_image(rng.bits());
    assert!(Life::new(&disk, &options, &mut oracle, rng.bits()).run(0));
    assert_no_background_panic();
}

/// How many calls the workload makes: those that change something.
fn calls_of(seed: u64) -> u64 {
    let disk = SimDisk::new(seed);
    let mut oracle = Oracle::default();
    let mut life = Life::new(&disk, &options(), &mut oracle, seed);
    for _ in 0..STEPS {
        life.step_or_start().expect("nothing fails");
    }
    drop(life);
    disk.calls()
}

#[test]
fn each_call_fails_once_or_for_good() {
    watch_background();
    let mut tally = Tally::default();
    for seed in seeds(0, 4) {
        for after in 0..calls_of(seed) {
            for error in [FaultError::Io, FaultError::NoSpace] {
                for for_good in [false, true] {
                    let fault = Fault {
                        call: None,
                        after,
                        for_good,
                        error,
                    };
                    run_with(seed, fault, &mut tally);
                }
            }
        }
    }
    let Tally {
        runs,
        errors,
        poisoned,
    } = tally;
    println!("{runs} runs, {errors} errors, {poisoned} times writing ended");
    assert!(runs >= 500 && poisoned >= 50 && errors > poisoned);
}

#[test]
fn failing_syncs_end_all_writing() {
    watch_background();
    let mut tally = Tally::default();
    for seed in seeds(1_000, 6) {
        for after in 0..30 {
            let fault = Fault {
                call: Some(Call::Sync),
                after,
                for_good: after % 2 == 0,
                error: FaultError::Io,
            };
            run_with(seed, fault, &mut tally);
        }
    }
    println!("{} runs, {} poisoned", tally.runs, tally.poisoned);
    assert!(tally.poisoned >= 60);
}

#[test]
fn failing_reads_are_reported_and_change_nothing() {
    watch_background();
    let mut tally = Tally::default();
    for seed in seeds(2_000, 6) {
        for after in 0..40 {
            let fault = Fault {
                call: Some(Call::Read),
                after,
                for_good: after % 4 == 0,
                error: FaultError::Io,
            };
            run_with(seed, fault, &mut tally);
        }
    }
    println!("{} runs, {} errors", tally.runs, tally.errors);
    assert!(tally.errors >= 60);
}

/// The log's files are made under a passing name, which no error says later.
#[test]
fn failures_name_the_file_at_fault() {
    let disk = SimDisk::new(1);
    let mut oracle = Oracle::default();
    let mut life = Life::new(&disk, &options(), &mut oracle, 1);
    life.start().expect("nothing fails");
    // The first commit makes the log.
    life.create_family("a family").expect("nothing fails");
    disk.fail(Fault {
        call: Some(Call::Write),
        after: 0,
        for_good: true,
        error: FaultError::Io,
    });
    let error = life
        .create_family("another family")
        .expect_err("no write works");
    assert!(error.message().contains("p.db-wal0"), "{error}");
}
