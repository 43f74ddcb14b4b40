//! `sweep`: fixed workloads gone through completely.

use std::time::Instant;

use fulgurite_sim::damage::{self, Counts, Sample};
use fulgurite_sim::proof::{self, Case, Depth, Failure, Kind, Tally};
use fulgurite_sim::{Fault, FaultError, faults};

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
    for kind in [Kind::KeyValue, Kind::Sql] {
        let case = Case {
            seed: args.seed,
            kind,
            steps: (0..16).collect(),
        };
        calls(&case)?;
        moments(&case, args.images)?;
    }
    for closed in [true, false] {
        for sample in [
            damage::small(args.seed, closed),
            damage::families(args.seed, closed),
        ] {
            bytes(&sample, closed, args.stride)?;
        }
    }
    let (mut counts, mut tally) = (Counts::default(), Tally::default());
    damage::lying_writes(args.seed, 1, &mut counts, &mut tally)?;
    println!(
        "writes lost or misdirected: {} ({})",
        counts.total(),
        of(&counts)
    );
    Ok(())
}

/// Each call fails: once, for good; with an I/O error, with a full disk.
fn calls(case: &Case) -> Result<(), Failure> {
    let started = Instant::now();
    let mut tally = Tally::default();
    let (mut runs, mut errors, mut poisoned) = (0_u64, 0, 0_u64);
    let calls = proof::journal(case)?.calls();
    for after in 0..calls {
        for error in [FaultError::Io, FaultError::NoSpace] {
            for for_good in [false, true] {
                let fault = Fault {
                    call: None,
                    after,
                    for_good,
                    error,
                };
                let outcome = faults::prove(case, fault, &mut tally)?;
                runs += 1;
                errors += outcome.errors;
                poisoned += u64::from(outcome.poisoned);
            }
        }
    }
    println!(
        "{:?}: each of {calls} calls failing: {runs} runs, {} calls failed, {errors} errors, \
         {poisoned} times writing ended; {:.0} steps a second",
        case.kind,
        tally.faults,
        tally.faulted_steps as f64 / started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn moments(case: &Case, images: u64) -> Result<(), Failure> {
    let started = Instant::now();
    let mut tally = Tally::default();
    let depth = Depth {
        images,
        again_every: 12,
    };
    proof::prove(case, depth, &mut tally)?;
    println!(
        "{:?}: cut at every moment, {images} disks each: {} power cuts, {} of them again; {:.0} a second",
        case.kind,
        tally.cuts,
        tally.again,
        tally.cuts as f64 / started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn bytes(sample: &Sample, closed: bool, stride: usize) -> Result<(), Failure> {
    let state = if closed { "closed" } else { "with its log" };
    for file in sample.files() {
        let (mut counts, mut tally) = (Counts::default(), Tally::default());
        sample.flip(&file, stride, &mut counts, &mut tally)?;
        let flips = of(&counts);
        let flipped = counts.total();
        let mut counts = Counts::default();
        sample.zero(&file, &mut counts, &mut tally)?;
        println!(
            "{}, {state}, {}: {} bytes in use; {flipped} flips ({flips}); {} sectors zeroed ({})",
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
