//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::output::Mode;

/// An embedded SQL database: run SQL on a file.
///
/// SQL is taken from the arguments, else from standard input, else from a
/// prompt. Without a database the work happens in memory and is gone at the
/// end.
#[derive(Debug, Parser)]
#[command(name = "fulgurite", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub shell: ShellArgs,
}

#[derive(Debug, Args)]
pub struct ShellArgs {
    /// The database file; created if it is absent.
    #[arg(value_name = "DB")]
    pub database: Option<PathBuf>,
    /// Statements or dot commands to run.
    #[arg(value_name = "SQL")]
    pub sql: Vec<String>,
    /// One JSON object a statement on standard output.
    #[arg(long, conflicts_with = "mode")]
    pub json: bool,
    /// How results are shown.
    #[arg(long, value_enum, default_value_t = Mode::Box)]
    pub mode: Mode,
    /// Open the database for reading only.
    #[arg(long)]
    pub readonly: bool,
    /// Stop at the first error.
    #[arg(long)]
    pub bail: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Walk a whole database file and say what is wrong with it.
    Check {
        /// The database file.
        #[arg(value_name = "DB")]
        database: PathBuf,
        /// Answer with one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Copy schema, rows and indexes of an SQLite file into a new database.
    #[command(name = "import-sqlite")]
    ImportSqlite {
        /// The SQLite file.
        #[arg(value_name = "FILE")]
        from: PathBuf,
        /// The database to create; it must not exist.
        #[arg(value_name = "NEW")]
        to: PathBuf,
    },
}
