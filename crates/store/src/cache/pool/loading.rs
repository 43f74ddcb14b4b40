//! Reading nodes from disk, verified before anybody can see them (rule 4).

use super::{Absent, Frame, MAX_LEVEL, Pinned, Pool, shard};
use crate::codec::{self, ExtentRef};
use crate::error::{Error, Result};
use crate::node::{self, Mismatch};
use crate::policy::Policy;
use crate::primitives::atomic::Ordering::*;
use crate::reclaim::owned;
use fulgurite_disk::mutation::{Mutation, planted};
use std::cell::RefCell;

impl Pool {
    /// Loads an absent node and returns its frame pinned, so that the walk that
    /// starts over will find it. Call outside walks: this does I/O and may wait.
    pub(crate) fn fetch(&self, absent: Absent, tree: u32) -> Result<Pinned<'_>> {
        crate::txn::not_within_commit_lock();
        self.check_matches(absent)?;
        loop {
            if let Some(frame) = self.lookup(absent.extent.word())
                && self.frames.pin(frame)
            {
                if self.frames.holding(frame, absent.extent.word()).is_some() {
                    return Ok(Pinned { pool: self, frame });
                }
                self.frames.unpin(frame);
            }
            let frame = self.take_frame()?;
            if let Err(error) = self.load(absent, tree, frame) {
                self.give_frame(frame);
                return Err(error);
            }
            let bits = absent.extent.word();
            if self.seat(&mut self.policy.lock(), bits, frame) {
                return Ok(Pinned { pool: self, frame });
            }
            self.give_frame(frame);
        }
    }

    /// Lets everybody find the node of this extent in the frame that the caller loaded it
    /// into. False where somebody else has loaded it meanwhile, and the frame stays the
    /// caller's.
    pub(crate) fn share(&self, extent: ExtentRef, frame: Frame) -> bool {
        let is_seated = self.seat(&mut self.policy.lock(), extent.word(), frame);
        if is_seated {
            self.frames.unpin(frame);
        }
        is_seated
    }

    /// Lets everybody find the node of this extent in the frame that it was loaded into,
    /// which is pinned. False where somebody else has loaded it meanwhile.
    pub(super) fn seat(&self, policy: &mut Policy, bits: u64, frame: Frame) -> bool {
        let mut table = self.table[shard(bits)].lock();
        if table.contains_key(&bits) {
            return false;
        }
        let meta = self.frames.meta(frame);
        meta.generation.store(0, Relaxed);
        meta.heat.store(0, Relaxed);
        meta.pins.store(1, Relaxed);
        meta.identity.store(bits, Release);
        table.insert(bits, frame);
        policy.insert(frame, bits);
        true
    }

    /// Loads an absent node into a frame that the caller took from the free list. Call
    /// outside walks: this does I/O.
    pub(crate) fn load(&self, absent: Absent, tree: u32, frame: Frame) -> Result<()> {
        crate::txn::not_within_commit_lock();
        // SAFETY: the caller's, from the free list (rule 1).
        let page = unsafe { self.frames.page_mut(frame) };
        self.read_page(absent, tree, page)?;
        self.loads.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Reads, verifies and unpacks a node into `page`.
    pub(crate) fn read_page(&self, absent: Absent, tree: u32, page: &mut [u8]) -> Result<()> {
        self.check_matches(absent)?;
        let length = absent.extent.byte_len();
        with_buffer(length, |image| {
            self.read_extent(absent.extent, image)?;
            self.unpack(absent, tree, image, page)
        })
    }

    /// Verifies the image of a node and unpacks it into `page`.
    pub(super) fn unpack(
        &self,
        absent: Absent,
        tree: u32,
        image: &[u8],
        page: &mut [u8],
    ) -> Result<()> {
        self.verify(absent, image)?;
        let rotten = |what: &str| self.rot(absent.extent, what);
        let dictionary = match codec::dictionary_of(image) {
            0 => None,
            number => self.dictionary(tree, number)?,
        };
        codec::decode(image, page, dictionary.as_deref())
            .map_err(|error| rotten(&error.to_string()))?;
        node::check(page).map_err(rotten)?;
        if node::tree(page) != tree {
            return Err(rotten(&Mismatch::Tree.to_string()));
        }
        let level = node::level(page);
        if level > MAX_LEVEL || absent.level.is_some_and(|promised| promised != level) {
            return Err(rotten(&Mismatch::Level.to_string()));
        }
        match owned::refers_to_extents(page) {
            true => Ok(()),
            false => Err(rotten("a reference in the page is to no extent")),
        }
    }

    /// Fails where a walk found the node not to be what was said of it.
    fn check_matches(&self, absent: Absent) -> Result<()> {
        let found = absent.mismatch.map_or(Ok(()), Err);
        found.map_err(|mismatch| self.rot(absent.extent, &mismatch.to_string()))
    }

    /// Reads the stored bytes of an extent and verifies their checksum.
    pub(crate) fn read_image(&self, absent: Absent, image: &mut Vec<u8>) -> Result<()> {
        image.resize(absent.extent.byte_len(), 0);
        self.read_extent(absent.extent, image)?;
        self.verify(absent, image)
    }

    fn read_extent(&self, extent: ExtentRef, image: &mut [u8]) -> Result<()> {
        let read = self.file.read_at(image, extent.byte_offset());
        read.map_err(|error| {
            if error.kind == fulgurite_disk::DiskErrorKind::UnexpectedEof {
                self.rot(extent, "the file ends before the page")
            } else {
                error.into()
            }
        })
    }

    fn verify(&self, absent: Absent, image: &[u8]) -> Result<()> {
        if codec::checksum(image) != absent.checksum && !planted(Mutation::TrustPage) {
            return Err(self.rot(absent.extent, "checksum mismatch"));
        }
        Ok(())
    }

    /// The error for an extent whose bytes are not what was written.
    pub(crate) fn rot(&self, extent: ExtentRef, what: &str) -> Error {
        Error::corrupt(format!(
            "database disk image is malformed: {what} in {} at byte {} ({} bytes); restore a backup, or export what is readable",
            self.path,
            extent.byte_offset(),
            extent.byte_len(),
        ))
    }
}

/// Runs `read` with a buffer of the thread's, of so many bytes.
pub(super) fn with_buffer<R>(length: usize, read: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // A thread that has ended may still let go of handles, and read for that.
    let mut buffer = BUFFER.try_with(RefCell::take).unwrap_or_default();
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let done = read(&mut buffer[..length]);
    let _ = BUFFER.try_with(|kept| kept.replace(buffer));
    done
}
