//! Key-value puts, one a transaction, each thread on a family of its own, in the
//! mode where a commit is written and not synced; beside redb with
//! `Durability::None`.

use crate::compare::Options;
use crate::measure::toss;
use crate::report::{Bar, Metric, Report};
use crate::side::{ENGINES, Workspace};
use crate::stats;
use anyhow::{Result, anyhow};
use fulgurite_store as store;
use redb::TableDefinition;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use store::{Key, KeyKind};

const THREADS: [usize; 4] = [1, 2, 4, 8];
const VALUE: [u8; 100] = [b'v'; 100];
/// Puts between two looks at the clock.
const STRIDE: u64 = 16;

/// One thread's puts until a moment; how many.
trait Putter: Send {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64>;
}

struct Ours {
    txn: store::Txn,
    family: store::Tree,
}

impl Putter for Ours {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64> {
        let mut next = first;
        while Instant::now() < end {
            for _ in 0..STRIDE {
                self.txn.begin_statement(&[&self.family])?;
                let key = crate::data::scattered(next).to_be_bytes();
                self.txn.put(&self.family, Key::Bytes(&key), &VALUE)?;
                self.txn.commit()?;
                next += 1;
            }
        }
        Ok(next - first)
    }
}

struct Redb<'d> {
    database: &'d redb::Database,
    table: String,
}

impl Putter for Redb<'_> {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64> {
        let mut next = first;
        while Instant::now() < end {
            for _ in 0..STRIDE {
                let mut txn = self.database.begin_write()?;
                txn.set_durability(redb::Durability::None)?;
                {
                    let definition = TableDefinition::<&[u8], &[u8]>::new(&self.table);
                    let mut table = txn.open_table(definition)?;
                    let key = crate::data::scattered(next).to_be_bytes();
                    table.insert(key.as_slice(), VALUE.as_slice())?;
                }
                txn.commit()?;
                next += 1;
            }
        }
        Ok(next - first)
    }
}

/// Puts a second of all threads.
fn work<P: Putter>(putters: &mut [P], first: u64, time: Duration) -> Result<f64> {
    let barrier = Barrier::new(putters.len());
    let started = Instant::now();
    let counts: Vec<Result<(u64, Duration)>> = thread::scope(|scope| {
        let barrier = &barrier;
        let handles: Vec<_> = putters
            .iter_mut()
            .map(|putter| {
                scope.spawn(move || {
                    barrier.wait();
                    let began = Instant::now();
                    let count = putter.put_until(first, began + time)?;
                    Ok((count, began.elapsed()))
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| anyhow!("a writer panicked"))?)
            .collect()
    });
    let (mut puts, mut longest) = (0, Duration::ZERO);
    for count in counts {
        let (count, elapsed) = count?;
        puts += count;
        longest = longest.max(elapsed);
    }
    debug_assert!(longest <= started.elapsed());
    Ok(puts as f64 / longest.as_secs_f64())
}

/// Measures all numbers of threads, both sides in turns.
pub fn run(
    options: Options,
    time: Duration,
    rounds: usize,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let most = THREADS.into_iter().max().unwrap_or(1);
    let opened = store::Options {
        cache_bytes: options.cache_bytes,
        durability: store::Durability::Normal,
        ..store::Options::default()
    };
    let store = store::Store::open(workspace.database(&ENGINES[0], "families.db"), opened)?;
    let mut ours = Vec::new();
    for family in 0..most {
        let family = store.create_family(&format!("family {family}"), KeyKind::Bytes)?;
        let txn = store.txn();
        ours.push(Ours { txn, family });
    }
    let database = redb::Builder::new()
        .set_cache_size(options.cache_bytes)
        .create(workspace.root().join("families.redb"))?;
    let mut redb: Vec<_> = (0..most)
        .map(|family| Redb {
            database: &database,
            table: format!("family {family}"),
        })
        .collect();
    let mut rates = vec![[Vec::new(), Vec::new()]; THREADS.len()];
    let mut first = 0;
    // Both warm: all families hold something, and the caches have been touched.
    work(&mut ours, first, 2 * time)?;
    work(&mut redb, first, 2 * time)?;
    first += 1 << 32;
    // The numbers of threads take turns too, so that no drift favours one.
    for _ in 0..rounds {
        for (at, threads) in THREADS.into_iter().enumerate() {
            for side in toss(&mut rng) {
                let rate = match side {
                    0 => work(&mut ours[..threads], first, time)?,
                    _ => work(&mut redb[..threads], first, time)?,
                };
                rates[at][side].push(rate);
            }
            first += 1 << 32;
        }
    }
    tell(&rates, report);
    if let Some(log) = store.stats().log {
        report.note(format!(
            "families: {} records, {} writes, {} parks, {} waits for a checkpoint, {} switches",
            log.records, log.writes, log.parks, log.pressure_waits, log.switches
        ));
    }
    let lock = store.stats().commit_lock;
    report.note(format!(
        "families: commit lock held p50 {} ns, p99 {} ns, longest {} ns ({} measured)",
        lock.p50_ns, lock.p99_ns, lock.longest_ns, lock.measured
    ));
    Ok(())
}

fn tell(rates: &[[Vec<f64>; 2]], report: &mut Report) {
    for ([ours, redb], threads) in rates.iter().zip(THREADS) {
        let name = format!("families_{threads}_redb");
        let what = format!("{threads} threads, a put a transaction, a family each; beside redb");
        report.push(Metric::rate(&name, &what, "puts/s", ours, redb));
    }
    let by = |a: usize, b: usize| stats::pairs_of(&rates[a][0], &rates[b][0]).median;
    let last = THREADS.len() - 1;
    let redb = stats::pairs_of(&rates[last][0], &rates[last][1]).median;
    report.bar(Bar::at_least(
        "families, 8 threads × own single thread",
        1.6,
        by(last, 0),
    ));
    report.bar(Bar::at_least(
        "families, 8 threads × 4 threads (no fall)",
        0.97,
        by(last, last - 1),
    ));
    report.bar(Bar::at_least("families, 8 threads × redb", 3.0, redb));
}
