//! What each writer did, call by call, and what may be found of it.

use std::collections::BTreeMap;

/// Writers of a life.
pub const WRITERS: usize = 3;
/// The trees that all write to: one of each kind of key.
pub const SHARED: [&str; 2] = ["numbers", "names"];
/// Where each adds to the same number, in the first tree.
pub const SUM: i64 = -1;
/// The rows of a writer in a tree. Row 0 of the first tree is its *stamp*: the
/// number of its newest commit.
pub const ROWS: i64 = 14;
/// The stamp's bytes, and what the writer saw of the others' stamps.
const STAMP_BYTES: usize = 8 * (1 + WRITERS);

/// A row: which tree (the third is the writer's own, which comes and goes), and
/// which of its rows.
pub type Place = (usize, i64);

/// How far each writer had come.
pub type Front = [usize; WRITERS];

/// The integer key of a writer's row.
pub fn number(writer: usize, row: i64) -> i64 {
    row * WRITERS as i64 + writer as i64
}

/// The key of a writer's row that is bytes; some are so long that they continue
/// outside of their page.
pub fn name(writer: usize, row: i64) -> Vec<u8> {
    let padding = [0, 0, 0, 0, 480, 600, 4_700][(row % 7) as usize];
    let mut name = vec![b'x'; padding];
    name.extend_from_slice(format!("{row:02} of {writer}").as_bytes());
    name
}

/// The bytes of a value: half noise, half blanks, the same for the same commit.
pub fn filled(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fulgurite_sim::Rng::new(seed);
    let mut bytes = vec![b' '; len];
    for chunk in bytes[..len.div_ceil(2)].chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// The value of a stamp.
pub fn stamp(commit: usize, saw: &Front) -> Vec<u8> {
    let words = std::iter::once(&commit).chain(saw);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

/// What a stamp says: the commit, and what its writer saw before it.
pub fn stamped(value: &[u8]) -> (usize, Front) {
    assert_eq!(value.len(), STAMP_BYTES, "a stamp");
    let mut words = value
        .chunks(8)
        .map(|word| usize::from_le_bytes(word.try_into().expect("eight bytes")));
    let commit = words.next().expect("the commit");
    (commit, std::array::from_fn(|_| words.next().expect("seen")))
}

/// All that is a writer's after one of its commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    pub rows: BTreeMap<Place, Vec<u8>>,
    /// Whether it has a tree of its own.
    pub tree: bool,
    /// What it has added to the sum.
    pub added: i64,
}

/// A writer's commits; the first state is the one before them.
#[derive(Debug)]
pub struct History {
    /// Each with the number of the call from which on it may be found.
    pub states: Vec<(u64, Own)>,
    /// Each acknowledged, or seen by somebody: from which call on it is there.
    pub known: Vec<(u64, usize)>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            states: vec![(0, Own::default())],
            known: vec![(0, 0)],
        }
    }
}

impl History {
    pub fn newest(&self) -> &Own {
        &self.states[self.states.len() - 1].1
    }

    /// The fewest commits that are there from this call on.
    pub fn least(&self, call: u64) -> usize {
        let there = self.known.iter().filter(|(from, _)| *from <= call);
        there.map(|(_, commit)| *commit).max().unwrap_or(0)
    }

    /// The most.
    pub fn most(&self, call: u64) -> usize {
        self.states.partition_point(|(from, _)| *from <= call) - 1
    }
}
