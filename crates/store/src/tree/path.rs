//! Making the way from a fork's root to a leaf private, so that the leaf can be edited.
//!
//! Nodes that the fork shares are copied into frames of its own, from the root down. A
//! leaf that is on disk alone is read into one right away: the version there is about to
//! be replaced, so nobody but an older snapshot will ask for it, and a cached copy would
//! cost another frame, an eviction, and the copy.
//!
//! A walk neither waits nor reads: where a frame or a node is missing it ends, what it
//! lacked is had, and it starts over, along what is private already.

use super::fork::{Context, Fork, SPARE};
use super::walk::{self, Halt, Learnt, Target};
use crate::cache::pool::MAX_LEVEL;
use crate::cache::{Absent, ChildRef, Frame, NO_HINT, Pool, Walk};
use crate::codec::ExtentRef;
use crate::error::Result;
use crate::node::{self, Key, Rests, Unknown};

/// The way from the root to a leaf, or as low as was asked for, through private nodes:
/// each inner frame with the child taken, then the leaf.
pub(crate) struct Path {
    steps: [(Frame, u32); MAX_LEVEL as usize],
    height: usize,
    pub(crate) leaf: Frame,
}

impl Path {
    /// The inner nodes and the child taken in each, root first.
    pub(crate) fn steps(&self) -> &[(Frame, u32)] {
        &self.steps[..self.height]
    }
}

/// A leaf that was absent, loaded into a frame of the fork's own.
struct Loaded {
    extent: ExtentRef,
    frame: Frame,
}

/// Why a descent has to start over.
pub(super) enum Stop {
    Halt(Halt),
    NeedFrames,
}

impl From<Absent> for Stop {
    fn from(absent: Absent) -> Self {
        Stop::Halt(absent.into())
    }
}

impl From<Unknown> for Stop {
    fn from(unknown: Unknown) -> Self {
        Stop::Halt(unknown.into())
    }
}

impl Fork {
    /// Makes every node from the root to the target's leaf private. The tree
    /// must not be empty.
    pub(crate) fn private_path(
        &mut self,
        cx: &mut Context<'_>,
        target: Target<'_>,
    ) -> Result<Path> {
        let mut loaded = None;
        let path = self.private_path_with(cx, (target, 0), &mut loaded);
        // Somebody else brought the leaf, or there was an error.
        cx.spare.extend(loaded.map(|loaded| loaded.frame));
        path
    }

    /// Makes every node from the root to the one above the key's leaf private, and
    /// returns that one. The tree must be higher than a leaf.
    pub(super) fn private_parent(&mut self, cx: &mut Context<'_>, key: Key<'_>) -> Result<Frame> {
        let path = self.private_path_with(cx, (Target::Key(key), 1), &mut None)?;
        Ok(path.leaf)
    }

    fn private_path_with(
        &mut self,
        cx: &mut Context<'_>,
        (target, level): (Target<'_>, u8),
        loaded: &mut Option<Loaded>,
    ) -> Result<Path> {
        let mut learnt = Learnt::default();
        let pool = cx.pool;
        loop {
            let walk = pool.readers.walk(cx.slot);
            match self.try_private_path(cx, (target, level), &learnt.rests, loaded, &walk) {
                Ok(path) => return Ok(path),
                Err(Stop::NeedFrames) => {
                    drop(walk);
                    cx.ensure_spare(SPARE)?;
                }
                Err(Stop::Halt(Halt::Absent(absent))) if absent.level == Some(0) => {
                    drop(walk);
                    let frame = match loaded.take() {
                        Some(other) => other.frame,
                        None => self.new_frame(cx)?,
                    };
                    let extent = absent.extent;
                    *loaded = Some(Loaded { extent, frame });
                    pool.load(absent, self.tree.id().0, frame)?;
                }
                Err(Stop::Halt(halt)) => {
                    drop(walk);
                    learnt.get(pool, cx.slot, self.tree.id().0, target.key(), halt)?;
                }
            }
        }
    }

    fn try_private_path(
        &mut self,
        cx: &mut Context<'_>,
        (target, level): (Target<'_>, u8),
        rests: &Rests,
        loaded: &mut Option<Loaded>,
        _walk: &Walk<'_>,
    ) -> std::result::Result<Path, Stop> {
        let pool = cx.pool;
        let mut frame = pool.enter(&mut self.root)?;
        if !self.owns_frame(pool, frame) {
            let root = self.copy(cx, self.root, frame)?;
            self.root = root;
            frame = root.hint();
        }
        let mut path = Path {
            steps: [(0, 0); MAX_LEVEL as usize],
            height: 0,
            leaf: frame,
        };
        loop {
            // SAFETY: private, and nobody else borrows it.
            let keys = unsafe { pool.frames.keys(frame) };
            if node::level(keys) <= level {
                path.leaf = frame;
                return Ok(path);
            }
            let index = walk::child_for(keys, target, rests)?;
            let found = pool.follow(frame, index);
            let child = pool.frames.child(frame, index);
            let private = match found {
                Ok(next) if self.owns_frame(pool, next) => child.with_hint(next),
                Ok(next) => self.copy(cx, child, next)?,
                Err(absent) => {
                    let loaded = loaded.take_if(|loaded| loaded.extent == absent.extent);
                    self.adopt_loaded(pool, child, loaded.ok_or(absent)?)
                }
            };
            if private.reference != child.reference {
                pool.frames.set_child(frame, index, private);
            }
            // Levels fall by one a step and begin at most at MAX_LEVEL.
            path.steps[path.height] = (frame, index as u32);
            path.height += 1;
            frame = private.hint();
        }
    }

    /// Copies a shared node into a private one. Inside a walk.
    pub(super) fn copy(
        &mut self,
        cx: &mut Context<'_>,
        child: ChildRef,
        frame: Frame,
    ) -> std::result::Result<ChildRef, Stop> {
        let to = cx.spare.pop().ok_or(Stop::NeedFrames)?;
        // SAFETY: `frame` is shared and inside a walk (rule 3), `to` comes from
        // the free list (rule 1).
        let birth = unsafe {
            cx.pool.frames.copy(frame, to);
            node::birth(cx.pool.frames.keys(frame))
        };
        if birth >= self.base_seq {
            self.respilled += usize::from(self.is_spilled(cx.pool, frame));
        }
        self.replace(child.with_hint(frame), birth);
        self.copied = self.copied.map(|copied| copied + 1);
        Ok(self.adopt(cx.pool, to))
    }

    /// As [`copy`](Self::copy) for a leaf on disk, which was read into a spare frame and
    /// not into one that all share: nobody else has asked for this version of it.
    fn adopt_loaded(&mut self, pool: &Pool, child: ChildRef, loaded: Loaded) -> ChildRef {
        // SAFETY: being filled by us (rule 1).
        let birth = node::birth(unsafe { pool.frames.keys(loaded.frame) });
        if birth >= self.base_seq {
            self.respilled += 1;
        }
        self.replace(child.with_hint(NO_HINT), birth);
        self.copied = self.copied.map(|copied| copied + 1);
        self.adopt(pool, loaded.frame)
    }
}
