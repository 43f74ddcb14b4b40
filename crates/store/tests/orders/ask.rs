//! What is asked of families, and how it is drawn.

use crate::common::Rng;
use fulgurite_store::{Key, KeyKind, Tree};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A key that is kept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Int(i64),
    Bytes(Arc<[u8]>),
}

impl Name {
    pub fn key(&self) -> Key<'_> {
        match self {
            Name::Int(key) => Key::Int(*key),
            Name::Bytes(key) => Key::Bytes(key),
        }
    }

    pub fn int(&self) -> i64 {
        match self {
            Name::Int(key) => *key,
            Name::Bytes(_) => panic!("a key of bytes"),
        }
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::Int(key) => write!(f, "{key}"),
            Name::Bytes(key) => write!(f, "{}", Digest::new(key)),
        }
    }
}

/// What is remembered of a value that was read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    pub len: usize,
    pub hash: u64,
    start: String,
}

impl Digest {
    pub fn new(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let shown = &bytes[..bytes.len().min(24)];
        Self {
            len: bytes.len(),
            hash: hasher.finish(),
            start: String::from_utf8_lossy(shown).into_owned(),
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}/{}/{:04x}", self.start, self.len, self.hash as u16)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// A value that is written.
#[derive(Clone)]
pub struct Value(pub Arc<(Digest, Vec<u8>)>);

impl Value {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new((Digest::new(&bytes), bytes)))
    }

    /// One of this length that says by whom it is.
    fn by(by: &str, len: usize, noisy: bool) -> Self {
        let mut rng = Rng::new(by.len() as u64 ^ len as u64);
        let mut bytes = format!("{by} ").into_bytes();
        match noisy {
            true => bytes.extend((bytes.len()..len).map(|_| rng.next() as u8)),
            false => bytes.resize(len.max(bytes.len()), b'.'),
        }
        Self::new(bytes)
    }

    pub fn digest(&self) -> &Digest {
        &self.0.0
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.1
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.digest())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.digest() == other.digest()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// As the level says.
    Plain,
    /// Under `snapshot` too.
    Lasting,
    /// Never.
    Never,
}

#[derive(Debug, Clone)]
pub enum To {
    First,
    Last,
    AtLeast(Name),
    After(Name),
    AtMost(Name),
    Before(Name),
    /// Behind about so much of all, in parts of 2^32.
    Share(u32),
}

/// What a cursor is asked for.
#[derive(Debug, Clone)]
pub enum Move {
    Seek(To),
    Next,
    Prev,
    /// So many of those in its leaf, and past them.
    Run(usize),
}

/// What is asked of a tree, or of all.
#[derive(Debug, Clone)]
pub enum Ask {
    Get(Tree, Name, bool),
    GetLasting(Tree, Name),
    GetStart(Tree, Name),
    GetPart(Tree, Name, usize, usize),
    Contains(Tree, Name, Counts),
    Count(Tree),
    DependOn(Tree),
    /// On a tree that changes only where writers are kept out.
    RelyOn(Tree),
    Estimate(Tree),
    /// A cursor; its moves are told one by one, until the transaction is over, or later.
    Scan(Tree, Counts, Option<(Name, Name)>),
    Put(Tree, Name, Value),
    Insert(Tree, Name, Value),
    Delete(Tree, Name),
    PutPart(Tree, Name, usize, Value),
    PutStart(Tree, Name, usize, Value),
    PutAll(Tree, Vec<(i64, Value)>),
    InsertAll(Tree, Vec<(i64, Value)>),
    DeleteAll(Tree, Vec<i64>),
    /// What may be there as it is, and then is left.
    Rewrite(Tree, Name, Value),
    RewriteStart(Tree, Name, usize, Value),
    RewriteAll(Tree, Vec<(i64, Value)>),
    /// One after the other, mostly in order, left off and gone on with midway.
    InsertSorted(Tree, Vec<(Name, Value)>),
    Clear(Tree),
    /// Rows under keys that are not said.
    Append(Tree, usize, Value),
    Family(String),
    /// Which tree a name is given to in the tree of names.
    Given(String),
    Families,
    CreateFamily(String, KeyKind),
    DropFamily(String),
    CreateTree(KeyKind),
    DropTree(Tree),
    Exclude,
    Mark,
    /// To the so-manieth mark.
    Back(usize),
    Release(usize),
}

impl Ask {
    /// Of which tree that is asked, or to which it is done.
    pub fn tree(&self) -> Option<&Tree> {
        match self {
            Ask::Get(tree, ..)
            | Ask::GetLasting(tree, ..)
            | Ask::GetStart(tree, ..)
            | Ask::GetPart(tree, ..)
            | Ask::Contains(tree, ..)
            | Ask::Count(tree)
            | Ask::DependOn(tree)
            | Ask::RelyOn(tree)
            | Ask::Estimate(tree)
            | Ask::Scan(tree, ..)
            | Ask::Put(tree, ..)
            | Ask::Insert(tree, ..)
            | Ask::Delete(tree, ..)
            | Ask::PutPart(tree, ..)
            | Ask::PutStart(tree, ..)
            | Ask::PutAll(tree, ..)
            | Ask::InsertAll(tree, ..)
            | Ask::DeleteAll(tree, ..)
            | Ask::Rewrite(tree, ..)
            | Ask::RewriteStart(tree, ..)
            | Ask::RewriteAll(tree, ..)
            | Ask::InsertSorted(tree, ..)
            | Ask::Clear(tree)
            | Ask::Append(tree, ..)
            | Ask::DropTree(tree) => Some(tree),
            _ => None,
        }
    }

    /// Whether it is about no entry, so that nothing is asked of the tree.
    pub fn is_empty(&self) -> bool {
        match self {
            Ask::PutAll(_, rows) | Ask::InsertAll(_, rows) | Ask::RewriteAll(_, rows) => {
                rows.is_empty()
            }
            _ => false,
        }
    }

    /// Whether under `snapshot` it has no part in the commit: a read on which nothing
    /// depends.
    pub fn is_over_before_commit(&self) -> bool {
        match self {
            Ask::Contains(_, _, counts) | Ask::Scan(_, counts, _) => *counts != Counts::Lasting,
            Ask::Get(..)
            | Ask::GetStart(..)
            | Ask::GetPart(..)
            | Ask::Count(_)
            | Ask::Estimate(_)
            | Ask::Family(_)
            | Ask::Given(_)
            | Ask::Families
            | Ask::Mark
            | Ask::Back(_)
            | Ask::Release(_) => true,
            _ => false,
        }
    }
}

/// What was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Nothing,
    Is(bool),
    Value(Option<Digest>),
    Start(Option<(usize, Vec<u8>)>),
    Number(u64),
    /// By each move: what lies there, if anything within the bounds.
    Moves(Vec<Moved>),
    Keys(Vec<i64>),
    /// Of each, whether it was inserted.
    Each(Vec<bool>),
    Tree(Option<u32>),
    Families(Vec<(String, u32)>),
    Dropped(Option<bool>),
    /// Misuse, as there is no such tree, or what is there does not suit.
    Refused,
}

/// A move, and what lies there, its value perhaps.
pub type Moved = (MoveTold, Option<(Name, Option<Digest>)>);

/// A move, and for a run the keys there.
#[derive(Debug, Clone)]
pub struct MoveTold(pub Move, pub Vec<i64>);

impl PartialEq for MoveTold {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

/// Keys of trees of integers, or the first of those with many.
const INTS: [i64; 7] = [-3, 0, 1, 2, 3, 1000, i64::MIN];

/// Draws for one thread.
pub struct Draw {
    pub rng: Rng,
    /// Whether nothing large is written.
    pub small: bool,
    /// Whether few keys of few trees are touched.
    pub hot: bool,
    /// What was lately to be written.
    pub lately: VecDeque<(Tree, Name, Value)>,
}

/// How many entries a thread remembers that it was to write.
const LATELY: usize = 6;
/// The first of the byte keys that lie behind others.
const BEHIND: u64 = 20;

impl Draw {
    pub fn of<T: Clone>(&mut self, these: &[T]) -> T {
        these[self.rng.below(these.len() as u64) as usize].clone()
    }

    pub fn name(&mut self, tree: &Tree) -> Name {
        let wide = tree.id().0.is_multiple_of(2);
        match tree.kind() {
            KeyKind::Int if self.hot => Name::Int(self.of(&INTS[..3])),
            KeyKind::Int if wide => Name::Int(self.rng.below(24) as i64),
            KeyKind::Int => Name::Int(self.of(&INTS)),
            KeyKind::Bytes => {
                let number = match (self.hot, wide) {
                    (true, _) => 5 + self.rng.below(3),
                    (false, true) => self.rng.below(BEHIND + 4),
                    (false, false) => self.rng.below(7),
                };
                let bytes = match number {
                    0 => Vec::new(),
                    1 | 2 => [b"l".repeat(800), vec![number as u8]].concat(),
                    3 | 4 => [b"l".repeat(9_000), vec![number as u8]].concat(),
                    BEHIND.. => format!("z{number}").into_bytes(),
                    _ => format!("k{number}").into_bytes(),
                };
                Name::Bytes(bytes.into())
            }
        }
    }

    pub fn value(&mut self, by: &str) -> Value {
        let lengths: &[usize] = match self.small {
            true => &[0, 0, 40, 900],
            false => &[0, 0, 0, 40, 900, 900, 1_500, 5_000, 20_000, 70_000],
        };
        let len = self.of(lengths);
        Value::by(by, len, self.rng.chance(1, 2))
    }

    /// What makes a transaction too large for the log, or nearly so.
    pub fn large(&mut self, tree: &Tree, by: &str) -> Ask {
        let noisy = self.rng.chance(1, 4);
        match tree.kind() {
            KeyKind::Int if self.rng.chance(1, 2) => {
                let row = |key| (key, Value::by(by, 900_000, noisy));
                Ask::PutAll(tree.clone(), (0..5).map(row).collect())
            }
            _ => {
                let len = self.of(&[4_300_000, (4 << 20) - 1_000, 9_000_000]);
                let name = self.name(tree);
                Ask::Put(tree.clone(), name, Value::by(by, len, noisy))
            }
        }
    }

    fn rows(&mut self, tree: &Tree, by: &str) -> Vec<(i64, Value)> {
        let count = 1 + self.rng.below(5);
        let mut rows: Vec<_> = (0..count)
            .map(|_| (self.name(tree).int(), self.value(by)))
            .collect();
        if self.rng.chance(3, 4) {
            rows.sort_by_key(|(key, _)| *key);
        }
        rows
    }

    fn counts(&mut self) -> Counts {
        self.of(&[
            Counts::Plain,
            Counts::Plain,
            Counts::Plain,
            Counts::Lasting,
            Counts::Never,
        ])
    }

    /// Within bounds, if there are some: who ends there must not begin beyond them.
    pub fn seek(&mut self, tree: &Tree, bounds: &Option<(Name, Name)>) -> To {
        let name = self.name(tree);
        let (name, least) = match bounds {
            Some((low, high)) => (name.clamp(low.clone(), high.clone()), 3),
            None => (name, 0),
        };
        if bounds.is_none() && self.rng.chance(1, 12) {
            return To::Share(self.of(&[0, 1 << 30, 1 << 31, u32::MAX]));
        }
        match least + self.rng.below(8 - least) {
            0 | 1 => To::First,
            2 => To::Last,
            3 | 4 => To::AtLeast(name),
            5 => To::After(name),
            6 => To::AtMost(name),
            _ => To::Before(name),
        }
    }

    pub fn read(&mut self, tree: &Tree) -> Ask {
        let (tree, name) = (tree.clone(), self.name(tree));
        let (from, to) = (self.rng.below(1_000), self.rng.below(6_000));
        // Who opens no cursor may hold its trees.
        let kinds = if self.small && self.rng.chance(7, 8) {
            13
        } else {
            20
        };
        match self.rng.below(kinds) {
            0..6 => Ask::Get(tree, name, self.rng.chance(1, 4)),
            6 => Ask::GetLasting(tree, name),
            7 => Ask::GetStart(tree, name),
            8 => Ask::GetPart(tree, name, from as usize, to as usize),
            9 | 10 => {
                let counts = self.of(&[Counts::Plain, Counts::Lasting]);
                Ask::Contains(tree, name, counts)
            }
            11 => Ask::Count(tree),
            12 if self.rng.chance(1, 2) => Ask::Estimate(tree),
            12 => Ask::Given(self.family()),
            13 if self.rng.chance(1, 3) => Ask::DependOn(tree),
            _ => {
                let other = self.name(&tree);
                let bounds = (name.clone().min(other.clone()), name.max(other));
                let bounds = self.rng.chance(1, 3).then_some(bounds);
                Ask::Scan(tree, self.counts(), bounds)
            }
        }
    }

    pub fn write(&mut self, tree: &Tree, by: &str) -> Ask {
        let (name, value) = (self.name(tree), self.value(by));
        let at = self.of(&[0, 1, 5, 30, 700, 4_000, 10_000]);
        let is_int = tree.kind() == KeyKind::Int;
        let tree = tree.clone();
        match self.rng.below(38) {
            0..10 => self.put(tree, name, value),
            10..14 => Ask::Insert(tree, name, value),
            14..19 => Ask::Delete(tree, name),
            19..22 => Ask::PutPart(tree, name, at, value),
            22..25 => Ask::PutStart(tree, name, at, value),
            25 | 26 if is_int => Ask::PutAll(tree.clone(), self.rows(&tree, by)),
            27 if is_int => Ask::InsertAll(tree.clone(), self.rows(&tree, by)),
            28 if is_int => {
                let rows = self.rows(&tree, by);
                Ask::DeleteAll(tree, rows.into_iter().map(|row| row.0).collect())
            }
            29 if is_int => Ask::Append(tree, 1 + self.rng.below(3) as usize, value),
            30 if self.rng.chance(1, 2) => Ask::Clear(tree),
            31..36 => self.rewrite(tree, (name, value), at),
            36 => Ask::InsertSorted(tree.clone(), self.sorted(&tree, by)),
            _ => self.put(tree, name, value),
        }
    }

    fn put(&mut self, tree: Tree, name: Name, value: Value) -> Ask {
        self.remember(&tree, &name, &value);
        Ask::Put(tree, name, value)
    }

    /// That this is to be written.
    fn remember(&mut self, tree: &Tree, name: &Name, value: &Value) {
        self.lately.truncate(LATELY - 1);
        let entry = (tree.clone(), name.clone(), value.clone());
        self.lately.push_front(entry);
    }

    /// What may be there as it is, as this thread was to write it, or parts of that.
    fn rewrite(&mut self, tree: Tree, (name, value): (Name, Value), at: usize) -> Ask {
        let known = self.lately.iter().find(|it| it.0 == tree);
        let (name, value) = match known {
            Some((_, name, value)) => (name.clone(), value.clone()),
            None => {
                self.remember(&tree, &name, &value);
                (name, value)
            }
        };
        match self.rng.below(5) {
            0 => {
                let until = at.min(value.bytes().len());
                let start = Value::new(value.bytes()[..until].to_vec());
                Ask::RewriteStart(tree, name, until, start)
            }
            1 if tree.kind() == KeyKind::Int => {
                let mut rows = vec![(name.int(), value)];
                if self.rng.chance(1, 2) {
                    let other = self.value("rewritten");
                    rows.push((self.name(&tree).int(), other));
                    rows.sort_by_key(|(key, _)| *key);
                }
                Ask::RewriteAll(tree, rows)
            }
            _ => Ask::Rewrite(tree, name, value),
        }
    }

    /// Entries mostly in order, of byte keys mostly behind all others.
    fn sorted(&mut self, tree: &Tree, by: &str) -> Vec<(Name, Value)> {
        let first = BEHIND + self.rng.below(8);
        let count = 1 + self.rng.below(12);
        let mut rows: Vec<_> = (first..first + count)
            .map(|number| {
                let name = match tree.kind() {
                    KeyKind::Bytes if self.rng.chance(15, 16) => {
                        Name::Bytes(format!("z{number}").into_bytes().into())
                    }
                    _ => self.name(tree),
                };
                (name, self.value(by))
            })
            .collect();
        if self.rng.chance(3, 4) {
            rows.sort_by(|one, other| one.0.cmp(&other.0));
        }
        rows
    }

    pub fn family(&mut self) -> String {
        self.of(&["a", "b", "c", "d", ""]).to_owned()
    }

    pub fn kind(&mut self) -> KeyKind {
        self.of(&[KeyKind::Int, KeyKind::Int, KeyKind::Bytes])
    }

    /// Something about which trees there are.
    pub fn about_trees(&mut self, tree: &Tree) -> Ask {
        let name = self.family();
        match self.rng.below(9) {
            0 | 1 => Ask::Families,
            2 | 3 => Ask::CreateFamily(name, self.kind()),
            4 => Ask::DropFamily(name),
            5 => Ask::CreateTree(self.kind()),
            6 if self.rng.chance(1, 2) => Ask::DropTree(tree.clone()),
            7 => Ask::Exclude,
            _ => Ask::Families,
        }
    }
}
