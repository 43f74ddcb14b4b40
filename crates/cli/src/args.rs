//! The command line.
//!
//! Options of the sqlite3 shell may be written as it has them, with one dash.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

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

/// Of a transaction over several files.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Outcome {
    /// It counts as committed.
    Commit,
    /// It counts as never committed.
    RollBack,
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
    /// How results are shown. [box]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Open the database for reading only.
    #[arg(long)]
    pub readonly: bool,
    /// Open a database file whose log is missing, and give up what was committed since
    /// its last checkpoint.
    #[arg(long, requires = "database")]
    pub abandon_missing_log: bool,
    /// What becomes of a transaction over several files that this one was left in the
    /// midst of, if the file that knows its outcome is lost.
    #[arg(long, value_enum, requires = "database", value_name = "OUTCOME")]
    pub in_doubt: Option<Outcome>,
    /// Stop at the first error.
    #[arg(long)]
    pub bail: bool,
    /// Show statements before they run.
    #[arg(long)]
    pub echo: bool,
    /// Show the columns' names.
    #[arg(long, overrides_with = "noheader")]
    pub header: bool,
    /// Do not show the columns' names.
    #[arg(long)]
    pub noheader: bool,
    /// What stands between values.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub separator: Option<String>,
    /// What stands behind rows.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub newline: Option<String>,
    /// What stands for NULL.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub nullvalue: Option<String>,
    /// A script to run first.
    #[arg(long, value_name = "FILE")]
    pub init: Option<String>,
    /// A statement or dot command to run before all others; may be given several times.
    #[arg(long = "cmd", value_name = "COMMAND", action = ArgAction::Append)]
    pub commands: Vec<String>,
    /// No prompt, whatever standard input is.
    #[arg(long)]
    pub batch: bool,
    /// How the mode was asked for: by the name that the sqlite3 shell has for it.
    #[arg(long, value_enum, hide = true, conflicts_with = "mode")]
    pub like_sqlite: Option<Mode>,
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
        /// Check a file whose log is missing as its last checkpoint left it.
        #[arg(long)]
        abandon_missing_log: bool,
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

/// Options of the sqlite3 shell that are named as ours are.
const SAME: [&str; 12] = [
    "bail",
    "batch",
    "cmd",
    "echo",
    "header",
    "help",
    "init",
    "newline",
    "noheader",
    "nullvalue",
    "readonly",
    "separator",
];
/// Those among them, and ours, that take the next argument.
const WITH_VALUE: [&str; 8] = [
    "cmd",
    "in-doubt",
    "init",
    "mode",
    "newline",
    "nullvalue",
    "separator",
    "like-sqlite",
];
/// Its options for modes.
const MODES: [&str; 12] = [
    "ascii", "box", "column", "csv", "html", "json", "line", "list", "markdown", "quote", "table",
    "tabs",
];

/// The arguments with options of the sqlite3 shell as clap knows them.
pub fn translated(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut is_value = false;
    let mut is_plain = false;
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        is_plain |= text == "--" && !is_value;
        if std::mem::take(&mut is_value) || is_plain {
            out.push(argument);
            continue;
        }
        let option = text.strip_prefix('-').unwrap_or_default();
        let (option, is_single) = match option.strip_prefix('-') {
            Some(option) => (option, false),
            None => (option, true),
        };
        is_value = WITH_VALUE.contains(&option);
        if MODES.contains(&option) && (is_single || option != "json") {
            out.push(format!("--like-sqlite={option}").into());
        } else if is_single && SAME.contains(&option) {
            out.push(format!("--{option}").into());
        } else if is_single && option == "version" {
            out.push("--version".into());
        } else {
            out.push(argument);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_sqlite3_are_known() {
        let translate = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            let words = translated(words).into_iter();
            let words: Vec<String> = words.map(|it| it.into_string().expect("UTF-8")).collect();
            words.join(" ")
        };
        assert_eq!(
            translate("-csv -header --bail -separator -csv a.db -x"),
            "--like-sqlite=csv --header --bail --separator -csv a.db -x"
        );
        assert_eq!(
            translate("--json --csv -json"),
            "--json --like-sqlite=csv --like-sqlite=json"
        );
        assert_eq!(translate("-- -csv"), "-- -csv");
    }
}
