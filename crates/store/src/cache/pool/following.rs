//! From a reference to the frame of its node.
//!
//! What a page says of itself is verified when it is loaded. What its parent says of it
//! is verified when a walk goes from one to the other for the first time, and the hint
//! that is left there says that it was: walks rely on levels that fall, on keys of one kind
//! and on fences that agree, to come to an end, and to have been at every key.

use super::{Pool, Written, shard};
use crate::cache::frames::{ChildRef, Frame};
use crate::codec::ExtentRef;
use crate::node::{self, Mismatch};
use crate::policy;
use crate::space::extent_of;
use crate::tree::KeyKind;

/// A reference whose node is not in memory: fetch it and start over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Absent {
    pub(crate) extent: ExtentRef,
    pub(crate) checksum: u32,
    /// The level the parent promises, if there is a parent.
    pub(crate) level: Option<u8>,
    /// The node is there, and not what refers to it says: who fetches it is told so.
    pub(crate) mismatch: Option<Mismatch>,
}

/// What a reference from outside any node is to, and the number of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topmost {
    /// A tree's root.
    Root(u32, KeyKind),
    /// The topmost node of a large value, or of the rest of a long key.
    Value(u32),
    /// Any node of the tree.
    Any(u32),
}

impl Topmost {
    pub(crate) fn tree(self) -> u32 {
        match self {
            Self::Root(tree, _) | Self::Value(tree) | Self::Any(tree) => tree,
        }
    }

    /// Verifies that the page is that.
    pub(crate) fn check(self, page: &[u8]) -> Result<(), Mismatch> {
        if node::tree(page) != self.tree() {
            return Err(Mismatch::Tree);
        }
        match self {
            Self::Root(_, kind) => node::check_root(page, kind == KeyKind::Int),
            Self::Value(_) => node::check_value(page),
            Self::Any(_) => Ok(()),
        }
    }
}

impl Pool {
    /// The frame of child `index` of the inner node in `parent`. Call inside a
    /// walk; the frame stays what it is until the walk ends.
    #[inline]
    pub(crate) fn follow(&self, parent: Frame, index: usize) -> Result<Frame, Absent> {
        let child = self.frames.child(parent, index);
        if let Some(frame) = self.frames.holding(child.hint(), child.reference) {
            self.touch(frame);
            return Ok(frame);
        }
        self.follow_slowly(parent, index, child)
    }

    #[cold]
    fn follow_slowly(&self, parent: Frame, index: usize, child: ChildRef) -> Result<Frame, Absent> {
        let resolved = self.resolved(child);
        if resolved.reference != child.reference {
            self.frames.set_child(parent, index, resolved);
        }
        // SAFETY: inside a walk the parent is shared or the caller's own.
        let keys = unsafe { self.frames.keys(parent) };
        let absent = Absent {
            extent: extent_of(resolved.reference),
            checksum: resolved.checksum(),
            level: Some(node::level(keys).wrapping_sub(1)),
            mismatch: None,
        };
        let frame = self.lookup(resolved.reference).ok_or(absent)?;
        // SAFETY: found under its extent inside a walk, so it is shared.
        let found = node::check_child(keys, index, unsafe { self.frames.keys(frame) });
        found.map_err(|mismatch| absent.with(mismatch))?;
        self.frames.set_hint(parent, index, resolved, frame);
        self.touch(frame);
        Ok(frame)
    }

    /// The frame of a node referred to from outside any node (a root, an
    /// overflow reference). `child` is brought up to date. Call inside a walk.
    #[inline]
    pub(crate) fn enter(&self, child: &mut ChildRef, topmost: Topmost) -> Result<Frame, Absent> {
        if let Some(frame) = self.frames.holding(child.hint(), child.reference) {
            self.touch(frame);
            return Ok(frame);
        }
        self.enter_slowly(child, topmost)
    }

    #[cold]
    fn enter_slowly(&self, child: &mut ChildRef, topmost: Topmost) -> Result<Frame, Absent> {
        *child = self.resolved(*child);
        let absent = Absent {
            extent: extent_of(child.reference),
            checksum: child.checksum(),
            level: None,
            mismatch: None,
        };
        let frame = self.lookup(child.reference).ok_or(absent)?;
        // SAFETY: as in `follow_slowly`.
        let found = topmost.check(unsafe { self.frames.keys(frame) });
        found.map_err(|mismatch| absent.with(mismatch))?;
        *child = child.with_hint(frame);
        self.touch(frame);
        Ok(frame)
    }

    #[inline]
    fn touch(&self, frame: Frame) {
        policy::touch(&self.frames.meta(frame).heat);
    }

    /// The reference with a written handle replaced by its extent.
    pub(crate) fn resolved(&self, child: ChildRef) -> ChildRef {
        if !child.is_handle() {
            return child;
        }
        match self.written_as(child.reference) {
            Some(written) => ChildRef::new(written.extent.word(), written.checksum, child.hint()),
            None => child,
        }
    }

    /// Where the node with this handle was written, if it was.
    pub(crate) fn written_as(&self, handle: u64) -> Option<Written> {
        self.written[shard(handle)].lock().get(&handle).copied()
    }

    pub(super) fn lookup(&self, reference: u64) -> Option<Frame> {
        self.table[shard(reference)].lock().get(&reference).copied()
    }
}

impl Absent {
    /// The same, found and not what was said of it.
    pub(crate) fn with(self, mismatch: Mismatch) -> Self {
        Self {
            mismatch: Some(mismatch),
            ..self
        }
    }
}
