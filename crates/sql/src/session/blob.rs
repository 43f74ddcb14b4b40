//! Texts and blobs of single rows, read and written without a statement: what a handle of
//! a blob does. No trigger fires and no constraint is looked at, as in SQLite; so columns
//! of indexes and foreign keys are not written.

use std::sync::Arc;

use fulgurite_store::{Key, Store, Tree};

use super::databases::Database;
use super::state::{Base, State};
use super::{Engine, Session};
use crate::error::{Error, Result, code};
use crate::row::{RowReader, RowWriter};
use crate::schema::{IndexTarget, MAIN, Table};
use crate::value::ValueRef;

/// A column of a table.
#[derive(Debug, Clone)]
pub struct BlobColumn {
    database: String,
    table: String,
    column: String,
    writable: bool,
}

impl BlobColumn {
    /// A column by the names of database, table and column, to be written too.
    pub fn new(database: String, table: String, column: String, writable: bool) -> Self {
        Self {
            database,
            table,
            column,
            writable,
        }
    }
}

impl BlobColumn {
    /// The database that it is in, if it is still there.
    fn engine<'a>(&self, main: &'a Engine, state: &'a State) -> Option<&'a Engine> {
        match self.database.eq_ignore_ascii_case(MAIN) {
            true => Some(main),
            false => state.named(&self.database).map(|it| &it.engine),
        }
    }

    /// The store of that database, unless it is the main one.
    fn others(&self, state: &State) -> Vec<u64> {
        let found = state.named(&self.database);
        found.map(Database::store_number).into_iter().collect()
    }
}

/// What tells whether a connection may see another state than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    own: u64,
    store: u64,
    newest: u64,
}

impl Session {
    /// As long as this is the same, the connection sees the same state of the column.
    pub fn mark(&self, at: &BlobColumn) -> Mark {
        let main = &self.0.engine;
        let of = |own, store: &Store| Mark {
            own,
            store: store.number(),
            newest: store.newest(),
        };
        let mark = self.read(None, |state| {
            let engine = at.engine(main, state).unwrap_or(main);
            Some(of(state.changed, engine.store()))
        });
        mark.unwrap_or_else(|| of(0, main.store()))
    }

    /// The bytes of a row's text or blob, and the mark of the state that they are of.
    ///
    /// # Errors
    /// A table, column or row that is not there or of another kind.
    pub fn read_blob(&self, at: &BlobColumn, rowid: i64) -> Result<(Vec<u8>, Mark)> {
        let mark = self.mark(at);
        let mut state = self.0.state()?;
        let state = &mut *state;
        let ends = state.start_reading(&at.others(state), Base::Acknowledged)?;
        let found = self.find_blob(at, rowid, state);
        if ends {
            state.txn.rollback();
        }
        Ok((found?, mark))
    }

    fn find_blob(&self, at: &BlobColumn, rowid: i64, state: &mut State) -> Result<Vec<u8>> {
        let (table, column) = locate(at, &self.0.engine, state)?;
        let mut record = Vec::new();
        if !state
            .txn
            .get_into(&table.tree, Key::Int(rowid), &mut record)?
        {
            return Err(Error::sql(format!("no such rowid: {rowid}")));
        }
        match value_of(&table, column, &record)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
            other => Err(Error::sql(format!(
                "cannot open value of type {}",
                match other {
                    ValueRef::Integer(_) => "integer",
                    ValueRef::Real(_) => "real",
                    _ => "null",
                }
            ))),
        }
    }

    /// Writes bytes in place of a row's text or blob, which is `before`. The mark of the
    /// state that is seen then.
    ///
    /// # Errors
    /// `SQLITE_ABORT` where the row has another value by now, or is gone; `SQLITE_READONLY`;
    /// what writing may fail with.
    pub fn write_blob(
        &self,
        at: &BlobColumn,
        rowid: i64,
        before: &[u8],
        bytes: &[u8],
    ) -> Result<Mark> {
        let mut state = self.0.state()?;
        let _calling = self.0.calls();
        self.replace_blob(at, rowid, (before, bytes), &mut state)?;
        drop(state);
        Ok(self.mark(at))
    }

    fn replace_blob(
        &self,
        at: &BlobColumn,
        rowid: i64,
        change: (&[u8], &[u8]),
        state: &mut State,
    ) -> Result<()> {
        let ends = state.start_reading(&at.others(state), Base::Acknowledged)?;
        let located = locate(at, &self.0.engine, state);
        if ends {
            state.txn.rollback();
        }
        let tree = located?.0.tree.clone();
        let commits = state.start_writing_to(&tree)?;
        state.changed += 1;
        let written = self.put_blob(at, rowid, change, &tree, state);
        match (&written, commits) {
            (Ok(()), true) => state.commit_statement(),
            (Err(_), true) => {
                state.txn.rollback();
                written
            }
            // One that only was not there any more has written nothing.
            (Err(error), false) if error.code() != code::ABORT => {
                state.abandon();
                written
            }
            (_, false) => written,
        }
    }

    fn put_blob(
        &self,
        at: &BlobColumn,
        rowid: i64,
        (before, bytes): (&[u8], &[u8]),
        tree: &Tree,
        state: &mut State,
    ) -> Result<()> {
        let located = locate(at, &self.0.engine, state).map_err(|_| expired())?;
        let (table, column) = located;
        let mut record = Vec::new();
        let is_there = table.tree.id() == tree.id()
            && state
                .txn
                .get_to_change(tree, Key::Int(rowid), &mut record)?;
        if !is_there {
            return Err(expired());
        }
        let value = match value_of(&table, column, &record)? {
            ValueRef::Text(found) if found == before => ValueRef::Text(bytes),
            ValueRef::Blob(found) if found == before => ValueRef::Blob(bytes),
            _ => return Err(expired()),
        };
        let reader = RowReader::new(&record)?;
        let values = (0..reader.len().max(column + 1)).map(|i| match i == column {
            true => Ok(value),
            false => value_of(&table, i, &record),
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let mut changed = Vec::new();
        RowWriter::encode(&mut changed, values)?;
        state.txn.put(tree, Key::Int(rowid), &changed)?;
        Ok(())
    }
}

/// What a handle answers whose row has changed by other means.
#[cold]
pub fn expired() -> Error {
    Error::new(code::ABORT, "query aborted")
}

/// The value of a stored column.
fn value_of<'r>(table: &'r Table, column: usize, record: &'r [u8]) -> Result<ValueRef<'r>> {
    let missing = table.columns.get(column).map(|it| it.missing.as_ref());
    RowReader::new(record)?.column_or(column, missing.unwrap_or(ValueRef::Null))
}

/// The table and the number of the column, if handles can be opened for it.
fn locate(at: &BlobColumn, engine: &Engine, state: &mut State) -> Result<(Arc<Table>, usize)> {
    let no_such_table = || Error::sql(format!("no such table: {}.{}", at.database, at.table));
    let Some(engine) = at.engine(engine, state).cloned() else {
        return Err(no_such_table());
    };
    if at.writable && engine.store().options().read_only {
        let message = "attempt to write a readonly database";
        return Err(Error::new(code::READONLY, message));
    }
    let schema = engine.schema(state.txn.in_store(engine.store().number()))?;
    let Some(table) = schema.table(&at.table)? else {
        return Err(match schema.view(&at.table)? {
            Some(_) => Error::sql(format!("cannot open view: {}", at.table)),
            None => no_such_table(),
        });
    };
    if table.without_rowid {
        let message = format!("cannot open table without rowid: {}", at.table);
        return Err(Error::sql(message));
    }
    if table.has_generated {
        let message = format!("cannot open table with generated columns: {}", at.table);
        return Err(Error::sql(message));
    }
    let is_it = |name: &str| name.eq_ignore_ascii_case(&at.column);
    let column = table.columns.iter().position(|it| is_it(&it.name));
    let Some(column) = column else {
        return Err(Error::sql(format!("no such column: \"{}\"", at.column)));
    };
    if at.writable {
        check_writable(&table, column, state)?;
    }
    Ok((table, column))
}

/// Fails for a column that others depend on.
fn check_writable(table: &Table, column: usize, state: &State) -> Result<()> {
    // Its name is no user's.
    if table.name.to_ascii_lowercase().starts_with("sqlite_") {
        let message = format!("table {} may not be modified", table.name);
        return Err(Error::sql(message));
    }
    let mut keys = table.foreign_keys.iter();
    if state.settings.foreign_keys && keys.any(|key| key.columns.contains(&column)) {
        return Err(Error::sql("cannot open foreign key column for writing"));
    }
    let holds = |target: &IndexTarget| match target {
        IndexTarget::Column(number) => *number == column,
        IndexTarget::Rowid => false,
        IndexTarget::Expr(_) => true,
    };
    let mut indexes = table.indexes.iter();
    let is_indexed = indexes
        .any(|index| index.columns.iter().any(|it| holds(&it.target)) || index.predicate.is_some());
    match is_indexed {
        true => Err(Error::sql("cannot open indexed column for writing")),
        false => Ok(()),
    }
}
