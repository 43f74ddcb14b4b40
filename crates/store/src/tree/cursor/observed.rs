//! What a cursor tells of what it reads, for serializable transactions.
//!
//! Each place that it comes to is told to its observer, and within a leaf only the entry's
//! index. Whoever needs the key then looks it up in the leaf: while an observer is told of
//! indexes its cursor is on that leaf, which therefore is pinned. So a cursor that leaves its
//! leaf, or does anything else than to go on, has its observer catch up before.

use super::{Cursor, NOWHERE, Seek};
use crate::cache::{Frame, Pool};
use crate::error::Result;
use crate::node::{self, Key};
use crate::tree::KeyKind;
use crate::txn::reads::Observer;

/// The leaf that a cursor is on.
#[derive(Clone, Copy)]
pub(crate) struct Leaf {
    frame: Frame,
    kind: KeyKind,
}

impl Leaf {
    /// Calls `tell` with the key of an entry.
    ///
    /// # Safety
    /// The cursor that this is of is still on the leaf, which has such an entry and no
    /// long keys.
    pub(crate) unsafe fn with_key(self, pool: &Pool, index: usize, tell: impl FnOnce(Key<'_>)) {
        // SAFETY: as in `Cursor::page`, by the caller's promise.
        let page = unsafe { pool.frames.page(self.frame) };
        match self.kind {
            KeyKind::Int => tell(Key::Int(node::int_key_at(page, index))),
            KeyKind::Bytes => {
                let mut key = Vec::new();
                node::start_into(page, index, &mut key);
                tell(Key::Bytes(&key));
            }
        }
    }
}

impl Cursor {
    /// It was put somewhere.
    pub(super) fn observe_seek(&mut self, to: Seek<'_>) -> Result<()> {
        self.observe(|observer, at, _| observer.seek(to, at))
    }

    /// It moved on, in this direction.
    #[inline]
    pub(super) fn observe_step(&mut self, forward: bool) -> Result<()> {
        match &self.observer {
            Some(observer) if !observer.passes(forward, self.index) => self.observe_turn(forward),
            _ => Ok(()),
        }
    }

    /// The same where it came to another leaf, or goes in this direction for the first time.
    fn observe_turn(&mut self, forward: bool) -> Result<()> {
        self.catch_up();
        self.observe(|observer, at, leaf| observer.step(forward, at, leaf))
    }

    /// Before it does something else than to go on within its leaf.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.catch_up(&self.handle.core.pool);
        }
    }

    /// Tells the observer of the key that the cursor is on, if it is, and of which entry of
    /// which leaf that is, where that is enough from now on.
    fn observe(
        &mut self,
        tell: impl FnOnce(&mut Observer, Option<Key<'_>>, Option<(Leaf, usize)>),
    ) -> Result<()> {
        let Some(mut observer) = self.observer.take() else {
            return Ok(());
        };
        let leaf = self.leaf_to_pass();
        let told = match self.kind {
            KeyKind::Bytes if self.leaf != NOWHERE => self
                .key_bytes()
                .map(|key| tell(&mut observer, Some(Key::Bytes(key)), leaf)),
            _ => {
                let at = (self.leaf != NOWHERE).then(|| Key::Int(self.key_int()));
                tell(&mut observer, at, leaf);
                Ok(())
            }
        };
        self.observer = Some(observer);
        told
    }

    /// The leaf that it is on, if the keys of all entries lie there.
    fn leaf_to_pass(&self) -> Option<(Leaf, usize)> {
        let has_long = || self.kind == KeyKind::Bytes && node::has_long(self.page());
        let passes = self.leaf != NOWHERE && !has_long();
        passes.then(|| {
            let leaf = Leaf {
                frame: self.leaf,
                kind: self.kind,
            };
            (leaf, self.index)
        })
    }
}
