//! Checksums of long stretches of a file, each in the time of two short ones.
//!
//! A look-out through damaged bytes asks of many positions whether a record begins
//! there. Whoever wrote the payloads may have filled them with what looks like the
//! heads of huge records; a checksum of each would take the square of the log's
//! length. So one pass takes down the checksums of all beginnings that end at a
//! border, every `step` bytes, and those of the stretches between borders follow:
//! with `c(x)` the checksum of what lies before `x`, that of `a .. b` is
//! `c(b) ^ c(a) · x^(8 (b - a))` in the field of polynomials modulo CRC-32C's.

use super::crc::Crc32c;
use super::error::Result;
use super::window::Source;

/// The least distance of two borders.
const STEP_BYTES_MIN: u64 = 1 << 10;
/// Longer files have borders farther apart: 4 MiB of checksums at most.
const BORDERS_MAX: u64 = 1 << 20;
const PIECE_BYTES: u64 = 1 << 20;
/// CRC-32C's polynomial without its highest term; the lowest bit is x^31.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// x^1.
const X: u32 = 1 << 30;

/// The product of two polynomials.
fn product(a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    for bit in (0..32).rev() {
        if a & 1 << bit != 0 {
            sum ^= b;
        }
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    sum
}

/// See the module's header.
pub(super) struct Stretches {
    start: u64,
    step: u64,
    /// The checksum of the bytes from `start` up to each border, 0 first.
    beginnings: Vec<u32>,
    /// What one step, two, four and so on multiply with.
    powers: Vec<u32>,
}

impl Stretches {
    /// Reads `source` from `start` to `end`.
    pub(super) fn of(source: &dyn Source, start: u64, end: u64) -> Result<Self> {
        let len = end.saturating_sub(start);
        let step = (len / BORDERS_MAX)
            .next_power_of_two()
            .clamp(STEP_BYTES_MIN, PIECE_BYTES);
        let mut beginnings = vec![0];
        let mut sum = Crc32c::new();
        let mut bytes = vec![0; len.min(PIECE_BYTES) as usize];
        let mut at = start;
        while at < end {
            let piece = &mut bytes[..(end - at).min(PIECE_BYTES) as usize];
            source.read(piece, at)?;
            for part in piece.chunks_exact(step as usize) {
                sum = sum.update(part);
                beginnings.push(sum.finish());
            }
            at += piece.len() as u64;
        }
        let squarings = 3 + step.trailing_zeros();
        let one_step = (0..squarings).fold(X, |power, _| product(power, power));
        let powers = std::iter::successors(Some(one_step), |power| Some(product(*power, *power)));
        Ok(Self {
            start,
            step,
            beginnings,
            powers: powers.take(u64::BITS as usize).collect(),
        })
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The first border at or behind `from` and the last one at or before `to`,
    /// if there is a stretch between them.
    pub(super) fn borders(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let first = from.checked_sub(self.start)?.div_ceil(self.step);
        let last = (to.checked_sub(self.start)? / self.step).min(self.beginnings.len() as u64 - 1);
        let at = |border: u64| self.start + border * self.step;
        (first < last).then(|| (at(first), at(last)))
    }

    /// Goes on with a checksum over the bytes between two borders.
    pub(super) fn update(&self, sum: Crc32c, from: u64, to: u64) -> Crc32c {
        let beginning = |at: u64| {
            let border = (at - self.start) / self.step;
            self.beginnings.get(border as usize).copied().unwrap_or(0)
        };
        let steps = (to - from) / self.step;
        let before = self
            .powers
            .iter()
            .enumerate()
            .filter(|(bit, _)| steps & 1 << bit != 0)
            .fold(sum.finish() ^ beginning(from), |before, (_, power)| {
                product(*power, before)
            });
        Crc32c::of_finished(before ^ beginning(to))
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::tests::Bytes;
    use super::*;

    #[test]
    fn stretches_agree_with_the_bytes() {
        let bytes: Vec<u8> = (0..3_300_000u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 23) as u8)
            .collect();
        let start = 1_000;
        let source = Bytes(bytes.clone());
        let stretches = Stretches::of(&source, start, bytes.len() as u64).expect("reads");
        for (from, to) in [
            (1_000, 2_024),
            (1_001, 3_300_000),
            (500_003, 777_777),
            (1_048_576, 3_299_999),
            (5_000, 7_100),
        ] {
            let (a, b) = stretches.borders(from, to).expect("borders between them");
            let piece = |from: u64, to: u64| &bytes[from as usize..to as usize];
            let sum = Crc32c::new().update(piece(from, a));
            let sum = stretches.update(sum, a, b).update(piece(b, to));
            let whole = crc_fast::crc32_iscsi(piece(from, to));
            assert_eq!(sum.finish(), whole, "{from} to {to}");
        }
        assert_eq!(stretches.borders(2_025, 3_047), None);
        assert_eq!(stretches.borders(999, 9_000), None);
    }
}
