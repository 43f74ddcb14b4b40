//! Making and opening a log.
//!
//! A new log is made under a passing name: head, room, all synced, renamed. So a
//! file without a head is damaged or no log at all. The folder is synced by the
//! first opening, before the head of the first life is written: the process that
//! made the log may have ended before it came to that.
//!
//! Opening locks the file, reads the head, walks along the records and judges
//! where the walk ends. What was found and is not known to be durable may come
//! from the operating system's memory: left by a process that was killed, or by
//! a sync that failed, after which a system may call pages clean that it could
//! not write. So it is written anew and synced, and then the head of a new life
//! is made durable, before anything is appended.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{
    Disk, DiskError, DiskErrorKind, DiskFile, Driver as _, Lifetime, Machine, OpenOptions,
    parent_dir,
};

use super::append::RING_RECORD_BYTES_MAX;
use super::core::{Core, Flush, Head, Life, Tail};
use super::device::Device;
use super::error::{Error, Result};
use super::generation::fill_with_zeros;
use super::header::Header;
use super::label;
use super::mirror::MirrorFile;
use super::options::{Options, Preallocation};
use super::passing;
use super::probe::{self, Measured};
use super::reader::Walk;
use super::record::{HEADER_BYTES, PAYLOAD_BYTES_MAX, record_bytes};
use super::ring::Ring;
use super::room::Room;
use super::settle;
use super::spin::SpinLock;
use super::volume::{BLOCK, START, Volume};
use crate::primitives::{AtomicU64, HAS_BACKGROUND, Mutex, SOLO_RING_BYTES, SOLO_STEP_BYTES_MIN};

const LIMIT_BYTES_MIN: u64 = 64 << 10;
const REWRITE_BYTES: u64 = 1 << 20;
const LIMIT_BYTES_MAX: u64 = 1 << 50;

/// What a log was found to hold.
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) end: u64,
    next_seq: u64,
    lives: Vec<Life>,
    /// From here to the end nothing says that the records were synced.
    known_durable: u64,
}

pub(super) fn open(path: &Path, options: Options) -> Result<Core> {
    let disk = Arc::clone(&options.disk);
    let mut measured = Vec::new();
    let mut paths = vec![path.to_owned()];
    paths.extend(options.mirror.clone());
    let mut present = false;
    for path in &paths {
        check_name(path)?;
        present |= disk.exists(path)?;
    }
    if !present {
        measured = create(&*disk, &paths, &options)?;
    }
    let mut locks = lock_all(&*disk, &paths)?;
    let sides = match &options.mirror {
        None => vec![path.to_owned()],
        Some(second) => settle::settle(&*disk, [path, second], options.lone, &mut locks)?,
    };
    let truth = sides.first().map_or(path, PathBuf::as_path);
    let plain = disk.open(truth, OpenOptions::WRITE)?;
    let found = judge(&plain, truth)?;
    if options.mirror.is_none() {
        label::refuse_side(&*plain, truth)?;
    }
    let mut header = found.header;
    let device = options
        .device
        .unwrap_or_else(|| Device::from_code(header.device));
    for side in &sides {
        if header.life == 0 {
            disk.sync_dir(parent_dir(side))?;
        }
        prepare_for(device, &*disk, side, &mut header, &found, &options)?;
    }
    if header.life == 0 && options.mirror.is_some() {
        settle::complete(&*disk, &sides)?;
    }
    let (file, mirror, device) = open_device(&*disk, &sides, device, path, &options)?;
    if options.lifetime != Lifetime::NotSet {
        file.hint_lifetime(options.lifetime);
    }
    rewrite(&file, &found)?;
    header.life += 1;
    header.life_start = found.end;
    header.update += 1;
    header.write(&*file, || file.sync_data())?;
    let found = Found { header, ..found };
    assemble(path, options, found, file, mirror, device, locks, measured)
}

/// A log is made under its name and an ending, which can be had where the name cannot.
fn check_name(path: &Path) -> Result<()> {
    if path.file_name().is_some() {
        return Ok(());
    }
    let source = io::Error::new(
        io::ErrorKind::InvalidInput,
        "a log needs the name of a file",
    );
    Err(DiskError::new("open", path, source).into())
}

/// Makes a log at all `paths`, each locked while it is made.
fn create(disk: &dyn Disk, paths: &[PathBuf], options: &Options) -> Result<Vec<Measured>> {
    let capacity = options
        .limit_bytes
        .clamp(LIMIT_BYTES_MIN, LIMIT_BYTES_MAX)
        .next_multiple_of(BLOCK);
    let (device, measured) = match (options.device, paths.first()) {
        (None, Some(path)) => probe::probe(disk, path, capacity)?,
        (device, _) => (device.unwrap_or(Device::File), Vec::new()),
    };
    let prepared = match options.preallocation {
        Preallocation::None => 0,
        _ => SOLO_STEP_BYTES_MIN.min(capacity),
    };
    let header = Header {
        device: device.code(),
        update: 1,
        salt: Machine.random(),
        capacity,
        first: 0,
        first_seq: 1,
        first_life: 0,
        life: 0,
        life_start: 0,
        prepared,
    };
    for path in paths {
        let (passing, file) = passing::open(disk, path)?;
        if disk.exists(path)? {
            // Another process was faster, perhaps with this very file, which has no
            // passing name any more then; its log is opened.
            drop(file);
            let _ = disk.remove(&passing);
            return Ok(measured);
        }
        passing::empty(&*file, &passing, None)?;
        let made = make(&*file, header, options).and_then(|()| Ok(disk.rename(&passing, path)?));
        if let Err(error) = made {
            // What is left of it is of no use to anybody, least of all on a full disk.
            let _ = disk.remove(&passing);
            return Err(error);
        }
    }
    Ok(measured)
}

/// Makes a log in an empty file.
fn make(file: &dyn DiskFile, header: Header, options: &Options) -> Result<()> {
    file.truncate(START)?;
    prepare(file, 0, header.prepared, options.preallocation)?;
    header.write(file, || file.sync_data())?;
    if options.mirror.is_some() {
        label::first_label(header.salt).write(file)?;
    }
    Ok(file.sync_all()?)
}

fn prepare(file: &dyn DiskFile, from: u64, to: u64, how: Preallocation) -> Result<()> {
    match how {
        Preallocation::None => {}
        Preallocation::Allocate => file.allocate(START + from, to - from)?,
        Preallocation::ZeroFill => fill_with_zeros(file, from, to)?,
    }
    Ok(())
}

fn lock_all(disk: &dyn Disk, paths: &[PathBuf]) -> Result<Vec<Arc<dyn DiskFile>>> {
    let mut locks = Vec::new();
    for path in paths {
        if disk.exists(path)? {
            let file = disk.open(path, OpenOptions::WRITE)?;
            file.lock_exclusive()?;
            locks.push(file);
        }
    }
    Ok(locks)
}

/// Reads the log in a file and says where it ends, or what durable is missing.
pub(super) fn judge(file: &Arc<dyn DiskFile>, path: &Path) -> Result<Found> {
    let header = Header::read(&**file, path)?;
    let room = file.len()?.saturating_sub(START);
    let corrupt = |position, what: String| Error::Corrupt {
        file: path.to_owned(),
        position,
        what,
    };
    if !header.can_go_on() {
        let what = "the numbers in the head are larger than those of any log".to_owned();
        return Err(corrupt(0, what));
    }
    if room < header.prepared {
        let what = format!(
            "the file is cut short; it had {} bytes",
            START + header.prepared
        );
        return Err(corrupt(START + room, what));
    }
    let (volume, end) = laps_of(file, &header)?;
    let mut walk = Walk::over(volume.clone(), path, header, end)?;
    while walk.next()?.is_some() {}
    if walk.position < header.life_start {
        let what = format!(
            "record {} is missing, though the head says that everything before log position {} was durable",
            walk.next_seq, header.life_start
        );
        return Err(corrupt(volume.offset(walk.position), what));
    }
    if let Some((witness, mark)) = walk.testimony()? {
        let what = format!(
            "record {} is missing, though everything up to record {mark} was durable according to the record at byte {}",
            walk.next_seq,
            volume.offset(witness)
        );
        return Err(corrupt(volume.offset(walk.position), what));
    }
    Ok(Found {
        header,
        known_durable: walk.known_durable(),
        end: walk.position,
        next_seq: walk.next_seq,
        lives: walk.lives,
    })
}

/// The laps of a log with that head in a file, and up to where records may lie in it.
pub(super) fn laps_of(file: &Arc<dyn DiskFile>, header: &Header) -> Result<(Volume, u64)> {
    let room = file.len()?.saturating_sub(START);
    let volume = Volume {
        file: Arc::clone(file),
        capacity: header.capacity,
    };
    // A file that did not grow to its capacity ends the lap that `first` is in.
    // That need not be the file's own first one: what was given up before it was
    // written left no trace in it.
    let end = if volume.is_lapped(room) {
        header.first + header.capacity
    } else {
        header.first + room.saturating_sub(header.first % header.capacity)
    };
    Ok((volume, end))
}

/// Writes and syncs the records again that nothing says were synced.
fn rewrite(file: &Arc<dyn DiskFile>, found: &Found) -> Result<()> {
    let volume = Volume {
        file: Arc::clone(file),
        capacity: found.header.capacity,
    };
    let mut bytes = vec![0; REWRITE_BYTES as usize];
    let mut at = found.known_durable;
    while at < found.end {
        let piece = &mut bytes[..(found.end - at).min(REWRITE_BYTES) as usize];
        volume.read(piece, at)?;
        volume.write(at, &[piece], false)?;
        at += piece.len() as u64;
    }
    file.sync_data()?;
    Ok(())
}

/// Gives the file the length a device needs.
fn prepare_for(
    device: Device,
    disk: &dyn Disk,
    path: &Path,
    header: &mut Header,
    found: &Found,
    options: &Options,
) -> Result<()> {
    let file = disk.open(path, OpenOptions::WRITE)?;
    let (len, how) = (file.len()?, options.preallocation);
    if device == Device::Mmap && len < START + header.capacity {
        let from = len.saturating_sub(START);
        let how = match how {
            Preallocation::None => Preallocation::Allocate,
            how => how,
        };
        if let Err(error) = prepare(&*file, from, header.capacity, how) {
            // A disk that is too small is not left full.
            let _ = file.truncate(len);
            return Err(error);
        }
        file.sync_all()?;
    } else if how != Preallocation::None
        && found.end >= header.capacity
        && len < START + header.capacity
    {
        // On later laps nothing is reserved any more.
        file.allocate(START, header.capacity)?;
        file.sync_all()?;
    } else if !len.is_multiple_of(BLOCK) {
        file.truncate(len.next_multiple_of(BLOCK))?;
        file.sync_all()?;
    }
    if device == Device::Mmap {
        header.prepared = header.capacity;
    }
    Ok(())
}

type Opened = (Arc<dyn DiskFile>, Option<Arc<MirrorFile>>, Device);

/// Opens the device on every side. Where it was not asked for but recorded in
/// the file, and is not to be had, a plain file takes its place.
fn open_device(
    disk: &dyn Disk,
    sides: &[PathBuf],
    device: Device,
    first: &Path,
    options: &Options,
) -> Result<Opened> {
    let mut files = Vec::new();
    for side in sides {
        match device.open(disk, side) {
            Ok(file) => files.push((side.clone(), file)),
            Err(error) if error.kind == DiskErrorKind::Unsupported && options.device.is_none() => {
                return open_device(disk, sides, Device::File, first, options);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if options.mirror.is_none()
        && let [(_, file)] = files.as_slice()
    {
        return Ok((Arc::clone(file), None, device));
    }
    let mirror = Arc::new(MirrorFile::new(files, first, options.mirror_in_parallel)?);
    Ok((
        Arc::clone(&mirror) as Arc<dyn DiskFile>,
        Some(mirror),
        device,
    ))
}

#[expect(clippy::too_many_arguments, reason = "each is one part of the whole")]
fn assemble(
    path: &Path,
    options: Options,
    found: Found,
    file: Arc<dyn DiskFile>,
    mirror: Option<Arc<MirrorFile>>,
    device: Device,
    locks: Vec<Arc<dyn DiskFile>>,
    measured: Vec<Measured>,
) -> Result<Core> {
    let header = found.header;
    let (capacity, how) = (header.capacity, options.preallocation);
    let payload_bytes_max = (capacity / 2 - HEADER_BYTES as u64).min(PAYLOAD_BYTES_MAX as u64);
    let mut lives = found.lives;
    lives.push(Life {
        start: found.end,
        number: header.life,
    });
    let core = Core {
        path: path.to_owned(),
        device,
        measured,
        volume: Volume { file, capacity },
        mirror,
        turned: AtomicU64::new(0),
        _locks: locks,
        waiting: options.waiting,
        start_writeback: options.start_writeback,
        preallocation: how,
        append_timeout: options.append_timeout,
        salt: header.salt_of(header.life),
        payload_bytes_max,
        quick_bytes_max: record_bytes(payload_bytes_max as usize).min(RING_RECORD_BYTES_MAX),
        ring: Ring::new(SOLO_RING_BYTES as usize).map_err(|cause| Error::no_memory(path, cause))?,
        tail: SpinLock::new(Tail {
            lsn: found.end,
            seq: found.next_seq,
            begins: Some(header.life),
            free_until: 0,
            attend_at: 0,
            skipped: (u64::MAX, u64::MAX),
        }),
        appended: AtomicU64::new(found.end),
        room: Room::new(found.end, header.prepared, capacity, how),
        head_lsn: AtomicU64::new(header.first),
        head: Mutex::new(Head { header, lives }),
        flush: Mutex::new(Flush {
            lsn: found.end,
            seq: found.next_seq,
            syncs: 0,
        }),
        syncing: Mutex::new(()),
        flushing: AtomicU64::new(found.end),
        written: AtomicU64::new(found.end),
        durable: AtomicU64::new(found.end),
        durable_seq: AtomicU64::new(found.next_seq - 1),
        turns: Default::default(),
        signal: Default::default(),
        has_background: options.background && HAS_BACKGROUND,
    };
    core.update_room();
    Ok(core)
}
