//! Generated columns, bound over the row they belong to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::Binder;
use super::expr::{Expr, ExprKind, ROWID};
use super::logical::Generated;
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::schema::{Column, Table};

impl Binder<'_> {
    /// The generated columns of a table whose row is source `id`, each behind those that it
    /// reads.
    pub(super) fn generated(&mut self, table: &Arc<Table>, id: usize) -> Result<Vec<Generated>> {
        if !table.has_generated {
            return Ok(Vec::new());
        }
        // They are written in a text of their own and know nothing of what is here.
        let uses = self.uses.take();
        let frames = std::mem::take(&mut self.frames);
        let bound = self.generated_row(table, id);
        self.frames = frames;
        self.uses = uses;
        in_order(table, bound?)
    }

    /// The same, but none where all of them are stored.
    pub(super) fn computed_columns(
        &mut self,
        table: &Arc<Table>,
        id: usize,
    ) -> Result<Vec<Generated>> {
        match table.has_generated && table.columns.iter().any(Column::is_virtual) {
            true => self.in_texts_of(table, |this| this.generated(table, id)),
            false => Ok(Vec::new()),
        }
    }

    fn generated_row(&mut self, table: &Arc<Table>, id: usize) -> Result<Vec<Generated>> {
        self.row_frame(table, &table.name, id, |this| {
            this.frame().definition = Some(Definition::Generated);
            let mut bound = Vec::new();
            for (at, column) in table.columns.iter().enumerate() {
                if let Some(generated) = &column.generated {
                    let expr = this.expr(&generated.expr)?;
                    let mut reads = BTreeSet::new();
                    columns_read(&expr, &mut reads);
                    bound.push(Generated {
                        column: at,
                        expr,
                        reads,
                        affinity: column.affinity,
                        stored: generated.stored,
                    });
                }
            }
            Ok(bound)
        })
    }

    /// What the expressions of generated columns may not be made of. `before`: how many
    /// subqueries there were before they were bound.
    pub(super) fn check_generated(&self, generated: &[Generated], before: usize) -> Result<()> {
        let is_any = |f: fn(&Expr) -> bool| generated.iter().any(|it| f(&it.expr));
        let what = if !generated.is_empty() && self.subqueries.len() > before {
            "subqueries"
        } else if is_any(Expr::has_parameter) {
            "parameters"
        } else if is_any(|expr| !expr.may_be_indexed()) {
            "non-deterministic functions"
        } else {
            return Ok(());
        };
        Err(Error::sql(format!(
            "{what} prohibited in generated columns"
        )))
    }
}

fn columns_read(expr: &Expr, out: &mut BTreeSet<usize>) {
    if let ExprKind::Column(column) = expr.kind {
        out.insert(column.column);
    }
    expr.kind.for_each_child(&mut |child| {
        crate::stack::grow(|| columns_read(child, out));
    });
}

/// Each behind those that it reads.
fn in_order(table: &Table, generated: Vec<Generated>) -> Result<Vec<Generated>> {
    let places: BTreeMap<usize, usize> = generated.iter().map(|it| it.column).zip(0..).collect();
    let mut readers = vec![Vec::new(); generated.len()];
    let mut waits = vec![0; generated.len()];
    for (at, it) in generated.iter().enumerate() {
        for read in it.reads.iter().filter_map(|column| places.get(column)) {
            readers[*read].push(at);
            waits[at] += 1;
        }
    }
    let mut ready: VecDeque<usize> = (0..generated.len()).filter(|at| waits[*at] == 0).collect();
    let mut left: Vec<Option<Generated>> = generated.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while let Some(at) = ready.pop_front() {
        ordered.extend(left[at].take());
        for reader in &readers[at] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push_back(*reader);
            }
        }
    }
    let left: Vec<Generated> = left.into_iter().flatten().collect();
    match left.is_empty() {
        true => Ok(ordered),
        false => Err(circle(table, left)),
    }
}

/// The error of columns of which some read one another in a circle; it names the last of
/// those that do, as SQLite's.
fn circle(table: &Table, mut left: Vec<Generated>) -> Error {
    loop {
        let read: BTreeSet<usize> = left
            .iter()
            .flat_map(|it| it.reads.iter().copied())
            .collect();
        let before = left.len();
        left.retain(|it| read.contains(&it.column));
        if left.len() == before {
            break;
        }
    }
    let last = left.last().and_then(|it| table.columns.get(it.column));
    let name = last.map_or("", |column| column.name.as_str());
    Error::sql(format!("generated column loop on \"{name}\""))
}

/// Adds the generated columns that change with these columns of a table.
pub fn add_dependent(table: &Table, generated: &[Generated], changed: &mut Vec<usize>) {
    let is_read = |it: &Generated, at: usize| match table.rowid_alias == Some(at) {
        true => it.reads.contains(&ROWID),
        false => it.reads.contains(&at),
    };
    for it in generated {
        if !changed.contains(&it.column) && changed.iter().any(|at| is_read(it, *at)) {
            changed.push(it.column);
        }
    }
}
