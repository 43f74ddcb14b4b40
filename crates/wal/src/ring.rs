//! The bytes of the log buffer: a ring addressed by log position.
//!
//! This is the one place with `unsafe` in the crate. The ring itself does not
//! know who owns which bytes; its callers do:
//!
//! 1. `TwinLog::place` gives every record a range of log positions that no other
//!    record gets (a counter under a lock, for the life of the log).
//! 2. A record's bytes are copied in only when everything one ring length below
//!    its end has been written to the file, which the leader published with a
//!    release store after its write returned. So a copy never meets a reader or
//!    a writer of the same bytes on an earlier lap.
//! 3. The leader reads only ranges whose records were published as filled, by a
//!    release store after their copy.

use std::cell::UnsafeCell;

pub(super) struct Ring {
    bytes: Box<[UnsafeCell<u8>]>,
}

// SAFETY: the bytes are reached only through `write` and `read`, whose contracts
// forbid that a writer meets anyone else on the same bytes.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `len` bytes, a power of two.
    pub(super) fn new(len: usize) -> Self {
        assert!(len.is_power_of_two(), "the ring's length is a power of two");
        let zeroed = vec![0u8; len].into_boxed_slice();
        let raw = Box::into_raw(zeroed) as *mut [UnsafeCell<u8>];
        // SAFETY: the pointer comes from a box just given up, and
        // `UnsafeCell<u8>` has the layout of `u8`.
        let bytes = unsafe { Box::from_raw(raw) };
        Self { bytes }
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where a range of `len` bytes at `position` lies: the length of its part
    /// before the ring's end, with a pointer, and a pointer to the rest.
    fn locate(&self, position: u64, len: usize) -> (*mut u8, usize, *mut u8) {
        assert!(
            len <= self.bytes.len(),
            "a range is no longer than the ring"
        );
        let start = (position & (self.len() - 1)) as usize;
        let base = self.bytes.as_ptr() as *mut u8;
        let first = len.min(self.bytes.len() - start);
        // `start` is below the length, so the sum stays inside the allocation.
        (base.wrapping_add(start), first, base)
    }

    /// Copies `bytes` to `position`.
    ///
    /// # Safety
    /// Until the range is published, nobody else may read or write it.
    pub(super) unsafe fn write(&self, position: u64, bytes: &[u8]) {
        let (start, first, rest) = self.locate(position, bytes.len());
        // SAFETY: `locate` keeps both parts inside the allocation and `first` is
        // at most `bytes.len()`; the caller owns the range, and `bytes` is a
        // shared borrow of other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, first);
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr().wrapping_add(first),
                rest,
                bytes.len() - first,
            );
        }
    }

    /// A range in one piece, to be written; `None` where it passes the ring's end.
    ///
    /// # Safety
    /// Until the range is published, nobody else may read or write it.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller owns the range, as the contract says"
    )]
    pub(super) unsafe fn piece(&self, position: u64, len: usize) -> Option<&mut [u8]> {
        let start = (position & (self.len() - 1)) as usize;
        if len > self.bytes.len() - start {
            return None;
        }
        let first = self.bytes.as_ptr().wrapping_add(start) as *mut u8;
        // SAFETY: the range lies inside the allocation by the check above, every
        // byte was initialised when the ring was made, and the caller owns it.
        Some(unsafe { std::slice::from_raw_parts_mut(first, len) })
    }

    /// The bytes of a range, in two parts where it passes the ring's end.
    ///
    /// # Safety
    /// Nobody may write to the range while the slices are in use, and all that
    /// was written to it must have been published to this thread.
    pub(super) unsafe fn read(&self, position: u64, len: usize) -> [&[u8]; 2] {
        let (start, first, rest) = self.locate(position, len);
        // SAFETY: `locate` keeps both parts inside the allocation, which lives
        // as long as `self`; every byte was initialised when the ring was made;
        // the caller vouches that nobody writes.
        unsafe {
            [
                std::slice::from_raw_parts(start, first),
                std::slice::from_raw_parts(rest, len - first),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn ranges_wrap_around() {
        let ring = Ring::new(16);
        // SAFETY: one thread.
        let parts = unsafe {
            ring.write(16 + 13, b"abcdef");
            ring.read(16 + 13, 6)
        };
        assert_eq!(parts, [&b"abc"[..], &b"def"[..]]);
    }
}
