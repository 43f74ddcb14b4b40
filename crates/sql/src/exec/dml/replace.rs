//! What becomes of rows that are in the way of the one being written.
//!
//! One that is replaced is deleted, with its entries. But where an INSERT replaces the row
//! of its own rowid, only those entries go that the new row does not have as well, and the
//! row itself is overwritten. The same happens where it replaces a row of a WITHOUT ROWID
//! table, whose number it takes, since nobody sees it. So who stores a row again that has
//! hardly changed leaves its indexes alone. To everybody else it is as if the row had been
//! deleted: where the new one meets another row, what is left of both goes.

use fulgurite_store::Key;

use super::entry::{duplicate, duplicate_rowid};
use super::generated::read_row;
use super::sink::{Conflict, Outcome, Sink};
use super::triggers::Event;
use super::{Failure, Written, violated};
use crate::error::{Error, Result};
use crate::exec::context::Context;
use crate::schema::ConflictAction;

impl Sink<'_> {
    /// What to do about a conflict: Skipped (IGNORE), or Written where the row
    /// in the way is gone and the caller tries again.
    pub fn resolve(&mut self, conflict: Conflict, cx: &mut Context<'_, '_>) -> Written<Outcome> {
        let own = match conflict {
            Conflict::Rowid => self.target.table.rowid_conflict,
            Conflict::Index(i) => match self.target.indexes.get(i) {
                Some(writer) => writer.index.conflict,
                None => return Ok(Outcome::Skipped),
            },
        };
        match self.action(own) {
            ConflictAction::Ignore => Ok(Outcome::Skipped),
            ConflictAction::Replace => {
                if self.delete_fires().is_some() {
                    self.given_way = Some(self.place_of(conflict));
                }
                let victim = match conflict {
                    Conflict::Index(i) => self.holder(i)?,
                    Conflict::Rowid => self.rowid(),
                };
                self.delete_by_rowid(victim, cx)?;
                self.replaced = true;
                Ok(Outcome::Written)
            }
            action => Err(violated(self.violation(conflict), action)),
        }
    }

    fn violation(&self, conflict: Conflict) -> Error {
        let table = &self.target.table;
        match conflict {
            Conflict::Rowid => duplicate_rowid(table),
            Conflict::Index(i) => match self.target.indexes.get(i) {
                Some(writer) => duplicate(table, &writer.index),
                None => no_row(),
            },
        }
    }

    /// Another row that a trigger has put in the way, while one was replaced, ends the
    /// statement.
    #[inline]
    pub(super) fn check_given_way(&self, conflict: Conflict) -> Written<()> {
        match self.given_way {
            Some(last) if self.place_of(conflict) <= last => {
                Err(violated(self.violation(conflict), ConflictAction::Abort))
            }
            _ => Ok(()),
        }
    }

    /// The place of a constraint in the order of checks.
    fn place_of(&self, conflict: Conflict) -> usize {
        match (conflict, self.target.rowid_after) {
            (Conflict::Index(i), _) => 2 * i + 1,
            (Conflict::Rowid, Some(indexes)) => 2 * indexes,
            (Conflict::Rowid, None) if self.rowid_last() => usize::MAX,
            (Conflict::Rowid, None) => 0,
        }
    }

    /// Deletes the row of a rowid, which is in the way, with its entries.
    fn delete_by_rowid(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Written<()> {
        let mut record = Vec::new();
        if !self
            .txn
            .get_into(&self.target.table.tree, Key::Int(rowid), &mut record)?
        {
            return Err(no_row().into());
        }
        let old = std::mem::take(&mut self.buffers.old);
        let seen = std::mem::take(&mut self.buffers.seen);
        let target = self.target;
        let (row, kept) = ((rowid, record.as_slice()), &mut self.buffers.old);
        let fetched = read_row(&target.table, &target.generated, row, kept, cx);
        let outcome = fetched
            .map_err(Failure::from)
            .and_then(|()| self.delete_victim(rowid, cx));
        self.buffers.old = old;
        self.buffers.seen = seen;
        outcome
    }

    /// Deletes the row in `buffers.old`, which is in the way.
    fn delete_victim(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Written<()> {
        let fires = self.delete_fires();
        if let Some(fires) = fires
            && self.fire_before(fires, Event::Delete, cx)? == Outcome::Skipped
        {
            return Ok(());
        }
        self.delete_old(rowid, cx)?;
        self.run_actions(cx)?;
        if let Some(fires) = fires {
            self.fire(&fires.after, Event::Delete, cx)?;
            // The record of the row being written was used to read this one.
            self.encode()?;
        }
        Ok(())
    }

    /// Whether a row whose rowid is taken replaces who has it.
    #[inline]
    pub(super) fn replaces_rowid(&self) -> bool {
        self.action(self.table().rowid_conflict) == ConflictAction::Replace
    }

    /// Whether a row takes the place, and the number, of who has its key in a unique index.
    #[inline]
    pub(super) fn replaces_key(&self, index: usize) -> bool {
        let own = self.target.indexes.get(index).map(|it| it.index.conflict);
        let replaces = |own| self.action(own) == ConflictAction::Replace;
        self.table().without_rowid && own.is_some_and(replaces)
    }

    /// Makes room for the row being written, whose rowid is taken; it is to be inserted
    /// again.
    pub(super) fn give_way(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let (table, rowid) = (&self.target.table, self.rowid());
        let mut record = Vec::new();
        if !self
            .txn
            .get_into(&table.tree, Key::Int(rowid), &mut record)?
        {
            return Err(no_row());
        }
        let (row, old) = ((rowid, record.as_slice()), &mut self.buffers.old);
        read_row(table, &self.target.generated, row, old, cx)?;
        self.make_old_entries(rowid, true, cx)?;
        self.torn = true;
        for (i, writer) in self.target.indexes.iter().enumerate() {
            if !self.buffers.has_again(i)
                && let Some(old) = self.buffers.old_entries.get(i).filter(|old| old.present)
            {
                self.deferred.delete(self.txn, &writer.index, old)?;
            }
        }
        self.torn = false;
        self.replaced = true;
        self.overwrites = true;
        Ok(())
    }
}

/// Of a row that was found to be in the way. It would be found again and again.
fn no_row() -> Error {
    Error::corrupt("the row of an index entry is gone")
}
