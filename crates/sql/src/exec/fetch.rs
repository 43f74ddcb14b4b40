//! From a stored row to the columns someone asked for.

use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Run};

use crate::error::{Error, Result};
use crate::exec::batch::Vector;
use crate::exec::memory::let_go;
use crate::exec::txns::Txns;
use crate::plan::physical::ScanColumn;
use crate::row::{Columns, Large, RowBlock, RowReader};
use crate::schema::Table;
use crate::value::{Value, ValueRef};

/// Memory for rows of which not all is read.
#[derive(Default)]
pub struct Narrow {
    row: Vec<u8>,
    spare: Vec<u8>,
}

impl Narrow {
    /// Between two runs: gives back what a large row took.
    pub fn let_go(&mut self) {
        let_go(&mut self.row);
    }
}

/// A row, with the wanted columns at least.
#[derive(Debug, Clone, Copy)]
pub struct Fetched<'a> {
    /// Its bytes.
    pub row: &'a [u8],
    /// It is not all that is stored.
    pub is_large: bool,
}

/// Which columns of a table's rows are wanted and where they go.
pub struct Fetch {
    table: Arc<Table>,
    /// Stored columns, ascending.
    stored: Vec<usize>,
    /// Where each goes.
    places: Vec<usize>,
    /// Where the rowid goes.
    rowids: Vec<usize>,
    /// Those of the stored that may stay where they are.
    kept: Vec<usize>,
    /// Where it goes whether some did.
    is_large: Option<usize>,
    width: usize,
}

impl Fetch {
    /// The columns of a scan, in its order.
    pub fn new(table: &Arc<Table>, columns: &[ScanColumn]) -> Self {
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        let mut rowids = Vec::new();
        let (mut kept, mut is_large) = (Vec::new(), None);
        for (place, column) in columns.iter().enumerate() {
            match column {
                ScanColumn::Rowid => rowids.push(place),
                ScanColumn::Column(c) if table.rowid_alias == Some(*c) => rowids.push(place),
                ScanColumn::Column(c) => wanted.push((*c, place)),
                ScanColumn::Kept(c) => {
                    wanted.push((*c, place));
                    kept.push(*c);
                }
                ScanColumn::IsLarge => is_large = Some(place),
            }
        }
        wanted.sort_unstable();
        let (stored, places) = wanted.into_iter().unzip();
        Self {
            table: Arc::clone(table),
            stored,
            places,
            rowids,
            kept,
            is_large,
            width: columns.len(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// How many columns are wanted.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The row that the cursor is on, or, where it is large, one that has the wanted
    /// columns of it.
    #[inline]
    pub fn row<'c>(&self, cursor: &'c Cursor, narrow: &'c mut Narrow) -> Result<Fetched<'c>> {
        let (start, length) = cursor.value_start()?;
        if start.len() == length || self.stored.is_empty() {
            return Ok(Fetched {
                row: start,
                is_large: false,
            });
        }
        if !self.lies_in(start) {
            self.narrow(cursor, (start, length), narrow)?;
            return Ok(Fetched {
                row: &narrow.row,
                is_large: true,
            });
        }
        Ok(Fetched {
            row: start,
            is_large: true,
        })
    }

    #[cold]
    fn narrow(
        &self,
        cursor: &Cursor,
        (start, length): (&[u8], usize),
        narrow: &mut Narrow,
    ) -> Result<()> {
        let mut large = Large {
            start,
            length,
            load: |part, out: &mut Vec<u8>| Ok(cursor.value_part(part, out)?),
        };
        large.narrow(self.columns(), &mut narrow.row, &mut narrow.spare)
    }

    /// Whether the start of a row has the bytes of all wanted columns.
    fn lies_in(&self, start: &[u8]) -> bool {
        let row = RowReader::new(start);
        row.is_ok_and(|row| row.holds(&self.stored))
    }

    /// As [`Fetch::row`] for the row under a key, whose start is in `row` and which has so
    /// many bytes; whether it is large.
    #[inline]
    pub fn complete(
        &self,
        txn: &mut Txns,
        rowid: i64,
        length: usize,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        if row.len() == length || self.stored.is_empty() {
            return Ok(false);
        }
        if !self.lies_in(row) {
            self.narrow_by_key(txn, rowid, length, row)?;
        }
        Ok(true)
    }

    #[cold]
    fn narrow_by_key(
        &self,
        txn: &mut Txns,
        rowid: i64,
        length: usize,
        row: &mut Vec<u8>,
    ) -> Result<()> {
        let start = row.clone();
        let tree = &self.table.tree;
        let mut large = Large {
            start: &start,
            length,
            load: |part, out: &mut Vec<u8>| {
                txn.get_part(tree, Key::Int(rowid), part, out)?;
                Ok(())
            },
        };
        large.narrow(self.columns(), row, &mut Vec::new())
    }

    fn columns(&self) -> Columns<'_> {
        Columns {
            wanted: &self.stored,
            kept: &self.kept,
        }
    }

    /// Calls `f` with place and value of each wanted column.
    #[inline(always)]
    pub fn each<'a>(
        &'a self,
        rowid: i64,
        fetched: Fetched<'a>,
        mut f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        let Fetched { row, is_large } = fetched;
        for place in &self.rowids {
            f(*place, ValueRef::Integer(rowid))?;
        }
        if let Some(place) = self.is_large {
            f(place, ValueRef::Integer(i64::from(is_large)))?;
        }
        if self.stored.is_empty() {
            return Ok(());
        }
        let reader = RowReader::new(row)?;
        if self.stored.last().is_some_and(|last| *last >= reader.len()) {
            return self.each_with_missing(&reader, f);
        }
        let places = &self.places;
        reader.select(self.stored.iter().copied(), |i, value| {
            f(places.get(i).copied().unwrap_or(usize::MAX), value)
        })
    }

    /// For rows older than a column.
    #[cold]
    fn each_with_missing<'a>(
        &'a self,
        reader: &RowReader<'a>,
        mut f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        for (column, place) in self.stored.iter().zip(&self.places) {
            let missing = self
                .table
                .columns
                .get(*column)
                .map_or(ValueRef::Null, |c| c.missing.as_ref());
            f(*place, reader.column_or(*column, missing)?)?;
        }
        Ok(())
    }

    /// Appends the row to the columns.
    #[inline(always)]
    pub fn push(&self, rowid: i64, row: Fetched<'_>, out: &mut [Vector]) -> Result<()> {
        self.each(rowid, row, |place, value| match out.get_mut(place) {
            Some(column) => column.push(value),
            None => Ok(()),
        })
    }

    /// Appends the first rows of the run to the columns, as far as they can be
    /// decoded together. How many they were, and their bytes; none: the first
    /// row needs [`Fetch::push`].
    pub fn push_run(&self, run: Run<'_>, out: &mut [Vector]) -> Result<(usize, usize)> {
        let (count, bytes) = match self.stored.last() {
            None => (run.len(), 0),
            Some(last) => {
                let Some(mut block) = RowBlock::of(run, last + 1) else {
                    return Ok((0, 0));
                };
                let mut previous = None;
                for (column, place) in self.stored.iter().zip(&self.places) {
                    // A column asked for twice is read from the start again.
                    if previous == Some(column) {
                        block.rewind();
                    }
                    if let Some(out) = out.get_mut(*place) {
                        block.column(*column, out)?;
                    }
                    previous = Some(column);
                }
                (block.rows(), block.bytes())
            }
        };
        if let Some(place) = self.is_large {
            let slots = out.get_mut(place).and_then(|v| v.extend_integers(count));
            slots.into_iter().flatten().for_each(|slot| *slot = 0);
        }
        for place in &self.rowids {
            let slots = out.get_mut(*place).and_then(|v| v.extend_integers(count));
            for (slot, rowid) in slots.into_iter().flatten().zip(run.keys()) {
                *slot = rowid;
            }
        }
        Ok((count, bytes))
    }

    /// Overwrites `out` with the row.
    pub fn assign(&self, rowid: i64, row: &[u8], out: &mut Vec<Value>) -> Result<()> {
        out.resize(self.width, Value::Null);
        let row = Fetched {
            row,
            is_large: false,
        };
        self.each(rowid, row, |place, value| {
            if let Some(slot) = out.get_mut(place) {
                slot.assign(value);
            }
            Ok(())
        })
    }
}

/// Overwrites `out` with rowid and all columns: a table's row as sinks see it.
pub fn read_whole_row(table: &Table, rowid: i64, row: &[u8], out: &mut Vec<Value>) -> Result<()> {
    out.resize(table.columns.len() + 1, Value::Null);
    let mut set = |place: usize, value: ValueRef<'_>| {
        if let Some(slot) = out.get_mut(place) {
            slot.assign(value);
        }
        Ok(())
    };
    set(0, ValueRef::Integer(rowid))?;
    let alias = table.rowid_alias;
    if let Some(alias) = alias {
        set(alias + 1, ValueRef::Integer(rowid))?;
    }
    let mut stored = (0..table.columns.len()).filter(|column| alias != Some(*column));
    let Some(last) = stored.clone().next_back() else {
        return Ok(());
    };
    let reader = RowReader::new(row)?;
    if last < reader.len() {
        let place = |i: usize| i + 1 + usize::from(alias.is_some_and(|alias| alias <= i));
        return reader.select(stored, |i, value| set(place(i), value));
    }
    // The row is older than a column.
    stored.try_for_each(|column| {
        let missing = table.columns.get(column);
        let missing = missing.map_or(ValueRef::Null, |column| column.missing.as_ref());
        set(column + 1, reader.column_or(column, missing)?)
    })
}

/// An index entry without a row.
#[cold]
pub fn dangling(index: &str, rowid: i64) -> Error {
    Error::corrupt(format_args!(
        "index {index} has an entry for rowid {rowid}, which its table has not"
    ))
}
