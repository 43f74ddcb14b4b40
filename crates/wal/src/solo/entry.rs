//! Positions in the log, and records with a type.

use std::fmt;

use super::super::ReplayError;

/// A position in the log, in bytes: where a record begins. Positions only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub(super) u64);

impl Lsn {
    /// Stands for the oldest record that is kept, whatever its position.
    pub const FIRST: Self = Self(0);

    /// A position that was kept outside the log.
    pub const fn from_u64(position: u64) -> Self {
        Self(position)
    }

    /// The position, to be kept outside the log.
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a typed log's records are.
pub trait Entry: Sized {
    /// Appends the bytes that stand for it to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// What `bytes` stand for. The log vouches that they are what `encode` gave,
    /// but an older program may have written them.
    ///
    /// # Errors
    /// Whatever is wrong with them; it ends the replay.
    fn decode(bytes: &[u8]) -> Result<Self, ReplayError>;
}

impl Entry for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self, ReplayError> {
        Ok(bytes.to_vec())
    }
}

impl Entry for String {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, ReplayError> {
        Ok(String::from_utf8(bytes.to_vec())?)
    }
}
