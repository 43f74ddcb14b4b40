//! The order of keys of which some texts compare by a collation of the program.
//!
//! Such a text is encoded as under BINARY. Keys in which there are none compare by memcmp,
//! as all stored keys do.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{KeyColumn, decode, skip, tag};
use crate::value::{Collation, ValueRef};

/// See the module.
#[derive(Clone, Default)]
pub struct Order(Option<Arc<[Collation]>>);

impl Order {
    /// Of keys whose columns have these collations.
    pub fn of(collations: impl IntoIterator<Item = Collation>) -> Self {
        let collations: Arc<[Collation]> = collations.into_iter().collect();
        Self(any_of_program(&collations).then_some(collations))
    }

    /// It is that of the keys' bytes.
    #[inline]
    pub fn is_bytes(&self) -> bool {
        self.0.is_none()
    }

    /// Compares two keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.0 {
            None => a.cmp(b),
            Some(collations) => by_columns(a, b, collations),
        }
    }

    /// Whether they are equal.
    #[inline]
    pub fn is_equal(&self, a: &[u8], b: &[u8]) -> bool {
        match &self.0 {
            None => a == b,
            Some(collations) => by_columns(a, b, collations).is_eq(),
        }
    }
}

/// Whether one of these is the program's.
pub fn any_of_program(collations: &[Collation]) -> bool {
    collations.iter().any(|it| it.is_of_program())
}

#[cold]
fn by_columns(mut a: &[u8], mut b: &[u8], collations: &[Collation]) -> Ordering {
    for collation in collations {
        let order = marks(&mut a, &mut b).then_with(|| column(&mut a, &mut b, *collation));
        if order.is_ne() {
            return order;
        }
    }
    a.cmp(b)
}

/// The byte before a column that puts NULLs first or last, which no column begins with.
fn marks(a: &mut &[u8], b: &mut &[u8]) -> Ordering {
    let take = |key: &mut &[u8]| match **key {
        [mark, ref rest @ ..] if mark < tag::NULL => {
            *key = rest;
            Some(mark)
        }
        _ => None,
    };
    take(a).cmp(&take(b))
}

fn column(a: &mut &[u8], b: &mut &[u8], collation: Collation) -> Ordering {
    let (whole_a, whole_b) = (*a, *b);
    if skip(a).is_err() || skip(b).is_err() {
        return whole_a.cmp(whole_b);
    }
    let part = |whole: &[u8], rest: &[u8]| whole.len() - rest.len();
    let part_a = whole_a.get(..part(whole_a, a)).unwrap_or(whole_a);
    let part_b = whole_b.get(..part(whole_b, b)).unwrap_or(whole_b);
    let descending = part_a.first().is_some_and(|tag| *tag >= tag::COMPLEMENTED);
    let how = KeyColumn {
        descending,
        ..KeyColumn::default()
    };
    if collation.is_of_program()
        && let (Ok(text_a), Ok(text_b)) = (
            decode(&mut { part_a }, how, None),
            decode(&mut { part_b }, how, None),
        )
        && let (ValueRef::Text(text_a), ValueRef::Text(text_b)) = (text_a.as_ref(), text_b.as_ref())
    {
        let order = collation.compare(text_a, text_b);
        return if descending { order.reverse() } else { order };
    }
    part_a.cmp(part_b)
}
