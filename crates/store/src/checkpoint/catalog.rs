//! The catalog: the trees of a checkpoint, their roots and dictionaries.
//!
//! ```text
//! version u8 (2) | 3 zero bytes | trees u32 | dictionaries u32 | 0 u32
//! trees times, by ascending number:
//!   tree u32 | kind u8 | 3 zero bytes | root extent u64 | root checksum u32 | 0 u32 | entries u64
//! dictionaries times, by ascending tree and number:
//!   tree u32 | number u8 | 3 zero bytes | extent u64 | checksum u32 | length in bytes u32
//! ```
//! An empty tree has root extent 0. The meta slot holds the catalog's extent,
//! length and checksum.

use super::meta::Blob;
use crate::codec::{ExtentRef, dictionary};
use crate::dictionaries::Entry as DictionaryEntry;
use crate::tree::KeyKind;

/// A tree as a checkpoint found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tree: u32,
    pub(crate) kind: KeyKind,
    pub(crate) root: Option<(ExtentRef, u32)>,
    pub(crate) count: u64,
}

const VERSION: u8 = 2;
const HEADER: usize = 16;
const ENTRY: usize = 32;
/// Bytes of a dictionary's entry.
pub(crate) const DICTIONARY: usize = 24;

pub(crate) fn encode(entries: &[Entry], dictionaries: &[DictionaryEntry]) -> Vec<u8> {
    let length = HEADER + ENTRY * entries.len() + DICTIONARY * dictionaries.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(dictionaries.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
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
    for entry in dictionaries {
        bytes.extend_from_slice(&encode_dictionary(entry));
    }
    bytes
}

/// A dictionary's entry, here and in attach records.
pub(crate) fn encode_dictionary(entry: &DictionaryEntry) -> [u8; DICTIONARY] {
    let mut bytes = [0; DICTIONARY];
    bytes[..4].copy_from_slice(&entry.tree.to_le_bytes());
    bytes[4] = entry.number;
    bytes[8..16].copy_from_slice(&entry.blob.extent.word().to_le_bytes());
    bytes[16..20].copy_from_slice(&entry.blob.checksum.to_le_bytes());
    bytes[20..].copy_from_slice(&entry.blob.length.to_le_bytes());
    bytes
}

/// Reads a dictionary's entry; `None` if the bytes are not one.
pub(crate) fn decode_dictionary(bytes: &[u8]) -> Option<DictionaryEntry> {
    let [a, b, c, d, number, 0, 0, 0, rest @ ..] = *bytes.first_chunk::<DICTIONARY>()? else {
        return None;
    };
    let (word, rest) = rest.split_first_chunk::<8>()?;
    let (checksum, length) = rest.split_first_chunk::<4>()?;
    let blob = Blob {
        extent: ExtentRef::from_word(u64::from_le_bytes(*word))?,
        checksum: u32::from_le_bytes(*checksum),
        length: u32::from_le_bytes(*length.first_chunk()?),
    };
    let fits = blob.length as usize <= blob.extent.byte_len().min(dictionary::DICTIONARY_MAX);
    let is_numbered = (1..=dictionary::NUMBER_MAX).contains(&number);
    (fits && is_numbered).then_some(DictionaryEntry {
        tree: u32::from_le_bytes([a, b, c, d]),
        number,
        blob,
    })
}

/// Reads a catalog; `None` if the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Vec<Entry>, Vec<DictionaryEntry>)> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [VERSION, 0, 0, 0, a, b, c, d, e, f, g, h, 0, 0, 0, 0] = *header else {
        return None;
    };
    let trees = u32::from_le_bytes([a, b, c, d]) as usize;
    let dictionaries = u32::from_le_bytes([e, f, g, h]) as usize;
    let (trees, rest) = rest.split_at_checked(trees.checked_mul(ENTRY)?)?;
    if rest.len() != dictionaries.checked_mul(DICTIONARY)? {
        return None;
    }
    let trees: Option<Vec<Entry>> = trees.chunks_exact(ENTRY).map(decode_entry).collect();
    let dictionaries = rest.chunks_exact(DICTIONARY).map(decode_dictionary);
    let dictionaries: Vec<DictionaryEntry> = dictionaries.collect::<Option<_>>()?;
    if !dictionaries.is_sorted_by(|a, b| (a.tree, a.number) < (b.tree, b.number)) {
        return None;
    }
    let trees = trees.filter(|trees| trees.is_sorted_by(|a, b| a.tree < b.tree))?;
    Some((trees, dictionaries))
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
        let dictionary = |tree, number| DictionaryEntry {
            tree,
            number,
            blob: Blob {
                extent: ExtentRef::new(40, 64).expect("an extent"),
                checksum: 77,
                length: 4000,
            },
        };
        let dictionaries = [dictionary(9, 1), dictionary(9, 2)];
        let bytes = encode(&entries, &dictionaries);
        let whole = (entries.to_vec(), dictionaries.to_vec());
        assert_eq!(decode(&bytes), Some(whole));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None);
        }
        let swapped = encode(&[entries[1], entries[0]], &[]);
        assert_eq!(decode(&swapped), None);
        for wrong in [dictionary(9, 0), dictionary(9, 8), dictionaries[1]] {
            assert_eq!(decode(&encode(&entries, &[wrong, dictionaries[1]])), None);
        }
    }
}
