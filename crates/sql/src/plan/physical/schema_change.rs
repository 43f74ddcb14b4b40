//! What CREATE, DROP and ALTER do.

use std::sync::Arc;

use fulgurite_store::Tree;

use super::{Delete, IndexWriter, Node};
use crate::error::Error;
use crate::schema::{Index, Table};
use crate::value::Affinity;

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
        /// Which of them is the primary key of a WITHOUT ROWID table.
        key: Option<usize>,
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
        /// Yields the rowid and the parts of the key of each row that it holds.
        source: Node,
        /// How to make the keys of that; `index.tree` is the table's until the new tree
        /// exists and must not be used.
        writer: IndexWriter,
    },
    /// REINDEX: makes trees for the indexes, fills them, and drops those there were.
    Reindex(Vec<Rebuild>),
    /// Drops a table, its indexes, their rows; before, deletes the table's rows one by one
    /// where foreign keys want to see them go.
    DropTable(Arc<Table>, Option<Box<Delete>>),
    /// Drops an index and its row.
    DropIndex(Arc<Index>),
    /// Drops a table or index whose rows in sqlite_schema cannot be used.
    DropMalformed {
        /// `table` or `index`.
        kind: &'static str,
        /// Name.
        name: String,
        /// Those that nothing else has.
        trees: Vec<Tree>,
    },
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
        /// Its database, where that is another one than the trigger's.
        database: Option<String>,
        /// Text to store.
        sql: String,
    },
    /// Removes a trigger's row.
    DropTrigger(String),
    /// Replaces the sql (and names) of a row in sqlite_schema, unless there are rows that
    /// forbid it, for which there is an error: ALTER TABLE ADD COLUMN, and of constraints.
    Rewrite(SchemaRewrite, Vec<(Node, Error)>),
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

/// Indexes of one table that are made anew.
#[derive(Debug)]
pub struct Rebuild {
    /// The tree of its database's sqlite_schema.
    pub schema: Tree,
    /// The table.
    pub table: Arc<Table>,
    /// Of each what yields the rowid and the parts of the key of each row that it holds, and
    /// how to make the keys of that.
    pub indexes: Vec<(Node, IndexWriter)>,
}

/// The database whose schema changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaPlace {
    /// Its name.
    pub name: String,
    /// The tree of its sqlite_schema.
    pub tree: Tree,
    /// The same of the temporary database, where what that has changes with it.
    pub temp: Option<Tree>,
    /// The same of others that change in the same way.
    pub others: Vec<Tree>,
}

impl SchemaPlace {
    /// Of each sqlite_schema that changes.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.temp.iter().chain([&self.tree]).chain(&self.others)
    }
}

/// A row of sqlite_schema rewritten by ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRewrite {
    /// It is the temporary database's, while the table is another one's.
    pub in_temp: bool,
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
