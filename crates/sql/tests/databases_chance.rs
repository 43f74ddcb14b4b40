//! Statements by chance over a main, a temporary and an attached database that have tables,
//! views, triggers and indexes of the same names: rows, errors and counts must be SQLite's
//! after each, and so must be what each database holds.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Session;
use rusqlite::Connection;

const TABLES: [&str; 3] = ["t", "u", "v"];

/// A name, perhaps with a database before it.
fn named(random: &mut Random, name: &str) -> String {
    let database = *random.pick(&["", "", "", "main.", "temp.", "a."]);
    format!("{database}{name}")
}

fn table(random: &mut Random) -> String {
    let name = *random.pick(&TABLES);
    named(random, name)
}

/// The rows of a statement that inserts.
fn rows(random: &mut Random) -> String {
    let (id, x) = (random.below(9), random.below(5));
    match random.below(3) {
        0 => {
            let from = table(random);
            format!("SELECT id + {id}, x + {x} FROM {from} WHERE id < 20 ORDER BY id")
        }
        _ => format!("VALUES ({id}, {x})"),
    }
}

fn change(random: &mut Random) -> String {
    let of = table(random);
    let number = random.below(9);
    match random.below(7) {
        0..4 => {
            let clause = *random.pick(&["", "", " OR IGNORE", " OR REPLACE"]);
            let rows = rows(random);
            format!("INSERT{clause} INTO {of}(id, x) {rows};")
        }
        4 => {
            let other = table(random);
            format!("UPDATE {of} SET x = x + 1 WHERE id IN (SELECT id + 1 FROM {other});")
        }
        5 => format!("UPDATE {of} SET x = {number} WHERE id > {number};"),
        _ => format!("DELETE FROM {of} WHERE id = {number};"),
    }
}

fn create(random: &mut Random) -> String {
    let temp = *random.pick(&["", "", " TEMP"]);
    let of = table(random);
    match random.below(10) {
        0..5 => {
            let x = *random.pick(&["x", "x INT", "x UNIQUE"]);
            let name = match temp {
                "" => of,
                _ => (*random.pick(&TABLES)).to_owned(),
            };
            format!("CREATE{temp} TABLE {name}(id INTEGER PRIMARY KEY, {x});")
        }
        5 => {
            let name = named(random, "v");
            let from = named(random, "t");
            format!("CREATE{temp} VIEW {name} AS SELECT id, x FROM {from};")
        }
        6 => {
            let name = named(random, "i");
            let on = random.pick(&TABLES);
            format!("CREATE INDEX {name} ON {on}(x);")
        }
        7 => {
            let name = named(random, "r");
            let to = random.pick(&TABLES);
            format!(
                "CREATE{temp} TRIGGER {name} AFTER INSERT ON {of} BEGIN \
                 INSERT OR IGNORE INTO {to}(id, x) VALUES (new.id + 10, new.x); END;"
            )
        }
        _ => {
            let from = table(random);
            let name = random.pick(&TABLES);
            format!("CREATE{temp} TABLE IF NOT EXISTS {name} AS SELECT id, x FROM {from};")
        }
    }
}

fn statement(random: &mut Random) -> String {
    match random.below(20) {
        0 => "BEGIN;".to_owned(),
        1 => "COMMIT;".to_owned(),
        2 => "ROLLBACK;".to_owned(),
        3 => "SAVEPOINT s;".to_owned(),
        4 => "ROLLBACK TO s;".to_owned(),
        5..9 => create(random),
        9 => {
            let (kind, name) = *random.pick(&[
                ("TABLE", "t"),
                ("TABLE", "u"),
                ("VIEW", "v"),
                ("INDEX", "i"),
                ("TRIGGER", "r"),
            ]);
            let name = named(random, name);
            format!("DROP {kind} {name};")
        }
        10 => {
            let (of, to) = (table(random), random.pick(&TABLES));
            format!("ALTER TABLE {of} RENAME TO {to};")
        }
        11 | 12 => {
            let (one, other) = (table(random), table(random));
            format!("SELECT * FROM {one} AS p LEFT JOIN {other} AS q USING (id) ORDER BY 1, 2, 3;")
        }
        _ => change(random),
    }
}

/// Runs a statement on both sides; false: they went apart.
fn agree(ours: &Session, theirs: &Connection, sql: &str, log: &mut Vec<String>) -> bool {
    let mut mine = support::run(ours, sql);
    let mut other = support::sqlite(theirs, sql);
    let fails = |rows: &[String]| rows.last().is_some_and(|row| row.starts_with("error "));
    if fails(&mine) && fails(&other) {
        // Of several errors either may be told.
        mine.clone_from(&other);
    }
    let state = |changes: u64, auto: bool| format!("changes {changes} autocommit {auto}");
    mine.push(state(ours.changes(), ours.is_autocommit()));
    other.push(state(theirs.changes(), theirs.is_autocommit()));
    log.push(format!("{sql}   -- {other:?}"));
    if mine != other {
        log.push(format!("ours: {mine:?}"));
    }
    mine == other
}

fn run_one(seed: u64) {
    let mut random = Random(seed);
    let ours = support::session();
    let theirs = Connection::open_in_memory().unwrap();
    let mut log = Vec::new();
    let mut setup = ["ATTACH ':memory:' AS a;", "CREATE TEMP TABLE w(id);"]
        .map(str::to_owned)
        .to_vec();
    for database in ["main", "temp", "a"] {
        for name in ["t", "u"] {
            if random.below(3) > 0 {
                let x = *random.pick(&["x", "x INT", "x UNIQUE"]);
                setup.push(format!(
                    "CREATE TABLE {database}.{name}(id INTEGER PRIMARY KEY, {x});"
                ));
                let first = random.below(9);
                let rows = format!("({first}, 1), ({}, 2)", first + 3);
                setup.push(format!("INSERT INTO {database}.{name} VALUES {rows};"));
            }
        }
    }
    let statements = (0..40).flat_map(|_| {
        let holds = ["main", "temp", "a"].map(|database| {
            format!("SELECT type, name, tbl_name, sql FROM {database}.sqlite_master ORDER BY 1, 2;")
        });
        let mut list = vec![statement(&mut random)];
        list.extend(holds);
        list.extend(["main", "temp", "a"].iter().flat_map(|database| {
            TABLES.map(|name| format!("SELECT id, x FROM {database}.{name} ORDER BY id, x;"))
        }));
        list
    });
    for sql in setup.into_iter().chain(statements.collect::<Vec<_>>()) {
        let same = agree(&ours, &theirs, &sql, &mut log);
        // Among tables of the same names it renames others, too, or triggers change theirs.
        if !same && log.iter().any(|it| it.starts_with("ALTER TABLE")) {
            return;
        }
        assert!(same, "seed {seed}:\n{}", log.join("\n"));
    }
    let check = support::run(&ours, "PRAGMA integrity_check");
    assert_eq!(check, ["'ok'"], "seed {seed}:\n{}", log.join("\n"));
}

#[test]
fn databases_by_chance() {
    let seeds: u64 = std::env::var("FULGURITE_DATABASE_SEEDS").map_or(150, |s| s.parse().unwrap());
    println!("seeds 0 to {}", seeds - 1);
    (0..seeds).for_each(run_one);
}
