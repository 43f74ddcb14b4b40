//! `wal`: the log on its own. First its bars, each beside a raw control or a
//! published log in the same interleaved run; then every device under every
//! preallocation, payload and number of committers, with a chart that says
//! which device wins here.

mod bars;
mod chart;
mod contenders;
mod crew;
mod grid;
mod slow_disk;

pub use grid::{Cell, table};

use crate::report::Report;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What `wal` can be told beside the common options.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the bars, not the grid of devices
    #[arg(long)]
    bars_only: bool,
    /// Only the grid of devices, not the bars
    #[arg(long, conflicts_with = "bars_only")]
    grid_only: bool,
    /// Write the chart of the grid to this file
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Measures in `folder`.
pub fn run(args: &Args, effort: f64, seed: u64, folder: &Path, report: &mut Report) -> Result<()> {
    if !args.grid_only {
        bars::run(effort, seed, folder, report)?;
    }
    if !args.bars_only {
        report.log_grid = grid::run(effort, seed, folder)?;
        if let Some(path) = &args.svg {
            std::fs::write(path, chart::svg(&report.log_grid))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}
