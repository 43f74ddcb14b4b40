//! Disks and files that stand before others.

/// Forwards the methods it names of [`Disk`](crate::Disk) or
/// [`DiskFile`](crate::DiskFile) to a field: within the `impl` of one that stands
/// before another and does some things in its own way.
///
/// The methods are named rather than left out, because what is not forwarded falls
/// back on the trait: a provided method like
/// [`write_and_sync_at`](crate::DiskFile::write_and_sync_at) is then made of the
/// file's own methods, and a required one that is forgotten does not compile. So a
/// method that a trait gains later never passes by what the wrapper is for.
///
/// ```
/// use fulgurite_disk::{DiskFile, Result, forward};
/// use std::io::IoSlice;
/// use std::sync::Arc;
///
/// /// A file that is never synced.
/// #[derive(Debug)]
/// struct Unsynced {
///     inner: Arc<dyn DiskFile>,
/// }
///
/// impl DiskFile for Unsynced {
///     forward!(inner: len, identity, read_at, write_at, write_vectored_at);
///     forward!(inner: start_writeback, allocate, truncate);
///     forward!(inner: lock_exclusive, lock_shared, unlock);
///
///     fn sync_data(&self) -> Result<()> {
///         Ok(())
///     }
///
///     fn sync_all(&self) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($to:tt: $($method:ident),+ $(,)?) => {
        $($crate::forward!(@ $to $method);)+
    };

    // `Disk`.
    (@ $to:tt open) => {
        fn open(
            &self,
            path: &::std::path::Path,
            options: $crate::OpenOptions,
        ) -> $crate::Result<::std::sync::Arc<dyn $crate::DiskFile>> {
            self.$to.open(path, options)
        }
    };
    (@ $to:tt exists) => {
        fn exists(&self, path: &::std::path::Path) -> $crate::Result<bool> {
            self.$to.exists(path)
        }
    };
    (@ $to:tt remove) => {
        fn remove(&self, path: &::std::path::Path) -> $crate::Result<()> {
            self.$to.remove(path)
        }
    };
    (@ $to:tt rename) => {
        fn rename(
            &self,
            from: &::std::path::Path,
            to: &::std::path::Path,
        ) -> $crate::Result<()> {
            self.$to.rename(from, to)
        }
    };
    (@ $to:tt sync_dir) => {
        fn sync_dir(&self, dir: &::std::path::Path) -> $crate::Result<()> {
            self.$to.sync_dir(dir)
        }
    };
    (@ $to:tt temp_file) => {
        fn temp_file(
            &self,
            near: &::std::path::Path,
        ) -> $crate::Result<::std::sync::Arc<dyn $crate::DiskFile>> {
            self.$to.temp_file(near)
        }
    };
    (@ $to:tt canonical) => {
        fn canonical(
            &self,
            path: &::std::path::Path,
        ) -> $crate::Result<::std::path::PathBuf> {
            self.$to.canonical(path)
        }
    };
    (@ $to:tt boot_id) => {
        fn boot_id(&self) -> ::std::option::Option<[u8; 16]> {
            self.$to.boot_id()
        }
    };

    // `DiskFile`.
    (@ $to:tt len) => {
        fn len(&self) -> $crate::Result<u64> {
            self.$to.len()
        }
    };
    (@ $to:tt identity) => {
        fn identity(&self) -> $crate::Result<$crate::FileId> {
            self.$to.identity()
        }
    };
    (@ $to:tt read_at) => {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> $crate::Result<()> {
            self.$to.read_at(buf, offset)
        }
    };
    (@ $to:tt write_at) => {
        fn write_at(&self, buf: &[u8], offset: u64) -> $crate::Result<()> {
            self.$to.write_at(buf, offset)
        }
    };
    (@ $to:tt write_vectored_at) => {
        fn write_vectored_at(
            &self,
            bufs: &[::std::io::IoSlice<'_>],
            offset: u64,
        ) -> $crate::Result<()> {
            self.$to.write_vectored_at(bufs, offset)
        }
    };
    (@ $to:tt sync_data) => {
        fn sync_data(&self) -> $crate::Result<()> {
            self.$to.sync_data()
        }
    };
    (@ $to:tt sync_all) => {
        fn sync_all(&self) -> $crate::Result<()> {
            self.$to.sync_all()
        }
    };
    (@ $to:tt hint_lifetime) => {
        fn hint_lifetime(&self, lifetime: $crate::Lifetime) {
            self.$to.hint_lifetime(lifetime);
        }
    };
    (@ $to:tt will_write) => {
        fn will_write(&self, offset: u64, len: u64) {
            self.$to.will_write(offset, len);
        }
    };
    (@ $to:tt start_writeback) => {
        fn start_writeback(&self, offset: u64, len: u64) {
            self.$to.start_writeback(offset, len);
        }
    };
    (@ $to:tt finish_writeback) => {
        fn finish_writeback(&self, offset: u64, len: u64) -> $crate::Result<()> {
            self.$to.finish_writeback(offset, len)
        }
    };
    (@ $to:tt allocate) => {
        fn allocate(&self, offset: u64, len: u64) -> $crate::Result<()> {
            self.$to.allocate(offset, len)
        }
    };
    (@ $to:tt truncate) => {
        fn truncate(&self, len: u64) -> $crate::Result<()> {
            self.$to.truncate(len)
        }
    };
    (@ $to:tt lock_exclusive) => {
        fn lock_exclusive(&self) -> $crate::Result<()> {
            self.$to.lock_exclusive()
        }
    };
    (@ $to:tt lock_shared) => {
        fn lock_shared(&self) -> $crate::Result<()> {
            self.$to.lock_shared()
        }
    };
    (@ $to:tt unlock) => {
        fn unlock(&self) {
            self.$to.unlock();
        }
    };
}
