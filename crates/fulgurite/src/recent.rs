//! Statements that were compiled lately and are not in use.
//!
//! `execute`, `query_row` and the like compile their text each time, which takes longer
//! than to run a statement on one row. So a connection keeps the statements whose text
//! came before, once they are dropped, and gives one out again where compiling it would
//! give the same: while the schema is the one that it was compiled for and its tables
//! have about as many rows. Who prepares cannot tell, but by the time it takes.
//!
//! A text that comes once leaves a number behind, no more: programs that write values
//! into their texts keep nothing here.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use fulgurite_sql::session::Prepared;

/// Statements that are kept; the one used longest ago goes first.
const KEPT: usize = 16;
/// Texts that are remembered by number, a power of two.
const SEEN: usize = 64;
/// Longer texts are not looked for: to compile one takes long in any case.
const TEXT_MAX: usize = 4096;

/// See the module's header.
#[derive(Default)]
pub(crate) struct Recent {
    hasher: RandomState,
    inner: RefCell<Inner>,
}

struct Inner {
    seen: [u64; SEEN],
    kept: Vec<(u64, Box<Prepared>)>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            seen: [0; SEEN],
            kept: Vec::new(),
        }
    }
}

/// What is known of a text.
pub(crate) enum Known {
    /// It did not come lately.
    New,
    /// It came before; a statement that is as good as one compiled now, if there is one.
    Again(Option<Box<Prepared>>),
}

impl Recent {
    /// What is known of a text that is to be compiled, without blanks at its end.
    pub(crate) fn find(&self, sql: &str) -> Known {
        if sql.len() > TEXT_MAX {
            return Known::New;
        }
        let number = self.hasher.hash_one(sql);
        let mut inner = self.inner.borrow_mut();
        let Inner { seen, kept } = &mut *inner;
        let same = |(other, handle): &(u64, Box<Prepared>)| {
            *other == number && handle.sql().trim_ascii_end() == sql
        };
        if let Some(at) = kept.iter().rposition(same) {
            let (_, handle) = kept.remove(at);
            // One that is not current is dropped after this is free again.
            drop(inner);
            return Known::Again(Some(handle).filter(|handle| handle.is_current()));
        }
        let place = number as usize % SEEN;
        let before = std::mem::replace(&mut seen[place], number);
        match before == number {
            true => Known::Again(None),
            false => Known::New,
        }
    }

    /// Keeps a statement whose text came before.
    pub(crate) fn keep(&self, mut handle: Box<Prepared>) {
        handle.put_away();
        let number = self.hasher.hash_one(handle.sql().trim_ascii_end());
        let mut inner = self.inner.borrow_mut();
        let oldest = (inner.kept.len() == KEPT).then(|| inner.kept.remove(0));
        inner.kept.push((number, handle));
        drop(inner);
        drop(oldest);
    }

    /// Forgets all statements.
    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut self.inner.borrow_mut().kept);
        drop(kept);
    }
}
