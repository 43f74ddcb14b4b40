//! What a transaction lost against, in the words of SQL.
//!
//! The store names a tree and a key. Here they become a table and a row, or an
//! index and the values of its columns, so far as the schema still knows them.

use fulgurite_store::{Conflict, Key, Txn};

use super::Engine;
use crate::error::Error;
use crate::exec::range::key_column;
use crate::key::decode;
use crate::schema::{Index, Schema};
use crate::value::quote;

/// The error of a failed commit. The transaction is idle.
#[cold]
pub fn explain(error: fulgurite_store::Error, engine: &Engine, txn: &mut Txn) -> Error {
    let place = error
        .conflict()
        .and_then(|conflict| place(conflict, engine, txn));
    match place {
        Some(place) => Error::from(error).with_hint(format!(
            "another transaction changed {place} first; this one was rolled back, run it again"
        )),
        None => error.into(),
    }
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
    txn.begin_read().ok()?;
    let schema = engine.schema(txn);
    txn.rollback();
    // Trees that only go when a change of the schema drops them.
    let gone = || "the schema (it dropped a table or an index)".to_owned();
    schema
        .ok()
        .map(|schema| named(conflict, &schema).unwrap_or_else(gone))
}

fn named(conflict: &Conflict, schema: &Schema) -> Option<String> {
    for name in schema.table_names() {
        let Ok(Some(table)) = schema.table(name) else {
            continue;
        };
        if table.tree.id() == conflict.tree() {
            return Some(match conflict.key() {
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

/// The columns of an index entry's key, as literals.
fn values(mut entry: &[u8], index: &Index) -> Option<String> {
    let mut text = Vec::new();
    for column in &index.columns {
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        let value = decode(&mut entry, key_column(column), None).ok()?;
        quote(value.as_ref(), &mut text);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}
