//! RETURNING, upserts, DELETE and INSERT in their forms.

mod support;

use support::{drain, must, prepare, same, session};

const TABLE: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT UNIQUE, n INT DEFAULT 7); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);";

fn with(sql: &str) {
    same(&format!(
        "{TABLE}{sql}; SELECT * FROM t; SELECT k FROM t WHERE k > '' ORDER BY k"
    ));
}

#[test]
fn returning() {
    with("INSERT INTO t(k) VALUES ('c'), ('d') RETURNING id, k, n, n * 2");
    with("UPDATE t SET n = n + 1 RETURNING *");
    with("UPDATE t SET n = n + 1 WHERE id = 2 RETURNING n");
    with("DELETE FROM t WHERE n = 2 RETURNING k");
    with("DELETE FROM t WHERE id = 1 RETURNING k, id");
    with("INSERT INTO t(k) VALUES ('c'), ('a') RETURNING id");
}

#[test]
fn upserts() {
    with("INSERT INTO t(k, n) VALUES ('a', 5) ON CONFLICT DO NOTHING");
    with("INSERT INTO t(k, n) VALUES ('a', 5) ON CONFLICT(k) DO UPDATE SET n = excluded.n + t.n");
    with(
        "INSERT INTO t(k, n) VALUES ('a', 5), ('c', 6), ('a', 7) ON CONFLICT(k) DO UPDATE SET n = n + excluded.n",
    );
    with("INSERT INTO t VALUES (1, 'q', 5) ON CONFLICT(id) DO UPDATE SET k = excluded.k");
    with("INSERT INTO t VALUES (1, 'q', 5) ON CONFLICT(id) DO UPDATE SET k = 'b'");
    with("INSERT INTO t(k, n) VALUES ('a', 5) ON CONFLICT(k) DO UPDATE SET n = 9 WHERE n > 100");
    with("INSERT INTO t VALUES (1, 'q', 5) ON CONFLICT(k) DO NOTHING");
}

/// A statement that runs again uses the memory of the row that was there before: longer and
/// shorter ones, rows that are new between, and one that WHERE leaves alone.
#[test]
fn an_upsert_that_runs_again_keeps_nothing_of_the_row_before() {
    let upsert = |key: &str, text: &str, n: i64| {
        format!(
            "INSERT INTO t(k, s, n) VALUES ('{key}', '{text}', {n}) ON CONFLICT(k) DO UPDATE
             SET s = excluded.s || ifnull(s, '-'), n = excluded.n + n, z = t.s WHERE excluded.n > 0
             RETURNING *;\n"
        )
    };
    let mut script =
        "CREATE TABLE t(id INTEGER PRIMARY KEY, k UNIQUE, s, n, z); BEGIN;\n".to_owned();
    for (key, text, n) in [
        ("a", "first", 1),
        ("a", "a much longer text than what was there before", 2),
        ("b", "", 3),
        ("a", "x", 0),
        ("b", "y", 5),
        ("a", "short", 7),
        ("c", "new", 1),
        ("b", "z", -1),
        ("c", "", 1),
    ] {
        script += &upsert(key, text, n);
    }
    script += "INSERT OR IGNORE INTO t(k, s) VALUES ('a', 'left out'); SELECT * FROM t; COMMIT";
    same(&script);
}

/// SQLite takes a name more than once: the first counts, of the rowid and in SET the last.
/// A kept statement whose table was gone set the count to 0, as one that ran and failed does.
#[test]
fn a_write_that_does_not_compile_any_more_has_not_run() {
    let schema = "CREATE TABLE t(a UNIQUE); CREATE TABLE u(a); INSERT INTO t VALUES (1)";
    let before = "INSERT INTO u VALUES (1), (2)";
    let kept = "INSERT INTO t VALUES (1)";
    for change in [
        "",
        "DROP TABLE t",
        "ALTER TABLE t ADD b",
        "BEGIN; DROP TABLE t",
    ] {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let session = session();
        connection.execute_batch(schema).unwrap();
        must(&session, schema);
        let mut theirs = connection.prepare(kept).unwrap();
        let mut ours = prepare(&session, kept);
        for sql in [change, before] {
            connection.execute_batch(sql).unwrap();
            must(&session, sql);
        }
        theirs.execute([]).unwrap_err();
        let told = drain(&mut ours);
        assert!(told[0].starts_with("error"), "{told:?}");
        assert_eq!(session.changes(), connection.changes(), "{change}");
    }
}

#[test]
fn columns_named_more_than_once() {
    with(
        "INSERT INTO t(n, k, n, \"K\", [n]) VALUES (5, 'c', 6, 'd', 7), (8, 'e', 9, 'f', 0) RETURNING *",
    );
    with("INSERT INTO t(id, n, id) VALUES (7, 1, 8), (9, 2, NULL) RETURNING *");
    with("INSERT INTO t(rowid, id, oid) VALUES (7, 8, 9)");
    with("INSERT INTO t(n, n) SELECT n + 1, k FROM t");
    with(
        "WITH q(x) AS (SELECT 1) INSERT INTO main.t AS u(n, /* again */ n) SELECT x, n FROM q JOIN (SELECT 1 AS x, 9 AS n) USING (x, x)",
    );
    with(
        "INSERT INTO t(k, k) VALUES ('a', 'b') ON CONFLICT(k) DO UPDATE SET (n, n) = (n + 1, n + 2) RETURNING *",
    );
    with(
        "UPDATE t SET n = 5, n = n + 1, (k, n, k) = (k || 1, 8, k || 2) WHERE (n, n) = (1, 1) RETURNING *, (n, n) = (8, 8)",
    );
    with("UPDATE t SET (id, rowid) = (7, 8), id = 9 WHERE id = 1");
    with("INSERT INTO t(n, n) VALUES (1)");
    with("INSERT INTO t(n, n) DEFAULT VALUES");
    with("INSERT INTO t(n) DEFAULT VALUES");
    with("INSERT INTO t(n, n, q) VALUES (1, 2, 3)");
    with("INSERT INTO t(n, n, 5) VALUES (1, 2, 3)");
    with("INSERT INTO t(n, n,) VALUES (1, 2, 3)");
    with("INSERT INTO t(n, n) VALUES (1, 2) and more");
    with("UPDATE t SET (n, n) = (1, 2, 3)");
    with("SELECT * FROM t JOIN t u USING (id, n, ID)");
}

#[test]
fn rowids_without_a_key() {
    same("CREATE TABLE r(a); INSERT INTO r VALUES (1); INSERT INTO r(rowid, a) VALUES (10, 2); INSERT INTO r VALUES (3);
          DELETE FROM r WHERE rowid = 11; INSERT INTO r VALUES (4); SELECT rowid, a FROM r;
          INSERT INTO r(rowid, a) VALUES (-5, 6); SELECT rowid, * FROM r; DELETE FROM r; SELECT count(*) FROM r;
          INSERT INTO r VALUES (9); SELECT rowid FROM r");
}

#[test]
fn affinity_on_store() {
    same("CREATE TABLE a(i INT, t TEXT, r REAL, n NUMERIC, b BLOB);
          INSERT INTO a VALUES ('12', 12, 12, '12.0', 12), ('x', 1.5, '3', 'y', '5'), (1.0, NULL, 1e20, 1e300, x'01'), ('1e3', x'61', 'z', ' 7 ', 2.0);
          SELECT i, typeof(i), t, typeof(t), r, typeof(r), n, typeof(n), b, typeof(b) FROM a");
}

/// What an added column shows in the rows from before it was a text where the column
/// makes a number of it, and an integer in a REAL column.
#[test]
fn defaults_of_added_columns_have_the_columns_affinity() {
    same(
        "CREATE TABLE a(x); INSERT INTO a VALUES (1); ALTER TABLE a ADD COLUMN i INT DEFAULT '12';
         ALTER TABLE a ADD COLUMN r REAL DEFAULT 3; ALTER TABLE a ADD COLUMN n NUMERIC DEFAULT '1e3';
         ALTER TABLE a ADD COLUMN t TEXT DEFAULT 5; INSERT INTO a(x) VALUES (2);
         SELECT *, typeof(i), typeof(r), typeof(n), typeof(t), r / 2 FROM a;
         CREATE INDEX ai ON a(i); SELECT x FROM a WHERE i = 12; SELECT count(*) FROM a GROUP BY i",
    );
}

/// It was the first token behind the column's name and type.
#[test]
fn defaults_are_told_as_they_were_written() {
    same(
        "CREATE TABLE a(i INT NOT NULL DEFAULT 7, j INT DEFAULT -7 NOT NULL, k DEFAULT (1 + (2)) UNIQUE,
           l TEXT CHECK (l <> 'default') DEFAULT 'x', m DEFAULT x'31', n DEFAULT CURRENT_TIME, o DEFAULT TRUE,
           q REFERENCES a(i) ON DELETE SET DEFAULT DEFAULT 9);
         ALTER TABLE a ADD COLUMN p COLLATE NOCASE DEFAULT 'it''s'; PRAGMA table_info(a)",
    );
}

/// Rows that break its CHECK were let in, and could not be changed any more.
#[test]
fn a_column_is_added_where_its_checks_hold_for_all_rows() {
    same(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, x); INSERT INTO a VALUES (7, 9), (8, NULL);
         ALTER TABLE a ADD COLUMN b INT DEFAULT 4 CHECK (b <> 4);
         ALTER TABLE a ADD COLUMN b INT DEFAULT '4' CHECK (b = 4 OR typeof(b) = 'text');
         ALTER TABLE a ADD COLUMN c CHECK (c IS NOT NULL); ALTER TABLE a ADD COLUMN c CHECK (x < 5);
         ALTER TABLE a ADD COLUMN c CHECK (c > 0) CHECK (id < 8); ALTER TABLE a ADD COLUMN c CHECK (a.c > 0);
         BEGIN; DELETE FROM a WHERE id = 8; ALTER TABLE a ADD COLUMN d CHECK (id < 8 AND x = 9); COMMIT;
         UPDATE a SET x = 9; SELECT * FROM a; DELETE FROM a; ALTER TABLE a ADD COLUMN e CHECK (e IS NOT NULL);
         INSERT INTO a(x) VALUES (1); SELECT sql FROM sqlite_schema",
    );
}

/// They were refused whatever rows there were.
#[test]
fn columns_without_a_value_for_old_rows_are_added_to_empty_tables() {
    const COLUMNS: [&str; 5] = [
        "b NOT NULL",
        "b INT NOT NULL DEFAULT NULL",
        "b TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "b DEFAULT (1 + 2) CHECK (b > 2)",
        "b DEFAULT (abs(x) + 1) NOT NULL",
    ];
    for column in COLUMNS {
        let rows = "INSERT INTO a(x) VALUES (1); INSERT INTO a VALUES (2, 5);
             UPDATE a SET x = -x; SELECT x, length(b) FROM a; SELECT sql FROM sqlite_schema";
        for before in [
            "",
            "INSERT INTO a VALUES (1);",
            "INSERT INTO a VALUES (1); DELETE FROM a;",
            "BEGIN; INSERT INTO a VALUES (1);",
            "BEGIN; INSERT INTO a VALUES (1); DELETE FROM a;",
        ] {
            let alter = format!("ALTER TABLE a ADD COLUMN {column}");
            same(&format!("CREATE TABLE a(x); {before} {alter}; {rows}"));
        }
    }
}

/// A view and an index could have the same name, and an index that was there let its
/// table be missing.
#[test]
fn tables_views_and_indexes_share_their_names() {
    same(
        "CREATE TABLE t(a); CREATE INDEX i ON t(a); CREATE VIEW v AS SELECT 1; CREATE INDEX v ON t(a);
         CREATE VIEW i AS SELECT 2; CREATE TABLE i(a); CREATE VIEW IF NOT EXISTS i AS SELECT 2;
         CREATE INDEX IF NOT EXISTS v ON t(a); CREATE INDEX IF NOT EXISTS i ON u(a);
         CREATE INDEX IF NOT EXISTS i ON t(a); CREATE INDEX i ON t(a); SELECT type, name FROM sqlite_schema",
    );
}

#[test]
fn inserts_from_queries() {
    with("INSERT INTO t(k, n) SELECT k || k, n FROM t");
    with("INSERT INTO t(k) SELECT 'z'");
    with("INSERT INTO t DEFAULT VALUES");
    with("INSERT INTO t(id, k) VALUES (NULL, 'x'), ('7', 'y')");
    same(
        "CREATE TABLE c AS SELECT 1 AS a, 'x' AS b, 2.5; SELECT * FROM c; SELECT sql FROM sqlite_schema",
    );
}

#[test]
fn deletes() {
    with("DELETE FROM t WHERE id = 1");
    with("DELETE FROM t WHERE id = '1'");
    with("DELETE FROM t WHERE id = 9");
    with("DELETE FROM t WHERE k = 'b'");
    with("DELETE FROM t");
    with("DELETE FROM t WHERE n IN (SELECT max(n) FROM t)");
}

#[test]
fn indexes_follow_their_rows() {
    same("CREATE TABLE x(a, b, c); CREATE INDEX xa ON x(a); CREATE UNIQUE INDEX xbc ON x(b, c DESC); CREATE INDEX xp ON x(c) WHERE a > 5;
          INSERT INTO x VALUES (1, 2, 3), (6, 2, 4), (7, NULL, 3), (8, NULL, 3);
          UPDATE x SET a = a + 3; SELECT a FROM x WHERE a = 9; SELECT c FROM x WHERE a > 5 AND c = 3; UPDATE x SET c = 4 WHERE a = 4;
          UPDATE x SET b = 5 WHERE a > 9; DELETE FROM x WHERE a = 10; SELECT * FROM x; SELECT a, b FROM x WHERE b = 2 ORDER BY c;
          CREATE UNIQUE INDEX bad ON x(b); SELECT name FROM sqlite_schema ORDER BY name");
}

/// The text of the column went behind the table's constraints, where it is no column.
/// An UPDATE lets be the entries of indexes whose keys and conditions read nothing that it
/// assigns, be it through a generated column.
#[test]
fn entries_change_with_what_they_are_made_of() {
    let table =
        "CREATE TABLE x(id INTEGER PRIMARY KEY, a, b, c, v AS (a * 2), w AS (v + b) STORED);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
        INSERT INTO x(id, a, b, c) SELECT i, i % 7, i % 5, 'c' || i FROM n;
        CREATE INDEX xa ON x(abs(a)); CREATE INDEX xb ON x(b) WHERE c > 'c2';
        CREATE INDEX xv ON x(v); CREATE INDEX xw ON x(w, upper(c)); CREATE INDEX xi ON x(id + a);
        CREATE UNIQUE INDEX xe ON x(-v, id) WHERE w % 2;";
    let assigned = [
        "a = b + 3",
        "b = 9 - b",
        "c = 'c' || (50 - id)",
        "id = 100 - id",
    ];
    for set in 1..1 << assigned.len() {
        let of_set = |at: &usize| set >> at & 1 == 1;
        let columns: Vec<_> = (0..assigned.len()).filter(of_set).collect();
        let columns: Vec<_> = columns.into_iter().map(|at| assigned[at]).collect();
        for rows in ["", " WHERE id % 4 = 1", " WHERE id = 11"] {
            same(&format!(
                "{table} UPDATE x SET {}{rows};
                 SELECT * FROM x ORDER BY id; SELECT id FROM x WHERE abs(a) = 3 ORDER BY id;
                 SELECT id FROM x WHERE b = 4 AND c > 'c2' ORDER BY id;
                 SELECT id FROM x WHERE v > 5 ORDER BY v, id; SELECT id FROM x WHERE id + a = 20;
                 SELECT id FROM x WHERE w % 2 AND -v = -6 ORDER BY id; PRAGMA integrity_check;
                 REINDEX x; PRAGMA integrity_check; SELECT id FROM x WHERE v > 5 ORDER BY v, id;
                 SELECT id FROM x WHERE w % 2 AND -v = -6 ORDER BY id",
                columns.join(", ")
            ));
        }
    }
}

#[test]
fn columns_are_added_before_constraints() {
    for table in [
        "a INT, b INT, UNIQUE (a)",
        "a INT, b INT CHECK (b IN (1, 2)), CONSTRAINT c CHECK (a > 0), UNIQUE (a, b)",
        "a INT, b DECIMAL(4, 2) DEFAULT (1), FOREIGN KEY (a) REFERENCES u (x)",
        "a INT, \"unique\" INT, b TEXT DEFAULT ', UNIQUE (' -- and no ), CHECK (\n, PRIMARY KEY (a)",
        "a INT, b INT /* no constraint ) */",
    ] {
        same(&format!(
            "PRAGMA foreign_keys = OFF; CREATE TABLE \"t)(\" ({table}); INSERT INTO \"t)(\" (a, b) VALUES (1, 2);
             ALTER TABLE \"t)(\" ADD COLUMN z INT DEFAULT 5;
             INSERT INTO \"t)(\" (a, b, z) VALUES (3, 1, 4);
             SELECT a, b, z FROM \"t)(\" ORDER BY a; SELECT sql FROM sqlite_schema;
             INSERT INTO \"t)(\" (a, b) VALUES (1, 2); INSERT INTO \"t)(\" (a, b) VALUES (0, 3);
             SELECT count(*) FROM \"t)(\"",
        ));
    }
}

/// Columns that a query names with words of the grammar were written into the schema as
/// they were, and nothing could read that any more.
#[test]
fn a_table_of_a_query_has_columns_of_any_name() {
    let words = [
        "order",
        "NULL",
        "Group",
        "key",
        "abort",
        "row",
        "window",
        "over",
        "current_date",
        "NOCASE",
        "rowid_",
        "a b",
        "9a",
        "ä",
        "x\"\"y",
        "",
        "without",
        "generated",
        "materialized",
        "exists",
        "a_name_that_is_longer_than_any_word",
        "isnull",
        "if",
        "by",
        "x",
    ];
    for word in words {
        same(&format!(
            "CREATE TABLE \"t{word}\" AS SELECT 1 AS \"{word}\", 'a' AS y; SELECT * FROM \"t{word}\";
            SELECT name, sql FROM sqlite_schema; CREATE TABLE \"{word}!\"(a);
            CREATE TABLE \"{word}\" AS SELECT \"{word}\" FROM \"t{word}\"; SELECT sql FROM sqlite_schema;"
        ));
    }
    same(
        "CREATE TABLE t AS SELECT NULL, 1 + 1, count(*); SELECT sql FROM sqlite_schema; SELECT * FROM t",
    );
}

/// A column's type was what stood behind the first word like its name, also in constraints
/// before it: texts were stored as numbers, and keys were no rowids.
#[test]
fn columns_have_their_own_types_whatever_stands_before_them() {
    const SHOW: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema";
    for (create, columns, inserts) in [
        (
            "t(p TEXT REFERENCES parent(name), name TEXT)",
            "name, p",
            "('0123', 5)",
        ),
        (
            "t(a TEXT REFERENCES country(id), id INTEGER PRIMARY KEY)",
            "a",
            "('x'), ('y')",
        ),
        (
            "t(a REFERENCES c(id), id INTEGER PRIMARY KEY AUTOINCREMENT)",
            "a",
            "('x')",
        ),
        (
            "t(id integer primary key, key text unique)",
            "key",
            "('007'), ('7')",
        ),
        (
            "t(a REFERENCES x(r), r real, b REFERENCES x(t), t blob)",
            "r, t",
            "('1', '2')",
        ),
        (
            "t(a int unique on conflict replace, replace text)",
            "replace",
            "('01')",
        ),
        ("t(a int primary key desc, desc text)", "\"desc\"", "('01')"),
        (
            "t(a references x on delete cascade, cascade text)",
            "\"cascade\"",
            "('01')",
        ),
        (
            "t(a references x deferrable initially deferred, deferred text)",
            "deferred",
            "('01')",
        ),
        (
            "t(a check (b > '0'), b text, c default 'b', d varchar(10))",
            "b, d",
            "('01', '02')",
        ),
        (
            "t(a TEXT CHECK (a <> 'b, c INT'), b TEXT, c INT, UNIQUE(b, c))",
            "b, c",
            "('01', '02')",
        ),
        (
            "t(a, b text, foreign key (a) references b(a), check (b <> 'a'))",
            "b",
            "('01')",
        ),
        ("t(a \"x text\" CONSTRAINT foo CHECK (1))", "a", "(12)"),
        (
            "t(a \"my type\" DEFAULT x'0f', b INT DEFAULT 7)",
            "b",
            "('8')",
        ),
        (
            "t(a \"varchar\"(10), b \"a\" \"b\", c [d e](1, 2), d int unsigned)",
            "b",
            "('8')",
        ),
        (
            "t(a 'text', b `int`, c Integer, d bLob, e any, f double  precision)",
            "a, b",
            "(1, '2')",
        ),
        ("if not exists \"if\"(a INT, b TEXT)", "b", "(1)"),
        ("\"table\"(\"table\" TEXT)", "\"table\"", "(1)"),
    ] {
        let head = create.split('(').next().unwrap_or_default();
        let name = head.rsplit(' ').next().unwrap_or_default();
        same(&format!(
            "PRAGMA foreign_keys = OFF; CREATE TABLE {create};
             INSERT INTO {name}({columns}) VALUES {inserts};
             SELECT * FROM {name}; PRAGMA table_info({name}); {SHOW}"
        ));
    }
    for sql in [
        "create view view as select 1 as a; select * from view",
        "create table if not exists if(a); create table t(a); create index if not exists if on t(a)",
        "create view if not exists if as select 1 as a; select * from \"if\"",
        "create table t(a); create index index_ on t(a); alter table t add column add text",
        "create table t(column_ int); alter table t add text text; alter table t add column b text;
         insert into t values (1, 2, 3)",
    ] {
        same(&format!(
            "{sql}; {SHOW}; PRAGMA table_info(t); SELECT * FROM t"
        ));
    }
}

/// They were refused.
#[test]
fn several_columns_are_set_from_one_query() {
    for sql in [
        "SET (k, n) = (SELECT 'x' || t.k, t.n + 1)",
        "SET (k, n) = (SELECT k, n FROM t q WHERE q.id = 3 - t.id) WHERE id = 1",
        "SET (k, n) = (SELECT 'q', 5) WHERE k = 'b'",
        "SET (n, k) = (VALUES (8, 9)) WHERE id = 2",
        "SET (id, n) = (SELECT t.id + 10, '7')",
        "SET (id, n) = (SELECT 'x', 1)",
        "SET (k, n) = (SELECT 1, 2 WHERE t.id > 1)",
        "SET (k, n) = (SELECT t.id, t.id + 1), k = t.k || 5",
        "SET n = 5, (k, n) = (SELECT t.id, t.id + 1)",
        "SET (k, n) = (SELECT t.id, random()), n = 4",
        "SET (k, n) = (1, 2) WHERE id = 1",
        "SET (n) = (SELECT 3)",
        "SET (k, n) = (SELECT 1)",
        "SET (k, n) = (SELECT *, 1 FROM t)",
        "SET (k, n) = (1, 2, 3)",
        "SET (k, n) = 1",
        "SET (k, n) = ((1, 2), 3)",
        "SET (k, none) = (SELECT 1, 2)",
    ] {
        with(&format!("UPDATE t {sql}"));
        with(&format!("UPDATE t {sql} RETURNING *"));
        with(&format!(
            "INSERT INTO t VALUES (1, 'new', 3) ON CONFLICT (id) DO UPDATE {sql}"
        ));
    }
    with(
        "INSERT INTO t VALUES (1, 'p', 3), (2, 'q', 4) ON CONFLICT (id) DO UPDATE SET (k, n) = (SELECT excluded.k || t.k, excluded.n)",
    );
    with(
        "UPDATE t SET (k, n) = (SELECT a, b) FROM (SELECT 1 AS i, 'x' AS a, 'y' AS b) WHERE id = i",
    );
}

/// Both columns are of the same row, and each row of the table has its own.
#[test]
fn a_query_that_is_not_the_same_each_time_sets_all_columns_of_a_row() {
    with(
        "UPDATE t SET (k, n) = (SELECT r || '', r + t.id FROM (SELECT random() / 2 AS r));
         SELECT count(DISTINCT k), sum(n - k = id) FROM t; UPDATE t SET (k, n) = (1, 2) WHERE id < 2;
         UPDATE t SET (k, n) = (3, 4) WHERE id > 1",
    );
}

/// They were kept as they stood, which said what is not so.
#[test]
fn keys_take_no_order_of_nulls_and_references_as_many_columns() {
    for word in ["FIRST", "LAST"] {
        for sql in [
            "CREATE INDEX i ON t(n NULLS {})",
            "CREATE UNIQUE INDEX i ON t(k, n + 1 DESC NULLS {})",
            "CREATE INDEX i ON none(n NULLS {})",
            "CREATE TABLE q(a, b, PRIMARY KEY (a NULLS {}))",
            "CREATE TABLE q(a, b, UNIQUE (a, b DESC NULLS {}))",
            "INSERT INTO t VALUES (1, 'x', 2) ON CONFLICT (id NULLS {}) DO NOTHING",
        ] {
            with(&sql.replace("{}", word));
        }
    }
    for columns in [
        "a REFERENCES u(x, y)",
        "a REFERENCES u(x)",
        "a REFERENCES u",
        "a, b, FOREIGN KEY (a, b) REFERENCES u(x)",
        "a, b, FOREIGN KEY (a) REFERENCES u(x, y)",
        "a, b, FOREIGN KEY (a, b) REFERENCES u(x, y)",
        "a, b, FOREIGN KEY (a, b) REFERENCES u",
    ] {
        same(&format!(
            "CREATE TABLE IF NOT EXISTS q({columns}); SELECT sql FROM sqlite_schema"
        ));
    }
    with(
        "ALTER TABLE t ADD COLUMN g REFERENCES u(x, y); ALTER TABLE t ADD COLUMN g REFERENCES u(x); SELECT sql FROM sqlite_schema",
    );
}
/// A table of a query had columns `true`, `a COLLATE NOCASE` and `a:5:1`, and a view had no
/// columns in `table_info`.
#[test]
fn columns_of_tables_and_views_of_queries_are_sqlites() {
    const TABLES: &str =
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT, n NUMERIC, v VARCHAR(9));
         CREATE TABLE u(id, a, c); INSERT INTO t(id, a) VALUES (1, 2);";
    for sql in [
        "SELECT true, FALSE, true AS k, true, (SELECT true), -true",
        "SELECT 1 AS true, 2 AS \"true\", 3 AS a, 4 AS a, 5 AS \"a:1\", 6 AS \"b:5\", 7 AS \"b:5\"",
        "SELECT A, a, t.a, rowid, id, b COLLATE NOCASE, likely(A), (a), 'x', \"nope\" FROM t",
        "SELECT * FROM t, u",
        "SELECT * FROM (SELECT A AS k, b AS k FROM t)",
        "SELECT * FROM (SELECT A, ID, ROWID FROM t)",
        "SELECT id, n, v, id + 1, -id, +id, b || 1, id COLLATE NOCASE, max(id, n), count(*) FROM t",
        "SELECT CAST(a AS INT), CAST(1 AS DECIMAL(5, 2)), (SELECT v FROM t), (SELECT a FROM t), (SELECT 1) FROM t",
        "SELECT id FROM t UNION ALL SELECT n FROM t",
        "SELECT id FROM t UNION ALL SELECT 'x'",
        "SELECT b FROM t UNION ALL SELECT NULL",
        "SELECT b FROM t UNION ALL SELECT CASE WHEN 1 THEN 'x' ELSE 1 END",
        "SELECT 1 AS k UNION ALL SELECT b FROM t",
        "SELECT CAST(1 AS REAL) AS k UNION ALL SELECT 1",
        "VALUES (1, 'x', NULL), (2, 3, 4)",
        "WITH c(p, p) AS (SELECT id, a FROM t) SELECT * FROM c",
    ] {
        same(&format!(
            "{TABLES} CREATE TABLE k AS {sql}; SELECT sql FROM sqlite_schema WHERE name = 'k';
             CREATE VIEW w AS {sql}; PRAGMA table_info(w); PRAGMA table_xinfo(w);
             PRAGMA table_list(w); CREATE VIEW x AS SELECT * FROM w; PRAGMA table_info(x)"
        ));
    }
    let few = "CREATE VIEW w(p, p) AS SELECT 1; SELECT * FROM w; PRAGMA table_info(w); PRAGMA table_list(w)";
    same(few);
    same("CREATE VIEW w AS SELECT * FROM nope; SELECT * FROM w; PRAGMA table_info(w)");
    same(
        "CREATE TABLE k(a, \"b c\", \"B C\"); CREATE TABLE k(a, [A]); CREATE TABLE k(\"q\"\"r\", 'q\"r')",
    );
}

/// Keys of indexes took qualified names and rowids, which SQLite refuses there, and TRUE was
/// looked for as a column.
#[test]
fn keys_of_indexes_name_columns() {
    for sql in [
        "CREATE INDEX i ON t(true)",
        "CREATE INDEX i ON t(FALSE COLLATE NOCASE)",
        "CREATE UNIQUE INDEX i ON t(true)",
        "CREATE INDEX i ON t('true')",
        "CREATE INDEX i ON t(t.a)",
        "CREATE INDEX i ON t(main.t.a + 1)",
        "CREATE INDEX i ON t(u.a)",
        "CREATE INDEX i ON t(-rowid)",
        "CREATE INDEX i ON t(abs(oid))",
        "CREATE INDEX i ON t(-id)",
        "CREATE INDEX i ON t(a) WHERE t.a > 3 AND main.t.b AND rowid > 3",
        "CREATE TABLE k(rowid); CREATE INDEX i ON k(-rowid); CREATE INDEX j ON k(rowid)",
        "CREATE TABLE k(true, UNIQUE (true)); CREATE INDEX i ON k(true); PRAGMA index_info(i)",
        "CREATE TABLE k(a, PRIMARY KEY (true))",
        "CREATE TABLE k(a, UNIQUE (\"b\"))",
        "CREATE TABLE k(a, UNIQUE ('b'))",
        "CREATE INDEX IF NOT EXISTS i ON v(a)",
        "CREATE INDEX i ON nope(a)",
        "CREATE INDEX i ON sqlite_schema(name)",
    ] {
        same(&format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE VIEW v AS SELECT * FROM t;
             INSERT INTO t VALUES (1, 2, 3), (2, 3, 4); {sql};
             INSERT INTO t VALUES (5, 2, 4); PRAGMA index_list(t); SELECT * FROM t"
        ));
    }
}

/// It was taken for the name of one under any number of them: there is none of that name, or
/// the index was one of the column and not of the text. Nor has a text another name once
/// the column has.
#[test]
fn a_string_names_a_column_of_an_index_under_one_collate_at_most() {
    for term in [
        "'a'",
        "('a' COLLATE NOCASE)",
        "'a' COLLATE NOCASE COLLATE NOCASE",
        "(('a') COLLATE NOCASE) COLLATE BINARY",
        "'z' COLLATE NOCASE",
        "('z' COLLATE NOCASE) COLLATE NOCASE",
        "a COLLATE NOCASE COLLATE BINARY",
    ] {
        for sql in [
            format!("CREATE INDEX i ON t({term}, b); PRAGMA index_xinfo(i)"),
            format!(
                "CREATE INDEX i ON t({term}, b); ALTER TABLE t RENAME a TO y;
                 SELECT sql FROM sqlite_schema; ALTER TABLE t RENAME y TO a;
                 PRAGMA index_xinfo(i); PRAGMA integrity_check"
            ),
            format!("CREATE UNIQUE INDEX i ON t({term})"),
            format!("CREATE TABLE k(a, UNIQUE ({term})); PRAGMA index_list(k)"),
        ] {
            same(&format!(
                "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), ('x', 3); {sql};
                 INSERT INTO t VALUES ('X', 3); SELECT count(*) FROM t WHERE a = 'x'"
            ));
        }
    }
}

/// The table that an UPDATE changes could be in its FROM under the same name, and RETURNING
/// knew it by its alias.
#[test]
fn the_table_that_is_written_has_one_name() {
    for sql in [
        "UPDATE t SET a = 1 FROM t",
        "UPDATE t SET a = t.a FROM t",
        "UPDATE t SET a = 1 FROM t AS t",
        "UPDATE t AS t SET a = 1 FROM t",
        "UPDATE t AS t SET a = 1 FROM t AS t",
        "UPDATE t AS k SET a = 1 FROM t AS K",
        "UPDATE t AS k SET a = 1 FROM u AS k",
        "UPDATE t AS k SET a = t.b FROM t WHERE t.id = k.id",
        "UPDATE t SET a = 1 FROM u JOIN main.T",
        "UPDATE t SET a = 1 FROM (u JOIN t)",
        "UPDATE t SET a = 1 FROM (SELECT 1) AS t",
        "WITH t AS (SELECT 7 AS z) UPDATE t SET a = z FROM t",
        "WITH t AS (SELECT 7 AS z) UPDATE t SET a = 1 FROM main.t",
        "UPDATE t AS k SET a = 9 RETURNING a, rowid, t.a, (SELECT t.b)",
        "UPDATE t AS k SET a = 9 RETURNING k.a",
        "UPDATE t SET a = 9 RETURNING main.t.a",
        "UPDATE t SET a = main.t.a + 1 RETURNING (SELECT main.u.c FROM u)",
        "DELETE FROM t AS k WHERE k.id = 1 RETURNING t.a",
        "DELETE FROM t AS k WHERE k.id = 1 RETURNING k.a",
        "INSERT INTO t AS k VALUES (7, 8, 9) RETURNING t.a",
        "INSERT INTO t AS k VALUES (1, 8, 9) ON CONFLICT DO UPDATE SET a = k.a RETURNING k.a",
        "INSERT INTO t VALUES (1, 8, 9) ON CONFLICT DO UPDATE SET a = main.t.a + 1",
        "INSERT INTO t VALUES (1, 8, 9) ON CONFLICT DO UPDATE SET a = main.excluded.a",
    ] {
        same(&format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE TABLE u(id, c);
             INSERT INTO t VALUES (1, 2, 3), (2, 3, 4); INSERT INTO u VALUES (1, 6);
             {sql}; SELECT * FROM t"
        ));
    }
}
