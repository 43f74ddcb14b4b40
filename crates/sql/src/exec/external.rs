//! Rows told apart on disk: what a hash table had no room for.
//!
//! Rows are sorted by their encoded keys, so that equal ones become neighbours,
//! and those that stay are sorted once more into the order in which they came.
//! Two values are one key here exactly where a hash table finds them equal.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::memory::Memory;
use crate::exec::rows::{encode_cell, sorted_rows};
use crate::exec::sorter::Sorter;
use crate::key::{self, KeyColumn, Order};
use crate::value::{Collation, ValueRef};

/// Which keys' first rows stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// Those that were not marked.
    Unmarked,
    /// Those that were marked.
    Marked,
}

const MARK: u8 = 1;
const ROW: u8 = 0;
/// Records between two looks at the interrupt flag.
const CHECK_EVERY: u64 = 4096;

/// See the module. First marks, then rows.
pub struct ExternalSet {
    collations: Arc<[Collation]>,
    memory: Memory,
    by_key: Sorter,
    order: Order,
    in_order: Option<Sorter>,
    arrived: u64,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// Appends a value to a key in which equal values have equal bytes.
pub fn encode_key(out: &mut Vec<u8>, value: ValueRef<'_>, collation: Collation) {
    let column = KeyColumn {
        collation,
        descending: false,
        real: false,
    };
    key::encode(out, value, column);
}

impl ExternalSet {
    /// An empty one; the leading columns, one a collation, tell rows apart.
    pub fn new(collations: Arc<[Collation]>, memory: &Memory) -> Self {
        let order = Order::of(collations.iter().copied());
        Self {
            collations,
            memory: memory.clone(),
            by_key: Sorter::new(memory, None).by(order.clone()),
            order,
            in_order: None,
            arrived: 0,
            key: Vec::new(),
            payload: Vec::new(),
        }
    }

    fn set_key<'a>(&mut self, cells: impl Iterator<Item = ValueRef<'a>>) {
        self.key.clear();
        for (cell, collation) in cells.zip(self.collations.iter()) {
            encode_key(&mut self.key, cell, *collation);
        }
    }

    /// Marks a key.
    pub fn mark<'a>(&mut self, cells: impl Iterator<Item = ValueRef<'a>>) -> Result<()> {
        self.set_key(cells);
        self.by_key.add(&self.key, &[MARK])
    }

    /// Adds a row.
    pub fn add(&mut self, batch: &Batch, row: usize) -> Result<()> {
        self.set_key(batch.columns.iter().map(|c| c.get(row)));
        self.payload.clear();
        self.payload.push(ROW);
        self.payload.extend_from_slice(&self.arrived.to_be_bytes());
        for column in &batch.columns {
            encode_cell(column.get(row), &mut self.payload);
        }
        self.arrived += 1;
        self.by_key.add(&self.key, &self.payload)
    }

    /// Ends the input and decides which rows stay.
    pub fn finish(&mut self, stay: Stay, cx: &mut Context<'_, '_>) -> Result<()> {
        let mut in_order = Sorter::new(&self.memory, None);
        self.by_key.finish()?;
        let (mut current, mut first) = (Vec::new(), true);
        let (mut marked, mut taken) = (false, false);
        let mut records = 0u64;
        while let Some((key, payload)) = self.by_key.next_record()? {
            records += 1;
            if records.is_multiple_of(CHECK_EVERY) {
                cx.run.check_interrupt()?;
            }
            if first || !self.order.is_equal(&current, key) {
                current.clear();
                current.extend_from_slice(key);
                (first, marked, taken) = (false, false, false);
            }
            // Equal keys come in order of arrival, marks before rows.
            match payload.split_first() {
                Some((&ROW, rest)) if !taken && marked == (stay == Stay::Marked) => {
                    taken = true;
                    let (place, cells) = rest.split_at_checked(8).unwrap_or((rest, &[]));
                    in_order.add(place, cells)?;
                }
                Some((&MARK, _)) => marked = true,
                _ => {}
            }
        }
        self.by_key = Sorter::new(&self.memory, None);
        in_order.finish()?;
        self.in_order = Some(in_order);
        Ok(())
    }

    /// The next rows that stay; false at the end.
    pub fn read(&mut self, want: usize, width: usize, out: &mut Batch) -> Result<bool> {
        match &mut self.in_order {
            Some(sorter) => sorted_rows(sorter, want, width, out),
            None => {
                out.reset(width);
                Ok(false)
            }
        }
    }
}
