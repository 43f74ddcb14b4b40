//! UPDATE.

use fulgurite_store::Key;

use super::Written;
use super::batch::{self, in_batches};
use super::generated::read_row;
use super::sink::{Outcome, Sink};
use super::triggers::Event;
use crate::bind::expr::{Expr, ROWID};
use crate::error::Error;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::{Row, eval};
use crate::exec::ops::Operator;
use crate::exec::range::rowid_of;
use crate::func::hooks::Change;
use crate::plan::physical::Update;
use crate::value::{Value, ValueRef};

/// Updates the rows of `source`, which is open.
pub fn update(
    plan: &Update,
    source: &mut dyn Operator,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    if plan.joins {
        return update_joined(plan, source, sink, cx, effects);
    }
    let mut current = Vec::new();
    in_batches(source, cx, |batch, cx| {
        sink.expect(batch.len(), false, &cx.run.memory)?;
        if batch::update(plan, batch, sink, cx, effects)? {
            return Ok(());
        }
        for i in 0..batch.len() {
            let at = batch.row_at(i).unwrap_or(0);
            update_row(plan, (batch, at), &mut current, sink, cx, effects)?;
        }
        Ok(())
    })
}

/// The same where a row may come several times, one after the other: each is updated once,
/// by the last.
fn update_joined(
    plan: &Update,
    source: &mut dyn Operator,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    let (mut batch, mut before) = (Batch::default(), Batch::default());
    let mut current = Vec::new();
    // The last row of the batch before, until it is known whether it comes again.
    let mut held = None;
    while source.next(cx, usize::MAX, &mut batch)? {
        cx.run.check_interrupt()?;
        sink.expect(batch.len(), false, &cx.run.memory)?;
        for i in 0..batch.len() {
            let at = batch.row_at(i).unwrap_or(0);
            let known = match i {
                0 => held.take().map(|held| (&before, held)),
                _ => batch.row_at(i - 1).map(|before| (&batch, before)),
            };
            if let Some(row) = known
                && rowid_at(row.0, row.1) != rowid_at(&batch, at)
            {
                update_row(plan, row, &mut current, sink, cx, effects)?;
            }
        }
        if let Some(last) = batch.len().checked_sub(1) {
            held = batch.row_at(last);
            std::mem::swap(&mut batch, &mut before);
        }
    }
    match held {
        Some(held) => update_row(plan, (&before, held), &mut current, sink, cx, effects),
        None => Ok(()),
    }
}

fn rowid_at(batch: &Batch, at: usize) -> Option<i64> {
    match batch.get(0, at) {
        ValueRef::Integer(rowid) => Some(rowid),
        _ => None,
    }
}

/// Updates the row that a row of a batch names. `current` is memory.
fn update_row(
    plan: &Update,
    (batch, at): (&Batch, usize),
    current: &mut Vec<Value>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    // REPLACE, actions of foreign keys and triggers may have deleted or changed rows before
    // their turn comes.
    if !sink.may_replace() && !sink.may_meet_changes() {
        return update_source_row(plan, Row::Batch(batch, at), sink, cx, effects);
    }
    match read_again(batch, at, sink, current, cx)? {
        true => update_source_row(plan, Row::Values(current), sink, cx, effects),
        false => Ok(()),
    }
}

/// The source row with the table's columns as they are now; false: gone.
fn read_again(
    batch: &Batch,
    at: usize,
    sink: &mut Sink<'_>,
    out: &mut Vec<Value>,
    cx: &mut Context<'_, '_>,
) -> Written<bool> {
    let ValueRef::Integer(rowid) = batch.get(0, at) else {
        return Ok(false);
    };
    let mut record = Vec::new();
    if !sink
        .txn
        .get_into(&sink.target.table.tree, Key::Int(rowid), &mut record)?
    {
        return Ok(false);
    }
    let target = sink.target;
    read_row(&target.table, &target.generated, (rowid, &record), out, cx)?;
    let known = out.len();
    out.extend((known..batch.columns.len()).map(|c| batch.get(c, at).to_value()));
    Ok(true)
}

/// Updates the row that a source row names.
pub fn update_source_row(
    plan: &Update,
    source: Row<'_>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    let ValueRef::Integer(old) = source.get(0) else {
        return Err(Error::misuse("an update's source row has no rowid").into());
    };
    let rowid = match &plan.rowid {
        None => old,
        Some(expr) => {
            let value = eval(expr, source, cx)?;
            rowid_of(value.as_ref()).ok_or_else(Error::mismatch)?
        }
    };
    let moved = rowid != old;
    let indexed =
        moved && !sink.target.indexes.is_empty() || sink.target.indexes.iter().any(|i| i.affected);
    let replaces = sink.may_replace();
    let fires = sink.update_fires();
    if indexed || replaces || sink.foreign.is_some() || fires.is_some() {
        copy_row(
            source,
            sink.target.table.columns.len() + 1,
            &mut sink.buffers.old,
        );
    }
    sink.start_row();
    for column in 0..sink.target.table.columns.len() {
        if let Some(slot) = sink.buffers.row.get_mut(column + 1) {
            slot.assign(source.get(column + 1));
        }
    }
    assign(&plan.assignments, source, sink, cx)?;
    if let Some(at) = plan.is_large
        && source.get(at) == ValueRef::Integer(1)
    {
        note_large(plan, sink);
    }
    sink.set_rowid(rowid);
    sink.generate(cx)?;
    sink.stays = assigns_the_same(&plan.assignments, source, sink);
    if let Some(fires) = fires {
        let is_assigned = |at: usize| plan.assignments.iter().any(|(column, _)| *column == at);
        if sink.fire_before_update(fires, is_assigned, cx)? == Outcome::Skipped {
            return Ok(());
        }
    }
    if write(old, moved, indexed, &plan.touched, sink, cx)? == Outcome::Skipped {
        return Ok(());
    }
    sink.tell(Change::Update, rowid, cx)?;
    sink.run_actions(cx)?;
    effects.changed(1);
    if let Some(returning) = &plan.returning {
        let width = sink.buffers.row.len();
        let mut row = sink.buffers.row.clone();
        // What FROM adds stands behind the new row.
        row.extend((width..source_width(source)).map(|c| source.get(c).to_value()));
        sink.torn = true;
        effects.returned(returning, Row::Values(&row), cx)?;
        sink.torn = false;
    }
    if let Some(fires) = fires {
        sink.replaced = false;
        sink.fire(&fires.after, Event::Update, cx)?;
    }
    Ok(())
}

/// The row being written has large columns that were not read.
#[cold]
fn note_large(plan: &Update, sink: &mut Sink<'_>) {
    sink.is_large = true;
    let assigned = &mut sink.buffers.assigned;
    assigned.clear();
    assigned.extend(plan.assignments.iter().map(|(column, _)| *column));
    assigned.sort_unstable();
    assigned.dedup();
}

fn source_width(source: Row<'_>) -> usize {
    match source {
        Row::Batch(batch, _) => batch.columns.len(),
        Row::Values(values) => values.len(),
        _ => 0,
    }
}

fn copy_row(source: Row<'_>, width: usize, out: &mut Vec<Value>) {
    out.resize(width, Value::Null);
    for (i, slot) in out.iter_mut().enumerate() {
        slot.assign(source.get(i));
    }
}

fn assign(
    assignments: &[(usize, Expr)],
    source: Row<'_>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
) -> Written<()> {
    for (column, expr) in assignments {
        if *column != ROWID && sink.table().rowid_alias != Some(*column) {
            let value = eval(expr, source, cx)?;
            sink.set_column(*column, value.as_ref());
        }
    }
    Ok(())
}

/// Whether the columns that are assigned are, in the row being written, what they were: it
/// may be that nothing changes. Large ones that were not read may be what they were.
pub fn assigns_the_same(assignments: &[(usize, Expr)], old: Row<'_>, sink: &Sink<'_>) -> bool {
    let is_same = |column: usize| {
        let old = old.get(column + 1);
        let is_unread = sink.is_large && matches!(old, ValueRef::Text([]) | ValueRef::Blob([]));
        let new = sink.buffers.row.get(column + 1);
        is_unread || new.is_some_and(|new| new.as_ref() == old)
    };
    let mut columns = assignments.iter().map(|(column, _)| *column);
    columns.all(|column| column == ROWID || is_same(column))
}

/// Checks the row in `buffers.row` and puts it in the place of row `old`.
/// `indexed`: some index entry may change, and `buffers.old` holds the old row; so it does
/// where there are foreign keys to look at. `touched`: the columns that change.
pub fn write(
    old: i64,
    moved: bool,
    indexed: bool,
    touched: &[usize],
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
) -> Written<Outcome> {
    if sink.check_row(cx)? == Outcome::Skipped {
        return Ok(Outcome::Skipped);
    }
    if indexed {
        sink.make_old_entries(old, moved, cx)?;
        sink.make_changed_entries(moved, cx)?;
    }
    if moved || indexed {
        while let Some(conflict) = sink.find_conflict(old, moved)? {
            let conflict = sink.next_to_resolve(conflict, Some(old), moved)?;
            if sink.resolve(conflict, cx)? == Outcome::Skipped {
                return Ok(Outcome::Skipped);
            }
            // An action or a trigger for the row in the way may have come to this one, too.
            let looks = sink.foreign.is_some() || sink.delete_fires().is_some();
            if looks && !sink.read_old(old, cx)? {
                return Ok(Outcome::Skipped);
            }
            // Removing the row in the way used the old entries' memory.
            sink.make_old_entries(old, moved, cx)?;
        }
    }
    sink.before_change(Some(touched), cx)?;
    sink.replace_old(old, moved && indexed)?;
    if sink.foreign.is_some() {
        sink.torn = true;
        sink.after_change(Some(touched), cx)?;
        sink.note_actions(Some(touched))?;
        sink.torn = false;
    }
    Ok(Outcome::Written)
}
