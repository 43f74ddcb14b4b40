//! Forging: rows, entries of indexes, rows of sqlite_schema and numbers that no writer made.

use fulgurite_sql::row::{RowReader, RowWriter};
use fulgurite_sql::{Value, ValueRef};
use fulgurite_store::{Store, TreeId};

use super::trees::{self, Contents, Entries, OwnedKey};
use crate::Rng;

/// The longest key that is made up.
const KEY_MAX: usize = 3_000;

/// What is forged; which of them, the seed says.
pub(super) fn some(store: &Store, rng: &mut Rng) -> Vec<String> {
    let schema = family(store, "sqlite_schema");
    let numbers = family(store, "fulgurite_numbers");
    let mut done = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let contents = trees::contents(store);
        let (of_rows, of_indexes): (Vec<u32>, Vec<u32>) = (contents.iter())
            .filter(|(number, entries)| **number != 0 && !entries.is_empty())
            .filter(|(number, _)| **number != schema && **number != numbers)
            .map(|(number, _)| *number)
            .partition(|number| matches!(contents[number][0].0, OwnedKey::Int(_)));
        done.push(match rng.below(20) {
            0..8 => rows(store, &contents, of_rows[rng.index(of_rows.len())], rng),
            8..13 => entries(
                store,
                &contents,
                of_indexes[rng.index(of_indexes.len())],
                rng,
            ),
            13..19 => super::schema::forge(store, &contents, schema, rng),
            _ => number(store, numbers, rng),
        });
    }
    done
}

fn family(store: &Store, name: &str) -> u32 {
    let found = store.family(name).expect("nothing fails");
    found.expect("it was made").id().0
}

fn number(store: &Store, tree: u32, rng: &mut Rng) -> String {
    let bytes = strange_bytes(rng, 12);
    let key = OwnedKey::Int(1 + rng.below(2) as i64);
    trees::change(store, tree, &[(key.clone(), Some(bytes.clone()))]);
    format!("number {key:?}: {bytes:?}")
}

fn rows(store: &Store, contents: &Contents, tree: u32, rng: &mut Rng) -> String {
    let old = &contents[&tree];
    let (key, row) = old[rng.index(old.len())].clone();
    let changes = match rng.below(12) {
        0 => vec![(key, None)],
        1 => {
            let other = OwnedKey::Int(rowid(rng));
            vec![(key, None), (other, Some(row))]
        }
        2 => vec![(OwnedKey::Int(rowid(rng)), Some(row))],
        3 => {
            let others: Vec<&Entries> = contents.values().filter(|it| !it.is_empty()).collect();
            let other = others[rng.index(others.len())];
            let (_, row) = other[rng.index(other.len())].clone();
            vec![(key, Some(row))]
        }
        4..7 => vec![(key, Some(other_values(&row, rng)))],
        _ => vec![(key, Some(bent(row, rng)))],
    };
    trees::change(store, tree, &changes);
    format!("row of tree {tree}: {}", shown(&changes))
}

fn shown(changes: &[(OwnedKey, Option<Vec<u8>>)]) -> String {
    let mut text = format!("{changes:?}");
    let mut end = text.len().min(700);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn rowid(rng: &mut Rng) -> i64 {
    match rng.below(6) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => -1,
        3 => 0,
        4 => 1 + rng.below(30) as i64,
        _ => rng.bits() as i64,
    }
}

/// A row that can be read, with values of its own choice in some of the columns.
fn other_values(row: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut values: Vec<Value> = match RowReader::new(row) {
        Ok(reader) => reader
            .values()
            .map_while(Result::ok)
            .map(ValueRef::to_value)
            .collect(),
        Err(_) => Vec::new(),
    };
    for _ in 0..1 + rng.below(2) {
        match (rng.below(8), values.len()) {
            (0, len) if len > 0 => values.truncate(rng.index(len)),
            (1, _) => values.extend((0..=rng.index(20)).map(|_| value(rng))),
            (_, 0) => values.push(value(rng)),
            (_, len) => values[rng.index(len)] = value(rng),
        }
    }
    let mut out = Vec::new();
    RowWriter::encode(&mut out, values.iter().map(Value::as_ref)).expect("these are few");
    out
}

pub(super) fn value(rng: &mut Rng) -> Value {
    match rng.below(12) {
        0 => Value::Null,
        1 => Value::Integer([i64::MIN, i64::MAX, 0, 1 << 53, -1][rng.index(5)]),
        2 => Value::Integer(rng.below(9) as i64),
        3 => Value::Real([0.5, -0.0, 4.0, f64::INFINITY, 9.3e18, -9.3e18][rng.index(6)]),
        4 => Value::from(["12", "1e1", " 7", "0x1f", "-0.0", "9223372036854775808"][rng.index(6)]),
        5 => Value::from(["Text 3", "text 4", "KEY1", "v1", "v1 ", "two", ""][rng.index(7)]),
        6 => Value::Text(strange_bytes(rng, 40)),
        7 => Value::Text(vec![b'l'; rng.index(5_000)]),
        8 => Value::from(ValueRef::Blob(&strange_bytes(rng, 40))),
        9 => Value::from(ValueRef::Blob(&vec![7; rng.index(12_000)])),
        10 => Value::Text(vec![0xf0, 0x9f, 0x98]),
        _ => Value::Integer(rng.bits() as i64 >> rng.below(64)),
    }
}

fn strange_bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    (0..rng.index(most)).map(|_| strange(rng)).collect()
}

/// Bytes that mean something in rows and keys, more often than others.
fn strange(rng: &mut Rng) -> u8 {
    match rng.below(4) {
        0 => rng.below(64) as u8,
        1 => [0, 0x7f, 0x80, 0xff][rng.index(4)],
        2 => [8, 0x1a, 0x24, 0x30, 0x38, 0x51, 0x4f, 0x28, 0x29, 0x2d][rng.index(10)],
        _ => rng.bits() as u8,
    }
}

/// Bytes of which some are others, are missing, or come twice.
fn bent(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..1 + rng.below(2) {
        let len = bytes.len();
        // What says how the rest is read lies in front.
        let at = match rng.one_in(2) {
            true => rng.index(len.min(12) + 1).min(len),
            false => rng.index(len + 1),
        };
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.extend(strange_bytes(rng, 20)),
            2 => {
                let other = strange_bytes(rng, 9);
                bytes.splice(at..at, other);
            }
            3 => {
                let number = [0, 1, 0x7fff_ffff, u64::MAX, 1 << 31, 0xffff][rng.index(6)];
                let count = 4.min(len - at);
                bytes[at..at + count].copy_from_slice(&number.to_le_bytes()[..count]);
            }
            4 if at < len => {
                bytes.remove(at);
            }
            5 if rng.one_in(4) => bytes = strange_bytes(rng, 60),
            _ if at < len => bytes[at] = strange(rng),
            _ => bytes.push(strange(rng)),
        }
    }
    bytes
}

fn entries(store: &Store, contents: &Contents, tree: u32, rng: &mut Rng) -> String {
    let old = &contents[&tree];
    let (key, value) = old[rng.index(old.len())].clone();
    let other = old[rng.index(old.len())].clone();
    let OwnedKey::Bytes(bytes) = &key else {
        return String::new();
    };
    let changes = match rng.below(9) {
        0 => vec![(key, None)],
        1 => vec![(key, Some(other.1)), (other.0, Some(value))],
        2 => vec![(key, Some(bent(value, rng)))],
        3 => old.iter().map(|(key, _)| (key.clone(), None)).collect(),
        4 => {
            let mut long = bytes.clone();
            let end = rng.index(KEY_MAX);
            long.resize(long.len() + end, strange(rng));
            vec![(OwnedKey::Bytes(long), Some(value))]
        }
        5 => {
            // The same parts, another row.
            let mut entry = bytes.clone();
            entry.truncate(bytes.len().saturating_sub(2));
            fulgurite_sql::key::encode_rowid(&mut entry, rowid(rng));
            vec![(OwnedKey::Bytes(entry), Some(value))]
        }
        6 => {
            let mut value = Vec::new();
            fulgurite_sql::key::encode_rowid(&mut value, rowid(rng));
            vec![(key, Some(value))]
        }
        _ => {
            let forged = OwnedKey::Bytes(bent(bytes.clone(), rng));
            let mut changes = vec![(forged, Some(value))];
            if rng.one_in(2) && changes[0].0 != key {
                changes.push((key, None));
            }
            changes
        }
    };
    let is_there = |number: u32| store.tree(TreeId(number)).is_ok();
    assert!(is_there(tree), "it was read");
    trees::change(store, tree, &changes);
    format!("entry of tree {tree}: {}", shown(&changes))
}
