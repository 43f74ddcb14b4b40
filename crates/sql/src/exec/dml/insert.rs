//! INSERT.

use super::Written;
use super::batch;
use super::sink::{Buffers, Conflict, Outcome, Sink};
use super::triggers::Event;
use super::upsert::{self, Upserted};
use crate::bind::expr::{Expr, ExprKind};
use crate::error::{Error, Result};
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
    /// If the plan is one. `calls_user`: it calls functions of the user's.
    pub fn new(plan: &Insert, calls_user: bool) -> Option<Self> {
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
        let as_given = AsGiven::new(plan, rowid.as_ref(), &values, calls_user);
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
            && let Some(rowid) = as_given.insert(sink, cx)?
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

/// A row that goes straight into the record, where nothing else wants to see it: from
/// parameters and literals, and by way of the row being written where a value is computed or
/// its column does not take it as it is.
struct AsGiven {
    rowid: Source,
    columns: Vec<Column>,
    /// Whether a column is computed.
    computes: bool,
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
    /// What may be computed twice.
    Computed(Expr),
    /// Nothing is stored, or asked for: the key stands for it.
    None,
}

/// The columns that are in the row being written: of the first ones, one a bit.
#[derive(Clone, Copy)]
struct Made(u64);

impl Made {
    const MOST: usize = u64::BITS as usize;

    #[inline]
    fn has(self, column: usize) -> bool {
        column < Self::MOST && self.0 >> column & 1 == 1
    }
}

impl AsGiven {
    fn new(plan: &Insert, rowid: Option<&Expr>, values: &[Expr], calls_user: bool) -> Option<Self> {
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
            let source = Source::of((!is_key).then_some(value))?;
            // Those are called once, also where the row turns out to be in the way.
            let fits = !source.is_computed() || i < Made::MOST && !calls_user;
            fits.then_some(Column {
                source,
                affinity: column.affinity,
                not_null: !is_key && column.not_null.is_some(),
                strict: column.strict,
            })
        });
        let columns = columns.collect::<Option<Vec<_>>>()?;
        Some(Self {
            rowid: Source::of(rowid).filter(|source| !source.is_computed())?,
            computes: columns.iter().any(|column| column.source.is_computed()),
            columns,
        })
    }

    /// Inserts the row and answers with its rowid; None, with nothing written, if
    /// a value is not for its column, or something is in the way.
    #[inline]
    fn insert(&self, sink: &mut Sink<'_>, cx: &mut Context<'_, '_>) -> Written<Option<i64>> {
        let given = match self.rowid.value(cx.parameters) {
            ValueRef::Integer(rowid) => Some(rowid),
            ValueRef::Null => None,
            _ => return Ok(None),
        };
        let is_encoded = !self.computes && self.encode_as_given(sink.buffers, cx.parameters)?;
        if !is_encoded && !self.encode_made(sink, cx)? {
            return Ok(None);
        }
        let rowid = match given {
            Some(rowid) => rowid,
            None => sink.allocate_rowid()?,
        };
        sink.note_given(rowid)?;
        let in_the_way = sink.insert_row(rowid, given.is_none())?;
        Ok(in_the_way.is_none().then_some(rowid))
    }

    /// Encodes the row into the record; false where a value is not stored as it is given.
    #[inline]
    fn encode_as_given(&self, buffers: &mut Buffers, parameters: &[Value]) -> Result<bool> {
        buffers.record.clear();
        let mut fits = true;
        let values = self.columns.iter().map(|column| {
            let value = column.source.value(parameters);
            fits &= column.affinity.keeps(value) && column.takes(value);
            value
        });
        let encoded = RowWriter::encode(&mut buffers.record, values);
        match fits {
            true => encoded.map(|()| true),
            false => Ok(false),
        }
    }

    /// The same by way of the row being written, for values that are not; false where one
    /// is not for its column at all.
    #[inline(never)]
    fn encode_made(&self, sink: &mut Sink<'_>, cx: &mut Context<'_, '_>) -> Result<bool> {
        sink.start_row();
        let mut made = Made(0);
        for (at, column) in self.columns.iter().enumerate() {
            let is_made = match &column.source {
                Source::Computed(expr) => {
                    let value = eval(expr, Row::Empty, cx)?;
                    column.make(at, value.as_ref(), &mut made, sink)
                }
                source => {
                    let value = source.value(cx.parameters);
                    column.affinity.keeps(value) && column.takes(value)
                        || column.make(at, value, &mut made, sink)
                }
            };
            if !is_made {
                return Ok(false);
            }
        }
        let Buffers { row, record, .. } = sink.buffers;
        record.clear();
        let columns = self.columns.iter().enumerate();
        let values = columns.map(|(at, column)| match made.has(at) {
            false => column.source.value(cx.parameters),
            true => row.get(at + 1).map_or(ValueRef::Null, Value::as_ref),
        });
        RowWriter::encode(record, values)?;
        Ok(true)
    }
}

impl Column {
    /// Whether it takes a value of its affinity.
    #[inline]
    fn takes(&self, value: ValueRef<'_>) -> bool {
        !(self.not_null && value.is_null()) && self.strict.is_none_or(|strict| strict.takes(value))
    }

    /// Makes what is stored of a value, in the row being written; false where there is no
    /// such thing.
    fn make(&self, at: usize, value: ValueRef<'_>, made: &mut Made, sink: &mut Sink<'_>) -> bool {
        let stored = self.affinity.apply(value);
        let stored = stored.as_ref();
        if at >= Made::MOST || !self.takes(stored) {
            return false;
        }
        made.0 |= 1 << at;
        if let Some(slot) = sink.buffers.row.get_mut(at + 1) {
            slot.assign(stored);
        }
        true
    }
}

impl Source {
    /// What an expression is; None if it is to be computed but once, or with more than
    /// parameters.
    fn of(expr: Option<&Expr>) -> Option<Self> {
        let Some(expr) = expr else {
            return Some(Source::None);
        };
        match &expr.kind {
            ExprKind::Parameter(i) => Some(Source::Parameter(*i)),
            ExprKind::Literal(value) => Some(Source::Literal(value.clone())),
            _ if expr.props.constant && expr.props.deterministic => {
                Some(Source::Computed(expr.clone()))
            }
            _ => None,
        }
    }

    #[inline]
    fn is_computed(&self) -> bool {
        matches!(self, Source::Computed(_))
    }

    #[inline]
    fn value<'a>(&'a self, parameters: &'a [Value]) -> ValueRef<'a> {
        match self {
            Source::Parameter(i) => parameters.get(*i).map_or(ValueRef::Null, Value::as_ref),
            Source::Literal(value) => value.as_ref(),
            Source::Computed(_) | Source::None => ValueRef::Null,
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
