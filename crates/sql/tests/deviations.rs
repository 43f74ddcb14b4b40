//! The rows of `docs/compatibility.md`'s first table that one statement can show, and one
//! of what is not there yet: what SQLite answers and what Fulgurite does, both asserted,
//! so that a row that is no longer true fails here.

mod support;

use support::{must, run, session, sqlite};

/// Runs `before` in both, then compares the answers to `asked`, rows parted by `|`.
fn differ(before: &str, asked: &str, theirs: &str, ours: &str) {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(before).unwrap();
    assert_eq!(
        sqlite(&connection, asked).join("|"),
        theirs,
        "SQLite: {asked}"
    );
    let session = session();
    must(&session, before);
    assert_eq!(run(&session, asked).join("|"), ours, "Fulgurite: {asked}");
}

#[test]
fn statements_read_the_state_at_their_start() {
    differ(
        "CREATE TABLE t(a); INSERT INTO t VALUES (0), (1), (2)",
        "UPDATE t SET a = (SELECT max(u.a) FROM t u WHERE u.a >= t.a) + 1 RETURNING a",
        "3|4|5",
        "3|3|3",
    );
}

#[test]
fn a_scan_has_rows_without_rowids_as_they_were_inserted() {
    differ(
        "CREATE TABLE t(k INT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES (2, 'a'), (1, 'b')",
        "SELECT * FROM t",
        "1,'b'|2,'a'",
        "2,'a'|1,'b'",
    );
}

#[test]
fn no_rowid_follows_the_largest() {
    let session = session();
    must(
        &session,
        "CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (9223372036854775807, 1)",
    );
    let full = run(&session, "INSERT INTO t VALUES (2)");
    assert_eq!(full, ["error 13: database or disk is full"]);
}

#[test]
fn a_key_keeps_that_it_is_json_and_an_extreme_does_not() {
    differ(
        "",
        "SELECT json_array(value), json_array(max(value)) FROM json_each('[[1]]') GROUP BY value",
        "'[\"[1]\"]','[\"[1]\"]'",
        "'[[1]]','[\"[1]\"]'",
    );
    differ(
        "CREATE TABLE t(j); INSERT INTO t VALUES ('[[1]]')",
        "SELECT json_array(j -> 0), json_array(json_extract(j, '$[0]')) FROM t
         GROUP BY j -> 0, json_extract(j, '$[0]')",
        "'[[1]]','[[1]]'",
        "'[[1]]','[\"[1]\"]'",
    );
    differ(
        "",
        "SELECT json_array(max(value)) FROM json_each('[[1]]')",
        "'[[1]]'",
        "'[\"[1]\"]'",
    );
}

#[test]
fn an_argument_must_be_known_before_its_function() {
    differ(
        "CREATE TABLE t(j); INSERT INTO t VALUES ('[1]')",
        "SELECT value FROM json_each(t.j) CROSS JOIN t",
        "",
        "error 1: no query solution",
    );
}

#[test]
fn midnight_at_the_end_of_a_day_is_of_the_next() {
    differ(
        "",
        "SELECT datetime('24:00', 'start of day'), datetime('2000-01-01 24:00', 'start of day')",
        "'2000-01-01 00:00:00','2000-01-02 00:00:00'",
        "'2000-01-02 00:00:00','2000-01-02 00:00:00'",
    );
}

#[test]
fn a_date_or_time_is_the_instant_that_it_names() {
    differ(
        "",
        "SELECT datetime('20:43-05:00', 'start of day'), date('2024-06-31', 'auto')",
        "'2000-01-01 00:00:00','2024-06-31'",
        "'2000-01-02 00:00:00','2024-07-01'",
    );
    differ(
        "",
        "SELECT typeof(datetime(1700000000, 'localtime'))",
        "'text'",
        "'null'",
    );
}

#[test]
fn sums_overflow_where_their_total_does() {
    differ(
        "",
        "SELECT sum(column1) FROM (VALUES (9223372036854775807), (1), (-1))",
        "error 1: integer overflow",
        "9223372036854775807",
    );
}

#[test]
fn conditions_are_evaluated_from_left_to_right() {
    let overflow = "error 1: integer overflow";
    let table = "CREATE TABLE t(a); INSERT INTO t VALUES (1)";
    let right = "SELECT a OR abs(-9223372036854775807 - 1) FROM t";
    differ(table, right, overflow, "1");
    let left = "SELECT abs(-9223372036854775807 - 1) AND 0";
    differ(table, left, "0", overflow);
}

#[test]
fn a_zero_byte_ends_no_comparison() {
    differ(
        "",
        "SELECT CAST(x'610062' AS TEXT) = CAST(x'610063' AS TEXT) COLLATE NOCASE",
        "1",
        "0",
    );
}

#[test]
fn integers_and_reals_compare_exactly() {
    differ(
        "CREATE TABLE t(r REAL); INSERT INTO t VALUES (9007199254740992)",
        "SELECT +9007199254740993 IN (SELECT r FROM t)",
        "1",
        "0",
    );
}

#[test]
fn a_term_that_is_false_is_no_position() {
    let refused = "error 1: 1st ORDER BY term out of range - should be between 1 and 1";
    differ(
        "CREATE TABLE t(x); INSERT INTO t VALUES (1)",
        "SELECT x FROM t ORDER BY 0 AND x",
        refused,
        "1",
    );
}

#[test]
fn an_empty_list_is_false_behind_is() {
    let asked = "SELECT '' IS (1 IN ()), '' IS (abs(1) IN ())";
    differ("", asked, "1,0", "1,1");
}

#[test]
fn aggregates_that_nothing_asks_for_are_checked() {
    differ(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1)",
        "SELECT a FROM t WHERE EXISTS (SELECT count(t.a)) AND (SELECT t.a ORDER BY max(t.a))",
        "1",
        "error 1: misuse of aggregate: count()",
    );
}

#[test]
fn parentheses_name_no_columns() {
    let before = "CREATE TABLE t(id); INSERT INTO t VALUES (1)";
    let asked = "SELECT * FROM t JOIN (t AS u JOIN t AS v)";
    differ(before, asked, "1,1,1", "1,1,1");
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(before).unwrap();
    let theirs = connection.prepare(asked).unwrap();
    assert_eq!(
        theirs.column_names().collect::<Vec<_>>(),
        ["id", "id", "id:1"]
    );
    let session = session();
    must(&session, before);
    let ours = support::prepare(&session, asked);
    let names: Vec<_> = (0..3).filter_map(|i| ours.column_name(i)).collect();
    assert_eq!(names, ["id", "id", "id"]);
}

#[test]
fn parentheses_keep_columns_in_their_places() {
    let before = "CREATE TABLE t(id); CREATE TABLE u(a, x); CREATE TABLE v(x, b);
        INSERT INTO t VALUES (1); INSERT INTO u VALUES (2, 3); INSERT INTO v VALUES (3, 4)";
    let asked = "SELECT * FROM t JOIN (u JOIN v USING (x))";
    differ(before, asked, "1,3,2,4", "1,2,3,4");
}

#[test]
fn shared_columns_in_parentheses_have_no_type() {
    let before = "CREATE TABLE t(id INTEGER); CREATE TABLE u(x REAL); CREATE TABLE v(x);
        INSERT INTO t VALUES (1); INSERT INTO v VALUES (1)";
    let asked = "SELECT id, x FROM t LEFT JOIN (u FULL JOIN v USING (x)) ON id = x";
    differ(before, asked, "1,1.0", "1,1");
}

#[test]
fn using_means_what_the_name_means_in_parentheses() {
    let before = "CREATE TABLE t(x); CREATE TABLE u(x); CREATE TABLE v(y); CREATE TABLE w(x);
        INSERT INTO t VALUES (1); INSERT INTO w VALUES (1)";
    let asked = "SELECT t.x, w.x FROM t \
        FULL JOIN (u RIGHT JOIN v ON 1 RIGHT JOIN w USING (x)) USING (x)";
    differ(before, asked, "1,NULL|NULL,1", "1,1");
}

#[test]
fn compounds_change_no_values() {
    differ(
        "CREATE TABLE t(r REAL); INSERT INTO t VALUES (1)",
        "SELECT x, x = '5' FROM (SELECT r AS x FROM t UNION ALL SELECT 5)",
        "1.0,0|5.0,1",
        "1.0,0|5,1",
    );
}

#[test]
fn excluded_is_as_it_would_have_been_stored() {
    differ(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n); INSERT INTO t VALUES (1, 'x', 0)",
        "INSERT INTO t VALUES (1, 5, 0) ON CONFLICT (id) DO UPDATE SET n = typeof(excluded.a) RETURNING n",
        "'integer'",
        "'text'",
    );
}

#[test]
fn constants_of_conflict_targets_are_what_they_are_worth() {
    let none = "error 1: ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint";
    let insert =
        |target: &str| format!("INSERT INTO t VALUES (1, 1) ON CONFLICT {target} DO NOTHING");
    let index = |parts: &str| format!("CREATE TABLE t(a, b); CREATE UNIQUE INDEX i ON t{parts}");
    differ(
        &index("(a) WHERE b IS TRUE"),
        &insert("(a) WHERE b IS true"),
        none,
        "",
    );
    differ(&index("(a + 1.0)"), &insert("(a + 1.00)"), none, "");
    differ(&index("(a || x'ab')"), &insert("(a || x'AB')"), none, "");
    differ(&index("(a IN (1))"), &insert("(a = +1)"), "", none);
    differ(
        &index("(a) WHERE b AND 0"),
        &insert("(a) WHERE 0"),
        "",
        none,
    );
}

#[test]
fn a_real_column_stays_one_in_returning() {
    differ(
        "CREATE TABLE t(r REAL); INSERT INTO t VALUES (1)",
        "UPDATE t SET r = 2 RETURNING r, ifnull(r, 0), typeof(ifnull(r, 0))",
        "2.0,2,'real'",
        "2.0,2.0,'real'",
    );
}

#[test]
fn sequences_show_the_largest_rowid() {
    differ(
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (1); UPDATE t SET id = 9",
        "SELECT seq FROM sqlite_sequence",
        "1",
        "9",
    );
}

#[test]
fn misused_row_values_are_refused_beside_constants() {
    let asked = "SELECT 0 AND (1, 2), (1, 2) OR 1";
    differ("", asked, "0,1", "error 1: row value misused");
}

#[test]
fn a_list_of_rows_is_no_subquery() {
    let asked =
        "CREATE TABLE t(a, b, CHECK ((a, b) IN ((1, 2), (3, 4)))); INSERT INTO t VALUES (3, 4)";
    let refused = "error 1: subqueries prohibited in CHECK constraints";
    differ("", asked, refused, "");
}

#[test]
fn an_empty_text_leaves_a_frame_alone() {
    differ(
        "CREATE TABLE t(s); INSERT INTO t VALUES ('a'), (''), ('b'), ('c')",
        "SELECT group_concat(s, '-') OVER (ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM t",
        "'a-'|'b'|'c'|''",
        "'a-'|'-b'|'b-c'|'c'",
    );
}

#[test]
fn a_window_that_is_not_there_cannot_be_added_to() {
    let sql = "SELECT count(*) OVER v WINDOW v AS (w), w AS (PARTITION BY 1)";
    differ("", sql, "1", "error 1: no such window: w");
}

#[test]
fn a_recursive_row_without_a_partner_is_null() {
    differ(
        "CREATE TABLE t(i); INSERT INTO t VALUES (1), (2)",
        "WITH c(x, i) AS (SELECT 1, 0
             UNION ALL SELECT c.x + 1, t.i FROM t LEFT JOIN c ON t.i = c.x WHERE t.i < 3 LIMIT 3)
         SELECT * FROM c",
        "1,0|2,1|2,2",
        "1,0|2,1|NULL,2",
    );
}

#[test]
fn duplicates_among_many_rows_may_be_found_at_the_end() {
    let tables = "CREATE TABLE d(x); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
        CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE)";
    let insert = "INSERT INTO t SELECT n, CASE n WHEN 3500 THEN 7919 ELSE n * 7919 % 100003 END
        FROM (SELECT a.x + 10 * b.x + 100 * c.x + 1000 * e.x AS n
              FROM d AS e, d AS c, d AS b, d AS a WHERE e.x < 5)";
    let duplicate = ["error 2067: UNIQUE constraint failed: t.k"];
    let after = "SELECT last_insert_rowid(), count(*) FROM t";
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(tables).unwrap();
    assert_eq!(sqlite(&connection, insert), duplicate);
    assert_eq!(sqlite(&connection, after), ["3499,0"]);
    let session = session();
    must(&session, tables);
    assert_eq!(run(&session, insert), duplicate);
    assert_eq!(run(&session, after), ["4999,0"]);
}

/// `tests/alter.rs` has those that it does not find.
#[test]
fn alter_table_understands_all_texts() {
    differ(
        "CREATE TABLE t(a); CREATE VIEW v AS SELECT count(count(a)) FROM t",
        "ALTER TABLE t RENAME TO u",
        "",
        "error 1: error in view v: misuse of aggregate function count()",
    );
}

#[test]
fn a_foreign_key_is_dropped_with_all_of_its_words() {
    let altered = "SELECT sql FROM sqlite_schema";
    let key = "CREATE TABLE t(a, CONSTRAINT k FOREIGN KEY (a) REFERENCES t(a) ON DELETE SET";
    differ(
        &format!("{key} DEFAULT)"),
        "ALTER TABLE t DROP CONSTRAINT k",
        "error 1: error in table t after drop constraint: near \"DEFAULT\": syntax error",
        "",
    );
    differ(
        "CREATE TABLE t(a CONSTRAINT k REFERENCES t NOT DEFERRABLE);
         ALTER TABLE t DROP CONSTRAINT k",
        altered,
        "'CREATE TABLE t(a NOT DEFERRABLE)'",
        "'CREATE TABLE t(a)'",
    );
    differ(
        "CREATE TABLE t(a REFERENCES t NOT DEFERRABLE NOT NULL);
         ALTER TABLE t ALTER a DROP NOT NULL",
        altered,
        "'CREATE TABLE t(a REFERENCES t NOT NULL)'",
        "'CREATE TABLE t(a REFERENCES t NOT DEFERRABLE)'",
    );
}

#[test]
fn foreign_keys_leave_no_orphans() {
    differ(
        "PRAGMA foreign_keys = ON; CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE, y REFERENCES t(k) ON UPDATE SET NULL)",
        "INSERT INTO t VALUES (2, 1, 4) ON CONFLICT (id) DO UPDATE SET k = NULL",
        "",
        "error 787: FOREIGN KEY constraint failed",
    );
}

/// The INSERT that is refused counts a row for its deferred key first.
#[test]
fn a_refused_insert_takes_back_what_it_counted() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let session = session();
    let tables = "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY);
         CREATE TABLE c(x REFERENCES p, y REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
    connection.execute_batch(tables).unwrap();
    must(&session, tables);
    for (sql, theirs, ours) in [
        ("BEGIN", "", ""),
        (
            "INSERT INTO c VALUES (1, 1)",
            "error 787: FOREIGN KEY constraint failed",
            "error 787: FOREIGN KEY constraint failed",
        ),
        ("COMMIT", "error 787: FOREIGN KEY constraint failed", ""),
    ] {
        assert_eq!(sqlite(&connection, sql).join("|"), theirs, "SQLite: {sql}");
        assert_eq!(run(&session, sql).join("|"), ours, "Fulgurite: {sql}");
    }
}

#[test]
fn a_row_keeps_the_key_by_which_it_is_its_own_parent() {
    differ(
        "PRAGMA foreign_keys = ON; CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE, up REFERENCES t(k));
         INSERT INTO t VALUES (1, 1, 1), (3, 3, 1)",
        "UPDATE t SET k = 1 WHERE id = 1 RETURNING id",
        "error 787: FOREIGN KEY constraint failed",
        "1",
    );
}

#[test]
fn a_row_that_is_half_replaced_is_undone_with_its_statement() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let session = session();
    let before = "PRAGMA recursive_triggers = ON; CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE);
         CREATE TRIGGER keep BEFORE DELETE ON t WHEN old.k = 1 BEGIN SELECT RAISE(FAIL, 'kept'); END;
         INSERT INTO t VALUES (1, 1), (4, 6)";
    connection.execute_batch(before).unwrap();
    must(&session, before);
    let kept = "error 1811: kept";
    for (sql, theirs, ours) in [
        ("REPLACE INTO t VALUES (4, 1)", kept, kept),
        ("SELECT * FROM t", "1,1", "1,1|4,6"),
    ] {
        assert_eq!(sqlite(&connection, sql).join("|"), theirs, "SQLite: {sql}");
        assert_eq!(run(&session, sql).join("|"), ours, "Fulgurite: {sql}");
    }
}

#[test]
fn rows_are_not_handed_out_before_foreign_keys_are_checked() {
    differ(
        "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(x REFERENCES p DEFERRABLE INITIALLY DEFERRED); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1)",
        "DELETE FROM p RETURNING id",
        "1|error 787: FOREIGN KEY constraint failed",
        "error 787: FOREIGN KEY constraint failed",
    );
}

#[test]
fn a_value_of_another_type_undoes_the_statement() {
    let rows = "CREATE TABLE t(a INT) STRICT; BEGIN; INSERT INTO t VALUES (7)";
    let wrong = "INSERT OR FAIL INTO t VALUES (1), ('x')";
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(rows).unwrap();
    connection.execute_batch(wrong).unwrap_err();
    assert_eq!(sqlite(&connection, "SELECT a FROM t"), ["7", "1"]);
    let session = session();
    must(&session, rows);
    run(&session, wrong);
    assert_eq!(run(&session, "SELECT a FROM t"), ["7"]);
}

#[test]
fn types_are_looked_at_before_the_rowid() {
    differ(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT) STRICT; INSERT INTO t VALUES (1, 1)",
        "INSERT OR IGNORE INTO t VALUES (1, 'x')",
        "",
        "error 3091: cannot store TEXT value in INT column t.a",
    );
}

#[test]
fn triggers_show_their_statement_the_state_at_its_start() {
    differ(
        "CREATE TABLE t(a); CREATE TABLE log(a);
         CREATE TRIGGER x BEFORE INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END;",
        "INSERT INTO t VALUES (1) RETURNING (SELECT count(*) FROM log)",
        "1",
        "0",
    );
}

#[test]
fn a_view_that_is_changed_may_have_an_alias() {
    differ(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); CREATE VIEW v AS SELECT a FROM t;
         CREATE TRIGGER x INSTEAD OF DELETE ON v BEGIN DELETE FROM t WHERE a = old.a; END;",
        "DELETE FROM v AS k WHERE k.a = 1 RETURNING a",
        "error 1: no such column: k.a",
        "1",
    );
}

#[test]
fn excluded_is_no_name_of_the_table() {
    let before = "CREATE TABLE t(a UNIQUE, b); CREATE TABLE u(a);
         CREATE TRIGGER x AFTER INSERT ON u BEGIN
            INSERT INTO t VALUES (new.a, 1) ON CONFLICT (a) DO UPDATE SET b = excluded.b;
         END;
         ALTER TABLE t RENAME TO k;";
    let asked = "SELECT instr(sql, 'b = excluded.b') > 0 FROM sqlite_schema WHERE name = 'x'";
    differ(before, asked, "0", "1");
}

#[test]
fn raise_is_for_triggers() {
    differ(
        "",
        "CREATE TABLE t(a CHECK (RAISE(ABORT, 'no')))",
        "",
        "error 1: RAISE() may only be used within a trigger-program",
    );
}

/// SQLite takes it for NORMAL.
#[test]
fn a_level_that_is_none_gives_up_no_durability() {
    for word in ["FUL", "-1", "''"] {
        let set = format!("PRAGMA synchronous = FULL; PRAGMA synchronous = {word}");
        differ(&set, "PRAGMA synchronous", "1", "2");
    }
}

#[test]
fn like_in_an_index_is_that_of_every_connection() {
    differ(
        "CREATE TABLE t(a); PRAGMA case_sensitive_like = ON",
        "CREATE INDEX i ON t(a LIKE 'x')",
        "error 1: non-deterministic functions prohibited in index expressions",
        "",
    );
}

#[test]
fn a_check_takes_its_table_in_parentheses() {
    differ(
        "CREATE TABLE t(a)",
        "SELECT * FROM pragma_integrity_check WHERE arg = 't'",
        "'ok'",
        "error 1: no such table: t",
    );
}

#[test]
fn analyze_makes_no_tables() {
    differ(
        "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1); ANALYZE",
        "SELECT stat FROM sqlite_stat1",
        "'1 1'",
        "error 1: no such table: sqlite_stat1",
    );
}

#[test]
fn what_hides_a_table_is_renamed_with_its_views() {
    differ(
        "CREATE TABLE t(a); CREATE TEMP TABLE t(a); CREATE TEMP VIEW v AS SELECT a FROM t",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "error 1: error in view v: no such column: c",
        "",
    );
}

#[test]
fn a_database_that_begin_immediate_has_no_use_for_is_detached() {
    differ(
        "ATTACH ':memory:' AS b; BEGIN IMMEDIATE; CREATE TABLE main.t(a)",
        "DETACH b",
        "error 1: database b is locked",
        "",
    );
}
