//! Collations of the program, beside rusqlite: the same program is run with either crate, and
//! what it writes down must be the same.

use std::cmp::Ordering;

use fulgurite::{Connection, ffi};

#[macro_use]
#[path = "common/run_logged.rs"]
mod run_logged;

/// The programs, over the crate `$db`.
macro_rules! programs {
    ($module:ident, $db:ident) => {
        mod $module {
            use std::cmp::Ordering;

            use $db::{Connection, Error, Result};

            /// Digits by their value, all else by its letters in any case: 'A2' before 'a10'.
            fn human(a: &str, b: &str) -> Ordering {
                let key = |text: &str| {
                    let (mut key, mut number) = (Vec::new(), None);
                    for c in text.chars().flat_map(char::to_lowercase) {
                        match c.to_digit(10) {
                            Some(digit) => {
                                number = Some(number.unwrap_or(0u64) * 10 + u64::from(digit));
                            }
                            None => {
                                key.extend(number.take());
                                key.push(1 << 32 | u64::from(c));
                            }
                        }
                    }
                    key.extend(number);
                    key
                };
                key(a).cmp(&key(b))
            }

            run_logged!($db);

            const TABLES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE human, b);
                INSERT INTO t (a, b) VALUES ('a10', 1), ('A2', 2), ('a2', 3), ('b', 4), (NULL, 5),
                    ('A10', 6), ('a1', 7), (x'00', 8), (7, 9), ('', 10), ('B', 11), ('a2', 12);
                CREATE TABLE u (c TEXT, d); CREATE INDEX uc ON u (c);
                INSERT INTO u VALUES ('a2', 1), ('A10', 2), ('B', 3), (NULL, 4), ('z', 5)";

            pub fn statements(statements: &[&str]) -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                db.create_collation("human", human).unwrap();
                db.create_collation("backwards", |a, b| b.cmp(a)).unwrap();
                db.execute_batch(TABLES).unwrap();
                for sql in statements {
                    run(&mut log, &db, sql);
                }
                log
            }

            /// Many texts: what needs a table of them spills, with hardly any memory.
            pub fn many(statements: &[&str]) -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                db.create_collation("human", human).unwrap();
                db.execute_batch(
                    "CREATE TABLE t (a COLLATE human, n); WITH RECURSIVE c (i) AS
                        (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 6000)
                     INSERT INTO t SELECT substr('aAbB', i % 4 + 1, 1) || (i * 7919 % 900)
                        || printf('%.*c', 40, 'x'), i FROM c",
                )
                .unwrap();
                for sql in statements {
                    run(&mut log, &db, sql);
                }
                log
            }

            pub fn coming_and_going() -> Log {
                let (db, mut log) = (Connection::open_in_memory().unwrap(), Log::new());
                let log = &mut log;
                run(log, &db, "SELECT 'a' < 'b' COLLATE nope");
                run(log, &db, "CREATE TABLE n (a COLLATE nope)");
                run(log, &db, "CREATE TABLE n (a, UNIQUE (a COLLATE nope))");
                run(log, &db, "CREATE TABLE n (a)");
                run(log, &db, "CREATE INDEX i ON n (a COLLATE nope)");
                db.create_collation("human", human).unwrap();
                db.execute_batch(TABLES).unwrap();
                let first = "SELECT a FROM t WHERE a LIKE 'a%' ORDER BY a COLLATE human LIMIT 1";
                run(log, &db, first);
                {
                    let mut statement = db.prepare("SELECT 1 UNION ALL SELECT 2").unwrap();
                    let mut rows = statement.query([]).unwrap();
                    rows.next().unwrap();
                    let mut note = |outcome: Result<()>| {
                        let text = outcome.map_or_else(|e| e.to_string(), |()| "done".to_owned());
                        log.push(text);
                    };
                    note(db.create_collation("other", human));
                    note(db.create_collation("human", human));
                    note(db.remove_collation("human"));
                    note(db.remove_collation("nope"));
                }
                db.create_collation("human", |a, b| human(b, a)).unwrap();
                run(log, &db, first);
                db.remove_collation("human").unwrap();
                run(log, &db, first);
                for sql in [
                    "SELECT a FROM t WHERE a = 'b'",
                    "SELECT a FROM t ORDER BY a",
                    "SELECT DISTINCT a FROM t",
                    "SELECT max(a) FROM t",
                    "SELECT id, a FROM t WHERE b < 3",
                    "INSERT INTO t (a) VALUES ('x')",
                    "SELECT count(*) FROM t",
                ] {
                    run(log, &db, sql);
                }
                fn needed(db: &Connection, name: &str) -> Result<()> {
                    match name {
                        "nope" => Err(Error::QueryReturnedNoRows),
                        _ => db.create_collation(name, human),
                    }
                }
                db.collation_needed(needed).unwrap();
                run(log, &db, "SELECT a FROM t WHERE a = 'b'");
                run(log, &db, "SELECT 'a10' < 'a2' COLLATE late, 'a10' < 'a2'");
                run(log, &db, "SELECT 'a' < 'b' COLLATE nope");
                std::mem::take(log)
            }
        }
    };
}

programs!(ours, fulgurite);
programs!(theirs, rusqlite);

#[track_caller]
fn same(ours: &[String], theirs: &[String]) {
    let pairs = ours.iter().zip(theirs);
    let other: Vec<_> = pairs.filter(|(ours, theirs)| ours != theirs).collect();
    assert!(other.is_empty(), "{other:#?}");
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn in_all_that_compares() {
    let statements = [
        "SELECT id FROM t WHERE a = 'A2'",
        "SELECT 'a10' < 'A9' COLLATE HUMAN, 'a10' < 'A11' COLLATE Human",
        "PRAGMA integrity_check",
        "SELECT id FROM t WHERE a <> 'A2'",
        "SELECT id FROM t WHERE a < 'a10' ORDER BY id",
        "SELECT id FROM t WHERE a BETWEEN 'a2' AND 'a9'",
        "SELECT id FROM t WHERE a IN ('A2', 'B')",
        "SELECT id FROM t WHERE a IS 'b' OR a IS NOT 'a1' ORDER BY id",
        "SELECT id FROM t WHERE a IN (SELECT c FROM u)",
        "SELECT id FROM t WHERE a NOT IN (SELECT c FROM u WHERE c NOT NULL)",
        "SELECT c FROM u WHERE c IN (SELECT a FROM t) ORDER BY d",
        "SELECT c FROM u WHERE c COLLATE human = 'A2'",
        "SELECT c FROM u WHERE 'b' = c COLLATE human",
        "SELECT id, CASE a WHEN 'A10' THEN 1 WHEN 'B' THEN 2 END FROM t",
        "SELECT min(a), max(a) FROM t WHERE typeof(a) = 'text'",
        "SELECT min(a, 'A2'), max('A2', a), nullif(a, 'A2') FROM t WHERE id < 4",
        "SELECT id FROM t ORDER BY a, id",
        "SELECT id FROM t ORDER BY a DESC, id",
        "SELECT id FROM t ORDER BY a DESC NULLS FIRST, id LIMIT 4",
        "SELECT id FROM t ORDER BY a NULLS LAST, id DESC LIMIT 4 OFFSET 3",
        "SELECT id FROM t ORDER BY b % 3, a COLLATE backwards, id",
        "SELECT lower(a), count(*), sum(b) FROM t GROUP BY a ORDER BY a",
        "SELECT count(*) FROM t GROUP BY a HAVING a > 'A2' ORDER BY a",
        "SELECT count(*), sum(b) FROM t GROUP BY a, b % 2 ORDER BY sum(b)",
        "SELECT count(DISTINCT a), count(DISTINCT a COLLATE BINARY) FROM t",
        "SELECT b % 2, count(DISTINCT a), group_concat(DISTINCT lower(a)) IS NULL FROM t GROUP BY 1",
        "SELECT group_concat(lower(a), ' ' ORDER BY a, id) FROM t",
        "SELECT count(*) FROM (SELECT DISTINCT a FROM t)",
        "SELECT DISTINCT lower(a) COLLATE human FROM t ORDER BY 1",
        "SELECT count(*) FROM (SELECT a FROM t UNION SELECT c FROM u)",
        "SELECT lower(a) FROM (SELECT a FROM t INTERSECT SELECT c FROM u) ORDER BY 1",
        "SELECT lower(a) FROM (SELECT a FROM t EXCEPT SELECT c FROM u) ORDER BY 1",
        "SELECT lower(c) FROM (SELECT c FROM u EXCEPT SELECT a FROM t) ORDER BY 1",
        "SELECT id, d FROM t JOIN u ON a = c ORDER BY id, d",
        "SELECT id, d FROM t LEFT JOIN u ON a = c ORDER BY id, d",
        "SELECT id, d FROM t FULL JOIN u ON a = c ORDER BY id, d",
        "SELECT id, d FROM u JOIN t ON c COLLATE human = a ORDER BY id, d",
        "SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.a AND x.id < y.id ORDER BY 1, 2",
        "SELECT x.id, y.id FROM t x JOIN t y USING (a) WHERE x.id < y.id ORDER BY 1, 2",
        "SELECT d, (SELECT count(*) FROM t WHERE a = c) FROM u ORDER BY d",
        "SELECT id, count(*) OVER (PARTITION BY a) FROM t ORDER BY id",
        "SELECT id, rank() OVER (ORDER BY a), dense_rank() OVER (ORDER BY a DESC) FROM t ORDER BY id",
        "SELECT id, max(a) OVER (ORDER BY id ROWS 2 PRECEDING) IS NULL FROM t ORDER BY id",
        "WITH RECURSIVE r (x) AS (SELECT 'a1' COLLATE human UNION SELECT upper(x) COLLATE human FROM r)
            SELECT count(*) FROM r",
        "WITH RECURSIVE r (x, n) AS (SELECT 'k10', 0 UNION ALL SELECT 'k' || (10 - n), n + 1 FROM r
            WHERE n < 9 ORDER BY 1 COLLATE human) SELECT group_concat(x) FROM r",
        "CREATE VIEW v AS SELECT a FROM t",
        "SELECT count(*) FROM v WHERE a = 'A2'",
        "CREATE TABLE k (a COLLATE human CHECK (a > 'a3'))",
        "INSERT INTO k VALUES ('A10')",
        "INSERT INTO k VALUES ('A2')",
        "UPDATE k SET a = 'a1'",
        "UPDATE t SET b = 0 WHERE a = 'A2'",
        "DELETE FROM t WHERE a > 'a10' AND typeof(a) = 'text'",
        "SELECT id, b FROM t ORDER BY id",
        "ALTER TABLE t ADD COLUMN e COLLATE nope",
        "ALTER TABLE t ADD COLUMN e COLLATE backwards",
        "ALTER TABLE t RENAME COLUMN a TO aa",
        "SELECT id FROM t ORDER BY aa, id",
    ];
    same(
        &ours::statements(&statements),
        &theirs::statements(&statements),
    );
}

#[test]
fn many_texts() {
    let statements = [
        "SELECT count(DISTINCT a), count(*) FROM t",
        "SELECT count(*), sum(n), sum(n * k) FROM (SELECT count(*) AS n, min(n) AS k FROM t GROUP BY a)",
        "SELECT count(*) FROM (SELECT DISTINCT a FROM t)",
        "SELECT count(*) FROM (SELECT a FROM t WHERE n < 3000 EXCEPT SELECT a FROM t WHERE n > 5000)",
        "SELECT group_concat(n) FROM (SELECT n FROM t ORDER BY a, n)",
        "SELECT group_concat(n) FROM (SELECT n FROM t ORDER BY a DESC, n DESC LIMIT 500)",
        "SELECT sum(r * n) FROM (SELECT n, rank() OVER (ORDER BY a) AS r FROM t)",
    ];
    same(&ours::many(&statements), &theirs::many(&statements));
}

#[test]
fn coming_and_going() {
    same(&ours::coming_and_going(), &theirs::coming_and_going());
}

/// Stored keys compare with memcmp. SQLite has such indexes, which are out of order once
/// the collation is another one.
#[test]
fn no_index_by_one() {
    let db = Connection::open_in_memory().expect("opens");
    db.create_collation("mine", str::cmp).expect("registers");
    db.execute_batch("CREATE TABLE t (a COLLATE mine, b)")
        .expect("a table");
    for sql in [
        "CREATE INDEX i ON t (a)",
        "CREATE INDEX i ON t (b COLLATE mine)",
        "CREATE INDEX i ON t (lower(b) COLLATE mine)",
        "CREATE TABLE u (a UNIQUE COLLATE mine)",
        "CREATE TABLE u (a TEXT COLLATE mine PRIMARY KEY)",
        "CREATE TABLE u (a, UNIQUE (a COLLATE mine))",
    ] {
        let error = db.execute_batch(sql).expect_err(sql);
        let message = "an index by the collation mine is not supported";
        assert_eq!(error.message(), message, "{sql}");
        assert!(error.hint().is_some_and(|hint| hint.contains("BINARY")));
    }
    db.execute_batch(
        "CREATE INDEX i ON t (a COLLATE NOCASE); CREATE TABLE u (a INTEGER PRIMARY KEY COLLATE mine)",
    )
    .expect("other collations");
    for name in ["binary", "NoCase", "RTRIM"] {
        let error = db.create_collation(name, str::cmp).expect_err("built in");
        assert_eq!(error.sqlite_error_code(), Some(ffi::ErrorCode::ApiMisuse));
    }
}

/// What a collation does wrong is an error of the statement, which leaves nothing behind.
#[test]
fn panics_and_no_order() {
    let db = Connection::open_in_memory().expect("opens");
    db.create_collation("burst", |a, b| {
        assert!(a != "500" && b != "500", "as it was asked for");
        a.cmp(b)
    })
    .expect("registers");
    let turn = std::cell::Cell::new(0u32);
    db.create_collation("random", move |_, _| {
        turn.set(
            turn.get()
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223),
        );
        [Ordering::Less, Ordering::Equal, Ordering::Greater][(turn.get() >> 16) as usize % 3]
    })
    .expect("registers");
    db.execute_batch(
        "CREATE TABLE t (a TEXT COLLATE burst, CHECK (a <> 'x')); CREATE TABLE s (n TEXT);
         WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
         INSERT INTO s SELECT i FROM c",
    )
    .expect("tables");
    for sql in [
        "SELECT n FROM s ORDER BY n COLLATE burst",
        "SELECT DISTINCT n COLLATE burst FROM s",
        "SELECT count(*) FROM s WHERE n > '1' COLLATE burst",
        "INSERT INTO t VALUES ('500')",
        "INSERT INTO t SELECT n FROM s",
        "BEGIN; INSERT INTO t VALUES ('1'); INSERT INTO t VALUES ('500')",
        "INSERT INTO t SELECT n FROM s",
    ] {
        let error = db.execute_batch(sql).expect_err(sql);
        assert_eq!(error.to_string(), "unwinding panic", "{sql}");
    }
    db.execute_batch("COMMIT").expect("commits");
    let rows = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(rows("SELECT count(*) FROM t"), Ok(1));
    // It ends, with some order or an error.
    for sql in [
        "SELECT count(*) FROM (SELECT n FROM s ORDER BY n COLLATE random LIMIT 900)",
        "SELECT count(DISTINCT n COLLATE random) FROM s",
    ] {
        let _ = rows(sql);
    }
    assert_eq!(rows("SELECT count(*) FROM s"), Ok(1000));
}

/// A function that a query calls may run statements of another connection, with collations
/// of its own. These once took what had gone wrong in the query's, which then succeeded, and
/// where they were compiled anew in their midst the query lost its collations.
#[test]
fn statements_that_a_query_calls_have_their_own() {
    let (db, beside) = (Connection::open_in_memory(), Connection::open_in_memory());
    let (db, beside) = (db.expect("opens"), beside.expect("opens"));
    let table = "CREATE TABLE t (a); INSERT INTO t VALUES ('x'), ('y')";
    db.execute_batch(table).expect("a table");
    beside.execute_batch(table).expect("a table");
    beside
        .create_collation("own", |a, b| a.cmp(b))
        .expect("a collation");
    let flags = fulgurite::functions::FunctionFlags::SQLITE_UTF8;
    let ask = move |_: &fulgurite::functions::Context<'_>| {
        beside.execute_batch("DROP VIEW IF EXISTS v; CREATE VIEW v AS SELECT a FROM t")?;
        let mut asks = beside.prepare("SELECT count(*) FROM v WHERE a < 'y'")?;
        let own = "DROP VIEW v; CREATE VIEW v AS SELECT a COLLATE own AS a FROM t";
        beside.execute_batch(own)?;
        asks.query_row([], |row| row.get::<_, i64>(0))
    };
    db.create_scalar_function("ask", 0, flags, ask)
        .expect("a function");

    db.create_collation("mine", |a, b| a.cmp(b))
        .expect("a collation");
    let both = |sql: &str| db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    let counts = "SELECT sum(ask()), sum(a = 'x' COLLATE mine) FROM t WHERE a >= 'x' COLLATE mine";
    assert_eq!(both(counts), Ok((2, 1)));
    let after = "SELECT ask(), (SELECT max(a COLLATE mine) = 'y' FROM t)";
    assert_eq!(both(after), Ok((1, 1)));

    let panics = |_: &str, _: &str| -> Ordering { panic!("a fault of the program") };
    db.create_collation("mine", panics).expect("a collation");
    let failed = "SELECT a = 'x' COLLATE mine, ask() FROM t";
    let error = both(failed).expect_err("the collation panicked");
    assert_eq!(error.to_string(), "unwinding panic");
}
