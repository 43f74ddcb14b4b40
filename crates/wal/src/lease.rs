//! Leases, where nobody syncs: room in the log, and numbers, for many records of one
//! committer, who then writes them without a word to anybody.
//!
//! What committers share (the order of commits, the end of the log, who is
//! acknowledged) costs them cache lines that go back and forth at every commit. With
//! a lease they share it once in some hundred. The caller places a lease as it places
//! a record, under its commit lock; its begin record says how far it reaches, its
//! records follow one another, and its end record gives back what is left. Several may
//! be open at a time; from the first one opened until none is left is a *phase*.
//!
//! 1. While a lease is open nothing but leases is placed: the caller sees to that. So
//!    what is acknowledged stops before the first open one, and goes on over all of
//!    them when the last one ends. A leased record is written when
//!    [`write_leased`](TwinLog::write_leased) returns, as is all before it, by 2.
//! 2. A lease is used once all before it is acknowledged or leased itself, and its own
//!    begin record is written. So as long as the system keeps what was written
//!    ([`fulgurite_disk::Disk::boot_id`], which the begin record holds), recovery finds
//!    all leases, and the room that one left empty is no gap.
//! 3. Records of different leases have no order in time: one with a lower number may
//!    be younger. After a power cut, which may take any of them, recovery takes a phase
//!    as a whole or not at all. The end record of the lease that ends last, wherever that
//!    lies, says up to where the phase reaches. Whoever syncs ends all leases first, so
//!    what is synced is whole phases.
//! 4. What a lease holds was acknowledged to its committer. Ending it acknowledges it
//!    to all, also where the log has failed meanwhile.

use std::mem;
use std::time::Duration;

use super::error::{Error, Result};
use super::in_place::write_pieces;
use super::leading::Leads;
use super::locks::lock;
use super::record::{HEADER_BYTES, Head, Kind, record_bytes};
use super::twin::{Permit, Placed, TwinLog};
use crate::primitives::{LEASE_BYTES, Ordering};

/// Begins a lease. Its number is the lease's first.
pub(super) const KIND_LEASE: u8 = 65;
/// Ends one. It stands for all numbers that are left, from its own on.
pub(super) const KIND_LEASE_END: u8 = 66;

const BEGIN_BYTES: usize = 40;
const END_BYTES: usize = 24;
/// A lease is worth its while with so many records of the size it is asked for.
const RECORDS_MIN: u64 = 8;
/// Leases take this share of the log's limit at most, each.
const LIMIT_SHARE: u64 = 32;

/// What a lease's begin record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begin {
    /// The system that keeps what the lease's records wrote.
    pub(super) boot: [u8; 16],
    /// The first number of the phase.
    pub(super) phase: u64,
    pub(super) last: u64,
    /// The position in the file behind the lease's room.
    pub(super) end: u64,
}

impl Begin {
    fn encode(&self) -> [u8; BEGIN_BYTES] {
        let mut bytes = [0; BEGIN_BYTES];
        bytes[0..16].copy_from_slice(&self.boot);
        bytes[16..24].copy_from_slice(&self.phase.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.last.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.end.to_le_bytes());
        bytes
    }

    /// `None` where the bytes are no begin record's payload.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BEGIN_BYTES] = bytes.try_into().ok()?;
        Some(Self {
            boot: *bytes.first_chunk()?,
            phase: u64_at(bytes, 16)?,
            last: u64_at(bytes, 24)?,
            end: u64_at(bytes, 32)?,
        })
    }
}

/// What its end record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) last: u64,
    /// The position in the file behind the lease's room.
    pub(super) end: u64,
    /// The last number of the phase, where no lease is open any more; else 0.
    pub(super) phase_last: u64,
}

impl End {
    fn encode(&self) -> [u8; END_BYTES] {
        let mut bytes = [0; END_BYTES];
        bytes[0..8].copy_from_slice(&self.last.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.phase_last.to_le_bytes());
        bytes
    }

    /// `None` where the bytes are no end record's payload.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; END_BYTES] = bytes.try_into().ok()?;
        Some(Self {
            last: u64_at(bytes, 0)?,
            end: u64_at(bytes, 8)?,
            phase_last: u64_at(bytes, 16)?,
        })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Room for many records of one committer. Ended by
/// [`end_lease`](TwinLog::end_lease), and in no other way.
#[derive(Debug)]
#[must_use = "nothing placed after it is acknowledged before a lease ends"]
pub struct Lease {
    first: u64,
    last: u64,
    next_seq: u64,
    /// In the file, of the next record.
    position: u64,
    end: u64,
    salt: u64,
    slot: usize,
}

impl Lease {
    /// The lease's first number, which no record of it has.
    pub fn first_seq(&self) -> u64 {
        self.first
    }

    /// The lease's last number. Nobody else gets what is left of them.
    pub fn last_seq(&self) -> u64 {
        self.last
    }

    /// The number of its next record.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether there is room for another record with so many bytes of payload.
    pub fn has_room(&self, payload_len: usize) -> bool {
        let needed = record_bytes(payload_len) + record_bytes(END_BYTES);
        needed <= self.end - self.position && self.next_seq < self.last
    }
}

/// Room for a lease, and how many numbers it takes.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub struct LeasePermit<'w> {
    permit: Permit<'w>,
    numbers: u64,
}

impl LeasePermit<'_> {
    /// How many numbers the lease takes, from the next one on.
    pub fn numbers(&self) -> u64 {
        self.numbers
    }
}

/// A lease's place in the log, which must be begun. Dropping it poisons the log, as
/// dropping an unfilled record does.
#[derive(Debug)]
#[must_use = "a placed lease must be begun"]
pub struct PlacedLease<'w> {
    placed: Placed<'w>,
    last: u64,
}

/// The leases of a log.
#[derive(Default)]
pub(super) struct Leases {
    /// Those not acknowledged yet, oldest first.
    pending: Vec<Pending>,
    /// The first number of their phase.
    phase: u64,
    /// Numbers that no record has.
    unused: u64,
}

struct Pending {
    first: u64,
    last: u64,
    has_ended: bool,
}

impl TwinLog {
    /// Room for a lease of about so many records, or fewer, with so many bytes of payload
    /// each; before the caller takes any lock, as for a record, and for no longer than
    /// `patience`. None where this log gives no leases (where commits are synced; where
    /// nobody can tell whether the system keeps what was written) or is too small for
    /// them.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_lease(
        &self,
        records: u64,
        payload_len: usize,
        patience: Duration,
    ) -> Result<Option<LeasePermit<'_>>> {
        self.check()?;
        let bytes_max = LEASE_BYTES.min(self.options.limit_bytes / LIMIT_SHARE);
        let ends = record_bytes(BEGIN_BYTES) + record_bytes(END_BYTES);
        let records_max = bytes_max.saturating_sub(ends) / record_bytes(payload_len);
        let records = records.min(records_max);
        let bytes = ends + records * record_bytes(payload_len);
        if records < RECORDS_MIN || !self.gives_leases() {
            return Ok(None);
        }
        if !self.reserve_quickly(bytes) {
            self.reserve_slowly(bytes, patience)?;
        }
        Ok(Some(LeasePermit {
            permit: Permit::new(self, bytes as usize - HEADER_BYTES),
            numbers: records + 2,
        }))
    }

    /// Whether leases are worth asking for.
    #[inline]
    pub fn gives_leases(&self) -> bool {
        self.boot.is_some() && self.writes_in_place()
    }

    /// Gives a lease its place, under the caller's commit lock, as [`place`](Self::place)
    /// does a record. `seq` is its first number.
    pub fn place_lease<'w>(&'w self, permit: LeasePermit<'w>, seq: u64) -> PlacedLease<'w> {
        let last = seq + permit.numbers - 1;
        PlacedLease {
            placed: self.place_numbers(permit.permit, seq, last),
            last,
        }
    }

    /// Makes a placed lease ready. Waits until what was placed before it is written. One
    /// caller at a time.
    ///
    /// # Errors
    /// `Poisoned` or `Closed`; then nothing more will be acknowledged.
    pub fn begin_lease(&self, lease: PlacedLease<'_>) -> Result<Lease> {
        let PlacedLease { placed, last } = lease;
        self.check()?;
        let phase = {
            let leases = lock(&self.leases);
            (!leases.pending.is_empty()).then_some(leases.phase)
        };
        if phase.is_none() {
            self.wait_seq(placed.seq - 1)?;
            self.cross_in_place(&mut lock(&self.flush));
            self.flush_ended();
        }
        let phase = phase.unwrap_or(placed.seq);
        let end = placed.position + (placed.end - placed.start);
        let payload = Begin {
            boot: self.boot.unwrap_or_default(),
            phase,
            last,
            end,
        }
        .encode();
        let head = self.leased_head(placed.seq, KIND_LEASE, BEGIN_BYTES);
        self.write_record(&placed, &head, &[&payload])
            .map_err(|error| self.ended_by(error))?;
        let mut leases = lock(&self.leases);
        leases.phase = phase;
        leases.pending.push(Pending {
            first: placed.seq,
            last,
            has_ended: false,
        });
        self.turns.counters.leases.add_alone(1);
        drop(leases);
        let lease = Lease {
            first: placed.seq,
            last,
            next_seq: placed.seq + 1,
            position: placed.position + record_bytes(BEGIN_BYTES),
            end,
            salt: placed.salt,
            slot: placed.slot,
        };
        mem::forget(placed);
        Ok(lease)
    }

    /// Has the pages of a lease's room made ready, all at once.
    pub fn prepare_lease(&self, lease: &Lease) {
        if let Ok(file) = self.file(lease.slot) {
            let next_begin = record_bytes(BEGIN_BYTES);
            file.will_write(lease.position, lease.end + next_begin - lease.position);
        }
    }

    /// Writes a record into a lease that has room for it; its number. It is
    /// acknowledged when this returns.
    ///
    /// # Errors
    /// `Poisoned`, then the record's outcome is unknown until the log is recovered;
    /// `Closed`; `Misuse` where there is no room.
    #[inline]
    pub fn write_leased(&self, lease: &mut Lease, kind: Kind, payload: &[u8]) -> Result<u64> {
        if !lease.has_room(payload.len()) {
            return Err(Error::Misuse("a record does not fit its lease"));
        }
        self.check()?;
        let head = self.leased_head(lease.next_seq, kind.byte(), payload.len());
        self.write_into(lease, &head, payload)
            .map_err(|error| self.ended_by(error))?;
        lease.next_seq += 1;
        Ok(head.seq)
    }

    /// Ends a lease: what it holds is acknowledged as soon as all before it is.
    /// `completes` says that no other one is open. A failure poisons the log, and takes
    /// nothing back.
    pub fn end_lease(&self, mut lease: Lease, completes: bool) {
        let phase_last = match completes {
            true => self.placed_seq.load(Ordering::Relaxed),
            false => 0,
        };
        let payload = End {
            last: lease.last,
            end: lease.end,
            phase_last,
        }
        .encode();
        let head = self.leased_head(lease.next_seq, KIND_LEASE_END, END_BYTES);
        if self.check().is_ok()
            && let Err(error) = self.write_into(&mut lease, &head, &payload)
        {
            self.poison(error);
        }
        self.acknowledge_lease(&lease);
    }

    fn acknowledge_lease(&self, lease: &Lease) {
        let mut leases = lock(&self.leases);
        leases.unused += lease.last - lease.next_seq + 2;
        let mut pending = leases.pending.iter_mut();
        if let Some(ended) = pending.find(|pending| pending.first == lease.first) {
            ended.has_ended = true;
        }
        let ended = leases.pending.iter().take_while(|lease| lease.has_ended);
        let count = ended.count();
        if let Some(newest) = leases.pending.drain(..count).next_back() {
            // Nothing else is acknowledged while leases are open, by 1.
            self.acked_seq.swap(newest.last, Ordering::SeqCst);
        }
        drop(leases);
        self.turns.parking.went_on(|wish| self.is_met(wish));
    }

    fn leased_head(&self, seq: u64, kind: u8, payload_len: usize) -> Head {
        Head {
            len: payload_len as u32,
            seq,
            durable: self.synced_seq.load(Ordering::Relaxed),
            kind,
        }
    }

    #[inline]
    fn write_into(&self, lease: &mut Lease, head: &Head, payload: &[u8]) -> Result<()> {
        let file = self.file(lease.slot)?;
        let parts = [payload];
        let encoded = head.seal(lease.salt, lease.position, &parts);
        write_pieces(&**file, lease.position, &[], &encoded, &parts)?;
        lease.position += head.total_bytes();
        Ok(())
    }

    /// Whether any lease is open, or waits for one that is.
    pub(super) fn has_leases(&self) -> bool {
        !lock(&self.leases).pending.is_empty()
    }

    /// Numbers up to the acknowledged one that no record has.
    pub(super) fn unused_numbers(&self) -> u64 {
        lock(&self.leases).unused
    }
}
