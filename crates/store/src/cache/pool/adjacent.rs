//! Loading nodes that lie side by side in the file with one read.
//!
//! The first is loaded as if alone. For the others nothing is waited for: there are as
//! few as come free at once, beside the frames that are left to all readers, and what
//! is wrong with one of them is said when it is the first.

use super::loading::with_buffer;
use super::{Absent, Frame, Pinned, Pool, READERS_FRAMES};
use crate::error::Result;
use crate::primitives::atomic::Ordering::Relaxed;

/// The most nodes of one read.
const NODES_MAX: usize = 16;
/// The most bytes of one read of several nodes: every thread that reads keeps as many.
const BYTES_MAX: usize = 64 << 10;

/// Absent nodes each of which begins in the file where the one before ends.
#[derive(Debug, Default)]
pub(crate) struct Adjacent {
    nodes: Vec<Absent>,
    bytes: usize,
}

impl Adjacent {
    /// Adds a node; false if it does not follow the others, or if they are enough.
    pub(crate) fn add(&mut self, node: Absent) -> bool {
        let bytes = self.bytes + node.extent.byte_len();
        if let Some(last) = self.nodes.last()
            && (last.extent.end() != node.extent.position()
                || self.nodes.len() == NODES_MAX
                || bytes > BYTES_MAX)
        {
            return false;
        }
        self.nodes.push(node);
        self.bytes = bytes;
        true
    }
}

impl Pool {
    /// Loads the first of absent nodes, and as many of the others as can be, and returns
    /// their frames pinned. Call outside walks: this does I/O and may wait.
    pub(crate) fn fetch_adjacent(&self, absent: &Adjacent, tree: u32) -> Result<Vec<Pinned<'_>>> {
        let [first, others @ ..] = absent.nodes.as_slice() else {
            return Ok(Vec::new());
        };
        if others.is_empty() || !self.has(absent.nodes.len() + READERS_FRAMES) {
            return Ok(vec![self.fetch(*first, tree)?]);
        }
        let mut frames = vec![self.take_frame()?];
        let more = std::iter::from_fn(|| self.try_take_frame());
        frames.extend(more.take(others.len()));
        let loaded = self.load_adjacent(&absent.nodes, tree, &frames);
        let mut spare = frames.split_off(*loaded.as_ref().unwrap_or(&0));
        let mut pinned = Vec::with_capacity(frames.len());
        {
            let mut policy = self.policy.lock();
            for (node, frame) in absent.nodes.iter().zip(frames) {
                if self.seat(&mut policy, node.extent.word(), frame) {
                    pinned.push(Pinned { pool: self, frame });
                } else {
                    spare.push(frame);
                }
            }
        }
        self.give_frames(&mut spare);
        loaded.map(|_| pinned)
    }

    /// Loads the first of the nodes, and of the others as many as there are frames, up to
    /// one that cannot be read. How many they are.
    fn load_adjacent(&self, nodes: &[Absent], tree: u32, frames: &[Frame]) -> Result<usize> {
        crate::txn::not_within_commit_lock();
        let nodes = &nodes[..frames.len()];
        let bytes = nodes.iter().map(|node| node.extent.byte_len()).sum();
        with_buffer(bytes, |images| {
            let read = self.file.read_at(images, nodes[0].extent.byte_offset());
            if read.is_err() {
                // It may be the others' fault.
                return self.load(nodes[0], tree, frames[0]).map(|()| 1);
            }
            let mut rest = &*images;
            for (loaded, (node, frame)) in nodes.iter().zip(frames).enumerate() {
                let (image, behind) = rest.split_at(node.extent.byte_len());
                rest = behind;
                // SAFETY: the caller's, from the free list (rule 1).
                let page = unsafe { self.frames.page_mut(*frame) };
                match self.unpack(*node, tree, image, page) {
                    Ok(()) => _ = self.loads.fetch_add(1, Relaxed),
                    Err(error) if loaded == 0 => return Err(error),
                    Err(_) => return Ok(loaded),
                }
            }
            Ok(nodes.len())
        })
    }
}
