//! INSERT.

use super::Written;
use super::batch;
use super::sink::{Conflict, Outcome, Sink};
use super::triggers::Event;
use super::upsert::{self, Upserted};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::Error;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::effects::Effects;
use crate::exec::expr::{Row, eval};
use crate::exec::ops::Operator;
use crate::exec::range::rowid_of;
use crate::func::hooks::Change;
use crate::plan::physical::{Insert, Op};
use crate::row::RowWriter;
use crate::schema::StrictType;
use crate::value::{Affinity, Value, ValueRef};

/// An INSERT of one row of VALUES, with the source's expressions in place: the
/// point path.
pub struct PointInsert {
    rowid: Option<Expr>,
    values: Vec<Expr>,
    as_given: Option<AsGiven>,
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
        let as_given = AsGiven::new(plan, rowid.as_ref(), &values);
        Some(Self {
            rowid,
            values,
            as_given,
        })
    }

    /// Inserts the row.
    #[inline]
    pub fn run(
        &self,
        plan: &Insert,
        sink: &mut Sink<'_>,
        cx: &mut Context<'_, '_>,
        effects: &mut Effects,
    ) -> Written<()> {
        if let Some(as_given) = &self.as_given
            && sink.foreign.is_none()
            && sink.target.triggers.is_none()
            && let Some(rowid) = as_given.insert(sink, cx.parameters)?
        {
            sink.tell(Change::Insert, rowid, cx)?;
            effects.inserted(1, rowid);
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
}

/// A row that goes straight from parameters and literals into the record, where
/// the columns take every value as it is and nothing else wants to see the row.
struct AsGiven {
    rowid: Source,
    columns: Vec<Column>,
}

/// A column of such a row, and what it takes.
struct Column {
    source: Source,
    affinity: Affinity,
    not_null: bool,
    strict: Option<StrictType>,
}

enum Source {
    Parameter(usize),
    Literal(Value),
    /// Nothing is stored, or asked for: the key stands for it.
    None,
}

impl AsGiven {
    fn new(plan: &Insert, rowid: Option<&Expr>, values: &[Expr]) -> Option<Self> {
        let target = &plan.target;
        if plan.returning.is_some()
            || !target.checks.is_empty()
            || !target.indexes.is_empty()
            || !target.generated.is_empty()
        {
            return None;
        }
        let alias = target.table.rowid_alias;
        let columns = target.table.columns.iter().zip(values).enumerate();
        let columns = columns.map(|(i, (column, value))| {
            let is_key = alias == Some(i);
            Some(Column {
                source: Source::of((!is_key).then_some(value))?,
                affinity: column.affinity,
                not_null: !is_key && column.not_null.is_some(),
                strict: column.strict,
            })
        });
        Some(Self {
            rowid: Source::of(rowid)?,
            columns: columns.collect::<Option<_>>()?,
        })
    }

    /// Inserts the row and answers with its rowid; None, with nothing written, if
    /// a value is not for its column as it is, or something is in the way.
    #[inline]
    fn insert(&self, sink: &mut Sink<'_>, parameters: &[Value]) -> Written<Option<i64>> {
        sink.buffers.record.clear();
        let mut fits = true;
        let values = self.columns.iter().map(|column| {
            let value = column.source.value(parameters);
            fits &= column.affinity.keeps(value)
                && !(column.not_null && value.is_null())
                && column.strict.is_none_or(|strict| strict.takes(value));
            value
        });
        let encoded = RowWriter::encode(&mut sink.buffers.record, values);
        let given = match self.rowid.value(parameters) {
            ValueRef::Integer(rowid) => Some(rowid),
            ValueRef::Null => None,
            _ => return Ok(None),
        };
        if !fits {
            return Ok(None);
        }
        encoded?;
        let rowid = match given {
            Some(rowid) => rowid,
            None => sink.allocate_rowid()?,
        };
        sink.note_given(rowid)?;
        let in_the_way = sink.insert_row(rowid, given.is_none())?;
        Ok(in_the_way.is_none().then_some(rowid))
    }
}

impl Source {
    /// What an expression is; None if it is more than a parameter or literal.
    fn of(expr: Option<&Expr>) -> Option<Self> {
        match expr.map(|e| &e.kind) {
            None => Some(Source::None),
            Some(ExprKind::Parameter(i)) => Some(Source::Parameter(*i)),
            Some(ExprKind::Literal(value)) => Some(Source::Literal(value.clone())),
            Some(_) => None,
        }
    }

    #[inline]
    fn value<'a>(&'a self, parameters: &'a [Value]) -> ValueRef<'a> {
        match self {
            Source::Parameter(i) => parameters.get(*i).map_or(ValueRef::Null, Value::as_ref),
            Source::Literal(value) => value.as_ref(),
            Source::None => ValueRef::Null,
        }
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
        sink.expect(batch.len(), false, &cx.run.memory)?;
        let done = batch::insert(plan, &batch, sink, cx, effects)?;
        for i in done..batch.len() {
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
    let fires = sink.insert_fires();
    if let Some(fires) = fires.filter(|fires| !fires.before.is_empty()) {
        // The rowid is not known yet.
        sink.set_rowid(given.unwrap_or(-1));
        sink.generate(cx)?;
        if sink.target.table.strict {
            sink.check_types()?;
        }
        if sink.fire(&fires.before, Event::Insert, cx)? == Outcome::Skipped {
            return Ok(());
        }
    }
    let rowid = match given {
        Some(rowid) => rowid,
        None => sink.allocate_rowid()?,
    };
    sink.note_given(rowid)?;
    sink.set_rowid(rowid);
    sink.generate(cx)?;
    if sink.check_row(cx)? == Outcome::Skipped {
        return Ok(());
    }
    sink.encode()?;
    if !sink.target.indexes.is_empty() {
        sink.make_entries(cx)?;
    }
    if put_row(plan, given, sink, cx, effects)? == Outcome::Skipped {
        return Ok(());
    }
    let rowid = sink.rowid();
    if sink.foreign.is_some() {
        sink.check_inserted(rowid, cx)?;
    }
    sink.tell(Change::Insert, rowid, cx)?;
    let shows_rowid = !sink.table().without_rowid;
    match shows_rowid {
        true => effects.inserted(1, rowid),
        false => effects.changed(1),
    }
    if let Some(returning) = &plan.returning {
        sink.torn = true;
        effects.returned(returning, Row::Values(&sink.buffers.row), cx)?;
        sink.torn = false;
    }
    if let Some(fires) = fires {
        if shows_rowid {
            cx.run.functions.last_insert_rowid = rowid;
        }
        sink.replaced = false;
        sink.fire(&fires.after, Event::Insert, cx)?;
    }
    Ok(())
}

/// Puts the row being written into its place, with what is in the way resolved. `given`: the
/// rowid that the statement asks for.
#[inline(always)]
fn put_row(
    plan: &Insert,
    given: Option<i64>,
    sink: &mut Sink<'_>,
    cx: &mut Context<'_, '_>,
    effects: &mut Effects,
) -> Written<Outcome> {
    let mut fresh = given.is_none();
    // Each conflict either ends the row or removes what was in the way.
    while let Some(conflict) = sink.insert_row(sink.rowid(), fresh)? {
        let conflict = sink.next_to_resolve(conflict, None, true)?;
        if conflict == Conflict::Rowid && given.is_none() {
            return Err(sink.number_taken());
        }
        if !plan.upserts.is_empty() {
            match upsert::resolve(plan, conflict, sink, cx, effects)? {
                Upserted::Done => return Ok(Outcome::Skipped),
                Upserted::NotMine => {}
            }
        }
        if !resolve(conflict, sink, cx)? {
            return Ok(Outcome::Skipped);
        }
        fresh = fresh && sink.keeps_number(cx)?;
    }
    Ok(Outcome::Written)
}

/// False: the row is left out.
fn resolve(conflict: Conflict, sink: &mut Sink<'_>, cx: &mut Context<'_, '_>) -> Written<bool> {
    let looks = sink.foreign.is_some() || sink.delete_fires().is_some();
    if conflict == Conflict::Rowid && sink.replaces_rowid() && !looks {
        sink.give_way(cx)?;
        return Ok(true);
    }
    if let Conflict::Index(index) = conflict
        && sink.replaces_key(index)
        && !looks
    {
        let other = sink.holder(index)?;
        sink.set_rowid(other);
        sink.make_entries(cx)?;
        sink.give_way(cx)?;
        return Ok(true);
    }
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
