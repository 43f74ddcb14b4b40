//! The program as others see it: arguments in, text and JSON out.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{dir, err, out, run};
use serde_json::{Value, json};

/// The JSON objects a program printed, one a line.
fn objects(output: &Output) -> Vec<Value> {
    out(output)
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[test]
fn json_is_one_object_a_statement() {
    let dir = dir();
    let script = "CREATE TABLE t (a INTEGER PRIMARY KEY, b, c);
        INSERT INTO t VALUES (1, 'x', x'00ff'), (2, 1.5, NULL), (3, 2, -7);
        -- nothing
        SELECT * FROM t ORDER BY a; SELECT a FROM t WHERE 0;
        SELECT count(*) AS n FROM t";
    let output = run(dir.path(), &["--json"], script);
    assert_eq!(
        objects(&output),
        [
            json!({"columns": [], "rows": []}),
            json!({"columns": [], "rows": []}),
            json!({"columns": ["a", "b", "c"],
                   "rows": [[1, "x", {"blob": "00ff"}], [2, 1.5, null], [3, 2, -7]]}),
            json!({"columns": ["a"], "rows": []}),
            json!({"columns": ["n"], "rows": [[3]]}),
        ],
        "{}",
        err(&output)
    );
    assert!(output.status.success());
    assert!(
        out(&output).contains(r#"{"columns":["n"],"rows":[[3]]}"#),
        "fields in this order"
    );
}

#[test]
fn json_goes_on_after_an_error() {
    let dir = dir();
    let script = "CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1);
        INSERT INTO t VALUES (1);
        SELECT * FROM nobody;
        SELEKT;
        SELECT a FROM t;";
    let output = run(dir.path(), &["--json"], script);
    assert_eq!(
        objects(&output).get(2..),
        Some(
            [
                json!({"error": {"code": 2067, "name": "SQLITE_CONSTRAINT_UNIQUE",
                                 "message": "UNIQUE constraint failed: t.a"}}),
                json!({"error": {"code": 1, "name": "SQLITE_ERROR", "message": "no such table: nobody"}}),
                json!({"error": {"code": 1, "name": "SQLITE_ERROR",
                                 "message": "near \"SELEKT\": syntax error"}}),
                json!({"columns": ["a"], "rows": [[1]]}),
            ]
            .as_slice()
        )
    );
    assert!(out(&output).contains(
        r#"{"error":{"code":1,"name":"SQLITE_ERROR","message":"no such table: nobody"}}"#
    ));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err(&output), "");
}

#[test]
fn boxes_for_people_and_errors_with_a_caret() {
    let dir = dir();
    let script = "CREATE TABLE t (word, total);\nINSERT INTO t VALUES ('é', 10.0), (NULL, 7);\n\
                  SELECT * FROM t;\nSELECT word,\n  totl FROM t;\nSELECT 1 AS still_here;\n";
    let output = run(dir.path(), &[], script);
    assert_eq!(
        out(&output),
        "┌──────┬───────┐\n\
         │ word ┆ total │\n\
         ╞══════╪═══════╡\n\
         │ é    ┆  10.0 │\n\
         │ NULL ┆     7 │\n\
         └──────┴───────┘\n\
         ┌────────────┐\n\
         │ still_here │\n\
         ╞════════════╡\n\
         │          1 │\n\
         └────────────┘\n"
    );
    let errors = err(&output);
    assert!(
        errors.starts_with("Error near line 4: no such column: totl (SQLITE_ERROR)\n"),
        "{errors}"
    );
    assert!(errors.contains("  totl FROM t;\n  ^\n"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn sql_as_arguments_and_a_database_that_stays() {
    let dir = dir();
    let output = run(
        dir.path(),
        &[
            "shop.db",
            "CREATE TABLE t (a)",
            "INSERT INTO t VALUES (1), (2)",
        ],
        "",
    );
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output), "");
    let output = run(
        dir.path(),
        &[
            "shop.db",
            "--mode",
            "csv",
            "SELECT a, 'x,y' AS \"b \"\"c\" FROM t",
        ],
        "",
    );
    assert_eq!(out(&output), "a,\"b \"\"c\"\n1,\"x,y\"\n2,\"x,y\"\n");
    let output = run(
        dir.path(),
        &["shop.db", "--readonly", "--json", "DELETE FROM t"],
        "",
    );
    assert_eq!(objects(&output)[0]["error"]["name"], "SQLITE_READONLY");
    let output = run(
        dir.path(),
        &["shop.db", "--bail", "nonsense", "DELETE FROM t"],
        "",
    );
    assert_eq!(output.status.code(), Some(1));
    let output = run(
        dir.path(),
        &[
            "shop.db",
            "--mode",
            "line",
            "SELECT count(*) AS n, 1 AS other FROM t",
        ],
        "",
    );
    assert_eq!(out(&output), "    n = 2\nother = 1\n");
}

#[test]
fn dot_commands() {
    let dir = dir();
    std::fs::write(
        dir.path().join("people.csv"),
        "name,\"home town\"\nAda,London\nBo,\"Umeå, north\"\n",
    )
    .expect("csv");
    std::fs::write(
        dir.path().join("more.sql"),
        "SELECT count(*) AS n\nFROM people;\n.print read\n",
    )
    .expect("sql");
    let script = ".import people.csv people\n.import people.csv people\n.tables\n.mode line\n.read more.sql\n\
                  .tables x%\n.nonsense\n.schema people\n.quit\nSELECT 'unreached';\n";
    let output = run(dir.path(), &[], script);
    assert_eq!(
        out(&output),
        "people\nn = 5\nread\nCREATE TABLE \"people\" (\"name\" TEXT, \"home town\" TEXT);\n"
    );
    assert!(err(&output).contains(".nonsense"), "{}", err(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_failed_import_leaves_nothing() {
    let dir = dir();
    std::fs::write(dir.path().join("bad.csv"), "a,b\n1,2\n3\n").expect("csv");
    let output = run(
        dir.path(),
        &["--json"],
        ".import bad.csv t\nSELECT count(*) AS n FROM sqlite_schema;\n",
    );
    let objects = objects(&output);
    assert_eq!(
        objects[0]["error"]["message"],
        "line 3 has 1 values, t has 2 columns"
    );
    assert_eq!(objects[1], json!({"columns": ["n"], "rows": [[0]]}));
}

#[test]
fn a_dump_makes_the_same_database_again() {
    let dir = dir();
    let script = "CREATE TABLE \"odd \"\"name\" (id INTEGER PRIMARY KEY, v);
        CREATE INDEX odd_v ON \"odd \"\"name\" (v);
        INSERT INTO \"odd \"\"name\" VALUES (1, 'it''s'), (2, x'00ff'), (3, NULL), (4, 1e300), (5, 0.1), (6, -5), (7, 'ü\nline');
        CREATE TABLE computed (a, b AS (a + 1), c AS (b * 2) STORED, d);
        INSERT INTO computed VALUES (1, 'x'), (2, NULL);
        CREATE TABLE keyed (a TEXT, b INT, PRIMARY KEY (b DESC, a)) WITHOUT ROWID, STRICT;
        INSERT INTO keyed VALUES ('x', 1), ('y', 2);
        CREATE TABLE empty (a);";
    let made = run(dir.path(), &["one.db"], script);
    assert!(made.status.success(), "{}", err(&made));
    let first = out(&run(dir.path(), &["one.db", ".dump"], ""));
    assert!(first.contains("it''s"), "{first}");
    let loaded = run(dir.path(), &["two.db"], &first);
    assert!(loaded.status.success(), "{}", err(&loaded));
    assert_eq!(out(&run(dir.path(), &["two.db", ".dump"], "")), first);
}

#[test]
fn check_says_ok_or_what_is_wrong() {
    let dir = dir();
    run(
        dir.path(),
        &["a.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)"],
        "",
    );
    let output = run(dir.path(), &["check", "a.db"], "");
    assert_eq!(
        (out(&output).as_str(), output.status.code()),
        ("a.db: ok\n", Some(0)),
        "{}",
        err(&output)
    );
    let output = run(dir.path(), &["check", "--json", "a.db"], "");
    assert_eq!(objects(&output), [json!({"ok": true, "problems": []})]);
    let output = run(dir.path(), &["check", "--json", "absent.db"], "");
    assert_eq!(objects(&output)[0]["error"]["name"], "SQLITE_CANTOPEN");
    assert_eq!(output.status.code(), Some(1));
    assert!(!dir.path().join("absent.db").exists());
}

/// Who copied the file of a database in use without its log got an older state and was
/// not told.
#[test]
fn a_copy_without_its_log_is_refused_unless_that_is_abandoned() {
    let dir = dir();
    let connection = fulgurite::Connection::open(dir.path().join("a.db")).expect("opens");
    let script = "CREATE TABLE t (a); PRAGMA wal_checkpoint; INSERT INTO t VALUES (1)";
    connection.execute_batch(script).expect("runs");
    let copied = std::fs::copy(dir.path().join("a.db"), dir.path().join("b.db"));
    copied.expect("copies");
    let count = "SELECT count(*) FROM t";
    let refused: [&[&str]; 3] = [
        &["b.db", count],
        &["--readonly", "b.db", count],
        &["check", "b.db"],
    ];
    for arguments in refused {
        let output = run(dir.path(), arguments, "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = out(&output) + &err(&output);
        assert!(said.contains("b.db-wal0, which is missing"), "{said}");
    }
    let abandon = "--abandon-missing-log";
    let output = run(dir.path(), &["check", abandon, "b.db"], "");
    assert_eq!(out(&output), "b.db: ok\n");
    let count = [abandon, "--mode=csv", "--noheader", "b.db", count];
    let output = run(dir.path(), &count, "");
    assert_eq!(out(&output).trim(), "0", "{}", err(&output));
    let output = run(dir.path(), &["check", "b.db"], "");
    assert_eq!(out(&output), "b.db: ok\n");
    for option in [abandon, "--in-doubt=commit"] {
        let output = run(dir.path(), &[option, "absent.db", "SELECT 1"], "");
        assert_eq!(output.status.code(), Some(1), "nothing is made with it");
        assert!(err(&output).contains("absent.db does not exist"));
    }
    let count = [
        "--in-doubt",
        "roll-back",
        "--mode=csv",
        "--noheader",
        "b.db",
        count[4],
    ];
    assert_eq!(out(&run(dir.path(), &count, "")).trim(), "0");
}

#[test]
fn the_example_runs_twice() {
    let dir = dir();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/orders.sql");
    let script = std::fs::read_to_string(example).expect("the example");
    let first = run(dir.path(), &["orders.db"], &script);
    assert!(first.status.success(), "{}", err(&first));
    assert_eq!(err(&first), "");
    assert!(out(&first).contains("│ Amélie Roux"), "{}", out(&first));
    let second = run(dir.path(), &["orders.db"], &script);
    assert_eq!(out(&second), out(&first));
}

/// The example's results (but for the plan) are SQLite's.
#[test]
fn the_example_answers_as_sqlite_does() {
    let dir = dir();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/orders.sql");
    let script = std::fs::read_to_string(example).expect("the example");
    let ours = objects(&run(dir.path(), &["--json"], &script));
    let sqlite = rusqlite::Connection::open_in_memory().expect("SQLite");
    let mut batch = rusqlite::Batch::new(&sqlite, &script);
    let mut theirs = Vec::new();
    while let Some(mut stmt) =
        rusqlite::fallible_iterator::FallibleIterator::next(&mut batch).expect("SQLite")
    {
        let columns: Vec<String> = stmt.column_names().map(str::to_owned).collect();
        let mut rows = stmt.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next().expect("SQLite") {
            let row: Vec<Value> = (0..columns.len())
                .map(|i| match row.get_unwrap(i) {
                    rusqlite::types::Value::Null => Value::Null,
                    rusqlite::types::Value::Integer(i) => json!(i),
                    rusqlite::types::Value::Real(r) => json!(r),
                    rusqlite::types::Value::Text(t) => json!(t),
                    rusqlite::types::Value::Blob(_) => panic!("the example has no blobs"),
                })
                .collect();
            all.push(row);
        }
        theirs.push(json!({"columns": columns, "rows": all}));
    }
    assert_eq!(ours.len(), theirs.len());
    let plan = ours.len() - 1;
    for (i, (o, t)) in ours.iter().zip(&theirs).take(plan).enumerate() {
        assert_eq!(o, t, "statement {}", i + 1);
    }
}

#[cfg(feature = "import-sqlite")]
mod import {
    use super::*;

    fn source(path: &Path) -> rusqlite::Connection {
        let sqlite = rusqlite::Connection::open(path).expect("SQLite");
        sqlite
            .execute_batch(
                "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, extra);
                 CREATE TABLE pair (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
                 CREATE INDEX person_name ON person (name);
                 INSERT INTO person VALUES (7, 'Ada', x'00ff'), (9, 'Bo', NULL), (12, 'Çelik', 2.5);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                 INSERT INTO pair SELECT i, 'v' || i FROM n;",
            )
            .expect("SQLite");
        sqlite
    }

    #[test]
    fn everything_goes_over() {
        let dir = dir();
        drop(source(&dir.path().join("old.sqlite")));
        let output = run(dir.path(), &["import-sqlite", "old.sqlite", "new.db"], "");
        assert!(output.status.success(), "{}", err(&output));
        assert_eq!(out(&output), "2 tables, 1003 rows\n");
        let sql = "SELECT * FROM person ORDER BY id; SELECT count(*), sum(a), max(b) FROM pair;
            SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        assert_eq!(
            objects(&run(dir.path(), &["--json", "new.db", sql], "")),
            [
                json!({"columns": ["id", "name", "extra"],
                       "rows": [[7, "Ada", {"blob": "00ff"}], [9, "Bo", null], [12, "Çelik", 2.5]]}),
                json!({"columns": ["count(*)", "sum(a)", "max(b)"], "rows": [[1000, 500_500, "v999"]]}),
                json!({"columns": ["name"], "rows": [["person_name"]]}),
            ]
        );
        assert_eq!(
            out(&run(dir.path(), &["check", "new.db"], "")),
            "new.db: ok\n"
        );
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = dir();
        drop(source(&dir.path().join("old.sqlite")));
        std::fs::write(dir.path().join("new.db"), "precious").expect("a file");
        let output = run(dir.path(), &["import-sqlite", "old.sqlite", "new.db"], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("new.db exists"), "{}", err(&output));
        assert_eq!(
            std::fs::read(dir.path().join("new.db")).expect("a file"),
            b"precious"
        );
    }

    #[test]
    fn a_file_that_is_no_sqlite_database_makes_no_database() {
        let dir = dir();
        std::fs::write(
            dir.path().join("old.sqlite"),
            "not a database at all, but longer than a header",
        )
        .expect("file");
        let output = run(dir.path(), &["import-sqlite", "old.sqlite", "new.db"], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("old.sqlite"), "{}", err(&output));
        assert!(!dir.path().join("new.db").exists());
        let output = run(
            dir.path(),
            &["import-sqlite", "absent.sqlite", "new.db"],
            "",
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(!dir.path().join("new.db").exists());
    }

    /// They would fire again for rows that are copied.
    #[test]
    fn triggers_come_after_the_rows() {
        let dir = dir();
        let sqlite = source(&dir.path().join("old.sqlite"));
        sqlite
            .execute_batch(
                "CREATE TABLE counted(n); CREATE TABLE count(n); INSERT INTO count VALUES (0);
                 CREATE VIEW shown AS SELECT n FROM counted;
                 CREATE TRIGGER counts AFTER INSERT ON counted BEGIN
                    UPDATE count SET n = n + 1; SELECT CASE WHEN new.n > 9 THEN 1 END;
                 END;
                 CREATE TRIGGER shows INSTEAD OF INSERT ON shown BEGIN
                    INSERT INTO counted VALUES (new.n);
                 END;
                 INSERT INTO counted VALUES (1), (2);",
            )
            .expect("triggers");
        drop(sqlite);
        let output = run(dir.path(), &["import-sqlite", "old.sqlite", "new.db"], "");
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let script = "INSERT INTO shown VALUES (3); SELECT n FROM count;\n.dump counted\n";
        let output = run(dir.path(), &["new.db"], script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains('3'), "{text}");
        assert!(
            text.contains("CREATE TRIGGER counts AFTER INSERT"),
            "{text}"
        );
    }

    #[test]
    fn what_has_no_form_here_is_named() {
        let dir = dir();
        let sqlite = source(&dir.path().join("old.sqlite"));
        sqlite
            .execute_batch("CREATE VIRTUAL TABLE words USING fts5(w)")
            .expect("SQLite has fts5");
        drop(sqlite);
        let output = run(dir.path(), &["import-sqlite", "old.sqlite", "new.db"], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            err(&output).contains("left out: virtual table words"),
            "{}",
            err(&output)
        );
    }
}

/// The program ended there, with "Is a directory", which named nothing.
#[test]
fn a_folder_is_no_script_and_no_table() {
    let dir = dir();
    let args = [":memory:", ".read .", ".import . t", "SELECT 7 AS seven"];
    let output = run(
        dir.path(),
        &[&["--mode", "csv"], args.as_slice()].concat(),
        "",
    );
    let errors = err(&output);
    assert_eq!(
        errors.matches("cannot open .: is a directory").count(),
        2,
        "{errors}"
    );
    assert_eq!(out(&output), "seven\n7\n");
    assert_eq!(output.status.code(), Some(1));
}

/// A full disk behind standard error ended the program with a panic.
#[cfg(target_os = "linux")]
#[test]
fn an_error_that_cannot_be_told_stops_nothing() {
    let dir = dir();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_fulgurite"))
        .args(["--mode", "csv", ":memory:", "bad", "SELECT 7 AS seven"])
        .current_dir(dir.path())
        .stderr(full.expect("opens"))
        .output()
        .expect("the program runs");
    assert_eq!(out(&output), "seven\n7\n");
    assert_eq!(output.status.code(), Some(1));
}
