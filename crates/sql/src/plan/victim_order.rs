//! The order in which UPDATE and DELETE work on their rows, where it shows: in what
//! RETURNING yields, in which of two rows REPLACE leaves, in whether a duplicate is only
//! met because the row that holds the value comes later.
//!
//! SQLite changes rows while it finds them, in the order of the scan, where nothing of
//! the statement can disturb the scan; otherwise it notes the rowids first and goes
//! through them in their order (`eOnePass` in its update.c and delete.c). So do we.
//!
//! Where it shows nowhere, rows that an index finds are gone through as they lie in the
//! table, some at a time.

use super::physical::{Node, Op, ScanColumn, TableWriter};
use crate::bind::expr::{Expr, ExprKind, Props, SortKey};
use crate::bind::logical::{Body, Query};
use crate::schema::ConflictAction;
use crate::value::Collation;

/// Rows from which on it is worth it to fetch them as they lie.
const GATHERED_MIN: f64 = 64.0;

/// What of an UPDATE decides.
pub struct Changes<'u> {
    /// Its source, as it is bound: rowid first.
    pub query: &'u Query,
    /// How it writes.
    pub writer: &'u TableWriter,
    /// Whether it assigns the rowid.
    pub rowid: bool,
    /// OR clause.
    pub conflict: Option<ConflictAction>,
    /// Whether it has RETURNING.
    pub returning: bool,
}

impl Changes<'_> {
    /// Whether rows of other tables may name one of the target's several times. The last of
    /// them counts.
    pub fn joins(&self) -> bool {
        match &self.query.body {
            Body::Block(block) => block.sources.len() > 1,
            _ => true,
        }
    }

    /// The source, in order of the rowids where that is due.
    pub fn ordered(&self, source: Node) -> Node {
        if self.joins() || self.shows() && self.is_collected(&source) {
            by_rowid(source)
        } else {
            source
        }
    }

    /// The source of an UPDATE that changes no index and shows no row by itself: what an
    /// index finds of it comes in whatever order is the fastest.
    pub fn gathered(&self, source: Node) -> Node {
        match self.shows() {
            true => source,
            false => gathered(self.query, source),
        }
    }

    /// Whether another order could give another result.
    fn shows(&self) -> bool {
        let mut indexes = self.writer.indexes.iter();
        let mut columns = self.writer.table.columns.iter();
        self.returning
            || self.rowid
            || self.writer.foreign.is_some()
            || self.writer.triggers.is_some()
            || self.conflict == Some(ConflictAction::Fail)
            || columns.any(|c| c.not_null == Some(ConflictAction::Fail))
            || indexes.any(|i| i.affected && i.index.unique)
    }

    /// Whether SQLite notes the rowids first.
    fn is_collected(&self, source: &Node) -> bool {
        let Body::Block(block) = &self.query.body else {
            return true;
        };
        let scanned = match scan(source) {
            Op::IndexScan { index, .. } => Some(&index.name),
            _ => None,
        };
        let mut indexes = self.writer.indexes.iter();
        self.returning
            || self.rowid
            || self.writer.foreign.is_some()
            || self.writer.triggers.is_some()
            || self.may_replace()
            || block.filter.iter().any(calls_subquery)
            || indexes.any(|i| i.affected && Some(&i.index.name) == scanned)
    }

    fn may_replace(&self) -> bool {
        match self.conflict {
            Some(action) => action == ConflictAction::Replace,
            None => {
                let mut changed = self.writer.indexes.iter().filter(|i| i.affected);
                changed.any(|i| i.index.conflict == ConflictAction::Replace)
            }
        }
    }
}

/// The source of a DELETE, bound as `query`, that shows no row by itself, as
/// [`Changes::gathered`] has that of an UPDATE.
pub fn gathered(query: &Query, mut source: Node) -> Node {
    if source.rows >= GATHERED_MIN && is_silent(query) {
        gather(&mut source);
    }
    source
}

/// Whether neither the rows that are found nor what is assigned tells of an order, by
/// calls that give another answer each time or by errors.
fn is_silent(query: &Query) -> bool {
    let is_silent = |props: &Props| props.deterministic && !props.fallible;
    let Body::Block(block) = &query.body else {
        return false;
    };
    let mut columns = query.columns.iter().map(|column| &column.props);
    let mut filter = block.filter.iter().map(|filter| &filter.props);
    columns.all(is_silent) && filter.all(is_silent)
}

/// Lets an index scan, if that yields the rows, fetch them as they lie.
fn gather(node: &mut Node) {
    match &mut node.op {
        Op::Project { input, .. } | Op::Filter { input, .. } | Op::Generate { input, .. } => {
            gather(input)
        }
        Op::IndexScan {
            gathered, covering, ..
        } => *gathered = !*covering,
        _ => {}
    }
}

/// A source of rows that begin with their rowid, in the order of these.
pub fn by_rowid(source: Node) -> Node {
    if is_by_rowid(scan(&source)) || is_scanned(&source, 0) {
        return source;
    }
    let rowid = SortKey {
        expr: Expr::input(0, Props::column(None, None)),
        collation: Collation::Binary,
        descending: false,
        nulls_first: true,
    };
    Node {
        width: source.width,
        rows: source.rows,
        op: Op::Sort {
            input: Box::new(source),
            keys: vec![rowid],
            top: None,
        },
    }
}

/// Whether rows come in order of their rowids, or there is one at most.
fn is_by_rowid(scan: &Op) -> bool {
    match scan {
        Op::TableScan { reverse, .. } | Op::RowidLookup { reverse, .. } => !reverse,
        Op::IndexScan {
            index,
            prefixes,
            null_matches,
            ..
        } => {
            let is_whole = |prefix: &Vec<Expr>| prefix.len() == index.columns.len();
            index.unique
                && prefixes.len() == 1
                && prefixes.iter().all(is_whole)
                && !null_matches.contains(&true)
        }
        _ => false,
    }
}

/// Whether a column is the rowid of a table that is scanned, in that order, as the outermost
/// of a join.
fn is_scanned(node: &Node, column: usize) -> bool {
    match &node.op {
        Op::Project { input, exprs } => match exprs.get(column).map(|expr| &expr.kind) {
            Some(ExprKind::Input(column)) => is_scanned(input, *column),
            _ => false,
        },
        Op::Filter { input, .. } => is_scanned(input, column),
        Op::Generate { input, .. } => column < input.width && is_scanned(input, column),
        Op::NestedLoopJoin { left, .. } | Op::HashJoin { left, .. } => {
            column < left.width && is_scanned(left, column)
        }
        Op::TableScan {
            columns, reverse, ..
        } => !reverse && matches!(columns.get(column), Some(ScanColumn::Rowid)),
        _ => false,
    }
}

/// What yields the rows of a source over one table.
fn scan(node: &Node) -> &Op {
    match &node.op {
        Op::Project { input, .. } | Op::Filter { input, .. } | Op::Generate { input, .. } => {
            scan(input)
        }
        op => op,
    }
}

fn calls_subquery(expr: &Expr) -> bool {
    let mut found = matches!(
        expr.kind,
        ExprKind::Exists(_)
            | ExprKind::ScalarSubquery { .. }
            | ExprKind::InSubquery { .. }
            | ExprKind::WithRow { .. }
    );
    let each = &mut |child: &Expr| found = found || calls_subquery(child);
    expr.kind.for_each_child(each);
    found
}
