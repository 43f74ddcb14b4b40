//! Files under passing names, and what else may be found there.
//!
//! A database is made under its name with `-new` behind it, a copy under that with
//! `-copy`, until it is whole. A crash leaves such a file, and the next making takes it.
//! What somebody else put there is not ours: a link is not followed, and a file that no
//! making can have left is not written to and not removed. That is an error that names it.

use crate::checkpoint::meta::SLOT;
use crate::error::{Error, ErrorKind, Result};
use crate::open::{self, cannot_open};
use fulgurite_disk::{Disk, DiskErrorKind, DiskFile, OpenOptions};
use std::path::Path;
use std::sync::Arc;

/// Why a file of a passing name is left alone.
pub(crate) fn refusal(passing: &Path, what: &str) -> Error {
    let message = format!(
        "unable to open database file: {} {what}, and that name is wanted for what is being made; move it away",
        passing.display()
    );
    Error::new(ErrorKind::CantOpen, message)
}

/// Fails where a file that has the name of a database in the making cannot be one. It
/// holds no commit: where a crash undid the renaming it may have been in use, but nobody
/// committed before the new name was durable. Where no slot is whole it goes by the length,
/// which is nothing or that of two slots (of one where an earlier version was making it),
/// since anything may be there after a power cut.
pub(crate) fn check_unborn(file: &dyn DiskFile, passing: &Path) -> Result<()> {
    let slot = SLOT as u64;
    let is_unborn = match open::read_meta(file, passing) {
        Ok(found) => found.meta.checkpoint == 0 && found.log.is_none(),
        Err(error) if error.kind() == ErrorKind::Io => return Err(error),
        Err(_) => [0, slot, 2 * slot].contains(&file.len()?),
    };
    match is_unborn {
        true => Ok(()),
        false => Err(refusal(passing, "was not left by the making of a database")),
    }
}

/// Fails, so that it is looked for again, where a file that was just locked has its passing
/// name no more: between its opening and its locking another process may have given it the
/// database's name, or removed it, and what has the passing name now is that of a third one.
pub(crate) fn check_named(disk: &dyn Disk, file: &dyn DiskFile, passing: &Path) -> Result<()> {
    let named = match disk.identity_at(passing) {
        Ok(named) => Some(named),
        Err(error) if error.kind == DiskErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    match named == Some(file.identity()?) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "database is locked: another process has just used {}",
                passing.display()
            ),
        )),
    }
}

/// Opens a copy in the making that somebody left, or that is ready for its name, and
/// locks it.
///
/// # Errors
/// `CantOpen` where it is something else.
pub(crate) fn lock_copy(disk: &dyn Disk, passing: &Path) -> Result<Arc<dyn DiskFile>> {
    let options = OpenOptions {
        no_follow: true,
        ..OpenOptions::WRITE
    };
    let file = disk
        .open(passing, options)
        .map_err(|error| match error.kind {
            DiskErrorKind::Link => refusal(passing, "is a symbolic link"),
            _ => cannot_open(error),
        })?;
    file.lock_exclusive()?;
    match open::read_meta(&*file, passing) {
        Ok(found) if found.meta.making => Ok(file),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        _ => Err(refusal(passing, "was not left by the making of a copy")),
    }
}

/// Has a copy say, durably, whether it is in the making, or has got its name and is a database
/// as any other. No log goes with it from then on.
pub(crate) fn renew_copy(file: &dyn DiskFile, path: &Path, making: bool) -> Result<()> {
    let mut meta = open::read_meta(file, path)?.meta;
    meta.making = making;
    meta.counter += 1;
    for offset in [0, SLOT as u64] {
        file.write_at(&meta.encode(), offset)?;
        file.sync_data()?;
    }
    Ok(())
}
