//! Keys, and how pages store them.
//!
//! A byte key of up to [`max_key`](super::max_key) bytes stands in its page whole.
//! A longer one is *long*: the page has its first `max_key` bytes, its *start*, and
//! behind them a reference of [`OVERFLOW_REF`] bytes to an extent with all that
//! follows, its *rest*, which is never empty. So a long key and a short one are told
//! apart by the page alone, and two long ones as well unless their starts are the
//! same. Only then the rest decides: functions that compare take what is known of
//! rests, and answer [`Unknown`] with the reference of the one that is missing. The
//! caller, who can wait and fail, compares it, notes the outcome in [`Rests`], and
//! asks again: no page function reads another page.

use std::cmp::Ordering;

use super::OVERFLOW_REF;

/// A key of a tree. Keys of one tree are all of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'a> {
    /// A 64-bit integer (a rowid).
    Int(i64),
    /// A byte string, ordered by memcmp.
    Bytes(&'a [u8]),
}

impl From<i64> for Key<'_> {
    fn from(key: i64) -> Self {
        Key::Int(key)
    }
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(key: &'a [u8]) -> Self {
        Key::Bytes(key)
    }
}

/// A [`Key`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnedKey {
    /// A 64-bit integer.
    Int(i64),
    /// A byte string.
    Bytes(Vec<u8>),
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> Self {
        match key {
            Key::Int(key) => OwnedKey::Int(key),
            Key::Bytes(key) => OwnedKey::Bytes(key.to_vec()),
        }
    }
}

impl OwnedKey {
    /// The key, borrowed.
    pub fn as_key(&self) -> Key<'_> {
        match self {
            OwnedKey::Int(key) => Key::Int(*key),
            OwnedKey::Bytes(key) => Key::Bytes(key),
        }
    }
}

/// A reference to a long key's rest, as it stands in a page.
pub type RestRef = [u8; OVERFLOW_REF];

/// A key as pages store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored<'a> {
    /// The key, or the start of a long one.
    pub key: Key<'a>,
    /// Where a long key goes on.
    pub rest: Option<&'a RestRef>,
}

impl<'a> From<Key<'a>> for Stored<'a> {
    #[inline]
    fn from(key: Key<'a>) -> Self {
        Stored { key, rest: None }
    }
}

impl Stored<'_> {
    /// A copy that owns its bytes.
    pub fn to_owned(self) -> OwnedStored {
        OwnedStored {
            key: self.key.into(),
            rest: self.rest.copied(),
        }
    }
}

/// A [`Stored`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedStored {
    /// The key, or the start of a long one.
    pub key: OwnedKey,
    /// Where a long key goes on.
    pub rest: Option<RestRef>,
}

impl OwnedStored {
    /// The key as stored, borrowed.
    pub fn as_stored(&self) -> Stored<'_> {
        Stored {
            key: self.key.as_key(),
            rest: self.rest.as_ref(),
        }
    }
}

/// A comparison needs the rest of a stored key, which begins as the one sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown(pub RestRef);

/// How the rests of stored keys compare with that of the key sought.
#[derive(Debug, Default)]
pub struct Rests(Vec<(RestRef, Ordering)>);

impl Rests {
    /// Nothing is known.
    pub const NONE: &'static Rests = &Rests(Vec::new());

    /// Notes the order of the rest that was unknown: `Less` if it is less than the
    /// rest of the key sought.
    pub fn note(&mut self, unknown: Unknown, order: Ordering) {
        self.0.push((unknown.0, order));
    }

    pub(super) fn order(&self, rest: &RestRef) -> Result<Ordering, Unknown> {
        let known = self.0.iter().find(|(known, _)| known == rest);
        known.map(|(_, order)| *order).ok_or(Unknown(*rest))
    }
}
