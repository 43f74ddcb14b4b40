//! Which rows of a join's right side have found a partner: a bit for each.

use crate::exec::memory::{Held, Memory};

/// See the module.
#[derive(Default)]
pub struct Marks {
    words: Vec<u64>,
    held: Held,
}

impl Marks {
    /// Marks the row of this number. What it takes, an eighth of a byte a row, can neither
    /// be refused nor spilled.
    #[inline]
    pub fn set(&mut self, row: u64, memory: &Memory) {
        let at = (row / 64) as usize;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
            self.held.force(memory, self.words.capacity() * 8);
        }
        if let Some(word) = self.words.get_mut(at) {
            *word |= 1 << (row % 64);
        }
    }

    /// Is it marked?
    #[inline]
    pub fn is_set(&self, row: u64) -> bool {
        let word = self.words.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.words = Vec::new();
        self.held.release();
    }
}
