//! The state a store should be in, and the states it may be in.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_store::{Key, KeyKind, Result, Seek, Store, Tree, TreeId, Txn};

use crate::Candidates;

/// Stands for the number of a named tree whose making failed half-way.
pub const UNKNOWN_TREE: u32 = u32::MAX;

/// A key of either kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    /// An integer.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl RowKey {
    /// As the store takes it.
    pub fn borrow(&self) -> Key<'_> {
        match self {
            Self::Int(key) => Key::Int(*key),
            Self::Bytes(key) => Key::Bytes(key),
        }
    }
}

/// A tree and its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What its keys are.
    pub kind: KeyKind,
    /// Its entries.
    pub rows: BTreeMap<RowKey, Arc<[u8]>>,
}

impl Table {
    /// An empty one.
    pub fn new(kind: KeyKind) -> Arc<Self> {
        Arc::new(Self {
            kind,
            rows: BTreeMap::new(),
        })
    }

    /// The first difference between this and what a transaction sees of a tree.
    pub(crate) fn difference(&self, txn: &mut Txn, tree: &Tree) -> Result<Option<String>> {
        if tree.kind() != self.kind {
            return Ok(Some("has other keys".to_owned()));
        }
        let count = txn.count(tree)?;
        if count != self.rows.len() as u64 {
            let known = self.rows.len();
            return Ok(Some(format!("counts {count} entries, not {known}")));
        }
        let mut cursor = txn.cursor(tree)?;
        let mut more = cursor.seek(Seek::First)?;
        for (key, value) in &self.rows {
            let found = match self.kind {
                _ if !more => None,
                KeyKind::Int => Some(RowKey::Int(cursor.key_int())),
                KeyKind::Bytes => Some(RowKey::Bytes(cursor.key_bytes()?.to_vec())),
            };
            if found.as_ref() != Some(key) {
                return Ok(Some(format!("has {found:?}, not {key:?}")));
            }
            if cursor.value()? != &**value {
                return Ok(Some(format!("has another value under {key:?}")));
            }
            more = cursor.next()?;
        }
        Ok(more.then(|| "goes on after its end".to_owned()))
    }
}

/// All that a store holds. Clones share what they have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The named trees.
    pub names: BTreeMap<String, u32>,
    /// The trees with a name and those without.
    pub tables: BTreeMap<u32, Arc<Table>>,
}

impl State {
    /// A table to be changed.
    pub fn table(&mut self, tree: u32) -> Option<&mut Table> {
        self.tables.get_mut(&tree).map(Arc::make_mut)
    }

    /// The first difference between this and what the store shows.
    pub fn difference(&self, store: &Store) -> Result<Option<String>> {
        let names: Vec<&String> = self.names.keys().collect();
        let families = store.families()?;
        if families.iter().ne(names.iter().copied()) {
            return Ok(Some(format!("families {families:?}, not {names:?}")));
        }
        for (name, tree) in &self.names {
            let found = store.family(name)?.map(|tree| tree.id().0);
            if found != Some(*tree) {
                return Ok(Some(format!("family {name} is tree {found:?}, not {tree}")));
            }
        }
        let mut txn = store.txn();
        txn.begin_read()?;
        self.difference_in(&mut txn)
    }

    /// As [`difference`](Self::difference), in a snapshot, without the names.
    pub fn difference_in(&self, txn: &mut Txn) -> Result<Option<String>> {
        let store = txn.store().clone();
        for (id, table) in &self.tables {
            let Ok(tree) = store.tree(TreeId(*id)) else {
                return Ok(Some(format!("tree {id} is missing")));
            };
            if let Some(difference) = table.difference(txn, &tree)? {
                return Ok(Some(format!("tree {id} {difference}")));
            }
        }
        Ok(None)
    }
}

/// What a power cut may leave.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The states it may leave.
    pub candidates: Candidates<State>,
    /// Tree numbers that were given out, to look for ones that should be gone.
    pub highest_tree: u32,
}

impl crate::OfOne for Oracle {
    type State = State;

    fn candidates(&mut self) -> &mut Candidates<State> {
        &mut self.candidates
    }
}

impl Oracle {
    /// The newest candidate's unknown tree number is looked up.
    pub(super) fn learn_numbers(&mut self, store: &Store) -> Result<()> {
        for state in self.candidates.iter_mut() {
            for (name, id) in &mut state.names {
                if *id == UNKNOWN_TREE
                    && let Some(tree) = store.family(name)?
                    && let Some(table) = state.tables.remove(&UNKNOWN_TREE)
                {
                    *id = tree.id().0;
                    state.tables.insert(*id, table);
                }
            }
        }
        Ok(())
    }

    /// A tree that is there and should not be.
    fn left_over(&self, state: &State, store: &Store) -> Result<Option<String>> {
        let mut txn = store.txn();
        txn.begin_read()?;
        let gone = (1..=self.highest_tree).filter(|id| !state.tables.contains_key(id));
        for id in gone {
            if let Ok(tree) = store.tree(TreeId(id))
                && txn.count(&tree).is_ok()
            {
                return Ok(Some(format!("tree {id} is there and should not be")));
            }
        }
        Ok(None)
    }

    /// Finds out which state the store is in; from now on it is the only one.
    pub fn adopt(&mut self, store: &Store) -> Result<()> {
        self.learn_numbers(store)?;
        let mut differences = Vec::new();
        for state in self.candidates.to_be_found() {
            let difference = match state.difference(store)? {
                None => self.left_over(state, store)?,
                some => some,
            };
            match difference {
                None => {
                    let state = state.clone();
                    self.candidates.settle_on(state);
                    return Ok(());
                }
                Some(difference) => differences.push(difference),
            }
        }
        panic!("the store is in none of the states it may be in (newest first): {differences:#?}");
    }
}
