//! Bound logical plans: query blocks with their sources and conditions.
//!
//! Expressions name columns by (source, column); sources are numbered through
//! the whole statement. A block is what one SELECT says, not how to run it: the
//! planner chooses the order of its sources, their access paths and where each
//! condition is applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use fulgurite_store::Tree;

use super::BoundStatement;
use super::expr::{AggregateCall, Expr, Props, Register, SortKey, Windowing};
use crate::error::Error;
use crate::func::table::TableFunction;
use crate::plan::foreign::{ChildKey, Reference};
use crate::plan::physical::{CompoundOp, LimitClause, OutputColumn, UpsertTarget};
use crate::plan::trigger::{Firing, Timed};
use crate::schema::{ConflictAction, Table, Trigger};
use crate::value::{Affinity, Collation};

/// A query with its order and limit.
#[derive(Debug)]
pub struct Query {
    /// What yields the rows.
    pub body: Body,
    /// Result columns.
    pub columns: Vec<QueryColumn>,
    /// ORDER BY: over the block's sources, or, for a compound, over its result
    /// row (`ExprKind::Input`).
    pub order_by: Vec<SortKey>,
    /// LIMIT and OFFSET.
    pub limit: Option<LimitClause>,
}

/// A result column of a query.
#[derive(Debug, Clone)]
pub struct QueryColumn {
    /// Name, declared type, origin.
    pub output: OutputColumn,
    /// What an enclosing query may know of it.
    pub props: Props,
}

/// What yields a query's rows.
#[derive(Debug)]
pub enum Body {
    /// A SELECT.
    Block(Box<Block>),
    /// VALUES.
    Values(Vec<Vec<Expr>>),
    /// A compound of two.
    Compound {
        /// Operator.
        op: CompoundOp,
        /// Left.
        left: Box<Query>,
        /// Right.
        right: Box<Query>,
        /// How texts compare, a column each.
        collations: Vec<Collation>,
    },
    /// A recursive common table expression.
    Recursion(Box<Recursion>),
}

/// A recursive common table expression. Its query's ORDER BY is the order in which rows
/// leave the queue.
#[derive(Debug)]
pub struct Recursion {
    /// Its name.
    pub name: String,
    /// The number of the source that is one row of the queue to its members.
    pub source: usize,
    /// What fills the queue.
    pub initial: Query,
    /// What makes more rows of each row of the queue.
    pub members: Vec<Query>,
    /// UNION: each row counts once; how texts compare, a column each.
    pub distinct: Option<Vec<Collation>>,
    /// The affinities of its columns.
    pub affinities: Vec<Option<Affinity>>,
}

/// One SELECT.
#[derive(Debug, Default)]
pub struct Block {
    /// FROM in order of the text.
    pub sources: Vec<Source>,
    /// Conjuncts of WHERE and of the ON clauses of inner joins.
    pub filter: Vec<Expr>,
    /// GROUP BY and aggregates.
    pub aggregation: Option<Aggregation>,
    /// HAVING's conjuncts.
    pub having: Vec<Expr>,
    /// Windows in order of their first calls.
    pub windows: Vec<Windowing>,
    /// Result expressions.
    pub outputs: Vec<Expr>,
    /// DISTINCT and how the results compare.
    pub distinct: Option<Vec<Collation>>,
}

/// GROUP BY and aggregates of a block.
#[derive(Debug)]
pub struct Aggregation {
    /// GROUP BY.
    pub keys: Vec<(Expr, Collation)>,
    /// Aggregates by number.
    pub calls: Vec<AggregateCall>,
}

/// A source of a block.
#[derive(Debug)]
pub struct Source {
    /// Its number.
    pub id: usize,
    /// Name for EXPLAIN.
    pub alias: String,
    /// What it is.
    pub kind: SourceKind,
    /// It is the right side of an outer join.
    pub outer: Option<OuterJoin>,
    /// CROSS JOIN: stays behind those before it.
    pub fixed: bool,
    /// INDEXED BY.
    pub index_hint: IndexHint,
    /// Its partial indexes, where it is a table.
    pub partial: Vec<Partial>,
    /// The parts of its indexes' keys that are no columns.
    pub computed: Vec<KeyExpr>,
    /// Its generated columns.
    pub generated: Vec<Generated>,
    /// The common table expression that it is, by number, where its rows may be those of
    /// other sources.
    pub common: Option<usize>,
}

impl Source {
    /// One that is joined with those before it as all are, and has no indexes.
    pub fn new(id: usize, alias: String, kind: SourceKind) -> Self {
        Self {
            id,
            alias,
            kind,
            outer: None,
            fixed: false,
            index_hint: IndexHint::Any,
            partial: Vec::new(),
            computed: Vec::new(),
            generated: Vec::new(),
            common: None,
        }
    }

    /// The arguments, where it is a table-valued function.
    pub fn args(&self) -> impl Iterator<Item = &Expr> {
        let args = match &self.kind {
            SourceKind::Function(call) => call.args.as_slice(),
            _ => &[],
        };
        args.iter().flatten()
    }

    /// It is the right side of a RIGHT or FULL JOIN.
    pub fn keeps_right(&self) -> bool {
        self.outer.as_ref().is_some_and(|o| o.kind.keeps_right())
    }
}

/// How a source is joined with all sources before it.
#[derive(Debug)]
pub struct OuterJoin {
    /// Which rows it keeps.
    pub kind: OuterKind,
    /// ON's conjuncts.
    pub on: Vec<Expr>,
    /// Conjuncts of the inner joins among the sources before it, which hold before any of
    /// their rows becomes NULL. Empty for LEFT, where they can as well come later.
    pub before: Vec<Expr>,
}

/// The side of an outer join whose rows it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OuterKind {
    /// LEFT: those before the source.
    Left,
    /// RIGHT: the source's.
    Right,
    /// FULL: both.
    Full,
}

impl OuterKind {
    /// The one that keeps the rows of these sides, if it keeps any.
    pub fn keeping(left: bool, right: bool) -> Option<OuterKind> {
        match (left, right) {
            (false, false) => None,
            (true, false) => Some(OuterKind::Left),
            (false, true) => Some(OuterKind::Right),
            (true, true) => Some(OuterKind::Full),
        }
    }

    /// LEFT and FULL.
    pub fn keeps_left(self) -> bool {
        self != OuterKind::Right
    }

    /// RIGHT and FULL.
    pub fn keeps_right(self) -> bool {
        self != OuterKind::Left
    }
}

/// A generated column of a table.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The column.
    pub column: usize,
    /// What computes it, over the source; the column's affinity is still to be applied.
    pub expr: Expr,
    /// The columns that it reads, the rowid's alias as `ROWID`.
    pub reads: BTreeSet<usize>,
    /// The column's.
    pub affinity: Affinity,
    /// STORED
    pub stored: bool,
}

/// A part of an index's key that is an expression.
#[derive(Debug, Clone)]
pub struct KeyExpr {
    /// The index's number in the table.
    pub index: usize,
    /// The part's place in the key.
    pub part: usize,
    /// The expression over the source.
    pub expr: Expr,
}

/// A partial index and the rows it holds.
#[derive(Debug)]
pub struct Partial {
    /// Its number in the table.
    pub index: usize,
    /// Its WHERE, over the source.
    pub conditions: Vec<Expr>,
}

/// INDEXED BY and NOT INDEXED.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IndexHint {
    /// Any.
    #[default]
    Any,
    /// NOT INDEXED.
    None,
    /// INDEXED BY.
    Named(String),
}

/// What a source is.
#[derive(Debug)]
pub enum SourceKind {
    /// A table.
    Table(Arc<Table>),
    /// A subquery; column i of the source is its result column i.
    Query(Arc<Query>),
    /// A recursive common table expression within itself, with so many columns.
    Recursive(usize),
    /// A table-valued function.
    Function(Box<TableCall>),
}

/// A call of a table-valued function.
#[derive(Debug)]
pub struct TableCall {
    /// The function.
    pub function: Arc<dyn TableFunction>,
    /// What its hidden columns are, as far as it is given: over the block's sources.
    pub args: Vec<Option<Expr>>,
}

/// A subquery that an expression calls.
#[derive(Debug)]
pub struct LogicalSubquery {
    /// Its query.
    pub query: Query,
    /// What the caller's row hands in.
    pub bindings: Vec<(Register, Expr)>,
    /// May be kept while the bindings are the same.
    pub cacheable: bool,
}

/// The constraints of a table that is written, bound over its source `id`.
#[derive(Debug)]
pub struct BoundTarget {
    /// The table.
    pub table: Arc<Table>,
    /// The number that stands for the table's row in the expressions below.
    pub id: usize,
    /// Each column's DEFAULT.
    pub defaults: Vec<Option<Expr>>,
    /// Generated columns, each behind those that it reads.
    pub generated: Vec<Generated>,
    /// CHECK constraints.
    pub checks: Vec<(String, Expr)>,
    /// Key expressions and predicate of each index.
    pub indexes: Vec<(Vec<Expr>, Option<Expr>)>,
    /// Where the table is sqlite_sequence: those whose sequences it shows.
    pub sequences: Vec<Arc<Table>>,
    /// What foreign keys ask.
    pub foreign: Option<Box<BoundForeign>>,
    /// The triggers that are fired, where there are any.
    pub triggers: Option<Box<Firing>>,
}

/// What foreign keys ask of a statement; see `plan::foreign`.
#[derive(Debug)]
pub struct BoundForeign {
    /// The statement's table first.
    pub tables: Vec<BoundForeignTable>,
    /// The statement itself may leave a row without its parent.
    pub may_violate: bool,
    /// It inserts one row and does nothing else to keys, so that nothing later brings the
    /// parent.
    pub inserts_one: bool,
}

/// A table among them.
#[derive(Debug)]
pub struct BoundForeignTable {
    /// The table.
    pub table: Arc<Table>,
    /// Where actions change it.
    pub target: Option<BoundTarget>,
    /// Its generated columns, where it is a child, over its row as source `id`.
    pub generated: Vec<Generated>,
    /// See there.
    pub id: usize,
    /// Its foreign keys that are concerned.
    pub keys: Vec<ChildKey>,
    /// Those that refer to it.
    pub references: Vec<Reference>,
}

impl BoundForeignTable {
    /// Nothing is known of it yet.
    pub fn new(table: &Arc<Table>) -> Self {
        Self {
            table: Arc::clone(table),
            target: None,
            generated: Vec::new(),
            id: 0,
            keys: Vec::new(),
            references: Vec::new(),
        }
    }
}

/// A bound INSERT.
#[derive(Debug)]
pub struct BoundInsert {
    /// Target.
    pub target: BoundTarget,
    /// The rows.
    pub source: Query,
    /// Rowid over the source's row (`ExprKind::Input`).
    pub rowid: Option<Expr>,
    /// Columns over the source's row (`ExprKind::Input`).
    pub values: Vec<Expr>,
    /// OR clause.
    pub conflict: Option<ConflictAction>,
    /// ON CONFLICT clauses.
    pub upserts: Vec<BoundUpsert>,
    /// RETURNING over the target's row.
    pub returning: Option<Vec<Expr>>,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// A bound ON CONFLICT.
#[derive(Debug)]
pub struct BoundUpsert {
    /// Which constraint.
    pub target: Option<UpsertTarget>,
    /// None: DO NOTHING.
    pub update: Option<BoundUpsertUpdate>,
}

/// DO UPDATE.
#[derive(Debug)]
pub struct BoundUpsertUpdate {
    /// Source number of the `excluded` row.
    pub excluded: usize,
    /// Columns and their values.
    pub assignments: Vec<(usize, Expr)>,
    /// WHERE.
    pub predicate: Option<Expr>,
    /// The triggers that it fires.
    pub fires: Timed,
}

/// A bound UPDATE.
#[derive(Debug)]
pub struct BoundUpdate {
    /// Target.
    pub target: BoundTarget,
    /// Yields rowid, all columns, new values in order of `assigned`.
    pub source: Query,
    /// The number of the table's row in the source.
    pub row: usize,
    /// Assigned columns; `ROWID` for the rowid.
    pub assigned: Vec<usize>,
    /// The new values, where they are those of the row as it is when its turn comes: the
    /// source does not yield them then.
    pub late: Vec<(usize, Expr)>,
    /// OR clause.
    pub conflict: Option<ConflictAction>,
    /// RETURNING over the target's row.
    pub returning: Option<Vec<Expr>>,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// A bound DELETE.
#[derive(Debug)]
pub struct BoundDelete {
    /// Target.
    pub target: BoundTarget,
    /// Yields rowid and all columns.
    pub source: Query,
    /// Neither WHERE nor RETURNING.
    pub whole_table: bool,
    /// RETURNING over the target's row.
    pub returning: Option<Vec<Expr>>,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// A bound INSERT, UPDATE or DELETE of a view that has triggers for it.
#[derive(Debug)]
pub struct BoundViewChange {
    /// The view as if it were a table.
    pub table: Arc<Table>,
    /// The number that stands for its row in RETURNING.
    pub id: usize,
    /// The rows.
    pub source: Query,
    /// OLD and NEW over the source's row (`ExprKind::Input`).
    pub rows: Vec<Expr>,
    /// There is no NEW.
    pub is_delete: bool,
    /// The triggers.
    pub fires: Vec<usize>,
    /// RETURNING over the row.
    pub returning: Option<Vec<Expr>>,
    /// Result columns.
    pub columns: Vec<OutputColumn>,
}

/// A trigger and the OR clause that its statements run under.
#[derive(Debug)]
pub struct BoundProgram {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// WHEN, as a query of one value.
    pub when: Option<BoundStatement>,
    /// Its statements.
    pub steps: Vec<BoundStatement>,
}

/// A bound CREATE INDEX.
#[derive(Debug)]
pub struct BoundIndex {
    /// Name.
    pub name: String,
    /// Text to store.
    pub sql: String,
    /// The table.
    pub table: Arc<Table>,
    /// The index, with the table's tree in place of its own.
    pub index: Arc<crate::schema::Index>,
    /// Yields the rowid and the parts of the key of each row that it holds.
    pub source: Query,
}

/// Rows that forbid a change of their table.
#[derive(Debug)]
pub struct ForbiddingRows {
    /// There are none where the change may be made.
    pub rows: Query,
    /// Why it may not be made.
    pub error: Error,
}

/// Indexes of one table that are made anew.
#[derive(Debug)]
pub struct BoundReindex {
    /// The tree of its database's sqlite_schema.
    pub schema: Tree,
    /// The table.
    pub table: Arc<Table>,
    /// Each of them, with a query as that of [`BoundIndex`].
    pub indexes: Vec<(Arc<crate::schema::Index>, Query)>,
}

/// A bound statement.
#[derive(Debug)]
pub enum Bound {
    /// SELECT and VALUES.
    Query(Query),
    /// INSERT.
    Insert(Box<BoundInsert>),
    /// UPDATE.
    Update(Box<BoundUpdate>),
    /// DELETE.
    Delete(Box<BoundDelete>),
    /// INSERT, UPDATE and DELETE of a view.
    ViewChange(Box<BoundViewChange>),
    /// CREATE TABLE AS: name, text, rows, affinities.
    CreateTableAs(String, String, Box<Query>, Vec<Affinity>),
    /// VACUUM, with the query of the file's name.
    Vacuum(Option<u64>, Option<Box<Query>>),
    /// CREATE INDEX.
    CreateIndex(Box<BoundIndex>),
    /// DROP TABLE of one whose rows foreign keys want to see go.
    DropTable(Box<BoundDelete>),
    /// ALTER TABLE: the row of sqlite_schema, and the rows of the table that forbid it.
    Alter(crate::plan::physical::SchemaRewrite, Vec<ForbiddingRows>),
    /// REINDEX: of each table whose rows are read, the indexes by their names.
    Reindex(Vec<BoundReindex>),
    /// Needs no planning.
    Ready(crate::plan::physical::Action, Vec<OutputColumn>),
    /// ATTACH of a file by a name, or DETACH of a name.
    Attachment(Vec<Expr>),
    /// EXPLAIN.
    Explain(Box<Bound>),
}
