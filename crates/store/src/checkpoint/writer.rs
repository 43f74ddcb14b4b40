//! Writing nodes to free extents, in few large writes.
//!
//! Nodes are encoded one after the other into a buffer, extents are allocated
//! for the whole batch, and what lies in one piece on disk is written with one
//! call straight from the buffer, or a few. Children must have been written before their
//! parents: an image carries their extents and checksums.
//!
//! Commits go on meanwhile, and are not to wait for any of it: neither for the device,
//! which is never given much at once ([`Pace`]), nor for a processor, which is offered to
//! whoever else wants it after some nodes and after each call (ADR 93). Of a store that is
//! being closed there are no commits, and others are given nothing that they do not take.

use super::collect;
use crate::cache::{ChildRef, Frame, Pool, Written};
use crate::codec::{self, Codec, Dictionary, ExtentRef};
use crate::error::{Error, Result};
use crate::node;
use crate::options::{Compression, Durability};
use crate::primitives::{Mutex, yield_now};
use crate::reclaim::owned::each_value;
use crate::store::Core;
use crate::tree::overflow::Reference;
use fulgurite_disk::Pace;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// Bytes gathered before they are written.
const BATCH_BYTES: usize = 1 << 20;
/// Nodes that are encoded before others may have the processor: a twentieth of a
/// millisecond.
const NODES_AT_A_TIME: usize = 8;
/// A processor that comes back later than this is somebody else's, ...
const HOGGED: Duration = Duration::from_micros(600);
/// ... and not offered again for so many times, a twentieth of a second.
const HOGGED_TURNS: u32 = 1_024;

/// Counters of the page writes since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    pace: Mutex<Pace>,
    /// How often not to offer the processor: the last time it was long in coming back.
    hogged: AtomicU32,
    pub(crate) pages: AtomicU64,
    pub(crate) runs: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) helped: AtomicU64,
    offers: AtomicU64,
}

/// Page writes since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteStats {
    /// Nodes written.
    pub pages: u64,
    /// Contiguous stretches they went to.
    pub runs: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Write calls made.
    pub calls: u64,
    /// Of the nodes, those that were written by who waited for the checkpoint.
    pub helped: u64,
    /// How often a processor was offered to others.
    pub offers: u64,
}

impl WriteStats {
    /// Pages a write call.
    pub fn coalescing_factor(&self) -> f64 {
        if self.calls == 0 {
            0.0
        } else {
            self.pages as f64 / self.calls as f64
        }
    }
}

impl WriteCounters {
    pub(crate) fn read(&self) -> WriteStats {
        WriteStats {
            pages: self.pages.load(Relaxed),
            runs: self.runs.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            calls: self.calls.load(Relaxed),
            helped: self.helped.load(Relaxed),
            offers: self.offers.load(Relaxed),
        }
    }
}

/// What becomes of the frames of written nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// They stay as cached pages.
    Keep,
    /// They are free: only for nodes of one transaction that nobody else reaches.
    Release,
}

/// How pages are written beside others at work.
struct Manners {
    /// Others commit meanwhile, who wait for syncs and for none of this. (Where nothing is
    /// synced for a commit, processors are all that anybody waits for; and a transaction's
    /// own pages are what it waits for itself.)
    is_polite: bool,
}

impl Manners {
    /// The most bytes to write with one call.
    fn call_bytes(&self) -> usize {
        match self.is_polite {
            true => Pace::CALL_BYTES,
            false => usize::MAX,
        }
    }

    /// Lets others have the processor, unless they keep it: who computes all the time would
    /// have it for a time slice each time.
    fn give_way(&self, core: &Core) {
        if !self.is_polite || core.background.is_closing() {
            return;
        }
        let hogged = &core.writes.hogged;
        let turns = hogged.load(Relaxed);
        if turns > 0 {
            hogged.store(turns - 1, Relaxed);
            return;
        }
        let now = || core.pool.waits.now();
        let began = now();
        core.writes.offers.fetch_add(1, Relaxed);
        yield_now();
        if now().saturating_sub(began) > HOGGED {
            hogged.store(HOGGED_TURNS, Relaxed);
        }
    }
}

/// One node of a batch: where its image lies in the buffer.
struct Piece {
    node: ChildRef,
    start: usize,
    length: usize,
    checksum: u32,
}

/// Whether nothing that this unwritten node refers to is waiting to be written.
/// Resolves the node's children in place on the way, so that to ask again costs little.
pub(crate) fn is_ready(core: &Core, node: ChildRef) -> bool {
    let (pool, frame) = (&core.pool, node.hint());
    // SAFETY: unwritten, so it stays in its frame; only its child slots change.
    let keys = unsafe { pool.frames.keys(frame) };
    for index in 0..node::child_count(keys) {
        let child = pool.frames.child(frame, index);
        let resolved = pool.resolved(child);
        if resolved.is_handle() {
            return false;
        }
        if resolved.reference != child.reference {
            pool.frames.set_child(frame, index, resolved);
        }
    }
    let mut ready = true;
    let mut refers_to = |child: ChildRef| ready = ready && !pool.resolved(child).is_handle();
    each_value(keys, |child, _| refers_to(child));
    // The rests of long fences belong to nodes above.
    if node::has_long(keys) {
        let fences = [node::lower_fence(keys), node::upper_fence(keys)];
        for rest in fences.into_iter().flatten().filter_map(|fence| fence.rest) {
            if let Some(rest) = Reference::decode(rest) {
                refers_to(rest.node);
            }
        }
    }
    ready
}

/// Writes unwritten nodes, given by handle and frame, children before parents.
/// They are clean afterwards. `unpublished` marks extents of a fork that no
/// checkpoint covers yet. Returns how many were written.
pub(crate) fn write_nodes(
    core: &Core,
    nodes: &[ChildRef],
    unpublished: Option<&Arc<AtomicU64>>,
    after: After,
) -> Result<usize> {
    let mut batch = Batch::new(core, unpublished, after);
    // SAFETY: an unwritten node stays in its frame, and only its owner or the
    // checkpoint that keeps it asks.
    let rank = |node: &ChildRef| collect::rank(unsafe { core.pool.frames.keys(node.hint()) });
    for nodes in nodes.chunk_by(|a, b| rank(a) == rank(b)) {
        batch.write_all(nodes)?;
    }
    core.pool.balance();
    Ok(nodes.len())
}

/// Images of nodes on their way to the disk.
pub(super) struct Batch<'c> {
    core: &'c Core,
    unpublished: Option<&'c Arc<AtomicU64>>,
    after: After,
    manners: Manners,
    buffer: Vec<u8>,
    pieces: Vec<Piece>,
    scratch: Scratch,
}

impl<'c> Batch<'c> {
    pub(super) fn new(
        core: &'c Core,
        unpublished: Option<&'c Arc<AtomicU64>>,
        after: After,
    ) -> Self {
        Self {
            core,
            unpublished,
            after,
            manners: Manners {
                is_polite: unpublished.is_none() && core.options.durability == Durability::Full,
            },
            buffer: Vec::new(),
            pieces: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Writes unwritten nodes of one rank, of which nobody else writes any.
    pub(super) fn write_all(&mut self, nodes: &[ChildRef]) -> Result<()> {
        crate::txn::not_within_commit_lock();
        let page_size = self.core.pool.page_size();
        let most = (nodes.len() * page_size).min(BATCH_BYTES + 2 * page_size);
        self.buffer.reserve(most);
        for (at, node) in nodes.iter().enumerate() {
            if let Some(next) = nodes.get(at + 1) {
                // Long unused, mostly: on its way while this one is packed.
                self.core.pool.frames.prefetch_page(next.hint());
            }
            if self.buffer.len() >= BATCH_BYTES {
                self.write()?;
            }
            self.push(*node)?;
            if at % NODES_AT_A_TIME == NODES_AT_A_TIME - 1 {
                self.manners.give_way(self.core);
            }
        }
        self.write()
    }

    fn push(&mut self, node: ChildRef) -> Result<()> {
        let start = self.buffer.len();
        let (scratch, buffer) = (&mut self.scratch, &mut self.buffer);
        encode(self.core, node.hint(), scratch, buffer)?;
        self.pieces.push(Piece {
            node,
            start,
            length: buffer.len() - start,
            checksum: codec::checksum(&buffer[start..]),
        });
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let (core, pieces) = (self.core, &self.pieces);
        write_batch(
            core,
            &self.buffer,
            pieces,
            self.unpublished,
            self.after,
            &self.manners,
        )?;
        self.buffer.clear();
        self.pieces.clear();
        Ok(())
    }
}

#[derive(Default)]
struct Scratch {
    codec: codec::Scratch,
    /// The tree of the leaf before, and its dictionary.
    dictionary: Option<(u32, Option<Arc<Dictionary>>)>,
    page: Vec<u8>,
    children: Vec<(u64, u32)>,
}

impl Scratch {
    /// The dictionary for a leaf of this tree: all leaves of a batch get the same.
    fn dictionary(&mut self, pool: &Pool, tree: u32) -> Result<Option<Arc<Dictionary>>> {
        match &self.dictionary {
            Some((known, dictionary)) if *known == tree => Ok(dictionary.clone()),
            _ => {
                let newest = pool.newest_dictionary(tree)?;
                self.dictionary = Some((tree, newest.clone()));
                Ok(newest)
            }
        }
    }
}

/// Appends the image of the node in `frame` to `buffer`. Resolves the node's
/// children in place on the way. A child that is nowhere on disk would make the
/// image unreadable: then nothing is written, and the checkpoint before stays.
fn encode(core: &Core, frame: Frame, scratch: &mut Scratch, buffer: &mut Vec<u8>) -> Result<()> {
    let pool = &core.pool;
    // SAFETY: an unwritten node stays in its frame; it is shared, or private to
    // the caller's fork, and only its child slots change.
    let keys = unsafe { pool.frames.keys(frame) };
    scratch.children.clear();
    for index in 0..node::child_count(keys) {
        let child = pool.frames.child(frame, index);
        let resolved = pool.resolved(child);
        check_written(resolved)?;
        if resolved.reference != child.reference {
            pool.frames.set_child(frame, index, resolved);
        }
        scratch
            .children
            .push((resolved.reference, resolved.checksum()));
    }
    let codec = match core.options.compression {
        Compression::None => Codec::None,
        Compression::Lz4 => Codec::Lz4,
    };
    let mut source = keys;
    let mut dictionary = None;
    let is_leaf = node::is_leaf(keys) && node::kind(keys) != Some(node::Kind::Overflow);
    if is_leaf {
        dictionary = scratch.dictionary(pool, node::tree(keys))?;
    }
    let has_references = is_leaf && node::has_references(keys);
    if has_references || node::has_long(keys) {
        scratch.page.clear();
        scratch.page.extend_from_slice(keys);
        if has_references {
            resolve_values(pool, &mut scratch.page)?;
        }
        resolve_rests(pool, &mut scratch.page)?;
        source = &scratch.page;
    }
    let children = &scratch.children;
    let dictionary = dictionary.as_ref();
    let image = codec::encode(source, children, codec, dictionary, &mut scratch.codec);
    buffer.extend_from_slice(image);
    Ok(())
}

fn check_written(child: ChildRef) -> Result<()> {
    if child.is_handle() {
        return Err(Error::misuse(
            "a page refers to one that is not written; the last checkpoint and the log are whole",
        ));
    }
    Ok(())
}

/// Replaces the handles in the references to large values by extents.
fn resolve_values(pool: &Pool, page: &mut [u8]) -> Result<()> {
    for index in 0..node::count(page) {
        let (value, overflow) = node::value_range(page, index);
        if !overflow {
            continue;
        }
        if let Some(reference) = Reference::decode(&page[value.clone()]) {
            let resolved = resolve(pool, reference)?;
            page[value][..node::OVERFLOW_REF].copy_from_slice(&resolved);
        }
    }
    Ok(())
}

/// Replaces the handles in the references to rests of long keys by extents.
fn resolve_rests(pool: &Pool, page: &mut [u8]) -> Result<()> {
    let mut resolved = Ok(());
    node::each_rest_mut(page, |rest| {
        let Some(reference) = Reference::decode(rest) else {
            return;
        };
        match resolve(pool, reference) {
            Ok(stored) => *rest = stored,
            Err(error) => resolved = Err(error),
        }
    });
    resolved
}

/// The bytes that a reference has on disk.
fn resolve(pool: &Pool, reference: Reference) -> Result<[u8; node::OVERFLOW_REF]> {
    let node = pool.resolved(reference.node);
    check_written(node)?;
    let node = node.with_hint(crate::cache::NO_HINT);
    Ok(Reference { node, ..reference }.encode())
}

fn write_batch(
    core: &Core,
    buffer: &[u8],
    pieces: &[Piece],
    unpublished: Option<&Arc<AtomicU64>>,
    after: After,
    manners: &Manners,
) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    let lengths: Vec<u32> = pieces
        .iter()
        .map(|piece| (piece.length / codec::UNIT) as u32)
        .collect();
    let extents = core.space.allocate_many(&lengths, unpublished)?;
    if let Err(error) = write_runs(core, buffer, pieces, &extents, manners) {
        core.space.free(extents);
        return Err(error);
    }
    let mut cold = Vec::new();
    for (piece, extent) in pieces.iter().zip(extents) {
        let written = Written {
            extent,
            checksum: piece.checksum,
        };
        let (handle, frame) = (piece.node.reference, piece.node.hint());
        match after {
            After::Keep => core.pool.became_clean(handle, frame, written),
            After::Release => {
                if core.pool.became_cold(handle, frame, written) {
                    cold.push(frame);
                }
            }
        }
    }
    if !cold.is_empty() {
        core.pool.free_cold(&mut cold);
    }
    // Frames can be had again before the whole checkpoint is done.
    core.pool.relieve(None);
    Ok(())
}

/// Writes each stretch that is contiguous both in the buffer and on disk.
fn write_runs(
    core: &Core,
    buffer: &[u8],
    pieces: &[Piece],
    extents: &[ExtentRef],
    manners: &Manners,
) -> Result<()> {
    let mut at = 0;
    while at < pieces.len() {
        let first = at;
        at += 1;
        while at < pieces.len() && extents[at - 1].end() == extents[at].position() {
            at += 1;
        }
        let start = pieces[first].start;
        let end = pieces[at - 1].start + pieces[at - 1].length;
        write_run(
            core,
            &buffer[start..end],
            extents[first].byte_offset(),
            manners,
        )?;
    }
    core.writes.pages.fetch_add(pieces.len() as u64, Relaxed);
    Ok(())
}

/// Writes one stretch, no faster than the device takes it (ADR 93).
fn write_run(core: &Core, run: &[u8], mut offset: u64, manners: &Manners) -> Result<()> {
    for bytes in run.chunks(manners.call_bytes()) {
        core.pool.file.write_at(bytes, offset)?;
        let due = core.writes.pace.lock().wrote(offset, bytes.len() as u64);
        if let Some(due) = due {
            core.keep_pace(&due)?;
        }
        offset += bytes.len() as u64;
        core.writes.calls.fetch_add(1, Relaxed);
        manners.give_way(core);
    }
    core.writes.runs.fetch_add(1, Relaxed);
    core.writes.bytes.fetch_add(run.len() as u64, Relaxed);
    Ok(())
}
