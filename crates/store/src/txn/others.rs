//! Whether others have committed, for who keeps what it once read (`PRAGMA data_version`).
//!
//! A number of a commit is its own context's, or another one's; those of a lease are its
//! context's, used or not. So all that is known of the numbers up to one is whether they
//! are the context's without a gap, from the last time it was asked on.

use super::{TxnContext, TxnState};
use crate::error::{Error, Result};

/// What a context knows of the commits of others.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Up to this one all are the context's own, or were counted.
    until: u64,
    /// How often there were others.
    count: u64,
}

impl Others {
    /// The context has committed, or may commit, under these numbers.
    #[inline]
    pub(super) fn note_own(&mut self, first: u64, last: u64) {
        if first <= self.until.saturating_add(1) {
            self.until = self.until.max(last);
        }
    }

    /// How often there were others, where these are the newest that are seen.
    fn count_to(&mut self, seen: u64) -> u64 {
        if seen > self.until {
            self.until = seen;
            self.count += 1;
        }
        self.count
    }
}

impl TxnContext {
    /// A number that is another one than the last time where somebody else has committed
    /// since, by the state that the transaction reads; not by what this context commits. Only
    /// those of one context are to be compared.
    ///
    /// # Errors
    /// `Misuse`, where no transaction is under way.
    pub fn others_commits(&mut self) -> Result<u64> {
        if self.state == TxnState::Idle {
            return Err(Error::misuse("no transaction is under way"));
        }
        self.need_snapshot();
        Ok(self.others.count_to(self.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::Others;

    /// A lease's numbers begin behind those of another context that committed meanwhile.
    #[test]
    fn own_numbers_count_only_where_none_is_missing_before_them() {
        let mut others = Others::default();
        assert_eq!(others.count_to(7), 1);
        others.note_own(8, 8);
        others.note_own(9, 72);
        assert_eq!(others.count_to(30), 1);
        assert_eq!(others.count_to(72), 1);
        others.note_own(74, 74);
        assert_eq!(others.count_to(74), 2);
        assert_eq!(others.count_to(74), 2);
    }
}
