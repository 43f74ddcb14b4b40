//! What a transaction lost against, or waited for in vain, in the words of SQL.
//!
//! The store names a tree and a key. Here they become a table and a row, or an
//! index and the values of its columns, so far as the schema still knows them.

use fulgurite_store::{Conflict, Key, Txn, TxnState};

use super::Engine;
use super::state::State;
use crate::error::{Error, code};
use crate::exec::dml::sequence;
use crate::exec::range::key_column;
use crate::key::decode;
use crate::row::RowReader;
use crate::schema::{Index, IndexTarget, Schema, Table};
use crate::value::{ValueRef, quote};

/// The error of a commit or a statement, once the transaction is as it leaves it.
#[cold]
pub fn explain(error: Error, main: &Engine, state: &mut State) -> Error {
    let Some(conflict) = error.conflict() else {
        return error;
    };
    let store = conflict.store_number();
    let other = state.engine_in(store).cloned();
    let engine = other.as_ref().unwrap_or(main);
    let txn = state.txn.in_store(store);
    let Some(place) = place(conflict, engine, txn) else {
        return error;
    };
    let is_open = txn.state() != TxnState::Idle;
    let hint = match (error.extended_code(), is_open) {
        (code::BUSY, _) => {
            let limit = match state.asks_when_busy() {
                true => "before the busy handler gave up",
                false => "within the busy timeout",
            };
            format!("{place} is being written, and whoever writes did not finish {limit}")
        }
        (_, true) => format!(
            "another transaction changed {place} first; this one cannot write to it any more, \
             roll it back and run it again"
        ),
        (_, false) => format!(
            "another transaction changed {place} first; this one was rolled back, run it again"
        ),
    };
    error.with_hint(hint)
}

fn place(conflict: &Conflict, engine: &Engine, txn: &mut Txn) -> Option<String> {
    if conflict.tree() == engine.schema_tree().id() {
        return Some("the schema".to_owned());
    }
    if engine
        .numbers()
        .is_some_and(|tree| tree.id() == conflict.tree())
    {
        return Some("user_version or application_id".to_owned());
    }
    let is_idle = txn.state() == TxnState::Idle;
    if is_idle {
        txn.begin_read().ok()?;
    }
    // Trees only go where a change of the schema drops them, or REINDEX makes them anew.
    let gone = || "the schema (it dropped or rebuilt a table or an index)".to_owned();
    let schema = engine.schema(txn).ok();
    let place = schema.map(|schema| named(conflict, &schema, txn).unwrap_or_else(gone));
    if is_idle {
        txn.rollback();
    }
    place
}

fn named(conflict: &Conflict, schema: &Schema, txn: &mut Txn) -> Option<String> {
    for name in schema.table_names() {
        let Ok(Some(table)) = schema.table(name) else {
            continue;
        };
        let holds_sequence = table.sequence.as_ref().map(|t| t.id()) == Some(conflict.tree());
        if holds_sequence && conflict.key() == Some(Key::Int(sequence::slot(&table.tree))) {
            return Some(format!("the sequence of table {}", table.name));
        }
    }
    for name in schema.table_names() {
        let Ok(Some(table)) = schema.table(name) else {
            continue;
        };
        if table.tree.id() == conflict.tree() {
            return Some(match conflict.key() {
                Some(Key::Int(rowid)) if table.without_rowid => {
                    let key = key_of_row(rowid, &table, txn);
                    let key = key.map_or("a row".to_owned(), |key| format!("the row ({key})"));
                    format!("{key} of table {}", table.name)
                }
                Some(Key::Int(rowid)) => format!("row {rowid} of table {}", table.name),
                _ => format!("table {}", table.name),
            });
        }
        let index = table
            .indexes
            .iter()
            .find(|i| i.tree.id() == conflict.tree());
        if let Some(index) = index {
            let values = match conflict.key() {
                Some(Key::Bytes(key)) => values(key, index),
                _ => None,
            };
            let entry = match values {
                Some(values) => format!("the entry ({values}) of index {}", index.name),
                None => format!("index {}", index.name),
            };
            return Some(format!("{entry} on table {}", table.name));
        }
    }
    None
}

/// Bytes of a text or a blob that a hint shows: a key may take a gigabyte.
const SHOWN: usize = 64;

/// Appends the value as a literal, of a long one its beginning.
fn show(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let start = match value {
        ValueRef::Text(text) if text.len() > SHOWN => {
            let is_within = |at: &usize| text[*at] & 0xC0 == 0x80;
            let end = (SHOWN - 3..=SHOWN).rev().find(|at| !is_within(at));
            ValueRef::Text(&text[..end.unwrap_or(SHOWN)])
        }
        ValueRef::Blob(bytes) if bytes.len() > SHOWN => ValueRef::Blob(&bytes[..SHOWN]),
        whole => return quote(whole, out),
    };
    quote(start, out);
    out.pop();
    out.extend_from_slice("…'".as_bytes());
}

/// The primary key of a WITHOUT ROWID table's row, as literals, if it is still there.
fn key_of_row(number: i64, table: &Table, txn: &mut Txn) -> Option<String> {
    let mut record = Vec::new();
    let found = txn.get_into(&table.tree, Key::Int(number), &mut record);
    let row = RowReader::new(found.ok().filter(|found| *found).map(|_| &record)?).ok()?;
    let mut text = Vec::new();
    for part in &table.key()?.columns {
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        if let IndexTarget::Column(at) = part.target {
            show(row.column_or(at, ValueRef::Null).ok()?, &mut text);
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The columns of an index entry's key, as literals.
fn values(mut entry: &[u8], index: &Index) -> Option<String> {
    let mut text = Vec::new();
    for column in &index.columns {
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        let value = decode(&mut entry, key_column(column), None).ok()?;
        show(value.as_ref(), &mut text);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}
