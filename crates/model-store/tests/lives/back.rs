//! Coming back to what a life left.
//!
//! This is done by the store on ordinary threads: only one is at work.

use super::CUT_EVERY;
use super::common::PATH;
use super::history::{Front, filled};
use super::life::Life;
use super::tally::CUTS;
use super::view::real;
use fulgurite_sim::{Rng, SimDisk, SimDriver};
use fulgurite_store::{Compression, Durability, Key, KeyKind, Options, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Where those that come back write.
const AGAIN: &str = "again";

/// A life that ended, and what is to be found.
pub struct Comeback<'a> {
    pub life: &'a Life,
    /// The call in which it ended.
    pub call: u64,
    /// What is there at least.
    pub least: Front,
    /// What still is if the power is cut before this life has opened the store; `None`
    /// where that may leave no store.
    pub durable: Option<Front>,
}

impl Comeback<'_> {
    /// Comes back twice. In a quarter of the first times the power is cut, too.
    pub fn run(&self, disk: &SimDisk, rng: &mut Rng) {
        let before = disk.fork();
        let deeper = rng.one_in(4);
        if deeper {
            disk.record();
        }
        let (found, opened) = self.once(disk, &self.least, rng);
        let (again, _) = self.once(disk, &found, rng);
        assert_eq!(again, found, "nobody changed it");
        if !deeper {
            return;
        }
        let journal = disk.recorded(before);
        let mut replay = journal.replay();
        while let Some(moment) = replay.next_moment() {
            if rng.one_in(CUT_EVERY) {
                let shown = (moment.call >= opened).then_some(found);
                if let Some(least) = shown.or(self.durable) {
                    let cut = moment.disk.crash_image(rng.bits());
                    self.once(&cut, &least, rng);
                    CUTS.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// Opens the store, sees how far the writers had come, checks everything, and
    /// writes. Returns what was found, and the first call after opening.
    fn once(&self, disk: &SimDisk, least: &Front, rng: &mut Rng) -> (Front, u64) {
        let options = Options {
            cache_bytes: 2 << 20,
            durability: [Durability::Full, Durability::Normal][rng.index(2)],
            compression: [Compression::Lz4, Compression::None][rng.index(2)],
            driver: Some(SimDriver::new(disk)),
            ..Options::default()
        };
        let store = Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options);
        let store = store.expect("opens");
        let opened = disk.calls();
        let problems = store.integrity_check().expect("a check");
        assert_eq!(problems, Vec::<String>::new());
        let front = self.front(&store, least);
        self.write(&store);
        (front, opened)
    }

    fn front(&self, store: &Store, least: &Front) -> Front {
        let mut names = store.families().expect("reads");
        names.retain(|name| name != AGAIN);
        let tree = |name: &String| store.family(name).expect("reads").expect("is there");
        let trees: Vec<_> = names
            .iter()
            .map(|name| (name.clone(), tree(name)))
            .collect();
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        let view = real(&mut txn, &trees).expect("reads");
        let history = |writer: usize| &self.life.histories[writer];
        let front = view.front_of_all(history);
        for (writer, found) in front.iter().enumerate() {
            let expected = least[writer]..=history(writer).most(self.call);
            assert!(
                expected.contains(found),
                "{found} of writer {writer}, not {expected:?}"
            );
        }
        view.check(&front, history);
        front
    }

    fn write(&self, store: &Store) {
        let tree = match store.family(AGAIN).expect("reads") {
            Some(tree) => tree,
            None => store.create_family(AGAIN, KeyKind::Int).expect("a family"),
        };
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(1), &filled(self.call, 500))
            .expect("a put");
        txn.commit().expect("commits");
    }
}
