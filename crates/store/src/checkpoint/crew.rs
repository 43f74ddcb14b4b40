//! Who writes the pages of a checkpoint: its maker, and whoever waits for it.
//!
//! The maker posts the nodes rank by rank, children before parents, and takes
//! portions of them to encode and write. Who has to wait for log space or frames takes
//! portions too ([`Crew::help`]): it waits for just this, and would leave a processor
//! idle that many writers keep busy otherwise. What must hold:
//!
//! 1. A portion is with one thread, from when it is taken until it is written.
//! 2. A rank is posted when all portions of the one before are written: images carry
//!    the extents and checksums of their children.
//! 3. The checkpoint goes on, and lets go of its pin, when nobody has a portion any
//!    more, however those ended.
//! 4. As many help as there are processors beside the maker's, and as the cache is
//!    large enough for: each holds an image of its portion.
//!
//! What fails fails the checkpoint, with the first cause: nothing more is taken then.
//! A portion that was taken and failed has given its extents back; its nodes are as
//! they were, and the next checkpoint writes them.

use super::collect::Ranks;
use super::writer::{After, Batch};
use crate::cache::ChildRef;
use crate::error::{Error, Result};
use crate::primitives::atomic::{AtomicBool, Ordering::*};
use crate::primitives::{Condvar, Mutex, PORTION_BYTES, processors};
use crate::store::Core;
use std::time::Duration;

/// Of how many portions there is room in the cache for each one that is with a helper.
const SHARE: usize = 64;

/// See the module's header.
#[derive(Default)]
pub(crate) struct Crew {
    is_at_work: AtomicBool,
    posted: Mutex<Posted>,
    /// The last portion that was with somebody is written.
    written: Condvar,
}

/// What is to be written.
#[derive(Default)]
struct Posted {
    /// Nodes of one rank that nobody has taken.
    nodes: Vec<ChildRef>,
    /// How many helpers have a portion.
    helpers: usize,
    failed: Option<Error>,
}

/// While it lives, a checkpoint is being made that will let log space and frames go.
pub(super) struct AtWork<'c>(&'c Crew);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.is_at_work.store(false, SeqCst);
    }
}

/// A helper's portion, until it is written.
struct Portion<'c> {
    crew: &'c Crew,
    outcome: Result<()>,
}

impl Drop for Portion<'_> {
    fn drop(&mut self) {
        let mut posted = self.crew.posted.lock();
        posted.helpers -= 1;
        if let Err(error) = std::mem::replace(&mut self.outcome, Ok(())) {
            posted.fail(error);
        }
        if posted.helpers == 0 {
            self.crew.written.notify_all();
        }
    }
}

impl Posted {
    /// Takes the next nodes; false where none are left.
    fn take(&mut self, portion: &mut Vec<ChildRef>, most: usize) -> bool {
        portion.clear();
        let from = self.nodes.len().saturating_sub(most);
        portion.extend(self.nodes.drain(from..).rev());
        !portion.is_empty()
    }

    fn fail(&mut self, error: Error) {
        self.nodes.clear();
        self.failed.get_or_insert(error);
    }
}

impl Crew {
    /// A checkpoint has begun, with all that was committed until now.
    pub(super) fn begin(&self) -> AtWork<'_> {
        self.is_at_work.store(true, SeqCst);
        AtWork(self)
    }

    /// Whether a checkpoint is under way that lets log space go when it ends, and frames
    /// before: who waits for those need not ask for another one, but look again after it.
    pub(crate) fn is_at_work(&self) -> bool {
        self.is_at_work.load(SeqCst)
    }

    /// Writes unwritten nodes of the checkpoint that the caller makes and pins. They are
    /// clean afterwards.
    pub(super) fn write(&self, core: &Core, ranks: Ranks) -> Result<()> {
        let mut batch = Batch::new(core, None, After::Keep);
        for nodes in ranks.lowest_first() {
            self.write_rank(core, nodes, &mut batch)?;
        }
        Ok(())
    }

    fn write_rank(
        &self,
        core: &Core,
        mut nodes: Vec<ChildRef>,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let most = portion_nodes(core);
        let is_shared = nodes.len() > most && helpers_max(core) > 0;
        // They are taken from the end.
        nodes.reverse();
        self.posted.lock().nodes = nodes;
        if is_shared && let Some(wal) = core.wal() {
            wal.look_again();
        }
        let mut portion = Vec::with_capacity(most);
        while self.posted.lock().take(&mut portion, most) {
            if let Err(error) = batch.write_all(&portion) {
                self.posted.lock().fail(error);
            }
        }
        let waits = &core.pool.waits;
        let mut posted = self.posted.lock();
        while posted.helpers > 0 {
            waits.on(&self.written, &mut posted, Duration::MAX);
        }
        posted.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a portion of what is to be written, if there is one. For who would wait
    /// otherwise, and holds nothing that a checkpoint needs.
    pub(crate) fn help(&self, core: &Core) -> bool {
        if !self.is_at_work() {
            return false;
        }
        let mut nodes = Vec::new();
        let mut portion = {
            let mut posted = self.posted.lock();
            if posted.helpers >= helpers_max(core) || !posted.take(&mut nodes, portion_nodes(core))
            {
                return false;
            }
            posted.helpers += 1;
            Portion {
                crew: self,
                outcome: Err(Error::misuse("a thread ended while it wrote pages")),
            }
        };
        portion.outcome = Batch::new(core, None, After::Keep).write_all(&nodes);
        if portion.outcome.is_ok() {
            core.writes.helped.fetch_add(nodes.len() as u64, Relaxed);
        }
        true
    }
}

/// The most nodes of a portion.
pub(super) fn portion_nodes(core: &Core) -> usize {
    (PORTION_BYTES / core.pool.page_size()).max(1)
}

/// The most who help.
fn helpers_max(core: &Core) -> usize {
    let cache = core.pool.frames.count() * core.pool.page_size();
    (processors() - 1).min(cache / SHARE / PORTION_BYTES)
}

#[cfg(test)]
mod tests {
    use crate::background::press;
    use crate::{Isolation, Key, KeyKind, Options, Store};
    use fulgurite_disk::{Machine, MemoryDisk};
    use std::path::Path;
    use std::sync::Arc;

    /// Whoever came to wait asked for another checkpoint, which then began as soon as the
    /// one under way had ended.
    #[test]
    fn who_finds_a_checkpoint_under_way_asks_for_no_other_one() {
        let options = Options {
            driver: Some(Arc::new(Machine)),
            ..Options::default()
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, Path::new("c.db"), options).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let put = store.transact(Isolation::Snapshot, |txn| txn.put(&tree, Key::Int(1), b"1"));
        put.expect("commits");
        let core = store.core();
        let before = core.checkpoint_pins.durable();
        let at_work = core.crew.begin();
        press(core);
        assert_eq!(core.checkpoint_pins.durable(), before);
        drop(at_work);
        press(core);
        assert_eq!(core.checkpoint_pins.durable(), core.head());
        assert!(core.head() > before);
    }
}
