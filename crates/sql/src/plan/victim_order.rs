//! The order in which UPDATE and DELETE work on their rows, where it shows: in what
//! RETURNING yields, in which of two rows REPLACE leaves, in whether a duplicate is only
//! met because the row that holds the value comes later.
//!
//! SQLite changes rows while it finds them, in the order of the scan, where nothing of
//! the statement can disturb the scan; otherwise it notes the rowids first and goes
//! through them in their order (`eOnePass` in its update.c and delete.c). So do we. Rows of
//! a WITHOUT ROWID table lie in the order of their keys there, which stands for that of
//! rowids.
//!
//! Where it shows nowhere, rows that an index finds are gone through as they lie in the
//! table, some at a time.

use super::physical::{Node, Op, ScanColumn, TableWriter};
use crate::bind::expr::{Expr, ExprKind, Props, SortKey};
use crate::bind::logical::{Body, Query};
use crate::schema::{ConflictAction, Index, IndexTarget, Table};
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

    /// The source, in order of the rowids or keys where that is due.
    pub fn ordered(&self, source: Node) -> Node {
        if self.joins() || self.shows() && self.is_collected(&source) {
            as_stored(source, &self.writer.table)
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

    /// Whether SQLite notes the rowids first, or goes through the table as it lies there.
    fn is_collected(&self, source: &Node) -> bool {
        let Body::Block(block) = &self.query.body else {
            return true;
        };
        let scanned = match scan(source) {
            Op::IndexScan { index, .. } => Some(&index.name),
            _ => None,
        };
        let mut indexes = self.writer.indexes.iter();
        let scans = self.writer.table.without_rowid && scanned.is_none();
        scans
            || self.returning
            || self.rowid
            || self.changes_key()
            || self.writer.foreign.is_some()
            || self.writer.triggers.is_some()
            || self.may_replace()
            || block.filter.iter().any(calls_subquery)
            || indexes.any(|i| i.affected && Some(&i.index.name) == scanned)
    }

    /// Whether rows of a WITHOUT ROWID table may get other keys.
    fn changes_key(&self) -> bool {
        let key = self.writer.table.key().map(|key| &key.name);
        let mut changed = self.writer.indexes.iter().filter(|i| i.affected);
        changed.any(|i| Some(&i.index.name) == key)
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

/// A source of rows of a table, rowid and all columns first, in the order in which SQLite
/// stores them.
pub fn as_stored(source: Node, table: &Table) -> Node {
    match table.key() {
        None => by_rowid(source),
        Some(key) => by_key(source, key),
    }
}

/// The same in the order of a primary key.
fn by_key(source: Node, key: &Index) -> Node {
    let is_in_order = match scan(&source) {
        Op::IndexScan { index, reverse, .. } => index.name == key.name && !reverse,
        _ => false,
    };
    if is_in_order || is_one(scan(&source)) {
        return source;
    }
    let parts = key.columns.iter().filter_map(|part| match part.target {
        IndexTarget::Column(at) => Some(SortKey {
            expr: Expr::input(1 + at, Props::column(part.affinity, None)),
            collation: part.collation,
            descending: part.descending,
            nulls_first: !part.descending,
        }),
        IndexTarget::Rowid | IndexTarget::Expr(_) => None,
    });
    sorted(source, parts.collect())
}

fn by_rowid(source: Node) -> Node {
    if is_by_rowid(scan(&source)) || is_scanned(&source, 0) {
        return source;
    }
    let rowid = SortKey {
        expr: Expr::input(0, Props::column(None, None)),
        collation: Collation::Binary,
        descending: false,
        nulls_first: true,
    };
    sorted(source, vec![rowid])
}

fn sorted(source: Node, keys: Vec<SortKey>) -> Node {
    Node {
        width: source.width,
        rows: source.rows,
        op: Op::Sort {
            input: Box::new(source),
            keys,
            top: None,
        },
    }
}

/// Whether rows come in order of their rowids, or there is one at most.
fn is_by_rowid(scan: &Op) -> bool {
    match scan {
        Op::TableScan { reverse, .. } | Op::RowidLookup { reverse, .. } => !reverse,
        op => is_one(op),
    }
}

/// Whether there is one row at most, which a unique index finds.
fn is_one(scan: &Op) -> bool {
    match scan {
        Op::IndexScan {
            index,
            prefixes,
            null_matches,
            ..
        } => {
            let is_whole = |prefix: &Vec<Expr>| {
                prefix.len() == index.columns.len() && !prefix.iter().any(Expr::is_many)
            };
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
