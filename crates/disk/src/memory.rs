//! Files held in memory, for in-memory databases and tests.
//!
//! Bytes live in fixed chunks that are allocated at their first write, so that
//! growing never copies and holes cost nothing. Everything counts as durable at
//! once. Names are compared as given, after dropping `.` parts: there are no
//! folders, links or working directory. Clones share one file system.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::{Disk, DiskError, DiskErrorKind, DiskFile, FileId, OpenOptions, Result};

const CHUNK_BYTES: usize = 64 << 10;

/// A file system held in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    device: u64,
    next_inode: AtomicU64,
    files: Mutex<HashMap<PathBuf, Arc<Content>>>,
}

impl MemoryDisk {
    /// An empty file system.
    pub fn new() -> Self {
        static DEVICES: AtomicU64 = AtomicU64::new(1);
        let device = DEVICES.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::new(Shared {
                device,
                next_inode: AtomicU64::new(1),
                files: Mutex::default(),
            }),
        }
    }

    /// Another file system with the same files, all as they are at one moment and
    /// locked by nobody: what a crash of the process would leave.
    pub fn copied(&self) -> Self {
        let copy = Self::new();
        {
            let files = self.shared.files.lock();
            let mut copies = copy.shared.files.lock();
            let still: Vec<_> = files
                .iter()
                .map(|(path, content)| (path, content.bytes.read()))
                .collect();
            for (path, bytes) in still {
                let its = copy.new_content();
                its.bytes.write().clone_from(&bytes);
                copies.insert(path.clone(), its);
            }
        }
        copy
    }

    fn new_content(&self) -> Arc<Content> {
        let inode = self.shared.next_inode.fetch_add(1, Ordering::Relaxed);
        Arc::new(Content {
            id: FileId {
                device: self.shared.device,
                inode,
            },
            bytes: RwLock::default(),
            lock: Mutex::new(LockState::Free),
        })
    }

    fn handle(content: Arc<Content>, path: &Path, read_only: bool) -> Arc<dyn DiskFile> {
        Arc::new(MemoryFile {
            content,
            path: path.to_owned(),
            read_only,
            held: Mutex::new(Held::Nothing),
        })
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn DiskFile>> {
        let name = plain(path);
        let mut files = self.shared.files.lock();
        let content = match files.get(&name) {
            Some(_) if options.create_new => {
                return Err(DiskError::new(
                    "open",
                    path,
                    io::ErrorKind::AlreadyExists.into(),
                ));
            }
            Some(content) => Arc::clone(content),
            None if options.create || options.create_new => {
                let content = self.new_content();
                files.insert(name, Arc::clone(&content));
                content
            }
            None => return Err(DiskError::new("open", path, io::ErrorKind::NotFound.into())),
        };
        if options.truncate {
            content.bytes.write().set_len(0);
        }
        Ok(Self::handle(content, path, options.read_only))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.shared.files.lock().contains_key(&plain(path)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.shared.files.lock().remove(&plain(path)) {
            Some(_) => Ok(()),
            None => Err(DiskError::new(
                "remove",
                path,
                io::ErrorKind::NotFound.into(),
            )),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = self.shared.files.lock();
        let Some(content) = files.remove(&plain(from)) else {
            return Err(DiskError::new(
                "rename",
                from,
                io::ErrorKind::NotFound.into(),
            ));
        };
        files.insert(plain(to), content);
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn temp_file(&self, _near: &Path) -> Result<Arc<dyn DiskFile>> {
        Ok(Self::handle(
            self.new_content(),
            Path::new("(temporary)"),
            false,
        ))
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        Ok(plain(path))
    }

    /// What is written is there as long as the disk is.
    fn boot_id(&self) -> Option<[u8; 16]> {
        Some([0; 16])
    }
}

#[derive(Debug)]
struct Content {
    id: FileId,
    bytes: RwLock<Bytes>,
    lock: Mutex<LockState>,
}

#[derive(Debug, Default, Clone)]
struct Bytes {
    len: u64,
    /// `None` reads as zeros. Bytes behind `len` are always zero.
    chunks: Vec<Option<Box<[u8]>>>,
}

/// The part of a transfer that falls into one chunk: its number, where in it,
/// and how many bytes.
fn split(offset: u64, len: usize) -> (usize, usize, usize) {
    let within = (offset % CHUNK_BYTES as u64) as usize;
    (
        (offset / CHUNK_BYTES as u64) as usize,
        within,
        len.min(CHUNK_BYTES - within),
    )
}

impl Bytes {
    fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (last, within, _) = split(len, 0);
            self.chunks.truncate(last + usize::from(within > 0));
            if let Some(Some(chunk)) = self.chunks.get_mut(last) {
                chunk[within..].fill(0);
            }
        }
        self.len = len;
    }

    fn read(&self, mut buf: &mut [u8], mut offset: u64) {
        while !buf.is_empty() {
            let (number, within, count) = split(offset, buf.len());
            let (part, rest) = buf.split_at_mut(count);
            match self.chunks.get(number) {
                Some(Some(chunk)) => part.copy_from_slice(&chunk[within..within + count]),
                _ => part.fill(0),
            }
            buf = rest;
            offset += count as u64;
        }
    }

    fn write(&mut self, mut buf: &[u8], mut offset: u64) {
        while !buf.is_empty() {
            let (number, within, count) = split(offset, buf.len());
            let (part, rest) = buf.split_at(count);
            if self.chunks.len() <= number {
                self.chunks.resize_with(number + 1, || None);
            }
            if let Some(slot) = self.chunks.get_mut(number) {
                let chunk = slot.get_or_insert_with(|| vec![0; CHUNK_BYTES].into_boxed_slice());
                chunk[within..within + count].copy_from_slice(part);
            }
            buf = rest;
            offset += count as u64;
        }
        self.len = self.len.max(offset);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockState {
    Free,
    Shared(usize),
    Exclusive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Shared,
    Exclusive,
}

#[derive(Debug)]
struct MemoryFile {
    content: Arc<Content>,
    path: PathBuf,
    read_only: bool,
    held: Mutex<Held>,
}

impl MemoryFile {
    fn error(&self, op: &'static str, kind: io::ErrorKind) -> DiskError {
        DiskError::new(op, &self.path, kind.into())
    }

    /// Writable, and the range neither overflows nor passes what memory could hold.
    fn check_write(&self, offset: u64, len: u64) -> Result<()> {
        if self.read_only {
            return Err(self.error("write", io::ErrorKind::ReadOnlyFilesystem));
        }
        match offset.checked_add(len) {
            Some(end) if end <= isize::MAX as u64 => Ok(()),
            _ => Err(self.error("write", io::ErrorKind::FileTooLarge)),
        }
    }

    /// Changes this handle's lock to `wanted`, as `flock` does: what it held
    /// before does not stand in its own way.
    fn lock(&self, wanted: Held) -> Result<()> {
        let mut held = self.held.lock();
        let mut state = self.content.lock.lock();
        let without_mine = match (*held, *state) {
            (Held::Nothing, state) => state,
            (Held::Shared, LockState::Shared(count)) if count > 1 => LockState::Shared(count - 1),
            _ => LockState::Free,
        };
        *state = match (wanted, without_mine) {
            (Held::Nothing, others) => others,
            (Held::Shared, LockState::Free) => LockState::Shared(1),
            (Held::Shared, LockState::Shared(count)) => LockState::Shared(count + 1),
            (Held::Exclusive, LockState::Free) => LockState::Exclusive,
            _ => {
                let kind = DiskErrorKind::Busy {
                    pid: Some(std::process::id()),
                };
                return Err(DiskError::with_kind(
                    "lock",
                    &self.path,
                    kind,
                    io::ErrorKind::WouldBlock.into(),
                ));
            }
        };
        *held = wanted;
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl DiskFile for MemoryFile {
    fn len(&self) -> Result<u64> {
        Ok(self.content.bytes.read().len)
    }

    fn identity(&self) -> Result<FileId> {
        Ok(self.content.id)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let bytes = self.content.bytes.read();
        match offset.checked_add(buf.len() as u64) {
            _ if buf.is_empty() => Ok(()),
            Some(end) if end <= bytes.len => {
                bytes.read(buf, offset);
                Ok(())
            }
            _ => Err(self.error("read", io::ErrorKind::UnexpectedEof)),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.check_write(offset, buf.len() as u64)?;
        if !buf.is_empty() {
            self.content.bytes.write().write(buf, offset);
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], mut offset: u64) -> Result<()> {
        let total = bufs.iter().map(|buf| buf.len() as u64).sum();
        self.check_write(offset, total)?;
        let mut bytes = self.content.bytes.write();
        for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
            bytes.write(buf, offset);
            offset += buf.len() as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        Ok(())
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.check_write(offset, len)?;
        let mut bytes = self.content.bytes.write();
        if len > 0 && bytes.len < offset + len {
            bytes.set_len(offset + len);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.check_write(0, len)?;
        self.content.bytes.write().set_len(len);
        Ok(())
    }

    fn lock_exclusive(&self) -> Result<()> {
        self.lock(Held::Exclusive)
    }

    fn lock_shared(&self) -> Result<()> {
        self.lock(Held::Shared)
    }

    fn unlock(&self) {
        // Giving up never fails.
        let _ = self.lock(Held::Nothing);
    }
}
