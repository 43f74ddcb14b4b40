//! `writers`: many threads that write, each on a connection of its own, beside
//! SQLite in WAL mode with a busy timeout of 10 s: autocommitted inserts into one
//! table and into one each, transactions of five updates on random rows, one hot
//! row, inserts now and then beside a thread that inserts without end; and key-value
//! puts on one family each beside redb. At the end it says
//! which of the project's bars are met.

mod crew;
mod families;

use crate::compare::Options;
use crate::control::Control;
use crate::machine;
use crate::measure::{Laps, toss};
use crate::report::{Bar, Better, Metric, Report};
use crate::side::{Durability, ENGINES, Settings, Workspace};
use crate::stats::{self, Samples};
use anyhow::{Result, ensure};
use clap::ValueEnum;
use crew::{Crew, Job, Record};
use std::collections::BTreeMap;
use std::time::Duration;

const ROUNDS: usize = 5;
/// Threads that a crew has connections for.
pub const THREADS_MAX: usize = 64;
/// Commits of the control a round.
const CONTROL: usize = 200;
/// Threads at the hot row.
const HOT_THREADS: usize = 16;
/// Threads that insert into one table, of which one does without end.
const NOW_AND_THEN_THREADS: usize = 8;
/// Threads of the explicit transactions.
const EXPLICIT_THREADS: usize = 8;

/// What can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Autocommitted inserts into one table
    OneTable,
    /// Autocommitted inserts into one table a thread
    OneEach,
    /// Transactions of five updates of random rows
    Explicit,
    /// Updates of one row
    Hot,
    /// Inserts now and then beside a thread that inserts without end
    NowAndThen,
    /// Key-value puts on one family a thread, beside redb
    Families,
}

/// What to measure.
#[derive(Debug)]
pub struct Plan {
    pub cases: Vec<Case>,
    pub threads: Vec<usize>,
    /// Rows of the table that explicit transactions update.
    pub rows: u64,
    /// A round and side.
    pub time: Duration,
}

/// Medians of our rates and ratios, by case and number of threads.
#[derive(Debug, Default)]
struct Found {
    ours: BTreeMap<(&'static str, usize), f64>,
    ratio: BTreeMap<(&'static str, usize), f64>,
}

/// Measures what the plan says.
pub fn run(
    options: Options,
    plan: &Plan,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    ensure!(
        plan.threads.iter().all(|n| (1..=THREADS_MAX).contains(n)),
        "between 1 and {THREADS_MAX} threads"
    );
    let settings = Settings::new(options.cache_bytes, Durability::Full);
    let rounds = ((ROUNDS as f64 * options.effort) as usize).max(1);
    let explicit = plan.cases.contains(&Case::Explicit);
    let mut crews = Vec::new();
    for engine in &ENGINES {
        let rows = if explicit { plan.rows } else { 0 };
        crews.push(Crew::assemble(
            engine,
            workspace,
            "writers.db",
            &settings,
            rows,
        )?);
    }
    let mut bench = Bench {
        crews,
        control: Control::create(&workspace.root().join("control"))?,
        syncs: Samples::default(),
        rng: fastrand::Rng::with_seed(options.seed),
        rounds,
        time: plan.time,
        found: Found::default(),
        on_tmpfs: machine::filesystem(workspace.root()).as_deref() == Some("tmpfs"),
        report,
    };
    for case in &plan.cases {
        match case {
            Case::OneTable => bench.each(&plan.threads, "one_table", Job::OneTable)?,
            Case::OneEach => bench.each(&plan.threads, "one_each", Job::OneTableEach)?,
            Case::Explicit => {
                let job = Job::FiveUpdates(plan.rows);
                bench.case("explicit", job, EXPLICIT_THREADS)?;
            }
            Case::Hot => bench.case("hot", Job::HotRow, HOT_THREADS)?,
            Case::NowAndThen => {
                bench.case("now_and_then", Job::NowAndThen, NOW_AND_THEN_THREADS)?;
            }
            Case::Families => families::run(options, plan.time, rounds, workspace, bench.report)?,
        }
    }
    bench.bars();
    Ok(())
}

struct Bench<'r> {
    crews: Vec<Crew>,
    control: Control,
    syncs: Samples,
    rng: fastrand::Rng,
    rounds: usize,
    time: Duration,
    found: Found,
    on_tmpfs: bool,
    report: &'r mut Report,
}

impl Bench<'_> {
    fn each(&mut self, threads: &[usize], label: &'static str, job: Job) -> Result<()> {
        threads.iter().try_for_each(|n| self.case(label, job, *n))
    }

    /// Interleaves the sides, and the control with its single small write and
    /// sync a commit.
    fn case(&mut self, label: &'static str, job: Job, threads: usize) -> Result<()> {
        let mut records = [Record::default(), Record::default()];
        for _ in 0..self.rounds {
            for side in toss(&mut self.rng) {
                let seed = self.rng.u64(..);
                self.crews[side].work(job, threads, seed, self.time, &mut records[side])?;
            }
            let mut laps = Laps::with_capacity(CONTROL);
            self.control.run(CONTROL, &mut laps)?;
            self.syncs.push_round(laps.into_nanos());
        }
        self.tell(label, job, threads, &records);
        Ok(())
    }

    fn tell(
        &mut self,
        label: &'static str,
        job: Job,
        threads: usize,
        [ours, sqlite]: &[Record; 2],
    ) {
        let key = (label, threads);
        let rate = stats::median(&ours.rates);
        self.found.ours.insert(key, rate);
        let ratio = stats::pairs_of(&ours.rates, &sqlite.rates).median;
        self.found.ratio.insert(key, ratio);
        let name = format!("writers_{threads}_{label}");
        let what = format!("{threads} threads, {}, full durability", describe(job));
        let unit = "commits/s";
        self.report
            .push(Metric::rate(&name, &what, unit, &ours.rates, &sqlite.rates));
        let metric = Metric::latency(
            &format!("{name}_latency"),
            "one such commit",
            &ours.samples,
            &sqlite.samples,
        );
        self.report.push(metric);
        self.report.note(format!(
            "{name}: longest wait {:.1} ms, SQLite's {:.1} ms",
            ours.samples.longest_millis(),
            sqlite.samples.longest_millis(),
        ));
        if matches!(job, Job::HotRow) {
            let metric = Metric::single(
                &format!("{name}_slowest"),
                "commits of the slowest thread by the mean of all",
                Better::Higher,
                "share",
                stats::median(&ours.slowest),
                stats::median(&sqlite.slowest),
            );
            self.report.push(metric);
        }
        if let Job::FiveUpdates(_) = job {
            let share = ours.aborts as f64 / (ours.commits + ours.aborts).max(1) as f64;
            self.report.bar(Bar::at_most(
                "explicit transactions, 8 threads: aborts, %",
                2.0,
                share * 100.0,
            ));
        }
        if let Some(lock) = self.crews[0].commit_lock() {
            self.report.note(format!(
                "{name}: commit lock held p50 {} ns, p99 {} ns, longest {} ns ({} measured)",
                lock.p50_ns, lock.p99_ns, lock.longest_ns, lock.measured
            ));
        }
        if label == "one_table" && threads == 8 {
            let (p99, sync) = (ours.samples.micros().p99, self.syncs.micros().p50);
            if !self.on_tmpfs {
                self.report.bar(Bar::at_most(
                    "p99 commit latency, 8 threads, × raw sync",
                    3.0,
                    p99 / sync,
                ));
            }
            self.report
                .note(format!("raw write and sync: p50 {sync:.1} µs"));
        }
    }

    /// The bars of the project that the file system is for.
    fn bars(&mut self) {
        let ours = |label, threads| self.found.ours.get(&(label, threads)).copied();
        let ratio = |label, threads| self.found.ratio.get(&(label, threads)).copied();
        let quotient = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
        let best = |label| -> Option<f64> {
            [1, 2, 4, 8, 16]
                .into_iter()
                .filter_map(|threads| ours(label, threads))
                .reduce(f64::max)
        };
        let eight = ours("one_table", 8);
        let mut bars = match self.on_tmpfs {
            true => vec![
                (
                    "8 threads × own best of 1 to 16",
                    0.85,
                    quotient(eight, best("one_table")),
                ),
                ("8 threads × SQLite", 1.5, ratio("one_table", 8)),
            ],
            false => vec![
                ("8 threads, one table × SQLite", 3.5, ratio("one_table", 8)),
                (
                    "8 threads, one table × own single thread",
                    3.3,
                    quotient(eight, ours("one_table", 1)),
                ),
                (
                    "32 threads, one table × SQLite",
                    8.0,
                    ratio("one_table", 32),
                ),
            ],
        };
        bars.extend([
            (
                "8 threads, one table each × one table",
                0.9,
                quotient(ours("one_each", 8), eight),
            ),
            (
                "8 threads, explicit transactions × SQLite",
                4.0,
                ratio("explicit", 8),
            ),
        ]);
        for (case, bar, figure) in bars {
            if let Some(figure) = figure {
                self.report.bar(Bar::at_least(case, bar, figure));
            }
        }
    }
}

fn describe(job: Job) -> &'static str {
    match job {
        Job::OneTable => "autocommitted inserts into one table",
        Job::OneTableEach => "autocommitted inserts into one table each",
        Job::FiveUpdates(_) => "transactions of five updates of random rows",
        Job::HotRow => "autocommitted updates of one row",
        Job::NowAndThen => {
            "autocommitted inserts every 50 to 250 µs beside a thread that inserts without end"
        }
    }
}
