//! Texts and blobs of single rows, read and written without a statement: what a handle of
//! a blob does. No trigger fires and no constraint is looked at, as in SQLite; so columns
//! of indexes and foreign keys are not written.

use std::ops::{Bound, Range};
use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Seek, Store, Tree};

use super::databases::{Database, Held};
use super::state::{Base, State};
use super::{Engine, Session};
use crate::error::{Error, Result, code};
use crate::row::{Kind, Large, RowReader, RowWriter};
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
struct Mark {
    own: u64,
    store: u64,
    newest: u64,
}

/// A text or blob of a row, as it is in one state of the database.
pub struct BlobHandle {
    column: BlobColumn,
    rowid: i64,
    tree: Tree,
    /// On the row, in that state.
    row: Cursor,
    /// What of the row is the value.
    place: Place,
    mark: Mark,
    /// Keeps the database from being detached; the main one never is.
    _held: Option<Held>,
}

/// Where a value is.
enum Place {
    /// These bytes of the row.
    Stored(Range<usize>),
    /// The row is older than the column, of which this is the default.
    Missing(Vec<u8>),
}

impl BlobHandle {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match &self.place {
            Place::Stored(range) => range.len(),
            Place::Missing(bytes) => bytes.len(),
        }
    }

    /// Whether the value was not written between the states of both.
    fn has_value_of(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Place::Stored(part), Place::Stored(others)) => {
                let (part, others) = (part.clone(), others.clone());
                self.row.is_same_part(part, &other.row, others)
            }
            (Place::Missing(bytes), Place::Missing(others)) => {
                self.tree == other.tree && bytes == others
            }
            _ => false,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Session {
    /// As long as this is the same, the connection sees the same state of the column.
    fn mark(&self, at: &BlobColumn, state: &State) -> Mark {
        let engine = at.engine(&self.0.engine, state).unwrap_or(&self.0.engine);
        let store: &Store = engine.store();
        Mark {
            own: state.changed,
            store: store.number(),
            newest: store.newest(),
        }
    }

    /// Opens a row's text or blob.
    ///
    /// # Errors
    /// A table, column or row that is not there or of another kind.
    pub fn open_blob(&self, at: &BlobColumn, rowid: i64) -> Result<BlobHandle> {
        let mut state = self.0.state()?;
        if at.writable {
            state.check_writes()?;
        }
        self.find_blob(at, rowid, &mut state)
    }

    fn find_blob(&self, at: &BlobColumn, rowid: i64, state: &mut State) -> Result<BlobHandle> {
        // What is committed from here on is looked at again.
        let mark = self.mark(at, state);
        let ends = state.start_reading(&at.others(state), Base::Acknowledged)?;
        let found = self.look_for_blob(at, rowid, mark, state);
        if ends {
            state.txn.rollback();
        }
        found
    }

    fn look_for_blob(
        &self,
        at: &BlobColumn,
        rowid: i64,
        mark: Mark,
        state: &mut State,
    ) -> Result<BlobHandle> {
        let (table, column) = locate(at, &self.0.engine, state)?;
        let mut row = state.txn.cursor(&table.tree)?;
        let alone = Bound::Included(Key::Int(rowid));
        row.narrow(alone, alone);
        if !row.seek(Seek::AtLeast(Key::Int(rowid)))? || row.key_int() != rowid {
            return Err(Error::sql(format!("no such rowid: {rowid}")));
        }
        let place = place_of(&row, &table, column)?;
        let held = state.named(&at.database).map(Database::hold);
        Ok(BlobHandle {
            column: at.clone(),
            rowid,
            tree: table.tree.clone(),
            row,
            place,
            mark,
            _held: held,
        })
    }

    /// Makes sure that the connection sees the value that the handle has.
    ///
    /// # Errors
    /// `SQLITE_ABORT` where the value was written since, or is gone.
    fn check_blob(&self, handle: &mut BlobHandle, state: &mut State) -> Result<()> {
        if handle.mark == self.mark(&handle.column, state) {
            return Ok(());
        }
        let found = self.find_blob(&handle.column, handle.rowid, state);
        let found = found.map_err(|_| expired())?;
        match found.has_value_of(handle) {
            true => {
                *handle = found;
                Ok(())
            }
            false => Err(expired()),
        }
    }

    /// Appends bytes of the value to `out`, all of which it has.
    ///
    /// # Errors
    /// `SQLITE_ABORT` where the value was written since, or is gone; what reading fails with.
    pub fn read_blob(
        &self,
        handle: &mut BlobHandle,
        part: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.check_blob(handle, &mut *self.0.state()?)?;
        match &handle.place {
            Place::Stored(range) => {
                let part = range.start + part.start..range.start + part.end;
                Ok(handle.row.value_part(part, out)?)
            }
            Place::Missing(bytes) => {
                out.extend_from_slice(bytes.get(part).unwrap_or(&[]));
                Ok(())
            }
        }
    }

    /// Writes bytes over those of the value from `from` on, all of which it has.
    ///
    /// # Errors
    /// `SQLITE_ABORT` where the value was written since, or is gone; `SQLITE_READONLY`; what
    /// writing may fail with.
    pub fn write_blob(&self, handle: &mut BlobHandle, from: usize, bytes: &[u8]) -> Result<()> {
        let mut state = self.0.state()?;
        let _calling = self.0.calls();
        let state = &mut *state;
        // What is written alone is looked at under the tree's lock.
        if !state.is_autocommit() {
            self.check_blob(handle, state)?;
        }
        let commits = state.start_writing_to(&handle.tree)?;
        // It goes over what was committed last, acknowledged or not.
        let is_same = !commits && handle.mark == self.mark(&handle.column, state);
        state.txn.set_whole(!commits);
        let put = match is_same {
            true => self.put_blob(handle, from, bytes, state),
            false => self.look_and_put(handle, from, bytes, state),
        };
        state.txn.set_whole(false);
        state.changed += 1;
        // As this transaction leaves it: what others write from its commit on ends the handle.
        let mark = match commits {
            true => handle.mark,
            false => self.mark(&handle.column, state),
        };
        let look = |()| self.look_for_blob(&handle.column, handle.rowid, mark, state);
        let written = put.and_then(look);
        match (written, commits) {
            (Ok(written), true) => {
                state.commit_statement()?;
                *handle = written;
            }
            (Ok(written), false) => *handle = written,
            (Err(error), true) => {
                let durable = state.txn.rollback_to_tell();
                // One that only was not there any more was none.
                if error.code() != code::ABORT {
                    state.rolled_back();
                }
                durable?;
                return Err(error);
            }
            // One that only was not there any more has written nothing.
            (Err(error), false) => {
                if error.code() != code::ABORT {
                    state.abandon();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes to the value unless somebody else did, before the tree was locked. Where it
    /// lies in the row may be another place by now.
    fn look_and_put(
        &self,
        handle: &mut BlobHandle,
        from: usize,
        bytes: &[u8],
        state: &mut State,
    ) -> Result<()> {
        let found = self.look_for_blob(&handle.column, handle.rowid, handle.mark, state);
        match found {
            Ok(found) if found.has_value_of(handle) => {
                *handle = found;
                self.put_blob(handle, from, bytes, state)
            }
            _ => Err(expired()),
        }
    }

    fn put_blob(
        &self,
        handle: &BlobHandle,
        from: usize,
        bytes: &[u8],
        state: &mut State,
    ) -> Result<()> {
        let key = Key::Int(handle.rowid);
        let written = match &handle.place {
            Place::Stored(range) => {
                let from = range.start + from;
                state.txn.put_part(&handle.tree, key, from, bytes)?
            }
            Place::Missing(default) => self.store_default(handle, default, (from, bytes), state)?,
        };
        match written {
            true => Ok(()),
            false => Err(expired()),
        }
    }

    /// Stores a value that is the default of a column that the row has not.
    fn store_default(
        &self,
        handle: &BlobHandle,
        default: &[u8],
        (from, bytes): (usize, &[u8]),
        state: &mut State,
    ) -> Result<bool> {
        let (table, column) = locate(&handle.column, &self.0.engine, state)?;
        let key = Key::Int(handle.rowid);
        let mut record = Vec::new();
        if !state.txn.get_to_change(&table.tree, key, &mut record)? {
            return Ok(false);
        }
        let mut value = default.to_vec();
        if let Some(place) = value.get_mut(from..from + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        let reader = RowReader::new(&record)?;
        let missing = |i: usize| table.columns.get(i).map(|it| it.missing.as_ref());
        let values = (0..=column).map(|i| match missing(i).unwrap_or(ValueRef::Null) {
            ValueRef::Text(_) if i == column => Ok(ValueRef::Text(&value)),
            _ if i == column => Ok(ValueRef::Blob(&value)),
            missing => reader.column_or(i, missing),
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let mut changed = Vec::new();
        RowWriter::encode(&mut changed, values)?;
        Ok(state.txn.put(&table.tree, key, &changed)?)
    }
}

/// Where a row has the column's value.
fn place_of(row: &Cursor, table: &Table, column: usize) -> Result<Place> {
    let (start, length) = row.value_start()?;
    let mut large = Large {
        start,
        length,
        load: |part, out: &mut Vec<u8>| Ok(row.value_part(part, out)?),
    };
    let missing = table.columns.get(column).map(|it| it.missing.as_ref());
    let kind = match (large.place(column)?, missing) {
        (Some((Kind::Text | Kind::Blob, range)), _) => return Ok(Place::Stored(range)),
        (Some((kind, _)), _) => kind,
        (None, Some(ValueRef::Text(bytes) | ValueRef::Blob(bytes))) => {
            return Ok(Place::Missing(bytes.to_vec()));
        }
        (None, Some(ValueRef::Integer(_))) => Kind::Integer,
        (None, Some(ValueRef::Real(_))) => Kind::Real,
        (None, _) => Kind::Null,
    };
    Err(Error::sql(format!(
        "cannot open value of type {}",
        match kind {
            Kind::Integer => "integer",
            Kind::Real => "real",
            _ => "null",
        }
    )))
}

/// What a handle answers whose row has changed by other means.
#[cold]
pub fn expired() -> Error {
    Error::new(code::ABORT, "query aborted")
}

/// The table and the number of the column, if handles can be opened for it.
fn locate(at: &BlobColumn, engine: &Engine, state: &mut State) -> Result<(Arc<Table>, usize)> {
    let no_such_table = || Error::sql(format!("no such table: {}.{}", at.database, at.table));
    let Some(engine) = at.engine(engine, state).cloned() else {
        return Err(no_such_table());
    };
    if at.writable && engine.store().is_read_only() {
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
