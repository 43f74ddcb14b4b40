//! A database file in the making: filled under a passing name, `<name>-copy`, it gets
//! its own once it is whole and durable.
//!
//! ```text
//! begin     take what an earlier one left; open a new store under the passing name
//! fill      by whoever makes it, as any store
//! publish   checkpoint; close; lock the file; take its log away if closing could not;
//!           rename it; sync the folder; say in it that it is made
//! ```
//!
//! So a crash at any moment leaves nothing under the file's name, or all of it. The
//! passing file then stays until the next one of that name is made. Who makes it holds
//! its lock, and another one that would make it too gets `Busy`.

use crate::error::{Error, ErrorKind, Result};
use crate::open::{self, Purpose, cannot_open};
use crate::options::{Durability, Options};
use crate::passing;
use crate::store::{Store, log_error};
use fulgurite_disk::{Disk, OpenOptions, parent_dir};
use fulgurite_wal::Recovery;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module. Dropped before it is published, it takes its files away.
pub struct Making {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    passing: PathBuf,
    /// There until it is closed.
    store: Option<Store>,
}

impl Making {
    /// Begins a file that will be at `path`, where no file is, or an empty one.
    ///
    /// # Errors
    /// `CantOpen` where the path cannot be used; `Exists` where a file is there; `Corrupt`
    /// where it is empty and has a log; `Busy` where somebody else makes it; what writing
    /// may fail with.
    pub fn begin(disk: Arc<dyn Disk>, path: &Path, options: Options) -> Result<Making> {
        let path = open::resolve(&*disk, path)?;
        check_absent(&*disk, &path)?;
        let mut passing = path.clone().into_os_string();
        passing.push("-copy");
        let passing = PathBuf::from(passing);
        clear(&*disk, &passing)?;
        let options = Options {
            durability: Durability::Full,
            read_only: false,
            create: true,
            abandon_missing_log: false,
            ..options
        };
        let opened = open::open(disk.clone(), &passing, options, Purpose::Making);
        let store = opened.map_err(|error| {
            // It may have been made and not be durable.
            let _ = clear(&*disk, &passing);
            error.during(&format!("making {}", path.display()))
        })?;
        Ok(Making {
            disk,
            path,
            passing,
            store: Some(store),
        })
    }

    /// The store to fill. Every other handle of it, and every transaction, has to be gone
    /// before the file is published.
    ///
    /// # Errors
    /// None in practice.
    pub fn store(&self) -> Result<&Store> {
        let gone = || Error::misuse("the file in the making is closed");
        self.store.as_ref().ok_or_else(gone)
    }

    /// What ended all writing to the file in the making, if something did. Its maker is to be
    /// told that, in place of what others hear: there is nothing to be closed and opened again.
    pub fn failure(&self) -> Option<Error> {
        let cause = self.store.as_ref()?.core().first_failure()?;
        Some(cause.during(&format!("making {}", self.path.display())))
    }

    /// Gives the file its name, durably.
    ///
    /// # Errors
    /// `Exists` where a file is there by now; what writing may fail with. Nothing is at
    /// the path then; where it was the folder's sync that failed, a power cut soon after may
    /// leave the whole file.
    pub fn publish(mut self) -> Result<()> {
        let written = self.store()?.checkpoint();
        written.map_err(|error| self.failure().unwrap_or(error))?;
        self.store = None;
        // Held until it has its name: nobody takes it for what a crash left.
        let file = passing::lock_copy(&*self.disk, &self.passing)?;
        // The checkpoint holds all that the log did, if closing left that behind. It may say
        // that the log goes with it, and would not be opened without.
        if Recovery::left_behind(&*self.disk, &self.passing)
            .map_err(log_error)?
            .is_some()
        {
            passing::renew_copy(&*file, &self.passing, true)?;
        }
        Recovery::discard(&*self.disk, &self.passing).map_err(log_error)?;
        check_absent(&*self.disk, &self.path)?;
        // A log left by a database of the same name that is gone is not ours.
        Recovery::discard(&*self.disk, &self.path).map_err(log_error)?;
        self.disk.rename(&self.passing, &self.path)?;
        if let Err(error) = self.disk.sync_dir(parent_dir(&self.path)) {
            // Nobody else has used it: its lock is ours. Who tries again finds no file there.
            let _ = self.disk.remove(&self.path);
            return Err(error.into());
        }
        // It is whole and has its name: where this fails, whoever opens it says so.
        let _ = passing::renew_copy(&*file, &self.path, false);
        Ok(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.store = None;
        // Published, there is nothing; what cannot be removed the next one takes.
        let _ = clear(&*self.disk, &self.passing);
    }
}

/// Fails if there is a file, but for an empty one that nobody has used.
fn check_absent(disk: &dyn Disk, path: &Path) -> Result<()> {
    if !disk.exists(path).map_err(cannot_open)? {
        return Ok(());
    }
    let file = disk.open(path, OpenOptions::READ).map_err(cannot_open)?;
    match file.is_empty()? {
        true => open::check_unused(disk, path),
        false => Err(Error::new(
            ErrorKind::Exists,
            format!("{} exists", path.display()),
        )),
    }
}

/// Removes a passing file that nobody is at work on, and its log.
fn clear(disk: &dyn Disk, passing: &Path) -> Result<()> {
    if !disk.exists(passing).map_err(cannot_open)? {
        return Ok(());
    }
    let file = passing::lock_copy(disk, passing)?;
    disk.remove(passing)?;
    Recovery::discard(disk, passing).map_err(log_error)?;
    drop(file);
    Ok(())
}
