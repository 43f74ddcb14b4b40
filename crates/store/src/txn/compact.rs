//! Making a store's file as short as what it holds.
//!
//! Checkpoints give back what is free at the file's end. What lives behind free space, and
//! pages that deletions left half empty, keep it long. Here
//!
//! 1. every tree is written anew: emptied and filled again in the order of its keys, in one
//!    transaction, so that its pages are full. Trees of few entries share one. After each
//!    there is a checkpoint, and what the old pages took is free for the next.
//! 2. Where there is no room for that in one piece, or all of it became no short file, the
//!    new pages go to the file's end, which leaves nothing below. Then 1 is done again.
//! 3. A checkpoint moves the dictionaries down, which stay for as long as their trees,
//!    writes the catalog and the free map below, and cuts the tail off.
//!
//! A transaction holds the writer locks of its trees, so their other writers wait; readers
//! and other trees' writers go on. Where any of it fails, what was done by then stays, and
//! every tree holds what it held. What open snapshots need is not moved: the file may stay
//! as long as it was until they end and this is called again, and nothing goes to its end.

use super::{TxnContext, TxnState};
use crate::checkpoint;
use crate::codec::UNIT;
use crate::error::{Error, ErrorKind, Result};
use crate::extents;
use crate::node::Key;
use crate::store::{Core, Store};
use crate::tree::cursor::Seek;
use crate::tree::{KeyKind, Tree};

/// Trees that share a transaction have no more entries together, and there are no more of
/// them.
const ENTRIES_TOGETHER: u64 = 10_000;
const TREES_TOGETHER: usize = 256;
/// A file is short enough where no more than this part of what lives is free, and so much
/// that has died is no matter.
const FREE_SHARE: u64 = 16;
/// Entries between two questions whether to go on.
const LOOK: u64 = 1_024;

impl Store {
    /// Makes the file as short as what it holds: [`TxnContext::compact`] by a context of
    /// its own.
    ///
    /// # Errors
    /// As that.
    pub fn compact(&self, goes_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        self.txn().compact(goes_on)
    }
}

impl TxnContext {
    /// Makes the file as short as what it holds: writes all trees anew, and gives back what
    /// is free then. How many bytes the file is shorter; `None` where `goes_on`, which is
    /// asked now and then, said no.
    ///
    /// Takes the time of writing all there is once, or two or three times where free space
    /// is short or scattered: the file grows by as much as it holds then before it shrinks.
    /// Writers of a tree wait while it is written. A store in memory has no file.
    ///
    /// # Errors
    /// `Busy` where a tree's writers did not end in time; `Misuse` within a transaction;
    /// `ReadOnly`; what writing and checkpoints may fail with. All trees hold what they
    /// held then, as where it is told to stop, and the file may be shorter or longer than it
    /// was, until this is called again.
    pub fn compact(&mut self, mut goes_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        if self.state != TxnState::Idle {
            return Err(Error::misuse("a store is not compacted in a transaction"));
        }
        self.store.check_writable()?;
        let core = self.core.clone();
        if core.path.is_none() {
            return Ok(Some(0));
        }
        checkpoint::run(&core)?;
        let before = length(&core);
        let shorter = || Ok(Some(before.saturating_sub(length(&core))));
        if has_room_below(&core) {
            if !self.write_groups(&mut goes_on)? {
                return Ok(None);
            }
            checkpoint::run_moving_down(&core)?;
            if is_short(&core) {
                return shorter();
            }
        }
        if is_pinned(&core) {
            return shorter();
        }
        let at_end = core.space.write_at_end(gap(&core));
        if !self.write_groups(&mut goes_on)? {
            return Ok(None);
        }
        drop(at_end);
        // So that nothing divides what is free below.
        checkpoint::run_moving_down(&core)?;
        if !is_pinned(&core) && !self.write_groups(&mut goes_on)? {
            return Ok(None);
        }
        checkpoint::run_moving_down(&core)?;
        shorter()
    }

    /// Writes all trees anew, with a checkpoint after each group; false where it was told to
    /// stop.
    fn write_groups(&mut self, goes_on: &mut impl FnMut() -> bool) -> Result<bool> {
        let core = self.core.clone();
        for group in groups(&core) {
            if !self.write_anew(&group, goes_on)? {
                return Ok(false);
            }
            checkpoint::run(&core)?;
        }
        Ok(true)
    }

    /// Writes trees anew; false where it was told to stop, and they are as they were.
    fn write_anew(&mut self, group: &[Tree], goes_on: &mut impl FnMut() -> bool) -> Result<bool> {
        loop {
            let there: Vec<&Tree> = group.iter().filter(|tree| is_there(tree)).collect();
            let written = self.write_all(&there, goes_on);
            self.rollback();
            match written {
                // One that was dropped meanwhile.
                Err(error)
                    if error.kind() == ErrorKind::Misuse
                        && !there.iter().all(|tree| is_there(tree)) => {}
                written => return written,
            }
        }
    }

    fn write_all(&mut self, trees: &[&Tree], goes_on: &mut impl FnMut() -> bool) -> Result<bool> {
        self.begin_statement(trees)?;
        for tree in trees {
            if !self.empty_and_fill(tree, goes_on)? {
                return Ok(false);
            }
        }
        self.commit()?;
        Ok(true)
    }

    fn empty_and_fill(&mut self, tree: &Tree, goes_on: &mut impl FnMut() -> bool) -> Result<bool> {
        // As the tree is now, whatever is written later.
        let mut entries = self.cursor_to_estimate(tree)?;
        let mut more = entries.seek(Seek::First)?;
        if more && self.clear(tree, &mut *goes_on)?.is_none() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        let mut until_look = LOOK;
        let mut written = self.append(tree);
        while more {
            let key = match tree.kind() {
                KeyKind::Int => Key::Int(entries.key_int()),
                KeyKind::Bytes => {
                    bytes.clear();
                    bytes.extend_from_slice(entries.key_bytes()?);
                    Key::Bytes(&bytes)
                }
            };
            written.insert(key, entries.value()?)?;
            until_look -= 1;
            if until_look == 0 {
                if !goes_on() {
                    return Ok(false);
                }
                until_look = LOOK;
            }
            more = entries.next()?;
        }
        written.finish()?;
        Ok(true)
    }
}

/// All trees, those that share a transaction together.
fn groups(core: &Core) -> Vec<Vec<Tree>> {
    let mut groups: Vec<Vec<Tree>> = Vec::new();
    let mut entries = 0;
    for tree in core.all_trees() {
        let Some(head) = tree.0.versions.head() else {
            continue;
        };
        entries += head.count;
        match groups.last_mut() {
            Some(group) if entries <= ENTRIES_TOGETHER && group.len() < TREES_TOGETHER => {
                group.push(tree);
            }
            _ => {
                entries = head.count;
                groups.push(vec![tree]);
            }
        }
    }
    groups
}

/// Whether somebody who begins now finds the tree.
fn is_there(tree: &Tree) -> bool {
    tree.0.versions.head().is_some_and(|head| !head.dropped)
}

/// The file's length in bytes.
fn length(core: &Core) -> u64 {
    core.space.lock().map.end() * UNIT as u64
}

/// Whether all that lives finds room in the long free runs.
fn has_room_below(core: &Core) -> bool {
    let space = core.space.lock();
    let long = space.map.runs().filter(|run| run.len >= extents::LONG);
    let room: u64 = long.map(|run| run.len).sum();
    room >= space.map.end() - space.map.free_units()
}

/// Whether snapshots need much of what has died.
fn is_pinned(core: &Core) -> bool {
    let dead = core.lock_reclaim().dead_extents(core, u64::MAX);
    let dead: u64 = dead.iter().map(|extent| u64::from(extent.units())).sum();
    let space = core.space.lock();
    dead > (space.map.end() - space.map.free_units()) / FREE_SHARE
}

/// What is left free below the end: room for what does not move, and for what does not fit
/// where that divides the rest.
fn gap(core: &Core) -> u64 {
    let space = core.space.lock();
    extents::LONG + (space.map.end() - space.map.free_units()) / FREE_SHARE
}

/// Whether hardly anything of the file is free.
fn is_short(core: &Core) -> bool {
    let space = core.space.lock();
    let free = space.map.free_units();
    free <= (space.map.end() - free) / FREE_SHARE
}
