//! Opening a store: create or find the file, lock it (waiting for a process that
//! has it, up to the busy timeout), read where it begins, replay the log, and make
//! what was replayed durable before anything is answered.
//!
//! A new database is made under a temporary name (`<name>-new`), synced, and
//! renamed, so a crash leaves either none or a whole one. A failure at any step
//! leaves the files as they were.

use crate::cache::ChildRef;
use crate::checkpoint::meta::{FIRST_UNIT, Meta, SLOT};
use crate::checkpoint::{self, State, catalog, mark};
use crate::codec::UNIT;
use crate::error::{Error, ErrorKind, Result};
use crate::extents::FreeMap;
use crate::names::NAMES;
use crate::node;
use crate::options::{Durability, Options};
use crate::overlay::Overlay;
use crate::passing;
use crate::recovery::recover;
use crate::space::Space;
use crate::store::{Core, Handle, Store, log_error};
use crate::tree::versions::Root;
use crate::tree::{EMPTY, KeyKind, TreeId};
use crate::txn::Txn;
use crate::txn::together::in_doubt;
use crate::waits::Waits;
use crate::{background, cache};
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskError, DiskErrorKind, DiskFile, OpenOptions, parent_dir};
use fulgurite_wal::{Continuation, Recovery};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        let kind = match error.kind {
            DiskErrorKind::NoSpace => ErrorKind::Full,
            DiskErrorKind::Busy { .. } => ErrorKind::Busy,
            DiskErrorKind::ReadOnly => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        let message = match kind {
            ErrorKind::Full => format!("database or disk is full: {error}"),
            ErrorKind::Busy => format!("database is locked: {error}"),
            ErrorKind::ReadOnly => format!("attempt to write a readonly database: {error}"),
            _ => format!("disk I/O error: {error}"),
        };
        Error::caused(kind, message, error)
    }
}

/// A failure to open or create the file itself.
pub(crate) fn cannot_open(error: DiskError) -> Error {
    let opened = Error::from(error.clone());
    match error.kind {
        DiskErrorKind::Busy { .. } | DiskErrorKind::NoSpace => opened,
        _ => Error::caused(
            ErrorKind::CantOpen,
            format!("unable to open database file: {error}"),
            error,
        ),
    }
}

fn check_options(options: &Options) -> Result<()> {
    let size = options.page_size as usize;
    let sizes = node::PAGE_SIZE_MIN..=node::PAGE_SIZE_MAX;
    if !size.is_power_of_two() || !sizes.contains(&size) {
        return Err(Error::misuse(format!(
            "a page size of {size} bytes is not a power of two from {} to {}",
            node::PAGE_SIZE_MIN,
            node::PAGE_SIZE_MAX
        )));
    }
    Ok(())
}

/// A random database id.
fn new_id(options: &Options) -> [u8; 16] {
    let waits = Waits::new(options.driver.clone());
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&waits.random().to_le_bytes());
    }
    id
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Use,
    /// To fill a copy that gets its name later.
    Making,
}

fn first_meta(options: &Options, purpose: Purpose) -> Meta {
    Meta {
        page_size: options.page_size,
        database: new_id(options),
        counter: 0,
        checkpoint: 0,
        end: FIRST_UNIT,
        next_tree: NAMES.0 + 1,
        unsynced: options.durability == Durability::Off,
        making: purpose == Purpose::Making,
        catalog: None,
        free_map: None,
    }
}

/// A store without a name and a log, whose file is a temporary one.
pub(crate) fn nameless(disk: Arc<dyn Disk>, near: &Path, options: Options) -> Result<Store> {
    check_options(&options)?;
    let file = disk.temp_file(near)?;
    let meta = first_meta(&options, Purpose::Use);
    let core = assemble(disk, file.clone(), None, options, &meta, None)?;
    let store = Store::new(Arc::new(Handle::new(core, file)));
    background::start(store.core());
    Ok(store)
}

/// Where the database at `path` is, without links: what [`open`] takes.
pub(crate) fn resolve(disk: &dyn Disk, path: &Path) -> Result<PathBuf> {
    disk.canonical(path).map_err(cannot_open)
}

/// Opens or creates the database at a resolved path.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    path: &Path,
    options: Options,
    purpose: Purpose,
) -> Result<Store> {
    open_and(disk, path, options, purpose, in_doubt::settle)
}

/// As [`open`], but that transactions over several files stay as they are: for who asks for
/// the outcome of one. What it finds is durable.
pub(crate) fn open_unsettled(disk: Arc<dyn Disk>, path: &Path, options: Options) -> Result<Store> {
    open_and(disk, path, options, Purpose::Use, |_| Ok(false))
}

/// Opens or creates a database; `settle` ends what its log has left open.
fn open_and(
    disk: Arc<dyn Disk>,
    path: &Path,
    options: Options,
    purpose: Purpose,
    settle: fn(&mut Txn) -> Result<bool>,
) -> Result<Store> {
    check_options(&options)?;
    let find = || find_or_create(&disk, path, &options, purpose);
    let Locked { file, lock } = once_unlocked(&options, find)?;
    let Found { meta, log, stale } = read_meta(&*file, path)?;
    if let Some(log) = log {
        require_log(&*disk, path, &meta, log, &options)?;
    }
    if meta.unsynced && !options.read_only && options.durability != Durability::Off {
        // What a life without syncs left may be with the operating system alone,
        // and what is acknowledged from now on stands on it.
        file.sync_all()?;
        disk.sync_dir(parent_dir(path))?;
    }
    let recovery = Recovery::open(
        disk.clone(),
        path,
        meta.database,
        meta.checkpoint,
        options.read_only,
    )
    .map_err(log_error)?;
    let pages: Arc<dyn DiskFile> = match options.read_only {
        true => Arc::new(Overlay::new(disk.clone(), path, file.clone())),
        false => file.clone(),
    };
    let core = assemble(
        disk,
        pages,
        Some(path.to_path_buf()),
        options.clone(),
        &meta,
        log,
    )?;
    match stale {
        _ if options.read_only => {}
        Some(offset) => renew_slot(&*file, &meta, log, offset, &options)?,
        None => core.checkpoint.lock().distrust(&meta),
    }
    if purpose == Purpose::Use {
        // Whoever uses it has made it theirs.
        core.checkpoint.lock().making = false;
    }
    // From here on dropping the store closes it; until the log is open, that
    // writes nothing.
    let store = Store::new(Arc::new(Handle::new(core, lock)));
    recover(&store, recovery, settle)?;
    if !options.read_only {
        background::start(store.core());
    }
    Ok(store)
}

/// A database file, and what has its lock: another handle where it was made just now.
struct Locked {
    file: Arc<dyn DiskFile>,
    lock: Arc<dyn DiskFile>,
}

impl From<Arc<dyn DiskFile>> for Locked {
    fn from(file: Arc<dyn DiskFile>) -> Self {
        let lock = file.clone();
        Self { file, lock }
    }
}

/// The longest pause between two looks at a lock that another process has.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(20);

/// Looks for the file again, name and all, as long as another process has its lock and
/// the busy timeout lasts: one that closes the database makes its last checkpoint, and
/// one that makes it is about to rename it.
fn once_unlocked(options: &Options, find: impl Fn() -> Result<Locked>) -> Result<Locked> {
    let waits = Waits::new(options.driver.clone());
    let deadline = waits.now().saturating_add(options.busy_timeout);
    let mut pause = Duration::from_millis(1);
    loop {
        let found = find();
        let left = deadline.saturating_sub(waits.now());
        match found {
            Err(error) if error.kind() == ErrorKind::Busy && !left.is_zero() => {
                waits.pause(pause.min(left));
                pause = (2 * pause).min(LOCK_PAUSE_MAX);
            }
            found => return found,
        }
    }
}

fn find_or_create(
    disk: &Arc<dyn Disk>,
    path: &Path,
    options: &Options,
    purpose: Purpose,
) -> Result<Locked> {
    if !disk.exists(path).map_err(cannot_open)? {
        if options.read_only || !options.create {
            return Err(Error::new(
                ErrorKind::CantOpen,
                format!(
                    "unable to open database file: {} does not exist",
                    path.display()
                ),
            ));
        }
        return create(disk, path, options, purpose);
    }
    let mode = if options.read_only {
        OpenOptions::READ
    } else {
        OpenOptions::WRITE
    };
    let file = disk.open(path, mode).map_err(cannot_open)?;
    if options.read_only {
        file.lock_shared()?;
    } else {
        file.lock_exclusive()?;
    }
    if file.len()? == 0 && !options.read_only {
        check_unused(&**disk, path)?;
        return create(disk, path, options, purpose);
    }
    Ok(file.into())
}

/// Fails where an empty file has a log. Nobody makes a log before the database: its data is
/// lost, and what the log holds must not be thrown away unasked.
pub(crate) fn check_unused(disk: &dyn Disk, path: &Path) -> Result<()> {
    match Recovery::left_behind(disk, path).map_err(log_error)? {
        None => Ok(()),
        Some(log) => Err(Error::corrupt(format!(
            "database disk image is malformed: {} is empty, but its log {} is not; restore the database file, or remove the log to begin anew",
            path.display(),
            log.display()
        ))),
    }
}

fn create(
    disk: &Arc<dyn Disk>,
    path: &Path,
    options: &Options,
    purpose: Purpose,
) -> Result<Locked> {
    let mut name = path.as_os_str().to_owned();
    name.push("-new");
    let temporary = PathBuf::from(name);
    let passing = OpenOptions {
        no_follow: true,
        ..OpenOptions::CREATE
    };
    let file = disk.open(&temporary, passing).map_err(|error| {
        if error.kind == DiskErrorKind::Link {
            return passing::refusal(&temporary, "is a symbolic link");
        }
        // The caller knows the database's name, not that of its making.
        let path = path.to_path_buf();
        cannot_open(DiskError { path, ..error })
    })?;
    file.lock_exclusive()?;
    passing::check_named(&**disk, &*file, &temporary)?;
    // From here on nobody else gives the file another name, or takes its own.
    let is_there = is_made(&**disk, &*file, (&temporary, path)).inspect_err(|_| {
        if file.is_empty().unwrap_or(false) {
            let _ = disk.remove(&temporary);
        }
    })?;
    if is_there {
        // Another process finished making it meanwhile.
        let _ = disk.remove(&temporary);
        drop(file);
        return find_or_create(disk, path, options, purpose);
    }
    let made = fill_new(disk, &*file, (&temporary, path), options, purpose);
    if let Err(error) = made {
        // The name is of no use to anybody; failing to remove it changes nothing.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    // Opened by its name, which its errors say then.
    let named = disk.open(path, OpenOptions::WRITE)?;
    if named.identity()? != file.identity()? {
        return Ok(file.into());
    }
    Ok(Locked {
        file: named,
        lock: file,
    })
}

/// Whether the database is there; if not, the file under the passing name may become it.
fn is_made(
    disk: &dyn Disk,
    file: &dyn DiskFile,
    (temporary, path): (&Path, &Path),
) -> Result<bool> {
    if disk.exists(path)? && !disk.open(path, OpenOptions::READ)?.is_empty()? {
        return Ok(true);
    }
    passing::check_unborn(file, temporary)?;
    Ok(false)
}

fn fill_new(
    disk: &Arc<dyn Disk>,
    file: &dyn DiskFile,
    (temporary, path): (&Path, &Path),
    options: &Options,
    purpose: Purpose,
) -> Result<()> {
    // A log left by a database of the same name that is gone is not ours.
    Recovery::discard(&**disk, path).map_err(log_error)?;
    file.truncate(0)?;
    // At once as long as it will be: a crash leaves no other length, by which it is known.
    file.truncate(2 * SLOT as u64)?;
    let slot = first_meta(options, purpose).encode();
    for offset in [0, SLOT as u64] {
        file.write_at(&slot, offset)?;
    }
    let durable = options.durability != Durability::Off;
    if durable {
        file.sync_all()?;
    }
    disk.rename(temporary, path)?;
    if durable && !planted(Mutation::SkipDirectorySync) {
        disk.sync_dir(parent_dir(path))?;
    }
    Ok(())
}

/// Which database the file at `path` is, if it is one.
pub(crate) fn database_id(disk: &dyn Disk, path: &Path) -> Result<Option<[u8; 16]>> {
    let file = disk.open(path, OpenOptions::READ).map_err(cannot_open)?;
    match read_meta(&*file, path) {
        Ok(found) => Ok(Some(found.meta.database)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(None),
    }
}

/// What the meta slots say.
pub(crate) struct Found {
    /// The newer whole one.
    pub(crate) meta: Meta,
    /// The log that goes with it.
    pub(crate) log: Option<Continuation>,
    /// Where the other one is if it says anything else.
    stale: Option<u64>,
}

pub(crate) fn read_meta(file: &dyn DiskFile, path: &Path) -> Result<Found> {
    let name = path.display().to_string();
    let length = file.len()?;
    let mut slots = [[0; SLOT]; 2];
    for (at, slot) in slots.iter_mut().enumerate() {
        let offset = (at * SLOT) as u64;
        let there = length.saturating_sub(offset).min(SLOT as u64) as usize;
        file.read_at(&mut slot[..there], offset)?;
    }
    let meta = Meta::choose(&slots, &name)?;
    let log = mark::find(&slots[0], &meta);
    let chosen = [mark::slot_a(&meta, log), meta.encode()];
    let stale = (0..slots.len()).find(|at| slots[*at] != chosen[*at]);
    let stale = stale.map(|at| (at * SLOT) as u64);
    Ok(Found { meta, log, stale })
}

/// Fails where the log that goes with a database is not there, unless it is to be
/// abandoned. One of another moment is not given up with it: it may belong to a copy.
fn require_log(
    disk: &dyn Disk,
    path: &Path,
    meta: &Meta,
    log: Continuation,
    options: &Options,
) -> Result<()> {
    match Recovery::require(disk, path, meta.database, log) {
        Err(fulgurite_wal::Error::Missing { .. }) if options.abandon_missing_log => Ok(()),
        found => found.map_err(log_error),
    }
}

/// Makes both meta slots the same. A crash between the writes of the two leaves
/// the second behind, and the log that it needs goes when a new one is started:
/// torn then, the first would leave nothing to open the database with.
fn renew_slot(
    file: &dyn DiskFile,
    meta: &Meta,
    log: Option<Continuation>,
    offset: u64,
    options: &Options,
) -> Result<()> {
    let slot = |offset| match offset {
        0 => mark::slot_a(meta, log),
        _ => meta.encode(),
    };
    let durable = options.durability != Durability::Off;
    if durable && !planted(Mutation::TrustUnsyncedSlot) {
        // The end of a process may have left the whole one unsynced. A sync that failed
        // may have left it with the system alone, which does not write it again by itself.
        let whole = SLOT as u64 - offset;
        file.write_at(&slot(whole), whole)?;
        file.sync_data()?;
    }
    file.write_at(&slot(offset), offset)?;
    if durable {
        file.sync_data()?;
    }
    Ok(())
}

/// Puts together the core of a store from its meta slot, catalog and free map.
fn assemble(
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    path: Option<PathBuf>,
    options: Options,
    meta: &Meta,
    log: Option<Continuation>,
) -> Result<Arc<Core>> {
    let length = file.len()?;
    let state = State::of(meta, log);
    let page_size = meta.page_size as usize;
    let space = Space::new(FreeMap::new(meta.end.max(FIRST_UNIT)));
    let core = Core::new(
        disk,
        file,
        path,
        options,
        page_size,
        meta.database,
        space,
        state,
    )?;
    load_free_map(&core, meta, length)?;
    core.next_tree
        .store(meta.next_tree, std::sync::atomic::Ordering::SeqCst);
    // No more entries than bytes of pages: each unit of the file may be a page.
    let most = meta.end * u64::from(meta.page_size);
    let (entries, dictionaries) = match meta.catalog {
        None => Default::default(),
        Some(blob) => catalog::decode(&checkpoint::read_blob(&core.pool, blob)?)
            .filter(|(entries, _)| {
                let names = entries.first().map(|first| (first.tree, first.kind));
                let is_known = names == Some((NAMES.0, KeyKind::Bytes));
                is_known && entries.iter().all(|entry| entry.count <= most)
            })
            .ok_or_else(|| core.pool.rot(blob.extent, "the catalog makes no sense"))?,
    };
    if meta.catalog.is_none() {
        let tree = core.add_tree(NAMES, KeyKind::Bytes);
        tree.0.versions.publish(EMPTY, 0);
    }
    for entry in dictionaries {
        core.space.lock().note_dictionary(entry.blob.extent);
        core.pool.dictionaries.add(entry, None);
    }
    for entry in entries {
        let tree = core.add_tree(TreeId(entry.tree), entry.kind);
        let node = entry.root.map_or(ChildRef::NONE, |(extent, checksum)| {
            ChildRef::new(extent.word(), checksum, cache::NO_HINT)
        });
        let root = Root {
            seq: meta.checkpoint,
            node,
            count: entry.count,
            dropped: false,
        };
        tree.0.versions.publish(root, 0);
    }
    Ok(Arc::new(core))
}

fn load_free_map(core: &Core, meta: &Meta, length: u64) -> Result<()> {
    let mut space = core.space.lock();
    if let Some(blob) = meta.free_map {
        let bytes = checkpoint::read_blob(&core.pool, blob)?;
        space.map = FreeMap::decode(&bytes, meta.end)
            .map_err(|error| core.pool.rot(blob.extent, &error.to_string()))?;
    }
    let needed = space.map.truncatable_end() * UNIT as u64;
    if core.path.is_some() && length < needed {
        return Err(Error::corrupt(format!(
            "database disk image is malformed: {} is {length} bytes long and should have {needed}; it was truncated, restore a backup",
            core.pool.path
        )));
    }
    Ok(())
}
