//! Running one INSERT, UPDATE or DELETE, of a session or of a trigger.

use super::delete::{delete, delete_source_row, delete_whole};
use super::insert::insert;
use super::update::{update, update_source_row};
use super::{Buffers, Counters, Deferred, Failure, Foreign, Sink, Triggers, Written, sequence};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::Row;
use crate::exec::kind::Kind;
use crate::exec::txns::Txns;
use crate::plan::physical::{Action, Plan};

/// A statement made ready, and memory for it.
pub struct Statement<'s> {
    /// Its plan.
    pub plan: &'s Plan,
    /// How it is carried out.
    pub kind: &'s mut Kind,
    /// Memory.
    pub buffers: &'s mut Buffers,
    /// What it did.
    pub effects: &'s mut Effects,
}

/// The entries that are kept back, and whether those of unique indexes may be, too.
pub struct KeptBack<'d> {
    /// See there.
    pub deferred: &'d mut Deferred,
    /// See the struct.
    pub unique: bool,
}

impl Statement<'_> {
    /// Runs it, in a transaction that has begun. `torn`: a failure has left a row half
    /// written. Foreign keys are counted, and it is the caller's to say what is left of them.
    // A twentieth of what a row of an INSERT takes is saved by it.
    #[inline(always)]
    pub fn run(
        self,
        txn: &mut Txns,
        kept_back: KeptBack<'_>,
        counters: &mut Counters,
        triggers: Option<Triggers<'_>>,
        torn: &mut bool,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        let (target, conflict) = match &self.plan.action {
            Action::Insert(insert) => (&insert.target, insert.conflict),
            Action::Update(update) => (&update.target, update.conflict),
            Action::Delete(delete) => (&delete.target, None),
            Action::ViewChange(change) => {
                return self.change_view(change, txn, counters, triggers, cx);
            }
            _ => return Ok(()),
        };
        if !target.sequences.is_empty() {
            sequence::show(txn, &target.table.tree, &target.sequences)?;
        }
        attach(self.kind, txn, cx)?;
        let lasts = kept_back.deferred.lasts();
        let mut sink = Sink::new(txn, target, conflict, self.buffers, kept_back.deferred);
        sink.defers_unique = kept_back.unique;
        if let Some(keys) = &target.foreign {
            sink.foreign = match &triggers {
                None => Foreign::new(keys, counters),
                Some(triggers) => Some(Foreign::within(keys, counters, triggers.depth())),
            };
        }
        sink.triggers = triggers;
        if let Some(triggers) = &mut sink.triggers {
            triggers.set_counters(*counters);
        }
        let mut outcome = Ok(());
        if lasts && !matches!(self.kind, Kind::Write(_)) {
            outcome = sink.expect(1, false, &cx.run.memory).map_err(Failure::from);
        }
        if outcome.is_ok() {
            outcome = run_rows(self.plan, self.kind, &mut sink, cx, self.effects);
        }
        let stays = |failure: &Failure| failure.keeps() && !sink.torn;
        if !lasts
            && outcome.as_ref().err().is_none_or(stays)
            && let Err(error) = sink.make_deferred(cx.run)
        {
            outcome = Err(error.into());
        }
        if outcome.is_ok() {
            outcome = sink.end().map_err(Failure::from);
        }
        if let Some(triggers) = &sink.triggers {
            *counters = triggers.counters();
        }
        if let Some(foreign) = sink.foreign.take() {
            *counters = foreign.counters;
            self.effects.by_actions = foreign.changes;
        }
        *torn = sink.torn || outcome.is_err() && sink.replaced;
        detach(self.kind, cx);
        outcome
    }
}

/// Takes the cursors of a run: all of them, or none.
pub(super) fn attach(kind: &mut Kind, txn: &mut Txns, cx: &mut Context<'_, '_>) -> Result<()> {
    attach_all(kind, txn, cx).inspect_err(|_| detach(kind, cx))
}

fn attach_all(kind: &mut Kind, txn: &mut Txns, cx: &mut Context<'_, '_>) -> Result<()> {
    for subquery in cx.run.subqueries.iter_mut().flatten() {
        subquery.attach(txn)?;
    }
    match kind {
        Kind::Write(source) | Kind::Query(source) => source.attach(txn),
        _ => Ok(()),
    }
}

/// Drops what the run held.
pub(super) fn detach(kind: &mut Kind, cx: &mut Context<'_, '_>) {
    if let Kind::Write(source) | Kind::Query(source) = kind {
        source.detach();
    }
    for subquery in cx.run.subqueries.iter_mut().flatten() {
        subquery.detach();
    }
}

#[inline]
fn run_rows(
    plan: &Plan,
    kind: &mut Kind,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    match (&plan.action, kind) {
        (Action::Insert(insert), Kind::PointInsert(point)) => point.run(insert, sink, cx, effects),
        (action, Kind::PointWrite(point)) => {
            let Some(rowid) = point.find_to_change(sink.txn, cx)? else {
                return Ok(());
            };
            if plan.calls_user {
                sink.txn.main.confirm()?;
            }
            if !point.accept(rowid, cx)? {
                return Ok(());
            }
            point.compute(cx)?;
            let row = Row::Read(point);
            match action {
                Action::Update(update) => update_source_row(update, row, sink, cx, effects),
                Action::Delete(delete) => delete_source_row(delete, row, sink, cx, effects),
                _ => Ok(()),
            }
        }
        (action, Kind::Write(source)) => {
            if let Action::Delete(plan) = action
                && delete_whole(plan, sink, cx, effects)?
            {
                return Ok(());
            }
            source.open(cx)?;
            match action {
                Action::Insert(plan) => insert(plan, source.as_mut(), sink, cx, effects),
                Action::Update(plan) => update(plan, source.as_mut(), sink, cx, effects),
                Action::Delete(plan) => delete(plan, source.as_mut(), sink, cx, effects),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
