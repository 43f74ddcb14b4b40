//! Tests of the page layouts, with the generators they share.

mod draft;
mod fuzz;
mod leaf;
mod long;
mod tree;

pub(crate) use long::{
    Split, child_index, init, insert_at, insert_separator_at, lower_fence, merge_inner,
    owned_key_at, search, split_inner, split_leaf, upper_fence,
};

use super::*;

/// SplitMix64: small, seeded, good enough to drive tests.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// How keys are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Keys {
    DenseInts,
    WideInts,
    /// Few letters, among them zero: shared prefixes, empty keys, equal heads.
    Short,
    /// Long common prefixes, up to the longest key that a page holds whole.
    Long,
    /// The same and longer ones.
    Beyond,
}

impl Keys {
    pub const ALL: [Keys; 5] = [
        Keys::DenseInts,
        Keys::WideInts,
        Keys::Short,
        Keys::Long,
        Keys::Beyond,
    ];

    pub fn leaf(self) -> Kind {
        if matches!(self, Keys::DenseInts | Keys::WideInts) {
            Kind::IntLeaf
        } else {
            Kind::BytesLeaf
        }
    }

    pub fn inner(self) -> Kind {
        if matches!(self, Keys::DenseInts | Keys::WideInts) {
            Kind::IntInner
        } else {
            Kind::BytesInner
        }
    }

    pub fn draw(self, random: &mut Random, page_size: usize) -> OwnedKey {
        const LETTERS: [u8; 4] = [0, 1, b'a', 0xff];
        match self {
            Keys::DenseInts => OwnedKey::Int(random.below(2000) as i64 - 1000),
            Keys::WideInts => match random.below(20) {
                0 => OwnedKey::Int(i64::MIN + random.below(4) as i64),
                1 => OwnedKey::Int(i64::MAX - random.below(4) as i64),
                _ => OwnedKey::Int(random.next() as i64),
            },
            Keys::Short => {
                let len = random.below(9);
                OwnedKey::Bytes((0..len).map(|_| LETTERS[random.below(4)]).collect())
            }
            Keys::Long => {
                let max = max_key(page_size);
                let common = [0, 3, 4, 5, 100, max - 2, max][random.below(7)];
                let mut key = vec![b'p'; common];
                let rest = random.below(7).min(max - common);
                key.extend((0..rest).map(|_| LETTERS[random.below(4)]));
                if random.below(4) == 0 {
                    key.resize(max, random.next() as u8);
                }
                OwnedKey::Bytes(key)
            }
            Keys::Beyond => {
                let OwnedKey::Bytes(mut key) = Keys::Long.draw(random, page_size) else {
                    unreachable!()
                };
                if random.below(3) > 0 {
                    let last = [b'p', b'p', random.next() as u8][random.below(3)];
                    key.resize(max_key(page_size), last);
                    let rest = random.below(long::REST_MAX + 1);
                    key.extend((0..rest).map(|_| LETTERS[random.below(2)]));
                }
                OwnedKey::Bytes(key)
            }
        }
    }
}

pub(super) fn key_len(key: &OwnedKey) -> usize {
    match key {
        OwnedKey::Int(_) => 0,
        OwnedKey::Bytes(key) => key.len(),
    }
}

/// A value within the limits, and whether it poses as an overflow reference.
pub(super) fn draw_value(random: &mut Random, key: &OwnedKey, page_size: usize) -> (Vec<u8>, bool) {
    let max = max_inline_value(page_size, stored_len(page_size, key.as_key()));
    let (len, overflow) = match random.below(10) {
        0 => (max, false),
        1 => (0, false),
        2 => (OVERFLOW_REF, true),
        3 => (random.below(max), false),
        _ => (random.below(60), false),
    };
    (vec![random.next() as u8; len], overflow)
}

/// A page with the header and stale bytes of another life.
pub(super) fn stale(page_size: usize) -> Vec<u8> {
    vec![0xA5; page_size]
}

#[test]
fn limits_and_offsets() {
    assert_eq!(child_offset(4096, 0), 4080);
    assert_eq!(child_offset(65536, 2), 65536 - 48);
    assert_eq!(key_area(4096, 3), 4048);
    assert_eq!(max_chunk(4096), 4064);
    assert_eq!(max_overflow_children(4096), 254);
    assert_eq!(separator(b"", b"a"), b"a");
    assert_eq!(separator(b"abc", b"abcde"), b"abcd");
    assert_eq!(separator(b"abcx", b"abd"), b"abd");
    assert_eq!(separator(b"a", b"bcd"), b"b");
}

#[test]
fn overflow_chunks() {
    for page_size in [4096, 65536] {
        for len in [0, 1, 100, max_chunk(page_size)] {
            let mut page = stale(page_size);
            let payload = vec![7; len];
            init_overflow(&mut page, 9, &payload);
            assert_eq!(check(&page), Ok(()));
            assert_eq!(overflow_payload(&page), payload);
            assert_eq!((child_count(&page), tree(&page), level(&page)), (0, 9, 0));
            page[AT_PAYLOAD..AT_PAYLOAD + 4]
                .copy_from_slice(&(max_chunk(page_size) as u32 + 1).to_le_bytes());
            assert!(check(&page).is_err());
        }
        for children in [1, 2, max_overflow_children(page_size)] {
            let mut page = stale(page_size);
            init_overflow_index(&mut page, 9, 2, children);
            assert_eq!(check(&page), Ok(()));
            assert_eq!((child_count(&page), level(&page)), (children, 2));
            page[AT_PAYLOAD] = 1;
            assert!(check(&page).is_err());
        }
    }
}
