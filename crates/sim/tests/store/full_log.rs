//! A log at its limit on a disk that does not let the checkpoint make room.
//!
//! It came from a soak: an I/O error for good let a checkpoint fail, so that the
//! log filled up, and a commit waited out its time to say that the log was full.
//! It says now what the checkpoint met, as soon as it met it; nothing ends with it,
//! and once the disk takes pages again, commits go on.

use super::{PATH, assert_no_background_panic, open, options, watch_background};
use fulgurite_disk::Driver;
use fulgurite_sim::{Call, Fault, FaultError, SimDisk, SimDriver};
use fulgurite_store::{Error, ErrorKind, Key, KeyKind, Options, Store, Tree};
use std::path::Path;
use std::time::Duration;

const ROWS_MAX: i64 = 1_000;

/// A log that holds some sixty commits and asks for no checkpoint before it is
/// full. Whoever waits out the time-out has a long wait.
fn small() -> Options {
    Options {
        checkpoint_bytes: 1 << 30,
        log_limit_bytes: Some(64 << 10),
        busy_timeout: Duration::from_secs(120),
        ..options()
    }
}

/// Opens it on a disk that refuses pages from then on, but not the log.
fn open_without_room(options: &Options, error: FaultError) -> (SimDisk, Store, Tree) {
    let disk = SimDisk::new(7);
    let store = open(&disk, options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    refuse_pages(&disk, error, true);
    (disk, store, tree)
}

fn refuse_pages(disk: &SimDisk, error: FaultError, for_good: bool) {
    let fault = Fault {
        call: Some(Call::Write),
        after: 0,
        for_good,
        error,
    };
    disk.fail_under(Path::new(PATH), fault);
}

fn put(store: &Store, tree: &Tree, key: i64) -> Result<(), Error> {
    let mut txn = store.txn();
    txn.begin_statement(&[tree])?;
    txn.put(tree, Key::Int(key), &[key as u8; 1_000])?;
    txn.commit()
}

/// Commits from `key` on until it fails. Returns the first key that is not there.
fn fill(store: &Store, tree: &Tree, key: i64) -> (i64, Error) {
    (key..key + ROWS_MAX)
        .find_map(|key| Some((key, put(store, tree, key).err()?)))
        .expect("the log has a limit")
}

fn assert_is_the_disks(error: &Error, kind: ErrorKind) {
    assert_eq!(error.kind(), kind, "{error}");
    let said = error.message();
    assert!(
        said.contains(PATH) && said.contains("making room in the log"),
        "{said}"
    );
    // Not the name under which the file was made.
    assert!(!said.contains("-new"), "{said}");
    let cause = std::error::Error::source(error).expect("the disk's own error");
    assert!(
        cause.downcast_ref::<fulgurite_disk::DiskError>().is_some(),
        "{cause}"
    );
}

fn holds(store: &Store, tree: &Tree, keys: impl IntoIterator<Item = i64>) {
    let mut txn = store.txn();
    txn.begin(fulgurite_store::Isolation::Snapshot)
        .expect("begins");
    let mut found = Vec::new();
    for key in keys {
        assert!(
            txn.get_into(tree, Key::Int(key), &mut found)
                .expect("reads")
        );
        assert_eq!(found, [key as u8; 1_000]);
    }
}

/// Fails, goes on failing, recovers. Returns how many rows there are.
fn falls_and_rises(disk: &SimDisk, store: &Store, tree: &Tree, kind: ErrorKind) -> i64 {
    let (end, error) = fill(store, tree, 0);
    assert!(end > 30, "the log takes what it has room for, not {end}");
    assert_is_the_disks(&error, kind);
    let again = put(store, tree, end).expect_err("as long as the disk is so");
    assert_is_the_disks(&again, kind);
    holds(store, tree, 0..end);
    disk.heal();
    for key in end..end + 100 {
        put(store, tree, key).expect("the disk takes pages again");
    }
    holds(store, tree, 0..end + 100);
    let faults = store.integrity_check().expect("a check");
    assert!(faults.is_empty(), "{faults:?}");
    end + 100
}

#[test]
fn a_commit_ends_with_what_the_checkpoint_met() {
    watch_background();
    for (error, kind) in [
        (FaultError::Io, ErrorKind::Io),
        (FaultError::NoSpace, ErrorKind::Full),
    ] {
        let (disk, store, tree) = open_without_room(&small(), error);
        let rows = falls_and_rises(&disk, &store, &tree, kind);
        drop((store, tree));
        let store = open(&disk, &small()).expect("opens again");
        let tree = store.family("t").expect("reads").expect("is there");
        holds(&store, &tree, 0..rows);
    }
    assert_no_background_panic();
}

/// No time passes: who waits makes the checkpoint, and hears of it at once.
#[test]
fn so_does_one_of_a_driven_store() {
    for (error, kind) in [
        (FaultError::Io, ErrorKind::Io),
        (FaultError::NoSpace, ErrorKind::Full),
    ] {
        let driver = SimDriver::new(&SimDisk::new(8));
        let options = Options {
            driver: Some(driver.clone()),
            ..small()
        };
        let (disk, store, tree) = open_without_room(&options, error);
        falls_and_rises(&disk, &store, &tree, kind);
        assert_eq!(driver.now(), Duration::ZERO);
    }
}

/// Each of them waits until a checkpoint fails that began after it asked.
#[test]
fn all_who_wait_hear_of_it() {
    watch_background();
    let (disk, store, tree) = open_without_room(&small(), FaultError::Io);
    let ends: Vec<(i64, Error)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (store, tree) = (&store, &tree);
                scope.spawn(move || fill(store, tree, thread * ROWS_MAX))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    for (_, error) in &ends {
        assert_is_the_disks(error, ErrorKind::Io);
    }
    disk.heal();
    std::thread::scope(|scope| {
        for (end, _) in &ends {
            let (store, tree) = (&store, &tree);
            scope.spawn(move || {
                for key in *end..end + 40 {
                    put(store, tree, key).expect("the disk takes pages again");
                }
            });
        }
    });
    for (thread, (end, _)) in ends.iter().enumerate() {
        holds(&store, &tree, thread as i64 * ROWS_MAX..end + 40);
    }
    assert_no_background_panic();
}

/// One write fails, the next checkpoint is whole: at most one commit is lost on it,
/// and nothing has to be opened again.
#[test]
fn one_failure_costs_one_commit() {
    watch_background();
    let (disk, store, tree) = open_without_room(&small(), FaultError::Io);
    disk.heal();
    refuse_pages(&disk, FaultError::Io, false);
    let (end, error) = fill(&store, &tree, 0);
    assert_is_the_disks(&error, ErrorKind::Io);
    for key in end..end + 200 {
        put(&store, &tree, key).expect("it was one failure");
    }
    holds(&store, &tree, 0..end + 200);
    assert_no_background_panic();
}

/// A checkpoint fails while the log is short, and the one that makes up for it covers
/// a long one without beginning another generation: nothing was left to cover, and the
/// log stayed full, however often somebody asked for room.
#[test]
fn what_is_covered_makes_room() {
    let driver = SimDriver::new(&SimDisk::new(9));
    let options = Options {
        driver: Some(driver.clone()),
        ..small()
    };
    let (disk, store, tree) = open_without_room(&options, FaultError::Io);
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    txn.put(&tree, Key::Int(-1), b"short").expect("a put");
    txn.commit().expect("the log has room");
    store.checkpoint().expect_err("the disk takes no pages");
    let (end, error) = fill(&store, &tree, 0);
    assert_is_the_disks(&error, ErrorKind::Io);
    disk.heal();
    store.checkpoint().expect("the disk takes pages again");
    for key in end..end + 100 {
        put(&store, &tree, key).expect("there is room");
    }
    holds(&store, &tree, 0..end + 100);
    assert_eq!(driver.now(), Duration::ZERO);
}
