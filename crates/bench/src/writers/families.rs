//! Key-value puts, one a transaction, each thread on a family of its own, in the
//! mode where a commit is written and not synced; beside redb with
//! `Durability::None`. Once each put is a new key in no order, so that the families
//! outgrow the cache and most of the work is with pages, once the keys ascend, once each
//! family keeps its 10,000 keys, and once that in explicit transactions.

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

/// Which keys are put, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    /// In the names of figures.
    label: &'static str,
    /// In what is said of them.
    what: &'static str,
    order: Order,
    /// Begins an explicit transaction for each put.
    explicit: bool,
}

/// Which key comes after another.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// A new one, anywhere.
    New,
    /// A new one, behind all others.
    Ascending,
    /// Any of so many.
    Kept(u64),
}

pub(super) const ASCENDING: Keys = Keys {
    label: "families_ascending",
    what: "families with ascending keys",
    order: Order::Ascending,
    explicit: false,
};

pub(super) const KEPT: Keys = Keys {
    label: "families_kept",
    what: "families of 10,000 keys",
    order: Order::Kept(10_000),
    explicit: false,
};

const WORKLOADS: [Keys; 4] = [
    Keys {
        label: "families",
        what: "families",
        order: Order::New,
        explicit: false,
    },
    ASCENDING,
    KEPT,
    Keys {
        label: "families_explicit",
        what: "families of 10,000 keys, explicit transactions",
        order: Order::Kept(10_000),
        explicit: true,
    },
];

impl Keys {
    /// The key of a number.
    fn key(self, number: u64) -> [u8; 8] {
        let scattered = crate::data::scattered(number);
        let key = match self.order {
            Order::New => scattered,
            Order::Ascending => number,
            Order::Kept(count) => crate::data::scattered(scattered % count),
        };
        key.to_be_bytes()
    }
}

/// One thread's puts until a moment; how many.
pub(super) trait Putter: Send {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64>;
}

pub(super) struct Ours {
    txn: store::Txn,
    family: store::Tree,
    keys: Keys,
}

impl Ours {
    /// On a new family of this name.
    pub(super) fn new(store: &store::Store, family: &str, keys: Keys) -> Result<Self> {
        Ok(Self {
            txn: store.txn(),
            family: store.create_family(family, KeyKind::Bytes)?,
            keys,
        })
    }

    fn put(&mut self, number: u64) -> Result<()> {
        match self.keys.explicit {
            true => self.txn.begin(store::Isolation::Serializable)?,
            false => self.txn.begin_statement(&[&self.family])?,
        }
        let key = self.keys.key(number);
        self.txn.put(&self.family, Key::Bytes(&key), &VALUE)?;
        Ok(self.txn.commit()?)
    }
}

impl Putter for Ours {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64> {
        let mut next = first;
        while Instant::now() < end {
            for _ in 0..STRIDE {
                self.put(next)?;
                next += 1;
            }
        }
        Ok(next - first)
    }
}

/// One thread that goes round all families, as a control: it has as many pages to work on
/// as eight threads have, and a single one with its one family has an eighth of them.
struct Round<'o>(&'o mut [Ours]);

impl Putter for Round<'_> {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64> {
        let mut next = first;
        while Instant::now() < end {
            for ours in self.0.iter_mut() {
                ours.put(next)?;
                next += 1;
            }
        }
        Ok(next - first)
    }
}

struct Redb<'d> {
    database: &'d redb::Database,
    table: String,
    keys: Keys,
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
                    let key = self.keys.key(next);
                    table.insert(key.as_slice(), VALUE.as_slice())?;
                }
                txn.commit()?;
                next += 1;
            }
        }
        Ok(next - first)
    }
}

impl<P: Putter + ?Sized> Putter for Box<P> {
    fn put_until(&mut self, first: u64, end: Instant) -> Result<u64> {
        (**self).put_until(first, end)
    }
}

/// Puts a second of all threads.
pub(super) fn work<P: Putter>(putters: &mut [P], first: u64, time: Duration) -> Result<f64> {
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

/// A store whose commits are written and not synced.
pub(super) fn open(options: Options, workspace: &Workspace, name: &str) -> Result<store::Store> {
    let opened = store::Options {
        cache_bytes: options.cache_bytes,
        durability: store::Durability::Normal,
        ..store::Options::default()
    };
    let path = workspace.database(&ENGINES[0], name);
    Ok(store::Store::open(path, opened)?)
}

/// Measures all workloads.
pub fn run(
    options: Options,
    time: Duration,
    rounds: usize,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    WORKLOADS
        .into_iter()
        .try_for_each(|keys| measure(keys, options, time, rounds, workspace, report))
}

/// Measures all numbers of threads, both sides in turns.
fn measure(
    keys: Keys,
    options: Options,
    time: Duration,
    rounds: usize,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let most = THREADS.into_iter().max().unwrap_or(1);
    let store = open(options, workspace, &format!("{}.db", keys.label))?;
    let mut ours = Vec::new();
    for family in 0..most {
        ours.push(Ours::new(&store, &format!("family {family}"), keys)?);
    }
    let database = redb::Builder::new()
        .set_cache_size(options.cache_bytes)
        .create(workspace.root().join(format!("{}.redb", keys.label)))?;
    let mut redb: Vec<_> = (0..most)
        .map(|family| Redb {
            database: &database,
            table: format!("family {family}"),
            keys,
        })
        .collect();
    let mut rates = vec![[Vec::new(), Vec::new()]; THREADS.len()];
    let mut alone = Vec::new();
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
        alone.push(work(&mut [Round(&mut ours)], first, time)?);
        first += 1 << 32;
    }
    tell(keys, &rates, report);
    let eight = &rates[THREADS.len() - 1][0];
    report.note(format!(
        "{}: one thread that goes round all of them, as a control: {:.0} puts/s, eight threads {:.2} × that",
        keys.what,
        stats::median(&alone),
        stats::pairs_of(eight, &alone).median
    ));
    if let Some(log) = store.stats().log {
        report.note(format!(
            "{}: {} records, {} leases, {} parks, {} waits for a checkpoint, {} switches",
            keys.what, log.records, log.leases, log.parks, log.pressure_waits, log.switches
        ));
    }
    let lock = store.stats().commit_lock;
    report.note(format!(
        "{}: commit lock held p50 {} ns, p99 {} ns, longest {} ns ({} measured)",
        keys.what, lock.p50_ns, lock.p99_ns, lock.longest_ns, lock.measured
    ));
    Ok(())
}

fn tell(keys: Keys, rates: &[[Vec<f64>; 2]], report: &mut Report) {
    let Keys { label, what, .. } = keys;
    for ([ours, redb], threads) in rates.iter().zip(THREADS) {
        let name = format!("{label}_{threads}_redb");
        let what = format!("{threads} threads, a put a transaction, {what}, one each; beside redb");
        report.push(Metric::rate(&name, &what, "puts/s", ours, redb));
    }
    let by = |a: usize, b: usize| stats::pairs_of(&rates[a][0], &rates[b][0]).median;
    let last = THREADS.len() - 1;
    let redb = stats::pairs_of(&rates[last][0], &rates[last][1]).median;
    for (case, bar, figure) in [
        ("own single thread", 1.6, by(last, 0)),
        ("4 threads (no fall)", 0.97, by(last, last - 1)),
        ("redb", 3.0, redb),
    ] {
        let case = format!("{what}, 8 threads × {case}");
        report.bar(Bar::at_least(&case, bar, figure));
    }
}
