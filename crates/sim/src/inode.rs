//! One simulated file: what the process sees, what is on the platter, and what
//! may be.
//!
//! The unit is the sector of 512 bytes, which is written whole or not at all (now
//! and then one of 4096 bytes).
//! Between syncs every sector keeps its successive contents. After a power cut
//! it holds one of them, or what it held at the last sync, whichever the disk
//! got to; sectors are independent of one another, so later writes may have
//! arrived where earlier ones have not. The file's length goes its own way: it
//! is one of those it had since the last sync. Where the length arrived and the
//! bytes did not, there are zeros, or now and then junk.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::Rng;
use crate::pages::Pages;

pub(crate) const SECTOR_BYTES: usize = 512;
const SECTORS_OF_A_LARGE_ONE: usize = 8;

type Sector = Arc<[u8; SECTOR_BYTES]>;

/// How a power cut treats what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Luck {
    /// Everything arrived.
    All,
    /// Nothing arrived.
    Nothing,
    /// Each sector for itself.
    EachItsOwn,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Inode {
    /// What reads see.
    live: Pages,
    /// What certainly survives.
    durable: Pages,
    /// The contents each sector had since the last sync, oldest first.
    pending: BTreeMap<usize, Vec<Sector>>,
    /// The lengths the file had since the last sync, oldest first.
    pending_lens: Vec<usize>,
}

impl Inode {
    /// A file that is durable as it is.
    pub(crate) fn settled(bytes: Pages) -> Self {
        Self {
            live: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    pub(crate) fn live(&self) -> &Pages {
        &self.live
    }

    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.live.len() < end {
            self.live.resize(end);
            self.pending_lens.push(end);
        }
        self.live.write(offset, bytes);
        self.remember(offset, end);
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        let before = self.live.len();
        if before == len {
            return;
        }
        self.live.resize(len);
        self.pending_lens.push(len);
        if len < before {
            // Should the file grow again, what is cut off now must not return.
            self.remember(len, before);
        }
    }

    /// Takes down what the sectors of a range hold now.
    fn remember(&mut self, start: usize, end: usize) {
        for number in start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let sector = sector_of(&self.live, number);
            let versions = self.pending.entry(number).or_default();
            if versions.last() != Some(&sector) {
                versions.push(sector);
            }
        }
    }

    /// Writes what is unsynced, and no more: what a failed sync lost stays lost.
    pub(crate) fn sync(&mut self) {
        if let Some(len) = self.pending_lens.last() {
            self.durable.resize(*len);
        }
        let len = self.durable.len();
        for (number, versions) in &self.pending {
            let start = len.min(number * SECTOR_BYTES);
            let end = len.min(start + SECTOR_BYTES);
            if let Some(newest) = versions.last() {
                self.durable.write(start, &newest[..end - start]);
            }
        }
        self.pending.clear();
        self.pending_lens.clear();
    }

    /// A sync that failed: what was unsynced has arrived or not, and the
    /// operating system takes it all for clean from now on.
    pub(crate) fn fail_sync(&mut self, rng: &mut Rng) {
        self.durable = self.after_power_cut(rng);
        self.pending.clear();
        self.pending_lens.clear();
        if self.durable.len() != self.live.len() {
            // A length is attribute enough to be written with the next sync.
            self.pending_lens.push(self.live.len());
        }
    }

    /// What the file holds after a power cut.
    pub(crate) fn after_power_cut(&self, rng: &mut Rng) -> Pages {
        let luck = match rng.below(8) {
            0 => Luck::All,
            1 => Luck::Nothing,
            _ => Luck::EachItsOwn,
        };
        // Drives with large sectors write eight of ours whole or not at all.
        let large = rng.one_in(4).then(|| rng.bits());
        let arrives = |rng: &mut Rng, versions: usize| match luck {
            Luck::All => versions,
            Luck::Nothing => 0,
            Luck::EachItsOwn => match rng.below(4) {
                0 => 0,
                1 | 2 => versions,
                _ => rng.index(versions + 1),
            },
        };
        let sector_arrives = |rng: &mut Rng, number: usize, versions: usize| match large {
            Some(salt) if luck == Luck::EachItsOwn => {
                match Rng::new(salt ^ (number / SECTORS_OF_A_LARGE_ONE) as u64).one_in(2) {
                    true => versions,
                    false => 0,
                }
            }
            _ => arrives(rng, versions),
        };
        let len = match arrives(rng, self.pending_lens.len()).checked_sub(1) {
            Some(index) => self.pending_lens[index],
            None => self.durable.len(),
        };
        let mut bytes = self.durable.clone();
        bytes.resize(len);
        for (number, versions) in &self.pending {
            let start = number * SECTOR_BYTES;
            if start >= len {
                break;
            }
            let count = SECTOR_BYTES.min(len - start);
            match sector_arrives(rng, *number, versions.len()).checked_sub(1) {
                Some(index) => bytes.write(start, &versions[index][..count]),
                None if start >= self.durable.len()
                    && luck == Luck::EachItsOwn
                    && rng.one_in(16) =>
                {
                    let mut junk = [0; SECTOR_BYTES];
                    junk.fill_with(|| rng.bits() as u8);
                    bytes.write(start, &junk[..count]);
                }
                None => {}
            }
        }
        bytes
    }

    /// Changes a byte for good, as rot does.
    pub(crate) fn rot(&mut self, offset: usize, change: &mut dyn FnMut(&mut u8)) -> bool {
        self.durable.change(offset, change);
        self.pending.remove(&(offset / SECTOR_BYTES));
        self.live.change(offset, change)
    }
}

fn sector_of(bytes: &Pages, number: usize) -> Sector {
    static ZEROS: LazyLock<Sector> = LazyLock::new(|| Arc::new([0; SECTOR_BYTES]));
    let start = number * SECTOR_BYTES;
    if bytes.is_zero_piece(start) {
        return Arc::clone(&ZEROS);
    }
    let mut sector = [0; SECTOR_BYTES];
    bytes.read(start, &mut sector);
    Arc::new(sector)
}
