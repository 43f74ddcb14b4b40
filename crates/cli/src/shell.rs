//! Running statements and dot commands one after the other.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fulgurite::fallible_iterator::FallibleIterator;
use fulgurite::types::Value;
use fulgurite::{Batch, Connection, Error, InterruptHandle, Statement};

use crate::output::{self, Look, Mode, json};
use crate::report::{self, Place};
use crate::{dot, split::Splitter};

/// A connection and how its results are shown.
pub struct Shell {
    pub connection: Connection,
    pub look: Look,
    pub timer: bool,
    pub echo: bool,
    /// Show how many rows statements change.
    pub changes: bool,
    /// Stop at the first error.
    pub bail: bool,
    pub prompt: String,
    pub out: Box<dyn Write>,
    /// Values of parameters in statements, by name.
    pub parameters: BTreeMap<String, Value>,
    /// Scripts being read within scripts.
    pub depth: usize,
    /// Interrupts the connection at hand.
    pub interrupt: Arc<Mutex<InterruptHandle>>,
    /// Where the output goes if not to standard output, which waits beside it.
    diverted: Option<Diverted>,
    quit: Option<Option<u8>>,
    failed: bool,
}

struct Diverted {
    standard: Box<dyn Write>,
    name: String,
    /// Back after the next statement.
    once: bool,
}

impl Shell {
    pub fn new(connection: Connection, look: Look, out: Box<dyn Write>) -> Self {
        let interrupt = Arc::new(Mutex::new(connection.get_interrupt_handle()));
        Self {
            connection,
            look,
            timer: false,
            echo: false,
            changes: false,
            bail: false,
            prompt: "fulgurite> ".to_owned(),
            out,
            parameters: BTreeMap::new(),
            depth: 0,
            interrupt,
            diverted: None,
            quit: None,
            failed: false,
        }
    }

    /// Goes on with another database.
    pub fn set_connection(&mut self, connection: Connection) {
        let mut interrupt = self
            .interrupt
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *interrupt = connection.get_interrupt_handle();
        drop(interrupt);
        self.connection = connection;
    }

    /// What the output goes to.
    pub fn output_name(&self) -> &str {
        self.diverted.as_ref().map_or("stdout", |it| &it.name)
    }

    /// Output goes elsewhere from here on, or for one statement.
    pub fn write_to(&mut self, out: Box<dyn Write>, name: &str, once: bool) -> io::Result<()> {
        self.write_to_standard_output()?;
        self.diverted = Some(Diverted {
            standard: std::mem::replace(&mut self.out, out),
            name: name.to_owned(),
            once,
        });
        Ok(())
    }

    /// Output goes where it went at first.
    pub fn write_to_standard_output(&mut self) -> io::Result<()> {
        self.out.flush()?;
        if let Some(diverted) = self.diverted.take() {
            self.out = diverted.standard;
        }
        Ok(())
    }

    /// Nothing more is to be run.
    pub fn stopped(&self) -> bool {
        self.quit.is_some() || (self.bail && self.failed)
    }

    /// Nothing more will be run; the exit status, if it is not to say whether all went well.
    pub fn quit(&mut self, code: Option<u8>) {
        self.quit = Some(code);
    }

    /// The end of the output; the exit status.
    pub fn finish(mut self) -> io::Result<u8> {
        self.write_to_standard_output()?;
        let own = u8::from(self.failed);
        Ok(self.quit.flatten().unwrap_or(own))
    }

    /// Reports a failure and remembers it for the exit status.
    pub fn fail(&mut self, error: &Error, place: Option<&Place<'_>>) -> io::Result<()> {
        self.failed = true;
        report::failure(self.look.mode, error, place, &mut self.out)
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
        if self.echo {
            writeln!(self.out, "{}", place.sql)?;
        }
        let start = Instant::now();
        let mut batch = Batch::new(&self.connection, place.sql);
        let outcome = loop {
            match batch.next() {
                Ok(Some(mut stmt)) => {
                    let bound = bind(&mut stmt, &self.parameters);
                    match bound.map(|()| run_prepared(&mut stmt, &self.look, &mut self.out)) {
                        Ok(shown) => {
                            if let Err(e) = shown? {
                                break Err(e);
                            }
                        }
                        Err(e) => break Err(e),
                    }
                }
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        if let Err(e) = outcome {
            self.fail(&e, Some(place))?;
        }
        if self.changes && self.look.mode != Mode::Objects {
            let (changes, total) = (self.connection.changes(), self.connection.total_changes());
            writeln!(self.out, "changes: {changes}   total_changes: {total}")?;
        }
        if self.timer && self.look.mode != Mode::Objects {
            writeln!(
                self.out,
                "Run Time: real {:.6}",
                start.elapsed().as_secs_f64()
            )?;
        }
        match self.diverted.as_ref().is_some_and(|it| it.once) {
            true => self.write_to_standard_output(),
            false => Ok(()),
        }
    }
}

/// Gives the statement's parameters the values that are set for their names.
fn bind(stmt: &mut Statement<'_>, values: &BTreeMap<String, Value>) -> fulgurite::Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    for i in 1..=stmt.parameter_count() {
        let value = stmt.parameter_name(i).and_then(|name| values.get(name));
        if let Some(value) = value {
            stmt.raw_bind_parameter(i, value)?;
        }
    }
    Ok(())
}

fn run_prepared(stmt: &mut Statement<'_>, look: &Look, out: &mut dyn Write) -> output::Shown {
    let columns: Vec<String> = stmt.column_names().map(str::to_owned).collect();
    if !columns.is_empty() {
        return output::show(look, &columns, &mut stmt.raw_query(), out);
    }
    if let Err(e) = stmt.raw_execute() {
        return Ok(Err(e));
    }
    if look.mode == Mode::Objects {
        json::write_empty(out)?;
    }
    Ok(Ok(()))
}
