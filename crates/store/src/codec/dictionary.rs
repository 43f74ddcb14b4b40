//! Dictionaries: what the pages of a tree have in common.
//!
//! A page of a few kilobytes is over before a compressor has met the words that
//! its rows use. A dictionary has them at hand: a few kilobytes that stand before
//! each page as if they were compressed already. It is [trained](train) on some
//! pages of its tree and never changes.

use super::lz4;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a dictionary at most.
pub(crate) const DICTIONARY_MAX: usize = 4096;
/// Bytes of a dictionary worth having.
const DICTIONARY_MIN: usize = 256;
/// The highest number of a dictionary; 0 says that there is none.
pub(crate) const NUMBER_MAX: u8 = 7;
/// The largest page that a window holds beside a dictionary.
const PAGE_MAX: usize = 1 << 15;
const _: () = assert!(PAGE_MAX + DICTIONARY_MAX <= lz4::WINDOW_MAX);

/// Whether pages of this size can have a dictionary.
pub(crate) fn fits(page_size: usize) -> bool {
    page_size <= PAGE_MAX
}

/// A dictionary in memory.
#[derive(Debug)]
pub(crate) struct Dictionary {
    number: u8,
    bytes: Vec<u8>,
    /// Differs from that of every other one in this process.
    serial: u64,
}

impl Dictionary {
    /// The dictionary that its tree's images call `number`.
    pub(crate) fn new(number: u8, bytes: Vec<u8>) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Self {
            number,
            bytes,
            serial: SERIAL.fetch_add(1, Relaxed),
        }
    }

    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }
}

/// Bytes of the words that are counted.
const WORD: usize = 6;
/// Bytes of the pieces that a dictionary is put together from.
const PIECE: usize = 32;
const WORDS: usize = PIECE - WORD + 1;
const COUNTER_BITS: u32 = 18;

/// In how many samples each word occurs.
struct Counts(Vec<u16>);

impl Counts {
    fn new() -> Self {
        Self(vec![0; 1 << COUNTER_BITS])
    }

    /// Where the words of `sample` are counted.
    fn places(sample: &[u8]) -> Vec<u32> {
        let words = sample.windows(WORD).filter_map(|word| word.first_chunk());
        words
            .map(|[a, b, c, d, e, f]: &[u8; WORD]| {
                let word = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]);
                (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - COUNTER_BITS)) as u32
            })
            .collect()
    }

    fn of(&self, place: u32) -> u32 {
        u32::from(self.0[place as usize])
    }

    /// Counts each word once a sample; those of one sample alone do not count.
    fn fill(&mut self, samples: &[Vec<u32>]) {
        let mut seen = vec![0; self.0.len()];
        for (number, sample) in (1_u16..).zip(samples) {
            for place in sample.iter().map(|place| *place as usize) {
                if seen[place] != number {
                    seen[place] = number;
                    self.0[place] += 1;
                }
            }
        }
        for count in self.0.iter_mut().filter(|count| **count == 1) {
            *count = 0;
        }
    }

    /// The piece of a sample whose words occur in most samples: their sum and
    /// where it begins.
    fn best(&self, sample: &[u32]) -> Option<(u32, usize)> {
        let mut sum: u32 = sample.get(..WORDS)?.iter().map(|word| self.of(*word)).sum();
        let mut best = (sum, 0);
        for (at, come) in sample.iter().enumerate().skip(WORDS) {
            let begin = at + 1 - WORDS;
            sum = sum + self.of(*come) - self.of(sample[begin - 1]);
            if sum > best.0 {
                best = (sum, begin);
            }
        }
        Some(best)
    }

    /// A piece without the words at either end that count nothing. From then on
    /// none of its words do.
    fn take(&mut self, sample: &[u8], words: &[u32], begin: usize) -> Vec<u8> {
        let piece = words.get(begin..begin + WORDS).unwrap_or_default();
        let first = piece.iter().position(|word| self.of(*word) > 0);
        let last = piece.iter().rposition(|word| self.of(*word) > 0);
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        for word in piece {
            self.0[*word as usize] = 0;
        }
        sample[begin + first..begin + last + WORD].to_vec()
    }
}

/// Puts a dictionary together from what occurs in many of the samples, the
/// payloads of pages: each piece from another sample, always the one that adds
/// most. `None` if there is too little. The same samples give the same bytes.
pub(crate) fn train(samples: &[Vec<u8>]) -> Option<Vec<u8>> {
    let words: Vec<Vec<u32>> = samples
        .iter()
        .map(|sample| Counts::places(sample))
        .collect();
    let mut counts = Counts::new();
    counts.fill(&words);
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut length = 0;
    // Samples among which each piece is chosen.
    let group = (samples.len() * PIECE).div_ceil(DICTIONARY_MAX).max(1);
    while length < DICTIONARY_MAX {
        let before = length;
        for (samples, words) in samples.chunks(group).zip(words.chunks(group)) {
            let found = samples.iter().zip(words).filter_map(|(sample, words)| {
                let (sum, begin) = counts.best(words)?;
                Some((sum, sample, words, begin))
            });
            if let Some((1.., sample, words, begin)) = found.max_by_key(|found| found.0) {
                let piece = counts.take(sample, words, begin);
                length += piece.len();
                pieces.push(piece);
            }
            if length >= DICTIONARY_MAX {
                break;
            }
        }
        if length == before {
            break;
        }
    }
    // The best ones last: where two want a place in the table, they get it.
    pieces.reverse();
    let mut bytes = pieces.concat();
    bytes.drain(..bytes.len().saturating_sub(DICTIONARY_MAX));
    (bytes.len() >= DICTIONARY_MIN).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_samples_share_is_found() {
        let row = |n: u32| format!("{:x}|customer@example.org|{:x}", n * 77_777, n ^ 0x5a5a5a);
        let page = |n: u32| (n * 50..n * 50 + 50).flat_map(|n| row(n).into_bytes());
        let samples: Vec<Vec<u8>> = (1..40).map(|n| page(n).collect()).collect();
        let bytes = train(&samples).expect("enough in common");
        assert!(bytes.len() <= DICTIONARY_MAX);
        let text = String::from_utf8(bytes.clone()).expect("made of rows");
        assert!(text.contains("|customer@example.org|"), "{text}");
        assert_eq!(train(&samples), Some(bytes), "the same every time");
    }

    #[test]
    fn samples_without_anything_in_common_train_nothing() {
        let mut state = 1_u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let samples: Vec<Vec<u8>> = (0..8)
            .map(|_| (0..200).map(|_| noise()).collect())
            .collect();
        assert!(train(&samples).is_none());
        assert_eq!(train(&[]), None);
        assert_eq!(train(&[vec![], vec![1, 2, 3]]), None);
    }
}
