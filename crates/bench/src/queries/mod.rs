//! `queries`: queries over much of a shop's data, each beside SQLite, whose rows must be the
//! same.
//!
//! Before each round one line and one order are changed on both sides, which is not measured:
//! no side could have kept an answer. Rows are read to the last value.

mod cases;
mod data;

use crate::compare::Options;
use crate::measure::{Pair, Plan};
use crate::report::Report;
use crate::side::{Durability, Settings, Side, Workspace};
use anyhow::{Context, Result, ensure};
use cases::{CASES, Case, Key, LOOKUPS};
use data::Sizes;
use std::time::{Duration, Instant};

/// Keys of a round of lookups.
const KEYS: usize = 1_000;
/// How long the rounds of a case take in all, about, and how many there are at least and at
/// most.
const TIME: Duration = Duration::from_millis(600);
const ROUNDS: std::ops::RangeInclusive<usize> = 7..=41;

/// Changes made before a round, with the round's number.
const CHANGES: &str = "
    UPDATE lines SET quantity = quantity % 20 + 1 WHERE order_id = @ AND position = 1;
    UPDATE orders SET total = total + 100 WHERE id = @";

/// Measures the queries of these names, or all, and adds them to the report.
pub fn run(
    options: Options,
    names: &[String],
    workspace: &Workspace,
    report: &mut Report,
) -> Result<()> {
    for name in names {
        let known = |case: &Case| case.name == name;
        let lookup = |(lookup, ..): &(&str, &str, Key, &str)| lookup == name;
        ensure!(
            CASES.iter().any(known) || LOOKUPS.iter().any(lookup),
            "there is no query {name}"
        );
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let sizes = Sizes::of(options.rows);
    let sides = load(options, sizes, workspace, &mut rng)?;
    let mut bench = Bench {
        pair: Pair { sides, rng, report },
        sizes,
        effort: options.effort,
    };
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        bench
            .query(case)
            .with_context(|| format!("in the query {}", case.name))?;
    }
    for (name, what, key, sql) in LOOKUPS {
        if wanted(name) {
            bench
                .lookup((name, what), key, sql)
                .with_context(|| format!("in the query {name}"))?;
        }
    }
    Ok(())
}

/// Both sides with the same rows, analyzed and brought into their files.
fn load(
    options: Options,
    sizes: Sizes,
    workspace: &Workspace,
    rng: &mut fastrand::Rng,
) -> Result<[Box<dyn Side>; 2]> {
    let settings = Settings::new(options.cache_bytes, Durability::Normal);
    let mut sides = workspace.open("queries.db", &settings)?;
    for side in &mut sides {
        side.batch(data::TABLES)?;
        side.batch("BEGIN")?;
    }
    data::fill(rng, sizes, &mut |sql| {
        sides.iter_mut().try_for_each(|side| side.batch(sql))
    })?;
    for side in &mut sides {
        side.batch("COMMIT; ANALYZE")?;
        side.checkpoint()?;
    }
    Ok(sides)
}

struct Bench<'a> {
    pair: Pair<'a>,
    sizes: Sizes,
    effort: f64,
}

impl Bench<'_> {
    fn query(&mut self, case: &Case) -> Result<()> {
        let started = Instant::now();
        self.compare(case)?;
        let longest = started.elapsed();
        let rounds = (TIME.as_secs_f64() / longest.as_secs_f64().max(1e-6)) as usize;
        let rounds = rounds.clamp(*ROUNDS.start(), *ROUNDS.end());
        let plan = Plan::new(self.effort, rounds, 1);
        let orders = self.sizes.orders;
        let changes =
            |rng: &mut fastrand::Rng| CHANGES.replace('@', &(1 + rng.usize(..orders)).to_string());
        self.pair.measure(
            (case.name, case.what),
            plan,
            changes,
            |side, change, laps| {
                side.batch(change)?;
                side.query(case.sql, case.ordered, laps)
            },
        )
    }

    /// Both sides' rows, all of them.
    fn compare(&mut self, case: &Case) -> Result<()> {
        let [ours, sqlite] = self.pair.sides.each_mut().map(|side| {
            let mut rows = side.rows(case.sql)?;
            if !case.ordered {
                rows.sort_unstable();
            }
            anyhow::Ok(rows)
        });
        let (ours, sqlite) = (ours?, sqlite?);
        let lengths = (ours.len(), sqlite.len());
        ensure!(
            lengths.0 == lengths.1,
            "{} rows, and {} with SQLite",
            lengths.0,
            lengths.1
        );
        if let Some((ours, sqlite)) = ours.iter().zip(&sqlite).find(|(a, b)| a != b) {
            anyhow::bail!("a row is {ours}, and {sqlite} with SQLite");
        }
        Ok(())
    }

    fn lookup(&mut self, name: (&str, &str), key: Key, sql: &str) -> Result<()> {
        let keys = match key {
            Key::Customer => self.sizes.customers,
            Key::Product => self.sizes.products,
            Key::Order => self.sizes.orders,
        };
        let plan = Plan::new(self.effort, *ROUNDS.end(), KEYS);
        let draw = |rng: &mut fastrand::Rng| crate::data::keys(rng, keys, KEYS);
        self.pair.measure(name, plan, draw, |side, keys, laps| {
            side.lookups(sql, keys, laps)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn all_queries_are_answered_alike() {
        let workspace = Workspace::create(&std::env::temp_dir()).unwrap();
        let mut report = Report::new(Machine::of(workspace.root()));
        let options = Options {
            rows: 1_500,
            cache_bytes: 32 << 20,
            effort: 0.01,
            seed: 3,
        };
        run(options, &[], &workspace, &mut report).unwrap();
        let mut names: Vec<_> = report.metrics.iter().map(|metric| &metric.name).collect();
        assert_eq!(names.len(), CASES.len() + LOOKUPS.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), report.metrics.len(), "a name comes twice");
        assert!(run(options, &["nothing".to_owned()], &workspace, &mut report).is_err());
    }
}
