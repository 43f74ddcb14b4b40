//! Coming back to what a life left.

use super::Tally;
use super::history::{Front, OWN, Own, SHARED, WRITERS};
use super::life::{Life, open, options_of};
use super::view;
use fulgurite_sim::{Rng, SimDisk};
use fulgurite_store::{Durability, Options, Store, Tree};
use std::sync::atomic::Ordering::Relaxed;

/// Moments that are looked at, after the first life and after each later one.
const MOMENTS: [u64; 3] = [24, 6, 3];
/// What comes back lives on once in so many times.
const LIVES_ON: u64 = 6;

/// A life that ended.
pub struct Comeback<'a> {
    life: &'a Life,
    tally: &'a Tally,
}

impl<'a> Comeback<'a> {
    pub fn after(life: &'a Life, tally: &'a Tally) -> Self {
        Self { life, tally }
    }

    /// Comes back at some moments of the life.
    pub fn everywhere(&self, rng: &mut Rng, level: usize) {
        let mut replay = self.life.journal.replay();
        let every = self.life.journal.len() as u64 / MOMENTS[level] + 1;
        while let Some(moment) = replay.next_moment() {
            if !rng.one_in(every) {
                continue;
            }
            let (disk, least) = match self.durable(moment.call) {
                Some(durable) if !rng.one_in(4) => {
                    self.tally.cuts.fetch_add(1, Relaxed);
                    (moment.disk.crash_image(rng.bits()), durable)
                }
                _ => {
                    self.tally.kills.fetch_add(1, Relaxed);
                    (moment.disk.kill_image(), self.known(moment.call))
                }
            };
            self.once(&disk, moment.call, &least, rng, level);
        }
    }

    fn known(&self, call: u64) -> Front {
        std::array::from_fn(|writer| self.life.histories[writer].least(call))
    }

    /// What a power cut leaves at least.
    fn durable(&self, call: u64) -> Option<Front> {
        match self.life.options.durability {
            Durability::Full => Some(self.known(call)),
            Durability::Normal => {
                let covered = self.life.covered.iter().filter(|(from, _)| *from <= call);
                let start = self.known(0);
                Some(covered.fold(start, |least, (_, front)| {
                    std::array::from_fn(|writer| least[writer].max(front[writer]))
                }))
            }
            Durability::Off => None,
        }
    }

    /// Opens the store, sees how far the writers had come, and checks everything.
    fn once(&self, disk: &SimDisk, call: u64, least: &Front, rng: &mut Rng, level: usize) {
        let options = Options {
            page_size: self.life.options.page_size,
            ..options_of(rng)
        };
        let store = open(disk, &options, rng);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        let start = self.found(&store, call, least);
        if level + 1 < MOMENTS.len() && rng.one_in(LIVES_ON) {
            let life = Life::later(disk, store, start, rng, self.tally);
            Comeback::after(&life, self.tally).everywhere(rng, level + 1);
        }
    }

    /// The states of all writers, and the commits that led to them.
    fn found(&self, store: &Store, call: u64, least: &Front) -> [(usize, Own); WRITERS] {
        let family = |name: &str| store.family(name).expect("reads");
        let trees: [Tree; OWN] = SHARED.map(|(name, _)| family(name).expect("is there"));
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let stamped = view::front(&mut txn, &trees).expect("reads");
        let names = store.families().expect("reads");
        let mut own_trees = 0;
        let found: [(usize, Own); WRITERS] = std::array::from_fn(|writer| {
            let history = &self.life.histories[writer];
            let most = history.most(call);
            let mut commit = history.stamped(stamped[writer]);
            let is_there = |made| names.contains(&Own::tree_name(writer, made));
            // A tree dropped since left no stamp, nor did one made since or after that.
            let before = history.state(commit).tree;
            commit += usize::from(before.is_some_and(|made| !is_there(made)));
            commit += usize::from(is_there(commit + 1));
            let state = history.state(commit);
            let expected = least[writer]..=most;
            assert!(
                expected.contains(&commit),
                "{commit} of writer {writer}, not {expected:?}"
            );
            if let Some(made) = state.tree {
                own_trees += 1;
                let name = Own::tree_name(writer, made);
                let tree = family(&name).expect("is there");
                let states = std::iter::once((writer, &state));
                view::check_tree(&mut txn, &tree, &name, states, OWN).expect("reads");
            }
            (commit, state)
        });
        let states = found.each_ref().map(|(_, state)| state.clone());
        view::check_shared(&mut txn, &trees, &states).expect("reads");
        assert_eq!(names.len(), SHARED.len() + own_trees, "{names:?}");
        found
    }
}
