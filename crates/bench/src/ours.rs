//! Our side.

use crate::side::{CommitLock, Durability, Settings, Side};
use anyhow::Result;
use fulgurite as db;
use std::path::Path;

#[path = "workload.rs"]
mod workload;

/// Opens or creates a database with the settings of the run.
pub fn open(path: &Path, settings: &Settings) -> Result<Box<dyn Side>> {
    let options = db::Options {
        cache_bytes: settings.cache_bytes,
        durability: match settings.durability {
            Durability::Full => db::Durability::Full,
            Durability::Normal => db::Durability::Normal,
        },
        busy_timeout: settings.busy_timeout,
        ..db::Options::default()
    };
    let connection = db::Database::open_with_options(path, options)?.connect()?;
    Ok(Box::new(workload::Session::over(connection)))
}

/// A transaction that may lose.
const BEGIN: &str = "BEGIN";

fn commit_lock(connection: &db::Connection) -> Option<CommitLock> {
    Some(connection.database().stats().commit_lock)
}

fn checkpoint(connection: &db::Connection) -> Result<()> {
    Ok(connection.database().checkpoint()?)
}
