//! Two sides of a mirror of which neither is whole: each has what the other lost.
//!
//! The records are walked along on whichever side has them. If that comes to a log of
//! which nothing durable is missing, what one side lacks is written into it from the
//! other, and synced; it is whole from then on, and the other one is made equal to it as
//! after every opening (`settle.rs`). Otherwise nothing is written.
//!
//! Only records that are valid take the place of bytes that are none, and sectors that
//! can be read that of sectors that cannot, so that a mending that is cut short has taken
//! nothing away.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskFile, OpenOptions};

use super::error::Result;
use super::header::Header;
use super::open::laps_of;
use super::reader::Walk;
use super::sectors::{WithSectorsOf, pieces};
use super::settle::CHUNK_BYTES;
use super::volume::{START, Volume};

/// The sides, the one to be mended first.
struct Sides<'p> {
    path: &'p Path,
    header: Header,
    files: [Arc<dyn DiskFile>; 2],
    /// Where their records lie.
    laps: [Volume; 2],
    /// Up to where some may. What a file that was cut short lacks of that cannot be read.
    end: u64,
}

/// Mends one of two damaged sides, and says which; `None` where together they are not
/// whole either.
pub(super) fn mend(disk: &dyn Disk, paths: [&Path; 2]) -> Result<Option<usize>> {
    let mut files = Vec::new();
    let mut newest: Option<(usize, Header)> = None;
    for (side, path) in paths.into_iter().enumerate() {
        let file = disk.open(path, OpenOptions::WRITE)?;
        if let Ok(header) = Header::read(&*file, path)
            && header.can_go_on()
            && newest.is_none_or(|(_, newest)| header.update > newest.update)
        {
            newest = Some((side, header));
        }
        files.push(file);
    }
    let (Some((mended, header)), [first, second]) = (newest, &*files) else {
        return Ok(None);
    };
    let files = match mended {
        0 => [first, second].map(Arc::clone),
        _ => [second, first].map(Arc::clone),
    };
    if files[0].len()?.max(files[1].len()?) < START + header.prepared {
        return Ok(None);
    }
    let [first, second] = [[0, 1], [1, 0]]
        .map(|[own, other]| laps_of(&WithSectorsOf::file(&files[other], &files[own]), &header));
    let [(first, end), (second, other_end)] = [first?, second?];
    let sides = Sides {
        path: paths[mended],
        header,
        files,
        laps: [first, second],
        end: end.max(other_end),
    };
    let Some(lacking) = sides.lacking_in_first()? else {
        return Ok(None);
    };
    let Some(unreadable) = sides.unreadable_in_first()? else {
        return Ok(None);
    };
    sides.write(&lacking, &unreadable)?;
    Ok(Some(mended))
}

impl Sides<'_> {
    /// The log positions of the records that only the second side has; `None` where
    /// something durable is on neither.
    fn lacking_in_first(&self) -> Result<Option<Vec<Range<u64>>>> {
        let mut on = 0;
        let volume = self.laps[on].clone();
        let mut walk = Walk::over(volume, self.path, self.header, self.end)?;
        let mut lacking: Vec<Range<u64>> = Vec::new();
        let mut left_at = None;
        loop {
            let from = walk.position;
            let found = matches!(walk.next(), Ok(Some(_)));
            // Beginnings of lives are passed on the way to the entry that is not there.
            if on == 1 && walk.position > from {
                match lacking.last_mut().filter(|last| last.end == from) {
                    Some(last) => last.end = walk.position,
                    None => lacking.push(from..walk.position),
                }
            }
            if found {
                continue;
            }
            if left_at == Some(walk.position) {
                break;
            }
            left_at = Some(walk.position);
            on = 1 - on;
            walk.read_from(self.laps[on].clone(), self.end)?;
        }
        if walk.position < self.header.life_start {
            return Ok(None);
        }
        for volume in self.laps.clone() {
            walk.read_from(volume, self.end)?;
            if !matches!(walk.testimony(), Ok(None)) {
                return Ok(None);
            }
        }
        Ok(Some(lacking))
    }

    /// What can be read on the second side only, in the file; `None` where something can be
    /// read on neither, which may have been anything.
    fn unreadable_in_first(&self) -> Result<Option<Vec<Range<u64>>>> {
        let [first, second] = &self.files;
        let len = first.len()?;
        let end = len.max(second.len()?);
        let mut unreadable = Vec::new();
        let mut bytes = vec![0; CHUNK_BYTES as usize];
        for at in (START..end).step_by(CHUNK_BYTES as usize) {
            let chunk = at..end.min(at + CHUNK_BYTES);
            let length = |range: &Range<u64>| (range.end - range.start) as usize;
            if first.read_at(&mut bytes[..length(&chunk)], at).is_ok() {
                continue;
            }
            for piece in pieces(chunk, len) {
                let bytes = &mut bytes[..length(&piece)];
                if first.read_at(bytes, piece.start).is_ok() {
                    continue;
                }
                if second.read_at(bytes, piece.start).is_err() {
                    return Ok(None);
                }
                unreadable.push(piece);
            }
        }
        Ok(Some(unreadable))
    }

    /// Writes all that into the first side. Whole sectors first: what stands beside a
    /// record in one that cannot be read is on the other side, too.
    fn write(&self, lacking: &[Range<u64>], unreadable: &[Range<u64>]) -> Result<()> {
        let [first, second] = &self.files;
        // The second is left as it is: what it lacks is read from the first as long as it
        // does not end there in zeros.
        let len = second.len()?;
        if first.len()? < len {
            first.truncate(len)?;
        }
        let mut bytes = vec![0; CHUNK_BYTES as usize];
        for piece in unreadable {
            let bytes = &mut bytes[..(piece.end - piece.start) as usize];
            second.read_at(bytes, piece.start)?;
            first.write_at(bytes, piece.start)?;
        }
        let [to, from] = &self.laps;
        for range in lacking {
            for at in range.clone().step_by(CHUNK_BYTES as usize) {
                let chunk = &mut bytes[..(range.end - at).min(CHUNK_BYTES) as usize];
                from.read(chunk, at)?;
                to.write(at, &[chunk], false)?;
            }
        }
        first.sync_all()?;
        Ok(())
    }
}
