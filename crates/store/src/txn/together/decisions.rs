//! What stores keep of transactions over several of them: in the coordinator that one is
//! decided, in the others what it is to do there. Families like any other, but that
//! their names are the store's own: callers neither see nor make nor drop them.
//!
//! ```text
//! decided    number of the transaction (16 bytes) -> version u8 | id of each of the
//!            other files (16 bytes)
//! prepared   number of the transaction (16 bytes) -> version u8 | id of the coordinator's
//!            file (16 bytes) | length u16 | its path, as this process named it | redo
//! ```

use crate::error::{Error, Result};
use crate::names;
use crate::node::Key;
use crate::store::{Core, Store};
use crate::tree::cursor::Seek;
use crate::tree::{KeyKind, Tree};
use crate::txn::{Txn, TxnContext};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The family of the coordinator.
pub(crate) const DECIDED: &str = "\0decided";
/// That of the others.
pub(crate) const PREPARED: &str = "\0prepared";

const VERSION: u8 = 1;

/// Whether a family's name is the store's own.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with('\0')
}

/// The number of a transaction: no other one has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number([u8; 16]);

impl Number {
    pub(super) fn random(core: &Core) -> Self {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&core.pool.waits.random().to_le_bytes());
        }
        Self(bytes)
    }

    pub(super) fn from_key(key: &[u8]) -> Result<Self> {
        let bytes = key.try_into().map_err(|_| malformed())?;
        Ok(Self(bytes))
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key::Bytes(&self.0)
    }
}

/// An entry of the coordinator, with the others' ids.
pub(super) fn decision<'i>(others: impl Iterator<Item = &'i [u8; 16]>) -> Vec<u8> {
    let mut entry = vec![VERSION];
    others.for_each(|id| entry.extend_from_slice(id));
    entry
}

/// The others' ids.
fn others(entry: &[u8]) -> Result<&[[u8; 16]]> {
    match entry.split_first() {
        Some((&VERSION, ids)) => match ids.as_chunks() {
            (ids, []) => Ok(ids),
            _ => Err(malformed()),
        },
        _ => Err(malformed()),
    }
}

/// An entry of who does not coordinate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prepared<'r> {
    pub(super) coordinator: [u8; 16],
    pub(super) path: PathBuf,
    pub(super) redo: &'r [u8],
}

impl<'r> Prepared<'r> {
    pub(super) fn of(coordinator: &Core, redo: &'r [u8]) -> Self {
        Self {
            coordinator: coordinator.database,
            path: coordinator.path.clone().unwrap_or_default(),
            redo,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let path = self.path.as_os_str().as_bytes();
        // No system takes one so long.
        let path = &path[..path.len().min(usize::from(u16::MAX))];
        let mut out = Vec::with_capacity(self.redo.len() + path.len() + 19);
        out.push(VERSION);
        out.extend_from_slice(&self.coordinator);
        out.extend_from_slice(&(path.len() as u16).to_le_bytes());
        out.extend_from_slice(path);
        out.extend_from_slice(self.redo);
        out
    }

    pub(super) fn decode(bytes: &'r [u8]) -> Result<Self> {
        let whole = || {
            let (version, rest) = bytes.split_first()?;
            let (coordinator, rest) = rest.split_first_chunk::<16>()?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (path, redo) = rest.split_at_checked(length)?;
            let entry = Self {
                coordinator: *coordinator,
                path: Path::new(OsStr::from_bytes(path)).to_path_buf(),
                redo,
            };
            (*version == VERSION).then_some(entry)
        };
        whole().ok_or_else(malformed)
    }
}

pub(super) fn malformed() -> Error {
    Error::corrupt(
        "database disk image is malformed: what is kept of a transaction over several files makes no sense",
    )
}

/// The family of this name in a store, if it was made.
pub(super) fn find(store: &Store, name: &str) -> Result<Option<Tree>> {
    let mut txn = store.txn();
    txn.begin_read()?;
    names::find_in(&mut txn, name)
}

/// Makes it, within a transaction.
pub(super) fn create(txn: &mut TxnContext, name: &str) -> Result<Tree> {
    names::find_or_create(txn, name, KeyKind::Bytes).map(|(tree, _)| tree)
}

/// Whether a transaction of this number was decided, as this transaction of its
/// coordinator sees it.
pub(super) fn is_decided(txn: &mut Txn, number: &Number) -> Result<bool> {
    let Some(tree) = names::find_in(txn, DECIDED)? else {
        return Ok(false);
    };
    let mut entry = Vec::new();
    match txn.get_into(&tree, number.key(), &mut entry)? {
        true => others(&entry).map(|_| true),
        false => Ok(false),
    }
}

/// Of the entries of a coordinator those that only stores with these ids would ask for,
/// which have ended what they prepared: they are open, and their writers are excluded.
pub(super) fn finished(txn: &mut Txn, tree: &Tree, ended: &[[u8; 16]]) -> Result<Vec<Number>> {
    let mut found = Vec::new();
    let mut cursor = txn.cursor(tree)?;
    let mut more = cursor.seek(Seek::First)?;
    while more {
        if others(cursor.value()?)?.iter().all(|id| ended.contains(id)) {
            found.push(Number::from_key(cursor.key_bytes()?)?);
        }
        more = cursor.next()?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_or_are_refused() {
        let entry = Prepared {
            coordinator: [7; 16],
            path: PathBuf::from("/a/b.db"),
            redo: b"what is to be done",
        };
        let bytes = entry.encode();
        assert_eq!(Prepared::decode(&bytes).expect("whole"), entry);
        for cut in 0..bytes.len() - entry.redo.len() {
            assert!(Prepared::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Number::from_key(&[1; 15]).is_err());
        let ids = [[3; 16], [4; 16]];
        let bytes = decision(ids.iter());
        assert_eq!(others(&bytes).expect("whole"), ids);
        assert!(others(&bytes[..20]).is_err() && others(&[]).is_err());
    }
}
