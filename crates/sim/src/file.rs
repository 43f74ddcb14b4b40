//! A handle of a simulated file.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_disk::{DiskError, DiskFile, FileId, Result, transfer};
use parking_lot::Mutex;

use crate::Call;
use crate::disk::SimDisk;
use crate::inode::SECTOR_BYTES;
use crate::journal::Effect;
use crate::world::{Misdirected, Verdict, World};

pub(crate) struct SimFile {
    world: Arc<Mutex<World>>,
    inode: u64,
    path: PathBuf,
    read_only: bool,
    /// Stands for this handle where locks are concerned.
    lock: Arc<dyn DiskFile>,
}

impl std::fmt::Debug for SimFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimFile")
            .field("path", &self.path)
            .field("inode", &self.inode)
            .finish_non_exhaustive()
    }
}

impl SimFile {
    pub(crate) fn new(
        world: Arc<Mutex<World>>,
        inode: u64,
        path: PathBuf,
        read_only: bool,
        lock: Arc<dyn DiskFile>,
    ) -> Self {
        Self {
            world,
            inode,
            path,
            read_only,
            lock,
        }
    }

    fn error(&self, op: &'static str, kind: io::ErrorKind) -> DiskError {
        DiskError::new(op, &self.path, kind.into())
    }

    fn check_writable(&self) -> Result<()> {
        if self.read_only {
            Err(self.error("write", io::ErrorKind::ReadOnlyFilesystem))
        } else {
            Ok(())
        }
    }

    fn index(&self, op: &'static str, offset: u64) -> Result<usize> {
        // No simulated file comes near this.
        match usize::try_from(offset) {
            Ok(index) if index < 1 << 40 => Ok(index),
            _ => Err(self.error(op, io::ErrorKind::FileTooLarge)),
        }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.check_writable()?;
        let start = self.index("write", offset)?;
        self.pass_gate();
        let mut world = self.world.lock();
        match world.admit(Call::Write, "write", &self.path) {
            Verdict::Do if world.choppy => {
                drop(world);
                transfer::write_whole(bytes, offset, |bytes, offset| self.some(bytes, offset))
                    .map_err(|source| DiskError::new("write", &self.path, source))
            }
            Verdict::Do => {
                world.enact_write(self.inode, start, bytes);
                Ok(())
            }
            Verdict::Pretend { misdirected } => {
                if misdirected {
                    let len = world.inode(self.inode).live().len();
                    let elsewhere = world.rng.index(len.max(1)) / SECTOR_BYTES * SECTOR_BYTES;
                    world.enact_write(self.inode, elsewhere, bytes);
                    world.misdirected = Some(Misdirected {
                        path: self.path.clone(),
                        meant: start,
                        landed: elsewhere,
                    });
                }
                Ok(())
            }
            Verdict::Off(error) => Err(error),
            Verdict::Fail(error) | Verdict::Cut(error) => {
                // A part of the bytes, up to a sector's edge, got as far as the
                // operating system.
                let to_edge = SECTOR_BYTES - start % SECTOR_BYTES;
                let sectors = bytes.len().saturating_sub(to_edge) / SECTOR_BYTES;
                let done = match world.rng.below(3) {
                    0 => 0,
                    _ => (to_edge + world.rng.index(sectors + 1) * SECTOR_BYTES).min(bytes.len()),
                };
                if let Some(part) = bytes.get(..done).filter(|part| !part.is_empty()) {
                    world.enact_write(self.inode, start, part);
                }
                Err(error)
            }
        }
    }

    /// One system call of a choppy disk: interrupted, short, or whole.
    fn some(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world.lock();
        let count = match world.rng.below(4) {
            0 => return Err(io::ErrorKind::Interrupted.into()),
            1 => 1 + world.rng.index(bytes.len()),
            _ => bytes.len(),
        };
        world.enact_write(self.inode, offset as usize, &bytes[..count]);
        Ok(count)
    }

    /// As [`some`](Self::some), of a read.
    fn read_some(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world.lock();
        let luck = world.chops.below(4);
        let short = 1 + world.chops.index(buf.len());
        let live = world.inode(self.inode).live();
        let start = (offset as usize).min(live.len());
        let count = match luck {
            0 => return Err(io::ErrorKind::Interrupted.into()),
            1 => short,
            _ => buf.len(),
        };
        let count = count.min(live.len() - start);
        live.read(start, &mut buf[..count]);
        Ok(count)
    }

    /// The data file's calls, where the engine holds nothing that a commit needs.
    fn pass_gate(&self) {
        if !self.path.to_string_lossy().contains("-wal") {
            SimDisk::pass_gate(&self.world);
        }
    }

    fn sync(&self) -> Result<()> {
        self.pass_gate();
        let mut world = self.world.lock();
        match world.admit(Call::Sync, "sync", &self.path) {
            Verdict::Do => {
                world.enact(&Effect::Sync(self.inode));
                Ok(())
            }
            Verdict::Pretend { .. } => Ok(()),
            Verdict::Fail(error) => {
                let luck = world.rng.bits();
                world.enact(&Effect::FailSync(self.inode, luck));
                Err(error)
            }
            // What is unsynced stays in doubt.
            Verdict::Cut(error) | Verdict::Off(error) => Err(error),
        }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> Result<u64> {
        Ok(self.world.lock().inode(self.inode).live().len() as u64)
    }

    fn identity(&self) -> Result<FileId> {
        Ok(FileId {
            device: self.world.lock().device,
            inode: self.inode,
        })
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let start = self.index("read", offset)?;
        let mut world = self.world.lock();
        world.admit(Call::Read, "read", &self.path).or_nothing()?;
        if world.choppy {
            drop(world);
            return transfer::read_whole(buf, offset, |buf, offset| self.read_some(buf, offset))
                .map_err(|source| DiskError::new("read", &self.path, source));
        }
        let live = world.inode(self.inode).live();
        if buf.is_empty() || start + buf.len() <= live.len() {
            live.read(start, buf);
            Ok(())
        } else {
            Err(self.error("read", io::ErrorKind::UnexpectedEof))
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.write(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let joined = bufs
            .iter()
            .map(|buf| &**buf)
            .collect::<Vec<&[u8]>>()
            .concat();
        self.write(&joined, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> Result<()> {
        self.sync()
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable()?;
        let end = self.index("allocate room in", offset.saturating_add(len))?;
        let mut world = self.world.lock();
        world
            .admit(Call::Allocate, "allocate room in", &self.path)
            .or_nothing()?;
        if len > 0 && world.inode(self.inode).live().len() < end {
            world.enact(&Effect::SetLen(self.inode, end));
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.check_writable()?;
        let len = self.index("set the length of", len)?;
        let mut world = self.world.lock();
        world
            .admit(Call::Truncate, "set the length of", &self.path)
            .or_nothing()?;
        if world.inode(self.inode).live().len() != len {
            world.enact(&Effect::SetLen(self.inode, len));
        }
        Ok(())
    }

    fn lock_exclusive(&self) -> Result<()> {
        self.lock.lock_exclusive()
    }

    fn lock_shared(&self) -> Result<()> {
        self.lock.lock_shared()
    }

    fn unlock(&self) {
        self.lock.unlock();
    }
}
