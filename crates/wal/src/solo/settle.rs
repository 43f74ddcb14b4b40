//! Opening a mirror: which of its sides is the truth, and the other one made equal to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskErrorKind, DiskFile, OpenOptions, parent_dir};

use super::error::{Error, Result};
use super::header::Header;
use super::label::{BOTH, FIRST_EPOCH, Label, first_label};
use super::mend::mend;
use super::open::{judge, laps_of};
use super::options::Lone;
use super::passing;
use super::reader::Walk;
use super::sectors::SECTOR_BYTES;
use super::volume::{BLOCK, START};

pub(super) const CHUNK_BYTES: u64 = 1 << 20;

/// What is found under a side's name.
enum Side {
    Missing,
    Labelled(Label),
    /// A file that does not say what it is a side of, and why it does not.
    Unlabelled(Error),
}

/// What is to be done.
enum Plan {
    /// The sides are equal, but for what the second may lack or have too much.
    Equalize { truth: usize },
    /// One side has this label, and the other one is not to be gone by.
    Alone { truth: usize, label: Label },
}

/// Decides which side is the truth, and makes the other one equal to it. The
/// sides to go on with, the truth first. A side that is made here is locked.
pub(super) fn settle(
    disk: &dyn Disk,
    paths: [&Path; 2],
    lone: Lone,
    locks: &mut Vec<Arc<dyn DiskFile>>,
) -> Result<Vec<PathBuf>> {
    let sides = [look_at(disk, paths[0])?, look_at(disk, paths[1])?];
    let (truth, mut label) = match plan(disk, paths, &sides, lone)? {
        Plan::Equalize { truth } => {
            let other = paths[1 - truth];
            equalize(disk, paths[truth], other)?;
            return Ok(vec![paths[truth].to_owned(), other.to_owned()]);
        }
        Plan::Alone { truth, label } => (truth, label),
    };
    let other = paths[1 - truth];
    let file = disk.open(paths[truth], OpenOptions::WRITE)?;
    let is_in_the_making = is_in_the_making(&*file, paths[truth], label);
    if is_in_the_making {
        disk.sync_dir(parent_dir(paths[truth]))?;
    }
    let goes_on_alone = match &sides[1 - truth] {
        // It is known to be stale, or a copy.
        Side::Labelled(_) => false,
        Side::Missing if is_in_the_making => false,
        Side::Missing if lone == Lone::Refuse => {
            return Err(Error::SideMissing {
                file: other.to_owned(),
            });
        }
        Side::Missing => lone == Lone::Open,
        Side::Unlabelled(cause) => {
            let header = Header::read(&*file, paths[truth]).map_err(damaged)?;
            refuse_stranger(disk, paths[truth], header, other, cause, lone)?;
            lone == Lone::Open
        }
    };
    // What cannot be read is not made the only member: the other side may be whole.
    judge(&file, paths[truth]).map_err(damaged)?;
    // Before a copy of it takes the other side's place, too, the truth is alone: what that
    // takes the place of is stale from then on, should it come back, and the copy is
    // known for one until both sides say that they are members.
    label.epoch += 1;
    label.members = 1 << truth;
    label.write(&*file)?;
    if goes_on_alone {
        return Ok(vec![paths[truth].to_owned()]);
    }
    locks.push(rebuild(disk, &*file, label.salt, other)?);
    label.epoch += 1;
    label.members = BOTH;
    label.write(&*file)?;
    label.write(&*disk.open(other, OpenOptions::WRITE)?)?;
    Ok(vec![paths[truth].to_owned(), other.to_owned()])
}

/// Refuses what has the place of the other side of a log with this head and does not say
/// that it is one: for good, if it is none, and where the options do not say otherwise.
fn refuse_stranger(
    disk: &dyn Disk,
    truth: &Path,
    header: Header,
    other: &Path,
    cause: &Error,
    lone: Lone,
) -> Result<()> {
    let is_side = match is_of_log(disk, other, header) {
        Ok(is_of_log) => is_of_log && !matches!(cause, Error::NotMirrored { .. }),
        // Without it nothing becomes of what nobody can read.
        Err(error) if lone == Lone::Open && is_damage(&error) => true,
        Err(error) => return Err(error),
    };
    if !is_side {
        return Err(Error::NotASide {
            file: other.to_owned(),
            log: truth.to_owned(),
        });
    }
    if lone == Lone::Refuse {
        return Err(Error::SideUnreadable {
            file: other.to_owned(),
            source: Arc::new(damaged(cause.clone())),
        });
    }
    Ok(())
}

fn look_at(disk: &dyn Disk, path: &Path) -> Result<Side> {
    if !disk.exists(path)? {
        return Ok(Side::Missing);
    }
    let file = disk.open(path, OpenOptions::READ)?;
    let cause = match Label::read(&*file, path) {
        Ok(label) => return Ok(Side::Labelled(label)),
        Err(error @ Error::Disk(_)) if !is_damage(&error) => return Err(error),
        Err(cause) => cause,
    };
    match (Header::read(&*file, path), cause) {
        (Ok(_), cause) => Ok(Side::Unlabelled(cause)),
        (Err(head), Error::NotMirrored { .. }) if is_damage(&head) => Ok(Side::Unlabelled(head)),
        (Err(head), cause) if is_damage(&head) => Ok(Side::Unlabelled(cause)),
        (Err(error), _) => Err(error),
    }
}

/// Whether an error says that there is nothing to be read, be it that the disk has lost it,
/// and not that it is denied to this program.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. } | Error::NotALog { .. } => true,
        Error::Disk(error) => error.kind == DiskErrorKind::Other,
        _ => false,
    }
}

/// What is wrong with a file that is a side of a mirror, whatever its head looks like.
fn damaged(error: Error) -> Error {
    match error {
        Error::NotALog { file } => Error::Corrupt {
            file,
            position: 0,
            what: "the head is gone".to_owned(),
        },
        error => error,
    }
}

/// Whether a side is one that no opening ever wrote to, so that it holds nothing: making
/// the log was cut short, and is completed, unless the other side was there to be
/// written to alone.
fn is_in_the_making(file: &dyn DiskFile, path: &Path, label: Label) -> bool {
    let is_unused = Header::read(file, path).is_ok_and(|header| header.life == 0);
    is_unused && (label.epoch == FIRST_EPOCH || label.members != BOTH)
}

/// Whether a file that does not say so is a side of the log with that head all the same, or
/// holds nothing at all, so that a copy may take its place.
fn is_of_log(disk: &dyn Disk, path: &Path, header: Header) -> Result<bool> {
    let file = disk.open(path, OpenOptions::READ)?;
    match Header::read(&*file, path) {
        Ok(own) => return Ok(own.salt == header.salt),
        Err(error) if !is_damage(&error) => return Err(error),
        Err(_) => {}
    }
    // A record of the log in its place is in no other file.
    let (volume, end) = laps_of(&file, &header)?;
    if Walk::over(volume, path, header, end)?.next()?.is_some() {
        return Ok(true);
    }
    let len = file.len()?;
    let mut bytes = vec![0; CHUNK_BYTES as usize];
    for at in (0..len).step_by(CHUNK_BYTES as usize) {
        let chunk = &mut bytes[..(len - at).min(CHUNK_BYTES) as usize];
        file.read_at(chunk, at)?;
        if chunk.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
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

/// Which side is the truth, by what the two say of themselves.
fn plan(disk: &dyn Disk, paths: [&Path; 2], sides: &[Side; 2], lone: Lone) -> Result<Plan> {
    match sides {
        [Side::Labelled(first), Side::Labelled(second)] => choose(disk, paths, [*first, *second]),
        [Side::Labelled(label), _] => Ok(Plan::Alone {
            truth: 0,
            label: *label,
        }),
        [_, Side::Labelled(label)] => Ok(Plan::Alone {
            truth: 1,
            label: *label,
        }),
        [Side::Unlabelled(cause), Side::Missing] => adopt(disk, paths, 0, cause, lone),
        [Side::Missing, Side::Unlabelled(cause)] => adopt(disk, paths, 1, cause, lone),
        [Side::Unlabelled(cause), _] => Err(cause.clone()),
        // Gone since it was locked.
        [Side::Missing, Side::Missing] => Err(Error::SideMissing {
            file: paths[0].to_owned(),
        }),
    }
}

/// Takes a log of one file for the side of a mirror whose other side is to be made, where
/// that was asked for.
fn adopt(
    disk: &dyn Disk,
    paths: [&Path; 2],
    truth: usize,
    cause: &Error,
    lone: Lone,
) -> Result<Plan> {
    if lone != Lone::Rebuild || !matches!(cause, Error::NotMirrored { .. }) {
        return Err(cause.clone());
    }
    let file = disk.open(paths[truth], OpenOptions::READ)?;
    let header = Header::read(&*file, paths[truth])?;
    Ok(Plan::Alone {
        truth,
        label: first_label(header.salt),
    })
}

/// Of two sides that are there: which one is the truth, and whether the other
/// one is a member too.
fn choose(disk: &dyn Disk, paths: [&Path; 2], labels: [Label; 2]) -> Result<Plan> {
    let diverged = || Error::SidesDiverged {
        first: paths[0].to_owned(),
        second: paths[1].to_owned(),
    };
    let alone = |truth: usize| Plan::Alone {
        truth,
        label: labels[truth],
    };
    if labels[0].salt != labels[1].salt {
        return Err(Error::NotASide {
            file: paths[1].to_owned(),
            log: paths[0].to_owned(),
        });
    }
    if labels[0].epoch != labels[1].epoch {
        let newer = usize::from(labels[1].epoch > labels[0].epoch);
        let agreed = labels[newer].has(newer) && labels[1 - newer].has(newer);
        return if agreed {
            Ok(alone(newer))
        } else {
            Err(diverged())
        };
    }
    if labels[0].members != labels[1].members {
        return Err(diverged());
    }
    if labels[0].members != BOTH {
        // One is a copy of the other, made by a rebuilding that was cut short.
        return Ok(alone(usize::from(labels[0].has(1))));
    }
    let truth = further(disk, paths)?;
    Ok(Plan::Equalize { truth })
}

/// Which of two members reaches further. Both hold all that was acknowledged; what one of
/// them lacks of that was lost since, and need not have left a witness there. A damaged one
/// may have what the other lost.
fn further(disk: &dyn Disk, paths: [&Path; 2]) -> Result<usize> {
    let reach = |path: &Path| {
        let found = judge(&disk.open(path, OpenOptions::READ)?, path).map_err(damaged)?;
        Ok::<_, Error>((found.header.life, found.end))
    };
    match (reach(paths[0]), reach(paths[1])) {
        (Ok(first), Ok(second)) => Ok(usize::from(second > first)),
        (Err(error), _) | (_, Err(error)) if !is_damage(&error) => Err(error),
        (Err(error), _) | (_, Err(error)) => mend(disk, paths)?.ok_or(error),
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
    let source = disk.open(from, OpenOptions::READ)?;
    let target = disk.open(to, OpenOptions::WRITE)?;
    let len = source.len()?;
    if target.len()? != len {
        target.truncate(len)?;
    }
    let mut bytes = vec![0; CHUNK_BYTES as usize];
    // The head is mostly spare room, and the rest of it is there twice: what the truth has
    // lost of it is no reason to lose it on the other side.
    for at in (0..START).step_by(SECTOR_BYTES) {
        let sector = &mut bytes[..SECTOR_BYTES];
        if source.read_at(sector, at).is_ok() {
            write_where_different(&*target, sector, at)?;
        }
    }
    for at in (START..len).step_by(CHUNK_BYTES as usize) {
        let chunk = &mut bytes[..(len - at).min(CHUNK_BYTES) as usize];
        source.read_at(chunk, at)?;
        write_where_different(&*target, chunk, at)?;
    }
    target.sync_all()?;
    Header::read(&*target, to)?;
    Ok(())
}

/// Writes the blocks that a file does not hold. Of what cannot be read it writes all, which
/// is what a bad sector wants.
fn write_where_different(file: &dyn DiskFile, wanted: &[u8], at: u64) -> Result<()> {
    let mut found = vec![0; wanted.len()];
    let is_read = file.read_at(&mut found, at).is_ok();
    let block = BLOCK as usize;
    let blocks = wanted.chunks(block).zip(found.chunks(block));
    for (number, (wanted, found)) in blocks.enumerate() {
        if !is_read || wanted != found {
            file.write_at(wanted, at + (number * block) as u64)?;
        }
    }
    Ok(())
}
