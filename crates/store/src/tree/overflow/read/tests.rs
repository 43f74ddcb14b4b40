//! Ranges of rests of values against a plain vector, and rests that are not whole.

use super::*;
use crate::error::ErrorKind;
use crate::store::Core;
use crate::{Key, KeyKind, Options, Store, Tree};
use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "large.db";
/// Bytes of a start, where the rest does not fill its chunks but for a few bytes.
const START: usize = 128;
const CHUNK: usize = node::max_chunk(4096);
const FAN: usize = node::max_overflow_children(4096);

fn open(disk: &Arc<MemoryDisk>) -> (Store, Tree) {
    let options = Options {
        page_size: 4096,
        // Far fewer frames than the longest value has chunks.
        cache_bytes: 256 << 10,
        ..Options::default()
    };
    let store = Store::open_on(disk.clone(), NAME, options).expect("opens");
    let tree = match store.family("t").expect("reads") {
        Some(tree) => tree,
        None => store.create_family("t", KeyKind::Int).expect("a family"),
    };
    (store, tree)
}

/// Bytes that do not compress, so that each chunk is as long in the file as in memory.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// A file with values that have these rests under the keys from 0 on, each written whole.
fn with_rests(rests: &[Vec<u8>]) -> Arc<MemoryDisk> {
    let disk = Arc::new(MemoryDisk::new());
    let (store, tree) = open(&disk);
    for (key, rest) in (0..).zip(rests) {
        let value = [&[b's'; START][..], rest].concat();
        assert_eq!(node::start_len(4096, 0, value.len()), START);
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &value).expect("puts");
        txn.commit().expect("commits");
    }
    disk
}

/// The root of a tree of one leaf, in memory.
fn leaf(core: &Core, slot: &SlotId, tree: &Tree) -> ChildRef {
    let version = tree.0.versions.at(core.visible()).expect("a version");
    let mut root = version.node;
    let mut pinned = Vec::new();
    loop {
        let walk = core.pool.readers.walk(slot);
        match core.pool.enter(&mut root, tree.0.topmost()) {
            Ok(_) => return root,
            Err(absent) => {
                drop(walk);
                pinned.push(core.pool.fetch(absent, tree.id().0).expect("reads"));
            }
        }
    }
}

/// What stands in a tree's only leaf for value `index`.
fn stored(core: &Core, slot: &SlotId, tree: &Tree, index: usize) -> Vec<u8> {
    let leaf = leaf(core, slot, tree);
    let _walk = core.pool.readers.walk(slot);
    // SAFETY: inside the walk, and nothing evicts in these tests but who reads.
    let page = unsafe { core.pool.frames.keys(leaf.hint()) };
    let (value, is_overflow) = node::value_at(page, index);
    assert!(is_overflow);
    value.to_vec()
}

/// Runs a test on a store, with a slot to walk with.
fn on(disk: &Arc<MemoryDisk>, test: impl FnOnce(&Core, &SlotId, &Tree)) {
    let (store, tree) = open(disk);
    let core = &store.handle.core;
    let slot = core.pool.readers.pin_also(core.visible()).expect("a slot");
    test(core, &slot, &tree);
    core.pool.readers.release(&slot);
}

fn range_of(
    (core, slot, tree): (&Core, &SlotId, &Tree),
    stored: &[u8],
    range: Range<usize>,
) -> Result<Vec<u8>> {
    let mut out = b"before".to_vec();
    read_range(&core.pool, slot, tree.id().0, stored, range, &mut out)?;
    assert_eq!(out[..6], *b"before");
    out.drain(..6);
    Ok(out)
}

fn assert_corrupt(read: Result<Vec<u8>>, message: &str) {
    let error = read.expect_err(message);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn ranges_are_those_of_the_rest() {
    let lengths = [
        CHUNK - 1,
        CHUNK,
        CHUNK + 400,
        3 * CHUNK,
        FAN * CHUNK,
        (FAN + 3) * CHUNK + 500,
    ];
    let values: Vec<_> = (1..)
        .zip(lengths)
        .map(|(seed, length)| noise(seed, length))
        .collect();
    let disk = with_rests(&values);
    on(&disk, |core, slot, tree| {
        for (index, value) in values.iter().enumerate() {
            let stored = stored(core, slot, tree, index);
            let borders = [0, CHUNK, 2 * CHUNK, 17 * CHUNK, FAN * CHUNK, value.len()];
            let near = borders.iter().flat_map(|at| at.saturating_sub(1)..at + 2);
            for from in near {
                for bytes in [0, 1, 2, CHUNK, CHUNK + 1, 40 * CHUNK + 7, MAX_VALUE] {
                    let read = range_of((core, slot, tree), &stored, from..from + bytes);
                    let end = value.len().min(from + bytes);
                    let expected = value.get(from..end).unwrap_or_default();
                    assert!(
                        read.expect("reads") == expected,
                        "{index}: {bytes} from {from}"
                    );
                }
            }
        }
    });
}

#[test]
fn a_range_reads_no_more_chunks_than_it_touches() {
    let disk = with_rests(&[noise(1, 100 * CHUNK)]);
    on(&disk, |core, slot, tree| {
        let stored = stored(core, slot, tree, 0);
        let before = core.pool.stats().loads;
        let read = range_of((core, slot, tree), &stored, 50 * CHUNK - 1..52 * CHUNK);
        assert_eq!(read.expect("reads").len(), 2 * CHUNK + 1);
        // The index node, and three chunks.
        assert_eq!(core.pool.stats().loads - before, 4);
    });
}

#[test]
fn a_value_of_another_length_than_its_reference_says_is_corrupt() {
    for chunks in [1, 3, FAN, FAN + 1] {
        let length = chunks * CHUNK - 9;
        let disk = with_rests(&[noise(1, length)]);
        on(&disk, |core, slot, tree| {
            let stored = stored(core, slot, tree, 0);
            let reference = Reference::decode(&stored).expect("a reference");
            for claimed in [
                length - 1,
                length + 1,
                length + CHUNK,
                3 * FAN * FAN * CHUNK,
            ] {
                let mut forged = stored.clone();
                let claim = Reference {
                    length: claimed as u64,
                    ..reference
                };
                forged[..node::OVERFLOW_REF].copy_from_slice(&claim.encode());
                let read = range_of((core, slot, tree), &forged, 0..MAX_VALUE);
                assert_corrupt(read, "not as long as its entry says");
            }
        });
    }
}

#[test]
fn a_node_of_another_kind_in_a_value_is_corrupt() {
    let disk = with_rests(&[noise(1, 5 * CHUNK)]);
    on(&disk, |core, slot, tree| {
        let stored = stored(core, slot, tree, 0);
        let all = || range_of((core, slot, tree), &stored, 0..MAX_VALUE);
        all().expect("reads");
        let leaf = leaf(core, slot, tree);
        let mut root = Reference::decode(&stored).expect("a reference").node;
        let index = core
            .pool
            .enter(&mut root, Topmost::Value(tree.id().0))
            .expect("in memory");
        let chunk = core.pool.frames.child(index, 2);
        for wrong in [leaf, root] {
            core.pool.frames.set_child(index, 2, wrong);
            assert_corrupt(all(), "not as long as its entry says");
            let before = range_of((core, slot, tree), &stored, 0..2 * CHUNK);
            assert_eq!(before.expect("reads").len(), 2 * CHUNK);
        }
        core.pool.frames.set_child(index, 2, chunk);
        all().expect("reads");
        let mut forged = stored.clone();
        let reference = Reference {
            node: leaf,
            length: 100,
            birth: 0,
        };
        forged[..node::OVERFLOW_REF].copy_from_slice(&reference.encode());
        let read = range_of((core, slot, tree), &forged, 0..MAX_VALUE);
        assert_corrupt(read, "not as long as its entry says");
    });
}

/// Of chunks that are read together, what is wrong with one is said when it is asked for.
#[test]
fn a_damaged_chunk_does_not_keep_its_neighbours_from_being_read() {
    let value = noise(1, 40 * CHUNK);
    let disk = with_rests(std::slice::from_ref(&value));
    let file = disk
        .open(Path::new(NAME), OpenOptions::WRITE)
        .expect("opens");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    let damaged = 21;
    let sought = &value[damaged * CHUNK..][..32];
    let at = bytes
        .windows(32)
        .position(|window| window == sought)
        .expect("is there");
    file.write_at(&[bytes[at] ^ 1], at as u64).expect("writes");
    on(&disk, |core, slot, tree| {
        let stored = stored(core, slot, tree, 0);
        let range = |range| range_of((core, slot, tree), &stored, range);
        assert_corrupt(range(0..MAX_VALUE), "checksum mismatch");
        let (before, behind) = (0..damaged * CHUNK, (damaged + 1) * CHUNK..value.len());
        for whole in [before, behind] {
            assert!(range(whole.clone()).expect("reads") == value[whole]);
        }
        assert_corrupt(
            range(damaged * CHUNK..damaged * CHUNK + 1),
            "checksum mismatch",
        );
    });
}

#[test]
fn a_file_that_ends_within_a_value_is_corrupt() {
    let value = noise(1, 40 * CHUNK);
    let disk = with_rests(std::slice::from_ref(&value));
    let file = disk
        .open(Path::new(NAME), OpenOptions::WRITE)
        .expect("opens");
    on(&disk, |core, slot, tree| {
        let stored = stored(core, slot, tree, 0);
        let range = |range| range_of((core, slot, tree), &stored, range);
        range(0..1).expect("reads the index node");
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        let chunk = |number: usize| {
            let sought = &value[number * CHUNK..][..32];
            let found = bytes.windows(32).position(|window| window == sought);
            found.expect("is there") as u64
        };
        let last = (0..40).map(chunk).max().expect("chunks");
        let number = (0..40)
            .find(|it| chunk(*it) == last)
            .expect("is one of them");
        file.truncate(last).expect("truncates");
        assert_corrupt(range(0..MAX_VALUE), "the file ends before the page");
        let before = 0..number * CHUNK;
        assert!(range(before.clone()).expect("reads") == value[before]);
        file.write_at(&bytes[last as usize..], last)
            .expect("writes");
    });
}
