//! Physical plans: what the executor runs.
//!
//! A [`Plan`] is immutable and shared by all runs of a prepared statement. A
//! query is a tree of [`Node`]s; each yields rows of `width` values, and the
//! expressions it holds read its *input row* through `ExprKind::Input`:
//!
//! * leaves (scans, lookups, values) have no input; their key and bound
//!   expressions use only literals, parameters, registers and subqueries;
//! * unary operators read their child's row;
//! * joins read the left row followed by the right row.
//!
//! Registers carry values sideways: a nested-loop join stores `bindings`, taken
//! from the left row, before it reopens its right side; a subquery call stores
//! its bindings before it runs the subquery's plan. A node below reads them with
//! `ExprKind::Register`.
//!
//! Order: every operator keeps its input's order unless its comment says
//! otherwise. Scans yield key order. Where SQL or SQLite's habit asks for an
//! order (ORDER BY, GROUP BY, UNION), the planner puts an explicit [`Op::Sort`]
//! or has proved that the input is in that order already.
//!
//! The executor may fuse (Filter above a scan, Project above Filter); the plan
//! never relies on it.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::Settings;
use super::foreign::ForeignKeys;
use super::trigger::{Firing, Timed, TriggerProgram};
use crate::bind::expr::{AggregateCall, Comparison, Expr, Register, SortKey, Windowing};
use crate::func::table::TableFunction;
use crate::schema::{ConflictAction, Index, Table};
use crate::value::{Affinity, Collation, Value};

/// A compiled statement.
#[derive(Debug)]
pub struct Plan {
    /// What to do.
    pub action: Action,
    /// Result columns; empty for statements without rows.
    pub columns: Vec<OutputColumn>,
    /// Subqueries that expressions of this plan call, by `SubqueryId`.
    pub subqueries: Vec<Subquery>,
    /// How many registers a run needs.
    pub registers: usize,
    /// Parameters: names by index, None for `?`. The length is the count.
    pub parameters: Vec<Option<String>>,
    /// Trees the statement reads (tables and indexes), without duplicates.
    pub reads: Vec<Tree>,
    /// Trees it may write.
    pub writes: Vec<Tree>,
    /// Trees that it looks into for foreign keys.
    pub guards: Vec<Tree>,
    /// Trigger programs that it may run; those that they fire are among them. The trees of
    /// all are in the lists above.
    pub programs: Vec<TriggerProgram>,
    /// `TxnContext::stamp` of sqlite_schema that the plan was made from.
    pub schema_version: u64,
    /// The settings that it was made for.
    pub settings: Settings,
    /// Calls nothing but deterministic functions.
    pub deterministic: bool,
}

/// A result column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name: the alias, the column's name, or the expression's text.
    pub name: String,
    /// Declared type, where it is a table's column.
    pub decl_type: Option<String>,
    /// Table and column it comes from, where it is a table's column.
    pub origin: Option<(String, String)>,
}

/// A subquery of an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its plan.
    pub root: Node,
    /// Evaluated over the caller's row and stored before the plan runs. Empty:
    /// not correlated.
    pub bindings: Vec<(Register, Expr)>,
    /// Equal bindings give equal rows within one statement, so the result may be
    /// kept: for good where `bindings` is empty, else while they stay the same.
    pub cacheable: bool,
    /// The pass that begins whenever it runs.
    pub pass: usize,
}

/// What a statement does.
#[expect(clippy::large_enum_variant, reason = "one a plan, never in numbers")]
#[derive(Debug)]
pub enum Action {
    /// SELECT, VALUES, EXPLAIN, and those PRAGMAs that only read the schema.
    Query(Node),
    /// INSERT and REPLACE.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// INSERT, UPDATE and DELETE of a view, for which triggers stand in.
    ViewChange(Box<ViewChange>),
    /// CREATE, DROP, ALTER.
    Schema(Box<SchemaChange>),
    /// BEGIN, COMMIT and the like.
    Transaction(TransactionAction),
    /// A PRAGMA that the session answers.
    Pragma(Pragma),
    /// Nothing to do (CREATE … IF NOT EXISTS of what exists).
    Nothing,
}

/// A node of a query plan.
#[derive(Debug)]
pub struct Node {
    /// The operator.
    pub op: Op,
    /// Values in each row it yields.
    pub width: usize,
    /// The planner's estimate of the rows it yields.
    pub rows: f64,
}

/// A column that a scan or lookup yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanColumn {
    /// The rowid. The INTEGER PRIMARY KEY column is asked for like this.
    Rowid,
    /// A stored column; decode nothing that no one asks for.
    Column(usize),
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value; NULL makes the range empty.
    pub expr: Expr,
    /// `<=` or `>=`.
    pub inclusive: bool,
}

/// A range; an absent end is open.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Range {
    /// Lower end.
    pub low: Option<Bound>,
    /// Upper end.
    pub high: Option<Bound>,
}

/// Which kind of join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs that satisfy the condition.
    Inner,
    /// Also left rows without a partner, NULLs to their right.
    Left,
    /// Pairs, and right rows without a partner behind them, NULLs to their left.
    Right,
    /// Those of both.
    Full,
    /// Left rows with a partner, once each; yields the left row only.
    Semi,
    /// Left rows without a partner; yields the left row only.
    Anti,
}

/// Compound operators. All but UnionAll drop duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompoundOp {
    UnionAll,
    Union,
    Intersect,
    Except,
}

impl JoinKind {
    /// Yields left rows and right rows beside each other.
    pub fn yields_right(self) -> bool {
        !matches!(self, JoinKind::Semi | JoinKind::Anti)
    }

    /// Yields left rows without a partner.
    pub fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
    }

    /// Yields right rows without a partner.
    pub fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
}

/// An operator.
#[derive(Debug)]
pub enum Op {
    /// Constant rows; one row without columns is the FROM-less SELECT's input.
    Values(Vec<Vec<Expr>>),
    /// Rows of a table in rowid order. Bounds are compared as SQLite compares a
    /// rowid with the value: NUMERIC affinity first (`'5'` is 5), then reals by
    /// value (`> 5.5` starts at 6), texts and blobs are above all rowids.
    TableScan {
        /// The table.
        table: Arc<Table>,
        /// What a row holds.
        columns: Vec<ScanColumn>,
        /// Rowid bounds.
        range: Range,
        /// Largest rowid first.
        reverse: bool,
    },
    /// Rows of a table with given rowids, each once, in ascending order
    /// (descending with `reverse`). A key that is no integer after NUMERIC
    /// affinity (5.0 is 5) finds nothing. One key: the point path.
    RowidLookup {
        /// The table.
        table: Arc<Table>,
        /// What a row holds.
        columns: Vec<ScanColumn>,
        /// The rowids.
        keys: Vec<Expr>,
        /// Largest rowid first.
        reverse: bool,
    },
    /// Rows through an index, in key order, equal keys in rowid order.
    IndexScan {
        /// The table.
        table: Arc<Table>,
        /// The index.
        index: Arc<Index>,
        /// What a row holds.
        columns: Vec<ScanColumn>,
        /// Everything in `columns` is in the key, so the row is not fetched.
        covering: bool,
        /// Alternatives for the leading key parts, all of one length; entries
        /// are visited in key order and once. `[[]]`: no equality. Each value,
        /// those of `range` too, is converted as a comparison with the index
        /// column's affinity converts (`Affinity::apply_comparison`: numeric for
        /// REAL too); NULL finds nothing, unless `null_matches` is set for its
        /// part (`IS`).
        prefixes: Vec<Vec<Expr>>,
        /// A part for which NULL finds NULLs.
        null_matches: Vec<bool>,
        /// Bounds on the part after the prefix, in terms of its values (for a
        /// DESC part the executor swaps the ends). A bounded range leaves NULLs
        /// out.
        range: Range,
        /// Backwards.
        reverse: bool,
        /// Nobody sees in which order the rows come: those that lie together are
        /// fetched together. Not where `covering`.
        gathered: bool,
    },
    /// `count(*)` of a whole table from its counter: one row, one column.
    CountRows(Arc<Table>),
    /// Rows for which the predicate is true.
    Filter {
        /// Input.
        input: Box<Node>,
        /// The predicate.
        predicate: Expr,
    },
    /// The input's columns and behind them generated ones, each of which may read all before
    /// it. The affinity is the column's.
    Generate {
        /// Input.
        input: Box<Node>,
        /// What computes each.
        columns: Vec<(Expr, Affinity)>,
    },
    /// One value for each expression.
    Project {
        /// Input.
        input: Box<Node>,
        /// The expressions.
        exprs: Vec<Expr>,
    },
    /// For each left row, the right side opened anew. Left order, then right's.
    NestedLoopJoin {
        /// Outer side.
        left: Box<Node>,
        /// Inner side.
        right: Box<Node>,
        /// Kind.
        kind: JoinKind,
        /// Stored from the left row before the right side is opened.
        bindings: Vec<(Register, Expr)>,
        /// Over the left row followed by the right one.
        condition: Option<Expr>,
    },
    /// Equality join; the right side is hashed. Left order, then right's.
    HashJoin {
        /// Probe side.
        left: Box<Node>,
        /// Build side.
        right: Box<Node>,
        /// Kind.
        kind: JoinKind,
        /// Over the left row, one for each key.
        left_keys: Vec<Expr>,
        /// Over the right row, one for each key.
        right_keys: Vec<Expr>,
        /// How each pair of keys compares; NULL equals nothing.
        comparisons: Vec<Comparison>,
        /// More conditions, over the left row followed by the right one.
        condition: Option<Expr>,
        /// What was hashed stays when it is opened again within this pass.
        kept: Option<usize>,
    },
    /// GROUP BY with a hash table; groups come in order of first appearance.
    /// Yields the keys, then the aggregates, then the bare expressions.
    HashAggregate {
        /// Input.
        input: Box<Node>,
        /// What is computed.
        grouping: Grouping,
    },
    /// GROUP BY over an input in which equal keys are neighbours. Same row. With
    /// no keys: one row, always.
    SortedAggregate {
        /// Input.
        input: Box<Node>,
        /// What is computed.
        grouping: Grouping,
    },
    /// Stable sort.
    Sort {
        /// Input.
        input: Box<Node>,
        /// The terms.
        keys: Vec<SortKey>,
        /// LIMIT and OFFSET of the [`Op::Limit`] above, whose sum is all that
        /// need be kept.
        top: Option<LimitClause>,
    },
    /// LIMIT and OFFSET.
    Limit {
        /// Input.
        input: Box<Node>,
        /// Both.
        clause: LimitClause,
    },
    /// What is computed over the rows around each row, which come in order of the
    /// window's keys. Yields the row, then the results. Its keys are columns, its
    /// arguments columns or constants.
    Window {
        /// Input.
        input: Box<Node>,
        /// What is computed.
        window: Box<Windowing>,
    },
    /// Each row once, at its first appearance. Only the leading columns, as many
    /// as there are `collations`, tell rows apart.
    Distinct {
        /// Input.
        input: Box<Node>,
        /// How texts compare, for each leading column.
        collations: Vec<Collation>,
    },
    /// UNION and the like. UnionAll: left, then right. The others in order of
    /// first appearance (the planner adds a Sort).
    Compound {
        /// Operator.
        op: CompoundOp,
        /// Left.
        left: Box<Node>,
        /// Right.
        right: Box<Node>,
        /// How texts compare, a column each.
        collations: Vec<Collation>,
    },
    /// Keeps its input's rows when it is opened first and replays them when opened
    /// again: the inner side of a nested loop that reads no register of that loop.
    Materialize {
        /// Input.
        input: Box<Node>,
        /// The rows are the same until this pass begins anew; 0 is the whole run.
        pass: usize,
    },
    /// A recursive common table expression: `initial` fills a queue, each row that
    /// leaves it is a row of the result, and `step` adds to the queue what it makes of
    /// that row.
    Recursion {
        /// Its name.
        name: String,
        /// The number of its table; a pass begins whenever it is opened.
        table: usize,
        /// The first rows.
        initial: Box<Node>,
        /// Reads the row at hand by [`Op::RecursiveRows`].
        step: Box<Node>,
        /// Rows that came before, in these collations, do not enter the queue.
        distinct: Option<Vec<Collation>>,
        /// The order in which rows leave the queue; empty: that in which they came.
        order: Vec<SortKey>,
        /// `step` makes the same of several rows at once, one after the other.
        by_batch: bool,
    },
    /// The rows of a table-valued function.
    TableFunction {
        /// The function.
        function: Arc<dyn TableFunction>,
        /// What its hidden columns are, as far as it is given.
        args: Vec<Option<Expr>>,
        /// What a row holds; `ROWID` is its number.
        columns: Vec<usize>,
    },
    /// The row, or rows, of a recursion's queue at hand.
    RecursiveRows {
        /// The recursion's name.
        name: String,
        /// Its number.
        table: usize,
    },
}

impl Op {
    /// Its inputs, in the order in which they are shown.
    pub fn inputs(&self) -> Vec<&Node> {
        match self {
            Op::Values(_)
            | Op::TableScan { .. }
            | Op::RowidLookup { .. }
            | Op::IndexScan { .. }
            | Op::CountRows(_)
            | Op::TableFunction { .. }
            | Op::RecursiveRows { .. } => Vec::new(),
            Op::Filter { input, .. }
            | Op::Generate { input, .. }
            | Op::Project { input, .. }
            | Op::HashAggregate { input, .. }
            | Op::SortedAggregate { input, .. }
            | Op::Sort { input, .. }
            | Op::Limit { input, .. }
            | Op::Window { input, .. }
            | Op::Distinct { input, .. }
            | Op::Materialize { input, .. } => vec![input],
            Op::Recursion { initial, step, .. } => vec![initial, step],
            Op::NestedLoopJoin { left, right, .. }
            | Op::HashJoin { left, right, .. }
            | Op::Compound { left, right, .. } => vec![left, right],
        }
    }
}

/// LIMIT and OFFSET: constant expressions. NULL or a value that is no integer
/// is a `datatype mismatch`; a negative limit is none, a negative offset is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitClause {
    /// LIMIT.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
}

/// What an aggregation computes.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// GROUP BY over the input row, with the collation of each key.
    pub keys: Vec<(Expr, Collation)>,
    /// The keys, by position, that tell groups apart: where they are equal, so
    /// are all others.
    pub telling: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<AggregateCall>,
    /// Expressions outside aggregates that are no keys: taken from the row that
    /// gave the `extremum`, else from the group's first row; NULL for an empty
    /// group.
    pub bare: Vec<Expr>,
    /// The only min() or max() of the query, by position in `aggregates`.
    pub extremum: Option<usize>,
}

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

/// A change of the schema. Rows of sqlite_schema are (type, name, tbl_name,
/// rootpage = tree id, sql).
#[derive(Debug)]
pub enum SchemaChange {
    /// Creates the tree and those of the constraints' indexes, adds the rows, and
    /// fills the table from `source`.
    CreateTable {
        /// Name.
        name: String,
        /// Text to store.
        sql: String,
        /// Names of the automatic indexes, in order.
        automatic_indexes: Vec<String>,
        /// It has a row in sqlite_sequence, which is created if there is none.
        autoincrement: bool,
        /// CREATE TABLE AS SELECT: rows of all columns in order, with each
        /// column's affinity still to be applied.
        source: Option<(Node, Vec<Affinity>)>,
    },
    /// Creates the tree, fills it, adds the row.
    CreateIndex {
        /// Name.
        name: String,
        /// Text to store.
        sql: String,
        /// The table.
        table: Arc<Table>,
        /// The table's row (rowid, all columns) for every row.
        source: Node,
        /// How to make the keys; `index.tree` is the table's until the new tree
        /// exists and must not be used.
        writer: IndexWriter,
    },
    /// Drops a table, its indexes, their rows; before, deletes the table's rows one by one
    /// where foreign keys want to see them go.
    DropTable(Arc<Table>, Option<Box<Delete>>),
    /// Drops an index and its row.
    DropIndex(Arc<Index>),
    /// Adds the row of a view, whose root is 0.
    CreateView {
        /// Name.
        name: String,
        /// Text to store.
        sql: String,
    },
    /// Removes a view's row, and those of its triggers.
    DropView(String),
    /// Adds the row of a trigger, whose root is 0.
    CreateTrigger {
        /// Name.
        name: String,
        /// The table or view.
        table: String,
        /// Text to store.
        sql: String,
    },
    /// Removes a trigger's row.
    DropTrigger(String),
    /// Replaces the sql (and names) of a row in sqlite_schema, unless there are rows that
    /// forbid it, for which there is a message: ALTER TABLE ADD COLUMN.
    Rewrite(SchemaRewrite, Vec<(Node, &'static str)>),
    /// Renames a table: rewrites the texts that name it, and its row in sqlite_sequence.
    RenameTable {
        /// What changes in sqlite_schema.
        rewrites: Vec<SchemaRewrite>,
        /// The table as it was.
        table: Arc<Table>,
        /// What it is called then.
        new_name: String,
    },
    /// Renames a column: rewrites the texts that name it.
    RenameColumn(Vec<SchemaRewrite>),
    /// Takes a column out of its table's text and rows.
    DropColumn {
        /// What changes in sqlite_schema.
        rewrites: Vec<SchemaRewrite>,
        /// The table as it was.
        table: Arc<Table>,
        /// The column's position.
        column: usize,
    },
}

/// A row of sqlite_schema rewritten by ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRewrite {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// Name now.
    pub name: String,
    /// Name after.
    pub new_name: String,
    /// tbl_name after.
    pub new_table: String,
    /// Text after; None keeps NULL.
    pub new_sql: Option<String>,
}

/// BEGIN's kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginMode {
    /// Reads a snapshot, locks nothing, may lose at COMMIT (also CONCURRENT).
    Deferred,
    /// Takes the writers' lock (also EXCLUSIVE).
    Immediate,
}

/// Transaction statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionAction {
    /// BEGIN.
    Begin(BeginMode),
    /// COMMIT and END.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT.
    Savepoint(String),
    /// RELEASE.
    Release(String),
    /// ROLLBACK TO.
    RollbackTo(String),
}

/// A PRAGMA for the session: `name = value`, `name(value)` or just `name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pragma {
    /// Lower-case name.
    pub name: String,
    /// The argument.
    pub value: Option<Value>,
}
