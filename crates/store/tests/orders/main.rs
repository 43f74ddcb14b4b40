//! Transactions of several threads over families and trees, with all that they offer: there
//! is an order in which a model, one after the other, gives the same answers to all of them
//! and holds the same at the end.
//!
//! Who ended before another one began comes before it. Transactions that lost or were
//! rolled back are in the order, too: what they saw was one state. One under `snapshot` has
//! two places: it sees the state of the first, and at the second, where it commits, what it
//! wrote over is what it was at the first.
//!
//! A seed (printed on failure) fixes what each thread asks for, not how they overlap.
//! `FULGURITE_ORDER_SEEDS` is the number of seeds, `FULGURITE_ORDER_SEED` the first one.

mod act;
mod ask;
#[path = "../common/mod.rs"]
mod common;
mod history;
mod model;
mod search;
mod session;
mod shared;

use ask::{Ask, Name, Told, Value};
use common::{Rng, env};
use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{Compression, Durability, KeyKind, Options, Store, Tree, TreeId};
use history::{Ends, Step, Transaction};
use model::State;
use search::{Found, Search};
use session::Session;
use shared::{Shared, look, look_in};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Rounds with the same threads, each from what the one before left.
const ROUNDS: usize = 6;
/// Transactions of all threads together, in a round.
const TRANSACTIONS: usize = 24;

/// Where the stores of a seed are.
struct Place {
    files: Files,
    page_size: u32,
}

enum Files {
    Memory(Arc<MemoryDisk>),
    Folder(PathBuf),
}

const NAMES: [&str; 3] = ["orders.db", "orders.db-wal0", "orders.db-wal1"];

impl Place {
    fn new(seed: u64, rng: &mut Rng) -> Self {
        let files = match rng.chance(1, 5) {
            false => Files::Memory(Arc::default()),
            true => {
                let name = format!("fulgurite-orders-{}-{seed}", std::process::id());
                let folder = std::env::temp_dir().join(name);
                std::fs::create_dir_all(&folder).expect("a folder");
                Files::Folder(folder)
            }
        };
        let page_size = if rng.chance(2, 3) { 4096 } else { 8192 };
        Self { files, page_size }
    }

    fn options(&self, rng: &mut Rng) -> Options {
        let mut one_of = |these: &[u64]| these[rng.below(these.len() as u64) as usize];
        let cache_bytes = one_of(&[128, 300, 10_000]) as usize * self.page_size as usize;
        let log = one_of(&[0, 64 << 10, 2 << 20]);
        let durability = [Durability::Full, Durability::Normal, Durability::Off];
        Options {
            cache_bytes,
            page_size: self.page_size,
            durability: durability[one_of(&[0, 0, 1, 1, 2]) as usize],
            compression: [Compression::None, Compression::Lz4][one_of(&[0, 1]) as usize],
            busy_timeout: Duration::from_secs(60),
            checkpoint_bytes: one_of(&[32 << 10, 1 << 20, 24 << 20]),
            log_limit_bytes: Some(log).filter(|log| *log > 0),
            ..Options::default()
        }
    }

    fn open(&self, options: Options) -> Store {
        match &self.files {
            Files::Memory(disk) => Store::open_on(disk.clone(), NAMES[0], options),
            Files::Folder(folder) => Store::open(folder.join(NAMES[0]), options),
        }
        .expect("opens")
    }

    /// What is in the files now, as if the process had ended.
    fn copy(&self) -> Option<Arc<MemoryDisk>> {
        let copy = Arc::new(MemoryDisk::new());
        for name in NAMES {
            let bytes = match &self.files {
                Files::Memory(disk) => match disk.open(Path::new(name), OpenOptions::READ) {
                    Ok(file) => {
                        let mut bytes = vec![0; file.len().ok()? as usize];
                        // One that becomes shorter meanwhile is looked at again.
                        file.read_at(&mut bytes, 0).ok()?;
                        Some(bytes)
                    }
                    Err(_) => None,
                },
                Files::Folder(folder) => std::fs::read(folder.join(name)).ok(),
            };
            if let Some(bytes) = bytes {
                let file = copy.open(Path::new(name), OpenOptions::CREATE);
                file.expect("makes").write_at(&bytes, 0).expect("writes");
            }
        }
        Some(copy)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Files::Folder(folder) = &self.files {
            // What is left is in the way of nobody.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Makes families that are missing known, and small what has grown.
fn set_up(shared: &Shared, model: &State) -> Vec<Transaction> {
    let mut made = Vec::new();
    for (name, kind) in [
        ("a", KeyKind::Int),
        ("b", KeyKind::Bytes),
        ("c", KeyKind::Int),
    ] {
        made.push(shared::provide(shared, name, kind));
    }
    let is_large = |id: &TreeId| model.trees.get(&id.0).is_some_and(|rows| rows.len() > 40);
    let trees = shared.trees.lock().expect("no panic").clone();
    for tree in trees.iter().filter(|tree| is_large(&tree.id())) {
        made.push(shared::empty(shared, tree));
    }
    made
}

fn round(sessions: &mut [Session], shared: &Shared) -> Vec<Vec<Transaction>> {
    let barrier = Barrier::new(sessions.len());
    let each = TRANSACTIONS / sessions.len();
    std::thread::scope(|scope| {
        let threads = sessions.iter_mut().map(|session| {
            let barrier = &barrier;
            scope.spawn(move || {
                session.get_used(shared);
                barrier.wait();
                let mut ran = Vec::new();
                for _ in 0..each {
                    session.transaction(shared, &mut ran);
                }
                ran
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|it| it.join());
        ended.map(|it| it.expect("no panic")).collect()
    })
}

/// What became of the rounds of all seeds.
#[derive(Default)]
struct Tally {
    rounds: usize,
    /// What the stores counted: commits in place, leases, conflicts.
    counted: [u64; 3],
    /// In how many of them the search gave up.
    undecided: usize,
    transactions: usize,
    committed: usize,
}

/// Finds what is there at the end of an order.
fn explain(what: &str, history: &[Vec<Transaction>], first: &State) -> Option<State> {
    let mut search = Search::new(history);
    match search.run(first) {
        Found::Order(end) => Some(end),
        Found::Undecided => None,
        Found::None => panic!(
            "{what}: no order from {first:#?}\n{history:#?}\n{:#?}",
            search.deepest()
        ),
    }
}

/// The trees that are there.
fn known(model: &State, shared: &Shared) -> Vec<Tree> {
    let ids = model.trees.keys().map(|id| TreeId(*id));
    ids.map(|id| shared.store.tree(id).expect("is there"))
        .collect()
}

/// Whoever opens the files after the end of this process finds the same.
fn compare_copy(what: &str, place: &Place, model: &State, open: &Shared, options: Options) {
    let copy = loop {
        let checkpoint = || open.store.stats().checkpoint;
        let before = checkpoint();
        let copy = place.copy();
        // One that ended meanwhile may have begun to write over what others need.
        if let Some(copy) = copy.filter(|_| checkpoint() == before) {
            break copy;
        }
    };
    let store = Store::open_on(copy, NAMES[0], options).expect("recovers");
    let shared = Shared::new(store);
    known(model, &shared)
        .iter()
        .for_each(|tree| shared.meet(tree));
    let what = format!("{what}, copied");
    explain(&what, &[vec![look(&shared)]], model).expect("one has one order");
    let problems = shared.store.integrity_check().expect("checks");
    assert_eq!(problems, Vec::<String>::new(), "{what}");
}

fn one_seed(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let place = Place::new(seed, &mut rng);
    let mut model = State::default();
    for life in 0..2 {
        let store = place.open(place.options(&mut rng));
        let shared = Shared::new(store);
        known(&model, &shared)
            .iter()
            .for_each(|tree| shared.meet(tree));
        let durability = shared.store.options().durability;
        let (threads, hot) = (2 + rng.below(5), rng.chance(1, 2));
        let session = |at| {
            let rng = Rng::new(seed * 1_000 + life * 100 + at);
            Session::new(at, rng, durability, hot)
        };
        let mut sessions: Vec<_> = (0..threads).map(session).collect();
        for number in 0..ROUNDS / 2 {
            let what = format!("seed {seed}, life {life}, round {number}");
            let mut history = vec![vec![look(&shared)]];
            model = explain(&what, &history, &model).expect("one has one order");
            history = vec![set_up(&shared, &model)];
            model = explain(&what, &history, &model).expect("one thread has one order");
            // A snapshot that is kept shows what was there when it began.
            let mut kept = rng.chance(1, 4).then(|| shared.store.txn());
            let there = known(&model, &shared);
            kept.iter_mut()
                .for_each(|txn| txn.begin_read().expect("reads"));
            history = round(&mut sessions, &shared);
            if let Some(txn) = &mut kept {
                let seen = look_in(txn, &shared, there);
                let what = format!("{what}, kept");
                explain(&what, &[vec![seen]], &model).expect("one has one order");
            }
            drop(kept);
            history.push(vec![look(&shared)]);
            let all = || history.iter().flatten();
            tally.rounds += 1;
            tally.transactions += all().count();
            tally.committed += all().filter(|it| it.ends != Ends::Undone).count();
            let Some(end) = explain(&what, &history, &model) else {
                tally.undecided += 1;
                return;
            };
            model = end;
            if rng.chance(1, 2) {
                compare_copy(&what, &place, &model, &shared, place.options(&mut rng));
            }
        }
        let problems = shared.store.integrity_check().expect("checks");
        assert_eq!(problems, Vec::<String>::new(), "seed {seed}");
        let stats = shared.store.stats();
        let leases = stats.log.map_or(0, |log| log.leases);
        let counted = [stats.commits_in_place, leases, stats.conflicts];
        tally
            .counted
            .iter_mut()
            .zip(counted)
            .for_each(|(all, one)| *all += one);
    }
}

#[test]
fn there_is_an_order_that_explains_everything() {
    let first = env("FULGURITE_ORDER_SEED", 0);
    let seeds = env("FULGURITE_ORDER_SEEDS", 24);
    let mut tally = Tally::default();
    for seed in first..first + seeds {
        eprintln!("seed {seed}");
        one_seed(seed, &mut tally);
    }
    let Tally {
        rounds,
        undecided,
        transactions,
        committed,
        counted,
    } = tally;
    println!(
        "{seeds} seeds, {transactions} transactions, {committed} committed, \
         {undecided} of {rounds} rounds undecided; in place, leases, conflicts: {counted:?}"
    );
    assert!(
        undecided * 10 <= rounds,
        "the search gave up in {undecided} of {rounds} rounds"
    );
}

/// Two that both saw a value as it was at first and wrote over it, or read what the other
/// one wrote; one that saw what was rolled back; one under `snapshot` that saw two states.
#[test]
fn what_no_order_explains_is_found() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let first = State {
        trees: BTreeMap::from([(tree.id().0, Arc::default())]),
        ..State::default()
    };
    let value = |text: &str| Value::new(text.into());
    let saw = |key, text: Option<&str>| Step {
        ask: Ask::Get(tree.clone(), Name::Int(key), false),
        told: Told::Value(text.map(|text| value(text).digest().clone())),
    };
    let put = |key, text, replaced| Step {
        ask: Ask::Put(tree.clone(), Name::Int(key), value(text)),
        told: Told::Is(replaced),
    };
    let beside = |ends, steps| Transaction {
        how: "made up",
        steps,
        ends,
        began: 0,
        commits: 0,
        ended: 9,
    };
    let found = |history: Vec<Transaction>| {
        let history: Vec<_> = history.into_iter().map(|it| vec![it]).collect();
        Search::new(&history).run(&first)
    };
    let is_none = |history| matches!(found(history), Found::None);
    let one = |ends| beside(ends, vec![saw(1, None), saw(2, None), put(1, "a", false)]);
    let other = |ends| beside(ends, vec![saw(1, None), saw(2, None), put(2, "b", false)]);
    let same = |ends| beside(ends, vec![saw(1, None), put(1, "b", false)]);
    let later = |ends| beside(ends, vec![saw(1, Some("a")), put(1, "b", true)]);
    for ends in [Ends::AtOnce, Ends::Later] {
        assert!(is_none(vec![one(ends), same(ends)]), "a lost update");
        let skewed = is_none(vec![one(ends), other(ends)]);
        assert_eq!(skewed, ends == Ends::AtOnce, "write skew");
        let undone = vec![one(Ends::Undone), later(ends)];
        assert!(is_none(undone), "what was rolled back");
        let Found::Order(end) = found(vec![later(ends), one(ends)]) else {
            panic!("there is one");
        };
        let rows = &end.trees[&tree.id().0];
        assert_eq!(rows.get(&Name::Int(1)), Some(&value("b")));
    }
    let halves = beside(Ends::AtOnce, vec![put(1, "a", false), put(2, "a", false)]);
    let torn = beside(Ends::Later, vec![saw(1, Some("a")), saw(2, None)]);
    assert!(is_none(vec![halves, torn]), "half of a transaction");
}
