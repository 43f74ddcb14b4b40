//! The file that records go to grows ahead of them, by whoever is asked to let it grow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disk::MemoryDisk;
use fulgurite_wal::{Kind, Recovery, TwinLog, WalOptions};

const DATABASE: [u8; 16] = [6; 16];
const RECORD_BYTES: usize = 10_000;
/// Five megabytes of them.
const RECORDS: u64 = 500;

struct Life {
    disk: MemoryDisk,
    log: TwinLog,
    /// How often growth was asked for.
    asked: Arc<AtomicU64>,
}

impl Life {
    fn new(limit_bytes: u64) -> Self {
        let disk = MemoryDisk::new();
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let options = WalOptions {
            limit_bytes,
            growth: Some(Arc::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
            })),
            ..WalOptions::default()
        };
        let log = recover(&disk).start(options, 1).expect("starts");
        Self { disk, log, asked }
    }

    fn commit(&self, seq: u64) {
        let permit = self.log.reserve(RECORD_BYTES).expect("room");
        let payload = [seq as u8; RECORD_BYTES];
        let placed = self.log.place(permit, seq);
        let ticket = self.log.fill(placed, Kind::Commit, &[&payload]);
        self.log
            .wait(ticket.expect("filled"))
            .expect("acknowledged");
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn extensions(&self) -> u64 {
        self.log.stats().extensions
    }

    fn replays_to(&self, last: u64) {
        let mut seen = 0;
        recover(&self.disk)
            .replay(&mut |record| {
                seen += 1;
                assert_eq!(record.seq, seen);
                assert!(record.payload == [seen as u8; RECORD_BYTES]);
                Ok(())
            })
            .expect("replays");
        assert_eq!(seen, last);
    }
}

fn recover(disk: &MemoryDisk) -> Recovery {
    Recovery::open(
        Arc::new(disk.clone()),
        Path::new("g.db"),
        DATABASE,
        0,
        false,
    )
    .expect("is sound")
}

#[test]
fn commits_never_extend_a_file_that_grows_ahead() {
    let life = Life::new(32 << 20);
    let (mut met, mut ahead) = (0, 0);
    for seq in 1..=RECORDS {
        let before = life.extensions();
        life.commit(seq);
        if life.extensions() != before {
            met += 1;
            assert_eq!(ahead, 0, "by commit {seq}, after growth ahead");
        }
        if life.asked() > ahead {
            ahead += 1;
            assert_eq!(life.asked(), ahead, "asked for once a length");
            let before = life.extensions();
            life.log.grow_ahead().expect("there is room");
            assert_eq!(life.extensions(), before + 1);
        }
    }
    // 60 KiB doubled up to 512 KiB and more; then a megabyte each.
    assert_eq!((met, ahead), (4, 5));
    life.replays_to(RECORDS);
}

#[test]
fn where_nobody_extends_it_those_who_need_room_do() {
    let life = Life::new(32 << 20);
    (1..=RECORDS).for_each(|seq| life.commit(seq));
    assert_eq!(life.asked(), 5, "once a length");
    life.replays_to(RECORDS);
}

/// To grow ahead of what will only be placed after a checkpoint, in the other file,
/// would be for nothing.
#[test]
fn it_does_not_grow_ahead_beyond_the_limit() {
    let life = Life::new(850 << 10);
    (1..=80).for_each(|seq| life.commit(seq));
    assert_eq!(life.asked(), 0);
    life.log.grow_ahead().expect("has nothing to do");
    life.replays_to(80);
}
