//! Runs of a model, on a scheduler's seeds.
//!
//! Everything follows from a seed: who runs next at every lock, wait and atomic
//! step. `FULGURITE_MODEL_RUNS` multiplies the number of runs, which is small so
//! that the suite stays quick, `FULGURITE_MODEL_SEED` begins with another seed. A
//! failing run prints the command that runs it alone.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};

/// Runs of one seed of the scheduler that lets some threads starve: it learns in
/// the first how long they are.
const STARVING_RUNS: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Schedulers {
    /// One that is fair, one that lets each thread go on for a while, and one that lets
    /// some starve for long.
    All,
    /// Those that starve nobody: where a thread may wait for frames that another one lets
    /// go of in time.
    Fair,
}

/// Runs a scenario so often on each scheduler.
pub fn explore(runs: usize, schedulers: Schedulers, scenario: impl Fn() + Send + Sync + 'static) {
    let scenario: Arc<dyn Fn() + Send + Sync> = Arc::new(scenario);
    if let Ok(only) = std::env::var("FULGURITE_MODEL_REPLAY") {
        match only.split_once(':').map(|(how, seed)| (how, seed.parse())) {
            Some(("fair", Ok(seed))) => fair(seed, &scenario),
            Some(("starving", Ok(seed))) => starving(seed, &scenario),
            Some(("bursts", Ok(seed))) => bursts(seed, &scenario),
            _ => panic!("FULGURITE_MODEL_REPLAY is fair, starving or bursts:SEED, not {only}"),
        }
        return;
    }
    let runs = runs * number("FULGURITE_MODEL_RUNS", 1) as usize;
    let first = number("FULGURITE_MODEL_SEED", 1);
    for seed in (first..).take(runs) {
        fair(seed, &scenario);
        bursts(seed, &scenario);
    }
    if schedulers == Schedulers::All {
        for seed in (first..).take(runs.div_ceil(STARVING_RUNS)) {
            starving(seed, &scenario);
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn fair(seed: u64, scenario: &Arc<dyn Fn() + Send + Sync>) {
    let _again = Again("fair", seed);
    let scenario = Arc::clone(scenario);
    let scheduler = RandomScheduler::new_from_seed(seed, 1);
    alone(move || Runner::new(scheduler, config()).run(move || scenario()));
}

fn starving(seed: u64, scenario: &Arc<dyn Fn() + Send + Sync>) {
    let _again = Again("starving", seed);
    let scenario = Arc::clone(scenario);
    let scheduler = PctScheduler::new_from_seed(seed, 3, STARVING_RUNS);
    alone(move || Runner::new(scheduler, config()).run(move || scenario()));
}

fn bursts(seed: u64, scenario: &Arc<dyn Fn() + Send + Sync>) {
    let _again = Again("bursts", seed);
    let scenario = Arc::clone(scenario);
    let random = RandomScheduler::new_from_seed(seed, 1);
    let scheduler = Bursts { random, left: 0 };
    alone(move || Runner::new(scheduler, config()).run(move || scenario()));
}

/// Lets a thread go on for one step or for hundreds, as long as one time as another.
/// So one may do much between two neighbouring steps of another one, and what comes
/// before and after them is mixed as well.
struct Bursts {
    random: RandomScheduler,
    /// Steps that the current thread may still go on for.
    left: u64,
}

impl Scheduler for Bursts {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.random.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let can_go_on = |task: &TaskId| runnable.iter().any(|other| other.id() == *task);
        if self.left > 0 && current.as_ref().is_some_and(can_go_on) {
            self.left -= 1;
            return current;
        }
        self.left = (1 << (self.random.next_u64() % 11)) - 1;
        self.random.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// Runs on a thread of its own, for which the models' time begins anew: a seed is
/// the same run whichever ran before it.
fn alone(run: impl FnOnce() -> usize + Send + 'static) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(run);
    if let Err(panic) = thread.expect("a thread").join() {
        std::panic::resume_unwind(panic);
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(10_000_000);
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    config
}

/// Says on a panic how to see it again.
struct Again(&'static str, u64);

impl Drop for Again {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            eprintln!(
                "again: FULGURITE_MODEL_REPLAY={}:{} cargo test -p {} --test {} {}",
                self.0,
                self.1,
                env!("CARGO_PKG_NAME"),
                env!("CARGO_CRATE_NAME"),
                thread.name().unwrap_or_default()
            );
        }
    }
}
