//! The databases that a connection has open beside its main one, and how a statement that
//! uses them begins.

use std::path::Path;
use std::sync::Arc;

use fulgurite_store::{Isolation, Options, Store, Tree, Txn, TxnContext, TxnState};

use super::program::Program;
use super::state::{Base, State};
use super::{Engine, Session};
use crate::error::{Error, Result};
use crate::exec::schema_edits::{Edited, SchemaEdits};
use crate::exec::txns::{begin_after, begin_or_read};
use crate::plan::physical::SchemaPlace;
use crate::schema::{Catalog, MAIN, Schema, TEMP};

/// The most that the temporary database keeps in memory, unless the main one keeps less.
const TEMP_CACHE_MAX: usize = 16 << 20;

/// A database beside the main one.
pub struct Database {
    /// What statements call it.
    pub name: Arc<str>,
    pub engine: Engine,
    /// No other connection can have it open.
    pub is_private: bool,
    /// Shared by each [`Held`].
    pub holders: Arc<()>,
}

/// Keeps a database from being detached for as long as it is there: a handle of a blob in it
/// has one, and a copy of it.
pub struct Held {
    _of: Arc<()>,
}

impl Database {
    /// Keeps it from being detached.
    pub fn hold(&self) -> Held {
        Held {
            _of: Arc::clone(&self.holders),
        }
    }

    /// Whether anybody keeps it from being detached.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.holders) > 1
    }

    pub fn store_number(&self) -> u64 {
        self.engine.store().number()
    }
}

/// The version of the main schema, and those of the others by their stores.
pub type Versions = (u64, Vec<(u64, u64)>);

/// A database that a statement uses.
struct Used {
    store: u64,
    is_private: bool,
}

/// The schema that a transaction sees; the newest one, if none is under way.
fn schema_in(engine: &Engine, txn: &mut Txn) -> Result<Arc<Schema>> {
    if txn.state() != TxnState::Idle {
        return engine.schema(txn);
    }
    if let Some(newest) = engine.newest_schema() {
        return Ok(newest);
    }
    // A snapshot could be noticed by connections that write, so only where there is no
    // other way.
    txn.begin_read()?;
    let schema = engine.schema(txn);
    txn.rollback();
    schema
}

/// The stamp of a database's schema as [`schema_in`] would find it.
fn version_in(engine: &Engine, txn: &mut Txn) -> Result<u64> {
    let tree = engine.schema_tree();
    if txn.state() != TxnState::Idle {
        return Ok(txn.stamp(tree)?);
    }
    if let Some(version) = engine.store().stamp(tree) {
        return Ok(version);
    }
    txn.begin_read()?;
    let version = txn.stamp(tree);
    txn.rollback();
    Ok(version?)
}

impl Session {
    /// The database of a name, in any case, and what keeps it from being detached: the main
    /// one never is. The temporary one is made if there is none yet.
    ///
    /// # Errors
    /// `unknown database`; what making one may fail with.
    pub fn database(&self, name: &str) -> Result<(Engine, Option<Held>)> {
        if name.eq_ignore_ascii_case(MAIN) {
            return Ok((self.0.engine.clone(), None));
        }
        let mut state = self.0.state()?;
        if name.eq_ignore_ascii_case(TEMP) && !state.has_temp() {
            state.open_temp(&self.0.engine)?;
        }
        let found = state.named(name);
        let found = found.map(|it| (it.engine.clone(), Some(it.hold())));
        found.ok_or_else(|| Error::sql(format!("unknown database {name}")))
    }

    /// Whether a database, or any of them, has a table or view of this name.
    ///
    /// # Errors
    /// A schema that cannot be read.
    pub fn has_table(&self, database: Option<&str>, name: &str) -> Result<bool> {
        let mut state = self.0.state()?;
        let catalog = state.catalog(&self.0.engine)?;
        let key = name.to_ascii_lowercase();
        let in_temp = database.is_some_and(|asked| asked.eq_ignore_ascii_case(TEMP));
        match key.as_str() {
            // There is one of temporary tables before there are any.
            "sqlite_schema" | "sqlite_master" if in_temp => return Ok(true),
            "sqlite_temp_schema" | "sqlite_temp_master" if in_temp || database.is_none() => {
                return Ok(true);
            }
            _ => {}
        }
        let is_asked = |schema: &&Schema| {
            let of = catalog.name_of(schema);
            database.is_none_or(|asked| asked.eq_ignore_ascii_case(of))
        };
        let mut asked = catalog.in_order().filter(is_asked);
        Ok(asked.any(|schema| schema.holds(&key)))
    }

    /// Whether the database of a name may only be read; None where there is none.
    pub fn is_read_only(&self, name: &str) -> Option<bool> {
        let is_read_only = |engine: &Engine| engine.store().is_read_only();
        if name.eq_ignore_ascii_case(MAIN) {
            return Some(is_read_only(&self.0.engine));
        }
        let found = |state: &mut State| state.named(name).map(|it| is_read_only(&it.engine));
        let is_temp = name.eq_ignore_ascii_case(TEMP);
        self.read(None, found).or(is_temp.then_some(false))
    }

    /// Whether the transaction has written to the database of a name, and whether it or a
    /// statement has read it; None where there is none.
    pub fn uses_of(&self, name: &str) -> Option<(bool, bool)> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.read(None, |state| {
            let is_open = !state.is_autocommit();
            let store = state.named(name).map(Database::store_number);
            match store {
                _ if is(MAIN) => {
                    let begun = state.explicit.as_ref().is_some_and(|it| it.begun);
                    let has_written = is_open && state.txn.main.has_written();
                    Some((has_written, begun || state.running > 0))
                }
                None => is(TEMP).then_some((false, false)),
                Some(store) => {
                    let has_written = is_open && state.txn.in_store(store).has_written();
                    Some((has_written, state.txn.is_begun(store)))
                }
            }
        })
    }

    /// Whether the transaction keeps the other writers of a database out, of the main one
    /// where none is named: it may not have written yet.
    pub fn excludes_writers(&self, name: Option<&str>) -> bool {
        self.read(false, |state| {
            let txn = match name.filter(|name| !name.eq_ignore_ascii_case(MAIN)) {
                None => &state.txn.main,
                Some(name) => match state.named(name).map(Database::store_number) {
                    Some(store) => state.txn.in_store(store),
                    None => return false,
                },
            };
            state.explicit.is_some() && txn.state() == TxnState::Immediate
        })
    }

    /// What the database of a number is called, of which that of the main one is 0 and
    /// that of the temporary one 1.
    pub fn database_name(&self, number: usize) -> Option<Arc<str>> {
        match number {
            0 => Some(MAIN.into()),
            1 => Some(TEMP.into()),
            _ => self.read(None, |state| {
                let mut attached = state.databases.iter().filter(|it| &*it.name != TEMP);
                attached.nth(number - 2).map(|it| Arc::clone(&it.name))
            }),
        }
    }

    /// What the database in a store is called.
    pub fn database_in(&self, store: u64) -> Arc<str> {
        self.read(MAIN.into(), |state| {
            let found = state.beside(store);
            found.map_or_else(|| MAIN.into(), |it| Arc::clone(&it.name))
        })
    }
}

impl State {
    /// The database of a name beside the main one.
    pub fn named(&self, name: &str) -> Option<&Database> {
        let is_it = |it: &&Database| it.name.eq_ignore_ascii_case(name);
        self.databases.iter().find(is_it)
    }

    /// Whether there is a temporary database by now.
    pub fn has_temp(&self) -> bool {
        self.named(TEMP).is_some()
    }

    /// The schemas that a statement may change, as the transaction sees them.
    pub fn schemas_of(&mut self, place: &SchemaPlace, main: &Engine) -> Result<SchemaEdits> {
        let mut schemas = Vec::new();
        for tree in place.trees() {
            let store = tree.store_number();
            let engine = self.engine_in(store).unwrap_or(main).clone();
            schemas.push(engine.schema(self.txn.in_store(store))?);
        }
        Ok(SchemaEdits::of(schemas))
    }

    /// Has what a statement made of schemas be known, to who uses them next.
    pub fn know_changed(&mut self, edits: SchemaEdits, main: &Engine) -> Result<()> {
        for Edited { schema, rows } in edits.changed() {
            let store = schema.tree().store_number();
            let engine = self.engine_in(store).unwrap_or(main).clone();
            let txn = self.txn.in_store(store);
            let version = engine.schema_changed(&schema, &rows, txn)?;
            let is_other = |(made, _): &(Engine, u64)| made.store().number() != store;
            self.made_schemas.retain(is_other);
            self.made_schemas.push((engine, version));
        }
        Ok(())
    }

    /// What names can mean now.
    pub fn catalog(&mut self, engine: &Engine) -> Result<Catalog> {
        let mut catalog = Catalog::new(schema_in(engine, &mut self.txn.main)?);
        for database in &self.databases {
            let txn = self.txn.in_store(database.store_number());
            catalog.add(&database.name, schema_in(&database.engine, txn)?);
        }
        Ok(catalog)
    }

    /// Reads the schemas beside the main one that are not known, before a transaction begins in
    /// all databases: those in which it looks nothing up have no part in it.
    pub fn know_schemas_beside(&mut self) -> Result<()> {
        for database in &self.databases {
            let txn = self.txn.in_store(database.store_number());
            schema_in(&database.engine, txn)?;
        }
        Ok(())
    }

    /// Whether there is no database beside the main one, as there was none when a plan was
    /// made.
    #[inline]
    pub fn is_alone(&self, versions: &[(u64, u64)]) -> bool {
        self.databases.is_empty() && versions.is_empty()
    }

    /// Whether the databases beside the main one have the schemas of which a plan was made.
    pub fn has_beside(&mut self, versions: &[(u64, u64)]) -> Result<bool> {
        if self.databases.len() != versions.len() {
            return Ok(false);
        }
        for (database, (store, version)) in self.databases.iter().zip(versions) {
            let number = database.store_number();
            let txn = self.txn.in_store(number);
            if number != *store || version_in(&database.engine, txn)? != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The versions that the schemas have now, where they were others when a text was compiled
    /// and it names nothing in which they differ.
    pub fn versions_if_untouched(
        &mut self,
        engine: &Engine,
        (main, beside): (u64, &[(u64, u64)]),
        text: &str,
    ) -> Result<Option<Versions>> {
        let main_now = version_in(engine, &mut self.txn.main)?;
        let is_plain = main == main_now || engine.is_used_by_name(main_now);
        if beside.len() != self.databases.len()
            || !is_plain
            || !engine.leaves_alone(main, main_now, text)
        {
            return Ok(None);
        }
        let mut now = Vec::with_capacity(beside.len());
        for (database, (store, before)) in self.databases.iter().zip(beside) {
            let (number, engine) = (database.store_number(), &database.engine);
            let version = version_in(engine, self.txn.in_store(number))?;
            // What is temporary may stand for what is anywhere.
            let changes = *before != version || &*database.name == TEMP;
            if number != *store
                || changes && !engine.is_used_by_name(version)
                || !engine.leaves_alone(*before, version, text)
            {
                return Ok(None);
            }
            now.push((number, version));
        }
        Ok(Some((main_now, now)))
    }

    /// Makes the temporary database, which is gone with the connection. What it has no room
    /// for in memory is beside the main database, or in memory if that is.
    pub fn open_temp(&mut self, engine: &Engine) -> Result<()> {
        let main = engine.store();
        let options = main.options();
        let options = Options {
            cache_bytes: options.cache_bytes.min(TEMP_CACHE_MAX),
            page_size: options.page_size,
            compression: options.compression,
            driver: options.driver.clone(),
            ..Options::default()
        };
        let near = main.path().unwrap_or(Path::new("memory"));
        let store = Store::temporary(Arc::clone(main.disk()), near, options)?;
        self.txn.open(0, &store, true);
        let database = Database {
            name: TEMP.into(),
            engine: Engine::open_temporary(store)?,
            is_private: true,
            holders: Arc::default(),
        };
        self.databases.insert(0, database);
        self.tell_names();
        Ok(())
    }

    /// What the databases beside the main one are called, by their stores.
    pub fn names_beside(&self) -> Vec<(u64, Arc<str>)> {
        let databases = self.databases.iter();
        let names = databases.map(|it| (it.store_number(), Arc::clone(&it.name)));
        names.collect()
    }

    /// Has the hooks know which databases there are.
    pub fn tell_names(&mut self) {
        let names = self.names_beside();
        if let Some(hooks) = &mut self.functions.hooks {
            Arc::make_mut(hooks).databases = names;
        }
    }

    /// The database in this store, if it is not the main one.
    fn beside(&self, store: u64) -> Option<&Database> {
        let mut all = self.databases.iter();
        all.find(|database| database.store_number() == store)
    }

    /// The engine of the database in this store, if it is not the main one.
    pub fn engine_in(&self, store: u64) -> Option<&Engine> {
        self.beside(store).map(|database| &database.engine)
    }

    /// The engine of the database in this store, or of all.
    pub fn engines(&self, main: &Engine, store: Option<u64>) -> Vec<Engine> {
        let others = self.databases.iter().map(|database| &database.engine);
        let all = [main].into_iter().chain(others);
        let asked = all.filter(|it| store.is_none_or(|store| it.store().number() == store));
        asked.cloned().collect()
    }

    /// Makes possible to write to a tree; true: the caller commits.
    pub fn start_writing_to(&mut self, tree: &Tree) -> Result<bool> {
        self.check_writes()?;
        let (store, main) = (tree.store_number(), self.main_store());
        if let Some(explicit) = &mut self.explicit {
            explicit.writes = true;
            self.start_explicit(Base::Acknowledged)?;
            self.join(&[store])?;
            self.txn.check_writes([tree])?;
            // What may be refused to a large transaction is refused before anything is written.
            self.txn.claim(tree)?;
            return Ok(false);
        }
        if store != main {
            self.txn.main.begin_read()?;
        }
        let begun = self.txn.in_store(store).begin_statement(&[tree]);
        self.or_end(begun)?;
        Ok(true)
    }

    /// Makes these databases ready to be read, and in an explicit transaction to be written,
    /// unless they are.
    #[cold]
    pub fn join(&mut self, stores: &[u64]) -> Result<()> {
        for database in &self.databases {
            let store = database.store_number();
            if !stores.contains(&store) {
                continue;
            }
            let is_begun = self.txn.is_begun(store);
            let Some(explicit) = &mut self.explicit else {
                if !is_begun {
                    self.txn.in_store(store).begin_read()?;
                }
                continue;
            };
            if !is_begun {
                // Who is alone has nobody to depend on.
                let isolation = match database.is_private {
                    true => Isolation::Snapshot,
                    false => explicit.isolation,
                };
                let places = explicit.savepoints.iter_mut();
                let marks = places.filter_map(|place| place.savepoint.as_mut());
                self.txn.join(store, isolation, marks)?;
            }
            let txn = self.txn.in_store(store);
            if !database.is_private && txn.state() != TxnState::Read {
                txn.rely_on(database.engine.schema_tree())?;
            }
        }
        match self.explicit.is_some() {
            true => Ok(()),
            false => Ok(self.txn.read_together(|store| stores.contains(&store))?),
        }
    }

    /// Begins an autocommitted statement that uses several databases: it writes to some, and
    /// only reads the others. Where it writes to what others use it keeps them from what it
    /// reads, too, so that it cannot lose; if that is in several files, from all of each.
    #[cold]
    pub fn start_several(&mut self, program: &Program) -> Result<()> {
        let is_written = |store: u64| {
            let mut writes = program.plan.writes.iter();
            writes.any(|tree| tree.store_number() == store)
        };
        let used = self.in_order(&program.stores);
        let of_others = used
            .iter()
            .filter(|it| !it.is_private && is_written(it.store));
        let files = of_others.count();
        let (mut rest, mut locked) = (Vec::new(), 0);
        for Used { store, is_private } in used {
            let is_in = |tree: &&Tree| tree.store_number() == store;
            let trees: Vec<&Tree> = program.trees.iter().filter(is_in).collect();
            let begin =
                |txn: &mut TxnContext| begin_after(locked, txn, |txn| txn.begin_statement(&trees));
            let txn = self.txn.in_store(store);
            let begun = match is_written(store) {
                true if files > 1 && !is_private => self.begin_to_rely_on(store, |txn| {
                    begin_after(locked, txn, TxnContext::begin_immediate)
                }),
                true => begin(txn),
                false if files > 0 && !is_private && !trees.is_empty() => begin_or_read(txn, begin),
                false => {
                    rest.push(store);
                    continue;
                }
            };
            self.or_end(begun)?;
            locked += usize::from(!is_private);
        }
        self.begin_rest(&rest, &program.stores)
    }

    /// Begins to read these databases, where others are locked by now: those that are used as
    /// they were at one moment after that, so that of a commit that was waited for all is
    /// seen.
    fn begin_rest(&mut self, rest: &[u64], used: &[u64]) -> Result<()> {
        let mut stores = rest.iter();
        let begun = stores.try_for_each(|store| self.txn.in_store(*store).begin_read());
        self.or_end(begun)?;
        match rest.is_empty() {
            true => Ok(()),
            false => {
                let together = self.txn.read_together(|store| used.contains(&store));
                self.or_end(together)
            }
        }
    }

    /// Whether a change of the schema is of what only this connection has, and tells nobody of
    /// what it reads before it is done: in an IMMEDIATE transaction what it was told is
    /// confirmed then, as that of a statement that writes rows.
    pub fn is_change_ahead(&self, program: &Program) -> bool {
        let is_private = |tree: &Tree| {
            let of = self.beside(tree.store_number());
            of.is_some_and(|database| database.is_private)
        };
        let place = program.plan.place.as_ref();
        place.is_some_and(|place| place.trees().all(is_private))
            && program.base() == Base::Published
            && self.functions.hooks.is_none()
    }

    /// Begins a change of the schema of a database by a program; true: the caller commits.
    pub fn start_change(&mut self, place: &SchemaPlace, program: &Program) -> Result<bool> {
        let main = self.main_store();
        let of_main = place.tree.store_number() == main;
        if let Some(explicit) = &mut self.explicit {
            explicit.writes = true;
            match of_main {
                true => self.start_explicit_change()?,
                false => {
                    let base = match self.is_change_ahead(program) {
                        true => Base::Published,
                        false => Base::Acknowledged,
                    };
                    self.start_explicit(base)?;
                    self.make_deferred()?;
                }
            }
            self.join(&program.stores)?;
            self.txn.check_writes(place.trees())?;
            let mut changed = place.trees();
            if changed.any(|tree| self.shared(tree.store_number()).is_some()) {
                self.txn.exclude_writers()?;
            }
            return Ok(false);
        }
        let is_changed = |store: u64| {
            let mut changed = place.trees();
            changed.any(|tree| tree.store_number() == store)
        };
        let used = self.in_order(&program.stores);
        let of_others = used.iter().any(|it| !it.is_private && is_changed(it.store));
        let (mut rest, mut locked) = (Vec::new(), 0);
        for Used { store, is_private } in used {
            let reads = program
                .trees
                .iter()
                .any(|tree| tree.store_number() == store);
            let begin =
                |txn: &mut TxnContext| begin_after(locked, txn, TxnContext::begin_immediate);
            let begun = match is_changed(store) {
                true => self.begin_to_rely_on(store, |txn| begin(txn)),
                false if of_others && reads && !is_private => {
                    self.begin_to_rely_on(store, |txn| begin_or_read(txn, begin))
                }
                false => {
                    rest.push(store);
                    continue;
                }
            };
            self.or_end(begun)?;
            locked += usize::from(!is_private);
        }
        self.begin_rest(&rest, &program.stores)?;
        Ok(true)
    }

    /// The main database and these, in the order in which locks are taken.
    fn in_order(&self, stores: &[u64]) -> Vec<Used> {
        let main = self.main_store();
        let mut all: Vec<Used> = [main]
            .iter()
            .chain(stores.iter().filter(|store| **store != main))
            .map(|store| Used {
                store: *store,
                is_private: self.beside(*store).is_some_and(|it| it.is_private),
            })
            .collect();
        all.sort_unstable_by_key(|it| it.store);
        all
    }

    /// Begins what depends on the schema of the database in this store, whatever else of
    /// it is read.
    fn begin_to_rely_on(
        &mut self,
        store: u64,
        begin: impl FnOnce(&mut Txn) -> fulgurite_store::Result<()>,
    ) -> fulgurite_store::Result<()> {
        let schema = match self.beside(store) {
            Some(database) => database.engine.schema_tree().clone(),
            None => self.schema_tree.clone(),
        };
        let txn = self.txn.in_store(store);
        begin(txn)?;
        txn.rely_on(&schema)
    }

    /// The database in this store, if others may use it and it is not the main one.
    fn shared(&self, store: u64) -> Option<&Database> {
        self.beside(store).filter(|database| !database.is_private)
    }

    /// Where a transaction could not begin, none has.
    pub(super) fn or_end(&mut self, begun: fulgurite_store::Result<()>) -> Result<()> {
        begun.map_err(|error| {
            self.txn.rollback();
            Error::from(error)
        })
    }
}
