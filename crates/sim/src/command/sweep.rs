//! `sweep`: fixed workloads gone through completely.

use std::path::Path;
use std::time::Instant;

use fulgurite_sim::damage::{self, Counts, Sample};
use fulgurite_sim::proof::{self, Case, Depth, Failure, Kind, Tally};
use fulgurite_sim::{Call, Fault, FaultError, faults};

/// In a large file so many times fewer bytes are flipped.
const LARGE_STRIDE: usize = 512;

/// How thoroughly.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Flips every so many-th byte, beside all of the heads
    #[arg(long, default_value_t = 1)]
    stride: usize,
    /// Disks looked at for each moment the power is cut at
    #[arg(long, default_value_t = 8)]
    images: u64,
    /// Seed of the workloads
    #[arg(long, default_value_t = 3)]
    seed: u64,
}

/// Says whether all was well.
///
/// # Errors
/// None today.
pub fn run(args: &Args) -> Result<bool, String> {
    let started = Instant::now();
    let swept = sweep(args);
    println!("{:.0} seconds", started.elapsed().as_secs_f64());
    match swept {
        Ok(()) => Ok(true),
        Err(failure) => {
            println!("FAILED {failure}");
            Ok(false)
        }
    }
}

fn sweep(args: &Args) -> Result<(), Failure> {
    let many: Vec<u64> = (0..16).collect();
    for (name, kind, steps) in [
        ("KeyValue", Kind::KeyValue, many.clone()),
        ("KeyValue, bulk", Kind::KeyValue, proof::bulk_steps()),
        ("Sql", Kind::Sql, many),
    ] {
        let case = Case {
            seed: args.seed,
            kind,
            steps,
        };
        changes(name, &case)?;
        reads(name, &case)?;
        moments(name, &case, args.images)?;
    }
    for closed in [true, false] {
        for sample in [
            damage::small(args.seed, closed),
            damage::families(args.seed, closed),
        ] {
            flips(&sample, closed, args.stride)?;
            sectors(&sample, closed)?;
        }
    }
    flips(
        &damage::large(args.seed),
        false,
        args.stride.saturating_mul(LARGE_STRIDE),
    )?;
    let (mut counts, mut tally) = (Counts::default(), Tally::default());
    damage::lying_writes(args.seed, 1, &mut counts, &mut tally)?;
    println!(
        "writes lost or misdirected: {} ({})",
        counts.total(),
        of(&counts)
    );
    Ok(())
}

/// Each call that changes something fails: once, for good; with an I/O error, with a
/// full disk.
fn changes(name: &str, case: &Case) -> Result<(), Failure> {
    let mut found = Failing::new(case);
    let calls = proof::journal(case)?.calls();
    for after in 0..calls {
        for error in [FaultError::Io, FaultError::NoSpace] {
            found.run(None, after, error)?;
        }
    }
    println!("{name}: each of {calls} calls failing: {}", found.line());
    Ok(())
}

/// Each read fails: once, for good.
fn reads(name: &str, case: &Case) -> Result<(), Failure> {
    let mut found = Failing::new(case);
    let mut calls = 0;
    while found.run(Some(Call::Read), calls, FaultError::Io)? {
        calls += 1;
    }
    println!("{name}: each of {calls} reads failing: {}", found.line());
    Ok(())
}

/// A workload, and what became of it while calls failed.
struct Failing<'a> {
    case: &'a Case,
    started: Instant,
    tally: Tally,
    runs: u64,
    errors: u64,
    poisoned: u64,
}

impl<'a> Failing<'a> {
    fn new(case: &'a Case) -> Self {
        Self {
            case,
            started: Instant::now(),
            tally: Tally::default(),
            runs: 0,
            errors: 0,
            poisoned: 0,
        }
    }

    /// Lets this call fail once, then from there on for good. False if there are
    /// not so many.
    fn run(&mut self, call: Option<Call>, after: u64, error: FaultError) -> Result<bool, Failure> {
        let met = self.tally.faults;
        for for_good in [false, true] {
            let fault = Fault {
                call,
                after,
                for_good,
                error,
            };
            let outcome = faults::prove(self.case, fault, &mut self.tally)?;
            self.runs += 1;
            self.errors += outcome.errors;
            self.poisoned += u64::from(outcome.poisoned);
        }
        Ok(self.tally.faults > met)
    }

    fn line(&self) -> String {
        format!(
            "{} runs, {} calls failed, {} errors, {} times writing ended; {:.0} steps a second",
            self.runs,
            self.tally.faults,
            self.errors,
            self.poisoned,
            self.tally.faulted_steps as f64 / self.started.elapsed().as_secs_f64()
        )
    }
}

fn moments(name: &str, case: &Case, images: u64) -> Result<(), Failure> {
    let started = Instant::now();
    let mut tally = Tally::default();
    let depth = Depth {
        images,
        again_every: 12,
        kill_every: 48,
    };
    proof::prove(case, depth, &mut tally)?;
    println!(
        "{name}: cut at every moment, {images} disks each: {} power cuts, {} of them again; {:.0} a second",
        tally.cuts,
        tally.again,
        tally.cuts as f64 / started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn flips(sample: &Sample, closed: bool, stride: usize) -> Result<(), Failure> {
    damaged(sample, closed, "bytes flipped", |file, counts, tally| {
        sample.flip(file, stride, counts, tally)
    })
}

fn sectors(sample: &Sample, closed: bool) -> Result<(), Failure> {
    damaged(sample, closed, "sectors zeroed", |file, counts, tally| {
        sample.zero(file, counts, tally)
    })
}

/// Damages each file of a database in turn, and says what became of it.
fn damaged(
    sample: &Sample,
    closed: bool,
    what: &str,
    damage: impl Fn(&Path, &mut Counts, &mut Tally) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let state = if closed { "closed" } else { "with its log" };
    for file in sample.files() {
        let mut counts = Counts::default();
        damage(&file, &mut counts, &mut Tally::default())?;
        println!(
            "{}, {state}, {}: {} bytes in use, {} {what} ({})",
            sample.name,
            file.display(),
            sample.used_len(&file),
            counts.total(),
            of(&counts)
        );
    }
    Ok(())
}

fn of(counts: &Counts) -> String {
    let Counts {
        refused,
        reported,
        harmless,
        older,
    } = counts;
    format!("{refused} refused, {reported} reported, {harmless} harmless, {older} taken for torn")
}
