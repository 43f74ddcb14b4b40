//! The first lap of a log on its own, while its file grows: whatever prepares
//! it keeps what is there, and who appends does not wait for it.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use fulgurite_disk::{Intercepted, Interceptor, MemoryDisk, Result as Done};
use fulgurite_wal::{Lsn, Options, Preallocation, Wal};

const LIMIT_BYTES: u64 = 8 << 20;

fn held(log: &Wal) -> Vec<Vec<u8>> {
    let records = log.replay(Lsn::FIRST).unwrap();
    records.map(|record| record.unwrap().1).collect()
}

fn payload(number: usize) -> Vec<u8> {
    vec![number as u8 | 1; 10 + number * 977 % 20_000]
}

/// A log that grew with its records and was then opened with the default wrote
/// zeros over all of them: it prepared its file from where it had stopped
/// preparing, which was the beginning.
#[test]
fn records_survive_whatever_prepares_the_file_next() {
    const WAYS: [Preallocation; 3] = [
        Preallocation::None,
        Preallocation::Allocate,
        Preallocation::ZeroFill,
    ];
    for lives in 0..27 {
        for background in [false, true] {
            let disk = Arc::new(MemoryDisk::new());
            let mut wanted: Vec<Vec<u8>> = Vec::new();
            for life in [lives / 9, lives / 3 % 3, lives % 3] {
                let options = Options {
                    background,
                    ..Options::memory()
                        .disk(disk.clone())
                        .limit_bytes(LIMIT_BYTES)
                        .preallocation(WAYS[life])
                };
                let log = Wal::open("a.log", options).unwrap();
                assert!(held(&log) == wanted, "lives {lives}, {background}");
                // Two thirds of a megabyte at once, then as much in commits.
                for number in 0..140 {
                    let payload = payload(wanted.len());
                    log.append(&payload).unwrap();
                    wanted.push(payload);
                    if number >= 70 {
                        log.flush().unwrap();
                    }
                }
                assert!(held(&log) == wanted, "lives {lives}, {background}");
            }
        }
    }
}

/// The thread behind a log cannot sync while it is shut.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    /// Whether the thread stands before it.
    holds: bool,
}

impl Gate {
    fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    fn wait_until_it_holds(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.holds {
            state = self.changed.wait(state).unwrap();
        }
    }
}

impl Interceptor for Gate {
    fn before_sync(&self, _path: &Path) -> Done<()> {
        if std::thread::current().name() == Some("fulgurite-log") {
            let mut state = self.state.lock().unwrap();
            state.holds = true;
            self.changed.notify_all();
            while !state.open {
                state = self.changed.wait(state).unwrap();
            }
        }
        Ok(())
    }
}

/// Appends that nobody flushes go on while the file is being prepared for
/// those that somebody does, at whatever pace the disk syncs zeros; only a flush waits
/// for that sync. (They
/// waited for each step of it: to fill a log just made took three times as long.)
#[test]
fn appends_do_not_wait_for_the_file_to_be_prepared() {
    let gate = Arc::<Gate>::default();
    let options = Options::memory()
        .disk(Arc::new(Intercepted::new(MemoryDisk::new(), &gate)))
        .limit_bytes(LIMIT_BYTES);
    let log = Wal::open("a.log", options).unwrap();
    for _ in 0..120 {
        log.commit(&[1; 4_000]).unwrap();
    }
    // So much more that the thread behind the log begins to prepare it, and is held.
    for _ in 0..20 {
        log.append(&[1; 4_000]).unwrap();
    }
    gate.wait_until_it_holds();
    for _ in 0..50_000 {
        log.append(&[2; 100]).unwrap();
    }
    gate.open();
    log.flush().unwrap();
    let held = held(&log);
    assert_eq!(held.len(), 50_140);
    assert!(held[..140].iter().all(|record| record == &[1; 4_000]));
    assert!(held[140..].iter().all(|record| record == &[2; 100]));
}
