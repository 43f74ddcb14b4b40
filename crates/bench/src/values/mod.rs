//! `values`: rows with large texts and blobs, each kind and size in a database of its own,
//! beside SQLite.
//!
//! Commits are durable when they return. Operations are as many a round as come to about the
//! same number of bytes, whatever the size of a body. After each case that changes rows, all
//! bytes of all rows must be the same on both sides.

mod cases;
mod data;

use crate::compare::Options;
use crate::measure::{Contestant, Laps, Pair, Plan, interleave};
use crate::report::{Better, Metric, Report};
use crate::side::{Body, Commits, Durability, ENGINES, Part, Settings, Side, Workspace};
use anyhow::{Context, Result, ensure};
use cases::{CASES, DELETE, INSERT, INSERT_RECORD, TABLES, Table, Work};
use data::{Bodies, Kind};
use std::ops::RangeInclusive;

/// Rounds of a case, and of one that goes over all rows.
const ROUNDS: usize = 12;
const SCANS: usize = 7;
/// Bytes of bodies that are changed or read in a round, about, and how many rows at least and
/// at most.
const TRANSACTION: (usize, RangeInclusive<usize>) = (2 << 20, 3..=400);
const EACH: (usize, RangeInclusive<usize>) = (1 << 20, 3..=20);
const READ: (usize, RangeInclusive<usize>) = (4 << 20, 6..=400);
/// Bytes that a handle reads at a time, and that it reads or writes in the middle.
const PARTS: usize = 16 << 10;
const MIDDLE: usize = 1 << 10;

/// What `values` is told beside what all commands are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sizes of bodies in KiB, 2 at least
    #[arg(long, value_delimiter = ',', default_value = "2,10,64,1024")]
    sizes: Vec<usize>,
    /// Kinds of bodies
    #[arg(long, value_enum, value_delimiter = ',', default_value = "blob,text")]
    kinds: Vec<Kind>,
    /// Which cases, by their names without kind and size [default: all]
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Bodies of a side, in MiB
    #[arg(long, default_value_t = 40)]
    mib: usize,
}

/// Measures the cases of these names, or all, and adds them to the report.
pub fn run(
    options: Options,
    args: &Args,
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    for name in &args.cases {
        ensure!(
            CASES.iter().any(|(case, ..)| case == name),
            "there is no case {name}"
        );
    }
    ensure!(
        args.sizes.iter().all(|kib| (2..=65_536).contains(kib)),
        "--sizes must be from 2 to 65536"
    );
    ensure!(
        (1..=65_536).contains(&args.mib),
        "--mib must be from 1 to 65536"
    );
    let wanted = |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    for kind in &args.kinds {
        for kib in &args.sizes {
            let label = format!("{}_{}", kind.name(), size_name(*kib));
            let database = format!("values-{label}.db");
            let mut rng = fastrand::Rng::with_seed(options.seed);
            let bodies = Bodies::new(*kind, kib << 10, &mut rng);
            // Three quarters of the bytes are in one table.
            let rows = ((args.mib << 20) / bodies.size).max(8);
            let rows = [rows - rows / 4, rows / 4];
            let settings = Settings::new(options.cache_bytes, Durability::Full);
            let mut sides = workspace.open(&database, &settings)?;
            load(&mut sides, &bodies, rows, &mut rng)?;
            let mut bench = Bench {
                pair: Pair { sides, rng, report },
                bodies,
                rows,
                workspace,
                database: &database,
                effort: options.effort,
            };
            bench.compare()?;
            for (name, what, work) in CASES.iter().filter(|(name, ..)| wanted(name)) {
                let name = format!("{label}_{name}");
                bench
                    .case((&name, what), *work)
                    .with_context(|| format!("in the case {name}"))?;
            }
            drop(bench);
            workspace.remove(&database)?;
        }
    }
    Ok(())
}

fn size_name(kib: usize) -> String {
    if kib.is_multiple_of(1_024) {
        format!("{}m", kib / 1_024)
    } else {
        format!("{kib}k")
    }
}

/// Both sides with the same rows, brought into their files.
fn load(
    sides: &mut [Box<dyn Side>; 2],
    bodies: &Bodies,
    rows: [usize; 2],
    rng: &mut fastrand::Rng,
) -> Result<()> {
    for side in sides.iter_mut() {
        side.batch(TABLES)?;
    }
    for (sql, rows) in [(INSERT, rows[0]), (INSERT_RECORD, rows[1])] {
        let keys: Vec<i64> = (1..=rows as i64).collect();
        // A transaction of a few megabytes at a time: no side holds all of it.
        for keys in keys.chunks((4 << 20) / bodies.size + 1) {
            let rows = with_bodies(keys, bodies, rng);
            for side in sides.iter_mut() {
                side.changes(sql, &rows, Commits::One, &mut Laps::with_capacity(1))?;
            }
        }
    }
    sides.iter_mut().try_for_each(|side| side.checkpoint())
}

type Row = (i64, Option<Body>);

fn with_bodies(keys: &[i64], bodies: &Bodies, rng: &mut fastrand::Rng) -> Vec<Row> {
    keys.iter()
        .map(|key| (*key, Some(bodies.make(rng))))
        .collect()
}

struct Bench<'a> {
    pair: Pair<'a>,
    bodies: Bodies,
    /// Rows of `documents` and of `records`.
    rows: [usize; 2],
    workspace: &'a Workspace,
    database: &'a str,
    effort: f64,
}

impl Bench<'_> {
    fn case(&mut self, name: (&str, &str), work: Work) -> Result<()> {
        match work {
            Work::Size => self.size(name),
            Work::Insert(commits) => self.insert(name, commits),
            Work::Change(table, sql, commits) => {
                self.change(name, (table, sql), commits, |keys, _, _| {
                    keys.iter().map(|key| (*key, None)).collect()
                })
            }
            Work::Replace(sql, commits) => {
                self.change(name, (Table::Documents, sql), commits, with_bodies)
            }
            Work::Delete(commits) => self.delete(name, commits),
            Work::Lookup(table, sql) => self.read(name, table, |side, keys, laps| {
                side.lookups(sql, keys, laps)
            }),
            Work::Scan(sql) => self.scan(name, sql),
            Work::Search => {
                let condition = self.bodies.condition();
                self.scan(
                    name,
                    &format!("SELECT count(*) FROM documents WHERE {condition}"),
                )
            }
            Work::Copy => self.copy(name),
            Work::ReadParts => self.read(name, Table::Documents, |side, keys, laps| {
                side.read_parts(keys, Part::All(PARTS), laps)
            }),
            Work::ReadPart => self.read(name, Table::Documents, |side, keys, laps| {
                side.read_parts(keys, Part::Middle(MIDDLE), laps)
            }),
            Work::WritePart(commits) => self.write_part(name, commits),
            Work::Vacuum => self.vacuum(name),
        }
    }

    /// How many rows come to so many bytes.
    fn count(&self, (bytes, rows): (usize, RangeInclusive<usize>)) -> usize {
        (bytes / self.bodies.size).clamp(*rows.start(), *rows.end())
    }

    fn changed(&self, commits: Commits) -> usize {
        self.count(match commits {
            Commits::One => TRANSACTION,
            Commits::Each => EACH,
        })
    }

    fn plan(&self, rounds: usize, operations: usize) -> Plan {
        Plan::new(self.effort, rounds, operations)
    }

    /// All bytes of all rows are the same.
    fn compare(&mut self) -> Result<()> {
        for table in ["documents", "records"] {
            let sql = format!("SELECT * FROM {table} ORDER BY id");
            let [ours, sqlite] = self.pair.sides.each_mut().map(|side| side.digest(&sql));
            ensure!(ours? == sqlite?, "the sides hold other rows in {table}");
        }
        Ok(())
    }

    fn size(&mut self, (name, what): (&str, &str)) -> Result<()> {
        let mut bytes = [0.0; 2];
        for side in 0..2 {
            self.pair.sides[side].checkpoint()?;
            let path = self.workspace.database(&ENGINES[side], self.database);
            bytes[side] = std::fs::metadata(path)?.len() as f64;
        }
        let metric = Metric::single(name, what, Better::Lower, "bytes", bytes[0], bytes[1]);
        self.pair.report.push(metric);
        Ok(())
    }

    fn insert(&mut self, name: (&str, &str), commits: Commits) -> Result<()> {
        let count = self.changed(commits);
        let plan = self.plan(ROUNDS, count);
        let rows = self.rows[0];
        let bodies = &self.bodies;
        let mut next = 1 + rows as i64;
        let draw = |rng: &mut fastrand::Rng| {
            let keys: Vec<i64> = (next..).take(count).collect();
            next += count as i64;
            with_bodies(&keys, bodies, rng)
        };
        self.pair.measure(name, plan, draw, |side, rows, laps| {
            side.changes(INSERT, rows, commits, laps)
        })?;
        self.compare()?;
        for side in &mut self.pair.sides {
            side.batch(&format!("DELETE FROM documents WHERE id > {rows}"))?;
        }
        Ok(())
    }

    fn change(
        &mut self,
        name: (&str, &str),
        (table, sql): (Table, &str),
        commits: Commits,
        rows: impl Fn(&[i64], &Bodies, &mut fastrand::Rng) -> Vec<Row>,
    ) -> Result<()> {
        let count = self.changed(commits);
        let plan = self.plan(ROUNDS, count);
        let bodies = &self.bodies;
        let keys = self.rows[table as usize];
        let draw = |rng: &mut fastrand::Rng| {
            let keys = crate::data::keys(rng, keys, count);
            rows(&keys, bodies, rng)
        };
        self.pair.measure(name, plan, draw, |side, rows, laps| {
            side.changes(sql, rows, commits, laps)
        })?;
        self.compare()
    }

    fn delete(&mut self, name: (&str, &str), commits: Commits) -> Result<()> {
        let count = self.changed(commits);
        let plan = self.plan(ROUNDS, count);
        let first = 1 + self.rows[0] as i64;
        let bodies = &self.bodies;
        let draw = |rng: &mut fastrand::Rng| {
            let keys: Vec<i64> = (first..).take(count).collect();
            let mut gone: Vec<Row> = keys.iter().map(|key| (*key, None)).collect();
            rng.shuffle(&mut gone);
            (with_bodies(&keys, bodies, rng), gone)
        };
        let run = |side: &mut dyn Side, (rows, gone): &(Vec<Row>, Vec<Row>), laps: &mut Laps| {
            side.changes(INSERT, rows, Commits::One, &mut Laps::with_capacity(1))?;
            side.changes(DELETE, gone, commits, laps)
        };
        self.pair.measure(name, plan, draw, run)?;
        self.compare()
    }

    fn read(
        &mut self,
        name: (&str, &str),
        table: Table,
        run: impl Fn(&mut dyn Side, &[i64], &mut Laps) -> Result<Option<u64>> + Copy,
    ) -> Result<()> {
        let count = self.count(READ);
        let plan = self.plan(ROUNDS, count);
        let rows = self.rows[table as usize];
        let draw = |rng: &mut fastrand::Rng| crate::data::keys(rng, rows, count);
        self.pair
            .measure(name, plan, draw, |side, keys, laps| run(side, keys, laps))
    }

    fn scan(&mut self, name: (&str, &str), sql: &str) -> Result<()> {
        let plan = self.plan(SCANS, 1);
        self.pair.measure(
            name,
            plan,
            |_| (),
            |side, (), laps| side.query(sql, true, laps),
        )
    }

    fn copy(&mut self, name: (&str, &str)) -> Result<()> {
        const COPY: &str = "INSERT INTO copies SELECT * FROM documents WHERE id <= ?1";
        let plan = self.plan(SCANS, 1);
        let last = [(self.count(TRANSACTION) as i64, None)];
        self.pair.measure(
            name,
            plan,
            |_| (),
            |side, (), laps| {
                side.batch("DELETE FROM copies")?;
                side.changes(COPY, &last, Commits::Each, laps)
            },
        )?;
        let digest = |side: &mut Box<dyn Side>| side.digest("SELECT * FROM copies ORDER BY id");
        let [ours, sqlite] = self.pair.sides.each_mut().map(digest);
        ensure!(ours? == sqlite?, "the sides hold other copies");
        for side in &mut self.pair.sides {
            side.batch("DELETE FROM copies")?;
        }
        Ok(())
    }

    fn write_part(&mut self, name: (&str, &str), commits: Commits) -> Result<()> {
        let count = self.changed(commits);
        let plan = self.plan(ROUNDS, count);
        let rows = self.rows[0];
        // Letters: texts stay texts.
        let draw = |rng: &mut fastrand::Rng| {
            let letters: Vec<u8> = (0..MIDDLE).map(|_| rng.lowercase() as u8).collect();
            (crate::data::keys(rng, rows, count), letters)
        };
        let run = |side: &mut dyn Side, (keys, bytes): &(Vec<i64>, Vec<u8>), laps: &mut Laps| {
            side.write_parts(keys, bytes, commits, laps)
        };
        self.pair.measure(name, plan, draw, run)?;
        self.compare()
    }

    fn vacuum(&mut self, (name, what): (&str, &str)) -> Result<()> {
        let copy = format!("{}-copy", self.database);
        let paths = ENGINES
            .each_ref()
            .map(|engine| self.workspace.database(engine, &copy));
        let workspace = self.workspace;
        let [first, second] = self.pair.sides.each_mut();
        let contestants = [(first, &paths[0]), (second, &paths[1])].map(|(side, path)| {
            let path = path.to_string_lossy().replace('\'', "''");
            let sql = format!("VACUUM INTO '{path}'");
            let copy = &copy;
            let contestant: Contestant<'_, ()> = Box::new(move |(), laps| {
                laps.start();
                side.batch(&sql)?;
                laps.lap();
                workspace.remove(copy)?;
                Ok(None)
            });
            contestant
        });
        let plan = Plan::new(self.effort, 5, 1);
        let [ours, sqlite] = interleave(plan, &mut self.pair.rng, |_| (), contestants)?;
        let metric = Metric::latency(name, what, &ours, &sqlite);
        self.pair.report.push(metric);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn options() -> Options {
        Options {
            rows: 1_000,
            cache_bytes: 16 << 20,
            effort: 0.01,
            seed: 3,
        }
    }

    #[test]
    fn all_cases_are_answered_alike() {
        let workspace = Workspace::create(&std::env::temp_dir()).unwrap();
        let mut report = Report::new(Machine::of(workspace.root()));
        let args = Args {
            sizes: vec![2, 24],
            kinds: vec![Kind::Blob, Kind::Text],
            cases: Vec::new(),
            mib: 1,
        };
        run(options(), &args, &workspace, &mut report).unwrap();
        let mut names: Vec<_> = report.metrics.iter().map(|metric| &metric.name).collect();
        assert_eq!(names.len(), 4 * CASES.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), report.metrics.len(), "a name comes twice");
    }

    #[test]
    fn unknown_cases_and_sizes_are_refused() {
        let workspace = Workspace::create(&std::env::temp_dir()).unwrap();
        let mut report = Report::new(Machine::of(workspace.root()));
        for (sizes, case) in [
            (vec![2], "nothing"),
            (vec![1], "read"),
            (vec![1 << 20], "read"),
        ] {
            let args = Args {
                sizes,
                kinds: vec![Kind::Blob],
                cases: vec![case.into()],
                mib: 1,
            };
            assert!(run(options(), &args, &workspace, &mut report).is_err());
        }
        assert!(report.metrics.is_empty());
    }
}
