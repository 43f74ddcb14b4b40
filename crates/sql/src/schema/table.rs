//! What a table and an index are, as parsed from their SQL text.
//!
//! These values are immutable and shared: a [`super::Schema`] holds them behind
//! `Arc`, plans keep the ones they use. Expressions in them (CHECK, DEFAULT,
//! indexed expressions, partial WHERE) stay as syntax; the binder binds them for
//! the statement that needs them.

use std::sync::Arc;

use fulgurite_store::Tree;

use crate::ast;
use crate::value::{Affinity, Collation, Value, ValueRef};

/// What a statement does about a violated constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConflictAction {
    /// Undo the statement (the default).
    #[default]
    Abort,
    /// Undo the transaction.
    Rollback,
    /// Stop, keeping the rows done so far.
    Fail,
    /// Skip the row.
    Ignore,
    /// Delete the rows in the way; for NOT NULL use the default value.
    Replace,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Name as written in CREATE TABLE.
    pub name: String,
    /// The Int tree that holds the rows under their rowids. Those of a WITHOUT ROWID table
    /// have one too, which nothing shows.
    pub tree: Tree,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// The INTEGER PRIMARY KEY column: an alias of the rowid, stored as NULL.
    pub rowid_alias: Option<usize>,
    /// INTEGER PRIMARY KEY AUTOINCREMENT.
    pub autoincrement: bool,
    /// With AUTOINCREMENT: the tree of sqlite_sequence. None in a database that
    /// was made before that table was kept.
    pub sequence: Option<Tree>,
    /// What a duplicate rowid does unless the statement says otherwise.
    pub rowid_conflict: ConflictAction,
    /// WITHOUT ROWID: rows are known by their primary key alone.
    pub without_rowid: bool,
    /// All indexes, those of constraints first, then in order of creation.
    pub indexes: Vec<Arc<Index>>,
    /// CHECK constraints in order.
    pub checks: Vec<Check>,
    /// Foreign keys in order.
    pub foreign_keys: Vec<ForeignKey>,
    /// Some columns are generated.
    pub has_generated: bool,
    /// Some columns have a collation of the program.
    pub asks_program: bool,
    /// STRICT: columns take values of their types only.
    pub strict: bool,
    /// The CREATE TABLE text.
    pub sql: String,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name as written.
    pub name: String,
    /// Declared type as written, empty where there is none.
    pub decl_type: String,
    /// From the declared type.
    pub affinity: Affinity,
    /// COLLATE, BINARY by default.
    pub collation: Collation,
    /// NOT NULL and what its violation does.
    pub not_null: Option<ConflictAction>,
    /// DEFAULT, as syntax.
    pub default: Option<ast::Expr>,
    /// What rows stored before ALTER TABLE ADD COLUMN show here: the constant
    /// default with the column's affinity applied, else NULL.
    pub missing: Value,
    /// Position in the PRIMARY KEY counted from 1, 0 where not part of it.
    pub primary_key: usize,
    /// What it is computed by, where it is a generated column.
    pub generated: Option<Generated>,
    /// In a STRICT table the type of its values; None: ANY.
    pub strict: Option<StrictType>,
}

/// What a generated column is computed by.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The expression, over the table's row.
    pub expr: ast::Expr,
    /// STORED. What is VIRTUAL is stored as NULL and computed when it is read.
    pub stored: bool,
}

impl Column {
    /// A generated column that is VIRTUAL.
    #[inline]
    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|it| !it.stored)
    }

    /// Whether it takes a value, which has its affinity by now, for its type.
    #[inline]
    pub fn takes(&self, value: ValueRef<'_>) -> bool {
        self.strict.is_none_or(|strict| strict.takes(value))
    }
}

/// The type of a STRICT table's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrictType {
    /// INT and INTEGER
    Integer,
    /// REAL
    Real,
    /// TEXT
    Text,
    /// BLOB
    Blob,
}

impl StrictType {
    /// That of a declared type; None for ANY and what STRICT does not know.
    pub fn declared(declared: &str) -> Option<StrictType> {
        match declared {
            "INT" | "INTEGER" => Some(StrictType::Integer),
            "REAL" => Some(StrictType::Real),
            "TEXT" => Some(StrictType::Text),
            "BLOB" => Some(StrictType::Blob),
            _ => None,
        }
    }

    /// What `typeof()` says of its values.
    pub fn type_name(self) -> &'static str {
        match self {
            StrictType::Integer => "integer",
            StrictType::Real => "real",
            StrictType::Text => "text",
            StrictType::Blob => "blob",
        }
    }

    /// Whether a value is NULL or of this type.
    #[inline]
    pub fn takes(self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Null => true,
            ValueRef::Integer(_) => self == StrictType::Integer,
            ValueRef::Real(_) => self == StrictType::Real,
            ValueRef::Text(_) => self == StrictType::Text,
            ValueRef::Blob(_) => self == StrictType::Blob,
        }
    }
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct Check {
    /// What `CHECK constraint failed: …` names: the constraint or its text.
    pub label: String,
    /// The condition.
    pub expr: ast::Expr,
}

/// A foreign key of a table, the *child*; the table it refers to is the *parent*.
#[derive(Debug, Clone)]
pub struct ForeignKey {
    /// The child's columns.
    pub columns: Vec<usize>,
    /// The parent's name as written.
    pub parent: String,
    /// The parent's columns as written, in the order of `columns`; None: its primary key.
    pub parent_columns: Option<Vec<String>>,
    /// What becomes of the child's row where its parent row is deleted.
    pub on_delete: ast::ForeignAction,
    /// The same where the parent's key changes.
    pub on_update: ast::ForeignAction,
    /// Checked at COMMIT, not at the statement's end.
    pub deferred: bool,
}

/// Where an index comes from; PRAGMA index_list's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrigin {
    /// CREATE INDEX (`c`)
    Create,
    /// UNIQUE constraint (`u`)
    Unique,
    /// PRIMARY KEY constraint (`pk`)
    PrimaryKey,
}

/// An index: a Bytes tree whose keys hold the indexed values and, unless it is
/// unique and none of them is NULL, the rowid.
#[derive(Debug)]
pub struct Index {
    /// Name; `sqlite_autoindex_T_N` for constraints.
    pub name: String,
    /// The table's name.
    pub table: String,
    /// The Bytes tree.
    pub tree: Tree,
    /// Key parts in order.
    pub columns: Vec<IndexColumn>,
    /// No two rows with equal keys (NULLs excepted).
    pub unique: bool,
    /// What a duplicate does unless the statement says otherwise.
    pub conflict: ConflictAction,
    /// Where it comes from.
    pub origin: IndexOrigin,
    /// The WHERE of a partial index.
    pub predicate: Option<ast::Expr>,
    /// The CREATE INDEX text; empty for constraints.
    pub sql: String,
}

impl Table {
    /// Whether a row may take the places of others in a statement with this OR clause.
    pub fn may_replace(&self, conflict: Option<ConflictAction>) -> bool {
        let replaces = |own: ConflictAction| own == ConflictAction::Replace;
        match conflict {
            Some(action) => replaces(action),
            None => {
                replaces(self.rowid_conflict) || self.indexes.iter().any(|i| replaces(i.conflict))
            }
        }
    }

    /// The place of a column, by its name in any case.
    pub fn column_named(&self, name: &str) -> Option<usize> {
        let mut columns = self.columns.iter();
        columns.position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The order in which SQLite checks indexes: the newest first, but those that
    /// replace rows last.
    pub fn check_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.indexes.len()).rev().collect();
        let replaces = |at: &usize| {
            let index = self.indexes.get(*at);
            index.is_some_and(|i| i.conflict == ConflictAction::Replace)
        };
        order.sort_by_key(replaces);
        order
    }
}

/// One key part of an index.
#[derive(Debug, Clone)]
pub struct IndexColumn {
    /// What is indexed.
    pub target: IndexTarget,
    /// Its affinity, which the key was made with.
    pub affinity: Option<Affinity>,
    /// How texts are ordered.
    pub collation: Collation,
    /// The collation that it was given or its column has: another one where that is the
    /// rowid, which is no text.
    pub named: Collation,
    /// DESC: the encoded part is complemented.
    pub descending: bool,
}

/// What an index column holds.
#[derive(Debug, Clone)]
pub enum IndexTarget {
    /// A column of the table.
    Column(usize),
    /// The rowid (its alias column).
    Rowid,
    /// An expression over the table's row.
    Expr(ast::Expr),
}
