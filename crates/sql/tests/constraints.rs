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

/// Which uniqueness a target names: of partial indexes, of indexes on expressions and with
/// collations none was found, only columns of other indexes were.
#[test]
fn conflict_targets_name_an_index() {
    let insert = |index: &str, targets: &[&str]| {
        for target in targets {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c TEXT COLLATE NOCASE);
                 CREATE UNIQUE INDEX i ON t{index}; INSERT INTO t VALUES (10, 'x', 6, 'y');
                 INSERT INTO t AS u(a, b, c) VALUES ('x', 6, 'y') ON CONFLICT {target} DO NOTHING;
                 INSERT INTO t(a, b, c) VALUES ('x', 6, 'y'), ('z', 7, 'z')
                 ON CONFLICT {target} DO UPDATE SET a = excluded.a || 1, b = t.b + 1 RETURNING *;
                 SELECT * FROM t ORDER BY id"
            ));
        }
    };
    let of_a_column = [
        "(a)", "(A DESC)", "(\"a\")", "('a')", "(u.a)", "(t.a)", "(+a)", "(a, a)",
    ];
    insert("(a)", &of_a_column);
    insert(
        "(a)",
        &[
            "(a) WHERE b > 5",
            "(a) WHERE q > 5",
            "(a) WHERE (SELECT 1)",
            "(a) WHERE count(*)",
        ],
    );
    insert(
        "(a)",
        &[
            "(a NULLS FIRST)",
            "(excluded.a)",
            "(q)",
            "(\"q\")",
            "(1)",
            "(?)",
            "(c)",
            "()",
        ],
    );
    let collations = [
        "(a)",
        "(a COLLATE binary)",
        "(a COLLATE nocase)",
        "(a COLLATE q)",
    ];
    insert("(a)", &collations);
    insert("(a COLLATE nocase)", &collations);
    insert(
        "(c)",
        &[
            "(c)",
            "(c COLLATE nocase)",
            "(c COLLATE binary)",
            "(c COLLATE nocase COLLATE nocase)",
        ],
    );
    insert(
        "(a, b DESC)",
        &[
            "(a, b)",
            "(b ASC, a)",
            "(a)",
            "(b, b)",
            "(a, b, a)",
            "(a, b, c)",
        ],
    );
    insert(
        "(a, a COLLATE nocase)",
        &[
            "(a, b)",
            "(a COLLATE nocase, b)",
            "(a COLLATE nocase, a COLLATE binary)",
        ],
    );
    insert(
        "(id)",
        &[
            "(id)",
            "(rowid)",
            "(oid DESC)",
            "(u._rowid_)",
            "(id COLLATE binary)",
            "(id, id)",
        ],
    );
    // SQLite finds none by a rowid among others.
    insert("(id, a)", &["(id, a)", "(rowid, a)", "(id)"]);
    insert(
        "(lower(a))",
        &[
            "(lower(a))",
            "(LOWER( \"A\" ))",
            "(lower(a) COLLATE binary)",
            "(lower(a) COLLATE nocase)",
            "(lower(b))",
            "(lower(DISTINCT a))",
            "(a)",
            "(lower(a, b))",
            "(lower(a)) WHERE 1",
        ],
    );
    insert(
        "(lower(a) COLLATE nocase, id + b)",
        &[
            "(rowid + b, lower(a))",
            "(lower(a) COLLATE nocase, id + b)",
            "(lower(a) COLLATE binary, id + b)",
            "(lower(a), b + id)",
        ],
    );
    insert(
        "(CASE b WHEN 6 THEN a ELSE -b END)",
        &[
            "(case B when 6 then A else - B end)",
            "(CASE b WHEN 6 THEN a END)",
            "(CASE WHEN b = 6 THEN a ELSE -b END)",
        ],
    );
    insert(
        "(a NOT IN (1, 2))",
        &["(NOT a IN (1, 2))", "(a NOT IN (2, 1))", "(a IN (1, 2))"],
    );
    insert(
        "(a NOT LIKE 'x%')",
        &[
            "(NOT like('x%', a))",
            "(a NOT LIKE 'x%')",
            "(a NOT LIKE 'x%' ESCAPE '-')",
            "(a NOT GLOB 'x%')",
        ],
    );
}

/// A partial index is found by its own condition, as it is written.
#[test]
fn conflict_targets_have_the_conditions_of_partial_indexes() {
    let insert = |predicate: &str, conditions: &[&str]| {
        for condition in conditions {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c);
                 CREATE UNIQUE INDEX i ON t(a) WHERE {predicate};
                 INSERT INTO t VALUES (1, 'x', 6, 'y'), (2, 'z', NULL, NULL);
                 INSERT INTO t(a, b, c) VALUES ('x', 6, 'y'), ('x', 0, 'n'), ('z', NULL, NULL)
                 ON CONFLICT(a) {condition} DO UPDATE SET b = t.b + excluded.b, c = 'again';
                 SELECT * FROM t ORDER BY id"
            ));
        }
    };
    insert(
        "b > 5",
        &[
            "",
            "WHERE b > 5",
            "WHERE (t.B) > 05",
            "WHERE 5 < b",
            "WHERE b > 5.0",
            "WHERE b > 6",
            "WHERE b > ?",
            "WHERE b > 5 AND 1",
            "WHERE +b > 5",
            "WHERE b COLLATE binary > 5",
            "WHERE q > 5",
        ],
    );
    insert(
        "b IS NULL",
        &["WHERE b ISNULL", "WHERE b IS NOT NULL", "WHERE NULL IS b"],
    );
    insert(
        "b IS NOT NULL",
        &["WHERE b NOT NULL", "WHERE NOT b IS NULL", "WHERE b"],
    );
    insert(
        "b AND c AND a",
        &[
            "WHERE (b AND c) AND a",
            "WHERE b AND (c AND a)",
            "WHERE b AND a AND c",
        ],
    );
    insert(
        "b NOT BETWEEN 1 AND 2",
        &["WHERE NOT b BETWEEN 1 AND 2", "WHERE b < 1 OR b > 2"],
    );
    insert(
        "c = 'y'",
        &[
            "WHERE c = 'y'",
            "WHERE c = \"y\"",
            "WHERE c = 'Y'",
            "WHERE c = 'y' COLLATE nocase",
        ],
    );
    insert(
        "id > 0",
        &["WHERE rowid > 0", "WHERE oid > 0", "WHERE b > 0"],
    );
}

/// Clauses in their order, of which each has its own constraints; what no clause is for is
/// an error or the statement's OR clause.
#[test]
fn several_conflict_clauses() {
    let insert = |sql: &str| {
        same(&format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE, c);
             CREATE UNIQUE INDEX i ON t(lower(a)); CREATE UNIQUE INDEX p ON t(c) WHERE c > 0;
             INSERT INTO t VALUES (1, 'x', 1, 1), (2, 'y', 2, 2), (3, 'z', 3, 0);
             INSERT {sql}; SELECT * FROM t ORDER BY id; PRAGMA integrity_check"
        ));
    };
    let rows = "INTO t VALUES (1, 'X', 1, 1), (2, 'q', 3, 0), (9, 'Y', 9, 9), (8, 'n', 8, 2)";
    let any = "ON CONFLICT DO UPDATE SET a = a || 'any'";
    let by_rowid = "ON CONFLICT(id) DO UPDATE SET a = excluded.a || 'rowid'";
    let by_a = "ON CONFLICT(lower(a)) DO UPDATE SET a = excluded.a || 'a', id = t.id + 10";
    let by_c =
        "ON CONFLICT(c) WHERE c > 0 DO UPDATE SET c = t.c + excluded.c, b = -b WHERE t.c = 2";
    let nothing = "ON CONFLICT(b) DO NOTHING";
    for clauses in [
        format!("{by_rowid} {by_a} {by_c} {nothing}"),
        format!("{nothing} {by_c} {by_a} {by_rowid}"),
        format!("{by_a} {by_rowid} {any}"),
        format!("{by_a} {nothing} {by_a} {by_c} {any}"),
        format!("{by_c} {nothing}"),
        format!("{any} {by_a}"),
        format!("{by_a} ON CONFLICT(q) DO NOTHING"),
        format!("{by_a} ON CONFLICT(a) DO NOTHING {any}"),
        "ON CONFLICT(a) DO NOTHING ON CONFLICT(id) DO UPDATE SET q = 1".to_owned(),
        "ON CONFLICT(a) DO UPDATE SET q = 1".to_owned(),
        "ON CONFLICT(id) DO NOTHING ".repeat(11) + "ON CONFLICT(a) DO NOTHING",
    ] {
        insert(&format!("{rows} {clauses} RETURNING *"));
        insert(&format!("OR REPLACE {rows} {clauses}"));
        insert(&format!(
            "OR IGNORE INTO t(a, b, c) SELECT a, b + 1, c FROM t WHERE true {clauses}"
        ));
    }
}

#[test]
fn names_in_quotes_are_named_without_them_or_no_names() {
    same(
        "CREATE TABLE t(\"a\", `a`); CREATE TABLE t([a b], \"A B\"); CREATE TABLE t(a, UNIQUE(\"nope\"));
         CREATE TABLE t(a, PRIMARY KEY(a, \"nope\" COLLATE nocase)); CREATE TABLE t(a, UNIQUE('nope'));
         CREATE TABLE t(a, UNIQUE([nope])); CREATE TABLE t(a, UNIQUE(\"a\", 'a')); SELECT sql FROM sqlite_schema",
    );
}
