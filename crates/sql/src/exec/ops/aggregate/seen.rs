//! DISTINCT within an aggregate call: the pairs of group and value that were
//! there.
//!
//! When the budget allows no more, the table takes no further pairs: rows with a
//! pair that it does not know wait, sorted by their value on disk, until their
//! group is finished. Then the first row of each value counts, in the order in
//! which those rows came, which was after all rows that counted at once. Under a
//! collation of the program, which cannot be hashed, all rows wait.

use crate::error::Result;
use crate::exec::batch::{Selection, Vector};
use crate::exec::context::Context;
use crate::exec::expr::{Datum, Operand};
use crate::exec::external::encode_key;
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::Held;
use crate::exec::rows::encode_cell;
use crate::exec::sorter::Sorter;
use crate::key::Order;
use crate::value::{Collation, ValueRef};

/// Rows between two looks at the interrupt flag.
const CHECK_EVERY: u64 = 4096;

/// See the module.
pub struct Seen {
    collation: Collation,
    table: GroupTable,
    held: Held,
    full: bool,
    /// For each group the rows that wait.
    waiting: Vec<Option<Sorter>>,
    arrived: u64,
}

/// Writes a row's place in the order of the call; nothing where it has none.
pub type Place<'f, 'p, 'r> =
    &'f mut dyn FnMut(usize, &mut Vec<u8>, &mut Context<'p, 'r>) -> Result<()>;

impl Seen {
    /// No pairs.
    pub fn new(collation: Collation) -> Self {
        Self {
            collation,
            table: GroupTable::new(vec![Collation::Binary, collation]),
            held: Held::default(),
            full: collation.is_of_program(),
            waiting: Vec::new(),
            arrived: 0,
        }
    }

    /// Forgets all pairs and gives memory back.
    pub fn clear(&mut self) {
        self.table.clear();
        self.table.release();
        self.held.release();
        self.waiting.clear();
        self.full = self.collation.is_of_program();
        self.arrived = 0;
    }

    /// Those of the rows whose first argument its group has not had before, with
    /// the groups, as far as that can be told now. NULLs, which no aggregate with
    /// DISTINCT counts, may come twice. The others wait, with what `place` writes.
    pub fn fresh<'p, 'r>(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
        place: Place<'_, 'p, 'r>,
        cx: &mut Context<'p, 'r>,
    ) -> Result<Vec<(u32, u32)>> {
        let (mut numbers, mut values) = (Vector::new(), Vector::new());
        let mut next = groups.iter();
        let Some(arg) = args.first() else {
            return Ok(Vec::new());
        };
        selection.try_each(|row| {
            numbers.push_integer(next.next().map_or(0, |g| i64::from(*g)));
            values.push(arg.get(row))
        })?;
        let keys = [Operand::Column(&numbers), Operand::Column(&values)];
        let all = Selection::All(values.len());
        let mut pairs = Vec::new();
        if self.full {
            self.table.find(&keys, all, &mut pairs);
            for (i, group) in groups.iter().enumerate() {
                if pairs.get(i) == Some(&NONE) && !values.get(i).is_null() {
                    let row = selection.row(i).unwrap_or(0);
                    self.put_off(args, row, *group, place, cx)?;
                }
            }
            return Ok(Vec::new());
        }
        let mut known = self.table.len() as u32;
        self.table.insert(&keys, all, &mut pairs)?;
        let mut fresh = Vec::new();
        for (i, (pair, group)) in pairs.iter().zip(groups).enumerate() {
            if *pair == known {
                known += 1;
                fresh.push((selection.row(i).unwrap_or(0) as u32, *group));
            }
        }
        let bytes = self.table.memory();
        if !self.held.resize_half(&cx.run.memory, bytes) {
            self.held.force(&cx.run.memory, bytes);
            self.full = true;
        }
        Ok(fresh)
    }

    fn put_off<'p, 'r>(
        &mut self,
        args: &[Operand<'_>],
        row: usize,
        group: u32,
        place: Place<'_, 'p, 'r>,
        cx: &mut Context<'p, 'r>,
    ) -> Result<()> {
        let group = group as usize;
        if self.waiting.len() <= group {
            self.waiting.resize_with(group + 1, || None);
        }
        let Some(slot) = self.waiting.get_mut(group) else {
            return Ok(());
        };
        let (mut key, mut order) = (Vec::new(), Vec::new());
        if let Some(arg) = args.first() {
            encode_key(&mut key, arg.get(row), self.collation);
        }
        place(row, &mut order, cx)?;
        let mut payload = self.arrived.to_be_bytes().to_vec();
        self.arrived += 1;
        encode_cell(ValueRef::Blob(&order), &mut payload);
        args.iter()
            .for_each(|arg| encode_cell(arg.get(row), &mut payload));
        let by_value = || Sorter::new(&cx.run.memory, None).by(Order::of([self.collation]));
        slot.get_or_insert_with(by_value).add(&key, &payload)
    }

    /// The rows of a group that waited and count, in the order in which they
    /// came: each one's place as a blob, then its arguments, as encoded cells.
    pub fn finish(&mut self, group: usize, cx: &mut Context<'_, '_>) -> Result<Option<Sorter>> {
        let Some(mut by_value) = self.waiting.get_mut(group).and_then(Option::take) else {
            return Ok(None);
        };
        let order = Order::of([self.collation]);
        by_value.finish()?;
        let mut in_order = Sorter::new(&cx.run.memory, None);
        let (mut current, mut first) = (Vec::new(), true);
        let mut records = 0u64;
        while let Some((key, payload)) = by_value.next_record()? {
            records += 1;
            if records.is_multiple_of(CHECK_EVERY) {
                cx.run.check_interrupt()?;
            }
            // Equal values come in order of arrival.
            if first || !order.is_equal(&current, key) {
                first = false;
                current.clear();
                current.extend_from_slice(key);
                let (arrived, cells) = payload.split_at_checked(8).unwrap_or((payload, &[]));
                in_order.add(arrived, cells)?;
            }
        }
        in_order.finish()?;
        Ok(Some(in_order))
    }

    /// Keeps the pairs of group `first`, which becomes group 0.
    pub fn keep_from(&mut self, first: usize) {
        self.waiting.drain(..first.min(self.waiting.len()));
        let mut values = Vector::new();
        if let [groups, stored] = self.table.keys() {
            for i in 0..groups.len() {
                if groups.get(i) == ValueRef::Integer(first as i64) {
                    // A value that was stored once fits again.
                    let _ = values.push(stored.get(i));
                }
            }
        }
        let zero = Operand::Constant(Datum::Same(ValueRef::Integer(0)));
        let mut fresh = GroupTable::new(vec![Collation::Binary, self.collation]);
        let all = Selection::All(values.len());
        if fresh
            .insert(&[zero, Operand::Column(&values)], all, &mut Vec::new())
            .is_ok()
        {
            self.table = fresh;
        }
        // A group with rows that wait must not count them as new ones.
        self.full =
            self.collation.is_of_program() || self.waiting.first().is_some_and(Option::is_some);
    }
}
