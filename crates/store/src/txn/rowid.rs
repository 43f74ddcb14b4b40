//! Numbers for rows inserted without a key.
//!
//! A lone writer gets what SQLite gives: the largest key plus one. A writer that
//! overlaps with others must not be given what one of them was given, though it
//! does not see it: each transaction that was given a number holds a *claim*
//! until it ends, and while there are claims the highest number given counts as
//! taken. When the last claim ends the tree's contents alone decide again, so a
//! rolled-back allocation is given back.

use crate::primitives::Mutex;

#[derive(Default)]
struct Claims {
    highest: i64,
    claims: u32,
}

/// The claims on one tree.
#[derive(Default)]
pub(crate) struct Rowids(Mutex<Claims>);

impl Rowids {
    /// The next number above `largest` (the largest key the caller sees, if any)
    /// and above those given to others; `first_claim` if the caller holds no
    /// claim yet. `None` when there is none.
    pub(crate) fn allocate(&self, largest: Option<i64>, first_claim: bool) -> Option<i64> {
        let mut claims = self.0.lock();
        let mut next = match largest {
            None => 1,
            Some(largest) => largest.checked_add(1)?,
        };
        let others = claims.claims - u32::from(!first_claim && claims.claims > 0);
        if others > 0 {
            next = next.max(claims.highest.checked_add(1)?);
        }
        claims.highest = next;
        claims.claims = others + 1;
        Some(next)
    }

    /// A transaction that was given numbers ended.
    pub(crate) fn release(&self) {
        let mut claims = self.0.lock();
        claims.claims = claims.claims.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_writer_sees_the_largest_plus_one() {
        let rowids = Rowids::default();
        assert_eq!(rowids.allocate(None, true), Some(1));
        assert_eq!(rowids.allocate(Some(1), false), Some(2));
        assert_eq!(rowids.allocate(Some(1), false), Some(2), "not inserted");
        rowids.release();
        assert_eq!(rowids.allocate(Some(1), true), Some(2), "given back");
        rowids.release();
        assert_eq!(rowids.allocate(Some(-5), true), Some(-4));
        rowids.release();
        assert_eq!(rowids.allocate(Some(i64::MAX), true), None);
    }

    #[test]
    fn overlapping_writers_get_different_numbers() {
        let rowids = Rowids::default();
        assert_eq!(rowids.allocate(Some(10), true), Some(11));
        assert_eq!(rowids.allocate(Some(10), true), Some(12));
        rowids.release();
        assert_eq!(
            rowids.allocate(Some(12), false),
            Some(13),
            "12 was committed"
        );
        rowids.release();
        assert_eq!(rowids.allocate(Some(13), true), Some(14));
    }
}
