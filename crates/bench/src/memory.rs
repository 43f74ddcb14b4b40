//! `memory`: peak resident memory over the cache limit, with a database of ten
//! times that limit loaded, read, changed and scanned, and with a join and a
//! GROUP BY that must remember as much. Each side and work has a process of its
//! own, so that the peaks do not mix.

use crate::compare::Options;
use crate::machine;
use crate::report::{Better, Metric, Report};
use crate::side::{Durability, ENGINES, Engine, Settings, Side, Workspace};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum as _};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

const TIMES: usize = 10;
const ROW_BYTES: usize = 400;
const BATCH: usize = 5_000;

/// What the process of one side is told.
#[derive(Debug, Args)]
pub struct SideArgs {
    #[arg(long)]
    engine: String,
    #[arg(long)]
    path: PathBuf,
    #[arg(long)]
    cache_bytes: usize,
    #[arg(long)]
    seed: u64,
    #[arg(long, value_enum)]
    work: Work,
}

/// What a process does after the load.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Work {
    /// Reads, updates, a scan and a large transaction.
    Changes,
    /// A join and aggregations with large states.
    Queries,
}

/// What it answers, in bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    before: u64,
    loaded: u64,
    peak: u64,
}

/// Runs both sides and adds their figures to the report.
pub fn run(options: Options, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let mut found = Vec::new();
    let mut queried = Vec::new();
    for engine in &ENGINES {
        found.push(spawn(engine, Work::Changes, options, workspace)?);
        workspace.remove("memory.db")?;
        queried.push(spawn(engine, Work::Queries, options, workspace)?);
    }
    let over =
        |bytes: u64, before: u64| bytes.saturating_sub(before) as f64 / options.cache_bytes as f64;
    let mut push = |name: &str, what: &str, of: &[Memory], figure: &dyn Fn(&Memory) -> f64| {
        let (ours, sqlite) = (figure(&of[0]), figure(&of[1]));
        let unit = "× cache limit";
        report.push(Metric::single(
            name,
            what,
            Better::Lower,
            unit,
            ours,
            sqlite,
        ));
    };
    push(
        "memory_load",
        "growth of peak RSS while loading ten times the cache limit",
        &found,
        &|memory| over(memory.loaded, memory.before),
    );
    push(
        "memory",
        "growth of peak RSS through load, reads, updates, scan and one large transaction",
        &found,
        &|memory| over(memory.peak, memory.before),
    );
    push(
        "memory_queries",
        "growth of peak RSS through a join, a GROUP BY and a DISTINCT of ten times the cache limit",
        &queried,
        &|memory| over(memory.peak, memory.before),
    );
    Ok(())
}

fn spawn(engine: &Engine, work: Work, options: Options, workspace: &Workspace) -> Result<Memory> {
    let work = work.to_possible_value().context("no such work")?;
    let output = Command::new(std::env::current_exe()?)
        .arg("memory-side")
        .args(["--engine", engine.name])
        .arg("--path")
        .arg(workspace.database(engine, "memory.db"))
        .args(["--cache-bytes", &options.cache_bytes.to_string()])
        .args(["--seed", &options.seed.to_string()])
        .args(["--work", work.get_name()])
        // What the engines hold is measured, not what the allocator keeps back.
        .env("MIMALLOC_PURGE_DELAY", "0")
        .env("MIMALLOC_ALLOW_THP", "0")
        .output()?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        engine.name,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The work of one side.
pub fn side(args: &SideArgs) -> Result<()> {
    let engine = ENGINES
        .iter()
        .find(|engine| engine.name == args.engine)
        .context("no such engine")?;
    let mut rng = fastrand::Rng::with_seed(args.seed);
    let mut payload = vec![0; 2 * ROW_BYTES];
    rng.fill(&mut payload);
    let rows = TIMES * args.cache_bytes / ROW_BYTES;
    let settings = Settings::new(args.cache_bytes, Durability::Normal);

    let before = resident("VmRSS")?;
    let mut side = (engine.open)(&args.path, &settings)?;
    side.batch("CREATE TABLE heap (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")?;
    for first in (0..rows).step_by(BATCH) {
        side.grow(first as i64, BATCH.min(rows - first), &payload)?;
    }
    let loaded = resident("VmHWM")?;
    match args.work {
        Work::Changes => exercise(side.as_mut(), rows, &mut rng)?,
        Work::Queries => query(side.as_mut())?,
    }
    let memory = Memory {
        before,
        loaded,
        peak: resident("VmHWM")?,
    };
    println!("{}", serde_json::to_string(&memory)?);
    Ok(())
}

/// Random reads and updates, a scan, and a transaction over a third of the rows.
fn exercise(side: &mut dyn Side, rows: usize, rng: &mut fastrand::Rng) -> Result<()> {
    for _ in 0..20 {
        let keys: Vec<i64> = (0..2_000).map(|_| rng.i64(0..rows as i64)).collect();
        side.visit(&keys)?;
        let first = rng.usize(0..rows);
        side.batch(&format!(
            "UPDATE heap SET payload = CAST(payload || x'00' AS BLOB) WHERE id >= {first} AND id < {}",
            first + 500
        ))?;
    }
    side.batch("SELECT COUNT(*), SUM(LENGTH(payload)) FROM heap")?;
    side.batch("UPDATE heap SET payload = CAST(payload || x'0102' AS BLOB) WHERE id % 3 = 0")
}

/// A join without an index whose right side is the whole table, and groups and
/// distinct rows as many and as large as the table's rows.
fn query(side: &mut dyn Side) -> Result<()> {
    side.batch(
        "SELECT COUNT(*), SUM(LENGTH(b.payload)) FROM heap a JOIN heap b ON b.id + 0 = a.id + 0",
    )?;
    side.batch("SELECT COUNT(*) FROM (SELECT id + 0 AS g, MAX(payload) FROM heap GROUP BY g)")?;
    side.batch("SELECT COUNT(*) FROM (SELECT DISTINCT payload, id FROM heap)")
}

/// A size of this process, in bytes, as the kernel calls it.
pub fn resident(name: &str) -> Result<u64> {
    let text = machine::field("/proc/self/status", name).context("no /proc/self/status")?;
    let kibibytes = text.split_whitespace().next().context("empty field")?;
    Ok(kibibytes.parse::<u64>()? * 1_024)
}
