//! Queries: the point read, and operators pulled batch by batch.

use std::sync::atomic::Ordering;

use super::body::{Body, Phase};
use super::prepared::Step;
use super::state::{Base, State};
use super::write::COMPILES_MAX;
use super::{Engine, Shared};
use crate::error::{Error, Result, code};
use crate::exec::batch::{ROWS_FIRST, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::kind::Kind;
use crate::exec::txns::Txns;

/// Makes the index entries that were kept back, for whoever reads: a busy handler may be asked
/// meanwhile, and a rollback hook hears of a failure.
#[inline]
fn make_deferred(shared: &Shared, state: &mut State) -> Result<()> {
    let _calling = (!state.deferred.is_empty()).then(|| shared.calls());
    state.make_deferred()
}

impl Body {
    /// One row by key: begin, compare the schema's stamp, descend, end.
    pub(super) fn read_point(&mut self, shared: &Shared) -> Result<Step> {
        let found = {
            let mut state = shared.state()?;
            let state = &mut *state;
            let ends = self.start_reading(&shared.engine, state)?;
            self.begin_run(state);
            let ready = match self.program.leaves(&state.deferred) {
                true => Ok(()),
                false => make_deferred(shared, state),
            };
            let found = match ready {
                Ok(()) => self.find_point(&mut state.txn),
                Err(error) => Err(error),
            };
            if ends {
                state.txn.rollback();
            }
            found?
        };
        let Kind::PointRead(point) = &mut self.program.kind else {
            // Compiled again into something else.
            return self.start_query(shared);
        };
        let Some(rowid) = found else {
            return Ok(Step::Done);
        };
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        if !point.accept(rowid, &mut cx)? {
            return Ok(Step::Done);
        }
        point.compute(&mut cx)?;
        self.phase = Phase::Point;
        Ok(Step::Row)
    }

    /// Makes reading possible, with a plan of the schemas that the transaction sees. True:
    /// the caller ends the transaction.
    #[inline(always)]
    pub(super) fn start_reading(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        let ends = state.start_reading(&self.program.stores, self.base())?;
        match self.revalidate(engine, state) {
            Ok(false) => Ok(ends),
            again => self.start_reading_again(ends, again, engine, state),
        }
    }

    /// The same where the plan was of other schemas. By the new one the statement may read
    /// databases that were not begun with the main one: all are begun anew then, so that it
    /// reads what they showed at one moment.
    #[cold]
    fn start_reading_again(
        &mut self,
        mut ends: bool,
        mut compiled: Result<bool>,
        engine: &Engine,
        state: &mut State,
    ) -> Result<bool> {
        for _ in 0..COMPILES_MAX {
            let begins_anew = ends && self.program.uses_others();
            match compiled {
                Ok(true) if begins_anew => state.txn.rollback(),
                Ok(_) => return Ok(ends),
                Err(error) => {
                    if ends {
                        state.txn.rollback();
                    }
                    return Err(error);
                }
            }
            ends = state.start_reading(&self.program.stores, self.base())?;
            compiled = self.revalidate(engine, state);
        }
        if ends {
            state.txn.rollback();
        }
        Err(Error::new(code::SCHEMA, "database schema has changed"))
    }

    /// How much has to be acknowledged before it runs; the plan that EXPLAIN shows tells of
    /// what it rests on.
    fn base(&self) -> Base {
        match self.explain {
            true => Base::Acknowledged,
            false => self.program.base(),
        }
    }

    #[inline]
    fn find_point(&mut self, txn: &mut Txns) -> Result<Option<i64>> {
        let Kind::PointRead(point) = &mut self.program.kind else {
            return Ok(None);
        };
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        point.find(txn, &mut cx)
    }

    /// Takes the cursors of the statement's snapshot; the transaction is not
    /// needed any more then.
    pub(super) fn start_query(&mut self, shared: &Shared) -> Result<Step> {
        {
            let mut state = shared.state()?;
            let state = &mut *state;
            let ends = self.start_reading(&shared.engine, state)?;
            make_deferred(shared, state)?;
            self.begin_run(state);
            let outcome = self.attach(&mut state.txn);
            if ends {
                state.txn.rollback();
            }
            outcome?;
            state.running += 1;
            self.phase = Phase::Rows;
        }
        if !matches!(self.program.kind, Kind::Query(_)) {
            self.end_query(shared);
            self.phase = Phase::Ready;
            return self.read_point(shared);
        }
        self.want = ROWS_FIRST;
        self.position = 0;
        self.out.clear();
        if let Kind::Query(root) = &mut self.program.kind {
            root.open(&mut Context {
                parameters: &self.parameters,
                run: &mut self.run,
            })?;
        }
        self.next_row(shared)
    }

    /// Takes all cursors, or none.
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.attach_all(txn).inspect_err(|_| self.detach())
    }

    fn attach_all(&mut self, txn: &mut Txns) -> Result<()> {
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.attach(txn)?;
        }
        match &mut self.program.kind {
            Kind::Query(root) => root.attach(txn),
            _ => Ok(()),
        }
    }

    /// Goes to the next row of the batch at hand; false where there is none.
    #[inline(always)]
    pub(super) fn next_of_batch(&mut self) -> bool {
        if !matches!(self.phase, Phase::Rows) || self.run.interrupt.load(Ordering::Relaxed) {
            return false;
        }
        match self.out.row_at(self.position) {
            Some(row) => {
                self.row = row;
                self.position += 1;
                true
            }
            None => false,
        }
    }

    /// Goes to the next row.
    pub(super) fn next_row(&mut self, shared: &Shared) -> Result<Step> {
        if self.position < self.out.len() {
            // Who asks for rows slowly is not to be given all that are there already.
            if self.run.interrupt.load(Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
        } else {
            self.position = 0;
            self.run.check_interrupt()?;
            let Kind::Query(root) = &mut self.program.kind else {
                return Ok(Step::Done);
            };
            let mut cx = Context {
                parameters: &self.parameters,
                run: &mut self.run,
            };
            if !root.next(&mut cx, self.want, &mut self.out)? {
                self.end_query(shared);
                self.phase = Phase::Ready;
                return Ok(Step::Done);
            }
            self.want = (self.want * 4).min(ROWS_MAX);
        }
        self.row = self.out.row_at(self.position).unwrap_or(0);
        self.position += 1;
        Ok(Step::Row)
    }

    /// Lets go of cursors and buffers.
    fn detach(&mut self) {
        if let Kind::Query(root) = &mut self.program.kind {
            root.detach();
        }
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.detach();
        }
    }

    /// Ends a query that has begun.
    pub(super) fn end_query(&mut self, shared: &Shared) {
        self.detach();
        if let Ok(mut state) = shared.state() {
            state.running = state.running.saturating_sub(1);
        }
    }
}
