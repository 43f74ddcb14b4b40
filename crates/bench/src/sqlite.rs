//! SQLite's side: bundled, in WAL mode, through `rusqlite`.

use crate::side::{CommitLock, Durability, Settings, Side};
use anyhow::{Result, ensure};
use rusqlite as db;
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

/// A transaction that waits for its turn: one begun otherwise fails where
/// another one wrote first, whatever the busy timeout.
const BEGIN: &str = "BEGIN IMMEDIATE";

fn commit_lock(_: &db::Connection) -> Option<CommitLock> {
    None
}

fn checkpoint(connection: &db::Connection) -> Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
