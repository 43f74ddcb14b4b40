//! ATTACH and DETACH.
//!
//! A file that the process has open already is the same database there and here.

use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_store::{Durability, ErrorKind, InDoubt, Options, Store};

use super::Engine;
use super::body::Body;
use super::databases::Database;
use super::state::{Base, State};
use crate::bind::expr::Expr;
use crate::error::{Error, Result, code};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::schema::{MAIN, TEMP};

/// Databases that may be attached at a time, SQLite's limit.
const ATTACHED_MAX: usize = 10;

/// What the name of a database means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A new one in memory.
    Memory,
    /// A file.
    File {
        /// Where it is.
        path: PathBuf,
        /// It is not written to.
        read_only: bool,
        /// It is made if it is absent.
        create: bool,
    },
}

/// What tells the meaning of a name that ATTACH is given.
pub type Locate = fn(&str) -> Result<Target>;

/// Where nobody says otherwise: `:memory:`, and the empty name, or a path.
pub(super) fn locate(name: &str) -> Result<Target> {
    Ok(match name {
        "" | ":memory:" => Target::Memory,
        path => Target::File {
            path: PathBuf::from(path),
            read_only: false,
            create: true,
        },
    })
}

/// Opens what `file` means as the database of this name.
fn attach(file: &str, name: &str, main: &Engine, state: &mut State) -> Result<()> {
    let attached = state.databases.iter().filter(|it| &*it.name != TEMP);
    if attached.count() >= ATTACHED_MAX {
        let message = format!("too many attached databases - max {ATTACHED_MAX}");
        return Err(Error::sql(message));
    }
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    if is_it(MAIN) || is_it(TEMP) || state.named(name).is_some() {
        return Err(Error::sql(format!("database {name} is already in use")));
    }
    let target = main.locate(file)?;
    let is_private = target == Target::Memory;
    let store = open(target, main.store(), file)?;
    let others = state.databases.iter().map(|it| it.engine.store());
    if std::iter::once(main.store())
        .chain(others)
        .any(|other| other.ptr_eq(&store))
    {
        let error = Error::sql(format!(
            "database {name} is open under another name already"
        ));
        return Err(error.with_hint(format!("{file} is a database of this connection")));
    }
    let engine = Engine::open_with(store.clone(), main.locates())?;
    state.txn.open(state.databases.len(), &store, is_private);
    state.tell_busy();
    state.databases.push(Database {
        name: Arc::from(name),
        engine,
        is_private,
        holders: Arc::default(),
    });
    state.tell_names();
    Ok(())
}

/// With the settings of the main database, each with a cache of its own. What is synced in a
/// file does not depend on a main database in memory.
fn open(target: Target, main: &Store, name: &str) -> Result<Store> {
    let options = main.options().clone();
    let durability = match main.path() {
        Some(_) => options.durability,
        None => Durability::default(),
    };
    let opened = match target {
        Target::Memory => Store::in_memory(options),
        Target::File {
            path,
            read_only,
            create,
        } => Store::open(
            path,
            Options {
                read_only: read_only || main.is_read_only(),
                create: create && !main.is_read_only(),
                durability,
                // Said of the main database, which says nothing of this one.
                abandon_missing_log: false,
                in_doubt: InDoubt::Ask,
                ..options
            },
        ),
    };
    opened.map_err(|error| match error.kind() {
        ErrorKind::CantOpen | ErrorKind::MissingLog => {
            let message = format!("unable to open database: {name}");
            Error::new(code::CANTOPEN, message).with_hint(error.to_string())
        }
        _ => error.into(),
    })
}

fn detach(name: &str, state: &mut State) -> Result<()> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    let found = state.databases.iter().position(|it| is_it(&it.name));
    if is_it(MAIN) || is_it(TEMP) && found.is_some() {
        return Err(Error::sql(format!("cannot detach database {name}")));
    }
    let Some(at) = found else {
        return Err(Error::sql(format!("no such database: {name}")));
    };
    let (store, is_held) = {
        let database = &state.databases[at];
        (database.store_number(), database.is_held())
    };
    if state.running > 0 || is_held || state.txn.is_begun(store) {
        return Err(Error::sql(format!("database {name} is locked")));
    }
    state.txn.close(store);
    state.databases.remove(at);
    state.tell_names();
    Ok(())
}

impl Body {
    /// Runs ATTACH of a file by a name, or DETACH of a name.
    pub(super) fn attach_or_detach(
        &mut self,
        texts: &[Expr],
        main: &Engine,
        state: &mut State,
    ) -> Result<()> {
        let texts = self.texts(texts, state)?;
        match texts.as_slice() {
            [file, name] => attach(file, name, main, state),
            [name] => detach(name, state),
            _ => Err(Error::misuse("ATTACH of other than a file by a name")),
        }
    }

    /// What the expressions say, as texts.
    fn texts(&mut self, texts: &[Expr], state: &mut State) -> Result<Vec<String>> {
        let ends = state.start_reading(&self.program.stores, Base::Acknowledged)?;
        let mut subqueries = self.run.subqueries.iter_mut().flatten();
        let attached = subqueries.try_for_each(|subquery| subquery.attach(&mut state.txn));
        if ends {
            state.txn.rollback();
        }
        attached?;
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        let said = texts.iter().map(|text| {
            let value = eval(text, Row::Empty, &mut cx)?;
            let text = value.as_ref().to_text().unwrap_or_default();
            Ok(String::from_utf8_lossy(&text).into_owned())
        });
        said.collect()
    }
}
