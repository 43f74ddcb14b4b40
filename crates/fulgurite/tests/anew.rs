//! Statements that change so much of an index that it is written anew: beside readers,
//! beside transactions that overlap, and stopped in their midst.

use fulgurite::{Connection, Database, ErrorCode};

const ROWS: i64 = 12_000;

fn filled() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::open(folder.path().join("a.db")).expect("opens");
    let db = database.connect().expect("connects");
    db.execute_batch(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, word TEXT);
         CREATE INDEX t_n ON t (n);
         CREATE UNIQUE INDEX t_word ON t (word);
         WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {ROWS})
             INSERT INTO t SELECT x, x * 7919 % {ROWS}, 'word ' || (x * 31 % {ROWS}) FROM c"
    ))
    .expect("a table");
    (folder, database)
}

/// Sums by either index, which the table confirms.
fn sums(db: &Connection) -> (i64, i64, i64) {
    let ask = |sql: &str| {
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .expect(sql)
    };
    let by = |index: &str, condition: &str| {
        ask(&format!(
            "SELECT count(*), sum(n), sum(length(word)) FROM t {index} WHERE {condition}"
        ))
    };
    let table = by("NOT INDEXED", "1");
    assert_eq!(by("INDEXED BY t_n", "n > -1000000"), table);
    assert_eq!(by("INDEXED BY t_word", "word > ''"), table);
    let found = db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(found.expect("checks"), "ok");
    table
}

const UPDATE: &str = "UPDATE t SET n = n + 1, word = 'longer ' || word";

#[test]
fn who_reads_finds_the_index_as_it_was() {
    let (_folder, database) = filled();
    let (reader, writer) = (database.connect(), database.connect());
    let (reader, writer) = (reader.expect("connects"), writer.expect("connects"));
    let before = sums(&reader);
    reader.execute_batch("BEGIN").expect("begins");
    let mut statement = reader
        .prepare("SELECT n FROM t INDEXED BY t_n WHERE n >= 0 ORDER BY n")
        .expect("prepares");
    let mut rows = statement.query([]).expect("begins");
    assert!(rows.next().expect("reads").is_some());
    writer.execute_batch(UPDATE).expect("updates");
    let mut left = 1;
    while rows.next().expect("reads").is_some() {
        left += 1;
    }
    assert_eq!(left, ROWS);
    drop(rows);
    assert_eq!(sums(&reader), before);
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(
        sums(&reader),
        (before.0, before.1 + ROWS, before.2 + 7 * ROWS)
    );
}

/// Who wrote other rows before, and commits after it: nothing of either is lost.
#[test]
fn transactions_that_overlap_keep_what_they_wrote() {
    let (_folder, database) = filled();
    let (one, other) = (database.connect(), database.connect());
    let (one, other) = (one.expect("connects"), other.expect("connects"));
    let before = sums(&one);
    one.execute_batch("BEGIN; INSERT INTO t VALUES (100000, 5, 'mine')")
        .expect("inserts");
    other.execute_batch(UPDATE).expect("updates");
    one.execute_batch("COMMIT").expect("commits");
    let after = (before.0 + 1, before.1 + ROWS + 5, before.2 + 7 * ROWS + 4);
    assert_eq!(sums(&one), after);

    one.execute_batch("BEGIN; UPDATE t SET n = 0 WHERE id = 7")
        .expect("updates");
    other.execute_batch(UPDATE).expect("updates");
    let refused = one.execute_batch("COMMIT").expect_err("both changed a row");
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    let twice = (after.0, after.1 + ROWS + 1, after.2 + 7 * (ROWS + 1));
    assert_eq!(sums(&other), twice);
}

/// At whichever place it is stopped, all is as before.
#[test]
fn who_is_stopped_leaves_the_index_as_it_was() {
    let (_folder, database) = filled();
    let mut db = database.connect().expect("connects");
    let before = sums(&db);
    for stop in 1.. {
        let mut left = stop;
        let handler = move || {
            left -= 1;
            left == 0
        };
        db.progress_handler(1, Some(handler)).expect("is set");
        let outcome = db.execute_batch(UPDATE);
        db.progress_handler(0, None::<fn() -> bool>)
            .expect("is taken");
        if outcome.is_ok() {
            assert!(stop > 5, "it was asked {stop} times");
            break;
        }
        let error = outcome.expect_err("is stopped");
        assert_eq!(
            error.sqlite_error_code(),
            Some(ErrorCode::OperationInterrupted)
        );
        assert_eq!(sums(&db), before, "stopped at {stop}");
    }
    assert_eq!(sums(&db), (before.0, before.1 + ROWS, before.2 + 7 * ROWS));
}

/// The last row takes a word that another one has: that is found when the index is written,
/// and nothing is changed.
#[test]
fn a_duplicate_undoes_all() {
    let (_folder, database) = filled();
    let db = database.connect().expect("connects");
    let before = sums(&db);
    let refused = db
        .execute_batch(&format!(
            "UPDATE t SET n = -n, word = CASE id WHEN {ROWS} THEN 'new 1' ELSE 'new ' || id END"
        ))
        .expect_err("two have the same word");
    assert_eq!(
        refused.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation)
    );
    assert_eq!(sums(&db), before);
}
