//! Threads that write as they like in a cache that holds a small part of it: short
//! statements, transactions from one row to thousands, dense and scattered, with
//! savepoints and large values, all in the same trees, and checkpoints beside them.
//! So transactions spill while others commit under them, and wait for frames while
//! others fill the cache.
//!
//! Each thread has rows of its own, between those of the others, and knows what they
//! are: it looks at some now and then, and at the end all are compared, the structure
//! is checked, and both again once the store is opened anew. Which interleavings occur
//! is up to the machine; the settings, and what each thread does, follow from a seed.
//! (The models of threads have no time, and so no cache in which one waits for it.)

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Durability, ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const THREADS: u64 = 4;
const TREES: [(&str, KeyKind); 3] = [
    ("numbered", KeyKind::Int),
    ("named", KeyKind::Bytes),
    ("another", KeyKind::Int),
];
const ROWS: u64 = 3_000;

/// A tree, by its place in [`TREES`], and a row of the thread's own.
type Place = (usize, u64);
type Rows = BTreeMap<Place, Vec<u8>>;

/// What became of the transactions of all threads.
#[derive(Default)]
struct Outcomes {
    committed: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
}

fn options(rng: &mut Rng) -> Options {
    let mut one_of = |all: &[usize]| all[rng.below(all.len() as u64) as usize];
    let page_size = one_of(&[4096, 4096, 8192, 16_384]);
    Options {
        cache_bytes: one_of(&[192, 256, 384]) * page_size,
        page_size: page_size as u32,
        checkpoint_bytes: one_of(&[16 << 10, 1 << 20, 24 << 20]) as u64,
        log_limit_bytes: Some(one_of(&[64 << 10, 2 << 20, 32 << 20]) as u64),
        durability: match one_of(&[0, 0, 1, 2]) {
            0 => Durability::Full,
            1 => Durability::Normal,
            _ => Durability::Off,
        },
        busy_timeout: Duration::from_secs(30),
        ..Options::default()
    }
}

struct Worker<'w> {
    store: &'w Store,
    trees: &'w [Tree],
    outcomes: &'w Outcomes,
    own: u64,
    rng: Rng,
    rows: Rows,
    txn: Txn,
}

impl Worker<'_> {
    fn run(mut self, steps: u64) -> Rows {
        for _ in 0..steps {
            match self.rng.below(16) {
                0 => self.look(),
                1 => self.store.checkpoint().expect("a checkpoint"),
                2..=6 => self.statement(),
                _ => self.explicit(),
            }
        }
        self.rows
    }

    /// Whatever failed is undone: the rows stay what they were.
    fn ended(&mut self, ended: fulgurite_store::Result<()>, next: Rows) {
        let count = match ended {
            Ok(()) => {
                self.rows = next;
                &self.outcomes.committed
            }
            Err(error) => {
                self.txn.rollback();
                match error.kind() {
                    ErrorKind::Conflict => &self.outcomes.lost,
                    ErrorKind::Busy | ErrorKind::NoMemory => &self.outcomes.refused,
                    _ => panic!("{error}"),
                }
            }
        };
        count.fetch_add(1, Relaxed);
    }

    fn statement(&mut self) {
        let tree = self.rng.below(TREES.len() as u64) as usize;
        let mut next = self.rows.clone();
        let ended = self.txn.begin_statement(&[&self.trees[tree]]);
        let changes = 1 + self.rng.below(8);
        let ended = ended.and_then(|()| {
            (0..changes).try_for_each(|_| {
                let row = self.rng.below(ROWS);
                self.change(&mut next, (tree, row))
            })
        });
        let ended = ended.and_then(|()| self.txn.commit());
        self.ended(ended, next);
    }

    fn explicit(&mut self) {
        let begun = match self.rng.below(8) {
            0 => self.txn.begin_immediate(),
            1..=3 => self.txn.begin(Isolation::Snapshot),
            _ => self.txn.begin(Isolation::Serializable),
        };
        let mut next = self.rows.clone();
        let ended = begun.and_then(|()| self.changes(&mut next));
        if ended.is_ok() && self.rng.chance(1, 8) {
            self.txn.rollback();
            return;
        }
        let ended = ended.and_then(|()| self.txn.commit());
        self.ended(ended, next);
    }

    /// Few changes or many, side by side or all over the trees, some undone again.
    fn changes(&mut self, next: &mut Rows) -> fulgurite_store::Result<()> {
        let most = 1 << self.rng.below(12);
        let count = 1 + self.rng.below(most);
        let dense = self.rng.chance(1, 2).then(|| self.rng.below(ROWS));
        let tree = self.rng.below(TREES.len() as u64) as usize;
        let mut savepoint = None;
        for at in 0..count {
            match dense {
                Some(first) => self.change(next, (tree, (first + at) % ROWS))?,
                None => {
                    let tree = self.rng.below(TREES.len() as u64) as usize;
                    let row = self.rng.below(ROWS);
                    self.change(next, (tree, row))?;
                }
            }
            if self.rng.chance(1, 64) {
                savepoint = match savepoint {
                    None => Some((self.txn.savepoint()?, next.clone())),
                    Some((savepoint, state)) => {
                        self.txn.rollback_to(&savepoint)?;
                        *next = state;
                        None
                    }
                };
            }
        }
        Ok(())
    }

    fn change(&mut self, next: &mut Rows, place: Place) -> fulgurite_store::Result<()> {
        let key = key(self.own, place);
        let tree = &self.trees[place.0];
        if self.rng.chance(1, 6) {
            let deleted = self.txn.delete(tree, key.as_key())?;
            assert_eq!(deleted, next.remove(&place).is_some(), "delete {place:?}");
            return Ok(());
        }
        let most = match self.rng.below(200) {
            0 => 40_000,
            1..=10 => 3_000,
            _ => 200,
        };
        let len = self.rng.below(most) as usize;
        let words = std::iter::repeat_with(|| self.rng.next().to_le_bytes());
        let value: Vec<u8> = words.flatten().take(len).collect();
        let replaced = self.txn.put(tree, key.as_key(), &value)?;
        let before = next.insert(place, value);
        assert_eq!(replaced, before.is_some(), "put {place:?}");
        Ok(())
    }

    fn look(&mut self) {
        self.txn.begin_read().expect("reads");
        for _ in 0..40 {
            let tree = self.rng.below(TREES.len() as u64) as usize;
            let place = (tree, self.rng.below(ROWS));
            let known = self.rows.get(&place);
            assert_eq!(
                read(&mut self.txn, self.trees, self.own, place).as_ref(),
                known
            );
        }
        self.txn.rollback();
    }
}

enum OwnKey {
    Int(i64),
    Name(Vec<u8>),
}

impl OwnKey {
    fn as_key(&self) -> Key<'_> {
        match self {
            Self::Int(number) => Key::Int(*number),
            Self::Name(name) => Key::Bytes(name),
        }
    }
}

/// The key of a thread's row, between those of the others.
fn key(own: u64, (tree, row): Place) -> OwnKey {
    let number = row * THREADS + own;
    match TREES[tree].1 {
        KeyKind::Int => OwnKey::Int(number as i64),
        KeyKind::Bytes => OwnKey::Name(format!("row number {number:07}").into_bytes()),
    }
}

fn read(txn: &mut Txn, trees: &[Tree], own: u64, place: Place) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let key = key(own, place);
    let found = txn.get_into(&trees[place.0], key.as_key(), &mut value);
    found.expect("reads").then_some(value)
}

/// The store holds what the threads know, and nothing else.
fn check(store: &Store, all: &[Rows]) {
    let trees = TREES.map(|(name, _)| store.family(name).expect("reads").expect("is there"));
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    for (own, rows) in (0..).zip(all) {
        for (place, value) in rows {
            let found = read(&mut txn, &trees, own, *place);
            assert_eq!(found.as_ref(), Some(value), "thread {own}, {place:?}");
        }
    }
    for (at, tree) in trees.iter().enumerate() {
        let known = all.iter().flat_map(BTreeMap::keys);
        let known = known.filter(|(tree, _)| *tree == at).count();
        assert_eq!(txn.count(tree).expect("counts"), known as u64);
    }
    drop(txn);
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
}

#[test]
fn threads_in_a_small_cache_lose_nothing() {
    let rounds = env("FULGURITE_SQUEEZED_ROUNDS", 6);
    let first = env("FULGURITE_SQUEEZED_FIRST", 0);
    let steps = env("FULGURITE_SQUEEZED_STEPS", 60);
    let outcomes = Outcomes::default();
    for seed in first..first + rounds {
        let mut rng = Rng::new(seed);
        let options = options(&mut rng);
        println!("seed {seed}: {options:?}");
        let disk = Arc::new(MemoryDisk::new());
        let open = || Store::open_on(disk.clone(), "squeezed.db", options.clone());
        let store = open().expect("opens");
        let trees = TREES.map(|(name, kind)| store.create_family(name, kind).expect("a family"));
        let all: Vec<Rows> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|own| Worker {
                    store: &store,
                    trees: &trees,
                    outcomes: &outcomes,
                    own,
                    rng: Rng::new(rng.next()),
                    rows: Rows::new(),
                    txn: store.txn(),
                })
                .map(|worker| scope.spawn(|| worker.run(steps)))
                .collect();
            let ended = workers.into_iter().map(|worker| worker.join());
            ended.map(|rows| rows.expect("no panic")).collect()
        });
        check(&store, &all);
        drop((trees, store));
        check(&open().expect("opens again"), &all);
    }
    let Outcomes {
        committed,
        lost,
        refused,
    } = outcomes;
    let [committed, lost, refused] = [committed, lost, refused].map(AtomicU64::into_inner);
    println!("{committed} committed, {lost} lost, {refused} refused");
    assert!(committed > rounds * steps, "{committed} committed");
}
