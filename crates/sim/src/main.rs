//! `fulgurite-sim`: proves, for as long as wanted, that nothing is lost, and
//! prints how much was looked at.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use command::{fuzz, replay, soak, sweep};
use fulgurite_sim::panics;

// Stores are opened and closed by the thousand: memory is had again, not mapped anew.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Proves that nothing is lost, on a disk that loses power and fails.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs seeds until the time is over: the power cut at every moment of each,
    /// calls that fail, bytes that rot
    Soak(soak::Args),
    /// Runs one seed again
    Replay(replay::Args),
    /// Goes through fixed workloads completely: each call failing, each moment
    /// cut, each byte flipped
    Sweep(sweep::Args),
    /// Makes inputs up: database files, logs, SQL, keys and rows
    Fuzz(fuzz::Args),
    /// Plants bugs one by one, and looks for a seed that sees each
    #[cfg(feature = "mutations")]
    Mutations(command::mutations::Args),
}

fn main() -> ExitCode {
    panics::quiet();
    let well = match Cli::parse().command {
        Command::Soak(args) => soak::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        #[cfg(feature = "mutations")]
        Command::Mutations(args) => command::mutations::run(&args),
    };
    match well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
