//! PRAGMAs as table-valued functions, `pragma_…`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{answered_columns, is_answered, is_check};
use crate::ast::{self, Literal};
use crate::bind::Binder;
use crate::error::Result;
use crate::func::table::{Answer, KnownRows, TableFunction};
use crate::plan::physical::Pragma;
use crate::value::Value;

/// Those that change something, or have none for another reason.
const NO_FUNCTION: &[&str] = &["case_sensitive_like", "mmap_size", "wal_checkpoint"];
/// Those that are of one database.
const OF_DATABASE: &[&str] = &[
    "auto_vacuum",
    "cache_size",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "page_count",
    "page_size",
    "synchronous",
];

impl Binder<'_> {
    /// The function of a PRAGMA that has one. What is in the schema is looked up now, for the
    /// argument if that is a text, else for each that there is; the rest when it runs.
    pub(in crate::bind) fn pragma_function(
        &mut self,
        name: &str,
        args: &[ast::Expr],
    ) -> Result<Option<Arc<dyn TableFunction>>> {
        let name = name.to_ascii_lowercase();
        let Some(pragma) = name.strip_prefix("pragma_") else {
            return Ok(None);
        };
        let without = match pragma {
            "optimize" => return Ok(Some(Arc::new(optimize(name)))),
            pragma => self.schema_pragma(pragma, None)?,
        };
        let Some(without) = without else {
            return match is_answered(pragma) && !NO_FUNCTION.contains(&pragma) {
                true => Ok(Some(Arc::new(self.asked(&name, pragma, args)?))),
                false => Ok(None),
            };
        };
        let hidden: &'static [&'static str] = match pragma {
            "collation_list" | "compile_options" | "database_list" | "function_list"
            | "module_list" | "pragma_list" => &[],
            "table_list" => &["schema"],
            _ => &["arg", "schema"],
        };
        let mut function = KnownRows {
            name: name.clone(),
            columns: without.names.clone(),
            hidden,
            without: Answer::Known(Arc::new(without.values())),
            by_argument: FxHashMap::default(),
            asks: Vec::new(),
        };
        let asked = match text_of(args) {
            _ if hidden.first() != Some(&"arg") => Vec::new(),
            Some(text) => vec![text],
            _ if matches!(pragma, "index_info" | "index_xinfo") => {
                let names = self.schema.index_names();
                names.map(str::to_ascii_lowercase).collect()
            }
            _ => self.tables_and_views(),
        };
        for argument in asked {
            if let Some(rows) = self.schema_pragma(pragma, Some(&argument))? {
                let rows = Answer::Known(Arc::new(rows.values()));
                function.by_argument.insert(argument, rows);
            }
        }
        Ok(Some(Arc::new(function)))
    }

    /// The function of one that the session answers: with the argument, if that is a text,
    /// for each table if it is something else, or without any.
    fn asked(&self, name: &str, pragma: &str, args: &[ast::Expr]) -> Result<KnownRows> {
        let takes_table = is_check(pragma) || pragma == "foreign_key_check";
        let mut function = KnownRows {
            name: name.to_owned(),
            columns: answered_columns(pragma),
            hidden: match (takes_table, OF_DATABASE.contains(&pragma)) {
                (true, _) => &["arg", "schema"],
                (_, true) => &["schema"],
                _ => &[],
            },
            without: Answer::Asked(0),
            by_argument: FxHashMap::default(),
            asks: Vec::new(),
        };
        let tables = match text_of(args) {
            _ if !takes_table || args.is_empty() => Vec::new(),
            Some(table) => vec![table],
            None => self.tables_and_views(),
        };
        if tables.is_empty() {
            let name = pragma.to_owned();
            function.asks.push(Pragma { name, value: None });
        }
        for table in tables {
            if is_check(pragma) {
                self.checked_table(&table)?;
            }
            let number = function.asks.len();
            function.asks.push(Pragma {
                name: pragma.to_owned(),
                value: Some(Value::text(table.as_str())),
            });
            function.by_argument.insert(table, Answer::Asked(number));
        }
        Ok(function)
    }

    /// The names of all, in lower case.
    fn tables_and_views(&self) -> Vec<String> {
        let tables = self.schema.table_names().iter().map(String::as_str);
        let builtin = ["sqlite_schema", "sqlite_master"];
        let names = tables.chain(self.schema.view_names()).chain(builtin);
        names.map(str::to_ascii_lowercase).collect()
    }
}

/// The one that has no rows: plans look after themselves.
fn optimize(name: String) -> KnownRows {
    KnownRows {
        name,
        columns: vec!["optimize"],
        hidden: &["arg"],
        without: Answer::Known(Arc::default()),
        by_argument: FxHashMap::default(),
        asks: Vec::new(),
    }
}

/// The argument that is a text, in lower case.
fn text_of(args: &[ast::Expr]) -> Option<String> {
    match args.first().map(|arg| &arg.kind) {
        Some(ast::ExprKind::Literal(Literal::Text(text))) => Some(text.to_ascii_lowercase()),
        _ => None,
    }
}
