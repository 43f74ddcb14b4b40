//! `PRAGMA integrity_check` and `quick_check`.
//!
//! First the store's structure as of the last commit, then what only SQL knows, in the
//! state that the transaction sees: that each row can be read and keeps its constraints,
//! and, but for `quick_check`, that each index has one entry for each row that belongs
//! there, as it would be made today, and no other. Entries made from the rows are sorted,
//! beyond the connection's memory in a temporary file, and compared with the index from one
//! end to the other; so it takes two scans, however large the table is.
//!
//! Findings are lines, in SQLite's words where it has any. Damage that is met on the way is
//! one of them, and the check goes on behind the table.

use std::sync::Arc;

use fulgurite_store::{Cursor, Seek, Tree};

use super::Engine;
use super::state::{Base, State};
use crate::error::{Error, Result, code};
use crate::exec::context::{Context, Run};
use crate::exec::dml::{Entry, KeyMaker, read_row};
use crate::exec::expr::{Row, condition};
use crate::exec::fetch::in_row;
use crate::exec::sorter::Sorter;
use crate::exec::txns::Txns;
use crate::func::user::UserCode;
use crate::plan::Settings;
use crate::plan::physical::{Action, TableWriter};
use crate::row::RowReader;
use crate::schema::{Catalog, Index, Schema, Table};
use crate::value::{Value, ValueRef};

/// Findings, unless the statement asks for another number.
const FINDINGS: usize = 100;
/// Rows or entries between two looks whether the statement is interrupted.
const LOOK: u32 = 4_096;

/// What a statement asks for.
pub struct Asked {
    /// The most findings that are told.
    limit: usize,
    /// The one table whose rows are looked at.
    table: Option<String>,
    /// Whether indexes are compared with their tables.
    indexes: bool,
}

impl Asked {
    /// By the PRAGMA's value: a number of findings, or a table.
    pub fn new(value: Option<&Value>, indexes: bool) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (number, table) = match value.map(Value::as_ref) {
            Some(ValueRef::Integer(number)) => (Some(number), None),
            Some(ValueRef::Text(name)) => (None, Some(text(name))),
            _ => (None, None),
        };
        let limit = number.and_then(|number| usize::try_from(number).ok());
        Self {
            limit: limit.filter(|limit| *limit > 0).unwrap_or(FINDINGS),
            table,
            indexes,
        }
    }
}

/// Lines, so many at most.
struct Findings {
    lines: Vec<String>,
    limit: usize,
}

impl Findings {
    fn push(&mut self, line: String) {
        if !self.are_enough() {
            self.lines.push(line);
        }
    }

    fn are_enough(&self) -> bool {
        self.lines.len() >= self.limit
    }
}

/// What is wrong.
///
/// # Errors
/// An interrupt, a disk that fails, a damaged schema.
pub fn check(
    asked: &Asked,
    engines: &[Engine],
    state: &mut State,
    run: &mut Run,
) -> Result<Vec<String>> {
    let mut findings = Findings {
        lines: Vec::new(),
        limit: asked.limit,
    };
    for engine in engines {
        findings.lines.extend(engine.store().integrity_check()?);
    }
    findings.lines.truncate(asked.limit);
    let stores: Vec<u64> = engines.iter().map(|it| it.store().number()).collect();
    let ends = state.start_reading(&stores, Base::Acknowledged)?;
    let checked = state.make_deferred().and_then(|()| {
        let mut all = engines.iter();
        let (txn, user) = (&mut state.txn, &state.settings.user);
        all.try_for_each(|it| check_tables(asked, it, (txn, user), run, &mut findings))
    });
    if ends {
        state.txn.rollback();
    }
    checked?;
    Ok(findings.lines)
}

fn check_tables(
    asked: &Asked,
    engine: &Engine,
    (txn, user): (&mut Txns, &UserCode),
    run: &mut Run,
    findings: &mut Findings,
) -> Result<()> {
    let schema = match engine.schema(txn.in_store(engine.store().number())) {
        Err(error) if error.code() == code::CORRUPT => {
            findings.push(error.to_string());
            return Ok(());
        }
        schema => schema?,
    };
    if asked.table.is_none() {
        schema
            .findings()
            .into_iter()
            .for_each(|line| findings.push(line));
    }
    let is_asked_for = |name: &&String| match &asked.table {
        Some(table) => name.eq_ignore_ascii_case(table),
        None => true,
    };
    for name in schema.table_names().iter().filter(is_asked_for) {
        if findings.are_enough() {
            break;
        }
        let table = writer(&schema, name, user)
            .and_then(|writer| TableCheck::new(&writer, asked, run).run(txn, run, findings));
        match table {
            // What is asked of its rows makes no sense, or fails for one.
            Err(error) if matches!(error.code(), code::CORRUPT | code::ERROR) => {
                findings.push(format!("table {name}: {error}"));
            }
            checked => checked?,
        }
    }
    Ok(())
}

/// How rows of a table are checked and indexed: as an INSERT would.
pub(super) fn writer(
    schema: &Arc<Schema>,
    table: &str,
    user: &UserCode,
) -> Result<Box<crate::plan::physical::Insert>> {
    let name = table.replace('"', "\"\"");
    let parsed = crate::parse::parse(&format!("INSERT INTO \"{name}\" DEFAULT VALUES"))?;
    let catalog = Catalog::new(Arc::clone(schema));
    let settings = Settings {
        user: user.clone(),
        ..Settings::default()
    };
    let plan = crate::plan::prepare(&catalog, &mut |_: &Tree| 0, &parsed, &settings)?;
    match plan.map(|plan| plan.action) {
        Some(Action::Insert(insert)) => Ok(insert),
        _ => Err(Error::misuse("an INSERT has no plan")),
    }
}

/// The check of one table.
struct TableCheck<'a> {
    target: &'a TableWriter,
    /// The entries that each index must have, with the rowid in front of their values.
    entries: Vec<(KeyMaker, Sorter)>,
    looked: u32,
}

impl<'a> TableCheck<'a> {
    fn new(insert: &'a crate::plan::physical::Insert, asked: &Asked, run: &Run) -> Self {
        let target = &insert.target;
        let indexes = target.indexes.iter().filter(|_| asked.indexes);
        Self {
            target,
            entries: indexes
                .map(|writer| (KeyMaker::new(writer), Sorter::new(&run.memory, None)))
                .collect(),
            looked: 0,
        }
    }

    fn run(mut self, txn: &mut Txns, run: &mut Run, findings: &mut Findings) -> Result<()> {
        let mut cx = Context {
            parameters: &[],
            run,
        };
        self.check_rows(txn, &mut cx, findings)?;
        if findings.are_enough() {
            return Ok(());
        }
        for (at, writer) in self.target.indexes.iter().enumerate() {
            let Some((_, sorter)) = self.entries.get_mut(at) else {
                break;
            };
            let mut entries = txn.cursor(&writer.index.tree)?;
            let mut look = |run: &Run| {
                self.looked = self.looked.wrapping_add(1);
                match self.looked.is_multiple_of(LOOK) {
                    true => run.check_interrupt(),
                    false => Ok(()),
                }
            };
            let look = &mut || look(cx.run);
            compare(&writer.index, sorter, &mut entries, look, findings)?;
        }
        Ok(())
    }

    fn check_rows(
        &mut self,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
        findings: &mut Findings,
    ) -> Result<()> {
        let table = &self.target.table;
        let mut rows = txn.cursor(&table.tree)?;
        let (mut row, mut entry, mut payload) = (Vec::new(), Entry::default(), Vec::new());
        let mut more = rows.seek(Seek::First)?;
        while more && !findings.are_enough() {
            let rowid = rows.key_int();
            let stored = rows.value()?;
            if let Err(error) = check_stored(table, stored) {
                findings.push(in_row(error, table, rowid).to_string());
            } else {
                read_row(table, &self.target.generated, (rowid, stored), &mut row, cx)?;
                self.check_constraints(&row, cx, findings)?;
                let row = Row::Values(&row);
                for ((maker, sorter), writer) in self.entries.iter_mut().zip(&self.target.indexes) {
                    maker.make(writer, row, rowid, cx, &mut entry)?;
                    if entry.present {
                        payload.clear();
                        payload.extend_from_slice(&rowid.to_le_bytes());
                        payload.extend_from_slice(&entry.value);
                        sorter.add(&entry.key, &payload)?;
                    }
                }
            }
            self.looked = self.looked.wrapping_add(1);
            if self.looked.is_multiple_of(LOOK) {
                cx.run.check_interrupt()?;
            }
            more = rows.next()?;
        }
        Ok(())
    }

    fn check_constraints(
        &self,
        row: &[Value],
        cx: &mut Context<'_, '_>,
        findings: &mut Findings,
    ) -> Result<()> {
        let table = &self.target.table;
        for (column, value) in table.columns.iter().zip(row.iter().skip(1)) {
            if column.affinity.changes(value.as_ref()) {
                let kind = match value {
                    Value::Text(_) => "TEXT",
                    _ => "NUMERIC",
                };
                findings.push(format!("{kind} value in {}.{}", table.name, column.name));
            }
            if !column.takes(value.as_ref()) {
                let (declared, name) = (&column.decl_type, &column.name);
                findings.push(format!("non-{declared} value in {}.{name}", table.name));
            }
            if column.not_null.is_some() && value.is_null() {
                findings.push(format!("NULL value in {}.{}", table.name, column.name));
            }
        }
        for (_, check) in &self.target.checks {
            if condition(check, Row::Values(row), cx)? == Some(false) {
                findings.push(format!("CHECK constraint failed in {}", table.name));
            }
        }
        Ok(())
    }
}

/// All of a stored row makes sense, and is the table's.
fn check_stored(table: &Table, stored: &[u8]) -> Result<()> {
    let row = RowReader::new(stored)?;
    match row.len() > table.columns.len() {
        true => Err(Error::corrupt("more columns than the table has")),
        false => row.validate(),
    }
}

/// Compares the entries that an index must have with those that it has.
fn compare(
    index: &Arc<Index>,
    sorter: &mut Sorter,
    entries: &mut Cursor,
    look: &mut dyn FnMut() -> Result<()>,
    findings: &mut Findings,
) -> Result<()> {
    let (mut expected, mut surplus) = (0u64, 0u64);
    let mut last = Vec::new();
    sorter.finish()?;
    let mut there = entries.seek(Seek::First)?;
    while let Some((key, payload)) = sorter.next_record()? {
        if findings.are_enough() {
            return Ok(());
        }
        look()?;
        // What is there and belongs to no row.
        while there && entries.key_bytes()? < key {
            surplus += 1;
            there = entries.next()?;
        }
        let (rowid, value) = payload.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let row = i64::from_le_bytes(*rowid);
        if expected > 0 && last == key {
            findings.push(format!("non-unique entry in index {}", index.name));
        } else if there && entries.key_bytes()? == key {
            if entries.value()? != value {
                findings.push(format!("row {row} missing from index {}", index.name));
            }
            there = entries.next()?;
        } else {
            findings.push(format!("row {row} missing from index {}", index.name));
        }
        last.clear();
        last.extend_from_slice(key);
        expected += 1;
    }
    while there {
        look()?;
        surplus += 1;
        there = entries.next()?;
    }
    if surplus > 0 {
        findings.push(format!("wrong # of entries in index {}", index.name));
    }
    Ok(())
}
