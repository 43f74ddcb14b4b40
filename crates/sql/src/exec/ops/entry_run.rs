//! Neighbouring entries of an index, read a leaf at a time.

use fulgurite_store::Entries;

use crate::error::Result;
use crate::key;

/// Most bytes of an encoded rowid.
const ROWID_MAX: usize = 10;

/// Calls `f` with key and value of each entry, up to one whose value lies outside its leaf,
/// or one at which it says that this is enough; how many. `key` is memory for keys.
#[inline]
pub fn each_entry(
    entries: Entries<'_>,
    key: &mut Vec<u8>,
    mut f: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<usize> {
    let mut count = 0;
    let prefix = entries.prefix();
    key.clear();
    key.extend_from_slice(prefix);
    for entry in entries.iter() {
        let Some(value) = entry.value else { break };
        key.truncate(prefix.len());
        entry.append_to(key);
        count += 1;
        if !f(key, value)? {
            break;
        }
    }
    Ok(count)
}

/// Calls `f` with the rowid of each entry of an index, as [`each_entry`] does.
#[inline]
pub fn each_rowid(
    entries: Entries<'_>,
    is_unique: bool,
    key: &mut Vec<u8>,
    mut f: impl FnMut(i64),
) -> Result<usize> {
    if !is_unique && entries.iter().all(|entry| entry.tail.len() >= ROWID_MAX) {
        for entry in entries.iter() {
            f(key::rowid_suffix(entry.tail)?);
        }
        return Ok(entries.len());
    }
    each_entry(entries, key, |key, value| {
        f(key::entry_rowid(key, value, is_unique)?);
        Ok(true)
    })
}
