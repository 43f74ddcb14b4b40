//! The rows that a recursion with UNION has had.
//!
//! A hash table remembers them as long as the budget allows. From then on it takes no
//! more, and the rows that it does not know are told apart on disk.

use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::disk_set::DiskSet;
use crate::exec::expr::Operand;
use crate::exec::external::encode_key;
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::Held;
use crate::key::any_of_program;
use crate::value::Collation;

/// See the module.
pub struct Known {
    collations: Vec<Collation>,
    table: GroupTable,
    held: Held,
    groups: Vec<u32>,
    on_disk: Option<DiskSet>,
    key: Vec<u8>,
}

impl Known {
    /// No rows yet; how their texts compare, a column each.
    pub fn new(collations: Vec<Collation>) -> Self {
        Self {
            table: GroupTable::new(collations.clone()),
            collations,
            held: Held::default(),
            groups: Vec::new(),
            on_disk: None,
            key: Vec::new(),
        }
    }

    /// Forgets all rows and gives memory back.
    pub fn clear(&mut self) {
        self.table.clear();
        self.table.release();
        self.held.release();
        self.on_disk = None;
    }

    /// Keeps the rows of the batch that come for the first time.
    pub fn keep_new(&mut self, batch: &mut Batch, cx: &mut Context<'_, '_>) -> Result<()> {
        let mut kept = cx.run.rows();
        let keys: Vec<Operand<'_>> = batch.columns.iter().map(Operand::Column).collect();
        if let Some(set) = &mut self.on_disk {
            self.table.find(&keys, batch.selection(), &mut self.groups);
            let mut groups = self.groups.iter();
            batch.selection().try_each(|row| {
                if groups.next() != Some(&NONE) {
                    return Ok(());
                }
                self.key.clear();
                for (column, collation) in batch.columns.iter().zip(&self.collations) {
                    encode_key(&mut self.key, column.get(row), *collation);
                }
                if set.insert(&self.key)? {
                    kept.push(row as u32);
                }
                Ok(())
            })?;
        } else {
            let mut known = self.table.len() as u32;
            self.table
                .insert(&keys, batch.selection(), &mut self.groups)?;
            let mut groups = self.groups.iter();
            batch.selection().each(|row| {
                if groups.next() == Some(&known) {
                    known += 1;
                    kept.push(row as u32);
                }
            });
            let bytes = self.table.memory();
            if !self.held.resize(&cx.run.memory, bytes) {
                self.held.force(&cx.run.memory, bytes);
                // On disk texts are told apart by their bytes.
                if !any_of_program(&self.collations) {
                    self.on_disk = Some(DiskSet::new(&cx.run.memory)?);
                }
            }
        }
        batch.select(&mut kept);
        cx.run.recycle_rows(kept);
        Ok(())
    }
}
