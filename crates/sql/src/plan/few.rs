//! Ordered sets of few members: the sources that a condition reads, the columns of a source.
//!
//! Planning makes dozens of them for a short statement, most of one or two numbers. Up to
//! four lie in the set itself; more are a sorted list.

use smallvec::SmallVec;

/// A set in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Few<T>(SmallVec<[T; 4]>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few(SmallVec::new())
    }
}

impl<T: Copy + Ord> Few<T> {
    /// One without members.
    pub fn new() -> Few<T> {
        Few::default()
    }

    /// Adds a member; whether it was not there before. Many are better added at once, by
    /// `extend`.
    pub fn insert(&mut self, member: T) -> bool {
        match self.0.binary_search(&member) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, member);
                true
            }
        }
    }

    /// Takes a member away; whether it was there.
    pub fn remove(&mut self, member: &T) -> bool {
        let found = self.0.binary_search(member);
        if let Ok(at) = found {
            self.0.remove(at);
        }
        found.is_ok()
    }

    /// Whether it has this member.
    pub fn contains(&self, member: &T) -> bool {
        self.0.binary_search(member).is_ok()
    }

    /// Whether the other one has all its members.
    pub fn is_subset(&self, other: &Few<T>) -> bool {
        self.0.iter().all(|member| other.contains(member))
    }

    /// Its members in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Copy + Ord> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        let mut in_order = true;
        for member in members {
            match self.0.last() {
                Some(last) if *last == member => continue,
                Some(last) => in_order &= *last < member,
                None => {}
            }
            self.0.push(member);
        }
        if !in_order {
            self.0.sort_unstable();
            self.0.dedup();
        }
    }
}

impl<T: Copy + Ord> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Few<T> {
        let mut few = Few::new();
        few.extend(members);
        few
    }
}

impl<T: Copy + Ord, const N: usize> From<[T; N]> for Few<T> {
    fn from(members: [T; N]) -> Few<T> {
        members.into_iter().collect()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Few;
    use std::collections::BTreeSet;

    #[test]
    fn members_are_in_order_and_there_once() {
        let mut state = 7_usize;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let (mut few, mut set) = (Few::new(), BTreeSet::new());
            for _ in 0..next(12) {
                let member = next(9);
                match next(4) {
                    0 => assert_eq!(few.remove(&member), set.remove(&member)),
                    1 => {
                        let more: Vec<usize> = (0..next(5)).map(|_| next(9)).collect();
                        few.extend(more.iter().copied());
                        set.extend(more);
                    }
                    _ => assert_eq!(few.insert(member), set.insert(member)),
                }
                assert!(few.iter().eq(&set), "{few:?} {set:?}");
                assert_eq!(few.contains(&member), set.contains(&member));
            }
            let other: Vec<usize> = (0..next(9)).map(|_| next(9)).collect();
            let is_subset = set.is_subset(&other.iter().copied().collect());
            assert_eq!(few.is_subset(&other.into_iter().collect()), is_subset);
            assert_eq!(few.len(), set.len());
            assert_eq!(few.is_empty(), set.is_empty());
        }
    }
}
