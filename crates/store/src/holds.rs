//! Trees that explicit transactions hold until somebody asks for them.
//!
//! An explicit transaction begins with a snapshot, and a snapshot ends all leases
//! (`leases.rs`, rule 1). Yet most transactions touch few trees that nobody else touches
//! meanwhile. Where a context commits such ones, one after the other, it begins them
//! without a snapshot and *holds* what they touch: it has the writers' lock, shared, and
//! the writer lock of each tree, as a statement has, and commits as one, under a lease
//! if its context has one (`txn/hold.rs`).
//!
//! 1. What is held is noted in the context's lane, so that anybody can take it away:
//!    who needs one of the trees, or to be alone, *recalls* it. That ends all leases,
//!    pins the visible state for the transaction, in its own slot, and only then gives
//!    back all locks. The transaction is an optimistic one from then on, whose snapshot
//!    is of that moment: none of the trees that it touched has changed since it did.
//! 2. It does the same itself before it opens a cursor or takes any other lock, and
//!    where it cannot hold a tree that it comes to. So what it sees is the state of one
//!    moment, between its beginning and the last time that it came to a tree.
//! 3. Nobody waits for who holds. Locks are taken, noted and given back under the lane's
//!    lock, where whoever recalls looks after it closed the writers' lock. Who waits for
//!    a tree recalls only where it is held, since that ends all leases: it says that it
//!    waits, then looks; who takes hold says so, then looks whether anybody waits, and
//!    lets go where somebody does. One of the two sees the other.
//! 4. That a lane holds is also said beside its lock (`Lane::held`), no longer than until
//!    the first lock is given back: who read the newest version of a tree, and finds it
//!    said after that, has read one that nobody can have changed.
//! 5. Who holds only ever tries for a lock, and waits for nobody under the lane's. So it
//!    takes trees in any order.

use crate::cache::SlotId;
use crate::leases::{Lane, Occupancy};
use crate::primitives::atomic::{AtomicBool, Ordering::Release};
use crate::store::Core;
use crate::tree::{Tree, TreeId};

/// A transaction holds no more trees than this.
pub(crate) const TREES_MAX: usize = 8;

/// Who has the writers' lock, shared, for a transaction.
struct Holder {
    context: u64,
    /// The transaction's slot, which pins nothing.
    slot: SlotId,
}

/// What a lane's transaction holds. See the module's header.
#[derive(Default)]
pub(crate) struct Holding {
    holder: Option<Holder>,
    /// The trees whose writer lock it has.
    trees: Vec<Tree>,
    /// What was pinned for the transaction when it was recalled.
    pinned: Option<u64>,
    /// The trees that the last one held, which mostly are the next ones: a clone of a
    /// tree would write to a counter that all its users share.
    last: Vec<Tree>,
}

impl Holding {
    /// Whether nobody recalled it.
    pub(crate) fn is_held(&self) -> bool {
        self.holder.is_some()
    }

    /// The snapshot that was pinned for its transaction, told once.
    pub(crate) fn take_pinned(&mut self) -> Option<u64> {
        self.pinned.take()
    }

    /// Leaves all locks to the transaction, which is to give them back, and which
    /// nobody can recall any more: those of these trees, by ascending number. `None`
    /// where somebody did before.
    pub(crate) fn keep(&mut self, held: &AtomicBool) -> Option<&[Tree]> {
        self.holder.take()?;
        held.store(false, Release);
        self.trees.sort_unstable_by_key(Tree::id);
        self.trees.iter().for_each(|tree| tree.0.writer.keep());
        self.hold_no_more();
        Some(&self.last)
    }

    fn hold_no_more(&mut self) {
        self.last.clear();
        std::mem::swap(&mut self.trees, &mut self.last);
    }

    fn note(&mut self, tree: &Tree) {
        let same = |last: &Tree| last.id() == tree.id();
        let tree = match self.last.iter().position(same) {
            Some(at) => self.last.swap_remove(at),
            None => tree.clone(),
        };
        self.trees.push(tree);
    }
}

impl Core {
    /// Begins to hold, for a context's transaction; false where somebody is alone or
    /// about to be.
    pub(crate) fn begin_hold(
        &self,
        holding: &mut Holding,
        held: &AtomicBool,
        context: u64,
        slot: &SlotId,
    ) -> bool {
        debug_assert!(holding.holder.is_none() && holding.pinned.is_none());
        let begins = self.writers.try_lock_shared(context);
        if begins {
            let slot = slot.same();
            holding.holder = Some(Holder { context, slot });
            held.store(true, Release);
        }
        begins
    }

    /// Holds one more tree; false where somebody has it or waits for it, or where the
    /// hold was recalled.
    pub(crate) fn hold_tree(&self, holding: &mut Holding, tree: &Tree) -> bool {
        let Some(Holder { context, .. }) = holding.holder else {
            return false;
        };
        let writer = &tree.0.writer;
        if holding.trees.len() == TREES_MAX || !writer.try_hold(context) {
            return false;
        }
        if writer.is_awaited() {
            // SAFETY: just taken, and not noted.
            unsafe { writer.unlock_held() };
            return false;
        }
        holding.note(tree);
        true
    }

    /// Gives back what is held, if anything is.
    pub(crate) fn let_go(&self, holding: &mut Holding, held: &AtomicBool) {
        let Some(Holder { context, .. }) = holding.holder.take() else {
            return;
        };
        held.store(false, Release);
        for tree in &holding.trees {
            // SAFETY: taken when it was noted, and given back nowhere else.
            unsafe { tree.0.writer.unlock_held() };
        }
        holding.hold_no_more();
        // SAFETY: taken when the hold began, and given back nowhere else.
        unsafe { self.writers.unlock_shared(context) };
    }

    /// Lets go for a transaction that goes on, with a snapshot of this moment. For who
    /// has seen to it that no lease is open, and that none is opened meanwhile.
    fn pin_and_let_go(&self, holding: &mut Holding, held: &AtomicBool) {
        if let Some(Holder { slot, .. }) = &holding.holder {
            let seq = self.pool.readers.pin_in(slot, || self.visible());
            holding.pinned = Some(seq);
            self.let_go(holding, held);
        }
    }

    /// The same, for the transaction's own context.
    pub(crate) fn turn_to_snapshot(&self, lane: &Lane) {
        let _calm = self.calm();
        self.pin_and_let_go(&mut lane.occupancy.lock().holding, &lane.held);
    }

    /// Takes a tree away from the transaction that holds it, if one does; all that is
    /// held, where no tree is named.
    #[cold]
    pub(crate) fn recall(&self, tree: Option<TreeId>) {
        let calm = self.calm();
        for lane in calm.lanes() {
            let Occupancy { holding, .. } = &mut *lane.occupancy.lock();
            let is_among = |wanted: TreeId| holding.trees.iter().any(|tree| tree.id() == wanted);
            if tree.is_none_or(is_among) {
                self.pin_and_let_go(holding, &lane.held);
            }
        }
    }
}
