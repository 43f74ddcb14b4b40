//! Named trees: the column families of the key-value interface.
//!
//! Tree 0 maps names to tree numbers. It is a tree like any other, so creating
//! and removing families is atomic and conflicts where it must.
//!
//! A tree can be dropped without its name (`TxnContext::drop_tree`). The name stands for
//! nothing then: it is not found or listed, and can be given anew.

use crate::error::{Error, Result, ShownName};
use crate::node::Key;
use crate::store::Store;
use crate::tree::cursor::Seek;
use crate::tree::{KeyKind, Tree, TreeId};
use crate::txn::together::decisions::is_own;
use crate::txn::{Txn, TxnContext};

/// The tree of names.
pub(crate) const NAMES: TreeId = TreeId(0);

/// No name of the store's own begins so, or comes after it.
const AFTER_OWN: &[u8] = &[1];

/// Fails for a name that only the store gives.
pub(crate) fn check(name: &str) -> Result<()> {
    match is_own(name) {
        true => Err(Error::misuse(format!(
            "{} is no name for a family: those that begin with a zero byte are the store's own",
            ShownName(name)
        ))),
        false => Ok(()),
    }
}

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
fn named(txn: &mut TxnContext, name: &str, stored: &[u8]) -> Result<Option<Tree>> {
    let Some(tree) = txn.store().core().tree(number(stored)?) else {
        return Ok(None);
    };
    let is_there = txn.sees(&tree)?;
    Ok(is_there.then(|| {
        note_name(&tree, name);
        tree
    }))
}

/// So that conflicts can tell it. A name stands for one tree as long as that exists.
fn note_name(tree: &Tree, name: &str) {
    tree.0.family.get_or_init(|| name.into());
}

pub(crate) fn find(store: &Store, name: &str) -> Result<Option<Tree>> {
    let mut txn = store.txn();
    txn.begin_read()?;
    find_in(&mut txn, name)
}

/// The tree of that name, if this transaction sees one.
pub(crate) fn find_in(txn: &mut TxnContext, name: &str) -> Result<Option<Tree>> {
    let names = names(txn.store())?;
    let mut stored = Vec::new();
    if !txn.get_into(&names, Key::Bytes(name.as_bytes()), &mut stored)? {
        return Ok(None);
    }
    named(txn, name, &stored)
}

pub(crate) fn create(store: &Store, name: &str, kind: KeyKind) -> Result<Tree> {
    let existing = match find(store, name)? {
        Some(tree) => tree,
        None => {
            let names = names(store)?;
            let mut txn = store.txn();
            txn.begin_statement(&[&names])?;
            let (tree, is_new) = find_or_create(&mut txn, name, kind)?;
            // If somebody was faster, their commit may still be on its way.
            txn.commit()?;
            if is_new {
                note_name(&tree, name);
            }
            tree
        }
    };
    check_kind(existing, name, kind)
}

fn check_kind(tree: Tree, name: &str, kind: KeyKind) -> Result<Tree> {
    match tree.kind() == kind {
        true => Ok(tree),
        false => Err(Error::misuse(format!(
            "the family {} exists with keys of kind {:?}",
            ShownName(name),
            tree.kind()
        ))),
    }
}

/// The tree of that name as the transaction sees it, and whether it was made just now.
pub(crate) fn find_or_create(
    txn: &mut TxnContext,
    name: &str,
    kind: KeyKind,
) -> Result<(Tree, bool)> {
    if let Some(tree) = find_in(txn, name)? {
        return Ok((tree, false));
    }
    let names = names(txn.store())?;
    let key = Key::Bytes(name.as_bytes());
    // Who may not write to them, or is refused their lock, makes no tree without a name.
    txn.claim_to_write(&names)?;
    let tree = txn.create_tree(kind)?;
    txn.put(&names, key, &tree.id().0.to_le_bytes())?;
    Ok((tree, true))
}

pub(crate) fn remove(store: &Store, name: &str) -> Result<bool> {
    let mut txn = store.txn();
    txn.begin_immediate()?;
    match txn.drop_family(name)? {
        None => {
            txn.rollback();
            Ok(false)
        }
        Some(was_there) => {
            txn.commit()?;
            Ok(was_there)
        }
    }
}

/// Families within a transaction, which are there for others once it commits.
impl Txn {
    /// All named trees that this transaction sees, by their names in order.
    ///
    /// # Errors
    /// What reading may fail with.
    pub fn families(&mut self) -> Result<Vec<(String, Tree)>> {
        let names = names(self.store())?;
        let mut found = Vec::new();
        // The one name before the store's own, which are not looked at: a commit over
        // several stores may make them.
        if let Some(tree) = find_in(self, "")? {
            found.push((String::new(), tree));
        }
        let mut cursor = self.cursor(&names)?;
        let mut more = cursor.seek(Seek::AtLeast(Key::Bytes(AFTER_OWN)))?;
        while more {
            let name = String::from_utf8_lossy(cursor.key_bytes()?).into_owned();
            if let Some(tree) = named(self, &name, cursor.value()?)? {
                found.push((name, tree));
            }
            more = cursor.next()?;
        }
        Ok(found)
    }

    /// The tree with this name, created if there is none.
    ///
    /// # Errors
    /// `Misuse` if there is one with other keys; what writing may fail with.
    pub fn create_family(&mut self, name: &str, kind: KeyKind) -> Result<Tree> {
        check(name)?;
        let (tree, _) = find_or_create(self, name, kind)?;
        check_kind(tree, name, kind)
    }

    /// Removes the tree with this name and everything in it. None: there is no such name,
    /// and nothing was written; false: the name stood for nothing any more.
    ///
    /// # Errors
    /// What writing may fail with.
    pub fn drop_family(&mut self, name: &str) -> Result<Option<bool>> {
        check(name)?;
        let names = names(self.store())?;
        let key = Key::Bytes(name.as_bytes());
        let mut stored = Vec::new();
        if !self.get_into(&names, key, &mut stored)? {
            return Ok(None);
        }
        let tree = named(self, name, &stored)?;
        if let Some(tree) = &tree {
            // Before it: or the name would stay where that may not be written to.
            self.claim_to_write(&names)?;
            self.drop_tree(tree)?;
        }
        self.delete(&names, key)?;
        Ok(Some(tree.is_some()))
    }
}

/// The trees that names stand for, the store's own among them, and that of the names.
pub(crate) fn trees(store: &Store) -> Result<Vec<TreeId>> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut cursor = txn.cursor(&names(store)?)?;
    let mut found = vec![NAMES];
    let mut more = cursor.seek(Seek::First)?;
    while more {
        found.push(number(cursor.value()?)?);
        more = cursor.next()?;
    }
    Ok(found)
}

pub(crate) fn list(store: &Store) -> Result<Vec<String>> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let families = txn.families()?;
    Ok(families.into_iter().map(|(name, _)| name).collect())
}
