//! DELETE.

use fulgurite_store::Key;

use super::Written;
use super::batch::{self, in_batches};
use super::sink::{Outcome, Sink};
use super::triggers::Event;
use crate::error::Error;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::Row;
use crate::exec::ops::Operator;
use crate::func::hooks::Change;
use crate::plan::physical::Delete;
use crate::value::{Value, ValueRef};

/// Deletes the rows of `source`, which is open.
pub fn delete(
    plan: &Delete,
    source: &mut dyn Operator,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    in_batches(source, cx, |batch, cx| {
        sink.expect(batch.len(), true, &cx.run.memory)?;
        if batch::delete(plan, batch, sink, cx, effects)? {
            return Ok(());
        }
        for i in 0..batch.len() {
            let row = Row::Batch(batch, batch.row_at(i).unwrap_or(0));
            delete_source_row(plan, row, sink, cx, effects)?;
        }
        Ok(())
    })
}

/// Fewer rows are deleted one by one: their pages are few, and may be used again at once.
const CLEAR_MIN: u64 = 256;

/// Deletes all rows of the table and all entries of its indexes without a look at each,
/// where nobody asks for one; false, and nothing is done, where somebody does.
pub fn delete_whole(
    plan: &Delete,
    sink: &mut Sink<'_>,
    cx: &Context<'_, '_>,
    effects: &mut Effects,
) -> Written<bool> {
    let table = &sink.target.table;
    if !plan.whole_table
        || sink.foreign.is_some()
        || sink.delete_fires().is_some()
        || sink.keeps_entries_back()
        || sink.txn.estimate(&table.tree)? < CLEAR_MIN
    {
        return Ok(false);
    }
    sink.claim(true)?;
    if table.sequence.is_some() {
        let largest = sink.txn.largest_rowid(&table.tree)?;
        sink.note_deleted(largest.unwrap_or(0));
    }
    sink.torn = true;
    let mut going = Ok(());
    let indexes = sink.target.indexes.iter().map(|writer| &writer.index.tree);
    for tree in indexes.chain([&table.tree]) {
        let cleared = sink.txn.clear(tree, || {
            going = cx.run.check_interrupt();
            going.is_ok()
        })?;
        let Some(entries) = cleared else {
            break;
        };
        if *tree == table.tree {
            effects.changed(entries);
        }
    }
    going?;
    sink.torn = false;
    Ok(true)
}

/// Deletes the row that a source row names.
pub fn delete_source_row(
    plan: &Delete,
    source: Row<'_>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    let ValueRef::Integer(rowid) = source.get(0) else {
        return Err(Error::misuse("a deletion's source row has no rowid").into());
    };
    let fires = sink.delete_fires();
    if sink.may_meet_changes() {
        // An action or a trigger of a row before may have changed it or taken it.
        if !sink.read_old(rowid, cx)? {
            return Ok(());
        }
        if let Some(fires) = fires
            && sink.fire_before(fires, Event::Delete, cx)? == Outcome::Skipped
        {
            return Ok(());
        }
        sink.delete_old(rowid, cx)?;
    } else if sink.target.indexes.is_empty() && sink.foreign.is_none() {
        sink.claim(true)?;
        if !sink.txn.delete(&sink.target.table.tree, Key::Int(rowid))? {
            return Ok(());
        }
        sink.note_deleted(rowid);
    } else {
        sink.buffers
            .old
            .resize(sink.target.table.columns.len() + 1, Value::Null);
        for (i, slot) in sink.buffers.old.iter_mut().enumerate() {
            slot.assign(source.get(i));
        }
        sink.delete_old(rowid, cx)?;
    }
    if !plan.whole_table {
        sink.tell(Change::Delete, rowid, cx)?;
    }
    sink.run_actions(cx)?;
    effects.changed(1);
    if let Some(returning) = &plan.returning {
        sink.torn = true;
        // As the triggers saw it, where one of a row before may have changed it.
        let row = match sink.may_meet_changes() {
            true => Row::Values(sink.buffers.gone()),
            false => source,
        };
        effects.returned(returning, row, cx)?;
        sink.torn = false;
    }
    if let Some(fires) = fires {
        sink.fire(&fires.after, Event::Delete, cx)?;
    }
    Ok(())
}
