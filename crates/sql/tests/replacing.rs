//! INSERTs that replace the row of their own rowid, and others: what is left of rows and
//! of index entries, beside SQLite.

mod common;
mod support;

use common::Random;
use support::same;

/// Tables of which rows meet each other by rowid and by one index or several; a NOCASE key
/// stays the same where its text does not, and a partial index has a row or has it not.
const TABLES: [&str; 6] = [
    "id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c INTEGER); CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b",
    "id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT UNIQUE COLLATE NOCASE, c INTEGER); CREATE INDEX tc ON t(c, b",
    "id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c INTEGER); CREATE UNIQUE INDEX ta ON t(a) WHERE c > 1; CREATE UNIQUE INDEX tb ON t(b, a % 5",
    "id INTEGER PRIMARY KEY ON CONFLICT REPLACE, a INTEGER UNIQUE, b TEXT UNIQUE ON CONFLICT REPLACE, c INTEGER",
    "id INTEGER PRIMARY KEY AUTOINCREMENT, a INTEGER UNIQUE ON CONFLICT REPLACE, b TEXT, c INTEGER",
    "id INTEGER PRIMARY KEY ON CONFLICT REPLACE, a INTEGER, b TEXT, c INTEGER",
];

/// The rows as the table and as each index has them.
const SEE: &str = "SELECT * FROM t; SELECT a, id FROM t WHERE a > -1 ORDER BY a, id;
    SELECT b, id FROM t WHERE b > '' ORDER BY b, id; PRAGMA integrity_check";

fn row(random: &mut Random) -> String {
    let b = ["x", "X", "y", "Y", "z"][random.below(5) as usize];
    let c = ["NULL", "0", "1", "2", "3"][random.below(5) as usize];
    format!(
        "({}, {}, '{b}{}', {c})",
        random.below(12),
        random.below(14),
        random.below(4)
    )
}

fn statement(random: &mut Random) -> String {
    let or = ["OR REPLACE", "OR REPLACE", "OR REPLACE", "", "OR IGNORE"][random.below(5) as usize];
    let rows = 1 + random.below(4) * random.below(2);
    let rows: Vec<String> = (0..rows).map(|_| row(random)).collect();
    let rows = rows.join(", ");
    match random.below(12) {
        0 => format!("INSERT {or} INTO t SELECT id, a, b, c FROM t WHERE a % 3 = 0"),
        1 => format!("INSERT {or} INTO t SELECT id, a, upper(b), c + 1 FROM t WHERE a % 2 = 0"),
        2 => format!("INSERT {or} INTO t SELECT id, a + 1, b, c FROM t"),
        3 => format!(
            "UPDATE {or} t SET id = id + 1, c = 2 WHERE id = {}",
            random.below(12)
        ),
        4 => format!("INSERT {or} INTO t VALUES {rows} RETURNING id, a"),
        5 => format!("INSERT {or} INTO t VALUES {rows} ON CONFLICT (id) DO UPDATE SET c = 9"),
        // What replaces by rowid on its own account then does so behind all indexes, too.
        6 => format!("INSERT {or} INTO t VALUES {rows} ON CONFLICT (a) DO NOTHING"),
        7 => format!(
            "INSERT {or} INTO t VALUES {rows} ON CONFLICT (a) WHERE c > 1 DO UPDATE SET c = c + 1"
        ),
        8 => format!(
            "INSERT {or} INTO t VALUES {rows} ON CONFLICT (a % 5, b) DO UPDATE SET b = b || 1"
        ),
        _ => format!("INSERT {or} INTO t VALUES {rows}"),
    }
}

#[test]
fn rows_take_the_places_of_others_as_in_sqlite() {
    let seeds = std::env::var("FULGURITE_REPLACING_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut random = Random(seed);
        for table in TABLES {
            let mut sql = format!("CREATE TABLE t({table}); BEGIN;");
            for _ in 0..120 {
                sql += &match random.below(8) {
                    0 => "COMMIT; BEGIN;".to_owned(),
                    1 => format!("{SEE};"),
                    _ => format!("{};", statement(&mut random)),
                };
            }
            same(&format!("{sql} {SEE}; COMMIT"));
        }
    }
}

/// Where clauses were for indexes alone the row gave way before the other indexes were
/// checked, which its own entries would have stopped.
#[test]
fn a_rowid_that_replaces_is_checked_last_beside_other_clauses() {
    for insert in [
        "INSERT INTO t VALUES (5, 9, 4, 9)",
        "INSERT INTO t VALUES (5, 3, 4, 9)",
        "INSERT INTO t VALUES (5, 9, 9, 9)",
        "INSERT INTO t VALUES (5, 9, 8, 9)",
        "INSERT OR REPLACE INTO t VALUES (5, 9, 4, 9)",
        "INSERT OR IGNORE INTO t VALUES (5, 9, 9, 9)",
    ] {
        for clauses in [
            "ON CONFLICT (a) DO NOTHING",
            "ON CONFLICT (b) DO UPDATE SET c = 100",
            "ON CONFLICT (c) WHERE c > 5 DO NOTHING",
            "ON CONFLICT (a) DO NOTHING ON CONFLICT (id) DO UPDATE SET c = 100",
            "ON CONFLICT (a) DO NOTHING ON CONFLICT DO UPDATE SET c = 100",
        ] {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY ON CONFLICT REPLACE, a UNIQUE, b UNIQUE, c);
                 CREATE UNIQUE INDEX tc ON t(c) WHERE c > 5;
                 INSERT INTO t VALUES (5, 3, 4, 6), (6, 7, 8, 0); {insert} {clauses}; {SEE}"
            ));
        }
    }
}

/// A new row whose key is taken is never there: neither its rowid nor its other entries.
#[test]
fn rows_without_a_place_leave_nothing() {
    let table =
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b UNIQUE, c); CREATE INDEX tc ON t(c);
        INSERT INTO t VALUES (4, 'a', 'b', 1), (9, 'c', 'd', 2)";
    for (a, b) in [
        ("'a'", "'z'"),
        ("'z'", "'d'"),
        ("'a'", "'d'"),
        ("'y'", "'z'"),
    ] {
        for verb in [
            "INSERT OR IGNORE",
            "INSERT OR REPLACE",
            "INSERT OR FAIL",
            "INSERT",
        ] {
            for end in [
                "",
                "ON CONFLICT(b) DO UPDATE SET a = excluded.a",
                "ON CONFLICT(a) DO UPDATE SET b = excluded.b, id = excluded.id + 5 RETURNING *",
                "ON CONFLICT DO NOTHING",
            ] {
                for within in ["SELECT 1", "BEGIN"] {
                    same(&format!(
                        "{table}; {within}; {verb} INTO t(a, b, c) VALUES ('q', 'r', 5), ({a}, {b}, 3), ('s', 't', 6) {end};
                        SELECT changes(), last_insert_rowid(); SELECT * FROM t; SELECT id FROM t WHERE c = 3;
                        SELECT a FROM t WHERE a > '' ORDER BY a; SELECT b FROM t WHERE b > '' ORDER BY b;
                        INSERT INTO t(c) VALUES (7); SELECT max(id) FROM t; PRAGMA integrity_check"
                    ));
                }
            }
        }
    }
}

/// Where a trigger or an action puts a row in the place of one that gave way, the constraints
/// behind that are looked at before it ends the statement: one of them may take it away
/// again. Where only a child's trigger put it there, it was replaced again and again.
#[test]
fn rows_that_come_into_the_place_of_those_that_gave_way() {
    let again = "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b UNIQUE, c);
        CREATE TRIGGER again AFTER DELETE ON t WHEN old.c < 4 BEGIN
            REPLACE INTO t VALUES (2, 1, 6, 9);
        END";
    for statement in [
        "REPLACE INTO t VALUES (2, 3, 8, 8)",
        "REPLACE INTO t VALUES (2, 1, 8, 8)",
        "REPLACE INTO t VALUES (2, 8, 6, 8), (5, 5, 5, 5)",
        "REPLACE INTO t VALUES (7, 2, 6, 8)",
        "REPLACE INTO t VALUES (7, 1, 6, 8)",
        "DELETE FROM t WHERE id = 1",
        "UPDATE OR REPLACE t SET id = 2 WHERE id = 3",
        "UPDATE OR REPLACE t SET id = 2, a = 1 WHERE id = 3",
    ] {
        for recursive in ["ON", "OFF"] {
            same(&format!(
                "PRAGMA recursive_triggers = {recursive}; {again};
                INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3);
                {statement}; {SEE}; BEGIN; {statement}; {SEE}; COMMIT; {SEE}"
            ));
        }
    }
    let family = "PRAGMA foreign_keys = ON; CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b, c);
        CREATE TABLE child(id INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE);
        CREATE TRIGGER back AFTER DELETE ON child BEGIN
            INSERT INTO t VALUES (old.t, old.t + 10, 0, 0); INSERT INTO child VALUES (old.id, old.t);
        END; INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, 2); INSERT INTO child VALUES (1, 1)";
    for statement in [
        "REPLACE INTO t VALUES (1, 5, 5, 5)",
        "REPLACE INTO t VALUES (5, 1, 5, 5)",
        "REPLACE INTO t VALUES (1, 11, 5, 5)",
        "UPDATE OR REPLACE t SET id = 1 WHERE id = 2",
        "UPDATE OR REPLACE t SET a = 1 WHERE id = 2",
    ] {
        same(&format!(
            "{family}; {statement}; {SEE}; SELECT * FROM child; BEGIN; {statement}; {SEE}; COMMIT"
        ));
    }
}

/// A row has its number before others give way to it, and a trigger that inserted a row then
/// was given the same one: that row was lost, and its index entries stayed.
#[test]
fn rows_of_triggers_beside_one_that_has_its_number_already() {
    for table in [
        "CREATE TABLE t(a UNIQUE, b UNIQUE, c)",
        "CREATE TABLE t(a, b UNIQUE, c, id INTEGER PRIMARY KEY, UNIQUE (a))",
        "CREATE TABLE t(a, b UNIQUE, c, id INTEGER PRIMARY KEY AUTOINCREMENT, UNIQUE (a))",
        "CREATE TABLE t(a, b UNIQUE, c, id INTEGER PRIMARY KEY ON CONFLICT REPLACE, UNIQUE (a))",
        "CREATE TABLE t(a PRIMARY KEY, b UNIQUE, c) WITHOUT ROWID",
        "CREATE TABLE t(a UNIQUE, b, c, PRIMARY KEY (b)) WITHOUT ROWID",
    ] {
        for time in ["BEFORE", "AFTER"] {
            for statement in [
                "REPLACE INTO t(a, b, c) VALUES (1, 7, 8)",
                "REPLACE INTO t(a, b, c) VALUES (7, 2, 8)",
                "REPLACE INTO t(a, b, c) VALUES (1, 2, 8)",
                "REPLACE INTO t(a, b, c) VALUES (6, 6, 6), (2, 7, 8), (9, 9, 9)",
                "INSERT INTO t(a, b, c) VALUES (2, 7, 8) ON CONFLICT (a) DO UPDATE SET b = 1",
            ] {
                same(&format!(
                    "PRAGMA recursive_triggers = ON; {table};
                    CREATE TRIGGER copy {time} DELETE ON t WHEN old.a < 5 BEGIN
                        INSERT INTO t(a, b, c) VALUES (old.a + 10, old.b + 10, old.c);
                    END;
                    INSERT INTO t(a, b, c) VALUES (1, 1, 1), (2, 2, 2); {statement};
                    SELECT * FROM t ORDER BY a; SELECT a FROM t WHERE b > 0 ORDER BY b;
                    SELECT c FROM t WHERE a > 0 ORDER BY a; PRAGMA integrity_check"
                ));
            }
        }
    }
}
