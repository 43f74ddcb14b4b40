//! Dictionaries through crashes, rot, drops, and what changes in a tree.

use super::*;
use crate::error::ErrorKind;
use crate::{Isolation, Key, KeyKind, Options, Seek, Store, Tree};
use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use std::path::Path;

const NAME: &str = "words.db";
const ROWS: i64 = 20_000;

/// Which words a tree's rows are made of.
type Words = [&'static str; 8];

const PEOPLE: Words = [
    "anna", "bert", "clar", "dora", "emil", "fred", "gert", "hans",
];
const PLACES: Words = [
    "rock", "lake", "hill", "dale", "ford", "moor", "glen", "cape",
];

/// Text of a few hundred words, and a number that compresses badly.
fn row(key: i64, words: &Words) -> Vec<u8> {
    let mix = (key as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let part = |at: u32| words[(mix >> at) as usize % 8];
    let word = |at: u32| [part(at), part(at + 3), part(at + 6)].concat();
    format!("{} {}|{:x}", word(50), word(41), mix >> 24 & 0xFFFF).into_bytes()
}

fn open(disk: &Arc<MemoryDisk>) -> Store {
    let options = Options {
        cache_bytes: 12 << 20,
        ..Options::default()
    };
    Store::open_on(disk.clone(), NAME, options).expect("opens")
}

fn fill(store: &Store, tree: &Tree, keys: std::ops::Range<i64>, words: &Words) {
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for key in keys {
        let row = row(key, words);
        txn.put(tree, Key::Int(key), &row).expect("puts");
    }
    txn.commit().expect("commits");
}

/// The keys that are there, each with its row.
fn verify(store: &Store, tree: &Tree, keys: std::ops::Range<i64>, words: &Words) -> Result<()> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut cursor = txn.cursor(tree)?;
    let mut more = cursor.seek(Seek::First)?;
    for key in keys {
        assert!(more, "ends before {key}");
        assert_eq!(cursor.key_int(), key);
        assert_eq!(cursor.value()?, row(key, words));
        more = cursor.next()?;
    }
    assert!(!more, "ends");
    Ok(())
}

fn sound(store: &Store) {
    let problems = store.integrity_check().expect("checks");
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a_tree_of_words_gets_one_and_is_smaller_for_it() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store
        .create_family("people", KeyKind::Int)
        .expect("a family");
    fill(&store, &tree, 0..ROWS, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    let known = store.core().pool.dictionaries.of(tree.id().0);
    assert_eq!(known.len(), 1, "{known:?}");
    let bytes = store.stats().file_bytes;
    assert!(bytes < ROWS as u64 * 24, "{bytes}");
    sound(&store);
    drop(store);

    let store = open(&disk);
    let tree = store.family("people").expect("reads").expect("is there");
    assert_eq!(store.core().pool.dictionaries.all(), known);
    verify(&store, &tree, 0..ROWS, &PEOPLE).expect("reads");
    sound(&store);
}

#[test]
fn a_small_tree_has_none() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store
        .create_family("people", KeyKind::Int)
        .expect("a family");
    fill(&store, &tree, 0..1000, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    assert_eq!(store.core().pool.dictionaries.all(), []);
    assert!(store.stats().file_bytes < 1000 * 32 + 16384);
}

#[test]
fn a_crash_behind_an_attach_record_loses_none() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let old = store.create_family("old", KeyKind::Int).expect("a family");
    let new = store.create_family("new", KeyKind::Int).expect("a family");
    fill(&store, &old, 0..ROWS, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    let checkpoint = store.stats().checkpoint;
    // Large enough to be bulk. A checkpoint would be needed to follow that up.
    let more = 20 * ROWS;
    fill(&store, &new, 0..more, &PLACES);
    fill(&store, &old, ROWS..ROWS + 100, &PEOPLE);
    assert!(!store.core().pool.dictionaries.of(new.id().0).is_empty());
    let copy = Arc::new(disk.copied());
    assert_eq!(
        store.stats().checkpoint,
        checkpoint,
        "nothing else was durable"
    );
    drop(store);

    // Twice: what recovery made durable is whole too.
    for _ in 0..2 {
        let store = open(&copy);
        let find = |name| store.family(name).expect("reads").expect("is there");
        verify(&store, &find("old"), 0..ROWS + 100, &PEOPLE).expect("reads");
        verify(&store, &find("new"), 0..more, &PLACES).expect("reads");
        sound(&store);
    }
}

#[test]
fn rot_is_named_and_the_rest_goes_on() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let people = store
        .create_family("people", KeyKind::Int)
        .expect("a family");
    let places = store
        .create_family("places", KeyKind::Int)
        .expect("a family");
    fill(&store, &people, 0..ROWS, &PEOPLE);
    fill(&store, &places, 0..ROWS, &PLACES);
    store.checkpoint().expect("a checkpoint");
    let entry = store.core().pool.dictionaries.of(people.id().0)[0];
    drop((store, people, places));

    let extent = entry.blob.extent;
    for at in (0..extent.byte_len() as u64).step_by(517) {
        let copy = Arc::new(disk.copied());
        let file = copy
            .open(Path::new(NAME), OpenOptions::WRITE)
            .expect("opens");
        let mut byte = [0];
        file.read_at(&mut byte, extent.byte_offset() + at)
            .expect("reads");
        file.write_at(&[byte[0] ^ 4], extent.byte_offset() + at)
            .expect("writes");
        let store = open(&copy);
        let find = |name| store.family(name).expect("reads").expect("is there");
        let (people, places) = (find("people"), find("places"));
        let error = verify(&store, &people, 0..ROWS, &PEOPLE).expect_err("is rotten");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let named = error
            .message()
            .contains(&format!("at byte {} ", extent.byte_offset()));
        assert!(named && error.message().contains("dictionary 1"), "{error}");
        verify(&store, &places, 0..ROWS, &PLACES).expect("reads");
        assert!(!store.integrity_check().expect("checks").is_empty());
        // New leaves do without it, so writing goes on.
        fill(&store, &places, ROWS..ROWS + 10, &PLACES);
        store.checkpoint().expect("a checkpoint");
    }
}

#[test]
fn a_tree_that_becomes_another_gets_another() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    fill(&store, &tree, 0..ROWS, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    // A snapshot of the first rows reads with the first dictionary.
    let mut before = store.txn();
    before.begin(Isolation::Snapshot).expect("begins");
    let mut first = Vec::new();
    assert!(
        before
            .get_into(&tree, Key::Int(7), &mut first)
            .expect("reads")
    );
    fill(&store, &tree, 0..6 * ROWS, &PLACES);
    store.checkpoint().expect("a checkpoint");
    let numbers = |store: &Store| -> Vec<u8> {
        let entries = store.core().pool.dictionaries.all();
        entries.iter().map(|entry| entry.number).collect()
    };
    assert_eq!(numbers(&store), [1, 2]);
    assert!(
        before
            .get_into(&tree, Key::Int(ROWS - 1), &mut first)
            .expect("reads")
    );
    assert_eq!(first, row(ROWS - 1, &PEOPLE));
    drop(before);
    sound(&store);
    drop((store, tree));
    let store = open(&disk);
    assert_eq!(numbers(&store), [1, 2]);
    let tree = store.family("rows").expect("reads").expect("is there");
    verify(&store, &tree, 0..6 * ROWS, &PLACES).expect("reads");
    sound(&store);
}

#[test]
fn a_dropped_tree_takes_its_own_along() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let other = store
        .create_family("other", KeyKind::Int)
        .expect("a family");
    fill(&store, &tree, 0..ROWS, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    let mut reader = store.txn();
    reader.begin_read().expect("begins");
    drop(tree.clone());
    assert!(store.drop_family("rows").expect("drops"));
    for round in 0..5 {
        fill(&store, &other, round..round + 1, &PLACES);
        store.checkpoint().expect("a checkpoint");
        sound(&store);
    }
    let mut value = Vec::new();
    assert!(
        reader
            .get_into(&tree, Key::Int(9000), &mut value)
            .expect("reads")
    );
    assert_eq!(value, row(9000, &PEOPLE));
    reader.rollback();
    assert_eq!(store.core().pool.dictionaries.all().len(), 1);
    for round in 5..10 {
        fill(&store, &other, round..round + 1, &PLACES);
        store.checkpoint().expect("a checkpoint");
        sound(&store);
    }
    assert_eq!(store.core().pool.dictionaries.all(), []);
    drop((store, reader));
    let store = open(&disk);
    assert_eq!(store.core().pool.dictionaries.all(), []);
    sound(&store);
}

#[test]
fn a_tree_that_was_never_there_leaves_none() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let other = store
        .create_family("other", KeyKind::Int)
        .expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    let tree = txn.create_tree(KeyKind::Int).expect("a tree");
    for key in 0..9 * ROWS {
        txn.put(&tree, Key::Int(key), &row(key, &PEOPLE))
            .expect("puts");
    }
    // A checkpoint meanwhile does not name it.
    store.checkpoint().expect("a checkpoint");
    sound(&store);
    let copy = Arc::new(disk.copied());
    txn.rollback();
    for round in 0..5 {
        fill(&store, &other, round..round + 1, &PLACES);
        store.checkpoint().expect("a checkpoint");
        sound(&store);
    }
    assert_eq!(store.core().pool.dictionaries.all(), []);
    sound(&open(&copy));
}

/// A store whose tree has its dictionary behind much that is free.
fn with_one_behind(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let store = open(disk);
    let before = store
        .create_family("before", KeyKind::Int)
        .expect("a family");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    fill(&store, &before, 0..4 * ROWS, &PLACES);
    store.checkpoint().expect("a checkpoint");
    fill(&store, &tree, 0..ROWS, &PEOPLE);
    store.checkpoint().expect("a checkpoint");
    drop(before);
    assert!(store.drop_family("before").expect("drops"));
    store.checkpoint().expect("a checkpoint");
    (store, tree)
}

fn place(store: &Store, tree: &Tree) -> u64 {
    let known = store.core().pool.dictionaries.of(tree.id().0);
    assert_eq!(known.len(), 1, "{known:?}");
    known[0].blob.extent.position()
}

#[test]
fn one_that_is_behind_everything_moves() {
    let disk = Arc::new(MemoryDisk::new());
    let (store, tree) = with_one_behind(&disk);
    let before = place(&store, &tree);
    store.compact(|| true).expect("compacts");
    let after = place(&store, &tree);
    assert!(after < before / 2, "from {before} to {after}");
    sound(&store);
    let copy = Arc::new(disk.copied());
    drop((store, tree));
    for disk in [disk, copy] {
        let store = open(&disk);
        let tree = store.family("rows").expect("reads").expect("is there");
        assert_eq!(place(&store, &tree), after);
        verify(&store, &tree, 0..ROWS, &PEOPLE).expect("reads");
        sound(&store);
    }
}

/// The checkpoint names the old place and the log the new one, since no checkpoint was made
/// behind the move. Whoever recovers finds it where it was, and the rest of the space free.
#[test]
fn one_that_moved_is_found_where_the_checkpoint_has_it() {
    let disk = Arc::new(MemoryDisk::new());
    let (store, tree) = with_one_behind(&disk);
    let (before, checkpoint) = (place(&store, &tree), store.stats().checkpoint);
    move_down(store.core()).expect("moves");
    assert!(place(&store, &tree) < before);
    sound(&store);
    // Its attach record names them.
    let more = 20 * ROWS;
    fill(&store, &tree, 0..more, &PEOPLE);
    let copy = Arc::new(disk.copied());
    assert_eq!(
        store.stats().checkpoint,
        checkpoint,
        "nothing else was durable"
    );
    drop((store, tree));
    let store = open(&copy);
    let tree = store.family("rows").expect("reads").expect("is there");
    verify(&store, &tree, 0..more, &PEOPLE).expect("reads");
    sound(&store);
}

/// Whoever looked one up before it moved reads it, though something else lies there now.
#[test]
fn one_that_moves_is_read_by_who_found_it_before() {
    let disk = Arc::new(MemoryDisk::new());
    let (store, tree) = with_one_behind(&disk);
    drop((store, tree));
    let store = open(&disk);
    let pool = &store.core().pool;
    let entry = pool.dictionaries.all()[0];
    let known = pool.dictionaries.find(entry.tree, entry.number);
    let known = known.expect("is there");
    store.compact(|| true).expect("compacts");
    let tree = store.family("rows").expect("reads").expect("is there");
    fill(&store, &tree, ROWS..3 * ROWS, &PLACES);
    store.checkpoint().expect("a checkpoint");
    let read = pool.load_dictionary(&known).expect("reads");
    let newest = pool.dictionary(entry.tree, entry.number).expect("reads");
    assert_eq!(Some(read.bytes()), newest.as_ref().map(|read| read.bytes()));
}
