//! Walking along the records of a log.
//!
//! The next record begins where the last one ended or, where it would not have
//! fitted into the rest of that block, at the next block. It has the next sequence number and a
//! checksum seeded with its position and the salt of the life at hand; or it is
//! the first of a later life, which carries that life's number. No life but the
//! newest reaches behind the position where the newest began.

use std::path::Path;
use std::sync::Arc;

use super::core::{Core, Life};
use super::entry::Lsn;
use super::error::{Error, Result};
use super::header::Header;
use super::locks::lock;
use super::marks::Marks;
use super::record::{Head, KIND_BEGIN, Kind};
use super::volume::{BLOCK, Laps, UNCROSSED_BYTES_MAX, Volume};
use super::window::Window;
use crate::primitives::Ordering;

/// The payload of a life's first record: its number.
const LIFE_BYTES: u32 = 8;

/// Where a walk can begin.
pub(super) struct Start {
    pub(super) position: u64,
    /// The number of the next entry from there on.
    pub(super) seq: u64,
    pub(super) life: u64,
}

/// A walk, and what it passed.
pub(super) struct Walk {
    window: Window,
    header: Header,
    pub(super) position: u64,
    pub(super) next_seq: u64,
    pub(super) life: u64,
    /// The lives whose beginnings were passed, and the one at the start.
    pub(super) lives: Vec<Life>,
    marks: Marks,
}

impl Walk {
    /// A walk from the log's first record up to `end` at most.
    pub(super) fn new(core: &Core, header: Header, end: u64) -> Result<Self> {
        Self::over(core.volume.clone(), &core.path, header, end)
    }

    pub(super) fn over(volume: Volume, path: &Path, header: Header, end: u64) -> Result<Self> {
        let laps = Laps { volume, end };
        Ok(Self {
            window: Window::new(laps, path, header.salt_of(header.first_life))?,
            header,
            position: header.first,
            next_seq: header.first_seq,
            life: header.first_life,
            lives: vec![Life {
                start: header.first,
                number: header.first_life,
            }],
            marks: Marks::default(),
        })
    }

    /// Goes on with what this volume has at the same positions.
    pub(super) fn read_from(&mut self, volume: Volume, end: u64) -> Result<()> {
        self.window.set_salt(self.header.salt_of(self.life));
        self.window.read_from(Laps { volume, end })
    }

    /// The first entry from `position` on, if an entry begins there or the log
    /// ended there once: then the entry stands behind the beginning of a life,
    /// or in the next block because it had no room in this one.
    pub(super) fn entry_from(&mut self, position: u64, lives: &[Life]) -> Result<Option<Start>> {
        if !position.is_multiple_of(8) {
            return Ok(None);
        }
        let born = lives.iter().rev().find(|life| life.start <= position);
        let life = born.map_or(self.header.first_life, |life| life.number);
        self.window.set_salt(self.header.salt_of(life));
        if let Some(start) = self.entry_at(position, life)? {
            return Ok(Some(start));
        }
        let block = position.next_multiple_of(BLOCK);
        if block - position >= UNCROSSED_BYTES_MAX {
            return Ok(None);
        }
        let is_beginning = |life: &Life| (position..=block).contains(&life.start);
        if lives.iter().any(is_beginning) {
            return Ok(None);
        }
        let start = self.entry_at(block, life)?;
        // Within a record before that block, or between the two, the log never ended.
        if start.is_some() && !self.window.ends_a_record(self.header.first, position)? {
            return Ok(None);
        }
        Ok(start)
    }

    /// The entry at `position`, or the one behind the beginning of `life` there.
    fn entry_at(&mut self, position: u64, life: u64) -> Result<Option<Start>> {
        let Some(head) = self.window.valid_record_at(position)? else {
            return Ok(None);
        };
        let (position, seq) = if head.kind == KIND_BEGIN {
            // Where a payload was made to look like a record, any number may stand.
            let Some(seq) = head.seq.checked_add(1) else {
                return Ok(None);
            };
            (position + head.total_bytes(), seq)
        } else if Kind::from_byte(head.kind).is_some() {
            (position, head.seq)
        } else {
            return Ok(None);
        };
        Ok(Some(Start {
            position,
            seq,
            life,
        }))
    }

    fn begin_at(&mut self, start: Start) {
        self.position = start.position;
        self.next_seq = start.seq;
        self.life = start.life;
        self.window.set_salt(self.header.salt_of(start.life));
    }

    /// The next entry: where it begins, and how long its payload is. `None`
    /// where the walk ends; `position` then is behind the last record.
    pub(super) fn next(&mut self) -> Result<Option<(u64, u32)>> {
        loop {
            let block = self.position.next_multiple_of(BLOCK);
            let mut found = self.record_at(self.position)?;
            if found.is_none() && block != self.position {
                found = self.record_at(block)?;
            }
            let Some((position, head)) = found else {
                return Ok(None);
            };
            self.position = position + head.total_bytes();
            let begins = head.kind == KIND_BEGIN;
            let seq = head.seq + u64::from(begins);
            self.marks.note(head.durable, seq, position);
            if !begins {
                self.next_seq += 1;
                return Ok(Some((position, head.len)));
            }
        }
    }

    /// The position from which on nothing says that the records were synced.
    pub(super) fn known_durable(&self) -> u64 {
        let unmarked = self.marks.unreached(self.position);
        unmarked.max(self.header.life_start).min(self.position)
    }

    fn record_at(&mut self, position: u64) -> Result<Option<(u64, Head)>> {
        let Some((_, head)) = self.window.head_at(position)? else {
            return Ok(None);
        };
        if head.kind == KIND_BEGIN {
            return self.begin_record_at(position, head);
        }
        if position >= self.header.life_start && self.life != self.header.life {
            return Ok(None);
        }
        let wanted = head.seq == self.next_seq && Kind::from_byte(head.kind).is_some();
        if !wanted || self.window.valid_record_at(position)?.is_none() {
            return Ok(None);
        }
        Ok(Some((position, head)))
    }

    fn begin_record_at(&mut self, position: u64, head: Head) -> Result<Option<(u64, Head)>> {
        if head.len != LIFE_BYTES || head.seq.checked_add(1) != Some(self.next_seq) {
            return Ok(None);
        }
        let number = match self.window.payload_at(position, LIFE_BYTES)? {
            Some(payload) => payload.try_into().map_or(0, u64::from_le_bytes),
            None => return Ok(None),
        };
        let is_first = position == self.header.first && number == self.life;
        let is_newest = number == self.header.life;
        let is_due = is_newest || position < self.header.life_start;
        if !(is_first || number > self.life) || number > self.header.life || !is_due {
            return Ok(None);
        }
        self.window.set_salt(self.header.salt_of(number));
        if self.window.valid_record_at(position)?.is_none() {
            self.window.set_salt(self.header.salt_of(self.life));
            return Ok(None);
        }
        self.life = number;
        self.lives.push(Life {
            start: position,
            number,
        });
        Ok(Some((position, head)))
    }

    /// The payload of an entry just found.
    pub(super) fn payload(&mut self, position: u64, len: u32) -> Result<Option<&[u8]>> {
        self.window.payload_at(position, len)
    }

    /// Looks at every aligned position behind the walk's end for a record of
    /// the newest life whose mark says that what is missing was durable. Its
    /// position and mark.
    pub(super) fn testimony(&mut self) -> Result<Option<(u64, u64)>> {
        self.window.set_salt(self.header.salt_of(self.header.life));
        let mut position = self.position;
        while let Some((at, head)) = self.window.next_head(position)? {
            let plausible = head.seq >= self.next_seq
                && head.durable >= self.next_seq
                && head.durable <= head.seq;
            if plausible && self.window.valid_record_at(at)?.is_some() {
                return Ok(Some((at, head.durable)));
            }
            position = at + 8;
        }
        Ok(None)
    }
}

impl Core {
    /// What `find` finds on a walk that ends at `end`. Where there should be something and
    /// is not, or cannot be read, each side of a mirror is asked by itself; the walk stays
    /// with the one that has it.
    pub(super) fn on_any_side<T>(
        &self,
        walk: &mut Walk,
        end: u64,
        find: impl Fn(&mut Walk) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let found = find(walk);
        if matches!(found, Ok(Some(_))) {
            return found;
        }
        let sides = self.mirror.as_ref().map(|mirror| mirror.each_alone());
        for file in sides.unwrap_or_default() {
            let capacity = self.volume.capacity;
            walk.read_from(Volume { file, capacity }, end)?;
            if let Ok(Some(elsewhere)) = find(walk) {
                self.turned.fetch_add(1, Ordering::Relaxed);
                return Ok(Some(elsewhere));
            }
        }
        found
    }
}

/// The records of a log from a position on, as they were when
/// [`Wal::replay`](super::Wal::replay) was called.
pub struct Entries {
    core: Arc<Core>,
    walk: Walk,
    /// Where to begin to hand out.
    from: u64,
    end: u64,
    /// Nothing more to come.
    done: bool,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries")
            .field("position", &self.walk.position)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Entries {
    pub(super) fn new(core: &Arc<Core>, from: Lsn) -> Result<Self> {
        let end = core.appended();
        core.wait_written(end)?;
        let (header, lives) = {
            let head = lock(&core.head);
            (head.header, head.lives.clone())
        };
        let mut walk = Walk::new(core, header, end)?;
        let from = from.0;
        if from > header.first && from < end {
            match core.on_any_side(&mut walk, end, |walk| walk.entry_from(from, &lives))? {
                Some(start) => walk.begin_at(start),
                None => return Err(no_record(from, &header, end)),
            }
        } else if from != Lsn::FIRST.0 && from != header.first && from != end {
            return Err(no_record(from, &header, end));
        }
        Ok(Self {
            core: Arc::clone(core),
            walk,
            from,
            end,
            done: from == end && from != Lsn::FIRST.0,
        })
    }

    fn step(&mut self) -> Result<Option<(Lsn, Vec<u8>)>> {
        let end = self.end;
        let next = self.core.on_any_side(&mut self.walk, end, |walk| {
            let entry = walk.next()?;
            Ok((entry.is_some() || walk.position >= end).then_some(entry))
        })?;
        let Some(entry) = next else {
            return Err(self.broken(self.walk.position));
        };
        let Some((position, len)) = entry else {
            return Ok(None);
        };
        let payload = match self.walk.payload(position, len)? {
            Some(payload) => payload.to_vec(),
            None => return Err(self.broken(position)),
        };
        // What was read may have been given up and written over meanwhile.
        if self.core.head() > position {
            return Err(self.broken(position));
        }
        Ok(Some((Lsn(position), payload)))
    }

    /// Why no record could be read at `position`, which is before the end.
    fn broken(&self, position: u64) -> Error {
        let first = self.core.head();
        if first > position {
            return Error::NoRecord {
                position,
                first,
                end: self.end,
            };
        }
        Error::Corrupt {
            file: self.core.path.clone(),
            position: self.core.volume.offset(position),
            what: format!("the record at log position {position} cannot be read any more"),
        }
    }
}

pub(super) fn no_record(position: u64, header: &Header, end: u64) -> Error {
    Error::NoRecord {
        position,
        first: header.first,
        end,
    }
}

impl Iterator for Entries {
    type Item = Result<(Lsn, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            match self.step() {
                Ok(Some((lsn, _))) if lsn.0 < self.from => {}
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
