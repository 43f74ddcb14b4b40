//! The log on its own, through its public interface: what was appended comes
//! back, on every device; the limit; bad input.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fulgurite_disk::{Disk, DiskErrorKind, MemoryDisk, OpenOptions};
use fulgurite_wal::{Device, Entry, Error, Lone, Lsn, Options};
use fulgurite_wal::{Preallocation, ReplayError, Waiting, Wal};

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("fulgurite-alone-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn in_memory(disk: &MemoryDisk) -> Options {
    Options::memory()
        .disk(Arc::new(disk.clone()))
        .limit_bytes(64 << 10)
}

fn payload(number: usize) -> Vec<u8> {
    let len = number * 37 % 700;
    (0..len).map(|at| (at * 7 + number) as u8).collect()
}

fn contents(log: &Wal, from: Lsn) -> Vec<Vec<u8>> {
    log.replay(from)
        .unwrap()
        .map(|record| record.unwrap().1)
        .collect()
}

fn open_or_skip(path: &Path, options: Options) -> Option<Wal> {
    match Wal::open(path, options) {
        Ok(log) => Some(log),
        Err(Error::Disk(error)) if error.kind == DiskErrorKind::Unsupported => {
            eprintln!("not available: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_device_gives_back_what_it_was_given() {
    let folder = Folder::new();
    let policies = [
        Preallocation::None,
        Preallocation::Allocate,
        Preallocation::ZeroFill,
    ];
    for device in Device::DURABLE {
        for preallocation in policies {
            let path = folder.path(&format!("{device}-{preallocation:?}"));
            let options = || {
                Options::device(device)
                    .limit_bytes(256 << 10)
                    .preallocation(preallocation)
            };
            let Some(log) = open_or_skip(&path, options()) else {
                continue;
            };
            let wanted: Vec<_> = (0..60).map(payload).collect();
            for (number, payload) in wanted.iter().enumerate() {
                if number % 5 == 0 {
                    log.commit(payload).unwrap();
                } else {
                    log.append(payload).unwrap();
                }
            }
            assert_eq!(contents(&log, Lsn::FIRST), wanted, "{device}");
            log.close().unwrap();
            // With every device, what another one wrote.
            let log = Wal::open(&path, Options::file()).unwrap();
            assert_eq!(contents(&log, Lsn::FIRST), wanted, "{device}");
            drop(log);
            let log = Wal::open(&path, options()).unwrap();
            log.commit(b"more").unwrap();
            assert_eq!(contents(&log, Lsn::FIRST).len(), 61, "{device}");
        }
    }
}

/// Many laps around a small file, truncated as it fills, reopened on the way.
#[test]
fn laps_and_lives() {
    let disk = MemoryDisk::new();
    let path = Path::new("laps.log");
    let mut kept = std::collections::VecDeque::new();
    let mut number = 0;
    for life in 0..12 {
        let log = Wal::open(path, in_memory(&disk)).unwrap();
        let wanted: Vec<_> = kept
            .iter()
            .map(|(_, p): &(Lsn, Vec<u8>)| p.clone())
            .collect();
        assert_eq!(contents(&log, Lsn::FIRST), wanted, "life {life}");
        for _ in 0..200 {
            let bytes = if number % 50 == 49 {
                vec![number as u8; 9_000]
            } else {
                payload(number)
            };
            number += 1;
            kept.push_back((log.append(&bytes).unwrap(), bytes));
            while kept.len() > 60 || log.end().to_u64() - log.first().to_u64() > 50_000 {
                kept.pop_front();
                let before = kept.front().map_or(log.end(), |(lsn, _)| *lsn);
                log.truncate(before).unwrap();
            }
        }
        let (middle, _) = &kept[kept.len() / 2];
        assert_eq!(contents(&log, *middle).len(), kept.len() - kept.len() / 2);
    }
}

#[test]
fn large_records_pass_the_ring_by() {
    let folder = Folder::new();
    let log = Wal::open(folder.path("large"), Options::file()).unwrap();
    let sizes = [10, 200_000, 5, 3_000_000, 131_072, 7];
    for size in sizes {
        log.append(&vec![size as u8; size]).unwrap();
    }
    log.flush().unwrap();
    drop(log);
    let log = Wal::open(folder.path("large"), Options::file()).unwrap();
    let found: Vec<_> = contents(&log, Lsn::FIRST).iter().map(Vec::len).collect();
    assert_eq!(found, sizes);
}

#[test]
fn append_all_keeps_records_together() {
    let log = Wal::open("m", in_memory(&MemoryDisk::new())).unwrap();
    let lsns = log.append_all(&[b"one", b"two", b"three"]).unwrap();
    assert!(lsns.is_sorted());
    assert_eq!(
        contents(&log, lsns[1]),
        [b"two".to_vec(), b"three".to_vec()]
    );
    assert_eq!(log.append_all(&[]).unwrap(), []);
}

#[test]
fn many_committers_share_syncs_and_lose_nothing() {
    let folder = Folder::new();
    let log = Wal::open(folder.path("crowd"), Options::file()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for turn in 0..50u64 {
                    log.commit(&(thread * 1_000 + turn).to_le_bytes()).unwrap();
                }
            });
        }
    });
    let mut found: Vec<u64> = contents(&log, Lsn::FIRST)
        .iter()
        .map(|bytes| u64::from_le_bytes(bytes.as_slice().try_into().unwrap()))
        .collect();
    found.sort_unstable();
    let wanted: Vec<u64> = (0..8)
        .flat_map(|thread| (0..50).map(move |turn| thread * 1_000 + turn))
        .collect();
    assert_eq!(found, wanted);
    let stats = log.stats();
    assert_eq!(stats.records, 400);
    assert!(stats.syncs <= 401, "{stats:?}");
}

/// Who waits for a batch lets the one lead that makes it complete, and a batch that
/// stays incomplete is written when its time is over. (Who got the lock only after its
/// record had been led by another one used to wait for a batch of its own, for all of
/// that time.)
#[test]
fn a_batch_is_waited_for_as_asked() {
    let batch = |at_most| Waiting::Batch {
        records: 4,
        bytes: u64::MAX,
        at_most,
    };
    let disk = MemoryDisk::new();
    let path = Path::new("b.log");
    let log = Wal::open(path, in_memory(&disk).waiting(batch(Duration::MAX))).unwrap();
    let before = log.stats();
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| log.commit(b"one of four").unwrap());
            }
        });
    }
    let stats = log.stats();
    assert_eq!(stats.records - before.records, 80);
    assert_eq!(stats.syncs - before.syncs, 20, "{stats:?}");
    assert_eq!(stats.largest_group, 4);
    drop(log);

    let options = in_memory(&disk).waiting(batch(Duration::ZERO));
    let log = Wal::open(path, options).unwrap();
    log.commit(b"the only one").unwrap();
    assert_eq!(contents(&log, Lsn::FIRST).len(), 81);
}

#[test]
fn the_limit_holds_appends_back_until_a_truncation() {
    let disk = MemoryDisk::new();
    let mut options = in_memory(&disk);
    options.append_timeout = Duration::from_millis(1);
    let log = Wal::open("full", options).unwrap();
    let mut lsns = Vec::new();
    let full = loop {
        match log.append(&[1; 1_000]) {
            Ok(lsn) => lsns.push(lsn),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            full,
            Error::Full {
                limit_bytes: 65_536
            }
        ),
        "{full}"
    );
    assert!(full.is_full());
    drop(log);
    // A full log opens, and can be truncated. No time to wait is too long. (A clock it
    // was added to overflowed, and panicked.)
    let mut options = in_memory(&disk);
    options.append_timeout = Duration::MAX;
    let log = Wal::open("full", options).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST).len(), lsns.len());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.append(&[2; 1_000]));
        log.truncate(lsns[3]).unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(contents(&log, Lsn::FIRST).len(), lsns.len() - 3 + 1);
    let too_big = log.append(&vec![0; 64 << 10]).unwrap_err();
    assert!(matches!(too_big, Error::TooBig { .. }), "{too_big}");
}

/// Records given up before they were written stay in the buffer, which holds
/// more than a small log's file. Written with those of three laps in one go, what
/// went beyond the second ended behind the file's end, and was lost, flushed as
/// it was.
#[test]
fn giving_up_what_is_not_written_does_not_let_laps_meet() {
    for background in [false, true] {
        let disk = MemoryDisk::new();
        let options = || Options {
            background,
            ..in_memory(&disk)
        };
        let log = Wal::open("a.log", options()).unwrap();
        for lap in 1..7 {
            for _ in 0..100 {
                log.append(&[lap; 400]).unwrap();
            }
            log.truncate(log.end()).unwrap();
        }
        let kept: Vec<Vec<u8>> = (10..30).map(|number| vec![number; 300]).collect();
        for payload in &kept {
            log.append(payload).unwrap();
        }
        log.flush().unwrap();
        assert_eq!(contents(&log, Lsn::FIRST), kept);
        drop(log);
        let log = Wal::open("a.log", options()).unwrap();
        assert_eq!(contents(&log, Lsn::FIRST), kept);
    }
}

#[test]
fn positions_that_are_no_records_are_refused() {
    let log = Wal::open("p", in_memory(&MemoryDisk::new())).unwrap();
    let first = log.append(b"first").unwrap();
    let second = log.append(b"second").unwrap();
    for position in [
        first.to_u64() + 8,
        log.end().to_u64() + 8,
        second.to_u64() + 1,
    ] {
        let lsn = Lsn::from_u64(position);
        assert!(
            matches!(log.truncate(lsn), Err(Error::NoRecord { .. })),
            "{lsn}"
        );
        assert!(
            matches!(log.replay(lsn), Err(Error::NoRecord { .. })),
            "{lsn}"
        );
    }
    log.truncate(second).unwrap();
    assert!(matches!(log.replay(first), Err(Error::NoRecord { .. })));
    log.truncate(log.end()).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST), Vec::<Vec<u8>>::new());
    assert_eq!(contents(&log, log.end()), Vec::<Vec<u8>>::new());
    // Backwards is nothing to do.
    log.truncate(first).unwrap();
}

/// A consumer may keep `end()` as the place to go on from. It is no record's
/// where the next one had no room in its block, or began another life.
#[test]
fn what_was_an_end_once_stays_a_place_to_go_on_from() {
    let disk = MemoryDisk::new();
    let mut ends = Vec::new();
    let mut count = 0;
    for _ in 0..4 {
        let log = Wal::open("e", in_memory(&disk)).unwrap();
        for _ in 0..40 {
            ends.push((log.end(), count));
            log.append(&payload(count)).unwrap();
            count += 1;
        }
        log.close().unwrap();
    }
    let log = Wal::open("e", in_memory(&disk)).unwrap();
    for &(end, before) in &ends {
        assert_eq!(contents(&log, end).len(), count - before, "from {end}");
    }
    for &(end, before) in ends.iter().step_by(7) {
        log.truncate(end).unwrap();
        assert_eq!(contents(&log, Lsn::FIRST).len(), count - before, "{end}");
    }
    let (last, before) = ends[ends.len() - 3];
    log.truncate(last).unwrap();
    drop(log);
    let log = Wal::open("e", in_memory(&disk)).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST).len(), count - before);
}

/// 25 records of 160 bytes fill a block but for 96 bytes. The next commit used to
/// write those as zeros, and so two blocks instead of one.
#[test]
fn a_commit_that_begins_a_block_leaves_the_one_before_alone() {
    const LAP: u64 = 64 << 10;
    let disk = MemoryDisk::new();
    let log = Wal::open("b", in_memory(&disk)).unwrap();
    while log.end().to_u64() < LAP {
        log.commit(&[0xAB; 1_000]).unwrap();
        log.truncate(log.end()).unwrap();
    }
    let file = disk.open(Path::new("b"), OpenOptions::WRITE).unwrap();
    let block = log.end().to_u64().next_multiple_of(4096);
    let rest_at = 8192 + block + 4000 - LAP;
    let rest = || {
        let mut bytes = [0; 96];
        file.read_at(&mut bytes, rest_at).unwrap();
        bytes
    };
    let before = rest();
    while log.end().to_u64() < block + 8192 {
        log.commit(&[0xCD; 128]).unwrap();
    }
    assert_eq!(rest(), before);
    assert_ne!(before, [0; 96], "the first lap left something there");
    let kept = contents(&log, Lsn::FIRST);
    log.close().unwrap();
    let log = Wal::open("b", in_memory(&disk)).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST), kept);
}

struct Order(u32);

impl Entry for Order {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, ReplayError> {
        Ok(Self(u32::from_le_bytes(bytes.try_into()?)))
    }
}

#[test]
fn typed_entries_come_back_typed_and_strangers_are_errors() {
    let log = Wal::open("t", in_memory(&MemoryDisk::new())).unwrap();
    log.commit_entry(&Order(7)).unwrap();
    log.append_entry(&Order(8)).unwrap();
    let mut sum = 0;
    log.replay_entries(Lsn::FIRST, |_, Order(number)| {
        sum += number;
        Ok(())
    })
    .unwrap();
    assert_eq!(sum, 15);
    let stranger = log.append(b"longer than an order").unwrap();
    let second = log.replay(Lsn::FIRST).unwrap().nth(1).unwrap().unwrap().0;
    // It is named by its position, wherever the replay began.
    for from in [Lsn::FIRST, second] {
        let error = log.replay_entries(from, |_, _: Order| Ok(())).unwrap_err();
        match error {
            Error::Entry { position, .. } => assert_eq!(position, stranger.to_u64()),
            other => panic!("{other}"),
        }
    }
    let refuse = |lsn, _: Order| {
        if lsn == second {
            Err("no".into())
        } else {
            Ok(())
        }
    };
    match log.replay_entries(Lsn::FIRST, refuse).unwrap_err() {
        Error::Entry { position, .. } => assert_eq!(position, second.to_u64()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_log_has_one_owner() {
    let folder = Folder::new();
    let _log = Wal::open(folder.path("one"), Options::file()).unwrap();
    match Wal::open(folder.path("one"), Options::file()) {
        Err(Error::Disk(error)) => assert!(matches!(error.kind, DiskErrorKind::Busy { .. })),
        other => panic!("{other:?}"),
    }
}

/// A log of ten commits, and its bytes.
fn ten_commits() -> (MemoryDisk, Vec<u8>) {
    let disk = MemoryDisk::new();
    let log = Wal::open("x", in_memory(&disk)).unwrap();
    for number in 0..10 {
        log.commit(&[number; 100]).unwrap();
    }
    drop(log);
    let file = disk.open(Path::new("x"), OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    (disk, bytes)
}

fn reopen_with(bytes: &[u8]) -> Result<Wal, Error> {
    let disk = MemoryDisk::new();
    let file = disk.open(Path::new("x"), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0).unwrap();
    Wal::open("x", in_memory(&disk))
}

#[test]
fn foreign_newer_and_shortened_files_are_refused() {
    let (_, good) = ten_commits();
    assert_eq!(contents(&reopen_with(&good).unwrap(), Lsn::FIRST).len(), 10);

    let error = reopen_with(b"SQLite format 3").unwrap_err();
    assert!(matches!(error, Error::NotALog { .. }), "{error}");

    let mut newer = good.clone();
    for copy in [0, 4096] {
        newer[copy + 8] = 2;
        let crc = crc32c(&newer[copy..copy + 124]);
        newer[copy + 124..copy + 128].copy_from_slice(&crc.to_le_bytes());
    }
    let error = reopen_with(&newer).unwrap_err();
    assert!(
        matches!(error, Error::NewerFormat { version: 2, .. }),
        "{error}"
    );

    let mut headless = good.clone();
    headless[20] ^= 1;
    headless[4096 + 20] ^= 1;
    let error = reopen_with(&headless).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt { position: 0, .. }),
        "{error}"
    );

    for len in [100, 8192, 8192 + 500, good.len() - 1] {
        let error = reopen_with(&good[..len]).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{len}: {error}");
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

/// Flips every bit of the head and of the records, one at a time: every record
/// comes back, or the damage is reported; only the last commit, which nothing
/// testifies for, may look like a torn tail.
#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    let (_, good) = ten_commits();
    let mut reported = 0;
    for at in (0..200).chain(8192..8192 + 40 + 10 * 128) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        match reopen_with(&bad) {
            Ok(log) => {
                let found = contents(&log, Lsn::FIRST);
                assert!(
                    found.len() >= 9,
                    "bit in byte {at}: {} records",
                    found.len()
                );
                assert!(found.iter().zip(0..).all(|(bytes, n)| *bytes == [n; 100]));
            }
            Err(Error::Corrupt { .. }) => reported += 1,
            Err(error) => panic!("bit in byte {at}: {error}"),
        }
    }
    assert!(reported > 1_000, "{reported}");
}

/// Payloads may be full of what looks like the heads of huge records. Behind a
/// torn tail each of them was judged by a checksum over all it claimed, until a
/// limit, and then the log was called damaged and not opened: by whoever had sent
/// such a payload, at the next power cut.
#[test]
fn payloads_full_of_heads_do_not_keep_a_log_from_being_opened() {
    let disk = MemoryDisk::new();
    let options = || in_memory(&disk).limit_bytes(8 << 20);
    let mut head = [0; 32];
    head[4..8].copy_from_slice(&(1_u32 << 20).to_le_bytes());
    head[8..16].copy_from_slice(&u64::from(u32::MAX).to_le_bytes());
    head[16..24].copy_from_slice(&1_000_u64.to_le_bytes());
    head[24] = 1;
    let log = Wal::open("a.log", options()).unwrap();
    log.commit(b"kept").unwrap();
    // A payload begins at the record's byte 25, a head at one divisible by 8.
    let payload = [&[7; 7][..], &head.repeat(3 << 15)].concat();
    let torn = log.commit(&payload).unwrap();
    drop(log);
    // It is the last one: nothing later says that it was durable.
    let file = disk.open(Path::new("a.log"), OpenOptions::WRITE).unwrap();
    // Flipped, not overwritten: a byte of a checksum may be anything already.
    let mut byte = [0];
    file.read_at(&mut byte, 8192 + torn.to_u64()).unwrap();
    file.write_at(&[!byte[0]], 8192 + torn.to_u64()).unwrap();
    drop(file);
    let log = Wal::open("a.log", options()).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST), [b"kept".to_vec()]);
}

#[test]
fn a_file_that_is_cut_under_the_map_is_an_error_and_no_signal() {
    let folder = Folder::new();
    let path = folder.path("cut");
    let Some(log) = open_or_skip(&path, Options::mmap().limit_bytes(1 << 20)) else {
        return;
    };
    log.commit(b"before").unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(8192)
        .unwrap();
    let error = log.commit(&[1; 5_000]).unwrap_err();
    assert!(matches!(error, Error::Poisoned(_)), "{error}");
    assert!(log.append(b"after").is_err());
}

#[test]
fn auto_probes_once_and_remembers() {
    let folder = Folder::new();
    let path = folder.path("auto");
    let log = Wal::open(&path, Options::auto()).unwrap();
    let device = log.device();
    assert_eq!(log.measured().len(), 4);
    assert_eq!(log.measured()[0].device, Device::File);
    log.commit(b"x").unwrap();
    drop(log);
    let log = Wal::open(&path, Options::auto()).unwrap();
    assert_eq!((log.device(), log.measured().len()), (device, 0));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn a_mirror_goes_on_alone_and_is_rebuilt() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a"), folder.path("b"));
    let log = Wal::open(&a, Options::mirror(&b)).unwrap();
    log.commit(b"one").unwrap();
    assert_eq!(log.stats().sides, 2);
    drop(log);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());

    std::fs::remove_file(&a).unwrap();
    let error = Wal::open(&a, Options::mirror(&b)).unwrap_err();
    assert!(matches!(error, Error::SideMissing { .. }), "{error}");

    let stale = std::fs::read(&b).unwrap();
    let lone = |lone| Options {
        lone,
        ..Options::mirror(&b)
    };
    let log = Wal::open(&a, lone(Lone::Open)).unwrap();
    assert_eq!(log.stats().sides, 1);
    log.commit(b"two").unwrap();
    drop(log);

    // The lost side comes back as it was: stale, and rebuilt from the other.
    std::fs::write(&a, &stale).unwrap();
    let log = Wal::open(&a, Options::mirror(&b)).unwrap();
    assert_eq!(
        contents(&log, Lsn::FIRST),
        [b"one".to_vec(), b"two".to_vec()]
    );
    assert_eq!(log.stats().sides, 2);
    drop(log);

    std::fs::remove_file(&b).unwrap();
    let log = Wal::open(&a, lone(Lone::Rebuild)).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST).len(), 2);
    drop(log);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
}

#[test]
fn sides_that_went_apart_are_not_chosen_between() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a"), folder.path("b"));
    drop(Wal::open(&a, Options::mirror(&b)).unwrap());
    let open = || Options {
        lone: Lone::Open,
        ..Options::mirror(&b)
    };
    for side in [&a, &b] {
        let away = folder.path("away");
        std::fs::rename(side, &away).unwrap();
        Wal::open(&a, open()).unwrap().commit(b"apart").unwrap();
        std::fs::rename(&away, side).unwrap();
    }
    let error = Wal::open(&a, Options::mirror(&b)).unwrap_err();
    assert!(matches!(error, Error::SidesDiverged { .. }), "{error}");
}

/// What was committed to the second side alone was gone: with both, the first was taken
/// for the truth, and the second made equal to it.
#[test]
fn a_side_is_not_opened_as_a_log_of_one_file() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a"), folder.path("b"));
    let log = Wal::open(&a, Options::mirror(&b)).unwrap();
    log.commit(b"both").unwrap();
    drop(log);
    for side in [&a, &b] {
        let before = std::fs::read(side).unwrap();
        let error = Wal::open(side, Options::file()).unwrap_err();
        assert!(matches!(error, Error::Mirrored { .. }), "{error}");
        assert_eq!(std::fs::read(side).unwrap(), before);
    }
    let log = Wal::open(&a, Options::mirror(&b)).unwrap();
    assert_eq!(contents(&log, Lsn::FIRST), [b"both".to_vec()]);
}

/// Opening "" made a file whose name was the ending of one, and left it behind.
#[test]
fn a_log_without_a_name_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    let disk = MemoryDisk::new();
    for path in ["", "/", ".."] {
        let error = Wal::open(path, in_memory(&disk)).expect_err("no name");
        assert!(error.to_string().contains("the name of a file"), "{error}");
    }
    assert!(Wal::open(folder.path(".."), Options::default()).is_err());
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), 0);
}

#[test]
fn a_log_that_is_open_here_already_says_so() {
    let disk = MemoryDisk::new();
    let _log = Wal::open("a.wal", in_memory(&disk)).expect("opens");
    let error = Wal::open("a.wal", in_memory(&disk)).expect_err("it is open");
    assert!(error.to_string().contains("by this process"), "{error}");
}
