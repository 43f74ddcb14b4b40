//! The commits of a life: what they do is drawn at random, and what they lead to
//! is known to the model before they begin.

mod words;

use std::sync::Arc;

use fulgurite_store::{Durability, ErrorKind, Isolation, KeyKind, Result, Savepoint, TreeId, Txn};

use super::life::Life;
use super::model::{RowKey, State, Table, UNKNOWN_TREE};
use crate::damage::lengths;

/// How many contexts stay, and how many statements of one follow one another before
/// the others join it.
const CREW: usize = 3;
const IN_A_ROW: usize = 40;

/// A change of an overlapping transaction, to be made again on what it commits
/// onto.
type Change = (u32, RowKey, Option<Arc<[u8]>>);

impl Life<'_> {
    /// Commits `next`; if that fails its outcome is unknown.
    fn commit(&mut self, next: State, txn: &mut Txn) -> Result<()> {
        self.frame.under_way(next.clone());
        txn.commit()?;
        self.committed(next, txn.durability());
        Ok(())
    }

    /// What was under way led to this state, and was acknowledged.
    fn committed(&mut self, next: State, durability: Durability) {
        // What changes nothing is not synced.
        let synced = durability == Durability::Full && next != self.visible;
        self.frame.acknowledged(next.clone(), synced);
        // What changes nothing need not have been written anywhere.
        if next != self.visible {
            self.previous = std::mem::replace(&mut self.visible, next);
            if let Some(flushes) = &mut self.flushes {
                flushes.push((self.visible.clone(), lengths(self.frame.disk)));
            }
        }
    }

    /// A tree with this number was made.
    fn made(&mut self, tree: u32) {
        let highest = &mut self.frame.oracle.highest_tree;
        *highest = tree.max(*highest);
    }

    /// Creates a named tree, or drops one.
    pub(super) fn name_or_drop(&mut self) -> Result<()> {
        let store = self.store()?;
        let name = format!("family {}", self.rng.below(4));
        let mut next = self.visible.clone();
        if let Some(id) = next.names.remove(&name) {
            if self.rng.one_in(2) {
                next.tables.remove(&id);
                self.frame.under_way(next.clone());
                assert!(store.drop_family(&name)?);
                self.committed(next, self.frame.options.durability);
            }
            return Ok(());
        }
        let kind = self.kind();
        let table = Table::new(kind);
        let mut unknown = next.clone();
        unknown.names.insert(name.clone(), UNKNOWN_TREE);
        unknown.tables.insert(UNKNOWN_TREE, table.clone());
        self.frame.under_way(unknown);
        let tree = store.create_family(&name, kind)?.id().0;
        self.made(tree);
        next.names.insert(name, tree);
        next.tables.insert(tree, table);
        self.committed(next, self.frame.options.durability);
        Ok(())
    }

    /// An autocommitted statement on one or two trees.
    pub(super) fn statement(&mut self) -> Result<()> {
        let Some(first) = self.any_tree() else {
            return self.name_or_drop();
        };
        let ids = [first, self.any_tree().unwrap_or(first)];
        let store = self.store()?;
        let trees = [store.tree(TreeId(ids[0]))?, store.tree(TreeId(ids[1]))?];
        let mut txn = self.crew.pop().unwrap_or_else(|| store.txn());
        txn.begin_statement(&[&trees[0], &trees[1]])?;
        let mut next = self.visible.clone();
        for _ in 0..1 + self.rng.below(3) {
            let id = ids[self.rng.index(2)];
            self.change(&mut txn, &mut next, id)?;
        }
        self.commit(next, &mut txn)?;
        if !self.crew.is_empty() {
            self.crew.push(txn);
        }
        Ok(())
    }

    /// Small commits of contexts that stay, many in a row: where nothing is synced, the
    /// log leases them room, which stays theirs through what comes next.
    pub(super) fn burst(&mut self) -> Result<()> {
        if self.frame.is_synced() || self.visible.tables.is_empty() {
            return self.statement();
        }
        self.fill_crew()?;
        // Explicit ones come to hold their tree.
        let is_explicit = self.rng.one_in(3);
        for round in 0..IN_A_ROW + self.rng.index(60) {
            let member = match round {
                0..IN_A_ROW => 0,
                _ => self.rng.index(CREW),
            };
            let mut txn = self.crew.remove(member);
            self.small_commit(&mut txn, member, is_explicit)?;
            self.crew.insert(member, txn);
        }
        Ok(())
    }

    fn fill_crew(&mut self) -> Result<()> {
        let store = self.store()?;
        while self.crew.len() < CREW {
            self.crew.push(store.txn());
        }
        Ok(())
    }

    /// Contexts that stay, of which some may lose what they commit.
    pub(super) fn mix(&mut self) -> Result<()> {
        if self.all_synced || self.visible.tables.is_empty() {
            return self.statement();
        }
        self.fill_crew()?;
        let is_explicit = self.rng.one_in(3);
        for member in 0..CREW {
            let durability = [Durability::Full, Durability::Normal][self.rng.index(2)];
            if durability == Durability::Normal {
                self.frame.relaxed();
            }
            let mut txn = self.crew.remove(member);
            txn.set_durability(durability);
            for _ in 0..self.rng.below(6) {
                self.small_commit(&mut txn, member, is_explicit)?;
            }
            self.crew.insert(member, txn);
        }
        Ok(())
    }

    /// Mostly on a tree of the member's own: leases end where they meet.
    fn small_commit(&mut self, txn: &mut Txn, member: usize, is_explicit: bool) -> Result<()> {
        let ids: Vec<u32> = self.visible.tables.keys().copied().collect();
        let id = match self.rng.one_in(40) {
            true => ids[self.rng.index(ids.len())],
            false => ids[member % ids.len()],
        };
        let tree = txn.store().tree(TreeId(id))?;
        let key = self.short_key(tree.kind());
        let len = self.rng.index(60);
        let value = self.filled(len);
        match is_explicit {
            true => txn.begin(Isolation::Serializable)?,
            false => txn.begin_statement(&[&tree])?,
        }
        txn.put(&tree, key.borrow(), &value)?;
        let mut next = self.visible.clone();
        let table = next.table(id).expect("the model knows its trees");
        table.rows.insert(key, value);
        self.commit(next, txn)
    }

    /// An explicit transaction with savepoints, trees of its own, and an end of
    /// either kind.
    pub(super) fn explicit(&mut self) -> Result<()> {
        let store = self.store()?;
        let mut txn = store.txn();
        match self.rng.below(3) {
            0 => txn.begin_immediate()?,
            1 => txn.begin(Isolation::Serializable)?,
            _ => txn.begin(Isolation::Snapshot)?,
        }
        let mut next = self.visible.clone();
        let mut savepoints: Vec<(Savepoint, State)> = Vec::new();
        for _ in 0..1 + self.rng.below(10) {
            match self.rng.below(12) {
                0 => savepoints.push((txn.savepoint()?, next.clone())),
                1 if !savepoints.is_empty() => {
                    savepoints.truncate(1 + self.rng.index(savepoints.len()));
                    let (savepoint, state) = &savepoints[savepoints.len() - 1];
                    txn.rollback_to(savepoint)?;
                    next = state.clone();
                }
                2 if savepoints.len() > 1 => {
                    let kept = self.rng.index(savepoints.len());
                    txn.release(&savepoints[kept].0)?;
                    savepoints.truncate(kept);
                }
                2 => {
                    let kind = self.kind();
                    let tree = txn.create_tree(kind)?;
                    let id = tree.id().0;
                    self.made(id);
                    next.tables.insert(id, Table::new(kind));
                }
                3 if self.rng.one_in(2) => self.drop_unnamed(&mut txn, &mut next)?,
                _ => {
                    let ids: Vec<u32> = next.tables.keys().copied().collect();
                    if !ids.is_empty() {
                        let id = ids[self.rng.index(ids.len())];
                        self.change(&mut txn, &mut next, id)?;
                    }
                }
            }
        }
        if self.rng.one_in(5) {
            txn.rollback();
            return Ok(());
        }
        self.commit(next, &mut txn)
    }

    fn drop_unnamed(&mut self, txn: &mut Txn, next: &mut State) -> Result<()> {
        let named = |id: &u32| next.names.values().any(|named| named == id);
        let unnamed = next.tables.keys().copied().find(|id| !named(id));
        if let Some(id) = unnamed {
            let tree = txn.store().tree(TreeId(id))?;
            txn.drop_tree(&tree)?;
            next.tables.remove(&id);
        }
        Ok(())
    }

    /// Two transactions that overlap: the second is put on top of the first, or
    /// loses.
    pub(super) fn overlap(&mut self) -> Result<()> {
        let Some(id) = self.any_tree() else {
            return Ok(());
        };
        let mut txn = self.store()?.txn();
        txn.begin(Isolation::Snapshot)?;
        let mut private = self.visible.clone();
        let mut changes = Vec::new();
        for _ in 0..1 + self.rng.below(5) {
            changes.extend(self.change(&mut txn, &mut private, id)?);
        }
        self.statement()?;
        let mut next = self.visible.clone();
        if let Some(table) = next.table(id) {
            for (_, key, value) in changes {
                match value {
                    Some(value) => table.rows.insert(key, value),
                    None => table.rows.remove(&key),
                };
            }
        }
        let committed = self.commit(next, &mut txn);
        match committed {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.frame.had_no_effect(&self.visible);
                Ok(())
            }
            other => other,
        }
    }

    /// One operation on one tree, of which the answer is checked.
    fn change(&mut self, txn: &mut Txn, next: &mut State, id: u32) -> Result<Option<Change>> {
        let tree = txn.store().tree(TreeId(id))?;
        let key = self.key(tree.kind());
        let table = next.table(id).expect("the model knows its trees");
        let known = table.rows.get(&key).cloned();
        match self.rng.below(8) {
            0 => {
                let mut found = Vec::new();
                let there = txn.get_into(&tree, key.borrow(), &mut found)?;
                assert_eq!(there.then_some(&*found), known.as_deref(), "get {key:?}");
                Ok(None)
            }
            1 | 2 => {
                let deleted = txn.delete(&tree, key.borrow())?;
                assert_eq!(deleted, known.is_some(), "delete {key:?}");
                table.rows.remove(&key);
                Ok(deleted.then_some((id, key, None)))
            }
            3 => {
                let value = self.value();
                let inserted = txn.insert(&tree, key.borrow(), &value)?;
                assert_eq!(inserted, known.is_none(), "insert {key:?}");
                if !inserted {
                    return Ok(None);
                }
                table.rows.insert(key.clone(), value.clone());
                Ok(Some((id, key, Some(value))))
            }
            5 => {
                let Some(mut value) = known.map(|value| value.to_vec()) else {
                    return Ok(None);
                };
                let from = self.rng.index(value.len() + 1);
                let len = self.rng.index(value.len() - from + 1);
                let part = self.filled(len);
                assert!(txn.put_part(&tree, key.borrow(), from, &part)?);
                value[from..from + part.len()].copy_from_slice(&part);
                let value: Arc<[u8]> = value.into();
                table.rows.insert(key.clone(), value.clone());
                // No bytes change nothing, whatever another one makes of the value.
                Ok((!part.is_empty()).then_some((id, key, Some(value))))
            }
            4 => {
                // Mostly what lies beside the key, so that the rest of a large one stays.
                let mut beside = Vec::new();
                let length = txn.get_start_into(&tree, key.borrow(), &mut beside)?;
                assert_eq!(length, known.as_ref().map(|value| value.len()), "{key:?}");
                let start = self.filled(beside.len());
                let put = txn.put_start(&tree, key.borrow(), beside.len(), &start)?;
                assert_eq!(put, known.is_some(), "put start {key:?}");
                let Some(before) = known else {
                    return Ok(None);
                };
                let value: Arc<[u8]> = [&start, &before[beside.len()..]].concat().into();
                table.rows.insert(key.clone(), value.clone());
                Ok(Some((id, key, Some(value))))
            }
            _ => {
                let value = self.value();
                let replaced = txn.put(&tree, key.borrow(), &value)?;
                assert_eq!(replaced, known.is_some(), "put {key:?}");
                table.rows.insert(key.clone(), value.clone());
                Ok(Some((id, key, Some(value))))
            }
        }
    }

    /// A transaction with more redo than is kept: its pages are written at
    /// commit, and only their place is logged.
    pub fn bulk(&mut self) -> Result<()> {
        let store = self.store()?;
        let mut txn = store.txn();
        if self.rng.one_in(2) {
            txn.begin_immediate()?;
        } else {
            txn.begin(Isolation::Serializable)?;
        }
        let mut next = self.visible.clone();
        let id = match self.any_tree().filter(|_| self.rng.one_in(2)) {
            Some(id) => id,
            None => {
                let kind = self.kind();
                let id = txn.create_tree(kind)?.id().0;
                next.tables.insert(id, Table::new(kind));
                self.made(id);
                id
            }
        };
        let kind = next.tables[&id].kind;
        for number in 0..100_u8 {
            let key = match kind {
                KeyKind::Int => RowKey::Int(1_000 + i64::from(number)),
                KeyKind::Bytes => RowKey::Bytes(vec![b'z', number]),
            };
            let tree = store.tree(TreeId(id))?;
            let value = self.filled(90_000);
            txn.put(&tree, key.borrow(), &value)?;
            let table = next.table(id).expect("the model knows its trees");
            table.rows.insert(key, value);
            self.change(&mut txn, &mut next, id)?;
        }
        let logged = || store.stats().log.map_or(0, |log| log.bytes);
        let before = logged();
        self.commit(next, &mut txn)?;
        assert!(logged() - before < 1 << 20, "it was not bulk");
        Ok(())
    }
}
