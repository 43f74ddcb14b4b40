//! ALTER TABLE on generated schemas beside bundled SQLite: tables with constraints, partial
//! indexes and views with subqueries, names in all quotes and in all the wrong places.

mod common;
mod support;

use common::Random;
use support::{run, session};

const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema";

/// Generated schemas and changes of them.
struct Schemas {
    random: Random,
    /// Tables with their columns.
    tables: Vec<(String, Vec<String>)>,
    made: usize,
}

/// A source of FROM: what it goes by, and its columns.
type Source = (String, Vec<String>);

impl Schemas {
    fn of_seed(seed: u64) -> Schemas {
        Schemas {
            random: Random(seed),
            tables: Vec::new(),
            made: 0,
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    /// A name as one may write it.
    fn written(&mut self, name: &str) -> String {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric());
        match self.random.below(8) {
            0 => format!("\"{name}\""),
            1 => format!("[{name}]"),
            2 => format!("`{name}`"),
            3 if plain => name.to_uppercase(),
            _ if plain => name.to_owned(),
            _ => format!("\"{name}\""),
        }
    }

    fn new_name(&mut self) -> String {
        const NAMES: [&str; 10] = ["a", "b", "c", "d", "t", "key", "x y", "asc", "q\u{e4}", "u"];
        (*self.random.pick(&NAMES)).to_owned()
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}{}", self.made)
    }

    fn column_of(&mut self, scope: &[Source]) -> String {
        let (name, columns) = self.random.pick(scope).clone();
        let column = self.random.pick(&columns).clone();
        let column = self.written(&column);
        match scope.len() > 1 || self.one_in(2) {
            true => format!("{}.{column}", self.written(&name)),
            false => column,
        }
    }

    fn expr(&mut self, scope: &[Source], depth: u64) -> String {
        if depth == 0 || self.one_in(3) {
            return match self.random.below(10) {
                0 => self.random.below(5).to_string(),
                1 => format!("'{}'", self.new_name()),
                2 => format!("\"{}\"", self.new_name()),
                _ => self.column_of(scope),
            };
        }
        let one = self.expr(scope, depth - 1);
        let another = self.expr(scope, depth - 1);
        match self.random.below(9) {
            0 => format!("({one} + {another})"),
            1 => format!("({one} < {another} AND {one})"),
            2 => format!("coalesce({one},{another})"),
            3 => format!("CASE WHEN {one} THEN {another} END"),
            4 => format!("({one} IN ({another}, 1))"),
            5 => format!("({one} BETWEEN {another} AND 5)"),
            6 => format!("CAST({one}AS a)"),
            7 => format!("({one} COLLATE nocase)"),
            _ => format!("({one} IS NOT {another})"),
        }
    }

    fn subquery(&mut self, scope: &[Source], depth: u64) -> String {
        let (table, columns) = self.random.pick(&self.tables).clone();
        let alias = self.fresh("s");
        let mut inner = vec![(alias.clone(), columns)];
        inner.extend(scope.iter().cloned());
        let (value, filter) = (self.expr(&inner[..1], depth), self.expr(&inner, depth));
        format!(
            "(SELECT {value} FROM {} AS {alias} WHERE {filter})",
            self.written(&table)
        )
    }

    fn from(&mut self) -> (String, Vec<Source>) {
        let mut scope: Vec<Source> = Vec::new();
        let mut text = String::new();
        for at in 0..1 + self.random.below(3) {
            let (table, columns) = self.random.pick(&self.tables).clone();
            let join = match (at, self.random.below(3)) {
                (0, _) => "",
                (_, 0) => ", ",
                (_, 1) => " JOIN ",
                _ => " LEFT JOIN ",
            };
            text.push_str(join);
            let is_there = scope
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(&table));
            let name = match is_there || self.one_in(2) {
                true => self.fresh("x"),
                false => table.clone(),
            };
            let written = self.written(&table);
            if self.one_in(6) {
                let column = self.random.pick(&columns).clone();
                let other = self.fresh("n");
                let shown = self.written(&column);
                text.push_str(&format!(
                    "(SELECT {shown} AS {other} FROM {written}) {name}x"
                ));
                scope.push((format!("{name}x"), vec![other]));
            } else {
                match name == table {
                    true => text.push_str(&written),
                    false => text.push_str(&format!("{written} AS {name}")),
                }
                scope.push((name, columns));
            }
            if join.contains("JOIN") {
                text.push_str(&format!(" ON {}", self.expr(&scope, 1)));
            }
        }
        (text, scope)
    }

    fn select(&mut self) -> String {
        let (from, scope) = self.from();
        let mut columns = vec![self.expr(&scope, 2)];
        if self.one_in(2) {
            columns.push(format!("{} AS a", self.expr(&scope, 1)));
        }
        if self.one_in(4) {
            columns.push(self.subquery(&scope, 1));
        }
        if self.one_in(6) {
            columns.push(format!("{}.*", self.random.pick(&scope).0.clone()));
        }
        let mut text = format!("SELECT {} FROM {from}", columns.join(", "));
        if self.one_in(2) {
            text += &format!(" WHERE {}", self.expr(&scope, 2));
        }
        if self.one_in(4) {
            text += &format!(" GROUP BY {}", self.column_of(&scope));
        }
        // SQLite doesn't find a name there that is a column of a star, too.
        if !text.contains(".* FROM") && self.one_in(3) {
            text += &format!(" ORDER BY {}", self.column_of(&scope));
        }
        text
    }

    fn view(&mut self) -> String {
        let name = self.fresh("v");
        let query = match self.random.below(5) {
            0 => {
                // To SQLite what names itself is recursive.
                let (cte, inner) = match self.one_in(2) {
                    true => (self.new_name(), "SELECT 5".to_owned()),
                    false => (self.fresh("w"), self.select()),
                };
                let written = self.written(&cte);
                format!("WITH {written} AS ({inner}) {}", self.select())
            }
            1 => {
                let (table, columns) = self.random.pick(&self.tables).clone();
                let (one, other) = (self.random.pick(&columns).clone(), self.expr_of(&columns));
                let (table, one) = (self.written(&table), self.written(&one));
                format!(
                    "SELECT {one} FROM {table} UNION SELECT {other} FROM {table} ORDER BY {one}"
                )
            }
            _ => self.select(),
        };
        format!("CREATE VIEW {name} AS {query}")
    }

    fn expr_of(&mut self, columns: &[String]) -> String {
        let column = self.random.pick(columns).clone();
        self.written(&column)
    }

    fn table(&mut self) -> String {
        let name = ["t", "u", "o o"][self.tables.len() % 3].to_owned();
        let mut columns: Vec<String> = Vec::new();
        for _ in 0..2 + self.random.below(4) {
            let column = self.new_name();
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let scope = [(name.clone(), columns.clone())];
        let mut definitions = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let mut text = self.written(column);
            match self.random.below(10) {
                0 => text += " INT UNIQUE",
                1 => text += &format!(" CHECK ({})", self.expr(&scope, 1)),
                2 => text += &format!(" a REFERENCES {}({})", self.written("t"), self.written("a")),
                3 => text += " TEXT DEFAULT 'a' /* , b */",
                4 => text += &format!(" DEFAULT \"{}\"", self.new_name()),
                5 if at > 0 => {
                    let one = self.expr_of(columns.get(..at).unwrap_or(&[]));
                    text += &format!(" AS ({one} || \"{}\")", self.new_name());
                }
                _ => {}
            }
            definitions.push(text);
        }
        if self.one_in(3) {
            definitions.push(format!("UNIQUE ({})", self.expr_of(&columns)));
        }
        if self.one_in(4) {
            let (own, other) = (self.expr_of(&columns), self.expr_of(&columns));
            definitions.push(format!("FOREIGN KEY({own}) REFERENCES u({other})"));
        }
        if self.one_in(4) {
            definitions.push(format!("CHECK({})", self.expr(&scope, 2)));
        }
        let separator = *self.random.pick(&[",", ", ", " ,\n  "]);
        let written = self.written(&name);
        self.tables.push((name, columns));
        format!("CREATE TABLE {written}({})", definitions.join(separator))
    }

    fn index(&mut self) -> String {
        let (table, columns) = self.random.pick(&self.tables).clone();
        let scope = [(table.clone(), columns.clone())];
        let (name, table) = (self.fresh("i"), self.written(&table));
        let mut text = format!("CREATE INDEX {name} ON {table}({}", self.expr_of(&columns));
        if self.one_in(3) {
            text += &format!(", {} + 1", self.expr_of(&columns));
        }
        text.push(')');
        if self.one_in(3) {
            text += &format!(" WHERE {}", self.expr(&scope, 1));
        }
        text
    }

    fn alter(&mut self) -> String {
        let (table, columns) = self.random.pick(&self.tables).clone();
        let table = self.written(&table);
        let new = self.new_name();
        let new = self.written(&new);
        let column = match self.one_in(12) {
            true => self.new_name(),
            false => self.random.pick(&columns).clone(),
        };
        let column = self.written(&column);
        match self.random.below(5) {
            0 => format!("ALTER TABLE {table} RENAME TO {new}"),
            1 => format!("ALTER TABLE {table} DROP COLUMN {column}"),
            _ => format!("ALTER TABLE {table} RENAME COLUMN {column} TO {new}"),
        }
    }
}

/// Answers without what follows in a message about a name: of several that are wrong each
/// may be said first.
fn without_names(mut rows: Vec<String>) -> Vec<String> {
    const MESSAGE: &str = "no such column: ";
    for row in rows.iter_mut().filter(|row| row.starts_with("error ")) {
        if let Some(at) = row.find(MESSAGE) {
            row.truncate(at + MESSAGE.len());
        }
    }
    rows
}

#[test]
fn generated_schemas() {
    for seed in 0..1500 {
        let mut schemas = Schemas::of_seed(seed);
        let mut sql = vec!["PRAGMA foreign_keys = OFF".to_owned()];
        for _ in 0..1 + schemas.random.below(3) {
            sql.push(schemas.table());
        }
        let tables = schemas.tables.clone();
        for (table, _) in &tables {
            sql.push(format!("INSERT OR IGNORE INTO \"{table}\" DEFAULT VALUES"));
        }
        for _ in 0..schemas.random.below(3) {
            sql.push(schemas.index());
        }
        for _ in 0..schemas.random.below(4) {
            sql.push(schemas.view());
        }
        for _ in 0..1 + schemas.random.below(3) {
            sql.push(schemas.alter());
            sql.push(SCHEMA.to_owned());
        }
        for (table, _) in &tables {
            sql.push(format!("SELECT * FROM \"{table}\" ORDER BY rowid"));
        }
        println!("seed {seed}");
        let (ours, theirs) = (session(), rusqlite::Connection::open_in_memory().unwrap());
        for statement in &sql {
            let mine = without_names(run(&ours, statement));
            let other = without_names(support::sqlite(&theirs, statement));
            assert_eq!(mine, other, "seed {seed}: {}", sql.join(";\n"));
        }
    }
}
