//! What INSERT, UPDATE and DELETE do to a row: its table's constraints, indexes and triggers,
//! and what becomes of rows in the way.

use std::sync::Arc;

use super::Node;
use crate::bind::expr::Expr;
use crate::plan::foreign::ForeignKeys;
use crate::plan::trigger::{Firing, Timed};
use crate::schema::{ConflictAction, Index, Table};
use crate::value::Affinity;

/// The constraints of a table, bound over its *row*: rowid first, then all
/// columns in order (the rowid alias holds the rowid there).
#[derive(Debug)]
pub struct TableWriter {
    /// The table.
    pub table: Arc<Table>,
    /// DEFAULT of each column, for NOT NULL ON CONFLICT REPLACE.
    pub defaults: Vec<Option<Expr>>,
    /// Generated columns, each behind those that it reads.
    pub generated: Vec<GeneratedColumn>,
    /// CHECK constraints: label and condition; false is a violation, NULL is not.
    pub checks: Vec<(String, Expr)>,
    /// Whether it is STRICT or has CHECK or NOT NULL constraints.
    pub constrained: bool,
    /// Every index of the table, in the order of their checks.
    pub indexes: Vec<IndexWriter>,
    /// INSERT with ON CONFLICT clauses: how many of the indexes are checked before the
    /// rowid. Otherwise it comes first, or, where it replaces on its own account, last.
    pub rowid_after: Option<usize>,
    /// Where the table is sqlite_sequence: those whose sequences it shows.
    pub sequences: Vec<Arc<Table>>,
    /// What foreign keys ask.
    pub foreign: Option<Arc<ForeignKeys>>,
    /// The triggers that are fired, where there are any.
    pub triggers: Option<Box<Firing>>,
}

/// A generated column of a row that is written or read as a whole.
#[derive(Debug)]
pub struct GeneratedColumn {
    /// The column.
    pub column: usize,
    /// What computes it, over the table's row.
    pub expr: Expr,
    /// Then applied.
    pub affinity: Affinity,
    /// STORED
    pub stored: bool,
}

impl TableWriter {
    /// Whether all that a violation does is to undo the statement, which has this OR
    /// clause.
    pub fn only_aborts(&self, conflict: Option<ConflictAction>) -> bool {
        let aborts = |own: ConflictAction| conflict.unwrap_or(own) == ConflictAction::Abort;
        let mut nulls = self
            .table
            .columns
            .iter()
            .filter_map(|column| column.not_null);
        aborts(self.table.rowid_conflict)
            && self
                .table
                .indexes
                .iter()
                .all(|index| aborts(index.conflict))
            && nulls.all(aborts)
            && self.rowid_after.is_none()
    }

    /// The place in `indexes` of the table's index of this number.
    pub fn position(&self, number: usize) -> Option<usize> {
        let index = self.table.indexes.get(number)?;
        self.indexes
            .iter()
            .position(|i| Arc::ptr_eq(&i.index, index))
    }
}

/// How a row enters an index.
#[derive(Debug)]
pub struct IndexWriter {
    /// The index.
    pub index: Arc<Index>,
    /// Values of the key parts, over the table's row.
    pub key: Vec<Expr>,
    /// A partial index's condition, over the table's row.
    pub predicate: Option<Expr>,
    /// An UPDATE's assignments may change the key or the predicate.
    pub affected: bool,
}

/// INSERT.
#[derive(Debug)]
pub struct Insert {
    /// Target.
    pub target: TableWriter,
    /// The rows.
    pub source: Node,
    /// The new row's rowid over the source's row; None or NULL: allocate. A
    /// value that is no integer after affinity is a `datatype mismatch`.
    pub rowid: Option<Expr>,
    /// Every column over the source's row (ignored for the rowid alias); column
    /// affinity is still to be applied.
    pub values: Vec<Expr>,
    /// OR clause; None leaves each constraint its own.
    pub conflict: Option<ConflictAction>,
    /// ON CONFLICT clauses in order.
    pub upserts: Vec<Upsert>,
    /// Over the new row (rowid, columns).
    pub returning: Option<Vec<Expr>>,
    /// Nothing wants to see a row by itself; see `exec/dml/batch.rs`.
    pub by_batch: bool,
}

/// One ON CONFLICT clause.
#[derive(Debug)]
pub struct Upsert {
    /// Which constraint; None: any.
    pub target: Option<UpsertTarget>,
    /// None: DO NOTHING.
    pub update: Option<UpsertUpdate>,
}

/// The constraint of an ON CONFLICT clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsertTarget {
    /// The rowid.
    Rowid,
    /// A unique index, by position in `TableWriter::indexes`.
    Index(usize),
}

/// DO UPDATE. Expressions read the existing row followed by the excluded row,
/// both as rowid and columns.
#[derive(Debug)]
pub struct UpsertUpdate {
    /// Column (or `ROWID`) and its new value.
    pub assignments: Vec<(usize, Expr)>,
    /// The columns that change, for foreign keys; the rowid as its alias, where it has one.
    pub touched: Vec<usize>,
    /// WHERE.
    pub predicate: Option<Expr>,
    /// The triggers that it fires.
    pub fires: Timed,
}

/// UPDATE.
#[derive(Debug)]
pub struct Update {
    /// Target.
    pub target: TableWriter,
    /// Yields the old row: rowid, all columns, then what FROM adds.
    pub source: Node,
    /// Column and its new value over the source's row; affinity still to be
    /// applied.
    pub assignments: Vec<(usize, Expr)>,
    /// New rowid over the source's row, if the statement assigns it.
    pub rowid: Option<Expr>,
    /// The columns that change, for foreign keys; the rowid as its alias, where it has one.
    pub touched: Vec<usize>,
    /// OR clause.
    pub conflict: Option<ConflictAction>,
    /// Over the new row followed by what FROM adds.
    pub returning: Option<Vec<Expr>>,
    /// The source may yield a row several times, one after the other: the last counts.
    pub joins: bool,
    /// Nothing wants to see a row by itself; see `exec/dml/batch.rs`.
    pub by_batch: bool,
    /// Where the source's row says that large columns were left out; see `plan/kept.rs`.
    pub is_large: Option<usize>,
}

/// DELETE.
#[derive(Debug)]
pub struct Delete {
    /// Target.
    pub target: TableWriter,
    /// Yields the old row: rowid, all columns.
    pub source: Node,
    /// DELETE without WHERE and RETURNING: the source is a whole scan.
    pub whole_table: bool,
    /// Over the old row.
    pub returning: Option<Vec<Expr>>,
    /// Nothing wants to see a row by itself; see `exec/dml/batch.rs`.
    pub by_batch: bool,
}

/// INSERT, UPDATE or DELETE of a view.
#[derive(Debug)]
pub struct ViewChange {
    /// The view's name.
    pub view: String,
    /// The rows.
    pub source: Node,
    /// What the triggers see, over the source's row: OLD, then NEW, of each the rowid and
    /// all columns.
    pub rows: Vec<Expr>,
    /// The triggers.
    pub fires: Vec<usize>,
    /// Over what the triggers see.
    pub returning: Option<Vec<Expr>>,
}
