//! Running statements and dot commands one after the other.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use fulgurite::fallible_iterator::FallibleIterator;
use fulgurite::{Batch, Connection, Error, Statement};

use crate::output::{self, Mode, json};
use crate::report::{self, Place};
use crate::{dot, split::Splitter};

/// A connection and how its results are shown.
pub struct Shell {
    pub connection: Connection,
    pub mode: Mode,
    pub timer: bool,
    pub out: Box<dyn Write>,
    /// Scripts being read within scripts.
    pub depth: usize,
    bail: bool,
    quit: bool,
    failed: bool,
}

impl Shell {
    pub fn new(connection: Connection, mode: Mode, bail: bool, out: Box<dyn Write>) -> Self {
        Self {
            connection,
            mode,
            timer: false,
            out,
            depth: 0,
            bail,
            quit: false,
            failed: false,
        }
    }

    /// Nothing more is to be run.
    pub fn stopped(&self) -> bool {
        self.quit || (self.bail && self.failed)
    }

    /// Nothing more will be run.
    pub fn quit(&mut self) {
        self.quit = true;
    }

    /// Whether everything went well; the end of the output.
    pub fn finish(mut self) -> io::Result<bool> {
        self.out.flush()?;
        Ok(!self.failed)
    }

    /// Reports a failure and remembers it for the exit status.
    pub fn fail(&mut self, error: &Error, place: Option<&Place<'_>>) -> io::Result<()> {
        self.failed = true;
        report::failure(self.mode, error, place, &mut self.out)
    }

    /// As [`Shell::fail`] for what is no failure of the database.
    pub fn fail_with(&mut self, message: impl Into<String>) -> io::Result<()> {
        let code = fulgurite::ffi::Error::new(fulgurite::ffi::SQLITE_ERROR);
        self.fail(&Error::SqliteFailure(code, Some(message.into())), None)
    }

    /// Runs a script: statements, and lines that begin with a dot between them.
    pub fn run_reader(&mut self, reader: &mut dyn BufRead) -> io::Result<()> {
        let mut splitter = Splitter::default();
        let mut bytes = Vec::new();
        let (mut line, mut start) = (0, 1);
        while !self.stopped() {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            line += 1;
            let text = String::from_utf8_lossy(&bytes);
            if splitter.is_blank() {
                start = line;
                if text.starts_with('.') {
                    dot::run(self, text.trim())?;
                    continue;
                }
            }
            splitter.feed(&text);
            while let Some(sql) = splitter.next() {
                self.run_statement(&Place {
                    sql: sql.trim(),
                    line: start,
                })?;
                start = line;
                if self.stopped() {
                    return Ok(());
                }
            }
        }
        match splitter.rest() {
            Some(sql) if !self.stopped() => self.run_statement(&Place {
                sql: sql.trim(),
                line: start,
            }),
            _ => Ok(()),
        }
    }

    /// Runs one argument or one entry at the prompt.
    pub fn run_text(&mut self, text: &str) -> io::Result<()> {
        if text.starts_with('.') {
            return dot::run(self, text.trim());
        }
        let mut splitter = Splitter::default();
        splitter.feed(text);
        while let Some(sql) = splitter.next() {
            self.run_statement(&Place {
                sql: sql.trim(),
                line: 0,
            })?;
            if self.stopped() {
                return Ok(());
            }
        }
        match splitter.rest() {
            Some(sql) => self.run_statement(&Place {
                sql: sql.trim(),
                line: 0,
            }),
            None => Ok(()),
        }
    }

    fn run_statement(&mut self, place: &Place<'_>) -> io::Result<()> {
        let start = Instant::now();
        let mut batch = Batch::new(&self.connection, place.sql);
        let outcome = loop {
            match batch.next() {
                Ok(Some(mut stmt)) => match run_prepared(&mut stmt, self.mode, &mut self.out)? {
                    Ok(()) => {}
                    Err(e) => break Err(e),
                },
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        if let Err(e) = outcome {
            self.fail(&e, Some(place))?;
        }
        if self.timer && self.mode != Mode::Json {
            writeln!(
                self.out,
                "Run Time: real {:.6}",
                start.elapsed().as_secs_f64()
            )?;
        }
        Ok(())
    }
}

fn run_prepared(stmt: &mut Statement<'_>, mode: Mode, out: &mut dyn Write) -> output::Shown {
    let columns: Vec<String> = stmt.column_names().map(str::to_owned).collect();
    if !columns.is_empty() {
        return output::show(mode, &columns, &mut stmt.raw_query(), out);
    }
    if let Err(e) = stmt.raw_execute() {
        return Ok(Err(e));
    }
    if mode == Mode::Json {
        json::write_empty(out)?;
    }
    Ok(Ok(()))
}
