//! Mirrors of which a side is damaged, old, or something else.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_wal::{Error, Lone, Lsn, Options, Wal};

const SIDES: [&str; 2] = ["a", "b"];
const LONE: [Lone; 3] = [Lone::Refuse, Lone::Open, Lone::Rebuild];

fn alone(disk: &MemoryDisk) -> Options {
    Options::memory()
        .disk(Arc::new(disk.clone()))
        .limit_bytes(64 << 10)
}

fn open(disk: &MemoryDisk, lone: Lone) -> Result<Wal, Error> {
    let options = Options {
        mirror: Some(SIDES[1].into()),
        lone,
        ..alone(disk)
    };
    Wal::open(SIDES[0], options)
}

fn contents(log: &Wal) -> Vec<Vec<u8>> {
    let records = log.replay(Lsn::FIRST).unwrap();
    records.map(|record| record.unwrap().1).collect()
}

fn bytes_of(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(disk: &MemoryDisk, path: &str, bytes: &[u8]) {
    let options = OpenOptions {
        truncate: true,
        ..OpenOptions::CREATE
    };
    let file = disk.open(Path::new(path), options).unwrap();
    file.write_at(bytes, 0).unwrap();
}

/// A mirrored log of so many records.
fn mirror_of(records: usize) -> (MemoryDisk, Vec<Vec<u8>>) {
    let disk = MemoryDisk::new();
    let log = open(&disk, Lone::Refuse).unwrap();
    let payloads: Vec<Vec<u8>> = (0..records).map(|n| vec![n as u8 + 1; 300]).collect();
    for payload in &payloads {
        log.commit(payload).unwrap();
    }
    (disk, payloads)
}

fn assert_whole(disk: &MemoryDisk, lone: Lone, payloads: &[Vec<u8>]) {
    let log = open(disk, lone).unwrap();
    assert_eq!(log.stats().sides, 2);
    assert!(contents(&log) == payloads);
    drop(log);
    assert!(bytes_of(disk, SIDES[0]) == bytes_of(disk, SIDES[1]));
}

/// The first side without a head was no log, though its label said what it was.
#[test]
fn a_side_that_lost_its_head_is_mended_from_the_other() {
    for side in SIDES {
        for filler in [0, 0xff] {
            let (disk, payloads) = mirror_of(20);
            let mut bytes = bytes_of(&disk, side);
            for copy in [0, 4096] {
                bytes[copy..copy + 512].fill(filler);
            }
            put(&disk, side, &bytes);
            assert_whole(&disk, Lone::Refuse, &payloads);
        }
    }
}

/// Where its label was gone as well the mirror could not be opened at all. It may have
/// gone on alone, so that this is for the caller to say.
#[test]
fn a_side_without_head_and_label_is_as_a_missing_one() {
    for (side, other) in [(SIDES[0], SIDES[1]), (SIDES[1], SIDES[0])] {
        for damage in 0..4 {
            let (disk, mut payloads) = mirror_of(20);
            let mut bytes = bytes_of(&disk, side);
            match damage {
                0 => bytes[..8192].fill(0),
                1 => bytes[..8192].fill(0xff),
                2 => bytes.fill(0),
                _ => bytes.clear(),
            }
            put(&disk, side, &bytes);
            let whole = bytes_of(&disk, other);
            let error = open(&disk, Lone::Refuse).unwrap_err();
            assert!(
                matches!(&error, Error::SideUnreadable { file, .. } if file == Path::new(side)),
                "{error}"
            );
            assert!(bytes_of(&disk, side) == bytes && bytes_of(&disk, other) == whole);
            let log = open(&disk, Lone::Open).unwrap();
            assert_eq!(log.stats().sides, 1);
            log.commit(b"alone").unwrap();
            payloads.push(b"alone".to_vec());
            drop(log);
            assert!(bytes_of(&disk, side) == bytes);
            assert_whole(&disk, Lone::Rebuild, &payloads);
        }
    }
}

/// A side whose label alone cannot be read may be the one that went on.
#[test]
fn a_side_that_went_on_alone_is_not_forgotten_with_its_label() {
    let (disk, mut payloads) = mirror_of(3);
    let stale = bytes_of(&disk, "a");
    disk.remove(Path::new("a")).unwrap();
    open(&disk, Lone::Open).unwrap().commit(b"alone").unwrap();
    payloads.push(b"alone".to_vec());
    put(&disk, "a", &stale);
    let newer = bytes_of(&disk, "b");
    let mut damaged = newer.clone();
    damaged[2060] ^= 1;
    damaged[6144 + 12] ^= 1;
    put(&disk, "b", &damaged);
    let error = open(&disk, Lone::Refuse).unwrap_err();
    assert!(matches!(error, Error::SideUnreadable { .. }), "{error}");
    assert!(bytes_of(&disk, "a") == stale && bytes_of(&disk, "b") == damaged);
    // Nor is it a log of one file.
    let error = Wal::open("b", alone(&disk)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    put(&disk, "b", &newer);
    assert_whole(&disk, Lone::Refuse, &payloads);
}

/// Nor for a side that holds nothing, since the log was made alone on it once.
#[test]
fn an_empty_side_does_not_replace_one_that_lost_its_label() {
    let disk = MemoryDisk::new();
    let log = open(&disk, Lone::Refuse).unwrap();
    let unused = bytes_of(&disk, "b");
    log.commit(b"on both").unwrap();
    drop(log);
    let mut damaged = bytes_of(&disk, "a");
    damaged[2060] ^= 1;
    damaged[6144 + 12] ^= 1;
    put(&disk, "a", &damaged);
    // As it was before its first life, alone.
    let mut unused = unused;
    for (copy, field, value, crc_at) in [(0, 64, 0, 124), (2048, 24, 2, 60)] {
        for copy in [copy, copy + 4096] {
            unused[copy + field] = value;
            let crc = crc_fast::crc32_iscsi(&unused[copy..copy + crc_at]);
            unused[copy + crc_at..copy + crc_at + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    put(&disk, "b", &unused);
    let error = open(&disk, Lone::Refuse).unwrap_err();
    assert!(matches!(error, Error::SideUnreadable { .. }), "{error}");
    assert!(bytes_of(&disk, "a") == damaged && bytes_of(&disk, "b") == unused);
}

/// What is no side of the log is not replaced, whatever the options say.
#[test]
fn what_is_no_side_is_left_alone() {
    let (of_others, _) = mirror_of(1);
    let lone_log = MemoryDisk::new();
    let log = Wal::open("a", alone(&lone_log)).unwrap();
    log.commit(b"of one file").unwrap();
    drop(log);
    let strangers = [
        b"a letter".to_vec(),
        [&[0; 16 << 10][..], b"zeros and a letter"].concat(),
        bytes_of(&of_others, "a"),
        bytes_of(&lone_log, "a"),
    ];
    for side in SIDES {
        for lone in LONE {
            for (number, stranger) in strangers.iter().enumerate() {
                let (disk, _) = mirror_of(2);
                put(&disk, side, stranger);
                let error = open(&disk, lone).unwrap_err();
                assert!(matches!(error, Error::NotASide { .. }), "{number}: {error}");
                assert!(bytes_of(&disk, side) == *stranger, "{number}");
            }
        }
    }
}

/// The second side was made equal to the first, whatever a newer program had written there.
#[test]
fn a_side_of_a_newer_format_is_left_alone() {
    for side in SIDES {
        let (disk, _) = mirror_of(2);
        let mut newer = bytes_of(&disk, side);
        for copy in [0, 4096] {
            newer[copy + 8] = 2;
            let crc = crc_fast::crc32_iscsi(&newer[copy..copy + 124]);
            newer[copy + 124..copy + 128].copy_from_slice(&crc.to_le_bytes());
        }
        put(&disk, side, &newer);
        for lone in LONE {
            let error = open(&disk, lone).unwrap_err();
            assert!(matches!(error, Error::NewerFormat { .. }), "{error}");
            assert!(bytes_of(&disk, side) == newer);
        }
    }
}

/// The last group of records before a crash has no witness in its file, but one in the
/// other. The first side was the truth whatever it lacked, as was an earlier copy of it
/// that somebody had put back: what was acknowledged was written over on the second.
#[test]
fn the_side_that_reaches_further_is_the_truth() {
    for side in SIDES {
        let (disk, payloads) = mirror_of(20);
        let mut bytes = bytes_of(&disk, side);
        let at = bytes.windows(300).position(|window| window == payloads[19]);
        bytes[at.unwrap() + 5] ^= 1;
        put(&disk, side, &bytes);
        assert_whole(&disk, Lone::Refuse, &payloads);

        let earlier = bytes_of(&disk, side);
        let log = open(&disk, Lone::Refuse).unwrap();
        log.commit(b"later").unwrap();
        drop(log);
        let payloads = [payloads, vec![b"later".to_vec()]].concat();
        put(&disk, side, &earlier);
        assert_whole(&disk, Lone::Refuse, &payloads);
    }
}

/// A damaged side, opened while the other was away, failed to open, but said from then on
/// that it was the only member: back again, the whole one was stale.
#[test]
fn a_damaged_side_does_not_make_itself_the_only_member() {
    for (side, other) in [(SIDES[0], SIDES[1]), (SIDES[1], SIDES[0])] {
        let (disk, payloads) = mirror_of(20);
        let mut bytes = bytes_of(&disk, side);
        let at = bytes.windows(300).position(|window| window == payloads[3]);
        bytes[at.unwrap() + 5] ^= 1;
        put(&disk, side, &bytes);
        disk.rename(Path::new(other), Path::new("away")).unwrap();
        for lone in [Lone::Open, Lone::Rebuild] {
            let error = open(&disk, lone).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(bytes_of(&disk, side) == bytes);
        }
        disk.rename(Path::new("away"), Path::new(other)).unwrap();
        assert_whole(&disk, Lone::Refuse, &payloads);
    }
}

/// A log of one file was said to be a damaged side. It becomes one where that is asked for.
#[test]
fn a_log_of_one_file_is_mirrored_when_asked_for() {
    for (side, other) in [(SIDES[0], SIDES[1]), (SIDES[1], SIDES[0])] {
        let disk = MemoryDisk::new();
        let log = Wal::open(side, alone(&disk)).unwrap();
        log.commit(b"of one file").unwrap();
        drop(log);
        let bytes = bytes_of(&disk, side);
        for lone in [Lone::Refuse, Lone::Open] {
            let error = open(&disk, lone).unwrap_err();
            assert!(matches!(error, Error::NotMirrored { .. }), "{error}");
        }
        // Something else in the other's place, be it a copy, is not replaced.
        for stranger in [&bytes[..], b"a letter"] {
            put(&disk, other, stranger);
            for lone in LONE {
                assert!(open(&disk, lone).is_err());
            }
            assert!(bytes_of(&disk, side) == bytes && bytes_of(&disk, other) == stranger);
        }
        disk.remove(Path::new(other)).unwrap();
        assert_whole(&disk, Lone::Rebuild, &[b"of one file".to_vec()]);
        let error = Wal::open(side, alone(&disk)).unwrap_err();
        assert!(matches!(error, Error::Mirrored { .. }), "{error}");
        assert_whole(&disk, Lone::Refuse, &[b"of one file".to_vec()]);
    }
}

/// A mirror's first side is the one that is read. Records that it lost while the log was
/// open were damage that reading and truncation reported, though the other side had them.
#[test]
fn what_one_side_lost_is_read_from_the_other() {
    let (disk, payloads) = mirror_of(60);
    let log = open(&disk, Lone::Refuse).unwrap();
    let places: Vec<Lsn> = log
        .replay(Lsn::FIRST)
        .unwrap()
        .map(|r| r.unwrap().0)
        .collect();
    assert_eq!(log.stats().turns_to_other_side, 0);
    let flip = |side: &str, record: usize| {
        let mut bytes = bytes_of(&disk, side);
        bytes[8192 + places[record].to_u64() as usize + 40] ^= 1;
        put(&disk, side, &bytes);
    };
    for lost in [10, 30, 31, 59] {
        flip("a", lost);
    }
    for lost in [0, 20, 58] {
        flip("b", lost);
    }
    assert!(contents(&log) == payloads);
    // From the first side to the second for 10, back for 20, and so on: 30, 58, 59.
    assert_eq!(log.stats().turns_to_other_side, 5);
    for (lost, payload) in payloads.iter().enumerate() {
        let from = log.replay(places[lost]).unwrap().next();
        assert!(from.unwrap().unwrap().1 == *payload, "record {lost}");
    }
    log.truncate(places[30]).unwrap();
    assert!(contents(&log) == payloads[30..]);

    flip("b", 31);
    let read: Vec<_> = log.replay(places[30]).unwrap().collect();
    assert!(read.len() == 2 && read[0].is_ok());
    assert!(matches!(read[1], Err(Error::Corrupt { .. })), "{read:?}");
}
