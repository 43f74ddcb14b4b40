//! The `fulgurite` program: an SQL shell, `check` and `import-sqlite`.
//!
//! SQL comes from the arguments, from standard input or from a prompt. A failed
//! statement is reported and the next one runs; the exit status says whether
//! any failed. Nothing but results goes to standard output.

mod args;
mod check;
mod dot;
mod dump;
#[cfg(feature = "import-sqlite")]
mod import_sqlite;
mod output;
mod prompt;
mod report;
mod shell;
mod split;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use fulgurite::{Connection, Database, InDoubt, OpenFlags, Options};

use crate::args::{Cli, Command, Outcome, ShellArgs};
use crate::output::{Look, Mode};
use crate::shell::Shell;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse_from(args::translated(std::env::args_os()));
    let status = |outcome: io::Result<bool>| outcome.map(|went_well| u8::from(!went_well));
    let outcome = match cli.command {
        Some(Command::Check {
            database,
            json,
            abandon_missing_log,
        }) => status(check::run(&database, json, abandon_missing_log)),
        #[cfg(feature = "import-sqlite")]
        Some(Command::ImportSqlite { from, to }) => status(import_sqlite::run(&from, &to)),
        #[cfg(not(feature = "import-sqlite"))]
        Some(Command::ImportSqlite { .. }) => {
            eprintln!("Error: this program was built without the feature import-sqlite");
            Ok(1)
        }
        None => run_shell(&cli.shell),
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        // The reader of our output went away: nothing left to say to anybody.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(e) => {
            report::say(&format!("Error: {e}\n"));
            ExitCode::FAILURE
        }
    }
}

/// How results are to look.
fn look(args: &ShellArgs) -> Look {
    let mode = match args.json {
        true => Some(Mode::Objects),
        false => args.mode.or(args.like_sqlite),
    };
    let mut look = Look::new(mode.unwrap_or(Mode::Box));
    // Who asks by our own name gets a heading; the sqlite3 shell's has none.
    if args.mode == Some(Mode::Csv) {
        look.headers = Some(true);
    }
    if args.header || args.noheader {
        look.headers = Some(args.header);
    }
    look.null.clone_from(&args.nullvalue);
    look.separator = args.separator.as_deref().map(dot::unescaped);
    look.row_separator = args.newline.as_deref().map(dot::unescaped);
    look
}

/// Runs what the arguments say; the exit status.
fn run_shell(args: &ShellArgs) -> io::Result<u8> {
    let look = look(args);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let connection = match open(args) {
        Ok(connection) => connection,
        Err(e) => {
            report::failure(look.mode, &e, None, &mut out)?;
            out.flush()?;
            return Ok(1);
        }
    };
    let mut shell = Shell::new(connection, look, Box::new(out));
    shell.bail = args.bail;
    shell.echo = args.echo;
    if let Some(script) = &args.init {
        dot::read(&mut shell, script)?;
    }
    for command in &args.commands {
        if !shell.stopped() {
            shell.run_text(command)?;
        }
    }
    if shell.stopped() {
        return shell.finish();
    }
    if !args.sql.is_empty() {
        for sql in &args.sql {
            if shell.stopped() {
                break;
            }
            shell.run_text(sql)?;
        }
    } else if io::stdin().is_terminal() && !args.json && !args.batch {
        prompt::run(&mut shell)?;
    } else {
        shell.run_reader(&mut io::stdin().lock())?;
    }
    shell.finish()
}

fn open(args: &ShellArgs) -> fulgurite::Result<Connection> {
    let Some(path) = &args.database else {
        return Connection::open_in_memory();
    };
    if args.abandon_missing_log || args.in_doubt.is_some() {
        let in_doubt = match args.in_doubt {
            None => InDoubt::Ask,
            Some(Outcome::Commit) => InDoubt::Commit,
            Some(Outcome::RollBack) => InDoubt::RollBack,
        };
        let options = Options {
            read_only: args.readonly,
            create: false,
            abandon_missing_log: args.abandon_missing_log,
            in_doubt,
            ..Options::default()
        };
        return Database::open_with_options(path, options)?.connect();
    }
    let access = match args.readonly {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_URI)
}
