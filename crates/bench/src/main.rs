//! `fulgurite-bench`: measures Fulgurite beside bundled SQLite, in one process
//! and interleaved, and prints percentiles of both and their ratio.
//!
//! Whatever goes wrong ends the run with a message and a non-zero status; no
//! figure of a failed run is printed.
#![expect(
    clippy::duplicate_mod,
    reason = "both sides compile the one source of the workloads, each against its library"
)]

mod compare;
mod control;
mod data;
mod kv;
mod logs;
mod long;
mod machine;
mod measure;
mod memory;
mod opening;
mod ours;
mod queries;
mod recovery;
mod report;
mod side;
mod sqlite;
mod statements;
mod stats;
mod values;
mod writers;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use machine::Machine;
use report::Report;
use side::Workspace;
use std::path::PathBuf;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Fulgurite beside SQLite.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Commit, reads, join, range, aggregate, insert, size, opening
    Compare {
        #[command(flatten)]
        common: Common,
        /// Rows of the large tables
        #[arg(long, default_value_t = 1_000_000)]
        rows: usize,
    },
    /// Prepared statements by the thousand in one transaction, and new texts
    Statements {
        #[command(flatten)]
        common: Common,
        /// Rows of the table, at most a million
        #[arg(long, default_value_t = 100_000)]
        rows: usize,
    },
    /// Joins, subqueries, groups, windows, sorts, functions over a shop's data
    Queries {
        #[command(flatten)]
        common: Common,
        /// Lines of orders; the other tables are in proportion
        #[arg(long, default_value_t = 120_000)]
        rows: usize,
        /// Which queries, by their names [default: all]
        #[arg(long, value_delimiter = ',')]
        cases: Vec<String>,
    },
    /// Rows with large texts and blobs: changes, reads, scans, handles, file sizes
    #[command(mut_arg("cache_mib", |cache| cache.default_value("64")))]
    Values {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        values: values::Args,
    },
    /// The key-value interface: puts, gets, ranges, a mix
    Store {
        #[command(flatten)]
        common: Common,
        /// Entries loaded before the reads
        #[arg(long, default_value_t = 1_000_000)]
        rows: usize,
    },
    /// Many threads writing: tables, explicit and large transactions, a hot row, families
    Writers {
        #[command(flatten)]
        common: Common,
        /// Numbers of threads of the autocommitting cases
        #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32")]
        threads: Vec<usize>,
        /// What to measure
        #[arg(
            long,
            value_enum,
            value_delimiter = ',',
            default_value = "one-table,one-each,explicit,immediate,large,hot,now-and-then,beside-checkpoints,beside-readers,files,families"
        )]
        cases: Vec<writers::Case>,
        /// Rows of the table that explicit transactions update
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
        /// Seconds a round and side
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
    },
    /// A reader held over many commits, and one very large transaction
    Long {
        #[command(flatten)]
        common: Common,
        /// Commits under the reader
        #[arg(long, default_value_t = 1_000_000)]
        commits: u64,
        /// Rows of the large transaction
        #[arg(long, default_value_t = 10_000_000)]
        rows: i64,
    },
    /// Peak memory with a database of ten times the cache limit
    Memory {
        #[command(flatten)]
        common: Common,
    },
    /// Opening after a crash with a full log, and after a clean end
    Recovery {
        #[command(flatten)]
        common: Common,
    },
    /// One opening of `recovery`, in a process of its own
    #[command(hide = true)]
    RecoverySide(recovery::SideArgs),
    /// The log on its own: its bars, beside raw controls and published logs, and
    /// every device under every load
    Wal {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        wal: logs::Args,
    },
    /// One side of `memory`, in a process of its own
    #[command(hide = true)]
    MemorySide(memory::SideArgs),
}

#[derive(Debug, Args)]
struct Common {
    /// Folder for the databases [default: the system's temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Also write the figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Page cache of either side, in MiB
    #[arg(long, default_value_t = 256)]
    cache_mib: usize,
    /// Scales the number of rounds
    #[arg(long, default_value_t = 1.0)]
    effort: f64,
    /// Seed of all random inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Common {
    fn start(&self) -> Result<(Workspace, Report)> {
        let dir = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let workspace =
            Workspace::create(&dir).with_context(|| format!("cannot work in {}", dir.display()))?;
        let report = Report::new(Machine::of(workspace.root()));
        eprintln!("{}\nseed {}", report.machine, self.seed);
        Ok((workspace, report))
    }

    fn options(&self, rows: usize) -> Result<compare::Options> {
        let options = compare::Options {
            rows,
            cache_bytes: self.cache_mib << 20,
            effort: self.effort,
            seed: self.seed,
        };
        compare::check(&options)?;
        Ok(options)
    }
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Compare { common, rows } => {
            let options = common.options(rows)?;
            let (workspace, mut report) = common.start()?;
            compare::run(options, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Statements { common, rows } => {
            let options = common.options(rows)?;
            let (workspace, mut report) = common.start()?;
            statements::run(options, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Queries {
            common,
            rows,
            cases,
        } => {
            let options = common.options(rows)?;
            let (workspace, mut report) = common.start()?;
            queries::run(options, &cases, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Values { common, values } => {
            let options = common.options(1_000)?;
            let (workspace, mut report) = common.start()?;
            values::run(options, &values, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Store { common, rows } => {
            let options = common.options(rows)?;
            let (workspace, mut report) = common.start()?;
            kv::run(options, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Writers {
            common,
            threads,
            cases,
            rows,
            seconds,
        } => {
            let options = common.options(1_000)?;
            let (workspace, mut report) = common.start()?;
            let plan = writers::Plan {
                cases,
                threads,
                rows,
                time: Duration::from_secs_f64(seconds),
            };
            writers::run(options, &plan, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Long {
            common,
            commits,
            rows,
        } => {
            let options = common.options(1_000)?;
            let (workspace, mut report) = common.start()?;
            let plan = long::Plan {
                commits,
                rows,
                cache_bytes: options.cache_bytes,
                seed: options.seed,
            };
            long::run(plan, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Memory { common } => {
            let options = common.options(1_000)?;
            let (workspace, mut report) = common.start()?;
            memory::run(options, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::Recovery { common } => {
            let options = common.options(1_000)?;
            let (workspace, mut report) = common.start()?;
            recovery::run(options, &workspace, &mut report)?;
            report.finish(common.json.as_deref())
        }
        Command::RecoverySide(args) => recovery::side(&args),
        Command::Wal { common, wal } => {
            let (workspace, mut report) = common.start()?;
            logs::run(
                &wal,
                common.effort,
                common.seed,
                workspace.root(),
                &mut report,
            )?;
            report.finish(common.json.as_deref())
        }
        Command::MemorySide(args) => memory::side(&args),
    }
}
