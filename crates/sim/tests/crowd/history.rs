//! What each writer did, commit by commit, and what may be found of it.

use fulgurite_sim::Rng;
use fulgurite_store::{Key, KeyKind};
use std::collections::BTreeMap;

pub const WRITERS: usize = 4;
/// The trees that all write to.
pub const SHARED: [(&str, KeyKind); 3] = [
    ("numbers", KeyKind::Int),
    ("names", KeyKind::Bytes),
    ("others", KeyKind::Int),
];
/// The place of a writer's own tree behind those.
pub const OWN: usize = SHARED.len();
/// The rows of a writer in a tree. Row 0 of the shared ones is its stamp.
pub const ROWS: u64 = 1_200;

/// A tree and a row of the writer's own.
pub type Place = (usize, u64);

/// How far each writer had come.
pub type Front = [usize; WRITERS];

/// A value, which is much larger than what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Half noise, half blanks.
    Filled { seed: u64, len: usize },
    /// The commit's number, and what its writer had seen of the others' stamps.
    Stamp(usize, Front),
}

impl Value {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Filled { seed, len } => {
                let mut rng = Rng::new(*seed);
                let mut bytes = vec![b' '; *len];
                for chunk in bytes[..len.div_ceil(2)].chunks_mut(8) {
                    chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
                }
                bytes
            }
            Self::Stamp(commit, saw) => {
                let words = std::iter::once(commit).chain(saw);
                words.flat_map(|word| word.to_le_bytes()).collect()
            }
        }
    }

    /// Reads a stamp.
    pub fn stamped(bytes: &[u8]) -> (usize, Front) {
        assert_eq!(bytes.len(), 8 * (1 + WRITERS), "a stamp");
        let word = |chunk: &[u8]| usize::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let mut words = bytes.chunks(8).map(word);
        let commit = words.next().expect("the commit");
        (commit, std::array::from_fn(|_| words.next().expect("seen")))
    }
}

/// A key of either kind.
pub enum RowKey {
    Int(i64),
    Name(Vec<u8>),
}

impl RowKey {
    /// The key of a writer's row, between those of the others.
    pub fn of(writer: usize, (tree, row): Place) -> Self {
        let number = row * WRITERS as u64 + writer as u64;
        match SHARED.get(tree) {
            Some((_, KeyKind::Bytes)) => {
                // Some continue outside of their page.
                let padding = if row % 97 == 96 { 700 } else { 0 };
                let name = format!("row number {number:07}{:padding$}", "");
                Self::Name(name.into_bytes())
            }
            _ => Self::Int(number as i64),
        }
    }

    pub fn as_key(&self) -> Key<'_> {
        match self {
            Self::Int(number) => Key::Int(*number),
            Self::Name(name) => Key::Bytes(name),
        }
    }

    /// In the order of the tree.
    pub fn ordered(&self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_be_bytes().to_vec(),
            Self::Name(name) => name.clone(),
        }
    }
}

/// All that is a writer's at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    pub rows: BTreeMap<Place, Value>,
    /// The commit that made its own tree, while there is one.
    pub tree: Option<usize>,
}

impl Own {
    /// The name of the tree that this commit of a writer made.
    pub fn tree_name(writer: usize, commit: usize) -> String {
        format!("own {writer} since {commit}")
    }

    /// The newest commit of which there is a stamp.
    pub fn stamp(&self) -> usize {
        let stamps = (0..OWN).filter_map(|tree| match self.rows.get(&(tree, 0))? {
            Value::Stamp(commit, _) => Some(*commit),
            Value::Filled { .. } => None,
        });
        stamps.max().unwrap_or(0)
    }

    fn apply(&mut self, commit: &Commit) {
        if self.tree != commit.tree {
            self.tree = commit.tree;
            self.rows.retain(|(tree, _), _| *tree < OWN);
        }
        for (place, value) in &commit.changes {
            match value {
                Some(value) => self.rows.insert(*place, value.clone()),
                None => self.rows.remove(place),
            };
        }
    }
}

/// What a commit makes of a writer's state.
#[derive(Debug)]
pub struct Commit {
    /// The disk's call from which on it may be found.
    pub from: u64,
    pub changes: Vec<(Place, Option<Value>)>,
    /// [`Own::tree`] after it.
    pub tree: Option<usize>,
}

/// A writer's commits in a life.
#[derive(Debug)]
pub struct History {
    /// What was there, and the number of the commit that had led to it.
    start: (usize, Own),
    pub commits: Vec<Commit>,
    /// Each acknowledged, or seen by somebody: from which call on it is there.
    known: Vec<(u64, usize)>,
}

impl History {
    pub fn new(number: usize, start: Own) -> Self {
        Self {
            start: (number, start),
            commits: Vec::new(),
            known: vec![(0, number)],
        }
    }

    /// The number of the newest commit.
    pub fn newest(&self) -> usize {
        self.start.0 + self.commits.len()
    }

    /// From the call on this commit is there.
    pub fn known_from(&mut self, call: u64, commit: usize) {
        if self.known.last().is_none_or(|(_, last)| *last < commit) {
            self.known.push((call, commit));
        }
    }

    /// The fewest commits that are there from this call on.
    pub fn least(&self, call: u64) -> usize {
        let there = self.known.iter().filter(|(from, _)| *from <= call);
        there.map(|(_, commit)| *commit).max().unwrap_or(0)
    }

    /// The most.
    pub fn most(&self, call: u64) -> usize {
        self.start.0 + self.commits.partition_point(|commit| commit.from <= call)
    }

    /// The commit whose stamp is this one's, or the one that the life began with, where
    /// that left no stamp.
    pub fn stamped(&self, commit: usize) -> usize {
        commit.max(self.start.0)
    }

    /// What a commit led to.
    pub fn state(&self, commit: usize) -> Own {
        let mut own = self.start.1.clone();
        for commit in &self.commits[..commit - self.start.0] {
            own.apply(commit);
        }
        own
    }
}
