//! INSERT, UPDATE and DELETE of a view: each row is handed to the triggers that stand in.

use super::sink::Outcome;
use super::statement::{Statement, attach, detach};
use super::triggers::Shown;
use super::{Counters, Triggers, Written};
use crate::error::Error;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::kind::Kind;
use crate::exec::txns::Txns;
use crate::plan::physical::ViewChange;
use crate::value::Value;

impl Statement<'_> {
    pub(super) fn change_view(
        mut self,
        change: &ViewChange,
        txn: &mut Txns,
        counters: &mut Counters,
        triggers: Option<Triggers<'_>>,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        let Some(mut triggers) = triggers else {
            return Err(Error::misuse("a view is written without triggers").into());
        };
        triggers.set_counters(*counters);
        attach(self.kind, txn, cx)?;
        let outcome = self.change_rows(change, txn, &mut triggers, cx);
        detach(self.kind, cx);
        *counters = triggers.counters();
        outcome
    }

    fn change_rows(
        &mut self,
        change: &ViewChange,
        txn: &mut Txns,
        triggers: &mut Triggers<'_>,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        let Kind::Write(source) = &mut *self.kind else {
            return Ok(());
        };
        source.open(cx)?;
        let (mut batch, mut values) = (Batch::default(), Vec::new());
        while source.next(cx, usize::MAX, &mut batch)? {
            for i in 0..batch.len() {
                cx.run.check_interrupt()?;
                let row = Row::Batch(&batch, batch.row_at(i).unwrap_or(0));
                values.resize(change.rows.len(), Value::Null);
                for (slot, expr) in values.iter_mut().zip(&change.rows) {
                    slot.assign(eval(expr, row, cx)?.as_ref());
                }
                let (old, new) = values.split_at(values.len() / 2);
                let rows = Shown {
                    old: Some(old),
                    new: Some(new),
                };
                if triggers.run(&change.fires, rows, txn, cx)? == Outcome::Skipped {
                    continue;
                }
                if let Some(returning) = &change.returning {
                    self.effects.returned(returning, Row::Values(&values), cx)?;
                }
            }
        }
        Ok(())
    }
}
