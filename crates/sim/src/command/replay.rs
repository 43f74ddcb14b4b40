//! `replay`: one seed again, shrunk where it fails.

use fulgurite_sim::proof::{self, Case, Kind, Tally};
use fulgurite_sim::seed;

/// Which seed, and which of its steps.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The seed
    seed: u64,
    /// The seed's case over several stores
    #[arg(long)]
    together: bool,
    /// The steps to do, of a workload that was shrunk
    #[arg(long, value_delimiter = ',')]
    steps: Option<Vec<u64>>,
    /// Looks for the smallest workload that fails, if it fails
    #[arg(long)]
    shrink: bool,
}

/// Says whether all was well.
///
/// # Errors
/// None today.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut case = match args.together {
        true => Case::together(args.seed),
        false => Case::of(args.seed),
    };
    if let Some(steps) = &args.steps {
        case.steps.clone_from(steps);
    }
    println!(
        "seed {}, {:?}, steps {:?}",
        case.seed, case.kind, case.steps
    );
    let mut tally = Tally::default();
    let proved = seed::prove(&case, &mut tally);
    if let Ok(journal) = proof::journal(&case) {
        println!(
            "{} moments, digest {:016x}",
            journal.len(),
            journal.digest()
        );
    }
    println!("{} power cuts, {} calls failed", tally.cuts, tally.faults);
    match proved {
        Ok(()) => {
            println!("nothing lost");
            Ok(true)
        }
        Err(failure) if args.shrink => {
            let (smaller, failure) = seed::shrink(&case, failure);
            println!("FAILED {failure}\n{}", again(&smaller));
            Ok(false)
        }
        Err(failure) => {
            println!("FAILED {failure}");
            Ok(false)
        }
    }
}

/// The command that runs a case again.
pub fn again(case: &Case) -> String {
    let steps: Vec<String> = case.steps.iter().map(u64::to_string).collect();
    let together = match case.kind {
        Kind::Together => " --together",
        Kind::KeyValue | Kind::Sql => "",
    };
    format!(
        "again: cargo run --release -p fulgurite-sim -- replay {}{together} --steps {}",
        case.seed,
        steps.join(",")
    )
}
