//! Sorting of encoded records: a key that compares with memcmp, or by the collations of
//! the program that are in it, and a payload.
//!
//! Records gather in one arena. When the budget refuses more, the arena is
//! sorted and written to a temporary file as a run; at the end the runs are
//! merged. Records with equal keys keep their order of arrival: within a run by
//! position, between runs by the run's number.
//!
//! With a limit only the smallest records are kept, at most twice as many as
//! asked for, so a top-N query needs no memory in the size of its input.

mod merge;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::exec::memory::{Memory, Reservation, TempFile};
use crate::key::Order;
use crate::value::collate;
use merge::Merge;
use words::Entry;

/// Bytes of memory that a run may fill, or an eighth of the budget, whatever
/// others hold.
const RUN_BYTES_MIN: usize = 256 << 10;
/// Runs merged at once; more are merged into larger ones first.
const FAN_IN: usize = 256;
/// Bytes of the arena and entries that the first record makes room for.
const ARENA_MIN: usize = 4 << 10;
const ENTRIES_MIN: usize = 64;
/// Bytes written at once of a run, and at most read while merging.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of an arena, and entries, that a sorter which is emptied keeps at most.
const ARENA_KEPT_MAX: usize = 64 << 10;
const ENTRIES_KEPT_MAX: usize = 2_048;
/// Records below which a limit does not bother to cut.
const CUT_MIN: usize = 1024;

#[derive(Clone, Copy)]
struct RunPlace {
    start: u64,
    end: u64,
}

struct Record {
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// See the module.
pub struct Sorter {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    limit: Option<usize>,
    order: Order,
    /// With a limit: records whose keys are not below this one's are of no use.
    last: Option<Record>,
    /// How often records were cut off.
    cuts: u64,
    memory: Memory,
    reservation: Reservation,
    file: Option<Arc<TempFile>>,
    runs: Vec<RunPlace>,
    merge: Option<Merge>,
    position: usize,
}

impl Sorter {
    /// An empty sorter; with `limit` only that many records come out.
    pub fn new(memory: &Memory, limit: Option<usize>) -> Self {
        Self {
            arena: Vec::new(),
            entries: Vec::new(),
            limit,
            order: Order::default(),
            last: None,
            cuts: 0,
            memory: memory.clone(),
            reservation: memory.reservation(),
            file: None,
            runs: Vec::new(),
            merge: None,
            position: 0,
        }
    }

    /// Compares its keys so, not by their bytes.
    #[must_use]
    pub fn by(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// An empty one in the memory it has: a subquery sorts a few rows over and over. None where
    /// it has more than that takes.
    pub fn emptied(mut self) -> Option<Self> {
        let is_small = self.arena.capacity() <= ARENA_KEPT_MAX
            && self.entries.capacity() <= ENTRIES_KEPT_MAX
            && self.runs.is_empty();
        self.arena.clear();
        self.entries.clear();
        self.last = None;
        self.cuts = 0;
        self.position = 0;
        is_small.then_some(self)
    }

    /// As many records come out at most.
    #[must_use]
    pub fn limited(mut self, limit: Option<usize>) -> Self {
        self.limit = limit;
        self
    }

    /// Adds a record.
    pub fn add(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let is_of_use = |last: &Record| self.order.compare(key, &last.key).is_lt();
        if self.limit == Some(0) || !self.last.as_ref().is_none_or(is_of_use) {
            return Ok(());
        }
        let (Ok(key_bytes), Ok(payload_bytes)) =
            (u32::try_from(key.len()), u32::try_from(payload.len()))
        else {
            return Err(Error::too_big());
        };
        if self.arena.capacity() - self.arena.len() < key.len() + payload.len()
            || self.entries.len() == self.entries.capacity()
        {
            self.make_room(key.len() + payload.len())?;
        }
        let start = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(payload);
        self.entries.push(Entry {
            word: words::word(key),
            start,
            key: key_bytes,
            payload: payload_bytes,
        });
        if let Some(limit) = self.limit
            && self.entries.len() >= limit.saturating_mul(2).max(CUT_MIN)
        {
            self.cut(limit);
        }
        Ok(())
    }

    /// Room for one more record of `bytes`: reserved, or got by writing a run.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let doubled = |have: usize, need: usize, least: usize| {
            if need <= have {
                have
            } else {
                need.max(have * 2).max(least)
            }
        };
        let size = |arena: usize, entries: usize| arena + entries * size_of::<Entry>();
        let mut arena = doubled(self.arena.capacity(), self.arena.len() + bytes, ARENA_MIN);
        let mut entries = doubled(self.entries.capacity(), self.entries.len() + 1, ENTRIES_MIN);
        let wanted = size(arena, entries);
        if !self.reservation.resize(wanted) {
            let large = wanted > RUN_BYTES_MIN.max(self.memory.limit() / 8);
            if large && !self.entries.is_empty() {
                self.write_run()?;
                arena = self.arena.capacity().max(bytes);
                entries = self.entries.capacity();
            }
            self.reservation.force(size(arena, entries));
        }
        self.arena.reserve_exact(arena - self.arena.len());
        self.entries.reserve_exact(entries - self.entries.len());
        Ok(())
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        let key = |entry: &Entry| entry.key_in(arena);
        if !self.order.is_bytes() {
            // What a collation says may be no order at all, at which a sort panics.
            let (entries, order) = (&mut self.entries, &self.order);
            let sorted = catch_unwind(AssertUnwindSafe(|| {
                entries.sort_unstable_by(|a, b| {
                    order.compare(key(a), key(b)).then(a.start.cmp(&b.start))
                });
            }));
            if sorted.is_err() {
                collate::fail(Error::sql("a collation gives its texts no order"));
            }
            return;
        }
        words::sort(arena, &mut self.entries);
    }

    /// Keeps the smallest `limit` records.
    fn cut(&mut self, limit: usize) {
        self.sort();
        self.entries.truncate(limit);
        let mut arena = Vec::with_capacity(self.arena.len() / 2);
        // Positions must stay in order of arrival among equal keys; the sorted
        // order is that order.
        for entry in &mut self.entries {
            let end = entry.start + entry.key as usize + entry.payload as usize;
            let start = arena.len();
            arena.extend_from_slice(self.arena.get(entry.start..end).unwrap_or(&[]));
            entry.start = start;
            // Those that are added from now on have their first words.
            entry.word = words::word(entry.key_in(&arena));
        }
        self.arena = arena;
        self.cuts += 1;
        self.last = self.entries.last().map(|entry| {
            let middle = entry.start + entry.key as usize;
            let bytes = |range: std::ops::Range<usize>| {
                let bytes = self.arena.get(range);
                bytes.map(<[u8]>::to_vec).unwrap_or_default()
            };
            Record {
                key: bytes(entry.start..middle),
                payload: bytes(middle..middle + entry.payload as usize),
            }
        });
    }

    /// With a limit: how often records were cut off, and the payload of the last one kept
    /// then; no record that is not before that one is of use.
    pub fn last_kept(&self) -> Option<(u64, &[u8])> {
        let last = self.last.as_ref()?;
        Some((self.cuts, &last.payload))
    }

    fn write_run(&mut self) -> Result<()> {
        self.sort();
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(self.memory.temp_file()?))),
        };
        let (mut start, mut length) = (None, 0);
        let mut buffer = Vec::with_capacity(PIECE_BYTES + 1024);
        for entry in &self.entries {
            buffer.extend_from_slice(&entry.key.to_le_bytes());
            buffer.extend_from_slice(&entry.payload.to_le_bytes());
            let record = entry.start..entry.start + entry.key as usize + entry.payload as usize;
            buffer.extend_from_slice(self.arena.get(record).unwrap_or(&[]));
            if buffer.len() >= PIECE_BYTES {
                let place = file.append(&buffer)?;
                start.get_or_insert(place);
                length += buffer.len() as u64;
                buffer.clear();
            }
        }
        if !buffer.is_empty() {
            let place = file.append(&buffer)?;
            start.get_or_insert(place);
            length += buffer.len() as u64;
        }
        let start = start.unwrap_or(0);
        self.runs.push(RunPlace {
            start,
            end: start + length,
        });
        self.entries.clear();
        self.arena.clear();
        Ok(())
    }

    /// Ends the input.
    pub fn finish(&mut self) -> Result<()> {
        self.position = 0;
        if self.runs.is_empty() {
            self.sort();
            return Ok(());
        }
        if !self.entries.is_empty() {
            self.write_run()?;
        }
        self.entries = Vec::new();
        self.arena = Vec::new();
        while self.runs.len() > FAN_IN {
            let merged = self.merge_runs(FAN_IN)?;
            // In the place of those that it is made of: equal keys keep their order.
            self.runs.drain(..FAN_IN);
            self.runs.insert(0, merged);
        }
        self.merge = self.merge_of(self.runs.len())?;
        Ok(())
    }

    /// Starts merging the first runs.
    fn merge_of(&mut self, runs: usize) -> Result<Option<Merge>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let memory = self.memory.limit() / 8;
        let runs = self.runs.get(..runs).unwrap_or(&self.runs);
        let merge = Merge::new(Arc::clone(file), runs, memory, &self.order)?;
        self.reservation.force(merge.memory());
        Ok(Some(merge))
    }

    /// Makes one run of the first ones.
    fn merge_runs(&mut self, runs: usize) -> Result<RunPlace> {
        let mut merge = self.merge_of(runs)?;
        let (mut start, mut length) = (None, 0);
        let mut buffer = Vec::with_capacity(PIECE_BYTES + 1024);
        while let (Some(file), Some(merge)) = (&self.file, &mut merge) {
            let record = merge.next()?;
            if let Some((key, payload)) = record {
                buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
                buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
                buffer.extend_from_slice(key);
                buffer.extend_from_slice(payload);
            }
            if record.is_none() || buffer.len() >= PIECE_BYTES {
                let place = file.append(&buffer)?;
                start.get_or_insert(place);
                length += buffer.len() as u64;
                buffer.clear();
            }
            if record.is_none() {
                break;
            }
        }
        let start = start.unwrap_or(0);
        Ok(RunPlace {
            start,
            end: start + length,
        })
    }

    /// The record that came last comes once more.
    pub fn repeat(&mut self) {
        match &mut self.merge {
            Some(merge) => merge.repeat(),
            None => self.position = self.position.saturating_sub(1),
        }
    }

    /// The next record in order.
    pub fn next_record(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.limit.is_some_and(|limit| self.position >= limit) {
            return Ok(None);
        }
        self.position += 1;
        if let Some(merge) = &mut self.merge {
            return merge.next();
        }
        let Some(entry) = self.entries.get(self.position - 1) else {
            return Ok(None);
        };
        let middle = entry.start + entry.key as usize;
        let key = self.arena.get(entry.start..middle).unwrap_or(&[]);
        let payload = self
            .arena
            .get(middle..middle + entry.payload as usize)
            .unwrap_or(&[]);
        Ok(Some((key, payload)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;

    fn memory(limit: usize) -> Memory {
        Memory::new(Arc::new(MemoryDisk::new()), Path::new("/db"), limit)
    }

    fn keys(sorter: &mut Sorter) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        sorter.finish().unwrap();
        while let Some((key, payload)) = sorter.next_record().unwrap() {
            out.push((
                u32::from_be_bytes(key[..4].try_into().unwrap()),
                u32::from_le_bytes(payload.try_into().unwrap()),
            ));
        }
        out
    }

    fn scrambled(count: u32) -> impl Iterator<Item = (u32, u32)> {
        (0..count).map(|i| (i.wrapping_mul(2_654_435_761) % 10_007, i))
    }

    #[test]
    fn runs_merge_into_one_stable_order() {
        let mut expected: Vec<_> = scrambled(200_000).collect();
        expected.sort_by_key(|e| e.0);
        for limit in [usize::MAX, 1000] {
            let mut sorter = Sorter::new(&memory(limit), None);
            for (key, value) in scrambled(200_000) {
                sorter
                    .add(&key.to_be_bytes(), &value.to_le_bytes())
                    .unwrap();
            }
            assert_eq!(limit < usize::MAX, !sorter.runs.is_empty());
            assert!(sorter.runs.len() < 200, "{} runs", sorter.runs.len());
            assert_eq!(keys(&mut sorter), expected);
        }
    }

    #[test]
    fn many_runs_are_merged_in_stages() {
        let mut sorter = Sorter::new(&memory(0), None);
        let payload = [7; 1000];
        for i in 0..100_000u32 {
            sorter
                .add(&(i % 100).to_be_bytes(), &i.to_le_bytes())
                .unwrap();
            sorter.add(&1000u32.to_be_bytes(), &payload).unwrap();
        }
        assert!(sorter.runs.len() > FAN_IN, "{} runs", sorter.runs.len());
        sorter.finish().unwrap();
        assert!(sorter.runs.len() <= FAN_IN);
        let mut last = (0, 0);
        for i in 0..200_000 {
            let (key, payload) = sorter.next_record().unwrap().unwrap();
            let key = u32::from_be_bytes(key.try_into().unwrap());
            let id = if i < 100_000 {
                u32::from_le_bytes(payload.try_into().unwrap())
            } else {
                assert_eq!(payload, [7; 1000]);
                i
            };
            assert!(last <= (key, id));
            last = (key, id);
        }
        assert!(sorter.next_record().unwrap().is_none());
    }

    /// What was sorted by later words was compared with the first ones of what came after.
    #[test]
    fn a_limit_keeps_the_smallest_of_keys_that_begin_alike() {
        let mut sorter = Sorter::new(&memory(usize::MAX), Some(700));
        let mut expected = Vec::new();
        for (number, _) in scrambled(50_000) {
            let first = ["a begin, ", "the same begin, "][number as usize % 2];
            let key = format!("{first}{number:08}");
            sorter.add(key.as_bytes(), b"").unwrap();
            expected.push(key);
        }
        expected.sort();
        sorter.finish().unwrap();
        for key in &expected[..700] {
            let (found, _) = sorter.next_record().unwrap().unwrap();
            assert_eq!(found, key.as_bytes());
        }
        assert!(sorter.next_record().unwrap().is_none());
    }

    #[test]
    fn a_limit_keeps_the_smallest() {
        let mut expected: Vec<_> = scrambled(50_000).collect();
        expected.sort_by_key(|e| e.0);
        expected.truncate(700);
        let mut sorter = Sorter::new(&memory(usize::MAX), Some(700));
        for (key, value) in scrambled(50_000) {
            sorter
                .add(&key.to_be_bytes(), &value.to_le_bytes())
                .unwrap();
        }
        assert!(sorter.entries.len() <= 1400);
        assert_eq!(keys(&mut sorter), expected);
    }
}
