//! Memory that takes nothing from the system before it is touched: whole pages of
//! its own, zeros at first, returned when dropped.
//!
//! An allocator promises less. Asked for zeros that begin at a multiple of more than two
//! words, the system's writes them, all over a cache of which a short life uses a few
//! pages; and what it gets back it may keep.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Pages of memory. It knows where they are and reads and writes nothing itself.
#[derive(Debug)]
pub struct Region {
    /// What was asked of the system: the region and what its alignment costs.
    mapped: NonNull<u8>,
    mapped_len: usize,
    base: NonNull<u8>,
}

// SAFETY: nothing is reached through a region itself; who makes references to its memory
// says who may have them.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// At least `len` bytes from a multiple of `align` on, which is a power of two.
    ///
    /// # Errors
    /// `OutOfMemory`, or what else the operating system says.
    pub fn new(len: usize, align: usize) -> io::Result<Self> {
        let Some(mapped_len) = len.max(1).checked_add(align) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let (protection, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        );
        // SAFETY: the system chooses an address where nothing is.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_len, protection, flags) };
        let mapped = mapped?.cast::<u8>();
        let before = mapped.align_offset(align);
        // The part in front is shorter than the alignment, which was added.
        let base = mapped.wrapping_add(before);
        match (NonNull::new(mapped), NonNull::new(base)) {
            (Some(mapped), Some(base)) => Ok(Self {
                mapped,
                mapped_len,
                base,
            }),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and whoever borrows from the region
        // has ended. Failing, it would only stay mapped.
        let _ = unsafe { munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_begins_where_it_was_asked_to() {
        for align in [1, 64, 4_096, 1 << 21] {
            let region = Region::new(100, align).unwrap();
            assert_eq!(region.base().as_ptr().align_offset(align), 0);
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        for len in [usize::MAX, usize::MAX / 4] {
            let error = Region::new(len, 4_096).err().map(|error| error.kind());
            assert_eq!(error, Some(io::ErrorKind::OutOfMemory));
        }
    }
}
