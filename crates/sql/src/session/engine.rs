//! One open database: its store, and the schema that was read from it last.

use std::sync::{Arc, Weak};

use fulgurite_store::{ErrorKind, KeyKind, Store, Tree, TreeId, Txn, TxnContext};
use parking_lot::Mutex;

use super::Session;
use super::attach::{Locate, Target, locate};
use super::estimates::Samples;
use super::steps::Steps;
use crate::error::{Error, Result, code};
use crate::exec::ddl::schema_rows;
use crate::exec::memory::{MEMORY_DEFAULT, Memory};
use crate::schema::{RowChanges, SCHEMA_FAMILY, Schema};

/// The family that holds the numbers of `PRAGMA user_version` and the like.
pub(super) const NUMBERS_FAMILY: &str = "fulgurite_numbers";

struct Inner {
    store: Store,
    schema_tree: Tree,
    /// Numbers that belong to the database: `PRAGMA user_version` and the like.
    /// None where it was made without and is open for reading only.
    numbers: Option<Tree>,
    /// Trees that had names when it was opened: none of a table or index.
    named: Arc<[TreeId]>,
    /// The schemas that are known: who sees another version makes that one, which is kept
    /// instead.
    known: Arc<Mutex<Known>>,
    /// It is a connection's temporary database.
    is_temp: bool,
    /// What the names of files in ATTACH mean.
    locate: Locate,
    /// What is known of its indexes.
    samples: Samples,
}

/// Schemas by what they belong to, so that who changes the schema, and who uses the one that
/// is committed meanwhile, do not keep each other from theirs.
#[derive(Default)]
struct Known {
    /// That of a commit, mostly of the newest.
    committed: Option<Arc<Schema>>,
    /// That of a transaction under way which has changed it.
    private: Option<Arc<Schema>>,
    /// What led to them.
    steps: Steps,
}

impl Known {
    /// Those of a store: who opens a file that the process has open, by another handle, knows
    /// what the others know.
    fn of(store: &Store) -> Arc<Mutex<Known>> {
        static ALL: Mutex<Vec<(u64, Weak<Mutex<Known>>)>> = Mutex::new(Vec::new());
        let mut all = ALL.lock();
        all.retain(|(_, known)| known.strong_count() > 0);
        let mut of_store = all.iter().filter(|(of, _)| *of == store.number());
        if let Some(known) = of_store.find_map(|(_, known)| known.upgrade()) {
            return known;
        }
        let known = Arc::default();
        all.push((store.number(), Arc::downgrade(&known)));
        known
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.committed.iter().chain(&self.private)
    }

    fn keep(&mut self, schema: Arc<Schema>) {
        match TxnContext::is_private(schema.version()) {
            true => self.private = Some(schema),
            false => self.committed = Some(schema),
        }
    }
}

/// One open database. Clones are the same one.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

impl Engine {
    /// Over a store, whose schema tree is created if it is new.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(store: Store) -> Result<Engine> {
        Self::new(store, false, locate)
    }

    /// As [`open`](Self::open); `locate` tells what the names of files in ATTACH mean.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open_with(store: Store, locate: Locate) -> Result<Engine> {
        Self::new(store, false, locate)
    }

    /// The same over the store of a connection's temporary database.
    pub(super) fn open_temporary(store: Store) -> Result<Engine> {
        Self::new(store, true, locate)
    }

    fn new(store: Store, is_temp: bool, locate: Locate) -> Result<Engine> {
        // Whoever comes first makes them, be it one who will only read: another one may be
        // making the file.
        let family = |name| match store.family(name)? {
            None => match store.provide_family(name, KeyKind::Int) {
                Err(error) if error.kind() == ErrorKind::ReadOnly => Ok(None),
                made => made.map(Some),
            },
            found => Ok(found),
        };
        let schema_tree = family(SCHEMA_FAMILY)?.ok_or_else(|| {
            Error::new(code::CANTOPEN, "unable to open database file").with_hint(
                "the file has no schema yet, and is opened for reading only: open it once to write",
            )
        })?;
        let numbers = family(NUMBERS_FAMILY)?;
        let named = store.named_trees()?;
        for tree in numbers.iter().chain([&schema_tree]) {
            if tree.kind() != KeyKind::Int
                || named.iter().filter(|it| **it == tree.id()).count() > 1
            {
                return Err(Error::corrupt(
                    "a family's tree is of another kind, or another's, too",
                ));
            }
        }
        let known = Known::of(&store);
        Ok(Engine(Arc::new(Inner {
            store,
            schema_tree,
            numbers,
            named: named.into(),
            known,
            is_temp,
            locate,
            samples: Samples::default(),
        })))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// A new connection.
    pub fn session(&self) -> Session {
        Session::new(self)
    }

    /// The tree of sqlite_schema.
    pub(super) fn schema_tree(&self) -> &Tree {
        &self.0.schema_tree
    }

    /// The tree of the numbers that belong to the database.
    pub(super) fn numbers(&self) -> Option<&Tree> {
        self.0.numbers.as_ref()
    }

    /// Trees that had names when it was opened.
    pub(super) fn named(&self) -> &[TreeId] {
        &self.0.named
    }

    /// What the name of a file in ATTACH means.
    pub(super) fn locate(&self, name: &str) -> Result<Target> {
        (self.0.locate)(name)
    }

    /// What tells that.
    pub(super) fn locates(&self) -> Locate {
        self.0.locate
    }

    /// What is known of the indexes.
    pub(super) fn samples(&self) -> &Samples {
        &self.0.samples
    }

    /// A memory budget for a connection.
    pub(super) fn memory(&self) -> Memory {
        let store = &self.0.store;
        Memory::beside(store, MEMORY_DEFAULT.min(store.cache_bytes() / 4))
    }

    /// The schema that whoever began to read now would see; None where only reading
    /// it would tell.
    pub(super) fn newest_schema(&self) -> Option<Arc<Schema>> {
        let version = self.0.store.stamp(&self.0.schema_tree)?;
        self.known_schema(version)
    }

    fn known_schema(&self, version: u64) -> Option<Arc<Schema>> {
        let known = self.0.known.lock();
        let mut all = known.all();
        all.find(|schema| schema.version() == version).cloned()
    }

    /// The schema as the transaction sees it.
    pub(super) fn schema(&self, txn: &mut Txn) -> Result<Arc<Schema>> {
        let version = txn.stamp(&self.0.schema_tree)?;
        if let Some(known) = self.known_schema(version) {
            return Ok(known);
        }
        let rows = schema_rows(txn.cursor(&self.0.schema_tree)?)?;
        // What the rows have in common with those of another version is parsed already.
        let other = {
            let known = self.0.known.lock();
            known.private.as_ref().or(known.committed.as_ref()).cloned()
        };
        let schema = Arc::new(match other {
            Some(other) => other.with_rows(version, rows),
            // By the handle of a context: what is kept for all keeps no connection's contexts.
            None => Schema::new(
                txn.store().clone(),
                self.0.schema_tree.clone(),
                version,
                self.0.is_temp,
                rows,
                &self.0.named,
            ),
        });
        self.0.known.lock().keep(Arc::clone(&schema));
        Ok(schema)
    }

    /// A statement has made of a schema what the transaction sees now. Returns its version.
    pub(super) fn schema_changed(
        &self,
        schema: &Schema,
        rows: &RowChanges,
        txn: &mut Txn,
    ) -> Result<u64> {
        let version = txn.stamp(&self.0.schema_tree)?;
        let changed = schema.changed(version, rows);
        debug_assert!({
            let stored = schema_rows(txn.cursor_to_estimate(&self.0.schema_tree)?)?;
            let stored = stored.iter().map(|(rowid, row)| (*rowid, row));
            stored.eq(changed.placed_rows().map(|(rowid, row)| (rowid, &**row)))
        });
        let mut known = self.0.known.lock();
        known.steps.changed(schema, rows, version);
        known.keep(Arc::new(changed));
        Ok(version)
    }

    /// Whether a text, in lower case, means the same by two versions of the schema.
    pub(super) fn leaves_alone(&self, before: u64, now: u64, text: &str) -> bool {
        before == now || self.0.known.lock().steps.leave_alone(before, now, text)
    }

    /// Whether it is known of a version of the schema that who uses something names it.
    pub(super) fn is_used_by_name(&self, version: u64) -> bool {
        let schema = self.known_schema(version);
        schema.is_some_and(|schema| schema.is_used_by_name())
    }

    /// What a transaction has made of the schema is committed, as this version.
    pub(super) fn schema_committed(&self, private: u64, version: u64) {
        let mut known = self.0.known.lock();
        let made = known.private.take_if(|schema| schema.version() == private);
        if let Some(made) = made {
            known.steps.committed(private, version);
            let newest = known.committed.as_ref();
            if newest.is_none_or(|newest| newest.version() < version) {
                known.committed = Some(Arc::new(made.with_version(version)));
            }
        }
    }
}
