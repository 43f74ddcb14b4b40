//! Subqueries that expressions call.
//!
//! A subquery that is the same for equal bindings keeps its answer until they
//! change; one without bindings runs once. While it runs, its state is taken out
//! of the run, so that its own expressions may call other subqueries.

use crate::bind::expr::{Comparison, Expr, Register, SubqueryId};
use crate::error::{Error, Result};
use crate::exec::batch::{Batch, Selection};
use crate::exec::context::Context;
use crate::exec::expr::{Datum, Operand, Row, eval};
use crate::exec::members::Members;
use crate::exec::ops::{BoxOperator, build};
use crate::exec::rows::RowStore;
use crate::exec::txns::Txns;
use crate::plan::physical::Subquery;
use crate::value::{Value, ValueRef};

enum Answer {
    /// The first row, which is in [`SubqueryRun::row`].
    Row,
    Exists(bool),
    Members(Box<Members>),
    Rows(RowStore),
}

/// A subquery of a running statement.
pub struct SubqueryRun {
    operator: BoxOperator,
    width: usize,
    bindings: Vec<(Register, Expr)>,
    cacheable: bool,
    pass: usize,
    answer: Option<Answer>,
    /// The first row; empty if there was none.
    row: Vec<Value>,
    /// The bindings that `answer` holds for.
    answered: Vec<Value>,
}

impl SubqueryRun {
    /// From the plan.
    pub fn new(subquery: &Subquery) -> Self {
        Self {
            operator: build(&subquery.root),
            width: subquery.root.width,
            bindings: subquery.bindings.clone(),
            cacheable: subquery.cacheable,
            pass: subquery.pass,
            answer: None,
            row: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Takes the cursors of a run.
    pub fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.answer = None;
        self.operator.attach(txn)
    }

    /// Drops what the run held.
    pub fn detach(&mut self) {
        self.answer = None;
        self.operator.detach();
    }

    /// Stores the bindings; true: the kept answer still holds.
    fn bind(&mut self, row: Row<'_>, cx: &mut Context<'_, '_>) -> Result<bool> {
        let mut same = self.answer.is_some() && self.cacheable;
        self.answered.resize(self.bindings.len(), Value::Null);
        for ((register, expr), before) in self.bindings.iter().zip(&mut self.answered) {
            let value = eval(expr, row, cx)?;
            if !identical(before.as_ref(), value.as_ref()) {
                same = false;
                before.assign(value.as_ref());
            }
            cx.run.set_register(*register, value.as_ref());
        }
        Ok(same)
    }

    /// Runs up to the first row, which `take` gets; whether there is one.
    fn first(
        &mut self,
        cx: &mut Context<'_, '_>,
        take: impl FnOnce(&mut Self, &Batch, usize),
    ) -> Result<bool> {
        let mut batch = cx.run.batch();
        cx.run.begin_pass(self.pass);
        self.operator.open(cx)?;
        let found = self.operator.next(cx, 1, &mut batch)?;
        let first = batch.row_at(0).filter(|_| found);
        if let Some(row) = first {
            take(self, &batch, row);
        }
        cx.run.recycle_batch(batch);
        Ok(first.is_some())
    }

    /// Has the first row in `row`.
    fn fetch_row(&mut self, kept: bool, cx: &mut Context<'_, '_>) -> Result<()> {
        if kept && matches!(self.answer, Some(Answer::Row)) {
            return Ok(());
        }
        let found = self.first(cx, |this, batch, row| {
            this.row.resize(batch.columns.len(), Value::Null);
            for (value, column) in this.row.iter_mut().zip(&batch.columns) {
                value.assign(column.get(row));
            }
        })?;
        if !found {
            self.row.clear();
        }
        self.answer = Some(Answer::Row);
        if self.cacheable && self.bindings.is_empty() {
            // It is not run again, and pages that its cursors look at are copied before they
            // are written.
            self.operator.detach();
        }
        Ok(())
    }

    /// Has all rows in `answer`, in their order.
    fn keep_rows(&mut self, kept: bool, cx: &mut Context<'_, '_>) -> Result<()> {
        if kept && matches!(self.answer, Some(Answer::Rows(_))) {
            return Ok(());
        }
        let mut rows = RowStore::new(self.width, &cx.run.memory);
        let mut batch = Batch::default();
        cx.run.begin_pass(self.pass);
        self.operator.open(cx)?;
        while self.operator.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            rows.append(&batch)?;
        }
        self.answer = Some(Answer::Rows(rows));
        self.operator.detach();
        Ok(())
    }

    /// Has all values in `answer`.
    fn gather(
        &mut self,
        kept: bool,
        comparisons: &[Comparison],
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        if kept && matches!(self.answer, Some(Answer::Members(_))) {
            return Ok(());
        }
        let (mut members, mut batch) = (Members::new(comparisons), Batch::default());
        cx.run.begin_pass(self.pass);
        self.operator.open(cx)?;
        while self.operator.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            members.add(&batch, comparisons, &cx.run.memory)?;
        }
        self.answer = Some(Answer::Members(Box::new(members)));
        Ok(())
    }
}

/// The next rows of a subquery that nothing is handed in to, from `position` on; false at the
/// end. They are kept from the first call on.
pub fn read(
    id: SubqueryId,
    position: &mut u64,
    want: usize,
    out: &mut Batch,
    cx: &mut Context<'_, '_>,
) -> Result<bool> {
    with(id, Row::Empty, cx, |subquery, kept, cx| {
        subquery.keep_rows(kept, cx)?;
        match &mut subquery.answer {
            Some(Answer::Rows(rows)) => rows.read(position, want, out),
            _ => Ok(false),
        }
    })
}

/// Equal in type and bits: what a subquery cannot tell apart.
fn identical(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Real(x), ValueRef::Real(y)) => x.to_bits() == y.to_bits(),
        _ => a == b,
    }
}

fn with<T>(
    id: SubqueryId,
    row: Row<'_>,
    cx: &mut Context<'_, '_>,
    f: impl FnOnce(&mut SubqueryRun, bool, &mut Context<'_, '_>) -> Result<T>,
) -> Result<T> {
    let slot = cx.run.subqueries.get_mut(id).and_then(Option::take);
    let mut subquery =
        slot.ok_or_else(|| Error::misuse("a subquery was called outside its statement"))?;
    // It may call others, as deep as queries are within each other.
    let outcome = crate::stack::grow(|| {
        let kept = subquery.bind(row, cx)?;
        f(&mut subquery, kept, cx)
    });
    if outcome.is_err() {
        subquery.answer = None;
    }
    if let Some(slot) = cx.run.subqueries.get_mut(id) {
        *slot = Some(subquery);
    }
    outcome
}

/// A column of the first row; NULL without a row.
pub fn scalar(
    id: SubqueryId,
    column: usize,
    row: Row<'_>,
    cx: &mut Context<'_, '_>,
) -> Result<Value> {
    with(id, row, cx, |subquery, kept, cx| {
        subquery.fetch_row(kept, cx)?;
        Ok(subquery.row.get(column).cloned().unwrap_or_default())
    })
}

/// Puts the first row into registers; NULLs without a row.
pub fn store_row(
    id: SubqueryId,
    registers: &[Register],
    row: Row<'_>,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    with(id, row, cx, |subquery, kept, cx| {
        subquery.fetch_row(kept, cx)?;
        for (i, register) in registers.iter().enumerate() {
            let value = subquery.row.get(i).map_or(ValueRef::Null, Value::as_ref);
            cx.run.set_register(*register, value);
        }
        Ok(())
    })
}

/// Is there a row?
pub fn exists(id: SubqueryId, row: Row<'_>, cx: &mut Context<'_, '_>) -> Result<bool> {
    with(id, row, cx, |subquery, kept, cx| {
        if kept && let Some(Answer::Exists(found)) = &subquery.answer {
            return Ok(*found);
        }
        let found = subquery.first(cx, |_, _, _| {})?;
        subquery.answer = Some(Answer::Exists(found));
        Ok(found)
    })
}

/// Is the row of `exprs` among the subquery's rows? None is NULL.
pub fn contains<'a, 'p: 'a>(
    id: SubqueryId,
    exprs: &'a [Expr],
    comparisons: &[Comparison],
    row: Row<'a>,
    cx: &mut Context<'p, '_>,
) -> Result<Option<bool>> {
    let values = exprs
        .iter()
        .map(|e| eval(e, row, cx))
        .collect::<Result<Vec<Datum<'a>>>>()?;
    with(id, row, cx, |subquery, kept, cx| {
        subquery.gather(kept, comparisons, cx)?;
        match &mut subquery.answer {
            Some(Answer::Members(members)) => Ok(members.contains(&values, comparisons)),
            _ => Ok(None),
        }
    })
}

/// Whether nothing is handed in to a subquery, so that it is the same for all rows.
pub fn is_shared(id: SubqueryId, cx: &Context<'_, '_>) -> bool {
    let subquery = cx.run.subqueries.get(id).and_then(Option::as_ref);
    subquery.is_some_and(|subquery| subquery.cacheable && subquery.bindings.is_empty())
}

/// Appends to `out` the selected rows of which `x` is among the rows of a shared subquery,
/// or, `negated`, is not.
pub fn select(
    id: SubqueryId,
    x: &Operand<'_>,
    (how, negated): (Comparison, bool),
    selection: Selection<'_>,
    cx: &mut Context<'_, '_>,
    out: &mut Vec<u32>,
) -> Result<()> {
    with(id, Row::Empty, cx, |subquery, kept, cx| {
        subquery.gather(kept, &[how], cx)?;
        match &mut subquery.answer {
            Some(Answer::Members(members)) => members.select(x, (how, negated), selection, out),
            _ => Ok(()),
        }
    })
}

/// Calls `f` with the values of a column of each row that a subquery yields, as the
/// comparisons see them; rows with NULLs are left out. If it is the only column each value
/// comes once.
pub fn each_member(
    id: SubqueryId,
    column: usize,
    comparisons: &[Comparison],
    cx: &mut Context<'_, '_>,
    f: &mut dyn FnMut(ValueRef<'_>),
) -> Result<()> {
    with(id, Row::Empty, cx, |subquery, kept, cx| {
        subquery.gather(kept, comparisons, cx)?;
        if let Some(Answer::Members(members)) = &subquery.answer {
            members.each(column, f);
        }
        Ok(())
    })
}
