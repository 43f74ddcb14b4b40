//! PRAGMAs that the session answers.

use std::time::Duration;

use fulgurite_store::{Isolation, Key};

use super::integrity::Asked;
use super::state::{Base, State};
use super::{Engine, integrity, orphans, status, synchronous};
use crate::bind::pragma::answers_when_set;
use crate::error::{Error, Result, code};
use crate::exec::batch::Batch;
use crate::exec::context::Run;
use crate::exec::effects::Effects;
use crate::exec::rows::RowStore;
use crate::plan::physical::Pragma;
use crate::value::{Value, ValueRef};

/// Keys of the numbers that the database keeps for the program.
const USER_VERSION: i64 = 1;
const APPLICATION_ID: i64 = 2;

/// Runs one; its rows go to `effects.rows`.
pub fn run(
    pragma: &Pragma,
    engine: &Engine,
    state: &mut State,
    run: &mut Run,
    effects: &mut Effects,
) -> Result<()> {
    match answer(pragma, engine, state, run)? {
        Some(rows) => keep(&rows, state, effects),
        None => Ok(()),
    }
}

/// The rows of an answer; `None`: there is none.
type Answer = Option<Vec<Vec<Value>>>;

fn text(word: &str) -> Answer {
    Some(vec![vec![Value::from(word)]])
}

fn integer(number: impl Into<i64>) -> Answer {
    Some(vec![vec![Value::Integer(number.into())]])
}

/// Runs one; its rows, if it has an answer. An arm for each that is asked, and for each that
/// is told, long only by their number.
pub fn answer(pragma: &Pragma, main: &Engine, state: &mut State, run: &mut Run) -> Result<Answer> {
    let other = pragma
        .store
        .and_then(|store| state.engine_in(store))
        .cloned();
    let engine = other.as_ref().unwrap_or(main);
    let options = engine.store().options();
    let value = pragma.value.as_ref();
    Ok(match (pragma.name.as_str(), value) {
        ("busy_timeout", _) => busy_timeout(value, state),
        ("encoding", None) => text("UTF-8"),
        ("journal_mode", _) => text("wal"),
        ("synchronous", _) => {
            let beside = other.as_ref().map(|engine| engine.store().number());
            synchronous_level(value, beside, state)?
        }
        ("isolation_level", _) => isolation_level(value, state)?,
        ("wal_status", _) => Some(status::rows(engine.store())),
        ("page_size", None) => integer(options.page_size),
        ("cache_size", None) => {
            integer(-i64::try_from(options.cache_bytes / 1024).unwrap_or(i64::MAX))
        }
        ("page_count", None) => {
            let stats = engine.store().stats();
            integer(up_to_max(
                stats.file_bytes.div_ceil(options.page_size.into()),
            ))
        }
        ("freelist_count", None) => {
            let stats = engine.store().stats();
            integer(up_to_max(stats.free_bytes / u64::from(options.page_size)))
        }
        ("schema_version", None) => integer(schema_version(engine, state)?),
        ("data_version", None) => integer(data_version(engine, state)?),
        ("user_version", _) => number(USER_VERSION, value, engine, state)?,
        ("application_id", _) => number(APPLICATION_ID, value, engine, state)?,
        ("foreign_keys", None) => integer(state.settings.foreign_keys),
        ("foreign_keys", Some(value)) => {
            // Within a transaction it stays as it is.
            if state.is_autocommit() {
                state.settings.foreign_keys = is_on(value);
            }
            None
        }
        ("query_only", None) => integer(state.query_only),
        ("query_only", Some(value)) => {
            state.query_only = is_on(value);
            None
        }
        ("recursive_triggers", None) => integer(state.settings.recursive_triggers),
        ("recursive_triggers", Some(value)) => {
            state.settings.recursive_triggers = is_on(value);
            None
        }
        ("case_sensitive_like", Some(value)) => {
            state.settings.case_sensitive_like = is_on(value);
            None
        }
        ("trusted_schema", None) => integer(!state.settings.distrusts_schema),
        ("trusted_schema", Some(value)) => {
            state.settings.distrusts_schema = !is_on(value);
            None
        }
        ("defer_foreign_keys", None) => integer(state.counters.postpones),
        ("defer_foreign_keys", Some(value)) => {
            state.counters.postpone(is_on(value));
            None
        }
        ("foreign_key_check", _) => {
            let engines = state.engines(main, pragma.store);
            Some(orphans::find(value, &engines, state, run)?)
        }
        (name @ ("integrity_check" | "quick_check"), _) => {
            let asked = Asked::new(value, name == "integrity_check");
            let engines = state.engines(main, pragma.store);
            findings(&asked, &engines, state, run)?
        }
        ("wal_checkpoint", _) => {
            engine.store().checkpoint()?;
            if pragma.store.is_none() {
                // All files, but those that are not the connection's to write.
                let others = state.databases.iter().filter(|it| !it.is_private);
                let stores = others.map(|it| it.engine.store());
                let mut written = stores.filter(|it| !it.is_read_only());
                written.try_for_each(|it| it.checkpoint())?;
            }
            Some(vec![vec![Value::Integer(0); 3]])
        }
        // Told to be another one, it says that it is not.
        (name, value) if value.is_none() || answers_when_set(name) => {
            fixed(name).map(|(_, value)| vec![vec![value]])
        }
        _ => None,
    })
}

/// A number of the store as SQL has it.
fn up_to_max(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn busy_timeout(value: Option<&Value>, state: &mut State) -> Answer {
    if let Some(value) = value {
        let ms = u64::try_from(value.as_ref().to_integer()).unwrap_or(0);
        state.set_busy_timeout(Duration::from_millis(ms));
    }
    integer(i64::try_from(state.busy_timeout().as_millis()).unwrap_or(i64::MAX))
}

/// Of the main database, or of the one beside it in this store.
fn synchronous_level(
    value: Option<&Value>,
    beside: Option<u64>,
    state: &mut State,
) -> Result<Answer> {
    match (value, beside) {
        (Some(value), _) => synchronous::set(value, beside, state).map(|()| None),
        (None, Some(store)) => Ok(integer(synchronous::level_in(store, state))),
        (None, None) => Ok(integer(state.synchronous())),
    }
}

fn isolation_level(value: Option<&Value>, state: &mut State) -> Result<Answer> {
    if let Some(value) = value {
        state.isolation = isolation(value)?;
    }
    Ok(text(match state.isolation {
        Isolation::Serializable => "serializable",
        Isolation::Snapshot => "snapshot",
    }))
}

/// The schema's stamp: it is another one after each change.
fn schema_version(engine: &Engine, state: &mut State) -> Result<i64> {
    let ends = state.start_reading(&[engine.store().number()], Base::Acknowledged)?;
    let stamp = state.txn.stamp(engine.schema_tree());
    if ends {
        state.txn.rollback();
    }
    Ok(up_to_max(stamp?))
}

/// Another number than before where another connection has committed since, by what the
/// transaction reads.
fn data_version(engine: &Engine, state: &mut State) -> Result<i64> {
    let store = engine.store().number();
    let ends = state.start_reading(&[store], Base::Acknowledged)?;
    let count = state.txn.in_store(store).others_commits();
    if ends {
        state.txn.rollback();
    }
    Ok(up_to_max(count?))
}

/// A number that the database keeps for the program, shown or set.
fn number(key: i64, value: Option<&Value>, engine: &Engine, state: &mut State) -> Result<Answer> {
    match value {
        None => read_number(key, engine, state).map(integer),
        Some(value) => write_number(key, number_of(value), engine, state).map(|()| None),
    }
}

fn findings(asked: &Asked, engines: &[Engine], state: &mut State, run: &mut Run) -> Result<Answer> {
    let mut findings = integrity::check(asked, engines, state, run)?;
    if findings.is_empty() {
        findings.push("ok".to_owned());
    }
    let rows = findings.into_iter().map(|line| vec![Value::text(line)]);
    Ok(Some(rows.collect()))
}

/// Settings that are what they are: SQLite's defaults.
const FIXED: &[(&str, i64)] = &[
    ("analysis_limit", 0),
    ("auto_vacuum", 0),
    ("automatic_index", 1),
    ("cell_size_check", 0),
    ("checkpoint_fullfsync", 0),
    ("count_changes", 0),
    ("empty_result_callbacks", 0),
    ("full_column_names", 0),
    ("fullfsync", 0),
    ("hard_heap_limit", 0),
    ("ignore_check_constraints", 0),
    ("journal_size_limit", -1),
    ("legacy_alter_table", 0),
    ("max_page_count", 4_294_967_294),
    ("mmap_size", 0),
    ("read_uncommitted", 0),
    ("reverse_unordered_selects", 0),
    ("secure_delete", 1),
    ("short_column_names", 1),
    ("soft_heap_limit", 0),
    ("temp_store", 0),
    ("threads", 0),
    ("trusted_schema", 1),
    ("wal_autocheckpoint", 1000),
    ("writable_schema", 0),
];

/// The answer of such a setting, with its name.
pub fn fixed(name: &str) -> Option<(&'static str, Value)> {
    if name == "locking_mode" {
        return Some(("locking_mode", Value::from("exclusive")));
    }
    let (name, value) = FIXED.iter().find(|(known, _)| *known == name)?;
    Some((name, Value::Integer(*value)))
}

/// The names of such settings.
pub fn fixed_names() -> impl Iterator<Item = &'static str> {
    let numbers = FIXED.iter().map(|(name, _)| *name);
    numbers.chain(["locking_mode"])
}

/// Whether SQLite takes a setting for on: a number above 0, or a word.
fn is_on(value: &Value) -> bool {
    match value.as_ref() {
        ValueRef::Text(word) if !word.first().is_some_and(u8::is_ascii_digit) => {
            let words: [&[u8]; 3] = [b"on", b"yes", b"true"];
            words.iter().any(|on| on.eq_ignore_ascii_case(word))
        }
        value => value.to_integer() > 0,
    }
}

/// What SQLite makes of the value: 32 bits, 0 for what is no number.
fn number_of(value: &Value) -> i64 {
    let number = value.as_ref().to_integer();
    i32::try_from(number).map_or(0, i64::from)
}

/// A number of the database as the transaction sees it; 0 unless it was set.
fn read_number(key: i64, engine: &Engine, state: &mut State) -> Result<i64> {
    let Some(tree) = engine.numbers() else {
        return Ok(0);
    };
    let ends = state.start_reading(&[tree.store_number()], Base::Acknowledged)?;
    let mut bytes = Vec::new();
    let found = state.txn.get_into(tree, Key::Int(key), &mut bytes);
    if ends {
        state.txn.rollback();
    }
    found?;
    Ok(bytes.try_into().map_or(0, i64::from_le_bytes))
}

/// Sets it, in the transaction if there is one.
fn write_number(key: i64, value: i64, engine: &Engine, state: &mut State) -> Result<()> {
    let Some(tree) = engine.numbers() else {
        return Err(Error::new(
            code::READONLY,
            "attempt to write a readonly database",
        ));
    };
    let commits = state.start_writing_to(tree)?;
    state.txn.set_whole(!commits);
    let written = state.txn.put(tree, Key::Int(key), &value.to_le_bytes());
    state.txn.set_whole(false);
    match (written, commits) {
        (Ok(_), true) => state.commit_statement(),
        (Ok(_), false) => Ok(()),
        (Err(error), true) => {
            state.txn.rollback();
            state.rolled_back();
            Err(error.into())
        }
        // It may be written nevertheless.
        (Err(error), false) => {
            state.abandon();
            Err(error.into())
        }
    }
}

/// The level of that name, in any case.
fn isolation(value: &Value) -> Result<Isolation> {
    let name = value.as_ref().to_text().unwrap_or_default();
    let name = String::from_utf8_lossy(&name).to_ascii_lowercase();
    match name.as_str() {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        _ => Err(
            Error::sql(format!("no such isolation level: {name}")).with_hint(
                "PRAGMA isolation_level is serializable, which is the default, or snapshot",
            ),
        ),
    }
}

fn keep(rows: &[Vec<Value>], state: &State, effects: &mut Effects) -> Result<()> {
    let width = rows.first().map_or(0, Vec::len);
    let mut kept = RowStore::new(width, &state.memory);
    let mut batch = Batch::new(width);
    for row in rows {
        batch.reset(width);
        for (column, value) in batch.columns.iter_mut().zip(row) {
            column.push(ValueRef::from(value))?;
        }
        batch.set_rows(1);
        kept.append(&batch)?;
    }
    effects.rows = Some(kept);
    Ok(())
}
