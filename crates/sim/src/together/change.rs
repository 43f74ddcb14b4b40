//! What a transaction does to one of the stores it is over, and what that leads to.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_store::{Error, Isolation, KeyKind, Savepoint, Tree, Txn};

use super::model::{State, difference};
use crate::Rng;
use crate::kv::{RowKey, Table};

const NAMES: u64 = 4;
const KEYS: u64 = 24;
/// Rows of a transaction that is larger than what the log keeps of one, and their bytes.
const MANY: i64 = 60;
const LARGE: usize = 90_000;

/// One change, to be made again on what a commit beside the transaction has led to.
#[derive(Debug, Clone)]
enum Effect {
    Make(KeyKind),
    Drop,
    Put(RowKey, Arc<[u8]>),
    Delete(RowKey),
    /// Of a family that held these.
    Clear(Vec<RowKey>),
}

impl Effect {
    /// Fails where the transaction has to lose.
    fn apply(&self, name: &str, state: &mut State, level: Isolation) -> Result<(), String> {
        if let Self::Make(kind) = self {
            return match state.insert(name.to_owned(), Table::new(*kind)) {
                None => Ok(()),
                Some(_) => Err(format!("{name} was made beside it")),
            };
        }
        let gone = || format!("{name} was dropped beside it");
        if let Self::Drop = self {
            return state.remove(name).map(drop).ok_or_else(gone);
        }
        let table = state.get_mut(name).ok_or_else(gone)?;
        let rows = &mut Arc::make_mut(table).rows;
        match self {
            Self::Put(key, value) => drop(rows.insert(key.clone(), value.clone())),
            Self::Delete(key) => drop(rows.remove(key)),
            Self::Clear(seen) if level == Isolation::Serializable => {
                if rows.keys().ne(seen) {
                    return Err(format!("rows of {name} were changed beside it"));
                }
                rows.clear();
            }
            Self::Clear(seen) => rows.retain(|key, _| !seen.contains(key)),
            Self::Make(_) | Self::Drop => {}
        }
        Ok(())
    }
}

/// The part of a transaction in one store.
pub(super) struct Part {
    pub(super) txn: Txn,
    level: Isolation,
    /// What the transaction sees.
    state: State,
    effects: Vec<(String, Effect)>,
    mark: Option<(Savepoint, State, usize)>,
}

impl Part {
    /// Of a transaction that has begun and sees this.
    pub(super) fn new(txn: Txn, level: Isolation, state: State) -> Self {
        Self {
            txn,
            level,
            state,
            effects: Vec::new(),
            mark: None,
        }
    }

    /// What it leads to where its store shows `visible` by now, or why it has to lose.
    fn onto(&self, visible: &State) -> Result<State, String> {
        let mut state = visible.clone();
        for (name, effect) in &self.effects {
            effect.apply(name, &mut state, self.level)?;
        }
        Ok(state)
    }

    fn did(&mut self, name: &str, effect: Effect) {
        let done = effect.apply(name, &mut self.state, self.level);
        assert_eq!(done, Ok(()), "it sees what it did");
        self.effects.push((name.to_owned(), effect));
    }

    fn tree(&mut self, name: &str) -> Result<Option<Tree>, Error> {
        let families = self.txn.families()?;
        let found = families.into_iter().find(|(known, _)| known == name);
        assert_eq!(found.is_some(), self.state.contains_key(name), "{name}");
        Ok(found.map(|(_, tree)| tree))
    }

    /// One operation, of which the answer is checked.
    pub(super) fn change(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let name = format!("family {}", rng.below(NAMES));
        match rng.below(16) {
            0 | 1 => self.make(&name, kind(rng)).map(drop),
            2 => self.drop_family(&name).map(drop),
            // Gone and there again, by the same commit.
            3 | 4 => {
                self.drop_family(&name)?;
                self.make(&name, kind(rng))?;
                self.row(&name, rng)
            }
            5 => {
                self.make(&name, kind(rng))?;
                self.drop_family(&name)
            }
            6 => {
                assert_eq!(difference(&self.state, &mut self.txn)?, None);
                Ok(())
            }
            7 => self.clear(&name),
            8 => self.mark(),
            9 => self.back(),
            _ => self.row(&name, rng),
        }
    }

    fn make(&mut self, name: &str, kind: KeyKind) -> Result<(), Error> {
        match self.state.get(name).map(|table| table.kind) {
            Some(known) => {
                let again = self.txn.create_family(name, kind);
                match known == kind {
                    true => drop(again?),
                    false => assert!(again.is_err(), "{name} has keys of both kinds"),
                }
            }
            None => {
                self.txn.create_family(name, kind)?;
                self.did(name, Effect::Make(kind));
            }
        }
        Ok(())
    }

    fn drop_family(&mut self, name: &str) -> Result<(), Error> {
        let was_there = self.txn.drop_family(name)?;
        let known = self.state.contains_key(name).then_some(true);
        assert_eq!(was_there, known, "drop {name}");
        if known.is_some() {
            self.did(name, Effect::Drop);
        }
        Ok(())
    }

    fn clear(&mut self, name: &str) -> Result<(), Error> {
        let Some(tree) = self.tree(name)? else {
            return Ok(());
        };
        let cleared = self.txn.clear(&tree, || true)?;
        let seen: Vec<RowKey> = self.state[name].rows.keys().cloned().collect();
        assert_eq!(cleared, Some(seen.len() as u64), "clear {name}");
        // Where there is nothing to clear nothing is written, and perhaps nothing validated.
        if !seen.is_empty() {
            self.did(name, Effect::Clear(seen));
        }
        Ok(())
    }

    /// Writes or deletes a row; makes the family where there is none.
    fn row(&mut self, name: &str, rng: &mut Rng) -> Result<(), Error> {
        let Some(tree) = self.tree(name)? else {
            return self.make(name, kind(rng));
        };
        let key = key(tree.kind(), rng.below(KEYS) as i64);
        let known = self.state[name].rows.contains_key(&key);
        if rng.one_in(4) {
            let deleted = self.txn.delete(&tree, key.borrow())?;
            assert_eq!(deleted, known, "delete {key:?} of {name}");
            if known {
                self.did(name, Effect::Delete(key));
            }
            return Ok(());
        }
        let len = match rng.below(12) {
            0 => rng.index(9_000),
            1..4 => rng.index(900),
            _ => rng.index(40),
        };
        let value = filled(rng, len);
        let replaced = self.txn.put(&tree, key.borrow(), &value)?;
        assert_eq!(replaced, known, "put {key:?} of {name}");
        self.did(name, Effect::Put(key, value));
        Ok(())
    }

    /// More than the log keeps of one transaction, in a family of any kind.
    pub(super) fn many_rows(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let name = format!("family {}", rng.below(NAMES));
        if !self.state.contains_key(&name) {
            self.make(&name, kind(rng))?;
        }
        let tree = self.tree(&name)?.expect("it was made");
        for number in 0..MANY {
            let key = key(tree.kind(), 1_000 + number);
            let value = filled(rng, LARGE);
            self.txn.put(&tree, key.borrow(), &value)?;
            self.did(&name, Effect::Put(key, value));
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Error> {
        let savepoint = self.txn.savepoint()?;
        self.mark = Some((savepoint, self.state.clone(), self.effects.len()));
        Ok(())
    }

    fn back(&mut self) -> Result<(), Error> {
        if let Some((savepoint, state, effects)) = &self.mark {
            self.txn.rollback_to(savepoint)?;
            self.state = state.clone();
            self.effects.truncate(*effects);
        }
        Ok(())
    }
}

/// What a transaction leads to in the stores that it changes, or why it has to lose.
pub(super) fn outcome(
    parts: &BTreeMap<usize, Part>,
    visible: &[State],
) -> Result<BTreeMap<usize, State>, String> {
    let mut after = BTreeMap::new();
    for (at, part) in parts {
        let state = part.onto(&visible[*at])?;
        if state != visible[*at] {
            after.insert(*at, state);
        }
    }
    Ok(after)
}

fn kind(rng: &mut Rng) -> KeyKind {
    [KeyKind::Int, KeyKind::Bytes][rng.index(2)]
}

fn key(kind: KeyKind, number: i64) -> RowKey {
    match kind {
        KeyKind::Int => RowKey::Int(number),
        KeyKind::Bytes => RowKey::Bytes(format!("key {number:04}").into_bytes()),
    }
}

/// Eight bytes that no other value has, then noise and blanks.
fn filled(rng: &mut Rng, len: usize) -> Arc<[u8]> {
    let mut bytes = vec![b' '; 8 + len];
    for chunk in bytes[..8 + len / 2].chunks_mut(8) {
        let noise = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&noise[..chunk.len()]);
    }
    bytes.into()
}
