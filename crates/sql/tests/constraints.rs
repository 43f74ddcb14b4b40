//! NOT NULL, UNIQUE, PRIMARY KEY and CHECK, with each conflict clause.

mod support;

use support::same;

const TABLE: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT UNIQUE, b TEXT NOT NULL DEFAULT 'd', c INT CHECK (c > 0), UNIQUE (b, c));
INSERT INTO t VALUES (1, 10, 'x', 1), (2, 20, 'y', 2), (3, NULL, 'z', NULL), (4, NULL, 'z', NULL);
";

fn with(sql: &str) {
    same(&format!(
        "{TABLE}{sql}; SELECT * FROM t; SELECT a FROM t WHERE a > 0 ORDER BY a; SELECT b, c FROM t ORDER BY b, c, id"
    ));
}

#[test]
fn each_violation_has_sqlites_code_and_text() {
    for values in [
        "(1, 5, 'q', 9)",
        "(9, 10, 'q', 9)",
        "(9, 5, NULL, 9)",
        "(9, 5, 'q', 0)",
        "(9, 5, 'x', 1)",
        "('a', 1, 'q', 1)",
        "(5.5, 1, 'q', 1)",
    ] {
        with(&format!("INSERT INTO t VALUES {values}"));
    }
}

#[test]
fn a_failing_statement_undoes_all_its_rows() {
    with("INSERT INTO t VALUES (7, 70, 'n', 7), (8, 80, 'm', 8), (9, 10, 'q', 9)");
    with(
        "BEGIN; INSERT INTO t VALUES (7, 70, 'n', 7); INSERT INTO t VALUES (8, 80, 'm', 8), (9, 10, 'q', 9); COMMIT",
    );
}

#[test]
fn fail_keeps_the_rows_before() {
    with("INSERT OR FAIL INTO t VALUES (7, 70, 'n', 7), (8, 10, 'm', 8), (9, 90, 'q', 9)");
    with(
        "BEGIN; INSERT OR FAIL INTO t VALUES (7, 70, 'n', 7), (8, 10, 'm', 8), (9, 90, 'q', 9); COMMIT",
    );
    with("UPDATE OR FAIL t SET a = 30 WHERE id > 1");
}

#[test]
fn ignore_skips_rows() {
    with(
        "INSERT OR IGNORE INTO t VALUES (7, 70, 'n', 7), (8, 10, 'm', 8), (1, 1, 'k', 8), (9, 9, NULL, 9), (10, 100, 'w', -1), (11, 11, 'e', 11)",
    );
    with("UPDATE OR IGNORE t SET a = 30");
}

#[test]
fn replace_removes_what_is_in_the_way() {
    with("INSERT OR REPLACE INTO t VALUES (1, 20, 'n', 7)");
    with("REPLACE INTO t VALUES (9, 10, 'y', 2)");
    with("INSERT OR REPLACE INTO t VALUES (9, 9, NULL, 9)");
    with("INSERT OR REPLACE INTO t VALUES (9, 10, 'n', 0)");
    with("UPDATE OR REPLACE t SET a = 30");
    with("UPDATE OR REPLACE t SET id = id + 1");
    with("UPDATE OR REPLACE t SET b = 'x', c = 1 WHERE id = 2");
}

#[test]
fn rollback_ends_the_transaction() {
    with(
        "BEGIN; INSERT INTO t VALUES (7, 70, 'n', 7); INSERT OR ROLLBACK INTO t VALUES (8, 10, 'm', 8); SELECT count(*) FROM t",
    );
    with("INSERT OR ROLLBACK INTO t VALUES (8, 10, 'm', 8)");
}

#[test]
fn a_constraints_own_clause_counts_unless_the_statement_has_one() {
    same(
        "CREATE TABLE r(a INT UNIQUE ON CONFLICT REPLACE, b NOT NULL ON CONFLICT IGNORE, c INTEGER PRIMARY KEY ON CONFLICT IGNORE);
         INSERT INTO r VALUES (1, 1, 1); INSERT INTO r VALUES (1, 2, 2); INSERT INTO r VALUES (3, NULL, 3);
         INSERT INTO r VALUES (4, 4, 2); INSERT OR ABORT INTO r VALUES (1, 5, 5); INSERT OR FAIL INTO r VALUES (6, NULL, 6);
         SELECT * FROM r",
    );
}

#[test]
fn unique_values_move_row_by_row() {
    with("UPDATE t SET a = a + 10");
    with("UPDATE t SET a = a - 10");
    with("UPDATE t SET id = id + 1");
    with("UPDATE t SET id = id - 1");
    with("UPDATE t SET id = id + 10, a = a + 10");
    with("UPDATE t SET id = -id");
}

#[test]
fn an_update_checks_what_it_changes() {
    with("UPDATE t SET b = NULL WHERE id = 1");
    with("UPDATE t SET c = 0 WHERE id = 1");
    with("UPDATE t SET id = 2 WHERE id = 1");
    with("UPDATE t SET id = 'x' WHERE id = 1");
    with("UPDATE t SET id = NULL WHERE id = 1");
    with("UPDATE t SET id = '9' WHERE id = 1");
    with("UPDATE t SET b = 'y', c = 2 WHERE id = 1");
    with("UPDATE t SET a = '20' WHERE id = 1");
}

/// An index over `a + ?` was made with the value bound then, and looked at with none.
#[test]
fn what_the_schema_keeps_has_no_parameters() {
    same(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2);
        CREATE INDEX i ON t(a + ?1); CREATE INDEX i ON t(b, lower(:x)); CREATE UNIQUE INDEX i ON t(a) WHERE b > ?;
        CREATE TABLE u(a CHECK (a > ?)); CREATE TABLE u(a, CHECK (a IN (1, $y)));
        ALTER TABLE t ADD COLUMN c CHECK (c > ?); ALTER TABLE t ADD COLUMN c CHECK (d > 1);
        CREATE TABLE u(a DEFAULT (1 + ?));
        CREATE INDEX i ON t(a + 1) WHERE b > 0; SELECT * FROM t WHERE a + 1 = 2 AND b > 0; PRAGMA integrity_check;
        SELECT name FROM sqlite_schema;",
    );
}

/// An index over `date('now')` had entries that nothing found the day after, one over
/// `changes()` from the next statement on.
#[test]
fn what_the_schema_keeps_does_not_hang_on_the_clock() {
    for function in [
        "changes()",
        "total_changes()",
        "last_insert_rowid()",
        "sqlite_version()",
        "random()",
        "current_date",
        "CURRENT_TIMESTAMP",
        "date()",
        "date('now')",
        "date(a, b)",
        "strftime('%H:%M', a, b)",
        "julianday(a, b) - 1",
        "coalesce(a, time(b))",
        "timediff(a, b)",
        "unixepoch('2000-01-01')",
        "datetime('2000-01-01', 'localtime')",
    ] {
        same(&format!(
            "CREATE TABLE t(a, b); CREATE INDEX i ON t(a, {function});
            CREATE INDEX j ON t(a) WHERE {function} IS NOT NULL;
            INSERT INTO t VALUES ('2001-02-03', '+1 day'), (NULL, '12:00'); INSERT INTO t VALUES ('now', '+1 day');
            INSERT INTO t VALUES ('2001-02-03', 'utc'), (NULL, 'now'); UPDATE t SET b = 'localtime';
            CREATE INDEX k ON t(a, {function}); DELETE FROM t WHERE b = 'utc';
            SELECT a, b FROM t WHERE {function} IS NOT NULL; PRAGMA integrity_check;
            SELECT name FROM sqlite_schema;"
        ));
        same(&format!(
            "CREATE TABLE t(a, b, CHECK ({function} IS NOT NULL));
            INSERT INTO t VALUES ('2001-02-03', '+1 day'); INSERT INTO t VALUES ('now', '+1 day');
            INSERT OR IGNORE INTO t VALUES ('2001-02-03', 'utc'); UPDATE t SET b = '+2 days';
            SELECT * FROM t;"
        ));
    }
}
