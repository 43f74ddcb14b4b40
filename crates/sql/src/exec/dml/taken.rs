//! Which keys of a unique index are taken, while entries are kept back.
//!
//! A key is kept back, or in the index, or free. Of those kept back there are 31 bits of
//! hash each, in a table of fixed size: what is not in it is not kept back; what is may be,
//! and then all is made and the index asked. Of those in the index there is a Bloom filter,
//! as long as it is large enough: what is not in it need not be looked for on pages that
//! have been written out.

use std::hash::{BuildHasher, RandomState};

use crate::exec::memory::{Memory, Reservation};

/// Bits of the filter for each key, at least: one free key in five is looked for then.
const FILTER_BITS: usize = 4;
/// Bits that a key sets, all in one block of so many words.
const KEY_BITS: u32 = 4;
const BLOCK: usize = 8;
/// Hashes that there is room for, but a quarter, in no memory.
const HASHES_MIN: usize = 128;

/// See the module.
pub struct Taken {
    hasher: RandomState,
    /// Hashes, as many as there is room for but a quarter; 0 where there is none.
    kept: Vec<u32>,
    kept_count: usize,
    filter: Option<Filter>,
    _reservation: Reservation,
}

/// The keys in the index: a Bloom filter in blocks of a cache line.
struct Filter {
    words: Vec<u64>,
    count: usize,
}

impl Taken {
    /// In five eighths of `limit` bytes, of an index with nothing kept back and `count`
    /// entries. The caller adds them where there is a filter ([`Taken::filters`]): there is
    /// where it has room for twice as many.
    pub fn new(memory: &Memory, limit: usize, count: u64) -> Self {
        let hashes = (limit / 8 / size_of::<u32>()).max(HASHES_MIN);
        let hashes = 1 << hashes.ilog2();
        let words = (limit / 2 / size_of::<u64>()).max(BLOCK) / BLOCK * BLOCK;
        let has_room = usize::try_from(count).is_ok_and(|count| count <= capacity(words) / 2);
        let words = if has_room { words } else { 0 };
        let mut reservation = memory.reservation();
        reservation.force(hashes * size_of::<u32>() + words * size_of::<u64>());
        Self {
            hasher: RandomState::new(),
            kept: vec![0; hashes],
            kept_count: 0,
            filter: has_room.then(|| Filter {
                words: vec![0; words],
                count: 0,
            }),
            _reservation: reservation,
        }
    }

    /// What the other calls take for a key.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Whether the key may be kept back.
    pub fn may_be_kept(&self, hash: u64) -> bool {
        self.find(hash).is_err()
    }

    /// Whether there is room for so many more keys.
    pub fn has_room(&self, keys: usize) -> bool {
        self.kept_count.saturating_add(keys) < self.kept.len() / 4 * 3
    }

    /// The key is kept back. False: there is no room for more.
    pub fn keep(&mut self, hash: u64) -> bool {
        if let Ok(free) = self.find(hash)
            && let Some(slot) = self.kept.get_mut(free)
        {
            *slot = tag(hash);
            self.kept_count += 1;
        }
        self.has_room(0)
    }

    /// Nothing is kept back any more.
    pub fn clear_kept(&mut self) {
        self.kept.fill(0);
        self.kept_count = 0;
    }

    /// Whether the filter is there to be filled.
    pub fn filters(&self) -> bool {
        self.filter.is_some()
    }

    /// The key is in the index.
    pub fn add(&mut self, hash: u64) {
        if let Some(filter) = &mut self.filter {
            filter.add(hash);
            if filter.count > capacity(filter.words.len()) {
                self.filter = None;
            }
        }
    }

    /// Whether the key may be in the index.
    pub fn may_be_there(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.has(hash))
    }

    /// Where the hash is (an error), or would be. A quarter of all places is free.
    fn find(&self, hash: u64) -> Result<usize, usize> {
        let mask = self.kept.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.kept.get(at) {
                None | Some(0) => return Ok(at),
                Some(other) if *other == tag(hash) => return Err(at),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }
}

/// The upper bits of a hash, and not 0.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Keys that a filter of so many words is good for.
fn capacity(words: usize) -> usize {
    words * 64 / FILTER_BITS
}

impl Filter {
    /// The key's block, and what numbers its bits there.
    fn place(&self, hash: u64) -> (usize, u64) {
        let blocks = (self.words.len() / BLOCK) as u64;
        let block = ((hash >> 32) * blocks) >> 32;
        (block as usize, hash.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn add(&mut self, hash: u64) {
        let (block, bits) = self.place(hash);
        let range = block * BLOCK..(block + 1) * BLOCK;
        let words = self.words.get_mut(range).unwrap_or(&mut []);
        for (word, bit) in each_bit(bits) {
            if let Some(word) = words.get_mut(word) {
                *word |= bit;
            }
        }
        self.count += 1;
    }

    fn has(&self, hash: u64) -> bool {
        let (block, bits) = self.place(hash);
        let words = self
            .words
            .get(block * BLOCK..(block + 1) * BLOCK)
            .unwrap_or(&[]);
        each_bit(bits).all(|(word, bit)| words.get(word).is_some_and(|word| word & bit != 0))
    }
}

/// Words of a block and the bit in each that stand for a key.
fn each_bit(bits: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..KEY_BITS).map(move |i| {
        let bit = (bits >> (64 - 9 * (i + 1))) & 511;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;
    use std::sync::Arc;

    fn memory(limit: usize) -> Memory {
        Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), limit)
    }

    #[test]
    fn what_was_added_is_never_denied() {
        for limit in [0, 10_000, 1 << 20] {
            let mut taken = Taken::new(&memory(limit), limit, 0);
            let hashes: Vec<u64> = (0..40_000u64)
                .map(|i| taken.hash(&i.to_be_bytes()))
                .collect();
            for (i, hash) in hashes.iter().enumerate() {
                taken.add(*hash);
                assert!(
                    hashes[..=i]
                        .iter()
                        .rev()
                        .take(50)
                        .all(|hash| taken.may_be_there(*hash))
                );
            }
            assert!(
                hashes.iter().all(|hash| taken.may_be_there(*hash)),
                "{limit}"
            );
            let kept = hashes.iter().take_while(|hash| taken.keep(**hash)).count();
            assert!(kept > 50, "{kept}");
            assert!(hashes[..kept].iter().all(|hash| taken.may_be_kept(*hash)));
            taken.clear_kept();
            assert!(!hashes.iter().any(|hash| taken.may_be_kept(*hash)));
        }
    }

    #[test]
    fn most_of_what_was_not_added_is_denied() {
        let mut taken = Taken::new(&memory(1 << 20), 1 << 20, 0);
        let hash = |taken: &Taken, i: u64| taken.hash(&i.to_be_bytes());
        let capacity = capacity((1 << 20) / 2 / 8) as u64;
        for i in 0..capacity {
            taken.add(hash(&taken, i));
        }
        assert!(taken.filters());
        let others = (0..10_000).map(|i| hash(&taken, 1 << 40 | i));
        let wrong = others.filter(|hash| taken.may_be_there(*hash)).count();
        assert!(wrong < 2_500, "{wrong} of 10,000");
        taken.add(hash(&taken, capacity));
        assert!(!taken.filters() && taken.may_be_there(hash(&taken, 1 << 41)));
    }

    #[test]
    fn an_index_too_large_has_no_filter() {
        assert!(!Taken::new(&memory(1 << 20), 1 << 20, 1_000_000).filters());
    }
}
