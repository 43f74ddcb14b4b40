//! More writers than processors where commits wait for nothing: how many of them write
//! at a time is tried and changes all the while. Statements of one tree, overlapping
//! transactions that lose and are run again, a context that begins IMMEDIATE, and
//! contexts that come and go, with a chair or without: nobody waits for ever, each
//! commits what it wanted, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fulgurite_store_model::{ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use shuttle::thread;

const WRITERS: i64 = 3;
const ROUNDS: i64 = 14;
/// A context is given up after so many rounds, and another one made.
const ROUNDS_A_CONTEXT: i64 = 5;
/// Longer than a run may take: no wait is to end by the clock.
const PATIENCE: Duration = Duration::from_hours(1000);

/// In how many runs there was a limit when a writer asked.
#[derive(Default)]
pub struct Limited(AtomicU32);

impl Limited {
    pub fn runs(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds one, within whatever transaction is under way.
fn add_one(txn: &mut Txn, tree: &Tree) -> fulgurite_store_model::Result<()> {
    let mut value = Vec::new();
    txn.get_into(tree, Key::Int(0), &mut value)?;
    let before = value.try_into().map_or(0, i64::from_le_bytes);
    txn.put(tree, Key::Int(0), &(before + 1).to_le_bytes())
        .map(|_| ())
}

/// One transaction of the kind that the round says, until it does not lose.
fn commit(txn: &mut Txn, tree: &Tree, round: i64) {
    loop {
        let done = match round % 7 {
            3 => txn.begin_immediate(),
            2 | 5 => txn.begin(Isolation::Serializable),
            _ => txn.begin_statement(&[tree]),
        }
        .and_then(|()| add_one(txn, tree))
        .and_then(|()| txn.commit());
        match done {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
}

pub fn limited_writers(limited: &Arc<Limited>) {
    let options = Options {
        busy_timeout: PATIENCE,
        ..Options::default()
    };
    let store = Store::in_memory(options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, tree) = (store.clone(), tree.clone());
            thread::spawn(move || {
                let mut met = false;
                let mut txn = store.txn();
                for round in 0..ROUNDS {
                    if round % ROUNDS_A_CONTEXT == ROUNDS_A_CONTEXT - 1 {
                        txn = store.txn();
                    }
                    commit(&mut txn, &tree, round + writer);
                    met |= store.stats().writers_at_once.is_some();
                }
                met
            })
        })
        .collect();
    let met: Vec<bool> = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    let met = u32::from(met.contains(&true));
    limited.0.fetch_add(met, Ordering::Relaxed);
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    assert!(txn.get_into(&tree, Key::Int(0), &mut value).expect("reads"));
    assert_eq!(value, (WRITERS * ROUNDS).to_le_bytes());
}
