//! Trees that explicit transactions hold until somebody asks for them.
//!
//! An explicit transaction begins with a snapshot, and a snapshot ends all leases
//! (`leases.rs`, rule 1). Yet most transactions touch one tree that nobody else touches
//! meanwhile. Where a context commits such ones, one after the other, it begins them
//! without a snapshot and *holds* the first tree they touch: it has the writers' lock,
//! shared, and the tree's writer lock, as a statement has, and commits as one, under a
//! lease if its context has one (`txn/hold.rs`).
//!
//! 1. What is held is noted in the context's lane, so that anybody can take it away:
//!    who needs the tree, or to be alone, *recalls* it. That ends all leases, pins the
//!    visible state for the transaction, in its own slot, and only then gives back both
//!    locks. The transaction is an optimistic one from then on, whose snapshot is of
//!    that moment: the one tree that it touched has not changed since it did.
//! 2. It does the same itself before it touches another tree, opens a cursor or takes
//!    any other lock. So a snapshot lies somewhere between the beginning of its
//!    transaction and the moment when a second tree is touched.
//! 3. Nobody waits for who holds. Both locks are taken, noted and given back under the
//!    lane's lock, where whoever recalls looks after it closed the writers' lock. Who
//!    waits for a tree recalls only where it is held, since that ends all leases: it
//!    says that it waits, then looks; who takes hold says so, then looks whether anybody
//!    waits, and lets go where somebody does. One of the two sees the other.
//! 4. Who holds only ever tries for either lock, and waits for nobody under the lane's.

use crate::cache::SlotId;
use crate::leases::{Lane, Occupancy};
use crate::store::Core;
use crate::tree::{Tree, TreeId};

/// What a transaction holds. See the module's header.
pub(crate) struct Hold {
    tree: Tree,
    context: u64,
    /// The transaction's slot, which pins nothing.
    slot: SlotId,
}

/// A lane's part in this.
#[derive(Default)]
pub(crate) struct Holding {
    hold: Option<Hold>,
    /// What was pinned for the transaction when its hold was recalled.
    pinned: Option<u64>,
    /// The tree that was held last, which mostly is the next one: a clone of a tree
    /// would write to a counter that all its users share.
    last: Option<Tree>,
}

impl Holding {
    /// Leaves both locks to the transaction, which is to give them back, and which
    /// nobody can recall any more. `None` where somebody did before.
    pub(crate) fn keep(&mut self) -> Option<&Tree> {
        let hold = self.hold.take()?;
        hold.tree.0.writer.keep();
        Some(self.last.insert(hold.tree))
    }

    /// The snapshot that was pinned for its transaction, told once.
    pub(crate) fn take_pinned(&mut self) -> Option<u64> {
        self.pinned.take()
    }

    fn name(&mut self, tree: &Tree) -> Tree {
        match self.last.take() {
            Some(last) if last.id() == tree.id() => last,
            _ => tree.clone(),
        }
    }
}

impl Core {
    /// Takes hold of a tree for a context's transaction; false where somebody has the
    /// tree, waits for it, or is alone or about to be.
    pub(crate) fn take_hold(
        &self,
        holding: &mut Holding,
        tree: &Tree,
        context: u64,
        slot: &SlotId,
    ) -> bool {
        debug_assert!(holding.hold.is_none() && holding.pinned.is_none());
        if !self.writers.try_lock_shared(context) {
            return false;
        }
        if !tree.0.writer.try_hold(context) {
            // SAFETY: taken above.
            unsafe { self.writers.unlock_shared(context) };
            return false;
        }
        holding.hold = Some(Hold {
            tree: holding.name(tree),
            context,
            slot: slot.same(),
        });
        let is_awaited = tree.0.writer.is_awaited();
        if is_awaited {
            self.let_go(holding);
        }
        !is_awaited
    }

    /// Gives back what is held, if anything is.
    pub(crate) fn let_go(&self, holding: &mut Holding) {
        let Some(Hold { tree, context, .. }) = holding.hold.take() else {
            return;
        };
        // SAFETY: who holds has taken both, and gives them back through here alone.
        unsafe {
            tree.0.writer.unlock_held();
            self.writers.unlock_shared(context);
        }
        holding.last = Some(tree);
    }

    /// Lets go for a transaction that goes on, with a snapshot of this moment. For who
    /// has seen to it that no lease is open, and that none is opened meanwhile.
    fn pin_and_let_go(&self, holding: &mut Holding) {
        if let Some(hold) = &holding.hold {
            let seq = self.pool.readers.pin_in(&hold.slot, || self.visible());
            holding.pinned = Some(seq);
            self.let_go(holding);
        }
    }

    /// The same, for the transaction's own context.
    pub(crate) fn turn_to_snapshot(&self, lane: &Lane) {
        let _calm = self.calm();
        self.pin_and_let_go(&mut lane.occupancy.lock().holding);
    }

    /// Takes a tree away from the transaction that holds it, if one does; every tree,
    /// where none is named.
    #[cold]
    pub(crate) fn recall(&self, tree: Option<TreeId>) {
        let calm = self.calm();
        for lane in calm.lanes() {
            let Occupancy { holding, .. } = &mut *lane.occupancy.lock();
            let wanted = |hold: &Hold| tree.is_none_or(|tree| hold.tree.id() == tree);
            if holding.hold.as_ref().is_some_and(wanted) {
                self.pin_and_let_go(holding);
            }
        }
    }
}
