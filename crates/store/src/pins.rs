//! The numbers that keep dead nodes: what snapshots, transactions and checkpoints
//! pin, read at one moment.

use crate::store::Core;

/// See the module's header. A value is read again and again for its memory.
#[derive(Default)]
pub(crate) struct Pins {
    all: Vec<u64>,
    checkpoints: Vec<u64>,
    /// The checkpoint under way.
    running: Option<u64>,
    readers: Vec<u64>,
}

impl Pins {
    /// Reads the pins. One that this misses is of the number that was visible
    /// before, or later.
    pub(crate) fn read(&mut self, core: &Core) {
        let Self {
            all,
            checkpoints,
            running,
            readers,
        } = self;
        all.clear();
        checkpoints.clear();
        *running = read_snapshots(core, readers);
        core.checkpoint_pins.list(checkpoints);
        readers.sort_unstable();
        all.extend_from_slice(checkpoints);
        all.extend_from_slice(readers);
        all.sort_unstable();
        all.dedup();
    }

    /// All of them, sorted.
    pub(crate) fn all(&self) -> &[u64] {
        &self.all
    }

    /// The snapshots that somebody reads, unordered.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = u64> {
        self.readers.iter().chain(&self.running).copied()
    }

    /// Those of readers, sorted, with repetitions.
    pub(crate) fn readers(&self) -> &[u64] {
        &self.readers
    }

    /// Whether a checkpoint pins this number, which lasts.
    pub(crate) fn is_checkpoint(&self, pin: u64) -> bool {
        self.checkpoints.contains(&pin)
    }
}

/// Reads the snapshots that readers pin and, as the answer, that of the checkpoint
/// under way; notes the oldest for those who publish. One that this misses is of the
/// number that was visible before, or later.
pub(crate) fn read_snapshots(core: &Core, readers: &mut Vec<u64>) -> Option<u64> {
    let visible = core.visible();
    let running = core.checkpoint_pins.running();
    readers.clear();
    core.pool.readers.pinned(readers);
    let oldest = readers.iter().chain(&running).min();
    core.note_oldest_snapshot(oldest.copied(), visible);
    running
}

/// The lowest number that is pinned now.
pub(crate) fn oldest(core: &Core) -> Option<u64> {
    let mut pins = Pins::default();
    pins.read(core);
    pins.all.first().copied()
}
