//! Appending: a place in the log, room for it, and the copy into the ring.
//!
//! A record is placed and copied under the tail's lock, which costs less for
//! small records than letting copies overlap. What is larger than a part of the
//! ring goes to the file from where the caller has it, under both locks.
//!
//! A record of at most 512 bytes never crosses a block border: the rest of the
//! block is left as it was, and a commit of one record writes one block.

use std::num::NonZeroU64;

use super::core::{Core, Flush, Tail};
use super::entry::Lsn;
use super::error::{Error, Result};
use super::leading::Leads;
use super::locks::lock;
use super::record::{HEADER_BYTES, Head, KIND_BEGIN, Kind, record_bytes};
use super::spin::SpinGuard;
use super::volume::{BLOCK, UNCROSSED_BYTES_MAX};
use crate::primitives::{Ordering, SOLO_RING_BYTES};

/// Larger records never enter the ring.
pub(super) const RING_RECORD_BYTES_MAX: u64 = SOLO_RING_BYTES / 32;
/// How often appends look whether it has work.
const ATTEND_EVERY_BYTES: u64 = SOLO_RING_BYTES / 16;
/// A life's first record, which holds its number.
const BEGIN_BYTES: u64 = record_bytes(8);
static ZEROS: [u8; UNCROSSED_BYTES_MAX as usize] = [0; UNCROSSED_BYTES_MAX as usize];

/// Where a record lies in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Why a record could not be appended at once.
enum Obstacle {
    /// The file: room up to here is needed.
    Room(u64),
    /// The ring: everything up to here must be written.
    Ring(u64),
}

/// The place of a record of `bytes`.
fn place_in(tail: &Tail, bytes: u64) -> Place {
    let begin = tail.begins.map_or(0, |_| BEGIN_BYTES);
    place(tail.lsn + begin, bytes)
}

/// The place of a record of `bytes` where the log ends at `tail`.
fn place(tail: u64, bytes: u64) -> Place {
    let in_block = tail % BLOCK;
    let start = if bytes <= UNCROSSED_BYTES_MAX && in_block + bytes > BLOCK {
        tail - in_block + BLOCK
    } else {
        tail
    };
    Place {
        start,
        end: start + bytes,
    }
}

impl Core {
    #[inline]
    pub(super) fn append(&self, payload: &[u8]) -> Result<Place> {
        match self.append_at_once(payload) {
            Some(end) => Ok(Place {
                start: end.get() - record_bytes(payload.len()),
                end: end.get(),
            }),
            None => self.append_with_obstacles(payload),
        }
    }

    /// What nearly every append does: where the record ends, or `None` where
    /// anything is in its way.
    #[inline]
    fn append_at_once(&self, payload: &[u8]) -> Option<NonZeroU64> {
        let bytes = record_bytes(payload.len());
        if bytes > self.quick_bytes_max || self.turns.ended() {
            return None;
        }
        let mut tail = self.tail.lock();
        let place = place(tail.lsn, bytes);
        if place.end > tail.free_until {
            return None;
        }
        self.copy_entry(&mut tail, place, payload);
        if place.end > tail.attend_at {
            self.attend(tail);
        }
        NonZeroU64::new(place.end)
    }

    #[cold]
    fn append_with_obstacles(&self, payload: &[u8]) -> Result<Place> {
        self.check_size(payload)?;
        loop {
            self.check()?;
            let obstacle = {
                let mut tail = self.tail.lock();
                match self.append_under_lock(&mut tail, payload) {
                    Ok(place) => {
                        self.attend(tail);
                        return Ok(place);
                    }
                    Err(obstacle) => obstacle,
                }
            };
            match obstacle {
                Obstacle::Room(end) => self.make_room(end)?,
                Obstacle::Ring(until) if record_bytes(payload.len()) <= RING_RECORD_BYTES_MAX => {
                    self.wait_written(until)?;
                }
                Obstacle::Ring(_) => {
                    if let Some(place) = self.append_around_ring(payload)? {
                        return Ok(place);
                    }
                }
            }
        }
    }

    pub(super) fn append_all(&self, payloads: &[&[u8]]) -> Result<Vec<Lsn>> {
        let mut places = Vec::with_capacity(payloads.len());
        for payload in payloads {
            self.check_size(payload)?;
        }
        while places.len() < payloads.len() {
            self.check()?;
            let mut tail = self.tail.lock();
            for payload in payloads.iter().skip(places.len()) {
                let Ok(place) = self.append_under_lock(&mut tail, payload) else {
                    break;
                };
                places.push(Lsn(place.start));
            }
            self.attend(tail);
            // The one that met an obstacle goes the long way.
            if let Some(payload) = payloads.get(places.len()) {
                places.push(Lsn(self.append(payload)?.start));
            }
        }
        Ok(places)
    }

    fn check_size(&self, payload: &[u8]) -> Result<()> {
        if payload.len() as u64 > self.payload_bytes_max {
            return Err(Error::TooBig {
                bytes: payload.len() as u64,
                limit_bytes: self.payload_bytes_max,
            });
        }
        Ok(())
    }

    fn append_under_lock(
        &self,
        tail: &mut Tail,
        payload: &[u8],
    ) -> std::result::Result<Place, Obstacle> {
        let bytes = record_bytes(payload.len());
        let place = place_in(tail, bytes);
        let by_file = self.room.until();
        if place.end > by_file {
            return Err(Obstacle::Room(place.end));
        }
        if bytes > RING_RECORD_BYTES_MAX {
            return Err(Obstacle::Ring(tail.lsn));
        }
        let by_ring = self.written.load(Ordering::Acquire) + self.unwritten_bytes_max();
        if place.end > by_ring {
            // A part of the ring more than needed, so that the next ones find room.
            let until = place.end - self.unwritten_bytes_max() / 4 * 3;
            return Err(Obstacle::Ring(until.min(tail.lsn)));
        }
        self.begin_life(tail);
        tail.free_until = by_file.min(by_ring);
        self.copy_entry(tail, place, payload);
        Ok(place)
    }

    /// What may be appended and not written: as much as the ring holds, and no
    /// more than a lap, given up or not, or one write would come upon itself.
    fn unwritten_bytes_max(&self) -> u64 {
        self.volume.capacity.min(SOLO_RING_BYTES)
    }

    /// Copies an entry that has room.
    #[inline]
    fn copy_entry(&self, tail: &mut Tail, place: Place, payload: &[u8]) {
        self.copy_to_ring(tail, place, Kind::Commit.byte(), tail.seq, payload);
        tail.seq += 1;
    }

    /// Puts the life's first record into the ring, before its first entry.
    #[cold]
    fn begin_life(&self, tail: &mut Tail) {
        if let Some(life) = tail.begins.take() {
            let place = Place {
                start: tail.lsn,
                end: tail.lsn + BEGIN_BYTES,
            };
            self.copy_to_ring(tail, place, KIND_BEGIN, tail.seq - 1, &life.to_le_bytes());
        }
    }

    /// Copies a record, and the zeros before it, into the ring. Room was made
    /// sure of, and the tail's lock is held.
    #[inline]
    fn copy_to_ring(&self, tail: &mut Tail, place: Place, kind: u8, seq: u64, payload: &[u8]) {
        let head = Head {
            len: payload.len() as u32,
            seq,
            durable: self.durable_seq.load(Ordering::Relaxed),
            kind,
        };
        // SAFETY: the positions from the tail on belong to the holder of its
        // lock; what lay there one lap of the ring ago is written, as the
        // caller checked against `written`; the leader reads only up to the
        // tail that is set below, under the same lock.
        unsafe {
            if place.start > tail.lsn {
                self.skip_block(tail, place.start);
            }
            match self
                .ring
                .piece(place.start, (place.end - place.start) as usize)
            {
                Some(record) => head.write_record(record, self.salt, place.start, payload),
                None => self.copy_in_parts(place, &head, payload),
            }
        }
        tail.lsn = place.end;
        self.appended.store(place.end, Ordering::Release);
    }

    /// Passes over the rest of a block. Where it lies between two records of
    /// one write, it is written as zeros.
    ///
    /// # Safety
    /// The range up to `to` must be the caller's alone.
    #[cold]
    unsafe fn skip_block(&self, tail: &mut Tail, to: u64) {
        let from = tail.lsn;
        tail.skipped = (from, to);
        // SAFETY: as the caller vouches.
        unsafe { self.ring.write(from, &ZEROS[..(to - from) as usize]) };
    }

    /// Copies a record that passes the ring's end.
    ///
    /// # Safety
    /// The place must be the caller's alone.
    #[cold]
    unsafe fn copy_in_parts(&self, place: Place, head: &Head, payload: &[u8]) {
        let head = head.seal(self.salt, place.start, &[payload]);
        let payload_at = place.start + HEADER_BYTES as u64;
        let payload_end = payload_at + payload.len() as u64;
        // SAFETY: as the caller vouches.
        unsafe {
            self.ring.write(place.start, &head);
            self.ring.write(payload_at, payload);
            let padding = (place.end - payload_end) as usize;
            self.ring.write(payload_end, &ZEROS[..padding]);
        }
    }

    /// Has the work ahead done, where there is some. Gives the tail's lock back.
    #[cold]
    fn attend(&self, mut tail: SpinGuard<'_, Tail>) {
        let has_work = self.look(&mut tail);
        drop(tail);
        if has_work {
            self.work_ahead();
        }
    }

    /// Whether there is work ahead, and from where on to look again.
    fn look(&self, tail: &mut Tail) -> bool {
        let by_ring = self.written.load(Ordering::Relaxed) + self.unwritten_bytes_max() / 4 * 3;
        let attend_at = by_ring.min(self.room.low_at());
        let has_work = tail.lsn > by_ring || self.is_low(tail.lsn);
        tail.attend_at = attend_at.max(tail.lsn + ATTEND_EVERY_BYTES);
        has_work
    }

    /// Work that nothing but speed depends on: the background thread's, where
    /// there is one. No lock is held.
    fn work_ahead(&self) {
        if self.has_background {
            self.signal.raise();
        } else {
            // A failed sync poisons the log, which says so; a file that cannot
            // grow is reported to the append that needs the room.
            let _ = self.prepare_ahead();
        }
    }

    /// Writes a large record from where the caller has it, together with all
    /// that waits before it. `None` if room was lost meanwhile.
    fn append_around_ring(&self, payload: &[u8]) -> Result<Option<Place>> {
        let result = self.append_under_both_locks(payload);
        self.flush_ended();
        let (place, has_work) = result?;
        if has_work {
            self.work_ahead();
        }
        Ok(place)
    }

    /// Also says whether there is work ahead.
    fn append_under_both_locks(&self, payload: &[u8]) -> Result<(Option<Place>, bool)> {
        let mut flush = lock(&self.flush);
        let mut tail = self.tail.lock();
        self.check()?;
        let place = place_in(&tail, record_bytes(payload.len()));
        if place.end > self.room.until() {
            return Ok((None, false));
        }
        self.begin_life(&mut tail);
        self.write_ring(&mut flush, &tail)?;
        let head = Head {
            len: payload.len() as u32,
            seq: tail.seq,
            durable: self.durable_seq.load(Ordering::Relaxed),
            kind: Kind::Commit.byte(),
        }
        .seal(self.salt, place.start, &[payload]);
        let padding = (place.end - place.start) as usize - HEADER_BYTES - payload.len();
        let parts: [&[u8]; 3] = [&head, payload, &ZEROS[..padding]];
        tail.lsn = place.end;
        tail.seq += 1;
        self.appended.store(place.end, Ordering::Release);
        self.or_end(self.volume.write(place.start, &parts, false))?;
        self.written_to(&mut flush, place.end, tail.seq);
        Ok((Some(place), self.look(&mut tail)))
    }

    /// Writes what waits in the ring up to the tail, whose lock is held.
    fn write_ring(&self, flush: &mut Flush, tail: &Tail) -> Result<()> {
        if tail.lsn == flush.lsn {
            return Ok(());
        }
        flush.skip(tail.skipped);
        // SAFETY: as in `flush.rs`: the range is below the tail.
        let parts = unsafe { self.ring.read(flush.lsn, (tail.lsn - flush.lsn) as usize) };
        self.or_end(self.volume.write(flush.lsn, &parts, false))?;
        self.written_to(flush, tail.lsn, tail.seq);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_records_stay_in_a_block() {
        let at = |tail, bytes| {
            let place = place(tail, bytes);
            (place.start, place.end)
        };
        assert_eq!(at(0, 160), (0, 160));
        assert_eq!(at(4096 - 160, 160), (4096 - 160, 4096));
        assert_eq!(at(4096 - 152, 160), (4096, 4096 + 160));
        assert_eq!(at(4096 - 152, 520), (4096 - 152, 4096 - 152 + 520));
    }
}
