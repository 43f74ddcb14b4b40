//! What a store does in the background: checkpoints, reclaim, syncs in `normal` and of
//! what several stores have decided, and growth of the log's file ahead of its records.
//!
//! Its thread begins when somebody asks for the first time (the log is long, many
//! pages are unwritten, somebody waits for frames or log space), in `normal` with the
//! first commit: a small store that lives shortly has none. It wakes when somebody asks
//! and every [`IDLE`]. A store that somebody drives has no thread: it works when it is
//! told to ([`tick`]), and whoever waits for a checkpoint makes it. That can be done
//! where one waits, because who waits holds nothing that a checkpoint needs. (So does
//! who waits where no thread can be started.)
//!
//! Committers that wait for nothing ask only to look; whether the log or the
//! unwritten pages call for a checkpoint is decided here, after what is dead has been
//! freed ([`look`], ADR 26).
//!
//! After a failed checkpoint the failure is reported to those who wait, and it is
//! tried again when asked, unless the store is poisoned. Closing ends the thread
//! first, then makes a last checkpoint and removes the log.

use crate::checkpoint;
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::primitives::atomic::{AtomicBool, AtomicU8, Ordering::*};
use crate::primitives::{Condvar, JoinHandle, Mutex, spawn};
use crate::reclaim;
use crate::store::{Core, log_error};
use fulgurite_disk::mutation::{Mutation, planted};
use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How often it tidies up; in `normal`, the most that a power cut takes back, but for
/// what is committed while a checkpoint takes longer.
const IDLE: Duration = Duration::from_millis(200);
/// The rest after a checkpoint, in times as long as it took.
const REST: u32 = 7;

/// What is asked of the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    /// To see what the log's length and the unwritten pages call for.
    Look,
    /// A checkpoint.
    Checkpoint,
}

#[derive(Default)]
struct Inbox {
    requested: Option<Request>,
    /// The log's file is to grow ahead of its records.
    log_grows: bool,
    stop: bool,
}

/// [`Background::begins`]: there is a thread, or never will be one.
const BY_NOTHING: u8 = 0;
const BY_REQUEST: u8 = 1;
/// A commit or a request.
const BY_COMMIT: u8 = 2;

/// The thread's side that others see.
#[derive(Default)]
pub(crate) struct Background {
    inbox: Mutex<Inbox>,
    wake: Condvar,
    asked: AtomicBool,
    /// What begins the thread.
    begins: AtomicU8,
    /// The store, once it is open, for the thread to hold.
    core: OnceLock<Weak<Core>>,
    /// When the rest after the last checkpoint is over; none where it is.
    rest_until: Mutex<Option<Duration>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Asks to see whether a checkpoint is due. Cheap when that was asked already.
    pub(crate) fn ask_to_look(&self) {
        if !self.asked.load(Relaxed) && !self.asked.swap(true, AcqRel) {
            // Without a thread it stays asked, and who waits makes the checkpoint.
            let _ = self.put(Request::Look);
        }
    }

    /// Whether nobody has the store any more but who closes it.
    pub(crate) fn is_closing(&self) -> bool {
        self.inbox.lock().stop
    }

    /// Asks to let the log's file grow ahead of its records.
    pub(crate) fn ask_to_grow_log(&self) {
        self.inbox.lock().log_grows = true;
        // Without a thread whoever needs the room makes it.
        let _ = self.call();
    }

    /// Fails where there is no thread to see it.
    fn put(&self, request: Request) -> Result<()> {
        let mut inbox = self.inbox.lock();
        inbox.requested = inbox.requested.max(Some(request));
        drop(inbox);
        self.call()
    }

    /// Has the thread look into the inbox.
    fn call(&self) -> Result<()> {
        self.wake.notify_one();
        match self.begins.load(Relaxed) {
            BY_NOTHING => Ok(()),
            _ => self.begin_thread(),
        }
    }

    /// Before a commit: makes sure of the thread where every commit needs it.
    ///
    /// # Errors
    /// `NoMemory` where the system starts none.
    #[inline]
    pub(crate) fn attend_commit(&self) -> Result<()> {
        match self.begins.load(Relaxed) {
            BY_COMMIT => self.begin_thread(),
            _ => Ok(()),
        }
    }

    /// From now on commits are not synced: the next one makes sure of the thread.
    pub(crate) fn attend_commits(&self) {
        // Where there is a thread, or somebody drives, it stays so.
        let order = (AcqRel, Relaxed);
        let _ = self
            .begins
            .compare_exchange(BY_REQUEST, BY_COMMIT, order.0, order.1);
    }

    /// What a commit left to a later sync is synced soon.
    ///
    /// # Errors
    /// As [`attend_commit`](Self::attend_commit).
    pub(crate) fn attend_unsynced(&self) -> Result<()> {
        self.attend_commits();
        self.attend_commit()
    }

    #[cold]
    fn begin_thread(&self) -> Result<()> {
        let Some(core) = self.core.get().and_then(Weak::upgrade) else {
            return Ok(());
        };
        let mut held = self.thread.lock();
        // Whoever closes the store waits for the thread that it finds.
        if held.is_some() || self.inbox.lock().stop {
            return Ok(());
        }
        let thread = spawn("fulgurite-checkpoint", move || run(&core)).map_err(|error| {
            Error::new(
                crate::ErrorKind::NoMemory,
                format!("the checkpoint thread cannot be started: {error}"),
            )
        })?;
        *held = Some(thread);
        self.begins.store(BY_NOTHING, Release);
        Ok(())
    }

    /// Waits for a request, no longer than `patience`; `None` when it is to stop.
    fn next(&self, patience: Duration) -> Option<Option<Request>> {
        let mut inbox = self.inbox.lock();
        if inbox.requested.is_none() && !inbox.log_grows && !inbox.stop {
            self.wake.wait_for(&mut inbox, patience);
        }
        if inbox.stop {
            return None;
        }
        Some(self.take_request(&mut inbox))
    }

    /// Whether the log's file was to grow.
    fn take_growth(&self) -> bool {
        mem::take(&mut self.inbox.lock().log_grows)
    }

    fn take_request(&self, inbox: &mut Inbox) -> Option<Request> {
        self.asked.store(false, Release);
        inbox.requested.take()
    }
}

/// For a store that is open: lets those who wait for frames ask for a checkpoint, and
/// the thread begin. (What recovery commits comes before.)
pub(crate) fn start(core: &Arc<Core>) {
    let weak = Arc::downgrade(core);
    let background = &core.background;
    let begins = match core.options.durability {
        _ if core.options.driver.is_some() => BY_NOTHING,
        Durability::Normal if core.wal().is_some() => BY_COMMIT,
        _ => BY_REQUEST,
    };
    // Called once.
    let _ = background.core.set(weak.clone());
    background.begins.store(begins, Release);
    core.pool.on_pressure(Some(Arc::new(move || {
        if let Some(core) = weak.upgrade() {
            press(&core);
        }
    })));
    // What every open store holds counts from the start, whether a thread begins or not.
    core.pool.balance();
}

fn run(core: &Core) {
    let background = &core.background;
    let now = || core.pool.waits.now();
    let mut tidied = now();
    loop {
        // However often somebody asks, what is done when nobody does comes in time.
        let rested = *background.rest_until.lock();
        let until = rested
            .unwrap_or(Duration::MAX)
            .min(tidied.saturating_add(IDLE));
        let Some(request) = background.next(until.saturating_sub(now())) else {
            return;
        };
        grow_log(core);
        // Those who wait are told the outcome; a failure that ends writing is
        // kept by the store itself.
        if is_due(core, request) {
            let began = now();
            let outcome = checkpoint::run_holding(core, &mut core.checkpoint.lock());
            let _ = relieve(core, outcome);
            rest(core, began);
        }
        if now() >= tidied.saturating_add(IDLE) {
            let _ = tidy(core);
            tidied = now();
        }
    }
}

/// Lets the log's file grow ahead of its records where somebody asked for that.
fn grow_log(core: &Core) {
    if core.background.take_growth()
        && let Some(wal) = core.wal()
    {
        // What comes in the way is met, and reported, by who needs the room.
        let _ = wal.grow_ahead();
    }
}

/// After a checkpoint that began then.
fn rest(core: &Core, began: Duration) {
    let now = core.pool.waits.now();
    let took = now.saturating_sub(began);
    core.pool.begin_rest();
    *core.background.rest_until.lock() = Some(now.saturating_add(took.saturating_mul(REST)));
}

/// Whether a request calls for a checkpoint.
fn is_due(core: &Core, request: Option<Request>) -> bool {
    let mut rest_until = core.background.rest_until.lock();
    if rest_until.is_some_and(|until| until <= core.pool.waits.now()) {
        *rest_until = None;
        core.pool.end_rest();
        core.check_pressure();
    }
    drop(rest_until);
    match request {
        Some(Request::Checkpoint) => true,
        Some(Request::Look) => look(core),
        // It was filled fast, and is not any more.
        None => core.log_is_long(),
    }
}

/// Whether a checkpoint is due: the log is long, or unwritten nodes crowd the cache
/// even after what is dead among them has been freed.
fn look(core: &Core) -> bool {
    if core.log_is_long() {
        return true;
    }
    let pool = &core.pool;
    pool.note_needed(0);
    // What leases hold let die what it replaced.
    core.settle();
    if !pool.is_crowded() {
        return false;
    }
    pool.note_needed(reclaim::look_at_all(core));
    pool.is_crowded()
}

/// Does what there is to do, of a store that is driven.
pub(crate) fn tick(core: &Core) -> Result<()> {
    if core.options.read_only {
        return Ok(());
    }
    core.check_writable()?;
    grow_log(core);
    // While another thread makes a checkpoint, a request stays one: that may not
    // cover what was asked for.
    let Some(mut state) = core.checkpoint.try_lock() else {
        return Ok(());
    };
    let background = &core.background;
    let requested = background.take_request(&mut background.inbox.lock());
    if is_due(core, requested) {
        let began = core.pool.waits.now();
        let outcome = checkpoint::run_holding(core, &mut state);
        drop(state);
        rest(core, began);
        return relieve(core, outcome);
    }
    drop(state);
    tidy(core)
}

/// Asks for a checkpoint for somebody who is about to wait for it, or takes part in the
/// one under way: true if there was something to do. What that one brings is looked for
/// before another one is asked for.
pub(crate) fn press(core: &Core) -> bool {
    let request = match core.crew.is_at_work() {
        true => Request::Look,
        false => Request::Checkpoint,
    };
    let put = core.background.put(request);
    if core.options.driver.is_some() || put.is_err() {
        // Who waits is told by `relieve`, and by the log.
        let _ = tick(core);
    }
    core.crew.help(core)
}

/// The same for who waits for log space so long, which only the end of a checkpoint
/// brings.
pub(crate) fn press_for_room(core: &Core, patience: Duration) {
    let now = || core.pool.waits.now();
    let until = now().saturating_add(patience);
    while press(core) && now() < until {}
}

/// Tells those who wait for frames how a checkpoint ended.
fn relieve(core: &Core, outcome: Result<()>) -> Result<()> {
    let outcome = outcome.and_then(|()| unload_kept(core));
    core.pool.relieve(outcome.as_ref().err().cloned());
    outcome
}

/// Where unwritten nodes fill much of the cache even after a checkpoint, those
/// that old snapshots keep are written too.
fn unload_kept(core: &Core) -> Result<()> {
    if !core.pool.stays_crowded() {
        return Ok(());
    }
    reclaim::write_kept(core)
}

/// What is done whether somebody asks or not: frees what pins let go of, syncs what is
/// acknowledged and was not synced.
fn tidy(core: &Core) -> Result<()> {
    // What leases hold is synced with the rest, and what they let die is freed.
    core.settle();
    if let Some(wal) = core.wal() {
        let syncs = match wal.durability() {
            fulgurite_wal::Durability::Full => wal.durable() < wal.acked(),
            fulgurite_wal::Durability::Normal => true,
            fulgurite_wal::Durability::Off => false,
        };
        if syncs {
            // A failure poisons the log, which reports it from then on.
            wal.sync().map_err(log_error)?;
        }
    }
    reclaim::look_at_all(core);
    core.pool.balance();
    core.check_pressure();
    Ok(())
}

/// Closes a store: the last checkpoint, and the log removed. What cannot be
/// done is left to the next opening, which recovers: from a log that is synced, where
/// only the file has no room.
pub(crate) fn close(core: &Core) {
    let background = &core.background;
    background.inbox.lock().stop = true;
    background.wake.notify_all();
    core.pool.on_pressure(None);
    if let Some(thread) = background.thread.lock().take() {
        let _ = thread.join();
    }
    if core.path.is_none() || core.options.read_only || core.check_writable().is_err() {
        return;
    }
    // One that could not be recovered stays as it was found: a part of its space may have
    // been set aside for records that were not replayed.
    let Some(wal) = core.wal() else {
        return;
    };
    // Dead subtrees are freed, so that the file does not keep their space.
    let _ = reclaim::sweep(core);
    if planted(Mutation::RemoveLogFirst) {
        let _ = core.wait_visible(core.head()).map(|()| wal.close());
    }
    let has_let_go = checkpoint::run_last(core)
        .and_then(|()| checkpoint::mark::take_away(core, &mut core.checkpoint.lock()));
    let _ = match has_let_go {
        Ok(()) => wal.close(),
        Err(_) => wal.sync(),
    };
}

#[cfg(test)]
mod tests {
    use crate::checkpoint;
    use crate::error::Result;
    use crate::{Isolation, Key, KeyKind, Options, Store};
    use fulgurite_disk::MemoryDisk;
    use std::path::Path;
    use std::sync::Arc;

    /// The last checkpoint offered the processor after each call, though nobody is left who
    /// commits: beside programs that compute, each offer took a time slice, and a file that
    /// is attached for a moment was closed in 20 ms.
    #[test]
    fn who_closes_a_store_offers_nobody_the_processor() -> Result<()> {
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, Path::new("/closed.db"), Options::default())?;
        let family = store.create_family("f", KeyKind::Int)?;
        let put = |key: i64| {
            let mut txn = store.txn();
            txn.begin(Isolation::Serializable)?;
            txn.put(&family, Key::Int(key), b"value")?;
            txn.commit()
        };
        put(1)?;
        let core = &store.handle.core;
        checkpoint::run(core)?;
        let before = core.writes.read();
        assert!(before.offers > 0, "{before:?}");
        put(2)?;
        core.background.inbox.lock().stop = true;
        checkpoint::run(core)?;
        let after = core.writes.read();
        assert!(after.pages > before.pages, "{after:?}");
        assert_eq!(after.offers, before.offers);
        Ok(())
    }
}
