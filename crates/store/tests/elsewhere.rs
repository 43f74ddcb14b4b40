//! Who writes to one store and has read another one gives both back when it is published,
//! before its sync ends: the next ones do the same meanwhile, and who changes what was read
//! is shown after it.

use fulgurite_disk::{
    Disk, DiskError, DiskErrorKind, Intercepted, Interceptor, MemoryDisk, Result as Done,
};
use fulgurite_store::{
    ErrorKind, Isolation, Key, KeyKind, Options, Result, Store, Tree, TxnContext, commit_together,
};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Open,
    Shut,
    /// Whoever comes fails.
    Broken,
}

/// What the syncs of a disk pass, and how many wait at it.
#[derive(Debug)]
struct Gate {
    state: Mutex<(Stand, usize)>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, stand: Stand) {
        self.state.lock().expect("no panic").0 = stand;
        self.changed.notify_all();
    }

    fn stands(&self) -> Stand {
        self.state.lock().expect("no panic").0
    }

    fn wait_until_one_waits(&self) {
        let mut state = self.state.lock().expect("no panic");
        while state.1 == 0 {
            state = self.changed.wait(state).expect("no panic");
        }
    }
}

impl Interceptor for Gate {
    fn before_sync(&self, path: &Path) -> Done<()> {
        let mut state = self.state.lock().expect("no panic");
        state.1 += 1;
        self.changed.notify_all();
        while state.0 == Stand::Shut {
            state = self.changed.wait(state).expect("no panic");
        }
        state.1 -= 1;
        match state.0 {
            Stand::Broken => Err(DiskError {
                op: "sync",
                path: path.to_owned(),
                kind: DiskErrorKind::Other,
                source: Arc::new(std::io::Error::other("the disk is gone")),
            }),
            _ => Ok(()),
        }
    }
}

type Place = (Store, Tree);

/// A store that is written, whose syncs pass a gate, and one that is read.
struct World {
    gate: Arc<Gate>,
    written: Place,
    read: Place,
}

/// How a transaction begins in a store, to use this tree.
type Begins = fn(&mut TxnContext, &Tree) -> Result<()>;

const WAYS: [(&str, Begins); 3] = [
    ("a statement", |txn, tree| txn.begin_statement(&[tree])),
    ("explicit", |txn, _| txn.begin(Isolation::Serializable)),
    ("immediate", |txn, _| txn.begin_immediate()),
];

impl World {
    fn new() -> Self {
        let gate = Arc::new(Gate {
            state: Mutex::new((Stand::Open, 0)),
            changed: Condvar::new(),
        });
        let gated = Intercepted::new(MemoryDisk::new(), &gate);
        let open = |disk: Arc<dyn Disk>| {
            let store = Store::open_on(disk, "s.db", Options::default()).expect("opens");
            let tree = store.create_family("t", KeyKind::Int).expect("a family");
            (store, tree)
        };
        Self {
            gate,
            written: open(Arc::new(gated)),
            read: open(Arc::new(MemoryDisk::new())),
        }
    }

    /// Writes a key to the one store where the other one lacks key 0; whether that was so.
    /// Nothing is waited for but the sync.
    fn read_and_write(&self, begins: Begins, key: i64) -> Result<bool> {
        let (mut writes, mut reads) = (self.written.0.txn(), self.read.0.txn());
        for txn in [&mut writes, &mut reads] {
            txn.set_busy_timeout(Duration::ZERO);
        }
        begins(&mut writes, &self.written.1)?;
        reads.begin_after_others(|txn| begins(txn, &self.read.1))?;
        let found = reads.get_into(&self.read.1, Key::Int(0), &mut Vec::new())?;
        if !found {
            writes.put(&self.written.1, Key::Int(key), b"here")?;
        }
        commit_together(&mut [&mut writes, &mut reads])?;
        Ok(!found)
    }

    fn holds((store, tree): &Place, key: i64) -> bool {
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let found = txn.get_into(tree, Key::Int(key), &mut Vec::new());
        found.expect("reads")
    }

    fn change(&self) -> Result<()> {
        let (store, tree) = &self.read;
        let mut txn = store.txn();
        txn.begin_statement(&[tree])?;
        txn.put(tree, Key::Int(0), b"changed")?;
        txn.commit()
    }

    /// Waits until who changes what is read has it to itself, or is done.
    fn wait_until_changing(&self, is_done: impl Fn() -> bool) {
        let (store, tree) = &self.read;
        let is_at_work = || {
            let mut txn = store.txn();
            txn.set_busy_timeout(Duration::ZERO);
            let begun = txn.begin_statement(&[tree]);
            begun.is_err_and(|error| error.kind() == ErrorKind::Busy)
        };
        while !is_at_work() && !is_done() {
            thread::yield_now();
        }
    }
}

/// A statement over two files held the locks of both until it was durable, and so did the
/// commit of a transaction: each of several threads waited for a sync of its own.
#[test]
fn who_is_published_keeps_nobody_out() {
    for (way, begins) in WAYS {
        let world = World::new();
        world.gate.set(Stand::Shut);
        thread::scope(|scope| {
            let first = scope.spawn(|| world.read_and_write(begins, 1));
            world.gate.wait_until_one_waits();
            let free = [&world.written, &world.read].map(|(store, tree)| {
                let mut txn = store.txn();
                txn.set_busy_timeout(Duration::ZERO);
                txn.begin_statement(&[tree])
            });
            let mut excludes = world.read.0.txn();
            excludes.set_busy_timeout(Duration::ZERO);
            let excluded = excludes.begin_immediate();
            world.gate.set(Stand::Open);
            assert!(free.iter().all(Result::is_ok), "{way}: {free:?}");
            excluded.expect("nobody is at work");
            assert!(first.join().expect("no panic").expect("commits"), "{way}");
        });
    }
}

/// The change of what a transaction has read is not shown before what that wrote elsewhere:
/// who read both would see a state that no order of the two has.
#[test]
fn a_change_is_shown_after_who_has_read_what_was_there_before() {
    for (way, begins) in WAYS {
        let world = World::new();
        world.gate.set(Stand::Shut);
        thread::scope(|scope| {
            let first = scope.spawn(|| world.read_and_write(begins, 1));
            world.gate.wait_until_one_waits();
            let changes = scope.spawn(|| {
                let changed = world.change();
                (changed, world.gate.stands() == Stand::Open)
            });
            world.wait_until_changing(|| changes.is_finished());
            let shown = (0..100).any(|_| World::holds(&world.read, 0));
            world.gate.set(Stand::Open);
            assert!(!shown, "{way}");
            let (changed, was_open) = changes.join().expect("no panic");
            changed.expect("commits");
            assert!(was_open, "{way}");
            assert!(first.join().expect("no panic").expect("commits"), "{way}");
            assert!(World::holds(&world.written, 1) && World::holds(&world.read, 0));
        });
    }
}

/// Nobody waits for what will not come: where the log of the one store fails, the other one
/// goes on.
#[test]
fn who_follows_a_commit_that_fails_goes_on() {
    for (way, begins) in WAYS {
        let world = World::new();
        world.gate.set(Stand::Shut);
        thread::scope(|scope| {
            let first = scope.spawn(|| world.read_and_write(begins, 1));
            world.gate.wait_until_one_waits();
            let changes = scope.spawn(|| world.change());
            world.wait_until_changing(|| changes.is_finished());
            world.gate.set(Stand::Broken);
            let failed = first
                .join()
                .expect("no panic")
                .expect_err("its sync failed");
            assert_eq!(failed.kind(), ErrorKind::Poisoned, "{way}: {failed}");
            changes.join().expect("no panic").expect("commits");
        });
        assert!(World::holds(&world.read, 0) && !World::holds(&world.written, 1));
        world.change().expect("nothing is left to wait for");
    }
}
