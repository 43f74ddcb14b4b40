//! Texts and blobs beyond an eighth of a page as keys, beside SQLite.

mod support;

use support::same;

/// Distinct texts and blobs of many lengths, most of which share hundreds of bytes.
fn fill(table: &str) -> String {
    let row = |i: usize| {
        format!(
            "('{}{:04}{}')",
            "ab".repeat(i * i % 23 * 105),
            i * 7919 % 61,
            &"tail of it"[..i % 11]
        )
    };
    let rows: Vec<String> = (1..=60).map(row).collect();
    format!(
        "INSERT INTO {table}(v) VALUES {};
         INSERT INTO {table}(v) SELECT CAST(v AS BLOB) FROM {table} WHERE length(v) % 3 = 0;",
        rows.join(", ")
    )
}

#[test]
fn unique_and_plain_indexes() {
    for index in ["", "UNIQUE ", "UNIQUE INDEX"] {
        let (column, made) = match index {
            "UNIQUE INDEX" => ("", "CREATE UNIQUE INDEX x ON t(v);"),
            "" => ("", "CREATE INDEX x ON t(v);"),
            unique => (unique, ""),
        };
        for order in ["", " DESC"] {
            same(&format!(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, v {column}); {made} {}
                 SELECT id FROM t ORDER BY v{order};
                 SELECT id FROM t WHERE v > (SELECT v FROM t WHERE id = 17) ORDER BY v{order};
                 SELECT id FROM t WHERE v BETWEEN (SELECT v FROM t WHERE id = 40)
                   AND (SELECT v FROM t WHERE id = 9) ORDER BY v{order};
                 SELECT a.id FROM t a JOIN t b ON a.v = b.v ORDER BY a.id;
                 SELECT count(*) FROM t WHERE v LIKE 'abab%';
                 SELECT count(*) FROM t WHERE v GLOB 'abababab*5*';
                 INSERT INTO t(v) SELECT v FROM t WHERE id = 33;
                 INSERT OR IGNORE INTO t(v) SELECT v || 'x' FROM t;
                 DELETE FROM t WHERE id % 3 = 0;
                 UPDATE t SET v = v || 'y' WHERE id % 4 = 1;
                 SELECT id, length(v) FROM t ORDER BY v, id;
                 DELETE FROM t;
                 SELECT count(*) FROM t",
                fill("t")
            ));
        }
    }
}

#[test]
fn indexes_made_over_rows_that_are_there() {
    same(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v); {}
         CREATE INDEX x ON t(v DESC, id); CREATE UNIQUE INDEX y ON t(v COLLATE NOCASE, id);
         SELECT id FROM t ORDER BY v DESC, id;
         SELECT id FROM t ORDER BY v COLLATE NOCASE, id;
         DROP INDEX x; SELECT id FROM t WHERE v = (SELECT v FROM t WHERE id = 50)",
        fill("t")
    ));
}

#[test]
fn primary_keys() {
    same(&format!(
        "CREATE TABLE t(v TEXT PRIMARY KEY NOT NULL, n INT DEFAULT 0); {}
             SELECT length(v), substr(v, -14) FROM t ORDER BY v;
             INSERT INTO t(v, n) SELECT v, 1 FROM t WHERE length(v) > 2000;
             INSERT OR REPLACE INTO t(v, n) SELECT v, 2 FROM t WHERE length(v) > 2000;
             UPDATE t SET n = n + 1 WHERE v >= 'abab';
             UPDATE t SET v = v || 'z' WHERE length(v) > 1000;
             SELECT length(v), n FROM t ORDER BY v DESC;
             INSERT INTO t(v, n) SELECT v, 9 FROM t WHERE true
               ON CONFLICT (v) DO UPDATE SET n = n + excluded.n;
             SELECT sum(n), count(*) FROM t",
        fill("t").replace("CAST(v AS BLOB)", "v || '+'")
    ));
}

#[test]
fn groups_sorts_and_sets() {
    same(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v); {} INSERT INTO t(v) SELECT v FROM t;
         SELECT length(v), count(*), min(id) FROM t GROUP BY v ORDER BY v;
         SELECT count(*) FROM (SELECT DISTINCT v FROM t);
         SELECT length(v) FROM t EXCEPT SELECT length(v) FROM t WHERE id < 40;
         SELECT id FROM t WHERE v IN (SELECT v FROM t WHERE id BETWEEN 5 AND 9) ORDER BY id;
         SELECT length(max(v)), length(min(v)) FROM t",
        fill("t")
    ));
}
