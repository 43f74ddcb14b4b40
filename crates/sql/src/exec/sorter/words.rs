//! Sorting by keys' bytes, eight at a time.
//!
//! A comparison that has to look into the keys misses the cache for either. So each entry
//! has a word of its key beside it: the entries are sorted by the first ones, what is equal
//! by the next, and so on. However much the keys begin alike, each is looked at once a word.

/// Entries that are compared by all that is left of their keys.
const FEW: usize = 12;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// A record of an arena: the key, and behind it the payload.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// A word of the key, at first the first one.
    pub word: u64,
    pub start: usize,
    pub key: u32,
    pub payload: u32,
}

impl Entry {
    #[inline]
    pub fn key_in<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let range = self.start..self.start + self.key as usize;
        arena.get(range).unwrap_or(&[])
    }

    /// The key from a place on.
    #[inline]
    fn key_from<'a>(&self, arena: &'a [u8], at: usize) -> &'a [u8] {
        self.key_in(arena).get(at..).unwrap_or(&[])
    }

    /// Bytes of the word at a place that are the key's; one more where the key goes on
    /// behind it.
    #[inline]
    fn left(&self, at: usize) -> usize {
        (self.key as usize).saturating_sub(at).min(WORD + 1)
    }
}

/// A key's first eight bytes, missing ones as zeros, so that they compare as numbers.
#[inline]
pub(super) fn word(key: &[u8]) -> u64 {
    if let Some(word) = key.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; WORD];
    for (to, from) in word.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

/// Sorts entries, which have the first words of their keys, by the keys, and equal ones by
/// their places. Afterwards their words are any of their keys.
pub(super) fn sort(arena: &[u8], entries: &mut [Entry]) {
    // Whose keys are the same up to a place, with the words there. No recursion: keys may
    // be long.
    let mut parts = vec![(0..entries.len(), 0)];
    while let Some((part, at)) = parts.pop() {
        let Some(same) = entries.get_mut(part.clone()) else {
            continue;
        };
        if same.len() <= FEW {
            same.sort_unstable_by(|a, b| {
                let words = a.word.cmp(&b.word);
                let keys = || a.key_from(arena, at).cmp(b.key_from(arena, at));
                words.then_with(keys).then(a.start.cmp(&b.start))
            });
            continue;
        }
        // Equal words may be padded ones: of such keys the shorter is less.
        same.sort_unstable_by(|a, b| {
            let words = a.word.cmp(&b.word);
            words.then_with(|| (a.left(at), a.start).cmp(&(b.left(at), b.start)))
        });
        let mut from = part.start;
        for equal in same.chunk_by_mut(|a, b| a.word == b.word) {
            let ended = equal.partition_point(|entry| entry.left(at) <= WORD);
            from += equal.len();
            let (_, go_on) = equal.split_at_mut(ended);
            if go_on.len() > 1 {
                for entry in &mut *go_on {
                    entry.word = word(entry.key_from(arena, at + WORD));
                }
                parts.push((from - go_on.len()..from, at + WORD));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that begin alike, end early, or end with what missing bytes count as.
    #[test]
    fn sorts_as_bytes_compare() {
        let mut seed = 11u64;
        let mut next = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        for count in [0, 1, 2, 13, 500, 3000] {
            let (mut arena, mut keys) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let mut key = vec![7; next(4) as usize * 9];
                key.extend((0..next(12)).map(|_| next(3) as u8));
                keys.push((key, keys.len()));
            }
            let mut entries = Vec::new();
            for (key, _) in &keys {
                entries.push(Entry {
                    word: word(key),
                    start: arena.len(),
                    key: key.len() as u32,
                    payload: 8,
                });
                arena.extend_from_slice(key);
                arena.extend_from_slice(&(entries.len() - 1).to_le_bytes());
            }
            sort(&arena, &mut entries);
            keys.sort();
            let place = |entry: &Entry| {
                let end = entry.start + entry.key as usize;
                usize::from_le_bytes(arena[end..end + 8].try_into().unwrap())
            };
            let sorted = entries.iter();
            let sorted: Vec<_> = sorted
                .map(|entry| (entry.key_in(&arena).to_vec(), place(entry)))
                .collect();
            assert_eq!(sorted, keys);
        }
    }

    /// However long: parts wait in a list.
    #[test]
    fn long_keys_need_no_stack() {
        let mut arena = Vec::new();
        let mut entries = Vec::new();
        for last in (0..20u8).rev() {
            entries.push(Entry {
                word: 0,
                start: arena.len(),
                key: 1 << 20,
                payload: 0,
            });
            arena.resize(arena.len() + (1 << 20) - 1, 0);
            arena.push(last);
        }
        sort(&arena, &mut entries);
        let lasts: Vec<_> = entries
            .iter()
            .map(|entry| entry.key_in(&arena).last())
            .collect();
        assert!(lasts.is_sorted() && lasts.len() == 20);
    }
}
