//! CRC-32C of the short pieces most records are made of.
//!
//! The library computes long pieces fastest. Below a few hundred bytes it falls
//! back to one instruction per eight bytes, after single bytes up to an aligned
//! address, and a piece starts over with each call. A record's 25-byte head makes
//! its payload unaligned, so that cost two thirds of a checksum. Here the state
//! goes from piece to piece, and pieces are read wherever they lie.

use crc_fast::{CrcAlgorithm, Digest};

/// Longer pieces are the library's.
#[cfg(target_arch = "x86_64")]
const SHORT_BYTES_MAX: usize = 384;

/// A checksum on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crc32c(u32);

impl Crc32c {
    #[inline]
    pub(super) const fn new() -> Self {
        Self(!0)
    }

    /// One that has come so far.
    pub(super) const fn of_finished(sum: u32) -> Self {
        Self(!sum)
    }

    /// Goes on over `bytes`.
    #[inline]
    pub(super) fn update(self, bytes: &[u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() <= SHORT_BYTES_MAX && std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the processor has the instructions, as just found.
            return Self(unsafe { short(self.0, bytes) });
        }
        self.update_long(bytes)
    }

    fn update_long(self, bytes: &[u8]) -> Self {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(self.0));
        digest.update(bytes);
        Self(digest.get_state() as u32)
    }

    #[inline]
    pub(super) const fn finish(self) -> u32 {
        !self.0
    }
}

/// The checksum of a record: of the fields of its head behind the checksum, as
/// they lie in the log, and of its payload.
#[inline]
pub(super) fn of_record(len: u32, seq: u64, durable: u64, kind: u8, parts: &[&[u8]]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let [payload] = parts
        && payload.len() <= SHORT_BYTES_MAX
        && std::arch::is_x86_feature_detected!("sse4.2")
    {
        // SAFETY: the processor has the instructions, as just found.
        return unsafe { of_short_record(len, seq, durable, kind, payload) };
    }
    of_any_record(len, seq, durable, kind, parts)
}

fn of_any_record(len: u32, seq: u64, durable: u64, kind: u8, parts: &[&[u8]]) -> u32 {
    let mut fields = [0; 21];
    fields[0..4].copy_from_slice(&len.to_le_bytes());
    fields[4..12].copy_from_slice(&seq.to_le_bytes());
    fields[12..20].copy_from_slice(&durable.to_le_bytes());
    fields[20] = kind;
    let head = Crc32c::new().update(&fields);
    parts
        .iter()
        .fold(head, |crc, part| crc.update(part))
        .finish()
}

/// The fields go from registers into the checksum: what was just stored cannot
/// be read back as other words before the stores are through.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn of_short_record(len: u32, seq: u64, durable: u64, kind: u8, payload: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let wide = _mm_crc32_u64(u64::from(_mm_crc32_u32(!0, len)), seq);
    let state = _mm_crc32_u8(_mm_crc32_u64(wide, durable) as u32, kind);
    !short(state, payload)
}

/// Eight bytes an instruction, then four, then one.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse4.2")]
fn short(state: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (eights, rest) = bytes.as_chunks();
    let mut wide = u64::from(state);
    for eight in eights {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(*eight));
    }
    // The instruction leaves the upper half zero.
    let mut state = wide as u32;
    let (fours, rest) = rest.as_chunks();
    for four in fours {
        state = _mm_crc32_u32(state, u32::from_le_bytes(*four));
    }
    for byte in rest {
        state = _mm_crc32_u8(state, *byte);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::Crc32c;

    #[test]
    fn agrees_with_the_library_at_every_length_and_cut() {
        let bytes: Vec<u8> = (0..900u32).map(|i| (i * 31 % 251) as u8).collect();
        for len in (0..300).chain([383, 384, 385, 600, 900]) {
            let whole = crc_fast::crc32_iscsi(&bytes[..len]);
            for cut in [0, 1, 7, 21, len / 2, len] {
                let (a, b) = bytes[..len].split_at(cut.min(len));
                let pieces = Crc32c::new().update(a).update(b);
                assert_eq!(pieces.finish(), whole, "{len} bytes cut at {cut}");
            }
            let long = Crc32c::new().update_long(&bytes[..len]);
            assert_eq!(long.finish(), whole);
        }
    }
}
