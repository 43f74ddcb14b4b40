//! The maps between the handles of written nodes and their extents.
//!
//! An entry lives as long as its node, and is found from either side: a node may
//! die under its handle or, where its parent was brought up to date before,
//! under its extent.

use super::{Pool, Written, shard};
use rustc_hash::FxHashMap;

/// Bytes of an entry in `written` and the one back from it, where the maps have
/// just grown.
const WRITTEN_ENTRY: usize = 96;
/// Gives back the memory of a map that was once much larger.
fn shrink<V>(map: &mut FxHashMap<u64, V>) {
    if map.capacity() > 1024 && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}

impl Pool {
    pub(super) fn note_written(&self, handle: u64, written: Written) {
        let bits = written.extent.word();
        self.handle_of[shard(bits)].lock().insert(bits, handle);
        self.written[shard(handle)].lock().insert(handle, written);
        self.ballast.add(WRITTEN_ENTRY);
    }

    /// The handle under which the dead node at `bits` was made, if it was made
    /// since the store was opened.
    pub(super) fn forget_handle_of(&self, bits: u64) -> Option<u64> {
        let mut handles = self.handle_of[shard(bits)].lock();
        let handle = handles.remove(&bits)?;
        shrink(&mut handles);
        self.ballast.subtract(WRITTEN_ENTRY);
        Some(handle)
    }

    pub(super) fn forget_written(&self, handle: u64) -> Option<Written> {
        let mut entries = self.written[shard(handle)].lock();
        let written = entries.remove(&handle);
        shrink(&mut entries);
        written
    }
}
