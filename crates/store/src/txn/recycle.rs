//! Taking back at once what a commit replaced.
//!
//! Most nodes that a commit replaces were made since the last checkpoint, lie in
//! memory alone, and die without a snapshot that needs them. Their frames go
//! straight back to the context, which fills them with its next commit's nodes
//! while they are in the processor's caches, and no other context hears of it.
//!
//! 1. Before the commit lock, [`set_apart`](TxnContext::set_apart) picks the nodes whose
//!    frames hold their handles and that were born after every number that a
//!    checkpoint ever pinned.
//! 2. Under the commit lock that is still so, or they go to their trees' graves
//!    like all others. So no checkpoint wrote them, and none will, since those to
//!    come pin this commit or later: whoever counts dead extents misses nothing.
//! 3. When the commit is visible and the context's own pin is gone,
//!    [`recycle`](TxnContext::recycle) frees those in whose life no pin of a reader lies.
//!    A new reader pins this commit or later. The others go to their graves now.
//!
//! Under a lease (`leases.rs`) the lane's lock stands for the commit lock, and step 3
//! follows at once.

use super::TxnContext;
use super::forks::Forks;
use crate::pins::read_snapshots;
use crate::primitives::{IN_COMPANY, IN_COMPANY_ALONE};
use crate::reclaim::{Dead, MANY};
use crate::store::Core;
use crate::tree::TreeId;
use crate::tree::fork::Fork;

/// What a context sets apart; its memory is used again.
#[derive(Default)]
pub(super) struct Recycling {
    nodes: Vec<Dead>,
    /// The newest number of a checkpoint when they were picked.
    newest: u64,
    pins: Vec<u64>,
    /// Commits that leave all they replace to the graves.
    skip: u32,
}

/// Who may still ask for what a commit replaced, and has no pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// New readers, where the commit is not visible.
    IfVisible,
    /// Nobody: while its lease is open, no reader begins (`leases.rs`, rule 3).
    ByNobody,
}

impl Recycling {
    /// Whether snapshots are open, as far as it knows. Where one context writes at a time
    /// they mostly are those of transactions that were in the midst when it came to be its
    /// turn, and soon gone; to look for others costs little, since nobody else writes there.
    pub(super) fn is_in_company(&self, core: &Core) -> bool {
        let enough = match core.admission.limit() {
            Some(1) => IN_COMPANY - IN_COMPANY_ALONE,
            _ => 0,
        };
        self.skip > enough
    }

    /// The commit failed: what it would have replaced lives on.
    pub(super) fn forget(&mut self) {
        self.nodes.clear();
    }

    /// Whether no reader has a snapshot from `birth` on of what the commit of `seq` is
    /// about to change. For who lets none begin.
    pub(super) fn is_unseen(&mut self, core: &Core, birth: u64, seq: u64) -> bool {
        read_snapshots(core, &mut self.pins);
        if !self.pins.is_empty() {
            self.skip = IN_COMPANY;
        }
        !self.pins.iter().any(|pin| (birth..seq).contains(pin))
    }

    /// Step 2. Under the commit lock.
    #[inline]
    pub(super) fn keep_apart(&mut self, core: &Core, forks: &mut Forks) {
        if core.checkpoint_pins.newest() != self.newest {
            self.put_back(forks);
        }
    }

    #[cold]
    fn put_back(&mut self, forks: &mut Forks) {
        for dead in self.nodes.drain(..) {
            if let Some(at) = forks.find(TreeId(dead.tree)) {
                forks[at].replaced.push(dead);
            }
        }
    }
}

impl TxnContext {
    /// Step 1.
    pub(super) fn set_apart(&mut self) {
        let newest = self.core.checkpoint_pins.newest();
        let frames = &self.core.pool.frames;
        self.recycling.newest = newest;
        debug_assert!(self.recycling.nodes.is_empty(), "of an earlier commit");
        if self.recycling.is_in_company(&self.core) {
            self.recycling.skip -= 1;
            return;
        }
        let nodes = &mut self.recycling.nodes;
        let small = |fork: &&mut Fork| fork.changed && fork.replaced.len() <= MANY;
        for fork in self.forks.iter_mut().filter(small) {
            let tree = fork.tree.id().0;
            fork.replaced.retain(|dead| {
                let node = dead.node;
                let in_memory = node.is_handle() && !dead.subtree && dead.birth > newest;
                let apart = in_memory && frames.holding(node.hint(), node.reference).is_some();
                if apart {
                    nodes.push(Dead { tree, ..*dead });
                }
                !apart
            });
        }
    }

    /// Step 3, after the commit of `seq` was acknowledged, or has failed.
    pub(super) fn recycle(&mut self, seq: u64, seen: Seen) {
        let core = &*self.core;
        if self.recycling.nodes.is_empty() {
            return;
        }
        let may_free = match seen {
            Seen::IfVisible => seq <= core.visible(),
            Seen::ByNobody => true,
        };
        read_snapshots(core, &mut self.recycling.pins);
        if !self.recycling.pins.is_empty() {
            self.recycling.skip = IN_COMPANY;
        }
        let mut buried = 0;
        while let Some(dead) = self.recycling.nodes.pop() {
            let needed = |pin: &u64| (dead.birth..seq).contains(pin);
            if may_free && !self.recycling.pins.iter().any(needed) {
                let spare = &mut self.spare;
                let extent = core.pool.bury(dead.node, spare, &mut buried);
                debug_assert!(extent.is_none(), "a page that no checkpoint knows of");
            } else {
                self.leave(core, Dead { death: seq, ..dead });
            }
        }
        let forks = self.forks.iter_mut();
        let more = forks.fold(buried, |buried, fork| fork.set_off(buried));
        core.pool.note_buried(more);
    }

    /// Sends a node that somebody needs to its tree's graves after all; to those of
    /// all trees if its own is dropped, since nobody looks there for long.
    #[cold]
    fn leave(&self, core: &Core, dead: Dead) {
        let fork = self.fork_of(TreeId(dead.tree));
        if let Some(fork) = fork.map(|at| &self.forks[at]) {
            let mut graves = fork.tree.0.graves.lock();
            if !fork.tree.0.head().dropped {
                return graves.add(dead);
            }
        }
        core.lock_reclaim().keep(dead.birth, [dead].into_iter());
    }
}
