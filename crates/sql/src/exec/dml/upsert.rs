//! ON CONFLICT … DO NOTHING and DO UPDATE.

use fulgurite_store::Key;

use super::generated::read_row;
use super::sink::{Conflict, Outcome, Sink};
use super::triggers::Event;
use super::{Written, update};
use crate::bind::expr::ROWID;
use crate::error::Error;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::{Row, condition, eval};
use crate::exec::range::rowid_of;
use crate::func::hooks::Change;
use crate::plan::physical::{Insert, Upsert, UpsertTarget, UpsertUpdate};
use crate::schema::ConflictAction;
use crate::value::Value;

/// What a clause did about a conflict.
pub enum Upserted {
    /// The row is dealt with.
    Done,
    /// No clause is for this constraint.
    NotMine,
}

fn applies(upsert: &Upsert, conflict: Conflict) -> bool {
    match (upsert.target, conflict) {
        (None, _) | (Some(UpsertTarget::Rowid), Conflict::Rowid) => true,
        (Some(UpsertTarget::Index(wanted)), Conflict::Index(i)) => wanted == i,
        _ => false,
    }
}

/// Applies the first clause that is for the conflict.
pub fn resolve(
    plan: &Insert,
    conflict: Conflict,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<Upserted> {
    let Some(clause) = plan.upserts.iter().find(|u| applies(u, conflict)) else {
        return Ok(Upserted::NotMine);
    };
    let Some(change) = &clause.update else {
        return Ok(Upserted::Done);
    };
    let old = match conflict {
        Conflict::Index(i) => sink.holder(i)?,
        Conflict::Rowid => sink.rowid(),
    };
    let memory = std::mem::take(&mut sink.buffers.excluded);
    let excluded = std::mem::replace(&mut sink.buffers.row, memory);
    // What is in the way of the changed row ends the statement, whatever the INSERT or
    // the constraint says otherwise.
    let conflict = sink.conflict.replace(ConflictAction::Abort);
    let outcome = update_existing(change, old, &excluded, sink, cx);
    sink.conflict = conflict;
    sink.buffers.excluded = excluded;
    let outcome = outcome?;
    if outcome == Outcome::Written {
        sink.tell(Change::Update, sink.rowid(), cx)?;
        sink.run_actions(cx)?;
        effects.changed(1);
        if let Some(returning) = &plan.returning {
            sink.torn = true;
            effects.returned(returning, Row::Values(&sink.buffers.row), cx)?;
            sink.torn = false;
        }
        sink.fire(&change.fires.after, Event::Update, cx)?;
    }
    Ok(Upserted::Done)
}

fn update_existing(
    change: &UpsertUpdate,
    old: i64,
    excluded: &[Value],
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
) -> Written<Outcome> {
    // The record of the row that was not inserted is needed no more.
    let mut existing = std::mem::take(&mut sink.buffers.old);
    let (target, record) = (sink.target, &mut sink.buffers.record);
    if !sink
        .txn
        .get_to_change(&target.table.tree, Key::Int(old), record)?
    {
        return Err(Error::corrupt("an index entry has no row").into());
    }
    read_row(
        &target.table,
        &target.generated,
        (old, record),
        &mut existing,
        cx,
    )?;
    let input = Row::Chain(&existing, excluded);
    if let Some(predicate) = &change.predicate
        && condition(predicate, input, cx)? != Some(true)
    {
        return Ok(Outcome::Skipped);
    }
    sink.buffers.row.resize(existing.len(), Value::Null);
    for (slot, value) in sink.buffers.row.iter_mut().zip(&existing) {
        slot.assign(value.as_ref());
    }
    let mut rowid = old;
    for (column, expr) in &change.assignments {
        let value = eval(expr, input, cx)?;
        if *column == ROWID || sink.table().rowid_alias == Some(*column) {
            rowid = rowid_of(value.as_ref()).ok_or_else(Error::mismatch)?;
        } else {
            sink.set_column(*column, value.as_ref());
        }
    }
    sink.set_rowid(rowid);
    sink.generate(cx)?;
    let old_row = Row::Values(&existing);
    sink.stays = update::assigns_the_same(&change.assignments, old_row, sink);
    sink.buffers.old = existing;
    if !change.fires.is_empty() {
        let is_assigned = |at: usize| change.assignments.iter().any(|(column, _)| *column == at);
        let fired = sink.fire_before_update(&change.fires, is_assigned, cx)?;
        if fired == Outcome::Skipped {
            return Ok(Outcome::Skipped);
        }
    }
    let moved = rowid != old;
    // Without a proof of the contrary every entry may change.
    let indexed = !sink.target.indexes.is_empty();
    update::write(old, true, indexed, &change.touched, sink, cx).inspect(|_| {
        debug_assert!(!moved || sink.rowid() == rowid);
    })
}
