//! Aggregates with ORDER BY among their arguments: the rows of a group are kept
//! with their sort keys and stepped in order when the group is finished.

use super::states::new_pairs;
use crate::bind::expr::AggregateCall;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::{Operand, Row, eval};
use crate::exec::hash::GroupTable;
use crate::exec::ops::sort::encode_term;
use crate::exec::rows::{decode_cell, encode_cell};
use crate::exec::sorter::Sorter;
use crate::func::Accumulator;

/// See the module.
#[derive(Default)]
pub struct OrderedCalls {
    groups: Vec<Option<Sorter>>,
}

impl OrderedCalls {
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
    pub fn collect(
        &mut self,
        call: &AggregateCall,
        args: &[Operand<'_>],
        rows: &Batch,
        selection: Selection<'_>,
        groups: &[u32],
        seen: &mut Option<GroupTable>,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let taken: Vec<(u32, u32)> = match seen {
            Some(seen) => new_pairs(seen, args, selection, groups)?,
            None => groups
                .iter()
                .enumerate()
                .map(|(i, g)| (selection.row(i).unwrap_or(0) as u32, *g))
                .collect(),
        };
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for (row, group) in taken {
            let (row, group) = (row as usize, group as usize);
            key.clear();
            for term in &call.order_by {
                encode_term(
                    &mut key,
                    eval(&term.expr, Row::Batch(rows, row), cx)?.as_ref(),
                    term,
                );
            }
            payload.clear();
            for arg in args {
                encode_cell(arg.get(row), &mut payload);
            }
            if self.groups.len() <= group {
                self.groups.resize_with(group + 1, || None);
            }
            if let Some(slot) = self.groups.get_mut(group) {
                slot.get_or_insert_with(|| Sorter::new(&cx.run.memory, None))
                    .add(&key, &payload)?;
            }
        }
        Ok(())
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
