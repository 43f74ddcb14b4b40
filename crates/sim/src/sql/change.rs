//! One random statement: its text, its parameters, and what it does to the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite::types::Value;
use fulgurite::{Connection, Result, params, params_from_iter};

use super::model::{Row, State, Table};
use crate::Rng;

const TABLES: [&str; 4] = ["t0", "t1", "t2", "t3"];
const KEYS: u64 = 60;

fn pick(rng: &mut Rng, state: &State) -> Option<String> {
    let names: Vec<&String> = state.tables.keys().collect();
    (!names.is_empty()).then(|| names[rng.index(names.len())].clone())
}

fn key(rng: &mut Rng) -> i64 {
    rng.below(KEYS) as i64 + 1
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(24) {
        0..=9 => rng.index(40),
        10..=17 => rng.index(300),
        18..=21 => rng.index(2_000),
        22 => rng.index(9_000),
        _ => rng.index(30_000),
    };
    // Half of it noise, half of it blanks, so that it packs somewhat.
    let mut bytes = vec![b' '; len];
    for chunk in bytes[..len.div_ceil(2)].chunks_mut(8) {
        let noise = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&noise[..chunk.len()]);
    }
    bytes
}

fn row(rng: &mut Rng, table: &Table) -> Row {
    let mut row = vec![
        match rng.below(8) {
            0 => Value::Null,
            _ => Value::Integer(rng.below(1_000) as i64),
        },
        match rng.below(8) {
            0 => Value::Null,
            _ => Value::Text(format!("{:x}", rng.bits() >> rng.below(40))),
        },
        Value::Blob(bytes(rng)),
    ];
    row.resize_with(3 + table.added, || Value::Integer(rng.below(9) as i64));
    row
}

/// Makes, changes or drops a table or an index.
pub(super) fn schema(rng: &mut Rng, connection: &Connection, state: &mut State) -> Result<()> {
    let name = TABLES[rng.index(TABLES.len())];
    let Some(table) = state.table(name) else {
        connection.execute_batch(&format!(
            "CREATE TABLE {name} (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB)"
        ))?;
        let table = Table {
            added: 0,
            indexes: BTreeSet::new(),
            rows: BTreeMap::new(),
        };
        state.tables.insert(name.to_owned(), Arc::new(table));
        return Ok(());
    };
    let column = ["a", "b"][rng.index(2)];
    let index = format!("{name}_{column}");
    match rng.below(8) {
        0 => {
            connection.execute_batch(&format!("DROP TABLE {name}"))?;
            state.tables.remove(name);
        }
        1 if table.added < 3 => {
            connection.execute_batch(&format!("ALTER TABLE {name} ADD COLUMN x{}", table.added))?;
            table.added += 1;
            for row in table.rows.values_mut() {
                row.push(Value::Null);
            }
        }
        _ if table.indexes.remove(&index) => {
            connection.execute_batch(&format!("DROP INDEX {index}"))?;
        }
        _ => {
            connection.execute_batch(&format!("CREATE INDEX {index} ON {name} ({column})"))?;
            table.indexes.insert(index);
        }
    }
    Ok(())
}

/// Inserts many rows, or changes some.
pub(super) fn rows(rng: &mut Rng, connection: &Connection, state: &mut State) -> Result<()> {
    let Some(name) = pick(rng, state) else {
        return schema(rng, connection, state);
    };
    let table = state.table(&name).expect("it was just picked");
    match rng.below(12) {
        0..=4 => put(rng, connection, &name, table),
        5 | 6 => update(rng, connection, &name, table),
        7 => {
            let from = key(rng);
            let sql = format!("UPDATE {name} SET a = a + 1 WHERE id BETWEEN ?1 AND ?1 + 9");
            connection.execute(&sql, [from])?;
            for row in table.rows.range_mut(from..=from + 9).map(|(_, row)| row) {
                if let Value::Integer(a) = &mut row[0] {
                    *a += 1;
                }
            }
            Ok(())
        }
        8 | 9 => {
            let id = key(rng);
            let sql = format!("DELETE FROM {name} WHERE id = ?1");
            let gone = connection.execute(&sql, [id])?;
            assert_eq!(gone, usize::from(table.rows.remove(&id).is_some()));
            Ok(())
        }
        10 => {
            let from = key(rng);
            let sql = format!("DELETE FROM {name} WHERE id BETWEEN ?1 AND ?1 + 5");
            connection.execute(&sql, [from])?;
            table.rows.retain(|id, _| !(from..=from + 5).contains(id));
            Ok(())
        }
        _ => fail_half_way(rng, connection, &name, table),
    }
}

fn put(rng: &mut Rng, connection: &Connection, name: &str, table: &mut Table) -> Result<()> {
    let (id, row) = (key(rng), row(rng, table));
    let places = vec!["?"; row.len() + 1].join(", ");
    let sql = format!("INSERT OR REPLACE INTO {name} VALUES ({places})");
    let values = std::iter::once(Value::Integer(id)).chain(row.iter().cloned());
    connection.execute(&sql, params_from_iter(values))?;
    table.rows.insert(id, row);
    Ok(())
}

fn update(rng: &mut Rng, connection: &Connection, name: &str, table: &mut Table) -> Result<()> {
    let (id, c) = (key(rng), Value::Blob(bytes(rng)));
    let b = Value::Text(format!("b{}", rng.below(100)));
    let sql = format!("UPDATE {name} SET b = ?2, c = ?3 WHERE id = ?1");
    let changed = connection.execute(&sql, params![id, b, c])?;
    let known = table.rows.get_mut(&id);
    assert_eq!(changed, usize::from(known.is_some()));
    if let Some(row) = known {
        (row[1], row[2]) = (b, c);
    }
    Ok(())
}

/// A statement that fails at its second row, and leaves nothing of its first.
fn fail_half_way(
    rng: &mut Rng,
    connection: &Connection,
    name: &str,
    table: &mut Table,
) -> Result<()> {
    let Some(there) = table.rows.keys().next().copied() else {
        return put(rng, connection, name, table);
    };
    let sql = format!("INSERT INTO {name} (id, a) VALUES (?1, 1), (?2, 2)");
    match connection.execute(&sql, params![1_000 + key(rng), there]) {
        Ok(_) => panic!("row {there} was inserted twice"),
        Err(error) if error.to_string().contains("UNIQUE") => Ok(()),
        Err(error) => Err(error),
    }
}

/// Many rows by one prepared statement.
pub(super) fn load(rng: &mut Rng, connection: &Connection, state: &mut State) -> Result<()> {
    let Some(name) = pick(rng, state) else {
        return schema(rng, connection, state);
    };
    let table = state.table(&name).expect("it was just picked");
    let sql = format!("INSERT OR REPLACE INTO {name} (id, a, b, c) VALUES (?1, ?2, ?3, ?4)");
    let mut statement = connection.prepare(&sql)?;
    let first = 100 + rng.below(100) as i64;
    for id in first..first + 40 + rng.below(60) as i64 {
        let mut row = vec![
            Value::Integer(id / 3),
            Value::Text(format!("row {id}")),
            Value::Blob(vec![id as u8; rng.index(120)]),
        ];
        statement.execute(params![id, row[0], row[1], row[2]])?;
        row.resize(3 + table.added, Value::Null);
        table.rows.insert(id, row);
    }
    Ok(())
}
