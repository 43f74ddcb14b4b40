//! Trees: persistent (copy-on-write) B+trees over the cache.
//!
//! * [`versions`]: the live roots of a tree, by commit.
//! * [`walk`]: from a root to a leaf.
//! * [`fork`]: a transaction's private, growing version.
//! * [`path`]: what of it is shared with others, copied before it is edited.
//! * [`edit`], [`merge`]: inserting and deleting in a fork.
//! * [`append`]: inserting behind all others, a leaf at a time.
//! * [`place`]: where an entry would be written without a copy.
//! * [`undo`]: what entries were before they were written.
//! * [`overflow`]: values too large for a leaf.
//! * [`cursor`]: ordered access.
//! * [`compare`]: whether two versions agree on a key or range.
//! * [`writer`]: the lock of those who change a tree.
//!
//! A node belongs to the generation that made it. A fork edits nodes of its own
//! generation in place and copies all others, so what a snapshot reaches never
//! changes. What no snapshot reaches yet a commit may change: `txn/in_place.rs`.

mod append;
pub(crate) mod compare;
pub(crate) mod cursor;
pub(crate) mod edit;
pub(crate) mod fork;
mod graft;
pub(crate) mod mark;
pub(crate) mod merge;
pub(crate) mod overflow;
mod path;
pub(crate) mod place;
mod rank;
mod rewrite;
pub(crate) mod transplant;
pub(crate) mod undo;
pub(crate) mod versions;
pub(crate) mod walk;
mod writer;

use crate::cache::{ChildRef, Topmost};
use crate::node::{Key, Kind};
use crate::primitives::Mutex;
use crate::reclaim::Graves;
use crate::txn::rowid::Rowids;
use std::fmt;
use std::sync::{Arc, OnceLock};
use versions::{Root, Versions};
use writer::WriterLock;

/// Names a tree for good: never reused within a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(pub u32);

/// How the keys of a tree are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Byte strings, by memcmp.
    Bytes,
    /// 64-bit integers (rowids).
    Int,
}

impl KeyKind {
    /// Whether a key is of this kind.
    #[inline]
    pub(crate) fn fits(self, key: Key<'_>) -> bool {
        matches!(
            (self, key),
            (KeyKind::Int, Key::Int(_)) | (KeyKind::Bytes, Key::Bytes(_))
        )
    }

    pub(crate) fn leaf(self) -> Kind {
        match self {
            KeyKind::Bytes => Kind::BytesLeaf,
            KeyKind::Int => Kind::IntLeaf,
        }
    }

    pub(crate) fn inner(self) -> Kind {
        match self {
            KeyKind::Bytes => Kind::BytesInner,
            KeyKind::Int => Kind::IntInner,
        }
    }

    pub(crate) fn to_byte(self) -> u8 {
        match self {
            KeyKind::Bytes => 0,
            KeyKind::Int => 1,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(KeyKind::Bytes),
            1 => Some(KeyKind::Int),
            _ => None,
        }
    }
}

/// What all users of a tree share.
pub(crate) struct TreeShared {
    pub(crate) id: TreeId,
    pub(crate) kind: KeyKind,
    /// The store it is in: `Core::number`.
    pub(crate) store: u64,
    pub(crate) versions: Versions,
    /// Held from validation to publication by whoever changes the tree, and by
    /// autocommitted statements from their start.
    pub(crate) writer: WriterLock,
    /// Nodes that died with published commits and were not looked at since.
    pub(crate) graves: Mutex<Graves>,
    pub(crate) rowids: Rowids,
    /// The name of the column family that it is, once somebody has asked by it.
    pub(crate) family: OnceLock<Arc<str>>,
}

impl TreeShared {
    pub(crate) fn new(id: TreeId, kind: KeyKind, store: u64) -> Self {
        Self {
            id,
            kind,
            store,
            versions: Versions::new(),
            writer: WriterLock::new(),
            graves: Mutex::default(),
            rowids: Rowids::default(),
            family: OnceLock::new(),
        }
    }

    /// What references to roots of its versions are to.
    #[inline]
    pub(crate) fn topmost(&self) -> Topmost {
        Topmost::Root(self.id.0, self.kind)
    }

    /// The newest published version; an empty one for a tree that is being
    /// created.
    pub(crate) fn head(&self) -> Root {
        self.versions.head().unwrap_or(EMPTY)
    }
}

/// The version of a tree that nobody has written to.
pub(crate) const EMPTY: Root = Root {
    seq: 0,
    node: ChildRef::NONE,
    count: 0,
    dropped: false,
};

/// Handle of a tree (a column family): cheap to clone, `Send + Sync`, valid as
/// long as the store is open.
#[derive(Clone)]
pub struct Tree(pub(crate) Arc<TreeShared>);

impl Tree {
    /// The tree's permanent number.
    pub fn id(&self) -> TreeId {
        self.0.id
    }

    /// The [number](crate::Store::number) of the store that it is in.
    #[inline]
    pub fn store_number(&self) -> u64 {
        self.0.store
    }

    /// How its keys are ordered.
    pub fn kind(&self) -> KeyKind {
        self.0.kind
    }

    /// The name of the column family that it is; `None` for a tree without a name, and for
    /// one that nobody has asked for by its name since the store was opened.
    pub fn family(&self) -> Option<&str> {
        self.0.family.get().map(|name| &**name)
    }

    /// The number of entries at this moment, for planning. It may count what is not
    /// acknowledged yet.
    pub fn estimate(&self) -> u64 {
        self.0.head().count
    }
}

/// Handles of one tree of one store are equal.
impl PartialEq for Tree {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        (self.0.id, self.0.store) == (other.0.id, other.0.store)
    }
}

impl Eq for Tree {}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({}, {:?})", self.0.id.0, self.0.kind)
    }
}
