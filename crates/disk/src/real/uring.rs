//! A file written through an io_uring: a write and the sync behind it are
//! submitted together, the second linked to the first, and waited for once.
//!
//! The kernel reads from a buffer that belongs to this module, never from the
//! caller's memory: a call that fails half way may leave a submission in
//! flight, and then the ring is broken for good and its buffer is leaked, so
//! that the kernel never reads memory somebody else got.

use std::io::{self, IoSlice};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use io_uring::squeue::Flags;
use io_uring::{IoUring, opcode, types};

use super::RealFile;
use crate::{DiskFile, Result, forward};

const BUFFER_BYTES: usize = 256 << 10;
const ENTRIES: u32 = 8;
const POLL_IDLE_MILLIS: u32 = 50;
const WRITE: u64 = 1;
const SYNC: u64 = 2;

pub(super) struct RingFile {
    inner: RealFile,
    ring: Mutex<Ring>,
}

impl std::fmt::Debug for RingFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingFile")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

struct Ring {
    ring: IoUring,
    /// Leaked if the kernel may still read it.
    buffer: ManuallyDrop<Vec<u8>>,
    broken: bool,
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.broken {
            // SAFETY: nothing is in flight, and the buffer is not used again.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

/// What one round trip answered.
#[derive(Default)]
struct Answers {
    written: Option<i32>,
    synced: Option<i32>,
}

impl Ring {
    fn new(file: &RealFile, polled: bool) -> io::Result<Self> {
        let ring = if polled {
            IoUring::builder()
                .setup_sqpoll(POLL_IDLE_MILLIS)
                .build(ENTRIES)?
        } else {
            IoUring::new(ENTRIES)?
        };
        ring.submitter().register_files(&[file.file.as_raw_fd()])?;
        Ok(Self {
            ring,
            buffer: ManuallyDrop::new(Vec::with_capacity(BUFFER_BYTES)),
            broken: false,
        })
    }

    /// Writes what is in the buffer, and syncs if `sync`; all of it done when
    /// this returns.
    fn round_trip(&mut self, from: usize, offset: u64, sync: bool) -> io::Result<Answers> {
        if self.broken {
            return Err(io::Error::other("an earlier call left the ring undefined"));
        }
        let bytes = self.buffer.get(from..).unwrap_or_default();
        let write = opcode::Write::new(types::Fixed(0), bytes.as_ptr(), bytes.len() as u32)
            .offset(offset)
            .build()
            .user_data(WRITE);
        let fsync = opcode::Fsync::new(types::Fixed(0))
            .flags(types::FsyncFlags::DATASYNC)
            .build()
            .user_data(SYNC);
        let write = if sync {
            write.flags(Flags::IO_LINK)
        } else {
            write
        };
        let writes = !bytes.is_empty();
        {
            let mut queue = self.ring.submission();
            // SAFETY: the buffer stays where it is and unchanged until the
            // completion is seen below, or forever if it is not; the file is
            // registered with the ring.
            let pushed = unsafe {
                (!writes || queue.push(&write).is_ok()) && (!sync || queue.push(&fsync).is_ok())
            };
            if !pushed {
                self.broken = true;
                return Err(io::Error::other("the submission queue is full"));
            }
        }
        self.complete(usize::from(writes) + usize::from(sync))
    }

    fn complete(&mut self, count: usize) -> io::Result<Answers> {
        let mut answers = Answers::default();
        let mut seen = 0;
        while seen < count {
            match self.ring.submit_and_wait(count - seen) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                    ) => {}
                Err(error) => {
                    self.broken = true;
                    return Err(error);
                }
            }
            for entry in self.ring.completion() {
                seen += 1;
                if entry.user_data() == WRITE {
                    answers.written = Some(entry.result());
                } else {
                    answers.synced = Some(entry.result());
                }
            }
        }
        Ok(answers)
    }

    /// Writes the buffer; a short write is gone on with. True if it was synced.
    fn write_buffer(&mut self, offset: u64, sync: bool) -> io::Result<()> {
        let mut from = 0;
        loop {
            let answers = self.round_trip(from, offset + from as u64, sync)?;
            match answers.written {
                Some(result) if result < 0 => match -result {
                    libc::EINTR | libc::EAGAIN => continue,
                    code => return Err(io::Error::from_raw_os_error(code)),
                },
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(result) => from += result as usize,
                None => {}
            }
            if from < self.buffer.len() {
                // The link is broken by a short write: the sync did not run.
                continue;
            }
            return match answers.synced {
                Some(result) if result == -libc::ECANCELED => self
                    .round_trip(from, 0, true)
                    .and_then(|answers| synced(answers.synced)),
                result => synced(result),
            };
        }
    }

    fn write_all(&mut self, bufs: &[IoSlice<'_>], mut offset: u64, sync: bool) -> io::Result<()> {
        self.buffer.clear();
        for mut buf in bufs.iter().map(|slice| &**slice) {
            while !buf.is_empty() {
                if self.buffer.len() == BUFFER_BYTES {
                    self.write_buffer(offset, false)?;
                    offset += BUFFER_BYTES as u64;
                    self.buffer.clear();
                }
                let room = BUFFER_BYTES - self.buffer.len();
                let (now, later) = buf.split_at(buf.len().min(room));
                self.buffer.extend_from_slice(now);
                buf = later;
            }
        }
        if self.buffer.is_empty() && !sync {
            return Ok(());
        }
        self.write_buffer(offset, sync)
    }
}

fn synced(result: Option<i32>) -> io::Result<()> {
    match result {
        Some(result) if result < 0 => Err(io::Error::from_raw_os_error(-result)),
        _ => Ok(()),
    }
}

impl RingFile {
    pub(super) fn new(inner: RealFile, polled: bool) -> io::Result<Self> {
        let ring = Ring::new(&inner, polled)?;
        Ok(Self {
            inner,
            ring: Mutex::new(ring),
        })
    }

    fn transfer(&self, bufs: &[IoSlice<'_>], offset: u64, sync: bool) -> Result<()> {
        self.inner.check_writable()?;
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let op = if sync { "write and sync" } else { "write" };
        ring.write_all(bufs, offset, sync)
            .map_err(|e| self.inner.error(op, e))
    }
}

impl DiskFile for RingFile {
    forward!(inner: len, identity, read_at, sync_data, sync_all, hint_lifetime);
    forward!(inner: start_writeback, finish_writeback, allocate, truncate);
    forward!(inner: lock_exclusive, lock_shared, unlock);

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.transfer(&[IoSlice::new(buf)], offset, false)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.transfer(bufs, offset, false)
    }

    fn write_and_sync_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.transfer(bufs, offset, true)
    }
}
