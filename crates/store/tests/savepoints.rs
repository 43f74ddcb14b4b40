//! Going back to places of a transaction, by what was noted since, by the nodes that were
//! kept, and by both, gives what was there; and so does the log.

mod common;

use common::Rng;
use fulgurite_disk::{Driver, Machine, MemoryDisk};
use fulgurite_store::{
    ErrorKind, Isolation, Key, KeyKind, Options, Savepoint, Seek, Store, Tree, Txn,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

type Rows = BTreeMap<i64, Vec<u8>>;

fn open(disk: &Arc<MemoryDisk>) -> Store {
    Store::open_on(disk.clone(), "s.db", Options::default()).expect("opens")
}

fn bytes(number: i64) -> Vec<u8> {
    format!(
        "key {:020}",
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)
    )
    .into_bytes()
}

/// The same rows in a tree of integers and in one of bytes.
struct Both {
    trees: [Tree; 2],
    rows: Rows,
}

impl Both {
    fn put(&mut self, txn: &mut Txn, number: i64, value: &[u8]) {
        let key = bytes(number);
        for (tree, key) in self.trees.iter().zip([Key::Int(number), Key::Bytes(&key)]) {
            let there = txn.put(tree, key, value).expect("a put");
            assert_eq!(there, self.rows.contains_key(&number));
        }
        self.rows.insert(number, value.to_vec());
    }

    fn delete(&mut self, txn: &mut Txn, number: i64) {
        let key = bytes(number);
        for (tree, key) in self.trees.iter().zip([Key::Int(number), Key::Bytes(&key)]) {
            let there = txn.delete(tree, key).expect("a delete");
            assert_eq!(there, self.rows.contains_key(&number));
        }
        self.rows.remove(&number);
    }

    fn assert_in(&self, txn: &mut Txn) {
        let mut found = Vec::new();
        for tree in &self.trees {
            assert_eq!(txn.count(tree).expect("a count"), self.rows.len() as u64);
        }
        for (number, value) in &self.rows {
            let key = bytes(*number);
            for (tree, key) in self.trees.iter().zip([Key::Int(*number), Key::Bytes(&key)]) {
                assert!(txn.get_into(tree, key, &mut found).expect("reads"));
                assert_eq!(&found, value, "{number}");
            }
        }
        let largest = self.rows.keys().next_back().copied();
        let known = txn.largest_rowid(&self.trees[0]).expect("a key");
        assert_eq!(known, largest);
    }
}

/// One of the last three.
fn nearly_last(rng: &mut Rng, len: usize) -> usize {
    len - 1 - rng.below(len.min(3) as u64) as usize
}

fn both(store: &Store) -> Both {
    let tree = |name, kind| store.create_family(name, kind).expect("a family");
    Both {
        trees: [tree("int", KeyKind::Int), tree("bytes", KeyKind::Bytes)],
        rows: Rows::new(),
    }
}

/// Some places hold few entries, which are noted, some so many that nodes are kept, some
/// values too large to be noted, and some a tree that is emptied.
#[test]
fn whatever_was_written_since_it_is_undone() {
    for seed in 1..=12 {
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk);
        let mut both = both(&store);
        let mut rng = Rng::new(seed);
        let mut txn = store.txn();
        txn.begin_immediate().expect("begins");
        for number in 0..2_000 {
            both.put(&mut txn, number * 3, &[1; 60]);
        }
        txn.commit().expect("commits");
        txn.begin_immediate().expect("begins");
        let mut places: Vec<(Savepoint, Rows)> = Vec::new();
        for _ in 0..120 {
            match rng.below(12) {
                0..3 => places.push((txn.savepoint().expect("a savepoint"), both.rows.clone())),
                3..5 if !places.is_empty() => {
                    let at = nearly_last(&mut rng, places.len());
                    txn.rollback_to(&places[at].0).expect("goes back");
                    both.rows = places[at].1.clone();
                    places.truncate(at + 1);
                    both.assert_in(&mut txn);
                }
                5 if !places.is_empty() => {
                    let at = nearly_last(&mut rng, places.len());
                    txn.release(&places[at].0).expect("lets go");
                    places.truncate(at);
                }
                6 => {
                    let first = rng.below(6_000) as i64;
                    for number in first..first + 400 + rng.below(2_400) as i64 {
                        both.put(&mut txn, number, &[2; 70]);
                    }
                }
                7 => {
                    let first = rng.below(6_000) as i64;
                    let numbers: Vec<i64> = (first..first + 900).collect();
                    txn.delete_all(&both.trees[0], &numbers, |_| {})
                        .expect("deletes");
                    for number in numbers {
                        txn.delete(&both.trees[1], Key::Bytes(&bytes(number)))
                            .expect("a delete");
                        both.rows.remove(&number);
                    }
                }
                8 => {
                    let (number, len) =
                        (rng.below(6_000) as i64, 2_000 + rng.below(88_000) as usize);
                    both.put(&mut txn, number, &vec![3; len]);
                }
                9 if rng.chance(1, 4) => {
                    for tree in &both.trees {
                        txn.clear(tree, || true).expect("empties");
                    }
                    both.rows.clear();
                }
                _ => {
                    for _ in 0..1 + rng.below(11) {
                        let number = rng.below(6_000) as i64;
                        match rng.chance(1, 2) {
                            true => both.put(&mut txn, number, &vec![4; rng.below(900) as usize]),
                            false => both.delete(&mut txn, number),
                        }
                    }
                }
            }
        }
        both.assert_in(&mut txn);
        txn.commit().expect("commits");
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        // As the end of the process would leave it.
        let copy = open(&Arc::new(disk.copied()));
        let family = |name| copy.family(name).expect("reads").expect("a family");
        let copied = Both {
            trees: [family("int"), family("bytes")],
            rows: both.rows,
        };
        let mut txn = copy.txn();
        txn.begin_immediate().expect("begins");
        copied.assert_in(&mut txn);
    }
}

/// A tree is made, and one dropped, between entries that are noted.
#[test]
fn a_tree_that_is_undone_is_gone_and_one_that_was_dropped_is_back() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let mut both = both(&store);
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    both.put(&mut txn, 1, b"one");
    let outer = (txn.savepoint().expect("a savepoint"), both.rows.clone());
    both.put(&mut txn, 2, b"two");
    let inner = (txn.savepoint().expect("a savepoint"), both.rows.clone());
    both.put(&mut txn, 1, b"another");
    let made = txn.create_tree(KeyKind::Int).expect("a tree");
    txn.put(&made, Key::Int(1), b"").expect("a put");
    txn.drop_tree(&both.trees[1]).expect("drops");
    txn.rollback_to(&inner.0).expect("goes back");
    both.rows = inner.1;
    both.assert_in(&mut txn);
    both.delete(&mut txn, 1);
    txn.drop_tree(&both.trees[1]).expect("drops");
    txn.release(&inner.0).expect("lets go");
    txn.rollback_to(&outer.0).expect("goes back");
    both.rows = outer.1;
    both.assert_in(&mut txn);
    txn.commit().expect("commits");
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
}

/// Every entry of a small table, one statement after the other: its pages were copied at
/// each, and each copy was kept until a share of them was looked at.
#[test]
fn few_entries_take_no_copies_of_their_pages() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let mut both = both(&store);
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for number in 0..2_000 {
        both.put(&mut txn, number, &[1; 60]);
    }
    txn.commit().expect("commits");
    txn.begin_immediate().expect("begins");
    let before = store.stats().cache.unwritten;
    for number in 0..2_000 {
        let savepoint = txn.savepoint().expect("a savepoint");
        both.put(&mut txn, number * 7 % 2_000, &[2; 60]);
        txn.release(&savepoint).expect("lets go");
    }
    both.assert_in(&mut txn);
    let made = store.stats().cache.unwritten - before;
    assert!(made < 200, "{made}");
    txn.commit().expect("commits");
}

/// Entries that lie in as many pages, statement after statement: the last of each took
/// copies, and so did all of the next, whose pages were those kept.
#[test]
fn some_hundred_entries_take_no_copies_of_their_pages() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let mut both = both(&store);
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for number in 0..6_000 {
        both.put(&mut txn, number, &[1; 60]);
    }
    txn.commit().expect("commits");
    txn.begin_immediate().expect("begins");
    let before = store.stats().cache.unwritten;
    for statement in 0..12 {
        let savepoint = txn.savepoint().expect("a savepoint");
        for number in 0..500 {
            both.put(&mut txn, number * 12 + statement, &[2; 60]);
        }
        txn.release(&savepoint).expect("lets go");
    }
    both.assert_in(&mut txn);
    let made = store.stats().cache.unwritten - before;
    assert!(made < 600, "{made}");
    txn.commit().expect("commits");
}

/// Whoever waits has waited for long enough.
#[derive(Debug, Default)]
struct Hasty(AtomicU64);

impl Driver for Hasty {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Relaxed))
    }

    fn pass(&self, time: Duration) {
        let millis = 1 + time.as_millis() as u64;
        self.0.fetch_add(millis, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

/// What a transaction leaves where all frames but a few are pinned while it writes values of
/// many pages; whether it was refused at its commit.
fn written_beside(pins: i64, fate: Fate) -> bool {
    let disk = Arc::new(MemoryDisk::new());
    let options = || Options {
        cache_bytes: 64 * 4096,
        driver: Some(Arc::new(Hasty::default())),
        ..Options::default()
    };
    let store = Store::open_on(disk.clone(), "t.db", options()).expect("opens");
    let [read, written] =
        ["r", "w"].map(|name| store.create_family(name, KeyKind::Int).expect("a family"));
    let put = |tree: &Tree, key, len| {
        let value = vec![key as u8; len];
        let put = |txn: &mut Txn| txn.put(tree, Key::Int(key), &value);
        store
            .transact(Isolation::Serializable, put)
            .expect("commits");
    };
    (0..400).for_each(|key| put(&read, key, 900));
    put(&written, 1, 100_000);
    store.checkpoint().expect("a checkpoint");
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    txn.put(&written, Key::Int(0), b"before").expect("a put");
    let savepoint = txn.savepoint().expect("a savepoint");
    if fate == Fate::LettingGo {
        txn.release(&savepoint).expect("is released");
    }
    let mut cursors = Vec::new();
    for at in 0..pins {
        let mut cursor = reader.cursor(&read).expect("a cursor");
        if cursor.seek(Seek::AtLeast(Key::Int(at * 6))).is_ok() {
            cursors.push(cursor);
        }
    }
    let values = [
        txn.put(&written, Key::Int(1), &[9; 300_000]),
        txn.put_part(&written, Key::Int(1), 100, &[5; 70_000]),
    ];
    let failed = values.iter().any(|value| value.is_err());
    drop(cursors);
    let is_back = fate == Fate::GoingBack && txn.rollback_to(&savepoint).is_ok();
    let after = txn.put(&written, Key::Int(2), b"after").map(|_| ());
    let committed = txn.commit();
    let story = format!("{pins} {fate:?} {values:?} {is_back} {after:?} {committed:?}");
    assert!(failed || committed.is_ok(), "{story}");
    assert!(!is_back || committed.is_ok(), "{story}");
    let left = |store: &Store| -> Vec<_> {
        assert_eq!(
            store.integrity_check().expect("is checked"),
            [""; 0],
            "{story}"
        );
        let tree = store.family("w").expect("reads").expect("is there");
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let mut get = |key| {
            let mut value = Vec::new();
            let found = txn.get_into(&tree, Key::Int(key), &mut value);
            found.expect("reads").then_some(value)
        };
        (0..3).map(&mut get).collect()
    };
    drop((reader, txn));
    let now = left(&store);
    let expected = committed.is_ok().then(|| b"before".to_vec());
    assert!(now[0] == expected, "{story}");
    let again = Store::open_on(Arc::new(disk.copied()), "t.db", options()).expect("opens");
    assert!(left(&again) == now, "another value: {story}");
    committed.is_err_and(|error| error.kind() == ErrorKind::Misuse)
}

/// What is done with the savepoint before what may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Nothing,
    LettingGo,
    GoingBack,
}

/// An operation that failed midway, for lack of memory, was committed all the same: pages of a
/// value that nobody has, and another value in the file than in the log.
#[test]
fn what_failed_midway_is_not_committed() {
    for fate in [Fate::Nothing, Fate::LettingGo, Fate::GoingBack] {
        let refused = (30..60).filter(|pins| written_beside(*pins, fate)).count();
        assert!(fate == Fate::GoingBack || refused > 0, "{fate:?}");
    }
}
