//! Changes of the schema by chance, in transactions that are committed, undone, or undone up
//! to a savepoint. A schema is made of the one before and what a statement changed, and what
//! was parsed of it stays; here everything that is asked of it has to be SQLite's answer
//! after each statement: of the connection that changed it, in statements that are compiled
//! then and in ones that were kept, and of another connection once it is committed.
//!
//! Or two connections change it in turn, each with statements that it kept from before the
//! other one's changes: what one has not committed must not be seen by the other, though
//! both make their schemas of what is known of the same database.
//!
//! `FULGURITE_SCHEMA_SEEDS` is the number of seeds, `FULGURITE_SCHEMA_FIRST` the first one.

mod common;
mod support;

use std::collections::BTreeMap;

use common::Random;
use fulgurite_sql::session::{Engine, Prepared, Session};
use rusqlite::Connection;
use support::{drain, engine, run, sqlite};

const TABLES: [&str; 4] = ["ta", "tb", "tc", "td"];
const COLUMNS: [&str; 4] = ["p", "q", "r", "s"];

fn number(random: &mut Random, of: &str, count: u64) -> String {
    format!("{of}{}", random.below(count))
}

fn create_table(random: &mut Random) -> String {
    let table = *random.pick(&TABLES);
    let temp = *random.pick(&["", "", "", "TEMP "]);
    let parent = *random.pick(&TABLES);
    let body = match random.below(7) {
        0 => "(p INTEGER PRIMARY KEY AUTOINCREMENT, q, r)".to_owned(),
        1 => "(p PRIMARY KEY, q UNIQUE, s DEFAULT 4) WITHOUT ROWID".to_owned(),
        2 => "(p UNIQUE, q, UNIQUE(q, p))".to_owned(),
        3 => format!("(p, q REFERENCES {parent}(p), r)"),
        4 => format!("(p, r CHECK (r <> 3), {})", random.pick(&["q", "s"])),
        5 => " AS SELECT 1 AS p, 2 AS q".to_owned(),
        _ => "(p, q, r, s)".to_owned(),
    };
    format!("CREATE {temp}TABLE {table}{body}")
}

fn alter(random: &mut Random) -> String {
    let table = *random.pick(&TABLES);
    let column = *random.pick(&COLUMNS);
    let other = random.pick(&COLUMNS);
    match random.below(4) {
        0 => format!("ALTER TABLE {table} RENAME TO {}", random.pick(&TABLES)),
        1 => format!("ALTER TABLE {table} RENAME COLUMN {column} TO {other}"),
        2 => format!("ALTER TABLE {table} ADD COLUMN {column} DEFAULT 5"),
        _ => format!("ALTER TABLE {table} DROP COLUMN {column}"),
    }
}

fn statement(random: &mut Random) -> String {
    let table = *random.pick(&TABLES);
    let column = *random.pick(&COLUMNS);
    match random.below(26) {
        0..5 => create_table(random),
        5 | 6 => format!("DROP TABLE {table}"),
        7 => format!("DROP TABLE IF EXISTS temp.{table}"),
        8..10 => {
            let unique = *random.pick(&["", "UNIQUE "]);
            let filter = *random.pick(&["", " WHERE p > 2"]);
            let name = number(random, "i", 4);
            format!("CREATE {unique}INDEX {name} ON {table}({column}){filter}")
        }
        10 => format!("DROP INDEX {}", number(random, "i", 4)),
        11..15 => alter(random),
        15 => {
            let temp = *random.pick(&["", "TEMP "]);
            let name = number(random, "v", 3);
            format!("CREATE {temp}VIEW {name} AS SELECT p, {column} AS c FROM {table}")
        }
        16 => format!("DROP VIEW {}", number(random, "v", 3)),
        17 => {
            let name = number(random, "g", 3);
            let to = *random.pick(&TABLES);
            format!(
                "CREATE TRIGGER main.{name} AFTER DELETE ON {table} BEGIN \
                 DELETE FROM {to} WHERE p = old.p + 2; END"
            )
        }
        18 => format!("DROP TRIGGER {}", number(random, "g", 3)),
        19 => format!(
            "INSERT INTO {table}(p, q) VALUES ({0}, {0})",
            random.below(6)
        ),
        20 => format!("DELETE FROM {table} WHERE p < {}", random.below(6)),
        21 => format!("REINDEX {table}"),
        22 => (*random.pick(&["BEGIN", "BEGIN", "COMMIT", "ROLLBACK"])).to_owned(),
        23 => (*random.pick(&["SAVEPOINT x", "SAVEPOINT y", "RELEASE x"])).to_owned(),
        24 => (*random.pick(&["ROLLBACK TO x", "ROLLBACK TO y"])).to_owned(),
        _ => (*random.pick(&["COMMIT", "BEGIN IMMEDIATE"])).to_owned(),
    }
}

/// What may be asked of a schema, of each database by itself where it says which.
fn questions() -> Vec<String> {
    let mut all = vec![
        "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY 1, 2".to_owned(),
        "PRAGMA foreign_key_check".to_owned(),
    ];
    for table in TABLES {
        all.push(format!("PRAGMA table_xinfo({table})"));
        all.push(format!("PRAGMA index_list({table})"));
        all.push(format!("SELECT * FROM {table}"));
        all.push(format!("SELECT * FROM main.{table} ORDER BY p"));
        all.push(format!("SELECT count(*) FROM {table} WHERE p = 3 OR q = 2"));
    }
    for view in ["v0", "v1", "v2"] {
        all.push(format!("SELECT * FROM {view}"));
    }
    all
}

/// What is temporary is of one connection.
fn is_of_all(question: &str) -> bool {
    question.contains("main.")
}

/// Rows in an order of their own, and errors without their words: SQLite's say more of where
/// it looked.
fn plain(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    let is_error = |row: &String| row.starts_with("error ");
    match rows.iter().any(is_error) {
        true => vec!["error".to_owned()],
        false => rows,
    }
}

/// A connection, and the statements that it kept.
struct Kept {
    session: Session,
    statements: BTreeMap<String, Prepared>,
}

impl Kept {
    fn new(session: Session) -> Self {
        let statements = BTreeMap::new();
        Self {
            session,
            statements,
        }
    }

    /// What a question is answered by a statement compiled now, and by the one that was
    /// compiled when it first could be.
    fn ask(&mut self, question: &str) -> [Vec<String>; 2] {
        let now = plain(run(&self.session, question));
        if !self.statements.contains_key(question)
            && let Ok((Some(prepared), _)) = self.session.prepare(question)
        {
            self.statements.insert(question.to_owned(), prepared);
        }
        let kept = match self.statements.get_mut(question) {
            Some(prepared) => {
                let rows = drain(prepared);
                prepared.reset();
                plain(rows)
            }
            None => vec!["error".to_owned()],
        };
        [now, kept]
    }
}

struct Both {
    ours: Kept,
    other: Session,
    theirs: Connection,
}

impl Both {
    fn compare(&mut self, history: &[String]) {
        let is_open = !self.theirs.is_autocommit();
        for question in questions() {
            let expected = plain(sqlite(&self.theirs, &question));
            let [now, kept] = self.ours.ask(&question);
            assert_eq!(now, expected, "{question}\n{}", history.join(";\n"));
            assert_eq!(kept, expected, "kept: {question}\n{}", history.join(";\n"));
            if !is_open && is_of_all(&question) {
                let other = plain(run(&self.other, &question));
                assert_eq!(
                    other,
                    expected,
                    "other: {question}\n{}",
                    history.join(";\n")
                );
            }
        }
    }
}

fn is_temporary(sql: &str) -> bool {
    sql.starts_with("CREATE TEMP ")
}

/// A SQLite that minds foreign keys no more than a new session does.
fn model() -> Connection {
    let theirs = Connection::open_in_memory().expect("opens");
    let pragma = "PRAGMA foreign_keys = OFF";
    theirs.execute_batch(pragma).expect("a setting");
    theirs
}

fn play(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let engine = engine();
    let theirs = model();
    let mut both = Both {
        ours: Kept::new(engine.session()),
        other: engine.session(),
        theirs,
    };
    let mut history = vec![format!("-- seed {seed}")];
    for _ in 0..steps {
        let sql = statement(&mut random);
        history.push(sql.clone());
        let told = sqlite(&both.theirs, &sql);
        let given = plain(run(&both.ours.session, &sql));
        // It takes a temporary table for the one of its name that has the index or the trigger,
        // and looks for renamed columns of temporary tables in views before the tables have
        // them.
        let is_theirs = |told: &String| told.contains("error in ");
        if given.is_empty()
            && told.iter().any(is_theirs)
            && history.iter().any(|it| is_temporary(it))
        {
            return;
        }
        assert_eq!(given, plain(told), "{}", history.join(";\n"));
        both.compare(&history);
    }
}

/// Two connections that change the schema in turn, and what SQLite has of what is committed.
struct Turns {
    both: [Kept; 2],
    theirs: Connection,
    committed: BTreeMap<String, Vec<String>>,
    history: Vec<String>,
}

impl Turns {
    fn compare(&mut self, whose: usize) {
        let is_open = !self.theirs.is_autocommit();
        for question in questions() {
            let expected = plain(sqlite(&self.theirs, &question));
            if !is_open {
                self.committed.insert(question.clone(), expected.clone());
            }
            for (number, kept) in self.both.iter_mut().enumerate() {
                let expected = match number == whose {
                    true => &expected,
                    false => &self.committed[&question],
                };
                let [now, again] = kept.ask(&question);
                let history = || format!("{number}: {question}\n{}", self.history.join(";\n"));
                assert_eq!(now, *expected, "{}", history());
                assert_eq!(again, *expected, "kept, {}", history());
            }
        }
    }
}

/// One database, and so no temporary table, which is of one connection alone.
fn in_turn(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let engine = engine();
    // As who opens a file does that the process has open.
    let other = Engine::open(engine.store().clone()).expect("opens");
    let mut turns = Turns {
        both: [&engine, &other].map(|engine| Kept::new(engine.session())),
        theirs: model(),
        committed: BTreeMap::new(),
        history: vec![format!("-- seed {seed}, in turn")],
    };
    let mut whose = 0;
    turns.compare(whose);
    for _ in 0..steps {
        if turns.theirs.is_autocommit() {
            whose = random.below(2) as usize;
        }
        let sql = statement(&mut random)
            .replace("TEMP ", "")
            .replace("temp.", "main.");
        turns.history.push(format!("/* {whose} */ {sql}"));
        let expected = plain(sqlite(&turns.theirs, &sql));
        let given = plain(run(&turns.both[whose].session, &sql));
        assert_eq!(given, expected, "{}", turns.history.join(";\n"));
        turns.compare(whose);
    }
}

/// The first seed and one behind the last.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("FULGURITE_SCHEMA_FIRST", 0);
    let seeds = first..first + number("FULGURITE_SCHEMA_SEEDS", default);
    println!("seeds {seeds:?}");
    seeds
}

#[test]
fn whatever_changes_it_is_what_sqlite_has() {
    seeds(60).for_each(|seed| play(seed, 60));
}

#[test]
fn who_changes_it_in_turn_sees_what_is_committed() {
    seeds(40).for_each(|seed| in_turn(seed, 60));
}
