//! Records that are acknowledged once they are written, since what they say is durable
//! elsewhere.

use fulgurite_disk::MemoryDisk;
use fulgurite_wal::{Durability, Error, Kind, Recovery, Ticket, TwinLog, WalOptions};
use std::path::Path;
use std::sync::Arc;

const DATABASE: [u8; 16] = *b"0123456789abcdef";

fn recover(disk: &MemoryDisk) -> Recovery {
    let disk = Arc::new(disk.clone());
    Recovery::open(disk, Path::new("test.db"), DATABASE, 0, false).unwrap()
}

fn start(disk: &MemoryDisk, durability: Durability) -> TwinLog {
    let options = WalOptions {
        durability,
        ..WalOptions::default()
    };
    recover(disk).start(options, 1).unwrap()
}

fn fill(wal: &TwinLog, seq: u64) -> Ticket {
    let placed = wal.place(wal.reserve(8).unwrap(), seq);
    let payload = seq.to_le_bytes();
    wal.fill(placed, Kind::Commit, &[&payload]).unwrap()
}

fn marks(wal: &TwinLog) -> [u64; 3] {
    [wal.acked(), wal.durable(), wal.stats().syncs]
}

#[test]
fn they_wait_for_no_sync_and_the_next_one_covers_them() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Full);
    wal.acknowledge_written(fill(&wal, 1)).unwrap();
    assert_eq!(marks(&wal), [1, 0, 0]);
    // What the end of the process leaves.
    let mut found = 0;
    let mut recovery = recover(&disk.clone());
    let counts = &mut |_: fulgurite_wal::Record<'_>| {
        found += 1;
        Ok(())
    };
    recovery.replay(counts).unwrap();
    assert_eq!(found, 1);
    wal.wait(fill(&wal, 2)).unwrap();
    assert_eq!(marks(&wal), [2, 2, 1]);
    wal.acknowledge_written(fill(&wal, 3)).unwrap();
    assert_eq!(marks(&wal), [3, 2, 1]);
    wal.sync().unwrap();
    wal.sync().unwrap();
    assert_eq!(marks(&wal), [3, 3, 2]);
}

#[test]
fn one_behind_a_record_that_waits_for_its_sync_waits_for_it_too() {
    let wal = start(&MemoryDisk::new(), Durability::Full);
    let first = fill(&wal, 1);
    wal.acknowledge_written(fill(&wal, 2)).unwrap();
    assert_eq!(marks(&wal), [2, 2, 1]);
    wal.wait(first).unwrap();
}

#[test]
fn the_older_file_is_synced_before_the_next_one_is_written_to() {
    let wal = start(&MemoryDisk::new(), Durability::Full);
    wal.acknowledge_written(fill(&wal, 1)).unwrap();
    wal.prepare_switch().unwrap();
    let old = wal.switch(2).unwrap();
    wal.acknowledge_written(fill(&wal, 2)).unwrap();
    assert_eq!(marks(&wal), [2, 1, 1]);
    wal.recycle(old).unwrap();
    wal.sync().unwrap();
    assert_eq!(marks(&wal), [2, 2, 2]);
}

/// What counts as synced where the log goes over to `normal` must be.
#[test]
fn a_log_that_goes_over_to_normal_syncs_them() {
    let wal = start(&MemoryDisk::new(), Durability::Full);
    wal.acknowledge_written(fill(&wal, 1)).unwrap();
    wal.relax().unwrap();
    assert_eq!(marks(&wal), [1, 1, 1]);
    wal.acknowledge_written(fill(&wal, 2)).unwrap();
    assert_eq!(marks(&wal), [2, 1, 1]);
}

#[test]
fn where_nothing_waits_for_syncs_they_are_as_all_others() {
    for durability in [Durability::Normal, Durability::Off] {
        let wal = start(&MemoryDisk::new(), durability);
        wal.acknowledge_written(fill(&wal, 1)).unwrap();
        assert_eq!(marks(&wal), [1, 0, 0]);
    }
}

#[test]
fn a_poisoned_log_acknowledges_nothing() {
    let wal = start(&MemoryDisk::new(), Durability::Full);
    let ticket = fill(&wal, 1);
    drop(wal.place(wal.reserve(8).unwrap(), 2));
    let refused = wal.acknowledge_written(ticket).unwrap_err();
    assert!(matches!(refused, Error::Poisoned(_)), "{refused}");
    assert_eq!(wal.acked(), 0);
}
