//! Files under passing names, and what else may be found there.
//!
//! A log is made under its name with `-new` behind it, and so is a copy of a mirror's
//! side. A crash leaves such a file, and the next making takes it. What somebody else
//! put there is not ours, another log for one: a link is not followed, and a file that no
//! making can have left is not written to. That is an error that names it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskError, DiskFile, OpenOptions};

use super::error::{Error, Result};
use super::header::{BYTES, COPIES, Header};

/// Opens and locks the file in which what will be named `path` is made.
pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<(PathBuf, Arc<dyn DiskFile>)> {
    let mut name = path.as_os_str().to_owned();
    name.push("-new");
    let passing = PathBuf::from(name);
    let options = OpenOptions {
        no_follow: true,
        ..OpenOptions::CREATE
    };
    let file = disk.open(&passing, options)?;
    file.lock_exclusive()?;
    Ok((passing, file))
}

/// Empties a file that was just made or that a making has left: a log that was never
/// opened, or a copy of the one with the salt `copied`.
pub(super) fn empty(file: &dyn DiskFile, passing: &Path, copied: Option<u64>) -> Result<()> {
    let is_ours = match Header::read(file, passing) {
        Ok(header) => header.life == 0 || copied == Some(header.salt),
        Err(Error::Disk(error)) => return Err(error.into()),
        Err(_) => has_no_head(file)?,
    };
    if !is_ours {
        let source = io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it was not left by the making of a log, and that name is wanted for one; move it away",
        );
        return Err(DiskError::new("make", passing, source).into());
    }
    Ok(file.truncate(0)?)
}

/// Whether nothing was written yet where a head and its copy are.
fn has_no_head(file: &dyn DiskFile) -> Result<bool> {
    let len = file.len()?;
    for position in COPIES {
        let mut bytes = [0; BYTES];
        let there = len.saturating_sub(position).min(BYTES as u64) as usize;
        file.read_at(&mut bytes[..there], position)?;
        if bytes != [0; BYTES] {
            return Ok(false);
        }
    }
    Ok(true)
}
