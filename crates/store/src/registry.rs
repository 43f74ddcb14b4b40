//! The stores this process has open, by device and inode.
//!
//! Opening a file twice joins the open store, so that one connection a thread
//! just works. The table is locked while a store is opened and while the last
//! handle of one closes, so nobody finds a store that is half open or half
//! closed.

use crate::error::{Error, ErrorKind, Result};
use crate::open;
use crate::options::Options;
use crate::store::{Handle, Store, real_disk};
use fulgurite_disk::{FileId, OpenOptions};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};

type Stores = HashMap<FileId, Weak<Handle>>;

static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

/// Held while the last handle of a store closes it.
pub(crate) fn lock() -> MutexGuard<'static, impl Sized> {
    STORES.lock()
}

/// A further handle of an open store, for reading only if that is asked for.
fn join(handle: Arc<Handle>, options: &Options) -> Result<Store> {
    if handle.core.options.read_only && !options.read_only {
        return Err(Error::new(
            ErrorKind::ReadOnly,
            format!(
                "attempt to write a readonly database: {} is open for reading in this process; close it there first",
                handle.core.pool.path
            ),
        ));
    }
    let mut store = Store::new(handle);
    store.read_only = options.read_only;
    Ok(store)
}

pub(crate) fn open(path: &Path, options: Options) -> Result<Store> {
    let disk = real_disk();
    let mut stores = STORES.lock();
    stores.retain(|_, handle| handle.strong_count() > 0);
    if disk.exists(path)? {
        let file = disk
            .open(path, OpenOptions::READ)
            .map_err(open::cannot_open)?;
        let id = file.identity()?;
        if let Some(handle) = stores.get(&id).and_then(Weak::upgrade) {
            return join(handle, &options);
        }
    }
    let store = open::open(disk, path, options)?;
    let id = store.core().pool.file.identity()?;
    stores.insert(id, std::sync::Arc::downgrade(&store.handle));
    Ok(store)
}
