//! Sums: exact over integers, compensated over reals.

use crate::value::{Numeric, ValueRef, numeric_whole};

/// A running sum. Integers add up exactly in 128 bits until a real comes; from
/// then on everything is added with the error kept aside (Kahan, Babuška,
/// Neumaier), as SQLite does since 3.43.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    count: u64,
    integers: i128,
    reals: Option<Compensated>,
}

/// What a sum came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Total {
    /// Only integers were added.
    Integer(i128),
    /// A real was among them.
    Real(f64),
}

#[derive(Debug, Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    error: f64,
}

impl Compensated {
    #[inline]
    fn add(&mut self, r: f64) {
        let s = self.sum;
        let t = s + r;
        self.error += if s.abs() > r.abs() {
            (s - t) + r
        } else {
            (r - t) + s
        };
        self.sum = t;
    }

    /// In two parts that are each exact as a double.
    fn add_integer(&mut self, i: i64) {
        if (-(1 << 52)..=1 << 52).contains(&i) {
            self.add(i as f64);
        } else {
            let low = i % (1 << 14);
            self.add((i - low) as f64);
            self.add(low as f64);
        }
    }

    fn value(self) -> f64 {
        if self.error.is_nan() {
            self.sum
        } else {
            self.sum + self.error
        }
    }
}

impl Sum {
    /// Values added, NULLs left out.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds any value: NULL is passed over, text that is a number counts as
    /// one, other text as its prefix.
    #[inline]
    pub(super) fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(i) => self.add_integer(i),
            ValueRef::Real(r) => self.add_real(r),
            ValueRef::Text(text) => match numeric_whole(text) {
                Some(Numeric::Integer(i)) => self.add_integer(i),
                _ => self.add_real(value.to_real()),
            },
            ValueRef::Blob(_) => self.add_real(value.to_real()),
        }
    }

    #[inline]
    fn add_integer(&mut self, i: i64) {
        self.count += 1;
        match &mut self.reals {
            None => self.integers += i128::from(i),
            Some(reals) => reals.add_integer(i),
        }
    }

    #[inline]
    fn add_real(&mut self, r: f64) {
        self.count += 1;
        self.reals().add(r);
    }

    /// The compensated sum, which takes over what the integers came to.
    fn reals(&mut self) -> &mut Compensated {
        let integers = self.integers;
        self.reals.get_or_insert_with(|| {
            let mut start = Compensated::default();
            match i64::try_from(integers) {
                Ok(i) => start.add_integer(i),
                Err(_) => {
                    let high = integers as f64;
                    start.add(high);
                    start.add((integers - high as i128) as f64);
                }
            }
            start
        })
    }

    /// Takes away what was added. Reals leave what their sum cannot hold, and the sum
    /// stays a real without them, as SQLite's does.
    #[inline]
    pub(super) fn remove(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(i) => self.remove_integer(i),
            ValueRef::Real(r) => self.remove_real(r),
            ValueRef::Text(text) => match numeric_whole(text) {
                Some(Numeric::Integer(i)) => self.remove_integer(i),
                _ => self.remove_real(value.to_real()),
            },
            ValueRef::Blob(_) => self.remove_real(value.to_real()),
        }
    }

    #[inline]
    fn remove_integer(&mut self, i: i64) {
        self.count -= 1;
        match &mut self.reals {
            None => self.integers -= i128::from(i),
            Some(reals) => match i.checked_neg() {
                Some(negated) => reals.add_integer(negated),
                None => {
                    reals.add_integer(i64::MAX);
                    reals.add_integer(1);
                }
            },
        }
    }

    #[inline]
    fn remove_real(&mut self, r: f64) {
        self.count -= 1;
        self.reals().add(-r);
    }

    /// Adds a vector of integers.
    pub(super) fn add_integers(&mut self, values: &[i64]) {
        if self.reals.is_some() {
            values.iter().for_each(|i| self.add_integer(*i));
        } else {
            self.count += values.len() as u64;
            self.integers += values.iter().map(|i| i128::from(*i)).sum::<i128>();
        }
    }

    /// Adds reals.
    pub(super) fn add_reals(&mut self, values: impl ExactSizeIterator<Item = f64>) {
        if values.len() == 0 {
            return;
        }
        self.count += values.len() as u64;
        let mut running = *self.reals();
        values.for_each(|r| running.add(r));
        self.reals = Some(running);
    }

    /// The sum.
    pub(super) fn total(&self) -> Total {
        self.reals
            .map_or(Total::Integer(self.integers), |r| Total::Real(r.value()))
    }

    /// The sum as a real.
    pub(super) fn real(&self) -> f64 {
        match self.total() {
            Total::Integer(i) => i as f64,
            Total::Real(r) => r,
        }
    }
}
