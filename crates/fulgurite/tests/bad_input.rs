//! What bad input gets: a typed error that says what and where, and everything
//! as it was before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fulgurite::{Connection, Database, Error, ErrorCode, OpenFlags, Options, ffi};

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A closed database with a table of 500 rows and an index.
fn make_database(path: &Path) {
    let mut db = Connection::open(path).expect("a new database");
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX t_v ON t (v)")
        .expect("a schema");
    let tx = db.transaction().expect("a transaction");
    for i in 0..500 {
        tx.execute(
            "INSERT INTO t VALUES (?1, ?2)",
            (i, format!("value {i} {}", i * 7919 % 1000)),
        )
        .expect("a row");
    }
    tx.commit().expect("a commit");
    db.close().expect("a clean close");
}

/// Everything a reader can see, or the first error.
fn contents(path: &Path) -> fulgurite::Result<Vec<(i64, String)>> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut stmt = db.prepare("SELECT id, v FROM t ORDER BY id")?;
    let rows = stmt
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<fulgurite::Result<Vec<_>>>()?;
    let by_index: i64 = db.query_row("SELECT count(*) FROM t WHERE v >= 'value'", [], |row| {
        row.get(0)
    })?;
    assert_eq!(
        by_index as usize,
        rows.len(),
        "the index and the table agree"
    );
    Ok(rows)
}

fn code_of(error: &Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}

/// The files of a folder with their contents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(&path).expect("a file")))
        .collect();
    all.sort();
    all
}

#[test]
fn a_file_that_is_no_database() {
    let dir = dir();
    let path = dir.path().join("a.db");
    let long = "a text, and a long one at that. ".repeat(2000);
    for text in ["short", long.as_str(), "SQLite format 3\0"] {
        fs::write(&path, text).expect("a file");
        let before = files(dir.path());
        let error = Connection::open(&path).expect_err("this is no database");
        assert_eq!(code_of(&error), Some(ErrorCode::NotADatabase), "{error:?}");
        assert_eq!(error.to_string(), "file is not a database");
        assert!(
            error.hint().is_some_and(|h| h.contains("a.db")),
            "{:?}",
            error.hint()
        );
        assert_eq!(files(dir.path()), before, "nothing was touched");
    }
}

#[test]
fn a_truncated_file() {
    let dir = dir();
    let path = dir.path().join("a.db");
    make_database(&path);
    let whole = fs::read(&path).expect("the file");
    let rows = contents(&path).expect("a sound database");
    assert_eq!(rows.len(), 500);
    let mut refused = 0;
    for part in 1..16 {
        let kept = whole.len() * part / 16;
        fs::write(&path, &whole[..kept]).expect("a file");
        match contents(&path) {
            Ok(found) => assert!(found == rows, "{kept} bytes of {}", whole.len()),
            Err(e) => {
                refused += 1;
                let expected = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
                assert!(
                    code_of(&e).is_some_and(|c| expected.contains(&c)),
                    "{kept} bytes: {e:?}"
                );
            }
        }
        assert_eq!(
            fs::read(&path).expect("the file"),
            &whole[..kept],
            "reading repairs nothing"
        );
    }
    assert!(
        refused >= 10,
        "only {refused} of 15 truncations were noticed"
    );
}

#[test]
fn flipped_bits() {
    let dir = dir();
    let path = dir.path().join("a.db");
    make_database(&path);
    let whole = fs::read(&path).expect("the file");
    let rows = contents(&path).expect("a sound database");
    let mut reported = 0;
    // A step that is no multiple of any unit, so that all parts of pages are met.
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).expect("a file");
        match contents(&path) {
            Ok(found) => assert!(found == rows, "byte {at} flipped, and nobody noticed"),
            Err(e) => {
                reported += 1;
                let expected = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
                assert!(
                    code_of(&e).is_some_and(|c| expected.contains(&c)),
                    "byte {at}: {e:?}"
                );
            }
        }
    }
    assert!(reported > 0, "no flipped bit was noticed");
}

const CHILD: &str = "FULGURITE_TEST_OPEN";

/// Not a test of its own: the second process of the next one.
#[test]
fn child_opens_the_database() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let at_once = Options {
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    match Database::open_with_options(path, at_once) {
        Ok(_) => println!("child: opened"),
        Err(e) => println!(
            "child: {} | {e} | {}",
            e.result_code() & 0xff,
            e.hint().unwrap_or_default()
        ),
    }
}

fn open_in_child(path: &Path) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child_opens_the_database", "--nocapture"])
        .env(CHILD, path)
        .stdin(Stdio::null())
        .output()
        .expect("the second process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = text.lines().find_map(|line| line.split_once("child: "));
    answer.map(|(_, answer)| answer.to_owned()).unwrap_or(text)
}

#[test]
fn a_second_process() {
    let dir = dir();
    let path = dir.path().join("a.db");
    make_database(&path);
    let held = Connection::open(&path).expect("a sound database");
    held.execute("INSERT INTO t VALUES (1000, 'new')", [])
        .expect("a row");
    let answer = open_in_child(&path);
    assert!(answer.starts_with("5 | database is locked | "), "{answer}");
    assert!(
        answer.contains(&std::process::id().to_string()),
        "the holder is named: {answer}"
    );
    let joined = Connection::open(&path).expect("the same process joins");
    let rows: i64 = joined
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(rows, 501);
    drop((held, joined));
    assert_eq!(open_in_child(&path), "opened");
}

#[test]
fn a_folder_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let dir = dir();
    let folder = dir.path().join("locked");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("permissions");
    // The superuser may write there all the same; nobody may under /sys.
    let superuser = fs::write(folder.join("probe"), "").is_ok();
    let path = if superuser {
        PathBuf::from("/sys/fulgurite.db")
    } else {
        folder.join("a.db")
    };
    let error = Connection::open(&path).expect_err("nothing can be created there");
    assert!(
        matches!(
            code_of(&error),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
        ),
        "{error:?}"
    );
    assert!(!path.exists());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("permissions");
}

#[test]
fn paths_that_lead_nowhere() {
    let dir = dir();
    for path in [
        dir.path().join("no/such/folder/a.db"),
        dir.path().to_owned(),
    ] {
        let error = Connection::open(&path).expect_err("no file can be there");
        assert_eq!(
            code_of(&error),
            Some(ErrorCode::CannotOpen),
            "{path:?}: {error:?}"
        );
        assert!(error.hint().is_some(), "{path:?} says why");
    }
    let absent = dir.path().join("absent.db");
    let error = Connection::open_with_flags(&absent, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .expect_err("absent");
    assert_eq!(code_of(&error), Some(ErrorCode::CannotOpen));
    assert_eq!(files(dir.path()), []);
}

#[test]
fn writing_to_a_database_opened_for_reading() {
    let dir = dir();
    let path = dir.path().join("a.db");
    make_database(&path);
    let before = files(dir.path());
    let options = Options {
        read_only: true,
        create: false,
        ..Options::default()
    };
    let db = Database::open_with_options(&path, options)
        .and_then(|db| db.connect())
        .expect("a sound database");
    for sql in [
        "DELETE FROM t",
        "CREATE TABLE u (a)",
        "DROP TABLE t",
        "INSERT INTO t VALUES (-1, 'x')",
    ] {
        let error = db.execute(sql, []).expect_err(sql);
        assert_eq!(
            code_of(&error),
            Some(ErrorCode::ReadOnly),
            "{sql}: {error:?}"
        );
        assert_eq!(error.to_string(), "attempt to write a readonly database");
    }
    drop(db);
    assert_eq!(files(dir.path()), before);
}

#[test]
fn sql_that_does_not_parse_or_names_what_is_not_there() {
    let db = Connection::open_in_memory().expect("memory");
    db.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL); INSERT INTO orders VALUES (1, 9.5)")
        .expect("a schema");
    let cases = [
        ("SELEKT 1", "near \"SELEKT\": syntax error", Some(0)),
        ("SELECT totl FROM orders", "no such column: totl", Some(7)),
        ("UPDATE orders SET totl = 1", "no such column: totl", None),
        (
            "DELETE FROM order",
            "near \"order\": syntax error",
            Some(12),
        ),
        ("SELECT * FROM ordrs", "no such table: ordrs", None),
        ("INSERT INTO ordrs VALUES (1)", "no such table: ordrs", None),
        ("SELECT lenght('x')", "no such function: lenght", Some(7)),
        (
            "INSERT INTO orders VALUES (1)",
            "table orders has 2 columns but 1 values were supplied",
            None,
        ),
        ("SELECT (", "incomplete input", None),
        ("DROP INDEX absent", "no such index: absent", None),
    ];
    for (sql, message, offset) in cases {
        let error = db.prepare(sql).expect_err(sql);
        assert_eq!(
            (error.result_code(), error.message().as_str()),
            (ffi::SQLITE_ERROR, message),
            "{sql}"
        );
        if offset.is_some() {
            assert_eq!(error.offset(), offset, "{sql}");
        }
    }
    let rows: (i64, f64) = db
        .query_row("SELECT id, total FROM orders", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("the row");
    assert_eq!(rows, (1, 9.5));
}

/// Deep nesting must answer, not overflow the stack.
#[test]
fn nesting_without_end() {
    let db = Connection::open_in_memory().expect("memory");
    for depth in [900, 5_000, 100_000] {
        let deep = [
            format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth)),
            format!("SELECT 1{}", " + 1".repeat(depth)),
            format!("SELECT {}1", "- ".repeat(depth)),
            format!("SELECT {}1", "NOT ".repeat(depth)),
            format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth)),
        ];
        for sql in deep {
            if let Err(e) = db.query_row(&sql, [], |_| Ok(())) {
                assert_eq!(
                    e.result_code(),
                    ffi::SQLITE_ERROR,
                    "depth {depth}: {}",
                    e.message()
                );
            }
        }
    }
}

/// A statement that fails midway leaves nothing of itself.
#[test]
fn half_a_statement_is_never_left() {
    let db = Connection::open_in_memory().expect("memory");
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE NOT NULL); INSERT INTO t VALUES (1, 10), (2, 20)")
        .expect("a schema");
    let state = || -> (i64, i64, i64) {
        db.query_row("SELECT count(*), sum(id), sum(v) FROM t", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .expect("the sums")
    };
    let before = state();
    for in_transaction in [false, true] {
        if in_transaction {
            db.execute_batch("BEGIN").expect("a transaction");
        }
        for sql in [
            "INSERT INTO t VALUES (3, 30), (4, 40), (5, 10)",
            "INSERT INTO t VALUES (3, 30), (4, NULL)",
            "INSERT INTO t SELECT id + 10, v + id * 5 - 5 FROM t",
            "UPDATE t SET v = 20",
            "UPDATE t SET id = id + 1, v = CASE id WHEN 1 THEN 5 ELSE NULL END",
        ] {
            let error = db.execute(sql, []).expect_err(sql);
            assert_eq!(
                code_of(&error),
                Some(ErrorCode::ConstraintViolation),
                "{sql}: {error:?}"
            );
            assert_eq!(state(), before, "{sql}");
            assert_eq!(db.is_autocommit(), !in_transaction);
        }
    }
}

/// The log is made under a passing name. A link that had this name was followed, and what
/// it led to written over: a file of somebody's, or the database itself.
#[cfg(unix)]
#[test]
fn the_log_is_not_made_through_a_link() {
    for victim in ["victim", "a.db"] {
        let dir = dir();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("victim"), b"precious").expect("a file");
        let open = || Connection::open(path("a.db")).expect("opens");
        let first = "CREATE TABLE t (v); INSERT INTO t VALUES (1)";
        open().execute_batch(first).expect(first);
        std::os::unix::fs::symlink(path(victim), path("a.db-wal-new")).expect("a link");
        let second = "INSERT INTO t VALUES (2)";
        open().execute_batch(second).expect(second);
        let victim = std::fs::read(path("victim")).expect("a file");
        assert_eq!(victim, b"precious");
        let sum = open().query_row("SELECT sum(v) FROM t", [], |row| row.get::<_, i64>(0));
        assert_eq!(sum.expect("reads"), 3);
    }
}
