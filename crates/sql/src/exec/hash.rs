//! Hashing and equality of rows of values: groups, DISTINCT, hash joins.
//!
//! Equal values hash alike: an integral real like its integer, texts by their
//! collation. NULL equals NULL here; a join drops NULL keys before it asks.

use crate::exec::batch::{Selection, Vector};
use crate::exec::expr::Operand;
use crate::exec::memory::KEPT_BYTES;
use crate::value::{Collation, ValueRef, not_distinct};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

#[inline]
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ SEED) * u128::from(FACTOR);
    (product as u64) ^ (product >> 64) as u64
}

fn mix_bytes(mut state: u64, bytes: &[u8], fold: bool) -> u64 {
    let fold_byte = |b: u8| if fold { b.to_ascii_lowercase() } else { b };
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        let mut word = [0u8; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = fold_byte(*from);
        }
        state = mix(state, u64::from_le_bytes(word));
    }
    let mut word = [0u8; 8];
    for (to, from) in word.iter_mut().zip(rest) {
        *to = fold_byte(*from);
    }
    mix(mix(state, u64::from_le_bytes(word)), bytes.len() as u64)
}

/// Adds a value to a hash.
#[inline]
pub fn hash_value(state: u64, value: ValueRef<'_>, collation: Collation) -> u64 {
    match value {
        ValueRef::Integer(i) => mix(state, i as u64),
        ValueRef::Null => mix(state, 0x6e75_6c6c),
        ValueRef::Real(r) => {
            let whole = r as i64;
            if whole as f64 == r && whole != i64::MAX {
                mix(state, whole as u64)
            } else {
                mix(state, r.to_bits())
            }
        }
        ValueRef::Text(b) => match collation {
            Collation::Binary => mix_bytes(state, b, false),
            Collation::NoCase => mix_bytes(state, b, true),
            Collation::RTrim => {
                let end = b.iter().rposition(|c| *c != b' ').map_or(0, |i| i + 1);
                mix_bytes(state, b.get(..end).unwrap_or(&[]), false)
            }
            // Nobody knows which texts are equal.
            Collation::Program(_) => mix(state, 0x7465_7874),
        },
        ValueRef::Blob(b) => mix_bytes(state ^ 0xb10b, b, false),
    }
}

/// Hashes of the selected rows over all keys, in the selection's order.
pub fn hash_rows<'k>(
    keys: impl Iterator<Item = (&'k Operand<'k>, Collation)>,
    selection: Selection<'_>,
    out: &mut Vec<u64>,
) {
    out.clear();
    out.resize(selection.len(), 0);
    for (key, collation) in keys {
        let mut slots = out.iter_mut();
        match key.vector().and_then(Vector::integers) {
            Some(words) => selection.each(|row| {
                if let (Some(slot), Some(word)) = (slots.next(), words.get(row)) {
                    *slot = mix(*slot, *word as u64);
                }
            }),
            None => selection.each(|row| {
                if let Some(slot) = slots.next() {
                    *slot = hash_value(*slot, key.get(row), collation);
                }
            }),
        }
    }
}

/// A hash table from rows of keys to group numbers, counted from 0 in order of
/// first appearance.
pub struct GroupTable {
    keys: Vec<Vector>,
    collations: Vec<Collation>,
    /// The keys that tell groups apart; the others follow from them.
    telling: Vec<usize>,
    hashes: Vec<u64>,
    slots: Vec<u32>,
    scratch: Vec<u64>,
}

/// No group.
pub const NONE: u32 = u32::MAX;

impl GroupTable {
    /// An empty table.
    pub fn new(collations: Vec<Collation>) -> Self {
        let telling = (0..collations.len()).collect();
        Self::told_apart_by(telling, collations)
    }

    /// An empty table whose other keys are the same wherever the `telling` ones
    /// are: they are stored, but neither hashed nor compared.
    pub fn told_apart_by(telling: Vec<usize>, collations: Vec<Collation>) -> Self {
        Self {
            keys: vec![Vector::new(); collations.len()],
            collations,
            telling,
            hashes: Vec::new(),
            slots: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Forgets all groups.
    pub fn clear(&mut self) {
        if self.hashes.is_empty() {
            return;
        }
        self.keys.iter_mut().for_each(Vector::clear);
        self.hashes.clear();
        self.slots.fill(NONE);
    }

    /// Gives large memory back; to be called when it is clear.
    pub fn release(&mut self) {
        if self.memory() > KEPT_BYTES {
            self.keys.iter_mut().for_each(|key| *key = Vector::new());
            self.hashes = Vec::new();
            self.slots = Vec::new();
        }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// No groups?
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The groups' keys, a vector a key.
    pub fn keys(&self) -> &[Vector] {
        &self.keys
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.keys.iter().map(Vector::memory).sum::<usize>()
            + self.hashes.capacity() * 8
            + self.slots.capacity() * 4
    }

    /// The group of each selected row, in the selection's order; new keys become
    /// new groups.
    pub fn insert(
        &mut self,
        keys: &[Operand<'_>],
        selection: Selection<'_>,
        groups: &mut Vec<u32>,
    ) -> crate::error::Result<()> {
        groups.clear();
        self.reserve(selection.len());
        if let Some(words) = self.plain(keys, selection) {
            return selection.try_each(|row| {
                let word = words.get(row).copied().unwrap_or(0);
                let hash = mix(0, word as u64);
                let group = match self.probe_integer(word, hash) {
                    Ok(group) => group,
                    Err(slot) => self.add(keys, row, hash, slot)?,
                };
                groups.push(group);
                Ok(())
            });
        }
        let mut hashes = std::mem::take(&mut self.scratch);
        hash_rows(self.told(keys), selection, &mut hashes);
        let mut next = hashes.iter();
        let result = selection.try_each(|row| {
            let hash = next.next().copied().unwrap_or(0);
            let group = match self.probe(keys, row, hash) {
                Ok(group) => group,
                Err(slot) => self.add(keys, row, hash, slot)?,
            };
            groups.push(group);
            Ok(())
        });
        self.scratch = hashes;
        result
    }

    /// The group of each selected row; [`NONE`] where there is none.
    pub fn find(&mut self, keys: &[Operand<'_>], selection: Selection<'_>, groups: &mut Vec<u32>) {
        groups.clear();
        if self.slots.is_empty() {
            groups.resize(selection.len(), NONE);
            return;
        }
        if let Some(words) = self.plain(keys, selection) {
            return selection.each(|row| {
                let word = words.get(row).copied().unwrap_or(0);
                groups.push(
                    self.probe_integer(word, mix(0, word as u64))
                        .unwrap_or(NONE),
                );
            });
        }
        let mut hashes = std::mem::take(&mut self.scratch);
        hash_rows(self.told(keys), selection, &mut hashes);
        let mut next = hashes.iter();
        selection.each(|row| {
            let hash = next.next().copied().unwrap_or(0);
            groups.push(self.probe(keys, row, hash).unwrap_or(NONE));
        });
        self.scratch = hashes;
    }

    /// Those of the keys that tell groups apart, with their collations.
    fn told<'k>(
        &self,
        keys: &'k [Operand<'k>],
    ) -> impl Iterator<Item = (&'k Operand<'k>, Collation)> {
        self.telling.iter().filter_map(|i| {
            let collation = self.collations.get(*i).copied().unwrap_or_default();
            Some((keys.get(*i)?, collation))
        })
    }

    /// The rows' keys, where keys and groups are one column of plain integers:
    /// nothing but the numbers needs comparing then.
    fn plain<'a>(&self, keys: &'a [Operand<'_>], selection: Selection<'_>) -> Option<&'a [i64]> {
        let [only] = *self.telling.as_slice() else {
            return None;
        };
        let (key, mine) = (keys.get(only)?, self.keys.get(only)?);
        let words = key.vector()?.integers_of(selection)?;
        (mine.is_empty() || mine.integers().is_some()).then_some(words)
    }

    /// As [`GroupTable::probe`] for a plain integer.
    #[inline(always)]
    fn probe_integer(&self, word: i64, hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let only = self.telling.first().and_then(|only| self.keys.get(*only));
        let mine = only.map_or(&[][..], Vector::words);
        let mut slot = hash as usize & mask;
        loop {
            let group = self.slots.get(slot).copied().unwrap_or(NONE);
            if group == NONE {
                return Err(slot);
            }
            if mine.get(group as usize) == Some(&word) {
                return Ok(group);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The group, or the free slot where it belongs.
    #[inline]
    fn probe(&self, keys: &[Operand<'_>], row: usize, hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let group = self.slots.get(slot).copied().unwrap_or(NONE);
            if group == NONE {
                return Err(slot);
            }
            if self.hashes.get(group as usize) == Some(&hash)
                && self.equal(keys, row, group as usize)
            {
                return Ok(group);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[inline]
    fn equal(&self, keys: &[Operand<'_>], row: usize, group: usize) -> bool {
        self.telling
            .iter()
            .filter_map(|i| self.keys.get(*i))
            .zip(self.told(keys))
            .all(
                |(mine, (other, collation))| match (mine.get(group), other.get(row)) {
                    (ValueRef::Integer(a), ValueRef::Integer(b)) => a == b,
                    (ValueRef::Text(a), ValueRef::Text(b)) if collation == Collation::Binary => {
                        a == b
                    }
                    (a, b) => not_distinct(a, b, collation),
                },
            )
    }

    fn add(
        &mut self,
        keys: &[Operand<'_>],
        row: usize,
        hash: u64,
        slot: usize,
    ) -> crate::error::Result<u32> {
        let group = self.hashes.len() as u32;
        for (mine, key) in self.keys.iter_mut().zip(keys) {
            mine.push(key.get(row))?;
        }
        self.hashes.push(hash);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = group;
        }
        Ok(group)
    }

    /// Room for `more` groups at a load of at most one half.
    fn reserve(&mut self, more: usize) {
        let wanted = ((self.hashes.len() + more) * 2).next_power_of_two().max(64);
        if wanted <= self.slots.len() {
            return;
        }
        self.slots.clear();
        self.slots.resize(wanted, NONE);
        let mask = wanted - 1;
        for (group, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots.get(slot).is_some_and(|s| *s != NONE) {
                slot = (slot + 1) & mask;
            }
            if let Some(place) = self.slots.get_mut(slot) {
                *place = group as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::expr::Datum;

    fn column(values: &[ValueRef<'_>]) -> Vector {
        let mut v = Vector::new();
        for value in values {
            v.push(*value).unwrap();
        }
        v
    }

    #[test]
    fn equal_numbers_are_one_group_and_so_are_nulls() {
        use ValueRef::{Integer, Null, Real, Text};
        let keys = column(&[
            Integer(1),
            Real(1.0),
            Null,
            Text(b"1"),
            Null,
            Real(1.5),
            Integer(1),
        ]);
        let mut table = GroupTable::new(vec![Collation::Binary]);
        let mut groups = Vec::new();
        table
            .insert(&[Operand::Column(&keys)], Selection::All(7), &mut groups)
            .unwrap();
        assert_eq!(groups, [0, 0, 1, 2, 1, 3, 0]);
        let mut found = Vec::new();
        table.find(
            &[Operand::Constant(Datum::Same(Integer(9)))],
            Selection::All(1),
            &mut found,
        );
        assert_eq!(found, [NONE]);
    }

    #[test]
    fn collations_decide_about_texts() {
        let keys = column(&[ValueRef::Text(b"Abcdefghij"), ValueRef::Text(b"aBCDEFGHIJ")]);
        let mut groups = Vec::new();
        let mut table = GroupTable::new(vec![Collation::NoCase]);
        table
            .insert(&[Operand::Column(&keys)], Selection::All(2), &mut groups)
            .unwrap();
        assert_eq!(groups, [0, 0]);
        let mut table = GroupTable::new(vec![Collation::RTrim]);
        let keys = column(&[
            ValueRef::Text(b"a  "),
            ValueRef::Text(b"a"),
            ValueRef::Text(b" a"),
        ]);
        table
            .insert(&[Operand::Column(&keys)], Selection::All(3), &mut groups)
            .unwrap();
        assert_eq!(groups, [0, 0, 1]);
    }

    #[test]
    fn keys_that_are_null_elsewhere_are_plain_integers() {
        use ValueRef::{Integer, Null};
        let keys = column(&[Integer(7), Null, Integer(8), Integer(7), Null]);
        let keys = [Operand::Column(&keys)];
        let mut table = GroupTable::new(vec![Collation::Binary]);
        let mut groups = Vec::new();
        let integers = Selection::Rows(&[0, 2, 3]);
        assert!(table.plain(&keys, integers).is_some());
        assert!(table.plain(&keys, Selection::All(5)).is_none());
        table.insert(&keys, integers, &mut groups).unwrap();
        assert_eq!(groups, [0, 1, 0]);
        table.find(&keys, Selection::All(5), &mut groups);
        assert_eq!(groups, [0, NONE, 1, 0, NONE]);
        table.insert(&keys, Selection::All(5), &mut groups).unwrap();
        assert_eq!(groups, [0, 2, 1, 0, 2]);
    }

    #[test]
    fn the_table_grows() {
        let mut table = GroupTable::new(vec![Collation::Binary]);
        let mut groups = Vec::new();
        for start in 0..20 {
            let mut v = Vector::new();
            for i in 0..500 {
                v.push_integer(start * 250 + i);
            }
            table
                .insert(&[Operand::Column(&v)], Selection::All(500), &mut groups)
                .unwrap();
            assert_eq!(groups[3], (start * 250 + 3) as u32);
        }
        assert_eq!(table.len(), 19 * 250 + 500);
    }
}
