//! The interactive prompt: line editing, history, statements over several
//! lines, Ctrl-C to stop a statement.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};

use crate::shell::Shell;
use crate::split::Splitter;

const HISTORY_LENGTH: usize = 10_000;

/// Keeps the editor going until a statement is complete.
struct Completeness;

impl Validator for Completeness {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        if input.starts_with('.') {
            return Ok(ValidationResult::Valid(None));
        }
        let mut splitter = Splitter::default();
        splitter.feed(input);
        while splitter.next().is_some() {}
        Ok(match splitter.rest() {
            None => ValidationResult::Valid(None),
            Some(_) => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Completeness {
    type Candidate = String;
}
impl Hinter for Completeness {
    type Hint = String;
}
impl Highlighter for Completeness {}
impl Helper for Completeness {}

/// Reads and runs until the end of the input or `.quit`.
pub fn run(shell: &mut Shell) -> io::Result<()> {
    let config = Config::builder()
        .max_history_size(HISTORY_LENGTH)
        .map_err(io::Error::other)?
        .build();
    let mut editor: Editor<Completeness, FileHistory> =
        Editor::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(Completeness));
    let history = history_path();
    if let Some(path) = &history {
        // There is none on the first run.
        let _ = editor.load_history(path);
    }
    let interrupt = Arc::clone(&shell.interrupt);
    let handler = move || {
        let interrupt = interrupt.lock().unwrap_or_else(PoisonError::into_inner);
        interrupt.interrupt();
    };
    ctrlc::set_handler(handler).map_err(io::Error::other)?;

    let place = shell
        .connection
        .path()
        .filter(|p| !p.is_empty())
        .unwrap_or("a database in memory")
        .to_owned();
    writeln!(
        shell.out,
        "fulgurite {} on {place}; .help for help",
        env!("CARGO_PKG_VERSION")
    )?;
    while !shell.stopped() {
        shell.out.flush()?;
        match editor.readline(&shell.prompt) {
            Ok(text) => {
                if !text.trim().is_empty() {
                    editor
                        .add_history_entry(text.trim_end())
                        .map_err(io::Error::other)?;
                }
                shell.run_text(&text)?;
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(io::Error::other(e)),
        }
    }
    if let Some(path) = &history
        && let Err(e) = editor.save_history(path)
    {
        eprintln!("the history could not be saved: {e}");
    }
    Ok(())
}

/// `FULGURITE_HISTORY`, or a file in the home folder.
fn history_path() -> Option<PathBuf> {
    match std::env::var_os("FULGURITE_HISTORY") {
        Some(path) => Some(path.into()),
        None => Some(std::env::home_dir()?.join(".fulgurite_history")),
    }
}
