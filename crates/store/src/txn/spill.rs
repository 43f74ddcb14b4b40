//! Writing a transaction's nodes out before it commits, so that it may be far
//! larger than the cache.
//!
//! When a fork holds more than a quarter of the frames, its oldest unwritten
//! nodes go to free extents, leaves first, nodes with children or large values
//! once those are written. They are clean then and can be evicted; if one is edited again,
//! it is copied like any node that is on disk. The extents are registered as
//! belonging to no checkpoint until the fork is published, so a crash frees them.

use super::Txn;
use crate::cache::ChildRef;
use crate::checkpoint::writer;
use crate::error::Result;
use crate::node;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

impl Txn {
    /// Spills if the fork holds too much of the cache.
    #[inline]
    pub(super) fn make_room(&mut self, at: usize) -> Result<()> {
        let fork = &self.forks[at];
        if fork.own.len() - fork.spilled <= self.core.pool.frames.count() / 4 {
            return Ok(());
        }
        self.spill(at)
    }

    #[cold]
    fn spill(&mut self, at: usize) -> Result<()> {
        let core = self.core.clone();
        let pool = &core.pool;
        let fork = &mut self.forks[at];
        let unpublished = fork
            .published
            .get_or_insert_with(|| Arc::new(AtomicU64::new(u64::MAX)))
            .clone();
        let aim = pool.frames.count() / 8;
        let memo = fork.memo.map(|memo| memo.reference);
        let mut chosen: Vec<ChildRef> = Vec::with_capacity(aim);
        let mut passed_by = Vec::new();
        let mut waiting = std::mem::take(&mut fork.passed_by);
        while chosen.len() < aim && fork.spilled_to < fork.own.len() {
            let node = fork.own[fork.spilled_to];
            fork.spilled_to += 1;
            if pool.frames.holding(node.hint, node.reference).is_none() {
                continue;
            }
            // SAFETY: a private node (frames rule 2), and nothing borrows it.
            let keys = unsafe { pool.frames.keys(node.hint) };
            let is_bottom = node::is_leaf(keys)
                && (node::kind(keys) == Some(node::Kind::Overflow)
                    || writer::is_ready(&core, node));
            if Some(node.reference) == memo || !is_bottom {
                passed_by.push(node);
            } else {
                chosen.push(node);
            }
        }
        let written = writer::write_nodes(&core, &chosen, Some(&unpublished))?;
        fork.spilled += written;
        // Inner nodes come last: their children are on disk more often than not.
        waiting.append(&mut passed_by);
        if waiting.len() > aim {
            let (ready, rest): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|node| writer::is_ready(&core, *node));
            fork.spilled += writer::write_nodes(&core, &ready, Some(&unpublished))?;
            waiting = rest;
        }
        fork.passed_by = waiting;
        Ok(())
    }
}
