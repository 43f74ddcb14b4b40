//! Loops over plain integers and reals.
//!
//! A kernel either does all selected rows or says that it cannot (other types,
//! an overflow that must become a real), and then nothing it wrote counts.

use std::cmp::Ordering;

use crate::bind::expr::{BinaryOp, CompareOp};
use crate::exec::batch::{Selection, Vector};
use crate::exec::expr::batch::Operand;
use crate::value::ValueRef;

/// Integers up to these are exactly reals.
const EXACT_MAX: i64 = 1 << 53;
const EXACT_MIN: i64 = -EXACT_MAX;

/// A numeric operand: an array, or one number for all rows.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// As they are.
    Integers(&'a [i64]),
    /// `f64` bits.
    Reals(&'a [i64]),
    /// One integer.
    Integer(i64),
    /// One real.
    Real(f64),
}

impl<'a> Numbers<'a> {
    /// The operand as numbers, if it is nothing else.
    pub fn of(operand: &'a Operand<'_>) -> Option<Self> {
        match operand.vector() {
            Some(vector) => vector
                .integers()
                .map(Numbers::Integers)
                .or_else(|| vector.reals().map(Numbers::Reals)),
            None => match operand.get(0) {
                ValueRef::Integer(i) => Some(Numbers::Integer(i)),
                ValueRef::Real(r) => Some(Numbers::Real(r)),
                _ => None,
            },
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Numbers::Integers(_) | Numbers::Integer(_))
    }

    #[inline]
    fn integer(self, row: usize) -> i64 {
        match self {
            Numbers::Integers(words) => words.get(row).copied().unwrap_or(0),
            Numbers::Integer(i) => i,
            Numbers::Reals(_) | Numbers::Real(_) => 0,
        }
    }

    #[inline]
    fn real(self, row: usize) -> f64 {
        match self {
            Numbers::Integers(words) => words.get(row).map_or(0.0, |w| *w as f64),
            Numbers::Integer(i) => i as f64,
            Numbers::Reals(words) => words.get(row).map_or(0.0, |w| f64::from_bits(*w as u64)),
            Numbers::Real(r) => r,
        }
    }
}

/// `+ - * / %` over numbers. False: not done.
pub fn arithmetic(
    op: BinaryOp,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vector,
) -> bool {
    use BinaryOp::{Add, Divide, Multiply, Remainder, Subtract};
    if !matches!(op, Add | Subtract | Multiply | Divide | Remainder) {
        return false;
    }
    let (Some(a), Some(b)) = (Numbers::of(a), Numbers::of(b)) else {
        return false;
    };
    if a.is_integer() && b.is_integer() {
        let words = out.integers_mut(selection.end());
        return match op {
            Add => integers(a, b, selection, words, i64::overflowing_add),
            Subtract => integers(a, b, selection, words, i64::overflowing_sub),
            Multiply => integers(a, b, selection, words, i64::overflowing_mul),
            Divide => integers(a, b, selection, words, divided(i64::wrapping_div)),
            _ => integers(a, b, selection, words, divided(i64::wrapping_rem)),
        };
    }
    if op == Remainder {
        return false;
    }
    let words = out.reals_mut(selection.end());
    match op {
        Add => reals(a, b, selection, words, |x, y| x + y),
        Subtract => reals(a, b, selection, words, |x, y| x - y),
        Multiply => reals(a, b, selection, words, |x, y| x * y),
        _ => reals(a, b, selection, words, |x, y| match y == 0.0 {
            true => f64::NAN,
            false => x / y,
        }),
    }
    out.nan_to_null();
    true
}

/// A quotient or a rest, where the divisor is neither 0, which gives NULL, nor -1, which the
/// least integer has no quotient by.
fn divided(f: impl Fn(i64, i64) -> i64) -> impl Fn(i64, i64) -> (i64, bool) {
    move |x, y| match y {
        -1 | 0 => (0, true),
        _ => (f(x, y), false),
    }
}

#[inline]
fn integers(
    a: Numbers<'_>,
    b: Numbers<'_>,
    selection: Selection<'_>,
    out: &mut [i64],
    f: impl Fn(i64, i64) -> (i64, bool),
) -> bool {
    let mut overflow = false;
    let mut one = |row: usize| {
        let (value, over) = f(a.integer(row), b.integer(row));
        overflow |= over;
        if let Some(slot) = out.get_mut(row) {
            *slot = value;
        }
    };
    selection.each(&mut one);
    !overflow
}

#[inline]
fn reals(
    a: Numbers<'_>,
    b: Numbers<'_>,
    selection: Selection<'_>,
    out: &mut [i64],
    f: impl Fn(f64, f64) -> f64,
) {
    selection.each(|row| {
        let value = f(a.real(row), b.real(row));
        if let Some(slot) = out.get_mut(row) {
            *slot = value.to_bits() as i64;
        }
    });
}

/// Appends to `out` the selected rows for which `a op b` holds, comparing
/// numbers with one kind on both sides, or reals with an integer that is exactly a real.
/// False: not done, `out` as it was.
pub fn select(
    op: CompareOp,
    a: &Operand<'_>,
    b: &Operand<'_>,
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) -> bool {
    let (Some(a), Some(b)) = (Numbers::of(a), Numbers::of(b)) else {
        return false;
    };
    match (a, b) {
        (Numbers::Integers(words), Numbers::Integer(y)) => {
            let at = |row: usize| words.get(row).copied().unwrap_or(0);
            keep_where(op, at, y, selection, out);
            true
        }
        (Numbers::Reals(words), Numbers::Real(_) | Numbers::Integer(EXACT_MIN..=EXACT_MAX)) => {
            let at = |row: usize| {
                words
                    .get(row)
                    .map_or(0.0, |word| f64::from_bits(*word as u64))
            };
            keep_where(op, at, b.real(0), selection, out);
            true
        }
        _ if a.is_integer() && b.is_integer() => {
            keep(selection, out, |row| {
                super::compare::holds(op, a.integer(row).cmp(&b.integer(row)))
            });
            true
        }
        _ if !a.is_integer() && !b.is_integer() => {
            keep(selection, out, |row| {
                let order = a
                    .real(row)
                    .partial_cmp(&b.real(row))
                    .unwrap_or(Ordering::Equal);
                super::compare::holds(op, order)
            });
            true
        }
        _ => false,
    }
}

/// The commonest filters, one tight loop an operator.
fn keep_where<T: PartialOrd + Copy>(
    op: CompareOp,
    at: impl Fn(usize) -> T,
    y: T,
    selection: Selection<'_>,
    out: &mut Vec<u32>,
) {
    match op {
        CompareOp::Equal | CompareOp::Is => keep(selection, out, |row| at(row) == y),
        CompareOp::NotEqual | CompareOp::IsNot => keep(selection, out, |row| at(row) != y),
        CompareOp::Less => keep(selection, out, |row| at(row) < y),
        CompareOp::LessEqual => keep(selection, out, |row| at(row) <= y),
        CompareOp::Greater => keep(selection, out, |row| at(row) > y),
        CompareOp::GreaterEqual => keep(selection, out, |row| at(row) >= y),
    }
}

/// Appends the rows for which `f` holds, without branching on it.
#[inline]
fn keep(selection: Selection<'_>, out: &mut Vec<u32>, f: impl Fn(usize) -> bool) {
    let start = out.len();
    out.resize(start + selection.len(), 0);
    let mut kept = start;
    let mut one = |row: usize| {
        if let Some(slot) = out.get_mut(kept) {
            *slot = row as u32;
        }
        kept += usize::from(f(row));
    };
    selection.each(&mut one);
    out.truncate(kept);
}
