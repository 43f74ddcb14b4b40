//! A thread that commits at random. It knows what each commit makes of its own
//! rows before it begins, and takes down from when on that may be found.

use super::history::{Front, Own, Place, ROWS, SHARED, SUM};
use super::history::{filled, name, number, stamp, stamped};
use super::view::own_tree;
use super::world::World;
use fulgurite_sim::Rng;
use fulgurite_store_model::{ErrorKind, Isolation, Key, KeyKind, Result, Tree, Txn};

/// One writer.
pub struct Writer {
    world: World,
    own: usize,
    rng: Rng,
    tree: Option<Tree>,
    txn: Txn,
    /// Whether the newest state's outcome is not known yet.
    under_way: bool,
}

impl Writer {
    pub fn new(world: World, own: usize, seed: u64) -> Self {
        let txn = world.store.txn();
        Self {
            world,
            own,
            rng: Rng::new(seed),
            tree: None,
            txn,
            under_way: false,
        }
    }

    /// Commits so often, or until writing has ended.
    pub fn run(mut self, steps: usize) {
        for _ in 0..steps {
            if let Err(error) = self.step() {
                let lost = error.kind() == ErrorKind::Conflict;
                if !lost {
                    self.world.may_fail(&error);
                }
                self.txn.rollback();
                if lost || self.goes_on() {
                    self.had_no_effect();
                } else {
                    return;
                }
            }
        }
    }

    /// Whether writing goes on after a failure.
    fn goes_on(&mut self) -> bool {
        match self.txn.begin_immediate() {
            Ok(()) => {
                self.txn.rollback();
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
                false
            }
        }
    }

    fn had_no_effect(&mut self) {
        if std::mem::take(&mut self.under_way) {
            self.world.history(self.own).states.pop();
        }
    }

    fn step(&mut self) -> Result<()> {
        match self.rng.below(12) {
            0 | 1 => self.make_or_drop(),
            2 => {
                self.begin_explicit()?;
                self.large()
            }
            3..=6 => self.statement(),
            _ => {
                self.begin_explicit()?;
                self.explicit()
            }
        }
    }

    fn newest(&self) -> Own {
        self.world.history(self.own).newest().clone()
    }

    /// Commits what leads to `next`.
    fn commit(&mut self, next: Own, commit: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let call = self.world.disk.calls();
        self.world.history(self.own).states.push((call, next));
        self.under_way = true;
        commit(self)?;
        self.under_way = false;
        self.world.acknowledged(self.own);
        Ok(())
    }

    /// Makes this writer's own tree, or drops it.
    fn make_or_drop(&mut self) -> Result<()> {
        let mut next = self.newest();
        let commits = self.world.history(self.own).states.len() - 1;
        let stamp = next.rows.get(&(0, 0)).map_or(0, |value| stamped(value).0);
        if stamp < commits {
            // One without a stamp after another could not be told apart.
            return self.statement();
        }
        let name = own_tree(self.own);
        next.tree = !next.tree;
        if next.tree {
            self.commit(next, |writer| {
                let store = &writer.world.store;
                writer.tree = Some(store.create_family(&name, KeyKind::Int)?);
                Ok(())
            })
        } else {
            next.rows.retain(|(tree, _), _| *tree < SHARED.len());
            self.commit(next, |writer| {
                assert!(writer.world.store.drop_family(&name)?);
                writer.tree = None;
                Ok(())
            })
        }
    }

    fn statement(&mut self) -> Result<()> {
        let mut trees: Vec<Tree> = self.world.trees.to_vec();
        trees.extend(self.tree.clone());
        trees.truncate(1 + self.rng.index(trees.len()));
        let trees: Vec<&Tree> = trees.iter().collect();
        self.txn.begin_statement(&trees)?;
        let mut next = self.newest();
        for _ in 0..1 + self.rng.below(3) {
            let tree = self.rng.index(trees.len());
            self.change(&mut next, tree)?;
        }
        self.stamp_and_commit(next)
    }

    fn begin_explicit(&mut self) -> Result<()> {
        match self.rng.below(5) {
            0 => self.txn.begin_immediate()?,
            1 => {
                self.txn.begin_immediate_ahead()?;
                return self.ask();
            }
            2 => self.txn.begin(Isolation::Snapshot)?,
            _ => return self.txn.begin(Isolation::Serializable),
        }
        if self.rng.one_in(2) {
            let front = self.world.look(&mut self.txn)?;
            self.world.shown(&front);
        }
        Ok(())
    }

    /// How far some of the others had come, and is told of it once that is confirmed.
    fn ask(&mut self) -> Result<()> {
        let mut front = Front::default();
        for (other, seen) in front.iter_mut().enumerate() {
            if self.rng.one_in(2) {
                continue;
            }
            let mut value = Vec::new();
            let key = Key::Int(number(other, 0));
            if self.txn.get_into(&self.world.trees[0], key, &mut value)? {
                *seen = stamped(&value).0;
            }
        }
        self.txn.confirm()?;
        self.world.shown(&front);
        Ok(())
    }

    /// Changes with savepoints, and an end of either kind.
    fn explicit(&mut self) -> Result<()> {
        let mut next = self.newest();
        let mut savepoints = Vec::new();
        for _ in 0..1 + self.rng.below(6) {
            match self.rng.below(8) {
                0 => savepoints.push((self.txn.savepoint()?, next.clone())),
                1 if !savepoints.is_empty() => {
                    savepoints.truncate(1 + self.rng.index(savepoints.len()));
                    let (savepoint, state) = &savepoints[savepoints.len() - 1];
                    self.txn.rollback_to(savepoint)?;
                    next = state.clone();
                }
                _ => {
                    let tree = self.rng.index(2 + usize::from(next.tree));
                    self.change(&mut next, tree)?;
                }
            }
        }
        if self.rng.one_in(6) {
            self.txn.rollback();
            return Ok(());
        }
        self.stamp_and_commit(next)
    }

    /// So much that it is not kept in the log.
    fn large(&mut self) -> Result<()> {
        let mut next = self.newest();
        let tree = self.rng.index(2 + usize::from(next.tree));
        for row in 1..ROWS {
            let value = filled(self.rng.bits(), 2_000 + self.rng.index(4_000));
            self.put((tree, row), &value)?;
            next.rows.insert((tree, row), value);
            if self.rng.one_in(8) {
                self.change(&mut next, 0)?;
            }
        }
        self.stamp_and_commit(next)
    }

    fn stamp_and_commit(&mut self, mut next: Own) -> Result<()> {
        if self.rng.one_in(3) {
            self.add(1)?;
            next.added += 1;
        }
        let mut saw = Front::default();
        for (other, seen) in saw.iter_mut().enumerate() {
            if other == self.own || self.rng.one_in(2) {
                continue;
            }
            let mut value = Vec::new();
            let key = Key::Int(number(other, 0));
            if self.txn.get_into(&self.world.trees[0], key, &mut value)? {
                *seen = stamped(&value).0;
            }
        }
        let commit = self.world.history(self.own).states.len();
        let value = stamp(commit, &saw);
        self.put((0, 0), &value)?;
        next.rows.insert((0, 0), value);
        self.commit(next, |writer| writer.txn.commit())
    }

    fn add(&mut self, by: i64) -> Result<()> {
        let tree = &self.world.trees[0];
        let mut value = Vec::new();
        let found = self.txn.get_into(tree, Key::Int(SUM), &mut value)?;
        let sum = found.then(|| i64::from_le_bytes(value.as_slice().try_into().expect("a sum")));
        let sum = (sum.unwrap_or(0) + by).to_le_bytes();
        self.txn.put(tree, Key::Int(SUM), &sum)?;
        Ok(())
    }

    /// One operation on one row, of which the answer is checked.
    fn change(&mut self, next: &mut Own, tree: usize) -> Result<()> {
        let place = (tree, 1 + self.rng.below(ROWS as u64 - 1) as i64);
        let known = next.rows.get(&place);
        match self.rng.below(6) {
            0 => {
                let mut found = Vec::new();
                let there = self.on(place, |txn, tree, key| txn.get_into(tree, key, &mut found))?;
                assert_eq!(there.then_some(&found), known, "get {place:?}");
            }
            1 | 2 => {
                let deleted = self.on(place, |txn, tree, key| txn.delete(tree, key))?;
                assert_eq!(deleted, known.is_some(), "delete {place:?}");
                next.rows.remove(&place);
            }
            _ => {
                let len = match self.rng.below(12) {
                    0..=5 => self.rng.index(40),
                    6..=9 => self.rng.index(400),
                    10 => self.rng.index(1_500),
                    _ => self.rng.index(9_000),
                };
                let value = filled(self.rng.bits(), len);
                let replaced = self.put(place, &value)?;
                assert_eq!(replaced, known.is_some(), "put {place:?}");
                next.rows.insert(place, value);
            }
        }
        Ok(())
    }

    fn put(&mut self, place: Place, value: &[u8]) -> Result<bool> {
        self.on(place, |txn, tree, key| txn.put(tree, key, value))
    }

    fn on(
        &mut self,
        (tree, row): Place,
        act: impl FnOnce(&mut Txn, &Tree, Key<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let name = name(self.own, row);
        let key = match tree {
            1 => Key::Bytes(&name),
            _ => Key::Int(number(self.own, row)),
        };
        let tree = self.world.trees.get(tree).or(self.tree.as_ref());
        act(&mut self.txn, tree.expect("an own tree"), key)
    }
}
