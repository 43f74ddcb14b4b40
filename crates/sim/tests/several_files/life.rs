//! A life of transactions over several files, and what it may leave.

use fulgurite_sim::{Rng, SimDisk, SimDriver};
use fulgurite_store::{
    Durability, Isolation, Key, KeyKind, Options, Result, Store, Tree, Txn, commit_together,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub const FILES: usize = 3;

/// What a file holds: the number of the transaction that wrote each key last, and how much.
pub type State = BTreeMap<i64, (u64, usize)>;

pub fn path(file: usize) -> PathBuf {
    PathBuf::from(format!("d/{file}.db"))
}

fn open(disk: &SimDisk, file: usize, durability: Durability) -> Result<(Store, Tree)> {
    let options = Options {
        cache_bytes: 1 << 20,
        durability,
        driver: Some(SimDriver::new(disk)),
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), path(file), options)?;
    let tree = store.create_family("t", KeyKind::Int)?;
    Ok((store, tree))
}

/// What a transaction does.
#[derive(Debug, Clone)]
pub struct Step {
    pub number: u64,
    pub immediate: bool,
    /// By file: keys, each with the length of its value.
    pub writes: BTreeMap<usize, Vec<(i64, usize)>>,
    pub checkpoint: Option<usize>,
    pub reopens: bool,
}

impl Step {
    fn draw(rng: &mut Rng, number: u64) -> Self {
        let mut writes = BTreeMap::new();
        for _ in 0..1 + rng.below(3) {
            let large = rng.one_in(12) && writes.is_empty();
            let keys = if large { 1500 } else { 1 + rng.below(4) as i64 };
            let length = if large { 4000 } else { rng.index(300) };
            let first = rng.below(6) as i64;
            let keys = (first..first + keys).map(|key| (key, length)).collect();
            writes.entry(rng.index(FILES)).or_insert(keys);
        }
        Self {
            number,
            immediate: rng.one_in(3),
            writes,
            checkpoint: rng.one_in(4).then(|| rng.index(FILES)),
            reopens: rng.one_in(8),
        }
    }

    pub fn apply(&self, states: &mut [State]) {
        for (file, keys) in &self.writes {
            for (key, length) in keys {
                states[*file].insert(*key, (self.number, *length));
            }
        }
    }

    fn run(&self, stores: &[(Store, Tree)]) -> Result<()> {
        let mut txns: Vec<Txn> = stores.iter().map(|(store, _)| store.txn()).collect();
        for (file, txn) in txns.iter_mut().enumerate() {
            match self.immediate {
                true => txn.begin_immediate()?,
                false => txn.begin(Isolation::Serializable)?,
            }
            let tree = &stores[file].1;
            for (key, length) in self.writes.get(&file).into_iter().flatten() {
                let mut value = self.number.to_le_bytes().to_vec();
                value.resize(8 + length, *key as u8);
                txn.put(tree, Key::Int(*key), &value)?;
            }
        }
        let mut contexts: Vec<_> = txns.iter_mut().map(|txn| &mut **txn).collect();
        commit_together(&mut contexts)
    }
}

/// Runs a life until it ends or something fails: how many transactions were acknowledged.
pub fn live(disk: &SimDisk, steps: &[Step], durability: Durability) -> usize {
    let open_all = || -> Result<Vec<(Store, Tree)>> {
        (0..FILES)
            .map(|file| open(disk, file, durability))
            .collect()
    };
    let Ok(mut stores) = open_all() else {
        return 0;
    };
    for (at, step) in steps.iter().enumerate() {
        if step.reopens {
            drop(std::mem::take(&mut stores));
            stores = match open_all() {
                Ok(stores) => stores,
                Err(_) => return at,
            };
        }
        if step.run(&stores).is_err() {
            return at;
        }
        if let Some(file) = step.checkpoint
            && stores[file].0.checkpoint().is_err()
        {
            return at + 1;
        }
    }
    steps.len()
}

pub fn state(store: &Store, tree: &Tree) -> State {
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut state = State::new();
    let mut value = Vec::new();
    for key in 0..1600 {
        if txn
            .get_into(tree, Key::Int(key), &mut value)
            .expect("reads")
        {
            let number = value.first_chunk().expect("a number");
            state.insert(key, (u64::from_le_bytes(*number), value.len() - 8));
        }
    }
    state
}

/// Opens what a life left, in some order, perhaps with a power cut meanwhile.
pub fn recover(disk: SimDisk, rng: &mut Rng) -> Vec<State> {
    let mut disk = disk;
    let mut order: Vec<usize> = (0..FILES).collect();
    rng.shuffle(&mut order);
    if rng.one_in(2) {
        disk.stop_at(disk.calls() + rng.below(30));
        for file in &order {
            drop(open(&disk, *file, Durability::Full));
        }
        disk = disk.crash_image(rng.bits());
        rng.shuffle(&mut order);
    }
    let mut states = vec![State::new(); FILES];
    for file in order {
        let (store, tree) = open(&disk, file, Durability::Full).expect("opens again");
        states[file] = state(&store, &tree);
    }
    states
}

/// The files as they may be after so many acknowledged transactions.
pub fn check(steps: &[Step], acknowledged: usize, found: &[State], story: &str) {
    let mut states = vec![State::new(); FILES];
    steps[..acknowledged]
        .iter()
        .for_each(|step| step.apply(&mut states));
    if found == states {
        return;
    }
    if let Some(next) = steps.get(acknowledged) {
        next.apply(&mut states);
    }
    let brief = |states: &[State]| -> Vec<Vec<(i64, u64)>> {
        let file = |state: &State| state.iter().take(9).map(|(key, it)| (*key, it.0)).collect();
        states.iter().map(file).collect()
    };
    assert!(
        found == states,
        "{story}, {acknowledged} acknowledged, next {:?}: found {:?}, not {:?}",
        steps.get(acknowledged).map(|step| &step.writes),
        brief(found),
        brief(&states)
    );
}

pub fn draw(seed: u64, length: u64) -> (Vec<Step>, Rng) {
    let mut rng = Rng::new(seed);
    let steps = (1..=length)
        .map(|number| Step::draw(&mut rng, number))
        .collect();
    (steps, rng)
}
