//! `fuzz`: made-up inputs, for as long as wanted.

use std::time::{Duration, Instant};

use fulgurite_sim::fuzz::{Bench, Target};
use fulgurite_sim::proof::Tally;

/// What is fed, and for how long.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds a target
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// The first number
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Only this target: database, log, sql, codes, forged
    #[arg(long)]
    target: Option<String>,
    /// Only the input of this number
    #[arg(long)]
    only: Option<u64>,
}

/// Says whether all was well.
///
/// # Errors
/// A target that there is not.
pub fn run(args: &Args) -> Result<bool, String> {
    let wanted = |target: &Target| {
        args.target
            .as_ref()
            .is_none_or(|name| name == target.name())
    };
    let targets: Vec<Target> = Target::ALL.into_iter().filter(wanted).collect();
    if targets.is_empty() {
        return Err(
            "there is no such target; there are database, log, sql, codes and forged".to_owned(),
        );
    }
    let bench = Bench::default();
    let mut well = true;
    for target in targets {
        let mut tally = Tally::default();
        let started = Instant::now();
        let end = Duration::from_secs_f64(args.seconds.max(0.0));
        let mut failures = 0;
        let mut number = args.only.unwrap_or(args.first);
        loop {
            if let Err(failure) = bench.run(target, number, &mut tally) {
                failures += 1;
                println!("FAILED {failure}");
            }
            number += 1;
            if args.only.is_some() || started.elapsed() >= end || failures >= 5 {
                break;
            }
        }
        well &= failures == 0;
        println!(
            "{:>10} {:>9} executions, {failures} failures; {:.0} a second",
            target.name(),
            tally.executions,
            tally.executions as f64 / started.elapsed().as_secs_f64()
        );
    }
    Ok(well)
}
