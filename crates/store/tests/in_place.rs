//! Short transactions, one after the other, against `BTreeMap`s, in `normal` and in
//! `full` with syncs that take no time: most of them are committed where their entries
//! lie (`txn/in_place.rs`). Between them come snapshots that stay for a while,
//! checkpoints, savepoints, commits that fail, and ends of the process with leases open.
//!
//! `FULGURITE_IN_PLACE_SEEDS` sets the number of seeds, `FULGURITE_IN_PLACE_FIRST` the
//! first; a failure prints its seed.

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{
    Durability, Isolation, Key, KeyKind, Options, Savepoint, Seek, Store, Tree, Txn,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Transactions a seed.
const STEPS: u64 = 3000;
const KINDS: [KeyKind; 2] = [KeyKind::Int, KeyKind::Bytes];

/// Bytes that the log may have.
const LOG: u64 = 256 << 10;

type Maps = [BTreeMap<u64, Vec<u8>>; 2];

struct World {
    disk: Arc<MemoryDisk>,
    durability: Durability,
    rng: Rng,
    store: Store,
    trees: [Tree; 2],
    txn: Txn,
    maps: Maps,
    /// Snapshots that stay, and what they show.
    readers: Vec<(Txn, Maps)>,
    /// How many commits wrote in place, of the lives before this one.
    in_place: u64,
}

fn open(disk: &Arc<MemoryDisk>, durability: Durability) -> (Store, [Tree; 2]) {
    let options = Options {
        durability,
        cache_bytes: 32 << 20,
        checkpoint_bytes: 64 << 10,
        log_limit_bytes: Some(LOG),
        // Who needs room in the log that there is none of fails at once.
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    open_with(disk, options)
}

fn open_with(disk: &Arc<MemoryDisk>, options: Options) -> (Store, [Tree; 2]) {
    let store = Store::open_on(disk.clone(), "p.db", options).expect("opens");
    let trees = KINDS.map(|kind| {
        let name = format!("{kind:?}");
        store.create_family(&name, kind).expect("a family")
    });
    (store, trees)
}

/// Long enough that a few hundred keys take several pages, and some change length.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(30) {
        0 => rng.below(3000),
        1..4 => rng.below(300),
        _ => 100,
    };
    vec![rng.next() as u8; len as usize]
}

fn bytes_of(key: u64) -> Vec<u8> {
    format!("key/{key:05}").into_bytes()
}

/// One call on a tree of either kind.
fn with_key<R>(tree: &Tree, key: u64, call: impl FnOnce(Key<'_>) -> R) -> R {
    match tree.kind() {
        KeyKind::Int => call(Key::Int(key as i64)),
        KeyKind::Bytes => call(Key::Bytes(&bytes_of(key))),
    }
}

fn check_all(txn: &mut Txn, trees: &[Tree; 2], maps: &Maps) {
    for (tree, map) in trees.iter().zip(maps) {
        assert_eq!(txn.count(tree).expect("counts"), map.len() as u64);
        let mut cursor = txn.cursor(tree).expect("a cursor");
        let mut more = cursor.seek(Seek::First).expect("seeks");
        for (key, value) in map {
            assert!(more, "the tree ends before {key}");
            match tree.kind() {
                KeyKind::Int => assert_eq!(cursor.key_int(), *key as i64),
                KeyKind::Bytes => assert_eq!(cursor.key_bytes().expect("a key"), bytes_of(*key)),
            }
            assert_eq!(&cursor.value().expect("a value"), value, "under {key}");
            more = cursor.next().expect("moves");
        }
        assert!(!more, "the tree goes on");
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = Arc::new(MemoryDisk::new());
        let durability = match seed % 2 {
            0 => Durability::Full,
            _ => Durability::Normal,
        };
        let (store, trees) = open(&disk, durability);
        let txn = store.txn();
        Self {
            disk,
            durability,
            rng: Rng::new(seed),
            store,
            trees,
            txn,
            maps: Maps::default(),
            readers: Vec::new(),
            in_place: 0,
        }
    }

    fn step(&mut self) {
        match self.rng.below(400) {
            0 => {
                let mut txn = self.store.txn();
                txn.begin_read().expect("reads");
                self.readers.push((txn, self.maps.clone()));
            }
            1..4 if !self.readers.is_empty() => {
                let at = self.rng.below(self.readers.len() as u64) as usize;
                let (mut txn, maps) = self.readers.swap_remove(at);
                check_all(&mut txn, &self.trees, &maps);
            }
            4 => self.store.checkpoint().expect("a checkpoint"),
            5 => self.begin_anew(),
            6..9 => self.write_too_much(),
            _ => self.transact(),
        }
    }

    /// The process ends, with its leases open, and another one opens the database.
    fn begin_anew(&mut self) {
        let left = Arc::new(self.disk.copied());
        for (mut txn, maps) in self.readers.drain(..) {
            check_all(&mut txn, &self.trees, &maps);
        }
        self.in_place += self.store.stats().commits_in_place;
        self.disk = left;
        (self.store, self.trees) = open(&self.disk, self.durability);
        self.txn = self.store.txn();
        self.check();
    }

    fn check(&mut self) {
        let mut txn = self.store.txn();
        txn.begin_read().expect("reads");
        check_all(&mut txn, &self.trees, &self.maps);
        let problems = self.store.integrity_check().expect("checks");
        assert_eq!(problems, Vec::<String>::new());
    }

    /// A commit for which the log has no room, but where it is empty.
    fn write_too_much(&mut self) {
        let [tree, _] = &self.trees;
        let key = self.rng.below(600);
        let value = vec![self.rng.next() as u8; LOG as usize];
        self.txn.begin_statement(&[tree]).expect("begins");
        let written = with_key(tree, key, |key| self.txn.put(tree, key, &value));
        match written.and_then(|_| self.txn.commit()) {
            Ok(()) => drop(self.maps[0].insert(key, value)),
            Err(_) => self.txn.rollback(),
        }
    }

    fn transact(&mut self) {
        let trees: Vec<&Tree> = self.trees.iter().collect();
        match self.rng.below(3) {
            0 => self.txn.begin(Isolation::Serializable).expect("begins"),
            1 => self.txn.begin(Isolation::Snapshot).expect("begins"),
            _ => self.txn.begin_statement(&trees).expect("begins"),
        }
        let mut maps = self.maps.clone();
        let mut savepoint = None;
        // Now and then more than are put off.
        let most = match self.rng.below(16) {
            0 => 50,
            _ => 4,
        };
        for _ in 0..1 + self.rng.below(most) {
            self.change(&mut maps, &mut savepoint);
        }
        match self.rng.below(20) {
            0 => self.txn.rollback(),
            // The log may be full.
            _ => match self.txn.commit() {
                Ok(()) => self.maps = maps,
                Err(_) => self.txn.rollback(),
            },
        }
    }

    fn change(&mut self, maps: &mut Maps, savepoint: &mut Option<(Savepoint, Maps)>) {
        let Self { rng, txn, .. } = self;
        let at = rng.below(2) as usize;
        let (tree, map) = (&self.trees[at], &mut maps[at]);
        let key = rng.below(600);
        match rng.below(40) {
            0..20 => {
                let value = value(rng);
                let replaced = with_key(tree, key, |key| txn.put(tree, key, &value));
                assert_eq!(replaced.expect("puts"), map.insert(key, value).is_some());
            }
            20..24 => {
                let value = value(rng);
                let inserted = with_key(tree, key, |key| txn.insert(tree, key, &value));
                assert_eq!(inserted.expect("inserts"), !map.contains_key(&key));
                map.entry(key).or_insert(value);
            }
            24..30 => {
                let deleted = with_key(tree, key, |key| txn.delete(tree, key));
                assert_eq!(deleted.expect("deletes"), map.remove(&key).is_some());
            }
            30..36 => {
                // Mostly one that was there, now and then one just written.
                let near = map.range(key..).next().map_or(key, |(near, _)| *near);
                let mut value = Vec::new();
                let found = with_key(tree, near, |key| txn.get_into(tree, key, &mut value));
                assert_eq!(found.expect("gets").then_some(&value), map.get(&near));
            }
            36 => *savepoint = Some((txn.savepoint().expect("a savepoint"), maps.clone())),
            37 => {
                if key.is_multiple_of(3)
                    && let Some((savepoint, _)) = savepoint.take()
                {
                    txn.release(&savepoint).expect("lets go");
                } else if let Some((savepoint, before)) = savepoint {
                    txn.rollback_to(savepoint).expect("goes back");
                    maps.clone_from(before);
                }
            }
            38 if tree.kind() == KeyKind::Int => {
                let next = txn.allocate_rowid(tree).expect("a number");
                let largest = map.keys().next_back().copied();
                assert_eq!(next, largest.map_or(1, |largest| largest as i64 + 1));
            }
            _ => assert_eq!(txn.count(tree).expect("counts"), map.len() as u64),
        }
    }
}

#[test]
fn what_is_written_in_place_is_what_a_map_holds() {
    let seeds = env("FULGURITE_IN_PLACE_SEEDS", 6);
    let first = env("FULGURITE_IN_PLACE_FIRST", 1);
    for seed in first..first + seeds {
        print!("seed {seed}: ");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        for (mut txn, maps) in world.readers.drain(..) {
            check_all(&mut txn, &world.trees, &maps);
        }
        world.check();
        let in_place = world.in_place + world.store.stats().commits_in_place;
        println!("{in_place} commits in place, {:?}", world.durability);
        // How many depends on when the background thread makes its checkpoints.
        assert!(in_place > 0, "they are what this is about");
    }
}

/// Says so however its owner ends: who loops until it is said would hide a panic.
struct Done<'d>(&'d AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Two readers beside one writer: each snapshot shows both entries of a transaction, the
/// same at its second look, and no less than was told before it.
#[test]
fn snapshots_beside_synced_commits_in_place() {
    const COMMITS: u64 = 20_000;
    // Checkpoints that come while it goes on, and the patience to wait for them.
    let options = Options {
        checkpoint_bytes: 64 << 10,
        ..Options::default()
    };
    let (store, trees) = open_with(&Arc::new(MemoryDisk::new()), options);
    let [numbers, _] = &trees;
    let (told, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let read = |txn: &mut Txn| {
        [1, 2].map(|key| {
            let mut value = Vec::new();
            let found = txn.get_into(numbers, Key::Int(key), &mut value);
            let number = || u64::from_le_bytes(value.try_into().expect("eight bytes"));
            found.expect("gets").then(number)
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut txn = store.txn();
                while !done.load(SeqCst) {
                    let least = told.load(SeqCst);
                    txn.begin_read().expect("reads");
                    let [one, two] = read(&mut txn);
                    assert_eq!(one, two, "half a transaction");
                    assert!(one.unwrap_or(0) >= least, "{least} was told, not {one:?}");
                    assert_eq!(read(&mut txn), [one, two], "a snapshot changed");
                    txn.commit().expect("ends");
                    std::thread::yield_now();
                }
            });
        }
        let _ends_the_readers = Done(&done);
        let mut txn = store.txn();
        for count in 1..=COMMITS {
            match count % 2 {
                0 => txn.begin(Isolation::Serializable).expect("begins"),
                _ => txn.begin_statement(&[numbers]).expect("begins"),
            }
            for key in [1, 2] {
                let put = txn.put(numbers, Key::Int(key), &count.to_le_bytes());
                put.expect("puts");
            }
            txn.commit().expect("commits");
            told.store(count, SeqCst);
        }
    });
    assert!(
        store.stats().commits_in_place > 0,
        "they are what this is about"
    );
}
