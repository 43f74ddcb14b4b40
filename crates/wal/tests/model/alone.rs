//! Models of the log on its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::thread;

use super::explore::{
    Schedulers::{All, Fair},
    explore,
};
use super::wal::{self, Lsn, Options, Wal};
use super::{TestDisk, new_disk};

fn open_alone(disk: &TestDisk) -> Wal {
    let options = Options::memory()
        .limit_bytes(64 << 10)
        .disk(Arc::new(disk.clone()));
    Wal::open("alone.log", options).unwrap()
}

/// Three committers on a log of its own, with records in the ring and around
/// it, beside appends that nobody waits for and a truncation.
fn committers_alone() {
    let disk = new_disk();
    let log = Arc::new(open_alone(&disk));
    let threads: Vec<_> = [[20, 100], [130, 8], [16, 24]]
        .into_iter()
        .map(|sizes| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                log.append(&[1; 5]).unwrap();
                for size in sizes {
                    log.commit(&vec![1; size]).unwrap();
                }
            })
        })
        .collect();
    let first = log.append(&[2; 9]).unwrap();
    log.truncate(first).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    log.flush().unwrap();
    let state = &disk.state;
    assert_eq!(
        state.synced_writes.load(Ordering::SeqCst),
        state.writes.load(Ordering::SeqCst)
    );
    let records = |log: &Wal| {
        let records = log.replay(Lsn::FIRST).unwrap();
        records.collect::<wal::Result<Vec<_>>>().unwrap()
    };
    let before = records(&log);
    assert!(before.len() <= 10 && before[0].0 == first);
    drop(log);
    assert_eq!(records(&open_alone(&disk)), before);
}

#[test]
fn a_log_on_its_own() {
    explore(500, All, committers_alone);
}

/// A log whose records went past what was prepared, by appends that nobody
/// flushed. Two committers prepare the file further, each beside the other's
/// records, which pass the border of a block with the second's first or second
/// record: no zero may come upon one.
fn zeros_beside_records(first: usize, second: [usize; 3]) {
    let disk = new_disk();
    let log = Arc::new(open_alone(&disk));
    for _ in 0..5 {
        log.append(&[1; 2368]).unwrap();
    }
    log.flush().unwrap();
    disk.state.turns_before_zeros.store(30, Ordering::SeqCst);
    let threads: Vec<_> = [[first, 30, 20], second]
        .into_iter()
        .map(|sizes| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for size in sizes {
                    log.commit(&vec![2; size]).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let held = |log: &Wal| {
        let records = log.replay(Lsn::FIRST).unwrap().map(|record| {
            let (_, payload) = record.unwrap();
            assert!(payload.iter().all(|byte| *byte > 0));
            payload.len()
        });
        records.collect::<Vec<_>>()
    };
    let before = held(&log);
    assert_eq!(before.len(), 11);
    drop(log);
    assert_eq!(held(&open_alone(&disk)), before);
}

#[test]
fn zeros_never_come_upon_a_record() {
    for (first, second) in [
        (190, [30, 24, 32]),
        (190, [2100, 24, 32]),
        (100, [30, 60, 24]),
    ] {
        explore(700, All, move || zeros_beside_records(first, second));
    }
}

/// As `failing_sync`, for a log on its own.
fn failing_sync_alone() {
    let disk = new_disk();
    let log = Arc::new(open_alone(&disk));
    let threads: Vec<_> = (0..3)
        .map(|index| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                let sizes = [10, 100 * (index % 2), 30];
                sizes
                    .into_iter()
                    .map_while(|size| log.commit(&vec![3; size]).ok())
                    .count()
            })
        })
        .collect();
    disk.state.fail_syncs.store(true, Ordering::SeqCst);
    let told: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    if told < 9 {
        assert!(log.poisoned().is_some());
        assert!(log.append(&[0]).is_err() && log.flush().is_err());
    }
    drop(log);
    disk.state.fail_syncs.store(false, Ordering::SeqCst);
    assert!(open_alone(&disk).replay(Lsn::FIRST).unwrap().count() >= told);
}

#[test]
fn poison_reaches_everybody_on_a_log_on_its_own() {
    explore(500, Fair, failing_sync_alone);
}
