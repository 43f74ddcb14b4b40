//! Merging sorted runs. Of records with equal keys those of the earlier run come first.

use super::{PIECE_BYTES, RunPlace};
use crate::error::{Error, Result};
use crate::exec::memory::TempFile;
use crate::key::Order;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

/// Bytes read at once from a run, at least.
const READ_BYTES_MIN: usize = 4 << 10;

/// Reads a run's records one after the other.
struct RunReader {
    place: RunPlace,
    buffer: Vec<u8>,
    at: usize,
    read_bytes: usize,
}

impl RunReader {
    /// The bytes of the next `count`, reading on where needed.
    fn have(&mut self, file: &TempFile, count: usize) -> Result<bool> {
        let there = self.buffer.len() - self.at;
        if there >= count {
            return Ok(true);
        }
        let left = usize::try_from(self.place.end - self.place.start).unwrap_or(usize::MAX);
        let more = (count - there).max(self.read_bytes).min(left);
        if there + more < count {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.resize(there + more, 0);
        if let Some(space) = self.buffer.get_mut(there..) {
            file.read(space, self.place.start)?;
        }
        self.place.start += more as u64;
        Ok(true)
    }

    fn word(&self, at: usize) -> usize {
        let bytes = self
            .buffer
            .get(self.at + at..self.at + at + 4)
            .unwrap_or(&[0; 4]);
        u32::from_le_bytes(bytes.try_into().unwrap_or_default()) as usize
    }

    /// The next record: its key goes to `key`, its payload to `payload`.
    fn next(&mut self, file: &TempFile, key: &mut Vec<u8>, payload: &mut Vec<u8>) -> Result<bool> {
        if !self.have(file, 8)? {
            return Ok(false);
        }
        let (k, p) = (self.word(0), self.word(4));
        if !self.have(file, 8 + k + p)? {
            return Err(Error::corrupt(
                "a temporary file changed while it was in use",
            ));
        }
        let start = self.at + 8;
        key.clear();
        key.extend_from_slice(self.buffer.get(start..start + k).unwrap_or(&[]));
        payload.clear();
        payload.extend_from_slice(self.buffer.get(start + k..start + k + p).unwrap_or(&[]));
        self.at = start + k + p;
        Ok(true)
    }
}

/// The next record of a run.
struct Head {
    key: Vec<u8>,
    run: usize,
    payload: Vec<u8>,
    order: Order,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.order.compare(&self.key, &other.key);
        order.then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

pub(super) struct Merge {
    file: Arc<TempFile>,
    readers: Vec<RunReader>,
    heads: BinaryHeap<Reverse<Head>>,
    key: Vec<u8>,
    payload: Vec<u8>,
    /// The record that came last comes next.
    repeats: bool,
}

impl Merge {
    /// Of these runs, with about `memory` bytes for reading them.
    pub fn new(
        file: Arc<TempFile>,
        runs: &[RunPlace],
        memory: usize,
        order: &Order,
    ) -> Result<Self> {
        let read_bytes = (memory / runs.len().max(1)).clamp(READ_BYTES_MIN, PIECE_BYTES);
        let mut readers: Vec<RunReader> = runs
            .iter()
            .map(|place| RunReader {
                place: *place,
                buffer: Vec::new(),
                at: 0,
                read_bytes,
            })
            .collect();
        let mut heads = BinaryHeap::new();
        for (run, reader) in readers.iter_mut().enumerate() {
            let (mut key, mut payload) = (Vec::new(), Vec::new());
            if reader.next(&file, &mut key, &mut payload)? {
                heads.push(Reverse(Head {
                    key,
                    run,
                    payload,
                    order: order.clone(),
                }));
            }
        }
        Ok(Self {
            file,
            readers,
            heads,
            key: Vec::new(),
            payload: Vec::new(),
            repeats: false,
        })
    }

    /// Bytes for reading and for the first records, about.
    pub fn memory(&self) -> usize {
        self.readers.iter().map(|r| r.buffer.capacity() * 2).sum()
    }

    /// The record that came last comes once more.
    pub fn repeat(&mut self) {
        self.repeats = true;
    }

    /// The next record in order.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::take(&mut self.repeats) {
            return Ok(Some((&self.key, &self.payload)));
        }
        let Some(mut first) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let Reverse(head) = &mut *first;
        std::mem::swap(&mut self.key, &mut head.key);
        std::mem::swap(&mut self.payload, &mut head.payload);
        let goes_on = match self.readers.get_mut(head.run) {
            Some(reader) => reader.next(&self.file, &mut head.key, &mut head.payload)?,
            None => false,
        };
        if !goes_on {
            PeekMut::pop(first);
        }
        Ok(Some((&self.key, &self.payload)))
    }
}
