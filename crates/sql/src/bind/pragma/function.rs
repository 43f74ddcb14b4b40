//! PRAGMAs as table-valued functions, `pragma_…`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{SCHEMA_TABLES, answered_columns, is_answered, takes_table};
use crate::ast::{self, Literal};
use crate::bind::Binder;
use crate::error::Result;
use crate::func::table::{Answer, Answers, KnownRows, TableFunction};
use crate::plan::physical::Pragma;
use crate::schema::{Schema, TEMP};
use crate::value::Value;

/// Those that change something, or have none for another reason.
const NO_FUNCTION: &[&str] = &[
    "case_sensitive_like",
    "mmap_size",
    "wal_autocheckpoint",
    "wal_checkpoint",
];
/// Those that are of one database.
const OF_DATABASE: &[&str] = &[
    "auto_vacuum",
    "cache_size",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "max_page_count",
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
            pragma => self.schema_pragma(pragma, None, None)?,
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
            "table_list" => &["arg"],
            _ => &["arg", "schema"],
        };
        let takes = match text_of(args.first()) {
            _ if hidden.first() != Some(&"arg") => Takes::Nothing,
            Some(text) => Takes::This(text),
            _ if matches!(pragma, "index_info" | "index_xinfo") => Takes::Indexes,
            _ => Takes::Tables,
        };
        let rows = Arc::new(self.answers(pragma, &takes, None)?);
        let mut by_database = Self::no_databases();
        for schema in self.catalog.in_order() {
            let name = self.catalog.name_of(schema);
            let answers = match self.catalog.is_alone() {
                true => Arc::clone(&rows),
                false => Arc::new(self.answers(pragma, &takes, Some((schema, name)))?),
            };
            by_database.insert(name.to_ascii_lowercase(), answers);
        }
        Ok(Some(Arc::new(KnownRows {
            name: name.clone(),
            columns: without.names,
            hidden,
            rows,
            by_database,
            asks: Vec::new(),
        })))
    }

    /// What a PRAGMA answers without an argument, and for each that it may be called with, of
    /// one database or of all.
    fn answers(
        &mut self,
        pragma: &str,
        takes: &Takes,
        of: Option<(&Schema, &str)>,
    ) -> Result<Answers> {
        let is_asked = |schema: &&Schema| of.is_none_or(|(of, _)| of.tree() == schema.tree());
        let schemas = self.catalog.in_order().filter(is_asked);
        let database = of.map(|(_, name)| ast::Name::synthetic(name));
        let arguments: Vec<String> = match takes {
            Takes::Nothing => Vec::new(),
            Takes::This(text) => vec![text.clone()],
            Takes::Indexes => {
                // The name of a WITHOUT ROWID table stands for its primary key.
                let names = schemas.flat_map(|it| it.index_names().chain(it.keyed_names()));
                names.map(str::to_ascii_lowercase).collect()
            }
            Takes::Tables => tables_and_views(schemas),
        };
        let mut answers = Answers::default();
        if let Some(rows) = self.schema_pragma(pragma, None, database.as_ref())? {
            answers.without = Answer::Known(Arc::new(rows.values()));
        }
        for argument in arguments {
            if let Some(rows) = self.schema_pragma(pragma, Some(&argument), database.as_ref())? {
                let rows = Answer::Known(Arc::new(rows.values()));
                answers.by_argument.insert(argument, rows);
            }
        }
        Ok(answers)
    }

    /// The function of one that the session answers: with the argument, if that is a text,
    /// for each table if it is something else, or without any.
    fn asked(&self, name: &str, pragma: &str, args: &[ast::Expr]) -> Result<KnownRows> {
        let takes_table = takes_table(pragma);
        let of_database = OF_DATABASE.contains(&pragma);
        let takes = match text_of(args.first()) {
            _ if !takes_table || args.is_empty() => Takes::Nothing,
            Some(table) => Takes::This(table),
            None => Takes::Tables,
        };
        let named = text_of(args.get(1)).filter(|_| takes_table);
        let mut asks = Vec::new();
        let rows = match named {
            Some(_) => Arc::default(),
            None => Arc::new(self.asks_of(pragma, &takes, None, &mut asks)?),
        };
        let mut by_database = Self::no_databases();
        for schema in self.catalog.in_order() {
            let name = self.catalog.name_of(schema).to_ascii_lowercase();
            let is_asked = match (&named, &takes) {
                (Some(named), _) => *named == name,
                (None, Takes::This(table)) => args.len() > 1 && schema.holds(table),
                _ => of_database && !self.catalog.is_alone() || args.len() > 1,
            };
            let answers = match is_asked {
                true => Arc::new(self.asks_of(pragma, &takes, Some(schema), &mut asks)?),
                false if takes_table => Arc::default(),
                false => Arc::clone(&rows),
            };
            by_database.insert(name, answers);
        }
        Ok(KnownRows {
            name: name.to_owned(),
            columns: answered_columns(pragma),
            hidden: match (takes_table, of_database) {
                (true, _) => &["arg", "schema"],
                (_, true) => &["schema"],
                _ => &[],
            },
            rows,
            by_database,
            asks,
        })
    }

    /// What the session is asked, of one database or where bare names are looked for.
    fn asks_of(
        &self,
        pragma: &str,
        takes: &Takes,
        of: Option<&Schema>,
        asks: &mut Vec<Pragma>,
    ) -> Result<Answers> {
        let mut ask = |value: Option<&str>, schema: Option<&Schema>| {
            asks.push(Pragma {
                name: pragma.to_owned(),
                value: value.map(Value::text),
                store: schema.map(|schema| schema.tree().store_number()),
            });
            Answer::Asked(asks.len() - 1)
        };
        let mut answers = Answers::default();
        if !matches!(takes, Takes::This(_)) {
            let main = self.catalog.main();
            let main = Some(main).filter(|_| pragma == "foreign_key_check");
            answers.without = ask(None, of.or(main));
        }
        let schemas = || {
            let is_asked = move |it: &&Schema| of.is_none_or(|of| of.tree() == it.tree());
            self.catalog.in_order().filter(is_asked)
        };
        let tables = match takes {
            Takes::This(table) => vec![table.clone()],
            Takes::Tables => {
                let mut names = tables_and_views(schemas());
                names.retain(|name| schemas().any(|schema| schema.holds(name)));
                names
            }
            _ => Vec::new(),
        };
        let database = of.map(|of| ast::Name::synthetic(self.catalog.name_of(of)));
        for table in tables {
            let schema = self.checked_table(&table, database.as_ref())?;
            let answer = ask(Some(&table), Some(schema));
            answers.by_argument.insert(table, answer);
        }
        Ok(answers)
    }

    /// A temporary database has no rows before it is there.
    fn no_databases() -> FxHashMap<String, Arc<Answers>> {
        let mut by_database = FxHashMap::default();
        by_database.insert(TEMP.to_owned(), Arc::default());
        by_database
    }
}

/// What a PRAGMA about the schema is called with.
enum Takes {
    Nothing,
    This(String),
    Indexes,
    Tables,
}

/// The names of all, in lower case.
fn tables_and_views<'s>(schemas: impl Iterator<Item = &'s Schema>) -> Vec<String> {
    let names = schemas.flat_map(|schema| {
        let tables = schema.table_names().iter().map(String::as_str);
        tables.chain(schema.view_names())
    });
    let names = names.chain(SCHEMA_TABLES);
    names.map(str::to_ascii_lowercase).collect()
}

/// The one that has no rows: plans look after themselves.
fn optimize(name: String) -> KnownRows {
    KnownRows {
        name,
        columns: vec!["optimize"],
        hidden: &["arg"],
        rows: Arc::default(),
        by_database: FxHashMap::default(),
        asks: Vec::new(),
    }
}

/// An argument that is a text, in lower case.
fn text_of(arg: Option<&ast::Expr>) -> Option<String> {
    match arg.map(|arg| &arg.kind) {
        Some(ast::ExprKind::Literal(Literal::Text(text))) => Some(text.to_ascii_lowercase()),
        _ => None,
    }
}
