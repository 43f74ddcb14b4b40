//! `writers`: many threads that write, each on a connection of its own, beside
//! SQLite in WAL mode with a busy timeout of 10 s: autocommitted inserts into one
//! table and into one each, transactions of five updates on random rows, optimistic here
//! and IMMEDIATE, larger ones of a hundred updates or inserts, with indexes and without, one
//! hot row, inserts now and then beside a thread that inserts without end, updates of random
//! rows beside one that makes checkpoints without end and beside four that read; statements
//! and transactions over two attached files; and key-value puts on one family each, beside
//! redb, and beside what the machine gives. All but these take turns round by round. At the
//! end it says which of the project's bars are met.

mod crew;
mod families;
mod scaling;

use crate::compare::Options;
use crate::control::Control;
use crate::machine;
use crate::measure::{Laps, toss};
use crate::report::{Bar, Better, Metric, Report};
use crate::side::{Crossing, Durability, ENGINES, Settings, Transactions, Workspace};
use crate::stats::{self, Samples};
use anyhow::{Result, ensure};
use clap::ValueEnum;
use crew::{Crew, Job, Record};
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
/// Threads that update beside one that makes checkpoints, that one too.
const BESIDE_CHECKPOINTS_THREADS: usize = 9;
/// Threads that update beside others that read, those too.
const BESIDE_READERS_THREADS: usize = crew::READERS + 8;
/// Threads of the explicit transactions.
const EXPLICIT_THREADS: usize = 8;
/// Changes of a large one.
const LARGE: usize = 100;

/// What can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Autocommitted inserts into one table
    OneTable,
    /// Autocommitted inserts into one table a thread
    OneEach,
    /// Transactions of five updates of random rows
    Explicit,
    /// The same, begun IMMEDIATE
    Immediate,
    /// Transactions of a hundred updates of random rows, and of a hundred inserts into a
    /// table without indexes and one with three
    Large,
    /// Updates of one row
    Hot,
    /// Inserts now and then beside a thread that inserts without end
    NowAndThen,
    /// Transactions of one update of a random row beside a thread that makes checkpoints
    /// without end
    BesideCheckpoints,
    /// The same beside four threads that read without end
    BesideReaders,
    /// Statements that update a row of one attached file by one of another, and
    /// transactions that update a row in each of both
    Files,
    /// Key-value puts on one family a thread, beside redb
    Families,
    /// The same with one to sixteen threads, beside databases each and plain writes
    Scaling,
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

/// One number of threads at one kind of work, and what was measured of it.
struct Subject {
    label: &'static str,
    job: Job,
    threads: usize,
    /// Ours and SQLite's.
    records: [Record; 2],
    /// The control's writes and syncs in the same rounds.
    syncs: Samples,
}

/// What the plan's cases come to, but for the families, which another library stands
/// beside.
fn subjects(plan: &Plan) -> Vec<Subject> {
    let rows = plan.rows;
    let updates = |each| Job::Explicit(Transactions::Updates { each, rows });
    let large = [
        ("updates", updates(LARGE)),
        (
            "inserts",
            Job::Explicit(Transactions::Inserts { each: LARGE }),
        ),
        (
            "indexed",
            Job::Explicit(Transactions::Indexed { each: LARGE }),
        ),
    ];
    let each = |label, job| plan.threads.iter().map(move |n| (label, job, *n)).collect();
    let of = |case: &Case| -> Vec<(&'static str, Job, usize)> {
        match case {
            Case::OneTable => each("one_table", Job::OneTable),
            Case::OneEach => each("one_each", Job::OneTableEach),
            Case::Explicit => vec![("explicit", updates(5), EXPLICIT_THREADS)],
            Case::Immediate => {
                let job = Job::Explicit(Transactions::Immediate { each: 5, rows });
                vec![("immediate", job, EXPLICIT_THREADS)]
            }
            Case::Large => [1, EXPLICIT_THREADS]
                .into_iter()
                .flat_map(|n| large.map(|(label, job)| (label, job, n)))
                .collect(),
            Case::Hot => vec![("hot", Job::HotRow, HOT_THREADS)],
            Case::NowAndThen => {
                vec![("now_and_then", Job::NowAndThen, NOW_AND_THEN_THREADS)]
            }
            Case::BesideCheckpoints => {
                let job = Job::BesideCheckpoints { rows };
                vec![("beside_checkpoints", job, BESIDE_CHECKPOINTS_THREADS)]
            }
            Case::BesideReaders => {
                let job = Job::BesideReaders { rows };
                vec![("beside_readers", job, BESIDE_READERS_THREADS)]
            }
            Case::Files => [1, EXPLICIT_THREADS]
                .into_iter()
                .flat_map(|n| {
                    let of = |label, kind| (label, Job::Crossing(kind), n);
                    [
                        of("one_file_from_another", Crossing::OneWay),
                        of("across_files", Crossing::BothWays),
                        of("both_files", Crossing::Transaction),
                    ]
                })
                .collect(),
            Case::Families | Case::Scaling => Vec::new(),
        }
    };
    let all = plan.cases.iter().flat_map(of);
    all.map(|(label, job, threads)| Subject {
        label,
        job,
        threads,
        records: Default::default(),
        syncs: Samples::default(),
    })
    .collect()
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
    let of_rows = [
        Case::Explicit,
        Case::Immediate,
        Case::Large,
        Case::BesideCheckpoints,
        Case::BesideReaders,
    ];
    let has_rows = of_rows.iter().any(|case| plan.cases.contains(case));
    let (mut crews, mut crews_at_two) = (Vec::new(), Vec::new());
    for engine in &ENGINES {
        let rows = if has_rows { plan.rows } else { 0 };
        crews.push(Crew::assemble(
            engine,
            workspace,
            "writers.db",
            &settings,
            rows,
        )?);
        if plan.cases.contains(&Case::Files) {
            crews_at_two.push(Crew::assemble_at_two(engine, workspace, &settings)?);
        }
    }
    let mut control = Control::create(&workspace.root().join("control"))?;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut subjects = subjects(plan);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    // Everything takes turns, so that a machine whose speed changes is the same for
    // all that is compared.
    for _ in 0..rounds {
        rng.shuffle(&mut order);
        for at in &order {
            let subject = &mut subjects[*at];
            let crews = match subject.job {
                Job::Crossing(_) => &mut crews_at_two,
                _ => &mut crews,
            };
            round(subject, crews, &mut control, &mut rng, plan.time)?;
        }
    }
    let bench = Bench {
        subjects,
        on_tmpfs: machine::filesystem(workspace.root()).as_deref() == Some("tmpfs"),
    };
    for subject in &bench.subjects {
        tell(subject, report);
    }
    if let Some(lock) = crews[0].commit_lock() {
        report.note(format!(
            "commit lock held p50 {} ns, p99 {} ns, longest {} ns ({} measured)",
            lock.p50_ns, lock.p99_ns, lock.longest_ns, lock.measured
        ));
    }
    if plan.cases.contains(&Case::Families) {
        families::run(options, plan.time, rounds, workspace, report)?;
    }
    if plan.cases.contains(&Case::Scaling) {
        scaling::run(options, plan.time, rounds, workspace, report)?;
    }
    bench.bars(report);
    Ok(())
}

/// Both sides once, and the control with its single small write and sync a commit.
fn round(
    subject: &mut Subject,
    crews: &mut [Crew],
    control: &mut Control,
    rng: &mut fastrand::Rng,
    time: Duration,
) -> Result<()> {
    for side in toss(rng) {
        let seed = rng.u64(..);
        let record = &mut subject.records[side];
        crews[side].work(subject.job, subject.threads, seed, time, record)?;
    }
    let mut laps = Laps::with_capacity(CONTROL);
    control.run(CONTROL, &mut laps)?;
    subject.syncs.push_round(laps.into_nanos());
    Ok(())
}

fn tell(subject: &Subject, report: &mut Report) {
    let [ours, sqlite] = &subject.records;
    let name = format!("writers_{}_{}", subject.threads, subject.label);
    let what = format!(
        "{} threads, {}, full durability",
        subject.threads,
        describe(subject.job)
    );
    let unit = "commits/s";
    report.push(Metric::rate(&name, &what, unit, &ours.rates, &sqlite.rates));
    let metric = Metric::latency(
        &format!("{name}_latency"),
        "one such commit",
        &ours.samples,
        &sqlite.samples,
    );
    report.push(metric);
    if subject.job.readers() > 0 {
        report.push(Metric::rate(
            &format!("{name}_reads"),
            "reads beside them",
            "reads/s",
            &ours.reads,
            &sqlite.reads,
        ));
    }
    let sync = subject.syncs.micros();
    report.note(format!(
        "{name}: longest wait {:.1} ms, SQLite's {:.1} ms; raw write and sync p50 {:.1} µs, \
         p95 {:.1}, p99 {:.1}",
        ours.samples.longest_millis(),
        sqlite.samples.longest_millis(),
        sync.p50,
        sync.p95,
        sync.p99,
    ));
    if matches!(subject.job, Job::HotRow) {
        let metric = Metric::single(
            &format!("{name}_slowest"),
            "commits of the slowest thread by the mean of all",
            Better::Higher,
            "share",
            stats::median(&ours.slowest),
            stats::median(&sqlite.slowest),
        );
        report.push(metric);
    }
}

struct Bench {
    subjects: Vec<Subject>,
    on_tmpfs: bool,
}

impl Bench {
    fn subject(&self, label: &str, threads: usize) -> Option<&Subject> {
        let mut all = self.subjects.iter();
        all.find(|subject| subject.label == label && subject.threads == threads)
    }

    /// The median of our rates by SQLite's, round by round.
    fn by_sqlite(&self, label: &str, threads: usize) -> Option<f64> {
        let [ours, sqlite] = &self.subject(label, threads)?.records;
        Some(stats::pairs_of(&ours.rates, &sqlite.rates).median)
    }

    /// The same of our rates at two subjects.
    fn quotient(&self, a: Option<&Subject>, b: Option<&Subject>) -> Option<f64> {
        let [a, b] = [a?, b?].map(|subject| &subject.records[0].rates);
        Some(stats::pairs_of(a, b).median)
    }

    /// The bars of the project that the file system is for.
    fn bars(&self, report: &mut Report) {
        let eight = self.subject("one_table", 8);
        let mut bars = match self.on_tmpfs {
            true => self.bars_on_tmpfs(eight),
            false => self.bars_on_disk(eight),
        };
        bars.extend([
            (
                "8 threads, one table each × one table",
                0.9,
                self.quotient(self.subject("one_each", 8), eight),
            ),
            (
                "8 threads, explicit transactions × SQLite",
                4.0,
                self.by_sqlite("explicit", 8),
            ),
        ]);
        for (case, bar, figure) in bars {
            if let Some(figure) = figure {
                report.bar(Bar::at_least(case, bar, figure));
            }
        }
        if let Some(explicit) = self.subject("explicit", EXPLICIT_THREADS) {
            let ours = &explicit.records[0];
            let share = ours.aborts as f64 / (ours.commits + ours.aborts).max(1) as f64;
            let case = "explicit transactions, 8 threads: aborts, %";
            report.bar(Bar::at_most(case, 2.0, share * 100.0));
        }
        if let (false, Some(eight)) = (self.on_tmpfs, eight) {
            let (p99, sync) = (
                eight.records[0].samples.micros().p99,
                eight.syncs.micros().p50,
            );
            let case = "p99 commit latency, 8 threads, × raw sync";
            report.bar(Bar::at_most(case, 3.0, p99 / sync));
        }
    }

    fn bars_on_tmpfs(&self, eight: Option<&Subject>) -> Vec<(&'static str, f64, Option<f64>)> {
        let rate = |subject: &&Subject| stats::median(&subject.records[0].rates);
        let best = [1, 2, 4, 8, 16]
            .into_iter()
            .filter_map(|threads| self.subject("one_table", threads))
            .max_by(|a, b| rate(a).total_cmp(&rate(b)));
        vec![
            (
                "8 threads × own best of 1 to 16",
                0.85,
                self.quotient(eight, best),
            ),
            ("8 threads × SQLite", 1.5, self.by_sqlite("one_table", 8)),
        ]
    }

    fn bars_on_disk(&self, eight: Option<&Subject>) -> Vec<(&'static str, f64, Option<f64>)> {
        vec![
            (
                "8 threads, one table × SQLite",
                3.5,
                self.by_sqlite("one_table", 8),
            ),
            (
                "8 threads, one table × own single thread",
                3.3,
                self.quotient(eight, self.subject("one_table", 1)),
            ),
            (
                "32 threads, one table × SQLite",
                8.0,
                self.by_sqlite("one_table", 32),
            ),
        ]
    }
}

fn describe(job: Job) -> String {
    let what = match job {
        Job::OneTable => "autocommitted inserts into one table",
        Job::OneTableEach => "autocommitted inserts into one table each",
        Job::Explicit(Transactions::Updates { each, .. }) => {
            return format!("transactions of {each} updates of random rows");
        }
        Job::Explicit(Transactions::Immediate { each, .. }) => {
            return format!("IMMEDIATE transactions of {each} updates of random rows");
        }
        Job::Explicit(Transactions::Inserts { each }) => {
            return format!("transactions of {each} inserts into one table");
        }
        Job::Explicit(Transactions::Indexed { each }) => {
            return format!("transactions of {each} inserts into one table with three indexes");
        }
        Job::HotRow => "autocommitted updates of one row",
        Job::NowAndThen => {
            "autocommitted inserts every 50 to 250 µs beside a thread that inserts without end"
        }
        Job::BesideCheckpoints { .. } => {
            "updates of random rows, one a transaction, beside one that makes checkpoints"
        }
        Job::BesideReaders { .. } => {
            "updates of random rows, one a transaction, beside four that read"
        }
        Job::Crossing(Crossing::OneWay) => {
            "autocommitted updates of a random row in one file by one of another"
        }
        Job::Crossing(Crossing::BothWays) => "the same, in the one file or in the other",
        Job::Crossing(Crossing::Transaction) => {
            "transactions of an update of a random row in each of two files"
        }
    };
    what.to_owned()
}
