//! `recovery`: how long opening takes after a process ended in the middle of its
//! work with a full log, and after a clean end, and the memory that recovery
//! needs. Every opening happens in a process of its own, on a copy of the files,
//! and ends with a row read.
//!
//! SQLite reads its log's frames into an index of pages and leaves them there;
//! we apply it, write a checkpoint, and begin a new log. So the two do different
//! work: the bars here are absolute (1 s for a full log of 32 MiB, and for the longest
//! that the cache allows, 10 ms for a clean database of 1 GB, memory within the cache
//! limit).

use crate::compare::Options;
use crate::machine;
use crate::report::{Better, Metric, Report};
use crate::side::{Durability, ENGINES, Engine, Settings, Workspace};
use crate::stats;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PAYLOAD_BYTES: usize = 400;
/// Just short of the hard limit of our log where the cache is small.
const LOG_BYTES: u64 = 63 << 19;
const ROUNDS: usize = 5;

/// What a process of one side is told.
#[derive(Debug, Args)]
pub struct SideArgs {
    #[arg(long)]
    engine: String,
    #[arg(long)]
    path: PathBuf,
    #[arg(long)]
    cache_bytes: usize,
    /// Rows to load first.
    #[arg(long, default_value_t = 0)]
    rows: usize,
    /// Fill the log and end without closing; otherwise open and read.
    #[arg(long)]
    fill: bool,
    /// Rows a transaction that fills the log.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// How much of it is filled.
    #[arg(long, default_value_t = LOG_BYTES)]
    log_bytes: u64,
}

/// The log that a process leaves.
#[derive(Clone, Copy)]
struct Left {
    /// Rows a transaction.
    batch: usize,
    bytes: u64,
}

/// What opening took.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    micros: f64,
    grown_bytes: u64,
}

/// Runs both sides and adds their figures to the report.
pub fn run(options: Options, workspace: &Workspace, report: &mut Report) -> Result<()> {
    let longest = fulgurite::Options {
        cache_bytes: options.cache_bytes,
        ..fulgurite::Options::default()
    }
    .log_limit();
    for (name, what, batch, bytes) in [
        (
            "recovery",
            "open with a log of 32 MiB of one-row updates",
            1,
            LOG_BYTES,
        ),
        (
            "recovery_wide",
            "open with a log of 32 MiB of hundred-row updates",
            100,
            LOG_BYTES,
        ),
        (
            "recovery_longest",
            "open with a full log of one-row updates",
            1,
            longest - longest / 64,
        ),
    ] {
        let found = both(workspace, options, 50_000, Some(Left { batch, bytes }))?;
        let millis = |side: &[Opened]| median(side, |opened| opened.micros / 1_000.0);
        single(
            report,
            name,
            what,
            "ms",
            millis(&found[0]),
            millis(&found[1]),
        );
        let over = |side: &[Opened]| {
            median(side, |opened| opened.grown_bytes as f64) / options.cache_bytes as f64
        };
        let name = format!("{name}_memory");
        let what = "growth of peak RSS by that";
        single(
            report,
            &name,
            what,
            "× cache limit",
            over(&found[0]),
            over(&found[1]),
        );
    }
    let rows = (options.effort.min(1.0) * 1e9) as usize / PAYLOAD_BYTES;
    let found = both(workspace, options, rows, None)?;
    let millis = |side: &[Opened]| median(side, |opened| opened.micros / 1_000.0);
    let what = format!(
        "open a clean database of {} MB",
        rows * PAYLOAD_BYTES / 1_000_000
    );
    single(
        report,
        "open_clean",
        &what,
        "ms",
        millis(&found[0]),
        millis(&found[1]),
    );
    Ok(())
}

fn single(report: &mut Report, name: &str, what: &str, unit: &'static str, a: f64, b: f64) {
    report.push(Metric::single(name, what, Better::Lower, unit, a, b));
}

fn median(side: &[Opened], figure: impl Fn(&Opened) -> f64) -> f64 {
    stats::median(&side.iter().map(figure).collect::<Vec<f64>>())
}

/// Makes both sides' databases and opens copies of them, by turns.
fn both(
    workspace: &Workspace,
    options: Options,
    rows: usize,
    log: Option<Left>,
) -> Result<[Vec<Opened>; 2]> {
    for engine in &ENGINES {
        let path = workspace.database(engine, "left.db");
        let mut args = vec!["--rows".to_owned(), rows.to_string()];
        if let Some(Left { batch, bytes }) = log {
            args.extend(["--fill".to_owned(), format!("--batch={batch}")]);
            args.push(format!("--log-bytes={bytes}"));
        }
        spawn(engine, &path, options, &args)?;
    }
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (engine, found) in ENGINES.iter().zip(&mut found) {
            let path = copy(workspace, engine, log.is_some())?;
            let output = spawn(engine, &path, options, &[])?;
            found.push(serde_json::from_slice(&output)?);
        }
    }
    workspace.remove("left.db")?;
    workspace.remove("again.db")?;
    Ok(found)
}

/// Copies the files that were left, if opening changes them.
fn copy(workspace: &Workspace, engine: &Engine, changes: bool) -> Result<PathBuf> {
    let left = workspace.database(engine, "left.db");
    if !changes {
        return Ok(left);
    }
    let path = workspace.database(engine, "again.db");
    for suffix in ["", "-wal", "-wal0", "-wal1", "-shm"] {
        let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        if name(&left).exists() && suffix != "-shm" {
            std::fs::copy(name(&left), name(&path))?;
        } else if name(&path).exists() {
            std::fs::remove_file(name(&path))?;
        }
    }
    Ok(path)
}

fn spawn(engine: &Engine, path: &Path, options: Options, more: &[String]) -> Result<Vec<u8>> {
    let output = Command::new(std::env::current_exe()?)
        .arg("recovery-side")
        .args(["--engine", engine.name])
        .arg("--path")
        .arg(path)
        .args(["--cache-bytes", &options.cache_bytes.to_string()])
        .args(more)
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
    Ok(output.stdout)
}

/// The work of one process.
pub fn side(args: &SideArgs) -> Result<()> {
    let ours = args.engine == ENGINES[0].name;
    if args.rows > 0 {
        load(args)?;
        if args.fill {
            if ours {
                fill_ours(args)?
            } else {
                fill_sqlite(args)?
            }
            // No destructor runs: nothing is closed.
            std::process::exit(0);
        }
        return Ok(());
    }
    let before = peak()?;
    let started = Instant::now();
    let settings = Settings::new(args.cache_bytes, Durability::Full);
    let sql = "SELECT length(payload) FROM heap WHERE id = 7";
    let length: i64 = if ours {
        let connection = ours_open(args, fulgurite::Durability::Full)?;
        connection.query_row(sql, [], |row| row.get(0))?
    } else {
        let connection = crate::sqlite::connect(&args.path, &settings)?;
        connection.query_row(sql, [], |row| row.get(0))?
    };
    // Closing is not part of it: it would checkpoint on SQLite's side.
    let micros = started.elapsed().as_secs_f64() * 1e6;
    ensure!(length == PAYLOAD_BYTES as i64, "row 7 has {length} bytes");
    let opened = Opened {
        micros,
        grown_bytes: peak()?.saturating_sub(before),
    };
    println!("{}", serde_json::to_string(&opened)?);
    std::process::exit(0);
}

fn load(args: &SideArgs) -> Result<()> {
    let engine = ENGINES.iter().find(|engine| engine.name == args.engine);
    let engine = engine.context("no such engine")?;
    let settings = Settings::new(args.cache_bytes, Durability::Normal);
    let mut side = (engine.open)(&args.path, &settings)?;
    side.batch("CREATE TABLE heap (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")?;
    let mut payload = vec![0; 2 * PAYLOAD_BYTES];
    fastrand::Rng::with_seed(1).fill(&mut payload);
    for first in (0..args.rows).step_by(20_000) {
        side.grow(first as i64, 20_000.min(args.rows - first), &payload)?;
    }
    side.batch(&format!(
        "UPDATE heap SET payload = randomblob({PAYLOAD_BYTES})"
    ))?;
    side.checkpoint()
}

fn ours_open(args: &SideArgs, durability: fulgurite::Durability) -> Result<fulgurite::Connection> {
    let options = fulgurite::Options {
        // While the log is filled nothing must ask for a checkpoint.
        cache_bytes: if args.fill { 1 << 30 } else { args.cache_bytes },
        durability,
        checkpoint_bytes: 1 << 30,
        log_limit_bytes: Some(1 << 30),
        busy_timeout: Duration::from_secs(10),
        ..fulgurite::Options::default()
    };
    Ok(fulgurite::Database::open_with_options(&args.path, options)?.connect()?)
}

fn update(rng: &mut fastrand::Rng, args: &SideArgs) -> String {
    let one = |rng: &mut fastrand::Rng| {
        let id = rng.usize(0..args.rows);
        format!("UPDATE heap SET payload = randomblob({PAYLOAD_BYTES}) WHERE id = {id};")
    };
    if args.batch == 1 {
        return one(rng);
    }
    let all: String = (0..args.batch).map(|_| one(rng)).collect();
    format!("BEGIN;{all}COMMIT")
}

fn fill_ours(args: &SideArgs) -> Result<()> {
    let connection = ours_open(args, fulgurite::Durability::Normal)?;
    let mut rng = fastrand::Rng::with_seed(2);
    loop {
        connection.execute_batch(&update(&mut rng, args))?;
        let log = connection.database().store().stats().log;
        if log.is_none_or(|log| log.bytes >= args.log_bytes) {
            std::mem::forget(connection);
            return Ok(());
        }
    }
}

fn fill_sqlite(args: &SideArgs) -> Result<()> {
    let settings = Settings::new(args.cache_bytes, Durability::Normal);
    let connection = crate::sqlite::connect(&args.path, &settings)?;
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    let mut rng = fastrand::Rng::with_seed(2);
    let log = PathBuf::from(format!("{}-wal", args.path.display()));
    loop {
        connection.execute_batch(&update(&mut rng, args))?;
        if std::fs::metadata(&log)?.len() >= args.log_bytes {
            std::mem::forget(connection);
            return Ok(());
        }
    }
}

fn peak() -> Result<u64> {
    let text = machine::field("/proc/self/status", "VmHWM").context("no /proc/self/status")?;
    let kibibytes = text.split_whitespace().next().context("empty field")?;
    Ok(kibibytes.parse::<u64>()? * 1_024)
}
