//! A log at its limit while the checkpoint that would make room in it is held up by the disk.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fulgurite::{Connection, Database, ErrorCode, Options};
use fulgurite_disk::{Intercepted, Interceptor, MemoryDisk, Result as Done};
use fulgurite_store::Store;

/// The checkpoint's thread waits while it is shut; who helps it to write pages does not.
#[derive(Debug, Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().expect("no panic") = is_shut;
        self.opened.notify_all();
    }
}

impl Interceptor for Gate {
    fn before_write(&self, path: &Path) -> Done<()> {
        let is_checkpoint = std::thread::current().name() == Some("fulgurite-checkpoint");
        if is_checkpoint && path.ends_with("full.db") {
            let is_shut = self.is_shut.lock().expect("no panic");
            let open = self.opened.wait_while(is_shut, |is_shut| *is_shut);
            drop(open.expect("no panic"));
        }
        Ok(())
    }
}

fn is_busy(outcome: &fulgurite::Result<()>) -> bool {
    let code = outcome.as_ref().err().and_then(|e| e.sqlite_error_code());
    code == Some(ErrorCode::DatabaseBusy)
}

/// Opens it, so that whatever a test finds, its database can be closed.
struct Shut<'g>(&'g Gate);

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Inserts rows until the log takes none, however short.
fn fill(db: &Connection) {
    for row in ["zeroblob(1500)", "1"] {
        let insert = format!("INSERT INTO filling VALUES ({row})");
        let is_full = (0..1000).any(|_| {
            let outcome = db.execute_batch(&insert);
            let is_full = is_busy(&outcome);
            assert!(is_full || outcome.is_ok(), "{outcome:?}");
            is_full
        });
        assert!(is_full, "the log has a limit");
    }
}

/// A change of the schema that is a transaction of its own keeps the other writers out. Where
/// it found no room in the log in time it was left open, though nobody could commit it any
/// more or roll it back: they were kept out until the connection was closed, which answered
/// every statement with SQLITE_MISUSE.
#[test]
fn a_change_of_the_schema_that_finds_no_room_in_the_log_is_over() {
    let gate = Arc::<Gate>::default();
    let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &gate));
    let options = Options {
        checkpoint_bytes: 1 << 30,
        log_limit_bytes: Some(64 << 10),
        ..Options::default()
    };
    let database = Database::on_store(Store::open_on(disk, "full.db", options)).expect("opens");
    let [db, other] = [(); 2].map(|()| database.connect().expect("connects"));
    let tables = "CREATE TABLE filling (a); CREATE TABLE t (a); CREATE INDEX i ON t (a)";
    db.execute_batch(tables).expect("tables");
    gate.set(true);
    let shut = Shut(&gate);
    db.busy_timeout(Duration::ZERO).expect("sets");
    for change in [
        "CREATE TABLE u (a)",
        "CREATE INDEX j ON t (a)",
        "ALTER TABLE t ADD COLUMN b",
        "DROP INDEX i",
        "CREATE TEMP TABLE k (a); DROP TABLE t",
    ] {
        fill(&db);
        assert!(is_busy(&db.execute_batch(change)), "{change}");
        assert!(db.is_autocommit());
        let rows = |db: &Connection| {
            let sql = "SELECT count(*) FROM t";
            db.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(rows(&db), Ok(0), "{change}");
        other
            .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
            .expect("nobody is in its way");
    }
    drop(shut);
    db.busy_timeout(Duration::from_secs(60)).expect("sets");
    db.execute_batch("CREATE TABLE u (a); INSERT INTO u VALUES (1)")
        .expect("there is room again");
    assert_eq!(database.integrity_check(), Ok(Vec::new()));
}

/// A clock on which time passes only where somebody waits; what a thread of the store would
/// do is done by who needs it.
#[derive(Debug, Default)]
struct Alone(std::sync::atomic::AtomicU64);

impl fulgurite_disk::Driver for Alone {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn pass(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0
            .fetch_add(micros, std::sync::atomic::Ordering::Relaxed);
    }

    fn random(&self) -> u64 {
        fulgurite_disk::Machine.random()
    }
}

/// A transaction over several files that nobody is beside of was told SQLITE_BUSY.
#[test]
fn a_transaction_alone_finds_room_in_all_logs() {
    for (limit, rows) in [(512, 4), (512, 40), (512, 400), (256, 100), (2048, 4)] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            checkpoint_bytes: 64 << 10,
            log_limit_bytes: Some(limit << 10),
            driver: Some(Arc::new(Alone::default())),
            ..Options::default()
        };
        let file = folder.path().join("main.db");
        let database = Database::open_with_options(&file, options).expect("opens");
        let db = database.connect().expect("connects");
        for name in ["a", "b", "c"] {
            let file = folder.path().join(name);
            db.execute("ATTACH ? AS ?", (file.to_str(), name))
                .expect("attaches");
            db.execute_batch(&format!("CREATE TABLE {name}.t (k INTEGER PRIMARY KEY, v)"))
                .expect("a table");
        }
        for round in 0..4 {
            db.execute_batch("BEGIN").expect("begins");
            for name in ["a", "b", "c"] {
                let insert = format!("INSERT INTO {name}.t (v) VALUES (randomblob(?))");
                for _ in 0..rows {
                    let done = db.execute(&insert, [400_000 / rows]);
                    assert_eq!(done, Ok(1), "{limit} KiB, {rows} rows, {round}");
                }
            }
            let done = db.execute_batch("COMMIT");
            assert_eq!(done, Ok(()), "{limit} KiB, {rows} rows, {round}");
        }
        for name in ["a", "b", "c"] {
            let sql = format!("SELECT count(*) FROM {name}.t");
            let count = db.query_row(&sql, [], |row| row.get(0));
            assert_eq!(count, Ok(4 * rows), "{limit} KiB, {rows} rows");
        }
    }
}
