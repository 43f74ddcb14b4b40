//! Our side.

use crate::side::{Durability, Settings, Side};
use anyhow::{Result, ensure};
use fulgurite as db;
use std::path::Path;

#[path = "workload.rs"]
mod workload;

/// Opens or creates a database with the settings of the run.
pub fn open(path: &Path, settings: &Settings) -> Result<Box<dyn Side>> {
    Ok(Box::new(workload::Session::over(connect(path, settings)?)))
}

/// A configured connection.
pub fn connect(path: &Path, settings: &Settings) -> Result<db::Connection> {
    let connection = db::Connection::open(path)?;
    connection.busy_timeout(settings.busy_timeout)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    ensure!(mode == "wal", "SQLite stayed in journal mode {mode}");
    let synchronous = match settings.durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    let kibibytes = settings.cache_bytes / 1_024;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{kibibytes}"
    ))?;
    Ok(connection)
}

fn checkpoint(connection: &db::Connection) -> Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
