//! A database on a disk that holds the syncs of the one thread that commits first, until it
//! is told to let them go, or to fail.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::support::{must, run};
use fulgurite_disk::{DiskError, DiskErrorKind, Intercepted, Interceptor, MemoryDisk};
use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Options, Store};

/// The thread whose syncs are held.
const FIRST: &str = "first";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    Shut,
    Open,
    Fails,
}

#[derive(Debug)]
pub struct Gate {
    /// How it stands, and whether a sync is held.
    pub state: Mutex<(Stand, bool)>,
    changed: Condvar,
}

impl Gate {
    pub fn set(&self, stand: Stand) {
        self.state.lock().unwrap().0 = stand;
        self.changed.notify_all();
    }

    fn wait_until_it_holds(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
    }
}

impl Interceptor for Gate {
    fn before_sync(&self, path: &Path) -> Result<(), DiskError> {
        if thread::current().name() != Some(FIRST) {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap();
        state.1 = true;
        self.changed.notify_all();
        while state.0 == Stand::Shut {
            state = self.changed.wait(state).unwrap();
        }
        match state.0 {
            Stand::Fails => Err(DiskError {
                op: "sync",
                path: path.to_owned(),
                kind: DiskErrorKind::Other,
                source: Arc::new(std::io::Error::other("the disk is gone")),
            }),
            _ => Ok(()),
        }
    }
}

/// Lets the syncs go, also where an assertion fails.
struct OpensAtTheEnd<'g>(&'g Gate);

impl Drop for OpensAtTheEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 == Stand::Shut {
            state.0 = Stand::Open;
        }
        self.0.changed.notify_all();
    }
}

pub struct World {
    pub engine: Engine,
    pub gate: Arc<Gate>,
}

impl World {
    pub fn new() -> Self {
        let gate = Arc::new(Gate {
            state: Mutex::new((Stand::Shut, false)),
            changed: Condvar::new(),
        });
        let disk = Intercepted::new(MemoryDisk::new(), &gate);
        let options = Options::default();
        let store = Store::open_on(Arc::new(disk), Path::new("/test.db"), options).unwrap();
        let engine = Engine::open(store).unwrap();
        must(
            &engine.session(),
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, u TEXT UNIQUE);
             CREATE INDEX t_n ON t(n);
             CREATE TABLE s(id INTEGER PRIMARY KEY, n INT);
             WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9)
             INSERT INTO t SELECT i, i * 10, 'u' || i FROM c;
             INSERT INTO s SELECT id, n FROM t",
        );
        Self { engine, gate }
    }

    /// While the sync of what `first` commits is held, `then` uses a connection that was
    /// there before.
    pub fn meanwhile<R>(&self, first: &str, then: impl FnOnce(&Session) -> R) -> R {
        let second = self.engine.session();
        thread::scope(|scope| {
            let commits = || run(&self.engine.session(), first);
            let first = thread::Builder::new().name(FIRST.into());
            let first = first.spawn_scoped(scope, commits).unwrap();
            self.gate.wait_until_it_holds();
            let outcome = {
                let _opens = OpensAtTheEnd(&self.gate);
                then(&second)
            };
            first.join().unwrap();
            outcome
        })
    }

    /// Runs an IMMEDIATE transaction of one statement, which comes to its end while the sync
    /// is held, or has to wait for it.
    pub fn runs(&self, session: &Session, statement: &str, at_once: bool) {
        must(session, BEGIN);
        if at_once {
            must(session, statement);
            assert_eq!(*self.gate.state.lock().unwrap(), (Stand::Shut, true));
            self.gate.set(Stand::Open);
        } else {
            thread::scope(|scope| {
                scope.spawn(|| self.gate.set(Stand::Open));
                must(session, statement);
            });
        }
        must(session, "COMMIT");
    }

    /// What `second` comes to in an IMMEDIATE transaction, which is told while the sync is
    /// held.
    pub fn at_once(first: &str, second: &str) -> Vec<String> {
        let world = Self::new();
        world.meanwhile(first, |session| {
            must(session, "BEGIN IMMEDIATE");
            let told = run(session, second);
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            // A commit shares the sync, and so waits for it.
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
            told
        })
    }

    /// The same, where nobody is told before readers see the first commit.
    pub fn late(first: &str, (begin, second): (&str, &str)) -> Vec<String> {
        let world = Self::new();
        world.meanwhile(first, |session| {
            let reader = world.engine.session();
            let before = run(&reader, EVERYTHING);
            let told = thread::scope(|scope| {
                must(session, begin);
                scope.spawn(|| world.gate.set(Stand::Open));
                run(session, second)
            });
            assert_ne!(
                before,
                run(&reader, EVERYTHING),
                "{second} was told too early"
            );
            must(session, "ROLLBACK");
            told
        })
    }
}

pub const BEGIN: &str = "BEGIN IMMEDIATE";
pub const EVERYTHING: &str = "SELECT * FROM t; SELECT * FROM s; SELECT sql FROM sqlite_schema";
pub const CHANGES_1: &str = "UPDATE t SET n = 100 WHERE id = 1";
pub const ADDS_77: &str = "INSERT INTO t VALUES (77, 770, 'new')";
