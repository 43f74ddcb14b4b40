//! Threads that live at random in one store: who runs next, what each does, which
//! call fails and what the settings are all follow from a seed. The disk keeps a
//! journal of the run; at its moments the power is cut, or only the process ends.
//!
//! Each writer has rows of its own in trees that all share, and a tree that comes
//! and goes; all add to one number. Statements, transactions of all kinds that
//! overlap, savepoints, transactions too large for the log, checkpoints and readers
//! go on at once. While they do, every snapshot is what the writers had made of it
//! at some moment, and stays. Afterwards what was acknowledged, and what anybody was
//! shown, is there; each transaction is whole or absent; nobody saw what is not
//! there; the structure is sound; and the store can be written again. In `normal`
//! a power cut leaves what a checkpoint covered, or more; in `off` there is none.
//!
//! A call that fails ends all writing, or had no effect.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/tally.rs"]
mod tally;

mod back;
mod history;
mod life;
mod view;
mod world;
mod writer;

use back::Comeback;
use common::Schedulers::{All, Fair};
use common::explore;
use fulgurite_sim::Rng;
use fulgurite_sim::faults::fault_of;
use fulgurite_store_model::{Compression, Durability, Options};
use history::Front;
use life::live;
use shuttle::rand::RngCore;
use std::sync::atomic::Ordering::Relaxed;
use tally::{CUTS, KILLS};

/// One of so many moments is looked at.
const CUT_EVERY: u64 = 8;
const DURABILITIES: [Durability; 6] = [
    Durability::Full,
    Durability::Full,
    Durability::Full,
    Durability::Normal,
    Durability::Normal,
    Durability::Off,
];
/// Calls that change something in a life, about.
const CALLS: u64 = 60;

fn options_of(rng: &mut Rng) -> Options {
    Options {
        cache_bytes: [4 << 20, 1 << 20][rng.index(2)],
        page_size: [4096, 4096, 8192][rng.index(3)],
        durability: DURABILITIES[rng.index(DURABILITIES.len())],
        compression: [Compression::Lz4, Compression::None][rng.index(2)],
        checkpoint_bytes: [24 << 20, 4 << 10, 64 << 10][rng.index(3)],
        log_limit_bytes: Some([32 << 20, 128 << 10][rng.index(2)]),
        ..Options::default()
    }
}

fn scenario(faulted: bool) {
    let mut rng = Rng::new(shuttle::rand::thread_rng().next_u64());
    let options = options_of(&mut rng);
    let fault = faulted.then(|| fault_of(&mut rng, CALLS));
    let life = live(&options, fault, &mut rng);
    let mut replay = life.journal.replay();
    while let Some(moment) = replay.next_moment() {
        if !rng.one_in(CUT_EVERY) {
            continue;
        }
        let call = moment.call;
        let known = life.histories.each_ref().map(|history| history.least(call));
        let covered = life.covered.iter().rfind(|(from, _)| *from <= call);
        let durable = match options.durability {
            Durability::Full => Some(known),
            Durability::Normal => Some(covered.map_or(Front::default(), |(_, front)| *front)),
            Durability::Off => None,
        };
        let (disk, least) = match durable {
            Some(durable) if !rng.one_in(4) => {
                CUTS.fetch_add(1, Relaxed);
                (moment.disk.crash_image(rng.bits()), durable)
            }
            _ => {
                KILLS.fetch_add(1, Relaxed);
                (moment.disk.kill_image(), known)
            }
        };
        Comeback {
            life: &life,
            call,
            least,
            durable,
        }
        .run(&disk, &mut rng);
    }
}

#[test]
fn threads_that_live_at_random_lose_nothing() {
    explore(40, All, || scenario(false));
    tally::print();
}

#[test]
fn threads_whose_calls_fail_lose_nothing() {
    explore(60, Fair, || scenario(true));
    tally::print();
}
