//! A set of keys on disk, for what a hash table has no room for but must be told apart at
//! once.
//!
//! The keys lie one behind the other in a temporary file; another one is a hash table of
//! their places, in pages of slots. A key's page is told by the first bits of its hash; a
//! full page goes on in the next. When the pages are well filled, a table of twice as many
//! takes their place. A few pages are kept in memory.

use crate::error::Result;
use crate::exec::hash::hash_value;
use crate::exec::memory::{Memory, Reservation, TempFile};
use crate::value::{Collation, ValueRef};

/// Small, since as much is read and written for most keys.
const PAGE_BYTES: usize = 1024;
/// Hash (0: free), place and length of a key.
const SLOT_BYTES: usize = 24;
const PAGE_SLOTS: usize = PAGE_BYTES / SLOT_BYTES;
/// Slots of a page that are in use on the average when the table grows.
const FILLED: u64 = 25;
/// The bits of a hash that tell its page in a new set.
const BITS_FIRST: u32 = 6;
/// Pages that are kept in memory.
const CACHED_PAGES: usize = 256;
/// Bytes of keys that are written at once.
const TAIL_BYTES: usize = 64 << 10;

#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    place: u64,
    length: u64,
}

/// See the module.
pub struct DiskSet {
    memory: Memory,
    keys: TempFile,
    /// Where the keys in `tail` will lie, those not written yet.
    tail_start: u64,
    tail: Vec<u8>,
    table: Table,
    count: u64,
    /// A key that is compared.
    buffer: Vec<u8>,
    _reserved: Reservation,
}

struct Table {
    file: TempFile,
    bits: u32,
    cache: Vec<Page>,
}

struct Page {
    number: u64,
    changed: bool,
    bytes: Vec<u8>,
}

impl DiskSet {
    /// An empty one.
    pub fn new(memory: &Memory) -> Result<Self> {
        let mut reserved = memory.reservation();
        reserved.force(CACHED_PAGES * PAGE_BYTES + TAIL_BYTES);
        Ok(Self {
            memory: memory.clone(),
            keys: memory.temp_file()?,
            tail_start: 0,
            tail: Vec::new(),
            table: Table::new(memory, BITS_FIRST)?,
            count: 0,
            buffer: Vec::new(),
            _reserved: reserved,
        })
    }

    /// Adds a key; false: it is there already.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool> {
        // Never 0, which is a free slot's.
        let hash = hash_value(0, ValueRef::Blob(key), Collation::Binary) | 1;
        let mut number = self.table.page_of(hash);
        loop {
            let (found, full) = self.look_for(key, hash, number)?;
            if found {
                return Ok(false);
            }
            if !full {
                break;
            }
            number = self.table.behind(number);
        }
        if self.count >= self.table.pages() * FILLED {
            self.grow()?;
        }
        let slot = Slot {
            hash,
            place: self.tail_start + self.tail.len() as u64,
            length: key.len() as u64,
        };
        self.table.add(slot)?;
        self.tail.extend_from_slice(key);
        if self.tail.len() >= TAIL_BYTES {
            self.tail_start = self.keys.append(&self.tail)? + self.tail.len() as u64;
            self.tail.clear();
            self.tail.shrink_to(TAIL_BYTES);
        }
        self.count += 1;
        Ok(true)
    }

    /// Whether a page has the key, and whether it is full.
    fn look_for(&mut self, key: &[u8], hash: u64, number: u64) -> Result<(bool, bool)> {
        let mut from = 0;
        loop {
            let Some((at, slot)) = self.table.page(number)?.seek(hash, from) else {
                return Ok((false, true));
            };
            if slot.hash == 0 {
                return Ok((false, false));
            }
            if slot.length == key.len() as u64 && self.is_key(slot, key)? {
                return Ok((true, false));
            }
            from = at + 1;
        }
    }

    fn is_key(&mut self, slot: Slot, key: &[u8]) -> Result<bool> {
        if let Some(start) = slot.place.checked_sub(self.tail_start) {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            let rest = self.tail.get(start..).unwrap_or(&[]);
            return Ok(rest.get(..key.len()) == Some(key));
        }
        self.buffer.resize(key.len(), 0);
        self.keys.read(&mut self.buffer, slot.place)?;
        Ok(self.buffer == key)
    }

    /// Twice as many pages.
    fn grow(&mut self) -> Result<()> {
        let mut larger = Table::new(&self.memory, self.table.bits + 1)?;
        for number in 0..self.table.pages() {
            for at in 0..PAGE_SLOTS {
                let slot = self.table.page(number)?.slot(at);
                if slot.hash == 0 {
                    break;
                }
                larger.add(slot)?;
            }
        }
        self.table = larger;
        Ok(())
    }
}

impl Table {
    fn new(memory: &Memory, bits: u32) -> Result<Self> {
        let file = memory.temp_file()?;
        let zeros = vec![0; PAGE_BYTES << BITS_FIRST];
        for _ in 0..1u64 << bits.saturating_sub(BITS_FIRST) {
            file.append(&zeros)?;
        }
        Ok(Self {
            file,
            bits,
            cache: Vec::new(),
        })
    }

    fn pages(&self) -> u64 {
        1 << self.bits
    }

    fn page_of(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - self.bits)
    }

    fn behind(&self, number: u64) -> u64 {
        (number + 1) & (self.pages() - 1)
    }

    /// Puts a slot into the first page with room.
    fn add(&mut self, slot: Slot) -> Result<()> {
        let mut number = self.page_of(slot.hash);
        loop {
            let page = self.page(number)?;
            if let Some((at, _)) = page.seek(0, 0) {
                page.set_slot(at, slot);
                return Ok(());
            }
            number = self.behind(number);
        }
    }

    /// A page, read if it is not in memory.
    fn page(&mut self, number: u64) -> Result<&mut Page> {
        let at = (number % CACHED_PAGES as u64) as usize;
        while self.cache.len() <= at {
            self.cache.push(Page {
                number: u64::MAX,
                changed: false,
                bytes: Vec::new(),
            });
        }
        let page = &mut self.cache[at];
        if page.number != number {
            if page.changed {
                self.file
                    .write(&page.bytes, page.number * PAGE_BYTES as u64)?;
                page.changed = false;
            }
            page.number = u64::MAX;
            page.bytes.resize(PAGE_BYTES, 0);
            self.file
                .read(&mut page.bytes, number * PAGE_BYTES as u64)?;
            page.number = number;
        }
        Ok(page)
    }
}

impl Page {
    fn word(&self, place: usize) -> u64 {
        let bytes = self.bytes.get(place..place + 8).unwrap_or(&[0; 8]);
        u64::from_le_bytes(bytes.try_into().unwrap_or_default())
    }

    fn slot(&self, at: usize) -> Slot {
        let start = at * SLOT_BYTES;
        Slot {
            hash: self.word(start),
            place: self.word(start + 8),
            length: self.word(start + 16),
        }
    }

    /// The next slot that is free or has this hash.
    fn seek(&self, hash: u64, from: usize) -> Option<(usize, Slot)> {
        let is_it = |at: &usize| {
            let found = self.word(at * SLOT_BYTES);
            found == 0 || found == hash
        };
        let at = (from..PAGE_SLOTS).find(is_it)?;
        Some((at, self.slot(at)))
    }

    fn set_slot(&mut self, at: usize, slot: Slot) {
        let start = at * SLOT_BYTES;
        let words = [slot.hash, slot.place, slot.length];
        let place = self.bytes.get_mut(start..start + SLOT_BYTES);
        for (to, word) in place.unwrap_or_default().chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn each_key_is_new_once() {
        let memory = Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), 1000);
        let mut set = DiskSet::new(&memory).unwrap();
        for round in 0..3 {
            for i in 0..30_000u32 {
                let key = format!("{}{i}", "k".repeat(i as usize % 50));
                assert_eq!(set.insert(key.as_bytes()).unwrap(), round == 0, "{key}");
            }
        }
        assert!(set.insert(b"").unwrap());
        assert!(!set.insert(b"").unwrap());
    }
}
