//! Threads at one database, each on a warm connection of its own.

use crate::measure::Laps;
use crate::side::{CommitLock, Crossing, Engine, Settings, Side, Transactions, Workspace};
use crate::stats::Samples;
use anyhow::{Context, Result, anyhow};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What the threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Autocommitted inserts into one table.
    OneTable,
    /// The same, into one table each.
    OneTableEach,
    /// Explicit transactions.
    Explicit(Transactions),
    /// Autocommitted updates of one and the same row.
    HotRow,
    /// Autocommitted inserts into one table, by the first thread without end, which is
    /// not measured, and by the others now and then.
    NowAndThen,
    /// Transactions of one update of a random row of so many, beside the first thread,
    /// which makes checkpoints without end and is not measured.
    BesideCheckpoints { rows: u64 },
    /// The same beside the first [`READERS`] threads, which read without end; their reads
    /// are counted apart.
    BesideReaders { rows: u64 },
    /// What uses two files at once; by a crew of [`Crew::assemble_at_two`].
    Crossing(Crossing),
}

/// Rows of the table in either of two files.
const CROSSED_ROWS: u64 = 10_000;

/// Threads that read beside those that write.
pub const READERS: usize = 4;
/// What they read: milliseconds of computing.
const READ: &str =
    "SELECT owner, count(*), sum(balance) FROM accounts WHERE id <= 20000 GROUP BY owner";

impl Job {
    /// How many of its threads only read.
    pub fn readers(self) -> usize {
        match self {
            Self::BesideReaders { .. } => READERS,
            _ => 0,
        }
    }
}

/// What one thread saw.
struct Outcome {
    nanos: Vec<u64>,
    aborts: u64,
    reads: u64,
    elapsed: Duration,
}

/// What all threads of a side did, round by round.
#[derive(Debug, Default)]
pub struct Record {
    /// Commits a second.
    pub rates: Vec<f64>,
    /// The commits of the slowest thread by the mean of all threads.
    pub slowest: Vec<f64>,
    pub samples: Samples,
    pub aborts: u64,
    pub commits: u64,
    /// Reads a second of those that only read.
    pub reads: Vec<f64>,
}

/// Warm connections to one database, one a thread.
pub struct Crew {
    connections: Vec<Box<dyn Side>>,
}

impl Crew {
    /// Makes the database with a table a thread, one for all, one with indexes, and `rows`
    /// rows of `accounts`.
    pub fn assemble(
        engine: &Engine,
        workspace: &Workspace,
        name: &str,
        settings: &Settings,
        rows: u64,
    ) -> Result<Self> {
        let path = workspace.database(engine, name);
        let mut first = (engine.open)(&path, settings)?;
        for table in 0..=super::THREADS_MAX {
            first.batch(&format!(
                "CREATE TABLE w{table} (id INTEGER PRIMARY KEY, actor INTEGER NOT NULL, note TEXT)"
            ))?;
        }
        first.batch(
            "CREATE TABLE indexed (id INTEGER PRIMARY KEY, actor INTEGER, place INTEGER, \
                moment INTEGER, note TEXT);
             CREATE INDEX indexed_by_actor ON indexed (actor);
             CREATE INDEX indexed_by_place ON indexed (place, moment);
             CREATE INDEX indexed_by_moment ON indexed (moment);
             CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner INTEGER, balance INTEGER);
             CREATE TABLE hot (id INTEGER PRIMARY KEY, n INTEGER);
             INSERT INTO hot VALUES (1, 0)",
        )?;
        let rows: Vec<_> = (1..=rows as i64).map(|id| (id, id % 977, 1_000)).collect();
        first.load_numbers("INSERT INTO accounts VALUES (?1, ?2, ?3)", &rows)?;
        first.checkpoint()?;
        let mut crew = Self {
            connections: vec![first],
        };
        crew.grow(engine, &path, settings)?;
        Ok(crew)
    }

    /// Has each connection attach two files, `east` and `west`, with a table of its name in
    /// each.
    pub fn assemble_at_two(
        engine: &Engine,
        workspace: &Workspace,
        settings: &Settings,
    ) -> Result<Self> {
        let main = workspace.database(engine, "crossed.db");
        let mut crew = Self {
            connections: vec![(engine.open)(&main, settings)?],
        };
        crew.grow(engine, &main, settings)?;
        for (at, connection) in crew.connections.iter_mut().enumerate() {
            for name in ["east", "west"] {
                let path = workspace.database(engine, &format!("crossed-{name}.db"));
                connection.batch(&format!(
                    "ATTACH '{}' AS {name}; PRAGMA {name}.journal_mode = WAL;
                     PRAGMA {name}.synchronous = FULL",
                    path.display().to_string().replace('\'', "''")
                ))?;
                if at == 0 {
                    connection.batch(&format!(
                        "CREATE TABLE {name}.{name} (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
                         WITH RECURSIVE ids (id) AS
                           (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < {CROSSED_ROWS})
                         INSERT INTO {name} SELECT id, 0 FROM ids"
                    ))?;
                }
            }
        }
        Ok(crew)
    }

    fn grow(&mut self, engine: &Engine, path: &std::path::Path, settings: &Settings) -> Result<()> {
        while self.connections.len() < super::THREADS_MAX {
            self.connections.push((engine.open)(path, settings)?);
        }
        Ok(())
    }

    /// How long commits held the engine's commit lock since the last call.
    pub fn commit_lock(&self) -> Option<CommitLock> {
        self.connections.first()?.commit_lock()
    }

    /// Works for `time` on so many threads and adds what they did to `record`.
    pub fn work(
        &mut self,
        job: Job,
        threads: usize,
        seed: u64,
        time: Duration,
        record: &mut Record,
    ) -> Result<()> {
        let barrier = Barrier::new(threads);
        let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
            let barrier = &barrier;
            let handles: Vec<_> = self
                .connections
                .iter_mut()
                .take(threads)
                .enumerate()
                .map(|(i, connection)| {
                    let seed = seed.wrapping_mul(64).wrapping_add(i as u64);
                    scope.spawn(move || write(connection.as_mut(), job, i, seed, time, barrier))
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| handle.join().map_err(|_| anyhow!("a writer panicked"))?)
                .collect()
        });
        let mut nanos = Vec::new();
        let mut reads = 0;
        let mut longest = Duration::ZERO;
        let mut slowest = usize::MAX;
        for outcome in outcomes {
            let outcome = outcome?;
            longest = longest.max(outcome.elapsed);
            slowest = slowest.min(outcome.nanos.len());
            record.aborts += outcome.aborts;
            reads += outcome.reads;
            nanos.extend(outcome.nanos);
        }
        let commits = nanos.len();
        record.commits += commits as u64;
        record.rates.push(commits as f64 / longest.as_secs_f64());
        record.reads.push(reads as f64 / longest.as_secs_f64());
        let mean = (commits as f64 / threads as f64).max(1.0);
        record.slowest.push(slowest as f64 / mean);
        record.samples.push_round(nanos);
        Ok(())
    }
}

fn write(
    connection: &mut dyn Side,
    job: Job,
    actor: usize,
    seed: u64,
    time: Duration,
    barrier: &Barrier,
) -> Result<Outcome> {
    let table = match job {
        Job::OneTable | Job::NowAndThen => 0,
        _ => actor + 1,
    };
    let insert = format!("INSERT INTO w{table} (actor, note) VALUES (?1, ?2)");
    let mut laps = Laps::with_capacity(1 << 16);
    barrier.wait();
    let started = Instant::now();
    let end = started + time;
    let (mut aborts, mut reads) = (0, 0);
    match job {
        Job::OneTable | Job::OneTableEach => {
            connection.insert_until(&insert, actor as i64, end, &mut laps)?;
        }
        Job::HotRow => {
            connection.update_until("UPDATE hot SET n = n + 1 WHERE id = 1", end, &mut laps)?
        }
        Job::NowAndThen if actor == 0 => {
            let mut unmeasured = Laps::with_capacity(1 << 16);
            connection.insert_until(&insert, actor as i64, end, &mut unmeasured)?;
        }
        Job::NowAndThen => {
            connection.insert_now_and_then(&insert, actor as i64, seed, end, &mut laps)?;
        }
        Job::BesideCheckpoints { .. } if actor == 0 => {
            while Instant::now() < end {
                connection.rows("PRAGMA wal_checkpoint(PASSIVE)")?;
            }
        }
        Job::BesideReaders { .. } if actor < READERS => {
            while Instant::now() < end {
                connection.rows(READ)?;
                reads += 1;
            }
        }
        Job::BesideCheckpoints { rows } | Job::BesideReaders { rows } => {
            let kind = Transactions::Updates { each: 1, rows };
            aborts = connection.transactions_until(kind, seed, end, &mut laps)?;
        }
        Job::Crossing(kind) => {
            aborts = connection.cross_until(kind, CROSSED_ROWS, seed, end, &mut laps)?;
        }
        Job::Explicit(kind) => {
            aborts = connection
                .transactions_until(kind, seed, end, &mut laps)
                .with_context(|| format!("a transaction of {kind:?}"))?;
        }
    }
    Ok(Outcome {
        nanos: laps.into_nanos(),
        aborts,
        reads,
        elapsed: started.elapsed(),
    })
}
