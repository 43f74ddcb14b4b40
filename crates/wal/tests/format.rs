//! A log written down byte by byte from `docs/file-format.md`, its checksums
//! computed elsewhere, is read as the page says; and what is written is laid
//! out as it says.

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_wal::{Error, Kind, Recovery, WalOptions};

const DATABASE: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Version 1, which has no leases and is read as ever; generation 3, salt 0x0123456789abcdef, durable mark 99.
const HEAD: &str = "46756c6757414c0a0100000000000000000102030405060708090a0b0c0d0e0f\
                    0300000000000000efcdab896745230163000000000000000000000039bf618d";

/// At byte 8224 of that generation: seq 7, durable mark 6, a commit of "hello".
const RECORD: &str = "f3d507b605000000070000000000000006000000000000000168656c6c6f0000";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn open(disk: &MemoryDisk, after_seq: u64) -> fulgurite_wal::Result<Recovery> {
    Recovery::open(
        Arc::new(disk.clone()),
        Path::new("f.db"),
        DATABASE,
        after_seq,
        true,
    )
}

#[test]
fn a_log_made_by_hand_is_read() {
    let disk = MemoryDisk::new();
    let file = disk
        .open(Path::new("f.db-wal1"), OpenOptions::CREATE)
        .unwrap();
    file.truncate(9000).unwrap();
    file.write_at(&bytes(HEAD), 4096).unwrap();
    file.write_at(&bytes(RECORD), 8224).unwrap();
    // The head says that 99 was durable: nothing here goes that far.
    assert!(matches!(open(&disk, 6), Err(Error::Corrupt { .. })));
    // Covered up to there by the checkpoint, the log has nothing to add.
    assert!(open(&disk, 99).unwrap().is_empty());
    // Another version is refused.
    let mut newer = bytes(HEAD);
    newer[8] = 3;
    let crc = crc_fast::crc32_iscsi(&newer[..60]);
    newer[60..].copy_from_slice(&crc.to_le_bytes());
    file.write_at(&newer, 0).unwrap();
    assert!(matches!(
        open(&disk, 99),
        Err(Error::NewerFormat { version: 3, .. })
    ));
}

#[test]
fn a_record_made_by_hand_is_valid_at_its_place_only() {
    for (position, found) in [(8224, true), (8232, false)] {
        let disk = MemoryDisk::new();
        let file = disk
            .open(Path::new("f.db-wal0"), OpenOptions::CREATE)
            .unwrap();
        file.truncate(9000).unwrap();
        let mut head = bytes(HEAD);
        head[48] = 6;
        let crc = crc_fast::crc32_iscsi(&head[..60]);
        head[60..].copy_from_slice(&crc.to_le_bytes());
        file.write_at(&head, 0).unwrap();
        file.write_at(&bytes(RECORD), position).unwrap();
        let mut recovery = open(&disk, 6).unwrap();
        let mut records = Vec::new();
        recovery
            .replay(&mut |record| {
                records.push((record.seq, record.kind, record.payload.to_vec()));
                Ok(())
            })
            .unwrap();
        let expected = if found {
            vec![(7, Kind::Commit, b"hello".to_vec())]
        } else {
            vec![]
        };
        assert_eq!(records, expected);
    }
}

#[test]
fn what_is_written_lies_where_the_page_says() {
    let disk = MemoryDisk::new();
    let recovery = Recovery::open(
        Arc::new(disk.clone()),
        Path::new("f.db"),
        DATABASE,
        0,
        false,
    )
    .unwrap();
    let wal = recovery.start(WalOptions::default(), 1).unwrap();
    let placed = wal.place(wal.reserve(5).unwrap(), 1);
    let ticket = wal.fill(placed, Kind::Attach, &[b"hello"]).unwrap();
    wal.wait(ticket).unwrap();
    let file = disk
        .open(Path::new("f.db-wal0"), OpenOptions::READ)
        .unwrap();
    let mut all = vec![0; 8192 + 64];
    file.read_at(&mut all, 0).unwrap();
    assert_eq!(all[..64], all[4096..4096 + 64]);
    assert_eq!(all[..8], bytes(HEAD)[..8]);
    assert_eq!(all[8..12], [2, 0, 0, 0]);
    assert_eq!(all[16..32], DATABASE);
    assert!(
        all[64..4096]
            .iter()
            .chain(&all[4160..8192])
            .all(|byte| *byte == 0)
    );
    let (begin, record) = all[8192..].split_at(32);
    assert_eq!((begin[24], record[24]), (64, 2));
    assert_eq!((begin[4], record[4]), (0, 5));
    assert_eq!((begin[8], record[8]), (0, 1));
    assert_eq!(&record[25..], b"hello\0\0");
}
