// Handles of blobs, and what connections and statements tell of themselves, written once.
// Included into modules in which `db` is either crate.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};

use db::blob::{Blob, ZeroBlob};
use db::types::{ToSql, ToSqlOutput};
use db::{Connection, Error, MAIN_DB, PrepFlags, Result, TransactionState};

macro_rules! say {
    ($out:expr, $($arg:tt)*) => {
        writeln!($out, $($arg)*).expect("writing to a String")
    };
}

pub fn run() -> String {
    let mut out = String::new();
    for (name, chapter) in [
        ("in parts", parts as fn(&mut String) -> Result<()>),
        ("what cannot be opened", refused),
        ("handles that expire", expiring),
        ("transactions", transactions),
        ("zeros", zeros),
        ("of themselves", details),
    ] {
        say!(out, "== {name}");
        if let Err(e) = chapter(&mut out) {
            say!(out, "ended with {e:?}");
        }
    }
    out
}

fn said<T>(out: &mut String, what: &str, outcome: Result<T>) {
    match outcome {
        Ok(_) => say!(out, "{what}: ok"),
        Err(Error::SqliteFailure(code, message)) => {
            say!(out, "{what}: {} {message:?}", code.extended_code);
        }
        Err(e) => say!(out, "{what}: {e:?}"),
    }
}

fn io_said<T: std::fmt::Debug>(out: &mut String, what: &str, outcome: std::io::Result<T>) {
    match outcome {
        Ok(value) => say!(out, "{what}: {value:?}"),
        Err(e) => say!(out, "{what}: {:?} {e}", e.kind()),
    }
}

fn database() -> Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB, word TEXT DEFAULT 'w', n, r REAL);
         INSERT INTO t VALUES (1, zeroblob(10), 'a text', 5, 0.5), (2, x'', '', NULL, 2), (7, x'010203', 'ü', 'x', 1);
         CREATE TABLE logged (what); CREATE TRIGGER tr AFTER UPDATE ON t BEGIN INSERT INTO logged VALUES (old.id); END;",
    )?;
    Ok(db)
}

fn all(blob: &Blob<'_>) -> String {
    let mut bytes = vec![0; blob.len()];
    let read = blob.read_at(&mut bytes, 0);
    format!("{read:?} {bytes:?}")
}

fn parts(out: &mut String) -> Result<()> {
    let db = database()?;
    let mut blob = db.blob_open(MAIN_DB, c"t", c"body", 1, false)?;
    say!(out, "{} {} {}", blob.len(), blob.size(), blob.is_empty());
    io_said(out, "write", blob.write(b"Clob"));
    io_said(out, "write over", blob.write(b"567890xxxxxx"));
    io_said(out, "write at the end", blob.write(b"5"));
    io_said(out, "flush", blob.flush());
    for pos in [
        SeekFrom::Start(2), SeekFrom::Current(3), SeekFrom::End(-6), SeekFrom::End(0), SeekFrom::Current(1),
        SeekFrom::Start(11), SeekFrom::Current(-20), SeekFrom::End(-11), SeekFrom::Start(0),
    ] {
        io_said(out, "seek", blob.seek(pos));
        let mut bytes = [0; 3];
        io_said(out, "read", blob.read(&mut bytes));
        say!(out, "{bytes:?}");
    }
    let mut bytes = [9; 4];
    for start in [0, 5, 7, 10, 99, usize::MAX] {
        say!(out, "{start} {:?} {bytes:?}", blob.read_at(&mut bytes, start));
        say!(out, "{start} {:?} {bytes:?}", blob.read_at_exact(&mut bytes, start));
        said(out, "write_at", blob.write_at(b"##", start));
        said(out, "write_all_at", blob.write_all_at(b"", start.min(10)));
    }
    say!(out, "{}", all(&blob));
    blob.reopen(7)?;
    say!(out, "{}", all(&blob));
    io_said(out, "write_all", blob.write_all(b"four"));
    blob.reopen(2)?;
    say!(out, "{} {}", blob.is_empty(), all(&blob));
    blob.close()?;
    let stored: Vec<u8> = db.query_row("SELECT body FROM t WHERE id = 1", [], |row| row.get(0))?;
    say!(out, "{stored:?}");
    // Nobody else hears of it.
    let logged: i64 = db.query_row("SELECT count(*) FROM logged", [], |row| row.get(0))?;
    say!(out, "{logged}");
    let mut text = db.blob_open("main", "T", "WORD", 1, false)?;
    text.write_all(b"A").expect("writes");
    drop(text);
    let stored: String = db.query_row("SELECT typeof(word) || word FROM t WHERE id = 1", [], |row| row.get(0))?;
    say!(out, "{stored}");
    db.execute_batch("INSERT INTO t (id, body) VALUES (20, 'one' || char(10) || 'two' || char(10))")?;
    let mut lines = BufReader::new(db.blob_open(MAIN_DB, c"t", c"body", 20, true)?);
    let mut line = String::new();
    io_said(out, "line", lines.read_line(&mut line));
    io_said(out, "line", lines.read_line(&mut line));
    say!(out, "{line:?}");
    Ok(())
}

fn refused(out: &mut String) -> Result<()> {
    let db = database()?;
    db.execute_batch(
        "CREATE VIEW v AS SELECT * FROM t; CREATE UNIQUE INDEX by_word ON t (word);
         PRAGMA foreign_keys = ON;
         CREATE TABLE child (p REFERENCES t (word), q); INSERT INTO child VALUES ('ü', 'q'), ('a text', 'q');
         CREATE TABLE made (a, b AS (a || 'x'), c); INSERT INTO made VALUES ('a', 'c');
         CREATE TABLE bare (a INTEGER PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO bare VALUES (1, x'00');",
    )?;
    for (table, column, row) in [
        ("nope", "body", 1), ("t", "nope", 1), ("t", "body", 3), ("t", "n", 1), ("t", "n", 2), ("t", "r", 1),
        ("t", "id", 1), ("v", "body", 1), ("t", "n", 7), ("t", "word", 1), ("t", "word", 2), ("child", "p", 2),
        ("child", "q", 2), ("made", "a", 1), ("made", "b", 1), ("t", "body", -1), ("t", "rowid", 1),
        ("bare", "b", 1),
    ] {
        for read_only in [true, false] {
            let what = format!("{table}.{column} {row} {read_only}");
            said(out, &what, db.blob_open("main", table, column, row, read_only));
        }
    }
    said(out, "database", db.blob_open("nope", "t", "body", 1, true));
    let mut blob = db.blob_open(MAIN_DB, c"t", c"body", 1, true)?;
    said(out, "write to what is read", blob.write_at(b"x", 0));
    io_said(out, "and so", blob.write(b"x"));
    said(out, "row", blob.reopen(99));
    say!(out, "{}", blob.len());
    let mut bytes = [0; 2];
    said(out, "read", blob.read_at(&mut bytes, 0));
    said(out, "again", blob.reopen(1));
    Ok(())
}

fn expiring(out: &mut String) -> Result<()> {
    let db = database()?;
    let mut bytes = [0; 2];
    for (sql, expires) in [
        ("UPDATE t SET body = x'0a0b0c' WHERE id = 7", true),
        ("DELETE FROM t WHERE id = 7", true),
        ("INSERT INTO t (id, body) VALUES (30, 'new')", false),
        ("UPDATE t SET n = 1 WHERE id = 2", false),
        ("SELECT * FROM t", false),
    ] {
        let mut blob = db.blob_open(MAIN_DB, c"t", c"body", if expires { 7 } else { 1 }, false)?;
        db.prepare(sql)?.raw_query().next()?;
        say!(out, "{sql}");
        said(out, "read", blob.read_at(&mut bytes, 0));
        said(out, "write", blob.write_at(b"x", 0));
        said(out, "reopen", blob.reopen(1));
        if sql.starts_with("DELETE") {
            db.execute("INSERT INTO t (id, body) VALUES (7, x'010203')", [])?;
        }
    }
    Ok(())
}

fn transactions(out: &mut String) -> Result<()> {
    let db = database()?;
    db.execute_batch("BEGIN")?;
    let mut blob = db.blob_open(MAIN_DB, c"t", c"body", 1, false)?;
    blob.write_at(b"within", 2)?;
    say!(out, "{}", all(&blob));
    let stored: Vec<u8> = db.query_row("SELECT body FROM t WHERE id = 1", [], |row| row.get(0))?;
    say!(out, "{stored:?} {}", db.is_autocommit());
    blob.close()?;
    db.execute_batch("ROLLBACK")?;
    let stored: Vec<u8> = db.query_row("SELECT body FROM t WHERE id = 1", [], |row| row.get(0))?;
    say!(out, "{stored:?}");
    db.execute_batch("BEGIN; SAVEPOINT s")?;
    let mut blob = db.blob_open(MAIN_DB, c"t", c"body", 1, false)?;
    blob.write_at(b"twice", 0)?;
    blob.close()?;
    db.execute_batch("RELEASE s; COMMIT")?;
    say!(out, "{}", all(&db.blob_open(MAIN_DB, c"t", c"body", 1, true)?));
    say!(out, "{} {}", db.changes(), db.total_changes());
    Ok(())
}

fn zeros(out: &mut String) -> Result<()> {
    let db = database()?;
    db.execute("INSERT INTO t (id, body, n) VALUES (?1, ?2, ?3)", (50, ZeroBlob(5), Some(ZeroBlob(0))))?;
    let (a, b): (Vec<u8>, String) = db.query_row("SELECT body, typeof(n) FROM t WHERE id = 50", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    say!(out, "{a:?} {b}");
    say!(out, "{:?}", ZeroBlob(3).to_sql()? == ToSqlOutput::ZeroBlob(3));
    said(out, "too many", db.execute("INSERT INTO t (body) VALUES (?1)", [ZeroBlob(2_000_000_000)]));
    said(out, "far too many", db.execute("INSERT INTO t (body) VALUES (?1)", [ZeroBlob(u64::MAX)]));
    Ok(())
}

fn details(out: &mut String) -> Result<()> {
    let mut db = database()?;
    say!(out, "{} {}", db::version(), db::version_number());
    say!(out, "{:?} {:?} {:?}", db.db_name(0), db.db_name(1), db.db_name(9));
    let stmt = db.prepare_with_flags("SELECT id AS i, word, n + 1, (SELECT 1) FROM t AS x", PrepFlags::SQLITE_PREPARE_PERSISTENT)?;
    for column in stmt.columns_with_metadata() {
        say!(out, "{} {:?} {:?} {:?}", column.name(), column.database_name(), column.table_name(), column.origin_name());
    }
    drop(stmt);
    let state = |db: &Connection, out: &mut String| {
        let states = (db.transaction_state(None::<&str>), db.transaction_state(Some(MAIN_DB)));
        say!(out, "{states:?} {}", db.is_busy());
    };
    state(&db, out);
    {
        let mut stmt = db.prepare("SELECT * FROM t")?;
        let mut rows = stmt.query([])?;
        rows.next()?;
        state(&db, out);
    }
    state(&db, out);
    let tx = db.transaction()?;
    state(&tx, out);
    tx.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))?;
    state(&tx, out);
    tx.execute("DELETE FROM t WHERE id = 2", [])?;
    state(&tx, out);
    say!(out, "{:?}", tx.transaction_state(None::<&str>)? == TransactionState::Write);
    tx.rollback()?;
    state(&db, out);
    said(out, "state", db.transaction_state(Some("nope")));
    say!(out, "{}", db.is_interrupted());
    db.get_interrupt_handle().interrupt();
    say!(out, "{}", db.is_interrupted());
    db.release_memory()?;
    say!(out, "{}", Error::BlobSizeError);
    Ok(())
}
