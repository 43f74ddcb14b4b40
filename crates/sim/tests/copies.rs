//! Copies of a database on a disk that loses power or fails: VACUUM INTO and backups into
//! new files and into databases that are there.
//!
//! Whatever happens at whichever call, the source is as it was, and where the copy is to be
//! is all of it or none: no file, or the database that was there before. What was answered
//! with success is there after a power cut.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite::backup::Backup;
use fulgurite::{Connection, Database, Options, ffi};
use fulgurite_disk::{Disk, OpenOptions};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::Store;

const SOURCE: &str = "d/source.db";
const COPY: &str = "d/copy.db";

fn factor() -> u64 {
    let asked = std::env::var("FULGURITE_SIM_FACTOR").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn connect(disk: &SimDisk, path: &str) -> fulgurite::Result<Connection> {
    let options = Options {
        cache_bytes: 2 << 20,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), Path::new(path), options);
    Database::on_store(store)?.connect()
}

/// A disk with a database of rows that are hardly compressed, so many of so many bytes.
fn prepared(seed: u64, rows: u32, bytes: u32) -> SimDisk {
    let disk = SimDisk::new(seed);
    let db = connect(&disk, SOURCE).expect("opens");
    let sql = format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, body, mark INT);
         CREATE INDEX marks ON t (mark);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t SELECT i, randomblob({bytes}), i * 7 FROM n;
         DELETE FROM t WHERE id = {rows}"
    );
    db.execute_batch(&sql).expect("a database");
    drop(db);
    disk.settled_image()
}

/// How many rows a sound database has in its table and index, and its next rowid.
fn rows(disk: &SimDisk, path: &str) -> i64 {
    let db = connect(disk, path).expect(path);
    let one = |sql: &str| db.query_row(sql, [], |row| row.get(0)).expect(sql);
    let found = db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(found.expect("checks"), "ok", "{path}");
    let count: i64 = one("SELECT count(body) FROM t");
    assert_eq!(one("SELECT count(*) FROM t WHERE mark > 0"), count);
    count
}

fn vacuum_into(disk: &SimDisk) -> fulgurite::Result<()> {
    let db = connect(disk, SOURCE)?;
    db.execute(&format!("VACUUM INTO '{COPY}'"), [])?;
    Ok(())
}

fn back_up(disk: &SimDisk) -> fulgurite::Result<()> {
    let (from, mut to) = (connect(disk, SOURCE)?, connect(disk, COPY)?);
    let result = Backup::new(&from, &mut to)?.step(-1)?;
    assert_eq!(result, fulgurite::backup::StepResult::Done);
    Ok(())
}

/// Cuts the power at every `stride`-th call of a copy; how many cuts there were. `before`:
/// rows of the database that is there before.
fn cut(
    disk: &SimDisk,
    copy: fn(&SimDisk) -> fulgurite::Result<()>,
    before: Option<i64>,
    stride: usize,
) -> usize {
    let all = rows(&disk.fork(), SOURCE);
    let whole = disk.fork();
    copy(&whole).expect("copies");
    assert_eq!(
        rows(&whole.crash_image(7), COPY),
        all,
        "was durable when done"
    );
    let mut cuts = 0;
    for call in (0..whole.calls()).step_by(stride) {
        let running = disk.fork();
        running.stop_at(call);
        let done = copy(&running).is_ok();
        let left = running.crash_image(call ^ 0xc0_b1e5);
        let is_there = left.contents(Path::new(COPY)).is_some();
        match before {
            None if is_there => assert_eq!(rows(&left, COPY), all, "call {call}"),
            None => assert!(!done, "call {call}"),
            Some(before) => {
                let found = rows(&left, COPY);
                assert!(
                    found == all || found == before && !done,
                    "call {call}: {found}"
                );
            }
        }
        assert_eq!(rows(&left, SOURCE), all, "call {call}");
        if before.is_some() || !is_there {
            copy(&left).expect("copies after a power cut");
            assert_eq!(rows(&left, COPY), all, "call {call}, again");
        }
        cuts += 1;
    }
    cuts
}

#[test]
fn a_power_cut_leaves_all_of_a_new_file_or_none() {
    let mut cuts = 0;
    for seed in 0..3 * factor() {
        cuts += cut(&prepared(seed, 60, 500), vacuum_into, None, 1);
    }
    assert!(cuts >= 60, "{cuts} power cuts");
}

/// Of a copy that is too large for the log.
#[test]
fn a_power_cut_leaves_all_of_a_large_file_or_none() {
    let disk = prepared(11, 700, 9000);
    let cuts = cut(&disk, vacuum_into, None, 5);
    assert!(cuts >= 8, "{cuts} power cuts");
}

#[test]
fn a_power_cut_leaves_the_copy_or_the_database_before_it() {
    for (rows_now, bytes, stride) in [(60, 500, 1), (700, 9000, 7)] {
        let disk = prepared(5, rows_now, bytes);
        let other = connect(&disk, COPY).expect("opens");
        other
            .execute_batch(
                "CREATE TABLE t (body, mark INT); CREATE INDEX marks ON t (mark);
                 INSERT INTO t VALUES ('kept', 1), ('kept too', 2)",
            )
            .expect("another database");
        drop(other);
        let cuts = cut(&disk.settled_image(), back_up, Some(2), stride);
        assert!(cuts >= 8, "{cuts} power cuts");
    }
}

/// A copy with a call that failed.
struct Failed {
    disk: SimDisk,
    source: Connection,
    outcome: fulgurite::Result<usize>,
    /// For messages: which call it was.
    story: String,
}

/// Copies with the first call of a kind failing, with the second one, and so on, as long as
/// there is such a call.
fn failing(
    disk: &SimDisk,
    call: Call,
    for_good: bool,
    error: FaultError,
) -> impl Iterator<Item = Failed> {
    (0..).map_while(move |after| {
        let disk = disk.fork();
        let source = connect(&disk, SOURCE).expect("opens");
        disk.fail(Fault {
            call: Some(call),
            after,
            for_good,
            error,
        });
        let outcome = source.execute(&format!("VACUUM INTO '{COPY}'"), []);
        let story = format!("{call:?} {after} {error:?}, for good {for_good}: {outcome:?}");
        (disk.faults_met() > 0).then_some(Failed {
            disk,
            source,
            outcome,
            story,
        })
    })
}

/// A call that fails ends the copy with its error, and the files go, so that it can be tried
/// again: a copy that only its folder's sync failed stayed, and the next one was told that it
/// exists.
#[test]
fn a_failing_disk_leaves_no_file() {
    let disk = prepared(3, 60, 500);
    let mut failed = 0;
    for (call, error) in [
        (Call::Open, FaultError::Io),
        (Call::Write, FaultError::Io),
        (Call::Write, FaultError::NoSpace),
        (Call::Sync, FaultError::Io),
        (Call::Rename, FaultError::NoSpace),
        (Call::SyncDir, FaultError::Io),
    ] {
        for run in failing(&disk, call, false, error) {
            run.disk.heal();
            drop(run.source);
            if run.outcome.is_err() {
                failed += 1;
                let files = run.disk.files();
                let is_copy = |file: &PathBuf| file.to_string_lossy().contains("copy");
                assert!(!files.iter().any(is_copy), "{}: {files:?}", run.story);
                vacuum_into(&run.disk).expect("tried again");
            }
            assert_eq!(rows(&run.disk, COPY), 59, "{}", run.story);
        }
    }
    assert!(failed >= 10, "{failed} failures");
}

/// Closing the file in the making failed: its log went all the same, and the file that was
/// then given its name said that it needs that log, if saying otherwise failed as well. The
/// copy was answered with success, and could not be opened after a power cut.
#[test]
fn a_copy_that_was_answered_with_success_opens() {
    let disk = prepared(3, 60, 500);
    let mut answered = 0;
    for call in [Call::Remove, Call::SyncDir, Call::Write, Call::Sync] {
        let runs = [false, true].map(|for_good| failing(&disk, call, for_good, FaultError::Io));
        for run in runs.into_iter().flatten().filter(|run| run.outcome.is_ok()) {
            answered += 1;
            for seed in 0..8 {
                let left = run.disk.crash_image(seed);
                assert_eq!(rows(&left, COPY), 59, "{} {seed}", run.story);
            }
        }
    }
    assert!(answered >= 4, "{answered} copies beside a failing call");
}

/// Where a sync of the file in the making failed, the maker was told to close all connections
/// and to open the database again, as if it were the source that had failed.
#[test]
fn who_makes_a_copy_is_told_of_the_copy() {
    let disk = prepared(3, 60, 500);
    let mut failed = 0;
    for (call, error, code) in [
        (Call::Sync, FaultError::Io, ffi::SQLITE_IOERR),
        (Call::Sync, FaultError::NoSpace, ffi::SQLITE_FULL),
        (Call::Write, FaultError::NoSpace, ffi::SQLITE_FULL),
        (Call::SyncDir, FaultError::Io, ffi::SQLITE_IOERR),
    ] {
        for run in failing(&disk, call, false, error) {
            let goes_on = run.source.execute_batch("DELETE FROM t WHERE id = 1");
            goes_on.expect("the source goes on");
            let Err(told) = run.outcome else {
                continue;
            };
            failed += 1;
            let hint = told.hint().unwrap_or_default();
            let story = format!("{}: {hint}", run.story);
            assert_eq!(told.sqlite_extended_error_code(), Some(code), "{story}");
            assert!(!hint.contains("open the database again"), "{story}");
            let is_named = hint.contains(COPY) || call == Call::SyncDir;
            assert!(is_named, "{story}");
        }
    }
    assert!(failed >= 20, "{failed} failures");
}

/// Where a database file was lost but for its name, opening refuses to make a new one over the
/// log that it left. A copy took the place of the file, and threw the log away.
#[test]
fn a_copy_throws_no_log_away() {
    let disk = prepared(3, 60, 500);
    let other = connect(&disk, COPY).expect("opens");
    other
        .execute_batch("CREATE TABLE t (body); INSERT INTO t VALUES ('in the log alone')")
        .expect("another database");
    let left = disk.kill_image();
    drop(other);
    let emptied = OpenOptions {
        truncate: true,
        ..OpenOptions::WRITE
    };
    left.open(Path::new(COPY), emptied).expect("is emptied");
    let log = Path::new("d/copy.db-wal0");
    let before = left.contents(log).expect("a log");
    let to_file = |disk: &SimDisk| {
        let source = connect(disk, SOURCE)?;
        source.backup("main", COPY, fulgurite::backup::NO_PROGRESS)
    };
    for copy in [vacuum_into, to_file] {
        let error = copy(&left).expect_err("it has a log");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("d/copy.db-wal0 is not"), "{error}: {hint}");
        assert_eq!(left.contents(log).as_ref(), Some(&before));
    }
    left.remove(log).expect("is removed");
    vacuum_into(&left).expect("copies");
    assert_eq!(rows(&left, COPY), 59);
}
