//! Neighbouring entries of an index, read a leaf at a time, in either direction.

use fulgurite_store::{Entries, Entry};

use crate::error::Result;
use crate::key;

/// Most bytes of an encoded rowid.
const ROWID_MAX: usize = 10;

/// Calls `f` with key and value of each entry, `reverse` from the last one on, up to one whose
/// value lies outside its leaf, or one at which it says that this is enough; how many. `key` is
/// memory for keys.
#[inline]
pub fn each_entry(
    entries: Entries<'_>,
    reverse: bool,
    key: &mut Vec<u8>,
    f: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<usize> {
    match reverse {
        false => each(entries.iter(), entries.prefix(), key, f),
        true => each(entries.iter().rev(), entries.prefix(), key, f),
    }
}

#[inline]
fn each<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    prefix: &[u8],
    key: &mut Vec<u8>,
    mut f: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<usize> {
    let mut count = 0;
    key.clear();
    key.extend_from_slice(prefix);
    for entry in entries {
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
    reverse: bool,
    is_unique: bool,
    key: &mut Vec<u8>,
    mut f: impl FnMut(i64),
) -> Result<usize> {
    if !is_unique && entries.iter().all(|entry| entry.tail.len() >= ROWID_MAX) {
        let mut take = |entry: Entry<'_>| -> Result<()> {
            f(key::rowid_suffix(entry.tail)?);
            Ok(())
        };
        match reverse {
            false => entries.iter().try_for_each(&mut take)?,
            true => entries.iter().rev().try_for_each(&mut take)?,
        }
        return Ok(entries.len());
    }
    each_entry(entries, reverse, key, |key, value| {
        f(key::entry_rowid(key, value, is_unique)?);
        Ok(true)
    })
}
