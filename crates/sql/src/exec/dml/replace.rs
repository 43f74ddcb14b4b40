//! INSERT that replaces the row of its own rowid.
//!
//! Of the row that is in the way only those entries go that the new row does not have as
//! well; the row itself is overwritten. So who stores a row again that has hardly changed
//! leaves its indexes alone. To everybody else it is as if the row had been deleted:
//! where the new one meets another row, what is left of both goes.

use fulgurite_store::Key;

use super::sink::{Sink, no_row};
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::fetch::Fetch;
use crate::schema::ConflictAction;

impl Sink<'_> {
    /// Whether a row whose rowid is taken replaces who has it.
    pub(super) fn replaces_rowid(&self) -> bool {
        self.action(self.table().rowid_conflict) == ConflictAction::Replace
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
        Fetch::whole_row(table).assign(rowid, &record, &mut self.buffers.old)?;
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
