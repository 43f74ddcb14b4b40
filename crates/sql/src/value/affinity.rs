//! Column affinity: which storage class a column or a comparison prefers.

use std::borrow::Cow;

use super::number::{Numeric, numeric_whole};
use super::{Value, ValueRef, real_to_integer};

/// SQLite's five affinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Affinity {
    /// BLOB, formerly NONE: takes values as they come.
    #[default]
    Blob,
    /// Numbers become text.
    Text,
    /// Text that is a number becomes one, integral reals become integers.
    Numeric,
    /// As NUMERIC; differs in CAST only.
    Integer,
    /// As NUMERIC, and integers become reals.
    Real,
}

impl Affinity {
    /// The affinity of a declared column type, by the substrings SQLite looks
    /// for; an empty type has BLOB affinity.
    pub fn of_declared_type(declared: &str) -> Affinity {
        let lower = declared.to_ascii_lowercase();
        if lower.contains("int") {
            Affinity::Integer
        } else if lower.contains("char") || lower.contains("clob") || lower.contains("text") {
            Affinity::Text
        } else if lower.contains("blob") || lower.trim().is_empty() {
            Affinity::Blob
        } else if lower.contains("real") || lower.contains("floa") || lower.contains("doub") {
            Affinity::Real
        } else {
            Affinity::Numeric
        }
    }

    /// NUMERIC, INTEGER or REAL.
    #[inline]
    pub fn is_numeric(self) -> bool {
        matches!(self, Affinity::Numeric | Affinity::Integer | Affinity::Real)
    }

    /// Does a value of this kind stay as it is? The common case on the way into
    /// a column, told without touching the value.
    #[inline]
    pub fn keeps(self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (Affinity::Blob, _) | (_, ValueRef::Null | ValueRef::Blob(_)) => true,
            (Affinity::Text, v) => matches!(v, ValueRef::Text(_)),
            // A column stores -0.0 as 0, as SQLite's records do.
            (Affinity::Real, v) => {
                matches!(v, ValueRef::Real(r) if r != 0.0 || r.is_sign_positive())
            }
            (Affinity::Numeric | Affinity::Integer, v) => matches!(v, ValueRef::Integer(_)),
        }
    }

    /// The value as a column of this affinity stores it.
    #[inline]
    pub fn apply<'a>(self, value: ValueRef<'a>) -> Applied<'a> {
        if self.keeps(value) {
            Applied::Same(value)
        } else {
            self.convert(value)
        }
    }

    /// Whether a column of this affinity does not store the value as it is.
    #[inline]
    pub fn changes(self, value: ValueRef<'_>) -> bool {
        !self.keeps(value) && self.converts(value)
    }

    fn converts(self, value: ValueRef<'_>) -> bool {
        match (value, self.convert(value)) {
            (_, Applied::Changed(_)) => true,
            (ValueRef::Real(one), Applied::Same(ValueRef::Real(other))) => {
                one.to_bits() != other.to_bits()
            }
            (before, Applied::Same(after)) => {
                std::mem::discriminant(&before) != std::mem::discriminant(&after)
            }
        }
    }

    /// As [`Affinity::apply`] for an owned value.
    pub fn apply_owned(self, value: Value) -> Value {
        if self.keeps(value.as_ref()) {
            return value;
        }
        self.convert(value.as_ref()).into_value()
    }

    /// An operand as a comparison of this affinity sees it: NUMERIC turns text
    /// that is a number into one, TEXT turns numbers into text, BLOB leaves
    /// everything alone.
    #[inline]
    pub fn apply_comparison<'a>(self, value: ValueRef<'a>) -> Applied<'a> {
        match (self, value) {
            (Affinity::Blob, _) => Applied::Same(value),
            (Affinity::Text, ValueRef::Integer(_) | ValueRef::Real(_)) => self.convert(value),
            (Affinity::Numeric | Affinity::Integer | Affinity::Real, ValueRef::Text(_)) => {
                Applied::Same(to_numeric(value).unwrap_or(value))
            }
            _ => Applied::Same(value),
        }
    }

    /// The affinity of a comparison (NUMERIC, TEXT or BLOB) from its operands';
    /// None is an expression without affinity (a literal, a computed value).
    ///
    /// Two operands with affinity compare numerically if either is numeric,
    /// else as they are; one with affinity hands it to the other.
    pub fn of_comparison(left: Option<Affinity>, right: Option<Affinity>) -> Affinity {
        match (left, right) {
            (Some(l), Some(r)) if l.is_numeric() || r.is_numeric() => Affinity::Numeric,
            (Some(_), Some(_)) | (None, None) => Affinity::Blob,
            (Some(one), None) | (None, Some(one)) if one.is_numeric() => Affinity::Numeric,
            (Some(one), None) | (None, Some(one)) => one,
        }
    }

    fn convert<'a>(self, value: ValueRef<'a>) -> Applied<'a> {
        match self {
            Affinity::Blob => Applied::Same(value),
            Affinity::Text => match value.to_text() {
                Some(Cow::Owned(text)) => Applied::Changed(Value::Text(text)),
                _ => Applied::Same(value),
            },
            Affinity::Numeric | Affinity::Integer => match to_numeric(value) {
                Some(number) => Applied::Same(number),
                None => Applied::Same(value),
            },
            Affinity::Real => match to_numeric(value) {
                Some(ValueRef::Integer(i)) => Applied::Same(ValueRef::Real(i as f64)),
                Some(ValueRef::Real(r)) => Applied::Same(ValueRef::Real(r)),
                _ => match value {
                    ValueRef::Integer(i) => Applied::Same(ValueRef::Real(i as f64)),
                    other => Applied::Same(other),
                },
            },
        }
    }
}

/// NUMERIC affinity where it changes something: text that is a number, and
/// integral reals. None: stays.
fn to_numeric(value: ValueRef<'_>) -> Option<ValueRef<'static>> {
    match value {
        ValueRef::Text(text) => match numeric_whole(text)? {
            Numeric::Integer(i) => Some(ValueRef::Integer(i)),
            Numeric::Real(r) => Some(integral(r).map_or(ValueRef::Real(r), ValueRef::Integer)),
        },
        ValueRef::Real(r) => integral(r).map(ValueRef::Integer),
        _ => None,
    }
}

/// The integer an integral real stands for; the two ends of the range are left
/// out, where rounding may have clamped.
fn integral(r: f64) -> Option<i64> {
    let i = real_to_integer(r);
    (i as f64 == r && i > i64::MIN && i < i64::MAX).then_some(i)
}

/// A value after affinity: mostly the one that went in, or one that borrows
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied<'a> {
    /// The value itself, or a number in its place.
    Same(ValueRef<'a>),
    /// A new text.
    Changed(Value),
}

impl Applied<'_> {
    /// Borrows it either way.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Applied::Same(v) => *v,
            Applied::Changed(v) => v.as_ref(),
        }
    }

    /// Owns it either way.
    pub fn into_value(self) -> Value {
        match self {
            Applied::Same(v) => v.to_value(),
            Applied::Changed(v) => v,
        }
    }
}
