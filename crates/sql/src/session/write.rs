//! Statements that write: the transaction around them, and what a failure
//! undoes.
//!
//! In autocommit the statement is the transaction. Within an explicit one, a
//! statement that can fail midway takes a place to go back to first; one of a
//! single row checks before it writes and needs none. Where even that row was
//! left half written (the store failed), the whole transaction is undone, as
//! SQLite does for a full disk or an I/O error; and as there also where a
//! statement that writes is interrupted.

use fulgurite_store::{Savepoint, Txn};

use super::prepared::Body;
use super::program::Kind;
use super::state::State;
use super::{Engine, Shared, conflict};
use crate::error::{Error, Result, code};
use crate::exec::context::Context;
use crate::exec::ddl;
use crate::exec::dml::{self, Buffers, Counters, Deferred, Failure, Foreign, Sink, Written};
use crate::exec::effects::Effects;
use crate::exec::expr::Row;
use crate::exec::ops::build;
use crate::plan::physical::{Action, Delete, SchemaChange};
use crate::schema::ConflictAction;

/// How often a statement is compiled again because the schema keeps changing.
const COMPILES_MAX: usize = 50;

impl Body {
    /// Runs an INSERT, UPDATE or DELETE wholly.
    pub(super) fn write(&mut self, shared: &Shared) -> Result<()> {
        let mut guard = shared.state.lock();
        let state = &mut *guard;
        let engine = &shared.engine;
        self.write_in(engine, state)
            .map_err(|error| conflict::explain(error, engine, &mut state.txn))
    }

    fn write_in(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        self.effects.clear();
        let commits = self.start_write(engine, state)?;
        let mut result = self.attempt(commits, true, state)?;
        if result.is_err() && state.deferred.is_unsure() {
            result = self.attempt_again(commits, state)?;
        }
        if result.is_err() && commits {
            self.effects.rows = None;
        }
        if let Some(rowid) = self.effects.last_rowid {
            state.functions.last_insert_rowid = rowid;
        }
        state.functions.changes = i64::try_from(self.effects.changes).unwrap_or(i64::MAX);
        state.functions.total_changes = state
            .functions
            .total_changes
            .saturating_add(state.functions.changes)
            .saturating_add_unsigned(self.effects.by_actions);
        result
    }

    /// Runs it once more: it is undone, and nothing is kept back meanwhile.
    #[cold]
    fn attempt_again(&mut self, commits: bool, state: &mut State) -> Result<Result<()>> {
        state.make_deferred()?;
        self.effects.clear();
        self.attempt(commits, false, state)
    }

    /// Runs it once. `defers_unique`: what is kept back for the transaction may be entries
    /// of unique indexes, too. An error of its own: it did not begin.
    // A twentieth of what a row of an INSERT takes is saved by it.
    #[inline(always)]
    fn attempt(
        &mut self,
        commits: bool,
        defers_unique: bool,
        state: &mut State,
    ) -> Result<Result<()>> {
        let defers = !commits && self.program.leaves(&state.deferred);
        if !defers {
            state.make_deferred()?;
        }
        let tears = !commits && self.program.may_tear;
        match defers && tears {
            true => state.begin_undoable(self.program.rows_of_values().unwrap_or(0))?,
            false => state.deferred.begin_statement(),
        }
        let place = tears.then(|| state.txn.savepoint()).transpose()?;
        self.begin_run(state);
        let mut torn = false;
        let mut own = Deferred::default();
        let deferred = if defers {
            &mut state.deferred
        } else {
            &mut own
        };
        let defers_unique = defers && defers_unique && self.program.only_inserts();
        let counters = state.counters;
        state.counters.begin_statement(commits);
        let outcome = self.write_rows(
            &mut state.txn,
            deferred,
            defers_unique,
            &mut state.counters,
            &mut torn,
        );
        let result = match outcome {
            Ok(()) if commits => state.txn.commit().map_err(Error::from),
            Ok(()) => place.map_or(Ok(()), |place| Ok(state.txn.release(&place)?)),
            Err(failure) => Err(self.undo(failure, commits, place, torn, &counters, state)),
        };
        if commits {
            state.counters = Counters::default();
        }
        Ok(result)
    }

    /// Begins, with a plan of the schema that the transaction sees. True: the
    /// statement commits itself.
    fn start_write(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        for _ in 0..COMPILES_MAX {
            let commits = match state.start_writing(&self.program.trees) {
                Ok(commits) => commits,
                Err(error) => {
                    // A tree may be gone because the schema changed.
                    if state.is_autocommit() && self.refresh(engine, state)? {
                        continue;
                    }
                    return Err(error);
                }
            };
            match self.revalidate(engine, state) {
                Ok(false) => return Ok(commits),
                Ok(true) if !commits => return Ok(false),
                Ok(true) => state.txn.rollback(),
                Err(error) => {
                    if commits {
                        state.txn.rollback();
                    }
                    return Err(error);
                }
            }
        }
        Err(Error::new(code::SCHEMA, "database schema has changed"))
    }

    /// Compiles again if the visible schema is not the plan's.
    fn refresh(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        state.txn.begin_read()?;
        let changed = self.revalidate(engine, state);
        state.txn.rollback();
        changed
    }

    fn write_rows(
        &mut self,
        txn: &mut Txn,
        deferred: &mut Deferred,
        defers_unique: bool,
        counters: &mut Counters,
        torn: &mut bool,
    ) -> Written<()> {
        let (target, conflict) = match &self.program.plan.action {
            Action::Insert(insert) => (&insert.target, insert.conflict),
            Action::Update(update) => (&update.target, update.conflict),
            Action::Delete(delete) => (&delete.target, None),
            _ => return Ok(()),
        };
        if !target.sequences.is_empty() {
            dml::sequence::show(txn, &target.table.tree, &target.sequences)?;
        }
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.attach(txn)?;
        }
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        if let Kind::Write(source) = &mut self.program.kind {
            source.attach(txn)?;
        }
        let lasts = deferred.lasts();
        let mut sink = Sink::new(txn, target, conflict, &mut self.buffers, deferred);
        sink.defers_unique = defers_unique;
        if let Some(keys) = &target.foreign {
            sink.foreign = Foreign::new(keys, counters);
        }
        if lasts && !matches!(self.program.kind, Kind::Write(_)) {
            sink.expect(1, false, &cx.run.memory)?;
        }
        let mut outcome = run_rows(
            &self.program.plan.action,
            &mut self.program.kind,
            &mut sink,
            &mut cx,
            &mut self.effects,
        );
        let stays = |failure: &Failure| failure.action == ConflictAction::Fail && !sink.torn;
        if !lasts
            && outcome.as_ref().err().is_none_or(stays)
            && let Err(error) = sink.make_deferred(cx.run)
        {
            outcome = Err(error.into());
        }
        if outcome.is_ok() {
            outcome = sink.end().map_err(Failure::from);
        }
        let stays = |failure: &Failure| failure.action == ConflictAction::Fail && !sink.torn;
        if let Some(foreign) = sink.foreign.take() {
            *counters = foreign.counters;
            self.effects.by_actions = foreign.changes;
            if !counters.allow_end() && outcome.as_ref().err().is_none_or(stays) {
                outcome = Err(Error::foreign_key().into());
            }
        }
        *torn = sink.torn || outcome.is_err() && sink.replaced;
        if let Kind::Write(source) = &mut self.program.kind {
            source.detach();
        }
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.detach();
        }
        outcome
    }

    /// Undoes as much as the failure asks for.
    fn undo(
        &mut self,
        failure: Failure,
        commits: bool,
        place: Option<Savepoint>,
        torn: bool,
        counters: &Counters,
        state: &mut State,
    ) -> Error {
        let keeps = failure.action == ConflictAction::Fail && !torn;
        if keeps {
            if commits && let Err(error) = state.txn.commit() {
                self.effects.changes = 0;
                return error.into();
            }
            if let Some(place) = place
                && let Err(error) = state.txn.release(&place)
            {
                return error.into();
            }
            return failure.error;
        }
        self.effects.changes = 0;
        state.counters.go_back(counters);
        if commits {
            // The failure tells about data that others published: nobody may
            // hear of it before it is durable.
            state.txn.rollback();
            if let Err(error) = state.txn.wait_until_visible() {
                return error.into();
            }
        } else if failure.action == ConflictAction::Rollback || is_interrupt(&failure.error) {
            state.abandon();
        } else if let Some(place) = place {
            match go_back(&mut state.txn, &place) {
                Ok(()) if !state.deferred.is_empty() => state.deferred.undo_statement(),
                Ok(()) => {}
                Err(_) => state.abandon(),
            }
        } else if torn {
            state.abandon();
        }
        failure.error
    }

    /// Runs CREATE, DROP or ALTER.
    pub(super) fn change_schema(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        self.change_schema_in(engine, state)
            .map_err(|error| conflict::explain(error, engine, &mut state.txn))
    }

    fn change_schema_in(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        let commits = state.is_autocommit();
        if commits {
            state.txn.begin_immediate()?;
        } else {
            state.start_explicit_change()?;
        }
        let place = (!commits).then(|| state.txn.savepoint()).transpose()?;
        let counters = state.counters;
        let mut outcome = self.revalidate(engine, state).map(|_| ());
        if outcome.is_ok()
            && let Action::Schema(change) = &self.program.plan.action
        {
            for subquery in self.run.subqueries.iter_mut().flatten() {
                outcome = outcome.and_then(|()| subquery.attach(&mut state.txn));
            }
            let mut cx = Context {
                parameters: &self.parameters,
                run: &mut self.run,
            };
            if let SchemaChange::DropTable(_, Some(delete)) = &**change {
                outcome = outcome.and_then(|()| {
                    state.counters.begin_statement(commits);
                    let deleted =
                        delete_dropped(delete, &mut state.txn, &mut state.counters, &mut cx);
                    let counts = delete
                        .target
                        .foreign
                        .as_ref()
                        .is_some_and(|it| it.may_mend());
                    if counts {
                        state.functions.changes = *deleted.as_ref().unwrap_or(&0);
                    }
                    deleted.map(|_| ())
                });
            }
            outcome = outcome
                .and_then(|()| ddl::change(change, engine.schema_tree(), &mut state.txn, &mut cx));
        }
        if outcome.is_ok() {
            if commits {
                outcome = state.txn.commit().map_err(Error::from);
            } else if let Some(place) = &place {
                outcome = state.txn.release(place).map_err(Error::from);
            }
        } else if commits {
            state.txn.rollback();
        } else if outcome.as_ref().is_err_and(is_interrupt)
            || place.is_some_and(|place| go_back(&mut state.txn, &place).is_err())
        {
            state.abandon();
        } else {
            state.counters.go_back(&counters);
        }
        if commits {
            state.counters = Counters::default();
        }
        outcome
    }
}

fn is_interrupt(error: &Error) -> bool {
    error.code() == code::INTERRUPT
}

/// Undoes what was written since a place, which nobody goes back to again.
fn go_back(txn: &mut Txn, place: &Savepoint) -> fulgurite_store::Result<()> {
    txn.rollback_to(place)?;
    txn.release(place)
}

/// Deletes the rows of a table that is dropped, where foreign keys want to see them go; how
/// many.
fn delete_dropped(
    delete: &Delete,
    txn: &mut Txn,
    counters: &mut Counters,
    cx: &mut Context<'_, '_>,
) -> Result<i64> {
    let keys = delete.target.foreign.as_ref();
    let Some(foreign) = keys.and_then(|keys| Foreign::new(keys, counters)) else {
        return Ok(0);
    };
    let mut source = build(&delete.source);
    source.attach(txn)?;
    source.open(cx)?;
    let (mut buffers, mut deferred) = (Buffers::default(), Deferred::default());
    let mut sink = Sink::new(txn, &delete.target, None, &mut buffers, &mut deferred);
    sink.foreign = Some(foreign);
    let mut effects = Effects::default();
    let deleted = dml::delete(delete, source.as_mut(), &mut sink, cx, &mut effects);
    if let Some(foreign) = sink.foreign.take() {
        *counters = foreign.counters;
    }
    deleted.map_err(|failure| failure.error)?;
    match counters.allow_end() {
        true => Ok(i64::try_from(effects.changes).unwrap_or(i64::MAX)),
        false => Err(Error::foreign_key()),
    }
}

fn run_rows(
    action: &Action,
    kind: &mut Kind,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    match (action, kind) {
        (Action::Insert(insert), Kind::PointInsert(point)) => point.run(insert, sink, cx, effects),
        (action, Kind::PointWrite(point)) => {
            let Some(rowid) = point.find_to_change(sink.txn, cx)? else {
                return Ok(());
            };
            if !point.accept(rowid, cx)? {
                return Ok(());
            }
            point.compute(cx)?;
            let row = Row::Read(point);
            match action {
                Action::Update(update) => dml::update_source_row(update, row, sink, cx, effects),
                Action::Delete(delete) => dml::delete_source_row(delete, row, sink, cx, effects),
                _ => Ok(()),
            }
        }
        (action, Kind::Write(source)) => {
            source.open(cx)?;
            match action {
                Action::Insert(insert) => dml::insert(insert, source.as_mut(), sink, cx, effects),
                Action::Update(update) => dml::update(update, source.as_mut(), sink, cx, effects),
                Action::Delete(delete) => dml::delete(delete, source.as_mut(), sink, cx, effects),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
