//! Named trees: the column families of the key-value interface.
//!
//! Tree 0 maps names to tree numbers. It is a tree like any other, so creating
//! and removing families is atomic and conflicts where it must.
//!
//! A tree can be dropped without its name (`TxnContext::drop_tree`). The name stands for
//! nothing then: it is not found or listed, and can be given anew.

use crate::error::{Error, Result};
use crate::node::Key;
use crate::store::Store;
use crate::tree::cursor::Seek;
use crate::tree::{KeyKind, Tree, TreeId};
use crate::txn::Txn;

/// The tree of names.
pub(crate) const NAMES: TreeId = TreeId(0);

fn names(store: &Store) -> Result<Tree> {
    store.tree(NAMES)
}

fn number(stored: &[u8]) -> Result<TreeId> {
    let bytes = stored
        .try_into()
        .map_err(|_| Error::corrupt("database disk image is malformed: a family's tree number"))?;
    Ok(TreeId(u32::from_le_bytes(bytes)))
}

/// The tree that a name stands for, unless it is gone.
fn named(txn: &mut Txn, name: &str, stored: &[u8]) -> Result<Option<Tree>> {
    let tree = txn.store().core().tree(number(stored)?);
    let tree = tree.filter(|tree| txn.estimate(tree).is_ok());
    Ok(tree.inspect(|tree| note_name(tree, name)))
}

/// So that conflicts can tell it. A name stands for one tree as long as that exists.
fn note_name(tree: &Tree, name: &str) {
    tree.0.family.get_or_init(|| name.into());
}

pub(crate) fn find(store: &Store, name: &str) -> Result<Option<Tree>> {
    let names = names(store)?;
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut stored = Vec::new();
    if !txn.get_into(&names, Key::Bytes(name.as_bytes()), &mut stored)? {
        return Ok(None);
    }
    named(&mut txn, name, &stored)
}

pub(crate) fn create(store: &Store, name: &str, kind: KeyKind) -> Result<Tree> {
    let existing = match find(store, name)? {
        Some(tree) => tree,
        None => {
            let names = names(store)?;
            let mut txn = store.txn();
            txn.begin_statement(&[&names])?;
            let key = Key::Bytes(name.as_bytes());
            let mut stored = Vec::new();
            let existing = match txn.get_into(&names, key, &mut stored)? {
                true => named(&mut txn, name, &stored)?,
                false => None,
            };
            let Some(existing) = existing else {
                let tree = txn.create_tree(kind)?;
                txn.put(&names, key, &tree.id().0.to_le_bytes())?;
                txn.commit()?;
                note_name(&tree, name);
                return Ok(tree);
            };
            // Somebody was faster; their commit may still be on its way.
            txn.commit()?;
            existing
        }
    };
    if existing.kind() != kind {
        return Err(Error::misuse(format!(
            "the family {name:?} exists with keys of kind {:?}",
            existing.kind()
        )));
    }
    Ok(existing)
}

pub(crate) fn remove(store: &Store, name: &str) -> Result<bool> {
    let names = names(store)?;
    let mut txn = store.txn();
    let key = Key::Bytes(name.as_bytes());
    let mut stored = Vec::new();
    txn.begin_immediate()?;
    if !txn.get_into(&names, key, &mut stored)? {
        txn.rollback();
        return Ok(false);
    }
    let tree = named(&mut txn, name, &stored)?;
    if let Some(tree) = &tree {
        txn.drop_tree(tree)?;
    }
    txn.delete(&names, key)?;
    txn.commit()?;
    Ok(tree.is_some())
}

pub(crate) fn list(store: &Store) -> Result<Vec<String>> {
    let names = names(store)?;
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut cursor = txn.cursor(&names)?;
    let mut found = Vec::new();
    let mut more = cursor.seek(Seek::First)?;
    while more {
        let name = String::from_utf8_lossy(cursor.key_bytes()?).into_owned();
        if named(&mut txn, &name, cursor.value()?)?.is_some() {
            found.push(name);
        }
        more = cursor.next()?;
    }
    Ok(found)
}
