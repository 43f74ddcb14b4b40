//! Any transfers over a file that takes whole, aligned blocks only, as one
//! opened with [`Access::Direct`](crate::Access::Direct) does.
//!
//! A window of a few blocks is kept in aligned memory: writes go into it and
//! its touched blocks to the file, so that a log's next record finds the block
//! of its predecessor there and needs no read. What a block holds behind a
//! write stays what it was.
//!
//! Writes and reads take one lock. After a write failed the window is
//! forgotten, since the file may hold either.

use std::io::IoSlice;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{DiskFile, Result, forward};

const BLOCK: u64 = AlignedFile::BLOCK_BYTES;
const WINDOW_BLOCKS: u64 = 16;

/// See the module's text.
#[derive(Debug)]
pub struct AlignedFile {
    inner: Arc<dyn DiskFile>,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    /// Longer than the window, so that an aligned part of its length is in it.
    memory: Vec<u8>,
    aligned_at: usize,
    /// Where in the file it lies; `None` if it holds nothing.
    start: Option<u64>,
}

impl Window {
    fn new() -> Self {
        let memory = vec![0; ((WINDOW_BLOCKS + 1) * BLOCK) as usize];
        let address = memory.as_ptr() as usize;
        let aligned_at = address.next_multiple_of(BLOCK as usize) - address;
        Self {
            memory,
            aligned_at,
            start: None,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = (WINDOW_BLOCKS * BLOCK) as usize;
        &mut self.memory[self.aligned_at..self.aligned_at + len]
    }

    /// Whether the window holds the file's bytes at `offset`.
    fn covers(&self, offset: u64) -> bool {
        self.start
            .is_some_and(|start| (start..start + WINDOW_BLOCKS * BLOCK).contains(&offset))
    }

    /// Moves the window to the block of `offset`. Bytes behind the file's end
    /// are zero.
    fn load(&mut self, file: &dyn DiskFile, offset: u64) -> Result<()> {
        let start = offset / BLOCK * BLOCK;
        self.start = None;
        let there = file.len()?.saturating_sub(start).min(WINDOW_BLOCKS * BLOCK);
        let whole = (there / BLOCK * BLOCK) as usize;
        let bytes = self.bytes();
        file.read_at(&mut bytes[..whole], start)?;
        bytes[whole..].fill(0);
        self.start = Some(start);
        Ok(())
    }

    /// The part of the window at `offset`, at most `len` long, with the offset
    /// in the window where it begins.
    fn part(&self, offset: u64, len: usize) -> (usize, usize) {
        let at = (offset - self.start.unwrap_or(offset)) as usize;
        (at, len.min((WINDOW_BLOCKS * BLOCK) as usize - at))
    }
}

impl AlignedFile {
    /// The alignment of all transfers: a device block of today's disks.
    pub const BLOCK_BYTES: u64 = 4096;

    /// Any transfers over `inner`, whose length must be a multiple of the block.
    pub fn new(inner: Arc<dyn DiskFile>) -> Self {
        Self {
            inner,
            window: Mutex::new(Window::new()),
        }
    }

    fn write(&self, window: &mut Window, mut buf: &[u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            if !window.covers(offset) {
                window.load(&*self.inner, offset)?;
            }
            let (at, count) = window.part(offset, buf.len());
            let (now, later) = buf.split_at(count);
            let start = window.start.unwrap_or(offset);
            let bytes = window.bytes();
            bytes[at..at + count].copy_from_slice(now);
            let block = BLOCK as usize;
            let (from, to) = (at / block * block, (at + count).next_multiple_of(block));
            if let Err(error) = self.inner.write_at(&bytes[from..to], start + from as u64) {
                window.start = None;
                return Err(error);
            }
            offset += count as u64;
            buf = later;
        }
        Ok(())
    }
}

impl DiskFile for AlignedFile {
    forward!(inner: len, identity, sync_data, sync_all, hint_lifetime, allocate);
    forward!(inner: lock_exclusive, lock_shared, unlock);

    fn read_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        let len = self.inner.len()?;
        if offset.saturating_add(buf.len() as u64) > len {
            // Whole blocks behind the end: the file's own error says it.
            let behind = len.next_multiple_of(BLOCK);
            return self.inner.read_at(Window::new().bytes(), behind);
        }
        let mut window = self.window.lock();
        // A reader leaves the writer's window alone.
        let mut other = None;
        while !buf.is_empty() {
            let window = if window.covers(offset) {
                &mut *window
            } else {
                let other = other.get_or_insert_with(Window::new);
                if !other.covers(offset) {
                    other.load(&*self.inner, offset)?;
                }
                other
            };
            let (at, count) = window.part(offset, buf.len());
            let (now, later) = buf.split_at_mut(count);
            now.copy_from_slice(&window.bytes()[at..at + count]);
            offset += count as u64;
            buf = later;
        }
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.write(&mut self.window.lock(), buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], mut offset: u64) -> Result<()> {
        if let [buf] = bufs {
            return self.write_at(buf, offset);
        }
        let mut window = self.window.lock();
        // Gathered first, so that blocks which several slices share are
        // written once.
        let mut gathered = Vec::with_capacity((WINDOW_BLOCKS * BLOCK) as usize);
        for mut buf in bufs.iter().map(|slice| &**slice) {
            while !buf.is_empty() {
                let room = gathered.capacity() - gathered.len();
                let (now, later) = buf.split_at(buf.len().min(room));
                gathered.extend_from_slice(now);
                buf = later;
                if gathered.len() == gathered.capacity() {
                    self.write(&mut window, &gathered, offset)?;
                    offset += gathered.len() as u64;
                    gathered.clear();
                }
            }
        }
        self.write(&mut window, &gathered, offset)
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn truncate(&self, len: u64) -> Result<()> {
        let mut window = self.window.lock();
        window.start = None;
        self.inner.truncate(len)
    }
}
