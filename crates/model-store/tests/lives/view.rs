//! All that a snapshot shows, read from the modelled store or from the real one.

use super::history::{Front, History, Own, SHARED, SUM, name, number, stamped};
use std::collections::BTreeMap;

/// Entries by the tree's name and the key's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct View {
    trees: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// A writer's own tree.
pub fn own_tree(writer: usize) -> String {
    format!("own {writer}")
}

/// Reads a snapshot with the types of one of the two crates.
macro_rules! reader {
    ($name:ident, $store:ident) => {
        pub fn $name(
            txn: &mut $store::Txn,
            trees: &[(String, $store::Tree)],
        ) -> $store::Result<View> {
            let mut view = View::default();
            for (name, tree) in trees {
                let mut cursor = txn.cursor(tree)?;
                let mut entries = BTreeMap::new();
                let mut more = cursor.seek($store::Seek::First)?;
                while more {
                    let key = match tree.kind() {
                        $store::KeyKind::Int => cursor.key_int().to_le_bytes().to_vec(),
                        $store::KeyKind::Bytes => cursor.key_bytes()?.to_vec(),
                    };
                    entries.insert(key, cursor.value()?.to_vec());
                    more = cursor.next()?;
                }
                drop(cursor);
                assert_eq!(txn.count(tree)?, entries.len() as u64, "entries of {name}");
                view.trees.insert(name.clone(), entries);
            }
            Ok(view)
        }
    };
}

reader!(modelled, fulgurite_store_model);
reader!(real, fulgurite_store);

impl View {
    fn value(&self, tree: &str, key: &[u8]) -> Option<&[u8]> {
        self.trees.get(tree)?.get(key).map(Vec::as_slice)
    }

    /// How far each writer had come, as its stamp says, but for its own tree made or
    /// dropped since.
    pub fn front(&self) -> Front {
        std::array::from_fn(|writer| {
            let stamp = self.value(SHARED[0], &number(writer, 0).to_le_bytes());
            stamp.map_or(0, |value| stamped(value).0)
        })
    }

    /// The same, where all trees there are were read.
    pub fn front_of_all<'h>(&self, history: impl Fn(usize) -> &'h History) -> Front {
        let mut front = self.front();
        for (writer, commit) in front.iter_mut().enumerate() {
            let is_there = self.trees.contains_key(&own_tree(writer));
            let states = &history(writer).states;
            if states[*commit].1.tree != is_there {
                *commit += 1;
            }
            let (_, own) = states.get(*commit).expect("a state that may be found");
            assert_eq!(
                own.tree, is_there,
                "the own tree of {writer} after {commit}"
            );
        }
        front
    }

    /// Panics unless it is what the writers had made of it when they had come so
    /// far: nothing of a later commit, nothing missing, and nobody saw what is
    /// not there. The writers' own trees count where they were read.
    pub fn check<'h>(&self, front: &Front, history: impl Fn(usize) -> &'h History) {
        let mut expected = View::default();
        for name in self.trees.keys() {
            expected.trees.insert(name.clone(), BTreeMap::new());
        }
        let mut sum = 0;
        for (writer, commit) in front.iter().enumerate() {
            let (_, own) = &history(writer).states[*commit];
            sum += own.added;
            if let Some(stamp) = own.rows.get(&(0, 0)) {
                let (_, saw) = stamped(stamp);
                for (other, seen) in saw.iter().enumerate() {
                    assert!(
                        *seen <= front[other],
                        "commit {commit} of {writer} saw {seen} of {other}, of which {front:?} is there"
                    );
                }
            }
            expected.add(writer, own);
        }
        if sum > 0 {
            let numbers = expected.trees.entry(SHARED[0].to_owned()).or_default();
            numbers.insert(SUM.to_le_bytes().to_vec(), sum.to_le_bytes().to_vec());
        }
        if let Some(difference) = self.difference(&expected) {
            panic!("with {front:?} there, {difference}");
        }
    }

    fn add(&mut self, writer: usize, own: &Own) {
        let trees = [SHARED[0].to_owned(), SHARED[1].to_owned(), own_tree(writer)];
        for ((tree, row), value) in &own.rows {
            if let Some(entries) = self.trees.get_mut(&trees[*tree]) {
                let key = match tree {
                    1 => name(writer, *row),
                    _ => number(writer, *row).to_le_bytes().to_vec(),
                };
                entries.insert(key, value.clone());
            }
        }
    }

    fn difference(&self, expected: &View) -> Option<String> {
        for (tree, entries) in &self.trees {
            let others = expected.trees.get(tree)?;
            for key in entries.keys().chain(others.keys()) {
                let (found, wanted) = (entries.get(key), others.get(key));
                if found != wanted {
                    let len = |value: Option<&Vec<u8>>| value.map(Vec::len);
                    let shown = &key[key.len().saturating_sub(16)..];
                    return Some(format!(
                        "key …{shown:02x?} of {tree} has a value of {:?} bytes, not this one of {:?}",
                        len(found),
                        len(wanted)
                    ));
                }
            }
        }
        None
    }
}
