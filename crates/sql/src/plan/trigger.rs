//! The trigger programs of a statement that writes.
//!
//! A *program* is a trigger with the OR clause that its statements run under, planned once
//! with the statement that may fire it. Programs fire one another, in circles too, so they
//! are numbered, and each has its place once however it is reached. What OLD and NEW stand
//! for are parameters of the plans within: OLD's rowid and columns, then NEW's.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::physical::{Action, Node, Op, Plan, TableWriter, ViewChange};
use super::registers::for_each_expr;
use super::statement::table_row;
use super::{Planner, Statistics, plan_one};
use crate::bind::expr::{ColumnRef, Expr};
use crate::bind::logical::{BoundProgram, BoundViewChange};
use crate::error::Result;
use crate::plan::layout::Layout;
use crate::plan::physical::OutputColumn;
use crate::schema::Trigger;

/// The programs that an event fires, by number, in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// Before the row is written.
    pub before: Vec<usize>,
    /// After that.
    pub after: Vec<usize>,
}

impl Timed {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// What a statement fires on its own table.
#[derive(Debug, Clone, Default)]
pub struct Firing {
    /// For rows that it inserts.
    pub insert: Timed,
    /// For those that UPDATE changes.
    pub update: Timed,
    /// For those that it deletes, or replaces.
    pub delete: Timed,
}

/// See the module.
#[derive(Debug)]
pub struct TriggerProgram {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// WHEN, as a query of one value.
    pub when: Option<Plan>,
    /// Its statements, in order.
    pub steps: Vec<Plan>,
}

impl Plan {
    /// Whether one of its trigger programs may fail where something is written already, but
    /// for want of memory and the like.
    pub fn triggers_may_fail(&self) -> bool {
        let firing = |target: &TableWriter| {
            let firing = target.triggers.as_ref();
            firing.is_some_and(|it| {
                let all = [&it.insert, &it.update, &it.delete];
                all.iter().any(|fires| !fires.before.is_empty())
            })
        };
        let before = match &self.action {
            Action::Insert(insert) => {
                let mut updates = insert.upserts.iter().filter_map(|it| it.update.as_ref());
                firing(&insert.target) || updates.any(|it| !it.fires.before.is_empty())
            }
            Action::Update(update) => firing(&update.target),
            Action::Delete(delete) => firing(&delete.target),
            _ => true,
        };
        let parts = |it: &TriggerProgram| it.when.iter().chain(&it.steps).any(may_fail);
        !self.programs.is_empty()
            && (before || self.settings.recursive_triggers || self.programs.iter().any(parts))
    }
}

/// Whether a part of a program may raise, or find something in its way.
fn may_fail(part: &Plan) -> bool {
    let raises = |expr: &Expr| expr.props.fallible;
    if !part.subqueries.is_empty() {
        return true;
    }
    match &part.action {
        Action::Query(root) => node_may_fail(root),
        Action::Insert(insert) => {
            let is_new = insert.rowid.is_none() && insert.upserts.is_empty();
            !is_new
                || row_may_fail(&insert.target, true)
                || insert.values.iter().any(raises)
                || node_may_fail(&insert.source)
        }
        Action::Update(update) => {
            update.rowid.is_some()
                || row_may_fail(&update.target, false)
                || update.assignments.iter().any(|(_, value)| raises(value))
                || node_may_fail(&update.source)
        }
        Action::Delete(delete) => delete.target.foreign.is_some() || node_may_fail(&delete.source),
        _ => true,
    }
}

/// Whether a row may break a constraint of its table. `is_new`: it has all entries anew.
fn row_may_fail(target: &TableWriter, is_new: bool) -> bool {
    let mut indexes = target.indexes.iter().filter(|it| is_new || it.affected);
    let raises = |expr: &Expr| expr.props.fallible;
    target.constrained
        || target.foreign.is_some()
        || !target.sequences.is_empty()
        || indexes.any(|it| it.index.unique || it.key.iter().chain(&it.predicate).any(raises))
}

fn node_may_fail(node: &Node) -> bool {
    // Sums overflow, and a limit may be no number.
    let mut found = matches!(
        node.op,
        Op::HashAggregate { .. } | Op::SortedAggregate { .. } | Op::Limit { .. }
    );
    for_each_expr(&node.op, &mut |expr| found |= expr.props.fallible);
    let inputs = || node.op.inputs().into_iter().any(node_may_fail);
    found || crate::stack::grow(inputs)
}

/// Plans the programs of a statement, and names their trees as the statement's own.
pub(super) fn plan_programs(
    plan: &mut Plan,
    programs: Vec<BoundProgram>,
    statistics: &mut dyn Statistics,
) -> Result<()> {
    let (version, settings) = (plan.schema_version, plan.settings.clone());
    for bound in programs {
        let mut part = |bound| -> Result<Plan> {
            let mut part = plan_one(statistics, bound, version, &settings)?;
            join(&mut plan.reads, std::mem::take(&mut part.reads));
            join(&mut plan.writes, std::mem::take(&mut part.writes));
            join(&mut plan.guards, std::mem::take(&mut part.guards));
            plan.pragmas.append(&mut part.pragmas);
            plan.deterministic &= part.deterministic;
            plan.calls_user |= part.calls_user;
            plan.lacks.append(&mut part.lacks);
            Ok(part)
        };
        plan.programs.push(TriggerProgram {
            when: bound.when.map(&mut part).transpose()?,
            steps: bound.steps.into_iter().map(part).collect::<Result<_>>()?,
            trigger: bound.trigger,
        });
    }
    // What one of them may look for is what any of them has named.
    let mut named = plan.writes.clone();
    join(&mut named, plan.guards.clone());
    let parts = plan.programs.iter_mut().flat_map(|it| &mut it.steps);
    for action in parts.map(|part| &mut part.action).chain([&mut plan.action]) {
        if let Some(keys) = target(action).and_then(|target| target.foreign.as_mut())
            && let Some(keys) = Arc::get_mut(keys)
        {
            keys.name(&named);
        }
    }
    Ok(())
}

fn join(trees: &mut Vec<Tree>, more: Vec<Tree>) {
    for tree in more {
        if !trees.contains(&tree) {
            trees.push(tree);
        }
    }
}

fn target(action: &mut Action) -> Option<&mut TableWriter> {
    match action {
        Action::Insert(insert) => Some(&mut insert.target),
        Action::Update(update) => Some(&mut update.target),
        Action::Delete(delete) => Some(&mut delete.target),
        _ => None,
    }
}

impl Planner<'_, '_> {
    pub(super) fn view_change(
        &mut self,
        change: BoundViewChange,
    ) -> Result<(Action, Vec<OutputColumn>)> {
        let source = self.query(&change.source)?;
        let row = table_row(&change.table, change.id);
        // RETURNING calls the row that there is then: the new one where there is one.
        let other = (0..row.width()).map(|column| ColumnRef {
            source: usize::MAX,
            column,
        });
        let other = Layout::of_columns(other);
        let layout = match change.is_delete {
            true => row.join(&other),
            false => other.join(&row),
        };
        let mut rows = Vec::with_capacity(change.rows.len());
        for expr in &change.rows {
            rows.push(self.resolve_constant(expr)?);
        }
        let (returning, columns) = (change.returning.as_deref(), change.columns);
        let returning = self.called_for(source.rows, |this| {
            let all = returning.map(|exprs| this.resolve_all(exprs, &layout));
            all.transpose()
        })?;
        let change = ViewChange {
            view: change.table.name.clone(),
            source,
            rows,
            fires: change.fires,
            returning,
        };
        Ok((Action::ViewChange(Box::new(change)), columns))
    }
}
