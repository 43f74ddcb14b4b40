//! Mirrors of which both sides are damaged, each in another place.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskFile, MemoryDisk, OpenOptions};
use fulgurite_wal::{Error, Lone, Lsn, Options, Wal};

const SIDES: [&str; 2] = ["a", "b"];
/// Where positions of a log's first lap lie in its file.
const START: u64 = 8192;
const LIMIT: u64 = 64 << 10;
/// What stands before a record's payload.
const HEAD: usize = 25;

fn open(disk: &MemoryDisk) -> Result<Wal, Error> {
    let options = Options {
        mirror: Some(SIDES[1].into()),
        lone: Lone::Refuse,
        ..Options::memory()
            .disk(Arc::new(disk.clone()))
            .limit_bytes(LIMIT)
    };
    Wal::open(SIDES[0], options)
}

/// Where the records begin, and what they are.
fn records_of(log: &Wal) -> Vec<(u64, Vec<u8>)> {
    let records = log.replay(Lsn::FIRST).unwrap();
    let records = records.map(|record| record.unwrap());
    records.map(|(at, bytes)| (at.to_u64(), bytes)).collect()
}

fn file_of(disk: &MemoryDisk, side: usize) -> Arc<dyn DiskFile> {
    disk.open(Path::new(SIDES[side]), OpenOptions::WRITE)
        .unwrap()
}

fn bytes_of(disk: &MemoryDisk, side: usize) -> Vec<u8> {
    let file = file_of(disk, side);
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(disk: &MemoryDisk, side: usize, bytes: &[u8]) {
    let file = file_of(disk, side);
    file.truncate(bytes.len() as u64).unwrap();
    file.write_at(bytes, 0).unwrap();
}

/// A mirror of some lives, whose records, of many sizes, went around it more than once.
fn mirror() -> (MemoryDisk, Vec<(u64, Vec<u8>)>) {
    let disk = MemoryDisk::new();
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..4 {
        let log = open(&disk).unwrap();
        for _ in 0..40 {
            let size = [rng.usize(0..600), rng.usize(0..3_000)][rng.usize(0..2)];
            log.commit(&vec![rng.u8(..); size]).unwrap();
            let records = records_of(&log);
            if log.stats().kept_bytes > LIMIT / 2 {
                log.truncate(Lsn::from_u64(records[records.len() / 2].0))
                    .unwrap();
            }
        }
    }
    let log = open(&disk).unwrap();
    for size in [900, 12, 5_000, 0, 40] {
        log.commit(&vec![rng.u8(..); size]).unwrap();
    }
    let records = records_of(&log);
    assert!(
        records[0].0 > LIMIT && records.len() > 20,
        "{}",
        records.len()
    );
    drop(log);
    (disk, records)
}

fn offset(position: u64) -> usize {
    (START + position % LIMIT) as usize
}

fn assert_mended(disk: &MemoryDisk, records: &[(u64, Vec<u8>)]) {
    let log = open(disk).unwrap();
    assert_eq!(log.stats().sides, 2);
    assert!(records_of(&log) == records);
    drop(log);
    assert!(bytes_of(disk, 0) == bytes_of(disk, 1));
}

fn assert_refused(disk: &MemoryDisk) {
    let before = [bytes_of(disk, 0), bytes_of(disk, 1)];
    let error = open(disk).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!([bytes_of(disk, 0), bytes_of(disk, 1)] == before);
}

/// A mirror whose sides had each lost a record was refused, though together they had all.
#[test]
fn each_side_has_what_the_other_lost() {
    let (disk, records) = mirror();
    let whole = bytes_of(&disk, 0);
    let last = records.len() - 1;
    for on_first in 0..last {
        for on_second in 0..last {
            let mut sides = [whole.clone(), whole.clone()];
            sides[0][offset(records[on_first].0) + 9] ^= 4;
            sides[1][offset(records[on_second].0) + 2] ^= 4;
            put(&disk, 0, &sides[0]);
            put(&disk, 1, &sides[1]);
            if on_first == on_second {
                assert_refused(&disk);
            } else {
                assert_mended(&disk, &records);
            }
        }
    }
}

/// What is damaged may be a head, or the file's end.
#[test]
fn one_side_has_the_head_and_the_other_the_records() {
    let (disk, records) = mirror();
    let whole = bytes_of(&disk, 0);
    for headless in 0..2 {
        for filler in [0, 0xff] {
            for lost in &records[..records.len() - 1] {
                let mut sides = [whole.clone(), whole.clone()];
                for copy in [0, 4096] {
                    sides[headless][copy..copy + 512].fill(filler);
                }
                sides[1 - headless][offset(lost.0)] ^= 1;
                put(&disk, 0, &sides[0]);
                put(&disk, 1, &sides[1]);
                assert_mended(&disk, &records);
            }
        }
        for lost in &records[..records.len() - 1] {
            let mut sides = [whole.clone(), whole.clone()];
            let end = (offset(lost.0) + HEAD + lost.1.len()).min(whole.len());
            sides[headless].truncate(end);
            sides[1 - headless][offset(lost.0)] ^= 1;
            put(&disk, 0, &sides[0]);
            put(&disk, 1, &sides[1]);
            assert_mended(&disk, &records);
        }
    }
}

/// Bytes of either side are damaged by chance: where each record is whole on a side the log
/// opens with all, and else it has none after the first that is gone.
#[test]
fn by_chance() {
    let (disk, records) = mirror();
    let whole = bytes_of(&disk, 0);
    let (mut mended, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut sides = [whole.clone(), whole.clone()];
        for side in &mut sides {
            for _ in 0..rng.usize(1..8) {
                let at = rng.usize(START as usize..side.len());
                let len = [1, 40, 700][rng.usize(0..3)].min(side.len() - at);
                side[at..at + len].fill(rng.u8(..));
            }
        }
        // Each with what lies before the next one, which may be the beginning of a life.
        let last = &records[records.len() - 1];
        let end = last.0 + (HEAD + last.1.len()) as u64;
        let ends = records.iter().skip(1).map(|record| record.0);
        let mut ranges = records.iter().map(|record| record.0).zip(ends.chain([end]));
        let is_whole = ranges.all(|(from, to)| {
            let has = |side: &Vec<u8>| (from..to).map(offset).all(|at| side[at] == whole[at]);
            sides.iter().any(has)
        });
        put(&disk, 0, &sides[0]);
        put(&disk, 1, &sides[1]);
        match open(&disk) {
            Ok(log) => {
                let found = records_of(&log);
                assert!(records.starts_with(&found), "seed {seed}");
                assert!(!is_whole || found.len() == records.len(), "seed {seed}");
                mended += u32::from(is_whole);
            }
            Err(error) => {
                let is_told = matches!(error, Error::Corrupt { .. });
                assert!(is_told && !is_whole, "seed {seed}: {error}");
                assert!(bytes_of(&disk, 0) == sides[0] && bytes_of(&disk, 1) == sides[1]);
                refused += 1;
            }
        }
    }
    assert!(
        mended > 100 && refused > 20,
        "{mended} mended, {refused} refused"
    );
}
