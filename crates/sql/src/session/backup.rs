//! Copies of a whole database: into another one, or into a new file.
//!
//! A copy reads one snapshot, so what is written meanwhile is not in it and nobody waits
//! for it. It writes one transaction of the other database, which becomes bulk when it has
//! grown: its memory is bounded whatever its size, and others see nothing of it, or all.
//!
//! Numbers of trees are never used twice, so the copy's are others: rows of sqlite_schema
//! are written anew, and those of sqlite_sequence move to the places of the new tables.
//! All other trees are copied entry by entry, in their order. Families that are not SQL's
//! go along.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::{Disk, RealDisk};
use fulgurite_store::{
    Appending, Cursor, ErrorKind, Key, KeyKind, Making, Options, Seek, Suspended, Tree, TreeId, Txn,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Engine;
use super::engine::NUMBERS_FAMILY;
use crate::error::{Error, Result, code};
use crate::exec::ddl::{encode_row, schema_rows};
use crate::exec::dml::sequence;
use crate::schema::{SCHEMA_FAMILY, SEQUENCE, malformed};

/// The most that a file in the making takes of memory for its pages.
const CACHE_MAX: usize = 32 << 20;
/// Entries between two looks at whether the copy is to go on.
const ENTRIES_AT_ONCE: u64 = 1024;

/// A tree and its copy.
struct Pair {
    from: Tree,
    to: Tree,
}

/// A copy under way; see the module. Dropped before its end, it has done nothing.
pub struct Backup {
    source: Txn,
    target: Txn,
    pairs: Vec<Pair>,
    /// Where in the tree at hand, the last of `pairs`, it is.
    cursor: Option<Cursor>,
    /// What was read of it and is not written yet.
    suspended: Suspended,
    key: Vec<u8>,
    total: u64,
    left: u64,
    is_done: bool,
    /// What it failed with, for good.
    failure: Option<Error>,
}

impl Backup {
    /// Begins to replace all that is in the database `to` by what is in `from` now.
    /// Writers of `to` wait until the copy is done or dropped.
    ///
    /// # Errors
    /// `SQLITE_BUSY` where writers of `to` do not end for so long; what reading and writing
    /// may fail with.
    pub fn begin(from: &Engine, to: &Engine, busy_timeout: Duration) -> Result<Backup> {
        if from.store().ptr_eq(to.store()) {
            return Err(Error::sql("source and destination must be distinct"));
        }
        let mut target = to.store().txn();
        target.set_busy_timeout(busy_timeout);
        target.begin_immediate()?;
        clear(to, &mut target)?;
        let mut source = from.store().txn();
        source.begin_read()?;
        let mut pairs = Vec::new();
        copy_schema(from, to, &mut source, &mut target, &mut pairs)?;
        copy_families(to, &mut source, &mut target, &mut pairs)?;
        let mut total = 0;
        for pair in &pairs {
            total += source.count(&pair.from)?;
        }
        Ok(Backup {
            source,
            target,
            pairs,
            cursor: None,
            suspended: Suspended::default(),
            key: Vec::new(),
            total,
            left: total,
            is_done: false,
            failure: None,
        })
    }

    /// How many entries there are to copy: rows, and entries of indexes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many of them are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Goes on for at least so many bytes of keys and values; true once all is copied and
    /// durable. Now and then it asks whether it is to go on.
    ///
    /// # Errors
    /// `SQLITE_BUSY`, after which it can be called again; what else reading and writing may
    /// fail with, and what was answered: then it has done nothing, and says so again.
    pub fn step(&mut self, bytes: u64, go_on: impl FnMut() -> Result<()>) -> Result<bool> {
        if self.is_done {
            return Ok(true);
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let outcome = self.copy(bytes, go_on);
        if let Err(error) = &outcome
            && error.extended_code() != code::BUSY
        {
            self.failure = Some(error.clone());
            self.cursor = None;
            self.suspended = Suspended::default();
            self.target.rollback();
            self.source.rollback();
        }
        outcome
    }

    fn copy(&mut self, bytes: u64, mut go_on: impl FnMut() -> Result<()>) -> Result<bool> {
        let mut copied = 0;
        while copied < bytes {
            let Some(pair) = self.pairs.last() else {
                self.target.commit()?;
                self.source.rollback();
                self.is_done = true;
                return Ok(true);
            };
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                None => {
                    let mut cursor = self.source.cursor(&pair.from)?;
                    cursor.seek(Seek::First)?;
                    self.cursor.insert(cursor)
                }
            };
            let suspended = std::mem::take(&mut self.suspended);
            let mut entries = self.target.go_on_appending(&pair.to, suspended);
            let mut progress = Progress {
                key: &mut self.key,
                left: &mut self.left,
                copied: &mut copied,
            };
            let outcome = progress.copy(cursor, &mut entries, bytes, &mut go_on);
            let outcome = outcome.and_then(|()| match cursor.valid() {
                true => Ok(()),
                false => Ok(entries.finish()?),
            });
            self.suspended = entries.suspend();
            outcome?;
            if !cursor.valid() {
                self.cursor = None;
                self.pairs.pop();
            }
        }
        Ok(false)
    }
}

/// How far a copy has come.
struct Progress<'b> {
    key: &'b mut Vec<u8>,
    left: &'b mut u64,
    copied: &'b mut u64,
}

impl Progress<'_> {
    /// Copies entries until there is none left, or it is enough for one step.
    fn copy(
        &mut self,
        cursor: &mut Cursor,
        entries: &mut Appending<'_>,
        bytes: u64,
        go_on: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        while cursor.valid() && *self.copied < bytes {
            self.key.clear();
            let key = match cursor.kind() {
                KeyKind::Int => Key::Int(cursor.key_int()),
                KeyKind::Bytes => {
                    self.key.extend_from_slice(cursor.key_bytes()?);
                    Key::Bytes(self.key)
                }
            };
            let value = cursor.value()?;
            entries.insert(key, value)?;
            *self.copied += (size_of::<i64>() + self.key.len() + value.len()) as u64;
            cursor.next()?;
            *self.left = self.left.saturating_sub(1);
            if self.left.is_multiple_of(ENTRIES_AT_ONCE) {
                go_on()?;
            }
        }
        Ok(())
    }
}

/// Removes all that the database has. It may be replaced since it is damaged: what its schema
/// says wrong is passed over.
fn clear(engine: &Engine, txn: &mut Txn) -> Result<()> {
    let schema = engine.schema_tree();
    let rows = match schema_rows(txn.cursor(schema)?) {
        Err(error) if error.code() == code::CORRUPT => Vec::new(),
        rows => rows?,
    };
    let own = rows
        .iter()
        .flat_map(|(_, row)| [Some(row.root), row.key.map(|key| key.root)]);
    let mut dropped: FxHashSet<TreeId> = engine.named().iter().copied().collect();
    for root in own.flatten() {
        if let Some(tree) = tree_if_there(engine, txn, root)?
            && dropped.insert(tree.id())
        {
            txn.drop_tree(&tree)?;
        }
    }
    for (name, tree) in txn.families()? {
        if is_kept(&name) {
            empty(txn, &tree)?;
        } else {
            txn.drop_family(&name)?;
        }
    }
    Ok(())
}

/// Whether the engine holds the tree of that family for as long as it is open.
fn is_kept(family: &str) -> bool {
    family == SCHEMA_FAMILY || family == NUMBERS_FAMILY
}

fn empty(txn: &mut Txn, tree: &Tree) -> Result<()> {
    let mut cursor = txn.cursor(tree)?;
    let mut keys = Vec::new();
    let mut more = cursor.seek(Seek::First)?;
    while more {
        keys.push(cursor.key_int());
        more = cursor.next()?;
    }
    Ok(txn.delete_all(tree, &keys, |_| ())?)
}

/// The tree of a row's number, where the transaction sees one.
fn tree_if_there(engine: &Engine, txn: &mut Txn, root: i64) -> Result<Option<Tree>> {
    let id = u32::try_from(root).ok();
    let Some(tree) = id.and_then(|id| engine.store().tree(TreeId(id)).ok()) else {
        return Ok(None);
    };
    match txn.count(&tree) {
        Err(error) if error.kind() == ErrorKind::Misuse => Ok(None),
        count => Ok(count.map(|_| Some(tree))?),
    }
}

fn tree_of(engine: &Engine, source: &mut Txn, (name, root): (&str, i64)) -> Result<Tree> {
    let tree = tree_if_there(engine, source, root)?;
    tree.ok_or_else(|| malformed(name, format_args!("tree {root}, its own, is not there")))
}

/// Makes the trees of tables and indexes, and writes the rows that name them.
fn copy_schema(
    from: &Engine,
    to: &Engine,
    source: &mut Txn,
    target: &mut Txn,
    pairs: &mut Vec<Pair>,
) -> Result<()> {
    let mut numbers = FxHashMap::default();
    let mut stored = None;
    for (rowid, mut row) in schema_rows(source.cursor(from.schema_tree())?)? {
        let has_tree = ["table", "index"]
            .iter()
            .any(|kind| row.kind.eq_ignore_ascii_case(kind));
        if has_tree {
            let tree = tree_of(from, source, (&row.name, row.root))?;
            let copy = target.create_tree(tree.kind())?;
            numbers.insert(tree.id().0, copy.clone());
            row.root = i64::from(copy.id().0);
            let pair = Pair {
                from: tree,
                to: copy,
            };
            let is_table =
                row.kind.eq_ignore_ascii_case("table") && pair.from.kind() == KeyKind::Int;
            match is_table && row.name.eq_ignore_ascii_case(SEQUENCE) {
                true => stored = Some(pair),
                false => pairs.push(pair),
            }
        }
        if let Some(key) = &mut row.key {
            let from = tree_of(from, source, (&row.name, key.root))?;
            let to = target.create_tree(from.kind())?;
            key.root = i64::from(to.id().0);
            pairs.push(Pair { from, to });
        }
        target.put(to.schema_tree(), Key::Int(rowid), &encode_row(&row)?)?;
    }
    match stored {
        None => Ok(()),
        Some(Pair { from, to }) => sequence::copy(source, &from, target, &to, &numbers),
    }
}

fn copy_families(
    to: &Engine,
    source: &mut Txn,
    target: &mut Txn,
    pairs: &mut Vec<Pair>,
) -> Result<()> {
    for (name, from) in source.families()? {
        let to = match name.as_str() {
            SCHEMA_FAMILY => continue,
            NUMBERS_FAMILY => to.numbers().cloned(),
            _ => Some(target.create_family(&name, from.kind())?),
        };
        pairs.extend(to.map(|to| Pair { from, to }));
    }
    Ok(())
}

/// Copies the database into a new file, which is there once it is whole and durable, or not
/// at all. `each` is told after every so many bytes.
///
/// # Errors
/// A file that is there already, unless it is empty; what reading and writing may fail with;
/// what `each` answers.
pub fn copy_to_file(
    source: &Engine,
    path: &Path,
    bytes: u64,
    mut each: impl FnMut(&Backup) -> Result<()>,
    mut go_on: impl FnMut() -> Result<()>,
) -> Result<()> {
    let store = source.store();
    // A database in memory has files of the disk that everybody else uses.
    let disk: Arc<dyn Disk> = match store.path() {
        Some(_) => store.disk().clone(),
        None => Arc::new(RealDisk),
    };
    let options = Options {
        page_size: u32::try_from(store.page_size()).unwrap_or(u32::MAX),
        cache_bytes: store.cache_bytes().min(CACHE_MAX),
        ..store.options().clone()
    };
    let busy_timeout = options.busy_timeout;
    let making = Making::begin(disk, path, options)?;
    let mut fill = || {
        let target = Engine::open(making.store()?.clone())?;
        let mut backup = Backup::begin(source, &target, busy_timeout)?;
        while !backup.step(bytes, &mut go_on)? {
            each(&backup)?;
        }
        each(&backup)
    };
    fill().map_err(|error| making.failure().map_or(error, Error::from))?;
    Ok(making.publish()?)
}
