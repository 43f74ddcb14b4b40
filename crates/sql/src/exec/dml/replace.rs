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
                if self.delete_fires().is_some() || self.foreign.is_some() {
                    self.given_way = Some(self.place_of(conflict));
                }
                if self.triggers.is_some() {
                    // What they insert gets numbers behind that of the row under way.
                    self.end()?;
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

    /// What to resolve of a row that breaks this constraint. One for which others have given
    /// way already was broken again by what triggers or actions put there: those behind it
    /// are resolved first, which may mend it, and what is left then ends the statement.
    /// `old`: the rowid of the row that is changed; `all`: as for
    /// [`find_conflict`](Self::find_conflict).
    #[inline]
    pub(super) fn next_to_resolve(
        &mut self,
        conflict: Conflict,
        old: Option<i64>,
        all: bool,
    ) -> Written<Conflict> {
        match self.given_way {
            Some(last) if self.place_of(conflict) <= last => {
                match self.conflict_behind(last, old, all)? {
                    Some(later) => Ok(later),
                    None => Err(violated(self.violation(conflict), ConflictAction::Abort)),
                }
            }
            _ => Ok(conflict),
        }
    }

    /// The first constraint behind a place, in the order of checks, that the row being written
    /// breaks.
    #[cold]
    fn conflict_behind(
        &mut self,
        place: usize,
        old: Option<i64>,
        all: bool,
    ) -> Result<Option<Conflict>> {
        let indexes = (0..self.target.indexes.len()).map(Conflict::Index);
        let mut later: Vec<Conflict> = indexes.chain([Conflict::Rowid]).collect();
        later.retain(|conflict| self.place_of(*conflict) > place);
        later.sort_unstable_by_key(|conflict| self.place_of(*conflict));
        for conflict in later {
            let is_broken = match conflict {
                Conflict::Index(index) => self.has_taken_key(index, all, old.is_some())?,
                Conflict::Rowid => {
                    let (tree, rowid) = (&self.target.table.tree, self.rowid());
                    old != Some(rowid) && self.txn.is_taken(tree, Key::Int(rowid))?
                }
            };
            if is_broken {
                return Ok(Some(conflict));
            }
        }
        Ok(None)
    }

    /// Whether nobody has the number that was allocated for the row being written: a row that
    /// triggers inserted, while another gave way, may have been given it as well. A row of a
    /// WITHOUT ROWID table, whose number nobody sees, takes another one then.
    #[inline]
    pub(super) fn keeps_number(&mut self, cx: &mut Context<'_, '_>) -> Result<bool> {
        let (tree, rowid) = (&self.target.table.tree, self.rowid());
        if self.given_way.is_none() || !self.txn.is_taken(tree, Key::Int(rowid))? {
            return Ok(true);
        }
        if !self.table().without_rowid {
            return Ok(false);
        }
        let rowid = self.allocate_rowid()?;
        self.set_rowid(rowid);
        self.make_entries(cx)?;
        Ok(true)
    }

    /// A row that triggers inserted has the number that was allocated for the one being
    /// written.
    #[cold]
    pub(super) fn number_taken(&self) -> Failure {
        violated(self.violation(Conflict::Rowid), ConflictAction::Abort)
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
