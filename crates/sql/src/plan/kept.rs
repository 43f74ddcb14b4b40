//! Large values that an UPDATE does not look at.
//!
//! Unless it assigns them they stay where they are, and what it assigns is not read before.
//! The source yields, of a row whose rest lies apart, an empty text or blob in their place and
//! says behind the row that it did. The executor then writes the row's start anew
//! (`exec/dml/start.rs`). Which rows are such shows only when they are read; all others come
//! as they are.

use smallvec::SmallVec;

use super::few::Few;
use super::physical::{Node, Op, ScanColumn, Update};
use crate::bind::expr::{Expr, ExprKind};
use crate::value::Affinity;

/// Lets the source of an update keep large values where it can; where the source's rows
/// say so.
pub fn keep_large(update: &mut Update) -> Option<usize> {
    let target = &update.target;
    let is_shown = update.joins
        || update.rowid.is_some()
        || update.returning.is_some()
        || target.foreign.is_some()
        || target.triggers.is_some()
        || target.table.has_generated
        || target.table.may_replace(update.conflict);
    if is_shown {
        return None;
    }
    let mut read = Read::default();
    update
        .assignments
        .iter()
        .for_each(|(_, value)| read.note(value));
    target.checks.iter().for_each(|(_, check)| read.note(check));
    for writer in target.indexes.iter().filter(|writer| writer.affected) {
        writer
            .key
            .iter()
            .chain(&writer.predicate)
            .for_each(|expr| read.note(expr));
    }
    let table = &target.table;
    // What is no text or blob is hardly ever large, and may be read.
    let may_be_large = |affinity| matches!(affinity, Affinity::Text | Affinity::Blob);
    let columns = table.columns.iter().enumerate();
    let candidates = columns.filter(|(column, spec)| {
        may_be_large(spec.affinity)
            && table.rowid_alias != Some(*column)
            && !read.columns.contains(&(column + 1))
    });
    let mut few = Few::new();
    few.extend(candidates.map(|(column, _)| column));
    match read.unknown || few.is_empty() {
        true => None,
        false => keep(&mut update.source, &few),
    }
}

/// The columns of a row that expressions read.
#[derive(Default)]
struct Read {
    columns: Few<usize>,
    /// One has a subquery, which may read any.
    unknown: bool,
}

impl Read {
    fn note(&mut self, expr: &Expr) {
        if let ExprKind::Input(column) = expr.kind {
            self.columns.insert(column);
        }
        self.unknown |= expr.kind.subquery().is_some();
        expr.kind.for_each_child(&mut |child| {
            crate::stack::grow(|| self.note(child));
        });
    }
}

/// Has the scan below keep these of the table's columns, as far as nothing on the way
/// reads them; where its rows say so.
fn keep(source: &mut Node, candidates: &Few<usize>) -> Option<usize> {
    let mut read = Read::default();
    let (outputs, mut node) = match &mut source.op {
        Op::Project { input, exprs } => (Some(exprs), &mut **input),
        _ => (None, &mut *source),
    };
    // Where the scan has each candidate.
    let mut places = SmallVec::<[usize; 8]>::new();
    for column in candidates.iter() {
        match outputs
            .as_deref()
            .map(|exprs| exprs.get(column + 1).map(|expr| &expr.kind))
        {
            Some(Some(ExprKind::Input(at))) => places.push(*at),
            Some(_) => {}
            None => places.push(column + 1),
        }
    }
    for (at, expr) in outputs.iter().flat_map(|exprs| exprs.iter().enumerate()) {
        let is_candidate = at.checked_sub(1).is_some_and(|at| candidates.contains(&at));
        if !is_candidate || !matches!(expr.kind, ExprKind::Input(_)) {
            read.note(expr);
        }
    }
    let mut widened = SmallVec::<[&mut usize; 2]>::new();
    loop {
        let Node { op, width, .. } = node;
        widened.push(width);
        node = match op {
            Op::Filter { input, predicate } => {
                read.note(predicate);
                input
            }
            Op::TableScan { columns, .. }
            | Op::RowidLookup { columns, .. }
            | Op::RowidUnion { columns, .. }
            | Op::IndexScan {
                columns,
                covering: false,
                ..
            } => {
                places.retain(|at| !read.columns.contains(at));
                let large = columns.len();
                if read.unknown || !mark(columns, &places) {
                    return None;
                }
                columns.push(ScanColumn::IsLarge);
                widened.into_iter().for_each(|width| *width += 1);
                let Some(exprs) = outputs else {
                    return Some(large);
                };
                exprs.push(Expr::input(large, crate::bind::expr::Props::CONSTANT));
                source.width += 1;
                return Some(source.width - 1);
            }
            _ => return None,
        };
    }
}

/// Marks the columns at these places as kept; whether there are any.
fn mark(columns: &mut [ScanColumn], places: &[usize]) -> bool {
    let mut marked = false;
    for at in places {
        if let Some(slot) = columns.get_mut(*at)
            && let ScanColumn::Column(column) = *slot
        {
            *slot = ScanColumn::Kept(column);
            marked = true;
        }
    }
    marked
}
