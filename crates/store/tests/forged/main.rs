//! Files whose checksums are all right, and which say what no store has written.
//!
//! A checksum tells of rot, not of who made the bytes: a file that somebody sends may say
//! anything. Whatever that is, it is an error that says what and where, found when it is
//! come upon, and by the integrity check; nothing panics, and everything ends.

mod file;

use file::{File, word_of};
use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{Compression, ErrorKind, Key, KeyKind, Options, Result, Seek, Store, Tree};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "forged.db";
const INT_LEAF: u8 = 1;
const INT_INNER: u8 = 2;
const VALUE: u8 = 5;
const ROWS: i64 = 300;

fn options() -> Options {
    Options {
        cache_bytes: 1 << 20,
        compression: Compression::None,
        ..Options::default()
    }
}

fn open(disk: &Arc<MemoryDisk>) -> Result<Store> {
    Store::open_on(disk.clone(), NAME, options())
}

/// A closed database with a tree of integers of two levels, one of byte strings, and a
/// value of several chunks under the last row; and their numbers.
fn sample() -> (File, u32, u32) {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk).expect("opens");
    let ints = store.create_family("ints", KeyKind::Int).expect("a family");
    let bytes = store.create_family("bytes", KeyKind::Bytes);
    let bytes = bytes.expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for row in 0..ROWS {
        let value = [row as u8; 100];
        txn.put(&ints, Key::Int(row), &value).expect("puts");
        let key = format!("key {row}");
        txn.put(&bytes, Key::Bytes(key.as_bytes()), &value)
            .expect("puts");
    }
    txn.put(&ints, Key::Int(ROWS), &[7; 20_000]).expect("puts");
    txn.commit().expect("commits");
    drop(txn);
    let numbers = (ints.id().0, bytes.id().0);
    drop((ints, bytes, store));
    (File::read(&disk, NAME), numbers.0, numbers.1)
}

/// Reads all of a tree, forwards and by its keys; how many entries there are.
fn read(store: &Store, tree: &Tree) -> Result<usize> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut cursor = txn.cursor(tree)?;
    let mut count = 0;
    let mut more = cursor.seek(Seek::First)?;
    while more {
        cursor.value()?;
        count += 1;
        assert!(count <= 10 * ROWS as usize, "it does not end");
        more = cursor.next()?;
    }
    for row in 0..ROWS {
        let key = format!("key {row}");
        let key = match tree.kind() {
            KeyKind::Int => Key::Int(row),
            KeyKind::Bytes => Key::Bytes(key.as_bytes()),
        };
        assert!(txn.contains(tree, key)?, "row {row} is gone without a word");
    }
    Ok(count)
}

fn family(store: &Store, name: &str) -> Tree {
    store.family(name).expect("reads").expect("a family")
}

/// Reading the tree reports damage, the check reports something with `word`, and a write
/// does no harm. (What writing leaves is not looked at: it went by what the file said.)
fn assert_found(disk: &Arc<MemoryDisk>, name: &str, word: &str) {
    let store = open(disk).expect("opens");
    let tree = family(&store, name);
    let problems = store.integrity_check().expect("a check");
    assert!(problems.iter().any(|it| it.contains(word)), "{problems:?}");
    let error = read(&store, &tree).expect_err("it is no such tree");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(NAME), "names no file: {error}");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    let written = (0..ROWS).try_for_each(|row| match tree.kind() {
        KeyKind::Int => txn.put(&tree, Key::Int(row), b"new").map(drop),
        KeyKind::Bytes => txn.put(&tree, Key::Bytes(&[row as u8]), b"new").map(drop),
    });
    let error = written.expect_err("it is no such tree");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// What all of these begin with is sound, as far as they can tell.
#[test]
fn what_is_sealed_and_not_forged_is_sound() {
    let (file, ..) = sample();
    let store = open(&file.sealed(NAME)).expect("opens");
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    let count = read(&store, &family(&store, "ints")).expect("reads");
    assert_eq!(count, ROWS as usize + 1);
    let count = read(&store, &family(&store, "bytes")).expect("reads");
    assert_eq!(count, ROWS as usize);
}

/// The catalog said of a tree of integers that it had byte strings, and the other way round:
/// its pages were searched for what they did not have, which ended in slices beyond them.
#[test]
fn a_root_with_keys_of_another_kind_is_reported() {
    for name in ["ints", "bytes"] {
        let (mut file, ints, bytes) = sample();
        let entry = file.entry(if name == "ints" { ints } else { bytes });
        file.bytes[entry + 4] ^= 1;
        assert_found(&file.sealed(NAME), name, "of another kind");
    }
}

/// A root that covers a part of the keys: who came to its end looked, from the root, for the
/// page behind it, and found it again, for ever.
#[test]
fn a_scan_ends_where_a_root_has_an_end() {
    let (mut file, ints, _) = sample();
    let entry = file.entry(ints);
    let leaf = file.pages(INT_LEAF, ints).find(|leaf| {
        // It has an upper fence and no lower one.
        file.bytes[leaf.at + 22] == 2
    });
    let leaf = leaf.expect("the first leaf").clone();
    let checksum = file.checksum(leaf.at, leaf.len);
    file.put(entry + 8, &word_of(leaf.at, leaf.len).to_le_bytes());
    file.put(entry + 16, &checksum.to_le_bytes());
    assert_found(&file.sealed(NAME), "ints", "covers other keys");
}

/// Two children in each other's places: their keys were not found any more, without a word.
#[test]
fn a_child_in_anothers_place_is_reported() {
    let (mut file, ints, _) = sample();
    let inner = file.pages(INT_INNER, ints).next().expect("a root").clone();
    let is_in = |place: &usize| (inner.at..inner.at + inner.len).contains(place);
    let leaves = file.pages(INT_LEAF, ints);
    let places: Vec<usize> = leaves
        .filter_map(|leaf| leaf.refs.iter().copied().find(is_in))
        .collect();
    let [one, other] = [places[0], places[1]];
    let words: [[u8; 12]; 2] =
        [one, other].map(|at| *file.bytes[at..].first_chunk().expect("a reference"));
    file.put(one, &words[1]);
    file.put(other, &words[0]);
    assert_found(&file.sealed(NAME), "ints", "covers other keys");
}

/// A reference to a large value with the bit that says that its node is in memory alone: the
/// check believed it, and read memory where no frame was.
#[test]
fn a_reference_to_memory_is_not_believed() {
    let (mut file, ints, _) = sample();
    let place = value_of(&file, ints);
    file.bytes[place + 7] |= 0x80;
    assert_found(&file.sealed(NAME), "ints", "to no extent");
}

/// Where the reference to the large value stands.
fn value_of(file: &File, tree: u32) -> usize {
    let leaves: Vec<_> = file.pages(INT_LEAF, tree).cloned().collect();
    let is_in_leaf = |place: &usize| {
        let mut leaves = leaves.iter();
        leaves.any(|leaf| (leaf.at..leaf.at + leaf.len).contains(place))
    };
    let mut places = file.pages(VALUE, tree).flat_map(|node| &node.refs);
    *places.find(|place| is_in_leaf(place)).expect("a value")
}

/// An index node of a large value, with the same child in all places.
fn index_node(level: u8, tree: u32, children: u16, child: (u64, u32)) -> Vec<u8> {
    let mut image = vec![0; 32];
    image[0] = VALUE;
    image[1] = level;
    image[2..4].copy_from_slice(&children.to_le_bytes());
    image[16..20].copy_from_slice(&tree.to_le_bytes());
    image[20..22].copy_from_slice(&(4096 / 16 - children).to_le_bytes());
    image[28..30].copy_from_slice(&(12 * children).to_le_bytes());
    image[30..32].copy_from_slice(&[1 << 4, 12]);
    for _ in 0..children {
        image.extend_from_slice(&child.0.to_le_bytes());
        image.extend_from_slice(&child.1.to_le_bytes());
    }
    image.resize(image.len().next_multiple_of(64), 0);
    image
}

/// Six nodes of a large value, one above the other, each with the one below it in 200
/// places: whoever walked through all of them, to check or to free them, would have been at
/// it for years, and out of memory before.
#[test]
fn a_value_whose_nodes_lie_in_many_places_comes_to_an_end() {
    let (mut file, ints, _) = sample();
    let chunk = file.pages(VALUE, ints).find(|node| node.len == 4096);
    let chunk = chunk.expect("a chunk").clone();
    let mut child = (
        word_of(chunk.at, chunk.len),
        file.checksum(chunk.at, chunk.len),
    );
    for level in 1..7 {
        let image = index_node(level, ints, 200, child);
        let at = file.bytes.len().next_multiple_of(64);
        file.bytes.resize(at, 0);
        file.bytes.extend_from_slice(&image);
        child = (word_of(at, image.len()), file.checksum(at, image.len()));
    }
    let place = value_of(&file, ints);
    file.put(place, &child.0.to_le_bytes());
    file.put(place + 8, &child.1.to_le_bytes());
    file.put(place + 16, &(1_u64 << 30).to_le_bytes());
    use_whole_file(&mut file);
    let disk = file.sealed(NAME);
    let store = open(&disk).expect("opens");
    let problems = store.integrity_check().expect("a check");
    let several = "from several places";
    assert!(
        problems.iter().any(|it| it.contains(several)),
        "{problems:?}"
    );
    store.drop_family("ints").expect("drops");
    store.checkpoint().expect("a checkpoint");
    let problems = store.integrity_check().expect("a check");
    assert!(
        problems.iter().any(|it| it.contains(several)),
        "{problems:?}"
    );
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Says that all of the file is in use.
fn use_whole_file(file: &mut File) {
    let end = (file.bytes.len() / 64) as u64;
    let slot = file.slot();
    file.put(slot + 48, &end.to_le_bytes());
    let map = (file.u64_at(slot + 80) & ((1 << 44) - 1)) as usize * 64;
    let mut bytes = vec![1];
    put_number(&mut bytes, end);
    bytes.push(0);
    file.bytes[map..map + 64].fill(0);
    file.put(map, &bytes);
    let length = bytes.len() as u32;
    file.put(slot + 92, &length.to_le_bytes());
}

/// Numbers at their very end: counting on went over it.
#[test]
fn numbers_that_nobody_counts_to_are_refused() {
    // The meta write, the commit of the checkpoint, the end of the file.
    for at in [32, 40, 48] {
        let (mut file, ..) = sample();
        let slot = file.slot();
        file.put(slot + at, &u64::MAX.to_le_bytes());
        let refused = open(&file.sealed(NAME)).expect_err("it makes no sense");
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    }
    // A tree's entries.
    let (mut file, ints, _) = sample();
    let entry = file.entry(ints);
    file.put(entry + 24, &u64::MAX.to_le_bytes());
    let refused = open(&file.sealed(NAME)).expect_err("it makes no sense");
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    // Fewer than there are: the last ones that went were one too many.
    let (mut file, ints, _) = sample();
    let entry = file.entry(ints);
    file.put(entry + 24, &1_u64.to_le_bytes());
    let store = open(&file.sealed(NAME)).expect("opens");
    let tree = family(&store, "ints");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for row in 0..5 {
        assert!(txn.delete(&tree, Key::Int(row)).expect("deletes"));
    }
    txn.commit().expect("commits");
}

/// A catalog that had no tree of names, or one of integers, opened to a misuse that named no
/// file.
#[test]
fn a_catalog_without_names_is_refused() {
    let (mut file, ..) = sample();
    let entry = file.entry(0);
    file.bytes[entry + 4] ^= 1;
    let refused = open(&file.sealed(NAME)).and_then(|store| store.families());
    let refused = refused.expect_err("there are no names");
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(refused.message().contains(NAME), "{refused}");
}

/// A free-space map that has what is in use: the check was content, and the next pages were
/// written over those of others.
#[test]
fn the_check_finds_what_is_in_use_and_free() {
    let (mut file, ints, _) = sample();
    use_whole_file(&mut file);
    let leaf = file.pages(INT_LEAF, ints).next().expect("a leaf").clone();
    let slot = file.slot();
    let map = (file.u64_at(slot + 80) & ((1 << 44) - 1)) as usize * 64;
    let length = file.u32_at(slot + 92) as usize;
    // One run, which is all of the leaf's extent.
    let mut runs = vec![1];
    put_number(&mut runs, leaf.at as u64 / 64);
    put_number(&mut runs, leaf.len as u64 / 64);
    file.put(map + length - 1, &runs);
    let length = (length - 1 + runs.len()) as u32;
    file.put(slot + 92, &length.to_le_bytes());
    let store = open(&file.sealed(NAME)).expect("opens");
    let problems = store.integrity_check().expect("a check");
    let found = problems.iter().any(|it| it.contains("are used and free"));
    assert!(found, "{problems:?}");
}

/// A value that is longer than its nodes: reading it failed, and the check was content.
#[test]
fn the_check_finds_values_of_another_length() {
    for length in [4_u64, 20_001, 1 << 22] {
        let (mut file, ints, _) = sample();
        let place = value_of(&file, ints);
        file.put(place + 16, &length.to_le_bytes());
        let store = open(&file.sealed(NAME)).expect("opens");
        let problems = store.integrity_check().expect("a check");
        let found = problems.iter().any(|it| it.contains("not as long as"));
        assert!(found, "{length}: {problems:?}");
    }
}

/// A whole record of the log that makes no sense was told of by its number alone: of which
/// file, who has several attached was not told.
#[test]
fn a_record_that_makes_no_sense_is_told_with_its_file() {
    let disk = MemoryDisk::new();
    let store = open(&Arc::new(disk.clone())).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    txn.put(&tree, Key::Int(1), b"value").expect("puts");
    txn.commit().expect("commits");
    drop(txn);
    let left = disk.copied();
    let log = left.open(Path::new("forged.db-wal0"), OpenOptions::WRITE);
    let log = log.expect("a log");
    let mut bytes = vec![0; 12_288];
    log.read_at(&mut bytes, 0).expect("reads");
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word"));
    let (salt, mut at) = (word(40), 8192);
    // The first commit, behind the begin record.
    while bytes[at + 24] != 1 {
        at += (25 + (word(at + 4) as u32) as usize).next_multiple_of(8);
    }
    let length = (word(at + 4) as u32) as usize;
    bytes[at + 25] = 99;
    let mut mixed = salt.wrapping_add(at as u64);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let checksum = crc_fast::crc32_iscsi(&bytes[at + 4..at + 25 + length]) ^ mixed as u32;
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    log.write_at(&bytes[at..at + 32], at as u64)
        .expect("writes");
    let refused = open(&Arc::new(left)).expect_err("no operation is like that");
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(refused.message().contains(NAME), "names no file: {refused}");
}
