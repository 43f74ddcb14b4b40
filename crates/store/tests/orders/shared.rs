//! What all threads share, and what is done while they are at rest.

use crate::act::act;
use crate::ask::{Ask, Counts, Digest, Told};
use crate::common::Rng;
use crate::history::{Ends, Record, Step, Transaction};
use crate::power::Power;
use fulgurite_store::{Durability, ErrorKind, Isolation, KeyKind, Result, Seek, Store, Tree, Txn};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};

const HANDLES_MAX: usize = 14;
/// Power cuts that are kept of a round.
const CUTS_MAX: usize = 6;

/// What all threads share.
pub struct Shared {
    pub store: Store,
    clock: Arc<AtomicU64>,
    /// Handles, some of trees that are gone, or not there yet.
    pub trees: Mutex<Vec<Tree>>,
    /// What was in a tree that had a stamp.
    stamps: Mutex<HashMap<(u32, u64), u64>>,
    /// Where all that is told of outlasts a power cut.
    power: Option<Power>,
    /// A family that is written to only by who keeps other writers out.
    relied_on: OnceLock<Tree>,
    /// When all that was there by then was durable.
    lasting: AtomicU64,
    cuts: Mutex<Vec<Cut>>,
}

/// A power cut at some moment.
pub struct Cut {
    /// What a transaction that was under way had been told, where that is not to be lost.
    pub told: Option<Transaction>,
    pub leaves: Power,
    pub began: u64,
}

impl Shared {
    pub fn new(store: Store, power: Option<Power>) -> Self {
        Self {
            store,
            clock: Arc::default(),
            trees: Mutex::default(),
            stamps: Mutex::default(),
            power,
            relied_on: OnceLock::new(),
            lasting: AtomicU64::new(0),
            cuts: Mutex::default(),
        }
    }

    /// One with the same clock.
    pub fn beside(&self, store: Store) -> Self {
        Self {
            clock: self.clock.clone(),
            ..Self::new(store, self.power.clone())
        }
    }

    /// Whether all that is told of outlasts a power cut.
    fn lasts(&self) -> bool {
        self.store.options().durability == Durability::Full
    }

    /// Makes durable what may be lost so far.
    pub fn settle(&self) {
        if self.power.is_some() && !self.lasts() {
            self.store.checkpoint().expect("a checkpoint");
            self.lasting.store(self.tick(), SeqCst);
        }
    }

    /// Keeps what a power cut would leave now, now and then, most where a sync is under way:
    /// all that a transaction was told has to be in it, in `full`.
    pub fn may_cut(&self, record: &Record, holds: bool, rng: &mut Rng) {
        let Some(power) = &self.power else {
            return;
        };
        let chance = match power.is_syncing() {
            // Who holds its trees sees most of what is on its way, if anybody does.
            true if holds => 2,
            true => 16,
            false => 60,
        };
        if !rng.chance(1, chance) || self.cuts.lock().expect("no panic").len() >= CUTS_MAX {
            return;
        }
        let lasts = self.lasts();
        let told = lasts.then(|| Transaction {
            how: "told",
            steps: record.steps.clone(),
            beside: Vec::new(),
            ends: Ends::Undone,
            began: record.began,
            commits: record.began,
            ended: self.tick(),
        });
        let began = match lasts {
            true => self.tick(),
            // All of this round may be lost.
            false => self.lasting.load(SeqCst),
        };
        let cut = Cut {
            told,
            leaves: power.cut(),
            began,
        };
        self.cuts.lock().expect("no panic").push(cut);
    }

    /// Those that were kept since this was asked for.
    pub fn cuts(&self) -> Vec<Cut> {
        std::mem::take(&mut self.cuts.lock().expect("no panic"))
    }

    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    pub fn meet(&self, tree: &Tree) {
        if self.relied_on.get() == Some(tree) {
            return;
        }
        let mut trees = self.trees.lock().expect("no panic");
        if !trees.contains(tree) {
            trees.push(tree.clone());
        }
        if trees.len() > HANDLES_MAX {
            trees.remove(0);
        }
    }

    /// The one that was met last.
    pub fn newest(&self) -> Option<Tree> {
        self.trees.lock().expect("no panic").last().cloned()
    }

    /// The tree that may be relied on.
    pub fn relied_on(&self) -> Option<&Tree> {
        self.relied_on.get()
    }

    /// Finds it, or has it made.
    pub fn provide_relied_on(&self) -> Transaction {
        let made = provide(self, "relied on", KeyKind::Int);
        let tree = self.store.family("relied on").expect("reads");
        let tree = tree.expect("a family");
        let mut trees = self.trees.lock().expect("no panic");
        trees.retain(|known| *known != tree);
        // There from the first time on.
        let _ = self.relied_on.set(tree);
        made
    }

    pub fn known(&self) -> Vec<Tree> {
        self.trees.lock().expect("no panic").clone()
    }

    /// Equal stamps say equal contents.
    pub fn check_stamp(&self, txn: &mut Txn, tree: &Tree) -> Result<()> {
        let Ok(stamp) = txn.stamp(tree) else {
            return Ok(());
        };
        let mut cursor = match txn.cursor_to_estimate(tree) {
            // Nobody has committed it so far.
            Err(error) if error.kind() == ErrorKind::Misuse => return Ok(()),
            cursor => cursor?,
        };
        let mut all = Vec::new();
        let mut more = cursor.seek(Seek::First)?;
        while more {
            match tree.kind() {
                KeyKind::Int => all.extend(cursor.key_int().to_le_bytes()),
                KeyKind::Bytes => all.extend(cursor.key_bytes()?),
            }
            all.extend(Digest::new(cursor.value()?).hash.to_le_bytes());
            more = cursor.next()?;
        }
        assert_eq!(txn.stamp(tree)?, stamp, "of {tree:?}");
        let hash = Digest::new(&all).hash;
        let mut stamps = self.stamps.lock().expect("no panic");
        let known = *stamps.entry((tree.id().0, stamp)).or_insert(hash);
        assert_eq!(known, hash, "{tree:?} had the stamp {stamp} before");
        Ok(())
    }
}

/// Everything that the trees hold that are known.
pub fn look(shared: &Shared) -> Transaction {
    let relied_on = shared.relied_on().cloned().into_iter().collect();
    let mut txn = shared.store.txn();
    let began = shared.tick();
    txn.begin_read().expect("reads");
    Transaction {
        began,
        commits: began,
        ..look_in(&mut txn, shared, [shared.known(), relied_on].concat())
    }
}

/// Everything that a transaction sees in these trees.
pub fn look_in(txn: &mut Txn, shared: &Shared, trees: Vec<Tree>) -> Transaction {
    let began = shared.tick();
    let mut record = Record {
        began,
        by: String::new(),
        steps: Vec::new(),
        scans: Vec::new(),
    };
    let mut asked = vec![Ask::Families];
    for tree in trees {
        asked.push(Ask::Count(tree.clone()));
        asked.push(Ask::Scan(tree, Counts::Plain, None));
    }
    for ask in asked {
        record.ask(txn, shared, ask).expect("reads");
    }
    for mut scan in record.scans.drain(..) {
        let Told::Moves(moves) = &mut record.steps[scan.step].told else {
            panic!("a scan");
        };
        scan.read_all(moves).expect("reads");
    }
    Transaction {
        how: "look",
        steps: record.steps,
        beside: Vec::new(),
        ends: Ends::AtOnce,
        began,
        commits: began,
        ended: shared.tick(),
    }
}

/// A transaction of one step, with nothing beside it.
fn alone(shared: &Shared, ask: Ask, act: impl FnOnce(&Ask) -> Told) -> Transaction {
    let began = shared.tick();
    let told = act(&ask);
    Transaction {
        how: "alone",
        steps: vec![Step { ask, told }],
        beside: Vec::new(),
        ends: Ends::AtOnce,
        began,
        commits: began,
        ended: shared.tick(),
    }
}

/// Makes a family unless it is there.
pub fn provide(shared: &Shared, name: &str, kind: KeyKind) -> Transaction {
    let ask = Ask::CreateFamily(name.to_owned(), kind);
    alone(shared, ask, |_| {
        match shared.store.create_family(name, kind) {
            Ok(tree) => {
                shared.meet(&tree);
                Told::Tree(Some(tree.id().0))
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
                Told::Refused
            }
        }
    })
}

/// Empties a tree.
pub fn empty(shared: &Shared, tree: &Tree) -> Transaction {
    alone(shared, Ask::Clear(tree.clone()), |ask| {
        let done = shared.store.transact(Isolation::Serializable, |txn| {
            act(txn, ask, &mut |tree| shared.meet(tree))
        });
        done.expect("nobody is beside it")
    })
}
