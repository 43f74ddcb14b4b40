//! The log's promises one by one, on a disk in memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fulgurite_disk::{Disk, DiskFile, Driver, MemoryDisk, OpenOptions};
use fulgurite_wal::{Durability, Error, Kind, PAYLOAD_BYTES_MAX, Recovery, TwinLog, WalOptions};

const DATABASE: [u8; 16] = *b"0123456789abcdef";

fn base() -> &'static Path {
    Path::new("dir/test.db")
}

fn recover(disk: &MemoryDisk, after_seq: u64) -> fulgurite_wal::Result<Recovery> {
    Recovery::open(Arc::new(disk.clone()), base(), DATABASE, after_seq, false)
}

fn start(disk: &MemoryDisk, options: WalOptions) -> TwinLog {
    recover(disk, 0).unwrap().start(options, 1).unwrap()
}

/// A log of at most 100,000 bytes, and a message whenever somebody asks for room.
fn start_small(disk: &MemoryDisk) -> (TwinLog, std::sync::mpsc::Receiver<()>) {
    let (sender, asked) = std::sync::mpsc::channel();
    let options = WalOptions {
        limit_bytes: 100_000,
        reserve_timeout: Duration::from_secs(120),
        pressure: Some(Arc::new(move |_| sender.send(()).unwrap())),
        ..WalOptions::default()
    };
    (start(disk, options), asked)
}

fn replay(disk: &MemoryDisk, after_seq: u64) -> Vec<(u64, Kind, Vec<u8>)> {
    let mut recovery = recover(disk, after_seq).unwrap();
    let mut records = Vec::new();
    recovery
        .replay(&mut |record| {
            records.push((record.seq, record.kind, record.payload.to_vec()));
            Ok(())
        })
        .unwrap();
    assert_eq!(recovery.is_empty(), records.is_empty());
    assert_eq!(
        recovery.last_seq(),
        records.last().map_or(after_seq, |record| record.0)
    );
    records
}

/// Turns every bit of the byte at `at`. To write a given byte there damages nothing
/// where it is that byte already: salts and checksums may be anything, and one run
/// in 256 called a head sound that was.
fn flip(file: &Arc<dyn DiskFile>, at: u64) {
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[!byte[0]], at).unwrap();
}

fn commit(wal: &TwinLog, seq: u64, payload: &[u8]) {
    let permit = wal.reserve(payload.len()).unwrap();
    let placed = wal.place(permit, seq);
    let ticket = wal.fill(placed, Kind::Commit, &[payload]).unwrap();
    wal.wait(ticket).unwrap();
    assert!(wal.acked() >= seq);
}

fn payload(seq: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (seq as usize * 31 + i * 7) as u8)
        .collect()
}

#[test]
fn commits_come_back_in_order() {
    for durability in [Durability::Full, Durability::Normal, Durability::Off] {
        let disk = MemoryDisk::new();
        let wal = start(
            &disk,
            WalOptions {
                durability,
                ..WalOptions::default()
            },
        );
        for seq in 1..=300 {
            commit(&wal, seq, &payload(seq, seq as usize * 3 % 700));
        }
        assert_eq!(wal.stats().records, 300);
        drop(wal);
        for after in [0, 1, 299, 300] {
            let records = replay(&disk, after);
            assert_eq!(records.len() as u64, 300 - after);
            for (seq, kind, bytes) in records {
                assert_eq!(
                    (kind, bytes),
                    (Kind::Commit, payload(seq, seq as usize * 3 % 700))
                );
            }
        }
    }
}

#[test]
fn parts_are_joined_and_kinds_kept() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    let placed = wal.place(wal.reserve(6).unwrap(), 1);
    let ticket = wal
        .fill(placed, Kind::Attach, &[b"ab", b"", b"cdef"])
        .unwrap();
    assert_eq!(wal.acked(), 0);
    wal.wait(ticket).unwrap();
    assert_eq!(replay(&disk, 0), [(1, Kind::Attach, b"abcdef".to_vec())]);
}

#[test]
fn records_larger_than_the_ring_pass_it() {
    let disk = MemoryDisk::new();
    let wal = start(
        &disk,
        WalOptions {
            limit_bytes: 8 << 20,
            ..WalOptions::default()
        },
    );
    let sizes = [10, 40_000, 32 << 10, 3 << 20, 0, 900_000, 17];
    for (index, size) in sizes.iter().enumerate() {
        let seq = index as u64 + 1;
        commit(&wal, seq, &payload(seq, *size));
    }
    let records = replay(&disk, 0);
    assert_eq!(records.len(), sizes.len());
    for (seq, _, bytes) in records {
        assert_eq!(bytes, payload(seq, sizes[seq as usize - 1]));
    }
}

#[test]
fn fills_out_of_order_are_written_in_order() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    let placed: Vec<_> = (1..=5)
        .map(|seq| wal.place(wal.reserve(8).unwrap(), seq))
        .collect();
    let mut tickets = Vec::new();
    for placed in placed.into_iter().rev() {
        tickets.push(wal.fill(placed, Kind::Commit, &[b"8 bytes!"]).unwrap());
    }
    wal.wait(tickets[4]).unwrap();
    assert_eq!(wal.acked(), 5, "one group");
    assert_eq!((wal.stats().syncs, wal.stats().largest_group), (1, 5));
}

#[test]
fn generations_take_turns() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    assert!(matches!(wal.switch(1), Err(Error::NotReady(_))));
    let mut seq = 0;
    let mut checkpoint = 0;
    for _ in 0..6 {
        for _ in 0..50 {
            seq += 1;
            commit(&wal, seq, &payload(seq, 100));
        }
        wal.prepare_switch().unwrap();
        wal.prepare_switch().unwrap();
        assert!(matches!(wal.switch(seq), Err(Error::Misuse(_))));
        let old = wal.switch(seq + 1).unwrap();
        assert!(matches!(wal.prepare_switch(), Err(Error::NotReady(_))));
        assert_eq!(replay(&disk, checkpoint).len() as u64, seq - checkpoint);
        let covered = seq;
        for _ in 0..10 {
            seq += 1;
            commit(&wal, seq, &payload(seq, 100));
        }
        assert_eq!(replay(&disk, checkpoint).len() as u64, seq - checkpoint);
        wal.recycle(old).unwrap();
        assert!(matches!(wal.recycle(old), Err(Error::Misuse(_))));
        checkpoint = covered;
        assert_eq!(replay(&disk, checkpoint).len() as u64, seq - checkpoint);
    }
    assert_eq!(wal.stats().switches, 6);
    assert!(
        recover(&disk, 0).is_err(),
        "what a checkpoint covered is gone, and recovery says so"
    );
}

#[test]
fn a_switch_without_commits_around_it_is_fine() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    for _ in 0..3 {
        wal.prepare_switch().unwrap();
        let old = wal.switch(1).unwrap();
        wal.recycle(old).unwrap();
        assert!(replay(&disk, 0).is_empty());
    }
    commit(&wal, 1, b"x");
    wal.prepare_switch().unwrap();
    let old = wal.switch(2).unwrap();
    commit(&wal, 2, &payload(2, 100_000));
    assert_eq!(replay(&disk, 0).len(), 2);
    wal.recycle(old).unwrap();
    assert_eq!(replay(&disk, 1).len(), 1);
}

#[test]
fn recovery_starts_a_fresh_generation() {
    let disk = MemoryDisk::new();
    let mut seq = 0;
    for round in 0..5 {
        let recovery = recover(&disk, round * 10).unwrap();
        assert_eq!(recovery.last_seq(), seq);
        // The checkpoint of a real store covers what was replayed by now.
        let wal = recovery.start(WalOptions::default(), seq + 1).unwrap();
        for _ in 0..10 {
            seq += 1;
            commit(&wal, seq, &payload(seq, 50));
        }
    }
    assert_eq!(replay(&disk, 40).len(), 10);
}

#[test]
fn closing_removes_the_files() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    commit(&wal, 1, b"x");
    wal.prepare_switch().unwrap();
    let placed = wal.place(wal.reserve(1).unwrap(), 2);
    assert!(matches!(wal.close(), Err(Error::Misuse(_))));
    let ticket = wal.fill(placed, Kind::Commit, &[b"y"]).unwrap();
    wal.wait(ticket).unwrap();
    wal.close().unwrap();
    assert!(matches!(wal.reserve(1), Err(Error::Closed)));
    assert!(matches!(wal.poisoned(), Some(Error::Closed)));
    for suffix in ["-wal0", "-wal1", "-wal-new"] {
        assert!(
            !disk
                .exists(Path::new(&format!("dir/test.db{suffix}")))
                .unwrap()
        );
    }
    assert!(replay(&disk, 2).is_empty());
}

#[test]
fn a_log_without_records_has_no_file() {
    for durability in [Durability::Full, Durability::Normal, Durability::Off] {
        let disk = MemoryDisk::new();
        let options = WalOptions {
            durability,
            ..WalOptions::default()
        };
        let first = Path::new("dir/test.db-wal0");
        let wal = start(&disk, options.clone());
        wal.sync().unwrap();
        assert_eq!((wal.acked(), wal.durable()), (0, 0));
        assert!(!disk.exists(first).unwrap());
        wal.close().unwrap();

        let wal = start(&disk, options);
        drop(wal.reserve(10).unwrap());
        assert!(disk.exists(first).unwrap());
        commit(&wal, 1, b"x");
        drop(wal);
        assert_eq!(replay(&disk, 0), [(1, Kind::Commit, b"x".to_vec())]);
    }
}

#[test]
fn a_first_record_larger_than_a_new_file() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    let large = vec![7; 1 << 20];
    commit(&wal, 1, &large);
    commit(&wal, 2, b"x");
    drop(wal);
    assert_eq!(
        replay(&disk, 0),
        [(1, Kind::Commit, large), (2, Kind::Commit, b"x".to_vec())]
    );
}

/// A checkpoint may come before the first record: a new database is made durable once.
#[test]
fn a_switch_before_the_first_record() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    wal.prepare_switch().unwrap();
    let old = wal.switch(1).unwrap();
    commit(&wal, 1, b"x");
    wal.recycle(old).unwrap();
    wal.prepare_switch().unwrap();
    commit(&wal, 2, b"y");
    drop(wal);
    let payloads: Vec<Vec<u8>> = replay(&disk, 0).into_iter().map(|(.., p)| p).collect();
    assert_eq!(payloads, [b"x", b"y"]);
}

/// Somebody's clock that stands still: nothing ends because of the time.
#[derive(Debug)]
struct Standing;

impl Driver for Standing {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn pass(&self, _: Duration) {
        std::thread::yield_now();
    }

    fn random(&self) -> u64 {
        4
    }
}

#[test]
fn who_waits_for_room_asks_again_when_told_to_look() {
    let disk = MemoryDisk::new();
    let (sender, asked) = std::sync::mpsc::channel();
    let options = WalOptions {
        limit_bytes: 100_000,
        pressure: Some(Arc::new(move |_| sender.send(()).unwrap())),
        driver: Some(Arc::new(Standing)),
        ..WalOptions::default()
    };
    let wal = start(&disk, options);
    commit(&wal, 1, &payload(1, 60_000));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wal.reserve(60_000).map(drop));
        asked.recv().unwrap();
        wal.look_again();
        asked.recv().unwrap();
        let attempt = wal.begin_making_room();
        wal.no_room_made(attempt, Arc::new(std::io::Error::other("none")));
        let outcome = waiting.join().unwrap();
        assert!(matches!(outcome, Err(Error::NoRoom { .. })), "{outcome:?}");
    });
}

#[test]
fn too_big_and_full_are_typed() {
    let disk = MemoryDisk::new();
    let hooks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hooks);
    let wal = start(
        &disk,
        WalOptions {
            limit_bytes: 100_000,
            reserve_timeout: Duration::ZERO,
            pressure: Some(Arc::new(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
            })),
            ..WalOptions::default()
        },
    );
    assert!(matches!(
        wal.reserve(PAYLOAD_BYTES_MAX + 1),
        Err(Error::TooBig { .. })
    ));
    let first = wal.reserve(60_000).unwrap();
    let error = wal.reserve(60_000).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(hooks.load(Ordering::SeqCst), 1);
    drop(first);
    let permit = wal
        .reserve(150_000)
        .expect("an empty log lets one larger record through");
    drop(permit);
    commit(&wal, 1, b"x");
    assert!(wal.reserve(150_000).unwrap_err().is_full());
    commit(&wal, 2, &payload(2, 60_000));
    assert!(wal.reserve(60_000).is_err());
    wal.prepare_switch().unwrap();
    let old = wal.switch(3).unwrap();
    assert!(wal.reserve(60_000).is_err(), "a switch makes no room");
    wal.recycle(old).unwrap();
    commit(&wal, 3, &payload(3, 60_000));
}

#[test]
fn a_waiting_reservation_goes_on_after_a_recycle() {
    let disk = MemoryDisk::new();
    let (wal, asked) = start_small(&disk);
    commit(&wal, 1, &payload(1, 90_000));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| commit(&wal, 2, &payload(2, 50_000)));
        asked.recv().unwrap();
        wal.prepare_switch().unwrap();
        let old = wal.switch(2).unwrap();
        wal.recycle(old).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(replay(&disk, 1).len(), 1);
}

/// The checkpoint that was under way when it asked says nothing about the next
/// one, which is made for it; that one's failure ends it, and sticks to nobody.
#[test]
fn a_waiting_reservation_ends_with_the_checkpoint_it_asked_for() {
    let disk = MemoryDisk::new();
    let (wal, asked) = start_small(&disk);
    let broken = || Arc::new(std::io::Error::other("the disk is on fire"));
    commit(&wal, 1, &payload(1, 90_000));
    std::thread::scope(|scope| {
        let older = wal.begin_making_room();
        let waiting: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| wal.reserve(50_000).map(drop)))
            .collect();
        (0..2).for_each(|_| asked.recv().unwrap());
        wal.no_room_made(older, broken());
        (0..2).for_each(|_| asked.recv().expect("they ask once more"));
        let theirs = wal.begin_making_room();
        wal.no_room_made(theirs, broken());
        for thread in waiting {
            let error = thread.join().unwrap().unwrap_err();
            assert!(
                matches!(error, Error::NoRoom { .. }) && error.is_full(),
                "{error:?}"
            );
            assert!(error.to_string().contains("on fire"), "{error}");
        }

        let waiting = scope.spawn(|| commit(&wal, 2, &payload(2, 50_000)));
        asked.recv().expect("what failed before does not stop it");
        wal.begin_making_room();
        wal.prepare_switch().unwrap();
        let old = wal.switch(2).unwrap();
        wal.recycle(old).unwrap();
        waiting.join().unwrap();
    });
    assert!(wal.poisoned().is_none());
}

/// Only a permit stands in the way: the checkpoint that is asked for at first has
/// nothing to cover, and nobody tells when that changes.
#[test]
fn a_waiting_reservation_asks_again() {
    let disk = MemoryDisk::new();
    let (wal, asked) = start_small(&disk);
    let first = wal.reserve(60_000).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| commit(&wal, 2, &payload(2, 60_000)));
        asked.recv().unwrap();
        let placed = wal.place(first, 1);
        let ticket = wal
            .fill(placed, Kind::Commit, &[&payload(1, 60_000)])
            .unwrap();
        wal.wait(ticket).unwrap();
        asked.recv().expect("it asks again");
        wal.prepare_switch().unwrap();
        let old = wal.switch(2).unwrap();
        wal.recycle(old).unwrap();
        waiting.join().unwrap();
    });

    let given_back = wal.reserve(30_000).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| commit(&wal, 3, &payload(3, 30_000)));
        while asked.try_recv().is_ok() {}
        asked.recv().unwrap();
        drop(given_back);
        waiting.join().unwrap();
    });
}

#[test]
fn misuse_poisons_with_the_first_cause() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    commit(&wal, 1, b"x");
    let placed = wal.place(wal.reserve(1).unwrap(), 3);
    assert!(matches!(
        wal.fill(placed, Kind::Commit, &[b"y"]),
        Err(Error::Poisoned(_))
    ));
    let Err(Error::Poisoned(cause)) = wal.reserve(1).map(drop) else {
        panic!("not poisoned")
    };
    assert!(matches!(*cause, Error::Misuse(_)));
    assert!(wal.poisoned().is_some());
    assert!(wal.close().is_err());
    assert_eq!(wal.acked(), 1);
    assert_eq!(replay(&disk, 0).len(), 1);

    let wal = start(&MemoryDisk::new(), WalOptions::default());
    drop(wal.place(wal.reserve(1).unwrap(), 1));
    assert!(wal.wait_seq(1).is_err());
}

#[test]
fn normal_mode_is_durable_after_a_sync() {
    let disk = MemoryDisk::new();
    let wal = start(
        &disk,
        WalOptions {
            durability: Durability::Normal,
            ..WalOptions::default()
        },
    );
    commit(&wal, 1, b"x");
    assert_eq!((wal.durable(), wal.stats().syncs), (0, 0));
    wal.sync().unwrap();
    assert_eq!((wal.durable(), wal.stats().syncs), (1, 1));
    wal.prepare_switch().unwrap();
    commit(&wal, 2, b"x");
    let old = wal.switch(3).unwrap();
    commit(&wal, 3, b"x");
    wal.sync().unwrap();
    assert_eq!((wal.durable(), wal.stats().syncs), (3, 3));
    commit(&wal, 4, b"x");
    wal.recycle(old).unwrap();
    assert_eq!(wal.durable(), 3);
    assert_eq!(replay(&disk, 2).len(), 2);
}

#[test]
fn rot_is_told_from_a_torn_tail() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    for seq in 1..=10 {
        commit(&wal, seq, &payload(seq, 75));
    }
    drop(wal);
    let path = Path::new("dir/test.db-wal0");
    let file = disk.open(path, OpenOptions::WRITE).unwrap();
    let record_start = |seq: u64| 8192 + 32 + (seq - 1) * 104;
    for seq in 1..=10 {
        let at = record_start(seq) + 50;
        flip(&file, at);
        match recover(&disk, 0) {
            Err(Error::Corrupt { file, position, .. }) if seq < 10 => {
                assert_eq!((file.as_path(), position), (path, record_start(seq)));
            }
            // Nothing after the last record says that it was durable.
            Ok(recovery) if seq == 10 => assert_eq!(recovery.last_seq(), 9),
            other => panic!("record {seq}: {other:?}"),
        }
        // A checkpoint that covers the record needs it no more.
        assert_eq!(recover(&disk, seq).unwrap().last_seq(), 10, "record {seq}");
        assert_eq!(recover(&disk, 12).unwrap().last_seq(), 12);
        flip(&file, at);
    }
    assert_eq!(replay(&disk, 0).len(), 10);
}

#[test]
fn rot_of_the_older_generation_is_seen_from_the_newer() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    commit(&wal, 1, b"one");
    wal.prepare_switch().unwrap();
    commit(&wal, 2, b"two");
    wal.switch(3).unwrap();
    let older = disk
        .open(Path::new("dir/test.db-wal0"), OpenOptions::WRITE)
        .unwrap();
    let newer = disk
        .open(Path::new("dir/test.db-wal1"), OpenOptions::WRITE)
        .unwrap();
    commit(&wal, 3, b"three");
    flip(&older, 8192 + 64 + 8);
    let error = recover(&disk, 0).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { position, .. } if *position == 8192 + 64),
        "{error}"
    );
    assert_eq!(replay(&disk, 2).len(), 1);
    // Without its begin record the newer one still testifies once it holds a
    // record that was filled after the switch was synced.
    commit(&wal, 4, b"four");
    flip(&newer, 8192 + 8);
    assert!(matches!(recover(&disk, 0), Err(Error::Corrupt { .. })));
    assert_eq!(replay(&disk, 2).len(), 2);
}

#[test]
fn heads_are_checked() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    commit(&wal, 1, b"one");
    let file = disk
        .open(Path::new("dir/test.db-wal0"), OpenOptions::WRITE)
        .unwrap();
    let other = Recovery::open(Arc::new(disk.clone()), base(), [7; 16], 0, false);
    assert!(matches!(other, Err(Error::Foreign { .. })));
    flip(&file, 3);
    assert_eq!(replay(&disk, 0).len(), 1, "the second copy does");
    flip(&file, 4096 + 40);
    assert!(matches!(
        recover(&disk, 0),
        Err(Error::Corrupt { position: 0, .. })
    ));
    file.truncate(100).unwrap();
    assert!(matches!(
        recover(&disk, 0),
        Err(Error::Corrupt { position: 0, .. })
    ));
    Recovery::discard(&disk, base()).unwrap();
    assert!(recover(&disk, 0).unwrap().is_empty());
}

#[test]
fn a_replay_that_fails_says_where() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, WalOptions::default());
    commit(&wal, 1, b"one");
    commit(&wal, 2, b"two");
    let mut recovery = recover(&disk, 0).unwrap();
    let error = recovery
        .replay(&mut |record| {
            if record.seq == 2 {
                Err("no such tree".into())
            } else {
                Ok(())
            }
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot apply log record 2: no such tree");
    let read_only = Recovery::open(Arc::new(disk.clone()), base(), DATABASE, 0, true).unwrap();
    assert!(matches!(
        read_only.start(WalOptions::default(), 3),
        Err(Error::Misuse(_))
    ));
    assert!(matches!(
        recover(&disk, 0).unwrap().start(WalOptions::default(), 2),
        Err(Error::Misuse(_))
    ));
}
