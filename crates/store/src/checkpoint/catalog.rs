//! The catalog: the trees of a checkpoint and their roots.
//!
//! ```text
//! version u8 (1) | 3 zero bytes | count u32
//! count times, by ascending number:
//!   tree u32 | kind u8 | 3 zero bytes | root extent u64 | root checksum u32 | 0 u32 | entries u64
//! ```
//! An empty tree has root extent 0. The meta slot holds the catalog's extent,
//! length and checksum.

use crate::codec::ExtentRef;
use crate::tree::KeyKind;

/// A tree as a checkpoint found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tree: u32,
    pub(crate) kind: KeyKind,
    pub(crate) root: Option<(ExtentRef, u32)>,
    pub(crate) count: u64,
}

const VERSION: u8 = 1;
const HEADER: usize = 8;
const ENTRY: usize = 32;

pub(crate) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + ENTRY * entries.len());
    bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        let (extent, checksum) = entry
            .root
            .map_or((0, 0), |(extent, sum)| (extent.word(), sum));
        bytes.extend_from_slice(&entry.tree.to_le_bytes());
        bytes.extend_from_slice(&[entry.kind.to_byte(), 0, 0, 0]);
        bytes.extend_from_slice(&extent.to_le_bytes());
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&entry.count.to_le_bytes());
    }
    bytes
}

/// Reads a catalog; `None` if the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Entry>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [VERSION, 0, 0, 0, count @ ..] = *header else {
        return None;
    };
    let count = u32::from_le_bytes(count) as usize;
    if rest.len() != count.checked_mul(ENTRY)? {
        return None;
    }
    let entries: Option<Vec<Entry>> = rest.chunks_exact(ENTRY).map(decode_entry).collect();
    entries.filter(|entries| entries.is_sorted_by(|a, b| a.tree < b.tree))
}

fn decode_entry(bytes: &[u8]) -> Option<Entry> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let extent = u64_at(8)?;
    let root = match extent {
        0 => None,
        word => Some((ExtentRef::from_word(word)?, u32_at(16)?)),
    };
    Some(Entry {
        tree: u32_at(0)?,
        kind: KeyKind::from_byte(*bytes.get(4)?)?,
        root,
        count: u64_at(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let entries = [
            Entry {
                tree: 1,
                kind: KeyKind::Bytes,
                root: None,
                count: 0,
            },
            Entry {
                tree: 9,
                kind: KeyKind::Int,
                root: Some((ExtentRef::new(20, 7).expect("an extent"), 0xdead_beef)),
                count: 1 << 40,
            },
        ];
        let bytes = encode(&entries);
        assert_eq!(decode(&bytes), Some(entries.to_vec()));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None);
        }
        let swapped = encode(&[entries[1], entries[0]]);
        assert_eq!(decode(&swapped), None);
    }
}
