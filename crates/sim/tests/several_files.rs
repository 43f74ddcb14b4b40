//! Transactions over several files on a disk that loses power or fails.
//!
//! A life is a row of transactions by one thread, each over one to three files, with
//! checkpoints and reopenings between them, and some too large for the log. Wherever it
//! ends, the files together are as they were after one of its transactions: after the last
//! that was acknowledged, or the one behind it. In which order they are opened again does
//! not matter, nor that the power goes a second time meanwhile.

use fulgurite_disk::Disk;
use fulgurite_sim::{Call, Fault, FaultError, Rng, SimDisk, SimDriver};
use fulgurite_store::{
    Durability, ErrorKind, InDoubt, Isolation, Key, KeyKind, Options, Result, Store, Tree, Txn,
    commit_together,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

const FILES: usize = 3;

/// What a file holds: the number of the transaction that wrote each key last, and how much.
type State = BTreeMap<i64, (u64, usize)>;

fn factor() -> u64 {
    let asked = std::env::var("FULGURITE_SIM_FACTOR").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn path(file: usize) -> PathBuf {
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
struct Step {
    number: u64,
    immediate: bool,
    /// By file: keys, each with the length of its value.
    writes: BTreeMap<usize, Vec<(i64, usize)>>,
    checkpoint: Option<usize>,
    reopens: bool,
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

    fn apply(&self, states: &mut [State]) {
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
fn live(disk: &SimDisk, steps: &[Step], durability: Durability) -> usize {
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

fn state(store: &Store, tree: &Tree) -> State {
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
fn recover(disk: SimDisk, rng: &mut Rng) -> Vec<State> {
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
fn check(steps: &[Step], acknowledged: usize, found: &[State], story: &str) {
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

fn draw(seed: u64, length: u64) -> (Vec<Step>, Rng) {
    let mut rng = Rng::new(seed);
    let steps = (1..=length)
        .map(|number| Step::draw(&mut rng, number))
        .collect();
    (steps, rng)
}

#[test]
fn wherever_the_power_goes_all_files_have_a_transaction_or_none() {
    let mut cuts = 0;
    for seed in 0..2 * factor() {
        let (steps, mut rng) = draw(seed, 14);
        let whole = SimDisk::new(seed);
        assert_eq!(
            live(&whole, &steps, Durability::Full),
            steps.len(),
            "seed {seed}"
        );
        let calls = whole.calls();
        for call in 0..calls {
            let disk = SimDisk::new(seed);
            disk.stop_at(call);
            let acknowledged = live(&disk, &steps, Durability::Full);
            let left = disk.crash_image(rng.bits());
            let found = recover(left, &mut rng);
            check(
                &steps,
                acknowledged,
                &found,
                &format!("seed {seed}, call {call} of {calls}"),
            );
            cuts += 1;
        }
    }
    println!("{cuts} power cuts");
    assert!(cuts > 300, "{cuts}");
}

/// Commits over several files are synced in `normal`, too, and take along what is before them.
#[test]
fn without_syncs_of_single_commits_those_over_several_files_stay_whole() {
    for seed in 100..100 + factor() {
        let (steps, mut rng) = draw(seed, 14);
        let whole = SimDisk::new(seed);
        live(&whole, &steps, Durability::Normal);
        for call in 0..whole.calls() {
            let disk = SimDisk::new(seed);
            disk.stop_at(call);
            let acknowledged = live(&disk, &steps, Durability::Normal);
            let found = recover(disk.crash_image(rng.bits()), &mut rng);
            let story = format!("seed {seed}, call {call}");
            // Up to which transaction each file has come: those of one file may be lost.
            let reached: Vec<u64> = (0..FILES)
                .map(|file| reached(&steps, file, &found[file]).expect(&story))
                .collect();
            for step in steps.iter().filter(|step| step.writes.len() > 1) {
                let has = |file: &usize| reached[*file] >= step.number;
                let all = step.writes.keys().all(has);
                let is_acknowledged = step.number <= acknowledged as u64;
                assert!(
                    all || !is_acknowledged && !step.writes.keys().any(has),
                    "{story}, {acknowledged} acknowledged, {}: {reached:?}",
                    step.number
                );
            }
        }
    }
}

/// The last transaction after which the file held this.
fn reached(steps: &[Step], file: usize, found: &State) -> Option<u64> {
    let mut states = vec![State::new(); FILES];
    let mut last = (states[file] == *found).then_some(0);
    for step in steps {
        step.apply(&mut states);
        if states[file] == *found {
            last = Some(step.number);
        }
    }
    last
}

#[test]
fn whatever_call_fails_all_files_have_a_transaction_or_none() {
    let mut failures = 0;
    for seed in 200..200 + factor() {
        let (steps, mut rng) = draw(seed, 12);
        let whole = SimDisk::new(seed);
        live(&whole, &steps, Durability::Full);
        for after in 0..whole.calls() {
            for call in [None, Some(Call::Sync), Some(Call::Read)] {
                let disk = SimDisk::new(seed);
                disk.fail(Fault {
                    call,
                    after,
                    for_good: rng.one_in(3),
                    error: [FaultError::Io, FaultError::NoSpace][rng.index(2)],
                });
                let acknowledged = live(&disk, &steps, Durability::Full);
                if disk.faults_met() == 0 {
                    continue;
                }
                failures += 1;
                disk.heal();
                let left = match rng.one_in(2) {
                    true => disk.crash_image(rng.bits()),
                    false => disk.kill_image(),
                };
                let found = recover(left, &mut rng);
                let story = format!("seed {seed}, {call:?} {after}");
                check(&steps, acknowledged, &found, &story);
            }
        }
    }
    println!("{failures} failures");
    assert!(failures > 200, "{failures}");
}

fn open_as(disk: &SimDisk, path: &str, in_doubt: InDoubt) -> Result<Option<State>> {
    let options = Options {
        in_doubt,
        create: false,
        ..Options::default()
    };
    let store = Store::open_on(Arc::new(disk.clone()), path, options)?;
    let tree = store.family("t")?;
    Ok(tree.map(|tree| state(&store, &tree)))
}

/// A file that was left in doubt is not opened without the one that knows, unless its
/// owner decides; it finds that one where both were moved to.
#[test]
fn who_coordinated_is_asked_wherever_it_is() {
    let write = |number, keys: &[usize]| Step {
        number,
        immediate: false,
        writes: keys.iter().map(|file| (*file, vec![(1, 9)])).collect(),
        checkpoint: None,
        reopens: false,
    };
    let steps = [write(1, &[0]), write(2, &[1]), write(3, &[0, 1])];
    let whole = SimDisk::new(5);
    live(&whole, &steps, Durability::Full);
    let (mut doubts, mut committed) = (0, 0);
    for call in 0..whole.calls() {
        let disk = SimDisk::new(5);
        disk.stop_at(call);
        live(&disk, &steps, Durability::Full);
        let left = disk.crash_image(call).settled_image();
        if left.contents(&path(0)).is_none() || left.contents(&path(1)).is_none() {
            continue;
        }
        let [moved, alone] = [left.fork(), left.fork()];
        for file in left.files() {
            let name = file.file_name().expect("a name").to_owned();
            let is_coordinator = name.to_string_lossy().starts_with("0.db");
            moved
                .rename(&file, &PathBuf::from("e").join(&name))
                .expect("moves");
            if is_coordinator {
                alone.remove(&file).expect("is lost");
            }
        }
        let Err(lost) = open_as(&alone.fork(), "d/1.db", InDoubt::Ask) else {
            continue;
        };
        if lost.kind() != ErrorKind::CantOpen || !lost.message().contains("0.db, which alone knows")
        {
            panic!("{lost}");
        }
        doubts += 1;
        let at = |disk: &SimDisk, path, in_doubt| {
            let state = open_as(&disk.fork(), path, in_doubt).expect("opens");
            state.expect("a family")[&1].0
        };
        assert_eq!(at(&alone, "d/1.db", InDoubt::Commit), 3);
        assert_eq!(at(&alone, "d/1.db", InDoubt::RollBack), 2);
        let known = at(&left, "d/1.db", InDoubt::Ask);
        assert_eq!(at(&moved, "e/1.db", InDoubt::Ask), known);
        assert_eq!(
            at(&left, "d/0.db", InDoubt::Ask),
            if known == 3 { 3 } else { 1 }
        );
        committed += u64::from(known == 3);
    }
    assert!(
        committed > 0 && doubts > committed,
        "{committed} of {doubts}"
    );
}
