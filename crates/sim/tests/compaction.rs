//! VACUUM on a disk that loses power or fails: at whichever call, all that the database
//! holds is there, in its table, its index and what lies outside of pages, and a VACUUM after
//! that makes the file as short as one that nothing came between.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Options};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::Store;

const NAME: &str = "d/c.db";

fn factor() -> u64 {
    let asked = std::env::var("FULGURITE_SIM_FACTOR").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn connect(disk: &SimDisk) -> fulgurite::Result<Connection> {
    let options = Options {
        cache_bytes: 1 << 20,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), Path::new(NAME), options);
    Database::on_store(store)?.connect()
}

/// How a database came to be.
#[derive(Clone, Copy)]
struct Shape {
    rows: u32,
    /// One in so many stays.
    each: u32,
    /// Of a large value, in bytes.
    large: u32,
}

/// Tables that came one after the other, so that what is left of each lies behind what is
/// free: enough alike for dictionaries.
fn prepared(seed: u64, shape: Shape) -> SimDisk {
    let Shape { rows, each, large } = shape;
    let disk = SimDisk::new(seed);
    let db = connect(&disk).expect("opens");
    for table in ["s", "t"] {
        db.execute_batch(&format!(
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, body, mark INT);
             CREATE INDEX {table}_marks ON {table} (mark);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
                 INSERT INTO {table} SELECT i, 'the body of row ' || i || hex(randomblob(12)),
                     i * 7919 % {rows} + 1 FROM n;
             INSERT INTO {table} VALUES (0, randomblob({large}), 0)"
        ))
        .expect("a table");
        db.database().checkpoint().expect("a checkpoint");
    }
    db.execute_batch(&format!(
        "DELETE FROM s WHERE id > 10; DELETE FROM t WHERE id % {each} <> 0"
    ))
    .expect("deletes");
    drop(db);
    disk.settled_image()
}

/// What the database holds, all of it read, in one text.
fn contents(disk: &SimDisk, story: &str) -> String {
    let db = connect(disk).unwrap_or_else(|error| panic!("{story}: {error}"));
    let one = |sql: &str| -> String {
        let found = db.query_row(sql, [], |row| row.get(0));
        found.unwrap_or_else(|error| panic!("{story}: {sql}: {error}"))
    };
    assert_eq!(one("PRAGMA integrity_check"), "ok", "{story}");
    let table = |name: &str| {
        one(&format!(
            "SELECT count(*) || ' ' || sum(mark) || ' ' || sum(length(body)) || ' '
                 || hex(max(substr(body, 1, 40))) || ' ' || hex(min(body)) || ' '
                 || (SELECT count(*) FROM {name} WHERE mark >= 0) FROM {name}"
        ))
    };
    format!("{}; {}", table("s"), table("t"))
}

fn vacuum(disk: &SimDisk) -> fulgurite::Result<()> {
    connect(disk)?.execute_batch("VACUUM")
}

fn length(disk: &SimDisk) -> usize {
    disk.contents(Path::new(NAME)).expect("is there").len()
}

/// Cuts the power at every `stride`-th call; how many cuts there were.
fn cut(disk: &SimDisk, stride: usize) -> usize {
    let all = contents(&disk.fork(), "before");
    let whole = disk.fork();
    vacuum(&whole).expect("makes the file shorter");
    let short = length(&whole);
    assert!(short < length(disk) / 2, "{short} of {}", length(disk));
    assert_eq!(contents(&whole.crash_image(7), "when done"), all);
    let mut cuts = 0;
    for call in (0..whole.calls()).step_by(stride) {
        let running = disk.fork();
        running.stop_at(call);
        // What it says is of no matter: nothing was to change.
        let _ = vacuum(&running);
        let left = running.crash_image(call ^ 0xc0_ffee);
        let story = format!("call {call}");
        assert_eq!(contents(&left.fork(), &story), all, "{story}");
        vacuum(&left).unwrap_or_else(|error| panic!("{story}, again: {error}"));
        assert_eq!(contents(&left, &story), all, "{story}, again");
        let now = length(&left);
        assert!(now <= short * 5 / 4, "{story}: {now}, not {short}");
        cuts += 1;
    }
    cuts
}

const SMALL: Shape = Shape {
    rows: 1_500,
    each: 20,
    large: 20_000,
};

/// Written without a log of each row.
const LARGE: Shape = Shape {
    rows: 12_000,
    each: 3,
    large: 300_000,
};

#[test]
fn a_power_cut_loses_nothing() {
    let mut cuts = 0;
    for seed in 0..2 * factor() {
        cuts += cut(&prepared(seed, SMALL), 1);
    }
    assert!(cuts >= 60, "{cuts} power cuts");
}

#[test]
fn a_power_cut_loses_nothing_of_a_large_file() {
    let cuts = cut(&prepared(11, LARGE), 9);
    assert!(cuts >= 10, "{cuts} power cuts");
}

/// A call that fails once ends it with an error or is made up for, and what comes after finds
/// everything.
#[test]
fn a_failing_call_loses_nothing() {
    let disk = prepared(3, SMALL);
    let all = contents(&disk.fork(), "before");
    let mut failed = 0;
    for (call, error) in [
        (Call::Write, FaultError::Io),
        (Call::Write, FaultError::NoSpace),
        (Call::Sync, FaultError::Io),
        (Call::Truncate, FaultError::Io),
        (Call::Read, FaultError::Io),
    ] {
        for after in 0.. {
            let disk = disk.fork();
            let db = connect(&disk).expect("opens");
            disk.fail(Fault {
                call: Some(call),
                after,
                for_good: false,
                error,
            });
            let done = db.execute_batch("VACUUM");
            if disk.faults_met() == 0 {
                break;
            }
            failed += 1;
            let story = format!("{call:?} {after} {error:?}: {done:?}");
            drop(db);
            assert_eq!(contents(&disk.crash_image(after), &story), all, "{story}");
        }
    }
    assert!(failed >= 40, "{failed} failing calls");
}
