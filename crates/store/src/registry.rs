//! The stores this process has open, by device and inode.
//!
//! Opening a file twice joins the open store, so that one connection a thread just
//! works. A file's *place* in the table is taken while somebody opens it, belongs to
//! the store then, and is free again once the last handle has closed that and given
//! the file's lock back. Whoever opens the file in between waits, so nobody finds a
//! store that is half open or half closed, or a lock that this process has itself.
//! Nobody waits for other files.
//!
//! A database that is made has no number until its file has its name, and an empty
//! file that becomes one gets another; so who opens takes the path's place, too. A
//! place is looked for and taken under the table's lock, the look at the file
//! included, and nothing else is done under it.

use crate::error::{Error, ErrorKind, Result};
use crate::open::{self, Purpose};
use crate::options::Options;
use crate::store::{Core, Handle, Store, real_disk};
use fulgurite_disk::{Disk, FileId, OpenOptions};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

/// The places that are not free.
#[derive(Default)]
struct Places {
    files: HashMap<FileId, Place>,
    /// What is being opened, by its resolved path.
    paths: HashSet<PathBuf>,
}

enum Place {
    /// Somebody opens it.
    Taken,
    /// Open; without a handle it is being closed.
    Open(Weak<Handle>),
}

static PLACES: LazyLock<Mutex<Places>> = LazyLock::new(Mutex::default);
static FREED: Condvar = Condvar::new();

/// A store on a disk of the caller's.
struct OnOtherDisk {
    /// Its address, which is that disk's for as long as the store is open.
    disk: usize,
    path: PathBuf,
    handle: Weak<Handle>,
}

static ON_OTHER_DISKS: Mutex<Vec<OnOtherDisk>> = Mutex::new(Vec::new());

fn address(disk: &Arc<dyn Disk>) -> usize {
    Arc::as_ptr(disk).cast::<()>() as usize
}

impl OnOtherDisk {
    fn is_at(&self, disk: &Arc<dyn Disk>, path: &Path) -> bool {
        self.disk == address(disk) && self.path == path
    }
}

/// The place of what is being opened; dropping it frees it.
struct Opening {
    path: PathBuf,
    file: Option<FileId>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut places = PLACES.lock();
        places.paths.remove(&self.path);
        if let Some(file) = self.file {
            places.files.remove(&file);
        }
        drop(places);
        FREED.notify_all();
    }
}

/// The place of an open store; dropping it frees it.
pub(crate) struct Occupied(FileId);

impl Drop for Occupied {
    fn drop(&mut self) {
        PLACES.lock().files.remove(&self.0);
        FREED.notify_all();
    }
}

enum Found {
    Joined(Arc<Handle>),
    Free(Opening),
}

/// Waits until the file at a resolved path is open or nobody has its place.
fn find(disk: &dyn Disk, path: PathBuf) -> Result<Found> {
    let mut places = PLACES.lock();
    loop {
        let file = identity(disk, &path)?;
        let place = file.and_then(|file| places.files.get(&file));
        match place {
            Some(Place::Open(handle)) => {
                if let Some(handle) = handle.upgrade() {
                    return Ok(Found::Joined(handle));
                }
            }
            None if !places.paths.contains(&path) => {
                places.paths.insert(path.clone());
                places.files.extend(file.map(|file| (file, Place::Taken)));
                return Ok(Found::Free(Opening { path, file }));
            }
            Some(Place::Taken) | None => {}
        }
        FREED.wait(&mut places);
    }
}

fn identity(disk: &dyn Disk, path: &Path) -> Result<Option<FileId>> {
    if !disk.exists(path)? {
        return Ok(None);
    }
    let opened = disk.open(path, OpenOptions::READ);
    Ok(Some(opened.map_err(open::cannot_open)?.identity()?))
}

impl Opening {
    /// Leaves the place to the store that was opened.
    fn leave_to(&mut self, store: &Store) -> Result<()> {
        let file = store.core().pool.file.identity()?;
        let mut places = PLACES.lock();
        let open = Place::Open(Arc::downgrade(&store.handle));
        places.files.insert(file, open);
        drop(places);
        let _ = store.handle.place.set(Occupied(file));
        self.file = self.file.filter(|taken| *taken != file);
        Ok(())
    }
}

/// A further handle of an open store, for reading only if that is asked for.
fn join(handle: Arc<Handle>, options: &Options) -> Result<Store> {
    if !options.read_only {
        check_not_only_read(&handle.core)?;
    }
    let mut store = Store::new(handle);
    store.read_only = options.read_only;
    Ok(store)
}

/// Fails where this process has a store open for reading only: it holds what its log says in
/// memory alone.
pub(crate) fn check_not_only_read(core: &Core) -> Result<()> {
    match core.options.read_only {
        true => Err(Error::new(
            ErrorKind::ReadOnly,
            format!(
                "attempt to write a readonly database: {} is open for reading in this process; close it there first",
                core.pool.path
            ),
        )),
        false => Ok(()),
    }
}

/// The store of the file at a resolved path, if this process has it open.
pub(crate) fn find_open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Option<Store>> {
    if !Arc::ptr_eq(disk, &real_disk()) {
        let others = ON_OTHER_DISKS.lock();
        let mut found = others.iter().filter(|other| other.is_at(disk, path));
        let handle = found.find_map(|other| other.handle.upgrade());
        drop(others);
        return Ok(handle.map(Store::new));
    }
    let Some(file) = identity(&**disk, path)? else {
        return Ok(None);
    };
    let places = PLACES.lock();
    let handle = match places.files.get(&file) {
        Some(Place::Open(handle)) => handle.upgrade(),
        Some(Place::Taken) | None => None,
    };
    drop(places);
    Ok(handle.map(Store::new))
}

pub(crate) fn open(path: &Path, options: Options) -> Result<Store> {
    let disk = real_disk();
    let path = open::resolve(&*disk, path)?;
    match find(&*disk, path)? {
        Found::Joined(handle) => join(handle, &options),
        Found::Free(mut opening) => {
            let store = open::open(disk, &opening.path, options, Purpose::Use)?;
            opening.leave_to(&store)?;
            Ok(store)
        }
    }
}

/// The same on a disk of the caller's. Numbers of files mean nothing across such disks, so
/// who opens a file twice is refused its lock; the store is only known to be asked.
pub(crate) fn open_on(disk: Arc<dyn Disk>, path: &Path, options: Options) -> Result<Store> {
    let path = open::resolve(&*disk, path)?;
    let store = open::open(disk.clone(), &path, options, Purpose::Use)?;
    let mut others = ON_OTHER_DISKS.lock();
    others.retain(|other| other.handle.strong_count() > 0);
    others.push(OnOtherDisk {
        disk: address(&disk),
        path,
        handle: Arc::downgrade(&store.handle),
    });
    drop(others);
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::MemoryDisk;

    #[test]
    fn who_opens_a_file_waits_for_that_file_alone() {
        let disk = MemoryDisk::new();
        let take = |name: &str| match find(&disk, PathBuf::from(name)).expect("looks") {
            Found::Free(opening) => opening,
            Found::Joined(_) => panic!("nobody has opened {name}"),
        };
        disk.open(Path::new("there"), OpenOptions::CREATE)
            .expect("makes a file");
        // Neither of these waits for one before it.
        let mut opening = vec![take("there"), take("made"), take("made too")];
        for name in ["made too", "made", "there"] {
            let begun = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let again = take(name);
                    begun.lock().push("again");
                    drop(again);
                });
                let first = opening.pop();
                begun.lock().push("first");
                drop(first);
            });
            assert_eq!(*begun.lock(), ["first", "again"], "{name}");
        }
    }
}
