//! The aggregates of many groups: an accumulator for each group and call, and
//! the bare expressions of the row that stands for the group.

use std::sync::Arc;

use super::distinct::Distinct;
use super::ordered::OrderedCalls;
use crate::bind::expr::{AggregateCall, Expr};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector, tag};
use crate::exec::context::Context;
use crate::exec::expr::batch::eval_rows;
use crate::exec::expr::{Operand, Row, eval, filter, operand};
use crate::exec::rows::decode_cell;
use crate::func::{Accumulator, AggregateKind};
use crate::plan::physical::Grouping;
use crate::value::{Value, ValueRef};

/// Most arguments of an aggregate.
const ARGUMENTS_MAX: usize = 2;

struct Call {
    call: Arc<AggregateCall>,
    groups: Vec<Accumulator>,
    distinct: Option<Distinct>,
    /// ORDER BY within the call.
    ordered: Option<OrderedCalls>,
    /// Bytes that the accumulators hold beyond themselves.
    heap_bytes: usize,
}

/// See the module.
pub struct States {
    calls: Vec<Call>,
    bare: Vec<Expr>,
    extremum: Option<usize>,
    /// The bare values, group after group.
    bare_values: Vec<Value>,
    /// Groups that have had a row.
    started: Vec<bool>,
    scratch: Vec<i64>,
    /// Bytes of texts and blobs in `bare_values`.
    bare_bytes: usize,
}

impl States {
    /// Of no groups.
    pub fn new(grouping: &Grouping) -> Self {
        let calls = grouping.aggregates.iter().enumerate();
        let calls = calls.map(|(at, call)| Call {
            distinct: call
                .distinct
                .then(|| Distinct::new(call.collation, grouping.in_order.contains(&at))),
            ordered: (!call.order_by.is_empty()).then(|| OrderedCalls::new(call)),
            call: Arc::new(call.clone()),
            groups: Vec::new(),
            heap_bytes: 0,
        });
        Self {
            calls: calls.collect(),
            bare: grouping.bare.clone(),
            extremum: grouping.extremum,
            bare_values: Vec::new(),
            started: Vec::new(),
            scratch: Vec::new(),
            bare_bytes: 0,
        }
    }

    /// Bytes of memory in use, but for what spills by itself.
    pub fn memory(&self) -> usize {
        let calls = self
            .calls
            .iter()
            .map(|call| call.groups.capacity() * size_of::<Accumulator>() + call.heap_bytes);
        calls.sum::<usize>()
            + self.bare_values.capacity() * size_of::<Value>()
            + self.bare_bytes
            + self.started.capacity()
    }

    /// Forgets all groups.
    pub fn clear(&mut self) {
        for call in &mut self.calls {
            call.groups.clear();
            call.ordered.iter_mut().for_each(OrderedCalls::clear);
            call.distinct.iter_mut().for_each(Distinct::clear);
            call.heap_bytes = 0;
        }
        self.bare_values.clear();
        self.bare_bytes = 0;
        self.started.clear();
    }

    /// Has that many groups from now on.
    pub fn grow(&mut self, groups: usize) {
        for call in &mut self.calls {
            let function = &call.call.function;
            call.groups
                .resize_with(groups.max(call.groups.len()), || function.accumulator());
        }
        self.bare_values
            .resize(groups * self.bare.len(), Value::Null);
        self.started.resize(groups, false);
    }

    /// Drops the groups before `first`; it becomes group 0.
    pub fn keep_from(&mut self, first: usize) {
        for call in &mut self.calls {
            call.groups.drain(..first.min(call.groups.len()));
            call.ordered.iter_mut().for_each(|o| o.keep_from(first));
            call.distinct.iter_mut().for_each(|d| d.keep_from(first));
            if call.heap_bytes > 0 {
                call.heap_bytes = call.groups.iter().map(Accumulator::heap_bytes).sum();
            }
        }
        let bare = (first * self.bare.len()).min(self.bare_values.len());
        self.bare_values.drain(..bare);
        self.bare_bytes = self.bare_values.iter().map(Value::heap_bytes).sum();
        self.started.drain(..first.min(self.started.len()));
    }

    /// Takes the selected rows; `groups` names each one's group.
    pub fn step(&mut self, rows: &Batch, groups: &[u32], cx: &mut Context<'_, '_>) -> Result<()> {
        self.first_rows(rows, groups, cx)?;
        for i in 0..self.calls.len() {
            let moved = self.step_call(i, rows, groups, cx)?;
            for (group, row) in moved {
                self.take_bare(group, row, rows, cx)?;
            }
        }
        Ok(())
    }

    /// Bare expressions of groups that just began.
    fn first_rows(&mut self, rows: &Batch, groups: &[u32], cx: &mut Context<'_, '_>) -> Result<()> {
        if self.bare.is_empty() {
            return Ok(());
        }
        for (i, group) in groups.iter().enumerate() {
            let group = *group as usize;
            if let Some(started) = self.started.get_mut(group)
                && !std::mem::replace(started, true)
            {
                self.take_bare(group, rows.row_at(i).unwrap_or(0), rows, cx)?;
            }
        }
        Ok(())
    }

    fn take_bare(
        &mut self,
        group: usize,
        row: usize,
        rows: &Batch,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let start = group * self.bare.len();
        for (expr, slot) in self
            .bare
            .iter()
            .zip(self.bare_values.iter_mut().skip(start))
        {
            let before = slot.heap_bytes();
            slot.assign(eval(expr, Row::Batch(rows, row), cx)?.as_ref());
            self.bare_bytes = self.bare_bytes + slot.heap_bytes() - before;
        }
        Ok(())
    }

    /// Steps one call; answers with groups and rows that gave the extremum.
    fn step_call(
        &mut self,
        index: usize,
        rows: &Batch,
        groups: &[u32],
        cx: &mut Context<'_, '_>,
    ) -> Result<Vec<(usize, usize)>> {
        let tracked = self.extremum == Some(index) && !self.bare.is_empty();
        let Some(call) = self.calls.get_mut(index) else {
            return Ok(Vec::new());
        };
        let Some(test) = &call.call.filter else {
            return call.step(
                rows,
                rows.selection(),
                groups,
                tracked,
                &mut self.scratch,
                cx,
            );
        };
        let mut kept = cx.run.rows();
        filter(test, rows, rows.selection(), cx, &mut kept)?;
        let mut wanted = kept.iter().peekable();
        let mut kept_groups = Vec::with_capacity(kept.len());
        for (i, group) in groups.iter().enumerate() {
            if wanted.peek().map(|r| **r as usize) == rows.row_at(i) {
                wanted.next();
                kept_groups.push(*group);
            }
        }
        let moved = call.step(
            rows,
            Selection::Rows(&kept),
            &kept_groups,
            tracked,
            &mut self.scratch,
            cx,
        );
        cx.run.recycle_rows(kept);
        moved
    }

    /// Appends a group's aggregates and bare values to a row of `out`, from
    /// column `at` on.
    pub fn finish(
        &mut self,
        group: usize,
        out: &mut [Vector],
        at: usize,
        cx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let mut columns = out.iter_mut().skip(at);
        for call in &mut self.calls {
            call.finish_waiting(group, cx)?;
            if let Some(ordered) = &mut call.ordered
                && let Some(accumulator) = call.groups.get_mut(group)
            {
                ordered.replay(group, &call.call, accumulator, cx)?;
            }
            let value = call
                .groups
                .get_mut(group)
                .map_or(Ok(Value::Null), Accumulator::finish)?;
            if let Some(column) = columns.next() {
                column.push(value.as_ref())?;
            }
        }
        let start = group * self.bare.len();
        for (value, column) in self
            .bare_values
            .iter()
            .skip(start)
            .take(self.bare.len())
            .zip(columns)
        {
            column.push(value.as_ref())?;
        }
        Ok(())
    }
}

impl Call {
    fn step(
        &mut self,
        rows: &Batch,
        selection: Selection<'_>,
        groups: &[u32],
        tracked: bool,
        scratch: &mut Vec<i64>,
        cx: &mut Context<'_, '_>,
    ) -> Result<Vec<(usize, usize)>> {
        if selection.is_empty() {
            return Ok(Vec::new());
        }
        if self.call.args.is_empty() && self.call.function.kind == AggregateKind::Count {
            self.count(groups);
            return Ok(Vec::new());
        }
        let spec = Arc::clone(&self.call);
        let mut args = Vec::with_capacity(ARGUMENTS_MAX);
        for expr in &spec.args {
            if expr.props.deterministic {
                args.push(operand(expr, rows, selection, cx)?);
            } else {
                let mut out = cx.run.vector();
                eval_rows(expr, rows, selection, cx, &mut out)?;
                args.push(Operand::Computed(out));
            }
        }
        let moved = if let Some(ordered) = &mut self.ordered {
            ordered.collect(
                &spec,
                &args,
                rows,
                selection,
                groups,
                &mut self.distinct,
                cx,
            )?;
            Vec::new()
        } else if self.distinct.is_some() {
            self.step_distinct(&args, selection, groups, tracked, scratch, cx)?
        } else if !tracked && self.step_vector(&args, selection, groups, scratch)? {
            Vec::new()
        } else {
            self.step_rows(&args, selection, groups, tracked)?
        };
        for arg in args {
            arg.release(cx);
        }
        Ok(moved)
    }

    /// `count(*)`.
    fn count(&mut self, groups: &[u32]) {
        if let [only] = self.groups.as_mut_slice() {
            only.step_count(groups.len() as u64);
            return;
        }
        for group in groups {
            if let Some(accumulator) = self.groups.get_mut(*group as usize) {
                accumulator.step_count(1);
            }
        }
    }

    /// `count(x)`.
    fn count_values(&mut self, values: &Vector, selection: Selection<'_>, groups: &[u32]) {
        if values.kinds() & tag::NULL == 0 {
            return self.count(groups);
        }
        let is_value = |row: usize| values.tag(row) != tag::NULL;
        if let [only] = self.groups.as_mut_slice() {
            let mut count = 0;
            selection.each(|row| count += u64::from(is_value(row)));
            return only.step_count(count);
        }
        let mut next = groups.iter();
        selection.each(|row| {
            let group = next.next().map_or(usize::MAX, |g| *g as usize);
            if let Some(accumulator) = self.groups.get_mut(group).filter(|_| is_value(row)) {
                accumulator.step_count(1);
            }
        });
    }

    /// One group and a vector of integers and NULLs, which do not count. False: not done.
    fn step_but_nulls(
        &mut self,
        values: &Vector,
        selection: Selection<'_>,
        scratch: &mut Vec<i64>,
    ) -> Result<bool> {
        use AggregateKind::{Avg, Max, Min, Sum, Total};
        let passes_nulls = matches!(self.call.function.kind, Sum | Total | Avg | Min | Max);
        let is_mixed = values.kinds() == tag::INTEGER | tag::NULL;
        let ([only], true) = (self.groups.as_mut_slice(), passes_nulls && is_mixed) else {
            return Ok(false);
        };
        scratch.clear();
        selection.each(|row| {
            if let ValueRef::Integer(word) = values.value(row) {
                scratch.push(word);
            }
        });
        only.step_integers(scratch)?;
        Ok(true)
    }

    /// A vector of integers or of reals, or what is counted: no dispatch a row. False: not
    /// done, as where what a group holds is to be weighed.
    fn step_vector(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
        scratch: &mut Vec<i64>,
    ) -> Result<bool> {
        let [arg] = args else { return Ok(false) };
        let Some(values) = arg.vector() else {
            return Ok(false);
        };
        if self.call.function.kind == AggregateKind::Count {
            self.count_values(values, selection, groups);
            return Ok(true);
        }
        let kind = self.call.function.kind;
        if self.call.function.holds_values()
            && !matches!(kind, AggregateKind::Min | AggregateKind::Max)
        {
            return Ok(false);
        }
        if let Some(words) = values.reals() {
            self.step_reals(words, selection, groups)?;
            return Ok(true);
        }
        let Some(words) = values.integers() else {
            return self.step_but_nulls(values, selection, scratch);
        };
        if let [only] = self.groups.as_mut_slice() {
            match selection {
                Selection::All(n) => only.step_integers(words.get(..n).unwrap_or(words))?,
                Selection::Rows(rows) => {
                    scratch.clear();
                    scratch.extend(
                        rows.iter()
                            .map(|r| words.get(*r as usize).copied().unwrap_or(0)),
                    );
                    only.step_integers(scratch)?
                }
            };
            return Ok(true);
        }
        let mut next = groups.iter();
        selection.try_each(|row| {
            let group = next.next().map_or(usize::MAX, |g| *g as usize);
            if let Some(accumulator) = self.groups.get_mut(group) {
                let word = words.get(row).copied().unwrap_or(0);
                accumulator.step_integers(std::slice::from_ref(&word))?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// A vector of reals, as the bits of each.
    fn step_reals(&mut self, bits: &[i64], rows: Selection<'_>, groups: &[u32]) -> Result<()> {
        let at = |row: usize| {
            bits.get(row)
                .map_or(0.0, |bits| f64::from_bits(*bits as u64))
        };
        if let [only] = self.groups.as_mut_slice() {
            match rows {
                Selection::All(n) => only.step_reals((0..n).map(at))?,
                Selection::Rows(rows) => only.step_reals(rows.iter().map(|r| at(*r as usize)))?,
            };
            return Ok(());
        }
        let mut next = groups.iter();
        rows.try_each(|row| {
            let group = next.next().map_or(usize::MAX, |g| *g as usize);
            if let Some(accumulator) = self.groups.get_mut(group) {
                accumulator.step_reals(std::iter::once(at(row)))?;
            }
            Ok(())
        })
    }

    fn step_rows(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
        tracked: bool,
    ) -> Result<Vec<(usize, usize)>> {
        let mut moved = Vec::new();
        let mut next = groups.iter();
        let collation = self.call.collation;
        let weighed = self.call.function.holds_values();
        selection.try_each(|row| {
            let group = next.next().map_or(usize::MAX, |g| *g as usize);
            let Some(accumulator) = self.groups.get_mut(group) else {
                return Ok(());
            };
            let before = if weighed { accumulator.heap_bytes() } else { 0 };
            let extreme = match args {
                [one] => accumulator.step(&[one.get(row)], collation)?,
                [one, two] => accumulator.step(&[one.get(row), two.get(row)], collation)?,
                _ => {
                    let values: Vec<ValueRef<'_>> = args.iter().map(|a| a.get(row)).collect();
                    accumulator.step(&values, collation)?
                }
            };
            if weighed {
                self.heap_bytes = self.heap_bytes + accumulator.heap_bytes() - before;
            }
            if tracked && extreme {
                moved.push((group, row));
            }
            Ok(())
        })?;
        Ok(moved)
    }

    fn step_distinct(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
        tracked: bool,
        scratch: &mut Vec<i64>,
        cx: &mut Context<'_, '_>,
    ) -> Result<Vec<(usize, usize)>> {
        let Some(distinct) = &mut self.distinct else {
            return Ok(Vec::new());
        };
        let fresh = distinct.fresh(args, selection, groups, &mut |_, _, _| Ok(()), cx)?;
        let (rows, kept): (Vec<u32>, Vec<u32>) = fresh.into_iter().unzip();
        let fresh = Selection::Rows(&rows);
        if !tracked && self.step_vector(args, fresh, &kept, scratch)? {
            return Ok(Vec::new());
        }
        self.step_rows(args, fresh, &kept, tracked)
    }

    /// Takes the rows of a group that waited to be told apart.
    fn finish_waiting(&mut self, group: usize, cx: &mut Context<'_, '_>) -> Result<()> {
        let Some(distinct) = &mut self.distinct else {
            return Ok(());
        };
        let Some(mut rows) = distinct.finish(group, cx)? else {
            return Ok(());
        };
        while let Some((_, mut cells)) = rows.next_record()? {
            let place = decode_cell(&mut cells)?;
            if let Some(ordered) = &mut self.ordered {
                let ValueRef::Blob(key) = place else { continue };
                ordered.add(group, key, cells, cx)?;
                continue;
            }
            let mut values = Vec::with_capacity(ARGUMENTS_MAX);
            for _ in &self.call.args {
                values.push(decode_cell(&mut cells)?);
            }
            if let Some(accumulator) = self.groups.get_mut(group) {
                accumulator.step(&values, self.call.collation)?;
            }
        }
        Ok(())
    }
}
