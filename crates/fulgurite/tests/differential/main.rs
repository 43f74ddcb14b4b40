//! Generated statements, run against bundled SQLite and against Fulgurite:
//! rows, column names, errors with code and text, change counts, rowids, the
//! state of the transaction, and every few statements all tables whole.
//!
//! `FULGURITE_DIFF_STATEMENTS` sets how many statements to run (a few thousand
//! unless set), `FULGURITE_DIFF_SEED` the first seed. A failing case is cut down
//! to the statements that still show the difference, and printed.

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod derived;
mod expression;
mod query;
mod schema;
mod statement;
mod upsert;

use common::{Engine, Open};
use fastrand::Rng;
use schema::World;
use statement::Statement;
use std::env;
use std::fmt::Write as _;
use std::path::Path;

const STATEMENTS_PER_CASE: usize = 250;
const TABLES_EVERY: usize = 20;
const REOPEN_EVERY: usize = 60;
const FAILURES: usize = 20;

/// One step of a case.
#[derive(Debug, Clone)]
enum Step {
    Run(Statement),
    /// Compare all tables and the schema.
    Tables,
    /// Close both databases and open them again.
    Reopen,
}

/// The two databases of a case; both in memory, or both in a folder.
struct Pair {
    folder: Option<tempfile::TempDir>,
    sqlite: Box<dyn Engine>,
    ours: Box<dyn Engine>,
}

impl Pair {
    fn open(in_files: bool) -> Self {
        let folder = in_files.then(|| tempfile::tempdir().expect("a temporary folder"));
        let path = folder.as_ref().map(tempfile::TempDir::path);
        Self {
            sqlite: open(common::sqlite, path, "sqlite.db"),
            ours: open(common::ours, path, "ours.db"),
            folder,
        }
    }

    fn reopen(&mut self) {
        let Some(folder) = &self.folder else { return };
        let path = Some(folder.path());
        // The old connections close before the new ones open.
        self.sqlite = open(common::sqlite, None, "");
        self.sqlite = open(common::sqlite, path, "sqlite.db");
        self.ours = open(common::ours, None, "");
        self.ours = open(common::ours, path, "ours.db");
    }

    /// Takes one step on both sides and says what differs.
    fn step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Run(statement) => self.run(statement),
            Step::Tables => self.tables(),
            Step::Reopen => {
                self.reopen();
                self.tables()
            }
        }
    }

    fn run(&mut self, statement: &Statement) -> Option<String> {
        let theirs = self.sqlite.run(&statement.sql, &statement.parameters);
        let ours = self.ours.run(&statement.sql, &statement.parameters);
        let mut check = statement.check;
        check.no_case = statement.sql.contains("NOCASE");
        if let Some(difference) = compare::difference(check, &theirs, &ours) {
            return Some(difference);
        }
        let (theirs, ours) = (self.sqlite.state(), self.ours.state());
        (theirs != ours).then(|| format!("SQLite: {theirs:?}\n  ours: {ours:?}"))
    }

    fn tables(&mut self) -> Option<String> {
        let schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema";
        let names = self
            .sqlite
            .run("SELECT name FROM sqlite_schema WHERE type = 'table'", &[]);
        let mut statements = vec![Statement::plain(schema)];
        for row in &names.rows {
            if let [common::Value::Text(name)] = row.as_slice() {
                let name = String::from_utf8_lossy(name);
                if name == "sqlite_sequence" {
                    // What a statement that ended midway left is a listed deviation;
                    // the next rows' numbers show the rest.
                    continue;
                }
                let mut all = Statement::plain(self.whole_table(&name));
                all.check.total_order = true;
                statements.push(all);
            }
        }
        statements.iter().find_map(|statement| {
            let difference = self.run(statement)?;
            Some(format!("{}\n{difference}", statement.sql))
        })
    }

    /// A query of all that a table shows, in an order of its rows.
    fn whole_table(&mut self, name: &str) -> String {
        let key = format!(
            "SELECT c.name FROM pragma_table_list('{name}') t, pragma_table_info('{name}') c
             WHERE t.wr AND c.pk > 0 ORDER BY c.pk"
        );
        let key = self.sqlite.run(&key, &[]);
        let parts = key.rows.iter().map(|row| match row.as_slice() {
            [common::Value::Text(part)] => String::from_utf8_lossy(part) + " COLLATE BINARY",
            other => panic!("no name: {other:?}"),
        });
        let parts: Vec<_> = parts.collect();
        match parts.is_empty() {
            true => format!("SELECT rowid, * FROM {name} ORDER BY rowid"),
            false => format!("SELECT * FROM {name} ORDER BY {}", parts.join(", ")),
        }
    }
}

fn open(open: Open, folder: Option<&Path>, name: &str) -> Box<dyn Engine> {
    let mut engine = match folder {
        Some(folder) => open(Some(&folder.join(name))),
        None => open(None),
    };
    if folder.is_some() && name.starts_with("sqlite") {
        engine.run_script("PRAGMA synchronous = OFF");
    }
    engine
}

/// Where a case differs: the step, and how.
struct Difference {
    at: usize,
    text: String,
}

fn replay(steps: &[Step], in_files: bool) -> Option<Difference> {
    let mut pair = Pair::open(in_files);
    steps.iter().enumerate().find_map(|(at, step)| {
        let text = pair.step(step)?;
        Some(Difference { at, text })
    })
}

/// Draws a case and runs it as it is drawn; the steps up to a difference.
fn case(seed: u64, length: usize) -> (Vec<Step>, Option<String>, bool) {
    let mut rng = Rng::with_seed(seed);
    let in_files = seed.is_multiple_of(8);
    let mut pair = Pair::open(in_files);
    let mut world = World::default();
    let mut steps = Vec::new();
    for i in 1..=length {
        let mut due = vec![Step::Run(statement::next(&mut rng, &mut world))];
        if i.is_multiple_of(TABLES_EVERY) || i == length {
            due.push(Step::Tables);
        }
        if in_files && i.is_multiple_of(REOPEN_EVERY) {
            due.push(Step::Reopen);
        }
        for step in due {
            let difference = pair.step(&step);
            steps.push(step);
            if difference.is_some() {
                return (steps, difference, in_files);
            }
        }
        world.refresh(pair.sqlite.as_mut());
    }
    (steps, None, in_files)
}

/// Is it the same difference? One of errors must read the same; rows may change
/// as statements go.
fn alike(first: &str, second: &str) -> bool {
    let errors = |text: &str| text.contains("error ");
    match (errors(first), errors(second)) {
        (true, true) => first == second,
        (false, false) => true,
        _ => false,
    }
}

/// Takes steps away, in ever smaller pieces, as long as the last one shows the
/// same kind of difference.
fn shrink(mut steps: Vec<Step>, in_files: bool, first: &str) -> (Vec<Step>, String) {
    let mut text = String::from(first);
    let mut piece = steps.len() / 2;
    while piece > 0 {
        let mut from = 0;
        while from + 1 < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + piece).min(steps.len() - 1));
            match replay(&fewer, in_files) {
                Some(found) if found.at + 1 == fewer.len() && alike(first, &found.text) => {
                    steps = fewer;
                    text = found.text;
                }
                _ => from += piece,
            }
        }
        piece /= 2;
    }
    (steps, text)
}

fn script(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let _ = match step {
            Step::Run(statement) if statement.parameters.is_empty() => {
                writeln!(text, "  {};", statement.sql)
            }
            Step::Run(statement) => {
                let values: Vec<String> = statement
                    .parameters
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                writeln!(text, "  {}; -- {}", statement.sql, values.join(", "))
            }
            Step::Tables => writeln!(text, "  -- compare all tables"),
            Step::Reopen => writeln!(text, "  -- close and open again"),
        };
    }
    text
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number"))
    })
}

#[test]
fn generated_statements_give_what_sqlite_gives() {
    let wanted = number("FULGURITE_DIFF_STATEMENTS", 6_000) as usize;
    let first = number("FULGURITE_DIFF_SEED", 1);
    let (mut statements, mut seed) = (0, first);
    let mut failures: Vec<String> = Vec::new();
    while statements < wanted && failures.len() < FAILURES {
        let (steps, difference, in_files) = case(seed, STATEMENTS_PER_CASE);
        statements += steps
            .iter()
            .filter(|step| matches!(step, Step::Run(_)))
            .count();
        if let Some(difference) = difference {
            let (steps, text) = shrink(steps, in_files, &difference);
            failures.push(format!("seed {seed}:\n{}{text}\n", script(&steps)));
        }
        seed += 1;
    }
    println!(
        "{statements} statements compared in {} cases (seeds {first} to {}), {} differ",
        seed - first,
        seed - 1,
        failures.len()
    );
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
