//! PRAGMAs that the session answers.

use std::time::Duration;

use fulgurite_store::{Isolation, Key};

use super::integrity::Asked;
use super::state::State;
use super::{Engine, integrity, orphans, status, synchronous};
use crate::error::{Error, Result, code};
use crate::exec::batch::Batch;
use crate::exec::context::Run;
use crate::exec::effects::Effects;
use crate::exec::rows::RowStore;
use crate::plan::physical::Pragma;
use crate::value::{Value, ValueRef};

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

/// Runs one; its rows, if it has an answer.
pub fn answer(
    pragma: &Pragma,
    engine: &Engine,
    state: &mut State,
    run: &mut Run,
) -> Result<Option<Vec<Vec<Value>>>> {
    let main = engine;
    let other = pragma
        .store
        .and_then(|store| state.engine_in(store))
        .cloned();
    let engine = other.as_ref().unwrap_or(main);
    let options = engine.store().options();
    let text = |s: &str| Some(vec![vec![Value::from(s)]]);
    let integer = |i: i64| Some(vec![vec![Value::Integer(i)]]);
    Ok(match pragma.name.as_str() {
        "busy_timeout" => {
            if let Some(value) = &pragma.value {
                let ms = u64::try_from(value.as_ref().to_integer()).unwrap_or(0);
                state.set_busy_timeout(Duration::from_millis(ms));
            }
            integer(i64::try_from(state.busy_timeout().as_millis()).unwrap_or(i64::MAX))
        }
        "encoding" => text("UTF-8"),
        "journal_mode" => text("wal"),
        "synchronous" => {
            let beside = other.as_ref().map(|engine| engine.store().number());
            match (&pragma.value, beside) {
                (Some(value), _) => {
                    synchronous::set(value, beside, state)?;
                    None
                }
                (None, Some(store)) => integer(i64::from(synchronous::level_in(store, state))),
                (None, None) => integer(i64::from(state.synchronous())),
            }
        }
        "isolation_level" => {
            if let Some(value) = &pragma.value {
                state.isolation = isolation(value)?;
            }
            text(match state.isolation {
                Isolation::Serializable => "serializable",
                Isolation::Snapshot => "snapshot",
            })
        }
        "wal_status" => Some(status::rows(engine.store())),
        "page_size" if pragma.value.is_none() => integer(i64::from(options.page_size)),
        "cache_size" if pragma.value.is_none() => {
            integer(-i64::try_from(options.cache_bytes / 1024).unwrap_or(i64::MAX))
        }
        "schema_version" | "data_version" if pragma.value.is_none() => {
            let ends = state.start_reading(&[engine.store().number()])?;
            let stamp = state.txn.stamp(engine.schema_tree());
            if ends {
                state.txn.rollback();
            }
            integer(i64::try_from(stamp?).unwrap_or(i64::MAX))
        }
        "user_version" | "application_id" => {
            let key = if pragma.name == "user_version" { 1 } else { 2 };
            match &pragma.value {
                None => integer(read_number(key, engine, state)?),
                Some(value) => {
                    write_number(key, number_of(value), engine, state)?;
                    None
                }
            }
        }
        "foreign_keys" => match &pragma.value {
            None => integer(i64::from(state.settings.foreign_keys)),
            Some(value) => {
                // Within a transaction it stays as it is.
                if state.is_autocommit() {
                    state.settings.foreign_keys = is_on(value);
                }
                None
            }
        },
        "query_only" => match &pragma.value {
            None => integer(i64::from(state.query_only)),
            Some(value) => {
                state.query_only = is_on(value);
                None
            }
        },
        "recursive_triggers" => match &pragma.value {
            None => integer(i64::from(state.settings.recursive_triggers)),
            Some(value) => {
                state.settings.recursive_triggers = is_on(value);
                None
            }
        },
        "case_sensitive_like" => {
            if let Some(value) = &pragma.value {
                state.settings.case_sensitive_like = is_on(value);
            }
            None
        }
        "trusted_schema" => match &pragma.value {
            None => integer(i64::from(!state.settings.distrusts_schema)),
            Some(value) => {
                state.settings.distrusts_schema = !is_on(value);
                None
            }
        },
        "defer_foreign_keys" => match &pragma.value {
            None => integer(i64::from(state.counters.postpones)),
            Some(value) => {
                state.counters.postpone(is_on(value));
                None
            }
        },
        "foreign_key_check" => Some({
            let engines = state.engines(main, pragma.store);
            orphans::find(pragma.value.as_ref(), &engines, state, run)?
        }),
        "page_count" | "freelist_count" if pragma.value.is_none() => {
            let stats = engine.store().stats();
            let page_bytes = u64::from(options.page_size);
            let pages = if pragma.name == "page_count" {
                stats.file_bytes.div_ceil(page_bytes)
            } else {
                stats.free_bytes / page_bytes
            };
            integer(i64::try_from(pages).unwrap_or(i64::MAX))
        }
        name if pragma.value.is_none() && fixed(name).is_some() => {
            fixed(name).map(|(_, value)| vec![vec![value]])
        }
        name @ ("integrity_check" | "quick_check") => {
            let asked = Asked::new(pragma.value.as_ref(), name == "integrity_check");
            let engines = state.engines(main, pragma.store);
            let mut findings = integrity::check(&asked, &engines, state, run)?;
            if findings.is_empty() {
                findings.push("ok".to_owned());
            }
            let findings = findings.into_iter();
            Some(findings.map(|line| vec![Value::text(line)]).collect())
        }
        "wal_checkpoint" => {
            engine.store().checkpoint()?;
            Some(vec![vec![
                Value::Integer(0),
                Value::Integer(0),
                Value::Integer(0),
            ]])
        }
        _ => None,
    })
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
    ("mmap_size", 0),
    ("read_uncommitted", 0),
    ("reverse_unordered_selects", 0),
    ("secure_delete", 1),
    ("short_column_names", 1),
    ("soft_heap_limit", 0),
    ("temp_store", 0),
    ("threads", 0),
    ("trusted_schema", 1),
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
    let ends = state.start_reading(&[tree.store_number()])?;
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
    let written = state.txn.put(tree, Key::Int(key), &value.to_le_bytes());
    if !commits {
        written?;
        return Ok(());
    }
    if let Err(error) = written {
        state.txn.rollback();
        return Err(error.into());
    }
    state.commit_statement()
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
