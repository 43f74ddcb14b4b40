//! Rows and keys: exact round trips, order as SQLite's, golden bytes, and no
//! panic on any bytes.

mod common;

use std::cmp::Ordering;

use common::{Bound, Random, same, show};
use fulgurite_sql::key::{self, AFTER, KeyColumn, Residues};
use fulgurite_sql::row::{FEW, RowReader, RowWriter};
use fulgurite_sql::value::{Collation, Value, ValueRef, compare, hash};

const COLLATIONS: [Collation; 3] = [Collation::Binary, Collation::NoCase, Collation::RTrim];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn encoded(value: ValueRef<'_>, column: KeyColumn) -> Vec<u8> {
    let mut out = Vec::new();
    key::encode(&mut out, value, column);
    out
}

#[test]
fn rows_come_back_bit_for_bit() {
    let mut random = Random(1);
    for round in 0..20_000 {
        let count = match round % 10 {
            0 => random.below(200),
            1 => 0,
            _ => random.below(8),
        } as usize;
        let mut values: Vec<Value> = (0..count).map(|_| random.value()).collect();
        if round % 50 == 0 {
            values.push(Value::Text(vec![b'x'; random.below(70_000) as usize]));
            values.push(Value::Blob(vec![7; random.below(300) as usize]));
        }
        let mut row = Vec::new();
        RowWriter::encode(&mut row, values.iter().map(Value::as_ref)).unwrap();
        let reader = RowReader::new(&row).unwrap();
        assert_eq!(reader.len(), values.len());
        reader.validate().unwrap();
        for (i, v) in values.iter().enumerate() {
            let back = reader.column(i).unwrap().to_value();
            assert!(same(&back, v), "column {i}: {} is {}", show(v), show(&back));
        }
        let all: Vec<Value> = reader.values().map(|v| v.unwrap().to_value()).collect();
        assert!(all.iter().zip(&values).all(|(a, b)| same(a, b)) && all.len() == values.len());
        let selected: Vec<usize> = (0..values.len()).filter(|_| random.below(3) == 0).collect();
        let mut got = Vec::new();
        reader
            .select(selected.iter().copied(), |place, v| {
                got.push((place, v.to_value()));
                Ok(())
            })
            .unwrap();
        assert!(
            got.iter()
                .zip(&selected)
                .enumerate()
                .all(|(n, ((p, v), i))| *p == n && same(v, &values[*i]))
        );
        assert_eq!(got.len(), selected.len());
        assert_eq!(
            reader
                .column_or(values.len(), ValueRef::Integer(9))
                .unwrap(),
            ValueRef::Integer(9)
        );
    }
}

#[test]
fn row_bytes_are_as_documented() {
    let bytes = |values: &[ValueRef<'_>]| {
        let mut row = Vec::new();
        RowWriter::encode(&mut row, values.iter().copied()).unwrap();
        hex(&row)
    };
    use ValueRef::{Blob, Integer, Null, Real, Text};
    assert_eq!(bytes(&[]), "00");
    assert_eq!(bytes(&[Null, Text(b"ann"), Text(b"")]), "03008380616e6e");
    assert_eq!(
        bytes(&[
            Integer(0),
            Integer(63),
            Integer(64),
            Integer(-1),
            Integer(300)
        ]),
        "05407f01010240ff2c01"
    );
    assert_eq!(bytes(&[Integer(i64::MIN)]), "01080000000000000080");
    assert_eq!(
        bytes(&[Real(1.0), Real(12.34), Real(0.5), Real(-0.0)]),
        "040b10100a01d204320000000080"
    );
    assert_eq!(
        bytes(&[Real(0.1234567)]),
        format!("0109{}", hex(&0.1234567f64.to_le_bytes()))
    );
    assert_eq!(bytes(&[Blob(&[1, 2])]), "01e20102");
    let long = [b'x'; 96];
    assert_eq!(bytes(&[Text(&long)]), format!("012060{}", hex(&long)));
    // 17 columns: one offset, little-endian, before the tags.
    let many: Vec<ValueRef<'_>> = (0..17).map(|_| Integer(100)).collect();
    assert_eq!(
        bytes(&many),
        format!("1110000000{}{}", "01".repeat(17), "64".repeat(17))
    );
}

#[test]
fn any_bytes_decode_without_panic() {
    let mut random = Random(2);
    for _ in 0..200_000 {
        let mut bytes: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 && !bytes.is_empty() {
            bytes[0] = random.below(24) as u8;
        }
        if let Ok(row) = RowReader::new(&bytes) {
            let _ = row.validate();
            for i in 0..row.len() + 1 {
                let _ = row.column(i);
            }
            let _ = row.values().count();
            let _ = row.select(0..row.len(), |_, _| Ok(()));
        }
        for tag in [
            bytes.first().copied().unwrap_or(0),
            0x10 + random.below(0x2c) as u8,
        ] {
            if let Some(first) = bytes.first_mut() {
                *first = tag;
            }
            let descending = random.below(2) == 0;
            let (mut input, mut taken) = (bytes.as_slice(), bytes.as_slice());
            let column = KeyColumn {
                descending,
                ..KeyColumn::default()
            };
            let decoded = key::decode(&mut input, column, None);
            match key::take_integer(&mut taken, descending) {
                Some(integer) => {
                    let decoded = decoded.expect("a number").into_value();
                    assert!(same(&decoded, &Value::Integer(integer)));
                    assert_eq!(input, taken);
                }
                None => assert_eq!(taken, bytes.as_slice()),
            }
            let mut input = bytes.as_slice();
            let _ = key::skip(&mut input);
            let mut input = bytes.as_slice();
            let _ = key::decode_rowid(&mut input);
            let _ = key::rowid_suffix(&bytes);
        }
        if let Ok(mut residues) = Residues::new(&bytes) {
            for i in 0..8 {
                let _ = residues.take(i);
            }
        }
    }
}

#[test]
fn keys_order_as_sqlite_orders_values() {
    let mut random = Random(3);
    let mut values: Vec<Value> = (0..700).map(|_| random.value()).collect();
    for i in [
        (1i64 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX,
        i64::MAX - 1,
        i64::MIN,
        i64::MIN + 1,
    ] {
        values.push(Value::Integer(i));
        values.push(Value::Real(i as f64));
        values.push(Value::Real(-(i as f64)));
    }
    for text in [
        "", "a", "A", "a ", "A  ", "a\0", "a\0b", "a\u{1}", "ab", "a b",
    ] {
        values.push(Value::Text(text.as_bytes().to_vec()));
        values.push(Value::Blob(text.as_bytes().to_vec()));
    }
    let sqlite = rusqlite::Connection::open_in_memory().unwrap();
    for collation in COLLATIONS {
        let sql = format!(
            "SELECT CASE WHEN ?1 IS ?2 COLLATE {0} THEN 0 \
             WHEN ?1 IS NULL OR ?1 COLLATE {0} < ?2 THEN -1 ELSE 1 END",
            collation.name()
        );
        let mut statement = sqlite.prepare(&sql).unwrap();
        let columns = [false, true].map(|descending| KeyColumn {
            collation,
            descending,
            real: false,
        });
        let keys: Vec<[Vec<u8>; 2]> = values
            .iter()
            .map(|v| columns.map(|c| encoded(v.as_ref(), c)))
            .collect();
        for i in 0..values.len() {
            for j in (i..values.len()).step_by(1 + i % 3) {
                let (a, b) = (values[i].as_ref(), values[j].as_ref());
                // SQLite's NOCASE stops at a NUL; ours does not.
                let nul = |v: ValueRef<'_>| matches!(v, ValueRef::Text(t) if t.contains(&0));
                let order = compare(a, b, collation);
                if !(collation == Collation::NoCase && (nul(a) || nul(b))) {
                    let theirs: i64 = statement
                        .query_row((Bound(a), Bound(b)), |r| r.get(0))
                        .unwrap();
                    assert_eq!(
                        order,
                        theirs.cmp(&0),
                        "{} {} {}",
                        show(&values[i]),
                        show(&values[j]),
                        collation.name()
                    );
                }
                let shown = || {
                    format!(
                        "{} {} {}",
                        show(&values[i]),
                        show(&values[j]),
                        collation.name()
                    )
                };
                assert_eq!(keys[i][0].cmp(&keys[j][0]), order, "ascending {}", shown());
                assert_eq!(
                    keys[i][1].cmp(&keys[j][1]),
                    order.reverse(),
                    "descending {}",
                    shown()
                );
                for (x, y) in keys[i].iter().zip(&keys[j]) {
                    let prefix = x.starts_with(y) || y.starts_with(x);
                    assert!(order == Ordering::Equal || !prefix, "prefix: {}", shown());
                }
                if order == Ordering::Equal {
                    let hashed = |v: ValueRef<'_>| {
                        let mut h = std::hash::DefaultHasher::new();
                        hash(v, collation, &mut h);
                        std::hash::Hasher::finish(&h)
                    };
                    assert_eq!(hashed(a), hashed(b), "{}", shown());
                }
            }
        }
    }
}

#[test]
fn keys_and_residues_restore_the_value() {
    let mut random = Random(4);
    for _ in 0..100_000 {
        let columns: Vec<KeyColumn> = (0..random.below(4) + 1)
            .map(|_| KeyColumn {
                collation: *random.pick(&COLLATIONS),
                descending: random.below(2) == 0,
                real: random.below(4) == 0,
            })
            .collect();
        let values: Vec<Value> = columns.iter().map(|_| random.value()).collect();
        let (rowid, unique) = (random.integer(), random.below(2) == 0);
        let (mut entry_key, mut entry_value) = (Vec::new(), Vec::new());
        let exclusive = key::encode_entry(
            &mut entry_key,
            &mut entry_value,
            &columns,
            values.iter().map(Value::as_ref),
            rowid,
            unique,
        );
        assert_eq!(exclusive, unique && values.iter().all(|v| !v.is_null()));
        assert_eq!(
            key::entry_rowid(&entry_key, &entry_value, unique).unwrap(),
            rowid
        );
        let mut residue = entry_value.as_slice();
        if unique {
            assert_eq!(key::decode_rowid(&mut residue).unwrap(), rowid);
        }
        let mut residues = Residues::new(residue).unwrap();
        let (mut input, mut skipped) = (entry_key.as_slice(), entry_key.as_slice());
        for (i, (column, value)) in columns.iter().zip(&values).enumerate() {
            let residue = residues.take(i).unwrap();
            let mut taken = input;
            let integer = key::take_integer(&mut taken, column.descending);
            let back = key::decode(&mut input, *column, residue)
                .unwrap()
                .into_value();
            if let (Value::Integer(value), None, false) = (value, residue, column.real) {
                assert_eq!(integer.is_some(), value.unsigned_abs() < 1 << 55);
                assert!(integer.is_none_or(|it| it == *value && taken == input));
            }
            assert!(
                same(&back, value),
                "{} came back as {} {column:?}",
                show(value),
                show(&back)
            );
            key::skip(&mut skipped).unwrap();
            assert_eq!(input, skipped);
        }
        if exclusive {
            assert!(input.is_empty());
        } else {
            assert_eq!(key::rowid_suffix(&entry_key).unwrap(), rowid);
            assert_eq!(key::decode_rowid(&mut input).unwrap(), rowid);
        }
        let mut prefix = Vec::new();
        key::encode_prefix(&mut prefix, &columns[..1], values.iter().map(Value::as_ref));
        assert!(entry_key.starts_with(&prefix));
        prefix.push(AFTER);
        assert!(prefix > entry_key);
    }
}

#[test]
fn rowids_order_as_integers() {
    let mut random = Random(5);
    let mut rowids: Vec<i64> = (0..2000).map(|_| random.integer()).collect();
    for bits in 0..63 {
        rowids.extend([(1 << bits) - 1, 1 << bits, -(1 << bits), -(1 << bits) - 1]);
    }
    let encoded: Vec<Vec<u8>> = rowids
        .iter()
        .map(|r| {
            let mut out = Vec::new();
            key::encode_rowid(&mut out, *r);
            out
        })
        .collect();
    for (a, x) in rowids.iter().zip(&encoded) {
        assert_eq!(key::rowid_suffix(x).unwrap(), *a);
        for (b, y) in rowids.iter().zip(&encoded) {
            assert_eq!(x.cmp(y), a.cmp(b), "{a} {b}");
        }
    }
}

#[test]
fn key_bytes_are_as_documented() {
    use ValueRef::{Blob, Integer, Null, Real, Text};
    let plain = KeyColumn::default();
    let golden: [(ValueRef<'_>, &str); 22] = [
        (Null, "08"),
        (Real(f64::NEG_INFINITY), "10800fffffffffffff"),
        (Integer(i64::MIN), "11feffffffffffffffff"),
        (Real(-9_223_372_036_854_775_808.0), "11feffffffffffffffff"),
        (Integer(-129), "18fefd"),
        (Integer(-1), "19fd"),
        (Real(-0.5), "19fec01fffffffffffff"),
        (Integer(0), "1a"),
        (Real(-0.0), "1a"),
        (Real(0.5), "1b013fe0000000000000"),
        (Integer(1), "1b02"),
        (Real(1.5), "1b033fe0000000000000"),
        (Integer(127), "1bfe"),
        (Integer(128), "1c0100"),
        (Integer(1 << 53), "2140000000000000"),
        (Real(9_223_372_036_854_775_808.0), "23010000000000000000"),
        (Real(1e300), "247e37e43c8800759c"),
        (Text(b""), "3000"),
        (Text(b"ab"), "30616200"),
        (Text(b"a\0\x01"), "30610101010200"),
        (Blob(b""), "3800"),
        (Blob(&[0xff]), "38ff00"),
    ];
    for (value, expected) in golden {
        assert_eq!(hex(&encoded(value, plain)), expected, "{value:?}");
        let descending = KeyColumn {
            descending: true,
            ..plain
        };
        let complement: Vec<u8> = encoded(value, descending).iter().map(|b| !b).collect();
        assert_eq!(hex(&complement), expected);
    }
    assert_eq!(
        hex(&encoded(
            Text(b"AbC"),
            KeyColumn {
                collation: Collation::NoCase,
                ..plain
            }
        )),
        "3061626300"
    );
    assert_eq!(
        hex(&encoded(
            Text(b"a  "),
            KeyColumn {
                collation: Collation::RTrim,
                ..plain
            }
        )),
        "306100"
    );
    let rowid = |r| {
        let mut out = Vec::new();
        key::encode_rowid(&mut out, r);
        hex(&out)
    };
    assert_eq!(rowid(0), "5100");
    assert_eq!(rowid(1), "5108");
    assert_eq!(rowid(31), "51f8");
    assert_eq!(rowid(32), "520101");
    assert_eq!(rowid(-1), "4ff8");
    assert_eq!(rowid(i64::MAX), "5903ffffffffffffffff");
    assert_eq!(rowid(i64::MIN), "47040000000000000007");
}

#[test]
fn rows_of_integers_are_encoded_as_any_other() {
    let edges = (0..63).flat_map(|bit| [1_i64 << bit, -(1 << bit) - 1, (1 << bit) - 1]);
    let edges: Vec<Option<i64>> = edges.map(Some).chain([None, Some(i64::MIN)]).collect();
    for count in 0..=FEW {
        for first in 0..edges.len() {
            let values: Vec<_> = edges.iter().cycle().skip(first).take(count).collect();
            let (mut integers, mut any) = (vec![1, 2], vec![1, 2]);
            RowWriter::encode_integers(&mut integers, values.iter().map(|value| **value));
            let as_any = values
                .iter()
                .map(|v| v.map_or(ValueRef::Null, ValueRef::Integer));
            RowWriter::encode(&mut any, as_any).expect("encodes");
            assert_eq!(integers, any, "{values:?}");
        }
    }
}
