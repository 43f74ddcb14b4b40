//! What the planner is told of trees: how many rows they have, and how many of an index's
//! entries share the beginning of a key.
//!
//! Nobody counts distinct keys as rows change. An index is sampled when a plan first asks
//! about it, and again once its entries have doubled or halved: a run of entries at each of
//! some places, spread evenly over its leaves. Within a run, neighbours tell how often each
//! part changes from one entry to the next. Where one run ends with the values that the next
//! one begins with, nothing changes between the two; elsewhere something does at least once,
//! and otherwise as often as in the runs around.
//!
//! The figures serve to choose between plans and for nothing else: an index that cannot be
//! read counts as one of which nothing is known, and no transaction depends on what was
//! sampled for its plans.

use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Tree, TreeId, TxnState};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::databases::Database;
use super::engine::Engine;
use super::program::is_similar;
use crate::error::Result;
use crate::exec::fetch::Fetch;
use crate::exec::range::bound_key;
use crate::exec::txns::Txns;
use crate::key;
use crate::plan::Statistics;
use crate::plan::physical::ScanColumn;
use crate::schema::{Index, Table};
use crate::value::{Value, ValueRef};

/// Places at which an index is looked at.
const PLACES: u32 = 32;
/// Entries that are looked at there.
const RUN: usize = 48;
/// Places at which a table is looked at, and rows that are read at each.
const ROW_PLACES: u32 = 32;
const ROW_RUN: usize = 2;
/// Fewer entries are not worth a look.
const ENTRIES_MIN: u64 = 128;
/// Indexes of which something is remembered.
const INDEXES_MAX: usize = 4_096;

/// What was found in an index of so many entries.
struct Sampled {
    entries: u64,
    per_key: Arc<[f64]>,
}

/// What is known of a database's indexes.
#[derive(Default)]
pub struct Samples(Mutex<FxHashMap<TreeId, Sampled>>);

impl Samples {
    fn known(&self, tree: TreeId, entries: u64) -> Option<Arc<[f64]>> {
        let known = self.0.lock();
        let sampled = known.get(&tree)?;
        is_similar(sampled.entries, entries).then(|| sampled.per_key.clone())
    }

    /// Lets go of what is known of an index.
    pub fn forget(&self, index: TreeId) {
        self.0.lock().remove(&index);
    }

    fn keep(&self, tree: TreeId, sampled: Sampled) {
        let mut known = self.0.lock();
        if known.len() >= INDEXES_MAX {
            known.clear();
        }
        known.insert(tree, sampled);
    }
}

/// Tells the planner.
pub struct Estimates<'a> {
    /// Of the main database.
    pub engine: &'a Engine,
    /// The others.
    pub databases: &'a [Database],
    /// The transactions that a statement is compiled in, or idle ones.
    pub txn: &'a mut Txns,
}

impl Statistics for Estimates<'_> {
    fn rows(&mut self, tree: &Tree) -> u64 {
        let txn = self.txn.in_store(tree.store_number());
        match txn.state() {
            TxnState::Idle => tree.estimate(),
            _ => txn.estimate(tree).unwrap_or(0),
        }
    }

    fn rows_per_key(&mut self, index: &Index) -> Option<Arc<[f64]>> {
        let entries = self.rows(&index.tree);
        if entries < ENTRIES_MIN {
            return None;
        }
        let samples = self.samples_of(&index.tree);
        let known = samples.known(index.tree.id(), entries);
        if known.is_some() {
            return known;
        }
        let look = |cursor: &mut Cursor| sample(cursor, entries, index.columns.len());
        let per_key = self.looked(&index.tree, look).ok()??;
        let sampled = Sampled {
            entries,
            per_key: per_key.clone(),
        };
        self.samples_of(&index.tree).keep(index.tree.id(), sampled);
        Some(per_key)
    }

    fn share_below(&mut self, index: &Index, value: ValueRef<'_>, equal: bool) -> Option<f64> {
        let column = index.columns.first()?;
        let bound = bound_key(value, column, equal != column.descending);
        let before = |cursor: &mut Cursor| Ok(cursor.share_before(Key::Bytes(&bound))?);
        let before = self.looked(&index.tree, before).ok()?;
        Some(if column.descending {
            1.0 - before
        } else {
            before
        })
    }

    fn share_of_rowids_below(&mut self, table: &Tree, rowid: i64) -> Option<f64> {
        let before = |cursor: &mut Cursor| Ok(cursor.share_before(Key::Int(rowid))?);
        self.looked(table, before).ok()
    }

    fn sample(&mut self, table: &Arc<Table>, columns: &[ScanColumn]) -> Vec<Vec<Value>> {
        let fetch = Fetch::new(table, columns);
        let look = |cursor: &mut Cursor| some_rows(cursor, &fetch);
        self.looked(&table.tree, look).unwrap_or_default()
    }
}

impl Estimates<'_> {
    fn samples_of(&self, tree: &Tree) -> &Samples {
        let store = tree.store_number();
        let other = self.databases.iter().find(|it| it.store_number() == store);
        other.map_or(self.engine, |it| &it.engine).samples()
    }

    /// What is found with a cursor of a tree, in a snapshot of its own where there is no
    /// transaction.
    fn looked<R>(&mut self, tree: &Tree, look: impl FnOnce(&mut Cursor) -> Result<R>) -> Result<R> {
        let txn = self.txn.in_store(tree.store_number());
        let begins = txn.state() == TxnState::Idle;
        if begins {
            txn.begin_read()?;
        }
        let cursor = txn.cursor_to_estimate(tree);
        let found = cursor.map_err(Into::into);
        let found = found.and_then(|mut cursor| look(&mut cursor));
        if begins {
            txn.rollback();
        }
        found
    }
}

/// What is asked for of rows that lie at places spread evenly over a table. Rows with a part
/// outside of their leaf are left out: that may be far more than is worth reading.
fn some_rows(cursor: &mut Cursor, fetch: &Fetch) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let mut last = None;
    for place in 0..ROW_PLACES {
        if !cursor.seek_share(place * (u32::MAX / ROW_PLACES))? {
            break;
        }
        for _ in 0..ROW_RUN {
            let rowid = cursor.key_int();
            if last.is_none_or(|last| rowid > last)
                && let Some(stored) = cursor.value_in_leaf()
            {
                let mut row = Vec::new();
                fetch.assign(rowid, stored, &mut row)?;
                rows.push(row);
            }
            last = last.max(Some(rowid));
            if !cursor.next()? {
                break;
            }
        }
    }
    Ok(rows)
}

/// A run of entries: how many neighbours it has, and how many of them differ first in each
/// part.
#[derive(Default)]
struct Run {
    pairs: u64,
    changes: Vec<u64>,
}

impl Run {
    /// The share of neighbours that differ within so many leading parts.
    fn rate(&self, parts: usize) -> f64 {
        let changes: u64 = self.changes.iter().take(parts).sum();
        changes as f64 / self.pairs.max(1) as f64
    }
}

/// Of each number of leading parts, how many of an index's entries share them; None where
/// there are no neighbours to be compared.
fn sample(cursor: &mut Cursor, entries: u64, parts: usize) -> Result<Option<Arc<[f64]>>> {
    let mut runs: Vec<Run> = Vec::new();
    // In which part the first key of each run but the first differs from the last key of
    // the run before.
    let mut jumps = Vec::new();
    let mut last = Vec::new();
    for place in 0..PLACES {
        if !cursor.seek_share(place * (u32::MAX / PLACES))? {
            break;
        }
        let start = cursor.key_start();
        if !runs.is_empty() {
            if start <= last.as_slice() {
                // A leaf that was looked at already.
                continue;
            }
            jumps.push(first_difference(&last, start, parts));
        }
        runs.push(run(cursor, parts, &mut last)?);
    }
    let seen: u64 = runs.iter().map(|run| run.pairs + 1).sum();
    if seen <= runs.len() as u64 {
        return Ok(None);
    }
    let between = entries.saturating_sub(seen) as f64 / jumps.len().max(1) as f64;
    let per_key = (1..=parts).map(|parts| {
        let within: f64 = runs
            .iter()
            .map(|run| run.rate(parts) * run.pairs as f64)
            .sum();
        let around = runs.windows(2).zip(&jumps).map(|(around, jump)| {
            let rate = around.iter().map(|run| run.rate(parts)).sum::<f64>() / 2.0;
            match *jump < parts {
                true => (rate * between).max(1.0),
                false => 0.0,
            }
        });
        let distinct = 1.0 + within + around.sum::<f64>();
        (entries as f64 / distinct).max(1.0)
    });
    Ok(Some(per_key.collect()))
}

/// Looks at the entries from where the cursor is; leaves the last one's key behind.
fn run(cursor: &mut Cursor, parts: usize, last: &mut Vec<u8>) -> Result<Run> {
    let mut run = Run {
        pairs: 0,
        changes: vec![0; parts],
    };
    let keep = |cursor: &mut Cursor, last: &mut Vec<u8>| {
        last.clear();
        last.extend_from_slice(cursor.key_start());
    };
    keep(cursor, last);
    for _ in 1..RUN {
        if !cursor.next()? {
            break;
        }
        run.pairs += 1;
        let part = first_difference(last, cursor.key_start(), parts);
        if let Some(changes) = run.changes.get_mut(part) {
            *changes += 1;
        }
        keep(cursor, last);
    }
    Ok(run)
}

/// The first of so many parts in which two keys differ; the number of parts if none does.
fn first_difference(left: &[u8], right: &[u8], parts: usize) -> usize {
    let equal = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let mut rest = left;
    for part in 0..parts {
        // Of a long key what lies in its leaf ends within a part.
        if key::skip(&mut rest).is_err() || left.len() - rest.len() > equal {
            return part;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use fulgurite_store::{Options, Store};

    use super::*;
    use crate::session::{Session, Step};

    const ROWS: u64 = 40_000;

    fn run(session: &Session, sql: &str) -> Option<f64> {
        let mut statement = session.prepare(sql).expect("compiles").0.expect("one");
        let mut found = None;
        while let Step::Row = statement.step().expect("runs") {
            found = Some(statement.column(0).to_real());
        }
        found
    }

    /// Of an index on two expressions of the row's number `i`, what is estimated, and what
    /// is so.
    fn estimated(parts: [&str; 2]) -> [(f64, f64); 2] {
        let store = Store::in_memory(Options::default()).expect("opens");
        let engine = Engine::open(store).expect("opens");
        let session = engine.session();
        run(&session, "CREATE TABLE t(i INTEGER PRIMARY KEY, a, b)");
        run(&session, "CREATE INDEX k ON t(a, b)");
        let [a, b] = parts;
        let rows = format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS}) \
             INSERT INTO t SELECT i, {a}, {b} FROM n"
        );
        run(&session, &rows);
        let mut txn = Txns::new(engine.store());
        txn.main.begin_read().expect("begins");
        let schema = engine.schema(&mut txn.main).expect("reads");
        let table = schema.table("t").expect("reads").expect("is there");
        let mut estimates = Estimates {
            engine: &engine,
            databases: &[],
            txn: &mut txn,
        };
        let index = table.indexes.first().expect("an index");
        let per_key = estimates.rows_per_key(index).expect("is sampled");
        let distinct = ["a", "a, b"].map(|columns| {
            let sql = format!("SELECT count(*) FROM (SELECT DISTINCT {columns} FROM t)");
            run(&session, &sql).expect("a count")
        });
        std::array::from_fn(|at| (per_key[at], ROWS as f64 / distinct[at]))
    }

    #[test]
    fn rows_per_key_are_about_what_they_are() {
        let cases = [
            ["i", "0"],
            ["0", "0"],
            ["i % 3", "i"],
            ["i % 100", "i % 7"],
            ["i / 10", "i % 2"],
            ["'text ' || i % 1000", "i"],
            ["iif(i % 2, NULL, i)", "i % 5"],
            ["i % 100 * (i % 100 > 89)", "i / 1000"],
        ];
        for parts in cases {
            for (estimate, truth) in estimated(parts) {
                let factor = (estimate / truth).max(truth / estimate);
                assert!(factor < 4.0, "{parts:?}: {estimate}, in truth {truth}");
            }
        }
    }
}
