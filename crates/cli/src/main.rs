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
use fulgurite::{Connection, OpenFlags};

use crate::args::{Cli, Command, ShellArgs};
use crate::output::Mode;
use crate::shell::Shell;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Some(Command::Check { database, json }) => check::run(&database, json),
        #[cfg(feature = "import-sqlite")]
        Some(Command::ImportSqlite { from, to }) => import_sqlite::run(&from, &to),
        #[cfg(not(feature = "import-sqlite"))]
        Some(Command::ImportSqlite { .. }) => {
            eprintln!("Error: this program was built without the feature import-sqlite");
            Ok(false)
        }
        None => run_shell(&cli.shell),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of our output went away: nothing left to say to anybody.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(e) => {
            report::say(&format!("Error: {e}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Runs what the arguments say; false if anything failed.
fn run_shell(args: &ShellArgs) -> io::Result<bool> {
    let mode = if args.json { Mode::Json } else { args.mode };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let connection = match open(args) {
        Ok(connection) => connection,
        Err(e) => {
            report::failure(mode, &e, None, &mut out)?;
            out.flush()?;
            return Ok(false);
        }
    };
    let mut shell = Shell::new(connection, mode, args.bail, Box::new(out));
    if !args.sql.is_empty() {
        for sql in &args.sql {
            if shell.stopped() {
                break;
            }
            shell.run_text(sql)?;
        }
    } else if io::stdin().is_terminal() && !args.json {
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
    let access = match args.readonly {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_URI)
}
