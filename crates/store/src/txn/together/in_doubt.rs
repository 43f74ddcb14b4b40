//! Opening a store that a transaction over several files had been prepared in: was it
//! committed?
//!
//! Only its coordinator's file knows. It is looked for beside this one first, where both
//! were moved to, and then where it was; another database of that name is not taken
//! for it. If this process has it open it is asked there; otherwise it is opened and
//! recovered, so that what it says is durable, and its own doubts are left to who opens it
//! for good. If it has an entry, what was
//! prepared is done, as a further record of this store's log would be, and otherwise
//! nothing is. Where it cannot be found, or another process has it, the store is not
//! opened, and nothing has changed, but as [`Options::in_doubt`] says.

use super::decisions::{self, Number, PREPARED, Prepared};
use crate::error::{Error, ErrorKind, Result};
use crate::open;
use crate::options::{InDoubt, Options};
use crate::registry;
use crate::store::Core;
use crate::tree::cursor::Seek;
use crate::txn::Txn;
use crate::waits::Waits;
use crate::{Durability, names};
use fulgurite_disk::mutation::{Mutation, planted};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A pause between two looks for a coordinator that somebody is opening or has open.
const PAUSE: Duration = Duration::from_millis(2);

/// Settles what is in doubt, within the transaction that replays the log; whether there
/// was anything.
///
/// # Errors
/// `CantOpen` where the coordinator is not there; `Busy` where another process has it;
/// whatever reading it fails with.
pub(crate) fn settle(txn: &mut Txn) -> Result<bool> {
    let Some(tree) = names::find_in(txn, PREPARED)? else {
        return Ok(false);
    };
    if txn.count(&tree)? == 0 {
        return Ok(false);
    }
    let mut entries = Vec::new();
    let mut cursor = txn.cursor(&tree)?;
    let mut more = cursor.seek(Seek::First)?;
    while more {
        let number = Number::from_key(cursor.key_bytes()?)?;
        entries.push((number, cursor.value()?.to_vec()));
        more = cursor.next()?;
    }
    drop(cursor);
    for (number, entry) in entries {
        let entry = Prepared::decode(&entry)?;
        if is_committed(txn.store().core(), &entry, &number)? {
            txn.replay_operations(entry.redo)?;
        }
        txn.delete(&tree, number.key())?;
    }
    Ok(true)
}

fn is_committed(core: &Core, entry: &Prepared<'_>, number: &Number) -> Result<bool> {
    match core.options.in_doubt {
        InDoubt::Ask => {}
        InDoubt::Commit => return Ok(true),
        InDoubt::RollBack => return Ok(false),
    }
    let Some(path) = find_coordinator(core, entry)? else {
        return Err(Error::new(
            ErrorKind::CantOpen,
            format!(
                "unable to open database file: {} was left while a transaction was committed to it \
                 and to {}, which alone knows whether it was; put that file, and its log, back \
                 where it was or beside this one, or open this one with a decision (Options::in_doubt, --in-doubt)",
                core.pool.path,
                entry.path.display()
            ),
        ));
    };
    ask(core, &path, number).map_err(|error| {
        error.during(&format!(
            "asking {} for the outcome of a transaction that {} has part in",
            path.display(),
            core.pool.path
        ))
    })
}

/// Where the coordinator's file is.
fn find_coordinator(core: &Core, entry: &Prepared<'_>) -> Result<Option<PathBuf>> {
    let own = core.path.as_deref();
    let name = entry.path.file_name();
    let beside = own.and_then(Path::parent).zip(name);
    let beside = beside.map(|(folder, name)| folder.join(name));
    let candidates = beside.into_iter().chain([entry.path.clone()]);
    for path in candidates.filter(|path| Some(path.as_path()) != own) {
        if core.disk.exists(&path)? {
            let path = open::resolve(&*core.disk, &path)?;
            if open::database_id(&*core.disk, &path)? == Some(entry.coordinator) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn ask(core: &Core, path: &Path, number: &Number) -> Result<bool> {
    let waits = Waits::new(core.options.driver.clone());
    let until = waits.now().saturating_add(core.options.busy_timeout);
    loop {
        let opened = match registry::find_open(&core.disk, path)? {
            Some(store) => check_lasts(core, store.core()).map(|()| store),
            None => open::open_unsettled(core.disk.clone(), path, options_to_ask(&core.options)),
        };
        match opened {
            Err(error) if error.kind() == ErrorKind::Busy && waits.now() < until => {
                waits.pause(PAUSE);
            }
            Err(error) => return Err(error),
            Ok(store) => {
                let mut txn = store.txn();
                txn.begin_read()?;
                return decisions::is_decided(&mut txn, number);
            }
        }
    }
}

/// Fails where what an open coordinator shows is not to be relied upon. After a failed write
/// or sync its log may hold the decision, or not, which is only known when it is opened
/// again. And one that is open for reading only has replayed a decision that a power cut may
/// still take, which whoever does not write here may show as well.
fn check_lasts(core: &Core, coordinator: &Core) -> Result<()> {
    if coordinator.options.read_only && core.options.read_only {
        return Ok(());
    }
    registry::check_not_only_read(coordinator)?;
    coordinator.check_writable()
}

fn options_to_ask(options: &Options) -> Options {
    Options {
        create: false,
        read_only: options.read_only || planted(Mutation::BelieveUnsyncedDecision),
        durability: Durability::Full,
        busy_timeout: Duration::ZERO,
        // A lost log may have held the decision.
        abandon_missing_log: false,
        ..options.clone()
    }
}

#[cfg(test)]
mod tests;
