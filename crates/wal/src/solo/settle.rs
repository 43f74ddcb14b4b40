//! Opening a mirror: which of its sides is the truth, and the other one made equal to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskFile, OpenOptions, parent_dir};

use super::error::{Error, Result};
use super::header::Header;
use super::label::{BOTH, FIRST_EPOCH, Label};
use super::open::judge;
use super::options::Lone;
use super::passing;

const CHUNK_BYTES: u64 = 1 << 20;

/// Decides which side is the truth, and makes the other one equal to it. The
/// sides to go on with, the truth first. A side that is made here is locked.
pub(super) fn settle(
    disk: &dyn Disk,
    paths: [&Path; 2],
    lone: Lone,
    locks: &mut Vec<Arc<dyn DiskFile>>,
) -> Result<Vec<PathBuf>> {
    let there = [disk.exists(paths[0])?, disk.exists(paths[1])?];
    let (truth, whole) = match there {
        [true, true] => choose(disk, paths)?,
        [true, false] => (0, false),
        _ => (1, false),
    };
    let other = 1 - truth;
    let file = disk.open(paths[truth], OpenOptions::WRITE)?;
    let mut label = Label::read(&*file, paths[truth])?;
    if whole {
        equalize(disk, paths[truth], paths[other])?;
        return Ok(vec![paths[truth].to_owned(), paths[other].to_owned()]);
    }
    // A side that no opening ever wrote to holds nothing. Making the log was cut short,
    // and is completed, unless the other side was there to be written to alone.
    let is_unused = Header::read(&*file, paths[truth])?.life == 0;
    let lone = if is_unused && (label.epoch == FIRST_EPOCH || label.members != BOTH) {
        disk.sync_dir(parent_dir(paths[truth]))?;
        Lone::Rebuild
    } else {
        lone
    };
    label.epoch += 1;
    match lone {
        Lone::Refuse if !there[other] => Err(Error::SideMissing {
            file: paths[other].to_owned(),
        }),
        Lone::Open if !there[other] => {
            label.members = 1 << truth;
            label.write(&*file)?;
            Ok(vec![paths[truth].to_owned()])
        }
        _ => {
            judge(&file, paths[truth])?;
            // The truth is alone first: what the copy takes the place of is stale
            // from then on, should it come back, and the copy is known for one
            // until both sides say that they are members.
            label.members = 1 << truth;
            label.write(&*file)?;
            locks.push(rebuild(disk, &*file, label.salt, paths[other])?);
            label.epoch += 1;
            label.members = BOTH;
            label.write(&*file)?;
            label.write(&*disk.open(paths[other], OpenOptions::WRITE)?)?;
            Ok(vec![paths[truth].to_owned(), paths[other].to_owned()])
        }
    }
}

/// Both sides of a log that was just made have their names for good, and say so: where
/// one is missing from now on, it is not for the making's being cut short.
pub(super) fn complete(disk: &dyn Disk, sides: &[PathBuf]) -> Result<()> {
    for side in sides {
        let file = disk.open(side, OpenOptions::WRITE)?;
        let mut label = Label::read(&*file, side)?;
        if label.epoch == FIRST_EPOCH {
            label.epoch += 1;
            label.write(&*file)?;
        }
    }
    Ok(())
}

/// Of two sides that are there: which one is the truth, and whether the other
/// one is a member too.
fn choose(disk: &dyn Disk, paths: [&Path; 2]) -> Result<(usize, bool)> {
    let open = |side: usize| disk.open(paths[side], OpenOptions::READ);
    let files = [open(0)?, open(1)?];
    let labels = [
        Label::read(&*files[0], paths[0])?,
        Label::read(&*files[1], paths[1])?,
    ];
    let diverged = || Error::SidesDiverged {
        first: paths[0].to_owned(),
        second: paths[1].to_owned(),
    };
    if labels[0].salt != labels[1].salt {
        return Err(Error::NotALog {
            file: paths[1].to_owned(),
        });
    }
    if labels[0].epoch != labels[1].epoch {
        let newer = usize::from(labels[1].epoch > labels[0].epoch);
        let agreed = labels[newer].has(newer) && labels[1 - newer].has(newer);
        return if agreed {
            Ok((newer, false))
        } else {
            Err(diverged())
        };
    }
    if labels[0].members != labels[1].members {
        return Err(diverged());
    }
    if labels[0].members != BOTH {
        // One is a copy of the other, made by a rebuilding that was cut short.
        return Ok((usize::from(labels[0].has(1)), false));
    }
    match judge(&files[0], paths[0]) {
        Err(Error::Corrupt { .. }) if judge(&files[1], paths[1]).is_ok() => Ok((1, true)),
        Err(error) => Err(error),
        Ok(_) => Ok((0, true)),
    }
}

/// Copies a whole side to a new file, locked, that then takes the path `to`.
fn rebuild(
    disk: &dyn Disk,
    from: &dyn DiskFile,
    salt: u64,
    to: &Path,
) -> Result<Arc<dyn DiskFile>> {
    let (passing, file) = passing::open(disk, to)?;
    passing::empty(&*file, &passing, Some(salt))?;
    let len = from.len()?;
    let mut bytes = vec![0; CHUNK_BYTES as usize];
    for at in (0..len).step_by(CHUNK_BYTES as usize) {
        let chunk = &mut bytes[..(len - at).min(CHUNK_BYTES) as usize];
        from.read_at(chunk, at)?;
        file.write_at(chunk, at)?;
    }
    file.sync_all()?;
    disk.rename(&passing, to)?;
    disk.sync_dir(parent_dir(to))?;
    Ok(file)
}

/// Writes what differs, so that the side `to` is what the side `from` is. Both
/// hold everything acknowledged, so no durable byte changes.
fn equalize(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    const BLOCK: usize = 4096;
    let source = disk.open(from, OpenOptions::READ)?;
    let target = disk.open(to, OpenOptions::WRITE)?;
    let len = source.len()?;
    if target.len()? != len {
        target.truncate(len)?;
    }
    let (mut wanted, mut found) = (vec![0; CHUNK_BYTES as usize], vec![0; CHUNK_BYTES as usize]);
    for at in (0..len).step_by(CHUNK_BYTES as usize) {
        let count = (len - at).min(CHUNK_BYTES) as usize;
        source.read_at(&mut wanted[..count], at)?;
        target.read_at(&mut found[..count], at)?;
        let blocks = wanted[..count]
            .chunks(BLOCK)
            .zip(found[..count].chunks(BLOCK));
        for (number, (wanted, found)) in blocks.enumerate() {
            if wanted != found {
                target.write_at(wanted, at + (number * BLOCK) as u64)?;
            }
        }
    }
    target.sync_all()?;
    Header::read(&*target, to)?;
    Ok(())
}
