//! Hash aggregation: groups in order of first appearance.

use fulgurite_store::Txn;

use super::states::States;
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX, Selection};
use crate::exec::context::Context;
use crate::exec::expr::batch::eval_rows;
use crate::exec::expr::{Operand, operand};
use crate::exec::hash::GroupTable;
use crate::exec::ops::{BoxOperator, Delayed, Operator};
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
        let (keys, collations): (Vec<_>, Vec<_>) = grouping.keys.into_iter().unzip();
        Self {
            input,
            keys,
            width,
            table: GroupTable::told_apart_by(grouping.telling, collations),
            states,
            rows: Batch::default(),
            built: false,
            position: 0,
            delayed: Delayed::default(),
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
            self.table
                .insert(&keys, self.rows.selection(), &mut groups)?;
            for key in keys {
                key.release(cx);
            }
            self.states.grow(self.table.len());
            self.states.step(&self.rows, &groups, cx)?;
        }
        cx.run.recycle_rows(groups);
        self.built = true;
        self.position = 0;
        Ok(())
    }
}

impl Operator for HashAggregate {
    fn attach(&mut self, txn: &mut Txn) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.built = false;
        self.delayed.clear();
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        if !self.built {
            self.build(cx)?;
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
        self.table.clear();
        self.states.clear();
        self.input.detach();
    }
}
