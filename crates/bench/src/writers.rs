//! `writers`: threads that autocommit single rows, into one table and into one
//! table each, each thread on a connection of its own.

use crate::compare::Options;
use crate::measure::{Laps, toss};
use crate::report::{Metric, Report};
use crate::side::{Durability, ENGINES, Engine, Settings, Side, Workspace};
use crate::stats::Samples;
use anyhow::{Context, Result, anyhow};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

/// Which tables the threads write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    Shared,
    OneEach,
}

/// What one thread saw.
struct Outcome {
    nanos: Vec<u64>,
    elapsed: Duration,
}

/// Measures `threads` writers on both kinds of tables.
pub fn run(
    options: Options,
    threads: usize,
    seconds: f64,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let settings = Settings::new(options.cache_bytes, Durability::Full);
    let rounds = ((ROUNDS as f64 * options.effort) as usize).max(1);
    for (tables, label) in [
        (Tables::Shared, "one_table"),
        (Tables::OneEach, "one_table_each"),
    ] {
        let name = format!("writers-{label}-{threads}.db");
        let mut crews = Vec::new();
        for engine in &ENGINES {
            crews.push(Crew::assemble(
                engine, workspace, &name, threads, &settings,
            )?);
        }
        let mut rates = [Vec::new(), Vec::new()];
        let mut samples = [Samples::default(), Samples::default()];
        for _ in 0..rounds {
            for side in toss(&mut rng) {
                let (rate, nanos) = crews[side].work(tables, Duration::from_secs_f64(seconds))?;
                rates[side].push(rate);
                samples[side].push_round(nanos);
            }
        }
        let name = format!("writers_{threads}_{label}");
        let what = format!("{threads} threads autocommitting single rows, full durability");
        report.push(Metric::rate(
            &name,
            &what,
            "commits/s",
            &rates[0],
            &rates[1],
        ));
        let name = format!("{name}_latency");
        report.push(Metric::latency(
            &name,
            "one such commit",
            &samples[0],
            &samples[1],
        ));
    }
    Ok(())
}

/// Warm connections to one database, one a thread.
struct Crew {
    connections: Vec<Box<dyn Side>>,
}

impl Crew {
    fn assemble(
        engine: &Engine,
        workspace: &Workspace,
        name: &str,
        threads: usize,
        settings: &Settings,
    ) -> Result<Self> {
        let path = workspace.database(engine, name);
        let connections = (0..threads)
            .map(|_| (engine.open)(&path, settings))
            .collect::<Result<Vec<_>>>()?;
        let mut crew = Self { connections };
        let first = crew.connections.first_mut().context("no threads")?;
        for table in 0..=threads {
            first.batch(&format!(
                "CREATE TABLE w{table} (id INTEGER PRIMARY KEY, actor INTEGER NOT NULL, note TEXT)"
            ))?;
        }
        Ok(crew)
    }

    /// Commits for `time` on all threads; commits a second, and every latency.
    fn work(&mut self, tables: Tables, time: Duration) -> Result<(f64, Vec<u64>)> {
        let barrier = Barrier::new(self.connections.len());
        let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
            let barrier = &barrier;
            let handles: Vec<_> = self
                .connections
                .iter_mut()
                .enumerate()
                .map(|(i, connection)| {
                    let table = if tables == Tables::Shared { 0 } else { i + 1 };
                    scope.spawn(move || write(connection.as_mut(), table, i, time, barrier))
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| handle.join().map_err(|_| anyhow!("a writer panicked"))?)
                .collect()
        });
        let mut nanos = Vec::new();
        let mut longest = Duration::ZERO;
        for outcome in outcomes {
            let outcome = outcome?;
            longest = longest.max(outcome.elapsed);
            nanos.extend(outcome.nanos);
        }
        Ok((nanos.len() as f64 / longest.as_secs_f64(), nanos))
    }
}

fn write(
    connection: &mut dyn Side,
    table: usize,
    actor: usize,
    time: Duration,
    barrier: &Barrier,
) -> Result<Outcome> {
    let sql = format!("INSERT INTO w{table} (actor, note) VALUES (?1, ?2)");
    let mut laps = Laps::with_capacity(1 << 16);
    barrier.wait();
    let started = Instant::now();
    connection.insert_until(&sql, actor as i64, started + time, &mut laps)?;
    Ok(Outcome {
        nanos: laps.into_nanos(),
        elapsed: started.elapsed(),
    })
}
