//! Large values in part: the start that lies beside the key, and ranges of the rest.
//!
//! To write a start anew leaves the rest where it is, in the file and in the log. The
//! commit depends on the value that was there, as it does on any that it writes over.

use super::redo::Op;
use super::{TxnContext, no_slot};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{self, Key};
use crate::tree::compare::Aspect;
use crate::tree::edit::{IfExists, NewStart};
use crate::tree::walk::Ahead;
use crate::tree::{Tree, overflow};
use std::ops::Range;

impl TxnContext {
    /// As [`get_into`](Self::get_into), but of a large value only what lies beside its key
    /// is copied, which is its start. How long the value is; `None` if there is none.
    #[inline]
    pub fn get_start_into(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        self.copy_start(tree, (key, Ahead::Slot), out)
    }

    /// As [`get_start_into`](Self::get_start_into), for an entry that is about to be changed.
    #[inline]
    pub fn get_start_to_change(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        self.copy_start(tree, (key, Ahead::Page), out)
    }

    #[inline]
    fn copy_start(
        &mut self,
        tree: &Tree,
        (key, ahead): (Key<'_>, Ahead),
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        out.clear();
        self.check(tree, key)?;
        self.observe(tree, key, Aspect::Entry);
        let found = self.look_up(tree, (key, ahead), |entry| {
            entry.map(|(value, is_overflow)| {
                out.extend_from_slice(value);
                is_overflow
            })
        })?;
        if found == Some(true) {
            let length = overflow::length(&self.core.pool, tree.id().0, out)?;
            out.drain(..node::OVERFLOW_REF);
            return Ok(Some(length));
        }
        Ok(found.map(|_| out.len()))
    }

    /// Appends bytes of the value under `key` to `out`: those that it has of the range. Of
    /// a large value no more is read than that takes. False if there is none.
    pub fn get_part(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        part: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        self.check(tree, key)?;
        self.observe(tree, key, Aspect::Entry);
        Ok(self.append_part(tree, key, part, out)?.is_some())
    }

    /// Appends bytes of a value; how long it is.
    fn append_part(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        part: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        let found = self.look_up(tree, (key, Ahead::Slot), |entry| {
            entry.map(|(value, is_overflow)| {
                if is_overflow {
                    stored.extend_from_slice(value);
                    return None;
                }
                let end = part.end.min(value.len());
                out.extend_from_slice(value.get(part.start..end).unwrap_or(&[]));
                Some(value.len())
            })
        });
        self.stored = stored;
        let found = found?;
        if found != Some(None) {
            return Ok(found.flatten());
        }
        let slot = self.slot.as_ref().ok_or_else(no_slot)?;
        let (pool, tree) = (&self.core.pool, tree.id().0);
        overflow::read_part(pool, slot, tree, &self.stored, part, out)?;
        overflow::length(pool, tree, &self.stored).map(Some)
    }

    /// Writes the value under `key` anew up to byte `until`: it is `start` and what it had
    /// from there on. False, and nothing is written, if there is none. Cheap where `until`
    /// is what [`get_start_into`](Self::get_start_into) copied, and `start` hardly longer:
    /// the rest is neither read nor written then.
    ///
    /// # Errors
    /// `Misuse` where the value is shorter than that; what writing may fail with.
    pub fn put_start(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        until: usize,
        start: &[u8],
    ) -> Result<bool> {
        self.check(tree, key)?;
        let at = self.fork(tree)?;
        self.write_put_off()?;
        if !self.put_start_in(at, key, until, start)? {
            self.observe(tree, key, Aspect::Presence);
            return Ok(false);
        }
        let tree = tree.id().0;
        let until = until as u64;
        self.log(Op::PutStart {
            tree,
            key,
            until,
            start,
        })?;
        Ok(true)
    }

    /// Writes the start of a value to a fork.
    pub(super) fn put_start_in(
        &mut self,
        at: usize,
        key: Key<'_>,
        until: usize,
        start: &[u8],
    ) -> Result<bool> {
        let mut put = self.edit(at, |fork, cx| fork.put_start(cx, key, until, start))?;
        if put == NewStart::Unnoted {
            self.keep_nodes()?;
            put = self.edit(at, |fork, cx| fork.put_start(cx, key, until, start))?;
        }
        match put {
            NewStart::Put => return Ok(true),
            NewStart::Absent => return Ok(false),
            NewStart::Elsewhere | NewStart::Unnoted => {}
        }
        let tree = self.forks[at].tree.clone();
        let mut whole = start.to_vec();
        let length = self.append_part(&tree, key, until..usize::MAX, &mut whole)?;
        if length.is_none_or(|length| length < until) {
            return Err(Error::new(
                ErrorKind::Misuse,
                format!("a value has no {until} bytes that could be replaced"),
            ));
        }
        self.put_in(at, key, &whole, IfExists::Replace)?;
        Ok(true)
    }
}
