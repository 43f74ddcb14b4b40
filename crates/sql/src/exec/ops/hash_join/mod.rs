//! Hash join: the right side goes into a hash table by its keys, the left side
//! asks it row by row. NULL keys have no partner.
//!
//! Rows with equal keys form a chain in the right side's order. A right side that
//! the budget has no room for goes to disk, and the left one after it
//! ([`spilled`]).
//!
//! Where right rows without a partner are wanted, those with NULL keys are kept among the
//! others, in no chain; each that finds a partner is marked, and in the end those without
//! a mark are yielded.
//!
//! Where left rows alone are wanted, those are left over that count ([`semi`]). What else an
//! inner join asks of a pair is asked of many at once ([`tested`]).

mod semi;
mod spilled;
mod tested;

use self::semi::keep_first;
use self::spilled::{Spilled, chain};
use self::tested::Tested;
use super::marks::Marks;
use super::pairs::{Pairs, push_right};
use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::{Comparison, Expr};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX, Selection, Vector, tag};
use crate::exec::context::Context;
use crate::exec::expr::batch::eval_rows;
use crate::exec::expr::{Operand, Row, condition, operand};
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::{Held, KEPT_BYTES};
use crate::exec::txns::Txns;
use crate::plan::physical::JoinKind;
use crate::value::Affinity;

/// What is kept for the next time the join is opened stays in memory up to so many bytes:
/// on disk it would be put there anew each time.
const UNSPILLED_BYTES: usize = 16 << 20;

/// What a plan says about a hash join.
pub struct Spec {
    /// Kind.
    pub kind: JoinKind,
    /// Over the left row.
    pub left_keys: Vec<Expr>,
    /// Over the right row.
    pub right_keys: Vec<Expr>,
    /// How each pair compares.
    pub comparisons: Vec<Comparison>,
    /// More conditions over the pair.
    pub condition: Option<Expr>,
    /// Columns of the result.
    pub width: usize,
    /// What was built stays until this pass begins anew.
    pub kept: Option<usize>,
}

/// See the module.
pub struct HashJoin {
    left: BoxOperator,
    right: BoxOperator,
    spec: Spec,
    table: GroupTable,
    built: Batch,
    /// First and last row of each group's chain, and each row's successor.
    heads: Vec<(u32, u32)>,
    chain: Vec<u32>,
    groups: Vec<u32>,
    left_rows: Batch,
    position: usize,
    /// Next right row of the left row at `position`, if it has been started.
    candidate: Option<u32>,
    matched: bool,
    pairs: Pairs,
    /// The condition, where many pairs are tested at once.
    tested: Option<Tested>,
    delayed: Delayed,
    held: Held,
    /// How often the pass had begun for which the table was built and is kept.
    kept: Option<u64>,
    /// The right rows that have found a partner.
    marks: Marks,
    /// All left rows have been joined, and this is the next right row to be yielded alone.
    alone: Option<usize>,
    /// Both sides, where the right one was too large.
    spilled: Option<Box<Spilled>>,
    /// The left side went there, too.
    joined: bool,
}

/// Has the row a key, of which no part is NULL?
fn is_key(keys: &[Operand<'_>], row: usize) -> bool {
    keys.iter().all(|k| !k.get(row).is_null())
}

/// The keys of a batch as the comparisons see them. `Err`: some row failed.
fn keys<'a, 'p: 'a>(
    exprs: &'a [Expr],
    comparisons: &[Comparison],
    input: &'a Batch,
    selection: Selection<'_>,
    cx: &mut Context<'p, '_>,
) -> Result<Vec<Operand<'a>>> {
    exprs
        .iter()
        .zip(comparisons)
        .map(|(expr, how)| {
            let value = if expr.props.deterministic {
                operand(expr, input, selection, cx)?
            } else {
                let mut out = cx.run.vector();
                eval_rows(expr, input, selection, cx, &mut out)?;
                Operand::Computed(out)
            };
            convert(value, how.affinity, selection)
        })
        .collect()
}

/// Applies a comparison's affinity where it can change a value.
fn convert<'a>(
    value: Operand<'a>,
    affinity: Affinity,
    selection: Selection<'_>,
) -> Result<Operand<'a>> {
    let touched = match affinity {
        Affinity::Blob => 0,
        Affinity::Text => tag::INTEGER | tag::REAL,
        _ => tag::TEXT,
    };
    if value.vector().is_some_and(|v| v.kinds() & touched == 0) {
        return Ok(value);
    }
    let mut out = Vector::new();
    for row in 0..selection.end() {
        out.push(affinity.apply_comparison(value.get(row)).as_ref())?;
    }
    Ok(Operand::Computed(out))
}

impl HashJoin {
    /// Of two inputs.
    pub fn new(left: BoxOperator, right: BoxOperator, spec: Spec) -> Self {
        let collations = spec.comparisons.iter().map(|c| c.collation).collect();
        Self {
            left,
            right,
            tested: Tested::of(&spec),
            spec,
            table: GroupTable::new(collations),
            built: Batch::default(),
            heads: Vec::new(),
            chain: Vec::new(),
            groups: Vec::new(),
            left_rows: Batch::default(),
            position: 0,
            candidate: None,
            matched: false,
            pairs: Pairs::default(),
            delayed: Delayed::default(),
            held: Held::default(),
            kept: None,
            marks: Marks::default(),
            alone: None,
            spilled: None,
            joined: false,
        }
    }

    fn build(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.table.clear();
        self.heads.clear();
        self.chain.clear();
        self.built.clear();
        let mut batch = Batch::default();
        let mut kept = Vec::new();
        self.right.open(cx)?;
        while self.right.next(cx, usize::MAX, &mut batch)? {
            cx.run.check_interrupt()?;
            if self.built.columns.len() != batch.columns.len() {
                self.built.reset(batch.columns.len());
            }
            let keys = keys(
                &self.spec.right_keys,
                &self.spec.comparisons,
                &batch,
                batch.selection(),
                cx,
            )?;
            if let Some(spilled) = &mut self.spilled {
                spilled.take_right(&batch, &keys, &self.spec)?;
                continue;
            }
            kept.clear();
            batch.selection().each(|row| {
                if is_key(&keys, row) {
                    kept.push(row as u32);
                }
            });
            self.table
                .insert(&keys, Selection::Rows(&kept), &mut self.groups)?;
            if self.spec.kind.keeps_right() && kept.len() < batch.len() {
                keep_all(batch.selection(), &mut kept, &mut self.groups);
            }
            if self.needs_one() {
                keep_first(self.heads.len(), &mut kept, &mut self.groups);
            }
            for (column, source) in self.built.columns.iter_mut().zip(&batch.columns) {
                column.gather(source, &kept)?;
            }
            chain(&self.groups, &mut self.heads, &mut self.chain);
            self.reserve(cx)?;
        }
        self.built.set_rows(self.chain.len());
        Ok(())
    }

    /// Reserves what was built; sends it to disk where there is no room.
    fn reserve(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        // Rows and chains: 4 bytes and 8 for each row.
        let bytes = self.table.memory() + self.built.memory() + self.chain.capacity() * 12;
        if self.held.resize(&cx.run.memory, bytes) {
            return Ok(());
        }
        if self.spec.kept.is_some() && bytes <= UNSPILLED_BYTES {
            self.held.force(&cx.run.memory, bytes);
            return Ok(());
        }
        self.built.set_rows(self.chain.len());
        let mut spilled = Box::new(Spilled::new(&cx.run.memory));
        // Row by row in the order in which they came, with their group's key.
        let mut groups = vec![NONE; self.chain.len()];
        for (group, (head, _)) in self.heads.iter().enumerate() {
            let mut row = *head;
            while let Some(slot) = groups.get_mut(row as usize) {
                *slot = group as u32;
                row = self.chain.get(row as usize).copied().unwrap_or(NONE);
            }
        }
        let mut keys = Vec::with_capacity(self.table.keys().len());
        for key in self.table.keys() {
            let mut column = Vector::new();
            column.gather(key, &groups)?;
            keys.push(Operand::Computed(column));
        }
        spilled.take_right(&self.built, &keys, &self.spec)?;
        self.spilled = Some(spilled);
        self.let_go();
        Ok(())
    }

    /// Gives back what was built.
    fn let_go(&mut self) {
        self.table.clear();
        self.table.release();
        let bytes = self.built.memory() + self.chain.capacity() * 12;
        if bytes > KEPT_BYTES {
            self.built = Batch::default();
            self.heads = Vec::new();
            self.chain = Vec::new();
        }
        self.built.clear();
        self.heads.clear();
        self.chain.clear();
        self.held.release();
    }

    /// Pulls left rows and finds their groups; false at the end.
    fn refill(&mut self, cx: &mut Context<'_, '_>, want: usize) -> Result<bool> {
        self.position = 0;
        self.candidate = None;
        if !self.left.next(cx, want, &mut self.left_rows)? {
            self.left_rows.clear();
            return Ok(false);
        }
        let selection = self.left_rows.selection();
        let keys = keys(
            &self.spec.left_keys,
            &self.spec.comparisons,
            &self.left_rows,
            selection,
            cx,
        )?;
        self.table.find(&keys, selection, &mut self.groups);
        // A NULL is no key of the table, so it finds nothing.
        Ok(true)
    }

    /// Joins the left row at `position` as far as `most` pairs allow; true: it
    /// is done.
    fn join_row(&mut self, cx: &mut Context<'_, '_>, most: usize) -> Result<bool> {
        let Some(row) = self.left_rows.row_at(self.position) else {
            return Ok(true);
        };
        let mut candidate = match self.candidate.take() {
            Some(candidate) => candidate,
            None => {
                self.matched = false;
                let group = self.groups.get(self.position).copied().unwrap_or(NONE);
                self.heads.get(group as usize).map_or(NONE, |h| h.0)
            }
        };
        while candidate != NONE {
            if self.pairs.len() >= most {
                self.candidate = Some(candidate);
                return Ok(false);
            }
            let right = candidate as usize;
            candidate = self.chain.get(right).copied().unwrap_or(NONE);
            if let Some(test) = &self.spec.condition
                && self.tested.is_none()
                && condition(
                    test,
                    Row::Pair(&self.left_rows, row, &self.built, right),
                    cx,
                )? != Some(true)
            {
                continue;
            }
            self.matched = true;
            match self.spec.kind {
                JoinKind::Inner | JoinKind::Left => self.pairs.push(row, right),
                JoinKind::Right | JoinKind::Full => {
                    self.marks.set(right as u64, &cx.run.memory);
                    self.pairs.push(row, right);
                }
                JoinKind::Single => {
                    self.pairs.push(row, right);
                    return Ok(true);
                }
                // Those narrow the left side ([`semi`]).
                JoinKind::Semi | JoinKind::Anti => return Ok(true),
            }
        }
        if !self.matched && self.spec.kind.keeps_left() {
            self.pairs.push_alone(row);
        }
        Ok(true)
    }

    /// Finds the next pairs; false at the end.
    fn fill(&mut self, cx: &mut Context<'_, '_>, mut want: usize) -> Result<bool> {
        loop {
            let more = self.fill_untested(cx, want)?;
            if !more || self.tested.is_none() {
                return Ok(more);
            }
            self.test_pairs(cx)?;
            if !self.pairs.is_empty() {
                return Ok(true);
            }
            // Whoever finds nothing looks at more at once.
            want = want.saturating_mul(4);
        }
    }

    fn fill_untested(&mut self, cx: &mut Context<'_, '_>, want: usize) -> Result<bool> {
        let most = want.clamp(1, ROWS_MAX);
        loop {
            if self.position >= self.left_rows.len() {
                if !self.pairs.is_empty() {
                    return Ok(true);
                }
                cx.run.check_interrupt()?;
                if !self.refill(cx, want)? {
                    return Ok(false);
                }
            }
            while self.position < self.left_rows.len() {
                if self.pairs.len() >= most || !self.join_row(cx, most)? {
                    return Ok(true);
                }
                self.position += 1;
            }
        }
    }

    /// Yields right rows without a partner, from the one at `from` on.
    fn fill_alone(&mut self, from: usize, want: usize, out: &mut Batch) -> Result<bool> {
        let most = want.clamp(1, ROWS_MAX);
        let (mut rows, mut row) = (Vec::new(), from);
        while row < self.built.rows() && rows.len() < most {
            if !self.marks.is_set(row as u64) {
                rows.push(row as u32);
            }
            row += 1;
        }
        self.alone = Some(row);
        push_right(&self.built, &rows, out)?;
        Ok(!rows.is_empty())
    }
}

/// Has all rows of a batch kept, those that were not in no group.
fn keep_all(selection: Selection<'_>, kept: &mut Vec<u32>, groups: &mut Vec<u32>) {
    let mut keyed = kept.iter().copied().zip(groups.iter().copied()).peekable();
    let (mut rows, mut of_rows) = (Vec::new(), Vec::new());
    selection.each(|row| {
        let row = row as u32;
        let group = keyed.next_if(|(keyed, _)| *keyed == row);
        rows.push(row);
        of_rows.push(group.map_or(NONE, |(_, group)| group));
    });
    *kept = rows;
    *groups = of_rows;
}

impl Operator for HashJoin {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.kept = None;
        self.left.attach(txn)?;
        self.right.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.pairs.clear();
        self.left_rows.clear();
        self.position = 0;
        self.candidate = None;
        self.marks.clear();
        self.alone = None;
        self.joined = false;
        let pass = self.spec.kept.map(|pass| cx.run.pass(pass));
        if self.kept.is_none() || self.kept != pass {
            self.kept = None;
            self.spilled = None;
            self.build(cx)?;
            // The join of what was spilled takes it away.
            self.kept = pass.filter(|_| self.spilled.is_none());
        }
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.spec.width);
        if let Some(spilled) = &mut self.spilled {
            if !self.joined {
                spilled.join(&mut self.left, &self.spec, cx)?;
                self.joined = true;
            }
            return match spilled.read(&self.spec, want, out, cx) {
                Ok(more) => Ok(more),
                Err(error) => self.delayed.after(out.rows(), error),
            };
        }
        if !self.spec.kind.yields_right() {
            return self.next_semi(cx, want, out);
        }
        if let Some(from) = self.alone {
            return self.fill_alone(from, want, out);
        }
        let outcome = self.fill(cx, want);
        let right = if self.spec.kind.yields_right() {
            Some(&self.built)
        } else {
            None
        };
        self.pairs.flush(&self.left_rows, right, out)?;
        match outcome {
            Ok(false) if self.spec.kind.keeps_right() => self.fill_alone(0, want, out),
            Ok(more) => Ok(more),
            Err(error) => self.delayed.after(out.rows(), error),
        }
    }

    fn detach(&mut self) {
        self.spilled = None;
        self.kept = None;
        self.marks.clear();
        self.left_rows.let_go();
        self.let_go();
        self.left.detach();
        self.right.detach();
    }
}
