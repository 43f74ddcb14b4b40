//! Random operations against a `BTreeMap`: transactions, savepoints, snapshots,
//! cursors, checkpoints, reopening, with a cache far smaller than the data.
//!
//! `FULGURITE_MODEL_OPS` sets the number of operations a seed,
//! `FULGURITE_MODEL_SEEDS` the number of seeds and `FULGURITE_MODEL_FIRST` the
//! first; a failure prints its seed.

mod common;

use common::{Rng, env};
use fulgurite_disk::{Disk, MemoryDisk};
use fulgurite_store::{
    Cursor, ErrorKind, Isolation, Key, KeyKind, Options, Savepoint, Seek, Store, Tree, Txn,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many cursors stay open for longer.
const CURSORS: usize = 4;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Integers as their order-preserving bytes, so that one model serves both.
fn model_key(key: &Key<'_>) -> Vec<u8> {
    match key {
        Key::Int(key) => ((*key as u64) ^ (1 << 63)).to_be_bytes().to_vec(),
        Key::Bytes(key) => key.to_vec(),
    }
}

fn number_of(mapped: &[u8]) -> i64 {
    let bytes = mapped.first_chunk().expect("8 bytes");
    (u64::from_be_bytes(*bytes) ^ (1 << 63)) as i64
}

/// Entries around `number` by one call, mostly ascending, with now and then one that takes
/// nodes of its own, one that is there, and one twice.
fn write_many(rng: &mut Rng, txn: &mut Txn, tree: &Tree, number: i64, count: i64, map: &mut Map) {
    let step = 1 + rng.below(3) as i64;
    let entries: Vec<_> = (0..count)
        .map(|i| match rng.below(100) {
            0 => (number, random_value(rng)),
            1 => (number - i, b"before".to_vec()),
            _ => (number + step * i, vec![i as u8; rng.below(20) as usize]),
        })
        .collect();
    let given = entries.iter().map(|(key, value)| (*key, value.as_slice()));
    let mapped = |key: i64| model_key(&Key::Int(key));
    if rng.chance(1, 2) {
        txn.put_all(tree, given).expect("puts");
        map.extend(entries.into_iter().map(|(key, value)| (mapped(key), value)));
        return;
    }
    let inserted = txn.insert_all(tree, given).expect("inserts");
    for (key, value) in entries.iter().take(inserted) {
        assert_eq!(map.insert(mapped(*key), value.clone()), None);
    }
    if let Some((key, _)) = entries.get(inserted) {
        assert!(map.contains_key(&mapped(*key)));
    }
}

/// Entries in the order of their keys by one [`Appending`](fulgurite_store::Appending),
/// mostly behind all others, with now and then one that is not.
fn append_many(rng: &mut Rng, txn: &mut Txn, tree: &Tree, count: i64, map: &mut Map) {
    let first = rng.below(1 << 20) as i64;
    let last = match tree.kind() {
        KeyKind::Int => map.keys().next_back().map_or(0, |last| number_of(last)),
        KeyKind::Bytes => 0,
    };
    let width = rng.below(30) as usize;
    let prefix = ["z", "z/shared/", "m"][rng.below(3) as usize];
    let mut entries = txn.append(tree);
    for i in 0..3 * count {
        let number = match rng.chance(1, 200) {
            true => first,
            false => first + i,
        };
        let text = format!("{prefix}{number:0width$}");
        let key = match tree.kind() {
            KeyKind::Int => Key::Int(last.saturating_add(number)),
            KeyKind::Bytes => Key::Bytes(text.as_bytes()),
        };
        let value = match rng.chance(1, 100) {
            true => random_value(rng),
            false => vec![i as u8; rng.below(20) as usize],
        };
        let inserted = entries.insert(key, &value).expect("inserts");
        let mapped = model_key(&key);
        assert_eq!(inserted, !map.contains_key(&mapped));
        map.entry(mapped).or_insert(value);
        if rng.chance(1, 300) {
            let suspended = entries.suspend();
            entries = txn.go_on_appending(tree, suspended);
        }
    }
    entries.finish().expect("writes");
}

/// Some of these entries, and some keys beside them that may have none, by one call.
fn delete_many(rng: &mut Rng, txn: &mut Txn, tree: &Tree, doomed: Vec<Vec<u8>>, map: &mut Map) {
    let most = rng.below(100) + 1;
    let keys: Vec<_> = doomed
        .iter()
        .filter(|_| rng.chance(most, 100))
        .flat_map(|stored| {
            let key = number_of(stored);
            [Some(key), (key % 7 == 0).then_some(key + 1)]
        })
        .flatten()
        .collect();
    let mut deleted = Vec::new();
    let told = txn.delete_all(tree, &keys, |key| deleted.push(key));
    told.expect("deletes");
    let there = keys
        .into_iter()
        .filter(|key| map.remove(&model_key(&Key::Int(*key))).is_some());
    assert_eq!(deleted, there.collect::<Vec<_>>());
}

struct World {
    disk: Arc<MemoryDisk>,
    options: Options,
    store: Option<Store>,
    trees: Vec<Tree>,
    committed: Vec<Map>,
    /// Cursors that may outlive the state they are on, and their transaction.
    cursors: Vec<(Cursor, Map)>,
    rng: Rng,
}

/// A transaction under way and what it should see.
struct Open {
    txn: Txn,
    maps: Vec<Map>,
    savepoints: Vec<(Savepoint, Vec<Map>)>,
}

/// The beginning of many keys: none, short, or around the longest that a page holds
/// whole and longer, so that only what lies outside of the page tells them apart.
fn random_prefix(rng: &mut Rng, page_size: u32) -> Vec<u8> {
    let whole = page_size as u64 / 8;
    let length = match rng.below(12) {
        0 => whole - rng.below(12),
        1 => whole + rng.below(4),
        2 => 2 * whole,
        3 => return b"shared/prefix/".to_vec(),
        4 => return b"shared/prefix/of keys/".to_vec(),
        _ => 0,
    };
    vec![b'p'; length as usize]
}

/// Keys are drawn from a small space, so that they collide, and from a large
/// one, so that trees grow. Some are longer than a page.
fn random_key(rng: &mut Rng, kind: KeyKind, page_size: u32, buffer: &mut Vec<u8>) -> i64 {
    let narrow = rng.chance(2, 3);
    let number = if narrow {
        rng.below(400)
    } else {
        rng.below(1 << 40)
    } as i64
        - 200;
    buffer.clear();
    if kind == KeyKind::Bytes {
        buffer.extend_from_slice(&random_prefix(rng, page_size));
        buffer.extend_from_slice(format!("{number:x}").as_bytes());
        if rng.chance(1, 20) {
            buffer.resize(rng.below(500) as usize, 0);
        } else if rng.chance(1, 40) {
            let last = buffer.last().copied().unwrap_or(0);
            let length = rng.below(u64::from(3 * page_size).min(20_000));
            buffer.resize(length as usize, last);
        }
    }
    number
}

/// Writes a value anew up to some byte, mostly where what lies beside its key ends; what it
/// is then, if it is there.
fn put_start(
    rng: &mut Rng,
    txn: &mut Txn,
    tree: &Tree,
    key: Key<'_>,
    value: Option<&Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut beside = Vec::new();
    let length = txn.get_start_into(tree, key, &mut beside).expect("gets");
    assert_eq!(length, value.map(Vec::len));
    let Some(value) = value else {
        assert!(!txn.put_start(tree, key, 0, b"start").expect("none"));
        return None;
    };
    assert!(value.starts_with(&beside));
    let until = match rng.chance(3, 4) {
        true => beside.len(),
        false => rng.below(value.len() as u64 + 1) as usize,
    };
    let mut start = beside;
    start.resize(rng.below(600) as usize, b's');
    let beyond = txn.put_start(tree, key, value.len() + 1, &start);
    assert_eq!(beyond.expect_err("too far").kind(), ErrorKind::Misuse);
    let put = match rng.chance(1, 2) {
        true => txn.put_start(tree, key, until, &start),
        false => txn.rewrite_start(tree, key, until, &start),
    };
    assert!(put.expect("puts"));
    start.extend_from_slice(&value[until..]);
    Some(start)
}

/// Writes over a part of a value, if it is there.
fn put_part(
    rng: &mut Rng,
    txn: &mut Txn,
    tree: &Tree,
    key: Key<'_>,
    value: Option<&mut Vec<u8>>,
) -> bool {
    let Some(value) = value else {
        return false;
    };
    let length = value.len() as u64 + 1;
    let from = rng.below(length) as usize;
    let to = match rng.chance(1, 2) {
        true => value.len().min(from + rng.below(300) as usize),
        false => from + rng.below(length - from as u64) as usize,
    };
    let part = vec![rng.next() as u8; to - from];
    let beyond = txn.put_part(tree, key, value.len() - part.len() + 1, &part);
    assert_eq!(beyond.expect_err("too far").kind(), ErrorKind::Misuse);
    assert!(txn.put_part(tree, key, from, &part).expect("puts"));
    value[from..to].copy_from_slice(&part);
    true
}

fn read_part(rng: &mut Rng, txn: &mut Txn, tree: &Tree, key: Key<'_>, value: Option<&Vec<u8>>) {
    let length = value.map_or(9, Vec::len) as u64;
    let from = rng.below(length + 2) as usize;
    let to = from + rng.below(length + 2) as usize;
    let mut part = b"before".to_vec();
    let found = txn.get_part(tree, key, from..to, &mut part).expect("gets");
    assert_eq!(found, value.is_some());
    let expected = value.map_or(&[][..], |value| {
        value.get(from..to.min(value.len())).unwrap_or(&[])
    });
    assert_eq!(part.strip_prefix(b"before"), Some(expected));
}

fn random_value(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(40) {
        0 => rng.below(20_000),
        1 => rng.below(1_000_000 / 20),
        2..=6 => rng.below(1500),
        _ => rng.below(60),
    };
    let fill = rng.next() as u8;
    let noisy = rng.chance(1, 2);
    (0..length)
        .map(|i| {
            if noisy {
                rng.next() as u8
            } else {
                fill.wrapping_add(i as u8 / 16)
            }
        })
        .collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let options = Options {
            cache_bytes: [64, 100, 400, 4000][rng.below(4) as usize] * 4096,
            page_size: [4096, 4096, 8192, 65536][rng.below(4) as usize],
            checkpoint_bytes: 256 << 10,
            ..Options::default()
        };
        let options = Options {
            cache_bytes: options.cache_bytes.max(100 * options.page_size as usize),
            ..options
        };
        let disk = Arc::new(MemoryDisk::new());
        let mut world = World {
            disk,
            options,
            store: None,
            trees: Vec::new(),
            committed: vec![Map::new(); 3],
            cursors: Vec::new(),
            rng,
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let disk: Arc<dyn Disk> = self.disk.clone();
        let store = Store::open_on(disk, "model.db", self.options.clone()).expect("opens");
        let kinds = [
            ("a", KeyKind::Int),
            ("b", KeyKind::Bytes),
            ("c", KeyKind::Int),
        ];
        self.trees = kinds
            .into_iter()
            .map(|(name, kind)| store.create_family(name, kind).expect("a family"))
            .collect();
        self.store = Some(store);
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    fn begin(&mut self) -> Open {
        let mut txn = self.store().txn();
        match self.rng.below(4) {
            0 => txn.begin_immediate().expect("begins"),
            1 => txn.begin(Isolation::Serializable).expect("begins"),
            2 => txn.begin(Isolation::Snapshot).expect("begins"),
            _ => {
                let trees: Vec<&Tree> = self.trees.iter().rev().collect();
                txn.begin_statement(&trees).expect("begins");
            }
        }
        Open {
            txn,
            maps: self.committed.clone(),
            savepoints: Vec::new(),
        }
    }

    fn step(&mut self, open: &mut Open) {
        let at = self.rng.below(3) as usize;
        let tree = self.trees[at].clone();
        let mut buffer = Vec::new();
        let page_size = self.options.page_size;
        let number = random_key(&mut self.rng, tree.kind(), page_size, &mut buffer);
        let key = match tree.kind() {
            KeyKind::Int => Key::Int(number),
            KeyKind::Bytes => Key::Bytes(&buffer),
        };
        let mapped = model_key(&key);
        let map = &mut open.maps[at];
        match self.rng.below(100) {
            0..34 => {
                let value = random_value(&mut self.rng);
                let replaced = open.txn.put(&tree, key, &value).expect("puts");
                assert_eq!(replaced, map.insert(mapped, value).is_some());
            }
            34..40 => {
                let same = map.get(&mapped).filter(|_| self.rng.chance(3, 4));
                let value = same.cloned().unwrap_or_else(|| random_value(&mut self.rng));
                let replaced = open.txn.rewrite(&tree, key, &value).expect("puts");
                assert_eq!(replaced, map.insert(mapped, value).is_some());
            }
            40..50 => {
                let value = random_value(&mut self.rng);
                let inserted = open.txn.insert(&tree, key, &value).expect("inserts");
                assert_eq!(inserted, !map.contains_key(&mapped));
                map.entry(mapped).or_insert(value);
            }
            50..72 => {
                let deleted = open.txn.delete(&tree, key).expect("deletes");
                assert_eq!(deleted, map.remove(&mapped).is_some());
            }
            72..76 => {
                if put_part(
                    &mut self.rng,
                    &mut open.txn,
                    &tree,
                    key,
                    map.get_mut(&mapped),
                ) {
                    return;
                }
                assert!(!open.txn.put_part(&tree, key, 0, b"part").expect("none"));
            }
            76..80 => {
                let replaced =
                    put_start(&mut self.rng, &mut open.txn, &tree, key, map.get(&mapped));
                if let Some(value) = replaced {
                    map.insert(mapped, value);
                }
            }
            80..84 => {
                let value = map.get(&mapped);
                read_part(&mut self.rng, &mut open.txn, &tree, key, value);
            }
            84..88 => {
                let mut value = Vec::new();
                let found = open.txn.get_into(&tree, key, &mut value).expect("gets");
                assert_eq!(found.then_some(&value), map.get(&mapped));
            }
            88..92 => {
                let savepoint = open.txn.savepoint().expect("a savepoint");
                open.savepoints.push((savepoint, open.maps.clone()));
            }
            92..95 => {
                if !open.savepoints.is_empty() {
                    let to = self.rng.below(open.savepoints.len() as u64) as usize;
                    if self.rng.chance(1, 2) {
                        open.txn.release(&open.savepoints[to].0).expect("lets go");
                        open.savepoints.truncate(to);
                        return;
                    }
                    open.savepoints.truncate(to + 1);
                    let (savepoint, maps) = &open.savepoints[to];
                    open.txn.rollback_to(savepoint).expect("rolls back");
                    open.maps = maps.clone();
                }
            }
            95 => {
                let run = self.rng.below(400) as i64;
                if tree.kind() == KeyKind::Int && self.rng.chance(2, 3) {
                    write_many(&mut self.rng, &mut open.txn, &tree, number, run, map);
                    return;
                }
                if self.rng.chance(1, 2) {
                    append_many(&mut self.rng, &mut open.txn, &tree, run, map);
                    return;
                }
                let prefix = random_prefix(&mut self.rng, page_size);
                for i in 0..run {
                    let number = number.saturating_add(i);
                    let mut text = prefix.clone();
                    text.extend_from_slice(format!("{number:020}").as_bytes());
                    let key = match tree.kind() {
                        KeyKind::Int => Key::Int(number),
                        KeyKind::Bytes => Key::Bytes(&text),
                    };
                    open.txn.put(&tree, key, b"run").expect("puts");
                    map.insert(model_key(&key), b"run".to_vec());
                }
            }
            96 => {
                let doomed: Vec<Vec<u8>> = map
                    .range(mapped..)
                    .take(300)
                    .map(|(k, _)| k.clone())
                    .collect();
                if tree.kind() == KeyKind::Int && self.rng.chance(2, 3) {
                    delete_many(&mut self.rng, &mut open.txn, &tree, doomed, map);
                    return;
                }
                for stored in doomed {
                    let key = match tree.kind() {
                        KeyKind::Int => Key::Int(number_of(&stored)),
                        KeyKind::Bytes => Key::Bytes(&stored),
                    };
                    assert!(open.txn.delete(&tree, key).expect("deletes"));
                    map.remove(&stored);
                }
            }
            97 => {
                if tree.kind() == KeyKind::Int {
                    let want = self.rng.below(4) as usize;
                    let rowids = match want {
                        0 => open.txn.allocate_rowid(&tree).map(|rowid| rowid..=rowid),
                        _ => open.txn.allocate_rowids(&tree, want),
                    };
                    let rowids = rowids.expect("rowids");
                    let largest = map.keys().next_back().map(|key| number_of(key));
                    let first = largest.map_or(1, |largest| largest + 1);
                    assert_eq!(rowids, first..=first + want.max(1) as i64 - 1);
                    // Those that get no row are given again.
                    for rowid in rowids.take(2) {
                        let key = Key::Int(rowid);
                        open.txn.put(&tree, key, b"allocated").expect("puts");
                        map.insert(model_key(&key), b"allocated".to_vec());
                    }
                }
            }
            _ => {
                assert_eq!(open.txn.count(&tree).expect("counts"), map.len() as u64);
                let mut cursor = open.txn.cursor(&tree).expect("a cursor");
                walk(&mut self.rng, &mut cursor, map, &key);
                if self.cursors.len() < CURSORS && self.rng.chance(1, 4) {
                    self.cursors.push((cursor, map.clone()));
                }
            }
        }
    }

    fn compare_cursors(&mut self) {
        for (mut cursor, map) in self.cursors.drain(..) {
            compare(&mut cursor, &map);
        }
    }

    fn verify(&mut self) {
        let mut txn = self.store().txn();
        txn.begin_read().expect("reads");
        for (tree, map) in self.trees.iter().zip(&self.committed) {
            let mut cursor = txn.cursor(tree).expect("a cursor");
            compare(&mut cursor, map);
            assert_eq!(txn.count(tree).expect("counts"), map.len() as u64);
        }
        let problems = self.store().integrity_check().expect("checks");
        assert_eq!(problems, Vec::<String>::new());
    }
}

fn cursor_key(cursor: &mut Cursor) -> Vec<u8> {
    match cursor.kind() {
        KeyKind::Int => model_key(&Key::Int(cursor.key_int())),
        KeyKind::Bytes => cursor.key_bytes().expect("a key").to_vec(),
    }
}

fn compare(cursor: &mut Cursor, map: &Map) {
    let mut more = cursor.seek(Seek::First).expect("seeks");
    for (key, value) in map {
        assert!(more, "the tree ends before {key:?}");
        assert_eq!(&cursor_key(cursor), key);
        assert_eq!(cursor.value().expect("a value"), value);
        more = cursor.next().expect("moves");
    }
    assert!(!more, "the tree goes on after its last key");
}

/// Seeks and a few steps in either direction.
fn walk(rng: &mut Rng, cursor: &mut Cursor, map: &Map, key: &Key<'_>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let mapped = model_key(key);
    let forward = rng.chance(1, 2);
    let steps = rng.below(200) as usize;
    let (seek, bounds) = match (forward, rng.below(3)) {
        (true, 0) => (Seek::First, (Unbounded, Unbounded)),
        (true, 1) => (Seek::AtLeast(*key), (Included(mapped), Unbounded)),
        (true, _) => (Seek::After(*key), (Excluded(mapped), Unbounded)),
        (false, 0) => (Seek::Last, (Unbounded, Unbounded)),
        (false, 1) => (Seek::AtMost(*key), (Unbounded, Included(mapped))),
        (false, _) => (Seek::Before(*key), (Unbounded, Excluded(mapped))),
    };
    let range = map.range::<Vec<u8>, _>(bounds);
    let expected: Vec<_> = if forward {
        range.take(steps).collect()
    } else {
        range.rev().take(steps).collect()
    };
    let mut there = cursor.seek(seek).expect("seeks");
    for (key, value) in expected {
        assert!(there);
        assert_eq!(&cursor_key(cursor), key);
        assert_eq!(cursor.value().expect("a value"), value);
        there = if forward {
            cursor.next()
        } else {
            cursor.prev()
        }
        .expect("moves");
    }
}

fn run(seed: u64, ops: u64) {
    let mut world = World::new(seed);
    let mut done = 0;
    let mut snapshots: Vec<(Txn, Vec<Map>)> = Vec::new();
    while done < ops {
        let mut open = world.begin();
        let length = 1 + world.rng.below(120);
        for _ in 0..length {
            world.step(&mut open);
        }
        done += length;
        if world.rng.chance(3, 4) {
            open.txn.commit().expect("commits");
            world.committed = std::mem::take(&mut open.maps);
        } else if world.rng.chance(1, 2) {
            open.txn.rollback();
        }
        drop(open);
        match world.rng.below(40) {
            0 => world.store().checkpoint().expect("a checkpoint"),
            1 => {
                let mut txn = world.store().txn();
                txn.begin_read().expect("reads");
                snapshots.push((txn, world.committed.clone()));
            }
            2 => {
                for (mut txn, maps) in snapshots.drain(..) {
                    for (tree, map) in world.trees.iter().zip(&maps) {
                        compare(&mut txn.cursor(tree).expect("a cursor"), map);
                    }
                }
            }
            3 => world.verify(),
            5..10 => world.compare_cursors(),
            4 => {
                snapshots.clear();
                world.cursors.clear();
                world.trees.clear();
                world.store = None;
                world.open();
                world.verify();
            }
            _ => {}
        }
    }
    snapshots.clear();
    world.compare_cursors();
    world.verify();
}

#[test]
fn behaves_like_a_map() {
    let seeds = env("FULGURITE_MODEL_SEEDS", 12);
    let ops = env("FULGURITE_MODEL_OPS", 4_000);
    let first = env("FULGURITE_MODEL_FIRST", 0);
    for seed in first..first + seeds {
        eprintln!("seed {seed}");
        run(seed, ops);
    }
}
