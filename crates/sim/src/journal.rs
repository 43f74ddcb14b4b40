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

    /// Says whether two runs did the same: a hash of every call's kind, file,
    /// place and length (not of the bytes, which hold random salts).
    pub fn digest(&self) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |word: u64| digest = (digest ^ word).wrapping_mul(0x0100_0000_01b3);
        for (call, effect) in &self.effects {
            mix(*call);
            match effect {
                Effect::Create(_, inode) => [1, *inode, 0].map(&mut mix),
                Effect::Anonymous(inode) => [2, *inode, 0].map(&mut mix),
                Effect::Name(_) => [3, 0, 0].map(&mut mix),
                Effect::Write(inode, at, bytes) => {
                    [*inode, *at as u64, bytes.len() as u64].map(&mut mix)
                }
                Effect::SetLen(inode, len) => [5, *inode, *len as u64].map(&mut mix),
                Effect::Sync(inode) => [6, *inode, 0].map(&mut mix),
                Effect::FailSync(inode, _) => [7, *inode, 0].map(&mut mix),
                Effect::SyncDir(_) => [8, 0, 0].map(&mut mix),
            };
        }
        digest
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
