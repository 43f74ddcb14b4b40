//! A statement without its session: where it is among its rows, and what its steps do.
//!
//! Queries are in `query.rs`, INSERT, UPDATE and DELETE in `write.rs`; here is what all
//! statements share, and those that are neither.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::compile::Replaced;
use super::prepared::Step;
use super::program::Program;
use super::state::{Base, State};
use super::{Engine, Shared, pragma, transaction};
use crate::error::{Error, Result};
use crate::exec::batch::Batch;
use crate::exec::context::Run;
use crate::exec::dml::{Buffers, TriggerState};
use crate::exec::effects::Effects;
use crate::exec::kind::Kind;
use crate::exec::memory::let_go_of_large;
use crate::exec::rows::RowStore;
use crate::plan::physical::Action;
use crate::value::{Value, collate};

/// Where a statement is.
pub(super) enum Phase {
    /// Before its first step.
    Ready,
    /// On the one row of a point read.
    Point,
    /// On a row of a query.
    Rows,
    /// On a row that was made beforehand: RETURNING, PRAGMA.
    Kept(RowStore, u64),
}

/// A statement without its session.
pub(super) struct Body {
    pub(super) sql: String,
    /// The shape that it was compiled for, with the text's values as parameters.
    pub(super) shape: Option<Box<str>>,
    pub(super) program: Program,
    pub(super) parameters: Vec<Value>,
    pub(super) run: Run,
    pub(super) phase: Phase,
    /// The commit whose acknowledgement may have to be waited for before anybody is told of
    /// what it came to.
    pub(super) ahead_of: Option<u64>,
    pub(super) out: Batch,
    /// The row at hand, by position among those of `out` that count.
    pub(super) position: usize,
    pub(super) row: usize,
    pub(super) want: usize,
    pub(super) effects: Effects,
    pub(super) buffers: Buffers,
    pub(super) triggers: TriggerState,
    pub(super) explain: bool,
    /// What comparisons on the thread asked before the step at hand, where they ask the
    /// connection's collations now.
    pub(super) outer: Option<collate::Current>,
    /// To be dropped once nothing is locked: it is the program's, and may use the connection.
    pub(super) replaced: Vec<Replaced>,
}

impl Body {
    #[inline]
    pub(super) fn step(&mut self, shared: &Shared) -> Result<Step> {
        let outcome = match &mut self.phase {
            Phase::Ready => self.start(shared),
            Phase::Point => {
                self.phase = Phase::Ready;
                Ok(Step::Done)
            }
            Phase::Rows => self.next_row(shared),
            Phase::Kept(..) => self.next_kept(),
        };
        match self.ahead_of.take() {
            None => outcome,
            Some(commit) => self.confirm(commit, shared).and(outcome),
        }
    }

    /// Returns once the outcome of a step may be told, an error too.
    #[cold]
    fn confirm(&mut self, commit: u64, shared: &Shared) -> Result<()> {
        let txn = &mut shared.state()?.txn.main;
        if txn.ahead_of() != Some(commit) {
            // The transaction is over, and knows no more what it read.
            return Ok(txn.wait_acknowledged(commit)?);
        }
        txn.confirm()?;
        if matches!(self.phase, Phase::Rows) {
            self.ahead_of = txn.ahead_of();
        }
        Ok(())
    }

    fn start(&mut self, shared: &Shared) -> Result<Step> {
        if self.run.interrupt.load(Ordering::Relaxed) {
            let mut state = shared.state()?;
            let _calling = shared.calls();
            self.heed_interrupt(&mut state)?;
        }
        if !self.program.fits_sizes() {
            self.fit_sizes(shared)?;
        }
        if !self.program.plan.pragmas.is_empty() {
            self.ask_pragmas(shared)?;
        }
        match self.program.kind {
            Kind::PointRead(_) => self.read_point(shared),
            Kind::Query(_) => self.start_query(shared),
            Kind::PointInsert(_) | Kind::PointWrite(_) | Kind::Write(_) => {
                self.write(shared)?;
                self.hand_out()
            }
            Kind::Other => {
                self.other(shared)?;
                self.hand_out()
            }
        }
    }

    /// Goes on with the rows that the statement left, if it did.
    fn hand_out(&mut self) -> Result<Step> {
        match self.effects.rows.take() {
            None => Ok(Step::Done),
            Some(rows) => {
                self.out.clear();
                self.position = 0;
                self.phase = Phase::Kept(rows, 0);
                self.next_kept()
            }
        }
    }

    fn next_kept(&mut self) -> Result<Step> {
        let Phase::Kept(rows, read) = &mut self.phase else {
            return Ok(Step::Done);
        };
        if self.position >= self.out.len() {
            self.position = 0;
            if !rows.read(read, usize::MAX, &mut self.out)? {
                self.phase = Phase::Ready;
                return Ok(Step::Done);
            }
        }
        self.row = self.out.row_at(self.position).unwrap_or(0);
        self.position += 1;
        Ok(Step::Row)
    }

    /// Back to the start.
    #[inline]
    pub(super) fn reset(&mut self, shared: &Shared) {
        if matches!(self.phase, Phase::Rows) {
            self.end_query(shared);
        }
        self.phase = Phase::Ready;
        self.run.functions.end();
    }

    /// Gives back what large rows took. The values of a text that runs by its shape are the
    /// text.
    pub(super) fn let_go(&mut self) {
        if self.shape.is_none() {
            let_go_of_large(&mut self.parameters);
        }
        self.out.let_go();
        self.effects.let_go();
        self.buffers.let_go();
        self.triggers.let_go();
        self.run.functions.let_go();
        if let Kind::PointRead(point) | Kind::PointWrite(point) = &mut self.program.kind {
            point.let_go();
        }
    }

    /// Gives back what the values of a text took that has this shape: the next text that it
    /// takes on has its own.
    pub(super) fn let_go_of_text(&mut self) {
        if self.parameters.len() > self.program.plan.parameters.len() {
            self.parameters = Vec::new();
        }
        let_go_of_large(&mut self.parameters);
    }

    /// An interrupt that was asked for ends all that is under way, and what begins meanwhile:
    /// with a change, its transaction, as in SQLite.
    #[cold]
    fn heed_interrupt(&self, state: &mut State) -> Result<()> {
        if state.running == 0 {
            self.run.interrupt.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let is_query = matches!(
            &self.program.plan.action,
            Action::Query(_)
                | Action::Pragma(_)
                | Action::Attachment(_)
                | Action::Transaction(_)
                | Action::Analyze(_)
                | Action::Nothing
        );
        if !is_query && !state.is_autocommit() {
            state.abandon();
        }
        if !is_query && !matches!(self.program.plan.action, Action::Schema(_)) {
            state.functions.changes = 0;
        }
        Err(Error::interrupted())
    }

    /// Answers the PRAGMAs that its table-valued functions show.
    #[cold]
    fn ask_pragmas(&mut self, shared: &Shared) -> Result<()> {
        let mut state = shared.state()?;
        let _calling = shared.calls();
        let (engine, state) = (&shared.engine, &mut *state);
        // Which ones it asks may depend on the tables that there are.
        let ends = state.start_reading(&self.program.stores, Base::Acknowledged)?;
        let known = self.revalidate(engine, state);
        if ends {
            state.txn.rollback();
        }
        known?;
        let plan = Arc::clone(&self.program.plan);
        self.ask_collations(state);
        let answers = plan.pragmas.iter().map(|pragma| {
            let rows = pragma::answer(pragma, engine, state, &mut self.run)?;
            Ok((pragma.clone(), Arc::new(rows.unwrap_or_default())))
        });
        let answers: Result<Vec<_>> = answers.collect();
        if let Some(failure) = collate::take_failure() {
            return Err(failure);
        }
        self.run.functions.answers = answers?;
        Ok(())
    }

    /// Has comparisons on the thread ask the connection's collations until the step ends.
    pub(super) fn ask_collations(&mut self, state: &State) {
        let outer = collate::enter(state.settings.user.collations());
        self.outer.get_or_insert(outer);
    }

    /// What every statement does first under the session's lock.
    #[inline(always)]
    pub(super) fn begin_run(&mut self, state: &mut State) {
        self.run.functions.begin_in(&mut state.functions);
        self.ahead_of = state.txn.main.ahead_of();
        if self.run.registers.len() != self.program.plan.registers {
            self.run
                .registers
                .resize(self.program.plan.registers, Value::Null);
        }
    }

    /// Transactions, PRAGMAs and changes of the schema.
    fn other(&mut self, shared: &Shared) -> Result<()> {
        let mut state = shared.state()?;
        let _calling = shared.calls();
        let state = &mut *state;
        self.effects.clear();
        self.begin_run(state);
        state.changed += 1;
        let plan = Arc::clone(&self.program.plan);
        match plan.action {
            // How transactions begin and end tells of no data.
            Action::Transaction(_) => self.ahead_of = None,
            Action::Schema(_) if state.is_change_ahead(&self.program) => {}
            _ => {
                self.ahead_of = None;
                state.wait_for_base()?;
            }
        }
        self.ask_collations(state);
        let outcome = match &plan.action {
            Action::Transaction(action) => transaction::run(action, state, &shared.engine),
            Action::Pragma(pragma) => {
                let (run, effects) = (&mut self.run, &mut self.effects);
                pragma::run(pragma, &shared.engine, state, run, effects)
            }
            Action::Schema(_) => self.change_schema(&shared.engine, state),
            Action::Analyze(indexes) => {
                for index in indexes {
                    let other = state.engine_in(index.store_number());
                    let engine = other.unwrap_or(&shared.engine);
                    engine.samples().forget(index.id());
                }
                Ok(())
            }
            Action::Attachment(texts) => self.attach_or_detach(texts, &shared.engine, state),
            Action::Vacuum(..) => self.vacuum(&shared.engine, state),
            _ => self.look_again(&shared.engine, state),
        };
        // Who keeps the statement keeps no state of the database with it.
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.detach();
        }
        outcome
    }

    /// By the schema that it was compiled with there was nothing to do: that one still
    /// stands, or there may be something now.
    fn look_again(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        match self.has_change(engine, state)? {
            true => self.change_schema(engine, state),
            false => Ok(()),
        }
    }

    /// Whether there is something of the schema to change, by how that is now.
    pub(super) fn has_change(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        let ends = state.start_reading(&self.program.stores, Base::Acknowledged)?;
        let looked = self.revalidate(engine, state);
        if ends {
            state.txn.rollback();
        }
        looked?;
        Ok(matches!(self.program.plan.action, Action::Schema(_)))
    }
}
