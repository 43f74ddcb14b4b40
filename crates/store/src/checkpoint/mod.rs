//! Checkpoints: making the state of one commit durable in the database file.
//!
//! 1. The log's idle generation is made ready. Under the commit lock: S = head,
//!    pinned; later records go to the other generation.
//! 2. S is waited for: its records are acknowledged.
//! 3. From the roots of S every unwritten node is written to free extents,
//!    children before parents ([`writer`]), by whoever waits for them too ([`crew`]).
//!    They become clean as they go.
//!    Trees may get dictionaries before ([`train`]), which the catalog names.
//! 4. The catalog and the free map of exactly S are written. The map counts as
//!    free what S does not reach, whatever uses it in memory.
//! 5. `sync_data`. Meta slot A, sync; slot B, sync ([`meta`]). Slot A says which log
//!    goes on from there ([`mark`]). In the first checkpoint
//!    of a life slot B is written before that as it was found: where its sync had failed,
//!    the medium has an older one, of which pages may have been written over by now, and
//!    which must not be all there is while slot A is written.
//! 6. Now the pin of the checkpoint before is let go, the log's old generation
//!    recycled, and the file's free tail cut off. Where commits went on meanwhile the
//!    generation for the next checkpoint is made ready.
//!
//! The last one before the log is removed begins no generation: nobody commits any
//! more, and recovery replays nothing of a log that the meta slots cover.
//!
//! A failure before 5 leaves the old checkpoint valid and nothing recycled; the
//! next one tries again. A failed write or sync in 5 poisons the store: what the
//! medium holds is unknown until it is opened again. No commit waits for any of
//! this but for log space and frames. Those that do wait are told of a failure:
//! for log space by the log, for frames by `background.rs`.

pub(crate) mod catalog;
pub(crate) mod collect;
mod crew;
pub(crate) mod mark;
pub(crate) mod meta;
pub(crate) mod train;
pub(crate) mod writer;

use crate::codec::{self, ExtentRef};
use crate::dictionaries;
use crate::error::{Error, ErrorKind, Result};
use crate::extents::Run;
use crate::primitives::Mutex;
use crate::primitives::atomic::{AtomicU64, Ordering::*};
use crate::reclaim;
use crate::space::extent_of;
use crate::store::{Core, log_error};
use crate::tree::Tree;
use crate::tree::versions::Root;
use catalog::Entry;
pub(crate) use crew::Crew;
use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_wal::Continuation;
use meta::{Blob, Meta};
use std::sync::Arc;
pub(crate) use writer::WriteCounters;
pub use writer::WriteStats;

/// The last durable checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) seq: u64,
    /// Meta writes so far.
    pub(crate) counter: u64,
    pub(crate) catalog: Option<Blob>,
    pub(crate) free_map: Option<Blob>,
    /// A generation of the log that a failed checkpoint left to recycle.
    pending: Option<fulgurite_wal::GenerationId>,
    /// Whether the file is a copy in the making.
    pub(crate) making: bool,
    /// The log that the mark says goes with it.
    pub(crate) log: Option<Continuation>,
    /// What both slots say, where one of them may not be on the medium.
    distrusted: Option<Box<[u8; meta::SLOT]>>,
    /// What is written once and stays moves down where there is room.
    moves_down: bool,
}

impl State {
    /// The state that a database was opened with, and the log that goes with it.
    pub(crate) fn of(meta: &Meta, log: Option<Continuation>) -> Self {
        Self {
            seq: meta.checkpoint,
            counter: meta.counter,
            catalog: meta.catalog,
            free_map: meta.free_map,
            pending: None,
            making: meta.making,
            log,
            distrusted: None,
            moves_down: false,
        }
    }

    /// Notes that both slots were found to say this. A sync of one may have failed in an
    /// earlier life, since when only the operating system has it.
    pub(crate) fn distrust(&mut self, meta: &Meta) {
        self.distrusted = Some(Box::new(meta.encode()));
    }
}

/// The numbers that checkpoints pin: the last durable one, the one under way,
/// and those of attach records that no durable one covers. Recovery would start
/// from the pages of these, so nothing that they reach is freed while they are pinned.
pub(crate) struct Pins {
    durable: AtomicU64,
    running: AtomicU64,
    attached: Mutex<Vec<u64>>,
    /// The highest number that any of them ever was.
    newest: AtomicU64,
}

const NONE: u64 = u64::MAX;

impl Pins {
    pub(crate) fn new(durable: u64) -> Self {
        Self {
            durable: AtomicU64::new(durable),
            running: AtomicU64::new(NONE),
            attached: Mutex::default(),
            newest: AtomicU64::new(durable),
        }
    }

    /// A checkpoint of `seq` begins, under the commit lock.
    fn start(&self, seq: u64) {
        self.newest.fetch_max(seq, SeqCst);
        self.running.store(seq, SeqCst);
    }

    /// The checkpoint under way.
    pub(crate) fn running(&self) -> Option<u64> {
        let running = self.running.load(SeqCst);
        (running != NONE).then_some(running)
    }

    /// Pages of nodes born later are in no checkpoint and never were. Under the
    /// commit lock this also holds for checkpoints to come, which pin the head
    /// or later.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(SeqCst)
    }

    /// An attach record with this number is about to be published.
    pub(crate) fn attach(&self, seq: u64) {
        self.newest.fetch_max(seq, SeqCst);
        self.attached.lock().push(seq);
    }

    /// The checkpoint at `seq` is durable.
    fn cover(&self, seq: u64) {
        self.durable.store(seq, SeqCst);
        self.attached.lock().retain(|attached| *attached > seq);
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(SeqCst)
    }

    /// The running one first: it becomes the durable one before it is cleared.
    pub(crate) fn list(&self, out: &mut Vec<u64>) {
        out.extend(self.running());
        out.extend_from_slice(&self.attached.lock());
        if !planted(Mutation::FreeExtentEarly) {
            out.push(self.durable.load(SeqCst));
        }
    }
}

/// What follows a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Commits,
    /// The end of the log.
    Nothing,
}

/// Makes a checkpoint of the head; if the last one covers it, frees what can be.
///
/// Whoever waits for frames looks again afterwards, also where it failed: one that
/// found this checkpoint under way asks for one of its own then.
pub(crate) fn run(core: &Core) -> Result<()> {
    let done = run_holding(core, &mut core.checkpoint.lock());
    core.pool.relieve(None);
    done
}

/// As [`run`], though the last one may cover all there is; dictionaries, the catalog and
/// the free map go to the lowest places that are free now.
pub(crate) fn run_moving_down(core: &Core) -> Result<()> {
    let mut state = core.checkpoint.lock();
    state.moves_down = true;
    let done = run_holding(core, &mut state);
    state.moves_down = false;
    drop(state);
    core.pool.relieve(None);
    done
}

/// As [`run`], for a store that is being closed: nobody commits any more.
pub(crate) fn run_last(core: &Core) -> Result<()> {
    make_if_due(core, &mut core.checkpoint.lock(), Follows::Nothing)
}

/// As [`run`], for who holds the lock that says that nobody else makes one.
pub(crate) fn run_holding(core: &Core, state: &mut State) -> Result<()> {
    make_if_due(core, state, Follows::Commits)
}

fn make_if_due(core: &Core, state: &mut State, follows: Follows) -> Result<()> {
    // One that made up for a failed one began no generation: what it covered of the
    // log is in the way of who waits for room until the next one does.
    let has_log_to_give = || {
        let wal = core.wal().filter(|_| follows == Follows::Commits);
        wal.is_some_and(|wal| wal.bytes_since_switch() > 0)
    };
    core.settle();
    let is_covered = core.head() == state.seq && state.counter > 0 && state.pending.is_none();
    if is_covered && !state.moves_down && !has_log_to_give() {
        // Somebody may wait for what a reader let go of since.
        reclaim::look_at_all(core);
        return Ok(());
    }
    let Some(wal) = core.wal() else {
        return make(core, state, follows);
    };
    let attempt = wal.begin_making_room();
    make(core, state, follows)
        .inspect_err(|error| wal.no_room_made(attempt, Arc::new(error.clone())))
}

/// Writes out what was replayed, up to `seq`, for who only reads: there is no checkpoint
/// for which it could wait in the cache. Few pages stay there.
pub(crate) fn write_aside(core: &Core, seq: u64) -> Result<()> {
    match core.pool.is_crowded() {
        true => write_trees(core, seq).map(drop),
        false => Ok(()),
    }
}

/// Makes a checkpoint though the last one may cover all there is: for a meta record that
/// is newer than any before.
pub(crate) fn make_anew(core: &Core, state: &mut State) -> Result<()> {
    make(core, state, Follows::Nothing)
}

/// All steps, with what follows a failure.
fn make(core: &Core, state: &mut State, follows: Follows) -> Result<()> {
    // Whoever waited for this one's turn may have seen the one before end writing.
    core.check_writable()?;
    core.space.check()?;
    let begun = begin(core, state, follows)?;
    let at_work = core.crew.begin();
    if planted(Mutation::RecycleEarly)
        && let (Some(wal), Some(old)) = (core.wal(), state.pending.take())
    {
        wal.recycle(old)
            .and_then(|()| wal.prepare_switch())
            .map_err(log_error)?;
    }
    let done = persist(core, state, begun, follows);
    if done.is_err() {
        // Where writing has ended a meta slot may be this one's already, and nobody
        // may write over its pages.
        if core.check_writable().is_ok() {
            core.checkpoint_pins.running.store(NONE, SeqCst);
        }
        return done;
    }
    finish(core, state, follows)?;
    drop(at_work);
    // Who found it at work asked for none, and may need another one.
    if let Some(wal) = core.wal() {
        wal.look_again();
    }
    Ok(())
}

/// Step 1. Returns S.
fn begin(core: &Core, state: &mut State, follows: Follows) -> Result<u64> {
    let begins_log = follows == Follows::Commits && state.pending.is_none();
    let wal = core.wal().filter(|_| begins_log);
    if let Some(wal) = wal {
        wal.prepare_switch().map_err(log_error)?;
    }
    let calm = core.calm();
    let commit = core.commit.lock();
    let seq = commit.head;
    core.checkpoint_pins.start(seq);
    if let Some(wal) = wal {
        match wal.switch(seq + 1) {
            Ok(old) => state.pending = Some(old),
            Err(error) => {
                core.checkpoint_pins.running.store(NONE, SeqCst);
                return Err(log_error(error));
            }
        }
    }
    drop((commit, calm));
    if wal.is_some() {
        core.log_length.begin(core.pool.waits.now());
    }
    Ok(seq)
}

/// Steps 2 to 5.
fn persist(core: &Core, state: &mut State, seq: u64, follows: Follows) -> Result<()> {
    core.wait_visible(seq)?;
    match reclaim::sweep(core) {
        // A dead subtree that cannot be read keeps its space; the live data must
        // still become durable.
        Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
        Err(_) => {}
        Ok(()) => dictionaries::retire(core),
    }
    let entries = write_trees(core, seq)?;
    if state.moves_down {
        dictionaries::move_down(core)?;
    }
    // What the trees' pages need was made before them.
    let named: Vec<dictionaries::Entry> = entries
        .iter()
        .flat_map(|entry| core.pool.dictionaries.of(entry.tree))
        .collect();
    let bytes = catalog::encode(&entries, &named);
    let catalog = write_blob(core, &bytes)?;
    let (free_map, end) = match write_free_map(core, state, seq, &named) {
        Ok(written) => written,
        Err(error) => {
            core.space.free(vec![catalog.extent]);
            return Err(error);
        }
    };
    let meta = Meta {
        page_size: core.pool.page_size() as u32,
        database: core.database,
        counter: state.counter + 1,
        checkpoint: seq + u64::from(planted(Mutation::CheckpointOtherSequence)),
        end,
        next_tree: core.next_tree.load(SeqCst),
        unsynced: core.options.durability == crate::Durability::Off,
        making: state.making,
        catalog: Some(catalog),
        free_map: Some(free_map),
    };
    let log = match follows {
        Follows::Commits => core.wal().and_then(|wal| wal.continuation()),
        Follows::Nothing => None,
    };
    write_meta(core, state, &meta, log)?;
    let old = [state.catalog, state.free_map];
    core.space
        .free(old.iter().flatten().map(|blob| blob.extent).collect());
    dictionaries::free_moved(core);
    state.seq = seq;
    state.counter = meta.counter;
    state.catalog = meta.catalog;
    state.free_map = meta.free_map;
    state.log = log;
    core.checkpoint_pins.cover(seq);
    core.checkpoint_pins.running.store(NONE, SeqCst);
    Ok(())
}

/// Step 3 for all trees. Returns the catalog's entries. A tree of few unwritten nodes is
/// written by itself, before those of many: what seldom changes shall not lie behind what
/// comes and goes, where it would keep the file from becoming shorter.
fn write_trees(core: &Core, seq: u64) -> Result<Vec<Entry>> {
    let mut many = collect::Ranks::default();
    let mut roots = Vec::new();
    for tree in core.all_trees() {
        let Some(root) = tree.0.versions.at(seq) else {
            continue;
        };
        if root.dropped {
            core.retire_tree(&tree, root.seq);
            continue;
        }
        let unwritten = collect::unwritten(core, root.node);
        train::prepare(core, unwritten.leaves())?;
        if unwritten.len() <= crew::portion_nodes(core) {
            core.crew.write(core, unwritten)?;
        } else {
            many.append(unwritten);
        }
        roots.push((tree, root));
    }
    core.crew.write(core, many)?;
    core.pool.balance();
    let entry = |(tree, root): (Tree, Root)| {
        let node = core.pool.resolved(root.node);
        if node.reference != root.node.reference {
            tree.0.versions.refine(root.node.reference, root.seq, node);
        }
        Entry {
            tree: tree.id().0,
            kind: tree.kind(),
            root: (!node.is_none()).then(|| (extent_of(node.reference), node.checksum())),
            count: root.count,
        }
    };
    Ok(roots.into_iter().map(entry).collect())
}

/// Writes bytes to an extent of their own.
fn write_blob(core: &Core, bytes: &[u8]) -> Result<Blob> {
    let extent = core.space.allocate(blob_units(bytes.len())?)?;
    match fill_blob(core, extent, bytes) {
        Ok(blob) => Ok(blob),
        Err(error) => {
            core.space.free(vec![extent]);
            Err(error)
        }
    }
}

fn blob_units(length: usize) -> Result<u32> {
    let units = length.div_ceil(codec::UNIT).max(1);
    if units > codec::UNITS_MAX as usize {
        return Err(Error::new(
            ErrorKind::Full,
            format!(
                "the catalog or free map has grown to {length} bytes, more than an extent holds"
            ),
        ));
    }
    Ok(units as u32)
}

pub(crate) fn fill_blob(core: &Core, extent: ExtentRef, bytes: &[u8]) -> Result<Blob> {
    let mut padded = bytes.to_vec();
    padded.resize(extent.byte_len(), 0);
    core.pool.file.write_at(&padded, extent.byte_offset())?;
    Ok(Blob {
        extent,
        checksum: codec::checksum(&padded),
        length: bytes.len() as u32,
    })
}

/// Step 4: the complement of what S reaches, the dictionaries its catalog names
/// included, and the map itself. Returns the map's place and the file's end.
fn write_free_map(
    core: &Core,
    state: &State,
    seq: u64,
    named: &[dictionaries::Entry],
) -> Result<(Blob, u64)> {
    core.pool.balance();
    // While this is held no dead extent is on its way from a list to the map.
    let reclaim = core.lock_reclaim();
    let mut free = reclaim.dead_extents(core, seq);
    let mut space = core.space.lock();
    free.extend(space.beyond(seq));
    free.extend(space.dictionaries_but(named));
    free.extend(
        [state.catalog, state.free_map]
            .iter()
            .flatten()
            .map(|blob| blob.extent),
    );
    let units = blob_units(space.map.encoded_len_max(free.len()))?;
    let extent = space.allocate(units)?;
    let mut bytes = Vec::new();
    let free = free.into_iter().map(Run::from);
    space.map.encode(free, [Run::from(extent)], &mut bytes);
    let end = space.map.end();
    drop(space);
    drop(reclaim);
    match fill_blob(core, extent, &bytes) {
        Ok(blob) => Ok((blob, end)),
        Err(error) => {
            core.space.free(vec![extent]);
            Err(error)
        }
    }
}

/// Step 5. Where it fails, writing has ended.
fn write_meta(
    core: &Core,
    state: &mut State,
    meta: &Meta,
    log: Option<Continuation>,
) -> Result<()> {
    let write = |slot: &[u8], offset| {
        let written = core.pool.file.write_at(slot, offset);
        written.map_err(|error| core.ended_by(error.into()))
    };
    if let Some(found) = state.distrusted.take() {
        write(&*found, meta::SLOT as u64)?;
    }
    if !planted(Mutation::SkipDataSync) {
        core.sync_file()?;
    }
    write(&mark::slot_a(meta, log), 0)?;
    core.sync_file()?;
    if !planted(Mutation::StaleMetaSlot) {
        write(&meta.encode(), meta::SLOT as u64)?;
        core.sync_file()?;
    }
    Ok(())
}

/// Step 6.
fn finish(core: &Core, state: &mut State, follows: Follows) -> Result<()> {
    if let (Some(wal), Some(old)) = (core.wal(), state.pending) {
        wal.recycle(old).map_err(log_error)?;
        state.pending = None;
    }
    reclaim::look_at_all(core);
    cut_tail(core)?;
    if follows == Follows::Commits {
        prepare_next(core);
    }
    Ok(())
}

/// Makes a generation of the log ready for the next checkpoint, if commits went on
/// during this one. Where commits are not synced that takes as long as writing out all
/// that the recycled one held, while those who commit need the room.
fn prepare_next(core: &Core) {
    if let Some(wal) = core.wal()
        && wal.bytes_since_switch() > 0
    {
        // What fails is tried again, and reported, where it is needed.
        let _ = wal.prepare_switch();
    }
}

/// Ends the file before the free run at its end, if there is one. The map stays
/// locked meanwhile: what is allocated later grows the file again.
fn cut_tail(core: &Core) -> Result<()> {
    let mut space = core.space.lock();
    let end = space.map.truncatable_end();
    if end < space.map.end() {
        core.pool.file.truncate(end * codec::UNIT as u64)?;
        space.map.truncate_to(end).map_err(|error| {
            Error::corrupt(format!("database disk image is malformed: {error}"))
        })?;
    }
    Ok(())
}

/// Reads a blob back.
pub(crate) fn read_blob(pool: &crate::cache::Pool, blob: Blob) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let absent = crate::cache::Absent {
        mismatch: None,
        extent: blob.extent,
        checksum: blob.checksum,
        level: None,
    };
    pool.read_image(absent, &mut bytes)?;
    bytes.truncate(blob.length as usize);
    Ok(bytes)
}
