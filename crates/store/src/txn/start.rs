//! Large values in part: the start that lies beside the key, and ranges of the rest.
//!
//! To write a start or a range anew leaves all else where it is, and out of the log. The
//! commit depends on the value that was there, as it does on any that it writes over.

use super::redo::Op;
use super::{TxnContext, no_slot};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{self, Key};
use crate::tree::compare::Aspect;
use crate::tree::edit::{IfExists, NewPart};
use crate::tree::walk::Ahead;
use crate::tree::{Tree, overflow};
use std::ops::Range;

/// Bytes of a large value that are written in one go.
const PART_AT_ONCE: usize = 32 << 10;

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
        key: (Key<'_>, Ahead),
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let found = self.copy_stored(tree, key, out)?;
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
        match found? {
            None => return Ok(None),
            Some(Some(length)) => return Ok(Some(length)),
            Some(None) => {}
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
        let put = self.put_start_in(at, key, until, start);
        if !put.inspect_err(|error| self.observe_refused(tree, key, error))? {
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
        });
        Ok(true)
    }

    /// Writes bytes of the value under `key` anew, from byte `from` on; false, and nothing
    /// is written, if there is none. Of a large value that takes time and room for the bytes
    /// written, and the pages they lie in.
    ///
    /// # Errors
    /// `Misuse` where the value ends before; what writing may fail with.
    pub fn put_part(
        &mut self,
        tree: &Tree,
        key: Key<'_>,
        from: usize,
        bytes: &[u8],
    ) -> Result<bool> {
        self.check(tree, key)?;
        let at = self.fork(tree)?;
        self.write_put_off()?;
        let put = self.put_part_in(at, key, from, bytes);
        if !put.inspect_err(|error| self.observe_refused(tree, key, error))? {
            self.observe(tree, key, Aspect::Presence);
            return Ok(false);
        }
        let tree = tree.id().0;
        let from = from as u64;
        self.log(Op::PutPart {
            tree,
            key,
            from,
            bytes,
        });
        Ok(true)
    }

    /// That a value is shorter than was asked for tells of it, and nothing is written that
    /// would be validated in its place.
    fn observe_refused(&self, tree: &Tree, key: Key<'_>, error: &Error) {
        if error.kind() == ErrorKind::Misuse {
            self.observe(tree, key, Aspect::Entry);
        }
    }

    /// Writes bytes of a value to a fork, with room made every few chunks.
    pub(super) fn put_part_in(
        &mut self,
        at: usize,
        key: Key<'_>,
        from: usize,
        bytes: &[u8],
    ) -> Result<bool> {
        let tree = self.forks[at].tree.clone();
        let length = self.append_part(&tree, key, 0..0, &mut Vec::new())?;
        let Some(length) = length else {
            return Ok(false);
        };
        if from.saturating_add(bytes.len()) > length {
            return Err(Error::new(
                ErrorKind::Misuse,
                format!(
                    "a value of {length} bytes has none at {from} and behind that could be replaced by {}",
                    bytes.len()
                ),
            ));
        }
        let put = self.put_parts_in(at, (&tree, key), from, bytes);
        self.savepoints.note_written(&put);
        put.map(|()| true)
    }

    fn put_parts_in(
        &mut self,
        at: usize,
        (tree, key): (&Tree, Key<'_>),
        mut from: usize,
        bytes: &[u8],
    ) -> Result<()> {
        for part in bytes.chunks(PART_AT_ONCE) {
            let mut put = self.edit(at, |fork, cx| fork.put_part(cx, key, from, part))?;
            if put == NewPart::Unnoted {
                self.keep_nodes()?;
                put = self.edit(at, |fork, cx| fork.put_part(cx, key, from, part))?;
            }
            if put != NewPart::Put {
                let mut whole = Vec::new();
                self.append_part(tree, key, 0..usize::MAX, &mut whole)?;
                whole[from..from + part.len()].copy_from_slice(part);
                self.put_in(at, key, &whole, IfExists::Replace)?;
            }
            from += part.len();
        }
        Ok(())
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
        if put == NewPart::Unnoted {
            self.keep_nodes()?;
            put = self.edit(at, |fork, cx| fork.put_start(cx, key, until, start))?;
        }
        match put {
            NewPart::Put => return Ok(true),
            NewPart::Absent => return Ok(false),
            NewPart::Elsewhere | NewPart::Unnoted => {}
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
