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

mod schema_change;
mod writes;

use std::sync::Arc;

use fulgurite_store::Tree;

pub use self::schema_change::{Rebuild, SchemaChange, SchemaPlace, SchemaRewrite};
pub use self::writes::{
    Delete, GeneratedColumn, IndexWriter, Insert, TableWriter, Update, Upsert, UpsertTarget,
    UpsertUpdate, ViewChange,
};

use super::Settings;
pub use super::output::{Origin, OutputColumn};
use super::trigger::TriggerProgram;
use crate::bind::expr::{
    AggregateCall, Comparison, Expr, ROWID, Register, SortKey, SubqueryId, Windowing,
};
use crate::func::table::TableFunction;
use crate::row::Property;
use crate::schema::{Index, Table};
use crate::value::collate::CollationName;
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
    /// PRAGMAs that are asked before it runs, for table-valued functions.
    pub pragmas: Vec<Pragma>,
    /// Trigger programs that it may run; those that they fire are among them. The trees of
    /// all are in the lists above.
    pub programs: Vec<TriggerProgram>,
    /// The database whose schema it changes.
    pub place: Option<Box<SchemaPlace>>,
    /// `TxnContext::stamp` of sqlite_schema that the plan was made from.
    pub schema_version: u64,
    /// The same of each other database that was open then, with the number of its store.
    pub beside: Vec<(u64, u64)>,
    /// The stores of the databases in which its names were looked for, found or not; none
    /// where only the main one was open.
    pub searched: Vec<u64>,
    /// The settings that it was made for.
    pub settings: Settings,
    /// It calls code of the program.
    pub calls_user: bool,
    /// Texts and collations of the schema are among what calls it.
    pub schema_calls_user: bool,
    /// Collations of its tables that the connection lacks.
    pub lacks: Vec<CollationName>,
    /// Calls nothing but deterministic functions.
    pub deterministic: bool,
    /// It was guessed what a bound lets through whose value is not in the text.
    pub guesses: bool,
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
    /// Something asks it. It was planned in vain otherwise, and its plan is empty.
    pub asked: bool,
}

/// What a statement does.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has one, and most are queries"
)]
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
    /// ANALYZE of these indexes.
    Analyze(Vec<Tree>),
    /// ATTACH of a file by a name, or DETACH of a name.
    Attachment(Vec<Expr>),
    /// VACUUM of the database in a store, or of the main one; INTO the file that the one value of this query names.
    Vacuum(Option<u64>, Option<Box<Node>>),
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
    /// A stored column of a row that is about to be changed; an empty text or blob in its
    /// place where it is a large one, which stays where it is.
    Kept(usize),
    /// What is asked of a stored column without its bytes.
    Property(usize, Property),
    /// 1 where the row's [kept](Self::Kept) columns may be empty, 0 where they are not.
    IsLarge,
}

impl ScanColumn {
    /// The column of the table that it is, or is told of.
    pub fn number(self) -> usize {
        match self {
            ScanColumn::Column(at) | ScanColumn::Kept(at) | ScanColumn::Property(at, _) => at,
            // (What is about to be changed is marked when all else is planned.)
            ScanColumn::Rowid | ScanColumn::IsLarge => ROWID,
        }
    }
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
    /// Besides, all blobs.
    pub blobs: bool,
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
    /// All left rows, once each: with their first partner, or NULLs to their right.
    Single,
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
        use JoinKind::{Anti, Full, Left, Single};
        matches!(self, Left | Full | Anti | Single)
    }

    /// Nothing but the first partner of a left row matters.
    pub fn takes_one(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti | JoinKind::Single)
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
    /// A row for every so many of the values that are bound, which the expressions have
    /// as their parameters.
    RepeatedRow {
        /// The row.
        row: Vec<Expr>,
        /// How many parameters it has.
        parameters: usize,
    },
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
    /// Rows whose rowids any of the inputs yields, in order of these.
    RowidUnion {
        /// The table.
        table: Arc<Table>,
        /// What a row holds.
        columns: Vec<ScanColumn>,
        /// They yield rowids alone.
        inputs: Vec<Node>,
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
        /// Of entries with the same values in so many leading parts only the first one is
        /// read; 0: all are. Where `covering`, not `reverse`, and there is no prefix.
        firsts: usize,
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
        /// Equal rows are neighbours.
        neighbours: bool,
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
    /// The rows of a common table expression, which are kept for all that read them.
    CommonRows {
        /// What it is called there.
        name: String,
        /// The subquery that makes them; nothing is handed in to it.
        subquery: SubqueryId,
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
            | Op::RepeatedRow { .. }
            | Op::TableScan { .. }
            | Op::RowidLookup { .. }
            | Op::IndexScan { .. }
            | Op::CountRows(_)
            | Op::TableFunction { .. }
            | Op::CommonRows { .. }
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
            Op::RowidUnion { inputs, .. } => inputs.iter().collect(),
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
    /// Those with DISTINCT, by position, of which equal arguments are neighbours within
    /// their group.
    pub in_order: Vec<usize>,
    /// Expressions outside aggregates that are no keys: taken from the row that
    /// gave the `extremum`, else from the group's first row; NULL for an empty
    /// group.
    pub bare: Vec<Expr>,
    /// The only min() or max() of the query, by position in `aggregates`.
    pub extremum: Option<usize>,
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
    /// The store of the database that is named.
    pub store: Option<u64>,
}

impl Pragma {
    /// It changes what the file holds.
    pub fn writes(&self) -> bool {
        match self.name.as_str() {
            "user_version" | "application_id" => self.value.is_some(),
            name => name == "wal_checkpoint",
        }
    }
}
