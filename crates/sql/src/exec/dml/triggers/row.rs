//! What a sink fires for its rows.

use super::Shown;
use crate::error::Error;
use crate::exec::context::Context;
use crate::exec::dml::sink::{Outcome, Sink};
use crate::exec::dml::{Failure, Written};
use crate::plan::trigger::Timed;
use crate::schema::ConflictAction;
use crate::value::Value;

/// Which of the sink's rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The row being written is new.
    Insert,
    /// It takes the place of the old one.
    Update,
    /// The old one goes.
    Delete,
}

impl<'a> Sink<'a> {
    /// What the statement fires for rows that it inserts.
    #[inline]
    pub fn insert_fires(&self) -> Option<&'a Timed> {
        self.target.triggers.as_deref().map(|firing| &firing.insert)
    }

    /// The same for rows that it updates.
    #[inline]
    pub fn update_fires(&self) -> Option<&'a Timed> {
        self.target.triggers.as_deref().map(|firing| &firing.update)
    }

    /// The same for rows that it deletes or replaces.
    #[inline]
    pub fn delete_fires(&self) -> Option<&'a Timed> {
        let firing = self.target.triggers.as_deref();
        firing
            .map(|firing| &firing.delete)
            .filter(|fires| !fires.is_empty())
    }

    /// Whether rows whose turn comes later may be others then, or gone.
    #[inline]
    pub fn may_meet_changes(&self) -> bool {
        let foreign = self.foreign.as_ref();
        self.target.triggers.is_some()
            || foreign.is_some_and(|it| it.changes_own_rows() || self.triggers.is_some())
    }

    /// Runs programs over the rows in `buffers`.
    pub fn fire(
        &mut self,
        fires: &[usize],
        event: Event,
        cx: &mut Context<'_, '_>,
    ) -> Written<Outcome> {
        if fires.is_empty() {
            return Ok(Outcome::Written);
        }
        let rows = Shown {
            old: (event != Event::Insert).then_some(self.buffers.gone()),
            new: (event != Event::Delete).then_some(self.buffers.row.as_slice()),
        };
        let Some(triggers) = &mut self.triggers else {
            return Err(Error::misuse("a trigger has no program").into());
        };
        let depth = triggers.state.depth;
        if let Some(foreign) = &self.foreign {
            triggers.state.counters = foreign.counters;
            triggers.state.depth = foreign.depth();
        }
        let outcome = triggers.run(fires, rows, self.txn, cx);
        triggers.state.depth = depth;
        if let Some(foreign) = &mut self.foreign {
            foreign.counters = triggers.state.counters;
        }
        self.forget_sequence();
        // Where nobody took a place to go back to, all there is to undo is the transaction.
        let fails = |failure: &Failure| failure.action == ConflictAction::Abort;
        self.torn |= outcome.as_ref().err().is_some_and(fails);
        outcome
    }

    /// Fires what comes before the row in `buffers.old` goes, or becomes the one being
    /// written, and reads it again. Skipped: it stays, or is gone already.
    pub fn fire_before(
        &mut self,
        fires: &Timed,
        event: Event,
        cx: &mut Context<'_, '_>,
    ) -> Written<Outcome> {
        self.buffers.seen.clear();
        let Some(Value::Integer(rowid)) = self.buffers.old.first() else {
            return Err(Error::misuse("a trigger's row has no rowid").into());
        };
        let rowid = *rowid;
        if fires.before.is_empty() {
            return Ok(Outcome::Written);
        }
        if event != Event::Delete && self.target.table.strict {
            self.check_types()?;
        }
        if self.fire(&fires.before, event, cx)? == Outcome::Skipped {
            return Ok(Outcome::Skipped);
        }
        self.buffers.seen.clone_from(&self.buffers.old);
        match self.read_old(rowid, cx)? {
            true => Ok(Outcome::Written),
            false => Ok(Outcome::Skipped),
        }
    }

    /// The same for an UPDATE, whose row keeps the values that it does not assign.
    pub fn fire_before_update(
        &mut self,
        fires: &Timed,
        is_assigned: impl Fn(usize) -> bool,
        cx: &mut Context<'_, '_>,
    ) -> Written<Outcome> {
        let outcome = self.fire_before(fires, Event::Update, cx)?;
        if outcome == Outcome::Written && !fires.before.is_empty() {
            let alias = self.table().rowid_alias;
            let pairs = self.buffers.row.iter_mut().zip(&self.buffers.old);
            for (at, (new, old)) in pairs.skip(1).enumerate() {
                if alias != Some(at) && !is_assigned(at) {
                    new.assign(old.as_ref());
                }
            }
            self.generate(cx)?;
        }
        Ok(outcome)
    }
}
