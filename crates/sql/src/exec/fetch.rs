//! From a stored row to the columns someone asked for.

use std::ops::Range;
use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Run};

use crate::error::{Error, Result};
use crate::exec::batch::Vector;
use crate::exec::memory::let_go;
use crate::exec::txns::Txns;
use crate::plan::physical::ScanColumn;
use crate::row::{Columns, Large, Property, RowBlock, RowReader};
use crate::schema::Table;
use crate::value::{Value, ValueRef};

/// Memory for rows of which not all is read.
#[derive(Default)]
pub struct Narrow {
    row: Vec<u8>,
    spare: Vec<u8>,
    properties: Vec<ValueRef<'static>>,
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
    /// The wanted properties of a large one.
    pub properties: &'a [ValueRef<'static>],
}

impl<'a> Fetched<'a> {
    /// A row of which all is at hand.
    fn whole(row: &'a [u8]) -> Self {
        Self {
            row,
            is_large: false,
            properties: &[],
        }
    }
}

/// A property of a column that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    column: usize,
    property: Property,
    /// Where it goes.
    place: usize,
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
    /// Properties of stored columns, ascending.
    asked: Vec<Asked>,
    /// The last column that is read, if any is.
    last: Option<usize>,
    width: usize,
}

impl Fetch {
    /// The columns of a scan, in its order.
    pub fn new(table: &Arc<Table>, columns: &[ScanColumn]) -> Self {
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        let mut rowids = Vec::new();
        let (mut kept, mut is_large) = (Vec::new(), None);
        let mut asked = Vec::new();
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
                ScanColumn::Property(column, property) => asked.push(Asked {
                    column: *column,
                    property: *property,
                    place,
                }),
            }
        }
        wanted.sort_unstable();
        asked.sort_unstable();
        let last_asked = asked.last().map(|it| it.column);
        let (stored, places): (Vec<usize>, Vec<usize>) = wanted.into_iter().unzip();
        let last = stored.last().copied().max(last_asked);
        Self {
            table: Arc::clone(table),
            stored,
            places,
            rowids,
            kept,
            is_large,
            asked,
            last,
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
        if start.len() == length || self.last.is_none() {
            return Ok(Fetched::whole(start));
        }
        let large = Large {
            start,
            length,
            load: |part, out: &mut Vec<u8>| Ok(cursor.value_part(part, out)?),
        };
        let is_narrow = self.large(large, narrow);
        let is_narrow = is_narrow.map_err(|error| in_row(error, &self.table, cursor.key_int()))?;
        Ok(Fetched {
            row: if is_narrow { &narrow.row } else { start },
            is_large: true,
            properties: &narrow.properties,
        })
    }

    /// Of a large row finds the properties that are wanted, and makes a narrow one where its
    /// start has not all columns that are; whether it did.
    fn large<L>(&self, mut large: Large<'_, L>, narrow: &mut Narrow) -> Result<bool>
    where
        L: FnMut(Range<usize>, &mut Vec<u8>) -> Result<()>,
    {
        narrow.properties.clear();
        for it in &self.asked {
            let found = large.property(it.column, it.property)?;
            let found = found.unwrap_or_else(|| it.property.of(self.missing(it.column)));
            narrow.properties.push(found);
        }
        let is_narrow = !self.lies_in(large.start);
        if is_narrow {
            large.narrow(self.columns(), &mut narrow.row, &mut narrow.spare)?;
        }
        Ok(is_narrow)
    }

    /// What a column is in rows that are older than it.
    fn missing(&self, column: usize) -> ValueRef<'_> {
        let column = self.table.columns.get(column);
        column.map_or(ValueRef::Null, |column| column.missing.as_ref())
    }

    /// Whether the start of a row has the bytes of all wanted columns.
    fn lies_in(&self, start: &[u8]) -> bool {
        let row = RowReader::new(start);
        row.is_ok_and(|row| row.holds(&self.stored))
    }

    /// As [`Fetch::row`] for the row under a key, whose start is in `row` and which has so
    /// many bytes; whether it is large. The properties of a large one go to `properties`.
    #[inline]
    pub fn complete(
        &self,
        txn: &mut Txns,
        (rowid, length): (i64, usize),
        row: &mut Vec<u8>,
        properties: &mut Vec<ValueRef<'static>>,
    ) -> Result<bool> {
        if row.len() == length || self.last.is_none() {
            return Ok(false);
        }
        if !self.asked.is_empty() || !self.lies_in(row) {
            self.complete_large(txn, (rowid, length), row, properties)?;
        }
        Ok(true)
    }

    #[cold]
    fn complete_large(
        &self,
        txn: &mut Txns,
        (rowid, length): (i64, usize),
        row: &mut Vec<u8>,
        properties: &mut Vec<ValueRef<'static>>,
    ) -> Result<()> {
        let start = row.clone();
        let tree = &self.table.tree;
        let large = Large {
            start: &start,
            length,
            load: |part, out: &mut Vec<u8>| {
                txn.get_part(tree, Key::Int(rowid), part, out)?;
                Ok(())
            },
        };
        let mut narrow = Narrow {
            row: std::mem::take(row),
            spare: Vec::new(),
            properties: std::mem::take(properties),
        };
        let is_narrow = self.large(large, &mut narrow);
        let is_narrow = is_narrow.map_err(|error| in_row(error, &self.table, rowid))?;
        *row = if is_narrow { narrow.row } else { start };
        *properties = narrow.properties;
        Ok(())
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
        f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        self.each_of(rowid, fetched, f)
            .map_err(|error| in_row(error, &self.table, rowid))
    }

    #[inline(always)]
    fn each_of<'a>(
        &'a self,
        rowid: i64,
        fetched: Fetched<'a>,
        mut f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        let Fetched { row, is_large, .. } = fetched;
        for place in &self.rowids {
            f(*place, ValueRef::Integer(rowid))?;
        }
        if let Some(place) = self.is_large {
            f(place, ValueRef::Integer(i64::from(is_large)))?;
        }
        if self.last.is_none() {
            return Ok(());
        }
        let reader = RowReader::new(row)?;
        if !self.asked.is_empty() {
            self.each_property(&reader, fetched, &mut f)?;
        }
        if self.stored.last().is_some_and(|last| *last >= reader.len()) {
            return self.each_with_missing(&reader, f);
        }
        let places = &self.places;
        reader.select(self.stored.iter().copied(), |i, value| {
            f(places.get(i).copied().unwrap_or(usize::MAX), value)
        })
    }

    /// The same of each wanted property.
    fn each_property<'a>(
        &'a self,
        reader: &RowReader<'a>,
        fetched: Fetched<'a>,
        f: &mut impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        if fetched.is_large {
            let mut found = self.asked.iter().zip(fetched.properties);
            return found.try_for_each(|(it, property)| f(it.place, *property));
        }
        for it in &self.asked {
            let value = reader.column_or(it.column, self.missing(it.column))?;
            f(it.place, it.property.of(value))?;
        }
        Ok(())
    }

    /// For rows older than a column.
    #[cold]
    fn each_with_missing<'a>(
        &'a self,
        reader: &RowReader<'a>,
        mut f: impl FnMut(usize, ValueRef<'a>) -> Result<()>,
    ) -> Result<()> {
        for (column, place) in self.stored.iter().zip(&self.places) {
            f(*place, reader.column_or(*column, self.missing(*column))?)?;
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

    /// Appends the first rows of the run to the columns, or, `reverse`, the last ones from the
    /// last one on, as far as they can be decoded together. How many they were, and their
    /// bytes; none: the first row needs [`Fetch::push`].
    pub fn push_run(
        &self,
        run: Run<'_>,
        reverse: bool,
        out: &mut [Vector],
    ) -> Result<(usize, usize)> {
        let place = |error: Error| error.within(format_args!("a row of {}", self.table.name));
        self.push_rows(run, reverse, out).map_err(place)
    }

    fn push_rows(&self, run: Run<'_>, reverse: bool, out: &mut [Vector]) -> Result<(usize, usize)> {
        let (count, bytes) = match self.last {
            None => (run.len(), 0),
            Some(last) => {
                let Some(mut block) = RowBlock::of(run, last + 1, reverse) else {
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
                if !self.asked.is_empty() {
                    self.push_properties(&mut block, out)?;
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
            let slots = slots.into_iter().flatten();
            match reverse {
                false => slots
                    .zip(run.keys())
                    .for_each(|(slot, rowid)| *slot = rowid),
                true => slots
                    .zip(run.keys().rev())
                    .for_each(|(slot, rowid)| *slot = rowid),
            }
        }
        Ok((count, bytes))
    }

    fn push_properties(&self, block: &mut RowBlock<'_>, out: &mut [Vector]) -> Result<()> {
        for it in &self.asked {
            if let Some(out) = out.get_mut(it.place) {
                block.rewind();
                block.property(it.column, it.property, out)?;
            }
        }
        Ok(())
    }

    /// Overwrites `out` with the row.
    pub fn assign(&self, rowid: i64, row: &[u8], out: &mut Vec<Value>) -> Result<()> {
        out.resize(self.width, Value::Null);
        self.each(rowid, Fetched::whole(row), |place, value| {
            if let Some(slot) = out.get_mut(place) {
                slot.assign(value);
            }
            Ok(())
        })
    }
}

/// Overwrites `out` with rowid and all columns: a table's row as sinks see it.
pub fn read_whole_row(table: &Table, rowid: i64, row: &[u8], out: &mut Vec<Value>) -> Result<()> {
    read_columns(table, rowid, row, out).map_err(|error| in_row(error, table, rowid))
}

#[inline]
fn read_columns(table: &Table, rowid: i64, row: &[u8], out: &mut Vec<Value>) -> Result<()> {
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

/// Says of what was found damaged that it is this row.
#[cold]
pub fn in_row(error: Error, table: &Table, rowid: i64) -> Error {
    error.within(format_args!("row {rowid} of {}", table.name))
}

/// An index entry without a row.
#[cold]
pub fn dangling(index: &str, rowid: i64) -> Error {
    Error::corrupt(format_args!(
        "index {index} has an entry for rowid {rowid}, which its table has not"
    ))
}
