//! The database whose contents are forged: tables of many shapes, with all that may belong
//! to one.

use fulgurite::{Connection, Options};
use fulgurite_store::Compression;

use crate::{SimDisk, sql};

const SCHEMA: &str = "
CREATE TABLE a (id INTEGER PRIMARY KEY, i INTEGER, t TEXT, r REAL, n NUMERIC, b BLOB);
CREATE INDEX a_i ON a (i);
CREATE UNIQUE INDEX a_t ON a (t COLLATE NOCASE, i DESC);
CREATE INDEX a_r ON a (r, n);
CREATE INDEX a_b ON a (b DESC) WHERE b IS NOT NULL;
CREATE INDEX a_x ON a (i + 1, length(t));
CREATE TABLE w (k TEXT COLLATE NOCASE, m INTEGER, v, u UNIQUE, PRIMARY KEY (k, m DESC)) WITHOUT ROWID;
CREATE INDEX w_v ON w (v COLLATE RTRIM);
CREATE TABLE q (id INTEGER PRIMARY KEY AUTOINCREMENT, x);
CREATE TABLE g (a INTEGER, b TEXT, c AS (a * 2), d TEXT AS (b || 'x') STORED, UNIQUE (d));
CREATE INDEX g_c ON g (c);
CREATE TABLE p (x PRIMARY KEY, y);
CREATE TABLE c (id INTEGER PRIMARY KEY,
    p REFERENCES p (x) ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED,
    up REFERENCES c (id) ON DELETE SET NULL);
CREATE INDEX c_p ON c (p);
CREATE TABLE s (i INT, t TEXT NOT NULL, b BLOB, y ANY, r REAL CHECK (r > 0)) STRICT;
CREATE INDEX s_y ON s (y);
CREATE TABLE big (id INTEGER PRIMARY KEY, small, large, tail);
CREATE INDEX big_small ON big (small);
CREATE INDEX big_tail ON big (tail);
CREATE TABLE added (e);
CREATE TABLE log (what);
CREATE VIEW va AS SELECT i, count(*) AS n FROM a GROUP BY i;
CREATE VIEW vv AS SELECT * FROM va JOIN w ON m = n;
CREATE TRIGGER a_ai AFTER INSERT ON a BEGIN INSERT INTO log VALUES (new.i); END;
CREATE TRIGGER a_bu BEFORE UPDATE ON a WHEN new.i > 3
    BEGIN DELETE FROM log WHERE what = old.i; END;
CREATE TRIGGER va_ii INSTEAD OF INSERT ON va BEGIN INSERT INTO log VALUES (new.i); END;
PRAGMA user_version = 7;
PRAGMA application_id = 9;";

const ROWS: &str = "
WITH RECURSIVE o(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM o LIMIT 24)
INSERT INTO a SELECT n, n % 7, 'Text ' || n, n / 4.0, iif(n % 3, n, n / 8.0),
    iif(n % 4, zeroblob(n * 20), NULL) FROM o;
WITH RECURSIVE o(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM o LIMIT 12)
INSERT INTO w SELECT 'Key' || n % 5, n, 'v' || n % 4 || '  ', n * 1.5 FROM o;
INSERT INTO q (x) VALUES ('one'), ('two'), (NULL);
DELETE FROM q WHERE id = 3;
INSERT INTO g (a, b) VALUES (1, 'eins'), (2, 'zwei'), (NULL, NULL), (-4, 'minus');
INSERT INTO p VALUES (1, 'p1'), ('two', 'p2'), (3.5, 'p3'), (x'04', 'p4');
INSERT INTO c VALUES (1, 1, NULL), (2, 'two', 1), (3, 3.5, 2), (4, x'04', 3), (5, NULL, 4);
INSERT INTO s VALUES (1, 't', x'01', 1, 0.5), (2, 'u', NULL, 'any', 1.5), (3, 'v', x'', 2.5, 3);
INSERT INTO big VALUES (1, 's1', zeroblob(9000), 't1'), (2, 's2', hex(zeroblob(600)), NULL),
    (3, hex(zeroblob(3000)), zeroblob(20000), 3), (4, 4, NULL, hex(zeroblob(150)));
INSERT INTO added VALUES (1), (2);
ALTER TABLE added ADD COLUMN z DEFAULT 'none';
INSERT INTO added VALUES (3, 'z3');
CREATE INDEX added_z ON added (z);";

/// Columns of the wide table, of which rows store where some of them are.
const WIDE: usize = 40;

/// How it is opened.
pub(super) fn options() -> Options {
    Options {
        cache_bytes: 1 << 20,
        compression: Compression::None,
        ..Options::default()
    }
}

/// Makes it, closed.
pub(super) fn make() -> SimDisk {
    let disk = SimDisk::new(0);
    {
        let database = sql::open(&disk, &options()).expect("nothing fails");
        let connection = database.connect().expect("nothing fails");
        connection.execute_batch(SCHEMA).expect("it is valid");
        connection.execute_batch(ROWS).expect("they are valid");
        widen(&connection);
    }
    disk.settled_image()
}

fn widen(connection: &Connection) {
    let columns: Vec<String> = (0..WIDE).map(|at| format!("c{at}")).collect();
    let columns = columns.join(", ");
    let value = |row: usize, at: usize| match (row + at) % 4 {
        0 => format!("'{}'", "w".repeat(at * 3)),
        1 => format!("{}", at * 1000),
        2 => format!("{at}.25"),
        _ => "NULL".to_owned(),
    };
    let row = |row: usize| {
        let values: Vec<String> = (0..WIDE).map(|at| value(row, at)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..6).map(row).collect();
    let sql = format!(
        "CREATE TABLE wide ({columns}); INSERT INTO wide VALUES {};
        CREATE INDEX wide_a ON wide (c17, c3); CREATE INDEX wide_b ON wide (c39);",
        rows.join(", ")
    );
    connection.execute_batch(&sql).expect("it is valid");
}
