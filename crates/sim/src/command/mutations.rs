//! `mutations`: plants each bug in turn and looks for a seed that sees it.
//! Prints the table of `docs/testing.md`.

use fulgurite_disk::mutation::{Mutation, plant};
use fulgurite_sim::proof::{Case, Failure, Tally};
use fulgurite_sim::seed;

/// Where to look, and for how long.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Seeds tried a mutation
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// Only these, by name
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// Says whether every mutation was caught.
///
/// # Errors
/// None today.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut all = true;
    println!("| mutation | seed | seeds | power cuts | what was seen |");
    println!("| --- | ---: | ---: | ---: | --- |");
    for mutation in Mutation::ALL {
        let name = format!("{mutation:?}");
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        plant(Some(mutation));
        let mut tally = Tally::default();
        let caught = look(args, &mut tally);
        plant(None);
        match caught {
            Some((seed, failure)) => println!(
                "| {name} | {seed} | {} | {} | {} |",
                tally.seeds,
                tally.cuts,
                brief(&failure.message)
            ),
            None => {
                all = false;
                println!(
                    "| {name} | not caught | {} | {} | |",
                    tally.seeds, tally.cuts
                );
            }
        }
    }
    Ok(all)
}

fn look(args: &Args, tally: &mut Tally) -> Option<(u64, Failure)> {
    for seed in args.first..args.first + args.seeds {
        let case = Case::of(seed);
        let failed = seed::prove(&case, tally).err();
        if let Some(failure) = failed {
            return Some((seed, failure));
        }
    }
    None
}

fn brief(message: &str) -> String {
    let words: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace('|', "/");
    words.chars().take(110).collect()
}
