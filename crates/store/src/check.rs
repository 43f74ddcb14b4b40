//! The integrity check: walks everything and says what is wrong.
//!
//! Each tree's visible version is walked from its root. A node that has an
//! extent is read from disk, not from the cache, so that what is checked is what
//! a restart would find: checksum, structure, level, key order, that its keys lie
//! within what its parent says, the rests of long keys included. Counts are compared with the tree's. At last
//! every extent must be used by one node or blob only, and, where all could be read, all
//! others be free.
//!
//! A checkpoint cannot run meanwhile; readers and writers go on.

use crate::cache::{Absent, ChildRef, SlotId};
use crate::codec::ExtentRef;
use crate::error::{Error, ErrorKind, Result};
use crate::extents::Run;
use crate::node::{self, Kind, Mismatch, OwnedKey, OwnedStored, Stored};
use crate::reclaim::owned::{self, child_in};
use crate::space::extent_of;
use crate::store::Core;
use crate::tree::overflow::{self, Reference};
use crate::tree::versions::Root;
use crate::tree::{KeyKind, Tree};

/// Stop collecting beyond this many: they rarely say more.
const PROBLEMS_MAX: usize = 100;

pub(crate) fn run(core: &Core) -> Result<Vec<String>> {
    let checkpoint = core.checkpoint.lock();
    let (slot, seq) = core.pool.readers.pin(|| core.visible_to_pin())?;
    // Dead subtrees are known by their roots until they are expanded. What dies after
    // the snapshot was taken is in it.
    if let Err(error) = crate::reclaim::sweep(core) {
        core.pool.readers.release(&slot);
        return Ok(vec![format!("a dead subtree cannot be read: {error}")]);
    }
    let mut check = Check {
        core,
        slot: &slot,
        problems: Vec::new(),
        extents: Vec::new(),
        units: 0,
        end: 0,
        hindered: None,
    };
    for tree in core.all_trees() {
        if let Some(root) = tree.0.versions.at(seq).filter(|root| !root.dropped) {
            check.tree(&tree, root);
        }
    }
    let blobs = [checkpoint.catalog, checkpoint.free_map];
    for blob in blobs.into_iter().flatten() {
        check.extents.push(blob.extent);
        if let Err(error) = crate::checkpoint::read_blob(&core.pool, blob) {
            check.report(error.to_string());
        }
    }
    for entry in core.pool.dictionaries.all() {
        check.extents.push(entry.blob.extent);
        if let Err(error) = core.pool.read_dictionary(entry) {
            check.report(error.to_string());
        }
    }
    check.extents.extend(core.pool.dictionaries.left());
    if let Err(error) = core.space.check() {
        check.report(error.to_string());
    }
    check.space();
    let Check {
        problems, hindered, ..
    } = check;
    core.pool.readers.release(&slot);
    hindered.map_or(Ok(problems), Err)
}

struct Check<'c> {
    core: &'c Core,
    slot: &'c SlotId,
    problems: Vec<String>,
    extents: Vec<ExtentRef>,
    /// Units of those, and how many there are in the file.
    units: u64,
    end: u64,
    /// What kept it from reading something, and says nothing about that.
    hindered: Option<Error>,
}

/// What a parent promises of a child.
struct Promise {
    node: ChildRef,
    /// `None` for a root.
    level: Option<u8>,
    /// Of a part of a large value, how many bytes of it lie in and below the node.
    value: Option<u64>,
    low: Option<OwnedStored>,
    high: Option<OwnedStored>,
}

impl Promise {
    /// The root node of a large value, or of a long key's rest.
    fn value(reference: Reference) -> Self {
        Promise {
            node: reference.node,
            level: None,
            value: Some(reference.length),
            low: None,
            high: None,
        }
    }
}

impl Check<'_> {
    fn report(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Something of a tree cannot be read.
    fn unreadable(&mut self, tree: u32, error: Error) {
        match error.kind() {
            ErrorKind::NoMemory => self.hindered = Some(error),
            _ => self.report(format!("tree {tree}: {error}")),
        }
    }

    fn tree(&mut self, tree: &Tree, root: Root) {
        let id = tree.id().0;
        let mut entries = 0;
        let mut open = Vec::new();
        if !root.node.is_none() {
            open.push(Promise {
                node: root.node,
                level: None,
                value: None,
                low: None,
                high: None,
            });
        }
        let mut page = vec![0; self.core.pool.page_size()];
        while let Some(promise) = open.pop() {
            if self.problems.len() >= PROBLEMS_MAX || self.hindered.is_some() {
                return;
            }
            match self.load(&promise, id, &mut page) {
                Ok(children) => {
                    let found = (&*page, children.as_slice());
                    entries += self.page(&promise, (id, tree.kind()), found, &mut open);
                }
                Err(error) => self.unreadable(id, error),
            }
        }
        if entries != root.count && self.problems.is_empty() {
            self.report(format!(
                "tree {id} holds {entries} entries and says it holds {}",
                root.count
            ));
        }
    }

    /// Reads a node, from disk if it is there, and returns its children.
    fn load(&mut self, promise: &Promise, tree: u32, page: &mut [u8]) -> Result<Vec<ChildRef>> {
        let pool = &self.core.pool;
        let node = pool.resolved(promise.node);
        if node.is_handle() {
            let _walk = pool.readers.walk(self.slot);
            // SAFETY: unwritten, so it is in its frame; inside a walk.
            let keys = unsafe { pool.frames.keys(node.hint()) };
            page[..keys.len()].copy_from_slice(keys);
            let count = node::child_count(keys);
            return Ok((0..count)
                .map(|index| pool.frames.child(node.hint(), index))
                .collect());
        }
        let extent = extent_of(node.reference);
        self.note_extent(extent)?;
        let absent = Absent {
            mismatch: None,
            extent,
            checksum: node.checksum(),
            level: promise.level,
        };
        pool.read_page(absent, tree, page)?;
        let children = 0..node::child_count(page);
        Ok(children.map(|index| child_in(page, index)).collect())
    }

    /// An extent more than the file has room for is one that was met before. What lies below
    /// such a node is not looked at again: a few of them could refer to each other so often
    /// that there were no end.
    fn note_extent(&mut self, extent: ExtentRef) -> Result<()> {
        self.units += u64::from(extent.units());
        if self.units > self.end {
            // It may have grown meanwhile.
            self.end = self.core.space.lock().map.end();
        }
        if self.units > self.end {
            return Err(self.core.pool.rot(extent, owned::TOO_MANY));
        }
        self.extents.push(extent);
        Ok(())
    }

    /// Checks a page against its parent's promise; returns its entries.
    fn page(
        &mut self,
        promise: &Promise,
        (tree, kind): (u32, KeyKind),
        (page, children): (&[u8], &[ChildRef]),
        open: &mut Vec<Promise>,
    ) -> u64 {
        let keys = &page[..node::key_area(page.len(), children.len())];
        let is_value = node::kind(keys) == Some(Kind::Overflow);
        let level = node::level(keys);
        if is_value != promise.value.is_some() {
            self.report(format!(
                "tree {tree}: a large value and a node are mixed up"
            ));
            return 0;
        }
        if !is_value && node::has_int_keys(keys) != (kind == KeyKind::Int) {
            self.report(format!("tree {tree}: {}", Mismatch::Kind));
            return 0;
        }
        if let Some(length) = promise.value {
            self.value(tree, (keys, children), length, open);
            return 0;
        }
        let (low, high) = (node::lower_fence(keys), node::upper_fence(keys));
        let low = low.map(|fence| self.settled(fence.to_owned()));
        let high = high.map(|fence| self.settled(fence.to_owned()));
        if low != promise.low || high != promise.high {
            self.report(format!(
                "tree {tree}: a page covers other keys than its parent says"
            ));
        }
        if node::has_long(keys) {
            self.rests(tree, keys, open);
        }
        if level == 0 {
            self.values(tree, keys, open);
            return node::count(keys) as u64;
        }
        for (index, child) in children.iter().enumerate() {
            let separator = |i| self.settled(node::stored_key_at(keys, i));
            let below = index.checked_sub(1).map(separator);
            let above = (index < node::count(keys)).then(|| separator(index));
            open.push(Promise {
                node: *child,
                level: level.checked_sub(1),
                value: None,
                low: below.or_else(|| low.clone()),
                high: above.or_else(|| high.clone()),
            });
        }
        0
    }

    /// Checks a node of a large value, of which so many bytes are to lie in and below it.
    fn value(
        &mut self,
        tree: u32,
        (keys, children): (&[u8], &[ChildRef]),
        length: u64,
        open: &mut Vec<Promise>,
    ) {
        let page_size = self.core.pool.page_size();
        let level = node::level(keys);
        let fan = node::max_overflow_children(page_size) as u64;
        let chunk = node::max_chunk(page_size) as u64;
        let span = chunk.saturating_mul(fan.saturating_pow(u32::from(level).saturating_sub(1)));
        let is_whole = match level {
            0 => node::overflow_payload(keys).len() as u64 == length,
            _ => length.div_ceil(span) == children.len() as u64,
        };
        if !is_whole {
            self.report(format!(
                "tree {tree}: a large value is not as long as its entry says"
            ));
        }
        let lengths = (0..).map(|index: u64| {
            let before = span.saturating_mul(index);
            length.saturating_sub(before).min(span)
        });
        for (child, length) in children.iter().zip(lengths) {
            open.push(Promise {
                node: *child,
                level: level.checked_sub(1),
                value: Some(length),
                low: None,
                high: None,
            });
        }
    }

    /// The key with the reference to its rest as it would be written now, so that
    /// equal ones are the same.
    fn settled(&self, mut key: OwnedStored) -> OwnedStored {
        if let Some(reference) = key.rest.as_ref().and_then(|rest| Reference::decode(rest)) {
            let node = self.core.pool.resolved(reference.node);
            let node = node.with_hint(crate::cache::NO_HINT);
            key.rest = Some(Reference { node, ..reference }.encode());
        }
        key
    }

    /// The rests of a page's long keys, and that with them the keys ascend within
    /// the fences.
    fn rests(&mut self, tree: u32, page: &[u8], open: &mut Vec<Promise>) {
        let count = node::count(page);
        for rest in (0..count).filter_map(|index| node::rest_at(page, index)) {
            match Reference::decode(rest) {
                Some(reference) => open.push(Promise::value(reference)),
                None => self.report(format!("tree {tree}: a reference to a key is damaged")),
            }
        }
        let keys = (0..count).map(|index| node::stored_key_at(page, index));
        let low = node::lower_fence(page).map(Stored::to_owned);
        let high = node::upper_fence(page).map(Stored::to_owned);
        let has_low = low.is_some();
        let mut before: Option<OwnedKey> = None;
        for (index, key) in low.into_iter().chain(keys).chain(high).enumerate() {
            let pool = &self.core.pool;
            let key = match overflow::whole_key(pool, self.slot, tree, key.as_stored()) {
                Ok(key) => key,
                Err(error) => return self.unreadable(tree, error),
            };
            let may_equal = has_low && index == 1;
            if before.is_some_and(|before| before > key || (before == key && !may_equal)) {
                self.report(format!("tree {tree}: long keys are out of order"));
            }
            before = Some(key);
        }
    }

    /// The large values of a leaf.
    fn values(&mut self, tree: u32, page: &[u8], open: &mut Vec<Promise>) {
        for index in 0..node::count(page) {
            let (value, overflow) = node::value_at(page, index);
            if !overflow {
                continue;
            }
            match Reference::decode(value) {
                Some(reference) => open.push(Promise::value(reference)),
                None => self.report(format!(
                    "tree {tree}: a reference to a large value is damaged"
                )),
            }
        }
    }

    /// Each extent used once, all others free. Where writing has ended, what it was
    /// ended in keeps what it took, until the database is opened again.
    fn space(&mut self) {
        let core = self.core;
        let ended = core.check_writable();
        let ended = ended.is_err_and(|error| error.kind() == ErrorKind::Poisoned);
        // What lies below a node that could not be read is used, too.
        let is_whole = !ended && self.problems.is_empty() && self.hindered.is_none();
        self.extents
            .sort_unstable_by_key(|extent| extent.position());
        for pair in self.extents.clone().windows(2) {
            if pair[0].end() > pair[1].position() {
                self.report(format!(
                    "bytes from {} on are used twice",
                    pair[1].byte_offset()
                ));
            }
        }
        // Dead extents may be reachable from our snapshot too: count them once.
        let reclaim = core.lock_reclaim();
        let mut used = reclaim.dead_extents(core, u64::MAX);
        let space = core.space.lock();
        used.extend(space.unpublished());
        used.extend(space.dictionaries_but(&[]));
        used.extend(&self.extents);
        used.sort_unstable_by_key(|extent| extent.position());
        used.dedup();
        let runs = used.into_iter().map(|extent| (Run::from(extent), true));
        let mut all: Vec<(Run, bool)> = runs
            .chain(space.map.runs().map(|run| (run, false)))
            .collect();
        all.sort_unstable();
        let end = space.map.end();
        drop(space);
        drop(reclaim);
        let mut at = crate::checkpoint::meta::FIRST_UNIT;
        // Whether what ends at `at` is used: all that is used twice was told above.
        let mut until_used = true;
        for (run, is_used) in all {
            if run.start < at && !(is_used && until_used) {
                self.report(format!("units from {} on are used and free", run.start));
            } else if run.start > at && is_whole {
                self.report(format!(
                    "units {at} to {} are neither used nor free",
                    run.start
                ));
            }
            if run.end() > at {
                (at, until_used) = (run.end(), is_used);
            }
        }
        if at > end {
            self.report(format!("units {end} to {at} lie beyond the end"));
        }
        if at < end && is_whole {
            self.report(format!("units {at} to {end} are neither used nor free"));
        }
    }
}
