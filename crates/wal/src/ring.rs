//! The bytes of the log buffer: a ring addressed by log position.
//!
//! It takes nothing from the system before it is touched, since many a log ends with a
//! few records.
//!
//! Reaching its bytes is `unsafe`: the ring itself does not know who owns which; its
//! callers do:
//!
//! 1. `TwinLog::place` gives every record a range of log positions that no other
//!    record gets (a counter under a lock, for the life of the log).
//! 2. A record's bytes are copied in only when everything one ring length below
//!    its end has been written to the file, which the leader published with a
//!    release store after its write returned. So a copy never meets a reader or
//!    a writer of the same bytes on an earlier lap.
//! 3. The leader reads only ranges whose records were published as filled, by a
//!    release store after their copy.

use std::io;

use fulgurite_disk::Region;

/// The bytes are reached only through `write`, `piece` and `read`, whose contracts
/// forbid that a writer meets anyone else on the same bytes.
pub(super) struct Ring {
    bytes: Region,
    len: usize,
}

impl Ring {
    /// A ring of `len` bytes, a power of two.
    ///
    /// # Errors
    /// Where the system has no memory.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        assert!(len.is_power_of_two(), "the ring's length is a power of two");
        let bytes = Region::new(len, 1)?;
        Ok(Self { bytes, len })
    }

    pub(super) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Where a range of `len` bytes at `position` lies: the length of its part
    /// before the ring's end, with a pointer, and a pointer to the rest.
    fn locate(&self, position: u64, len: usize) -> (*mut u8, usize, *mut u8) {
        assert!(len <= self.len, "a range is no longer than the ring");
        let start = (position & (self.len() - 1)) as usize;
        let base = self.bytes.base().as_ptr();
        let first = len.min(self.len - start);
        // `start` is below the length, so the sum stays inside the region.
        (base.wrapping_add(start), first, base)
    }

    /// Copies `bytes` to `position`.
    ///
    /// # Safety
    /// Until the range is published, nobody else may read or write it.
    pub(super) unsafe fn write(&self, position: u64, bytes: &[u8]) {
        let (start, first, rest) = self.locate(position, bytes.len());
        // SAFETY: `locate` keeps both parts inside the region and `first` is
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
        if len > self.len - start {
            return None;
        }
        let first = self.bytes.base().as_ptr().wrapping_add(start);
        // SAFETY: the range lies inside the region by the check above, every
        // byte was zero when the ring was made, and the caller owns it.
        Some(unsafe { std::slice::from_raw_parts_mut(first, len) })
    }

    /// The bytes of a range, in two parts where it passes the ring's end.
    ///
    /// # Safety
    /// Nobody may write to the range while the slices are in use, and all that
    /// was written to it must have been published to this thread.
    pub(super) unsafe fn read(&self, position: u64, len: usize) -> [&[u8]; 2] {
        let (start, first, rest) = self.locate(position, len);
        // SAFETY: `locate` keeps both parts inside the region, which lives
        // as long as `self`; every byte was zero when the ring was made;
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
        let ring = Ring::new(16).expect("memory");
        // SAFETY: one thread.
        let parts = unsafe {
            ring.write(16 + 13, b"abcdef");
            ring.read(16 + 13, 6)
        };
        assert_eq!(parts, [&b"abc"[..], &b"def"[..]]);
    }
}
