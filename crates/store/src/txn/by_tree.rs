//! What a transaction keeps of each tree that it has touched, found by the tree.
//!
//! Most touch a few, and a look through the list finds these first. Of many that would take
//! time in the square of their number, so a table has their places.

use crate::tree::TreeId;
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};

/// So many are looked through.
const LOOKED_THROUGH: usize = 16;

/// Something that is kept of a tree.
pub(crate) trait OfTree {
    fn tree_id(&self) -> TreeId;
}

/// A list in the order in which trees were touched, with one entry of each.
pub(crate) struct ByTree<T> {
    list: Vec<T>,
    /// Where each is in the list, once that was longer than what is looked through.
    places: FxHashMap<TreeId, usize>,
}

impl<T> Default for ByTree<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            places: FxHashMap::default(),
        }
    }
}

impl<T: OfTree> ByTree<T> {
    /// Where that of a tree is.
    #[inline]
    pub(crate) fn find(&self, tree: TreeId) -> Option<usize> {
        match self.list.len() <= LOOKED_THROUGH {
            true => self.list.iter().position(|of| of.tree_id() == tree),
            false => self.places.get(&tree).copied(),
        }
    }

    /// Adds that of a tree which has none; its place.
    #[inline]
    pub(crate) fn push(&mut self, of: T) -> usize {
        let at = self.list.len();
        self.list.push(of);
        if at >= LOOKED_THROUGH || !self.places.is_empty() {
            self.note_places(at);
        }
        at
    }

    /// Takes out one; those behind it move up.
    pub(crate) fn remove(&mut self, at: usize) -> T {
        let removed = self.list.remove(at);
        if !self.places.is_empty() {
            self.places.remove(&removed.tree_id());
            self.note_places(at);
        }
        removed
    }

    /// Notes where those are that stand at this place or behind it, and all where none is
    /// noted yet.
    #[cold]
    fn note_places(&mut self, from: usize) {
        let from = if self.places.is_empty() { 0 } else { from };
        let list = self.list.iter().enumerate().skip(from);
        self.places.extend(list.map(|(at, of)| (of.tree_id(), at)));
    }

    /// Takes out all.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, T> {
        if !self.places.is_empty() {
            self.places = FxHashMap::default();
        }
        self.list.drain(..)
    }

    /// Empties the list, and lets go of what a long one took.
    #[inline]
    pub(crate) fn clear(&mut self) {
        drop(self.drain());
        self.list.shrink_to(LOOKED_THROUGH);
    }
}

impl<T> Deref for ByTree<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.list
    }
}

impl<T> DerefMut for ByTree<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.list
    }
}

#[cfg(test)]
mod tests {
    use super::{ByTree, LOOKED_THROUGH, OfTree};
    use crate::tree::TreeId;

    impl OfTree for u32 {
        fn tree_id(&self) -> TreeId {
            TreeId(*self)
        }
    }

    fn check(list: &ByTree<u32>, plain: &[u32]) {
        assert_eq!(**list, *plain);
        for tree in 0..100 {
            let place = plain.iter().position(|of| *of == tree);
            assert_eq!(list.find(TreeId(tree)), place, "tree {tree}");
        }
    }

    /// On both sides of where the table begins, and back over it and forth again.
    #[test]
    fn each_is_found_where_it_is() {
        let (mut list, mut plain) = (ByTree::default(), Vec::new());
        let many = 3 * LOOKED_THROUGH;
        for (round, left) in [0, LOOKED_THROUGH / 2, LOOKED_THROUGH, 1]
            .into_iter()
            .enumerate()
        {
            let mut trees = (round as u32..97).cycle().step_by(7);
            while plain.len() < many {
                let Some(tree) = trees.by_ref().find(|tree| !plain.contains(tree)) else {
                    break;
                };
                assert_eq!(list.push(tree), plain.len());
                plain.push(tree);
                check(&list, &plain);
            }
            while plain.len() > left {
                let at = plain.len() / 3;
                assert_eq!(list.remove(at), plain.remove(at));
                check(&list, &plain);
            }
        }
        list.clear();
        check(&list, &[]);
    }
}
