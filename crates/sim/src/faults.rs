//! Workloads on a disk whose calls fail: once or for good, with an I/O error or
//! a full disk, reads and syncs apart, and writes that lie.
//!
//! Every failure is a typed error. Either the database goes on and what failed
//! had no effect, or all writing has ended with the first cause and reading goes
//! on. Nothing acknowledged is lost: neither where the process simply opens the
//! database again, nor after a `kill -9` or a power cut; and not when the power
//! goes in the next life or after it, whatever a failed sync let that one see.

use fulgurite_store::{Durability, ErrorKind, Options};

use crate::kv::{self, KeyValue, Life};
use crate::proof::{Case, Failure, Kind, Lives, Tally, guarded, step_rng};
use crate::sql::{self, Session, Sql};
use crate::together::{self, Together};
use crate::{Call, Fault, FaultError, Oracle, Rng, SimDisk};

/// What one faulted life came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outcome {
    /// Steps that were tried.
    pub steps: u64,
    /// Steps that failed.
    pub errors: u64,
    /// Whether all writing ended.
    pub poisoned: bool,
}

/// The fault that a seed stands for, in a workload of so many calls.
pub fn fault_of(rng: &mut Rng, calls: u64) -> Fault {
    let call = match rng.below(8) {
        0 => Some(Call::Read),
        1 => Some(Call::Sync),
        2 => Some(Call::Write),
        3 => Some(Call::SyncDir),
        _ => None,
    };
    let share = if call.is_some() { 3 } else { 1 };
    Fault {
        call,
        after: rng.below(calls / share + 1),
        for_good: rng.one_in(2),
        error: [FaultError::Io, FaultError::NoSpace][rng.index(2)],
    }
}

/// Runs a case with a call failing, comes back after it, and checks.
///
/// # Errors
/// What was wrong.
pub fn prove(case: &Case, fault: Fault, tally: &mut Tally) -> Result<Outcome, Failure> {
    let at = format!("seed {}, {:?}, {fault:?}", case.seed, case.kind);
    let options = Options {
        durability: Durability::Full,
        ..case.options()
    };
    let disk = SimDisk::new(case.seed);
    disk.fail(fault);
    let outcome = guarded(&at, || match case.kind {
        Kind::KeyValue => key_value(&disk, &options, case, fault),
        Kind::Sql => sql(&disk, &options, case, fault),
        Kind::Together => together(&disk, &options, case, fault),
    })?;
    tally.faults += disk.faults_met();
    tally.faulted_steps += outcome.steps;
    Ok(outcome)
}

/// How a faulted life ends.
enum End {
    /// It is closed, as far as that goes.
    Closed,
    /// With its process, or the power.
    Left(SimDisk),
}

fn end_of(disk: &SimDisk, rng: &mut Rng) -> End {
    match rng.below(4) {
        0 => End::Closed,
        1 => End::Left(disk.kill_image()),
        _ => End::Left(disk.crash_image(rng.bits())),
    }
}

/// Comes back on what was left.
fn come_back<L: Lives>(
    disk: &SimDisk,
    end: End,
    options: &Options,
    mut oracle: L::Oracle,
    rng: &mut Rng,
) {
    disk.heal();
    let mut disk = match end {
        End::Closed => disk.clone(),
        End::Left(image) => image,
    };
    let (seed, steps) = (rng.bits(), [1 << 20, 1 << 21]);
    let cut = rng.one_in(2);
    if cut {
        disk.stop_at(disk.calls() + rng.below(60));
    }
    let done = L::live(&disk, options, &mut oracle, None, seed, &steps);
    assert!(done || cut, "a life ended early without a power cut");
    disk.power_off();
    disk = disk.crash_image(rng.bits());
    oracle.power_cut();
    assert!(L::live(&disk, options, &mut oracle, None, seed, &[]));
}

/// Whether a call that failed leads to such an error.
fn is_known(kind: ErrorKind) -> bool {
    use ErrorKind::{CantOpen, Full, Io, Poisoned};
    matches!(kind, Io | Full | CantOpen | Poisoned)
}

fn key_value(disk: &SimDisk, options: &Options, case: &Case, fault: Fault) -> Outcome {
    let mut oracle = kv::Oracle::default();
    let mut outcome = Outcome::default();
    let mut life = Life::new(disk, options, &mut oracle, case.seed);
    for step in &case.steps {
        outcome.steps += 1;
        let done = match life.step_or_start_at(*step) {
            Err(error) if error.kind() == ErrorKind::Busy && disk.faults_met() > 0 => {
                life.look_around(true).and_then(|_| life.checkpoint())
            }
            done => done,
        };
        let Err(error) = done else {
            continue;
        };
        outcome.errors += 1;
        assert!(is_known(error.kind()), "{:?}: {error}", error.kind());
        match life.look_around(fault.call != Some(Call::Read)) {
            Ok(false) => {}
            Ok(true) => {
                outcome.poisoned = true;
                break;
            }
            Err(error) => panic!("reading does not go on: {error}"),
        }
    }
    let mut rng = Rng::new(case.seed ^ fault.after << 32);
    let end = end_of(disk, &mut rng);
    drop(life);
    come_back::<KeyValue>(disk, end, options, oracle, &mut rng);
    outcome
}

fn sql(disk: &SimDisk, options: &Options, case: &Case, fault: Fault) -> Outcome {
    let mut oracle = sql::Oracle::default();
    let mut outcome = Outcome::default();
    let mut session = Session::new(disk, options, &mut oracle, None);
    for step in &case.steps {
        outcome.steps += 1;
        let done = match session.step(&mut step_rng(case.seed, *step)) {
            Err(error) if sql::is_conflict(&error) && disk.faults_met() > 0 => {
                session.look_around().and_then(|_| session.checkpoint())
            }
            done => done,
        };
        let Err(error) = done else {
            continue;
        };
        outcome.errors += 1;
        let text = error.to_string();
        let known = ["disk I/O error", "is full", "unable to open", "ended"];
        assert!(known.iter().any(|known| text.contains(known)), "{error:?}");
        if fault.call == Some(Call::Read) {
            disk.heal();
        }
        match session.look_around() {
            Ok(true) => {}
            Ok(false) => {
                outcome.poisoned = true;
                break;
            }
            Err(error) => panic!("reading does not go on: {error}"),
        }
    }
    let mut rng = Rng::new(case.seed ^ fault.after << 32);
    let end = end_of(disk, &mut rng);
    drop(session);
    come_back::<Sql>(disk, end, options, oracle, &mut rng);
    outcome
}

/// Over several stores the first failure ends the life: what failed is there in all of
/// them or in none.
fn together(disk: &SimDisk, options: &Options, case: &Case, fault: Fault) -> Outcome {
    let mut oracle = together::Oracle::default();
    let mut outcome = Outcome::default();
    let mut life = together::Life::new(disk, options, &mut oracle, None, case.seed);
    let mut steps = case.steps.iter();
    let failed = life.start().and_then(|()| {
        steps.try_for_each(|step| {
            outcome.steps += 1;
            life.step_at(*step)
        })
    });
    if let Err(error) = failed {
        assert!(disk.faults_met() > 0, "{error}");
        outcome.errors += 1;
        let kind = error.kind();
        assert!(
            is_known(kind) || kind == ErrorKind::Busy,
            "{kind:?}: {error}"
        );
        outcome.poisoned = kind == ErrorKind::Poisoned;
    }
    let mut rng = Rng::new(case.seed ^ fault.after << 32);
    let end = end_of(disk, &mut rng);
    drop(life);
    come_back::<Together>(disk, end, options, oracle, &mut rng);
    outcome
}
