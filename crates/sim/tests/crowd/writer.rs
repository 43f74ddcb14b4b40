//! A thread that commits as it likes. It knows what each commit makes of its own rows,
//! and takes down from when on that may be found.

use super::history::{Commit, Front, OWN, Own, Place, ROWS, RowKey, Value, WRITERS};
use super::life::World;
use super::view;
use fulgurite_sim::Rng;
use fulgurite_store::{ErrorKind, Isolation, Key, KeyKind, Result, Tree, Txn};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

pub struct Writer<'w> {
    world: &'w World<'w>,
    own: usize,
    rng: Rng,
    /// The state with what the transaction under way has changed.
    state: Own,
    /// Those changes: what was there before each.
    undo: Vec<(Place, Option<Value>)>,
    tree: Option<Tree>,
    txn: Txn,
    /// Whether the newest commit's outcome is not known yet.
    under_way: bool,
}

impl<'w> Writer<'w> {
    pub fn new(world: &'w World<'w>, own: usize, state: Own, seed: u64) -> Self {
        let name = state.tree.map(|commit| Own::tree_name(own, commit));
        let family = |name: String| world.store.family(&name).expect("reads");
        let tree = name.map(|name| family(name).expect("is there"));
        Self {
            world,
            own,
            rng: Rng::new(seed),
            state,
            undo: Vec::new(),
            tree,
            txn: world.store.txn(),
            under_way: false,
        }
    }

    /// Commits so often, or until writing has ended.
    pub fn run(mut self, steps: u64) {
        for _ in 0..steps {
            let Err(error) = self.step() else {
                continue;
            };
            self.txn.rollback();
            let tally = self.world.tally;
            match error.kind() {
                ErrorKind::Conflict => tally.lost.fetch_add(1, Relaxed),
                ErrorKind::Busy | ErrorKind::NoMemory => tally.refused.fetch_add(1, Relaxed),
                _ => {
                    self.world.may_fail(&error);
                    if !self.goes_on() {
                        return;
                    }
                    0
                }
            };
            self.had_no_effect();
        }
    }

    /// Whether writing goes on after a failure.
    fn goes_on(&mut self) -> bool {
        match self.txn.begin_immediate() {
            Ok(()) => {
                self.txn.rollback();
                true
            }
            Err(error) => error.kind() != ErrorKind::Poisoned,
        }
    }

    fn had_no_effect(&mut self) {
        self.undo_to(0);
        if std::mem::take(&mut self.under_way) {
            self.world.history(self.own).commits.pop();
        }
    }

    fn undo_to(&mut self, len: usize) {
        for (place, before) in self.undo.drain(len..).rev() {
            match before {
                Some(value) => self.state.rows.insert(place, value),
                None => self.state.rows.remove(&place),
            };
        }
    }

    fn step(&mut self) -> Result<()> {
        match self.rng.below(24) {
            0 => self.world.look_twice(&mut self.txn),
            1 => self.world.checkpoint(),
            2 | 3 => self.make_or_drop(),
            4..=10 => self.statement(),
            _ => self.explicit(),
        }
    }

    /// Commits, to the state as it is now.
    fn commit(&mut self, commit: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let places: BTreeSet<Place> = self.undo.iter().map(|(place, _)| *place).collect();
        let now = |place| (place, self.state.rows.get(&place).cloned());
        let next = Commit {
            from: self.world.disk.calls(),
            changes: places.into_iter().map(now).collect(),
            tree: self.state.tree,
        };
        self.world.history(self.own).commits.push(next);
        self.under_way = true;
        commit(self)?;
        self.under_way = false;
        self.undo.clear();
        self.world.acknowledged(self.own);
        Ok(())
    }

    /// Makes this writer's own tree, or drops it with all its rows.
    fn make_or_drop(&mut self) -> Result<()> {
        let newest = self.world.history(self.own).newest();
        if self.state.tree.is_none() {
            let name = Own::tree_name(self.own, newest + 1);
            self.state.tree = Some(newest + 1);
            let made = self.commit(|writer| {
                let store = &writer.world.store;
                writer.tree = Some(store.create_family(&name, KeyKind::Int)?);
                Ok(())
            });
            if made.is_err() {
                self.state.tree = None;
            }
            return made;
        }
        if self.state.stamp() < newest {
            // One without a stamp after another could not be told apart.
            return self.statement();
        }
        let before = self.state.clone();
        let made = before.tree.expect("there is one");
        self.state.tree = None;
        self.state.rows.retain(|(tree, _), _| *tree < OWN);
        let name = Own::tree_name(self.own, made);
        let dropped = self.commit(|writer| {
            assert!(writer.world.store.drop_family(&name)?, "{name}");
            writer.tree = None;
            Ok(())
        });
        if dropped.is_err() {
            self.state = before;
        }
        dropped
    }

    fn statement(&mut self) -> Result<()> {
        let shared = self.rng.index(OWN);
        let mut trees = vec![self.world.trees[shared].clone()];
        let mut places = vec![shared];
        if let Some(tree) = self.tree.clone().filter(|_| self.rng.one_in(2)) {
            trees.push(tree);
            places.push(OWN);
        }
        let trees: Vec<&Tree> = trees.iter().collect();
        self.txn.begin_statement(&trees)?;
        for _ in 0..1 + self.rng.below(6) {
            let place = (places[self.rng.index(places.len())], self.row());
            self.change(place)?;
        }
        self.stamp_and_commit(shared)
    }

    fn explicit(&mut self) -> Result<()> {
        match self.rng.below(9) {
            0 => self.txn.begin_immediate()?,
            1 => {
                self.txn.begin_immediate_ahead()?;
                self.ask()?;
            }
            2..=4 => self.txn.begin(Isolation::Snapshot)?,
            _ => self.txn.begin(Isolation::Serializable)?,
        }
        self.changes()?;
        if self.rng.one_in(8) {
            self.txn.rollback();
            self.undo_to(0);
            return Ok(());
        }
        let shared = self.rng.index(OWN);
        self.stamp_and_commit(shared)
    }

    /// How far another one had come, and is told of it once that is confirmed.
    fn ask(&mut self) -> Result<()> {
        let (other, shared) = (self.rng.index(WRITERS), self.rng.index(OWN));
        let found = view::stamp(&mut self.txn, &self.world.trees, other, shared)?;
        self.txn.confirm()?;
        if let Some((commit, _)) = found {
            let call = self.world.disk.calls();
            self.world.history(other).known_from(call, commit);
        }
        Ok(())
    }

    /// Few changes or many, side by side or all over the trees, some undone again.
    fn changes(&mut self) -> Result<()> {
        let most = 1 << self.rng.below(11);
        let count = 1 + self.rng.below(most);
        let dense = self.rng.one_in(2).then(|| self.row());
        let trees = OWN + usize::from(self.tree.is_some());
        let one = self.rng.index(trees);
        let mut savepoint = None;
        for at in 0..count {
            let place = match dense {
                Some(first) => (one, 1 + (first + at) % (ROWS - 1)),
                None => (self.rng.index(trees), self.row()),
            };
            self.change(place)?;
            if self.rng.one_in(64) {
                savepoint = match savepoint {
                    None => Some((self.txn.savepoint()?, self.undo.len())),
                    Some((savepoint, len)) => {
                        if at % 2 == 0 {
                            self.txn.rollback_to(&savepoint)?;
                            self.undo_to(len);
                        }
                        self.txn.release(&savepoint)?;
                        None
                    }
                };
            }
        }
        Ok(())
    }

    fn row(&mut self) -> u64 {
        1 + self.rng.below(ROWS - 1)
    }

    /// One operation on one row, of which the answer is checked.
    fn change(&mut self, place: Place) -> Result<()> {
        let known = self.state.rows.get(&place);
        let key = RowKey::of(self.own, place);
        let tree = self.world.trees.get(place.0).or(self.tree.as_ref());
        let tree = tree.expect("an own tree");
        match self.rng.below(8) {
            0 => {
                let mut found = Vec::new();
                let there = self.txn.get_into(tree, key.as_key(), &mut found)?;
                let same = there.then_some(&found) == known.map(Value::bytes).as_ref();
                assert!(same, "get {place:?} of {}", self.own);
            }
            1 => {
                let deleted = self.txn.delete(tree, key.as_key())?;
                assert_eq!(deleted, known.is_some(), "delete {place:?}");
                let before = self.state.rows.remove(&place);
                self.undo.push((place, before));
            }
            _ => {
                let most = match self.rng.below(200) {
                    0 => 40_000,
                    1..=10 => 3_000,
                    _ => 200,
                };
                let len = self.rng.index(most);
                let seed = self.rng.bits();
                self.put(place, Value::Filled { seed, len }, key.as_key())?;
            }
        }
        Ok(())
    }

    fn put(&mut self, place: Place, value: Value, key: Key<'_>) -> Result<()> {
        let tree = self.world.trees.get(place.0).or(self.tree.as_ref());
        let tree = tree.expect("an own tree");
        let replaced = self.txn.put(tree, key, &value.bytes())?;
        let before = self.state.rows.insert(place, value);
        assert_eq!(replaced, before.is_some(), "put {place:?}");
        self.undo.push((place, before));
        Ok(())
    }

    /// Leaves the commit's number, and what this one saw of others, in a shared tree.
    fn stamp_and_commit(&mut self, tree: usize) -> Result<()> {
        let mut saw = Front::default();
        let other = self.rng.index(WRITERS);
        if self.rng.one_in(4) && other != self.own {
            let shared = self.rng.index(OWN);
            let found = view::stamp(&mut self.txn, &self.world.trees, other, shared)?;
            saw[other] = found.map_or(0, |(commit, _)| commit);
        }
        let commit = self.world.history(self.own).newest() + 1;
        let key = RowKey::of(self.own, (tree, 0));
        self.put((tree, 0), Value::Stamp(commit, saw), key.as_key())?;
        self.commit(|writer| writer.txn.commit())?;
        self.world.tally.commits.fetch_add(1, Relaxed);
        Ok(())
    }
}
