//! The log on its own at its edges, through its public interface: the end of a lap, the
//! largest records, positions and names that are none of its own, and its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_wal::{Error, Lone, Lsn, Options, Preallocation, Waiting, Wal};

const LAP: u64 = 64 << 10;

fn in_memory(disk: &MemoryDisk) -> Options {
    Options::memory()
        .disk(Arc::new(disk.clone()))
        .limit_bytes(LAP)
}

fn contents(log: &Wal) -> Vec<Vec<u8>> {
    let records = log.replay(Lsn::FIRST).unwrap();
    records.map(|record| record.unwrap().1).collect()
}

/// A commit that had no room in the last block of a lap went to the next one and left
/// the rest of the file unwritten. So the file was a little shorter than a lap, and was
/// taken for one that had not come to its end yet: replaying failed, and opening anew
/// found nothing of what was committed since.
#[test]
fn a_lap_may_end_before_the_end_of_its_last_block() {
    for size in [128, 200, 470] {
        let disk = MemoryDisk::new();
        let options = || in_memory(&disk).preallocation(Preallocation::None);
        let log = Wal::open("a.log", options()).unwrap();
        let mut kept = Vec::new();
        for number in 0.. {
            if log.end().to_u64() - log.first().to_u64() > LAP - 2048 {
                let at: Lsn = log.replay(Lsn::FIRST).unwrap().nth(9).unwrap().unwrap().0;
                log.truncate(at).unwrap();
                kept.drain(..9);
            }
            kept.push(vec![number as u8; size]);
            log.commit(&kept[kept.len() - 1]).unwrap();
            if log.end().to_u64() > LAP + 1_000 {
                break;
            }
        }
        let file = disk.open(Path::new("a.log"), OpenOptions::READ).unwrap();
        assert!(file.len().unwrap() < 8192 + LAP, "{size}");
        assert_eq!(contents(&log), kept, "{size}");
        drop(log);
        let log = Wal::open("a.log", options()).unwrap();
        assert_eq!(contents(&log), kept, "{size}");
    }
}

/// It was told that the log holds what it held when the reading began: the position that
/// it could not have among the rest.
#[test]
fn a_reader_that_truncation_overtook_is_told_what_the_log_holds_now() {
    let disk = MemoryDisk::new();
    let log = Wal::open("a.log", in_memory(&disk)).unwrap();
    let at: Vec<Lsn> = (0..10).map(|i| log.append(&[i; 100]).unwrap()).collect();
    let mut records = log.replay(Lsn::FIRST).unwrap();
    assert_eq!(records.next().unwrap().unwrap().0, at[0]);
    log.truncate(at[5]).unwrap();
    let error = records
        .next()
        .unwrap()
        .expect_err("it is not there any more");
    let Error::NoRecord {
        position,
        first,
        end,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(position, at[1].to_u64());
    assert_eq!((first, end), (at[5].to_u64(), log.end().to_u64()));
    assert!(records.next().is_none());
}

/// The next block of a position so large begins beyond what 64 bits hold. There was a
/// panic or, without checks for that, a head that no opening took for one any more.
#[test]
fn no_position_behind_the_end_can_be_truncated_to() {
    let disk = MemoryDisk::new();
    let log = Wal::open("a.log", in_memory(&disk)).unwrap();
    log.commit(b"kept").unwrap();
    for position in [u64::MAX, u64::MAX - 7, u64::MAX - 4095, 1 << 62, LAP, 4096] {
        let error = log.truncate(Lsn::from_u64(position)).unwrap_err();
        assert!(matches!(error, Error::NoRecord { .. }), "{error}");
        let error = log.replay(Lsn::from_u64(position)).unwrap_err();
        assert!(matches!(error, Error::NoRecord { .. }), "{error}");
    }
    drop(log);
    let log = Wal::open("a.log", in_memory(&disk)).unwrap();
    assert_eq!(contents(&log), [b"kept".to_vec()]);
}

/// A position within the last record of a block, or in the rest that was left behind it,
/// was taken for the next block's first record: a caller who was wrong by a few bytes was
/// not told, and gave that record up or missed it.
#[test]
fn positions_within_records_at_the_end_of_a_block_are_refused() {
    // They leave 56, 96 and 80 bytes of a block; what ends there begins in the same block
    // or, in the last case, in the one before.
    for sizes in [vec![128; 26], vec![232; 16], vec![9_000, 3_106, 128, 128]] {
        let log = Wal::open("a", in_memory(&MemoryDisk::new())).unwrap();
        let mut places: Vec<(u64, usize)> = Vec::new();
        for (before, size) in sizes.iter().enumerate() {
            let end = log.end().to_u64();
            let begins = log.append(&vec![7; *size]).unwrap().to_u64();
            places.extend([(end, before), (begins, before)]);
        }
        places.push((log.end().to_u64(), sizes.len()));
        assert!(
            places
                .iter()
                .any(|(place, _)| place % 4096 == 0 && *place > 0)
        );
        for position in (8..=log.end().to_u64()).step_by(8) {
            let found = log.replay(Lsn::from_u64(position));
            match places.iter().find(|(place, _)| *place == position) {
                Some((_, before)) => assert_eq!(found.unwrap().count(), sizes.len() - before),
                None => assert!(matches!(found, Err(Error::NoRecord { .. })), "{position}"),
            }
        }
        for position in [4_064, 4_088, 12_216, 12_280] {
            let truncated = log.truncate(Lsn::from_u64(position));
            assert!(truncated.is_err(), "{position}");
        }
        assert_eq!(contents(&log).len(), sizes.len());
    }
}

/// What a payload left in the file looked like the beginning of a life with the largest
/// number there is; to look for the one behind it overflowed.
#[test]
fn the_largest_number_in_a_payload_is_no_overflow() {
    let disk = MemoryDisk::new();
    let log = Wal::open("a.log", in_memory(&disk)).unwrap();
    let mut head = [0; 32];
    head[4] = 8;
    head[8..16].fill(0xFF);
    head[24] = 64;
    // A payload begins at the record's byte 25, a head at one divisible by 8.
    let payload = [&[0; 7][..], &head.repeat(500)].concat();
    while log.end().to_u64() < LAP {
        log.commit(&payload).unwrap();
        log.truncate(log.end()).unwrap();
    }
    for number in 1..9 {
        log.commit(&vec![0; number * 8]).unwrap();
        assert_eq!(contents(&log).len(), number);
        let log = Wal::open("a.log", in_memory(&disk.copied())).unwrap();
        assert_eq!(contents(&log).len(), number);
    }
}

/// It was appended where an earlier record had found room enough for it, and refused
/// where not.
#[test]
fn a_record_of_more_than_half_of_the_limit_is_refused_every_time() {
    let log = Wal::open("a.log", in_memory(&MemoryDisk::new())).unwrap();
    let longest = LAP as usize / 2 - 25;
    for _ in 0..3 {
        for len in [longest + 1, 40_000, LAP as usize] {
            let error = log.append(&vec![1; len]).unwrap_err();
            assert!(matches!(error, Error::TooBig { .. }), "{error}");
        }
        log.append(&vec![1; longest]).unwrap();
        log.truncate(log.end()).unwrap();
        log.append(b"finds room for many").unwrap();
    }
}

/// Closing waited for a batch, which nobody could complete any more, for as long as the
/// batch was to be waited for.
#[test]
fn closing_waits_for_no_batch() {
    let disk = MemoryDisk::new();
    let options = || {
        in_memory(&disk).waiting(Waiting::Batch {
            records: 4,
            bytes: u64::MAX,
            at_most: Duration::MAX,
        })
    };
    let log = Wal::open("a.log", options()).unwrap();
    log.append(b"first").unwrap();
    log.close().unwrap();
    let log = Wal::open("a.log", options()).unwrap();
    log.append(b"second").unwrap();
    drop(log);
    let log = Wal::open("a.log", options()).unwrap();
    assert_eq!(contents(&log), [b"first".to_vec(), b"second".to_vec()]);
}

/// Making a log emptied, and then renamed, whatever had its name with `-new` behind it;
/// rebuilding a mirror's side did so where that was the only side left.
#[test]
fn what_has_a_passing_name_is_left_alone() {
    let disk = MemoryDisk::new();
    let log = Wal::open("a-new", in_memory(&disk)).unwrap();
    log.commit(b"another log").unwrap();
    drop(log);
    let error = Wal::open("a", in_memory(&disk)).unwrap_err();
    assert!(
        error.to_string().contains("a-new: it was not left by"),
        "{error}"
    );
    let file = disk.open(Path::new("b-new"), OpenOptions::CREATE).unwrap();
    file.write_at(b"no log at all", 0).unwrap();
    let error = Wal::open("b", in_memory(&disk)).unwrap_err();
    assert!(
        error.to_string().contains("b-new: it was not left by"),
        "{error}"
    );
    let mut found = [0; 13];
    file.read_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"no log at all");
    let log = Wal::open("a-new", in_memory(&disk)).unwrap();
    assert_eq!(contents(&log), [b"another log".to_vec()]);
    drop(log);

    let mirrored = || Options {
        mirror: Some("c-new".into()),
        lone: Lone::Rebuild,
        ..in_memory(&disk)
    };
    let log = Wal::open("c", mirrored()).unwrap();
    log.commit(b"on both").unwrap();
    drop(log);
    disk.rename(Path::new("c"), Path::new("away")).unwrap();
    let error = Wal::open("c", mirrored()).unwrap_err();
    assert!(error.to_string().contains("c-new"), "{error}");
    let alone = Options {
        lone: Lone::Open,
        ..mirrored()
    };
    let log = Wal::open("c", alone).unwrap();
    assert_eq!(contents(&log), [b"on both".to_vec()]);
}

/// A side that was rebuilt bore no lock: with a third name for the missing one, another
/// opening took it for its own.
#[test]
fn a_rebuilt_side_is_locked() {
    let disk = MemoryDisk::new();
    let options = |second: &str, lone| Options {
        mirror: Some(second.into()),
        lone,
        ..in_memory(&disk)
    };
    for lost in ["a", "b"] {
        drop(Wal::open("a", options("b", Lone::Refuse)).unwrap());
        disk.remove(Path::new(lost)).unwrap();
        let _log = Wal::open("a", options("b", Lone::Rebuild)).unwrap();
        for side in ["a", "b"] {
            let error = Wal::open("c", options(side, Lone::Open)).unwrap_err();
            assert!(error.to_string().contains("by this process"), "{error}");
        }
    }
}

fn bytes_of(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Writes a number into both copies of a block, whose checksum is made to agree.
fn forge(disk: &MemoryDisk, path: &str, copies: [usize; 2], field: usize, crc_at: usize) {
    let mut bytes = bytes_of(disk, path);
    for copy in copies {
        bytes[copy + field..copy + field + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes[copy..copy + crc_at]);
        bytes[copy + crc_at..copy + crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let file = disk.open(Path::new(path), OpenOptions::WRITE).unwrap();
    file.write_at(&bytes, 0).unwrap();
}

/// Opening adds one to the number of a head's update, and to the epoch of a side that
/// stays alone, and overflowed.
#[test]
fn numbers_that_cannot_grow_are_refused() {
    let disk = MemoryDisk::new();
    drop(Wal::open("a", in_memory(&disk)).unwrap());
    forge(&disk, "a", [0, 4096], 16, 124);
    let before = bytes_of(&disk, "a");
    let error = Wal::open("a", in_memory(&disk)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(bytes_of(&disk, "a") == before);

    let options = || Options {
        mirror: Some("c".into()),
        lone: Lone::Open,
        ..in_memory(&disk)
    };
    drop(Wal::open("b", options()).unwrap());
    disk.remove(Path::new("c")).unwrap();
    forge(&disk, "b", [2048, 6144], 8, 60);
    let error = Wal::open("b", options()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}
