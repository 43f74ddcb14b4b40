//! Order, equality and hashing of values.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::ValueRef;
use super::collate::{self, CollationName};

/// How texts compare. The built-in collations can be persisted: each has a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Collation {
    /// memcmp
    #[default]
    Binary,
    /// As BINARY with ASCII letters folded.
    NoCase,
    /// As BINARY without trailing spaces.
    RTrim,
    /// One of the program's, which compares and has no sort key.
    Program(CollationName),
}

impl Collation {
    /// The collation of this name, in any case; None for one that is not built in.
    pub fn by_name(name: &str) -> Option<Collation> {
        [Collation::Binary, Collation::NoCase, Collation::RTrim]
            .into_iter()
            .find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// It is one of the program's.
    #[inline]
    pub fn is_of_program(self) -> bool {
        matches!(self, Collation::Program(_))
    }

    /// SQLite's name, or the program's.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Binary => "BINARY",
            Collation::NoCase => "NOCASE",
            Collation::RTrim => "RTRIM",
            Collation::Program(name) => name.text(),
        }
    }

    /// Compares two texts.
    #[inline]
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Collation::Binary => a.cmp(b),
            Collation::NoCase => {
                for (x, y) in a.iter().zip(b) {
                    match x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase()) {
                        Ordering::Equal => {}
                        other => return other,
                    }
                }
                a.len().cmp(&b.len())
            }
            Collation::RTrim => trim_spaces(a).cmp(trim_spaces(b)),
            Collation::Program(name) => collate::compare(name, a, b),
        }
    }
}

/// Without the spaces at the end.
#[inline]
pub(crate) fn trim_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| *b != b' ').map_or(0, |i| i + 1);
    text.get(..end).unwrap_or(&[])
}

/// Total order: NULL < numbers < text < blobs; numbers exactly, text by the
/// collation, NULL equal to NULL. Affinity is the caller's to apply.
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collation: Collation) -> Ordering {
    use ValueRef::{Blob, Integer, Null, Real, Text};
    match (a, b) {
        (Integer(x), Integer(y)) => x.cmp(&y),
        (Text(x), Text(y)) => collation.compare(x, y),
        (Real(x), Real(y)) => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        (Integer(x), Real(y)) => compare_integer_real(x, y),
        (Real(x), Integer(y)) => compare_integer_real(y, x).reverse(),
        (Blob(x), Blob(y)) => x.cmp(y),
        (Null, Null) => Ordering::Equal,
        _ => class(a).cmp(&class(b)),
    }
}

fn class(v: ValueRef<'_>) -> u8 {
    match v {
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => 1,
        ValueRef::Text(_) => 2,
        ValueRef::Blob(_) => 3,
    }
}

/// Exact comparison of an integer with a real.
#[inline]
pub fn compare_integer_real(i: i64, r: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if r >= LIMIT {
        return Ordering::Less;
    }
    if r < -LIMIT {
        return Ordering::Greater;
    }
    // In range, so truncation is exact and the rest is the fraction.
    match i.cmp(&(r as i64)) {
        Ordering::Equal => 0.0f64
            .partial_cmp(&(r - r.trunc()))
            .unwrap_or(Ordering::Equal),
        other => other,
    }
}

/// `IS`: equal, or both NULL.
#[inline]
pub fn not_distinct(a: ValueRef<'_>, b: ValueRef<'_>, collation: Collation) -> bool {
    compare(a, b, collation) == Ordering::Equal
}

/// Feeds the value to a hasher so that values that [`compare`] equal under the
/// collation hash the same.
#[inline]
pub fn hash<H: Hasher>(value: ValueRef<'_>, collation: Collation, state: &mut H) {
    match value {
        ValueRef::Null => state.write_u8(0),
        ValueRef::Integer(i) => {
            state.write_u8(1);
            state.write_i64(i);
        }
        ValueRef::Real(r) => {
            let i = r as i64;
            if compare_integer_real(i, r) == Ordering::Equal {
                state.write_u8(1);
                state.write_i64(i);
            } else {
                state.write_u8(2);
                state.write_u64(r.to_bits());
            }
        }
        ValueRef::Text(t) => {
            state.write_u8(3);
            match collation {
                Collation::Binary => t.hash(state),
                Collation::RTrim => trim_spaces(t).hash(state),
                Collation::NoCase => {
                    let mut folded = [0u8; 64];
                    for chunk in t.chunks(folded.len()) {
                        if let Some(part) = folded.get_mut(..chunk.len()) {
                            part.copy_from_slice(chunk);
                            part.make_ascii_lowercase();
                            state.write(part);
                        }
                    }
                    state.write_usize(t.len());
                }
                // Nobody knows which texts are equal.
                Collation::Program(_) => {}
            }
        }
        ValueRef::Blob(b) => {
            state.write_u8(4);
            b.hash(state);
        }
    }
}
