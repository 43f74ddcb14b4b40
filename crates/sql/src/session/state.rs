//! A connection's state: its transaction, its settings, and what functions ask for.
//!
//! BEGIN begins no transaction of the store, unless it is IMMEDIATE: the first statement
//! does that needs one. So a connection that has said BEGIN and waits pins no snapshot.

use std::sync::Arc;

use fulgurite_store::{Isolation, Tree, TxnState};

use super::busy::Busy;
use super::databases::Database;
use super::program::Program;
use super::{Engine, conflict, synchronous};
use crate::error::{Error, Result, code};
use crate::exec::dml::{Counters, Deferred};
use crate::exec::memory::Memory;
use crate::exec::txns::{Mark, Txns};
use crate::func;
use crate::func::user::UserCode;
use crate::plan::Settings;

/// The settings of a new connection.
const SETTINGS: Settings = Settings {
    foreign_keys: false,
    recursive_triggers: false,
    case_sensitive_like: false,
    triggers: true,
    distrusts_schema: false,
    user: UserCode::NONE,
};

/// How much of what an IMMEDIATE transaction builds on has to be acknowledged before a
/// statement runs: see [`TxnContext::begin_immediate_ahead`].
///
/// [`TxnContext::begin_immediate_ahead`]: fulgurite_store::TxnContext::begin_immediate_ahead
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Nothing: it tells of nothing before that is confirmed.
    Published,
    /// All: it tells somebody of what it reads as it runs.
    Acknowledged,
}

/// An explicit transaction, from BEGIN or SAVEPOINT to its end.
pub struct Explicit {
    /// The store's transaction has begun: it does with the first statement.
    pub begun: bool,
    /// A statement that writes has begun in it.
    pub writes: bool,
    /// A SAVEPOINT began it, so that its RELEASE commits.
    pub by_savepoint: bool,
    /// What it may observe: as the connection was set when it began.
    pub isolation: Isolation,
    /// Innermost last; a place is taken when the store's transaction begins.
    pub savepoints: Vec<Place>,
}

/// A SAVEPOINT: where to go back to.
pub struct Place {
    /// As written.
    pub name: String,
    /// The places in the stores' transactions, once these have begun.
    pub savepoint: Option<Mark>,
    /// Rows without their parent.
    pub counters: Counters,
}

/// See the module.
pub struct State {
    /// The transaction contexts, reused.
    pub txn: Txns,
    /// The databases beside the main one, in the order of their contexts.
    pub databases: Vec<Database>,
    /// The explicit transaction.
    pub explicit: Option<Explicit>,
    /// What functions ask for: changes, last rowid, random numbers.
    pub functions: func::Context,
    /// What statements may buffer.
    pub memory: Memory,
    /// Statements between their first step and their end.
    pub running: usize,
    /// Counts what may have changed what the connection sees.
    pub changed: u64,
    /// Index entries that the statements of an explicit transaction keep back.
    pub deferred: Deferred,
    /// What explicit transactions that begin from now on may observe.
    pub isolation: Isolation,
    /// The settings that plans are made for.
    pub settings: Settings,
    /// Rows without the parent that a foreign key names, in the transaction under way.
    pub counters: Counters,
    /// That of the main database's sqlite_schema.
    pub schema_tree: Tree,
    /// How long waits for locks may last.
    pub(super) busy: Busy,
    /// What PRAGMA synchronous shows.
    synchronous: u8,
    /// `PRAGMA query_only`: nothing is written.
    pub query_only: bool,
    /// The databases whose schemas the transaction under way has changed, and the stamps of
    /// what it made of them last.
    pub made_schemas: Vec<(Engine, u64)>,
}

impl State {
    /// Of a new connection.
    pub fn new(engine: &Engine) -> Self {
        Self {
            txn: Txns::new(engine.store()),
            databases: Vec::new(),
            explicit: None,
            functions: func::Context::new(),
            memory: engine.memory(),
            running: 0,
            changed: 0,
            deferred: Deferred::lasting(),
            isolation: Isolation::default(),
            settings: SETTINGS,
            counters: Counters::default(),
            schema_tree: engine.schema_tree().clone(),
            busy: Busy::Within(engine.store().options().busy_timeout),
            synchronous: synchronous::level_of(engine.store().options().durability),
            query_only: false,
            made_schemas: Vec::new(),
        }
    }

    /// Sets everything that a connection may have set to what it was at first; None where
    /// something is under way, else what there was of the program, to be dropped while
    /// nothing is locked.
    pub(super) fn renew(&mut self, engine: &Engine) -> Option<(func::Context, Settings, Busy)> {
        if self.explicit.is_some() || self.running > 0 {
            return None;
        }
        let functions = std::mem::replace(&mut self.functions, func::Context::new());
        let settings = std::mem::replace(&mut self.settings, SETTINGS);
        self.isolation = Isolation::default();
        self.query_only = false;
        if !self.databases.is_empty() {
            self.databases.clear();
            self.txn = Txns::new(engine.store());
        }
        self.counters = Counters::default();
        let options = engine.store().options();
        let busy = self.set_busy(Busy::Within(options.busy_timeout));
        self.set_synchronous(synchronous::level_of(options.durability));
        Some((functions, settings, busy))
    }

    /// No explicit transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.explicit.is_none()
    }

    /// Fails where the connection is not to write.
    #[inline]
    pub fn check_writes(&self) -> Result<()> {
        match self.query_only {
            true => Err(
                Error::new(code::READONLY, "attempt to write a readonly database")
                    .with_hint("PRAGMA query_only is on for this connection"),
            ),
            false => Ok(()),
        }
    }

    /// What commits survive, as PRAGMA synchronous shows it.
    pub fn synchronous(&self) -> u8 {
        self.synchronous
    }

    /// Sets what commits survive from now on.
    pub fn set_synchronous(&mut self, level: u8) {
        if level != self.synchronous {
            self.txn
                .main
                .set_durability(synchronous::durability_of(level));
            self.synchronous = level;
        }
    }

    /// The number of the main database's store.
    pub fn main_store(&self) -> u64 {
        self.schema_tree.store_number()
    }

    /// Makes reading possible, of the main database and of those in these `stores`; true: the
    /// caller ends the transaction.
    #[inline(always)]
    pub fn start_reading(&mut self, stores: &[u64], base: Base) -> Result<bool> {
        let ends = self.explicit.is_none();
        if ends {
            self.counters.postpones = false;
            self.txn.main.begin_read()?;
        } else {
            self.start_explicit(base)?;
        }
        if !stores.is_empty()
            && let Err(error) = self.join(stores)
        {
            if ends {
                self.txn.rollback();
            }
            return Err(error);
        }
        Ok(ends)
    }

    /// Makes possible what a program writes; true: the caller commits.
    #[inline(always)]
    pub fn start_writing(&mut self, program: &Program) -> Result<bool> {
        if let Some(explicit) = &mut self.explicit {
            explicit.writes = true;
            // A failure that undoes the transaction is told of at once.
            let base = match &self.functions.hooks {
                Some(hooks) if hooks.rollback.is_some() => Base::Acknowledged,
                _ => program.base(),
            };
            self.start_explicit(base)?;
            if !self.databases.is_empty() {
                self.join(&program.stores)?;
            }
            self.txn.check_writes(&program.plan.writes)?;
            return Ok(false);
        }
        match program.uses_others() {
            _ if self.tells(program) => self.start_telling(program)?,
            false => self.start_alone(&program.trees)?,
            true => self.start_several(program)?,
        }
        Ok(true)
    }

    /// Whether the program is told of rows while a statement runs alone.
    #[inline]
    fn tells(&self, program: &Program) -> bool {
        let hooks = self.functions.hooks.as_ref();
        program.tells_functions() || hooks.is_some_and(|hooks| hooks.tells_rows())
    }

    /// Begins an autocommitted statement that does: where others' commits are on their way
    /// to the disk, as an IMMEDIATE transaction, which confirms what it tells before it does.
    #[cold]
    fn start_telling(&mut self, program: &Program) -> Result<()> {
        if program.uses_others() {
            self.start_several(program)?;
            let visible = self.txn.wait_until_visible();
            return self.or_end(visible);
        }
        self.start_alone(&program.trees)?;
        if self.txn.main.is_acknowledged() {
            return Ok(());
        }
        self.txn.rollback();
        self.txn.main.begin_immediate_ahead()?;
        match program.base() {
            Base::Published => Ok(()),
            Base::Acknowledged => {
                let acknowledged = self.txn.main.wait_for_base();
                self.or_end(acknowledged)
            }
        }
    }

    /// Begins an autocommitted statement that writes to the main database.
    #[inline]
    fn start_alone(&mut self, trees: &[Tree]) -> Result<()> {
        const FEW: usize = 8;
        match trees {
            [] => self.txn.main.begin_statement(&[])?,
            [first, ..] if trees.len() <= FEW => {
                let mut few = [first; FEW];
                for (slot, tree) in few.iter_mut().zip(trees) {
                    *slot = tree;
                }
                self.txn
                    .main
                    .begin_statement(few.get(..trees.len()).unwrap_or(&[]))?;
            }
            _ => self
                .txn
                .main
                .begin_statement(&trees.iter().collect::<Vec<_>>())?,
        }
        Ok(())
    }

    /// Begins the store's transaction of an explicit one, if it has not.
    #[inline]
    pub fn start_explicit(&mut self, base: Base) -> Result<()> {
        match &self.explicit {
            Some(explicit) if !explicit.begun => self.begin_explicit(false),
            Some(_) if base == Base::Acknowledged => self.wait_for_base(),
            _ => Ok(()),
        }
    }

    /// Waits until all that an IMMEDIATE transaction builds on is acknowledged.
    #[inline]
    pub fn wait_for_base(&mut self) -> Result<()> {
        Ok(self.txn.main.wait_for_base()?)
    }

    /// Begins the store's transaction of one that is IMMEDIATE.
    pub fn begin_immediate(&mut self) -> Result<()> {
        self.know_schemas_beside()?;
        Ok(self.txn.begin_immediate_ahead(&self.schema_tree)?)
    }

    /// As [`State::start_explicit`], for a change of the schema: other writers,
    /// who know the schema as it was, are kept out from here to the end.
    pub fn start_explicit_change(&mut self) -> Result<()> {
        match &self.explicit {
            Some(explicit) if !explicit.begun => self.begin_explicit(true),
            Some(_) => {
                self.wait_for_base()?;
                self.make_deferred()?;
                self.txn.check_writes([&self.schema_tree])?;
                Ok(self.txn.exclude_writers()?)
            }
            None => Ok(()),
        }
    }

    fn begin_explicit(&mut self, immediate: bool) -> Result<()> {
        let explicit = self.explicit.as_ref();
        let isolation = explicit.map_or(self.isolation, |explicit| explicit.isolation);
        if immediate {
            self.txn.begin_immediate()?;
        } else {
            self.txn.begin(isolation)?;
        }
        // Whoever uses the schema conflicts with whoever changes it: the
        // transaction depends on all rows of sqlite_schema.
        if self.txn.state() != TxnState::Read {
            self.txn.main.rely_on(&self.schema_tree)?;
        }
        if let Some(explicit) = &mut self.explicit {
            explicit.begun = true;
            for place in &mut explicit.savepoints {
                place.savepoint = Some(self.txn.savepoint()?);
            }
        }
        Ok(())
    }

    /// Makes the index entries that were kept back, before anybody looks for them or a
    /// place to go back to is taken. Where that fails the transaction is undone, since its
    /// statements have succeeded; but `SQLITE_BUSY` leaves it open, and what is not made
    /// yet for the next one who asks.
    #[inline]
    pub fn make_deferred(&mut self) -> Result<()> {
        match self.deferred.is_empty() {
            true => {
                self.deferred.clear();
                Ok(())
            }
            false => self.make_all_deferred(),
        }
    }

    fn make_all_deferred(&mut self) -> Result<()> {
        let made = self.deferred.make(&mut self.txn, || Ok(()));
        self.keep_unless_failed(made)
    }

    /// A statement begins that may be undone by itself, whose index entries may be kept
    /// back; see [`Deferred::begin_undoable`]. Fails as
    /// [`make_deferred`](Self::make_deferred).
    pub fn begin_undoable(&mut self, rows: usize) -> Result<()> {
        let begun = self.deferred.begin_undoable(&mut self.txn, rows);
        self.keep_unless_failed(begun)
    }

    fn keep_unless_failed(&mut self, made: Result<()>) -> Result<()> {
        if made
            .as_ref()
            .is_err_and(|error| error.extended_code() != code::BUSY)
        {
            self.abandon();
        }
        made
    }

    /// Undoes the explicit transaction.
    pub fn abandon(&mut self) {
        if self.close() {
            self.rolled_back();
        }
    }

    /// The same, and tells no hook; false where there was none.
    pub fn close(&mut self) -> bool {
        self.changed += 1;
        self.deferred.clear();
        self.made_schemas.clear();
        self.counters = Counters::default();
        let explicit = self.explicit.take();
        if explicit.as_ref().is_some_and(|it| it.begun) {
            self.txn.rollback();
        }
        explicit.is_some()
    }

    /// Commits the statement at hand, which is a transaction of its own: it is over either
    /// way, and undone if that fails.
    #[inline]
    pub fn commit_statement(&mut self) -> Result<()> {
        self.commit_by(Txns::commit)
    }

    /// The same of one that is as good where some databases have it and others do not: what
    /// it wrote may be too large for a commit that is one over several files.
    #[cold]
    pub fn commit_statement_apart(&mut self) -> Result<()> {
        self.commit_by(Txns::commit_apart)
    }

    #[inline]
    fn commit_by(
        &mut self,
        commit: impl FnOnce(&mut Txns) -> fulgurite_store::Result<()>,
    ) -> Result<()> {
        match &self.functions.hooks {
            None => self.commit_or_undo(commit),
            Some(hooks) => {
                let hooks = Arc::clone(hooks);
                let mut committed = hooks.commits();
                match committed {
                    Ok(()) => committed = self.commit_or_undo(commit),
                    Err(_) => self.txn.rollback(),
                }
                if committed.is_err() {
                    hooks.rolled_back();
                }
                committed
            }
        }
    }

    /// Commits what nobody could commit later, where `SQLITE_BUSY` would leave it open.
    #[inline]
    fn commit_or_undo(
        &mut self,
        commit: impl FnOnce(&mut Txns) -> fulgurite_store::Result<()>,
    ) -> Result<()> {
        Ok(self
            .commit_known(commit)
            .inspect_err(|_| self.txn.rollback())?)
    }

    /// Commits, and has what was made of schemas known as what is committed.
    #[inline]
    fn commit_known(
        &mut self,
        commit: impl FnOnce(&mut Txns) -> fulgurite_store::Result<()>,
    ) -> fulgurite_store::Result<()> {
        match self.made_schemas.is_empty() {
            true => commit(&mut self.txn),
            false => self.commit_schemas(commit),
        }
    }

    #[cold]
    fn commit_schemas(
        &mut self,
        commit: impl FnOnce(&mut Txns) -> fulgurite_store::Result<()>,
    ) -> fulgurite_store::Result<()> {
        let mut made = std::mem::take(&mut self.made_schemas);
        // Of what was undone since nothing is committed.
        made.retain(|(engine, version)| {
            let txn = self.txn.in_store(engine.store().number());
            txn.state() != TxnState::Idle
                && txn
                    .stamp(engine.schema_tree())
                    .is_ok_and(|now| now == *version)
        });
        let committed = commit(&mut self.txn);
        if self.txn.state() != TxnState::Idle {
            self.made_schemas = made;
            return committed;
        }
        if committed.is_ok() {
            for (engine, private) in made {
                let txn = self.txn.in_store(engine.store().number());
                engine.schema_committed(private, txn.committed());
            }
        }
        committed
    }

    /// Tells the connection's hook of a rollback.
    pub fn rolled_back(&self) {
        if let Some(hooks) = &self.functions.hooks {
            hooks.rolled_back();
        }
    }

    /// Commits the explicit transaction. It is over either way, except that
    /// `SQLITE_BUSY`, and foreign keys that are not in order, leave it open to be committed
    /// later.
    pub fn commit(&mut self, engine: &Engine) -> Result<()> {
        if self.explicit.is_some() && !self.counters.allow_commit() {
            return Err(Error::foreign_key());
        }
        self.make_deferred()
            .map_err(|error| conflict::explain(error, engine, self))?;
        match self.explicit.take() {
            Some(explicit) if explicit.begun => {
                let hooks = self.functions.hooks.as_ref().filter(|_| explicit.writes);
                if let Some(Err(refused)) = hooks.map(|hooks| hooks.commits()) {
                    self.explicit = Some(explicit);
                    self.abandon();
                    return Err(refused);
                }
                let committed = self.commit_known(Txns::commit);
                if self.txn.state() != TxnState::Idle {
                    self.explicit = Some(explicit);
                    return Ok(committed?);
                }
                self.counters = Counters::default();
                if committed.is_err() {
                    self.rolled_back();
                }
                committed.map_err(|error| conflict::explain(error.into(), engine, self))
            }
            Some(_) => {
                self.counters = Counters::default();
                Ok(())
            }
            None => Err(Error::sql("cannot commit - no transaction is active")),
        }
    }
}
