//! The dictionaries that the trees' pages are compressed with.
//!
//! A tree has up to seven, numbered in the order they were made; a page's image
//! names the one that it needs. What must hold:
//!
//! 1. A dictionary never changes, and stays as long as its tree can be read: by a
//!    snapshot, by recovery, or to free what died in it.
//! 2. It is in the file and known here before a page is compressed with it; so
//!    the sync that makes the page durable makes the dictionary durable.
//! 3. Every checkpoint's catalog names those of its trees, and every attach
//!    record those of the trees that it writes. Whatever neither names is free
//!    in the persisted map (`Inner::dictionaries` in `space` has all).
//!
//! 4. One that moves ([`move_down`]) leaves its old place as it is until a checkpoint is
//!    durable that names the new one. So whichever of its places the catalog names, or the
//!    first attach record if no catalog does, it is there, and later records that name
//!    another one say nothing new.
//!
//! They are read when a page needs them first. One that has rotted is reported by
//! whatever reads such a page; other trees, and pages without, are read on.

use crate::cache::{Absent, Pool};
use crate::checkpoint;
use crate::checkpoint::meta::Blob;
use crate::codec::{Dictionary, ExtentRef};
use crate::error::{ErrorKind, Result};
use crate::pins;
use crate::primitives::{Mutex, RwLock};
use crate::store::Core;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Where a dictionary is, as catalogs and attach records say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tree: u32,
    pub(crate) number: u8,
    pub(crate) blob: Blob,
}

struct Known {
    entry: Entry,
    loaded: OnceLock<Arc<Dictionary>>,
}

/// When a tree's dictionary is worth another look; see `checkpoint::train`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Leaves written since the store was opened.
    pub(crate) leaves: u64,
    /// Try at so many.
    pub(crate) next: u64,
}

/// See the module's header.
#[derive(Default)]
pub(crate) struct Dictionaries {
    trees: RwLock<FxHashMap<u32, Vec<Arc<Known>>>>,
    progress: Mutex<FxHashMap<u32, Progress>>,
    /// Where those that moved were, until a checkpoint is durable that says where they are.
    moved: Mutex<Vec<ExtentRef>>,
    /// Trees that are gone, and the visible commit when that was noticed.
    gone: Mutex<FxHashMap<u32, u64>>,
}

impl Dictionaries {
    /// Makes one known. False if its number is taken by another.
    pub(crate) fn add(&self, entry: Entry, loaded: Option<Arc<Dictionary>>) -> bool {
        let mut trees = self.trees.write();
        let list = trees.entry(entry.tree).or_default();
        if let Some(known) = list.iter().find(|known| known.entry.number == entry.number) {
            return known.entry == entry;
        }
        let cell = OnceLock::new();
        if let Some(dictionary) = loaded {
            let _ = cell.set(dictionary);
        }
        list.push(Arc::new(Known {
            entry,
            loaded: cell,
        }));
        list.sort_unstable_by_key(|known| known.entry.number);
        true
    }

    /// Says that one is in another place now.
    fn replace(&self, entry: Entry, dictionary: Arc<Dictionary>) {
        let mut trees = self.trees.write();
        let list = trees.entry(entry.tree).or_default();
        let is_it = |known: &&mut Arc<Known>| known.entry.number == entry.number;
        if let Some(known) = list.iter_mut().find(is_it) {
            *known = Arc::new(Known {
                entry,
                loaded: OnceLock::from(dictionary),
            });
        }
    }

    /// Where those that moved were, as long as that is not free.
    pub(crate) fn left(&self) -> Vec<ExtentRef> {
        self.moved.lock().clone()
    }

    fn find(&self, tree: u32, number: u8) -> Option<Arc<Known>> {
        let trees = self.trees.read();
        let list = trees.get(&tree)?;
        list.iter()
            .find(|known| known.entry.number == number)
            .cloned()
    }

    /// Whether this one is known, wherever it is: it may have moved since it was named.
    pub(crate) fn knows(&self, entry: Entry) -> bool {
        let is_it =
            |blob: Blob| (blob.checksum, blob.length) == (entry.blob.checksum, entry.blob.length);
        self.find(entry.tree, entry.number)
            .is_some_and(|known| is_it(known.entry.blob))
    }

    /// Those of a tree, by number.
    pub(crate) fn of(&self, tree: u32) -> Vec<Entry> {
        let trees = self.trees.read();
        let list = trees.get(&tree).map_or(&[][..], Vec::as_slice);
        list.iter().map(|known| known.entry).collect()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Entry> {
        let trees = self.trees.read();
        trees.values().flatten().map(|known| known.entry).collect()
    }

    /// Works on the progress of a tree, which starts with `first`.
    pub(crate) fn progress<R>(
        &self,
        tree: u32,
        first: Progress,
        work: impl FnOnce(&mut Progress) -> R,
    ) -> R {
        work(self.progress.lock().entry(tree).or_insert(first))
    }
}

impl Pool {
    /// The dictionary that images of this tree call `number`, read if need be;
    /// `None` if the tree has no such.
    pub(crate) fn dictionary(&self, tree: u32, number: u8) -> Result<Option<Arc<Dictionary>>> {
        match self.dictionaries.find(tree, number) {
            None => Ok(None),
            Some(known) => self.load_dictionary(&known).map(Some),
        }
    }

    /// The newest dictionary of a tree, to compress with. One that has rotted does
    /// not keep what is new from being written: it is written without.
    pub(crate) fn newest_dictionary(&self, tree: u32) -> Result<Option<Arc<Dictionary>>> {
        let newest = {
            let trees = self.dictionaries.trees.read();
            trees.get(&tree).and_then(|list| list.last().cloned())
        };
        let Some(known) = newest else {
            return Ok(None);
        };
        match self.load_dictionary(&known) {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            loaded => loaded.map(Some),
        }
    }

    fn load_dictionary(&self, known: &Known) -> Result<Arc<Dictionary>> {
        if let Some(dictionary) = known.loaded.get() {
            return Ok(dictionary.clone());
        }
        let bytes = match self.read_dictionary(known.entry) {
            // It moved meanwhile, and something else may be there now.
            Err(_) if known.loaded.get().is_some() => return self.load_dictionary(known),
            read => read?,
        };
        let read = Arc::new(Dictionary::new(known.entry.number, bytes));
        // Another thread may have been faster.
        if known.loaded.set(read.clone()).is_ok() {
            self.charge_bytes(read.bytes().len());
            return Ok(read);
        }
        Ok(known.loaded.get().cloned().unwrap_or(read))
    }

    /// A dictionary's bytes, from the file, verified.
    pub(crate) fn read_dictionary(&self, entry: Entry) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let absent = Absent {
            mismatch: None,
            extent: entry.blob.extent,
            checksum: entry.blob.checksum,
            level: None,
        };
        self.read_image(absent, &mut bytes).map_err(|error| {
            let part = format!("reading dictionary {} of tree {}", entry.number, entry.tree);
            error.during(&part)
        })?;
        bytes.truncate(entry.blob.length as usize);
        Ok(bytes)
    }
}

/// Moves dictionaries to lower places, where there is room for them. For the checkpoint,
/// whose catalog says so.
pub(crate) fn move_down(core: &Core) -> Result<()> {
    let dictionaries = &core.pool.dictionaries;
    let mut entries = dictionaries.all();
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.blob.extent.position()));
    for entry in entries {
        let Some(known) = dictionaries.find(entry.tree, entry.number) else {
            continue;
        };
        // From here on nobody reads it from where it was.
        let dictionary = match core.pool.load_dictionary(&known) {
            Err(error) if error.kind() == ErrorKind::Corrupt => continue,
            loaded => loaded?,
        };
        let old = entry.blob.extent;
        let new = core.space.allocate_dictionary(old.units())?;
        if new.position() > old.position() {
            core.space.free(vec![new]);
            continue;
        }
        let blob = checkpoint::fill_blob(core, new, dictionary.bytes())
            .inspect_err(|_| core.space.free(vec![new]))?;
        dictionaries.replace(Entry { blob, ..entry }, dictionary);
        dictionaries.moved.lock().push(old);
    }
    Ok(())
}

/// Frees the places that dictionaries moved away from. For the checkpoint, once it is
/// durable.
pub(crate) fn free_moved(core: &Core) {
    let moved = std::mem::take(&mut *core.pool.dictionaries.moved.lock());
    core.space.free(moved);
}

/// Frees the dictionaries of trees that nobody can read any more. For the
/// checkpoint, after all that died in them was looked at.
pub(crate) fn retire(core: &Core) {
    let dictionaries = &core.pool.dictionaries;
    let mut gone = dictionaries.gone.lock();
    let trees: Vec<u32> = dictionaries.trees.read().keys().copied().collect();
    gone.retain(|tree, _| trees.contains(tree));
    let oldest = pins::oldest(core).unwrap_or(0);
    let mut free: Vec<ExtentRef> = Vec::new();
    for tree in trees {
        if core.tree(crate::tree::TreeId(tree)).is_some() {
            gone.remove(&tree);
            continue;
        }
        // Whoever reads it has a pin no newer than this, and so has the durable
        // checkpoint while it is one that had the tree.
        let noticed = *gone.entry(tree).or_insert_with(|| core.visible());
        if oldest <= noticed {
            continue;
        }
        let list = dictionaries.trees.write().remove(&tree);
        for known in list.unwrap_or_default() {
            free.push(known.entry.blob.extent);
            if let Some(dictionary) = known.loaded.get() {
                core.pool.uncharge_bytes(dictionary.bytes().len());
            }
        }
        dictionaries.progress.lock().remove(&tree);
        gone.remove(&tree);
    }
    drop(gone);
    core.space.free(free);
}

#[cfg(test)]
mod tests;
