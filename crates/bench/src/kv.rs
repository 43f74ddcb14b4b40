//! `store`: the key-value interface beside a SQLite table of keys and values,
//! both in the mode where a commit is written but not synced.

use crate::compare::Options;
use crate::data::scattered;
use crate::measure::{Contestant, Laps, Plan, interleave};
use crate::report::{Metric, Report};
use crate::side::{Durability, ENGINES, Settings, Sum, Workspace};
use anyhow::{Context, Result};
use fulgurite_store as store;
use store::{Isolation, Key, KeyKind, Seek};

const TRANSACTION: usize = 1_000;
const VALUE_BYTES: usize = 100;
const RANGE: usize = 100;

type Entry = ([u8; 16], Vec<u8>);

/// What both sides can do. Every method laps once an operation.
trait KeyValue {
    /// One transaction a batch, one lap a transaction.
    fn put(&mut self, entries: &[Entry], laps: &mut Laps) -> Result<Sum>;
    fn get(&mut self, keys: &[[u8; 16]], laps: &mut Laps) -> Result<Sum>;
    /// Reads the entries from each key on.
    fn range(&mut self, starts: &[[u8; 16]], laps: &mut Laps) -> Result<Sum>;
}

struct Ours {
    txn: store::Txn,
    tree: store::Tree,
    value: Vec<u8>,
}

impl Ours {
    fn open(workspace: &Workspace, settings: &Settings) -> Result<Self> {
        let options = store::Options {
            cache_bytes: settings.cache_bytes,
            durability: store::Durability::Normal,
            ..store::Options::default()
        };
        let store = store::Store::open(workspace.database(&ENGINES[0], "kv.db"), options)?;
        let tree = store.create_family("kv", KeyKind::Bytes)?;
        Ok(Self {
            txn: store.txn(),
            tree,
            value: Vec::new(),
        })
    }
}

impl KeyValue for Ours {
    fn put(&mut self, entries: &[Entry], laps: &mut Laps) -> Result<Sum> {
        laps.start();
        for batch in entries.chunks(TRANSACTION) {
            self.txn.begin(Isolation::default())?;
            for (key, value) in batch {
                self.txn.put(&self.tree, Key::Bytes(key), value)?;
            }
            self.txn.commit()?;
            laps.lap();
        }
        Ok(Some(entries.len() as u64))
    }

    fn get(&mut self, keys: &[[u8; 16]], laps: &mut Laps) -> Result<Sum> {
        let mut sum = 0;
        laps.start();
        for key in keys {
            self.txn.begin_read()?;
            let found = self
                .txn
                .get_into(&self.tree, Key::Bytes(key), &mut self.value)?;
            self.txn.rollback();
            if found {
                sum += digest(&self.value);
            }
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn range(&mut self, starts: &[[u8; 16]], laps: &mut Laps) -> Result<Sum> {
        let mut sum = 0;
        laps.start();
        for start in starts {
            self.txn.begin_read()?;
            let mut cursor = self.txn.cursor(&self.tree)?;
            let mut there = cursor.seek(Seek::AtLeast(Key::Bytes(start)))?;
            for _ in 0..RANGE {
                if !there {
                    break;
                }
                sum += digest(cursor.value()?) + u64::from(cursor.key_bytes()?[0]);
                there = cursor.next()?;
            }
            drop(cursor);
            self.txn.rollback();
            laps.lap();
        }
        Ok(Some(sum))
    }
}

struct Sqlite {
    connection: rusqlite::Connection,
}

impl Sqlite {
    fn open(workspace: &Workspace, settings: &Settings) -> Result<Self> {
        let path = workspace.database(&ENGINES[1], "kv.db");
        let connection = crate::sqlite::connect(&path, settings)?;
        connection.execute_batch(
            "CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        )?;
        Ok(Self { connection })
    }
}

impl KeyValue for Sqlite {
    fn put(&mut self, entries: &[Entry], laps: &mut Laps) -> Result<Sum> {
        let cached = |sql| self.connection.prepare_cached(sql);
        let mut begin = cached("BEGIN IMMEDIATE")?;
        let mut commit = cached("COMMIT")?;
        let mut put = cached("INSERT OR REPLACE INTO kv (key, value) VALUES (?1, ?2)")?;
        laps.start();
        for batch in entries.chunks(TRANSACTION) {
            begin.execute([])?;
            for (key, value) in batch {
                put.execute(rusqlite::params![key, value])?;
            }
            commit.execute([])?;
            laps.lap();
        }
        Ok(Some(entries.len() as u64))
    }

    fn get(&mut self, keys: &[[u8; 16]], laps: &mut Laps) -> Result<Sum> {
        let mut get = self
            .connection
            .prepare_cached("SELECT value FROM kv WHERE key = ?1")?;
        let mut sum = 0;
        laps.start();
        for key in keys {
            let mut rows = get.query([key])?;
            if let Some(row) = rows.next()? {
                sum += digest(row.get_ref(0)?.as_blob()?);
            }
            drop(rows);
            laps.lap();
        }
        Ok(Some(sum))
    }

    fn range(&mut self, starts: &[[u8; 16]], laps: &mut Laps) -> Result<Sum> {
        let mut range = self
            .connection
            .prepare_cached("SELECT key, value FROM kv WHERE key >= ?1 ORDER BY key LIMIT ?2")?;
        let mut sum = 0;
        laps.start();
        for start in starts {
            let mut rows = range.query(rusqlite::params![start, RANGE as i64])?;
            while let Some(row) = rows.next()? {
                let first = row.get_ref(0)?.as_blob()?[0];
                sum += digest(row.get_ref(1)?.as_blob()?) + u64::from(first);
            }
            drop(rows);
            laps.lap();
        }
        Ok(Some(sum))
    }
}

/// Touches both ends of a value.
fn digest(value: &[u8]) -> u64 {
    let ends = [value.first(), value.last()];
    value.len() as u64
        + ends
            .into_iter()
            .flatten()
            .map(|b| u64::from(*b))
            .sum::<u64>()
}

/// Runs all metrics and adds them to the report.
pub fn run(options: Options, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let settings = Settings::new(options.cache_bytes, Durability::Normal);
    let mut ours = Ours::open(workspace, &settings)?;
    let mut sqlite = Sqlite::open(workspace, &settings)?;
    let mut sides: [&mut dyn KeyValue; 2] = [&mut ours, &mut sqlite];

    let what = "puts in transactions of 1,000, ascending keys";
    puts(
        ("put_ascending", what),
        options,
        0,
        &mut sides,
        &mut rng,
        report,
        |i| u64::MAX / 2 + i,
    )?;
    let what = "puts in transactions of 1,000, scattered keys";
    puts(
        ("put", what),
        options,
        1,
        &mut sides,
        &mut rng,
        report,
        scattered,
    )?;

    let rows = options.rows as u64;
    let some_key = move |rng: &mut fastrand::Rng| key(1, scattered(rng.u64(..rows)));
    let plan = Plan::new(options.effort, 400, 500);
    let keys = |rng: &mut fastrand::Rng| -> Vec<_> {
        (0..plan.operations).map(|_| some_key(rng)).collect()
    };
    let [a, b] = interleave(
        plan,
        &mut rng,
        keys,
        contestants(&mut sides, |side, keys: &Vec<_>, laps| side.get(keys, laps)),
    )?;
    report.push(Metric::latency(
        "get",
        "one key, a read transaction each",
        &a,
        &b,
    ));

    let plan = Plan::new(options.effort, 200, 50);
    let keys = |rng: &mut fastrand::Rng| -> Vec<_> {
        (0..plan.operations).map(|_| some_key(rng)).collect()
    };
    let [a, b] = interleave(
        plan,
        &mut rng,
        keys,
        contestants(&mut sides, |side, keys: &Vec<_>, laps| {
            side.range(keys, laps)
        }),
    )?;
    report.push(Metric::latency(
        "range",
        "100 entries from a key on",
        &a,
        &b,
    ));

    mixed(options, &mut sides, &mut rng, report)
}

/// Loads `options.rows` entries in rounds of ten transactions.
fn puts(
    (name, what): (&str, &str),
    options: Options,
    family: u8,
    sides: &mut [&mut dyn KeyValue; 2],
    rng: &mut fastrand::Rng,
    report: &mut Report,
    order: impl Fn(u64) -> u64,
) -> Result<()> {
    let round = 10 * TRANSACTION;
    let plan = Plan {
        rounds: options.rows.div_ceil(round),
        operations: round / TRANSACTION,
    };
    let mut next = 0;
    let inputs = |rng: &mut fastrand::Rng| -> Vec<Entry> {
        let first = next;
        next += round as u64;
        (first..next)
            .map(|i| (key(family, order(i)), value(rng)))
            .collect()
    };
    let run = |side: &mut dyn KeyValue, entries: &Vec<_>, laps: &mut Laps| side.put(entries, laps);
    let [ours, sqlite] = interleave(plan, rng, inputs, contestants(sides, run))?;
    let rates = [&ours, &sqlite].map(|samples| samples.rates(TRANSACTION as f64));
    report.push(Metric::rate(name, what, "puts/s", &rates[0], &rates[1]));
    let latency = format!("{name}_transaction");
    report.push(Metric::latency(
        &latency,
        "one such transaction",
        &ours,
        &sqlite,
    ));
    Ok(())
}

/// Nineteen gets, then one put in a transaction of its own.
fn mixed(
    options: Options,
    sides: &mut [&mut dyn KeyValue; 2],
    rng: &mut fastrand::Rng,
    report: &mut Report,
) -> Result<()> {
    type Step = (Vec<[u8; 16]>, Entry);
    let rows = options.rows as u64;
    let plan = Plan::new(options.effort, 200, 500);
    let inputs = |rng: &mut fastrand::Rng| -> Vec<Step> {
        (0..plan.operations / 20)
            .map(|_| {
                let mut some_key = || key(1, scattered(rng.u64(..rows)));
                let gets = (0..19).map(|_| some_key()).collect();
                let put = some_key();
                (gets, (put, value(rng)))
            })
            .collect()
    };
    let run = |side: &mut dyn KeyValue, steps: &Vec<Step>, laps: &mut Laps| -> Result<Sum> {
        let mut sum = 0;
        for (gets, put) in steps {
            sum += side.get(gets, laps)?.context("gets give a sum")?;
            side.put(std::slice::from_ref(put), laps)?;
        }
        Ok(Some(sum))
    };
    let [ours, sqlite] = interleave(plan, rng, inputs, contestants(sides, run))?;
    let rates = [&ours, &sqlite].map(|samples| samples.rates(1.0));
    let what = "95 % gets and 5 % puts, each a transaction";
    report.push(Metric::rate(
        "mixed",
        what,
        "operations/s",
        &rates[0],
        &rates[1],
    ));
    Ok(())
}

fn contestants<'a, I>(
    sides: &'a mut [&mut dyn KeyValue; 2],
    run: impl Fn(&mut dyn KeyValue, &I, &mut Laps) -> Result<Sum> + Copy + 'a,
) -> [Contestant<'a, I>; 2] {
    sides
        .each_mut()
        .map(|side| -> Contestant<'a, I> { Box::new(move |input, laps| run(*side, input, laps)) })
}

/// A family's first byte, then the number in an order of its own.
fn key(family: u8, number: u64) -> [u8; 16] {
    let mut key = *b"?entry::........";
    key[0] = family;
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Half random, half text: what compresses as records do.
fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut value = vec![b'v'; VALUE_BYTES];
    rng.fill(&mut value[..VALUE_BYTES / 2]);
    value
}
