//! One to sixteen threads, each on a family of its own, beside controls that show what
//! the machine gives: the same with a database each, plain writes of as many bytes as a
//! put's log record has to one file, and to a file each. Each is told as what it makes of
//! its own single thread; all take turns.

use super::families::{ASCENDING, KEPT, Keys, Ours, Putter, open, work};
use crate::compare::Options;
use crate::report::{Metric, Report};
use crate::side::Workspace;
use crate::stats;
use anyhow::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const MOST: usize = THREADS[THREADS.len() - 1];
/// About what the log has of a put: key, value and the frame.
const RECORD: [u8; 160] = [0x5A; 160];
/// Where a plain write begins again, so that files stay small.
const FILE_BYTES: u64 = 16 << 20;
const PLAIN_EACH: &str = "plain writes to a file each";
/// Writes between two looks at the clock.
const STRIDE: u64 = 16;

/// Who writes: a name and one for each thread.
struct Contender<'w> {
    label: &'static str,
    what: &'static str,
    workers: Vec<Box<dyn Putter + 'w>>,
    /// Puts a second by number of threads, round by round.
    rates: Vec<Vec<f64>>,
}

impl<'w> Contender<'w> {
    fn new<P: Putter + 'w>(label: &'static str, what: &'static str, workers: Vec<P>) -> Self {
        let boxed = |worker| Box::new(worker) as Box<dyn Putter>;
        Self {
            label,
            what,
            workers: workers.into_iter().map(boxed).collect(),
            rates: vec![Vec::new(); THREADS.len()],
        }
    }

    /// What so many threads make of one, in the middle of all rounds.
    fn scaling(&self, at: usize) -> f64 {
        stats::pairs_of(&self.rates[at], &self.rates[0]).median
    }
}

/// Writes one record after another, each at a place that nobody else has.
struct Plain {
    file: Arc<File>,
    end: Arc<AtomicU64>,
}

impl Plain {
    fn create(workspace: &Workspace, name: &str) -> Result<Self> {
        let file = File::create_new(workspace.root().join(name))?;
        let zeroes = vec![0; 1 << 20];
        for offset in (0..FILE_BYTES).step_by(zeroes.len()) {
            file.write_all_at(&zeroes, offset)?;
        }
        Ok(Self {
            file: Arc::new(file),
            end: Arc::default(),
        })
    }

    fn share(&self) -> Self {
        Self {
            file: self.file.clone(),
            end: self.end.clone(),
        }
    }
}

impl Putter for Plain {
    fn put_until(&mut self, _first: u64, end: Instant) -> Result<u64> {
        let mut count = 0;
        while Instant::now() < end {
            for _ in 0..STRIDE {
                let offset = self.end.fetch_add(RECORD.len() as u64, Relaxed);
                let room = FILE_BYTES - RECORD.len() as u64;
                self.file.write_all_at(&RECORD, offset % room)?;
            }
            count += STRIDE;
        }
        Ok(count)
    }
}

/// Measures all numbers of threads, everybody in turns.
pub fn run(
    options: Options,
    time: Duration,
    rounds: usize,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    let families = |name: &str, keys: Keys| -> Result<Vec<Ours>> {
        let store = open(options, workspace, name)?;
        (0..MOST)
            .map(|n| Ours::new(&store, &format!("family {n}"), keys))
            .collect()
    };
    // All databases have the cache of one together.
    let each = Options {
        cache_bytes: options.cache_bytes / MOST,
        ..options
    };
    let alone = (0..MOST)
        .map(|n| {
            Ours::new(
                &open(each, workspace, &format!("scaling-{n}.db"))?,
                "alone",
                KEPT,
            )
        })
        .collect::<Result<Vec<_>>>()?;
    let one_file = Plain::create(workspace, "plain")?;
    let a_file_each = (0..MOST)
        .map(|n| Plain::create(workspace, &format!("plain-{n}")))
        .collect::<Result<Vec<_>>>()?;
    let mut all = [
        Contender::new(
            "kept",
            "puts of 10,000 kept keys, a family each",
            families("scaling-kept.db", KEPT)?,
        ),
        Contender::new(
            "ascending",
            "puts of ascending keys, a family each",
            families("scaling-ascending.db", ASCENDING)?,
        ),
        Contender::new(
            "databases",
            "puts of 10,000 kept keys, a database each",
            alone,
        ),
        Contender::new(
            "plain_one",
            "plain writes to one file",
            (0..MOST).map(|_| one_file.share()).collect(),
        ),
        Contender::new("plain_each", PLAIN_EACH, a_file_each),
    ];
    let mut first = 0;
    for contender in &mut all {
        work(&mut contender.workers, first, 2 * time)?;
    }
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut order: Vec<(usize, usize)> = (0..all.len())
        .flat_map(|who| (0..THREADS.len()).map(move |at| (who, at)))
        .collect();
    for _ in 0..rounds {
        rng.shuffle(&mut order);
        for (who, at) in &order {
            first += 1 << 32;
            let contender = &mut all[*who];
            let rate = work(&mut contender.workers[..THREADS[*at]], first, time)?;
            contender.rates[*at].push(rate);
        }
    }
    tell(&all, report);
    Ok(())
}

fn tell(all: &[Contender<'_>], report: &mut Report) {
    let plain = &all[all.len() - 1];
    for contender in all {
        let curve: Vec<String> = (0..THREADS.len())
            .map(|at| format!("{} × {:.2}", THREADS[at], contender.scaling(at)))
            .collect();
        report.note(format!(
            "scaling, {}: {:.0} a second by one thread; threads × that: {}",
            contender.what,
            stats::median(&contender.rates[0]),
            curve.join(", ")
        ));
        for (at, threads) in THREADS.into_iter().enumerate() {
            let name = format!("scaling_{}_{threads}", contender.label);
            let what = format!("{threads} threads, {}", contender.what);
            let [ours, plain] = [contender, plain].map(|who| &who.rates[at][..]);
            let metric = Metric::rate(&name, &what, "puts/s", ours, plain);
            report.push(metric.beside(PLAIN_EACH));
        }
    }
}
