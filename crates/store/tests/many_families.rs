//! Transactions that touch hundreds of families beside a plain model: what finds a family's
//! part of a transaction is another thing for many than for a few, and so is what writes
//! their pages out where the cache is small.

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Isolation, Key, KeyKind, Options, Result, Savepoint, Store, Tree, Txn};
use std::collections::BTreeMap;
use std::sync::Arc;

const FAMILIES: u64 = 300;

/// Each family's entries, by their names.
type Model = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

struct Run {
    rng: Rng,
    model: Model,
    /// As the model was at each savepoint.
    savepoints: Vec<(Savepoint, Model)>,
}

fn handle(txn: &mut Txn, name: &str) -> Result<Tree> {
    txn.create_family(name, KeyKind::Bytes)
}

impl Run {
    fn name(&mut self) -> String {
        format!("family {:03}", self.rng.below(FAMILIES))
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key {}", self.rng.below(12)).into_bytes()
    }

    /// One operation, and the same in the model.
    fn step(&mut self, txn: &mut Txn) -> Result<()> {
        let (name, key) = (self.name(), self.key());
        match self.rng.below(100) {
            0..55 => {
                let length = match self.rng.chance(1, 50) {
                    true => self.rng.below(20_000),
                    false => self.rng.below(300),
                };
                let value = vec![self.rng.next() as u8; length as usize];
                let tree = handle(txn, &name)?;
                let replaced = txn.put(&tree, Key::Bytes(&key), &value)?;
                let entries = self.model.entry(name).or_default();
                assert_eq!(replaced, entries.insert(key, value).is_some());
            }
            55..75 => {
                let tree = handle(txn, &name)?;
                let deleted = txn.delete(&tree, Key::Bytes(&key))?;
                let entries = self.model.entry(name).or_default();
                assert_eq!(deleted, entries.remove(&key).is_some());
            }
            75..90 => {
                let tree = handle(txn, &name)?;
                let mut value = Vec::new();
                let found = txn.get_into(&tree, Key::Bytes(&key), &mut value)?;
                let entries = self.model.entry(name).or_default();
                assert_eq!(found.then_some(&value), entries.get(&key));
            }
            90..93 => {
                let dropped = txn.drop_family(&name)?;
                assert_eq!(dropped, self.model.remove(&name).map(|_| true));
            }
            93..97 => {
                let savepoint = txn.savepoint()?;
                self.savepoints.push((savepoint, self.model.clone()));
            }
            97..98 if !self.savepoints.is_empty() => {
                let at = self.rng.below(self.savepoints.len() as u64) as usize;
                self.savepoints.truncate(at + 1);
                let (savepoint, model) = &self.savepoints[at];
                txn.rollback_to(savepoint)?;
                self.model = model.clone();
            }
            _ if !self.savepoints.is_empty() => {
                let at = self.rng.below(self.savepoints.len() as u64) as usize;
                txn.release(&self.savepoints[at].0)?;
                self.savepoints.truncate(at);
            }
            _ => {}
        }
        Ok(())
    }
}

fn content(store: &Store) -> Result<Model> {
    let mut txn = store.txn();
    txn.begin_read()?;
    let mut model = Model::new();
    for (name, tree) in txn.families()? {
        let entries = model.entry(name).or_default();
        let mut cursor = txn.cursor(&tree)?;
        let mut more = cursor.seek(fulgurite_store::Seek::First)?;
        while more {
            entries.insert(cursor.key_bytes()?.to_vec(), cursor.value()?.to_vec());
            more = cursor.next()?;
        }
    }
    Ok(model)
}

fn run(seed: u64, cache_bytes: usize) -> Result<()> {
    let options = Options {
        cache_bytes,
        ..Options::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk.clone(), "many.db", options.clone())?;
    let mut run = Run {
        rng: Rng::new(seed),
        model: Model::new(),
        savepoints: Vec::new(),
    };
    let mut txn = store.txn();
    for round in 0..6 {
        let before = run.model.clone();
        match round % 3 {
            0 => txn.begin_immediate()?,
            1 => txn.begin(Isolation::Serializable)?,
            _ => txn.begin(Isolation::Snapshot)?,
        }
        for _ in 0..3_000 {
            run.step(&mut txn)?;
        }
        run.savepoints.clear();
        match run.rng.chance(1, 4) {
            true => {
                txn.rollback();
                run.model = before;
            }
            false => txn.commit()?,
        }
        assert_eq!(content(&store)?, run.model);
    }
    assert_eq!(store.integrity_check()?, [""; 0]);
    // As the end of the process would leave it.
    let copy = Store::open_on(Arc::new(disk.copied()), "many.db", options)?;
    assert_eq!(content(&copy)?, run.model);
    assert_eq!(copy.integrity_check()?, [""; 0]);
    Ok(())
}

#[test]
fn many_families_in_one_transaction_are_as_the_model_says() {
    let first = env("FULGURITE_SEED", 1);
    for seed in first..first + env("FULGURITE_RUNS", 3) {
        for cache_bytes in [1 << 20, 16 << 20] {
            println!("seed {seed}, cache {cache_bytes}");
            run(seed, cache_bytes).expect("nothing fails");
        }
    }
}
