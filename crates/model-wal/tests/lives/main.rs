//! Threads that append to, flush and truncate a log on its own at random: who runs
//! next, what each does, the device, which call fails: all follow from a seed. The
//! disk keeps a journal of the run; at its moments the power is cut, or only the
//! process ends. What comes back is a run of what was appended, with everything that
//! was promised and nothing that was given up; and it can be appended to again.
//!
//! The model has no thread behind the log: who appends prepares the file, beside the
//! others' flushes.

#[path = "../../../model-store/tests/common/explore.rs"]
mod explore;

#[path = "../../../model-store/tests/common/stops.rs"]
mod stops;
#[path = "../../../model-store/tests/common/tally.rs"]
mod tally;

mod notes;

use explore::Schedulers::{All, Fair};
use explore::explore;
use fulgurite_sim::faults::fault_of;
use fulgurite_sim::{AnyAccess, Call, Fault, FaultError, Journal, Rng, SimDisk};
use fulgurite_wal as real;
use fulgurite_wal_model::{Device, Error, Lsn, Options, Preallocation, Result, Wal};
use notes::{Name, Notes, payload};
use shuttle::rand::RngCore;
use shuttle::thread;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use stops::Stops;
use tally::{CUTS, FAULTS, KILLS};

const PATH: &str = "/d/a.log";
/// The other side of a mirror.
const SECOND: &str = "/e/b.log";
const LIMIT_BYTES: u64 = 64 << 10;
const WRITERS: u8 = 3;
const STEPS: usize = 8;
/// One of so many moments is looked at.
const CUT_EVERY: u64 = 6;
/// Calls that change something in a life, about.
const CALLS: u64 = 40;

/// A thread that writes, and what all share.
struct Writer {
    disk: SimDisk,
    log: Arc<Wal>,
    notes: Arc<Mutex<Notes>>,
    own: u8,
    next: u32,
    rng: Rng,
}

impl Writer {
    /// So many steps, or until one fails.
    fn run(mut self, faulted: bool) {
        for _ in 0..STEPS {
            match self.step() {
                Ok(()) => {}
                // What was asked for had been given up by another thread.
                Err(Error::NoRecord { .. }) => {}
                Err(error) => {
                    assert!(faulted, "{error}");
                    return;
                }
            }
        }
    }

    fn note(&self, note: impl FnOnce(&mut Notes, u64)) {
        note(&mut self.notes.lock().expect("no panic"), self.disk.calls());
    }

    fn record(&mut self) -> (Name, Vec<u8>) {
        let len = match self.rng.below(12) {
            0 => 2_000 + self.rng.index(6_000),
            1..=3 => self.rng.index(1_500),
            _ => self.rng.index(150),
        };
        let name = (self.own, self.next);
        self.next += 1;
        (name, payload(name, len))
    }

    fn step(&mut self) -> Result<()> {
        // Each of the others may append as much before this one does.
        let room = u64::from(WRITERS) * (2 * 9_000 + 4_096);
        if self.log.end().to_u64() + room > self.log.first().to_u64() + LIMIT_BYTES {
            self.truncate(self.log.end())?;
        }
        match self.rng.below(8) {
            0..=2 => {
                let (name, bytes) = self.record();
                let at = self.log.commit(&bytes)?.to_u64();
                self.note(|notes, call| {
                    notes.append(at, name);
                    notes.durable(call, at);
                });
            }
            3 => {
                let (one, two) = (self.record(), self.record());
                let places = self.log.append_all(&[&one.1, &two.1])?;
                self.note(|notes, _| {
                    notes.append(places[0].to_u64(), one.0);
                    notes.append(places[1].to_u64(), two.0);
                });
            }
            4 => {
                let at = self.append()?;
                self.log.flush_async()?;
                self.note(|notes, call| notes.written(call, at));
            }
            5 => {
                let at = self.append()?;
                self.log.flush()?;
                self.note(|notes, call| notes.durable(call, at));
            }
            6 if self.rng.one_in(3) => {
                let before = self.log.end();
                self.truncate(before)?;
            }
            _ => {
                self.append()?;
            }
        }
        Ok(())
    }

    fn append(&mut self) -> Result<u64> {
        let (name, bytes) = self.record();
        let at = self.log.append(&bytes)?.to_u64();
        self.note(|notes, _| notes.append(at, name));
        Ok(at)
    }

    fn truncate(&self, before: Lsn) -> Result<()> {
        self.note(|notes, call| notes.asked(call, before.to_u64()));
        self.log.truncate(before)?;
        self.note(|notes, call| notes.given_up(call, before.to_u64()));
        Ok(())
    }
}

/// A life: what was noted, and the journal of its disk. Of a mirror only one side
/// fails, which is no reason for the log to fail.
fn live(fault: Option<Fault>, mirrored: bool, rng: &mut Rng) -> (Notes, Journal) {
    let disk = SimDisk::new(rng.bits());
    let device = Device::DURABLE[rng.index(Device::DURABLE.len())];
    let plain = AnyAccess(disk.clone());
    let options = Options {
        background: false,
        mirror: mirrored.then(|| SECOND.into()),
        mirror_in_parallel: false,
        disk: match device {
            Device::File => Arc::new(Stops(plain)),
            // What the others have between them and the disk has locks of its own,
            // which the scheduler does not know.
            _ => Arc::new(plain),
        },
        ..Options::device(device)
            .limit_bytes(LIMIT_BYTES)
            .preallocation([Preallocation::ZeroFill, Preallocation::Allocate][rng.index(2)])
    };
    let log = Arc::new(Wal::open(PATH, options).expect("opens"));
    let before = disk.fork();
    disk.record();
    match fault {
        Some(fault) if mirrored => {
            let side = Path::new([PATH, SECOND][rng.index(2)]);
            disk.fail_under(side.parent().expect("a folder"), fault);
        }
        Some(fault) => disk.fail(fault),
        None => {}
    }
    let may_fail = fault.is_some() && !mirrored;
    let notes = Arc::new(Mutex::new(Notes::default()));
    let threads: Vec<_> = (0..WRITERS)
        .map(|own| {
            let writer = Writer {
                disk: disk.clone(),
                log: Arc::clone(&log),
                notes: Arc::clone(&notes),
                own,
                next: 0,
                rng: Rng::new(rng.bits()),
            };
            thread::spawn(move || writer.run(may_fail))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    FAULTS.fetch_add(disk.faults_met(), Relaxed);
    drop(log);
    let notes = std::mem::take(&mut *notes.lock().expect("no panic"));
    (notes, disk.recorded(before))
}

/// What a log holds that is opened on this disk in any way, and the first call after
/// that. More is appended then.
fn look_back(disk: &SimDisk, mirrored: bool, rng: &mut Rng) -> (Vec<(u64, Vec<u8>)>, u64) {
    let preallocations = [
        real::Preallocation::ZeroFill,
        real::Preallocation::Allocate,
        real::Preallocation::None,
    ];
    let mut options = real::Options::file()
        .limit_bytes(LIMIT_BYTES)
        .preallocation(preallocations[rng.index(3)])
        .disk(Arc::new(AnyAccess(disk.clone())));
    options.background = false;
    options.mirror = mirrored.then(|| SECOND.into());
    options.mirror_in_parallel = false;
    options.device = rng
        .one_in(2)
        .then(|| real::Device::DURABLE[rng.index(real::Device::DURABLE.len())]);
    let log = real::Wal::open(PATH, options).expect("opens");
    let opened = disk.calls();
    let found = log.replay(real::Lsn::FIRST).expect("reads");
    let found = found.map(|record| {
        let (at, bytes) = record.expect("a record");
        (at.to_u64(), bytes)
    });
    let found = found.collect();
    // A log at its limit has no room for it.
    if log.end().to_u64() - log.first().to_u64() + 16_384 < LIMIT_BYTES {
        log.commit(&payload((u8::MAX, 0), 100)).expect("commits");
    }
    (found, opened)
}

/// A life that ended in some call.
struct Ended<'a> {
    notes: &'a Notes,
    mirrored: bool,
    call: u64,
    power_cut: bool,
}

/// Comes back twice, and in a third of the first times is cut again.
fn come_back(ended: &Ended<'_>, disk: &SimDisk, rng: &mut Rng) {
    let Ended {
        notes,
        mirrored,
        call,
        power_cut,
    } = *ended;
    let before = disk.fork();
    disk.record();
    let ours = |mut found: Vec<(u64, Vec<u8>)>| {
        found.retain(|(_, bytes)| bytes[0] != u8::MAX);
        found
    };
    let (found, opened) = look_back(disk, mirrored, rng);
    notes.check(call, notes.least(call, power_cut), &found);
    let journal = disk.recorded(before);
    let (again, _) = look_back(disk, mirrored, rng);
    assert!(ours(again) == found, "nobody changed it");
    if !rng.one_in(3) {
        return;
    }
    let shown = found.last().map_or(0, |(at, _)| *at);
    let mut replay = journal.replay();
    while let Some(moment) = replay.next_moment() {
        if rng.one_in(3) {
            let cut = moment.disk.crash_image(rng.bits());
            let durable = match moment.call < opened {
                true => notes.least(call, true),
                false => shown,
            };
            notes.check(call, durable, &ours(look_back(&cut, mirrored, rng).0));
            CUTS.fetch_add(1, Relaxed);
        }
    }
}

/// A sync that fails once: what it lost is not lost to the next one's report alone.
fn one_sync(rng: &mut Rng) -> Fault {
    Fault {
        call: Some(Call::Sync),
        after: rng.below(CALLS / 2),
        for_good: false,
        error: FaultError::Io,
    }
}

fn scenario(faulted: bool) {
    let mut rng = Rng::new(shuttle::rand::thread_rng().next_u64());
    let fault = faulted.then(|| match rng.below(2) {
        0 => one_sync(&mut rng),
        _ => fault_of(&mut rng, CALLS),
    });
    let mirrored = rng.one_in(3);
    let (notes, journal) = live(fault, mirrored, &mut rng);
    let mut replay = journal.replay();
    while let Some(moment) = replay.next_moment() {
        let is_last = moment.index + 1 == journal.len();
        if !is_last && !rng.one_in(CUT_EVERY) {
            continue;
        }
        let power_cut = !rng.one_in(4);
        let disk = if power_cut {
            CUTS.fetch_add(1, Relaxed);
            moment.disk.crash_image(rng.bits())
        } else {
            KILLS.fetch_add(1, Relaxed);
            moment.disk.kill_image()
        };
        let ended = Ended {
            notes: &notes,
            mirrored,
            call: moment.call,
            power_cut,
        };
        come_back(&ended, &disk, &mut rng);
    }
}

#[test]
fn threads_on_a_log_lose_nothing() {
    explore(60, All, || scenario(false));
    tally::print();
}

#[test]
fn threads_on_a_log_whose_calls_fail_lose_nothing() {
    explore(120, Fair, || scenario(true));
    tally::print();
}
