//! Aggregates with ORDER BY among their arguments: the rows of a group are kept
//! with their sort keys and stepped in order when the group is finished.

use super::distinct::Distinct;
use crate::bind::expr::AggregateCall;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::{Operand, Row, eval};
use crate::exec::ops::sort::encode_term;
use crate::exec::rows::{decode_cell, encode_cell};
use crate::exec::sorter::Sorter;
use crate::func::Accumulator;
use crate::key::Order;

/// See the module.
pub struct OrderedCalls {
    groups: Vec<Option<Sorter>>,
    order: Order,
}

impl OrderedCalls {
    /// Of a call, without rows.
    pub fn new(call: &AggregateCall) -> Self {
        Self {
            groups: Vec::new(),
            order: Order::of(call.order_by.iter().map(|term| term.collation)),
        }
    }

    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.groups.clear();
    }

    /// Drops the groups before `first`.
    pub fn keep_from(&mut self, first: usize) {
        self.groups.drain(..first.min(self.groups.len()));
    }

    /// Keeps the rows' arguments.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one step, taken apart for borrowing"
    )]
    pub fn collect<'p, 'r>(
        &mut self,
        call: &AggregateCall,
        args: &[Operand<'_>],
        rows: &Batch,
        selection: Selection<'_>,
        groups: &[u32],
        distinct: &mut Option<Distinct>,
        cx: &mut Context<'p, 'r>,
    ) -> Result<()> {
        let taken: Vec<(u32, u32)> = match distinct {
            Some(distinct) => {
                let mut place = |row: usize, key: &mut Vec<u8>, cx: &mut Context<'p, 'r>| {
                    encode_place(call, rows, row, key, cx)
                };
                distinct.fresh(args, selection, groups, &mut place, cx)?
            }
            None => groups
                .iter()
                .enumerate()
                .map(|(i, g)| (selection.row(i).unwrap_or(0) as u32, *g))
                .collect(),
        };
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for (row, group) in taken {
            key.clear();
            encode_place(call, rows, row as usize, &mut key, cx)?;
            payload.clear();
            for arg in args {
                encode_cell(arg.get(row as usize), &mut payload);
            }
            self.add(group as usize, &key, &payload, cx)?;
        }
        Ok(())
    }

    /// Keeps a row's arguments under its place in the order.
    pub fn add(
        &mut self,
        group: usize,
        key: &[u8],
        arguments: &[u8],
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        match self.groups.get_mut(group) {
            Some(slot) => slot
                .get_or_insert_with(|| Sorter::new(&cx.run.memory, None).by(self.order.clone()))
                .add(key, arguments),
            None => Ok(()),
        }
    }

    /// Steps a group's rows in order.
    pub fn replay(
        &mut self,
        group: usize,
        call: &AggregateCall,
        accumulator: &mut Accumulator,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let Some(mut sorter) = self.groups.get_mut(group).and_then(Option::take) else {
            return Ok(());
        };
        cx.run.check_interrupt()?;
        sorter.finish()?;
        while let Some((_, mut payload)) = sorter.next_record()? {
            let mut values = Vec::with_capacity(call.args.len());
            for _ in &call.args {
                values.push(decode_cell(&mut payload)?);
            }
            accumulator.step(&values, call.collation)?;
        }
        Ok(())
    }
}

/// A row's place in the order of the call.
fn encode_place(
    call: &AggregateCall,
    rows: &Batch,
    row: usize,
    key: &mut Vec<u8>,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    for term in &call.order_by {
        let value = eval(&term.expr, Row::Batch(rows, row), cx)?;
        encode_term(key, value.as_ref(), term);
    }
    Ok(())
}
