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
mod place;
mod power;
mod search;
mod session;
mod shared;
mod together;

use ask::{Ask, Name, Told, Value};
use common::{Rng, env};
use fulgurite_disk::Disk;
use fulgurite_store::{KeyKind, Options, Store, Tree, TreeId};
use history::{Ends, Step, Transaction};
use model::{State, World};
use place::{NAMES, Place};
use search::{Found, Search};
use session::Session;
use shared::{Cut, Shared, look, look_in};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier};

/// Rounds with the same threads, each from what the one before left.
const ROUNDS: usize = 6;
/// Transactions of all threads together, in a round.
const TRANSACTIONS: usize = 24;

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
    made.push(shared.provide_relied_on());
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
    /// Power cuts that were looked at.
    cuts: usize,
    transactions: usize,
    committed: usize,
}

impl Tally {
    /// What a store counted.
    fn count(&mut self, store: &Store) {
        let stats = store.stats();
        let leases = stats.log.map_or(0, |log| log.leases);
        let counted = [stats.commits_in_place, leases, stats.conflicts];
        let all = self.counted.iter_mut().zip(counted);
        all.for_each(|(all, one)| *all += one);
    }

    /// A round that is over.
    fn add(&mut self, history: &[Vec<Transaction>]) {
        let all = || history.iter().flatten();
        self.rounds += 1;
        self.transactions += all().count();
        self.committed += all().filter(|it| it.ends != Ends::Undone).count();
    }
}

/// Finds what is there at the end of an order.
fn explain(what: &str, history: &[Vec<Transaction>], first: &State) -> Option<State> {
    let first = [first.clone(), State::default()];
    explain_both(what, history, &first).map(|[end, _]| end)
}

/// The same of two stores.
fn explain_both(what: &str, history: &[Vec<Transaction>], first: &World) -> Option<World> {
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

/// Everything that the trees hold that are found in a store on this disk, and which of these
/// are not found there.
fn look_at(disk: Arc<dyn Disk>, at: usize, trees: &[Tree], options: Options) -> Vec<Step> {
    let store = Store::open_on(disk, NAMES[at], options).expect("recovers");
    let problems = store.integrity_check().expect("checks");
    assert_eq!(problems, Vec::<String>::new(), "of {}", NAMES[at]);
    let there = |tree: &&Tree| store.tree(tree.id()).is_ok();
    let (found, gone): (Vec<&Tree>, Vec<&Tree>) = trees.iter().partition(there);
    let missed = gone.into_iter().map(|tree| Step {
        ask: Ask::Count(tree.clone()),
        told: Told::Refused,
    });
    let mut steps: Vec<Step> = missed.collect();
    let found = found.into_iter().map(|tree| store.tree(tree.id()));
    let found = found.map(|tree| tree.expect("is there")).collect();
    let shared = Shared::new(store.clone(), None);
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    steps.extend(look_in(&mut txn, &shared, found).steps);
    steps
}

/// One that saw this in two stores, between two moments.
fn seen(
    how: &'static str,
    [steps, beside]: [Vec<Step>; 2],
    [began, ended]: [u64; 2],
) -> Transaction {
    Transaction {
        how,
        steps,
        beside,
        ends: Ends::AtOnce,
        began,
        commits: began,
        ended,
    }
}

/// What is in the files when no checkpoint changes them.
fn copy_of(place: &Place, stores: &[&Store]) -> Arc<dyn Disk> {
    let checkpoints = || stores.iter().map(|store| store.stats().checkpoint);
    loop {
        let before: Vec<u64> = checkpoints().collect();
        let copy = place.copy();
        // One that ended meanwhile may have begun to write over what others need.
        if checkpoints().eq(before) {
            return copy;
        }
    }
}

/// Whoever opens the files after the end of this process finds the same.
fn compare_copy(what: &str, place: &Place, model: &State, open: &Shared, options: Options) {
    let copy = copy_of(place, &[&open.store]);
    let found = look_at(copy, 0, &known(model, open), options);
    let what = format!("{what}, copied");
    let found = seen("copied", [found, Vec::new()], [0, 0]);
    explain(&what, &[vec![found]], model).expect("one has one order");
}

/// When something ended that nobody has seen: what a power cut would have left may be on its
/// way to others for long after.
const NEVER: u64 = u64::MAX;

/// What is there after a power cut, of these trees, behind what was told before it.
fn look_after(cut: Cut, trees: &[Tree], options: Options) -> Vec<Transaction> {
    let found = look_at(Arc::new(cut.leaves), 0, trees, options);
    let found = [found, Vec::new()];
    let found = seen("after a power cut", found, [cut.began, NEVER]);
    cut.told.into_iter().chain([found]).collect()
}

/// The trees that were there, and those that were made since.
fn met<'h>(model: &State, steps: impl Iterator<Item = &'h Step>, store: &Store) -> Vec<Tree> {
    let made = steps.filter_map(|step| match (&step.ask, &step.told) {
        (Ask::CreateTree(_) | Ask::CreateFamily(..), Told::Tree(made)) => *made,
        _ => None,
    });
    let all: BTreeSet<u32> = model.trees.keys().copied().chain(made).collect();
    let known = all.into_iter().map(|id| store.tree(TreeId(id)));
    known.filter_map(|tree| tree.ok()).collect()
}

fn one_seed(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let mut place = Place::new("one", seed, &mut rng);
    let mut model = State::default();
    for life in 0..2 {
        let store = place.open(0, place.options(&mut rng));
        let shared = Shared::new(store, place.power().cloned());
        known(&model, &shared)
            .iter()
            .for_each(|tree| shared.meet(tree));
        let durability = shared.store.options().durability;
        let (threads, hot) = (2 + rng.below(5), rng.chance(1, 2));
        let session = |at| {
            let rng = Rng::new(seed * 1_000 + life * 100 + at);
            let mixes = place.power().is_none();
            Session::new(at, rng, (durability, mixes), hot)
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
            let slow = |is_slow| place.power().iter().for_each(|it| it.set_slow(is_slow));
            shared.settle();
            slow(true);
            history = round(&mut sessions, &shared);
            slow(false);
            let steps = history.iter().flatten().flat_map(|of| &of.steps);
            let trees = met(&model, steps, &shared.store);
            for cut in shared.cuts() {
                tally.cuts += 1;
                let options = place.options(&mut rng);
                history.push(look_after(cut, &trees, options));
            }
            if let Some(txn) = &mut kept {
                let seen = look_in(txn, &shared, there);
                let what = format!("{what}, kept");
                explain(&what, &[vec![seen]], &model).expect("one has one order");
            }
            drop(kept);
            history.push(vec![look(&shared)]);
            tally.add(&history);
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
        tally.count(&shared.store);
        shared.settle();
        place.may_lose_power(&mut rng);
    }
}

/// Runs seeds, of which a run without a wish has so many.
fn run(what: &str, seeds: u64, one: fn(u64, &mut Tally)) {
    let first = env("FULGURITE_ORDER_SEED", 0);
    let seeds = env("FULGURITE_ORDER_SEEDS", seeds);
    let mut tally = Tally::default();
    for seed in first..first + seeds {
        eprintln!("seed {seed}, {what}");
        one(seed, &mut tally);
    }
    let Tally {
        rounds,
        undecided,
        cuts,
        transactions,
        committed,
        counted,
    } = tally;
    println!(
        "{seeds} seeds, {what}, {transactions} transactions, {committed} committed, \
         {cuts} power cuts, {undecided} of {rounds} rounds undecided; \
         in place, leases, conflicts: {counted:?}"
    );
    assert!(
        undecided * 10 <= rounds,
        "the search gave up in {undecided} of {rounds} rounds"
    );
}

#[test]
fn there_is_an_order_that_explains_everything() {
    run("one store", 24, one_seed);
}

#[test]
fn there_is_an_order_over_two_stores() {
    run("two stores", 8, together::one_seed);
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
        beside: Vec::new(),
        ends,
        began: 0,
        commits: 0,
        ended: 9,
    };
    let found = |history: Vec<Transaction>| {
        let history: Vec<_> = history.into_iter().map(|it| vec![it]).collect();
        Search::new(&history).run(&[first.clone(), State::default()])
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
        let Found::Order([end, _]) = found(vec![later(ends), one(ends)]) else {
            panic!("there is one");
        };
        let rows = &end.trees[&tree.id().0];
        assert_eq!(rows.get(&Name::Int(1)), Some(&value("b")));
    }
    let halves = beside(Ends::AtOnce, vec![put(1, "a", false), put(2, "a", false)]);
    let torn = beside(Ends::Later, vec![saw(1, Some("a")), saw(2, None)]);
    assert!(is_none(vec![halves, torn]), "half of a transaction");
}
