//! Each row once, at its first appearance: DISTINCT and the compound operators.
//!
//! A hash table remembers the rows that came, as long as the budget allows. From
//! then on it takes no more: rows it knows are dropped as before, all others wait
//! on disk for the end of the input ([`ExternalSet`]). They follow in the order
//! in which they came, which is the order of first appearance still, since the
//! table's rows were all there before.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::Operand;
use crate::exec::external::{ExternalSet, Stay};
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::Held;
use crate::key::any_of_program;
use crate::value::Collation;

/// See the module.
pub struct Once {
    collations: Arc<[Collation]>,
    table: GroupTable,
    held: Held,
    groups: Vec<u32>,
    width: usize,
    waiting: Option<ExternalSet>,
}

impl Once {
    /// No rows yet. The leading columns, one a collation, tell rows apart.
    pub fn new(collations: Vec<Collation>) -> Self {
        Self {
            collations: collations.clone().into(),
            table: GroupTable::new(collations),
            held: Held::default(),
            groups: Vec::new(),
            width: 0,
            waiting: None,
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.waiting = None;
        self.table.clear();
    }

    /// As [`Once::clear`], and gives memory back.
    pub fn release(&mut self) {
        self.clear();
        self.table.release();
        self.held.release();
    }

    /// Everything from here on goes to disk, to be told apart there.
    pub fn wait_in(&mut self, set: ExternalSet) {
        self.waiting = Some(set);
    }

    /// Keeps the rows of the batch that come for the first time.
    pub fn keep_new(&mut self, batch: &mut Batch, cx: &mut Context<'_, '_>) -> Result<()> {
        if self.waiting.is_some() {
            return self.put_off(batch, cx);
        }
        if any_of_program(&self.collations) {
            // They cannot be hashed.
            let set = ExternalSet::new(Arc::clone(&self.collations), &cx.run.memory);
            self.waiting = Some(set);
            return self.put_off(batch, cx);
        }
        let mut known = self.table.len() as u32;
        let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
        self.table
            .insert(&keys, batch.selection(), &mut self.groups)?;
        let mut kept = cx.run.rows();
        let mut next = self.groups.iter();
        batch.selection().each(|row| {
            if next.next() == Some(&known) {
                known += 1;
                kept.push(row as u32);
            }
        });
        batch.select(&mut kept);
        cx.run.recycle_rows(kept);
        let bytes = self.table.memory();
        if !self.held.resize_half(&cx.run.memory, bytes) {
            self.held.force(&cx.run.memory, bytes);
            let set = ExternalSet::new(Arc::clone(&self.collations), &cx.run.memory);
            self.waiting = Some(set);
        }
        Ok(())
    }

    /// Lets those rows wait that the table does not know.
    fn put_off(&mut self, batch: &mut Batch, cx: &mut Context<'_, '_>) -> Result<()> {
        let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
        self.table.find(&keys, batch.selection(), &mut self.groups);
        self.width = batch.columns.len();
        if let Some(set) = &mut self.waiting {
            let mut next = self.groups.iter();
            batch.selection().try_each(|row| match next.next() {
                Some(&NONE) => set.add(batch, row),
                _ => Ok(()),
            })?;
        }
        let mut none = cx.run.rows();
        batch.select(&mut none);
        cx.run.recycle_rows(none);
        Ok(())
    }

    /// After the last row: true if rows wait, which [`Once::read`] hands out.
    pub fn finish(&mut self, stay: Stay, cx: &mut Context<'_, '_>) -> Result<bool> {
        let Some(set) = &mut self.waiting else {
            return Ok(false);
        };
        self.table.clear();
        self.table.release();
        self.held.release();
        set.finish(stay, cx)?;
        Ok(true)
    }

    /// The next rows that waited; false at the end.
    pub fn read(&mut self, want: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.waiting {
            Some(set) => set.read(want, self.width, out),
            None => Ok(false),
        }
    }
}
