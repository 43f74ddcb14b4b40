//! PRAGMAs: those about the schema are answered here as constant rows, the
//! others go to the session. Unknown ones do nothing, as in SQLite.

mod function;
mod lists;

use std::sync::Arc;

use super::Binder;
use super::dml::text;
use super::expr::{Expr, ExprKind, Props};
use super::logical::{Body, Bound, Query, QueryColumn};
use crate::ast;
use crate::ast::Literal;
use crate::error::{Error, Result};
use crate::plan::physical::{Action, OutputColumn, Pragma};
use crate::schema::{Column, ConflictAction, Index, IndexOrigin, IndexTarget, Schema, TEMP, Table};
use crate::session::fixed_pragma as fixed;
use crate::value::Value;
use crate::value::collate::CollationName;

/// Those about what there is.
const SCHEMA: &[&str] = &[
    "collation_list",
    "compile_options",
    "database_list",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "module_list",
    "pragma_list",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Those that the session answers, and the column they show.
const SESSION: &[&str] = &[
    "application_id",
    "busy_timeout",
    "cache_size",
    "case_sensitive_like",
    "data_version",
    "encoding",
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_keys",
    "freelist_count",
    "integrity_check",
    "isolation_level",
    "journal_mode",
    "page_count",
    "page_size",
    "query_only",
    "quick_check",
    "recursive_triggers",
    "schema_version",
    "synchronous",
    "trusted_schema",
    "user_version",
    "wal_checkpoint",
    "wal_status",
];

/// What sqlite_schema is called.
const SCHEMA_TABLES: [&str; 4] = [
    "sqlite_schema",
    "sqlite_master",
    "sqlite_temp_schema",
    "sqlite_temp_master",
];

/// Those that answer when they are set, too, or whose value is no setting.
const ANSWERS_WHEN_SET: &[&str] = &[
    "analysis_limit",
    "busy_timeout",
    "foreign_key_check",
    "hard_heap_limit",
    "integrity_check",
    "isolation_level",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "max_page_count",
    "mmap_size",
    "quick_check",
    "secure_delete",
    "soft_heap_limit",
    "threads",
    "wal_autocheckpoint",
    "wal_checkpoint",
];

/// Whether one has a row when it is set.
pub fn answers_when_set(name: &str) -> bool {
    ANSWERS_WHEN_SET.contains(&name)
}

/// The columns of one that the session answers.
pub(super) fn answered_columns(name: &str) -> Vec<&'static str> {
    match name {
        "wal_checkpoint" => vec!["busy", "log", "checkpointed"],
        "wal_status" => vec!["counter", "value"],
        "foreign_key_check" => vec!["table", "rowid", "parent", "fkid"],
        "busy_timeout" => vec!["timeout"],
        other => {
            let known = SESSION.iter().find(|known| **known == other).copied();
            let known = known.or_else(|| fixed(other).map(|(name, _)| name));
            known.into_iter().collect()
        }
    }
}

/// Whether it looks through all tables or one.
pub(super) fn takes_table(name: &str) -> bool {
    matches!(
        name,
        "integrity_check" | "quick_check" | "foreign_key_check"
    )
}

/// Whether the session answers it.
pub(super) fn is_answered(name: &str) -> bool {
    SESSION.contains(&name) || fixed(name).is_some()
}

impl<'a> Binder<'a> {
    pub(super) fn pragma(&mut self, pragma: &ast::Pragma) -> Result<Bound> {
        let name = pragma.name.text.to_ascii_lowercase();
        let argument = match &pragma.value {
            Some(Literal::Text(text)) => Some(text.as_str()),
            Some(_) => Some(""),
            None => None,
        };
        let named = pragma.schema.as_ref();
        let database = named.map(|schema| self.database(schema)).transpose()?;
        if let Some(rows) = self.schema_pragma(&name, argument, named)? {
            return Ok(rows.query());
        }
        if !is_answered(&name) {
            return Ok(Bound::Ready(Action::Nothing, Vec::new()));
        }
        let value = pragma.value.as_ref().map(|literal| match literal {
            Literal::Null | Literal::Current(_) => Value::Null,
            Literal::Integer(n) => Value::Integer(*n),
            Literal::Real(r) => Value::real(*r),
            Literal::Text(t) => Value::Text(t.clone().into_bytes()),
            Literal::Blob(b) => Value::Blob(b.clone()),
        });
        let column = |name: &str| OutputColumn::named(name);
        let checked = match (takes_table(&name), argument, &value) {
            (true, Some(table), Some(Value::Text(_))) => Some(self.checked_table(table, named)?),
            (true, _, None) if name == "foreign_key_check" => {
                Some(database.unwrap_or(self.catalog.main()))
            }
            _ => database,
        };
        let columns = match name.as_str() {
            // Those that are merely set have no columns, as in SQLite.
            other if value.is_some() && !answers_when_set(other) => Vec::new(),
            "case_sensitive_like" => Vec::new(),
            other => answered_columns(other).into_iter().map(column).collect(),
        };
        Ok(Bound::Ready(
            Action::Pragma(Pragma {
                name,
                value,
                store: checked.map(|schema| schema.tree().store_number()),
            }),
            columns,
        ))
    }

    /// The rows of a PRAGMA about the schema; None: it is none.
    pub(super) fn schema_pragma(
        &mut self,
        name: &str,
        argument: Option<&str>,
        database: Option<&ast::Name>,
    ) -> Result<Option<Rows>> {
        let of = &ast::QualifiedName {
            schema: database.cloned(),
            name: ast::Name::synthetic(argument.unwrap_or("")),
        };
        Ok(Some(match name {
            "table_info" | "table_xinfo" => self.table_info(of, name == "table_xinfo")?,
            "index_list" => self.index_list(of)?,
            "index_info" | "index_xinfo" => self.index_info(of, name == "index_xinfo")?,
            "foreign_key_list" => self.foreign_key_list(of)?,
            "table_list" => self.table_list(argument, database)?,
            "collation_list" => {
                let names = ["RTRIM", "NOCASE", "BINARY"].into_iter();
                let collations = self.settings.user.collations();
                let names = names.chain(collations.names().map(CollationName::text));
                let rows = names.enumerate();
                let rows = rows.map(|(i, n)| vec![int(i), text(n)]).collect();
                rows_of(&["seq", "name"], rows)
            }
            "database_list" => {
                let row = |(seq, schema): (usize, &Schema)| {
                    let path = schema.store().path().filter(|_| !schema.is_temp());
                    let path = path.map_or(String::new(), |p| p.display().to_string());
                    vec![int(seq), text(self.catalog.name_of(schema)), text(path)]
                };
                let rows = self.catalog.numbered().map(row).collect();
                rows_of(&["seq", "name", "file"], rows)
            }
            "compile_options" | "function_list" | "module_list" | "pragma_list" => {
                lists::of(name, &self.settings.user)
            }
            _ => return Ok(None),
        }))
    }

    /// The database, this one or the first, that has a table to be looked through.
    ///
    /// # Errors
    /// None has.
    pub(super) fn checked_table(
        &self,
        name: &str,
        database: Option<&ast::Name>,
    ) -> Result<&'a Schema> {
        let key = name.to_ascii_lowercase();
        let found = self.schema_where(database, |schema| schema.holds(&key));
        found.filter(|it| it.holds(&key)).ok_or_else(|| {
            let before = database.map_or(String::new(), |it| format!("{}.", it.text));
            Error::sql(format!("no such table: {before}{name}"))
        })
    }

    fn table_info(&mut self, of: &ast::QualifiedName, extended: bool) -> Result<Rows> {
        let mut names = vec!["cid", "name", "type", "notnull", "dflt_value", "pk"];
        if extended {
            names.push("hidden");
        }
        let Some(schema) = self.schema_of(of) else {
            return Ok(rows_of(&names, Vec::new()));
        };
        let name = &of.name.text;
        let Some(table) = schema.table(name)? else {
            let columns = match schema.view(name)? {
                Some(view) => self.view_columns(&view, schema)?,
                None => Vec::new(),
            };
            let row = |(i, (name, decl_type)): (usize, (String, String))| {
                let mut row = vec![int(i), text(name), text(decl_type)];
                row.extend([int(0), Expr::null(), int(0)]);
                row.extend(extended.then(|| int(0)));
                row
            };
            let rows = columns.into_iter().enumerate().map(row).collect();
            return Ok(rows_of(&names, rows));
        };
        let shown = |column: &&Column| extended || column.generated.is_none();
        let rows = table
            .columns
            .iter()
            .filter(shown)
            .enumerate()
            .map(|(i, column)| {
                let default = match &column.default {
                    Some(expr) => default_text(&table.sql, expr),
                    None => Expr::null(),
                };
                let not_null = usize::from(column.not_null.is_some());
                let mut row = vec![
                    int(i),
                    text(column.name.clone()),
                    text(column.decl_type.clone()),
                    int(not_null),
                    default,
                    int(column.primary_key),
                ];
                if extended {
                    row.push(int(match &column.generated {
                        None => 0,
                        Some(generated) => 2 + usize::from(generated.stored),
                    }));
                }
                row
            })
            .collect();
        Ok(rows_of(&names, rows))
    }

    /// Newest index first, as SQLite lists them.
    fn index_list(&self, of: &ast::QualifiedName) -> Result<Rows> {
        let names = ["seq", "name", "unique", "origin", "partial"];
        let Some(table) = self.table_of(of)? else {
            return Ok(rows_of(&names, Vec::new()));
        };
        let is_replacing = |index: &&Arc<Index>| index.conflict == ConflictAction::Replace;
        let newest_first = table.indexes.iter().rev();
        // SQLite keeps those last whose conflicts take other rows away.
        let (last, first): (Vec<_>, Vec<_>) = newest_first.partition(is_replacing);
        let rows = first
            .into_iter()
            .chain(last)
            .enumerate()
            .map(|(i, index)| {
                let origin = match index.origin {
                    IndexOrigin::Create => "c",
                    IndexOrigin::Unique => "u",
                    IndexOrigin::PrimaryKey => "pk",
                };
                let partial = usize::from(index.predicate.is_some());
                vec![
                    int(i),
                    text(index.name.clone()),
                    int(usize::from(index.unique)),
                    text(origin),
                    int(partial),
                ]
            })
            .collect();
        Ok(rows_of(&names, rows))
    }

    fn index_info(&self, of: &ast::QualifiedName, extended: bool) -> Result<Rows> {
        let mut names = vec!["seqno", "cid", "name"];
        if extended {
            names.extend(["desc", "coll", "key"]);
        }
        let name = &of.name.text;
        let holds = |schema: &Schema| schema.has_index(name);
        let schema = self.schema_where(of.schema.as_ref(), holds);
        let index = schema.map(|schema| schema.index(name)).transpose()?;
        let found = match index.flatten() {
            Some(found) => Some(found),
            // The name of a WITHOUT ROWID table stands for its primary key.
            None => self.table_of(of)?.and_then(|table| {
                let key = table.key()?;
                Some((Arc::clone(&table), Arc::clone(key)))
            }),
        };
        let Some((table, index)) = found else {
            return Ok(rows_of(&names, Vec::new()));
        };
        let mut rows: Vec<Vec<Expr>> = index
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let at = match &column.target {
                    IndexTarget::Column(at) => Some(*at),
                    IndexTarget::Rowid => table.rowid_alias,
                    IndexTarget::Expr(_) => None,
                };
                let mut row = match at.and_then(|at| table.columns.get(at).map(|c| (at, c))) {
                    Some((at, c)) => vec![int(i), int(at), text(c.name.clone())],
                    None => vec![int(i), Expr::literal(Value::Integer(-2)), Expr::null()],
                };
                if extended {
                    let collation = text(column.named.name());
                    row.extend([int(usize::from(column.descending)), collation, int(1)]);
                }
                row
            })
            .collect();
        if extended {
            // The rowid behind the key, or what stands for it.
            for (at, descending, collation) in table.behind(&index) {
                let column = at.and_then(|at| table.columns.get(at).map(|c| (at, c)));
                let mut row = vec![int(rows.len())];
                match column {
                    Some((at, c)) => row.extend([int(at), text(c.name.clone())]),
                    None => row.extend([Expr::literal(Value::Integer(-1)), Expr::null()]),
                }
                let descending = int(usize::from(descending));
                row.extend([descending, text(collation.name()), int(0)]);
                rows.push(row);
            }
        }
        Ok(rows_of(&names, rows))
    }

    /// The last foreign key first, as SQLite numbers them.
    fn foreign_key_list(&self, of: &ast::QualifiedName) -> Result<Rows> {
        let names = [
            "id",
            "seq",
            "table",
            "from",
            "to",
            "on_update",
            "on_delete",
            "match",
        ];
        let mut rows = Vec::new();
        if let Some(table) = self.table_of(of)? {
            for (id, key) in table.foreign_keys.iter().rev().enumerate() {
                for (seq, at) in key.columns.iter().enumerate() {
                    let from = table.columns.get(*at).map_or("", |c| c.name.as_str());
                    let to = key.parent_columns.as_ref().and_then(|to| to.get(seq));
                    rows.push(vec![
                        int(id),
                        int(seq),
                        text(key.parent.clone()),
                        text(from),
                        to.map_or_else(Expr::null, |to| text(to.clone())),
                        text(action_name(key.on_update)),
                        text(action_name(key.on_delete)),
                        text("NONE"),
                    ]);
                }
            }
        }
        Ok(rows_of(&names, rows))
    }

    /// The table that a PRAGMA asks about.
    fn table_of(&self, of: &ast::QualifiedName) -> Result<Option<Arc<Table>>> {
        let schema = self.schema_of(of);
        let table = schema.map(|schema| schema.table(&of.name.text));
        Ok(table.transpose()?.flatten())
    }

    /// All tables and views, or those of one name, or of one database.
    fn table_list(&mut self, only: Option<&str>, database: Option<&ast::Name>) -> Result<Rows> {
        let names = ["schema", "name", "type", "ncol", "wr", "strict"];
        let is_asked = |schema: &Schema| {
            let name = self.catalog.name_of(schema);
            database.is_none_or(|database| database.text.eq_ignore_ascii_case(name))
        };
        let schemas = self.catalog.numbered().map(|(_, schema)| schema);
        let schemas: Vec<&Schema> = schemas.filter(|schema| is_asked(schema)).collect();
        let mut rows = Vec::new();
        let shows_temp = self.catalog.temp().is_none()
            && database.is_none_or(|database| database.text.eq_ignore_ascii_case(TEMP))
            && only.is_none_or(|only| only.eq_ignore_ascii_case("sqlite_temp_master"));
        for schema in schemas {
            self.tables_of(schema, only, &mut rows)?;
            if shows_temp && schema.tree() == self.catalog.main().tree() {
                rows.push(table_row(TEMP, "sqlite_temp_schema", "table", 5, None));
            }
        }
        Ok(rows_of(&names, rows))
    }

    fn tables_of(
        &mut self,
        schema: &'a Schema,
        only: Option<&str>,
        rows: &mut Vec<Vec<Expr>>,
    ) -> Result<()> {
        let is_asked = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        let database = self.catalog.name_of(schema);
        for name in schema.table_names().iter().filter(|n| is_asked(n)) {
            if let Some(table) = schema.table(name)? {
                let columns = table.columns.len();
                rows.push(table_row(database, name, "table", columns, Some(&table)));
            }
        }
        for name in schema.view_names().filter(|n| is_asked(n)) {
            let columns = match schema.view(name)? {
                // One that cannot be read has none.
                Some(view) => self
                    .view_columns(&view, schema)
                    .map_or(0, |columns| columns.len()),
                None => 0,
            };
            rows.push(table_row(database, name, "view", columns, None));
        }
        let (shown, asked) = match schema.is_temp() {
            true => ("sqlite_temp_schema", "sqlite_temp_master"),
            false => ("sqlite_schema", "sqlite_master"),
        };
        if is_asked(asked) {
            rows.push(table_row(database, shown, "table", 5, None));
        }
        Ok(())
    }
}

/// The text of a DEFAULT, from the CREATE TABLE it stands in.
fn default_text(sql: &str, expr: &ast::Expr) -> Expr {
    match crate::parse::expression_text(sql, expr.offset) {
        Some(found) => text(found),
        None => Expr::null(),
    }
}

/// A row of `PRAGMA table_list`.
fn table_row(
    database: &str,
    name: &str,
    kind: &str,
    columns: usize,
    table: Option<&Table>,
) -> Vec<Expr> {
    let is = |option: fn(&Table) -> bool| int(usize::from(table.is_some_and(option)));
    vec![
        text(database),
        text(name),
        text(kind),
        int(columns),
        is(|table| table.without_rowid),
        is(|table| table.strict),
    ]
}

fn action_name(action: ast::ForeignAction) -> &'static str {
    match action {
        ast::ForeignAction::NoAction => "NO ACTION",
        ast::ForeignAction::Restrict => "RESTRICT",
        ast::ForeignAction::SetNull => "SET NULL",
        ast::ForeignAction::SetDefault => "SET DEFAULT",
        ast::ForeignAction::Cascade => "CASCADE",
    }
}

fn int(n: usize) -> Expr {
    Expr::literal(Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)))
}

/// What a PRAGMA answers.
pub(super) struct Rows {
    pub names: Vec<&'static str>,
    rows: Vec<Vec<Expr>>,
}

fn rows_of(names: &[&'static str], rows: Vec<Vec<Expr>>) -> Rows {
    Rows {
        names: names.to_vec(),
        rows,
    }
}

impl Rows {
    /// As values.
    pub(super) fn values(self) -> Vec<Vec<Value>> {
        let value = |e: Expr| match e.kind {
            ExprKind::Literal(value) => value,
            _ => Value::Null,
        };
        let rows = self.rows.into_iter();
        rows.map(|row| row.into_iter().map(value).collect())
            .collect()
    }

    /// As a query.
    fn query(self) -> Bound {
        let column = |name: &&'static str| QueryColumn {
            output: OutputColumn::named(*name),
            props: Props {
                constant: false,
                ..Props::CONSTANT
            },
        };
        Bound::Query(Query {
            columns: self.names.iter().map(column).collect(),
            body: Body::Values(self.rows),
            order_by: Vec::new(),
            limit: None,
        })
    }
}
