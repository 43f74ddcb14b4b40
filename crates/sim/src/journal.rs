//! What a run did to its disk, call by call, so that the disk can be had again
//! as it was at any moment without running anything again.
//!
//! A [`Replay`] goes through a journal and stops where the power may go: after
//! each effect that is in doubt until a later sync, and before each sync. What
//! a cut *during* a call leaves is among what it may leave just there: a write
//! that was cut is one of which any sectors arrived.

use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::SimDisk;
use crate::world::NameChange;

/// One change of a disk.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// A name for a new file.
    Create(PathBuf, u64),
    /// A new file without a name.
    Anonymous(u64),
    Name(NameChange),
    Write(u64, usize, Arc<[u8]>),
    SetLen(u64, usize),
    Sync(u64),
    /// A sync that failed, and what decides about what arrived nevertheless.
    FailSync(u64, u64),
    SyncDir(PathBuf),
}

impl Effect {
    /// Whether it makes certain what was in doubt.
    fn settles(&self) -> bool {
        matches!(self, Self::Sync(_) | Self::FailSync(..) | Self::SyncDir(_))
    }
}

/// The changes of a run, in order, each with the number of its call.
#[derive(Debug, Clone)]
pub struct Journal {
    pub(crate) before: SimDisk,
    pub(crate) effects: Vec<(u64, Effect)>,
}

impl Journal {
    /// How many moments there are to cut the power at.
    pub fn len(&self) -> usize {
        self.effects.len()
    }

    /// How many calls changed or synced something.
    pub fn calls(&self) -> u64 {
        self.effects.last().map_or(0, |(call, _)| call + 1)
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Says whether two runs did the same: a hash of every call's kind, name or
    /// file, place, length and bytes.
    pub fn digest(&self) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |word: u64| digest = (digest ^ word).wrapping_mul(0x0100_0000_01b3);
        for (call, effect) in &self.effects {
            mix(*call);
            let of = |bytes: &[u8]| u64::from(crc_fast::crc32_iscsi(bytes));
            let text = |path: &std::path::Path| of(path.as_os_str().as_encoded_bytes());
            let words = match effect {
                Effect::Create(path, inode) => [1, *inode, text(path), 0],
                Effect::Anonymous(inode) => [2, *inode, 0, 0],
                Effect::Name(NameChange::Set(path, inode)) => [3, *inode, text(path), 0],
                Effect::Name(NameChange::Removed(path)) => [4, text(path), 0, 0],
                Effect::Name(NameChange::Renamed(from, to)) => [5, text(from), text(to), 0],
                Effect::Write(inode, at, bytes) => {
                    mix(6);
                    [*inode, *at as u64, bytes.len() as u64, of(bytes)]
                }
                Effect::SetLen(inode, len) => [7, *inode, *len as u64, 0],
                Effect::Sync(inode) => [8, *inode, 0, 0],
                Effect::FailSync(inode, luck) => [9, *inode, *luck, 0],
                Effect::SyncDir(dir) => [10, text(dir), 0, 0],
            };
            words.into_iter().for_each(&mut mix);
        }
        digest
    }

    /// Where another run did something else for the first time, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.digest() == other.digest() {
            return None;
        }
        let text = |journal: &Self, at: usize| match journal.effects.get(at) {
            Some((call, Effect::Write(inode, from, bytes))) => {
                let (len, crc) = (bytes.len(), crc_fast::crc32_iscsi(bytes));
                format!("call {call}: write {len} bytes ({crc:08x}) at {from} of file {inode}")
            }
            Some((call, effect)) => format!("call {call}: {effect:?}"),
            None => "the end".to_owned(),
        };
        (0..self.len().max(other.len())).find_map(|at| {
            let (one, two) = (text(self, at), text(other, at));
            (one != two).then(|| format!("change {at} is {one}, and then {two}"))
        })
    }

    /// Goes through it from the beginning.
    pub fn replay(&self) -> Replay<'_> {
        Replay {
            journal: self,
            disk: self.before.fork(),
            at: 0,
            unsettled: None,
        }
    }
}

/// See the module's header.
#[derive(Debug)]
pub struct Replay<'a> {
    journal: &'a Journal,
    disk: SimDisk,
    at: usize,
    /// An effect to come after the moment that was looked at.
    unsettled: Option<usize>,
}

/// A moment at which the power may go.
#[derive(Debug)]
pub struct Moment<'a> {
    /// Its place among the moments of its journal.
    pub index: usize,
    /// The number of the call that is under way.
    pub call: u64,
    /// The disk. A crash image of it is what the cut leaves.
    pub disk: &'a SimDisk,
}

impl Replay<'_> {
    /// The next moment; `None` after the last.
    pub fn next_moment(&mut self) -> Option<Moment<'_>> {
        if let Some(index) = self.unsettled.take() {
            self.disk.enact(&self.journal.effects[index].1);
        }
        let index = self.at;
        let (call, effect) = self.journal.effects.get(index)?;
        self.at += 1;
        if effect.settles() {
            self.unsettled = Some(index);
        } else {
            self.disk.enact(effect);
        }
        Some(Moment {
            index,
            call: *call,
            disk: &self.disk,
        })
    }
}
