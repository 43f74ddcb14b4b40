//! Collections whose copies share what they have in common, so that a schema that differs
//! from another one by a few objects costs what these cost.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::SchemaRow;

/// Parts of a map: to copy it is to count each once more, to change it is to copy one.
const PARTS: usize = 64;

/// A map. Empty parts are not there.
#[derive(Debug, Clone)]
pub(super) struct SharedMap<K, V>(Vec<Option<Arc<FxHashMap<K, V>>>>);

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> SharedMap<K, V> {
    /// Where a key is. The map within a part takes other bits of the hash.
    fn part<Q: Hash + ?Sized>(key: &Q) -> usize {
        (FxBuildHasher.hash_one(key).rotate_left(24) % PARTS as u64) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(Self::part(key))?.as_ref()?.get(key)
    }

    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Puts a value in, and returns the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.0.is_empty() {
            self.0 = vec![None; PARTS];
        }
        let part = self.0.get_mut(Self::part(&key))?;
        Arc::make_mut(part.get_or_insert_default()).insert(key, value)
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let part = self.0.get_mut(Self::part(key))?;
        let map = part.as_mut().filter(|map| map.contains_key(key))?;
        let removed = Arc::make_mut(map).remove(key);
        if map.is_empty() {
            *part = None;
        }
        if self.0.iter().all(Option::is_none) {
            self.0 = Vec::new();
        }
        removed
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().flatten().flat_map(|part| part.values())
    }
}

/// A row of sqlite_schema and its rowid.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub rowid: i64,
    pub row: Arc<SchemaRow>,
}

/// Rows that are copied together.
const CHUNK: usize = 64;

/// Rows of sqlite_schema in the order of their rowids. No chunk is empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(Vec<Arc<Vec<Placed>>>);

impl Rows {
    pub fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.0.iter().flat_map(|chunk| chunk.iter())
    }

    /// The chunk where a rowid is or would be, and the place in it.
    fn find(&self, rowid: i64) -> (usize, Result<usize, usize>) {
        let is_before = |chunk: &Arc<Vec<Placed>>| chunk.last().is_some_and(|it| it.rowid < rowid);
        let at = self.0.partition_point(is_before);
        let found = match self.0.get(at) {
            Some(chunk) => chunk.binary_search_by_key(&rowid, |it| it.rowid),
            None => Err(0),
        };
        (at, found)
    }

    pub fn get(&self, rowid: i64) -> Option<&Arc<SchemaRow>> {
        let (at, Ok(found)) = self.find(rowid) else {
            return None;
        };
        Some(&self.0.get(at)?.get(found)?.row)
    }

    /// Puts a row in, in place of the one that has the rowid.
    pub fn put(&mut self, placed: Placed) {
        let (mut at, mut found) = self.find(placed.rowid);
        if at == self.0.len() {
            // Behind all others: in the last chunk while that has room.
            let room = self.0.last().filter(|last| last.len() < CHUNK);
            match room.map(|last| last.len()) {
                Some(len) => (at, found) = (at - 1, Err(len)),
                None => self.0.push(Arc::default()),
            }
        }
        let Some(chunk) = self.0.get_mut(at) else {
            return;
        };
        let rows = Arc::make_mut(chunk);
        match found {
            Ok(found) => rows[found] = placed,
            Err(place) => rows.insert(place, placed),
        }
        if rows.len() > 2 * CHUNK {
            let rest = rows.split_off(CHUNK);
            self.0.insert(at + 1, Arc::new(rest));
        }
    }

    pub fn remove(&mut self, rowid: i64) {
        let (at, Ok(found)) = self.find(rowid) else {
            return;
        };
        if let Some(chunk) = self.0.get_mut(at) {
            let rows = Arc::make_mut(chunk);
            rows.remove(found);
            if rows.is_empty() {
                self.0.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(name: &str) -> Arc<SchemaRow> {
        Arc::new(SchemaRow {
            kind: "table".to_owned(),
            name: name.to_owned(),
            table: name.to_owned(),
            root: 0,
            sql: None,
            database: None,
            key: None,
        })
    }

    /// Both against collections of the standard library, with copies that must stay as they
    /// were.
    #[test]
    fn copies_stay_as_they_were() {
        let (mut map, mut rows) = (SharedMap::default(), Rows::default());
        let mut known: BTreeMap<i64, String> = BTreeMap::new();
        let mut copies = Vec::new();
        let mut random = 7u64;
        for step in 0..4000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let key = (random >> 33) as i64 % 600;
            let grows = step % 1000 < 600;
            if grows || random >> 60 == 0 {
                let name = format!("n{step}");
                let before = known.insert(key, name.clone());
                assert_eq!(map.insert(key, name.clone()), before);
                let row = row(&name);
                rows.put(Placed { rowid: key, row });
            } else {
                assert_eq!(map.remove(&key), known.remove(&key));
                rows.remove(key);
            }
            if step % 500 == 0 {
                copies.push((map.clone(), rows.clone(), known.clone()));
            }
        }
        copies.push((map, rows, known));
        for (map, rows, known) in copies {
            assert_eq!(map.values().count(), known.len());
            assert_eq!(map.is_empty(), known.is_empty());
            for (key, name) in &known {
                assert_eq!(map.get(key), Some(name));
                assert_eq!(rows.get(*key).map(|row| &row.name), Some(name));
            }
            let kept = rows.iter().map(|it| (it.rowid, it.row.name.clone()));
            assert!(kept.eq(known));
        }
    }
}
