//! Hash aggregation: groups in order of first appearance, as long as the budget
//! allows. From then on no group is added: rows of groups in the table are taken
//! as before, all others are sorted by their keys on disk and grouped when the
//! table's groups have come out. A group's rows keep their order either way.

use super::sorted::SortedAggregate;
use super::states::States;
use crate::bind::expr::{Expr, Props};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX, Selection};
use crate::exec::context::Context;
use crate::exec::expr::batch::eval_rows;
use crate::exec::expr::{Operand, operand};
use crate::exec::external::encode_key;
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::{Held, Memory};
use crate::exec::ops::{BoxOperator, Delayed, Operator};
use crate::exec::rows::{encode_cell, sorted_rows};
use crate::exec::sorter::Sorter;
use crate::exec::txns::Txns;
use crate::key::Order;
use crate::plan::physical::Grouping;

/// See the module.
pub struct HashAggregate {
    input: BoxOperator,
    keys: Vec<Expr>,
    width: usize,
    table: GroupTable,
    states: States,
    rows: Batch,
    built: bool,
    position: usize,
    delayed: Delayed,
    grouping: Grouping,
    held: Held,
    /// Rows of the groups that found no place, then their aggregation.
    unplaced: Option<Unplaced>,
    rest: Option<SortedAggregate>,
}

/// The keys of a batch.
pub fn key_operands<'a, 'p: 'a>(
    keys: &'a [Expr],
    rows: &'a Batch,
    selection: Selection<'_>,
    cx: &mut Context<'p, '_>,
) -> Result<Vec<Operand<'a>>> {
    keys.iter()
        .map(|expr| {
            if expr.props.deterministic {
                return operand(expr, rows, selection, cx);
            }
            let mut out = cx.run.vector();
            eval_rows(expr, rows, selection, cx, &mut out)?;
            Ok(Operand::Computed(out))
        })
        .collect()
}

impl HashAggregate {
    /// Over `input`.
    pub fn new(input: BoxOperator, grouping: Grouping) -> Self {
        let states = States::new(&grouping);
        let width = grouping.keys.len() + grouping.aggregates.len() + grouping.bare.len();
        let (keys, collations) = grouping.keys.iter().cloned().unzip();
        Self {
            input,
            keys,
            width,
            table: GroupTable::told_apart_by(grouping.telling.clone(), collations),
            states,
            rows: Batch::default(),
            built: false,
            position: 0,
            delayed: Delayed::default(),
            grouping,
            held: Held::default(),
            unplaced: None,
            rest: None,
        }
    }

    fn build(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.table.clear();
        self.states.clear();
        let mut groups = cx.run.rows();
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, &mut self.rows)? {
            cx.run.check_interrupt()?;
            let keys = key_operands(&self.keys, &self.rows, self.rows.selection(), cx)?;
            let mut placed = None;
            if let Some(unplaced) = &mut self.unplaced {
                self.table.find(&keys, self.rows.selection(), &mut groups);
                placed = Some(unplaced.take(&self.grouping, &keys, &self.rows, &groups)?);
            } else {
                self.table
                    .insert(&keys, self.rows.selection(), &mut groups)?;
            }
            for key in keys {
                key.release(cx);
            }
            if let Some(mut placed) = placed {
                groups.retain(|group| *group != NONE);
                self.rows.select(&mut placed);
            }
            self.states.grow(self.table.len());
            self.states.step(&self.rows, &groups, cx)?;
            let bytes = self.table.memory() + self.states.memory();
            if !self.held.resize_half(&cx.run.memory, bytes) {
                self.held.force(&cx.run.memory, bytes);
                self.unplaced
                    .get_or_insert_with(|| Unplaced::new(&self.grouping, &cx.run.memory));
            }
        }
        cx.run.recycle_rows(groups);
        self.built = true;
        self.position = 0;
        Ok(())
    }

    /// The groups of the table have come out: those of the sorted rows follow.
    fn next_unplaced(
        &mut self,
        cx: &mut Context<'_, '_>,
        want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        if let Some(unplaced) = self.unplaced.take().filter(|u| u.width > 0) {
            self.table.clear();
            self.table.release();
            self.states.clear();
            self.held.release();
            // The sorted rows carry their keys behind the columns.
            let columns = unplaced.width - self.keys.len();
            let mut grouping = self.grouping.clone();
            for (i, (key, _)) in grouping.keys.iter_mut().enumerate() {
                *key = Expr::input(columns + i, Props::column(None, None));
            }
            let mut rest = SortedAggregate::new(Box::new(unplaced), grouping);
            rest.open(cx)?;
            self.rest = Some(rest);
        }
        match &mut self.rest {
            Some(rest) => rest.next(cx, want, out),
            None => Ok(false),
        }
    }
}

/// Rows sorted by the keys of their groups: all columns, then the keys.
struct Unplaced {
    sorter: Sorter,
    width: usize,
    key: Vec<u8>,
    payload: Vec<u8>,
}

impl Unplaced {
    fn new(grouping: &Grouping, memory: &Memory) -> Self {
        let telling = grouping.telling.iter();
        let keys = telling.filter_map(|at| grouping.keys.get(*at));
        Self {
            sorter: Sorter::new(memory, None).by(Order::of(keys.map(|(_, it)| *it))),
            width: 0,
            key: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Takes the rows of no group; gives the others.
    fn take(
        &mut self,
        grouping: &Grouping,
        keys: &[Operand<'_>],
        rows: &Batch,
        groups: &[u32],
    ) -> Result<Vec<u32>> {
        self.width = rows.columns.len() + keys.len();
        let mut kept = Vec::with_capacity(rows.len());
        for (i, group) in groups.iter().enumerate() {
            let Some(row) = rows.row_at(i) else { break };
            if *group != NONE {
                kept.push(row as u32);
                continue;
            }
            self.key.clear();
            for at in &grouping.telling {
                if let (Some(key), Some((_, collation))) = (keys.get(*at), grouping.keys.get(*at)) {
                    encode_key(&mut self.key, key.get(row), *collation);
                }
            }
            self.payload.clear();
            for column in &rows.columns {
                encode_cell(column.get(row), &mut self.payload);
            }
            for key in keys {
                encode_cell(key.get(row), &mut self.payload);
            }
            self.sorter.add(&self.key, &self.payload)?;
        }
        Ok(kept)
    }
}

impl Operator for Unplaced {
    fn attach(&mut self, _txn: &mut Txns) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.sorter.finish()
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        sorted_rows(&mut self.sorter, want, self.width, out)
    }

    fn detach(&mut self) {}
}

impl Operator for HashAggregate {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.built = false;
        self.unplaced = None;
        self.rest = None;
        self.delayed.clear();
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        if !self.built {
            self.build(cx)?;
        }
        if self.rest.is_some() || self.position >= self.table.len() {
            return self.next_unplaced(cx, want, out);
        }
        let start = self.position;
        let end = self.table.len().min(start + want.clamp(1, ROWS_MAX));
        let mut failure = None;
        while self.position < end {
            if let Err(error) =
                self.states
                    .finish(self.position, &mut out.columns, self.keys.len(), cx)
            {
                failure = Some(error);
                break;
            }
            self.position += 1;
        }
        let done = self.position - start;
        for (column, key) in out.columns.iter_mut().zip(self.table.keys()) {
            for group in start..self.position {
                column.push_from(key, group)?;
            }
        }
        for column in &mut out.columns {
            column.truncate(done);
        }
        out.set_rows(done);
        match failure {
            Some(error) => self.delayed.after(done, error),
            None => Ok(done > 0),
        }
    }

    fn detach(&mut self) {
        self.rows.let_go();
        self.unplaced = None;
        self.rest = None;
        self.table.clear();
        self.table.release();
        self.states.clear();
        self.held.release();
        self.input.detach();
    }
}
