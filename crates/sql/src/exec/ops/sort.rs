//! Sort: stable, external where the budget is short, top-N where a limit is
//! known.

use super::limit::bounds;
use super::top::Top;
use super::{BoxOperator, Operator};
use crate::bind::expr::SortKey;
use crate::error::Result;
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::rows::{encode_cell, sorted_rows};
use crate::exec::sorter::Sorter;
use crate::exec::txns::Txns;
use crate::key::{self, KeyColumn, Order};
use crate::plan::physical::LimitClause;
use crate::value::ValueRef;

/// See the module.
pub struct Sort {
    input: BoxOperator,
    keys: Vec<SortKey>,
    top: Option<LimitClause>,
    width: usize,
    sorter: Option<Sorter>,
}

impl Sort {
    /// Over `input` of `width` columns.
    pub fn new(
        input: BoxOperator,
        keys: Vec<SortKey>,
        top: Option<LimitClause>,
        width: usize,
    ) -> Self {
        Self {
            input,
            keys,
            top,
            width,
            sorter: None,
        }
    }

    fn build(&mut self, cx: &mut Context<'_, '_>) -> Result<Sorter> {
        let limit = match &self.top {
            None => None,
            Some(clause) => {
                let (offset, limit) = bounds(clause, cx)?;
                usize::try_from(offset.saturating_add(limit))
                    .ok()
                    .filter(|l| *l < usize::MAX / 4)
            }
        };
        let order = Order::of(self.keys.iter().map(|term| term.collation));
        let mut sorter = Sorter::new(&cx.run.memory, limit).by(order);
        if limit == Some(0) {
            return Ok(sorter);
        }
        let (mut batch, mut key, mut payload) = (Batch::default(), Vec::new(), Vec::new());
        let mut top = limit.and_then(|_| Top::new(&self.keys));
        let mut kept = Vec::new();
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            let told = match &mut top {
                Some(top) => top.keep(&sorter, &batch, &mut kept)?,
                None => false,
            };
            let rows = match told {
                true => Selection::Rows(&kept),
                false => batch.selection(),
            };
            rows.try_each(|row| {
                key.clear();
                for term in &self.keys {
                    let value = eval(&term.expr, Row::Batch(&batch, row), cx)?;
                    encode_term(&mut key, value.as_ref(), term);
                }
                payload.clear();
                for column in &batch.columns {
                    encode_cell(column.get(row), &mut payload);
                }
                sorter.add(&key, &payload)
            })?;
        }
        sorter.finish()?;
        Ok(sorter)
    }
}

/// Appends a term of an ordering to a sort key.
pub fn encode_term(out: &mut Vec<u8>, value: ValueRef<'_>, term: &SortKey) {
    // An encoded NULL is the smallest, complemented the largest; a byte in front
    // moves it to the other end.
    if term.nulls_first == term.descending {
        out.push(if value.is_null() == term.nulls_first {
            0
        } else {
            1
        });
    }
    let column = KeyColumn {
        collation: term.collation,
        descending: term.descending,
        real: false,
    };
    key::encode(out, value, column);
}

impl Operator for Sort {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.input.attach(txn)
    }

    fn open(&mut self, _cx: &mut Context<'_, '_>) -> Result<()> {
        self.sorter = None;
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        cx.run.check_interrupt()?;
        if self.sorter.is_none() {
            self.sorter = Some(self.build(cx)?);
        }
        match &mut self.sorter {
            Some(sorter) => sorted_rows(sorter, want, self.width, out),
            None => Ok(false),
        }
    }

    fn detach(&mut self) {
        self.sorter = None;
        self.input.detach();
    }
}
