//! Left rows that have a partner, or have none: what comes from the left side is narrowed,
//! as a filter does, and no value is copied.

use super::{HashJoin, keys};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::expr::{Row, condition};
use crate::exec::hash::NONE;
use crate::plan::physical::JoinKind;

impl HashJoin {
    /// Whether one right row of a key says as much as all.
    pub(super) fn needs_one(&self) -> bool {
        self.spec.kind.takes_one() && self.spec.condition.is_none()
    }

    /// The next left rows that count; false at the end.
    pub(super) fn next_semi(
        &mut self,
        cx: &mut Context<'_, '_>,
        mut want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        while self.left.next(cx, want, out)? {
            cx.run.check_interrupt()?;
            let (spec, selection) = (&self.spec, out.selection());
            let left = keys(&spec.left_keys, &spec.comparisons, out, selection, cx)?;
            self.table.find(&left, selection, &mut self.groups);
            drop(left);
            let mut kept = cx.run.rows();
            let mut groups = self.groups.iter();
            let with_partner = spec.kind == JoinKind::Semi;
            let outcome = out.selection().try_each(|row| {
                let group = groups.next().copied().unwrap_or(NONE);
                if self.has_partner(out, row, group, cx)? == with_partner {
                    kept.push(row as u32);
                }
                Ok(())
            });
            out.select(&mut kept);
            cx.run.recycle_rows(kept);
            if let Err(error) = outcome {
                return self.delayed.after(out.len(), error);
            }
            if !out.is_empty() {
                return Ok(true);
            }
            // Whoever finds nothing looks at more at once.
            want = want.saturating_mul(4);
        }
        Ok(false)
    }

    /// Whether a right row among those of a key makes a pair with a left row.
    fn has_partner(
        &self,
        left: &Batch,
        row: usize,
        group: u32,
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        let mut candidate = self.heads.get(group as usize).map_or(NONE, |h| h.0);
        let Some(test) = &self.spec.condition else {
            return Ok(candidate != NONE);
        };
        while let Some(next) = self.chain.get(candidate as usize) {
            let pair = Row::Pair(left, row, &self.built, candidate as usize);
            if condition(test, pair, cx)? == Some(true) {
                return Ok(true);
            }
            candidate = *next;
        }
        Ok(false)
    }
}

/// Leaves of some rows and their groups those that are the first of a group; so many groups
/// had rows before.
pub(super) fn keep_first(mut known: usize, rows: &mut Vec<u32>, groups: &mut Vec<u32>) {
    let mut next = groups.iter();
    let first = known as u32;
    rows.retain(|_| {
        let is_first = next.next().is_some_and(|group| *group == known as u32);
        known += usize::from(is_first);
        is_first
    });
    groups.clear();
    groups.extend(first..known as u32);
}
