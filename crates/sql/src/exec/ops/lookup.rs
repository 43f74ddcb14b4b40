//! Rowid lookup: rows with given rowids, or with those that any of several inputs finds.

use std::ops::Bound;
use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Seek};

use super::scan::detached;
use super::{BoxOperator, Operator};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Result;
use crate::exec::batch::{BYTES_MAX, Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::fetch::{Fetch, Narrow};
use crate::exec::memory::{Held, KEPT_BYTES};
use crate::exec::range::rowid_of;
use crate::exec::subquery::each_member;
use crate::exec::txns::Txns;
use crate::plan::physical::ScanColumn;
use crate::schema::Table;
use crate::value::ValueRef;

/// See the module.
pub struct RowidLookup {
    fetch: Fetch,
    narrow: Narrow,
    keys: Vec<Expr>,
    inputs: Vec<BoxOperator>,
    reverse: bool,
    cursor: Option<Cursor>,
    rowids: Vec<i64>,
    held: Held,
    position: usize,
}

impl RowidLookup {
    /// Of the rows whose rowids any of the inputs yields.
    pub fn of_any(table: &Arc<Table>, columns: &[ScanColumn], inputs: Vec<BoxOperator>) -> Self {
        Self {
            inputs,
            ..Self::new(table, columns, Vec::new(), false)
        }
    }

    /// Adds what the inputs yield.
    fn take_inputs(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let mut batch = cx.run.batch();
        for input in &mut self.inputs {
            input.open(cx)?;
            while input.next(cx, usize::MAX, &mut batch)? {
                cx.run.check_interrupt()?;
                let column = batch.columns.first().ok_or_else(detached)?;
                batch.selection().each(|row| {
                    if let ValueRef::Integer(rowid) = column.get(row) {
                        self.rowids.push(rowid);
                    }
                });
                self.held
                    .force(&cx.run.memory, size_of_val(&self.rowids[..]));
            }
        }
        cx.run.recycle_batch(batch);
        Ok(())
    }

    /// Of the rows named by `keys`.
    pub fn new(table: &Arc<Table>, columns: &[ScanColumn], keys: Vec<Expr>, reverse: bool) -> Self {
        Self {
            fetch: Fetch::new(table, columns),
            narrow: Narrow::default(),
            keys,
            inputs: Vec::new(),
            reverse,
            cursor: None,
            rowids: Vec::new(),
            held: Held::default(),
            position: 0,
        }
    }
}

impl Operator for RowidLookup {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        for input in &mut self.inputs {
            input.attach(txn)?;
        }
        self.cursor = Some(txn.cursor(&self.fetch.table().tree)?);
        Ok(())
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        self.rowids.clear();
        for key in &self.keys {
            if let ExprKind::Members {
                subquery,
                column,
                comparisons,
            } = &key.kind
            {
                let rowids = &mut self.rowids;
                let mut add = |value: ValueRef<'_>| rowids.extend(rowid_of(value));
                each_member(*subquery, *column, comparisons, cx, &mut add)?;
                self.held.force(&cx.run.memory, size_of_val(&rowids[..]));
            } else if let Some(rowid) = rowid_of(eval(key, Row::Empty, cx)?.as_ref()) {
                self.rowids.push(rowid);
            }
        }
        if !self.inputs.is_empty() {
            self.take_inputs(cx)?;
        }
        if self.rowids.len() > 1 {
            self.rowids.sort_unstable();
            self.rowids.dedup();
            if self.reverse {
                self.rowids.reverse();
            }
        }
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(self.fetch.width());
        let cursor = self.cursor.as_mut().ok_or_else(detached)?;
        let (mut rows, mut bytes) = (0, 0);
        while rows < want.clamp(1, ROWS_MAX) && bytes < BYTES_MAX {
            let Some(rowid) = self.rowids.get(self.position).copied() else {
                break;
            };
            self.position += 1;
            let alone = Bound::Included(Key::Int(rowid));
            cursor.narrow(alone, alone);
            if cursor.seek(Seek::AtLeast(Key::Int(rowid)))? && cursor.key_int() == rowid {
                let value = self.fetch.row(cursor, &mut self.narrow)?;
                bytes += value.row.len();
                self.fetch.push(rowid, value, &mut out.columns)?;
                rows += 1;
            }
        }
        out.set_rows(rows);
        Ok(rows > 0)
    }

    fn detach(&mut self) {
        self.narrow.let_go();
        self.cursor = None;
        self.inputs.iter_mut().for_each(|input| input.detach());
        if self.rowids.capacity() * size_of::<i64>() > KEPT_BYTES {
            self.rowids = Vec::new();
        }
        self.held.release();
    }
}
