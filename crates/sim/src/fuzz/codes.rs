//! Keys and rows: what was encoded comes back, and in its order; bytes that
//! nobody encoded are an error, never a panic.

use fulgurite_sql::key::{self, KeyColumn, Residues};
use fulgurite_sql::row::{RowReader, RowWriter};
use fulgurite_sql::{Value, ValueRef};

use crate::Rng;

pub(super) fn run(rng: &mut Rng) {
    match rng.below(4) {
        0 => rows(rng),
        1 => keys(rng),
        2 => strange_rows(rng),
        _ => strange_keys(rng),
    }
}

fn value(rng: &mut Rng) -> Value {
    match rng.below(9) {
        0 => Value::Null,
        1 => Value::Integer(rng.bits() as i64 >> rng.below(64)),
        2 => Value::Integer([i64::MIN, i64::MAX, 0, 1 << 53][rng.index(4)]),
        3 => Value::Real(rng.below(1000) as f64 / 8.0),
        4 => match f64::from_bits(rng.bits()) {
            number if number.is_nan() => Value::Real(0.5),
            number => Value::Real(number),
        },
        5 | 6 => Value::from(&*text(rng)),
        _ => Value::from(ValueRef::Blob(text(rng).as_bytes())),
    }
}

fn text(rng: &mut Rng) -> String {
    let len = rng.index(30);
    (0..len)
        .map(|_| ['a', 'Z', '\0', 'é', ' ', '\u{ff}', '\u{10ffff}'][rng.index(7)])
        .collect()
}

fn same(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Real(a), ValueRef::Real(b)) => a.to_bits() == b.to_bits(),
        (a, b) => format!("{a:?}") == format!("{b:?}"),
    }
}

fn rows(rng: &mut Rng) {
    let values: Vec<Value> = (0..rng.index(40)).map(|_| value(rng)).collect();
    let mut bytes = Vec::new();
    RowWriter::encode(&mut bytes, values.iter().map(Value::as_ref)).expect("these are few");
    let reader = RowReader::new(&bytes).expect("it was just encoded");
    reader.validate().expect("it was just encoded");
    assert_eq!(reader.len(), values.len());
    for (at, value) in values.iter().enumerate() {
        let found = reader.column(at).expect("it was just encoded");
        assert!(
            same(found, value.as_ref()),
            "column {at}: {found:?}, not {value:?}"
        );
    }
    // Cut anywhere, it is no row, or another one; never a panic.
    let cut = rng.index(bytes.len() + 1);
    look_at_row(&bytes[..cut]);
    if let Some(byte) = bytes.get_mut(cut) {
        *byte = rng.bits() as u8;
    }
    look_at_row(&bytes);
}

fn strange_rows(rng: &mut Rng) {
    let bytes: Vec<u8> = (0..rng.index(200)).map(|_| strange(rng)).collect();
    look_at_row(&bytes);
}

fn strange(rng: &mut Rng) -> u8 {
    match rng.below(3) {
        0 => rng.below(40) as u8,
        1 => [0, 0x7f, 0x80, 0xff][rng.index(4)],
        _ => rng.bits() as u8,
    }
}

fn look_at_row(bytes: &[u8]) {
    let Ok(reader) = RowReader::new(bytes) else {
        return;
    };
    let valid = reader.validate().is_ok();
    for at in 0..reader.len().min(300) {
        let column = reader.column(at);
        assert!(column.is_ok() || !valid, "column {at} of a valid row");
    }
    let _ = reader.column(usize::MAX);
    for value in reader.values() {
        assert!(value.is_ok() || !valid, "a value of a valid row");
    }
}

fn column(rng: &mut Rng) -> KeyColumn {
    KeyColumn {
        descending: rng.one_in(2),
        real: rng.one_in(4),
        ..KeyColumn::default()
    }
}

fn keys(rng: &mut Rng) {
    let column = column(rng);
    let (one, other) = (value(rng), value(rng));
    let encoded = |value: &Value| {
        let mut key = Vec::new();
        key::encode(&mut key, value.as_ref(), column);
        key
    };
    let (a, b) = (encoded(&one), encoded(&other));
    // Prefix-free, so that what follows a column never matters.
    assert!(
        a == b || !a.starts_with(&b) && !b.starts_with(&a),
        "{one:?} and {other:?}"
    );
    let mut rest = &a[..];
    key::skip(&mut rest).expect("it was just encoded");
    assert!(rest.is_empty());
    let mut residue = Vec::new();
    key::encode_residue(&mut residue, 0, one.as_ref(), column);
    let found = Residues::new(&residue).and_then(|mut residues| {
        let residue = residues.take(0)?;
        let mut rest = &a[..];
        let value = key::decode(&mut rest, column, residue)?;
        assert!(rest.is_empty());
        Ok(value.into_value())
    });
    let found = found.expect("it was just encoded");
    assert!(same(found.as_ref(), one.as_ref()), "{found:?}, not {one:?}");
}

fn strange_keys(rng: &mut Rng) {
    let bytes: Vec<u8> = (0..rng.index(60)).map(|_| strange(rng)).collect();
    let column = column(rng);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let before = rest.len();
        if key::skip(&mut rest).is_err() {
            break;
        }
        assert!(rest.len() < before, "a column of no bytes");
    }
    let mut rest = &bytes[..];
    let _ = key::decode(&mut rest, column, None);
    if let Ok(mut residues) = Residues::new(&bytes) {
        for at in 0..4 {
            if let Ok(residue) = residues.take(at) {
                let _ = key::decode(&mut &bytes[..], column, residue);
            }
        }
    }
    let _ = key::decode_rowid(&mut &bytes[..]);
    let _ = key::rowid_suffix(&bytes);
    for unique in [true, false] {
        let half = bytes.len() / 2;
        let _ = key::entry_rowid(&bytes[..half], &bytes[half..], unique);
    }
}
