//! A recovery that fails leaves the file as it found it.

use std::sync::Arc;

use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::{Key, KeyKind, Options, Result, Store};

const ROWS: i64 = 60;

fn open(disk: &SimDisk) -> Result<Store> {
    Store::open_on(Arc::new(disk.clone()), "d.db", Options::default())
}

/// Fills a family by a transaction that is too large for the log, and commits once more.
fn fill(store: &Store) -> Result<()> {
    let mut txn = store.txn();
    txn.begin_immediate()?;
    let tree = txn.create_family("t", KeyKind::Int)?;
    for key in 0..ROWS {
        txn.put(&tree, Key::Int(key), &[7; 90_000])?;
    }
    txn.commit()?;
    txn.begin_immediate()?;
    txn.put(&tree, Key::Int(ROWS), b"one more")?;
    txn.commit()
}

fn rows(store: &Store) -> Result<u64> {
    let tree = store.family("t")?.expect("the family");
    let mut txn = store.txn();
    txn.begin_read()?;
    txn.count(&tree)
}

/// Before its first checkpoint, a file whose recovery failed was given one as it was closed:
/// that counted the pages of the large transaction as used, and the log, which is read anew
/// the next time, says that they are free.
#[test]
fn whichever_read_of_a_recovery_fails_the_next_one_succeeds() {
    let disk = SimDisk::new(1);
    let store = open(&disk).expect("opens");
    fill(&store).expect("commits");
    let left = || disk.kill_image();
    let mut failed = 0;
    for after in 0.. {
        let image = left();
        image.fail(Fault {
            call: Some(Call::Read),
            after,
            for_good: false,
            error: FaultError::Io,
        });
        let opened = open(&image);
        failed += u32::from(opened.is_err());
        drop(opened);
        if image.faults_met() == 0 {
            break;
        }
        image.heal();
        let store = open(&image).unwrap_or_else(|error| panic!("read {after}: {error}"));
        assert_eq!(
            rows(&store).expect("reads"),
            ROWS as u64 + 1,
            "read {after}"
        );
        let problems = store.integrity_check().expect("a check");
        assert_eq!(problems, [""; 0], "read {after}");
    }
    assert!(failed > 3, "{failed} recoveries failed");
}
