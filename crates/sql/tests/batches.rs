//! Statements that write many rows: what is written by the batch, and what in the midst of
//! one has to be looked at by itself, beside SQLite.

mod support;

use support::same;

/// Fifty rows to take from, of every type.
const SOURCE: &str =
    "CREATE TABLE d(x); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
    CREATE TABLE s(n INTEGER, v, z);
    INSERT INTO s SELECT a.x + 10 * b.x,
        CASE (a.x + b.x) % 5 WHEN 0 THEN a.x WHEN 1 THEN a.x + 0.5 WHEN 2 THEN 'text ' || b.x
            WHEN 3 THEN '7' || a.x ELSE x'0102' END,
        CASE WHEN a.x + 10 * b.x = 37 THEN NULL ELSE a.x END
    FROM d AS b, d AS a WHERE b.x < 5;";

const TABLES: [&str; 4] = [
    "CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, w TEXT, r REAL, u NUMERIC, b)",
    "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER, w TEXT, r REAL, u NUMERIC, b)",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, w TEXT, r REAL, u NUMERIC, b, UNIQUE (u, id))",
    "CREATE TABLE t(i INTEGER, w TEXT, id INTEGER, r REAL, u NUMERIC, b DEFAULT (abs(-3)))",
];

const SEE: &str = "SELECT changes(), total_changes(), last_insert_rowid();
    SELECT rowid, id, i, typeof(i), w, typeof(w), r, typeof(r), u, typeof(u), b, typeof(b) FROM t ORDER BY rowid;";

fn each_table(sql: &str) {
    for table in TABLES {
        same(&format!("{SOURCE} {table}; {sql}; {SEE}"));
        // With what was written before it put back, or kept.
        same(&format!(
            "{SOURCE} {table}; BEGIN; INSERT INTO t(i) VALUES (-1); {sql}; {SEE} ROLLBACK; {SEE}"
        ));
        same(&format!(
            "{SOURCE} {table}; BEGIN; {sql}; SAVEPOINT p; {sql}; {SEE} ROLLBACK TO p; COMMIT; {SEE}"
        ));
    }
}

#[test]
fn inserts() {
    each_table("INSERT INTO t(i, w, r, u, b) SELECT v, v, v, v, v FROM s");
    each_table("INSERT INTO t(id, i, r) SELECT n * 3, n, n FROM s");
    each_table("INSERT INTO t(i, r) SELECT n, -0.0 FROM s WHERE n % 3 <> 1");
    each_table("INSERT INTO t(i) SELECT n FROM s; INSERT INTO t(i) SELECT i FROM t WHERE i > 5");
    each_table("INSERT INTO t(id, i) SELECT 50 - n, n FROM s WHERE n <> 30");
}

/// A rowid that is none, that is taken, or that comes twice, in the midst of a batch.
#[test]
fn rowids_that_are_given() {
    for or in ["", "OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK"] {
        each_table(&format!("INSERT {or} INTO t(id, i) SELECT z, n FROM s"));
        each_table(&format!(
            "INSERT INTO t(id, i) VALUES (21, 0), (3, 0); INSERT {or} INTO t(id, i) SELECT n, n FROM s"
        ));
        each_table(&format!(
            "INSERT {or} INTO t(id, i) SELECT v, n FROM s WHERE typeof(v) = 'integer'"
        ));
        each_table(&format!(
            "INSERT {or} INTO t(id, i) SELECT n || '', n FROM s"
        ));
        each_table(&format!("INSERT {or} INTO t(rowid, i) SELECT v, n FROM s"));
    }
    each_table(
        "INSERT INTO t(id, i) SELECT n % 30, n FROM s WHERE 1 ON CONFLICT DO UPDATE SET i = -1",
    );
    same(&format!(
        "{SOURCE} CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (9223372036854775797, 0);
         INSERT INTO t SELECT n FROM s WHERE n < 10;
         SELECT rowid, a FROM t"
    ));
}

/// NULL in a column that must not have it, in the midst of a batch.
#[test]
fn nulls() {
    for or in ["", "OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK"] {
        for default in ["", "DEFAULT 9"] {
            let table = format!("{SOURCE} CREATE TABLE t(a, m INTEGER NOT NULL {default});");
            let see = "SELECT changes(), total_changes(); SELECT rowid, * FROM t";
            same(&format!(
                "{table} INSERT {or} INTO t SELECT n, z FROM s; {see}"
            ));
            same(&format!(
                "{table} BEGIN; INSERT {or} INTO t SELECT n, z FROM s; COMMIT; {see}"
            ));
            same(&format!(
                "{table} INSERT INTO t SELECT n, 0 FROM s;
                 UPDATE {or} t SET m = nullif(a, 30); {see}; UPDATE {or} t SET m = a + 1; {see}"
            ));
        }
    }
}

#[test]
fn updates() {
    let rows = "INSERT INTO t(id, i, w, r, u, b) SELECT n + 1, n, v, n, n, v FROM s";
    for update in [
        "UPDATE t SET i = i + 1",
        "UPDATE t SET i = b, w = b, r = b, u = b WHERE id % 4 <> 0",
        "UPDATE t SET r = i, w = i WHERE i > 10",
        "UPDATE t SET i = w, w = i",
        "UPDATE t SET i = 5, i = 6",
        "UPDATE t SET i = (SELECT count(*) FROM s WHERE s.n < t.i)",
        "UPDATE t SET i = s.z FROM s WHERE s.n = t.i + 5",
        "UPDATE t SET id = id + 100",
        "UPDATE t SET id = id + 1",
        "UPDATE t SET b = zeroblob(i * 50)",
        "UPDATE t SET i = abs(i - 20 - 9223372036854775788)",
        "UPDATE OR REPLACE t SET u = 7 WHERE id > 20",
        "UPDATE t SET i = 1 WHERE id > 5 RETURNING id, i",
    ] {
        each_table(&format!("{rows}; {update}"));
    }
}

#[test]
fn deletes() {
    let rows = "INSERT INTO t(id, i, w, r, u, b) SELECT n + 1, n, v, n, n, v FROM s";
    for delete in [
        "DELETE FROM t WHERE i >= 0",
        "DELETE FROM t WHERE i % 3 = 0",
        "DELETE FROM t WHERE i BETWEEN 11 AND 40",
        "DELETE FROM t WHERE i > 20; INSERT INTO t(i) VALUES (1)",
        "DELETE FROM t WHERE i > 20; INSERT INTO t(i) SELECT n FROM s WHERE n < 20",
        "DELETE FROM t WHERE i IN (SELECT o.i FROM t AS o WHERE o.i % 2)",
        "DELETE FROM t WHERE i > 3 RETURNING i",
    ] {
        each_table(&format!("{rows}; {delete}"));
    }
}

/// What an index finds is changed as it lies in the table, where nothing shows in which
/// order; where something does, in SQLite's.
#[test]
fn updates_of_what_an_index_finds() {
    const ROWS: &str = "CREATE TABLE d(x);
        INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
        CREATE TABLE t(id INTEGER PRIMARY KEY, k, w TEXT NOT NULL, b);
        INSERT INTO t SELECT n, CASE WHEN n % 7 = 3 THEN NULL ELSE n * 7919 % 3001 END, 'w' || n, n % 5
        FROM (SELECT a.x + 10 * b.x + 100 * c.x + 1000 * e.x AS n
              FROM d AS e, d AS c, d AS b, d AS a WHERE e.x < 3);";
    const SEE: &str = "SELECT changes(), total_changes(); SELECT * FROM t ORDER BY id;";
    let indexes = [
        "CREATE INDEX i ON t(k)",
        "CREATE INDEX i ON t(k DESC, id)",
        "CREATE UNIQUE INDEX i ON t(k)",
        "CREATE INDEX i ON t(b, k)",
    ];
    for index in indexes {
        for found in [
            "k BETWEEN 300 AND 2500",
            "k > 1000 AND w <> 'w17'",
            "b IN (1, 3) AND k < 2000",
            "k IS NULL",
            "k IN (5, 17, 1200) OR k = 77",
        ] {
            same(&format!(
                "{ROWS} {index};
                UPDATE t SET w = w || 'x' WHERE {found}; {SEE}
                BEGIN; UPDATE t SET w = 'y' || id WHERE {found}; SAVEPOINT p;
                UPDATE t SET w = upper(w) WHERE {found}; ROLLBACK TO p; {SEE} COMMIT;
                UPDATE OR IGNORE t SET w = CASE WHEN id % 3 = 0 THEN NULL ELSE 'z' END WHERE {found}; {SEE}
                UPDATE t SET w = (SELECT count(*) FROM t AS u WHERE u.b = t.b) WHERE {found} AND id < 20; {SEE}
                UPDATE t SET w = w || (SELECT max(w) FROM t) WHERE {found} AND id < 40; {SEE}
                UPDATE t SET k = k + 5000 WHERE {found}; {SEE}"
            ));
            for or in ["OR FAIL", "OR ROLLBACK", "OR ABORT"] {
                same(&format!(
                    "{ROWS} {index};
                    UPDATE {or} t SET w = CASE WHEN id = 1500 THEN NULL ELSE 'z' END WHERE {found}; {SEE}"
                ));
            }
        }
    }
}

/// More rows than are gathered at a time.
#[test]
fn updates_of_very_much_that_an_index_finds() {
    same(
        "CREATE TABLE d(x); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
        CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, w);
        INSERT INTO t(k, w) SELECT (a.x + 10 * b.x + 100 * c.x + 1000 * e.x + 10000 * f.x) * 7919 % 100003, 0
            FROM d AS f, d AS e, d AS c, d AS b, d AS a;
        INSERT INTO t(k, w) SELECT k + 50000, 0 FROM t WHERE id % 2 = 0;
        CREATE INDEX i ON t(k);
        UPDATE t SET w = w + k WHERE k >= 1000;
        SELECT changes(), count(*), sum(w), sum(w * (id % 11)) FROM t;",
    );
}

/// A row that several rows of FROM name is updated once, by the last of them. (It was by
/// each, which took the first one's index entries away for all, and left the others'.)
#[test]
fn updates_from_what_names_a_row_several_times() {
    for indexes in [
        "SELECT 1",
        "CREATE INDEX ti ON t(i)",
        "CREATE INDEX ti ON t(i, w) WHERE i > 1; CREATE INDEX tw ON t(w || i)",
        "CREATE UNIQUE INDEX ti ON t(i, id)",
    ] {
        for update in [
            "UPDATE t SET i = s.n FROM s",
            "UPDATE t SET i = s.n, w = s.v FROM s WHERE s.n % 10 = t.id % 10",
            "UPDATE t SET i = s.n FROM s WHERE s.n > t.id",
            "UPDATE t SET i = s.n FROM s WHERE s.n % 10 = t.id % 10 RETURNING id, i, s.n",
            "UPDATE OR REPLACE t SET i = s.n % 3 FROM s WHERE s.n % 10 = t.id % 10",
            "UPDATE t SET id = t.id + 100 FROM s WHERE s.n % 10 = t.id % 10",
            "UPDATE t SET i = q.n FROM (SELECT n FROM s WHERE n < 4) AS q, d WHERE d.x < 3",
        ] {
            same(&format!(
                "{SOURCE} CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, w TEXT);
                INSERT INTO t SELECT n, n * 7 % 50, 'w' || n FROM s; {indexes}; {update};
                SELECT changes(), total_changes(); SELECT * FROM t ORDER BY id;
                SELECT i, id FROM t WHERE i > 1 ORDER BY i, id; PRAGMA integrity_check"
            ));
        }
    }
}

/// A table without anybody who asks for its rows is emptied at once: what is left, what is
/// counted, and what comes after are as if each row had gone by itself.
#[test]
fn whole_tables_are_deleted() {
    let rows = "INSERT INTO t(w, i) SELECT 'w' || n, n * 7 % 500 FROM s;";
    let more = "CREATE TABLE d2(x); CREATE TABLE log(x)";
    for table in [
        "id INTEGER PRIMARY KEY, w TEXT, i INTEGER",
        "id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT UNIQUE, i INTEGER",
        "w TEXT PRIMARY KEY, i INTEGER, z DEFAULT 5",
    ] {
        for others in [
            "SELECT 1",
            "CREATE INDEX ti ON t(i); CREATE INDEX tw ON t(w || i) WHERE i > 9",
            "CREATE TRIGGER td AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.i); END",
            "CREATE TRIGGER ti AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.i); END",
            "CREATE TRIGGER t2 AFTER INSERT ON d2 BEGIN DELETE FROM t; END",
        ] {
            for statements in [
                "DELETE FROM t",
                "DELETE FROM t; INSERT INTO t(w, i) VALUES ('again', 3)",
                "DELETE FROM t WHERE 1",
                "DELETE FROM t RETURNING i",
                "BEGIN; DELETE FROM t; SELECT count(*), max(i) FROM t; ROLLBACK",
                "BEGIN; INSERT INTO t(w, i) VALUES ('own', 9); SAVEPOINT s; DELETE FROM t; INSERT INTO t(w, i) VALUES ('w1', 9); SELECT changes(), last_insert_rowid(), count(*) FROM t; ROLLBACK TO s; DELETE FROM t WHERE i = 9; COMMIT",
                "BEGIN; DELETE FROM t; INSERT INTO t(w, i) SELECT w || 1, i FROM t2; DELETE FROM t; INSERT INTO t(w, i) SELECT w || 2, i FROM t2; COMMIT",
                "INSERT INTO d2 VALUES (1); SELECT changes()",
            ] {
                same(&format!(
                    "CREATE TABLE s(n INTEGER); WITH g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 700) INSERT INTO s SELECT n FROM g;
                    CREATE TABLE t({table}); {more}; {others}; {rows} CREATE TABLE t2 AS SELECT w, i FROM t;
                    {statements}; SELECT changes(), total_changes();
                    SELECT count(*), sum(i), min(rowid), max(rowid) FROM t; SELECT count(*) FROM log;
                    SELECT count(*) FROM t WHERE i = 9; INSERT INTO t(w, i) VALUES ('new', 9);
                    SELECT rowid, w FROM t WHERE w = 'new'; PRAGMA integrity_check"
                ));
            }
        }
    }
}

/// Foreign keys ask about every row that goes.
#[test]
fn whole_tables_that_others_refer_to_are_deleted() {
    for action in [
        "",
        "ON DELETE CASCADE",
        "ON DELETE SET NULL",
        "DEFERRABLE INITIALLY DEFERRED",
    ] {
        for statements in [
            "DELETE FROM p",
            "DELETE FROM c; DELETE FROM p",
            "BEGIN; DELETE FROM p; DELETE FROM c; COMMIT",
        ] {
            same(&format!(
                "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p INTEGER REFERENCES p {action}, n);
                WITH g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 400) INSERT INTO p SELECT n FROM g;
                INSERT INTO c SELECT id, id % 3 FROM p; CREATE INDEX cp ON c(p);
                {statements}; SELECT changes(), total_changes(); SELECT count(*) FROM p;
                SELECT count(*), count(p) FROM c; PRAGMA integrity_check"
            ));
        }
    }
}

/// The last rows of a statement's source are changed once its cursors are closed, within a
/// transaction in pages that others of it looked at before.
#[test]
fn transactions_change_what_they_have_just_read() {
    let found = "SELECT count(*), sum(i), sum(length(w)) FROM t WHERE i BETWEEN 3 AND 40";
    for indexes in [
        "SELECT 1",
        "CREATE INDEX ti ON t(i)",
        "CREATE INDEX ti ON t(i, w)",
    ] {
        for update in [
            "UPDATE t SET i = i + 1 WHERE i BETWEEN 3 AND 40",
            "UPDATE t SET w = w || (SELECT count(*) FROM t AS o WHERE o.i = t.i) WHERE i = 7",
            "UPDATE t SET i = i + 1, id = id + 5000 WHERE i IN (SELECT i FROM t WHERE id % 11 = 3)",
            "DELETE FROM t WHERE i IN (SELECT i + 1 FROM t WHERE id % 11 = 3)",
            "DELETE FROM t WHERE i = 7; UPDATE t SET i = 7 WHERE i = 8",
        ] {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, w TEXT);
                WITH g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 2500) INSERT INTO t SELECT n, n * 7 % 50, 'w' || n FROM g;
                {indexes}; BEGIN; {found}; {update}; SELECT changes(); {found}; SAVEPOINT s; {update}; SELECT changes(); {found};
                ROLLBACK TO s; {found}; {update}; COMMIT; {found};
                SELECT * FROM t WHERE id % 100 = 3 ORDER BY id; SELECT i, id FROM t WHERE i = 8 ORDER BY id LIMIT 9; PRAGMA integrity_check"
            ));
        }
    }
}
