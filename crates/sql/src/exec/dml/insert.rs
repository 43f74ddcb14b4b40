//! INSERT.

use super::Written;
use super::sink::{Conflict, Outcome, Sink};
use super::upsert::{self, Upserted};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Error;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::{Row, eval};
use crate::exec::ops::Operator;
use crate::exec::range::rowid_of;
use crate::plan::physical::{Insert, Op};
use crate::row::RowWriter;
use crate::value::{Value, ValueRef};

/// An INSERT of one row of VALUES, with the source's expressions in place: the
/// point path.
pub struct PointInsert {
    rowid: Option<Expr>,
    values: Vec<Expr>,
    /// All of them are parameters or literals.
    plain: bool,
}

impl PointInsert {
    /// If the plan is one.
    pub fn new(plan: &Insert) -> Option<Self> {
        let Op::Values(rows) = &plan.source.op else {
            return None;
        };
        let [row] = rows.as_slice() else { return None };
        // What runs once a row must not run twice.
        let uses = |column: usize| {
            plan.values
                .iter()
                .chain(&plan.rowid)
                .filter(|e| matches!(e.kind, ExprKind::Input(c) if c == column))
                .count()
        };
        if row
            .iter()
            .enumerate()
            .any(|(i, e)| !e.props.deterministic && uses(i) != 1)
        {
            return None;
        }
        let inline = |e: &Expr| match &e.kind {
            ExprKind::Input(column) => row.get(*column).cloned(),
            _ if e.props.constant => Some(e.clone()),
            _ => None,
        };
        let values = plan.values.iter().map(inline).collect::<Option<Vec<_>>>()?;
        let rowid = match &plan.rowid {
            Some(e) => Some(inline(e)?),
            None => None,
        };
        let plain = values
            .iter()
            .chain(&rowid)
            .all(|e| matches!(e.kind, ExprKind::Parameter(_) | ExprKind::Literal(_)));
        Some(Self {
            rowid,
            values,
            plain,
        })
    }

    /// Inserts the row.
    pub fn run(
        &self,
        plan: &Insert,
        sink: &mut Sink<'_>,
        cx: &mut Context<'_, '_>,
        effects: &mut Effects,
    ) -> Written<()> {
        if self.insert_as_given(plan, sink, cx, effects)? {
            return Ok(());
        }
        insert_row(
            plan,
            self.rowid.as_ref(),
            &self.values,
            Row::Empty,
            sink,
            cx,
            effects,
        )
    }

    /// The row straight from parameters and literals into the record, where the
    /// columns take every value as it is and nothing else wants to see the row.
    /// False: not so, or something is in the way; nothing was written then.
    fn insert_as_given(
        &self,
        plan: &Insert,
        sink: &mut Sink<'_>,
        cx: &mut Context<'_, '_>,
        effects: &mut Effects,
    ) -> Written<bool> {
        if !self.plain
            || plan.returning.is_some()
            || !sink.target.checks.is_empty()
            || !sink.target.indexes.is_empty()
        {
            return Ok(false);
        }
        let table = sink.table();
        let alias = table.rowid_alias.unwrap_or(usize::MAX);
        for (i, (column, expr)) in table.columns.iter().zip(&self.values).enumerate() {
            let value = given(expr, cx.parameters);
            let fits =
                column.affinity.keeps(value) && !(column.not_null.is_some() && value.is_null());
            if i != alias && !fits {
                return Ok(false);
            }
        }
        let rowid = match self
            .rowid
            .as_ref()
            .map_or(ValueRef::Null, |e| given(e, cx.parameters))
        {
            ValueRef::Integer(rowid) => Some(rowid),
            ValueRef::Null => None,
            _ => return Ok(false),
        };
        let fresh = rowid.is_none();
        let rowid = match rowid {
            Some(rowid) => rowid,
            None => sink.allocate_rowid()?,
        };
        let parameters = cx.parameters;
        let values = self.values.iter().enumerate();
        let values = values.map(|(i, e)| {
            if i == alias {
                ValueRef::Null
            } else {
                given(e, parameters)
            }
        });
        sink.note_given(rowid)?;
        sink.buffers.record.clear();
        RowWriter::encode(&mut sink.buffers.record, values)?;
        if sink.insert_row(rowid, fresh)?.is_some() {
            return Ok(false);
        }
        effects.inserted(rowid);
        Ok(true)
    }
}

/// The value of a parameter or literal.
#[inline]
fn given<'a>(expr: &'a Expr, parameters: &'a [Value]) -> ValueRef<'a> {
    match &expr.kind {
        ExprKind::Parameter(i) => parameters.get(*i).map_or(ValueRef::Null, Value::as_ref),
        ExprKind::Literal(value) => value.as_ref(),
        _ => ValueRef::Null,
    }
}

/// Inserts the rows of `source`, which is open.
pub fn insert(
    plan: &Insert,
    source: &mut dyn Operator,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    let mut batch = Batch::default();
    while source.next(cx, usize::MAX, &mut batch)? {
        cx.run.check_interrupt()?;
        for i in 0..batch.len() {
            let row = Row::Batch(&batch, batch.row_at(i).unwrap_or(0));
            insert_row(
                plan,
                plan.rowid.as_ref(),
                &plan.values,
                row,
                sink,
                cx,
                effects,
            )?;
        }
    }
    Ok(())
}

fn insert_row(
    plan: &Insert,
    rowid: Option<&Expr>,
    values: &[Expr],
    row: Row<'_>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<()> {
    sink.start_row();
    let given = given_rowid(rowid, row, cx)?;
    for (column, expr) in values.iter().enumerate() {
        if sink.table().rowid_alias != Some(column) {
            let value = eval(expr, row, cx)?;
            sink.set_column(column, value.as_ref());
        }
    }
    let rowid = match given {
        Some(rowid) => rowid,
        None => sink.allocate_rowid()?,
    };
    sink.note_given(rowid)?;
    sink.set_rowid(rowid);
    if sink.check_row(cx)? == Outcome::Skipped {
        return Ok(());
    }
    sink.encode()?;
    if !sink.target.indexes.is_empty() {
        sink.make_entries(cx)?;
    }
    // Each conflict either ends the row or removes what was in the way.
    while let Some(conflict) = sink.insert_row(rowid, given.is_none())? {
        if !plan.upserts.is_empty() {
            match upsert::resolve(plan, conflict, sink, cx, effects)? {
                Upserted::Done => return Ok(()),
                Upserted::NotMine => {}
            }
        }
        if !resolve(conflict, sink, cx)? {
            return Ok(());
        }
    }
    effects.inserted(rowid);
    if let Some(returning) = &plan.returning {
        effects.returned(returning, Row::Values(&sink.buffers.row), cx)?;
    }
    Ok(())
}

/// False: the row is left out.
fn resolve(conflict: Conflict, sink: &mut Sink<'_>, cx: &mut Context<'_, '_>) -> Written<bool> {
    Ok(sink.resolve(conflict, cx)? == Outcome::Written)
}

/// The rowid that the statement asks for; None: any.
fn given_rowid(
    expr: Option<&Expr>,
    row: Row<'_>,
    cx: &mut Context<'_, '_>,
) -> Written<Option<i64>> {
    let Some(expr) = expr else { return Ok(None) };
    let value = eval(expr, row, cx)?;
    if value.as_ref().is_null() {
        return Ok(None);
    }
    match rowid_of(value.as_ref()) {
        Some(rowid) => Ok(Some(rowid)),
        None => Err(Error::mismatch().into()),
    }
}
