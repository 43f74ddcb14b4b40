//! Writing within a transaction: entries and whole trees.
//!
//! Each operation edits the tree's fork and is appended to the redo, which the log
//! takes at commit and a rebase replays. An operation that fails midway leaves the fork
//! between two states: roll back to a savepoint taken before it, or all. What is not
//! rolled back so is not committed.

use super::redo::{self, Op};
use super::{TxnContext, TxnState, no_slot};
use crate::cache::ChildRef;
use crate::error::{Error, Result};
use crate::names::NAMES;
use crate::node::{self, Key};
use crate::primitives::REDO_STEP;
use crate::reclaim::Dead;
use crate::tree::compare::Aspect;
use crate::tree::edit::{IfExists, Wrote};
use crate::tree::fork::{Context, Fork};
use crate::tree::merge::Removed;
use crate::tree::place::{Change, Step};
use crate::tree::{EMPTY, KeyKind, Tree, overflow};

/// Nodes of a value that are made in one go. One of more goes by steps of as many, with
/// room made in between: in the middle of an edit it could only be written out at once,
/// needed or not.
const NODES_AT_ONCE: usize = 8;

impl TxnContext {
    /// Edits a fork, once there is room and it holds what was put off.
    #[inline]
    pub(super) fn edit<R>(
        &mut self,
        at: usize,
        edit: impl FnOnce(&mut Fork, &mut Context<'_>) -> Result<R>,
    ) -> Result<R> {
        self.write_put_off()?;
        if self.savepoints.undo.is_full() {
            self.keep_nodes()?;
        }
        self.make_room()?;
        let edited = self.edit_noting(at, self.savepoints.undo.is_on, edit);
        self.savepoints.note_written(&edited);
        edited
    }

    /// Edits a fork without spilling anything: where its nodes may be freed.
    #[inline]
    pub(super) fn edit_in_place<R>(
        &mut self,
        at: usize,
        edit: impl FnOnce(&mut Fork, &mut Context<'_>) -> Result<R>,
    ) -> Result<R> {
        self.edit_noting(at, false, edit)
    }

    #[inline]
    fn edit_noting<R>(
        &mut self,
        at: usize,
        notes: bool,
        edit: impl FnOnce(&mut Fork, &mut Context<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut cx = Context {
            core: &self.core,
            pool: &self.core.pool,
            slot: self.slot.as_ref().ok_or_else(no_slot)?,
            spare: &mut self.spare,
            scratch: &mut self.scratch,
            undo: notes.then_some(&mut self.savepoints.undo),
        };
        edit(&mut self.forks[at], &mut cx)
    }

    /// Appends an operation to the redo, unless none is kept.
    #[inline]
    pub(super) fn log(&mut self, op: Op<'_>) {
        self.wrote = true;
        if self.bulk {
            return;
        }
        redo::encode(&mut self.redo, op);
        self.look_at_redo();
    }

    /// After something was appended to the redo.
    #[inline]
    pub(super) fn look_at_redo(&mut self) {
        if self.redo.len() >= self.redo_step {
            self.redo_has_grown();
        }
    }

    #[cold]
    fn redo_has_grown(&mut self) {
        self.redo_step = self.redo.len() + REDO_STEP;
        self.charge_lists();
    }

    /// Writes an entry; true if there was one under this key.
    pub fn put(&mut self, tree: &Tree, key: Key<'_>, value: &[u8]) -> Result<bool> {
        Ok(self.write(tree, key, value, IfExists::Replace)? == Wrote::Replaced)
    }

    /// Writes an entry unless there is one under this key; false, and nothing
    /// is written, if there is.
    pub fn insert(&mut self, tree: &Tree, key: Key<'_>, value: &[u8]) -> Result<bool> {
        // The commit of a bulk transaction depends on all of each tree that it wrote to, so
        // that this answer stays where it writes.
        let is_bulk = self.bulk;
        if !is_bulk {
            self.check(tree, key)?;
            self.observe_always(tree, key, Aspect::Presence);
        }
        let wrote = self.write(tree, key, value, IfExists::Leave)?;
        if is_bulk && wrote == Wrote::Exists {
            self.observe_always(tree, key, Aspect::Presence);
        }
        Ok(wrote == Wrote::Inserted)
    }

    #[inline]
    fn write(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        value: &[u8],
        if_exists: IfExists,
    ) -> Result<Wrote> {
        self.check(tree, key)?;
        let at = self.fork(tree)?;
        let len = value.len();
        let wrote = match self.put_off(at, key, Change::Put { len, if_exists }) {
            Some(Step::Insert) => Wrote::Inserted,
            Some(Step::Replace) => Wrote::Replaced,
            Some(_) => Wrote::Exists,
            None => self.put_in(at, key, value, if_exists)?,
        };
        if wrote != Wrote::Exists {
            let tree = tree.id().0;
            self.log(Op::Put { tree, key, value });
        }
        Ok(wrote)
    }

    /// Writes an entry to a fork.
    #[inline]
    pub(super) fn put_in(
        &mut self,
        at: usize,
        key: Key<'_>,
        value: &[u8],
        if_exists: IfExists,
    ) -> Result<Wrote> {
        if value.len() > NODES_AT_ONCE * node::max_chunk(self.core.pool.page_size()) {
            return self.put_large(at, key, value, if_exists);
        }
        match self.edit(at, |fork, cx| fork.put(cx, key, value, if_exists))? {
            Wrote::Unnoted => {
                self.keep_nodes()?;
                self.edit(at, |fork, cx| fork.put(cx, key, value, if_exists))
            }
            wrote => Ok(wrote),
        }
    }

    /// Writes an entry whose value takes many nodes, with room made every few.
    #[cold]
    fn put_large(
        &mut self,
        at: usize,
        key: Key<'_>,
        value: &[u8],
        if_exists: IfExists,
    ) -> Result<Wrote> {
        if if_exists == IfExists::Leave && self.edit(at, |fork, cx| fork.holds(cx, key))? {
            return Ok(Wrote::Exists);
        }
        self.keep_nodes()?;
        let (start, rest) = overflow::split(self.core.pool.page_size(), key, value)?;
        let written = self.put_chunks(at, key, (start, rest));
        // Room for what is left may have been what there was not.
        self.savepoints.note_written(&written);
        written
    }

    fn put_chunks(
        &mut self,
        at: usize,
        key: Key<'_>,
        (start, rest): (&[u8], &[u8]),
    ) -> Result<Wrote> {
        let mut writer = overflow::Writer::new(rest);
        while self.edit(at, |fork, cx| {
            let mut steps = 0..NODES_AT_ONCE;
            steps.try_fold(true, |_, _| writer.step(fork, cx))
        })? {}
        self.edit(at, |fork, cx| {
            let reference = writer.reference(fork)?;
            fork.put_written(cx, key, &overflow::stored(&reference, start))
        })
    }

    /// Removes an entry; false if there was none.
    pub fn delete(&mut self, tree: &Tree, key: Key<'_>) -> Result<bool> {
        self.check(tree, key)?;
        self.observe(tree, key, Aspect::Presence);
        let at = self.fork(tree)?;
        let deleted = match self.put_off(at, key, Change::Deleted) {
            Some(step) => step == Step::Remove,
            None => self.delete_in(at, key)?,
        };
        if deleted {
            let tree = tree.id().0;
            self.log(Op::Delete { tree, key });
        }
        Ok(deleted)
    }

    /// Removes an entry from a fork.
    pub(super) fn delete_in(&mut self, at: usize, key: Key<'_>) -> Result<bool> {
        let mut removed = self.edit(at, |fork, cx| fork.delete(cx, key))?;
        if removed == Removed::Unnoted {
            self.keep_nodes()?;
            removed = self.edit(at, |fork, cx| fork.delete(cx, key))?;
        }
        Ok(removed == Removed::Yes)
    }

    /// Before what writes to several trees, all or none: fails as a write to this one would
    /// before it does anything.
    pub(crate) fn claim_to_write(&mut self, tree: &Tree) -> Result<()> {
        self.fork(tree).map(|_| ())
    }

    /// Makes a new, empty tree. Others see it when this transaction commits.
    pub fn create_tree(&mut self, kind: KeyKind) -> Result<Tree> {
        self.check_writes()?;
        self.need_snapshot();
        self.keep_nodes()?;
        let tree = self.core.new_tree(kind)?;
        if self.state == TxnState::Statement {
            let locked = self.lock_made(&tree);
            locked.inspect_err(|_| self.core.forget_tree(tree.id()))?;
        }
        let mut fork = self.new_fork(&tree, EMPTY);
        fork.created = true;
        fork.changed = true;
        self.forks.push(fork);
        let tree_number = tree.id().0;
        self.log(Op::Create {
            tree: tree_number,
            kind,
        });
        Ok(tree)
    }

    /// Removes a tree and everything in it. A named one goes together with its name by
    /// [`Store::drop_family`](crate::Store::drop_family); here the name stays, and stands for
    /// nothing until it is given anew.
    ///
    /// # Errors
    /// `Misuse` where the tree was dropped already, or holds the names of all others;
    /// what writing may fail with.
    pub fn drop_tree(&mut self, tree: &Tree) -> Result<()> {
        if tree.id() == NAMES {
            return Err(Error::misuse(
                "tree 0 holds the names of the families and is not dropped",
            ));
        }
        self.need_snapshot();
        self.keep_nodes()?;
        let at = self.fork(tree)?;
        let fork = &mut self.forks[at];
        fork.settle(&self.core.pool);
        if !fork.root.is_none() {
            let root = fork.root;
            fork.replaced.push(Dead::subtree(root, 0));
        }
        fork.root = ChildRef::NONE;
        fork.count = 0;
        fork.max_key = None;
        fork.dropped = true;
        let tree = tree.id().0;
        self.log(Op::Drop { tree });
        Ok(())
    }
}
