//! Making the way from a fork's root to a leaf private, so that the leaf can be edited.
//!
//! The way is found first, and then the nodes on it that the fork shares are copied into
//! frames of its own, from the root down. A leaf that is on disk alone is read into one
//! right away: the version there is about to be replaced, so nobody but an older snapshot
//! will ask for it, and a cached copy would cost another frame, an eviction, and the copy.
//! Where it turns out that nothing is to be written, nothing is copied, and everybody gets
//! the leaf that was read.
//!
//! A walk neither waits nor reads: where a frame or a node is missing it ends, what it
//! lacked is had, and it starts over, along what is private already.

use super::fork::{Context, Fork, SPARE};
use super::walk::{self, Halt, Learnt, Target};
use crate::cache::pool::MAX_LEVEL;
use crate::cache::{Absent, ChildRef, Frame, NO_HINT, Pool, Walk};
use crate::codec::ExtentRef;
use crate::error::{Error, Result};
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

/// Why a descent has to start over, or need not go on.
pub(super) enum Stop {
    Halt(Halt),
    NeedFrames,
    /// The key is not as it was to be found.
    Otherwise,
}

/// What a descent is for.
#[derive(Clone, Copy)]
struct Wanted<'k> {
    target: Target<'k>,
    /// Of the last node.
    level: u8,
    /// Nothing, where a leaf that is not private has this key and should not, or has it
    /// not and should.
    only: Option<(Key<'k>, bool)>,
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
        let wanted = Wanted {
            target,
            level: 0,
            only: None,
        };
        self.private_path_to(cx, wanted)?.ok_or_else(no_path)
    }

    /// The same for the leaf of a key that is to be there, or not to be; `None`, and nothing
    /// is copied, where it is otherwise in a leaf that is not private yet.
    pub(super) fn private_path_only(
        &mut self,
        cx: &mut Context<'_>,
        key: Key<'_>,
        is_there: bool,
    ) -> Result<Option<Path>> {
        let wanted = Wanted {
            target: Target::Key(key),
            level: 0,
            only: Some((key, is_there)),
        };
        self.private_path_to(cx, wanted)
    }

    /// Makes every node from the root to the one above the key's leaf private, and
    /// returns that one. The tree must be higher than a leaf.
    pub(super) fn private_parent(&mut self, cx: &mut Context<'_>, key: Key<'_>) -> Result<Frame> {
        let wanted = Wanted {
            target: Target::Key(key),
            level: 1,
            only: None,
        };
        let path = self.private_path_to(cx, wanted)?.ok_or_else(no_path)?;
        Ok(path.leaf)
    }

    fn private_path_to(
        &mut self,
        cx: &mut Context<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Option<Path>> {
        let mut loaded = None;
        let path = self.private_path_with(cx, wanted, &mut loaded);
        if let Some(Loaded { extent, frame }) = loaded {
            // Nothing is written, somebody else brought the leaf, or there was an error.
            let is_of_use = matches!(path, Ok(None));
            if !(is_of_use && cx.pool.share(extent, frame)) {
                cx.spare.push(frame);
            }
        }
        path
    }

    fn private_path_with(
        &mut self,
        cx: &mut Context<'_>,
        wanted: Wanted<'_>,
        loaded: &mut Option<Loaded>,
    ) -> Result<Option<Path>> {
        let mut learnt = Learnt::default();
        let pool = cx.pool;
        loop {
            let walk = pool.readers.walk(cx.slot);
            match self.try_private_path(cx, wanted, &learnt.rests, loaded, &walk) {
                Ok(path) => return Ok(Some(path)),
                Err(Stop::Otherwise) => return Ok(None),
                Err(Stop::NeedFrames) => {
                    drop(walk);
                    cx.ensure_spare(SPARE)?;
                }
                // With frames enough it is read for all: for who needs it as it was, and
                // for who comes after a rollback.
                Err(Stop::Halt(Halt::Absent(absent)))
                    if absent.level == Some(0) && !pool.has_plenty() =>
                {
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
                    let key = wanted.target.key();
                    learnt.get(pool, cx.slot, self.tree.id().0, key, halt)?;
                }
            }
        }
    }

    fn try_private_path(
        &mut self,
        cx: &mut Context<'_>,
        wanted: Wanted<'_>,
        rests: &Rests,
        loaded: &mut Option<Loaded>,
        _walk: &Walk<'_>,
    ) -> std::result::Result<Path, Stop> {
        let pool = cx.pool;
        let mut path = Path {
            steps: [(0, 0); MAX_LEVEL as usize],
            height: 0,
            leaf: pool.enter(&mut self.root, self.tree.0.topmost())?,
        };
        let mut is_loaded = false;
        while !is_loaded {
            // SAFETY: inside a walk, and the node is shared or the fork's own.
            let keys = unsafe { pool.frames.keys(path.leaf) };
            if node::level(keys) <= wanted.level {
                break;
            }
            let index = walk::child_for(keys, wanted.target, rests)?;
            if let Target::Key(key) = wanted.target
                && let Some(offset) = node::likely_slot(keys, index, key)
            {
                let leaf = pool.frames.child(path.leaf, index).hint();
                pool.frames.prefetch(leaf, offset);
                pool.frames.prefetch_page(leaf);
            }
            // Levels fall by one a step and begin at most at MAX_LEVEL.
            path.steps[path.height] = (path.leaf, index as u32);
            path.height += 1;
            path.leaf = match pool.follow(path.leaf, index) {
                Ok(next) => next,
                Err(absent) => {
                    let is_it = |loaded: &&Loaded| loaded.extent == absent.extent;
                    let found = loaded.as_ref().filter(is_it).ok_or(absent)?;
                    // SAFETY: read into a frame of ours, which nobody else has.
                    let page = unsafe { pool.frames.page(found.frame) };
                    node::check_child(keys, index, page).map_err(|it| absent.with(it))?;
                    is_loaded = true;
                    found.frame
                }
            };
        }
        if let Some((key, is_there)) = wanted.only
            && (is_loaded || !self.owns_frame(pool, path.leaf))
        {
            // SAFETY: a leaf; loaded into a frame of ours, or shared and inside a walk.
            let page = unsafe { pool.frames.page(path.leaf) };
            if node::find(page, key, rests)?.is_ok() != is_there {
                return Err(Stop::Otherwise);
            }
        }
        self.make_private(cx, &mut path, loaded)?;
        Ok(path)
    }

    /// Makes the nodes of a path private that are not, from the root down; its leaf may
    /// have been loaded for that, which stays where it is if frames are missing. Inside the
    /// walk that found it.
    fn make_private(
        &mut self,
        cx: &mut Context<'_>,
        path: &mut Path,
        loaded: &mut Option<Loaded>,
    ) -> std::result::Result<(), Stop> {
        let pool = cx.pool;
        for at in 0..=path.height {
            let above = at.checked_sub(1).map(|above| path.steps[above]);
            let frame = match path.steps().get(at) {
                Some((inner, _)) => *inner,
                None => path.leaf,
            };
            let child = match above {
                Some((parent, index)) => pool.frames.child(parent, index as usize),
                None => self.root,
            };
            let private = match loaded.take_if(|loaded| loaded.frame == frame) {
                Some(loaded) => self.adopt_loaded(pool, child, loaded),
                None if self.owns_frame(pool, frame) => continue,
                None => self.copy(cx, child, frame)?,
            };
            match above {
                Some((parent, index)) => pool.frames.set_child(parent, index as usize, private),
                None => self.root = private,
            }
            match path.steps.get_mut(at).filter(|_| at < path.height) {
                Some((inner, _)) => *inner = private.hint(),
                None => path.leaf = private.hint(),
            }
        }
        Ok(())
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

/// Only who says how the key should be found is told that it is otherwise.
#[cold]
fn no_path() -> Error {
    Error::misuse("the way to a leaf was not made private")
}
