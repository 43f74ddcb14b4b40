//! What a store holds, tree by tree, as the key-value interface shows it.

use std::collections::BTreeMap;

use fulgurite_store::{Key, KeyKind, Seek, Store, Tree, TreeId};

/// No database here has trees of greater numbers.
const NUMBERS_MAX: u32 = 256;

/// A key of either kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnedKey {
    Int(i64),
    Bytes(Vec<u8>),
}

impl OwnedKey {
    pub(super) fn as_key(&self) -> Key<'_> {
        match self {
            OwnedKey::Int(key) => Key::Int(*key),
            OwnedKey::Bytes(key) => Key::Bytes(key),
        }
    }
}

pub(super) type Entries = Vec<(OwnedKey, Vec<u8>)>;

/// All trees that can be read.
pub(super) type Contents = BTreeMap<u32, Entries>;

pub(super) fn contents(store: &Store) -> Contents {
    let mut all = Contents::new();
    for number in 0..NUMBERS_MAX {
        if let Ok(tree) = store.tree(TreeId(number))
            && let Ok(entries) = entries(store, &tree)
        {
            all.insert(number, entries);
        }
    }
    all
}

fn entries(store: &Store, tree: &Tree) -> fulgurite_store::Result<Entries> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut cursor = txn.cursor(tree)?;
    let mut entries = Entries::new();
    let mut more = cursor.seek(Seek::First)?;
    while more {
        let key = match tree.kind() {
            KeyKind::Int => OwnedKey::Int(cursor.key_int()),
            KeyKind::Bytes => OwnedKey::Bytes(cursor.key_bytes()?.to_vec()),
        };
        entries.push((key, cursor.value()?.to_vec()));
        more = cursor.next()?;
    }
    Ok(entries)
}

/// Replaces what is under keys; None removes it.
pub(super) fn change(store: &Store, number: u32, changes: &[(OwnedKey, Option<Vec<u8>>)]) {
    let tree = store.tree(TreeId(number)).expect("it was read");
    let mut txn = store.txn();
    txn.begin_immediate().expect("nobody else writes");
    for (key, value) in changes {
        match value {
            Some(value) => txn.put(&tree, key.as_key(), value).expect("it is written"),
            None => txn.delete(&tree, key.as_key()).expect("it is written"),
        };
    }
    txn.commit().expect("it is written");
}
