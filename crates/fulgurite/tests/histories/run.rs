//! Draws transactions from a seed, runs them, and writes down what they saw.

use crate::history::{Event, History, Transaction, Value};
use fastrand::Rng;
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Durability, Options, Store};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

pub const KEYS: usize = 3;
const SESSIONS: usize = 4;
/// Rows of the set lie in so many stretches of this length.
const STRETCHES: u64 = 4;
const STRETCH: u64 = 1 << 32;

/// How a transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    Optimistic,
    Immediate,
    /// A single operation on its own.
    Autocommit,
}

/// What optimistic transactions have when they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// A snapshot, as those of any new session.
    Snapshot,
    /// Nothing, as those of a session whose last ones touched few tables, where nothing
    /// is synced: they hold what they touch until somebody asks for it.
    Hold,
}

/// After so many small transactions of its own a session begins without a snapshot.
pub const USED_AFTER: usize = 33;

/// A store for a history.
pub fn store(beginning: Beginning) -> fulgurite_store::Result<Store> {
    let mut options = Options {
        cache_bytes: 1 << 20,
        ..Options::default()
    };
    match beginning {
        Beginning::Snapshot => Store::in_memory(options),
        Beginning::Hold => {
            options.durability = Durability::Normal;
            Store::open_on(Arc::new(MemoryDisk::new()), Path::new("h.db"), options)
        }
    }
}

/// What a transaction asks for.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    ReadList(usize),
    Append(usize, Value),
    Read(usize),
    /// Reads it first.
    Write(usize, Value),
    ReadSet(u64, u64),
    Add(Value),
}

/// A session; each call is one statement.
pub trait Session: Send {
    fn begin(&mut self, how: Begin);
    /// What happened, in order.
    fn run(&mut self, ask: Ask) -> Vec<Event>;
    /// Whether it committed; if not it lost.
    fn commit(&mut self) -> bool;
    fn rollback(&mut self);
}

/// A database with the objects in it: lists and registers of [`KEYS`] keys, and
/// an empty set.
pub trait Target {
    fn session(&self) -> Box<dyn Session>;
}

struct Draw {
    rng: Rng,
}

impl Draw {
    fn ask(&mut self, next: &AtomicU64) -> Ask {
        let key = self.rng.usize(..KEYS);
        match self.rng.u8(..12) {
            0..3 => Ask::ReadList(key),
            3..5 => Ask::Append(key, next.fetch_add(1, SeqCst)),
            5..7 => Ask::Read(key),
            7..9 => Ask::Write(key, next.fetch_add(1, SeqCst)),
            9..11 => {
                let low = self.rng.u64(..STRETCHES) * STRETCH;
                let high = low + self.rng.u64(1..3) * STRETCH - 1;
                Ask::ReadSet(low, high)
            }
            _ => {
                let stretch = self.rng.u64(..STRETCHES) * STRETCH;
                Ask::Add(stretch + next.fetch_add(1, SeqCst))
            }
        }
    }

    fn begin(&mut self) -> Begin {
        match self.rng.u8(..8) {
            0 => Begin::Autocommit,
            _ => Begin::Optimistic,
        }
    }

    fn length(&mut self, how: Begin) -> usize {
        match how {
            Begin::Autocommit => 1,
            _ => self.rng.usize(1..5),
        }
    }
}

/// Reads everything, after all others: which list has which order.
fn last(target: &dyn Target, clock: &AtomicU64) -> Transaction {
    let mut session = target.session();
    let mut transaction = Transaction {
        began: clock.fetch_add(1, SeqCst),
        committed: true,
        ..Transaction::default()
    };
    session.begin(Begin::Optimistic);
    for key in 0..KEYS {
        transaction.events.extend(session.run(Ask::ReadList(key)));
        transaction.events.extend(session.run(Ask::Read(key)));
    }
    let whole = Ask::ReadSet(0, STRETCHES * STRETCH);
    transaction.events.extend(session.run(whole));
    assert!(session.commit(), "a reader never loses");
    transaction.ended = clock.fetch_add(1, SeqCst);
    transaction
}

/// Sessions that take turns at random in one thread: the history follows from
/// the seed.
pub fn interleaved(target: &dyn Target, seed: u64) -> History {
    const TRANSACTIONS: usize = 30;
    let mut draw = Draw {
        rng: Rng::with_seed(seed),
    };
    let (next, clock) = (AtomicU64::new(1), AtomicU64::new(1));
    let mut sessions: Vec<_> = (0..SESSIONS).map(|_| target.session()).collect();
    // A session's transaction, and the operations it still has to do.
    let mut open: Vec<Option<(Transaction, usize, Begin)>> = vec![None; SESSIONS];
    let mut history = History::default();
    let mut begun = 0;
    while begun < TRANSACTIONS || open.iter().any(Option::is_some) {
        let at = draw.rng.usize(..SESSIONS);
        let session = &mut sessions[at];
        match open[at].take() {
            None if begun == TRANSACTIONS => {}
            None => {
                let how = draw.begin();
                let transaction = Transaction {
                    began: clock.fetch_add(1, SeqCst),
                    ..Transaction::default()
                };
                session.begin(how);
                begun += 1;
                open[at] = Some((transaction, draw.length(how), how));
            }
            Some((mut transaction, 0, how)) => {
                if how == Begin::Optimistic && draw.rng.u8(..10) == 0 {
                    session.rollback();
                } else {
                    transaction.committed = session.commit();
                }
                transaction.ended = clock.fetch_add(1, SeqCst);
                history.transactions.push(transaction);
            }
            Some((mut transaction, left, how)) => {
                transaction.events.extend(session.run(draw.ask(&next)));
                open[at] = Some((transaction, left - 1, how));
            }
        }
    }
    history.transactions.push(last(target, &clock));
    history
}

/// Sessions on threads of their own, some of whose transactions are IMMEDIATE.
pub fn threaded(target: &dyn Target, seed: u64) -> History {
    const EACH: usize = 12;
    let (next, clock) = (AtomicU64::new(1), AtomicU64::new(1));
    let done = Mutex::new(Vec::new());
    // All of them first: some make a table.
    let sessions: Vec<_> = (0..SESSIONS).map(|_| target.session()).collect();
    std::thread::scope(|scope| {
        for (at, mut session) in sessions.into_iter().enumerate() {
            let (next, clock, done) = (&next, &clock, &done);
            let mut draw = Draw {
                rng: Rng::with_seed(seed.wrapping_mul(0x9E37_79B9).wrapping_add(at as u64)),
            };
            scope.spawn(move || {
                for _ in 0..EACH {
                    let how = match draw.rng.u8(..8) {
                        0 => Begin::Immediate,
                        _ => draw.begin(),
                    };
                    let mut transaction = Transaction {
                        began: clock.fetch_add(1, SeqCst),
                        ..Transaction::default()
                    };
                    session.begin(how);
                    for _ in 0..draw.length(how) {
                        transaction.events.extend(session.run(draw.ask(next)));
                        std::thread::yield_now();
                    }
                    transaction.committed = session.commit();
                    assert!(
                        transaction.committed || how == Begin::Optimistic,
                        "{how:?} lost"
                    );
                    transaction.ended = clock.fetch_add(1, SeqCst);
                    done.lock().expect("no panic").push(transaction);
                }
            });
        }
    });
    let mut history = History {
        transactions: done.into_inner().expect("no panic"),
    };
    history.transactions.push(last(target, &clock));
    history
}
