//! Writing an index anew, from what it held and changes in the order of their keys.
//!
//! Each entry is read and written once, in order, where many changes would each find their
//! place. What fails leaves it where it was: it may be gone on with.

use super::deferred::{LOOK, Request};
use crate::error::Result;
use fulgurite_store::{Appending, Cursor, Key, Suspended};

/// How far an index has been written.
pub(super) struct Merge {
    /// At the first entry that was there and is not written yet.
    held: Cursor,
    /// The key that was changed last, while it may be changed again, and its entry's value;
    /// at first none: no key of an index is empty.
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    /// What is gathered between two calls.
    pub suspended: Suspended,
    buffer: Vec<u8>,
    looked: u32,
}

impl Merge {
    /// Of an index that held this, and is empty now.
    pub fn new(held: Cursor) -> Self {
        Self {
            held,
            key: Vec::new(),
            value: None,
            suspended: Suspended::default(),
            buffer: Vec::new(),
            looked: 0,
        }
    }

    /// Carries out a request; false, and nothing is done, where a new entry's key is taken.
    pub fn change(
        &mut self,
        entries: &mut Appending<'_>,
        key: &[u8],
        request: Request<'_>,
        look: &impl Fn() -> Result<()>,
    ) -> Result<bool> {
        if self.key != key {
            self.write_changed(entries)?;
            self.copy_below(entries, Some(key), look)?;
            self.take(key)?;
        }
        let value = match request {
            Request::Insert(_) if self.value.is_some() => return Ok(false),
            Request::Insert(value) | Request::Put(value) => value,
            Request::Delete => {
                self.value = None;
                return Ok(true);
            }
        };
        let changed = self.value.get_or_insert_default();
        changed.clear();
        changed.extend_from_slice(value);
        Ok(true)
    }

    /// Writes all that is left.
    pub fn finish(
        &mut self,
        entries: &mut Appending<'_>,
        look: &impl Fn() -> Result<()>,
    ) -> Result<()> {
        self.write_changed(entries)?;
        self.copy_below(entries, None, look)?;
        Ok(entries.finish()?)
    }

    /// The key that was changed is not changed again.
    fn write_changed(&mut self, entries: &mut Appending<'_>) -> Result<()> {
        if let Some(value) = &self.value {
            entries.insert(Key::Bytes(&self.key), value)?;
        }
        self.value = None;
        Ok(())
    }

    /// Copies what was there below a key, or all.
    fn copy_below(
        &mut self,
        entries: &mut Appending<'_>,
        below: Option<&[u8]>,
        look: &impl Fn() -> Result<()>,
    ) -> Result<()> {
        while self.held.valid() {
            let key = self.held.key_bytes()?;
            if below.is_some_and(|below| key >= below) {
                break;
            }
            self.buffer.clear();
            self.buffer.extend_from_slice(key);
            entries.insert(Key::Bytes(&self.buffer), self.held.value()?)?;
            self.held.next()?;
            self.looked = self.looked.wrapping_add(1);
            if self.looked.is_multiple_of(LOOK) {
                look()?;
            }
        }
        Ok(())
    }

    /// Goes on to a key, with the entry that it had.
    fn take(&mut self, key: &[u8]) -> Result<()> {
        let had = self.held.valid() && self.held.key_bytes()? == key;
        let value = match had {
            true => Some(self.held.value()?.to_vec()),
            false => None,
        };
        if had {
            self.held.next()?;
        }
        self.value = value;
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }
}
