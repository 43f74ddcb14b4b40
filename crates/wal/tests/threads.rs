//! Many threads on one log while its generations turn and it is synced. Which
//! interleavings occur is up to the machine; what must hold does not depend on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_disk::{Disk, MemoryDisk, RealDisk};
use fulgurite_wal::{Durability, Kind, Recovery, TwinLog, WalOptions};

const THREADS: usize = 8;
const COMMITS: usize = 1500;
const DATABASE: [u8; 16] = *b"0123456789abcdef";

fn recover(disk: &Arc<dyn Disk>, base: &Path, after_seq: u64) -> Recovery {
    Recovery::open(Arc::clone(disk), base, DATABASE, after_seq, false).unwrap()
}

/// Of all sizes, by the thread that commits it.
fn payload(thread: usize, turn: usize) -> Vec<u8> {
    let len = if turn % 97 == thread {
        40_000
    } else {
        (turn * 37 + thread) % 600
    };
    vec![thread as u8; len]
}

fn write(wal: &TwinLog, next: &Mutex<u64>, thread: usize) {
    for turn in 0..COMMITS {
        let bytes = payload(thread, turn);
        let permit = wal.reserve(bytes.len()).unwrap();
        let placed = {
            let mut next = next.lock().unwrap();
            let placed = wal.place(permit, *next);
            *next += 1;
            placed
        };
        let ticket = wal.fill(placed, Kind::Commit, &[&bytes]).unwrap();
        if turn % 50 != 49 {
            match turn % 7 {
                3 => wal.acknowledge_written(ticket).unwrap(),
                _ => wal.wait(ticket).unwrap(),
            }
            assert!(wal.acked() >= ticket.seq());
        }
    }
}

fn generations_turn(disk: &Arc<dyn Disk>, base: &Path, durability: Durability) {
    let options = WalOptions {
        durability,
        limit_bytes: 1 << 20,
        ..WalOptions::default()
    };
    let wal = recover(disk, base, 0).start(options, 1).unwrap();
    let next = Mutex::new(1u64);
    let running = AtomicUsize::new(THREADS);
    let mut covered = 0;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (wal, next, running) = (&wal, &next, &running);
            scope.spawn(move || {
                write(wal, next, thread);
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while running.load(Ordering::SeqCst) > 0 {
            wal.prepare_switch().unwrap();
            let (old, last) = {
                let next = next.lock().unwrap();
                (wal.switch(*next).unwrap(), *next - 1)
            };
            wal.sync().unwrap();
            wal.recycle(old).unwrap();
            covered = last;
            std::thread::yield_now();
        }
    });
    let total = (THREADS * COMMITS) as u64;
    wal.wait_seq(total).unwrap();
    wal.sync().unwrap();
    assert_eq!((wal.acked(), wal.durable()), (total, total));
    let stats = wal.stats();
    assert_eq!(stats.records, total, "{stats:?}");
    let mut wanted = covered + 1;
    let mut recovery = recover(disk, base, covered);
    recovery
        .replay(&mut |record| {
            assert_eq!(record.seq, wanted);
            let thread = record.payload.first().map_or(0, |byte| *byte as usize);
            assert!(record.payload.iter().all(|byte| *byte as usize == thread));
            wanted += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(wanted, total + 1);
}

#[test]
fn many_threads_commit_while_generations_turn() {
    for durability in [Durability::Full, Durability::Normal] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        generations_turn(&disk, Path::new("dir/test.db"), durability);
    }
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of a test that failed goes with the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// On files, where the disk has maps through one.
#[test]
fn many_threads_commit_to_files_while_generations_turn() {
    let name = format!("fulgurite-threads-{}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&scratch.0).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    generations_turn(&disk, &scratch.0.join("test.db"), Durability::Normal);
}
