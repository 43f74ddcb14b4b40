//! What every life of a process has, whatever interface it uses: a disk, time,
//! what a power cut may leave, and work in the background among its commits.

use std::sync::Arc;

use fulgurite_store::{Durability, Options};

use crate::candidates::Candidates;
use crate::driver::SimDriver;
use crate::proof::Timeline;
use crate::{Rng, SimDisk, busy};

/// Knows what a power cut may leave.
pub trait Oracle: Clone + Default {
    /// The power went.
    fn power_cut(&mut self);

    /// The process ended, and all it wrote is with the operating system.
    fn killed(&mut self);
}

/// An oracle of one database.
pub trait OfOne: Clone + Default {
    /// A state of the database.
    type State: Clone + Default + PartialEq;

    /// The states it may be in.
    fn candidates(&mut self) -> &mut Candidates<Self::State>;
}

impl<O: OfOne> Oracle for O {
    fn power_cut(&mut self) {
        self.candidates().power_cut();
    }

    fn killed(&mut self) {
        self.candidates().killed();
    }
}

/// See the module's header.
pub(crate) struct Frame<'a, O> {
    pub(crate) disk: &'a SimDisk,
    pub(crate) options: Options,
    driver: Arc<SimDriver>,
    pub(crate) oracle: &'a mut O,
    timeline: Option<&'a mut Timeline<O>>,
    /// Somebody may lose commits, so that the log need not sync each.
    relaxed: bool,
}

/// How many states there were when something began that will make what was
/// acknowledged by then durable.
pub(crate) struct Mark(usize);

impl<'a, O: OfOne> Frame<'a, O> {
    pub(crate) fn new(
        disk: &'a SimDisk,
        options: &Options,
        oracle: &'a mut O,
        timeline: Option<&'a mut Timeline<O>>,
    ) -> Self {
        let driver = SimDriver::new(disk);
        let options = Options {
            driver: Some(driver.clone()),
            ..options.clone()
        };
        Self {
            disk,
            options,
            driver,
            oracle,
            timeline,
            relaxed: false,
        }
    }

    /// Whether every commit is durable once it is acknowledged.
    pub(crate) fn is_synced(&self) -> bool {
        self.options.durability == Durability::Full && !self.relaxed
    }

    /// From now on commits may be lost by who may lose them.
    pub(crate) fn relaxed(&mut self) {
        self.relaxed = true;
    }

    /// Takes down what a power cut may leave from now on.
    pub(crate) fn note(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push((self.disk.calls(), self.oracle.clone()));
        }
    }

    /// A commit to this state is under way.
    pub(crate) fn under_way(&mut self, state: O::State) {
        self.oracle.candidates().under_way(state);
        self.note();
    }

    /// It led to this state, and was acknowledged; `synced` where its context may not
    /// lose it.
    pub(crate) fn acknowledged(&mut self, state: O::State, synced: bool) {
        let durable = synced || self.is_synced();
        self.oracle.candidates().acknowledge(state, durable);
        self.note();
    }

    /// It failed and had no effect: `visible` is what there is.
    pub(crate) fn had_no_effect(&mut self, visible: &O::State) {
        self.oracle.candidates().take_back(visible);
        self.note();
    }

    /// What comes now will cover what was acknowledged so far.
    pub(crate) fn mark(&mut self) -> Mark {
        Mark(self.oracle.candidates().count())
    }

    /// It did.
    pub(crate) fn covered(&mut self, mark: &Mark) {
        if !self.is_synced() {
            self.oracle.candidates().keep_since(mark.0);
        }
        self.note();
    }

    /// The database is closed by `close`, which makes everything durable unless one of
    /// its calls fails: nobody hears of that.
    pub(crate) fn closes(&mut self, close: impl FnOnce()) {
        let faults = self.disk.faults_met();
        close();
        self.relaxed = false;
        if !self.disk.is_stopped() && self.disk.faults_met() == faults {
            self.oracle.candidates().keep(1);
            self.note();
        }
    }

    /// Lets time pass; true if the engine's work in the background is due.
    pub(crate) fn elapse(&mut self, rng: &mut Rng) -> bool {
        self.driver.elapse(rng)
    }
}

/// Does `work`, which covers what was acknowledged before, on a thread of its
/// own with `commit` between its calls.
pub(crate) fn among_commits<L, E: Send>(
    life: &mut L,
    disk: &SimDisk,
    work: impl FnOnce() -> Result<(), E> + Send,
    mut commit: impl FnMut(&mut L) -> Result<(), E>,
) -> Result<(), E> {
    let mut commits = Ok(());
    let worked = busy::meanwhile(disk, work, || {
        if commits.is_ok() {
            commits = commit(life);
        }
    });
    commits.and(worked)
}
