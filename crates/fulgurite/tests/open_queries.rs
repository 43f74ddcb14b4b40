//! Queries that are stepped now and then while their own connection and another one
//! write, commit, roll back and change the schema: whatever happens meanwhile, each
//! gives the rows that it would have given at once.
//!
//! `FULGURITE_OPEN_QUERIES_SEEDS` sets the number of seeds, `..._FIRST` the first; a
//! failure prints its seed.

use fastrand::Rng;
use fulgurite::{Connection, Database, Error, ErrorCode, Options};
use std::time::Duration;
use tempfile::TempDir;

const QUERIES: [&str; 12] = [
    "SELECT * FROM t",
    "SELECT id, word FROM t ORDER BY id DESC",
    "SELECT number, word FROM t ORDER BY number, id",
    "SELECT number FROM t WHERE number > 20 ORDER BY number",
    "SELECT word, count(*), sum(number) FROM t GROUP BY word",
    "SELECT DISTINCT number FROM t",
    "SELECT t.id, u.id FROM t JOIN u ON u.number = t.number",
    "SELECT t.id, u.word FROM t LEFT JOIN u ON u.id = t.id",
    "SELECT id FROM t WHERE number IN (SELECT number FROM u WHERE id % 3 = 0)",
    "SELECT * FROM u WHERE id BETWEEN 10 AND 200",
    "SELECT id, word FROM u UNION ALL SELECT id, word FROM t",
    "SELECT length(word), id FROM t WHERE word LIKE '%a%'",
];

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, number INT, word TEXT);
    CREATE TABLE u (id INTEGER PRIMARY KEY, number INT, word TEXT);
    CREATE INDEX t_number ON t (number)";

/// Queries open at once, at most.
const DEPTH: usize = 4;

fn word(rng: &mut Rng) -> String {
    let length = match rng.u8(0..20) {
        0 => rng.usize(0..6_000),
        _ => rng.usize(0..40),
    };
    (0..length).map(|_| rng.char('a'..='d')).collect()
}

fn statement(rng: &mut Rng) -> String {
    let table = ["t", "u"][rng.usize(..2)];
    let (id, number) = (rng.u32(0..300), rng.u32(0..40));
    match rng.u8(0..40) {
        0..10 => format!(
            "INSERT OR REPLACE INTO {table} VALUES ({id}, {number}, '{}')",
            word(rng)
        ),
        10..14 => format!(
            "INSERT INTO {table} (number, word) SELECT number + 1, word FROM {table} LIMIT {}",
            rng.u8(0..60)
        ),
        14..18 => format!("UPDATE {table} SET word = '{}' WHERE id = {id}", word(rng)),
        18..21 => format!("UPDATE {table} SET number = number + 1 WHERE number < {number}"),
        21..23 => format!("DELETE FROM {table} WHERE id = {id}"),
        23..25 => format!("DELETE FROM {table} WHERE number = {number}"),
        25 => format!("DELETE FROM {table} WHERE id > {id}"),
        26..29 => "BEGIN".to_owned(),
        29..32 => "COMMIT".to_owned(),
        32 => "ROLLBACK".to_owned(),
        33 => "SAVEPOINT s".to_owned(),
        34 => "ROLLBACK TO s".to_owned(),
        35 => "RELEASE s".to_owned(),
        36 => "PRAGMA wal_checkpoint".to_owned(),
        37 => format!("CREATE INDEX IF NOT EXISTS i{} ON u (number, word)", id % 2),
        38 => format!("DROP INDEX IF EXISTS i{}", id % 2),
        _ => "CREATE TABLE IF NOT EXISTS v (x); DROP TABLE v".to_owned(),
    }
}

/// What a statement may be told while other things are open.
fn is_expected(error: &Error) -> bool {
    let codes = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    let text = error.to_string();
    error
        .sqlite_error_code()
        .is_some_and(|code| codes.contains(&code))
        || text.contains("no transaction is active")
        || text.contains("within a transaction")
        || text.contains("no such savepoint")
}

/// Two connections to a database whose cache is small.
fn connections(folder: &TempDir, rng: &mut Rng) -> [Connection; 2] {
    let options = Options {
        cache_bytes: 1 << 20,
        checkpoint_bytes: 128 << 10,
        ..Options::default()
    };
    let path = folder.path().join("open.db");
    let database = Database::open_with_options(path, options).expect("a database");
    let connections = [(); 2].map(|()| database.connect().expect("a connection"));
    for connection in &connections {
        connection.busy_timeout(Duration::ZERO).expect("a timeout");
    }
    connections[0].execute_batch(SCHEMA).expect("a schema");
    for id in 0..200 {
        for table in ["t", "u"] {
            let insert = format!("INSERT INTO {table} VALUES (?, ?, ?)");
            let row = (id, rng.u32(0..40), word(rng));
            connections[0].execute(&insert, row).expect("an insert");
        }
    }
    connections
}

fn all_rows(connection: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let mut query = connection.prepare(sql)?;
    let columns = query.column_count();
    let mut rows = query.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(text_of(row, columns));
    }
    Ok(all)
}

fn text_of(row: &fulgurite::Row<'_>, columns: usize) -> String {
    let values = (0..columns).map(|at| format!("{:?}", row.get_ref(at).expect("a value")));
    values.collect::<Vec<_>>().join("|")
}

/// Opens a query, lets other things happen between its steps, and compares.
fn step_through(connections: &[Connection; 2], rng: &mut Rng, depth: usize) {
    let connection = &connections[rng.usize(..2)];
    let sql = QUERIES[rng.usize(..QUERIES.len())];
    let expected = match all_rows(connection, sql) {
        Ok(expected) => expected,
        Err(error) if is_expected(&error) => return,
        Err(error) => panic!("{sql}: {error}"),
    };
    let mut query = connection.prepare(sql).expect("a query");
    let columns = query.column_count();
    let mut rows = query.query([]).expect("rows");
    let mut seen = Vec::new();
    let end = loop {
        match rows.next() {
            Ok(Some(row)) => seen.push(text_of(row, columns)),
            other => break other.map(|_| ()),
        }
        if rng.u8(0..40) == 0 {
            happen(connections, rng, depth + 1);
        }
    };
    match end {
        Ok(()) => assert!(seen == expected, "{sql}: {} rows", seen.len()),
        Err(error) => panic!("{sql} after {} rows: {error}", seen.len()),
    }
}

fn happen(connections: &[Connection; 2], rng: &mut Rng, depth: usize) {
    for _ in 0..rng.usize(1..8) {
        if depth < DEPTH && rng.u8(0..6) == 0 {
            step_through(connections, rng, depth);
            continue;
        }
        let sql = statement(rng);
        if let Err(error) = connections[rng.usize(..2)].execute_batch(&sql) {
            assert!(is_expected(&error), "{sql}: {error}");
        }
    }
}

#[test]
fn open_queries_keep_their_rows() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("FULGURITE_OPEN_QUERIES_FIRST", 0);
    for seed in first..first + number("FULGURITE_OPEN_QUERIES_SEEDS", 4) {
        eprintln!("seed {seed}");
        let folder = tempfile::tempdir().expect("a folder");
        let mut rng = Rng::with_seed(seed);
        let connections = connections(&folder, &mut rng);
        for _ in 0..30 {
            step_through(&connections, &mut rng, 0);
            happen(&connections, &mut rng, 0);
        }
        let problems = connections[0].database().integrity_check();
        assert_eq!(problems.expect("a check"), Vec::<String>::new());
    }
}

/// CREATE TABLE AS, and VACUUM INTO, that were run and are kept held the states that their
/// subqueries had read, as if these were still being stepped.
#[test]
fn statements_that_have_run_keep_no_state() {
    let folder = TempDir::new().expect("a temporary folder");
    let database = Database::open(folder.path().join("a.db")).expect("opens");
    let connect = || database.connect().expect("connects");
    let (a, b) = (connect(), connect());
    a.execute_batch(SCHEMA).expect("the tables");
    a.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO u SELECT i, i, 'word' FROM n;
         INSERT INTO t SELECT * FROM u WHERE id < 10",
    )
    .expect("rows");
    let copy = folder.path().join("copy");
    let copy = format!(
        "VACUUM INTO '{}' || (SELECT number FROM u WHERE random() <> 1)",
        copy.display()
    );
    for sql in [
        "CREATE TABLE v AS
         SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.number < t.number + random() % 2)",
        &copy,
    ] {
        let mut kept = a.prepare(sql).expect(sql);
        kept.execute([]).expect(sql);
        b.execute_batch("UPDATE u SET number = number + 1")
            .expect("changes");
        database.checkpoint().expect("is made");
        assert_eq!(database.stats().kept_nodes, 0, "{sql}");
    }
}

/// A statement whose cursors could not all be opened kept those that were, and the state that
/// these pin, until it ran again or was dropped.
#[test]
fn statements_that_cannot_begin_hold_nothing() {
    let database = Database::in_memory().expect("opens");
    let connection = database.connect().expect("connects");
    connection
        .execute_batch(
            "CREATE TABLE t (a); CREATE TABLE u (b); CREATE TABLE log (c);
             INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (1);
             CREATE TRIGGER tu AFTER INSERT ON t BEGIN
                INSERT INTO log SELECT x.b FROM u x, u y WHERE x.b > y.b + random() % 1; END;
             CREATE TRIGGER ts AFTER INSERT ON log
                WHEN (SELECT count(*) FROM u x, u y WHERE x.b > y.b + random() % 1) BEGIN
                SELECT 1; END;",
        )
        .expect("the tables");
    let texts = [
        "SELECT count(*) FROM t JOIN u ON u.b < t.a + random() % 1",
        "SELECT (SELECT count(*) FROM u WHERE b < a + random() % 1), a FROM t UNION ALL SELECT b, b FROM u",
        "UPDATE t SET a = (SELECT count(*) FROM u WHERE b < a + random() % 1) WHERE a > random() % 1",
        "INSERT INTO t VALUES ((SELECT sum(a) FROM t, u WHERE b < a + random() % 1))",
        "DELETE FROM log WHERE c IN (SELECT sum(a) FROM t, u WHERE b < a + random() % 1)",
    ];
    let statements = texts.map(|sql| connection.prepare(sql).expect(sql));
    let family = database
        .store()
        .create_family("f", fulgurite_store::KeyKind::Int)
        .expect("a tree");
    let mut txn = database.store().txn();
    txn.begin_read().expect("begins");
    // All snapshots that a store keeps are taken, but for a few.
    let mut cursors: Vec<_> = std::iter::from_fn(|| txn.cursor(&family).ok()).collect();
    let mut refused = 0;
    for (sql, mut statement) in texts.into_iter().zip(statements) {
        for free in 1..8 {
            cursors.truncate(cursors.len() - free);
            let ran = statement.query([]).and_then(|mut rows| {
                while rows.next()?.is_some() {}
                Ok(())
            });
            if let Err(error) = ran {
                assert_eq!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy),
                    "{sql}"
                );
                refused += 1;
            }
            let before = cursors.len();
            cursors.extend(std::iter::from_fn(|| txn.cursor(&family).ok()));
            assert_eq!(cursors.len() - before, free, "{sql}");
        }
    }
    assert!(refused >= 10, "{refused} were refused");
}

/// A statement that is leaked keeps its session for good. With it a dropped connection kept
/// its transaction, and with that everybody else from writing until the process ended.
#[test]
fn a_leaked_statement_keeps_no_transaction() {
    let database = Database::in_memory().expect("a database");
    let other = database.connect().expect("a connection");
    other
        .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        .expect("a table");
    other.busy_timeout(Duration::ZERO).expect("sets");
    for (at, begin) in ["BEGIN IMMEDIATE", "BEGIN"].into_iter().enumerate() {
        let connection = database.connect().expect("a connection");
        let insert = format!("{begin}; INSERT INTO t VALUES (-1)");
        connection.execute_batch(&insert).expect("inserts");
        std::mem::forget(connection.prepare("SELECT * FROM t").expect("compiles"));
        drop(connection);
        let inserted = other.execute("INSERT INTO t VALUES (?1)", [at]);
        assert_eq!(inserted, Ok(1), "{begin}");
    }
    let least = other.query_row("SELECT min(id) FROM t", [], |row| row.get(0));
    assert_eq!(least, Ok(0));
}
