//! Statements that write: the transaction around them, and what a failure
//! undoes.
//!
//! In autocommit the statement is the transaction. Within an explicit one, a
//! statement that can fail midway takes a place to go back to first; one of a
//! single row checks before it writes and needs none. Where even that row was
//! left half written (the store failed), the whole transaction is undone, as
//! SQLite does for a full disk or an I/O error; and as there also where a
//! statement that writes is interrupted.

use fulgurite_store::ErrorKind;

use super::body::Body;
use super::program::Fires;
use super::state::{Base, State};
use super::{Engine, Shared, conflict};
use crate::error::{Error, Result, code};
use crate::exec::context::Context;
use crate::exec::ddl;
use crate::exec::dml::{
    self, Buffers, Counters, Deferred, Failure, Foreign, KeptBack, Sink, Statement, TriggerState,
    Triggers, Written,
};
use crate::exec::effects::Effects;
use crate::exec::ops::build;
use crate::exec::txns::{Mark, Txns};
use crate::func;
use crate::func::user::UserCode;
use crate::plan::physical::{Action, Delete, Plan, SchemaChange};
use crate::schema::ConflictAction;
use crate::value::collate;

/// How often a statement is compiled again because the schema keeps changing.
pub(super) const COMPILES_MAX: usize = 50;

impl Body {
    /// Runs an INSERT, UPDATE or DELETE wholly.
    pub(super) fn write(&mut self, shared: &Shared) -> Result<()> {
        let mut guard = shared.state()?;
        let state = &mut *guard;
        let calls = state.settings.user != UserCode::NONE
            || state.functions.hooks.is_some()
            || state.asks_when_busy();
        let _calling = calls.then(|| shared.calls());
        let engine = &shared.engine;
        self.write_in(engine, state)
            .map_err(|error| conflict::explain(error, engine, state))
    }

    fn write_in(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        self.effects.clear();
        let allowed = state.check_writes();
        allowed.map_err(|error| none_changed(error, state))?;
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
        count(&self.effects, &mut state.functions);
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
        let calls = self.program.plan.calls_user || state.functions.hooks.is_some();
        let tears =
            !commits && (self.program.may_tear || calls || self.may_be_refused(&mut state.txn));
        match defers && tears {
            true => state.begin_undoable(
                self.program
                    .rows_of_values(self.parameters.len())
                    .unwrap_or(0),
            )?,
            false => state.deferred.begin_statement(),
        }
        let place = tears.then(|| state.txn.savepoint()).transpose()?;
        self.begin_run(state);
        state.changed += 1;
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
        let kept_back = KeptBack {
            deferred,
            unique: defers_unique,
        };
        let is_whole = !commits && place.is_none();
        if is_whole {
            self.belongs_together(true, &mut state.txn);
        }
        let counters_now = &mut state.counters;
        let outcome = self.write_rows(&mut state.txn, kept_back, counters_now, &mut torn);
        if is_whole {
            self.belongs_together(false, &mut state.txn);
        }
        let result = match outcome {
            Ok(()) if commits => state
                .commit_statement()
                .inspect_err(|_| self.effects.changes = 0),
            Ok(()) => place.map_or(Ok(()), |place| Ok(state.txn.release(&place)?)),
            Err(failure) => Err(self.undo(failure, commits, place, torn, &counters, state)),
        };
        if commits {
            state.counters = Counters::default();
        }
        Ok(result)
    }

    /// Whether one of several rows may be refused the lock of its table: a trigger's, where
    /// the transaction has grown too large for the log, or may do so before the last one.
    #[inline]
    fn may_be_refused(&self, txn: &mut Txns) -> bool {
        let grows = self.program.fires == Fires::Any;
        let mut written = self.program.plan.writes.iter();
        self.program.fires != Fires::Nothing && written.any(|tree| txn.may_be_refused(tree, grows))
    }

    /// A statement without a place to go back to begins to write, or ends: it takes its locks
    /// ahead of its row, or needs none.
    #[inline]
    fn belongs_together(&self, begins: bool, txn: &mut Txns) {
        match self.program.fires {
            Fires::Nothing => txn.set_whole(begins),
            Fires::Few => txn.set_unasked(begins),
            // Nobody can refuse it anything.
            Fires::Any => {}
        }
    }

    /// Begins, with a plan of the schema that the transaction sees. True: the
    /// statement commits itself.
    #[inline]
    fn start_write(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        let started = state.start_writing(&self.program);
        let started = started.map(|commits| (commits, self.revalidate(engine, state)));
        match started {
            Ok((commits, Ok(false))) => Ok(commits),
            other => self.start_write_again(other, engine, state),
        }
    }

    /// The same where it did not begin, or with a plan of another schema; `started` says
    /// whether it would commit itself, and whether it was compiled again. One that does not
    /// compile any more has not run: what the one before changed stays to be asked for.
    #[cold]
    fn start_write_again(
        &mut self,
        mut started: Result<(bool, Result<bool>)>,
        engine: &Engine,
        state: &mut State,
    ) -> Result<bool> {
        for _ in 1..COMPILES_MAX {
            match started {
                // A tree may be gone because the schema changed.
                Err(error) if !state.is_autocommit() => return Err(none_changed(error, state)),
                Err(error) => {
                    if !self.refresh(engine, state)? {
                        return Err(none_changed(error, state));
                    }
                }
                Ok((commits, Ok(false))) => return Ok(commits),
                Ok((false, Ok(true))) => {
                    let started = state.start_writing(&self.program);
                    return started.map_err(|error| none_changed(error, state));
                }
                Ok((true, Ok(true))) => state.txn.rollback(),
                Ok((commits, Err(error))) => {
                    if commits {
                        state.txn.rollback_to_tell()?;
                    }
                    return Err(error);
                }
            }
            let again = state.start_writing(&self.program);
            started = again.map(|commits| (commits, self.revalidate(engine, state)));
        }
        let error = Error::new(code::SCHEMA, "database schema has changed");
        Err(none_changed(error, state))
    }

    /// Compiles again if the visible schema is not the plan's.
    fn refresh(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        state.txn.main.begin_read()?;
        let changed = self.revalidate(engine, state);
        state.txn.rollback();
        changed
    }

    fn write_rows(
        &mut self,
        txn: &mut Txns,
        kept_back: KeptBack<'_>,
        counters: &mut Counters,
        torn: &mut bool,
    ) -> Written<()> {
        let plan = &*self.program.plan;
        let triggers = triggers_of(plan, &mut self.triggers);
        let statement = Statement {
            plan,
            kind: &mut self.program.kind,
            buffers: &mut self.buffers,
            effects: &mut self.effects,
        };
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        let mut outcome = statement.run(txn, kept_back, counters, triggers, torn, &mut cx);
        if plan.calls_user
            && let Some(failure) = collate::take_failure()
        {
            outcome = Err(failure.into());
        }
        if !plan.programs.is_empty() {
            self.effects.by_actions += self.triggers.changes();
        }
        let stays = |failure: &Failure| failure.keeps() && !*torn;
        if !counters.allow_end() && outcome.as_ref().err().is_none_or(stays) {
            outcome = Err(Error::foreign_key().into());
        }
        outcome
    }

    /// Undoes as much as the failure asks for.
    fn undo(
        &mut self,
        failure: Failure,
        commits: bool,
        place: Option<Mark>,
        torn: bool,
        counters: &Counters,
        state: &mut State,
    ) -> Error {
        let keeps = failure.keeps() && !torn;
        if keeps {
            if commits && let Err(error) = state.commit_statement() {
                self.effects.changes = 0;
                return error;
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
            let durable = state.txn.rollback_to_tell();
            state.rolled_back();
            if let Err(error) = durable {
                return error.into();
            }
        } else if failure.action == ConflictAction::Rollback || is_interrupt(&failure.error) {
            state.abandon();
        } else if let Some(place) = place {
            match go_back(&mut state.txn, &place) {
                Ok(()) if !state.deferred.is_empty() => state.deferred.undo_statement(),
                Ok(()) => {}
                Err(undoing) => {
                    state.abandon();
                    return ended_by(undoing, failure.error);
                }
            }
        } else if torn {
            state.abandon();
        }
        failure.error
    }

    /// Runs CREATE, DROP or ALTER.
    pub(super) fn change_schema(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        self.change_schema_in(engine, state)
            .map_err(|error| conflict::explain(error, engine, state))
    }

    /// Begins, with a plan of the schemas that the transaction sees. True: the statement
    /// commits itself.
    fn start_change(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        for _ in 0..COMPILES_MAX {
            let Some(place) = &self.program.plan.place else {
                // There is nothing to change any more.
                return state.start_reading(&self.program.stores, Base::Acknowledged);
            };
            let commits = state.start_change(place, &self.program)?;
            match self.revalidate(engine, state) {
                Ok(false) => return Ok(commits),
                Ok(true) if commits => state.txn.rollback(),
                Ok(true) => {}
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

    fn change_schema_in(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        if let Err(refused) = state.check_writes() {
            // As it compiles SQLite finds that IF NOT EXISTS has nothing to do any more.
            return match self.has_change(engine, state)? {
                true => Err(refused),
                false => Ok(()),
            };
        }
        let commits = self.start_change(engine, state)?;
        if commits {
            state.made_schemas.clear();
        }
        let place = (!commits).then(|| state.txn.savepoint()).transpose()?;
        let counters = state.counters;
        let mut outcome = Ok(());
        if let Action::Schema(change) = &self.program.plan.action
            && let Some(changed) = &self.program.plan.place
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
                    let (txn, counters) = (&mut state.txn, &mut state.counters);
                    let plan = &self.program.plan;
                    let triggers = triggers_of(plan, &mut self.triggers);
                    let effects = &mut self.effects;
                    let deleted = delete_dropped(delete, txn, counters, triggers, effects, &mut cx);
                    if !plan.programs.is_empty() {
                        effects.by_actions += self.triggers.changes();
                    }
                    let keys = delete.target.foreign.as_ref();
                    let postpones = state.counters.postpones;
                    if keys.is_some_and(|keys| keys.may_mend(postpones)) {
                        effects.changes = deleted.as_ref().map_or(0, |()| effects.changes);
                        count(effects, &mut state.functions);
                    }
                    deleted
                });
            }
            outcome = outcome.and_then(|()| {
                let mut edits = state.schemas_of(changed, engine)?;
                ddl::change(change, changed, &mut edits, &mut state.txn, &mut cx)?;
                state.know_changed(edits, engine)
            });
        }
        if let Some(failure) = collate::take_failure() {
            outcome = Err(failure);
        }
        if outcome.is_ok() {
            if commits {
                // An index that was made anew holds what it held.
                outcome = match &self.program.plan.action {
                    Action::Schema(change) if matches!(**change, SchemaChange::Reindex(_)) => {
                        state.commit_statement_apart()
                    }
                    _ => state.commit_statement(),
                };
            } else if let Some(place) = &place {
                outcome = state.txn.release(place).map_err(Error::from);
            }
        } else if commits {
            state.txn.rollback();
            state.rolled_back();
        } else if outcome.as_ref().is_err_and(is_interrupt) {
            state.abandon();
        } else if let Some(Err(undoing)) = place.map(|place| go_back(&mut state.txn, &place)) {
            state.abandon();
            outcome = outcome.map_err(|failure| ended_by(undoing, failure));
        } else {
            state.counters.go_back(&counters);
        }
        if commits {
            state.counters = Counters::default();
        }
        outcome
    }
}

/// Has the connection know how many rows a statement changed.
#[inline]
fn count(effects: &Effects, functions: &mut func::Context) {
    functions.changes = i64::try_from(effects.changes).unwrap_or(i64::MAX);
    functions.total_changes = functions
        .total_changes
        .saturating_add(functions.changes)
        .saturating_add_unsigned(effects.by_actions);
}

/// A write that did not come to run changed nothing.
#[cold]
fn none_changed(error: Error, state: &mut State) -> Error {
    state.functions.changes = 0;
    error
}

fn is_interrupt(error: &Error) -> bool {
    error.code() == code::INTERRUPT
}

/// What runs the trigger programs of a plan, where it has any.
#[inline]
fn triggers_of<'t>(plan: &'t Plan, state: &'t mut TriggerState) -> Option<Triggers<'t>> {
    (!plan.programs.is_empty()).then(|| {
        state.begin(plan.settings.recursive_triggers);
        Triggers::new(&plan.programs, state)
    })
}

/// Undoes what was written since a place, which nobody goes back to again.
fn go_back(txn: &mut Txns, place: &Mark) -> fulgurite_store::Result<()> {
    txn.rollback_to(place)?;
    txn.release(place)
}

/// What ended a transaction in which a statement that failed could not be undone alone. Who
/// heard of a constraint would take the transaction to be open still.
#[cold]
fn ended_by(undoing: fulgurite_store::Error, failure: Error) -> Error {
    if undoing.kind() == ErrorKind::Misuse {
        // It was the failure that left nothing to go back to.
        return failure;
    }
    let hint = format!(
        "{undoing}; the statement failed ({failure}) and could not be undone alone, so its transaction was undone: run that again"
    );
    Error::from(undoing).with_hint(hint)
}

/// Deletes the rows of a table that is dropped, where foreign keys want to see them go.
fn delete_dropped(
    delete: &Delete,
    txn: &mut Txns,
    counters: &mut Counters,
    triggers: Option<Triggers<'_>>,
    effects: &mut Effects,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    let keys = delete.target.foreign.as_ref();
    let Some(foreign) = keys.and_then(|keys| Foreign::new(keys, counters)) else {
        return Ok(());
    };
    let mut source = build(&delete.source);
    source.attach(txn)?;
    source.open(cx)?;
    let (mut buffers, mut deferred) = (Buffers::default(), Deferred::default());
    let mut sink = Sink::new(txn, &delete.target, None, &mut buffers, &mut deferred);
    sink.foreign = Some(foreign);
    sink.triggers = triggers;
    let deleted = dml::delete(delete, source.as_mut(), &mut sink, cx, effects);
    if let Some(foreign) = sink.foreign.take() {
        effects.by_actions = foreign.changes;
        *counters = foreign.counters;
    }
    deleted.map_err(|failure| failure.error)?;
    match counters.allow_end() {
        true => Ok(()),
        false => Err(Error::foreign_key()),
    }
}
