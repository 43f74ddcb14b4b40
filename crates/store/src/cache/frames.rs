//! The frame region: fixed-size page buffers with a small header each.
//!
//! A frame holds one node. Its **identity** says which: an extent reference
//! for a node that is on disk, a handle (bit 63 set, never reused) for one
//! that is not written yet, 0 for none. A child slot that hints at a frame is
//! right if, and only if, the identities agree.
//!
//! Who may touch the bytes of a frame:
//!
//! 1. *Filling*: the thread that took the frame from the free list, until it
//!    stores the identity. Nobody else can reach it.
//! 2. *Private*: the transaction whose generation made the node, until it
//!    publishes a root; and who commits under a lease, where the node was published
//!    since any reader or checkpoint began (`txn/in_place.rs`). Nobody else can
//!    reach it.
//! 3. *Shared*: everybody reads. Only the child region changes, through
//!    atomics: a reference is resolved from a handle to the extent it became
//!    (checksum first, then the reference with release), hints change freely.
//! 4. *Reused*: only after the identity was cleared and every walk that began
//!    before has ended (see [`Readers`](super::readers::Readers)), or when no
//!    snapshot can reach the node any more.
//!
//! This is one of the crate's few modules with `unsafe`; the rules above are
//! its argument, and the callers' `unsafe` blocks name the rule they rely on.

use crate::error::{Error, Result};
use crate::node;
use crate::primitives::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crate::primitives::{Table, Zeros};
use fulgurite_disk::Region;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64 as ChildWord};

/// Number of a frame.
pub(crate) type Frame = u32;

/// A hint that points nowhere.
pub(crate) const NO_HINT: u32 = u32::MAX;

/// Marks references to nodes that have no extent yet.
pub(crate) const HANDLE_BIT: u64 = 1 << 63;

/// A child slot's two words: what it refers to, and how to find and trust it. Two
/// words and not three fields, so that it travels in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChildRef {
    /// Extent reference, or handle, or 0 for no node.
    pub(crate) reference: u64,
    /// The checksum, and above it the hint.
    rest: u64,
}

impl ChildRef {
    pub(crate) const NONE: Self = Self::new(0, 0, NO_HINT);

    #[inline]
    pub(crate) const fn new(reference: u64, checksum: u32, hint: u32) -> Self {
        Self {
            reference,
            rest: checksum as u64 | (hint as u64) << 32,
        }
    }

    /// CRC32C of the child as stored; meaningless beside a handle.
    #[inline]
    pub(crate) fn checksum(self) -> u32 {
        self.rest as u32
    }

    /// The frame where the child was last seen.
    #[inline]
    pub(crate) fn hint(self) -> u32 {
        (self.rest >> 32) as u32
    }

    /// The same child, seen in another frame.
    #[inline]
    pub(crate) fn with_hint(self, hint: u32) -> Self {
        Self::new(self.reference, self.checksum(), hint)
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.reference == 0
    }

    #[inline]
    pub(crate) fn is_handle(self) -> bool {
        self.reference & HANDLE_BIT != 0
    }

    #[inline]
    pub(crate) fn words(self) -> [u64; 2] {
        [self.reference, self.rest]
    }

    #[inline]
    pub(crate) fn from_words([reference, rest]: [u64; 2]) -> Self {
        Self { reference, rest }
    }
}

/// A frame's header.
#[derive(Default)]
pub(crate) struct FrameMeta {
    /// What the frame holds; see the module's header.
    pub(crate) identity: AtomicU64,
    /// Generation of the transaction that made the node, 0 for a loaded one.
    pub(crate) generation: AtomicU64,
    /// Pins, and [`EVICTING`].
    pub(crate) pins: AtomicU32,
    /// The replacement policy's heat.
    pub(crate) heat: AtomicU8,
}

// SAFETY: numbers, 0 by default.
unsafe impl Zeros for FrameMeta {}

/// Set in [`FrameMeta::pins`] while a frame is being evicted: pinning fails.
pub(crate) const EVICTING: u32 = 1 << 31;

/// Bytes of a huge page where there are such.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a cache line, near enough.
const LINE: usize = 64;

/// Asks for huge pages: they save most of the faults and address look-ups of
/// random reads. The system may decline, which costs nothing but that. Not for the
/// first one's worth: a database that is as small would wait for all of it to be
/// zeroed.
fn advise_huge_pages(base: NonNull<u8>, length: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the range is ours and longer than one huge page, and the advice changes
    // nothing but speed.
    let _ = unsafe {
        rustix::mm::madvise(
            base.as_ptr().add(HUGE_PAGE).cast(),
            length - HUGE_PAGE,
            rustix::mm::Advice::LinuxHugepage,
        )
    };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, length);
}

/// The region of frames.
pub(crate) struct Frames {
    /// Where `region` begins.
    base: NonNull<u8>,
    page_size: usize,
    metas: Table<FrameMeta>,
    _region: Region,
}

// SAFETY: the region is plain memory; who may touch which bytes when is
// governed by the rules in the module's header, not by the owning thread.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// A region of `count` frames. Memory is taken from the system as frames
    /// are first touched.
    ///
    /// # Errors
    /// `NoMemory`.
    pub(crate) fn new(count: usize, page_size: usize) -> Result<Self> {
        let bytes = count.saturating_mul(page_size);
        let large = bytes >= 4 * HUGE_PAGE;
        let region = Region::new(bytes, if large { HUGE_PAGE } else { 1 << 16 })
            .map_err(|cause| Error::no_memory(bytes, &cause))?;
        let base = region.base();
        if large {
            advise_huge_pages(base, bytes);
        }
        Ok(Self {
            base,
            page_size,
            metas: Table::new(count)?,
            _region: region,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.metas.len()
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    #[inline]
    pub(crate) fn meta(&self, frame: Frame) -> &FrameMeta {
        &self.metas[frame as usize]
    }

    /// The frame `hint` if it holds `identity`.
    #[inline]
    pub(crate) fn holding(&self, hint: u32, identity: u64) -> Option<Frame> {
        let meta = self.metas.get(hint as usize)?;
        (meta.identity.load(Acquire) == identity).then_some(hint)
    }

    /// Gives the memory of a frame that nobody can reach back to the system,
    /// where that is possible. Its bytes are arbitrary afterwards.
    pub(crate) fn let_go(&self, frame: Frame) {
        let start = self.start(frame);
        #[cfg(target_os = "linux")]
        // SAFETY: the page lies inside the region and is in nobody's use (rule
        // 1), so losing its bytes is harmless; where the system cannot drop it
        // (pages larger than ours) it declines.
        let _ = unsafe {
            rustix::mm::madvise(
                start.cast(),
                self.page_size,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
        #[cfg(not(target_os = "linux"))]
        let _ = start;
    }

    #[inline]
    fn start(&self, frame: Frame) -> *mut u8 {
        assert!((frame as usize) < self.metas.len());
        // SAFETY: the frame number was just checked, so the offset lies inside
        // the region.
        unsafe { self.base.as_ptr().add(frame as usize * self.page_size) }
    }

    /// The whole page of a node without children (a leaf).
    ///
    /// # Safety
    /// Rule 3 or 2 must hold for as long as the borrow lives, and the node
    /// must not have a child region.
    #[inline]
    pub(crate) unsafe fn page(&self, frame: Frame) -> &[u8] {
        // SAFETY: in bounds; shared pages without children are not written to.
        unsafe { std::slice::from_raw_parts(self.start(frame), self.page_size) }
    }

    /// The page up to its child region, for any node.
    ///
    /// # Safety
    /// Rule 3 or 2 must hold for as long as the borrow lives.
    #[inline]
    pub(crate) unsafe fn keys(&self, frame: Frame) -> &[u8] {
        let start = self.start(frame);
        // SAFETY: the header is never part of the child region and does not
        // change while the node is shared.
        let header = unsafe { std::slice::from_raw_parts(start, node::HEADER) };
        let children = node::child_count(header);
        let length = self.page_size - children * node::CHILD;
        // SAFETY: in bounds, and ends where the child region begins.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    /// The whole page, to change it.
    ///
    /// # Safety
    /// Rule 1 or 2 must hold for as long as the borrow lives, and no other
    /// borrow of the page may be alive.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "exclusive by the module's rules 1 and 2"
    )]
    pub(crate) unsafe fn page_mut(&self, frame: Frame) -> &mut [u8] {
        // SAFETY: in bounds; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame), self.page_size) }
    }

    #[inline]
    fn child_words(&self, frame: Frame, index: usize) -> [&ChildWord; 2] {
        let offset = node::child_offset(self.page_size, index);
        assert!(offset >= node::HEADER && offset + node::CHILD <= self.page_size);
        // SAFETY: in bounds as just checked, aligned to 8 because pages and
        // child offsets are, and the child region is only accessed through
        // atomics while shared (rule 3) or by its owner (rules 1, 2).
        unsafe {
            let first = self.start(frame).add(offset).cast::<u64>();
            [
                ChildWord::from_ptr(first),
                ChildWord::from_ptr(first.add(1)),
            ]
        }
    }

    /// Child `index` of an inner node.
    #[inline]
    pub(crate) fn child(&self, frame: Frame, index: usize) -> ChildRef {
        let [reference, rest] = self.child_words(frame, index);
        let reference = reference.load(Acquire);
        ChildRef::from_words([reference, rest.load(Relaxed)])
    }

    /// Replaces a child of a private node, or resolves one of a shared node.
    /// The checksum is stored before the reference that needs it.
    #[inline]
    pub(crate) fn set_child(&self, frame: Frame, index: usize, child: ChildRef) {
        let [reference, rest] = self.child_words(frame, index);
        let words = child.words();
        rest.store(words[1], Relaxed);
        reference.store(words[0], Release);
    }

    /// Notes where a child was found, unless the slot has changed meanwhile.
    #[inline]
    pub(crate) fn set_hint(&self, frame: Frame, index: usize, child: ChildRef, hint: u32) {
        let [_, rest] = self.child_words(frame, index);
        let was = child.words()[1];
        let new = child.with_hint(hint).words()[1];
        // A lost race leaves a hint that fails its comparison: harmless.
        let _ = rest.compare_exchange(was, new, Relaxed, Relaxed);
    }

    /// Asks for a cache line of a frame ahead of its use, where the processor lets
    /// us. Nothing is read: the frame may hold anything, and need not exist.
    #[inline]
    pub(crate) fn prefetch(&self, frame: Frame, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        self.ask_for::<{ std::arch::x86_64::_MM_HINT_T0 }>(frame, offset);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, offset);
    }

    /// The same for lines that are about to be written to. Before a lock is given back or
    /// taken all writes must have arrived, and those to lines from afar take longest.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, frame: Frame, range: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        for offset in (range.start & !(LINE - 1)..range.end).step_by(LINE) {
            self.ask_for::<{ std::arch::x86_64::_MM_HINT_ET0 }>(frame, offset);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, range);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn ask_for<const HINT: i32>(&self, frame: Frame, offset: usize) {
        if (frame as usize) < self.metas.len() && offset < self.page_size {
            // SAFETY: the address lies inside the region, as just checked, and a
            // prefetch neither reads nor writes as far as the program can tell.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<HINT>(self.start(frame).add(offset).cast());
            }
        }
    }

    /// As [`prefetch`](Self::prefetch), for every line of a frame.
    #[inline]
    pub(crate) fn prefetch_page(&self, frame: Frame) {
        for offset in (0..self.page_size).step_by(LINE) {
            self.prefetch(frame, offset);
        }
    }

    /// Copies a shared node into a frame that is being filled.
    ///
    /// # Safety
    /// Rule 3 must hold for `from`, rule 1 for `to`.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: Frame, to: Frame) {
        // SAFETY: as promised by the caller.
        let (keys, page) = unsafe { (self.keys(from), self.page_mut(to)) };
        // Inner nodes are copied by every commit that changes anything below them.
        let (low, heap) = node::used_parts(keys);
        page[..low].copy_from_slice(&keys[..low]);
        page[heap.clone()].copy_from_slice(&keys[heap]);
        let from = self.child_region(from, keys.len());
        let to = self.child_region(to, keys.len());
        for (from, to) in from.chunks_exact(2).zip(to.chunks_exact(2)) {
            // In the order of `child`; nobody reads the copy yet.
            let reference = from[0].load(Acquire);
            to[1].store(from[1].load(Relaxed), Relaxed);
            to[0].store(reference, Relaxed);
        }
    }

    /// The words of the child slots, which lie behind the first `keys` bytes.
    #[inline]
    fn child_region(&self, frame: Frame, keys: usize) -> &[ChildWord] {
        let words = self.page_size.saturating_sub(keys) / size_of::<ChildWord>();
        // SAFETY: the region ends where the page does, so it lies inside it and is
        // aligned to 8; it is only accessed through atomics while shared (rule 3)
        // or by its owner (rules 1, 2).
        unsafe {
            let end = self.start(frame).add(self.page_size).cast::<ChildWord>();
            std::slice::from_raw_parts(end.sub(words), words)
        }
    }

    /// Pins a frame against eviction; false if it is being evicted.
    #[inline]
    pub(crate) fn pin(&self, frame: Frame) -> bool {
        let pins = &self.meta(frame).pins;
        if pins.fetch_add(1, Acquire) & EVICTING != 0 {
            pins.fetch_sub(1, Release);
            return false;
        }
        true
    }

    #[inline]
    pub(crate) fn unpin(&self, frame: Frame) {
        let was = self.meta(frame).pins.fetch_sub(1, Release);
        debug_assert!(was & !EVICTING > 0, "unpinned more often than pinned");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Key, Kind, Stored};

    const PAGE: usize = 4096;
    const COUNT: usize = 40;

    fn with_key<R>(kind: Kind, number: usize, with: impl FnOnce(Key<'_>) -> R) -> R {
        match kind {
            Kind::IntInner => with(Key::Int(number as i64)),
            _ => with(Key::Bytes(
                format!("key {number:04} of an inner node").as_bytes(),
            )),
        }
    }

    fn fill(frames: &Frames, kind: Kind) {
        // SAFETY: the test's alone.
        let page = unsafe { frames.page_mut(0) };
        node::init(&mut page[..PAGE - node::CHILD], kind, 1, 7, None, None);
        for number in 0..COUNT {
            let keys = &mut page[..node::key_area(PAGE, number + 1)];
            let inserted = with_key(kind, number, |key| {
                node::insert_separator_at(keys, number, Stored { key, rest: None })
            });
            assert!(inserted);
        }
        for child in 0..=COUNT {
            frames.set_child(0, child, ChildRef::new(child as u64 + 1, 5, 9));
        }
    }

    /// What is free in a node is not copied, and what a frame held before is not taken
    /// for a part of it.
    #[test]
    fn a_copy_of_an_inner_node_has_all_of_it() {
        for kind in [Kind::IntInner, Kind::BytesInner] {
            let frames = Frames::new(2, PAGE).unwrap();
            fill(&frames, kind);
            // SAFETY: the test's alone.
            let (page, keys) = unsafe {
                frames.page_mut(1).fill(0xA5);
                frames.copy(0, 1);
                (frames.page(1), frames.keys(1))
            };
            assert_eq!(node::check(page), Ok(()));
            assert_eq!(node::count(keys), COUNT);
            for number in 0..COUNT {
                let index = with_key(kind, number, |key| {
                    node::child_index(keys, key, node::Rests::NONE).ok()
                });
                assert_eq!(index, Some(number + 1));
            }
            for child in 0..=COUNT {
                assert_eq!(frames.child(0, child), frames.child(1, child));
            }
        }
    }
}
