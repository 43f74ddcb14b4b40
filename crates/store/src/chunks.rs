//! A list that grows by chunks: appending never copies what is there, and what is
//! consumed is given back a chunk at a time. So the lists of a large transaction
//! take no more than their length, also while they are taken over.
//!
//! The first chunk grows like any vector and is kept when the list is cleared;
//! any chunk may be partly filled.

use std::iter::Flatten;

/// Entries of a chunk.
const CHUNK: usize = 1024;

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    first: Vec<T>,
    rest: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            rest: Vec::new(),
        }
    }
}

impl<T> Chunks<T> {
    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        if self.rest.is_empty() && self.first.len() < CHUNK {
            self.first.push(entry);
        } else {
            self.push_behind(entry);
        }
    }

    #[cold]
    fn push_behind(&mut self, entry: T) {
        match self.rest.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(entry),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(entry);
                self.rest.push(chunk);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flatten())
    }

    /// One of the entries of the first chunk.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.first.get(index)
    }

    /// The entry that was appended first.
    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        let rest = self.rest.iter_mut().flatten();
        self.first.iter_mut().chain(rest).next()
    }

    /// Keeps the first `length` entries.
    pub(crate) fn truncate(&mut self, length: usize) {
        let mut left = length;
        self.first.truncate(left);
        left -= self.first.len();
        for chunk in &mut self.rest {
            chunk.truncate(left);
            left -= chunk.len();
        }
        self.rest.retain(|chunk| !chunk.is_empty());
    }

    /// Forgets all entries; room for a chunk is kept.
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.rest = Vec::new();
    }

    /// Keeps the entries that `keep` says.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.first.retain(&mut keep);
        self.rest
            .iter_mut()
            .for_each(|chunk| chunk.retain(&mut keep));
        self.close_up();
    }

    /// Takes out the entries that `pick` picks.
    pub(crate) fn extract(&mut self, mut pick: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken: Vec<T> = self.first.extract_if(.., |entry| pick(entry)).collect();
        for chunk in &mut self.rest {
            taken.extend(chunk.extract_if(.., |entry| pick(entry)));
        }
        self.close_up();
        taken
    }

    /// After entries were taken out of the middle: gives back the chunks that are empty,
    /// and where half of the room in the others is, makes full ones of them.
    fn close_up(&mut self) {
        self.rest.retain(|chunk| !chunk.is_empty());
        let left: usize = self.rest.iter().map(Vec::len).sum();
        if left < self.rest.len() * CHUNK / 2 {
            let sparse = std::mem::take(&mut self.rest);
            self.extend(sparse.into_iter().flatten());
        }
    }
}

impl<T> Extend<T> for Chunks<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        list.extend(entries);
        list
    }
}

impl<T> IntoIterator for Chunks<T> {
    type Item = T;
    type IntoIter = Flatten<std::iter::Chain<std::iter::Once<Vec<T>>, std::vec::IntoIter<Vec<T>>>>;

    /// Gives each chunk's memory back once it is consumed.
    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.rest).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists from which nearly all was taken out of the middle, again and again, kept a
    /// chunk's room for each that they had ever had: 85 MB for a transaction in a cache of
    /// 16 MiB.
    #[test]
    fn room_is_given_back_where_entries_are_taken_out() {
        for one_stays_in in [usize::MAX, 2 * CHUNK, 700, 3] {
            let (mut kept, mut extracted) = (Chunks::default(), Chunks::default());
            let mut model = Vec::new();
            let stays = |entry: usize| entry.is_multiple_of(one_stays_in);
            for round in 0..50 {
                for entry in 1..=3 * CHUNK {
                    let entry = round * 3 * CHUNK + entry;
                    kept.push(entry);
                    extracted.push(entry);
                    model.extend(stays(entry).then_some(entry));
                }
                kept.retain(|entry| stays(*entry));
                extracted.extract(|entry| !stays(*entry));
                for list in [&kept, &extracted] {
                    assert!(list.iter().eq(&model));
                    let room: usize = list.rest.iter().map(Vec::capacity).sum();
                    assert!(room <= 2 * model.len() + CHUNK, "{room}");
                }
            }
        }
    }

    #[test]
    fn behaves_like_a_vector() {
        let mut list = Chunks::default();
        let mut model: Vec<usize> = Vec::new();
        for length in [0, 1, 1023, 1024, 1025, 5000, 2048, 1024, 3, 0, 4000] {
            while model.len() < length {
                list.push(model.len());
                model.push(model.len());
            }
            list.truncate(length);
            model.truncate(length);
            assert_eq!(list.len(), length);
            assert!(list.iter().eq(&model));
            assert_eq!(list.first_mut().copied(), model.first().copied());
        }
        let odd = list.extract(|entry| entry % 2 == 1);
        let (also_odd, even): (Vec<usize>, Vec<usize>) =
            model.into_iter().partition(|entry| entry % 2 == 1);
        assert_eq!(odd, also_odd);
        assert!(list.iter().eq(&even));
        list.retain(|entry| entry % 4 == 0);
        let even: Vec<usize> = even.into_iter().filter(|entry| entry % 4 == 0).collect();
        assert!(list.iter().eq(&even));
        list.push(7);
        let all: Vec<usize> = list.into_iter().collect();
        assert_eq!(all.len(), even.len() + 1);
    }
}
