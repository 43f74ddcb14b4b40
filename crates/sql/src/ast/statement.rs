//! Statements as written.

use std::sync::Arc;

use super::{AlterAction, Expr, Name, SortTerm, Windows};
use crate::plan::physical::{CompoundOp, TransactionAction};
use crate::schema::ConflictAction;

/// `schema.name`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// The schema, if written.
    pub schema: Option<Name>,
    /// The name.
    pub name: Name,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// SELECT and VALUES
    Select(Box<Select>),
    /// INSERT and REPLACE
    Insert(Box<Insert>),
    /// UPDATE
    Update(Box<Update>),
    /// DELETE
    Delete(Box<Delete>),
    /// CREATE TABLE
    CreateTable(Box<CreateTable>),
    /// CREATE INDEX
    CreateIndex(Box<CreateIndex>),
    /// DROP TABLE
    DropTable {
        /// Which.
        name: QualifiedName,
        /// IF EXISTS
        if_exists: bool,
    },
    /// DROP INDEX
    DropIndex {
        /// Which.
        name: QualifiedName,
        /// IF EXISTS
        if_exists: bool,
    },
    /// CREATE VIEW
    CreateView(Box<CreateView>),
    /// DROP VIEW
    DropView {
        /// Which.
        name: QualifiedName,
        /// IF EXISTS
        if_exists: bool,
    },
    /// CREATE TRIGGER
    CreateTrigger(Box<CreateTrigger>),
    /// DROP TRIGGER
    DropTrigger {
        /// Which.
        name: QualifiedName,
        /// IF EXISTS
        if_exists: bool,
    },
    /// ALTER TABLE
    AlterTable {
        /// Which.
        name: QualifiedName,
        /// How.
        action: AlterAction,
    },
    /// BEGIN and the like
    Transaction(TransactionAction),
    /// PRAGMA
    Pragma(Pragma),
    /// EXPLAIN and EXPLAIN QUERY PLAN
    Explain {
        /// EXPLAIN QUERY PLAN
        query_plan: bool,
        /// What.
        statement: Box<Statement>,
    },
    /// REINDEX of a collation, table or index, or of everything.
    Reindex(Option<QualifiedName>),
    /// ANALYZE of a table or index, or of everything.
    Analyze(Option<QualifiedName>),
    /// ATTACH: the file, and what it is to be called.
    Attach(Box<[Expr; 2]>),
    /// DETACH
    Detach(Box<Expr>),
    /// VACUUM
    Vacuum {
        /// Of which database.
        schema: Option<Name>,
        /// INTO: a query of one value, the file's name.
        into: Option<Box<Select>>,
    },
    /// Something that the grammar knows and this version doesn't.
    Unsupported(&'static str),
}

/// A SELECT with its compounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// WITH
    pub ctes: Vec<Arc<Cte>>,
    /// The first core.
    pub first: SelectCore,
    /// The others.
    pub compounds: Vec<Compound>,
    /// ORDER BY
    pub order_by: Vec<SortTerm>,
    /// LIMIT
    pub limit: Option<Box<Expr>>,
    /// OFFSET
    pub offset: Option<Box<Expr>>,
}

/// `UNION …`
#[derive(Debug, Clone, PartialEq)]
pub struct Compound {
    /// Operator.
    pub op: CompoundOp,
    /// Right side.
    pub core: SelectCore,
}

/// `name(columns) AS (select)`
#[derive(Debug, Clone, PartialEq)]
pub struct Cte {
    /// Name.
    pub name: Name,
    /// Columns, if given.
    pub columns: Vec<Name>,
    /// NOT MATERIALIZED: it is computed wherever it is named.
    pub repeated: bool,
    /// The query.
    pub select: Box<Select>,
}

/// SELECT … or VALUES …
#[derive(Debug, Clone, PartialEq)]
pub enum SelectCore {
    /// SELECT
    Select {
        /// DISTINCT
        distinct: bool,
        /// Result columns.
        columns: Vec<ResultColumn>,
        /// FROM: empty where absent.
        from: Vec<FromItem>,
        /// WHERE
        filter: Option<Expr>,
        /// GROUP BY
        group_by: Vec<Expr>,
        /// HAVING
        having: Option<Box<Expr>>,
        /// WINDOW
        windows: Option<Windows>,
    },
    /// VALUES
    Values(Vec<Vec<Expr>>),
}

/// A result column.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultColumn {
    /// An expression.
    Expr {
        /// The expression.
        expr: Expr,
        /// AS
        alias: Option<Name>,
        /// Its text, where it has no alias.
        text: String,
    },
    /// `*`
    Star,
    /// `t.*`
    TableStar(Name),
}

/// A table of FROM and how it joins what stands before it.
#[derive(Debug, Clone, PartialEq)]
pub struct FromItem {
    /// The join; of no meaning for the first.
    pub join: JoinSpec,
    /// The table.
    pub table: SelectTable,
    /// ON or USING
    pub constraint: Option<JoinConstraint>,
}

/// How a table joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinSpec {
    /// LEFT
    pub left: bool,
    /// RIGHT
    pub right: bool,
    /// NATURAL
    pub natural: bool,
    /// CROSS: the order as written.
    pub cross: bool,
}

/// ON or USING.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinConstraint {
    /// ON
    On(Arc<Expr>),
    /// USING
    Using(Vec<Name>),
}

/// Which indexes may be used to find a table's rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Indexed {
    /// Any.
    #[default]
    Any,
    /// NOT INDEXED
    Not,
    /// INDEXED BY
    By(Name),
}

/// A source of rows.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectTable {
    /// A table.
    Table {
        /// Name.
        name: QualifiedName,
        /// Alias.
        alias: Option<Name>,
        /// INDEXED BY, NOT INDEXED
        indexed: Indexed,
    },
    /// A subquery.
    Select(Box<Select>, Option<Name>),
    /// `(a JOIN b)`
    Joined(Vec<FromItem>, Option<Name>),
    /// `f(x)`
    Function {
        /// Name.
        name: QualifiedName,
        /// Arguments.
        args: Vec<Expr>,
        /// Alias.
        alias: Option<Name>,
    },
}

/// INSERT
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// WITH
    pub ctes: Vec<Arc<Cte>>,
    /// OR
    pub conflict: Option<ConflictAction>,
    /// INTO
    pub table: QualifiedName,
    /// AS
    pub alias: Option<Name>,
    /// Columns; None: all.
    pub columns: Option<Vec<Name>>,
    /// The rows.
    pub source: InsertSource,
    /// ON CONFLICT
    pub upserts: Vec<Upsert>,
    /// RETURNING
    pub returning: Vec<ResultColumn>,
}

/// What INSERT inserts.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// VALUES or SELECT
    Select(Box<Select>),
    /// DEFAULT VALUES
    Defaults,
}

/// `a = x` or `(a, b) = (x, y)`
pub type Assignment = (Vec<Name>, Expr);

/// ON CONFLICT
#[derive(Debug, Clone, PartialEq)]
pub struct Upsert {
    /// The target's terms; empty: any.
    pub target: Vec<SortTerm>,
    /// The target's WHERE.
    pub condition: Option<Expr>,
    /// None: DO NOTHING
    pub update: Option<(Vec<Assignment>, Option<Expr>)>,
}

/// UPDATE
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// WITH
    pub ctes: Vec<Arc<Cte>>,
    /// OR
    pub conflict: Option<ConflictAction>,
    /// Target.
    pub table: QualifiedName,
    /// AS
    pub alias: Option<Name>,
    /// INDEXED BY, NOT INDEXED
    pub indexed: Indexed,
    /// SET
    pub sets: Vec<Assignment>,
    /// FROM
    pub from: Vec<FromItem>,
    /// WHERE
    pub filter: Option<Expr>,
    /// RETURNING
    pub returning: Vec<ResultColumn>,
}

/// DELETE
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// WITH
    pub ctes: Vec<Arc<Cte>>,
    /// Target.
    pub table: QualifiedName,
    /// AS
    pub alias: Option<Name>,
    /// INDEXED BY, NOT INDEXED
    pub indexed: Indexed,
    /// WHERE
    pub filter: Option<Expr>,
    /// RETURNING
    pub returning: Vec<ResultColumn>,
}

/// CREATE TABLE
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// Name.
    pub name: QualifiedName,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// TEMP
    pub temporary: bool,
    /// The text from the name on, to be stored behind `CREATE TABLE `.
    pub text: String,
    /// The rest.
    pub body: TableBody,
}

/// What a table is made from.
#[derive(Debug, Clone, PartialEq)]
pub enum TableBody {
    /// Definitions.
    Columns {
        /// Columns.
        columns: Vec<ColumnDef>,
        /// Constraints of the table.
        constraints: Vec<TableConstraint>,
        /// WITHOUT ROWID
        without_rowid: bool,
        /// STRICT
        strict: bool,
    },
    /// AS SELECT
    Select(Box<Select>),
}

/// A column of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Name.
    pub name: Name,
    /// Declared type, spaces as SQLite keeps them; empty where absent.
    pub decl_type: String,
    /// Constraints.
    pub constraints: Vec<ColumnConstraint>,
}

/// A constraint of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnConstraint {
    /// PRIMARY KEY
    PrimaryKey {
        /// DESC
        descending: bool,
        /// ON CONFLICT
        conflict: Option<ConflictAction>,
        /// AUTOINCREMENT
        autoincrement: bool,
    },
    /// NOT NULL
    NotNull(Option<ConflictAction>),
    /// UNIQUE
    Unique(Option<ConflictAction>),
    /// CHECK
    Check {
        /// CONSTRAINT name
        name: Option<String>,
        /// Condition.
        expr: Expr,
        /// Its text.
        text: String,
    },
    /// DEFAULT
    Default(Expr),
    /// COLLATE
    Collate(Name),
    /// REFERENCES
    ForeignKey(ForeignKey),
    /// DEFERRABLE and the like by themselves, for the last foreign key before: whether it
    /// is deferred.
    Defer(bool),
    /// GENERATED ALWAYS AS
    Generated {
        /// What it is computed by.
        expr: Expr,
        /// STORED
        stored: bool,
    },
}

/// A constraint of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConstraint {
    /// CONSTRAINT name
    pub name: Option<String>,
    /// The rest.
    pub kind: TableConstraintKind,
}

/// Which constraint.
#[derive(Debug, Clone, PartialEq)]
pub enum TableConstraintKind {
    /// PRIMARY KEY
    PrimaryKey {
        /// Columns.
        columns: Vec<SortTerm>,
        /// ON CONFLICT
        conflict: Option<ConflictAction>,
        /// AUTOINCREMENT
        autoincrement: bool,
    },
    /// UNIQUE
    Unique {
        /// Columns.
        columns: Vec<SortTerm>,
        /// ON CONFLICT
        conflict: Option<ConflictAction>,
    },
    /// CHECK and its text
    Check(Expr, String),
    /// FOREIGN KEY: the columns and the rest
    ForeignKey(Vec<Name>, ForeignKey),
}

/// What a foreign key refers to, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// The parent table.
    pub parent: Name,
    /// Its columns; None: its primary key.
    pub parent_columns: Option<Vec<Name>>,
    /// ON DELETE
    pub on_delete: ForeignAction,
    /// ON UPDATE
    pub on_update: ForeignAction,
    /// DEFERRABLE INITIALLY DEFERRED
    pub deferred: bool,
}

/// What becomes of rows whose parent row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignAction {
    /// NO ACTION
    #[default]
    NoAction,
    /// RESTRICT
    Restrict,
    /// SET NULL
    SetNull,
    /// SET DEFAULT
    SetDefault,
    /// CASCADE
    Cascade,
}

/// CREATE INDEX
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// UNIQUE
    pub unique: bool,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// Name.
    pub name: QualifiedName,
    /// ON
    pub table: Name,
    /// Columns.
    pub columns: Vec<SortTerm>,
    /// WHERE
    pub filter: Option<Expr>,
    /// The text from the name on.
    pub text: String,
}

/// CREATE VIEW
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// Name.
    pub name: QualifiedName,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// TEMP
    pub temporary: bool,
    /// Column names, if given.
    pub columns: Vec<Name>,
    /// The query.
    pub select: Select,
    /// The databases that it names before tables.
    pub databases: Vec<Name>,
    /// The text from the name on.
    pub text: String,
}

/// CREATE TRIGGER
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTrigger {
    /// Name.
    pub name: QualifiedName,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// TEMP
    pub temporary: bool,
    /// When it runs.
    pub time: TriggerTime,
    /// What it waits for.
    pub event: TriggerEvent,
    /// The table or view.
    pub table: QualifiedName,
    /// WHEN
    pub when: Option<Expr>,
    /// INSERT, UPDATE, DELETE and SELECT, in order.
    pub steps: Vec<Statement>,
    /// The databases that they and WHEN name before tables.
    pub databases: Vec<Name>,
    /// There are parameters somewhere.
    pub has_parameters: bool,
    /// The text from the name on.
    pub text: String,
}

/// When a trigger runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerTime {
    /// BEFORE a row is written, as it is if nothing is said.
    Before,
    /// AFTER that.
    After,
    /// INSTEAD OF that, which is for views.
    InsteadOf,
}

/// What a trigger waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerEvent {
    /// DELETE
    Delete,
    /// INSERT
    Insert,
    /// UPDATE, of some columns where they are given.
    Update(Option<Vec<Name>>),
}

/// PRAGMA
#[derive(Debug, Clone, PartialEq)]
pub struct Pragma {
    /// The database, if written.
    pub schema: Option<Name>,
    /// Name.
    pub name: Name,
    /// Argument as text, number or name.
    pub value: Option<super::Literal>,
}
