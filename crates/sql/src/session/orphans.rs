//! `PRAGMA foreign_key_check`: rows without the parent that a foreign key names, whether or
//! not foreign keys are enforced.

use std::sync::Arc;

use fulgurite_store::Seek;

use super::Engine;
use super::integrity::writer;
use super::state::{Base, State};
use crate::bind::foreign::child_key;
use crate::error::{Error, Result};
use crate::exec::context::{Context, Run};
use crate::exec::dml::{has_parent, read_row};
use crate::exec::txns::Txns;
use crate::func::user::UserCode;
use crate::schema::{Schema, Table};
use crate::value::Value;

/// Rows between two looks whether the statement is interrupted.
const LOOK: u32 = 4_096;

/// Table, rowid, parent and number of the key of each, in all tables or in one.
pub fn find(
    table: Option<&Value>,
    engines: &[Engine],
    state: &mut State,
    run: &mut Run,
) -> Result<Vec<Vec<Value>>> {
    let stores: Vec<u64> = engines.iter().map(|it| it.store().number()).collect();
    let ends = state.start_reading(&stores, Base::Acknowledged)?;
    let found = match state.make_deferred() {
        Ok(()) => find_in(table, engines, (&mut state.txn, &state.settings.user), run),
        Err(error) => Err(error),
    };
    if ends {
        state.txn.rollback();
    }
    found
}

fn find_in(
    table: Option<&Value>,
    engines: &[Engine],
    (txn, user): (&mut Txns, &UserCode),
    run: &mut Run,
) -> Result<Vec<Vec<Value>>> {
    let mut orphans = Vec::new();
    let asked = table.and_then(|value| value.as_ref().to_text().map(|t| t.into_owned()));
    let asked = asked.map(|name| String::from_utf8_lossy(&name).into_owned());
    let mut is_known = asked.is_none();
    for engine in engines {
        let schema = engine.schema(txn.in_store(engine.store().number()))?;
        let names = match &asked {
            Some(name) => vec![name.clone()],
            None => schema.table_names().to_vec(),
        };
        for name in &names {
            is_known |= schema.holds(&name.to_ascii_lowercase());
            if let Some(table) = schema.table(name)? {
                find_in_table(&schema, &table, (txn, user), run, &mut orphans)?;
            }
        }
    }
    match (is_known, asked) {
        (false, Some(name)) => Err(Error::sql(format!("no such table: {name}"))),
        _ => Ok(orphans),
    }
}

fn find_in_table(
    schema: &Arc<Schema>,
    table: &Arc<Table>,
    (txn, user): (&mut Txns, &UserCode),
    run: &mut Run,
    orphans: &mut Vec<Vec<Value>>,
) -> Result<()> {
    let mut keys = Vec::with_capacity(table.foreign_keys.len());
    for (number, key) in table.foreign_keys.iter().enumerate().rev() {
        keys.push((&key.parent, child_key(schema, table, number, key)?));
    }
    if keys.is_empty() {
        return Ok(());
    }
    let insert = match table.has_generated {
        true => Some(writer(schema, &table.name, user)?),
        false => None,
    };
    let generated = insert.as_ref().map_or(&[][..], |it| &it.target.generated);
    let mut cx = Context {
        parameters: &[],
        run,
    };
    let (mut row, mut key_bytes, mut record) = (Vec::new(), Vec::new(), Vec::new());
    let mut rows = txn.cursor(&table.tree)?;
    let mut more = rows.seek(Seek::First)?;
    let mut looked = 0u32;
    while more {
        let rowid = rows.key_int();
        read_row(table, generated, (rowid, rows.value()?), &mut row, &mut cx)?;
        for (id, (parent, key)) in keys.iter().enumerate() {
            let found = has_parent(txn, key, &row, None, &mut key_bytes, &mut record)?;
            if found == Some(false) {
                orphans.push(vec![
                    Value::text(table.name.clone()),
                    match table.without_rowid {
                        true => Value::Null,
                        false => Value::Integer(rowid),
                    },
                    Value::text(parent.as_str()),
                    Value::Integer(i64::try_from(id).unwrap_or(i64::MAX)),
                ]);
            }
        }
        looked = looked.wrapping_add(1);
        if looked.is_multiple_of(LOOK) {
            cx.run.check_interrupt()?;
        }
        more = rows.next()?;
    }
    Ok(())
}
