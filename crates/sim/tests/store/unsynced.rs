//! Lives in which nothing is synced, and the durable ones after them.

use super::{Trace, options, seeds};
use fulgurite_sim::kv::{Life, Oracle};
use fulgurite_sim::{Rng, SimDisk};
use fulgurite_store::{Durability, Options};

/// A life in `off` promises nothing to who pulls the plug. One in `full` or
/// `normal` after it does: what it found when it opened, however much of that
/// was with the operating system alone, and what it acknowledged.
#[test]
fn what_was_never_synced_is_as_soon_as_a_durable_life_opens() {
    for seed in seeds(600_000, 60) {
        let mut rng = Rng::new(seed);
        let mut oracle = Oracle::default();
        let mode = |durability| Options {
            durability,
            ..options()
        };
        let mut disk = SimDisk::new(seed);
        let _trace = Trace(format!("seed {seed}"));
        for _ in 0..1 + rng.below(2) {
            let off = mode(Durability::Off);
            let mut life = Life::new(&disk, &off, &mut oracle, rng.bits());
            life.start().expect("nothing fails");
            for _ in 0..rng.below(8) {
                life.step().expect("nothing fails");
            }
            if rng.one_in(2) {
                life.checkpoint().expect("nothing fails");
            }
            let killed = rng.one_in(2).then(|| disk.kill_image());
            drop(life);
            if let Some(image) = killed {
                disk = image;
            }
        }
        let durable = mode([Durability::Full, Durability::Normal][rng.index(2)]);
        let mut life = Life::new(&disk, &durable, &mut oracle, rng.bits());
        life.start().expect("nothing fails");
        disk.stop_at(disk.calls() + rng.below(40));
        let done = (0..6).try_for_each(|_| life.step());
        assert!(done.is_ok() || disk.is_stopped(), "{done:?}");
        drop(life);
        disk.power_off();
        let disk = disk.crash_image(rng.bits());
        assert!(Life::new(&disk, &durable, &mut oracle, rng.bits()).run(2));
    }
}
