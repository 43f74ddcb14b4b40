//! The states that several stores should be in, and those that they may be in.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_store::{Key, Result, Store, TreeId, Txn};

use crate::Candidates;
use crate::kv::Table;

/// The stores of a life.
pub const STORES: usize = 3;

/// The tree of all names, and those that a store has for itself.
const NAMES: TreeId = TreeId(0);
const OWN: [&[u8]; 2] = [b"\0decided", b"\0prepared"];

/// The families of a store.
pub type State = BTreeMap<String, Arc<Table>>;

/// The first difference between a state and what a transaction sees.
pub(super) fn difference(state: &State, txn: &mut Txn) -> Result<Option<String>> {
    let families = txn.families()?;
    if families.iter().map(|(name, _)| name).ne(state.keys()) {
        let found: Vec<&String> = families.iter().map(|(name, _)| name).collect();
        let names: Vec<&String> = state.keys().collect();
        return Ok(Some(format!("families {found:?}, not {names:?}")));
    }
    for ((name, tree), table) in families.iter().zip(state.values()) {
        if let Some(difference) = table.difference(txn, tree)? {
            return Ok(Some(format!("family {name} {difference}")));
        }
    }
    Ok(None)
}

/// A tree that is there and that no name stands for.
fn left_over(store: &Store) -> Result<Option<String>> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut named: Vec<u32> = txn
        .families()?
        .iter()
        .map(|(_, tree)| tree.id().0)
        .collect();
    let names = store.tree(NAMES)?;
    let mut number = Vec::new();
    for own in OWN {
        if txn.get_into(&names, Key::Bytes(own), &mut number)? {
            named.extend(number.as_slice().try_into().map(u32::from_le_bytes));
        }
    }
    let highest = named.iter().max().map_or(0, |highest| highest + 16);
    for id in (1..=highest).filter(|id| !named.contains(id)) {
        if let Ok(tree) = store.tree(TreeId(id))
            && txn.count(&tree).is_ok()
        {
            return Ok(Some(format!("tree {id} is there and has no name")));
        }
    }
    Ok(None)
}

/// A commit to several stores of which it is not known whether it was made.
#[derive(Debug, Clone)]
struct Doubt {
    /// By store, for those that have not been looked at since: what it would have led to.
    after: BTreeMap<usize, State>,
    /// What the others have shown.
    committed: Option<bool>,
}

/// What a power cut may leave in each of the stores, and what in all of them together.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    stores: [Candidates<State>; STORES],
    doubts: Vec<Doubt>,
}

impl crate::Oracle for Oracle {
    fn power_cut(&mut self) {
        self.stores.iter_mut().for_each(Candidates::power_cut);
    }

    fn killed(&mut self) {
        self.stores.iter_mut().for_each(Candidates::killed);
    }
}

impl Oracle {
    pub(super) fn of(&mut self, store: usize) -> &mut Candidates<State> {
        &mut self.stores[store]
    }

    /// A commit that leads to these states is under way.
    pub(super) fn under_way(&mut self, after: &BTreeMap<usize, State>) {
        for (store, state) in after {
            self.stores[*store].under_way(state.clone());
        }
        if after.len() > 1 {
            self.doubts.push(Doubt {
                after: after.clone(),
                committed: None,
            });
        }
    }

    /// It was acknowledged.
    pub(super) fn acknowledged(&mut self, after: BTreeMap<usize, State>, durable: bool) {
        self.no_doubt(after.len());
        for (store, state) in after {
            self.stores[store].acknowledge(state, durable);
        }
    }

    /// It had no effect: `visible` is what there is.
    pub(super) fn had_no_effect(
        &mut self,
        after: &BTreeMap<usize, State>,
        visible: &[State; STORES],
    ) {
        self.no_doubt(after.len());
        for store in after.keys() {
            self.stores[*store].take_back(&visible[*store]);
        }
    }

    fn no_doubt(&mut self, stores: usize) {
        if stores > 1 {
            self.doubts.pop();
        }
    }

    /// Finds out which state a store is in; from now on it is the only one.
    pub(super) fn adopt(&mut self, at: usize, store: &Store) -> Result<State> {
        let mut txn = store.txn();
        txn.begin_read()?;
        let mut differences = Vec::new();
        for state in self.stores[at].to_be_found() {
            let difference = match difference(state, &mut txn)? {
                None => self.contradiction(at, state),
                some => some,
            };
            match difference {
                None => {
                    assert_eq!(left_over(store)?, None);
                    let state = state.clone();
                    self.settle(at, &state);
                    return Ok(state);
                }
                Some(difference) => differences.push(difference),
            }
        }
        panic!("store {at} is in none of the states it may be in (newest first): {differences:#?}");
    }

    /// What a state says of a commit that is in doubt, unless it is an older one as well.
    fn verdict(&self, doubt: &Doubt, at: usize, state: &State) -> Option<bool> {
        let after = doubt.after.get(&at)?;
        let alike = self.stores[at].iter().filter(|other| *other == state);
        match alike.count() {
            1 => Some(state == after),
            _ if state == after => None,
            _ => Some(false),
        }
    }

    /// Why it cannot be this state, as other stores have shown.
    fn contradiction(&self, at: usize, state: &State) -> Option<String> {
        let contradicts = |doubt: &Doubt| {
            let verdict = self.verdict(doubt, at, state)?;
            (doubt.committed? != verdict).then(|| match verdict {
                true => "has what was undone in another store".to_owned(),
                false => "lacks what was committed in another store".to_owned(),
            })
        };
        self.doubts.iter().find_map(contradicts)
    }

    fn settle(&mut self, at: usize, state: &State) {
        let verdicts: Vec<Option<bool>> = self
            .doubts
            .iter()
            .map(|doubt| self.verdict(doubt, at, state))
            .collect();
        for (doubt, verdict) in self.doubts.iter_mut().zip(verdicts) {
            doubt.committed = doubt.committed.or(verdict);
            doubt.after.remove(&at);
        }
        self.doubts.retain(|doubt| !doubt.after.is_empty());
        self.stores[at].settle_on(state.clone());
    }
}
