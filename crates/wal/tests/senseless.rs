//! Logs made by hand whose checksums are right and whose numbers make no sense: refused
//! with file and place, and left as they are, unless another copy of the head is whole or
//! what they hold is void.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskFile, MemoryDisk, OpenOptions};
use fulgurite_wal::{Error, Kind, Recovery, WalOptions};

const DATABASE: [u8; 16] = [7; 16];
const SALT: u64 = 0x0123_4567_89ab_cdef;
const START: u64 = 8192;
/// Numbers stay below it.
const LIMIT: u64 = 1 << 63;
const COMMIT: u8 = 1;
const BEGIN: u8 = 64;
const LEASE: u8 = 65;
const LEASE_END: u8 = 66;

fn header(number: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[0..8].copy_from_slice(b"FulgWAL\n");
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    bytes[16..32].copy_from_slice(&DATABASE);
    bytes[32..40].copy_from_slice(&number.to_le_bytes());
    bytes[40..48].copy_from_slice(&SALT.to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The record of `(kind, seq, payload)` at `position`, as `docs/file-format.md` has it.
fn record(position: u64, kind: u8, seq: u64, payload: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    rest.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    rest.extend_from_slice(&seq.to_le_bytes());
    rest.extend_from_slice(&0u64.to_le_bytes());
    rest.push(kind);
    rest.extend_from_slice(payload);
    let mut z = SALT.wrapping_add(position);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let crc = crc_fast::crc32_iscsi(&rest) ^ (z ^ (z >> 31)) as u32;
    let mut record = crc.to_le_bytes().to_vec();
    record.append(&mut rest);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// A log of one generation: its begin record, which has seq `after`, and `records`.
fn log(after: u64, records: &[(u8, u64, Vec<u8>)]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let file = file(&disk);
    for copy in [0, 4096] {
        file.write_at(&header(3), copy).unwrap();
    }
    let mut position = START;
    let begin = (BEGIN, after, Vec::new());
    for (kind, seq, payload) in std::iter::once(&begin).chain(records) {
        let record = record(position, *kind, *seq, payload);
        file.write_at(&record, position).unwrap();
        position += record.len() as u64;
    }
    disk
}

fn file(disk: &MemoryDisk) -> Arc<dyn DiskFile> {
    disk.open(Path::new("f.db-wal1"), OpenOptions::CREATE)
        .unwrap()
}

fn content(disk: &MemoryDisk) -> Vec<u8> {
    let file = file(disk);
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// The numbers that a log brings back behind `after_seq`, or why it is refused.
fn replayed(disk: &MemoryDisk, after_seq: u64) -> fulgurite_wal::Result<Vec<u64>> {
    let path = Path::new("f.db");
    let mut recovery = Recovery::open(Arc::new(disk.clone()), path, DATABASE, after_seq, true)?;
    let mut numbers = Vec::new();
    recovery.replay(&mut |record| {
        numbers.push(record.seq);
        Ok(())
    })?;
    Ok(numbers)
}

/// Where a log is damaged, and what is said of it.
fn refused(disk: &MemoryDisk, after_seq: u64) -> (PathBuf, u64, String) {
    let before = content(disk);
    let error = replayed(disk, after_seq).expect_err("it makes no sense");
    assert_eq!(content(disk), before);
    match error {
        Error::Corrupt {
            file,
            position,
            what,
        } => (file, position, what),
        other => panic!("{other}"),
    }
}

fn lease(phase: u64, last: u64, end: u64) -> Vec<u8> {
    let numbers = [phase, last, end].into_iter().flat_map(u64::to_le_bytes);
    [0; 16].into_iter().chain(numbers).collect()
}

fn lease_end(last: u64, end: u64, phase_last: u64) -> Vec<u8> {
    let numbers = [last, end, phase_last].into_iter();
    numbers.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn a_record_of_a_number_that_no_log_comes_to_is_damage() {
    // Up to the limit the numbers count: the highest one is replayed.
    let highest = log(LIMIT - 2, &[(COMMIT, LIMIT - 1, b"last".to_vec())]);
    assert_eq!(replayed(&highest, LIMIT - 2).unwrap(), [LIMIT - 1]);
    for number in [LIMIT, u64::MAX] {
        for after in [5, LIMIT - 1] {
            let disk = log(after, &[(COMMIT, number, b"beyond".to_vec())]);
            let (file, position, what) = refused(&disk, after);
            assert_eq!((file, position), ("f.db-wal1".into(), START + 32));
            assert!(what.contains(&number.to_string()), "{what}");
        }
    }
}

#[test]
fn a_generation_of_a_number_that_no_log_comes_to_is_no_copy_of_the_header() {
    let disk = log(5, &[(COMMIT, 6, b"six".to_vec())]);
    let file = file(&disk);
    file.write_at(&header(LIMIT), 0).unwrap();
    assert_eq!(replayed(&disk, 5).unwrap(), [6], "the other copy is whole");
    file.write_at(&header(u64::MAX), 4096).unwrap();
    let (file, position, what) = refused(&disk, 5);
    assert_eq!((file, position), ("f.db-wal1".into(), 0));
    assert!(what.contains("header"), "{what}");
}

#[test]
fn a_generation_that_begins_behind_all_numbers_adds_nothing() {
    for after in [LIMIT, u64::MAX] {
        let disk = log(after, &[(COMMIT, 6, b"six".to_vec())]);
        assert_eq!(replayed(&disk, 5).unwrap(), [0; 0]);
    }
}

#[test]
fn a_checkpoint_cannot_cover_numbers_that_no_log_comes_to() {
    let disk = log(5, &[(COMMIT, 6, b"six".to_vec())]);
    assert_eq!(replayed(&disk, LIMIT - 1).unwrap(), [0; 0]);
    for after_seq in [LIMIT, u64::MAX] {
        let error = replayed(&disk, after_seq).expect_err("no checkpoint comes to it");
        assert!(matches!(error, Error::Misuse(_)), "{error}");
    }
}

#[test]
fn a_lease_that_cannot_be_is_damage() {
    let at = START + 32;
    let written = at + record(at, LEASE, 6, &lease(6, 9, 0)).len() as u64;
    let whole = log(5, &[(LEASE, 6, lease(6, 9, written + 64))]);
    assert_eq!(replayed(&whole, 5).unwrap(), [0; 0]);
    let cases = [
        ("numbers behind the limit", lease(6, LIMIT, written)),
        ("all numbers there are", lease(6, u64::MAX, written)),
        ("a last one before the first", lease(5, 5, written)),
        ("a phase that begins later", lease(7, 9, written)),
        ("an end within itself", lease(6, 9, at)),
        ("an end at no multiple of 8", lease(6, 9, written + 1)),
        ("an end behind all files", lease(6, 9, LIMIT)),
        ("an end that overflows", lease(6, 9, u64::MAX - 7)),
        ("another size", lease(6, 9, written)[..39].to_vec()),
        ("no contents", Vec::new()),
    ];
    for (what, payload) in cases {
        // It is no better where the checkpoint covers it.
        for after_seq in [5, 8] {
            let disk = log(5, &[(LEASE, 6, payload.clone())]);
            let (file, position, said) = refused(&disk, after_seq);
            assert_eq!((file, position), ("f.db-wal1".into(), at), "{what}");
            assert!(said.contains("lease"), "{what}: {said}");
        }
    }
}

#[test]
fn an_end_of_a_lease_that_cannot_be_is_damage() {
    let first = START + 32;
    let at = first + record(first, LEASE, 6, &lease(6, 9, 0)).len() as u64;
    let written = at + record(at, LEASE_END, 7, &lease_end(9, 0, 9)).len() as u64;
    let begin = (LEASE, 6, lease(6, 9, written));
    let log = |payload| log(5, &[begin.clone(), (LEASE_END, 7, payload)]);
    assert_eq!(replayed(&log(lease_end(9, written, 9)), 5).unwrap(), [0; 0]);
    let cases = [
        ("numbers behind the limit", lease_end(LIMIT, written, 9)),
        ("all numbers there are", lease_end(u64::MAX, written, 9)),
        ("a last one before its own", lease_end(6, written, 9)),
        ("an end within itself", lease_end(9, at, 9)),
        ("an end at no multiple of 8", lease_end(9, written + 4, 9)),
        ("an end behind all files", lease_end(9, LIMIT, 9)),
        ("another size", lease_end(9, written, 9)[..23].to_vec()),
        ("no contents", Vec::new()),
    ];
    for (what, payload) in cases {
        for after_seq in [5, 8] {
            let (file, position, said) = refused(&log(payload.clone()), after_seq);
            assert_eq!((file, position), ("f.db-wal1".into(), at), "{what}");
            assert!(said.contains("lease"), "{what}: {said}");
        }
    }
}

/// Nothing would be found again of what a log that begins there holds.
#[test]
fn a_log_does_not_begin_where_numbers_end() {
    let path = Path::new("f.db");
    let start = |disk: &MemoryDisk, after_seq, next_seq| {
        let disk = Arc::new(disk.clone());
        let recovery = Recovery::open(disk, path, DATABASE, after_seq, false)?;
        recovery.start(WalOptions::default(), next_seq).map(drop)
    };
    let empty = MemoryDisk::new();
    for next_seq in [LIMIT / 2, LIMIT - 1, LIMIT, u64::MAX] {
        let refused = start(&empty, 5, next_seq);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{next_seq}");
        let refused = start(&empty, next_seq.min(LIMIT - 1), next_seq);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{next_seq}");
    }
    start(&empty, 5, LIMIT / 2 - 1).expect("there is room");
    let last = MemoryDisk::new();
    for copy in [0, 4096] {
        file(&last).write_at(&header(LIMIT - 1), copy).unwrap();
    }
    let begin = record(START, BEGIN, 5, &[]);
    file(&last).write_at(&begin, START).unwrap();
    let refused = start(&last, 5, 6);
    assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
}

/// Nobody would ever end the wait.
#[test]
fn a_record_that_is_not_there_is_not_waited_for() {
    let disk = Arc::new(MemoryDisk::new());
    let recovery = Recovery::open(disk, Path::new("f.db"), DATABASE, 0, false).unwrap();
    let log = recovery.start(WalOptions::default(), 1).unwrap();
    for seq in [1, 2, LIMIT, u64::MAX] {
        let refused = log.wait_seq(seq);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{seq}");
    }
    let permit = log.reserve(4).unwrap();
    let ticket = log
        .fill(log.place(permit, 1), Kind::Commit, &[b"four"])
        .unwrap();
    log.wait(ticket).unwrap();
    log.wait_seq(1).unwrap();
    let refused = log.wait_seq(2);
    assert!(matches!(refused, Err(Error::Misuse(_))));
}
