//! Many values that are zeros at first, in memory that is not touched before they are.

use crate::error::{Error, Result};
use fulgurite_disk::Region;
use std::marker::PhantomData;
use std::ops::Deref;

/// A type of which zeros are a value.
///
/// # Safety
/// All bytes zero is the value that `default` makes, and a value needs no drop.
pub(crate) unsafe trait Zeros: Default {}

/// Values that are zeros at first, in a region.
pub(crate) struct Table<T> {
    region: Region,
    count: usize,
    values: PhantomData<T>,
}

impl<T: Zeros> Table<T> {
    /// So many values.
    ///
    /// # Errors
    /// `NoMemory`.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let len = count.saturating_mul(size_of::<T>());
        let region = Region::new(len, align_of::<T>());
        Ok(Self {
            region: region.map_err(|cause| Error::no_memory(len, &cause))?,
            count,
            values: PhantomData,
        })
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the region has room for `count` values at this alignment, which were
        // zeros, values of `T`, when it was made (only `new` does that), and it lives as
        // long as the table.
        unsafe { std::slice::from_raw_parts(self.region.base().cast().as_ptr(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[derive(Default)]
    #[repr(align(128))]
    struct Wide(AtomicU64);

    // SAFETY: an atomic number and padding.
    unsafe impl Zeros for Wide {}

    #[test]
    fn values_are_zeros_apart_and_aligned() {
        let table = Table::<Wide>::new(1_000).unwrap();
        assert_eq!(table.len(), 1_000);
        assert_eq!(table.as_ptr().align_offset(128), 0);
        assert!(table.iter().all(|value| value.0.load(Relaxed) == 0));
        for (number, value) in table.iter().enumerate() {
            value.0.store(number as u64, Relaxed);
        }
        let sum: u64 = table.iter().map(|value| value.0.load(Relaxed)).sum();
        assert_eq!(sum, 999 * 1_000 / 2);
    }
}
