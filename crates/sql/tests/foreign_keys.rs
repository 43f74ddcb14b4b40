//! Foreign keys, with `PRAGMA foreign_keys = ON`.

mod support;

fn same(sql: &str) {
    support::same(&format!("PRAGMA foreign_keys = ON; {sql}"));
}

/// With a parent that has rows 1 to 3, and a child whose column `p` has this constraint.
fn family(constraint: &str, sql: &str) {
    same(&format!(
        "CREATE TABLE p(id INTEGER PRIMARY KEY, n INT); INSERT INTO p VALUES (1, 10), (2, 20), (3, 30);
         CREATE TABLE c(id INTEGER PRIMARY KEY, p INT {constraint}, n INT DEFAULT 5);
         {sql}; SELECT * FROM p; SELECT * FROM c; PRAGMA foreign_key_check"
    ));
    same(&format!(
        "CREATE TABLE p(id INTEGER PRIMARY KEY, n INT); INSERT INTO p VALUES (1, 10), (2, 20), (3, 30);
         CREATE TABLE c(id INTEGER PRIMARY KEY, p INT {constraint}, n INT DEFAULT 5); CREATE INDEX i ON c(p, n);
         {sql}; SELECT * FROM p; SELECT * FROM c; PRAGMA foreign_key_check"
    ));
}

#[test]
fn the_setting() {
    let session = support::session();
    assert_eq!(support::run(&session, "PRAGMA foreign_keys"), ["0"]);
    same(
        "PRAGMA foreign_keys; BEGIN; PRAGMA foreign_keys = OFF; PRAGMA foreign_keys; COMMIT;
         PRAGMA foreign_keys = 'no'; PRAGMA foreign_keys; PRAGMA foreign_keys = true; PRAGMA foreign_keys;
         PRAGMA foreign_keys = 256; PRAGMA foreign_keys; PRAGMA foreign_keys = 5; PRAGMA foreign_keys;
         PRAGMA foreign_keys = garbage; PRAGMA foreign_keys; PRAGMA foreign_keys = 'Yes'; PRAGMA foreign_keys;
         PRAGMA foreign_keys = -1; PRAGMA foreign_keys; PRAGMA foreign_keys = 2.7; PRAGMA foreign_keys;
         PRAGMA foreign_keys = FULL; PRAGMA foreign_keys; PRAGMA foreign_keys(on); PRAGMA foreign_keys",
    );
    same(
        "PRAGMA defer_foreign_keys = 1; PRAGMA defer_foreign_keys; SELECT 1; PRAGMA defer_foreign_keys;
         PRAGMA defer_foreign_keys = 1; BEGIN; PRAGMA defer_foreign_keys; SELECT 1; COMMIT; PRAGMA defer_foreign_keys;
         PRAGMA defer_foreign_keys = 1; CREATE TABLE t(a); PRAGMA defer_foreign_keys;
         PRAGMA defer_foreign_keys = 1; INSERT INTO t VALUES (1); PRAGMA defer_foreign_keys;
         BEGIN; PRAGMA defer_foreign_keys = 1; PRAGMA defer_foreign_keys; ROLLBACK; PRAGMA defer_foreign_keys",
    );
}

/// A statement that was prepared before is compiled anew.
#[test]
fn prepared_statements_follow_the_setting() {
    let session = support::session();
    support::must(
        &session,
        "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p)",
    );
    let mut insert = support::prepare(&session, "INSERT INTO c VALUES (1)");
    assert!(support::drain(&mut insert).is_empty());
    support::must(&session, "PRAGMA foreign_keys = ON");
    let refused = ["error 787: FOREIGN KEY constraint failed"];
    assert_eq!(support::drain(&mut insert), refused);
    support::must(&session, "BEGIN");
    assert_eq!(support::drain(&mut insert), refused);
    support::must(&session, "COMMIT; PRAGMA foreign_keys = OFF");
    assert!(support::drain(&mut insert).is_empty());
    assert_eq!(support::run(&session, "SELECT count(*) FROM c"), ["2"]);
}

#[test]
fn children_need_their_parents() {
    let sql = "INSERT INTO c VALUES (1, 1, 0); INSERT INTO c VALUES (2, 9, 0); INSERT INTO c VALUES (3, NULL, 0);
         INSERT INTO c(p) VALUES (1), (2), (9); INSERT INTO c(p) VALUES (1), (2), (3); INSERT INTO c(p) SELECT n FROM p;
         INSERT INTO c(p) SELECT id FROM p; UPDATE c SET p = 9 WHERE id = 1; UPDATE c SET p = 2; UPDATE c SET p = id;
         UPDATE c SET p = NULL; UPDATE c SET n = n + 1; UPDATE OR IGNORE c SET p = 9; INSERT OR IGNORE INTO c VALUES (1, 9, 9);
         INSERT OR IGNORE INTO c VALUES (99, 9, 9); INSERT OR REPLACE INTO c VALUES (1, 9, 9); INSERT OR REPLACE INTO c VALUES (1, 3, 9);
         INSERT INTO c VALUES (1, 9, 9) ON CONFLICT DO UPDATE SET p = 9; INSERT INTO c VALUES (1, 9, 9) ON CONFLICT DO UPDATE SET p = 2;
         DELETE FROM p WHERE id = 2; DELETE FROM p WHERE id = 1; UPDATE p SET id = 7 WHERE id = 2; UPDATE p SET n = 5; UPDATE p SET id = id;
         UPDATE p SET id = id + 1; DELETE FROM p; DELETE FROM c; DELETE FROM p RETURNING id";
    for kind in [
        "REFERENCES p",
        "REFERENCES p(id)",
        "REFERENCES P(ID) DEFERRABLE",
        "REFERENCES p NOT DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES p DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES p INITIALLY DEFERRED",
        "REFERENCES p DEFERRABLE INITIALLY DEFERRED NOT DEFERRABLE",
        "NOT NULL CONSTRAINT x REFERENCES p",
    ] {
        family(kind, sql);
    }
}

#[test]
fn several_columns_and_unique_keys() {
    let sql = "INSERT INTO p VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3), (NULL, 'n', 4);
         INSERT INTO c VALUES (1, 'a', 1); INSERT INTO c VALUES (1, 'c', 1); INSERT INTO c VALUES (NULL, 'c', 2); INSERT INTO c VALUES (1, NULL, 2);
         INSERT INTO c VALUES ('1', 'b', 3), (2.0, 'a', 3); INSERT INTO c VALUES (1, 'A', 1); INSERT INTO c VALUES (NULL, 'n', 3); SELECT *, typeof(x) FROM c;
         DELETE FROM p WHERE z = 1; DELETE FROM p WHERE z = 4; UPDATE p SET x = 5 WHERE z = 2; UPDATE p SET z = 9; UPDATE p SET y = 'A' WHERE z = 9;
         UPDATE p SET y = upper(y); UPDATE c SET x = 9, y = NULL; UPDATE c SET x = 2; DELETE FROM p WHERE x = 1; SELECT * FROM p; SELECT * FROM c; PRAGMA foreign_key_check; PRAGMA foreign_key_list(c)";
    for (parent, child) in [
        (
            "x INT, y TEXT, z, PRIMARY KEY (x, y)",
            "x, y, z, FOREIGN KEY (x, y) REFERENCES p",
        ),
        (
            "x INT, y TEXT, z, PRIMARY KEY (x, y)",
            "x, y, z, FOREIGN KEY (y, x) REFERENCES p(y, x)",
        ),
        (
            "x INT, y TEXT, z, UNIQUE (y, x)",
            "x, y, z, FOREIGN KEY (x, y) REFERENCES p(x, y)",
        ),
        (
            "x INT, y TEXT COLLATE NOCASE, z, UNIQUE (y, x)",
            "x, y, z, FOREIGN KEY (x, y) REFERENCES p(x, y)",
        ),
        (
            "x INT, y TEXT COLLATE NOCASE, z, UNIQUE (y, x)",
            "x INT, y TEXT COLLATE NOCASE, z, FOREIGN KEY (x, y) REFERENCES p(x, y) ON UPDATE CASCADE ON DELETE SET NULL, UNIQUE (y, x, z)",
        ),
        (
            "x INT, y TEXT COLLATE NOCASE, z, UNIQUE (y, x)",
            "x TEXT, y BLOB, z, FOREIGN KEY (x, y) REFERENCES p(x, y) ON UPDATE SET NULL ON DELETE CASCADE, UNIQUE (x, z)",
        ),
        (
            "x INT, y TEXT, z, UNIQUE (x, y), UNIQUE (x, y COLLATE NOCASE)",
            "x, y, z, FOREIGN KEY (x, y) REFERENCES p(x, y) DEFERRABLE INITIALLY DEFERRED",
        ),
        (
            "x INT, y TEXT, z, UNIQUE (x DESC, y DESC)",
            "x INT, y TEXT, z, FOREIGN KEY (x, y) REFERENCES p(x, y) ON DELETE CASCADE, UNIQUE (x DESC, y, z)",
        ),
    ] {
        same(&format!(
            "CREATE TABLE p({parent}); CREATE TABLE c({child}); {sql}"
        ));
    }
}

/// The child's values are found as the parent's column stores them, the parent's by a
/// comparison of both.
#[test]
fn affinities_and_collations() {
    let types = [
        "INTEGER",
        "INT",
        "TEXT",
        "BLOB",
        "REAL",
        "NUMERIC",
        "TEXT COLLATE NOCASE",
        "TEXT COLLATE RTRIM",
    ];
    for parent in types {
        for child in types {
            for index in [
                "",
                "CREATE INDEX i ON c(a);",
                "CREATE INDEX i ON c(a COLLATE NOCASE);",
                "CREATE INDEX i ON c(a) WHERE a > 0;",
            ] {
                for action in [
                    "",
                    "ON DELETE CASCADE ON UPDATE CASCADE",
                    "ON DELETE SET NULL ON UPDATE SET DEFAULT",
                ] {
                    same(&format!(
                        "CREATE TABLE p(x {parent} PRIMARY KEY); CREATE TABLE c(a {child} REFERENCES p {action}); {index}
                         INSERT OR IGNORE INTO p VALUES (1), ('2'), ('03'), (4.0), (x'35'), ('a'), ('B '), (2.5), ('01'), (9007199254740993);
                         INSERT INTO c VALUES (1); INSERT INTO c VALUES ('1'); INSERT INTO c VALUES (1.0); INSERT INTO c VALUES ('01'); INSERT INTO c VALUES (2); INSERT INTO c VALUES ('03');
                         INSERT INTO c VALUES (3); INSERT INTO c VALUES (4); INSERT INTO c VALUES ('4.0'); INSERT INTO c VALUES (x'35'); INSERT INTO c VALUES ('A'); INSERT INTO c VALUES ('a ');
                         INSERT INTO c VALUES ('b'); INSERT INTO c VALUES ('B'); INSERT INTO c VALUES ('2.50'); INSERT INTO c VALUES (9007199254740993); INSERT INTO c VALUES (9007199254740992.0);
                         SELECT rowid, quote(a), typeof(a) FROM c ORDER BY rowid; UPDATE p SET x = 'A' WHERE x = 'a'; UPDATE p SET x = 77 WHERE x = 1; UPDATE p SET x = '78' WHERE x = '01';
                         DELETE FROM p WHERE x = 4; DELETE FROM p WHERE x = '03'; DELETE FROM p WHERE x = 'B ';
                         DELETE FROM p WHERE x = 2.5; DELETE FROM p WHERE x = x'35'; DELETE FROM p WHERE x > 8; SELECT quote(x) FROM p ORDER BY rowid; SELECT rowid, quote(a), typeof(a) FROM c ORDER BY rowid"
                    ));
                }
            }
        }
    }
}

#[test]
fn actions() {
    let sql = "INSERT INTO c VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, NULL, 4);
         DELETE FROM p WHERE id = 1; SELECT total_changes(); UPDATE p SET id = 7 WHERE id = 2; SELECT total_changes(); UPDATE p SET id = 3 WHERE n = 30; SELECT * FROM c;
         INSERT OR REPLACE INTO p VALUES (7, 70); SELECT * FROM c; INSERT INTO p VALUES (5, 50); INSERT OR REPLACE INTO c VALUES (9, 5, 0);
         UPDATE OR REPLACE p SET id = 5 WHERE id = 3; SELECT * FROM c; REPLACE INTO p(id) VALUES (5) RETURNING *; UPDATE p SET id = id + 1; SELECT total_changes(); DELETE FROM p; SELECT total_changes()";
    let kinds = [
        "",
        "RESTRICT",
        "SET NULL",
        "SET DEFAULT",
        "CASCADE",
        "NO ACTION",
    ];
    for delete in kinds {
        for update in kinds {
            for more in [
                "",
                "NOT NULL",
                "DEFAULT 3",
                "DEFAULT 3 CHECK (p <> 3)",
                "UNIQUE",
                "DEFERRABLE INITIALLY DEFERRED",
                "NOT NULL ON CONFLICT IGNORE DEFAULT 2",
            ] {
                let on = |event: &str, action: &str| match action {
                    "" => String::new(),
                    action => format!("ON {event} {action}"),
                };
                family(
                    &format!(
                        "REFERENCES p {} {} {more}",
                        on("DELETE", delete),
                        on("UPDATE", update)
                    ),
                    sql,
                );
            }
        }
    }
}

#[test]
fn tables_that_are_their_own_parents() {
    let sql = "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2), (4, 9); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2); INSERT INTO t VALUES (5, 6), (6, 5); INSERT INTO t VALUES (7, 8);
         INSERT INTO t VALUES (9, 9); INSERT INTO t VALUES (10, NULL); UPDATE t SET id = 19 WHERE id = 9; UPDATE t SET id = 29, up = 29 WHERE id IN (9, 19); DELETE FROM t WHERE id > 8;
         SELECT * FROM t; UPDATE t SET id = id + 100; SELECT * FROM t; UPDATE t SET up = id; SELECT * FROM t; DELETE FROM t WHERE id IN (1, 101); SELECT * FROM t; DELETE FROM t; SELECT * FROM t; PRAGMA foreign_key_check";
    for action in [
        "",
        "ON DELETE CASCADE ON UPDATE CASCADE",
        "ON DELETE SET NULL ON UPDATE SET NULL",
        "ON DELETE RESTRICT ON UPDATE RESTRICT",
        "DEFERRABLE INITIALLY DEFERRED",
        "ON DELETE SET DEFAULT ON UPDATE SET DEFAULT",
    ] {
        for key in ["id INTEGER PRIMARY KEY", "id INT PRIMARY KEY", "id UNIQUE"] {
            for index in [
                "",
                "; CREATE INDEX i ON t(up)",
                "; CREATE UNIQUE INDEX i ON t(up, id)",
            ] {
                same(&format!(
                    "CREATE TABLE t({key}, up INT DEFAULT 1 REFERENCES t(id) {action}){index}; {sql}"
                ));
            }
        }
    }
    same(
        "CREATE TABLE t(id TEXT COLLATE NOCASE PRIMARY KEY, up TEXT REFERENCES t); INSERT INTO t VALUES ('a', 'A'); INSERT INTO t VALUES ('a', 'a'); INSERT INTO t VALUES ('b', 'A');
         UPDATE t SET up = 'A' WHERE id = 'a'; UPDATE t SET id = 'A'; SELECT * FROM t; DELETE FROM t WHERE id = 'a'; DELETE FROM t",
    );
    // A row that is its own parent by a value of another type: where the key is the rowid, what
    // names that will do. It was refused.
    for key in [
        "id INTEGER PRIMARY KEY",
        "id INT PRIMARY KEY",
        "id TEXT UNIQUE",
    ] {
        for kind in ["TEXT", "TEXT COLLATE NOCASE", "BLOB", "NUMERIC", "REAL"] {
            for action in [
                "",
                "ON DELETE CASCADE ON UPDATE CASCADE",
                "ON DELETE SET NULL ON UPDATE SET NULL",
            ] {
                same(&format!(
                    "CREATE TABLE t({key}, up {kind} REFERENCES t(id) {action}); INSERT INTO t VALUES (5, 5); INSERT INTO t VALUES (6, '6'); INSERT INTO t VALUES (7, '007'), (8, '8.0');
                     INSERT INTO t VALUES (9, '9a'); INSERT INTO t VALUES (10, x'3130'); INSERT INTO t VALUES (11, 11.5); SELECT * FROM t; INSERT INTO t VALUES (12, NULL); UPDATE t SET up = '12' WHERE id = 12;
                     UPDATE t SET id = 13, up = ' 13 ' WHERE id = 12; UPDATE t SET id = 14 WHERE id = 6; SELECT * FROM t; DELETE FROM t WHERE id IN (5, 14); SELECT * FROM t; DELETE FROM t; SELECT * FROM t;
                     PRAGMA foreign_key_check"
                ));
            }
        }
    }
    // Circles of two tables.
    for action in [
        "",
        "ON DELETE CASCADE ON UPDATE CASCADE",
        "ON DELETE SET NULL ON UPDATE CASCADE",
    ] {
        same(&format!(
            "CREATE TABLE a(id INTEGER PRIMARY KEY, b REFERENCES b {action} DEFERRABLE INITIALLY DEFERRED); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a {action});
             INSERT INTO a VALUES (1, 1); BEGIN; INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b VALUES (1, 2), (2, 1); COMMIT; UPDATE a SET id = id + 10; SELECT * FROM a; SELECT * FROM b;
             UPDATE b SET id = id + 10; SELECT * FROM a; DELETE FROM a WHERE id = 11; SELECT * FROM a; SELECT * FROM b; DELETE FROM b; SELECT * FROM a; SELECT * FROM b"
        ));
    }
}

#[test]
fn chains_of_actions() {
    let chain = |rows: u32| {
        let rows: Vec<String> = (1..=rows)
            .map(|i| format!("({i}, nullif({i} - 1, 0))"))
            .collect();
        format!("INSERT INTO t VALUES {};", rows.join(", "))
    };
    for index in ["", "CREATE INDEX i ON t(up);"] {
        same(&format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, up INT REFERENCES t ON DELETE CASCADE); {index} {} DELETE FROM t WHERE id = 1; SELECT count(*), total_changes() FROM t;
             {} DELETE FROM t WHERE id = 1; SELECT count(*) FROM t; DELETE FROM t WHERE id > 500; DELETE FROM t; SELECT count(*), total_changes() FROM t",
            chain(1000), chain(1001)
        ));
    }
    same(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, x UNIQUE); CREATE TABLE b(id INTEGER PRIMARY KEY REFERENCES a(x) ON DELETE CASCADE ON UPDATE CASCADE); CREATE TABLE c(b REFERENCES b ON UPDATE CASCADE ON DELETE SET NULL);
         CREATE TABLE d(b REFERENCES b ON UPDATE SET NULL ON DELETE CASCADE, e TEXT); INSERT INTO a VALUES (1, 10), (2, 20); INSERT INTO b VALUES (10), (20); INSERT INTO c VALUES (10), (10), (20); INSERT INTO d VALUES (10, 'x'), (20, 'y');
         UPDATE a SET x = 11 WHERE id = 1; SELECT * FROM b; SELECT * FROM c; SELECT * FROM d; UPDATE a SET x = NULL WHERE id = 2; UPDATE a SET x = 'text' WHERE id = 2; DELETE FROM a; SELECT * FROM b; SELECT * FROM c; SELECT * FROM d; SELECT total_changes()",
    );
    // A parent with several children, of which one refuses.
    for (first, second) in [
        ("CASCADE", "RESTRICT"),
        ("RESTRICT", "CASCADE"),
        ("SET NULL", "NO ACTION"),
        ("CASCADE", "SET DEFAULT"),
    ] {
        same(&format!(
            "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE {first}, q REFERENCES p ON DELETE {second}); CREATE TABLE d(c REFERENCES c ON DELETE {second}, p REFERENCES p ON DELETE {first});
             INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1); INSERT INTO d VALUES (1, 1), (2, 3), (3, 2);
             DELETE FROM p WHERE id = 1; SELECT * FROM c; SELECT * FROM d; DELETE FROM p WHERE id = 3; DELETE FROM d; DELETE FROM p WHERE id = 2; SELECT * FROM c; SELECT * FROM d; SELECT * FROM p"
        ));
    }
    // Columns that two keys share.
    same(
        "CREATE TABLE p(a, b, PRIMARY KEY (a, b)); CREATE TABLE q(a PRIMARY KEY); CREATE TABLE c(a REFERENCES q ON UPDATE CASCADE ON DELETE SET NULL, b, FOREIGN KEY (a, b) REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE);
         INSERT INTO p VALUES (1, 1), (2, 1); INSERT INTO q VALUES (1), (2); INSERT INTO c VALUES (1, 1), (2, 1); UPDATE q SET a = 5 WHERE a = 1; UPDATE p SET a = 2 WHERE a = 1; UPDATE p SET a = 5 WHERE a = 1; UPDATE p SET b = 7; SELECT * FROM c; DELETE FROM q; SELECT * FROM c; DELETE FROM p; SELECT * FROM c",
    );
}

#[test]
fn deferred_keys() {
    let sql = "BEGIN; INSERT INTO c VALUES (1, 9, 0); COMMIT; INSERT INTO p VALUES (9, 9); COMMIT;
         BEGIN; DELETE FROM p; COMMIT; ROLLBACK; BEGIN; INSERT INTO c VALUES (2, 8, 0); SAVEPOINT s; INSERT INTO c VALUES (3, 7, 0); ROLLBACK TO s; DELETE FROM c WHERE id = 2; COMMIT;
         SAVEPOINT o; INSERT INTO c VALUES (4, 6, 0); RELEASE o; INSERT INTO p VALUES (6, 6); RELEASE o; SAVEPOINT o; SAVEPOINT i; DELETE FROM p WHERE id = 6; RELEASE i; ROLLBACK TO o; RELEASE o;
         BEGIN; UPDATE p SET id = 66 WHERE id = 6; UPDATE c SET p = 66 WHERE p = 6; COMMIT; BEGIN; INSERT INTO c VALUES (7, 5, 0), (8, 4, 0), (1, 1, 1); INSERT INTO c VALUES (9, 5, 0); INSERT OR FAIL INTO c VALUES (10, 44, 0), (9, 1, 1);
         COMMIT; INSERT OR ROLLBACK INTO c VALUES (9, 1, 1); COMMIT; BEGIN; INSERT OR REPLACE INTO c VALUES (1, 123, 4); INSERT OR REPLACE INTO c VALUES (1, 1, 4); COMMIT; INSERT INTO c VALUES (12, 99, 0)";
    for kind in [
        "REFERENCES p DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES p",
        "REFERENCES p ON DELETE SET NULL ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES p ON DELETE RESTRICT ON UPDATE RESTRICT DEFERRABLE INITIALLY DEFERRED",
    ] {
        family(kind, sql);
    }
    let postponed = "BEGIN; PRAGMA defer_foreign_keys = ON; INSERT INTO c VALUES (1, 9, 0); DELETE FROM p WHERE id = 1; UPDATE p SET id = 22 WHERE id = 2; COMMIT; INSERT INTO p VALUES (9, 9); COMMIT; PRAGMA defer_foreign_keys;
         BEGIN; PRAGMA defer_foreign_keys = ON; INSERT INTO c VALUES (2, 99, 0); PRAGMA defer_foreign_keys = OFF; COMMIT; BEGIN; INSERT INTO c VALUES (3, 77, 0); PRAGMA defer_foreign_keys = ON; UPDATE c SET p = 9 WHERE p = 77; COMMIT;
         BEGIN; PRAGMA defer_foreign_keys = ON; SAVEPOINT s; DELETE FROM p; ROLLBACK TO s; COMMIT; INSERT INTO c VALUES (4, 55, 0); PRAGMA defer_foreign_keys = ON; INSERT INTO c VALUES (4, 55, 0)";
    for kind in [
        "REFERENCES p",
        "REFERENCES p ON DELETE RESTRICT ON UPDATE RESTRICT",
        "REFERENCES p ON DELETE CASCADE",
        "REFERENCES p DEFERRABLE INITIALLY DEFERRED",
    ] {
        family(kind, postponed);
    }
}

/// A parent that comes for children which had none before keys were enforced was taken to make
/// good for a row with a deferred key, too, where all keys were deferred: that stayed without
/// its parent.
#[test]
fn rows_of_deferred_keys_beside_those_that_are_deferred_for_once() {
    for before in ["INSERT INTO d VALUES (7)", "UPDATE d SET p = 7"] {
        for mends in [
            "INSERT INTO p VALUES (2)",
            "INSERT INTO p VALUES (2), (3)",
            "DELETE FROM c",
            "UPDATE c SET p = 1",
            "UPDATE p SET x = 2",
        ] {
            for own in [
                "SELECT 0",
                "INSERT INTO c VALUES (4)",
                "DELETE FROM c WHERE p = 4",
            ] {
                same(&format!(
                    "PRAGMA foreign_keys = OFF; CREATE TABLE p(x INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p);
                     CREATE TABLE d(p REFERENCES p DEFERRABLE INITIALLY DEFERRED);
                     INSERT INTO p VALUES (1); INSERT INTO c VALUES (2); INSERT INTO d VALUES (1); PRAGMA foreign_keys = ON;
                     BEGIN; PRAGMA defer_foreign_keys = ON; {own}; {before}; {mends}; COMMIT;
                     INSERT OR IGNORE INTO p VALUES (7), (4); COMMIT; SELECT * FROM p; SELECT * FROM c; SELECT * FROM d; PRAGMA foreign_key_check"
                ));
            }
        }
    }
}

#[test]
fn keys_that_make_no_sense() {
    same(
        "CREATE TABLE c(a REFERENCES p); INSERT INTO c VALUES (NULL); INSERT INTO c VALUES (1); PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1); PRAGMA foreign_keys = ON; DELETE FROM c; UPDATE c SET a = 2; UPDATE c SET rowid = 9; DELETE FROM c WHERE 0; DROP TABLE c",
    );
    for (parent, child) in [
        ("x, y", "a REFERENCES p(y)"),
        ("x, y", "a REFERENCES p"),
        ("x, y UNIQUE", "a REFERENCES p(z)"),
        ("x, y, UNIQUE (x, y)", "a REFERENCES p(x)"),
        (
            "x, y COLLATE NOCASE, UNIQUE (y COLLATE BINARY)",
            "a REFERENCES p(y)",
        ),
        ("x PRIMARY KEY, y", "a, b, FOREIGN KEY (a, b) REFERENCES p"),
    ] {
        same(&format!(
            "CREATE TABLE p({parent}); CREATE TABLE c({child}); INSERT INTO c(a) VALUES (NULL); INSERT INTO p VALUES (1, 2); INSERT INTO p VALUES (1, 3), (3, 4); REPLACE INTO p VALUES (1, 2); DELETE FROM p; UPDATE p SET x = 1; UPDATE p SET y = 1; UPDATE p SET rowid = 7; DELETE FROM c;
             PRAGMA foreign_key_check(c); PRAGMA foreign_key_check(p)"
        ));
    }
    same(
        "CREATE VIEW v AS SELECT 1 AS x; CREATE TABLE c(a REFERENCES v(x)); INSERT INTO c VALUES (NULL); DELETE FROM c; PRAGMA foreign_key_check; DROP TABLE c",
    );
    same(
        "CREATE TABLE p(x, y); CREATE UNIQUE INDEX i ON p(x) WHERE x > 0; CREATE UNIQUE INDEX j ON p(y + 0); CREATE TABLE c(a REFERENCES p(x)); INSERT INTO c VALUES (1); CREATE UNIQUE INDEX k ON p(x); INSERT INTO p VALUES (1, 1); INSERT INTO c VALUES (1); DROP INDEX k; INSERT INTO c VALUES (1); SELECT * FROM c",
    );
    for sql in [
        "CREATE TABLE c(a, b, FOREIGN KEY (a) REFERENCES p(x, y))",
        "CREATE TABLE c(a, b, FOREIGN KEY (a, b) REFERENCES p(x))",
        "CREATE TABLE c(a, FOREIGN KEY (z) REFERENCES p)",
        "CREATE TABLE c(a REFERENCES p(x, y))",
        "CREATE TABLE c(a DEFERRABLE INITIALLY DEFERRED)",
    ] {
        same(sql);
    }
}

#[test]
fn what_was_without_parent_before() {
    let orphans = "PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1, 9, 0), (2, 8, 0), (3, 1, 0); PRAGMA foreign_keys = ON; PRAGMA foreign_key_check; PRAGMA foreign_key_check(c); PRAGMA foreign_key_check('p');
         UPDATE c SET n = 1; UPDATE c SET p = p; UPDATE c SET p = p WHERE id = 3; UPDATE c SET p = 1 WHERE id = 1; DELETE FROM c WHERE id = 2; INSERT INTO c VALUES (4, 7, 0); DELETE FROM p WHERE id = 2; INSERT INTO p VALUES (8, 8)";
    for kind in [
        "REFERENCES p",
        "REFERENCES p DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES p ON DELETE CASCADE",
    ] {
        family(kind, orphans);
    }
}

#[test]
fn the_schema_and_foreign_keys() {
    same(
        "CREATE TABLE c(a REFERENCES p ON DELETE CASCADE, b, d CONSTRAINT n REFERENCES q(z) ON UPDATE SET NULL ON DELETE SET DEFAULT DEFERRABLE INITIALLY DEFERRED, FOREIGN KEY (a, b) REFERENCES r(x, y) MATCH FULL ON DELETE RESTRICT); PRAGMA foreign_key_list(c); PRAGMA foreign_key_list(nope); PRAGMA foreign_key_check(nope); PRAGMA foreign_key_check",
    );
    for kind in [
        "",
        "DEFERRABLE INITIALLY DEFERRED",
        "ON DELETE CASCADE",
        "ON DELETE SET NULL",
        "ON DELETE RESTRICT",
    ] {
        same(&format!(
            "CREATE TABLE p(x INTEGER PRIMARY KEY); CREATE TABLE c(a REFERENCES p {kind}); INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1), (1); DROP TABLE p; SELECT * FROM c; CREATE TABLE IF NOT EXISTS p(x INTEGER PRIMARY KEY); SELECT * FROM p;
             BEGIN; DROP TABLE p; COMMIT; ROLLBACK; BEGIN; DROP TABLE p; DROP TABLE c; COMMIT; SELECT * FROM p; SELECT * FROM c; DROP TABLE IF EXISTS c; DROP TABLE IF EXISTS p"
        ));
        same(&format!(
            "CREATE TABLE p(x INTEGER PRIMARY KEY); CREATE TABLE c(a REFERENCES p {kind}); BEGIN; INSERT INTO c VALUES (5); DROP TABLE c; COMMIT; SELECT * FROM c; ROLLBACK; DROP TABLE p; CREATE TABLE t AS SELECT 1 AS x"
        ));
    }
    same(
        "CREATE TABLE p(x INTEGER PRIMARY KEY); ALTER TABLE p ADD COLUMN w DEFAULT 1 REFERENCES p; INSERT INTO p(x) VALUES (1); ALTER TABLE p ADD COLUMN y REFERENCES p DEFAULT 1; ALTER TABLE p ADD COLUMN y DEFAULT 1 REFERENCES p; ALTER TABLE p ADD COLUMN y REFERENCES p; UPDATE p SET y = 7; UPDATE p SET y = 1; DELETE FROM p; PRAGMA foreign_keys = OFF; ALTER TABLE p ADD COLUMN z DEFAULT 1 REFERENCES p; SELECT * FROM p",
    );
    same(
        "CREATE TABLE p(x INTEGER PRIMARY KEY AUTOINCREMENT, up REFERENCES p ON DELETE CASCADE); INSERT INTO p VALUES (1, NULL), (2, 1), (3, 2); DELETE FROM p WHERE x = 1; INSERT INTO p(up) VALUES (NULL); SELECT * FROM p; SELECT * FROM sqlite_sequence",
    );
}

/// Children are looked up some at a time, and found again where that left off.
#[test]
fn rows_of_a_table_that_is_dropped_are_counted() {
    let counts = "SELECT changes(), total_changes();";
    let parent = "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY, x);
         INSERT INTO p VALUES (1, 1), (2, 2), (3, 3);";
    same(&format!(
        "{parent} CREATE TABLE c(a REFERENCES p); UPDATE p SET x = 5 WHERE id = 1;
         DROP TABLE p; {counts}"
    ));
    same(&format!(
        "{parent} CREATE TABLE c(a REFERENCES p ON DELETE CASCADE);
         INSERT INTO c VALUES (1), (1), (3); DROP TABLE p; {counts} SELECT * FROM c;"
    ));
    same(&format!(
        "{parent} CREATE TABLE c(a REFERENCES p); INSERT INTO c VALUES (2);
         DROP TABLE p; {counts}"
    ));
    for key in ["REFERENCES p", "REFERENCES p DEFERRABLE INITIALLY DEFERRED"] {
        for postpone in ["ON", "OFF"] {
            same(&format!(
                "{parent} CREATE TABLE c(a {key}); BEGIN;
                 PRAGMA defer_foreign_keys = {postpone}; INSERT INTO c VALUES (1), (7);
                 UPDATE p SET x = 5; DROP TABLE c; {counts} COMMIT; {counts}"
            ));
        }
    }
}

#[test]
fn parents_of_thousands() {
    let indexes = [
        "",
        "CREATE INDEX i ON c(p);",
        "CREATE INDEX i ON c(q, p, n);",
        "CREATE INDEX i ON c(q);",
        "CREATE INDEX i ON c(p DESC, n);",
    ];
    let keys = [
        "FOREIGN KEY (p, q) REFERENCES p(x, y) ON DELETE CASCADE ON UPDATE CASCADE",
        "FOREIGN KEY (p, q) REFERENCES p(x, y) ON DELETE SET NULL ON UPDATE SET DEFAULT",
        "FOREIGN KEY (p, q) REFERENCES p(x, y) DEFERRABLE INITIALLY DEFERRED",
    ];
    let rows: Vec<String> = (0..6_000)
        .map(|i| format!("({}, 'q', {i})", i % 2 + 1))
        .collect();
    for index in indexes {
        for key in keys {
            same(&format!(
                "CREATE TABLE p(x INT, y TEXT, PRIMARY KEY (x, y)); CREATE TABLE c(p INT DEFAULT 3, q TEXT DEFAULT 'q', n INT, {key}); {index}
                 INSERT INTO p VALUES (1, 'q'), (2, 'q'), (3, 'q'); INSERT INTO c VALUES {};
                 UPDATE p SET x = 4 WHERE x = 2; SELECT p, q, count(*), sum(n), total_changes() FROM c GROUP BY p, q;
                 BEGIN; DELETE FROM p WHERE x = 1; SELECT p, q, count(*), sum(n), total_changes() FROM c GROUP BY p, q; COMMIT; ROLLBACK;
                 UPDATE p SET x = x + 10, y = 'r'; SELECT p, q, count(*), sum(n), total_changes() FROM c GROUP BY p, q;
                 DELETE FROM p; SELECT p, q, count(*), sum(n), total_changes() FROM c GROUP BY p, q; DROP TABLE p; DELETE FROM c; DROP TABLE p",
                rows.join(", ")
            ));
        }
    }
}
