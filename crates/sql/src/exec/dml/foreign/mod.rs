//! Foreign keys of the rows that a statement writes.
//!
//! Rows without their parent are counted, not remembered, as SQLite does it: a child that
//! comes without its parent counts one, a parent that goes counts its children; a child
//! that goes without its parent, and a parent that comes, take that back. What is left at
//! the statement's end, or of deferred keys at COMMIT, is an error. So rows may come in any
//! order, and a transaction need not be looked through when it ends.
//!
//! What is found out holds at the commit, under `snapshot` too: others may not have taken
//! the parent away meanwhile, nor given it children.
//!
//! Actions (CASCADE and the like) run after the row that caused them: `actions.rs`.

mod actions;
mod probe;

use std::sync::Arc;

use self::actions::Frame;
pub use self::probe::has_parent;
use self::probe::{Children, refers_to_itself};
use super::sink::{Buffers, Sink};
use crate::error::{Error, Result, code};
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::plan::foreign::ForeignKeys;
use crate::value::Value;

/// How many rows are without their parent. What was counted in one place is taken back there:
/// rows that had no parent before, and get it, make good for others of such keys alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Of keys that are checked at the statement's end, by the statement.
    immediate: i64,
    /// Of deferred keys, by the transaction.
    deferred: i64,
    /// Of the others, by the transaction, while it postpones their checks.
    postponed: i64,
    /// `PRAGMA defer_foreign_keys`: all are checked at COMMIT.
    pub postpones: bool,
    /// The statement at work commits itself.
    commits: bool,
}

impl Counters {
    /// A statement begins. `commits`: it is its own transaction.
    #[inline]
    pub fn begin_statement(&mut self, commits: bool) {
        self.immediate = 0;
        self.commits = commits;
    }

    /// Whether the statement that ends is in order.
    #[inline]
    pub fn allow_end(&self) -> bool {
        self.immediate == 0 && (!self.commits || self.allow_commit())
    }

    /// Whether the transaction may commit.
    #[inline]
    pub fn allow_commit(&self) -> bool {
        self.deferred + self.postponed == 0
    }

    /// Goes back to what was counted earlier in the transaction.
    pub fn go_back(&mut self, before: &Self) {
        self.deferred = before.deferred;
        self.postponed = before.postponed;
    }

    /// `PRAGMA defer_foreign_keys`; OFF forgets what is left for COMMIT, as in SQLite.
    pub fn postpone(&mut self, postpones: bool) {
        self.postpones = postpones;
        if !postpones {
            (self.deferred, self.postponed) = (0, 0);
        }
    }

    /// Whether no row is known that could get its parent back.
    fn is_zero(&self, deferred: bool) -> bool {
        let count = match (deferred, self.postpones) {
            (true, _) => self.deferred,
            (false, true) => self.postponed,
            (false, false) => self.immediate,
        };
        count == 0
    }

    fn of(&mut self, deferred: bool) -> &mut i64 {
        match (deferred, self.postpones) {
            (true, _) => &mut self.deferred,
            (false, true) => &mut self.postponed,
            (false, false) => &mut self.immediate,
        }
    }

    fn add(&mut self, deferred: bool, rows: i64) {
        *self.of(deferred) += rows;
    }

    /// Rows that had no parent before may be among these: there are never fewer than none.
    fn subtract(&mut self, deferred: bool, rows: i64) {
        let count = self.of(deferred);
        *count = (*count - rows).max(0);
    }
}

/// What the foreign keys of a running statement are about.
pub struct Foreign {
    keys: Arc<ForeignKeys>,
    /// Rows without their parent.
    pub counters: Counters,
    /// Rows that actions changed.
    pub changes: u64,
    /// The table that is being written, by number, and how many actions led there.
    table: usize,
    depth: usize,
    frames: Vec<Frame>,
    /// Memory for each table that actions change.
    buffers: Vec<Buffers>,
    /// A key, and a row.
    key: Vec<u8>,
    record: Vec<u8>,
}

impl Foreign {
    /// For one statement; None where it has nothing to look at.
    pub fn new(keys: &Arc<ForeignKeys>, counters: &Counters) -> Option<Box<Self>> {
        let has_nothing = !keys.may_violate && counters.is_zero(true) && counters.is_zero(false);
        (!has_nothing).then(|| Self::within(keys, counters, 0))
    }

    /// For a statement beside or within triggers, so deep: they may break what it mends.
    pub fn within(keys: &Arc<ForeignKeys>, counters: &Counters, depth: usize) -> Box<Self> {
        Box::new(Self {
            keys: Arc::clone(keys),
            counters: *counters,
            changes: 0,
            table: 0,
            depth,
            frames: Vec::new(),
            buffers: Vec::new(),
            key: Vec::new(),
            record: Vec::new(),
        })
    }

    /// How deep the row that is being written is within actions and triggers.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the statement's own indexes are looked into.
    pub fn needs_own_indexes(&self) -> bool {
        self.keys.tables.first().is_some_and(|table| {
            !table.references.is_empty() || table.keys.iter().any(|key| key.of_itself)
        })
    }

    /// Whether actions may change rows of the statement's own table.
    pub fn changes_own_rows(&self) -> bool {
        let first = self.keys.tables.first();
        first.is_some_and(|table| table.writer.is_some())
    }

    /// Before a row goes, or changes in these columns.
    fn goes(
        &mut self,
        txn: &mut Txns,
        old: &[Value],
        changed: Option<&[usize]>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let keys = Arc::clone(&self.keys);
        let Some(table) = keys.tables.get(self.table) else {
            return Ok(());
        };
        for key in &table.keys {
            let is_concerned = key.of_itself || touches(changed, key.columns.iter().copied());
            if is_concerned
                && !self.counters.is_zero(key.deferred)
                && (key.named || !self.counters.commits)
                && has_parent(txn, key, old, None, &mut self.key, &mut self.record)? == Some(false)
            {
                self.counters.subtract(key.deferred, 1);
            }
        }
        for reference in &table.references {
            if touches(changed, reference.parts.iter().map(|part| part.parent)) {
                let own = reference.of_itself.then(|| rowid(old));
                let children = Children::counted(&keys, reference, old);
                let count = children.count(txn, own, &mut self.record, cx)?;
                self.counters.add(reference.deferred, count);
            }
        }
        Ok(())
    }

    /// After a row came, or changed in these columns.
    fn comes(
        &mut self,
        txn: &mut Txns,
        new: &[Value],
        changed: Option<&[usize]>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let keys = Arc::clone(&self.keys);
        let Some(table) = keys.tables.get(self.table) else {
            return Ok(());
        };
        for key in &table.keys {
            let is_concerned = key.of_itself || touches(changed, key.columns.iter().copied());
            if !is_concerned || refers_to_itself(key, new) {
                continue;
            }
            let own = key.of_itself.then(|| rowid(new));
            let found = has_parent(txn, key, new, own, &mut self.key, &mut self.record)?;
            if found == Some(false) {
                self.counters.add(key.deferred, 1);
                // Nothing of the row is to be told then.
                if keys.inserts_one && self.counters.immediate > 0 {
                    return Err(Error::foreign_key());
                }
            }
        }
        for reference in &table.references {
            if touches(changed, reference.parts.iter().map(|part| part.parent))
                && !self.counters.is_zero(reference.deferred)
                && (reference.named || !self.counters.commits)
            {
                let own = reference.of_itself.then(|| rowid(new));
                let children = Children::counted(&keys, reference, new);
                let count = children.count(txn, own, &mut self.record, cx)?;
                self.counters.subtract(reference.deferred, count);
            }
        }
        Ok(())
    }
}

/// Whether a change of these columns, or of a whole row, concerns a key of those.
fn touches(changed: Option<&[usize]>, mut columns: impl Iterator<Item = usize>) -> bool {
    changed.is_none_or(|changed| columns.any(|column| changed.contains(&column)))
}

fn rowid(row: &[Value]) -> i64 {
    match row.first() {
        Some(Value::Integer(rowid)) => *rowid,
        _ => 0,
    }
}

impl Sink<'_> {
    /// Before the row in `buffers.old` goes, or changes in these columns.
    #[inline]
    pub(super) fn before_change(
        &mut self,
        changed: Option<&[usize]>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        match &mut self.foreign {
            Some(foreign) => foreign.goes(self.txn, &self.buffers.old, changed, cx),
            None => Ok(()),
        }
    }

    /// After the row being written was inserted. Where that fails since it has no parent and
    /// nothing later could bring it, nothing of the row is left.
    pub(super) fn check_inserted(&mut self, rowid: i64, cx: &mut Context<'_, '_>) -> Result<()> {
        self.torn = true;
        let checked = self.after_change(None, cx);
        match &checked {
            Err(error) if error.extended_code() == code::CONSTRAINT_FOREIGNKEY => {
                self.take_back(rowid)?;
            }
            Err(_) => return checked,
            Ok(()) => {}
        }
        self.torn = false;
        checked
    }

    /// After the row being written came, or changed in these columns.
    #[inline]
    pub(super) fn after_change(
        &mut self,
        changed: Option<&[usize]>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        match &mut self.foreign {
            Some(foreign) => foreign.comes(self.txn, &self.buffers.row, changed, cx),
            None => Ok(()),
        }
    }
}
