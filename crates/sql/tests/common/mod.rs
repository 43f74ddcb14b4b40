//! What the value tests share: a seeded generator of values that like to
//! collide, and bundled SQLite to ask.

#![allow(dead_code, reason = "each test file uses a part")]

use fulgurite_sql::value::{Value, ValueRef};
use rusqlite::types::{ToSqlOutput, Value as Their, ValueRef as TheirRef};

/// SplitMix64, so that a seed alone repeats a run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub fn integer(&mut self) -> i64 {
        const EDGES: [i64; 14] = [
            0,
            1,
            -1,
            63,
            64,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            1 << 53,
            (1 << 53) + 1,
            -(1 << 53) - 1,
            127,
            -128,
            9_223_372_036_854_774_784,
        ];
        match self.below(4) {
            0 => *self.pick(&EDGES),
            1 => self.below(200) as i64 - 100,
            _ => (self.next() as i64) >> self.below(64),
        }
    }

    pub fn real(&mut self) -> f64 {
        const EDGES: [f64; 16] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1e300,
            -1e300,
            5e-324,
            f64::INFINITY,
            f64::NEG_INFINITY,
            9_223_372_036_854_775_808.0,
            -9_223_372_036_854_775_808.0,
            9_007_199_254_740_992.0,
            1e15,
            123_456_789_012_345.67,
        ];
        loop {
            let r = match self.below(6) {
                0 => *self.pick(&EDGES),
                1 => self.integer() as f64,
                2 => self.below(1_000_000) as f64 / 100.0,
                3 => (self.below(2_000_000) as f64 - 1e6) / 1000.0,
                4 => self.next() as f64 / self.next() as f64,
                _ => f64::from_bits(self.next()),
            };
            if !r.is_nan() {
                return r;
            }
        }
    }

    pub fn text(&mut self) -> Vec<u8> {
        const EDGES: [&str; 40] = [
            "",
            " ",
            "a",
            "A",
            "abc",
            "ABC",
            "aBc ",
            "abc  ",
            "ab",
            "1",
            "1.0",
            " 1 ",
            "-0",
            "0x10",
            "1e3",
            "1e",
            ".5",
            "5.",
            "-",
            "+1",
            "é",
            "É",
            "日本語",
            "%a%",
            "_b_",
            "a%b",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "1e400",
            "12abc",
            "  7.5x",
            "\u{1}",
            "z\u{1}b",
            "it's",
            "1.5e-3",
            "00012",
            "1234567890123456789012",
            "0.1",
            "inf",
        ];
        match self.below(5) {
            0 | 1 => self.pick(&EDGES).as_bytes().to_vec(),
            2 => self.real().to_string().into_bytes(),
            3 => self.integer().to_string().into_bytes(),
            _ => (0..self.below(12))
                .map(|_| *self.pick(b"aAbBzZ019 .-+eE%_'*?[]^\xc3\xa9"))
                .collect::<Vec<u8>>(),
        }
    }

    pub fn value(&mut self) -> Value {
        match self.below(10) {
            0 => Value::Null,
            1..=3 => Value::Integer(self.integer()),
            4..=5 => Value::Real(self.real()),
            6..=8 => Value::Text(
                String::from_utf8_lossy(&self.text())
                    .into_owned()
                    .into_bytes(),
            ),
            _ => Value::Blob(
                (0..self.below(6))
                    .map(|_| *self.pick(b"\0\x01\x02a1\xff"))
                    .collect(),
            ),
        }
    }
}

/// A value as rusqlite binds it.
pub struct Bound<'a>(pub ValueRef<'a>);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            ValueRef::Null => ToSqlOutput::Owned(Their::Null),
            ValueRef::Integer(i) => ToSqlOutput::Owned(Their::Integer(i)),
            ValueRef::Real(r) => ToSqlOutput::Owned(Their::Real(r)),
            ValueRef::Text(t) => ToSqlOutput::Borrowed(TheirRef::Text(t)),
            ValueRef::Blob(b) => ToSqlOutput::Borrowed(TheirRef::Blob(b)),
        })
    }
}

/// What rusqlite answered, as ours.
pub fn ours(value: TheirRef<'_>) -> Value {
    match value {
        TheirRef::Null => Value::Null,
        TheirRef::Integer(i) => Value::Integer(i),
        TheirRef::Real(r) => Value::Real(r),
        TheirRef::Text(t) => Value::Text(t.to_vec()),
        TheirRef::Blob(b) => Value::Blob(b.to_vec()),
    }
}

/// Equal to the bit, so that 0.0 and -0.0 differ.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Real(x), Value::Real(y)) => x.to_bits() == y.to_bits(),
        _ => a == b,
    }
}

/// A value as a person reads it in a failure.
pub fn show(value: &Value) -> String {
    let mut out = Vec::new();
    fulgurite_sql::value::quote(value.as_ref(), &mut out);
    format!("{}:{}", value.kind().name(), String::from_utf8_lossy(&out))
}
