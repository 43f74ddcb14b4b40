//! DISTINCT within an aggregate call: by a set of the values that were there, or, where
//! equal values come one after the other, by the one before.

use super::neighbours::Neighbours;
use super::seen::{Place, Seen};
use crate::error::Result;
use crate::exec::batch::Selection;
use crate::exec::context::Context;
use crate::exec::expr::Operand;
use crate::exec::sorter::Sorter;
use crate::value::Collation;

/// See the module.
pub enum Distinct {
    /// By the value before.
    Neighbours(Neighbours),
    /// By a set.
    Seen(Box<Seen>),
}

impl Distinct {
    /// No rows yet. `in_order`: equal values of a group are neighbours.
    pub fn new(collation: Collation, in_order: bool) -> Self {
        match in_order {
            true => Distinct::Neighbours(Neighbours::new(collation)),
            false => Distinct::Seen(Box::new(Seen::new(collation))),
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        match self {
            Distinct::Neighbours(it) => it.clear(),
            Distinct::Seen(it) => it.clear(),
        }
    }

    /// Group `first` becomes group 0; those before it are done.
    pub fn keep_from(&mut self, first: usize) {
        match self {
            Distinct::Neighbours(it) => it.keep_from(first),
            Distinct::Seen(it) => it.keep_from(first),
        }
    }

    /// The rows that count, as far as that can be told now, with their groups: see
    /// [`Seen::fresh`].
    pub fn fresh<'p, 'r>(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
        place: Place<'_, 'p, 'r>,
        cx: &mut Context<'p, 'r>,
    ) -> Result<Vec<(u32, u32)>> {
        match self {
            Distinct::Neighbours(it) => Ok(it.fresh(args, selection, groups)),
            Distinct::Seen(it) => it.fresh(args, selection, groups, place, cx),
        }
    }

    /// The rows of a group that waited and count: see [`Seen::finish`].
    pub fn finish(&mut self, group: usize, cx: &mut Context<'_, '_>) -> Result<Option<Sorter>> {
        match self {
            Distinct::Neighbours(_) => Ok(None),
            Distinct::Seen(it) => it.finish(group, cx),
        }
    }
}
