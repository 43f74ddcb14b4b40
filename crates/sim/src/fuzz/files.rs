//! Database and log files with stretches of them changed.

use std::path::{Path, PathBuf};

use fulgurite_disk::{Disk, OpenOptions};

use crate::damage::{self, Counts, Sample};
use crate::{PATH, Rng, SimDisk};

/// Where the records of a log file begin, and the bytes before a payload
/// (`docs/file-format.md`).
const RECORDS_START: usize = 8192;
const HEAD_BYTES: usize = 25;

#[derive(Debug)]
pub(super) struct Samples {
    closed: Vec<Sample>,
    left: Vec<Sample>,
}

impl Samples {
    pub(super) fn new() -> Self {
        let both = |seed, closed| [damage::small(seed, closed), damage::families(seed, closed)];
        Self {
            closed: (1..4).flat_map(|seed| both(seed, true)).collect(),
            left: (1..4).flat_map(|seed| both(seed, false)).collect(),
        }
    }

    /// The answer is right or an error, however many bytes were changed.
    pub(super) fn database(&self, rng: &mut Rng) {
        let sample = &self.closed[rng.index(self.closed.len())];
        let image = sample.image();
        let path = Path::new(PATH);
        let mut bytes = image.contents(path).unwrap_or_default();
        for _ in 0..1 + rng.below(4) {
            change(&mut bytes, rng);
        }
        put(&image, path, &bytes);
        if !bytes.is_empty() {
            sample.judge(&image, rng.one_in(2), 1, &mut Counts::default());
        }
    }

    /// Records that are valid and mean nothing must not do harm either.
    pub(super) fn log(&self, rng: &mut Rng) {
        let sample = &self.left[rng.index(self.left.len())];
        let image = sample.image();
        let logs: Vec<PathBuf> = sample
            .files()
            .into_iter()
            .filter(|path| path != Path::new(PATH))
            .collect();
        let Some(path) = logs.get(rng.index(logs.len())) else {
            return;
        };
        let mut bytes = image.contents(path).unwrap_or_default();
        let used = sample.used_len(path);
        bytes.truncate((used + 64).min(bytes.len()));
        if rng.one_in(3) {
            for _ in 0..1 + rng.below(4) {
                change(&mut bytes, rng);
            }
        } else {
            change_records(&mut bytes, rng);
        }
        put(&image, path, &bytes);
        sample.survive(&image);
    }
}

fn put(image: &SimDisk, path: &Path, bytes: &[u8]) {
    let options = OpenOptions {
        truncate: true,
        ..OpenOptions::WRITE
    };
    let file = image.open(path, options).expect("nothing fails");
    file.write_at(bytes, 0).expect("nothing fails");
    file.sync_all().expect("nothing fails");
}

/// Changes a byte or a stretch, moves or repeats one, cuts the end.
fn change(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.index(bytes.len());
    let end = bytes.len().min(at + 1 + rng.index(700));
    match rng.below(7) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.bits() as u8,
        2 => bytes[at..end].fill(0),
        3 => bytes[at..end].fill_with(|| rng.bits() as u8),
        4 => {
            let to = rng.index(bytes.len() - (end - at) + 1);
            bytes.copy_within(at..end, to);
        }
        5 => {
            let number = [0, 1, 0x7fff_ffff, u64::MAX, 1 << 47][rng.index(5)];
            let count = 8.min(bytes.len() - at);
            bytes[at..at + count].copy_from_slice(&number.to_le_bytes()[..count]);
        }
        _ if rng.one_in(4) => bytes.truncate(at),
        _ => bytes[at..end].reverse(),
    }
}

/// Changes the records of a log and gives them their checksums again, as the
/// format says: the CRC of what follows it, XOR a mix of salt and position.
fn change_records(bytes: &mut [u8], rng: &mut Rng) {
    let word = |bytes: &[u8], at: usize| -> Option<u64> {
        bytes
            .get(at..at + 8)?
            .try_into()
            .ok()
            .map(u64::from_le_bytes)
    };
    let Some(salt) = word(bytes, 40) else {
        return;
    };
    let mut at = RECORDS_START;
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some(record) = bytes.get_mut(at..at + HEAD_BYTES + len) else {
            return;
        };
        if rng.one_in(2) {
            // Its head now and then, mostly what it holds.
            let from = if rng.one_in(5) { 8 } else { HEAD_BYTES };
            if from < record.len() {
                let place = from + rng.index(record.len() - from);
                let end = record.len().min(place + 1 + rng.index(12));
                match rng.below(3) {
                    0 => record[place] ^= 1 << rng.below(8),
                    1 => record[place..end].fill_with(|| rng.bits() as u8),
                    _ => record[place..end].fill(0xff),
                }
            }
            let crc = crc_fast::crc32_iscsi(&record[4..]) ^ mixed(salt, at as u64);
            record[..4].copy_from_slice(&crc.to_le_bytes());
        }
        at = (at + HEAD_BYTES + len).next_multiple_of(8);
    }
}

fn mixed(salt: u64, position: u64) -> u32 {
    let mut x = salt.wrapping_add(position);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as u32
}
