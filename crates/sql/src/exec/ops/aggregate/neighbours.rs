//! DISTINCT over values of which equal ones come one after the other within their group: a
//! value counts where it differs from the one before it.

use crate::exec::batch::Selection;
use crate::exec::expr::Operand;
use crate::value::{Collation, Value, ValueRef, not_distinct};

/// See the module.
pub struct Neighbours {
    collation: Collation,
    /// The group and the value of the last row that counted.
    last: Option<(u32, Value)>,
}

impl Neighbours {
    /// No rows yet.
    pub fn new(collation: Collation) -> Self {
        Self {
            collation,
            last: None,
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.last = None;
    }

    /// Group `first` becomes group 0; those before it are done.
    pub fn keep_from(&mut self, first: usize) {
        let first = first as u32;
        self.last = self
            .last
            .take()
            .and_then(|(group, value)| Some((group.checked_sub(first)?, value)));
    }

    /// Those of the rows whose first argument differs from that of the row before, with the
    /// groups.
    pub fn fresh(
        &mut self,
        args: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &[u32],
    ) -> Vec<(u32, u32)> {
        let Some(arg) = args.first() else {
            return Vec::new();
        };
        let mut fresh = Vec::new();
        let mut groups = groups.iter();
        let last = self.last.take();
        let mut last: Option<(u32, ValueRef<'_>)> =
            last.as_ref().map(|(group, value)| (*group, value.as_ref()));
        selection.each(|row| {
            let group = groups.next().copied().unwrap_or(0);
            let value = arg.get(row);
            let is_same = last.is_some_and(|(of, before)| {
                of == group && not_distinct(before, value, self.collation)
            });
            if !is_same {
                last = Some((group, value));
                fresh.push((row as u32, group));
            }
        });
        self.last = last.map(|(group, value)| (group, value.to_value()));
        fresh
    }
}
