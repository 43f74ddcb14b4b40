//! From what a log holds to a store that can be used: it is replayed, and what a
//! transaction over several files left in doubt is settled, all of it is made durable by a
//! checkpoint, and a fresh log begins behind that. Read-only, all of it stays in memory.

use crate::background;
use crate::checkpoint::{self, mark};
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::store::{Core, Store, log_error};
use crate::txn::Txn;
use fulgurite_wal::{Recovery, WalOptions};
use std::sync::Arc;

/// What recovery holds beside the frames: windows on the log, images on their way
/// to the disk, what allocators keep of both (6 MB measured). A quarter of a small
/// cache.
const RECOVERY_BYTES: usize = 8 << 20;

/// Replays the log, makes what was replayed durable, and opens a new log.
pub(crate) fn recover(
    store: &Store,
    mut recovery: Recovery,
    settle: fn(&mut Txn) -> Result<bool>,
) -> Result<()> {
    replay(store, &mut recovery, settle)?;
    match store.core().options.read_only {
        true => Ok(()),
        false => start_log(store.core(), recovery),
    }
}

/// Does what the log says, and what was left in doubt, and makes it durable.
fn replay(
    store: &Store,
    recovery: &mut Recovery,
    settle: fn(&mut Txn) -> Result<bool>,
) -> Result<()> {
    let core = store.core();
    let pool = &core.pool;
    let mut txn = store.txn();
    txn.begin_replay()?;
    let mut beside = pool.charge();
    if !recovery.is_empty() {
        beside.set(RECOVERY_BYTES.min(pool.frames.count() * pool.page_size() / 4));
        pool.balance();
        let replay_error = |error| replay_error(&pool.path, error);
        recovery
            .replay(&mut |record| Ok(txn.reserve(record)?))
            .map_err(replay_error)?;
        recovery
            .replay(&mut |record| Ok(txn.replay(record)?))
            .map_err(replay_error)?;
    }
    let settled = settle(&mut txn)?;
    if recovery.is_empty() && !settled {
        txn.rollback();
        return Ok(());
    }
    // What was in doubt is one commit more.
    let last = recovery.last_seq() + u64::from(settled);
    txn.finish_replay(last)?;
    match core.options.read_only {
        false => checkpoint::run(core)?,
        true => checkpoint::write_aside(core, last)?,
    }
    drop(beside);
    pool.balance();
    Ok(())
}

/// Opens a new log behind what the checkpoint covers.
fn start_log(core: &Arc<Core>, recovery: Recovery) -> Result<()> {
    if recovery.is_empty() {
        void_mark(core, &recovery)?;
    }
    let weak = Arc::downgrade(core);
    let named = weak.clone();
    let marked = weak.clone();
    let grown = weak.clone();
    let is_moved = move || named.upgrade().map_or(Ok(false), |core| core.was_moved());
    let options = WalOptions {
        durability: match core.options.durability {
            Durability::Full => fulgurite_wal::Durability::Full,
            Durability::Normal => fulgurite_wal::Durability::Normal,
            Durability::Off => fulgurite_wal::Durability::Off,
        },
        limit_bytes: core.options.log_limit(),
        reserve_timeout: core.options.busy_timeout,
        pressure: Some(Arc::new(move |patience| {
            if let Some(core) = weak.upgrade() {
                background::press_for_room(&core, patience);
            }
        })),
        growth: Some(Arc::new(move || {
            if let Some(core) = grown.upgrade() {
                core.background.ask_to_grow_log();
            }
        })),
        begun: Some(Arc::new(move |log| {
            if let Some(core) = marked.upgrade() {
                mark::put(&core, log);
            }
        })),
        // Who drives the store has the disk, too, and moves nothing.
        moved: match core.options.driver {
            None => Some(Arc::new(is_moved)),
            Some(_) => None,
        },
        driver: core.options.driver.clone(),
    };
    let next = core.head() + 1;
    let wal = recovery.start(options, next).map_err(log_error)?;
    debug_assert!(core.wal.get().is_none());
    let _ = core.wal.set(wal);
    Ok(())
}

/// Before the files of a log go of which nothing was replayed, or one is abandoned: the
/// mark for it is the one of an older meta record then. To take it away is not enough:
/// where a process ended before that was durable, the next one finds none, and a power
/// cut brings it back.
fn void_mark(core: &Core, recovery: &Recovery) -> Result<()> {
    let mut state = core.checkpoint.lock();
    match state.log.is_none() && recovery.was_closed() {
        true => Ok(()),
        false => checkpoint::make_anew(core, &mut state),
    }
}

/// A failure of replaying: the store's own error where it was one.
fn replay_error(path: &str, error: fulgurite_wal::Error) -> Error {
    if let fulgurite_wal::Error::Replay { source, seq } = &error
        && let Some(own) = source.downcast_ref::<Error>()
    {
        return own
            .clone()
            .during(&format!("replaying log record {seq} of {path}"));
    }
    log_error(error)
}
