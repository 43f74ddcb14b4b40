//! Following references to nodes, loading and evicting them.
//!
//! A reference is an extent (the node is on disk, and perhaps in a frame) or a
//! handle (the node was made in memory). What must hold:
//!
//! 1. A node that is not written yet stays in the frame its reference hints at
//!    until it is written or dies; only then may the hint fail its comparison.
//! 2. Once written, `written` maps the handle to the extent before the frame's
//!    identity changes, and keeps doing so until the node dies. Slots are
//!    resolved as they are met.
//! 3. A clean frame is in `table` under its extent and in `policy`, a frame that
//!    is unwritten, being filled or free is in neither. It enters and leaves both
//!    at once, under the policy's lock: one that left the table alone would be
//!    evicted under whatever node came to live in it next.
//! 4. Loading verifies the checksum the parent holds, then the page's
//!    structure, level and tree, before anybody can see the page. Following a reference
//!    for the first time verifies what else its parent says of it.
//! 5. No more frames than the limit allows ever exist. When all are taken by
//!    unwritten nodes, whoever needs one waits for the checkpoint, holding
//!    nothing that it needs.

mod adjacent;
mod ballast;
mod crowding;
mod following;
mod loading;
mod relief;
mod written;

use super::frames::{ChildRef, EVICTING, Frame, Frames, HANDLE_BIT};
use super::readers::Readers;
use crate::codec::ExtentRef;
use crate::dictionaries::Dictionaries;
use crate::error::{Error, Result};
use crate::policy::{Heat, Policy};
use crate::primitives::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use crate::primitives::{Condvar, FRAMES_MIN, Mutex, spin_loop};
use crate::space::extent_of;
use crate::waits::Waits;
pub(crate) use adjacent::Adjacent;
use ballast::Ballast;
pub(crate) use ballast::Charge;
pub use ballast::{MemoryCharge, MemoryCounter};
use crowding::Crowding;
pub(crate) use following::{Absent, Topmost};
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{DiskFile, LineStart};
use relief::Relief;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Deepest tree that is believed; a page claiming more is corrupt.
pub(crate) const MAX_LEVEL: u8 = 32;

const SHARDS: usize = 32;
const EVICT_BATCH: usize = 32;
/// Bytes beside a frame's page: its header, its place in table and policy, a
/// ghost's.
const FRAME_EXTRA: usize = 24 + 26 + 24 + 50;
/// The share of the cache that contexts keep as spare frames, all together, and how
/// many each of them, at most.
const SPARE_SHARE: usize = 16;
const SPARE_MAX: usize = 32;
/// Frames that are not for nodes to be made: a page that was only read can be evicted at
/// once, so whoever reads goes on however full the cache is, and what it holds comes free.
const READERS_FRAMES: usize = 8;
const HANDLE_BLOCK: u64 = 1 << 10;

/// Where a node that began under a handle lies on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) extent: ExtentRef,
    pub(crate) checksum: u32,
}

struct FreeFrames {
    list: Vec<Frame>,
    /// Those that were never used. The lowest are the first to be: they lie outside of
    /// huge pages.
    untouched: Range<Frame>,
}

impl FreeFrames {
    fn len(&self) -> usize {
        self.list.len() + self.untouched.len()
    }

    fn take(&mut self) -> Option<Frame> {
        self.list.pop().or_else(|| self.untouched.next())
    }
}

/// Counters of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Frames that exist (the limit).
    pub frames: u64,
    /// Bytes of a frame.
    pub page_size: u64,
    /// Frames holding nodes that are not on disk yet.
    pub unwritten: u64,
    /// Pages read from the disk.
    pub loads: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Bytes held beside the frames that count against the limit.
    pub charged: u64,
}

/// The cache. See the module's header. What every step of a walk reads lies apart from
/// what making and evicting nodes writes.
#[repr(C)]
pub(crate) struct Pool {
    pub(crate) frames: Frames,
    pub(crate) readers: Readers,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) path: String,
    table: Vec<Mutex<FxHashMap<u64, Frame>>>,
    written: Vec<Mutex<FxHashMap<u64, Written>>>,
    /// From the extents in `written` back to their handles, so that a node takes
    /// its entry along however it is referred to when it dies.
    handle_of: Vec<Mutex<FxHashMap<u64, u64>>>,
    /// Transaction contexts, which keep some free frames each.
    contexts: AtomicUsize,
    busy_timeout: Duration,
    pub(crate) waits: Waits,
    pub(crate) dictionaries: Dictionaries,
    relief: Mutex<Relief>,
    relieved: Condvar,

    making: LineStart,
    handles: AtomicU64,
    contexts_begun: AtomicU64,
    crowding: Crowding,
    ballast: Ballast,

    finding: LineStart,
    free: Mutex<FreeFrames>,
    policy: Mutex<Policy>,
    loads: AtomicU64,
    evictions: AtomicU64,
}

impl Heat for Frames {
    fn heat(&self, frame: Frame) -> u8 {
        self.meta(frame).heat.load(Relaxed)
    }

    fn set_heat(&self, frame: Frame, heat: u8) {
        self.meta(frame).heat.store(heat, Relaxed);
    }
}

fn shard(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59) as usize % SHARDS
}

impl Pool {
    pub(crate) fn new(
        file: Arc<dyn DiskFile>,
        path: String,
        cache_bytes: usize,
        page_size: usize,
        busy_timeout: Duration,
        waits: Waits,
    ) -> Result<Self> {
        let count =
            (cache_bytes / (page_size + FRAME_EXTRA)).clamp(FRAMES_MIN, u32::MAX as usize - 1);
        let policy = Policy::new(count as u32).map_err(|_| {
            let bytes = count.saturating_mul(page_size);
            Error::no_memory(bytes, &std::io::ErrorKind::OutOfMemory.into())
        })?;
        let shards = || (0..SHARDS).map(|_| Mutex::default()).collect();
        Ok(Self {
            frames: Frames::new(count, page_size)?,
            readers: Readers::new()?,
            file,
            path,
            table: shards(),
            written: (0..SHARDS).map(|_| Mutex::default()).collect(),
            handle_of: (0..SHARDS).map(|_| Mutex::default()).collect(),
            contexts: AtomicUsize::new(0),
            busy_timeout,
            waits,
            dictionaries: Dictionaries::default(),
            relief: Mutex::default(),
            relieved: Condvar::default(),
            making: LineStart,
            handles: AtomicU64::new(1),
            contexts_begun: AtomicU64::new(1),
            crowding: Crowding::default(),
            ballast: Ballast::new(),
            finding: LineStart,
            free: Mutex::new(FreeFrames {
                list: Vec::new(),
                untouched: 0..count as Frame,
            }),
            policy: Mutex::new(policy),
            loads: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        })
    }

    pub(crate) fn page_size(&self) -> usize {
        self.frames.page_size()
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            frames: self.frames.count() as u64,
            page_size: self.page_size() as u64,
            unwritten: self.unwritten() as u64,
            loads: self.loads.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            charged: self.charged() as u64,
        }
    }

    /// A number that tells a new context from all others.
    pub(crate) fn next_context(&self) -> u64 {
        self.contexts_begun.fetch_add(1, Relaxed)
    }

    /// A block of handle numbers for one writer: `[start, end)`.
    pub(crate) fn handle_block(&self) -> (u64, u64) {
        let start = self.handles.fetch_add(HANDLE_BLOCK, Relaxed);
        (start | HANDLE_BIT, (start + HANDLE_BLOCK) | HANDLE_BIT)
    }

    // ---- frames ----------------------------------------------------------

    pub(crate) fn context_begins(&self) {
        self.contexts.fetch_add(1, Relaxed);
    }

    pub(crate) fn context_ends(&self) {
        self.contexts.fetch_sub(1, Relaxed);
    }

    /// Free frames that each context may keep between transactions.
    pub(crate) fn spare_share(&self) -> usize {
        let contexts = self.contexts.load(Relaxed).max(1);
        (self.frames.count() / SPARE_SHARE / contexts).min(SPARE_MAX)
    }

    /// Takes frames for nodes to be made until there are `count`, and some more at once
    /// where there are, since all contexts take them from one list. False if there are
    /// too few without waiting, beside those that are left to who reads.
    #[cold]
    pub(crate) fn take_ahead(&self, frames: &mut Vec<Frame>, count: usize) -> bool {
        self.take_beside(READERS_FRAMES, frames, count)
    }

    fn take_beside(&self, left: usize, frames: &mut Vec<Frame>, count: usize) -> bool {
        let missing = count.saturating_sub(frames.len());
        {
            let mut free = self.free.lock();
            if let Some(most) = free.len().checked_sub(left)
                && most >= missing
            {
                let wanted = count.max(self.spare_share() / 2);
                let some = most.min(wanted.saturating_sub(frames.len()));
                frames.extend(std::iter::from_fn(|| free.take()).take(some));
                return true;
            }
        }
        if !self.has(missing + left) {
            return missing == 0;
        }
        while frames.len() < count {
            match self.try_take_frame() {
                Some(frame) => frames.push(frame),
                None => return false,
            }
        }
        true
    }

    /// Whether so many frames are free or can be evicted, but for those that are looked at
    /// at this moment.
    fn has(&self, frames: usize) -> bool {
        let free = self.free.lock().len();
        free >= frames || free + self.policy.lock().len() >= frames
    }

    /// Whether so many are free that what is read may stay beside what is made of it.
    pub(crate) fn has_plenty(&self) -> bool {
        self.free.lock().len() >= self.frames.count() / 8
    }

    /// Whether there are so few that who waits for a lock should hold none: the lock's
    /// holder has to read, and perhaps to make nodes.
    pub(crate) fn is_scarce(&self) -> bool {
        !self.has((2 * READERS_FRAMES).max(self.frames.count() / 16))
    }

    /// Takes frames that were never used until there are `most`, as far as there are
    /// any; the highest first.
    fn take_untouched(&self, frames: &mut Vec<Frame>, most: usize) {
        let missing = most.saturating_sub(frames.len());
        let mut free = self.free.lock();
        frames.extend(free.untouched.by_ref().rev().take(missing));
    }

    fn try_take_frame(&self) -> Option<Frame> {
        let free = self.free.lock().take();
        free.or_else(|| self.evict())
    }

    /// Evicts a batch of clean frames; returns one and frees the others.
    fn evict(&self) -> Option<Frame> {
        let mut evicted = Vec::with_capacity(EVICT_BATCH);
        {
            let mut policy = self.policy.lock();
            while evicted.len() < EVICT_BATCH {
                let victim = policy.evict(&self.frames, |frame| {
                    let pins = &self.frames.meta(frame).pins;
                    pins.compare_exchange(0, EVICTING, Acquire, Relaxed).is_ok()
                });
                let Some(frame) = victim else { break };
                let identity = self.frames.meta(frame).identity.load(Relaxed);
                debug_assert!(identity & HANDLE_BIT == 0, "an unwritten node has no seat");
                self.table[shard(identity)].lock().remove(&identity);
                self.frames.meta(frame).identity.store(0, Release);
                evicted.push(frame);
            }
        }
        if evicted.is_empty() {
            return None;
        }
        self.readers.quiesce();
        self.evictions.fetch_add(evicted.len() as u64, Relaxed);
        for frame in &evicted {
            // Late pinners add one and take it back; only the mark is removed.
            self.frames.meta(*frame).pins.fetch_sub(EVICTING, Release);
        }
        let taken = evicted.pop();
        self.free.lock().list.extend(evicted);
        taken
    }

    /// Returns a frame that holds nothing anybody can reach.
    pub(crate) fn give_frame(&self, frame: Frame) {
        self.frames.meta(frame).identity.store(0, Release);
        self.free.lock().list.push(frame);
    }

    /// As [`give_frame`](Self::give_frame), for several.
    pub(crate) fn give_frames(&self, frames: &mut Vec<Frame>) {
        for frame in frames.iter() {
            self.frames.meta(*frame).identity.store(0, Release);
        }
        self.free.lock().list.append(frames);
    }

    // ---- written and dead nodes -------------------------------------------

    /// The unwritten node `handle` in `frame` was written: from now on it is
    /// clean, found by its extent, and may be evicted.
    pub(crate) fn became_clean(&self, handle: u64, frame: Frame, written: Written) {
        let bits = written.extent.word();
        self.note_written(handle, written);
        let meta = self.frames.meta(frame);
        meta.generation.store(0, Relaxed);
        let mut policy = (!planted(Mutation::SeatLate)).then(|| self.policy.lock());
        let mut table = self.table[shard(bits)].lock();
        meta.identity.store(bits, Release);
        table.insert(bits, frame);
        if let Some(policy) = &mut policy {
            policy.insert(frame, bits);
        }
        drop(table);
        if policy.is_none() {
            // Long enough for a whole commit, so that few runs show it.
            (0..1_000).for_each(|_| crate::primitives::yield_now());
            self.policy.lock().insert(frame, bits);
        }
        drop(policy);
        self.note_buried(1);
    }

    /// The unwritten node `handle` in `frame`, which only its transaction can
    /// reach, was written and need not stay cached. If this says so, the frame
    /// is to be given to [`free_cold`](Self::free_cold).
    pub(crate) fn became_cold(&self, handle: u64, frame: Frame, written: Written) -> bool {
        let meta = self.frames.meta(frame);
        if meta
            .pins
            .compare_exchange(0, EVICTING, Acquire, Relaxed)
            .is_err()
        {
            // A cursor is on it.
            self.became_clean(handle, frame, written);
            return false;
        }
        self.note_written(handle, written);
        meta.identity.store(0, Release);
        self.note_buried(1);
        true
    }

    /// Frees frames whose nodes became cold, once nobody walks through them.
    pub(crate) fn free_cold(&self, frames: &mut Vec<Frame>) {
        self.readers.quiesce();
        for frame in frames.iter() {
            self.frames.meta(*frame).pins.fetch_sub(EVICTING, Release);
        }
        self.free.lock().list.append(frames);
    }

    /// Forgets a node that nobody can reach any more: frees its frame, and
    /// returns its extent if it has one; counts it in `unwritten` if not, for
    /// [`note_buried`](Self::note_buried).
    pub(crate) fn bury(
        &self,
        node: ChildRef,
        free: &mut Vec<Frame>,
        unwritten: &mut usize,
    ) -> Option<ExtentRef> {
        // Where the frame holds the handle still, the node was never written, and
        // nobody writes what nobody can reach.
        if node.is_handle() && self.frames.holding(node.hint(), node.reference).is_some() {
            *unwritten += 1;
            self.frames.meta(node.hint()).identity.store(0, Release);
            free.push(node.hint());
            return None;
        }
        let extent = if node.is_handle() {
            let written = self.forget_written(node.reference);
            debug_assert!(written.is_some(), "neither in its frame nor written");
            let written = written?;
            self.forget_handle_of(written.extent.word());
            written.extent
        } else {
            if let Some(handle) = self.forget_handle_of(node.reference) {
                self.forget_written(handle);
            }
            extent_of(node.reference)
        };
        self.drop_resident(extent, free);
        Some(extent)
    }

    /// Takes the frame of a dead extent away from it.
    pub(crate) fn drop_resident(&self, extent: ExtentRef, free: &mut Vec<Frame>) {
        let bits = extent.word();
        // Whoever evicts does so under the policy's lock: a frame that is in the
        // table now is not being evicted, and stays in it until we take it out.
        let mut policy = self.policy.lock();
        let Some(frame) = self.lookup(bits) else {
            return;
        };
        let pins = &self.frames.meta(frame).pins;
        // No snapshot reaches the node, so a pin can only be a fetch in passing
        // that is about to notice and let go.
        while pins
            .compare_exchange(0, EVICTING, Acquire, Relaxed)
            .is_err()
        {
            spin_loop();
        }
        policy.remove(frame);
        self.table[shard(bits)].lock().remove(&bits);
        self.frames.meta(frame).identity.store(0, Release);
        drop(policy);
        pins.fetch_sub(EVICTING, Release);
        free.push(frame);
    }
}

/// A frame that will not be evicted while this lives.
pub(crate) struct Pinned<'p> {
    pool: &'p Pool,
    frame: Frame,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.pool.frames.unpin(self.frame);
    }
}
