//! The schema: which tables and indexes a snapshot has.
//!
//! A [`Schema`] is an immutable value made from the rows of sqlite_schema as one
//! snapshot holds them and identified by that tree's stamp. The texts are parsed
//! when a name is first asked for; a text that doesn't parse, a root that doesn't
//! exist or a duplicate name is an error for those who ask for that object, not
//! for the others.

mod build;
mod catalog;
mod claims;
mod collations;
mod defaults;
mod keys;
mod making;
mod names;
mod shape_checks;
mod shared;
mod table;
mod trigger;
mod without_rowid;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use fulgurite_store::{KeyKind, Store, Tree};
use rustc_hash::FxHashMap;

pub use build::{IndexShape, TableShape, declared_shape, table_shape};
pub use catalog::{Catalog, MAIN, TEMP};
pub use claims::malformed;
use claims::{Claims, of_text};
pub use defaults::literal_value;
pub use keys::{index_columns, plain_name};
pub use making::RowChanges;
pub use names::nearest;
pub use shape_checks::check_strict_type;
use shared::{Placed, Rows, SharedMap};
pub use table::{
    Check, Column, ConflictAction, ForeignKey, Generated, Index, IndexColumn, IndexOrigin,
    IndexTarget, StrictType, Table,
};
pub use trigger::Trigger;
use trigger::TriggerEntry;

use crate::ast::{CreateTable, CreateView, Statement};
use crate::error::{Error, Result};
use crate::exec::dml::sequence::slot;
use crate::value::{Affinity, Collation, Value};

/// The family that holds the schema's rows.
pub const SCHEMA_FAMILY: &str = "sqlite_schema";

/// The table of AUTOINCREMENT's sequences.
pub const SEQUENCE: &str = "sqlite_sequence";
/// The same as it is stored, for what [`Schema::sequence_view`] asks.
const SEQUENCE_STORED: &str = "sqlite_sequence(stored)";

/// A row of sqlite_schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRow {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// The table's name, or the view's own.
    pub table: String,
    /// Tree id; 0 for a view or a trigger.
    pub root: i64,
    /// CREATE text; None for automatic indexes.
    pub sql: Option<String>,
    /// Of a temporary trigger: the database of its table, where that is another one. It is
    /// stored behind the columns that can be seen.
    pub database: Option<String>,
    /// Of a WITHOUT ROWID table: the index that is its primary key, which has no row of its
    /// own. It is stored behind the columns that can be seen, too.
    pub key: Option<KeyPlace>,
}

/// See [`SchemaRow::key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlace {
    /// Its number among the automatic indexes of its table, from 1.
    pub number: i64,
    /// Tree id.
    pub root: i64,
}

impl SchemaRow {
    /// What the row of a WITHOUT ROWID table's primary key would be, if it had one.
    pub fn key_row(&self) -> Option<SchemaRow> {
        let KeyPlace { number, root } = self.key?;
        Some(SchemaRow {
            kind: "index".to_owned(),
            name: format!("sqlite_autoindex_{}_{number}", self.name),
            table: self.name.clone(),
            root,
            sql: None,
            database: None,
            key: None,
        })
    }
}

/// All tables and indexes of one snapshot.
pub struct Schema {
    version: u64,
    store: Store,
    /// It is that of a temporary database.
    is_temp: bool,
    builtin: Arc<Table>,
    /// By their names in lower case, as all here.
    tables: SharedMap<Arc<str>, Arc<TableEntry>>,
    /// Index name to table key.
    indexes: SharedMap<Arc<str>, Arc<str>>,
    views: SharedMap<Arc<str>, Arc<ViewEntry>>,
    /// Triggers of each table or view, oldest first.
    triggers: SharedMap<Arc<str>, Arc<[Arc<TriggerEntry>]>>,
    /// Names of tables in order of creation, once somebody asks for them.
    order: OnceLock<Vec<String>>,
    /// What it was made from.
    rows: Rows,
    claims: Claims,
    references: OnceLock<Result<Arc<References>>>,
}

/// The foreign keys that refer to each table, by its name in lower case: the child and the
/// number of the key there.
type References = FxHashMap<String, Vec<(Arc<Table>, usize)>>;

/// A view: its columns' names, if given, and its query.
#[derive(Debug)]
pub struct View {
    /// Name as written.
    pub name: String,
    /// The CREATE VIEW.
    pub definition: CreateView,
}

struct ViewEntry {
    row: Arc<SchemaRow>,
    parsed: OnceLock<Result<Arc<View>>>,
}

impl ViewEntry {
    fn new(row: Arc<SchemaRow>) -> Arc<Self> {
        let parsed = OnceLock::new();
        Arc::new(Self { row, parsed })
    }
}

struct TableEntry {
    rowid: i64,
    row: Arc<SchemaRow>,
    indexes: Vec<Placed>,
    parsed: OnceLock<Result<Arc<Table>>>,
}

impl TableEntry {
    fn new(table: Placed, indexes: Vec<Placed>) -> Arc<Self> {
        Arc::new(Self {
            rowid: table.rowid,
            row: table.row,
            indexes,
            parsed: OnceLock::new(),
        })
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema")
            .field("version", &self.version)
            .field("tables", &self.table_names())
            .finish_non_exhaustive()
    }
}

impl Schema {
    /// The stamp of the rows it was made from.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The rows of sqlite_schema that it was made from, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<SchemaRow>> {
        self.rows.iter().map(|it| &it.row)
    }

    /// That of a table, by its name in any case.
    pub fn table_row(&self, name: &str) -> Option<&Arc<SchemaRow>> {
        let entry = self.tables.get(name.to_ascii_lowercase().as_str())?;
        Some(&entry.row)
    }

    /// The one of this rowid.
    pub fn row(&self, rowid: i64) -> Option<&Arc<SchemaRow>> {
        self.rows.get(rowid)
    }

    /// Whether who uses an object of it, or an index of one, names it: nothing here stands for
    /// something else, as views do, or acts on it, as triggers and foreign keys do.
    pub fn is_used_by_name(&self) -> bool {
        self.views.is_empty() && self.triggers.is_empty() && !self.claims.refer()
    }

    /// The same with their rowids.
    pub fn placed_rows(&self) -> impl Iterator<Item = (i64, &Arc<SchemaRow>)> {
        self.rows.iter().map(|it| (it.rowid, &it.row))
    }

    /// The schema that these rows, each in the place of its own, describe, of no version.
    #[must_use]
    pub fn with_texts(&self, rows: impl IntoIterator<Item = SchemaRow>) -> Schema {
        let rowids = self.rows.iter().map(|it| it.rowid);
        self.with_rows(0, rowids.zip(rows))
    }

    /// The store it belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The tree of sqlite_schema.
    pub fn tree(&self) -> &Tree {
        &self.builtin.tree
    }

    /// It is that of a temporary database.
    pub fn is_temp(&self) -> bool {
        self.is_temp
    }

    /// Whether a bare name, in lower case, is that of a table or view here.
    pub fn holds(&self, key: &str) -> bool {
        let key = if key == SEQUENCE_STORED {
            SEQUENCE
        } else {
            key
        };
        match key {
            "sqlite_schema" | "sqlite_master" => !self.is_temp,
            "sqlite_temp_schema" | "sqlite_temp_master" => self.is_temp,
            _ => self.tables.contains_key(key) || self.views.contains_key(key),
        }
    }

    /// The table of a name, in any case; None where there is none.
    pub fn table(&self, name: &str) -> Result<Option<Arc<Table>>> {
        let key = name.to_ascii_lowercase();
        let is_builtin = match key.as_str() {
            "sqlite_schema" | "sqlite_master" => true,
            "sqlite_temp_schema" | "sqlite_temp_master" => self.is_temp,
            _ => false,
        };
        if is_builtin {
            return Ok(Some(self.builtin.clone()));
        }
        let key = if key == SEQUENCE_STORED {
            SEQUENCE
        } else {
            key.as_str()
        };
        match self.tables.get(key) {
            None => Ok(None),
            Some(entry) => entry
                .parsed
                .get_or_init(|| self.parse(entry))
                .clone()
                .map(Some),
        }
    }

    /// The foreign keys that refer to the table of a name, in any case: the child and the
    /// number of the key there. The newest come first, as SQLite looks at them.
    pub fn references_to(&self, name: &str) -> Result<&[(Arc<Table>, usize)]> {
        let all = self
            .references
            .get_or_init(|| self.find_references().map(Arc::new));
        let all = all.as_ref().map_err(Error::clone)?;
        let found = all.get(&name.to_ascii_lowercase());
        Ok(found.map_or(&[], Vec::as_slice))
    }

    fn find_references(&self) -> Result<References> {
        let mut all = References::default();
        for name in self.table_names().iter().rev() {
            let entry = self.tables.get(name.to_ascii_lowercase().as_str());
            let sql = entry.and_then(|e| e.row.sql.as_deref()).unwrap_or_default();
            // Most tables have none, and need not be read for it.
            if !sql.to_ascii_lowercase().contains("references") {
                continue;
            }
            let Some(table) = self.table(name)? else {
                continue;
            };
            for (number, key) in table.foreign_keys.iter().enumerate().rev() {
                let parent = all.entry(key.parent.to_ascii_lowercase()).or_default();
                parent.push((Arc::clone(&table), number));
            }
        }
        Ok(all)
    }

    /// The index of a name, in any case, with its table.
    pub fn index(&self, name: &str) -> Result<Option<(Arc<Table>, Arc<Index>)>> {
        let Some(table) = self.indexes.get(name.to_ascii_lowercase().as_str()) else {
            return Ok(None);
        };
        let Some(table) = self.table(table)? else {
            return Ok(None);
        };
        let found = table
            .indexes
            .iter()
            .find(|i| i.name.eq_ignore_ascii_case(name))
            .cloned();
        Ok(found.map(|index| (table, index)))
    }

    /// The view of a name, in any case.
    pub fn view(&self, name: &str) -> Result<Option<Arc<View>>> {
        let Some(entry) = self.views.get(name.to_ascii_lowercase().as_str()) else {
            return Ok(None);
        };
        let parse = || {
            let row = &entry.row;
            let sql = row.sql.as_deref().unwrap_or_default();
            let parsed = crate::parse::parse(sql).map_err(|error| of_text(&row.name, error))?;
            let Some(Statement::CreateView(create)) = parsed.statement else {
                return Err(malformed(&row.name, "not a CREATE VIEW"));
            };
            self.check_text(row, &create.name.name.text, &row.name)?;
            Ok(Arc::new(View {
                name: row.name.clone(),
                definition: *create,
            }))
        };
        entry.parsed.get_or_init(parse).clone().map(Some)
    }

    /// Names of all views.
    pub fn view_names(&self) -> impl Iterator<Item = &str> {
        self.views.values().map(|v| v.row.name.as_str())
    }

    /// Names of all tables, oldest first.
    pub fn table_names(&self) -> &[String] {
        let names = || self.rows().filter(|row| row.is("table"));
        self.order
            .get_or_init(|| names().map(|row| row.name.clone()).collect())
    }

    /// Names of all indexes.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.tables
            .values()
            .flat_map(|t| t.indexes.iter().map(|i| i.row.name.as_str()))
    }

    /// Whether a table has an index of this name, in any case.
    pub fn has_index(&self, name: &str) -> bool {
        let is_it = |index: &str| index.eq_ignore_ascii_case(name);
        match self.claims.are_plain() {
            true => self
                .indexes
                .contains_key(name.to_ascii_lowercase().as_str()),
            // Of those without a table this is not true.
            false => self.index_names().any(is_it),
        }
    }

    /// Names of all WITHOUT ROWID tables.
    pub fn keyed_names(&self) -> impl Iterator<Item = &str> {
        let keyed = self.tables.values().filter(|t| t.row.key.is_some());
        keyed.map(|t| t.row.name.as_str())
    }

    /// The tree of sqlite_sequence, if there is that table.
    pub fn sequence_tree(&self) -> Result<Option<Tree>> {
        let stored = self.table(SEQUENCE)?;
        Ok(stored.map(|stored| stored.tree.clone()))
    }

    /// The tables with AUTOINCREMENT, oldest first.
    pub fn autoincrement_tables(&self) -> Result<Vec<Arc<Table>>> {
        let mut found = Vec::new();
        for name in self.table_names() {
            let entry = self.tables.get(name.to_ascii_lowercase().as_str());
            let sql = entry.and_then(|e| e.row.sql.as_deref()).unwrap_or_default();
            if sql.to_ascii_lowercase().contains("autoincrement")
                && let Some(table) = self.table(name)?
                && table.sequence.is_some()
            {
                found.push(table);
            }
        }
        Ok(found)
    }

    /// What a query of sqlite_sequence shows, if there is that table.
    pub fn sequence_view(&self) -> Result<Option<View>> {
        if !self.tables.contains_key(SEQUENCE) {
            return Ok(None);
        }
        let quoted = |quote: &str, text: &str| {
            format!("{quote}{}{quote}", text.replace(quote, &quote.repeat(2)))
        };
        let stored = quoted("\"", SEQUENCE_STORED);
        let (mut sql, mut slots) = (String::new(), vec!["0".to_owned()]);
        for table in self.autoincrement_tables()? {
            let slot = slot(&table.tree);
            let (name, of) = (quoted("'", &table.name), quoted("\"", &table.name));
            let _ = write!(
                sql,
                "SELECT {name} AS name, \
                 max(coalesce(seq, 0), coalesce((SELECT max(_rowid_) FROM {of}), 0)) AS seq \
                 FROM {stored} WHERE _rowid_ = {slot} \
                 AND (seq IS NOT NULL OR EXISTS (SELECT 1 FROM {of})) UNION ALL "
            );
            slots.push(slot.to_string());
        }
        let _ = write!(
            sql,
            "SELECT name, seq FROM {stored} WHERE _rowid_ NOT IN ({})",
            slots.join(", ")
        );
        let sql = format!("CREATE VIEW {SEQUENCE} AS {sql}");
        match crate::parse::parse(&sql)?.statement {
            Some(Statement::CreateView(create)) => Ok(Some(View {
                name: SEQUENCE.to_owned(),
                definition: *create,
            })),
            _ => Err(Error::corrupt(
                "malformed database schema (sqlite_sequence)",
            )),
        }
    }

    fn parse(&self, entry: &TableEntry) -> Result<Arc<Table>> {
        self.parse_table(entry)
            .map_err(|error| of_text(&entry.row.name, error))
    }

    fn parse_table(&self, entry: &TableEntry) -> Result<Arc<Table>> {
        let row = &entry.row;
        let bad = |what: &str| malformed(&row.name, what);
        let sql = row.sql.as_deref().unwrap_or_default();
        let Some(Statement::CreateTable(create)) = crate::parse::parse(sql)?.statement else {
            return Err(bad("not a CREATE TABLE"));
        };
        self.check_text(row, &create.name.name.text, &row.name)?;
        let (mut table, automatic) = self.bare_table(row, &create)?;
        if row.name.eq_ignore_ascii_case(SEQUENCE) && !is_sequence(&table) {
            return Err(bad("not the table of sequences"));
        }
        for automatic in automatic {
            let found = entry
                .indexes
                .iter()
                .map(|index| &index.row)
                .find(|r| r.name.eq_ignore_ascii_case(&automatic.name));
            let found = found.ok_or_else(|| bad("an automatic index is missing"))?;
            self.check_name(found)?;
            let tree = self.tree_of(found, KeyKind::Bytes)?;
            table
                .indexes
                .push(keys::automatic_index(automatic, &table.name, tree));
        }
        for Placed { row: index, .. } in &entry.indexes {
            if let Some(sql) = &index.sql {
                let parsed = self.parse_index(index, sql, &table);
                let parsed = parsed.map_err(|error| of_text(&index.name, error))?;
                table.indexes.push(Arc::new(parsed));
            }
        }
        Ok(Arc::new(table))
    }

    /// The table of a row, whose text is this one, without indexes; and those that its
    /// constraints have.
    pub fn bare_table(
        &self,
        row: &SchemaRow,
        create: &CreateTable,
    ) -> Result<(Table, Vec<IndexShape>)> {
        let shape = table_shape(create)?;
        let has_generated = shape.has_generated();
        let asks_program = shape.asks_program();
        let table = Table {
            name: row.name.clone(),
            tree: self.tree_of(row, KeyKind::Int)?,
            columns: shape.columns,
            rowid_alias: shape.rowid_alias,
            autoincrement: shape.autoincrement,
            sequence: match shape.autoincrement && !row.name.eq_ignore_ascii_case(SEQUENCE) {
                true => self.sequence_tree()?,
                false => None,
            },
            rowid_conflict: shape.rowid_conflict,
            without_rowid: shape.without_rowid,
            indexes: Vec::new(),
            checks: shape.checks,
            foreign_keys: shape.foreign_keys,
            has_generated,
            asks_program,
            strict: shape.strict,
            sql: row.sql.clone().unwrap_or_default(),
        };
        Ok((table, shape.automatic))
    }

    fn parse_index(&self, row: &SchemaRow, sql: &str, table: &Table) -> Result<Index> {
        let Some(Statement::CreateIndex(create)) = crate::parse::parse(sql)?.statement else {
            return Err(malformed(&row.name, "not a CREATE INDEX"));
        };
        self.check_text(row, &create.name.name.text, &create.table.text)?;
        Ok(Index {
            name: row.name.clone(),
            table: table.name.clone(),
            tree: self.tree_of(row, KeyKind::Bytes)?,
            columns: index_columns(&create, table)?,
            unique: create.unique,
            conflict: ConflictAction::Abort,
            origin: IndexOrigin::Create,
            predicate: create.filter,
            sql: sql.to_owned(),
        })
    }
}

/// Whether a table is one that AUTOINCREMENT can write to.
fn is_sequence(table: &Table) -> bool {
    let names = table.columns.iter().map(|column| column.name.as_str());
    let is_plain = table.indexes.is_empty() && table.rowid_alias.is_none();
    is_plain && !table.autoincrement && names.eq(["name", "seq"])
}

/// sqlite_schema as a table like any other.
fn schema_table(tree: Tree, is_temp: bool) -> Table {
    let columns = [
        ("type", "TEXT"),
        ("name", "TEXT"),
        ("tbl_name", "TEXT"),
        ("rootpage", "INT"),
        ("sql", "TEXT"),
    ];
    let column = |(name, decl_type): (&str, &str)| Column {
        name: name.to_owned(),
        decl_type: decl_type.to_owned(),
        affinity: Affinity::of_declared_type(decl_type),
        collation: Collation::Binary,
        not_null: None,
        default: None,
        missing: Value::Null,
        primary_key: 0,
        generated: None,
        strict: None,
    };
    let name = match is_temp {
        true => "sqlite_temp_schema",
        false => "sqlite_schema",
    };
    Table {
        name: name.to_owned(),
        tree,
        columns: columns.into_iter().map(column).collect(),
        rowid_alias: None,
        autoincrement: false,
        sequence: None,
        rowid_conflict: ConflictAction::Abort,
        without_rowid: false,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        has_generated: false,
        asks_program: false,
        strict: false,
        sql: format!(
            "CREATE TABLE {name}(type text, name text, tbl_name text, rootpage int, sql text)"
        ),
    }
}
