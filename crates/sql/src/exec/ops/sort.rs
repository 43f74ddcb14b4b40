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
    /// The sorter of the run before, emptied, and memory for records.
    spent: Option<Sorter>,
    key: Vec<u8>,
    payload: Vec<u8>,
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
            spent: None,
            key: Vec::new(),
            payload: Vec::new(),
        }
    }

    fn build(&mut self, cx: &mut Context<'_, '_>) -> Result<Sorter> {
        let mut batch = cx.run.batch();
        let sorter = self.sorted(&mut batch, cx);
        batch.let_go();
        cx.run.recycle_batch(batch);
        sorter
    }

    /// All rows of the input, which come in batches.
    fn sorted(&mut self, batch: &mut Batch, cx: &mut Context<'_, '_>) -> Result<Sorter> {
        let limit = match &self.top {
            None => None,
            Some(clause) => {
                let (offset, limit) = bounds(clause, cx)?;
                usize::try_from(offset.saturating_add(limit))
                    .ok()
                    .filter(|l| *l < usize::MAX / 4)
            }
        };
        let mut sorter = match self.spent.take() {
            Some(spent) => spent.limited(limit),
            None => {
                let order = Order::of(self.keys.iter().map(|term| term.collation));
                Sorter::new(&cx.run.memory, limit).by(order)
            }
        };
        if limit == Some(0) {
            return Ok(sorter);
        }
        let (key, payload) = (&mut self.key, &mut self.payload);
        let mut top = limit.and_then(|_| Top::new(&self.keys));
        let mut kept = Vec::new();
        self.input.open(cx)?;
        while self.input.next(cx, usize::MAX, batch)? {
            cx.run.check_interrupt()?;
            let told = match &mut top {
                Some(top) => top.keep(&sorter, batch, &mut kept)?,
                None => false,
            };
            let rows = match told {
                true => Selection::Rows(&kept),
                false => batch.selection(),
            };
            rows.try_each(|row| {
                key.clear();
                for term in &self.keys {
                    let value = eval(&term.expr, Row::Batch(batch, row), cx)?;
                    encode_term(key, value.as_ref(), term);
                }
                payload.clear();
                for column in &batch.columns {
                    encode_cell(column.get(row), payload);
                }
                sorter.add(key, payload)
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
        self.spent = self.sorter.take().and_then(Sorter::emptied);
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
        self.spent = None;
        self.key = Vec::new();
        self.payload = Vec::new();
        self.input.detach();
    }
}
