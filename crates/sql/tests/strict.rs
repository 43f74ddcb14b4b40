//! STRICT tables: which types columns may have, which values they take and how those are
//! converted, wherever values come from.

mod common;
mod support;

use common::Random;
use support::{run, same, session, sqlite};

/// Each of these by itself on a table of its own.
fn each(columns: &str, statements: &[&str]) {
    for statement in statements {
        same(&format!(
            "CREATE TABLE t({columns}) STRICT; {statement}; SELECT * FROM t"
        ));
    }
}

#[test]
fn columns_take_values_of_their_types() {
    for sql in [
        "CREATE TABLE t(a INT, b INTEGER, c REAL, d TEXT, e BLOB, f ANY) STRICT; INSERT INTO t VALUES (1,2,3,'x',x'00',5),('1','2','3',4,x'01','5'),(1.0,2.0,3.5,4.5,x'','x'),(NULL,NULL,NULL,NULL,NULL,NULL),('1.0',' 2 ','3e2',x'00' || 'a',x'00',x'00'); SELECT *, typeof(a),typeof(b),typeof(c),typeof(d),typeof(e),typeof(f) FROM t",
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1.5); INSERT INTO t VALUES (x'00'); INSERT INTO t VALUES ('1.5'); INSERT INTO t VALUES (9223372036854775808); SELECT * FROM t",
        "CREATE TABLE t(a INTEGER) STRICT; INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1.5); INSERT INTO t VALUES (x'00'); INSERT INTO t VALUES ('1.5'); SELECT * FROM t",
        "CREATE TABLE t(a REAL) STRICT; INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1); INSERT INTO t VALUES (x'00'); INSERT INTO t VALUES ('1.5'); INSERT INTO t VALUES (9007199254740993); INSERT INTO t VALUES (-0.0); SELECT *, typeof(a) FROM t",
        "CREATE TABLE t(a TEXT) STRICT; INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1); INSERT INTO t VALUES (x'00'); INSERT INTO t VALUES (1.5); SELECT *, typeof(a) FROM t",
        "CREATE TABLE t(a BLOB) STRICT; INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1); INSERT INTO t VALUES (x'00'); INSERT INTO t VALUES (1.5); SELECT *, typeof(a) FROM t",
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES (true), (false); INSERT INTO t VALUES (1e3), ('0x10'); SELECT * FROM t; INSERT INTO t VALUES (1e19); INSERT INTO t VALUES ('9223372036854775807'); INSERT INTO t VALUES ('9223372036854775808'); INSERT INTO t VALUES (''); SELECT * FROM t",
        "CREATE TABLE t(a TEXT) STRICT; INSERT INTO t SELECT 1; INSERT INTO t SELECT x'31'; INSERT INTO t VALUES (NULL); SELECT * FROM t; PRAGMA integrity_check(t)",
    ] {
        same(sql);
    }
}

#[test]
fn any_takes_all_values_as_they_are() {
    for sql in [
        "CREATE TABLE t(a ANY) STRICT; INSERT INTO t VALUES ('x'),('1'),(1),(1.0),(x'00'); SELECT *, typeof(a) FROM t; SELECT * FROM t WHERE a = 1; SELECT * FROM t WHERE a = '1'; SELECT * FROM t WHERE a > 0",
        "CREATE TABLE t(a ANY); INSERT INTO t VALUES ('x'),('1'),(1),(1.0),(x'00'); SELECT *, typeof(a) FROM t; SELECT * FROM t WHERE a = 1; SELECT * FROM t WHERE a = '1'; SELECT * FROM t WHERE a > 0",
        "CREATE TABLE t(a ANY COLLATE NOCASE, b TEXT COLLATE NOCASE) STRICT; INSERT INTO t VALUES ('a', 'B'), ('A', 'b'), (1, 1); SELECT * FROM t WHERE a = 'A'; SELECT DISTINCT b FROM t ORDER BY b",
        "CREATE TABLE t(a ANY PRIMARY KEY) STRICT; INSERT INTO t VALUES (1), ('1'), (1.5), (x'31'); INSERT INTO t VALUES (1.0); INSERT INTO t VALUES (NULL); SELECT a, typeof(a) FROM t ORDER BY a",
    ] {
        same(sql);
    }
}

#[test]
fn every_column_has_one_of_the_types() {
    for sql in [
        "CREATE TABLE t(a VARCHAR) STRICT",
        "CREATE TABLE t(a VARCHAR(10)) STRICT",
        "CREATE TABLE t(a INTEGER(10)) STRICT",
        "CREATE TABLE t(a) STRICT",
        "CREATE TABLE t(a INT, b) STRICT",
        r#"CREATE TABLE "my t"("a b" DOUBLE PRECISION) STRICT"#,
        "CREATE TABLE main.t(a NUMERIC) STRICT",
        r#"CREATE TABLE t([a] "int") STRICT; INSERT INTO t VALUES (1); SELECT * FROM t; PRAGMA table_info(t)"#,
        "CREATE TABLE t(a UNSIGNED INT) StricT; CREATE TABLE t(a int, a text) STRICT; CREATE TABLE t(a int, a foo) STRICT",
        "CREATE TABLE t(a int primary key, b bar primary key) STRICT",
        "CREATE TABLE t(a int) STRICT, STRICT; INSERT INTO t VALUES ('q')",
        "CREATE TABLE t(a int) FOO",
        "CREATE TABLE IF NOT EXISTS t(a foo) STRICT; CREATE TABLE t(a int) STRICT; CREATE TABLE IF NOT EXISTS t(a foo) STRICT; CREATE TABLE t(a foo) STRICT",
        "CREATE TABLE sqlite_x(a foo) STRICT",
    ] {
        same(sql);
    }
}

#[test]
fn columns_of_a_primary_key_are_not_null() {
    for sql in [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT) STRICT; INSERT INTO t VALUES ('x', 1); INSERT INTO t VALUES ('5', 1); INSERT INTO t VALUES (6.0, 1); INSERT INTO t VALUES (NULL, '7'); INSERT INTO t(a) VALUES (9); UPDATE t SET id = 'z' WHERE id = 5; UPDATE t SET id = '50' WHERE id = 5; SELECT * FROM t; PRAGMA table_info(t); PRAGMA table_xinfo(t)",
        "CREATE TABLE t(id INT PRIMARY KEY, a INT) STRICT; INSERT INTO t VALUES (NULL, 1); INSERT OR IGNORE INTO t VALUES (NULL, 1); INSERT OR REPLACE INTO t VALUES (NULL, 1); SELECT * FROM t; PRAGMA table_info(t)",
        "CREATE TABLE t(a INT, b TEXT, PRIMARY KEY (a, b)) STRICT; INSERT INTO t VALUES (NULL, 1); INSERT INTO t VALUES (1, NULL); INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES ('1', '1'); SELECT * FROM t; PRAGMA table_info(t)",
        "CREATE TABLE t(a INT NOT NULL ON CONFLICT IGNORE, b TEXT, PRIMARY KEY (a, b)) STRICT; INSERT INTO t VALUES (NULL, 1); SELECT * FROM t; PRAGMA table_info(t); PRAGMA table_list('t')",
        "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a INT) STRICT; INSERT INTO t VALUES ('x', 1); INSERT INTO t VALUES (NULL, 1); PRAGMA table_info(t)",
        "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT) STRICT; INSERT INTO t(b) VALUES (1), ('x'); INSERT INTO t(b) VALUES (x'00'); SELECT * FROM t; SELECT * FROM sqlite_sequence",
    ] {
        same(sql);
    }
}

#[test]
fn or_clauses_do_not_excuse_a_wrong_type() {
    for sql in [
        "CREATE TABLE t(a INT) STRICT; INSERT OR IGNORE INTO t VALUES (1), ('x'), (2); SELECT * FROM t",
        "CREATE TABLE t(a INT) STRICT; INSERT OR REPLACE INTO t VALUES (1), ('x'), (2); SELECT * FROM t",
        "CREATE TABLE t(a INT) STRICT; INSERT OR FAIL INTO t VALUES (1), ('x'), (2); SELECT * FROM t",
        "CREATE TABLE t(a INT CHECK (a > 5), b INT NOT NULL) STRICT; INSERT INTO t VALUES ('x', NULL); INSERT INTO t VALUES ('x', 1); INSERT INTO t VALUES (1, 'x'); INSERT OR IGNORE INTO t VALUES (1, 'x'); INSERT OR IGNORE INTO t VALUES ('x', NULL)",
    ] {
        same(sql);
    }
}

/// NULLs of columns that are computed, and of others, hid that a value is of another type.
#[test]
fn generated_columns_are_computed_from_values_of_the_types() {
    for columns in [
        "a INT, b TEXT NOT NULL, c INT AS (NULL) NOT NULL",
        "c INT AS (a + 1) STORED CHECK (c > 5), a INT CHECK (a > 5), b TEXT NOT NULL",
        "a INT, c INT AS (a || 'x') STORED NOT NULL, b TEXT NOT NULL",
        "a INT, b TEXT NOT NULL",
    ] {
        for rows in [
            "('x', NULL)",
            "('x', 'y')",
            "(3, x'00')",
            "(7, NULL)",
            "(NULL, 'y')",
        ] {
            let insert = |or: &str| format!("INSERT {or} INTO t(a, b) VALUES {rows}");
            let update =
                |or: &str| format!("UPDATE {or} t SET (a, b) = (SELECT * FROM (VALUES {rows}))");
            each(
                columns,
                &[
                    &insert(""),
                    &insert("OR IGNORE"),
                    &insert("OR REPLACE"),
                    &format!("INSERT INTO t(a, b) VALUES (9, 'z'); {}", update("")),
                    &format!(
                        "INSERT INTO t(a, b) VALUES (9, 'z'); {}",
                        update("OR IGNORE")
                    ),
                ],
            );
        }
    }
}

#[test]
fn columns_are_added_with_a_type_and_a_default_of_it() {
    for sql in [
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b; ALTER TABLE t ADD COLUMN b FOO; ALTER TABLE t ADD COLUMN b VARCHAR(9); ALTER TABLE t ADD COLUMN b TEXT DEFAULT 5; SELECT *, typeof(b) FROM t; ALTER TABLE t ADD COLUMN c INT DEFAULT 'x'; ALTER TABLE t ADD COLUMN d ANY DEFAULT '5'; SELECT *, typeof(d) FROM t; ALTER TABLE t ADD COLUMN e REAL DEFAULT 7; SELECT *, typeof(e) FROM t; SELECT sql FROM sqlite_schema",
        "CREATE TABLE t(a INT) STRICT; ALTER TABLE t ADD COLUMN c INT DEFAULT 'x'; INSERT INTO t(a) VALUES (1); INSERT INTO t VALUES (1, 2); SELECT * FROM t",
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN c INT DEFAULT 'x' CHECK (c > 5); ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 'x';  ALTER TABLE t ADD COLUMN c INT NOT NULL; ALTER TABLE t ADD COLUMN c INT DEFAULT (1+1)",
    ] {
        same(sql);
    }
}

#[test]
fn all_statements_that_write_convert_and_check() {
    for sql in [
        "CREATE TABLE t(a INT, b TEXT) STRICT; INSERT INTO t VALUES (1, 'a'), (2, 'b'); UPDATE t SET a = b; UPDATE t SET a = '9' WHERE a = 1; UPDATE t SET b = a; UPDATE OR IGNORE t SET a = 'x'; UPDATE OR FAIL t SET a = CASE a WHEN 2 THEN 'x' ELSE 7 END; UPDATE OR REPLACE t SET a = 2.5; SELECT *, typeof(b) FROM t",
        "CREATE TABLE t(a INT, b TEXT) STRICT; WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i < 100) INSERT INTO t SELECT i, i FROM n; SELECT count(*), sum(a), max(typeof(b)) FROM t; UPDATE t SET a = a || ''; SELECT sum(a), max(typeof(a)) FROM t; UPDATE t SET a = CASE WHEN a > 90 THEN 'x' ELSE a END; INSERT INTO t SELECT a / 2.0, b FROM t; SELECT count(*) FROM t",
        "CREATE TABLE t(a INT PRIMARY KEY, b REAL) STRICT; INSERT INTO t VALUES (1, 1) ON CONFLICT DO UPDATE SET b = 'x'; INSERT INTO t VALUES (1, 1) ON CONFLICT DO UPDATE SET b = 'x'; INSERT INTO t VALUES (1, 1) ON CONFLICT DO UPDATE SET b = '77'; INSERT INTO t VALUES (1, 'q') ON CONFLICT DO NOTHING; SELECT * FROM t",
        "CREATE TABLE t(a INT DEFAULT 'x', b REAL DEFAULT 5, c TEXT DEFAULT 5) STRICT; INSERT INTO t DEFAULT VALUES; INSERT INTO t(a) VALUES (1); SELECT *, typeof(b), typeof(c) FROM t",
        "CREATE TABLE t(a INT, b ANY, c TEXT) STRICT; INSERT INTO t VALUES (1, '2', 'x'); CREATE TABLE u AS SELECT * FROM t; SELECT sql FROM sqlite_schema WHERE name = 'u'; PRAGMA table_list('t'); PRAGMA table_list('u'); CREATE VIEW v AS SELECT * FROM t; PRAGMA table_info(v); PRAGMA integrity_check; PRAGMA quick_check",
        "CREATE TABLE t(a INT, b ANY UNIQUE, c TEXT) STRICT; CREATE INDEX i ON t(b, c); INSERT INTO t VALUES (1, '2', 'x'), (2, 2, 'y'), (3, 2.0, 'z'); SELECT * FROM t WHERE b = 2; SELECT * FROM t WHERE b = '2'; SELECT * FROM t ORDER BY b; ALTER TABLE t RENAME COLUMN b TO bb; ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (1, 7, x'00'); ALTER TABLE u DROP COLUMN c; SELECT sql FROM sqlite_schema; INSERT INTO u VALUES ('x', 9)",
        "CREATE TABLE t(a INT) STRICT; INSERT INTO t VALUES ('7') RETURNING a, typeof(a); INSERT INTO t VALUES ('x') RETURNING a; UPDATE t SET a = '8' RETURNING typeof(a); REPLACE INTO t VALUES ('q') RETURNING *",
    ] {
        same(sql);
    }
}

#[test]
fn actions_of_foreign_keys_store_no_other_types() {
    for sql in [
        "PRAGMA foreign_keys = ON; CREATE TABLE p(a INT PRIMARY KEY); INSERT INTO p VALUES (1), ('x'), (2.5); CREATE TABLE c(a INT DEFAULT 'z' REFERENCES p ON UPDATE CASCADE ON DELETE SET DEFAULT) STRICT; INSERT INTO c VALUES (1); UPDATE p SET a = 'y' WHERE a = 1; UPDATE p SET a = 3 WHERE a = 1; SELECT * FROM c; DELETE FROM p WHERE a = 3; SELECT * FROM c; SELECT * FROM p",
        "PRAGMA foreign_keys = ON; CREATE TABLE p(a ANY PRIMARY KEY) STRICT; INSERT INTO p VALUES (1), ('x'), (2.5), ('1'); CREATE TABLE c(a INT REFERENCES p, b ANY REFERENCES p, d TEXT REFERENCES p) STRICT; INSERT INTO c VALUES (1, 1, NULL); INSERT INTO c VALUES (1, '1', NULL); INSERT INTO c VALUES (1, 1, '1'); INSERT INTO c VALUES (1, 1, 1); INSERT INTO c VALUES (NULL, 1.0, 'x'); SELECT * FROM c; DELETE FROM p WHERE a = '1'; DELETE FROM p WHERE a = 2.5; SELECT * FROM p",
    ] {
        same(sql);
    }
}

#[test]
fn of_several_values_each_is_looked_at() {
    each(
        "a INT, b REAL, c TEXT, d BLOB, e ANY",
        &[
            "INSERT INTO t VALUES ('x', 'x', x'00', 1, 1)",
            "INSERT INTO t VALUES (1, 'x', x'00', 1, 1)",
            "INSERT INTO t VALUES (1, 1, x'00', 1, 1)",
            "INSERT INTO t VALUES (1, 1, 1, 1, 1)",
            "INSERT INTO t VALUES (1, 1, 1, x'00', 1)",
            "INSERT INTO t(e) SELECT 1 UNION ALL SELECT 'x'",
            "INSERT INTO t(b, a) VALUES (1, 1.0), (1.5, 1.5)",
        ],
    );
}

const TYPES: [&str; 6] = ["INT", "INTEGER", "REAL", "TEXT", "BLOB", "ANY"];
const VALUES: [&str; 16] = [
    "NULL",
    "0",
    "1",
    "-7",
    "1.0",
    "2.5",
    "-0.0",
    "1e300",
    "'1'",
    "'2.0'",
    "' 3 '",
    "'x'",
    "''",
    "x'31'",
    "x''",
    "9223372036854775807",
];

/// Tables of types by chance take and refuse what SQLite's do.
fn statements_by_chance(seed: u64) {
    let mut random = Random(seed);
    let ours = session();
    let theirs = rusqlite::Connection::open_in_memory().unwrap();
    let width = random.below(4) + 1;
    let columns: Vec<String> = (0..width)
        .map(|at| {
            let key = *random.pick(&["", "", "", "UNIQUE", "NOT NULL"]);
            let default = match random.below(3) {
                0 => format!("DEFAULT {}", random.pick(&VALUES)),
                _ => String::new(),
            };
            format!("c{at} {} {key} {default}", random.pick(&TYPES))
        })
        .collect();
    let mut log = format!("CREATE TABLE t({}) STRICT", columns.join(", "));
    let mut last = log.clone();
    for _ in 0..30 {
        let (mine, other) = (run(&ours, &last), sqlite(&theirs, &last));
        assert_eq!(mine, other, "seed {seed}: {log}");
        let show = "SELECT *, typeof(c0) FROM t ORDER BY rowid";
        let (mine, other) = (run(&ours, show), sqlite(&theirs, show));
        assert_eq!(mine, other, "seed {seed}: {log}");
        let column = random.below(width);
        let mut value = || random.pick(&VALUES).to_string();
        last = match value().len() {
            0..=2 => format!("UPDATE t SET c{column} = {}", value()),
            3 => format!("UPDATE t SET c{column} = {} WHERE rowid = 3", value()),
            4 => format!("INSERT INTO t(c{column}) VALUES ({})", value()),
            _ => {
                let row: Vec<String> = (0..width).map(|_| value()).collect();
                format!("INSERT INTO t VALUES ({})", row.join(", "))
            }
        };
        log += &format!(";\n{last}");
    }
}

#[test]
fn tables_by_chance_do_as_sqlites() {
    let seeds = std::env::var("FULGURITE_STRICT_SEEDS").map_or(400, |n| n.parse().unwrap());
    println!("seeds 0 to {}", seeds - 1);
    (0..seeds).for_each(statements_by_chance);
}
