//! One life of a process: writers, a reader and checkpoints at once.

use super::Tally;
use super::history::{Front, History, OWN, Own, SHARED, WRITERS};
use super::slow::SlowDisk;
use super::view;
use super::writer::Writer;
use fulgurite_sim::faults::fault_of;
use fulgurite_sim::{Fault, Journal, PATH, Rng, SimDisk};
use fulgurite_store::{Compression, Durability, Error, ErrorKind, Options, Result};
use fulgurite_store::{Store, Tree, Txn};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How much is done in a life.
struct Extent {
    /// By each writer.
    steps: u64,
    /// Calls on the disk that change something, about.
    calls: u64,
}

const FIRST: Extent = Extent {
    steps: 60,
    calls: 2_000,
};
const LATER: Extent = Extent {
    steps: 25,
    calls: 600,
};
/// Snapshots that the reader takes.
const READINGS: usize = 6;

pub fn options_of(rng: &mut Rng) -> Options {
    let page_size = [4096, 4096, 8192][rng.index(3)];
    Options {
        cache_bytes: [64, 96, 160, 256, 384, 1_024][rng.index(6)] * page_size,
        page_size: page_size as u32,
        checkpoint_bytes: [16 << 10, 1 << 20, 24 << 20][rng.index(3)],
        log_limit_bytes: Some([64 << 10, 2 << 20, 32 << 20][rng.index(3)]),
        durability: match rng.below(6) {
            0..=2 => Durability::Full,
            3 | 4 => Durability::Normal,
            _ => Durability::Off,
        },
        compression: [Compression::Lz4, Compression::None][rng.index(2)],
        busy_timeout: Duration::from_secs(30),
        ..Options::default()
    }
}

/// What the threads of a life share.
pub struct World<'t> {
    pub disk: SimDisk,
    pub store: Store,
    pub trees: [Tree; OWN],
    histories: [Mutex<History>; WRITERS],
    /// How far the writers had come when a checkpoint began, with the call from which
    /// on it covers that.
    covered: Mutex<Vec<(u64, Front)>>,
    faulted: bool,
    pub tally: &'t Tally,
}

impl World<'_> {
    /// A history's lock is held over no call of the store's.
    pub fn history(&self, writer: usize) -> MutexGuard<'_, History> {
        self.histories[writer].lock().expect("no panic")
    }

    /// Panics unless a call was made to fail.
    pub fn may_fail(&self, error: &Error) {
        assert!(self.faulted, "{error}");
        let known = [
            ErrorKind::Io,
            ErrorKind::Full,
            ErrorKind::CantOpen,
            ErrorKind::Poisoned,
        ];
        assert!(known.contains(&error.kind()), "{:?}: {error}", error.kind());
    }

    pub fn acknowledged(&self, writer: usize) {
        let call = self.disk.calls();
        let mut history = self.history(writer);
        let newest = history.newest();
        history.known_from(call, newest);
    }

    fn known(&self) -> Front {
        std::array::from_fn(|writer| self.history(writer).least(u64::MAX))
    }

    pub fn checkpoint(&self) -> Result<()> {
        let known = self.known();
        self.store.checkpoint()?;
        let call = self.disk.calls();
        self.covered.lock().expect("no panic").push((call, known));
        Ok(())
    }

    /// Reads what all share in a transaction's snapshot and checks it.
    fn look(&self, txn: &mut Txn) -> Result<Front> {
        let front = view::front(txn, &self.trees)?;
        let states = std::array::from_fn(|writer| {
            let history = self.history(writer);
            history.state(history.stamped(front[writer]))
        });
        view::check_shared(txn, &self.trees, &states)?;
        Ok(front)
    }

    /// A snapshot is what the writers had made of it, and stays that.
    pub fn look_twice(&self, txn: &mut Txn) -> Result<()> {
        txn.begin_read()?;
        let front = self.look(txn)?;
        let call = self.disk.calls();
        for (writer, commit) in front.into_iter().enumerate() {
            self.history(writer).known_from(call, commit);
        }
        assert_eq!(self.look(txn)?, front, "a snapshot stays");
        txn.rollback();
        Ok(())
    }

    fn read(&self) {
        let mut txn = self.store.txn();
        for _ in 0..READINGS {
            if let Err(error) = self.look_twice(&mut txn) {
                self.may_fail(&error);
                txn.rollback();
            }
        }
    }
}

/// What was done.
pub struct Life {
    pub options: Options,
    pub histories: [History; WRITERS],
    pub journal: Journal,
    pub covered: Vec<(u64, Front)>,
}

/// Opens the store, whose calls take time.
pub fn open(disk: &SimDisk, options: &Options, rng: &mut Rng) -> Store {
    let slow = SlowDisk::new(disk.clone(), rng.bits());
    Store::open_on(Arc::new(slow), Path::new(PATH), options.clone()).expect("opens")
}

impl Life {
    /// The life that makes the store.
    pub fn first(disk: &SimDisk, options: Options, rng: &mut Rng, tally: &Tally) -> Self {
        let full = Options {
            durability: Durability::Full,
            ..options.clone()
        };
        let store = open(disk, &full, rng);
        for (name, kind) in SHARED {
            store.create_family(name, kind).expect("a family");
        }
        drop(store);
        let store = open(disk, &options, rng);
        Self::of(disk, store, Default::default(), FIRST, rng, tally)
    }

    /// A later one, that begins with what it has found.
    pub fn later(
        disk: &SimDisk,
        store: Store,
        start: [(usize, Own); WRITERS],
        rng: &mut Rng,
        tally: &Tally,
    ) -> Self {
        Self::of(disk, store, start, LATER, rng, tally)
    }

    fn of(
        disk: &SimDisk,
        store: Store,
        start: [(usize, Own); WRITERS],
        extent: Extent,
        rng: &mut Rng,
        tally: &Tally,
    ) -> Self {
        let Extent { steps, calls } = extent;
        let fault = rng.one_in(2).then(|| fault_of(rng, calls));
        disk.set_choppy(rng.one_in(4));
        let before = disk.fork();
        disk.record();
        let family = |name| store.family(name).expect("reads").expect("is there");
        let world = World {
            disk: disk.clone(),
            trees: SHARED.map(|(name, _)| family(name)),
            store,
            histories: start
                .clone()
                .map(|(n, own)| Mutex::new(History::new(n, own))),
            covered: Mutex::default(),
            faulted: fault.is_some(),
            tally,
        };
        let writers = (0..)
            .zip(start)
            .map(|(own, (_, state))| Writer::new(&world, own, state, rng.bits()));
        let writers: Vec<_> = writers.collect();
        if let Some(fault) = fault {
            disk.fail(fault);
        }
        std::thread::scope(|scope| {
            for writer in writers {
                scope.spawn(move || writer.run(steps));
            }
            scope.spawn(|| world.read());
        });
        tally.faults.fetch_add(disk.faults_met(), Relaxed);
        disk.heal();
        disk.set_choppy(false);
        look_around(&world, fault);
        let options = world.store.options().clone();
        drop((world.store, world.trees));
        Self {
            options,
            histories: world
                .histories
                .map(|history| history.into_inner().expect("no panic")),
            journal: disk.recorded(before),
            covered: world.covered.into_inner().expect("no panic"),
        }
    }
}

/// When the threads have ended: reading goes on, the structure is sound, and so does
/// writing, unless a failure ended it.
fn look_around(world: &World<'_>, fault: Option<Fault>) {
    let mut txn = world.store.txn();
    world.look_twice(&mut txn).expect("reading goes on");
    let problems = world.store.integrity_check().expect("a check");
    assert_eq!(problems, [""; 0], "{fault:?}");
    if let Err(error) = txn.begin_immediate() {
        let ended = world.faulted && error.kind() == ErrorKind::Poisoned;
        assert!(ended, "{error}");
        world.tally.poisoned.fetch_add(1, Relaxed);
    }
}
