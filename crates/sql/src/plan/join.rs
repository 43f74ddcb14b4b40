//! Joins: placing the sources of a block one behind the other.
//!
//! Sources are placed left-deep, in the order and by the methods that the
//! [`order`](super::order) module chose: each step joins what is placed with one
//! more source by looking it up by key for each row, by hashing it, or by
//! replaying it. What stands before a RIGHT or FULL JOIN is a join of its own
//! ([`outer`](super::outer)).

use std::rc::Rc;
use std::sync::Arc;

use super::Planner;
use super::access::{self, Access, Path};
use super::arms::is_union_all;
use super::few::Few;
use super::generated;
use super::layout::Layout;
use super::order::{Condition, Item, Method, Order, Problem, Step, split_equality};
use super::physical::{Bound, JoinKind, Node, Op, Range, ScanColumn};
use super::properties::scan_columns;
use super::resolve::Rows;
use super::terms::{Says, Term, TermOp};
use super::weigh::{selectivity, share_kept};
use crate::bind::expr::{ColumnRef, Comparison, Expr, ExprKind};
use crate::bind::logical::{Source, SourceKind, TableCall};
use crate::error::{Error, Result};
use crate::schema::Table;

/// Rows assumed of a subquery that says nothing of itself.
pub const ROWS_UNKNOWN: f64 = 1000.0;

/// The joined sources.
pub struct Joined {
    /// The plan.
    pub node: Node,
    /// Its row.
    pub layout: Layout,
    /// The wanted order is there.
    pub ordered: bool,
}

impl Joined {
    /// The sources whose columns it has.
    pub fn sources(&self) -> Few<usize> {
        self.layout.sources()
    }
}

/// The sides of a hash join's equalities, and how each compares.
#[derive(Default)]
pub(super) struct HashKeys {
    pub left: Vec<Expr>,
    pub right: Vec<Expr>,
    pub comparisons: Vec<Comparison>,
}

impl Planner<'_, '_> {
    /// Sources that an expression reads.
    pub fn sources_of(&self, expr: &Expr) -> Few<usize> {
        let mut sources = Few::new();
        self.for_each_column(expr, &mut |column| {
            sources.insert(column.source);
        });
        sources
    }

    /// Joins the sources of a block, behind `joined`, and applies its movable conditions.
    pub fn join(
        &mut self,
        problem: &Problem<'_, '_>,
        order: &Order,
        mut joined: Option<Joined>,
    ) -> Result<Joined> {
        let mut applied = vec![false; problem.conditions.len()];
        let mut placed = problem.placed.clone();
        if let Some(Joined { node, layout, .. }) = joined {
            let node = self.late_conditions(problem, node, &layout, &placed, &mut applied)?;
            joined = Some(Joined {
                node,
                layout,
                ordered: false,
            });
        }
        for step in &order.steps {
            joined = Some(self.place(problem, joined, step, &mut placed, &mut applied)?);
        }
        joined.ok_or_else(|| Error::misuse("a join without sources"))
    }

    /// Rows of a source before any condition.
    pub fn source_rows(&mut self, source: &Source) -> f64 {
        match &source.kind {
            SourceKind::Table(table) => self.statistics.rows(&table.tree).max(1) as f64,
            SourceKind::Query(query) => self.rows_of_query(query),
            SourceKind::Recursive(_) => self.rows_recursing(source),
            SourceKind::Function(call) => call.function.rows_estimate(),
        }
    }

    /// Joins what is placed with the source of a step. The source's conditions that
    /// nothing else answers are applied as deep as they can be.
    fn place(
        &mut self,
        problem: &Problem<'_, '_>,
        before: Option<Joined>,
        step: &Step,
        placed: &mut Few<usize>,
        applied: &mut [bool],
    ) -> Result<Joined> {
        let item = problem
            .items
            .get(step.item)
            .ok_or_else(|| Error::misuse("no such source"))?;
        let (id, kind) = (item.source.id, item.kind);
        let (chosen, keys): (_, &[usize]) = match &step.method {
            Method::Lookup(chosen) | Method::Replay(chosen) => (chosen, &[]),
            Method::Hash(chosen, keys) => (chosen, keys),
        };
        let whole = match before {
            None => self.whole_to_hash(problem, item, &chosen.access),
            Some(_) => None,
        };
        let access = whole.as_ref().unwrap_or(&chosen.access);
        let mut done = answered_by(&access.path);
        let mut bindings = Vec::new();
        let columns = self.columns_left(problem.items, problem.conditions, step.item, &done);
        let (columns, computed) = generated::split(item.source, &access.path, columns);
        done.extend(keys.iter().copied());
        let mut left = conditions_left(problem, step.item, placed, applied, done)?;
        let (behind, own) = (before.as_ref(), &mut left.own);
        let (right, of_right) =
            self.source_node(item, access, &columns, behind, &mut bindings, own)?;
        let (right, of_right) = self.generated(id, right, of_right, &computed, &mut left.own)?;
        let Some(before) = before else {
            placed.insert(id);
            left.own.extend(left.cross);
            let joined = self.keyed(&access.path, right, of_right, left.own)?;
            return Ok(Joined {
                ordered: access.ordered,
                ..joined
            });
        };
        let right = self.filtered(right, left.own, &of_right)?;
        let cross = left.cross;
        let layout = match kind.yields_right() {
            true => before.layout.join(&of_right),
            false => before.layout.clone(),
        };
        let rows = match kind.takes_one() {
            true => before.node.rows * share_kept(kind),
            false => before.node.rows.max(right.rows),
        };
        let width = layout.width();
        let op = match &step.method {
            Method::Hash(..) => {
                let keys = self.hash_keys(problem, step, placed, &before.layout, &of_right)?;
                let kept = self.kept_hashed(&right);
                let condition = match cross.is_empty() {
                    true => None,
                    false => {
                        let pair = before.layout.join(&of_right);
                        self.called_for(rows, |this| this.all_of(cross, &pair))?
                    }
                };
                Op::HashJoin {
                    left: Box::new(before.node),
                    right: Box::new(right),
                    kind,
                    left_keys: keys.left,
                    right_keys: keys.right,
                    comparisons: keys.comparisons,
                    condition,
                    kept,
                }
            }
            Method::Lookup(_) | Method::Replay(_) => self.nested_loop(
                before.node,
                right,
                kind,
                (&before.layout, &of_right),
                cross,
                bindings,
            )?,
        };
        placed.insert(id);
        let mut node = Node { op, width, rows };
        if matches!(kind, JoinKind::Left | JoinKind::Single) {
            node = self.late_conditions(problem, node, &layout, placed, applied)?;
        }
        if let Some(not_in) = &item.not_in {
            node = self.without_unknown(node, not_in, &layout)?;
        }
        Ok(Joined {
            node,
            layout,
            ordered: before.ordered,
        })
    }

    /// The two sides of the equalities that a hash join goes by. `placed` are the sources
    /// on its left.
    fn hash_keys(
        &mut self,
        problem: &Problem<'_, '_>,
        step: &Step,
        placed: &Few<usize>,
        left: &Layout,
        right: &Layout,
    ) -> Result<HashKeys> {
        let Method::Hash(_, conditions) = &step.method else {
            return Err(Error::misuse("not a hash join"));
        };
        let (own, list) = (
            Few::from([problem.id(step.item)]),
            problem.applicable(step.item),
        );
        let mut keys = HashKeys::default();
        for at in conditions {
            let condition = list
                .get(*at)
                .ok_or_else(|| Error::misuse("no such condition"))?;
            let sources = |e: &Expr| self.sources_of(e);
            let (l, r, comparison) = split_equality(&condition.expr, &own, placed, &sources)
                .ok_or_else(|| Error::misuse("not a hash condition"))?;
            keys.left.push(self.resolve(l, left)?);
            keys.right.push(self.resolve(r, right)?);
            keys.comparisons.push(comparison);
        }
        Ok(keys)
    }

    /// The columns of an item that are read once its path has answered the
    /// conditions in `done`.
    pub(super) fn columns_left(
        &self,
        items: &[Item<'_>],
        conditions: &[Condition],
        item: usize,
        done: &Few<usize>,
    ) -> Few<usize> {
        let Some(this) = items.get(item) else {
            return Few::new();
        };
        let id = this.source.id;
        let mut columns = Vec::new();
        let others = items.iter().enumerate();
        let lists = std::iter::once((conditions, this.on.is_none()))
            .chain(others.filter_map(|(i, other)| other.on.as_deref().map(|on| (on, i == item))));
        for (list, answered) in lists {
            for (at, condition) in list.iter().enumerate() {
                if !(answered && done.contains(&at)) {
                    self.for_each_column(&condition.expr, &mut |read| {
                        if read.source == id {
                            columns.push(read.column);
                        }
                    });
                }
            }
        }
        columns.extend(&this.shown);
        columns.into_iter().collect()
    }

    /// WHERE conditions above what is placed, where no more sources are needed for them.
    fn late_conditions(
        &mut self,
        problem: &Problem<'_, '_>,
        node: Node,
        layout: &Layout,
        placed: &Few<usize>,
        applied: &mut [bool],
    ) -> Result<Node> {
        let mut late = Vec::new();
        for (condition, applied) in problem.conditions.iter().zip(applied) {
            let is_due = condition.movable && !condition.implied && !*applied;
            if is_due && condition.sources.is_subset(placed) {
                *applied = true;
                late.push(condition.expr.clone());
            }
        }
        self.filtered(node, late, layout)
    }

    /// What reads a source. Of the conditions on it alone, those go that it fulfils itself.
    fn source_node(
        &mut self,
        item: &Item<'_>,
        access: &Access,
        columns: &Few<usize>,
        before: Option<&Joined>,
        bindings: &mut Vec<(usize, Expr)>,
        conditions: &mut Vec<Expr>,
    ) -> Result<(Node, Layout)> {
        let id = item.source.id;
        let table = match &item.source.kind {
            SourceKind::Query(query) => {
                let node = match self.common_rows(item.source, query, conditions)? {
                    Some(node) => node,
                    None => {
                        self.any_order = item.any_order;
                        crate::stack::grow(|| match is_union_all(query) {
                            true => self.union_all(query, id, conditions),
                            false => {
                                let pushed = self.pushed(query, id, conditions);
                                self.query_where(query, pushed)
                            }
                        })?
                    }
                };
                let columns = (0..node.width).map(|column| ColumnRef { source: id, column });
                let layout = Layout::of_columns(columns);
                return Ok((node, layout));
            }
            SourceKind::Recursive(width) => return self.recursive_rows(item.source, *width),
            SourceKind::Function(call) => {
                return self.call_node(id, call, columns, before, bindings);
            }
            SourceKind::Table(table) => table.clone(),
        };
        self.reads(&table.tree);
        let covered = match &access.path {
            Path::Index {
                index, covering, ..
            } => *covering || access::covers(index, columns.iter().copied()),
            _ => false,
        };
        let columns = match covered {
            true => scan_columns(columns, &Few::new()),
            false => scan_columns(columns, &item.properties),
        };
        let layout = Layout::of_table(id, &columns);
        let empty = Layout::default();
        let left = before.map_or(&empty, |b| &b.layout);
        let mut rows = Rows::Registers(left, bindings);
        let op = self.table_op(&table, columns, access, &mut rows)?;
        Ok((
            Node {
                width: layout.width(),
                op,
                rows: access.rows,
            },
            layout,
        ))
    }

    /// What reads these columns of a table the way that was chosen.
    fn table_op(
        &mut self,
        table: &Arc<Table>,
        columns: Vec<ScanColumn>,
        access: &Access,
        rows: &mut Rows<'_>,
    ) -> Result<Op> {
        let reverse = access.reverse;
        Ok(match &access.path {
            Path::Scan { low, high } => {
                let range = self.range(low.as_deref(), high.as_deref(), rows)?;
                Op::TableScan {
                    table: Arc::clone(table),
                    columns,
                    range,
                    reverse,
                }
            }
            Path::Call => return Err(Error::misuse("a table is no function")),
            Path::Either(arms) => {
                let mut inputs = Vec::with_capacity(arms.len());
                for arm in arms {
                    let rowid = vec![ScanColumn::Rowid];
                    inputs.push(Node {
                        op: self.table_op(table, rowid, arm, rows)?,
                        width: 1,
                        rows: arm.rows,
                    });
                }
                Op::RowidUnion {
                    table: Arc::clone(table),
                    columns,
                    inputs,
                }
            }
            Path::Rowid(term) => {
                let keys = self.values(term, rows)?;
                Op::RowidLookup {
                    table: Arc::clone(table),
                    columns,
                    keys,
                    reverse,
                }
            }
            Path::Index {
                index,
                equal,
                low,
                high,
                covering,
                ..
            } => {
                self.reads(&index.tree);
                let mut parts: Vec<(TermOp, Vec<Expr>)> = Vec::with_capacity(equal.len());
                for term in equal {
                    parts.push((term.op, self.values(term, rows)?));
                }
                let (prefixes, null_matches) = access::prefixes(parts);
                let range = self.range(low.as_deref(), high.as_deref(), rows)?;
                // What only conditions read that the path answers is not read any more.
                let left = columns.iter().map(|column| column.number());
                let covering = *covering || access::covers(index, left);
                let index = index.clone();
                Op::IndexScan {
                    table: Arc::clone(table),
                    index,
                    columns,
                    covering,
                    prefixes,
                    null_matches,
                    range,
                    reverse,
                    firsts: 0,
                    gathered: false,
                }
            }
        })
    }

    /// A call of a table-valued function with what its arguments read on its left.
    fn call_node(
        &mut self,
        id: usize,
        call: &TableCall,
        columns: &Few<usize>,
        before: Option<&Joined>,
        bindings: &mut Vec<(usize, Expr)>,
    ) -> Result<(Node, Layout)> {
        let columns: Vec<usize> = columns.iter().copied().collect();
        let refs = columns.iter().map(|column| ColumnRef {
            source: id,
            column: *column,
        });
        let layout = Layout::of_columns(refs);
        let empty = Layout::default();
        let left = before.map_or(&empty, |b| &b.layout);
        let mut rows = Rows::Registers(left, bindings);
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            let arg = arg.as_ref().map(|e| self.resolve_rows(e, &mut rows));
            args.push(arg.transpose()?);
        }
        let function = call.function.clone();
        self.pragmas.extend_from_slice(function.asks());
        let node = Node {
            rows: function.rows_estimate(),
            width: columns.len(),
            op: Op::TableFunction {
                function,
                args,
                columns,
            },
        };
        Ok((node, layout))
    }

    fn values(&mut self, term: &Term, rows: &mut Rows<'_>) -> Result<Vec<Expr>> {
        term.values
            .iter()
            .map(|v| self.resolve_rows(v, rows))
            .collect()
    }

    fn range<'t>(
        &mut self,
        low: Option<&'t Term>,
        high: Option<&'t Term>,
        rows: &mut Rows<'_>,
    ) -> Result<Range> {
        let mut bound = |value: Option<&Expr>, inclusive| -> Result<Option<Bound>> {
            let expr = value.map(|value| self.resolve_rows(value, rows));
            Ok(expr.transpose()?.map(|expr| Bound { expr, inclusive }))
        };
        if let Some([low, high]) = low.and_then(Term::prefix) {
            return Ok(Range {
                low: bound(Some(low), true)?,
                high: bound(Some(high), false)?,
                blobs: true,
            });
        }
        let value = |term: Option<&'t Term>| term.and_then(|term| term.values.first());
        let is_inclusive = |term: Option<&Term>| {
            let op = term.map(|term| term.op);
            matches!(
                op,
                Some(TermOp::Lower { inclusive: true } | TermOp::Upper { inclusive: true })
            )
        };
        Ok(Range {
            low: bound(value(low), is_inclusive(low))?,
            high: bound(value(high), is_inclusive(high))?,
            blobs: false,
        })
    }

    /// A filter above a node, where there is anything to filter by.
    pub fn filtered(
        &mut self,
        input: Node,
        conditions: Vec<Expr>,
        layout: &Layout,
    ) -> Result<Node> {
        let share: f64 = conditions.iter().map(selectivity).product();
        let predicate = self.called_for(input.rows, |this| this.all_of(conditions, layout))?;
        let Some(predicate) = predicate else {
            return Ok(input);
        };
        let (width, rows) = (input.width, (input.rows * share).max(0.1));
        Ok(Node {
            op: Op::Filter {
                input: Box::new(input),
                predicate,
            },
            width,
            rows,
        })
    }

    pub(super) fn all_of(
        &mut self,
        conditions: Vec<Expr>,
        layout: &Layout,
    ) -> Result<Option<Expr>> {
        let mut all = conjunction(conditions);
        if let Some(all) = &mut all {
            self.resolve_condition(all, &mut Rows::Input(layout))?;
        }
        Ok(all)
    }
}

/// All of them, if there are any.
pub(super) fn conjunction(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr::operator(ExprKind::And(conditions))),
    }
}

/// The conditions that a path answers wholly, by their places in their list.
fn answered_by(path: &Path) -> Few<usize> {
    let terms = path.terms();
    let is_answered = |term: &&Rc<Term>| match term.says {
        Says::Whole => true,
        Says::Half => {
            let halves = terms.iter().filter(|it| it.condition == term.condition);
            halves.filter(|it| it.says == Says::Half).count() == 2
        }
        Says::Part => false,
    };
    let answered = terms.iter().copied().filter(is_answered);
    let answered = answered.map(|term| term.condition);
    answered.chain(path.said()).collect()
}

/// Conditions that a source's path and method leave to be looked at.
struct ConditionsLeft {
    /// On the source alone: they belong right above it.
    own: Vec<Expr>,
    /// On it and what was placed before.
    cross: Vec<Expr>,
}

/// Those of an item's conditions that are not `done` and can be applied now; what has
/// been, and is now, is noted in `applied`. The conditions of an outer join are its own
/// and must all be.
fn conditions_left(
    problem: &Problem<'_, '_>,
    item: usize,
    placed: &Few<usize>,
    applied: &mut [bool],
    mut done: Few<usize>,
) -> Result<ConditionsLeft> {
    let id = problem.id(item);
    let outer = problem.items.get(item).is_some_and(|i| i.on.is_some());
    let (mut own, mut cross) = (Vec::new(), Vec::new());
    for (at, condition) in problem.applicable(item).iter().enumerate() {
        let already = !outer && applied.get(at).copied().unwrap_or(false);
        let is_left_out = condition.implied || (!condition.movable && !outer);
        if already || done.contains(&at) || is_left_out {
            continue;
        }
        let mut sources = condition.sources.iter();
        if condition.movable && sources.clone().all(|s| *s == id) {
            own.push(condition.expr.clone());
        } else if sources.all(|s| *s == id || placed.contains(s)) {
            cross.push(condition.expr.clone());
        } else if outer {
            return Err(Error::sql("ON clause references tables to its right"));
        } else {
            continue;
        }
        done.insert(at);
    }
    if !outer {
        for at in done {
            if let Some(flag) = applied.get_mut(at) {
                *flag = true;
            }
        }
    }
    Ok(ConditionsLeft { own, cross })
}
