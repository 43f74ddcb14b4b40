//! PRAGMAs: those about the schema are answered here as constant rows, the
//! others go to the session. Unknown ones do nothing, as in SQLite.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Binder;
use super::dml::text;
use super::expr::{Expr, ExprKind, Props};
use super::logical::{Body, Bound, Query, QueryColumn};
use crate::ast;
use crate::ast::Literal;
use crate::error::Result;
use crate::func::table::{KnownRows, TableFunction};
use crate::plan::physical::{Action, OutputColumn, Pragma};
use crate::schema::{Column, IndexOrigin, IndexTarget};
use crate::session::fixed_pragma as fixed;
use crate::value::Value;

/// Those that the session answers, and the column they show.
const SESSION: &[&str] = &[
    "application_id",
    "busy_timeout",
    "cache_size",
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
    "quick_check",
    "recursive_triggers",
    "schema_version",
    "synchronous",
    "user_version",
    "wal_checkpoint",
    "wal_status",
];

/// Those that answer when they are set, too, or whose value is no setting.
const ANSWERS_WHEN_SET: &[&str] = &[
    "foreign_key_check",
    "integrity_check",
    "isolation_level",
    "journal_mode",
    "quick_check",
];

impl Binder<'_> {
    pub(super) fn pragma(&mut self, pragma: &ast::Pragma) -> Result<Bound> {
        let name = pragma.name.text.to_ascii_lowercase();
        let argument = match &pragma.value {
            Some(Literal::Text(text)) => Some(text.as_str()),
            Some(_) => Some(""),
            None => None,
        };
        if let Some(rows) = self.schema_pragma(&name, argument)? {
            return Ok(rows.query());
        }
        if !SESSION.contains(&name.as_str()) && fixed(&name).is_none() {
            return Ok(Bound::Ready(Action::Nothing, Vec::new()));
        }
        let value = pragma.value.as_ref().map(|literal| match literal {
            Literal::Null | Literal::Current(_) => Value::Null,
            Literal::Integer(n) => Value::Integer(*n),
            Literal::Real(r) => Value::real(*r),
            Literal::Text(t) => Value::Text(t.clone().into_bytes()),
            Literal::Blob(b) => Value::Blob(b.clone()),
        });
        let column = |name: &str| OutputColumn {
            name: name.to_owned(),
            decl_type: None,
            origin: None,
        };
        let columns = match name.as_str() {
            "wal_checkpoint" => vec![column("busy"), column("log"), column("checkpointed")],
            "wal_status" => vec![column("counter"), column("value")],
            "foreign_key_check" => ["table", "rowid", "parent", "fkid"].map(column).to_vec(),
            "busy_timeout" => vec![column("timeout")],
            // Those that are merely set have no columns, as in SQLite.
            other if value.is_some() && !ANSWERS_WHEN_SET.contains(&other) => Vec::new(),
            other => vec![column(other)],
        };
        Ok(Bound::Ready(
            Action::Pragma(Pragma { name, value }),
            columns,
        ))
    }

    /// The rows of a PRAGMA about the schema; None: it is none.
    fn schema_pragma(&mut self, name: &str, argument: Option<&str>) -> Result<Option<Rows>> {
        let of = argument.unwrap_or("");
        Ok(Some(match name {
            "table_info" | "table_xinfo" => self.table_info(of, name == "table_xinfo")?,
            "index_list" => self.index_list(of)?,
            "index_info" | "index_xinfo" => self.index_info(of, name == "index_xinfo")?,
            "foreign_key_list" => self.foreign_key_list(of)?,
            "table_list" => self.table_list(argument)?,
            "collation_list" => {
                let names = ["RTRIM", "NOCASE", "BINARY"];
                let rows = names.iter().enumerate();
                let rows = rows.map(|(i, n)| vec![int(i), text(*n)]).collect();
                rows_of(&["seq", "name"], rows)
            }
            "database_list" => {
                let path = self
                    .schema
                    .store()
                    .path()
                    .map_or(String::new(), |p| p.display().to_string());
                let row = vec![int(0), text("main"), text(path)];
                rows_of(&["seq", "name", "file"], vec![row])
            }
            _ => return Ok(None),
        }))
    }

    /// A PRAGMA about the schema as a table-valued function, `pragma_…`. What it answers is
    /// looked up now, for the argument if that is a text, else for each that there is.
    pub(super) fn pragma_function(
        &mut self,
        name: &str,
        args: &[ast::Expr],
    ) -> Result<Option<Arc<dyn TableFunction>>> {
        let name = name.to_ascii_lowercase();
        let Some(pragma) = name.strip_prefix("pragma_") else {
            return Ok(None);
        };
        let Some(without) = self.schema_pragma(pragma, None)? else {
            return Ok(None);
        };
        let hidden: &'static [&'static str] = match pragma {
            "collation_list" | "database_list" => &[],
            "table_list" => &["schema"],
            _ => &["arg", "schema"],
        };
        let mut function = KnownRows {
            name: name.clone(),
            columns: without.names.clone(),
            hidden,
            without: Arc::new(without.values()),
            by_argument: FxHashMap::default(),
        };
        let asked = match args.first().map(|arg| &arg.kind) {
            _ if hidden.first() != Some(&"arg") => Vec::new(),
            Some(ast::ExprKind::Literal(Literal::Text(text))) => vec![text.to_ascii_lowercase()],
            _ if matches!(pragma, "index_info" | "index_xinfo") => {
                let names = self.schema.index_names();
                names.map(str::to_ascii_lowercase).collect()
            }
            _ => {
                let tables = self.schema.table_names().iter().map(String::as_str);
                let builtin = ["sqlite_schema", "sqlite_master"];
                let names = tables.chain(self.schema.view_names()).chain(builtin);
                names.map(str::to_ascii_lowercase).collect()
            }
        };
        for argument in asked {
            if let Some(rows) = self.schema_pragma(pragma, Some(&argument))? {
                function
                    .by_argument
                    .insert(argument, Arc::new(rows.values()));
            }
        }
        Ok(Some(Arc::new(function)))
    }

    fn table_info(&mut self, name: &str, extended: bool) -> Result<Rows> {
        let mut names = vec!["cid", "name", "type", "notnull", "dflt_value", "pk"];
        if extended {
            names.push("hidden");
        }
        let Some(table) = self.schema.table(name)? else {
            let columns = match self.schema.view(name)? {
                Some(view) => self.view_columns(&view)?,
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
    fn index_list(&self, name: &str) -> Result<Rows> {
        let names = ["seq", "name", "unique", "origin", "partial"];
        let Some(table) = self.schema.table(name)? else {
            return Ok(rows_of(&names, Vec::new()));
        };
        let rows = table
            .indexes
            .iter()
            .rev()
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

    fn index_info(&self, name: &str, extended: bool) -> Result<Rows> {
        let mut names = vec!["seqno", "cid", "name"];
        if extended {
            names.extend(["desc", "coll", "key"]);
        }
        let Some((table, index)) = self.schema.index(name)? else {
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
                    let collation = text(column.collation.name());
                    row.extend([int(usize::from(column.descending)), collation, int(1)]);
                }
                row
            })
            .collect();
        if extended {
            // The rowid behind the key.
            let rowid = Expr::literal(Value::Integer(-1));
            let at = int(rows.len());
            rows.push(vec![
                at,
                rowid,
                Expr::null(),
                int(0),
                text("BINARY"),
                int(0),
            ]);
        }
        Ok(rows_of(&names, rows))
    }

    /// The last foreign key first, as SQLite numbers them.
    fn foreign_key_list(&self, name: &str) -> Result<Rows> {
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
        if let Some(table) = self.schema.table(name)? {
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

    /// All tables and views, or those of one name.
    fn table_list(&mut self, only: Option<&str>) -> Result<Rows> {
        let is_asked = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        let names = ["schema", "name", "type", "ncol", "wr", "strict"];
        let mut rows = Vec::new();
        for name in self.schema.table_names().iter().filter(|n| is_asked(n)) {
            if let Some(table) = self.schema.table(name)? {
                let row = vec![
                    text("main"),
                    text(name.clone()),
                    text("table"),
                    int(table.columns.len()),
                    int(0),
                    int(usize::from(table.strict)),
                ];
                rows.push(row);
            }
        }
        let views = self.schema.view_names().filter(|n| is_asked(n));
        let views: Vec<String> = views.map(str::to_owned).collect();
        for name in views {
            let columns = match self.schema.view(&name)? {
                // One that cannot be read has none.
                Some(view) => self.view_columns(&view).map_or(0, |columns| columns.len()),
                None => 0,
            };
            rows.push(vec![
                text("main"),
                text(name),
                text("view"),
                int(columns),
                int(0),
                int(0),
            ]);
        }
        let row = vec![
            text("main"),
            text("sqlite_schema"),
            text("table"),
            int(5),
            int(0),
            int(0),
        ];
        if is_asked("sqlite_master") {
            rows.push(row);
        }
        Ok(rows_of(&names, rows))
    }
}

/// The text of a DEFAULT, from the CREATE TABLE it stands in.
fn default_text(sql: &str, expr: &ast::Expr) -> Expr {
    match crate::parse::expression_text(sql, expr.offset) {
        Some(found) => text(found),
        None => Expr::null(),
    }
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
struct Rows {
    names: Vec<&'static str>,
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
    fn values(self) -> Vec<Vec<Value>> {
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
            output: OutputColumn {
                name: (*name).to_owned(),
                decl_type: None,
                origin: None,
            },
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
