//! The file's space: which extents are free, shared by all threads.
//!
//! Beside the free map it knows which extents belong to transactions that no
//! checkpoint covers (what forks spilled): they are in use, but the persisted
//! map counts them as free, so that a crash gives them back.

use crate::codec::ExtentRef;
use crate::dictionaries;
use crate::error::{Error, Result};
use crate::extents::{FreeMap, Run};
use crate::primitives::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};

pub(crate) struct Inner {
    pub(crate) map: FreeMap,
    /// Extents of unpublished nodes, each with the cell that will say by which
    /// commit it was published.
    unpublished: FxHashMap<u64, Arc<AtomicU64>>,
    /// Extents of dictionaries: the persisted map counts as free what its
    /// checkpoint's catalog does not name.
    dictionaries: FxHashSet<u64>,
    /// Nodes go to the end of the file, whatever is free, the first ones behind a gap of so
    /// many units.
    at_end: Option<u64>,
    /// A free that did not fit the map: a bug or rot, reported by the next
    /// checkpoint instead of being written down, and by the integrity check.
    fault: Option<String>,
}

/// See the module's header.
pub(crate) struct Space(Mutex<Inner>);

/// The extent that a reference, known to be no handle, names.
///
/// References come from pages that were verified when they were loaded, so a
/// word that names nothing does not occur; it would be answered with the first
/// unit of the file, whose checksum no child has.
pub(crate) fn extent_of(reference: u64) -> ExtentRef {
    const FIRST: ExtentRef = match ExtentRef::new(0, 1) {
        Some(extent) => extent,
        None => panic!("the first unit is an extent"),
    };
    ExtentRef::from_word(reference).unwrap_or(FIRST)
}

/// A run the map handed out for one extent.
fn extent(run: Run) -> Result<ExtentRef> {
    run.extent().ok_or_else(|| {
        Error::new(
            crate::ErrorKind::Full,
            "the database file has reached its largest size",
        )
    })
}

impl Space {
    pub(crate) fn new(map: FreeMap) -> Self {
        Self(Mutex::new(Inner {
            map,
            unpublished: FxHashMap::default(),
            dictionaries: FxHashSet::default(),
            at_end: None,
            fault: None,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// Extents for a batch of nodes, as contiguous as they can be had.
    pub(crate) fn allocate_many(
        &self,
        units: &[u32],
        unpublished: Option<&Arc<AtomicU64>>,
    ) -> Result<Vec<ExtentRef>> {
        let mut inner = self.0.lock();
        // The gap comes once.
        let at_end = inner.at_end.as_mut().map(std::mem::take);
        let runs = match at_end {
            Some(gap) => inner.map.allocate_at_end(units, gap),
            None => inner.map.allocate_many(units),
        };
        let extents: Vec<ExtentRef> = runs.into_iter().map(extent).collect::<Result<_>>()?;
        if let Some(published) = unpublished {
            for extent in &extents {
                inner.unpublished.insert(extent.word(), published.clone());
            }
        }
        Ok(extents)
    }

    /// Has nodes written to the end of the file, behind so many units that stay free, until
    /// what is returned is dropped.
    pub(crate) fn write_at_end(&self, gap: u64) -> AtEnd<'_> {
        self.0.lock().at_end = Some(gap);
        AtEnd(self)
    }

    pub(crate) fn allocate(&self, units: u32) -> Result<ExtentRef> {
        self.0.lock().allocate(units)
    }

    /// An extent for a dictionary.
    pub(crate) fn allocate_dictionary(&self, units: u32) -> Result<ExtentRef> {
        let mut inner = self.0.lock();
        let extent = inner.allocate(units)?;
        inner.dictionaries.insert(extent.word());
        Ok(extent)
    }

    pub(crate) fn free(&self, mut extents: Vec<ExtentRef>) {
        if extents.is_empty() {
            return;
        }
        // Neighbours in the file are neighbours in the map.
        extents.sort_unstable_by_key(|extent| extent.position());
        let mut inner = self.0.lock();
        for extent in extents {
            if !inner.unpublished.is_empty() {
                inner.unpublished.remove(&extent.word());
            }
            if !inner.dictionaries.is_empty() {
                inner.dictionaries.remove(&extent.word());
            }
            if let Err(error) = inner.map.free(extent) {
                inner.fault.get_or_insert(error.to_string());
            }
        }
    }

    /// The first free that did not fit the map.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0.lock().fault {
            None => Ok(()),
            Some(fault) => Err(Error::corrupt(format!(
                "database disk image is malformed: the free map is wrong: {fault}"
            ))),
        }
    }
}

/// See [`Space::write_at_end`].
pub(crate) struct AtEnd<'s>(&'s Space);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.0.lock().at_end = None;
    }
}

impl Inner {
    pub(crate) fn allocate(&mut self, units: u32) -> Result<ExtentRef> {
        extent(self.map.allocate(units))
    }

    /// Extents of nodes that the checkpoint at `seq` does not cover. Those it
    /// covers are forgotten: they are like any other from now on.
    pub(crate) fn beyond(&mut self, seq: u64) -> Vec<ExtentRef> {
        self.unpublished
            .retain(|_, published| published.load(Acquire) > seq);
        self.unpublished().collect()
    }

    /// This extent, in use already, is a dictionary's.
    pub(crate) fn note_dictionary(&mut self, extent: ExtentRef) {
        self.dictionaries.insert(extent.word());
    }

    /// Extents of the dictionaries that are not among these.
    pub(crate) fn dictionaries_but(&self, named: &[dictionaries::Entry]) -> Vec<ExtentRef> {
        let named: FxHashSet<u64> = named.iter().map(|entry| entry.blob.extent.word()).collect();
        let others = self.dictionaries.difference(&named);
        others.map(|word| extent_of(*word)).collect()
    }

    /// Extents of nodes that no checkpoint covers.
    pub(crate) fn unpublished(&self) -> impl Iterator<Item = ExtentRef> + '_ {
        self.unpublished.keys().map(|word| extent_of(*word))
    }
}
