//! Writing a batch of rows at once.
//!
//! Where nothing wants to see a row by itself (`by_batch` in the plan: no index entry
//! changes, no CHECK, no RETURNING), the rows of a batch are encoded one behind the other
//! and handed to the store together. What asks for more than that in the batch at hand
//! (NULL in a column that must not have it, a rowid that is no integer) is left to the way
//! row by row, before anything of the batch is written; so are rows from the first on
//! whose rowid is taken.

use super::Written;
use super::sink::Sink;
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector, kept, tag};
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::{Datum, Operand, map_batch, operand};
use crate::exec::memory::let_go;
use crate::exec::ops::Operator;
use crate::exec::txns::Txns;
use crate::plan::physical::{Delete, Insert, Update};
use crate::row::{FEW, RowWriter};
use crate::schema::Column;
use crate::value::ValueRef;
use fulgurite_store::Tree;

/// To prepare a batch of fewer rows is not worth it.
const ROWS_MIN: usize = 8;

/// Rows as they are stored, and their keys.
#[derive(Default)]
pub struct Records {
    keys: Vec<i64>,
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    ends: Vec<usize>,
}

impl Records {
    /// Between two runs: gives back what large rows took.
    pub fn let_go(&mut self) {
        let_go(&mut self.bytes);
    }

    /// Lets go of the rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Encodes one more row.
    #[inline]
    pub fn push<'v>(
        &mut self,
        values: impl ExactSizeIterator<Item = ValueRef<'v>> + Clone,
    ) -> Result<()> {
        RowWriter::encode(&mut self.bytes, values)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Encodes the rows of a batch, whose columns are these.
    fn encode(&mut self, columns: &[Operand<'_>], selection: Selection<'_>) -> Result<()> {
        self.clear();
        if let Some(integers) = integers(columns) {
            selection.each(|row| {
                let values = integers.iter().map(|column| column.get(row));
                RowWriter::encode_integers(&mut self.bytes, values);
                self.ends.push(self.bytes.len());
            });
            return Ok(());
        }
        selection.try_each(|row| self.push(columns.iter().map(|column| column.get(row))))
    }

    /// The keys of the rows of a batch, if this column holds nothing but integers.
    fn take_keys(&mut self, column: Option<&Vector>, selection: Selection<'_>) -> bool {
        self.keys.clear();
        let Some(keys) = column.and_then(Vector::integers) else {
            return false;
        };
        match selection {
            Selection::All(rows) => self.keys.extend(keys.iter().take(rows)),
            Selection::Rows(rows) => {
                let picked = rows.iter().filter_map(|row| keys.get(*row as usize));
                self.keys.extend(picked);
            }
        }
        self.keys.len() == selection.len()
    }

    /// The rows from `first` on, as the store takes them.
    fn entries(&self, first: usize) -> impl Iterator<Item = (i64, &[u8])> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let records = starts.zip(&self.ends);
        let records = records.map(|(start, end)| self.bytes.get(*start..*end).unwrap_or(&[]));
        self.keys.iter().copied().zip(records).skip(first)
    }

    /// Writes the rows under new rowids; how many.
    pub fn append(&mut self, tree: &Tree, txn: &mut Txns) -> Result<usize> {
        self.keys.clear();
        let mut written = 0;
        while written < self.ends.len() {
            self.keys
                .extend(txn.allocate_rowids(tree, self.ends.len() - written)?);
            txn.put_all(tree, self.entries(written))?;
            written = self.keys.len();
        }
        Ok(written)
    }
}

/// Pulls all rows of a source, which is open, and hands on each batch once it is known
/// whether another one follows: of a source that has ended the cursors are closed before
/// its last rows are changed, since pages that somebody looks at are copied first.
pub fn in_batches<'p>(
    source: &mut dyn Operator,
    cx: &mut Context<'p, '_>,
    mut write: impl FnMut(&Batch, &mut Context<'p, '_>) -> Written<()>,
) -> Written<()> {
    let (mut batch, mut ahead) = (Batch::default(), Batch::default());
    let mut more = source.next(cx, usize::MAX, &mut batch)?;
    while more {
        cx.run.check_interrupt()?;
        let next = source.next(cx, usize::MAX, &mut ahead);
        if matches!(next, Ok(false)) {
            source.detach();
        }
        write(&batch, cx)?;
        more = next?;
        std::mem::swap(&mut batch, &mut ahead);
    }
    Ok(())
}

/// Whether a hook of the connection is told of each row.
fn is_told(cx: &Context<'_, '_>) -> bool {
    let hooks = cx.run.functions.hooks.as_ref();
    hooks.is_some_and(|hooks| hooks.tells_rows())
}

/// Inserts the first rows of a batch; how many.
pub fn insert(
    plan: &Insert,
    batch: &Batch,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<usize> {
    let selection = batch.selection();
    if !plan.by_batch || sink.foreign.is_some() || selection.len() < ROWS_MIN || is_told(cx) {
        return Ok(0);
    }
    let table = &sink.target.table;
    let mut columns = Vec::with_capacity(table.columns.len());
    for (at, (column, value)) in table.columns.iter().zip(&plan.values).enumerate() {
        let stored = match table.rowid_alias == Some(at) {
            true => Some(NOTHING),
            false => stored(column, value, batch, cx)?,
        };
        let Some(stored) = stored else {
            return Ok(0);
        };
        columns.push(stored);
    }
    let records = &mut sink.buffers.records;
    if let Some(rowid) = &plan.rowid {
        let Ok(rowids) = operand(rowid, batch, selection, cx) else {
            return Ok(0);
        };
        let taken = records.take_keys(rowids.vector(), selection);
        rowids.release(cx);
        if !taken {
            return Ok(0);
        }
    }
    records.encode(&columns, selection)?;
    sink.torn = true;
    let written = match &plan.rowid {
        Some(_) => sink.txn.insert_all(&table.tree, records.entries(0))?,
        None => records.append(&table.tree, sink.txn)?,
    };
    sink.torn = false;
    let last = sink.buffers.records.keys.get(..written);
    if let Some(rowid) = last.and_then(<[i64]>::last) {
        effects.inserted(written as u64, *rowid);
    }
    columns.into_iter().for_each(|column| column.release(cx));
    Ok(written)
}

/// Updates the rows of a batch; false, and nothing is done, where that takes more.
pub fn update(
    plan: &Update,
    batch: &Batch,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<bool> {
    let selection = batch.selection();
    if !plan.by_batch || selection.len() < ROWS_MIN || is_told(cx) {
        return Ok(false);
    }
    if let Some(at) = plan.is_large {
        let mut any = false;
        selection.each(|row| any |= batch.get(at, row) != ValueRef::Integer(0));
        if any {
            return Ok(false);
        }
    }
    let table = &sink.target.table;
    let old = batch.columns.iter().skip(1);
    let mut columns: Vec<_> = old.take(table.columns.len()).map(Operand::Column).collect();
    if let Some(alias) = table.rowid_alias.and_then(|alias| columns.get_mut(alias)) {
        *alias = NOTHING;
    }
    for (at, value) in &plan.assignments {
        let (Some(column), Some(slot)) = (table.columns.get(*at), columns.get_mut(*at)) else {
            return Ok(false);
        };
        let Some(stored) = stored(column, value, batch, cx)? else {
            return Ok(false);
        };
        *slot = stored;
    }
    let records = &mut sink.buffers.records;
    if !records.take_keys(batch.columns.first(), selection) {
        return Ok(false);
    }
    records.encode(&columns, selection)?;
    // Where the first row stays as it is all may.
    let first = batch.row_at(0).unwrap_or(0);
    let stays = plan.assignments.iter().all(|(at, _)| {
        let new = columns.get(*at).map(|column| column.get(first));
        new == Some(batch.get(at + 1, first))
    });
    sink.torn = true;
    match stays {
        true => sink.txn.rewrite_all(&table.tree, records.entries(0))?,
        false => sink.txn.put_all(&table.tree, records.entries(0))?,
    }
    sink.torn = false;
    effects.changed(selection.len() as u64);
    columns.into_iter().for_each(|column| column.release(cx));
    Ok(true)
}

/// Deletes the rows of a batch; false, and nothing is done, where that takes more.
pub fn delete(
    plan: &Delete,
    batch: &Batch,
    sink: &mut Sink<'_>,
    cx: &Context<'_, '_>,
    effects: &mut Effects,
) -> Written<bool> {
    let selection = batch.selection();
    let records = &mut sink.buffers.records;
    if !plan.by_batch
        || sink.foreign.is_some()
        || selection.len() < ROWS_MIN
        || is_told(cx) && !plan.whole_table
        || !records.take_keys(batch.columns.first(), selection)
    {
        return Ok(false);
    }
    let (mut deleted, mut largest) = (0, 0);
    sink.torn = true;
    sink.txn
        .delete_all(&sink.target.table.tree, &records.keys, |rowid| {
            deleted += 1;
            largest = rowid.max(largest);
        })?;
    sink.torn = false;
    sink.note_deleted(largest);
    effects.changed(deleted);
    Ok(true)
}

/// A column of nothing but integers, or of NULLs.
enum Integers<'a> {
    Column(&'a [i64]),
    Constant(Option<i64>),
}

impl Integers<'_> {
    #[inline]
    fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Column(words) => words.get(row).copied(),
            Self::Constant(value) => *value,
        }
    }
}

/// The columns of a batch, where they are few and all such.
fn integers<'a>(columns: &'a [Operand<'_>]) -> Option<Vec<Integers<'a>>> {
    let of = |column: &'a Operand<'_>| match (column.vector(), column.get(0)) {
        (Some(vector), _) => vector.integers().map(Integers::Column),
        (None, ValueRef::Integer(i)) => Some(Integers::Constant(Some(i))),
        (None, ValueRef::Null) => Some(Integers::Constant(None)),
        (None, _) => None,
    };
    match columns.len() <= FEW {
        true => columns.iter().map(of).collect(),
        false => None,
    }
}

/// What the column has that the key stands for.
const NOTHING: Operand<'static> = Operand::Constant(Datum::Same(ValueRef::Null));

/// The values of an expression as a column stores them; None where the column takes some
/// of them not at all, or the expression fails.
fn stored<'a, 'p: 'a>(
    column: &Column,
    expr: &'a Expr,
    batch: &'a Batch,
    cx: &mut Context<'p, '_>,
) -> Result<Option<Operand<'a>>> {
    let selection = batch.selection();
    let Ok(values) = operand(expr, batch, selection, cx) else {
        return Ok(None);
    };
    let kinds = values.vector().map_or(u8::MAX, Vector::kinds);
    let kept = kept(column.affinity);
    let takes_null = column.not_null.is_none();
    let is_plain = column.strict.is_none();
    if is_plain && kinds & !kept == 0 && (takes_null || kinds & tag::NULL == 0) {
        return Ok(Some(values));
    }
    let (mut keeps, mut refuses) = (true, false);
    selection.each(|row| {
        let value = values.get(row);
        keeps &= column.affinity.keeps(value);
        refuses |= !takes_null && value.is_null()
            || !is_plain && !column.takes(column.affinity.apply(value).as_ref());
    });
    if refuses {
        values.release(cx);
        return Ok(None);
    }
    if keeps {
        return Ok(Some(values));
    }
    let mut converted = cx.run.vector();
    map_batch(selection, &mut converted, |row, out| {
        out.push(column.affinity.apply(values.get(row)).as_ref())
    })?;
    values.release(cx);
    Ok(Some(Operand::Computed(converted)))
}
