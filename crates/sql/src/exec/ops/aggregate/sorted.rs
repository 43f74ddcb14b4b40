//! Sorted aggregation: equal keys are neighbours, so a group is finished when
//! the next one begins. Without keys there is one group, always.

use super::hashed::key_operands;
use super::states::States;
use crate::bind::expr::Expr;
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_FIRST, ROWS_MAX, Vector};
use crate::exec::context::Context;
use crate::exec::memory::Held;
use crate::exec::ops::{BoxOperator, Delayed, Operator};
use crate::exec::txns::Txns;
use crate::plan::physical::Grouping;
use crate::value::{Collation, Value, not_distinct};

/// See the module.
pub struct SortedAggregate {
    input: BoxOperator,
    keys: Vec<Expr>,
    collations: Vec<Collation>,
    width: usize,
    states: States,
    rows: Batch,
    groups: Vec<u32>,
    /// The keys of the groups at hand, a vector a key.
    current: Vec<Vector>,
    /// Groups at hand; the last one is unfinished.
    open: usize,
    /// The first group at hand that has not come out.
    position: usize,
    /// Rows to take next at most, where there are keys: few at first, since the first groups
    /// may be all that are wanted.
    most: usize,
    /// Rows taken and groups begun since it was opened.
    taken: usize,
    begun: usize,
    ended: bool,
    delayed: Delayed,
    held: Held,
}

impl SortedAggregate {
    /// Over `input`.
    pub fn new(input: BoxOperator, grouping: Grouping) -> Self {
        let states = States::new(&grouping);
        let width = grouping.keys.len() + grouping.aggregates.len() + grouping.bare.len();
        let (keys, collations): (Vec<_>, Vec<_>) = grouping.keys.into_iter().unzip();
        Self {
            input,
            current: vec![Vector::new(); keys.len()],
            keys,
            collations,
            width,
            states,
            rows: Batch::default(),
            groups: Vec::new(),
            open: 0,
            position: 0,
            most: ROWS_FIRST,
            taken: 0,
            begun: 0,
            ended: false,
            delayed: Delayed::default(),
            held: Held::default(),
        }
    }

    /// Rows to take next, for about `want` groups.
    fn rows_for(&mut self, want: usize) -> usize {
        if self.keys.is_empty() {
            return usize::MAX;
        }
        let most = self.most;
        self.most = (most * 4).min(ROWS_MAX);
        most.min(likely_rows(want, self.taken, self.begun))
    }

    /// Takes a batch, for about so many groups; false at the end of the input.
    fn take(&mut self, cx: &mut Context<'_, '_>, want: usize) -> Result<bool> {
        let most = self.rows_for(want);
        if !self.input.next(cx, most, &mut self.rows)? {
            return Ok(false);
        }
        cx.run.check_interrupt()?;
        self.taken = self.taken.saturating_add(self.rows.len());
        self.drop_finished()?;
        self.groups.clear();
        if self.keys.is_empty() {
            self.groups.resize(self.rows.len(), 0);
        } else {
            let keys = key_operands(&self.keys, &self.rows, self.rows.selection(), cx)?;
            self.rows.selection().try_each(|row| {
                let same = self.open > 0
                    && self.current.iter().zip(&keys).zip(&self.collations).all(
                        |((have, key), collation)| {
                            not_distinct(have.get(self.open - 1), key.get(row), *collation)
                        },
                    );
                if !same {
                    self.open += 1;
                    self.begun += 1;
                    for (have, key) in self.current.iter_mut().zip(&keys) {
                        have.push(key.get(row))?;
                    }
                }
                self.groups.push(self.open as u32 - 1);
                Ok(())
            })?;
        }
        self.states.grow(self.open);
        self.states.step(&self.rows, &self.groups, cx)?;
        // The groups at hand are needed whole; sets and orders spill themselves.
        self.held.force(&cx.run.memory, self.states.memory());
        Ok(true)
    }

    /// Forgets groups that came out.
    fn drop_finished(&mut self) -> Result<()> {
        if self.position == 0 {
            return Ok(());
        }
        self.states.keep_from(self.position);
        for column in &mut self.current {
            let kept: Vec<Value> = (self.position..self.open)
                .map(|g| column.get(g).to_value())
                .collect();
            column.clear();
            kept.iter().try_for_each(|v| column.push(v.as_ref()))?;
        }
        self.open -= self.position;
        self.position = 0;
        Ok(())
    }

    fn emit(&mut self, end: usize, cx: &mut Context<'_, '_>, out: &mut Batch) -> Result<bool> {
        let start = self.position;
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
        for (column, key) in out.columns.iter_mut().zip(&self.current) {
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
}

/// Rows in which `want` more groups are likely to end, where those before, that were begun,
/// had so many taken.
///
/// At least a quarter of what was taken, so that who asks for few groups at a time until the
/// end has no more batches for it than a few for each time that the rows double.
fn likely_rows(want: usize, taken: usize, begun: usize) -> usize {
    if begun < 2 {
        return usize::MAX;
    }
    // And one that begins the next group.
    let likely = want.saturating_mul(taken.div_ceil(begun)).saturating_add(1);
    likely.max(taken / 4).max(ROWS_FIRST)
}

impl Operator for SortedAggregate {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.states.clear();
        self.current.iter_mut().for_each(Vector::clear);
        self.open = 0;
        self.position = 0;
        self.most = ROWS_FIRST;
        self.taken = 0;
        self.begun = 0;
        self.ended = false;
        if self.keys.is_empty() {
            self.open = 1;
            self.states.grow(1);
        }
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        while !self.ended {
            if !self.take(cx, want)? {
                self.ended = true;
                break;
            }
            if !self.keys.is_empty() && self.open > self.position + 1 {
                return self.emit(self.open - 1, cx, out);
            }
        }
        self.emit(self.open, cx, out)
    }

    fn detach(&mut self) {
        self.rows.let_go();
        self.states.clear();
        self.held.release();
        self.input.detach();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 rows were taken and then 256 for ten groups of eight.
    #[test]
    fn few_groups_take_few_rows() {
        assert_eq!(likely_rows(9, 16, 2), 73);
        assert_eq!(likely_rows(1, 16, 16), ROWS_FIRST);
        // The first group may be of any length.
        assert_eq!(likely_rows(10, 0, 0), usize::MAX);
        assert_eq!(likely_rows(10, 80, 1), usize::MAX);
        // One at a time until the end.
        assert_eq!(likely_rows(1, 4000, 2000), 1000);
        assert_eq!(likely_rows(usize::MAX, 16, 2), usize::MAX);
    }
}
