//! One seed, one proof: a workload is run once, with a journal of its disk, and
//! then the power is cut at every moment of that journal. From each of the disks
//! this may leave a process comes back, finds one of the states that were
//! allowed at that moment, checks everything, works on, and closes; some of
//! these lives are cut in turn, in their recovery as well as after it. At some
//! moments only the process ends: the one that comes back finds what was written
//! and not synced, and then the power is cut under that one.
//!
//! Nothing is run again for a cut, so one costs what a recovery costs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fulgurite_store::{Compression, Durability, Options};

use crate::journal::Journal;
use crate::kv::{BULK, KeyValue, WORDS};
use crate::sql::Sql;
use crate::together::Together;
use crate::{Oracle, Rng, SimDisk, panics};

/// What may be found after a power cut, by the number of the call from which on
/// it holds.
pub type Timeline<O> = Vec<(u64, O)>;

/// A kind of workload, and the oracle that knows what may be found.
pub trait Lives {
    /// What may be found after a power cut.
    type Oracle: Oracle;

    /// One life of a process: opens the database, finds out in which of the
    /// allowed states it is, checks it, does the steps, checks again, closes.
    /// Panics with what is wrong; says whether everything was done, which only a
    /// power cut may prevent. With a `timeline` it takes down in it what is
    /// allowed from when on.
    fn live(
        disk: &SimDisk,
        options: &Options,
        oracle: &mut Self::Oracle,
        timeline: Option<&mut Timeline<Self::Oracle>>,
        seed: u64,
        steps: &[u64],
    ) -> bool;
}

/// The generator of one step, the same whichever other steps there are.
pub(crate) fn step_rng(seed: u64, step: u64) -> Rng {
    Rng::new(Rng::new(seed).bits() ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Transactions on the store.
    KeyValue,
    /// SQL.
    Sql,
    /// Transactions over several stores, with their families.
    Together,
}

/// Steps with bulk transactions among them, which attach what they wrote.
pub fn bulk_steps() -> Vec<u64> {
    vec![0, 1, BULK, 2, BULK + 1, 3]
}

/// A seed and what it stands for.
#[derive(Debug, Clone)]
pub struct Case {
    /// Everything follows from it.
    pub seed: u64,
    /// What is run.
    pub kind: Kind,
    /// The numbers of the steps: all of them, unless shrunk.
    pub steps: Vec<u64>,
}

impl Case {
    /// The case of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let kind = match rng.below(2) {
            0 => Kind::KeyValue,
            _ => Kind::Sql,
        };
        let count = if rng.one_in(16) {
            40
        } else {
            6 + rng.below(10)
        };
        let mut steps: Vec<u64> = (0..count).collect();
        if kind == Kind::KeyValue && rng.one_in(40) {
            steps = bulk_steps();
        } else if kind == Kind::KeyValue && rng.one_in(24) {
            steps = vec![0, WORDS, 1, 2, WORDS + 1, 3, 4, WORDS + 2, 5];
        }
        Self { seed, kind, steps }
    }

    /// The case over several stores that a seed stands for as well.
    pub fn together(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x2_5eed);
        let count = 5 + rng.below(9);
        let mut steps: Vec<u64> = (0..count).collect();
        if rng.one_in(24) {
            steps = bulk_steps();
        }
        Self {
            seed,
            kind: Kind::Together,
            steps,
        }
    }

    /// The settings it runs with.
    pub fn options(&self) -> Options {
        Self::options_of(self.seed)
    }

    /// The settings that a seed stands for.
    fn options_of(seed: u64) -> Options {
        let mut rng = Rng::new(!seed);
        Options {
            cache_bytes: [2 << 20, 4 << 20][rng.index(2)],
            page_size: [4096, 4096, 8192, 16_384][rng.index(4)],
            durability: [Durability::Full, Durability::Full, Durability::Normal][rng.index(3)],
            compression: [Compression::Lz4, Compression::None][rng.index(2)],
            busy_timeout: Duration::from_secs(20),
            checkpoint_bytes: [24 << 20, 24 << 20, 2 << 10, 24 << 10][rng.index(4)],
            log_limit_bytes: Some([32 << 20, 64 << 10][rng.index(2)]),
            ..Options::default()
        }
    }
}

/// What was looked at.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Seeds, each a workload of its own.
    pub seeds: u64,
    /// Power cuts, each recovered from.
    pub cuts: u64,
    /// Those of them during a life that came after a cut or a kill: in its
    /// recovery, or soon after.
    pub again: u64,
    /// Processes that ended and left what they had not synced.
    pub kills: u64,
    /// Calls that failed on purpose.
    pub faults: u64,
    /// Transactions and other steps done while calls failed.
    pub faulted_steps: u64,
    /// Bytes flipped, sectors zeroed, writes lost or misdirected.
    pub damages: u64,
    /// Inputs made up.
    pub executions: u64,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.cuts += other.cuts;
        self.again += other.again;
        self.kills += other.kills;
        self.faults += other.faults;
        self.faulted_steps += other.faulted_steps;
        self.damages += other.damages;
        self.executions += other.executions;
    }
}

/// Why a case failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What was run, and cut where.
    pub at: String,
    /// What was wrong.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// How much is cut.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Disks looked at for each moment.
    pub images: u64,
    /// Every how many lives after a cut are cut themselves, at a few moments.
    pub again_every: u64,
    /// Every how many moments the process ends, too, in place of the power.
    pub kill_every: u64,
}

impl Depth {
    /// What the soak does.
    pub const USUAL: Self = Self {
        images: 1,
        again_every: 12,
        kill_every: 48,
    };
}

/// Proves one case; panics of the engine and of the oracles are its failure.
pub fn prove(case: &Case, depth: Depth, tally: &mut Tally) -> Result<(), Failure> {
    match case.kind {
        Kind::KeyValue => Proof::<KeyValue>::new(case, depth).run(tally),
        Kind::Sql => Proof::<Sql>::new(case, depth).run(tally),
        Kind::Together => Proof::<Together>::new(case, depth).run(tally),
    }
}

/// Runs a case once, without a cut, and gives its journal.
pub fn journal(case: &Case) -> Result<Journal, Failure> {
    Ok(match case.kind {
        Kind::KeyValue => Proof::<KeyValue>::new(case, Depth::USUAL).first_life()?.0,
        Kind::Sql => Proof::<Sql>::new(case, Depth::USUAL).first_life()?.0,
        Kind::Together => Proof::<Together>::new(case, Depth::USUAL).first_life()?.0,
    })
}

/// Fails with what `work` panics with, or a thread of the engine meanwhile.
pub(crate) fn guarded<T>(at: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    let done = catch_unwind(AssertUnwindSafe(work));
    let failed = |message| Failure {
        at: at.to_owned(),
        message,
    };
    match (done, panics::of_the_background()) {
        (Ok(done), None) => Ok(done),
        (Ok(_), Some(message)) => Err(failed(message)),
        (Err(panic), _) => Err(failed(panics::message(&*panic))),
    }
}

struct Proof<'a, L: Lives> {
    case: &'a Case,
    depth: Depth,
    /// Where it is, for a failure.
    at: String,
    lives: std::marker::PhantomData<L>,
}

/// The steps after a cut, apart from those of the workload.
const AFTER: [u64; 2] = [1 << 20, (1 << 20) + 1];

impl<'a, L: Lives> Proof<'a, L> {
    fn new(case: &'a Case, depth: Depth) -> Self {
        Self {
            case,
            depth,
            at: String::new(),
            lives: std::marker::PhantomData,
        }
    }

    fn run(mut self, tally: &mut Tally) -> Result<(), Failure> {
        tally.seeds += 1;
        let (journal, timeline) = self.first_life()?;
        self.cut_everywhere(&journal, &timeline, self.case.seed, 0, tally)
    }

    fn first_life(&mut self) -> Result<(Journal, Timeline<L::Oracle>), Failure> {
        self.at = format!(
            "seed {}, {:?}, steps {:?}, not cut",
            self.case.seed, self.case.kind, self.case.steps
        );
        let disk = SimDisk::new(self.case.seed);
        disk.set_choppy(Rng::new(self.case.seed ^ 0xc0).one_in(8));
        self.recorded_life(
            &disk,
            &self.case.options(),
            L::Oracle::default(),
            self.case.seed,
            &self.case.steps,
        )
    }

    fn recorded_life(
        &self,
        disk: &SimDisk,
        options: &Options,
        mut oracle: L::Oracle,
        seed: u64,
        steps: &[u64],
    ) -> Result<(Journal, Timeline<L::Oracle>), Failure> {
        let before = disk.fork();
        disk.record();
        let mut timeline = vec![(disk.calls(), oracle.clone())];
        guarded(&self.at, || {
            let line = Some(&mut timeline);
            assert!(
                L::live(disk, options, &mut oracle, line, seed, steps),
                "a life ended early without a power cut"
            );
        })?;
        Ok((disk.recorded(before), timeline))
    }

    /// Cuts at every moment of a journal; deeper down, at a few of them.
    fn cut_everywhere(
        &mut self,
        journal: &Journal,
        timeline: &Timeline<L::Oracle>,
        seed: u64,
        level: u64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let mut replay = journal.replay();
        let mut allowed = 0;
        let before = self.at.clone();
        while let Some(moment) = replay.next_moment() {
            while timeline
                .get(allowed + 1)
                .is_some_and(|(from, _)| *from <= moment.call)
            {
                allowed += 1;
            }
            let mut rng = step_rng(seed, (level << 40) + moment.index as u64);
            if level > 0 && rng.below(journal.len() as u64) > 4 {
                continue;
            }
            let happened = |what: &str| {
                format!(
                    "{before}, {what} at moment {}/{} (call {})",
                    moment.index,
                    journal.len(),
                    moment.call
                )
            };
            let images = if level == 0 { self.depth.images } else { 1 };
            for image in 0..images {
                let mut oracle = timeline[allowed].1.clone();
                oracle.power_cut();
                self.at = format!("{}, image {image}", happened("cut"));
                tally.cuts += 1;
                tally.again += u64::from(level > 0);
                let disk = moment.disk.crash_image(rng.bits());
                self.live_on(&disk, oracle, &mut rng, level, tally)?;
            }
            let mut rng = Rng::new(rng.bits() ^ 0x9);
            if level < 3 && rng.one_in(self.depth.kill_every) {
                self.at = happened("killed");
                tally.kills += 1;
                let mut oracle = timeline[allowed].1.clone();
                oracle.killed();
                let disk = moment.disk.kill_image();
                self.live_and_cut(&disk, oracle, &mut rng, level, tally)?;
            }
        }
        self.at = before;
        Ok(())
    }

    /// The settings of a later life: half of the time those of the first one.
    fn later_options(&self, seed: u64) -> Options {
        match Rng::new(seed ^ 0x0b7).one_in(2) {
            true => self.case.options(),
            false => Case::options_of(seed),
        }
    }

    /// Comes back, and is cut itself.
    fn live_and_cut(
        &mut self,
        disk: &SimDisk,
        oracle: L::Oracle,
        rng: &mut Rng,
        level: u64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let seed = rng.bits();
        let steps = &AFTER[..1 + rng.index(AFTER.len())];
        let options = self.later_options(seed);
        let (journal, timeline) = self.recorded_life(disk, &options, oracle, seed, steps)?;
        self.cut_everywhere(&journal, &timeline, seed, level + 1, tally)
    }

    /// Comes back after a cut.
    fn live_on(
        &mut self,
        disk: &SimDisk,
        mut oracle: L::Oracle,
        rng: &mut Rng,
        level: u64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if level < 3 && rng.one_in(self.depth.again_every) {
            return self.live_and_cut(disk, oracle, rng, level, tally);
        }
        let seed = rng.bits();
        let steps = &AFTER[..1 + rng.index(AFTER.len())];
        let options = self.later_options(seed);
        guarded(&self.at, || {
            assert!(
                L::live(disk, &options, &mut oracle, None, seed, steps),
                "a life ended early without a power cut"
            );
        })
    }
}
