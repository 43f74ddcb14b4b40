//! What a log holds: which records follow the checkpoint without a gap, and
//! whether anything durable is missing.
//!
//! One number is looked for at a time, the *wanted* sequence number, beginning
//! behind the checkpoint. The generations are walked oldest first, each from its
//! begin record along its records. Meanwhile every valid record and every head,
//! wanted or not, contributes its durable mark. In the end:
//!
//! - the highest mark reaches the wanted number: that record was durable once
//!   and cannot be read now, which is rot, reported with the file and the
//!   position where the chain of records broke;
//! - otherwise it never was durable: a torn tail. What lies behind it was never
//!   acknowledged in `full` mode, and may be lost in the others.
//!
//! After an invalid record the walk looks on at every aligned position: for
//! marks always; for a place to go on only as long as nothing was taken yet,
//! that is, where the damage lies in records the checkpoint covers anyway.
//!
//! A lease (`lease.rs`) whose process ended before it is no gap as long as the system
//! that kept its records is still the same: the walk goes on behind its room. Where it
//! is another one, what leases hold counts from the end of their phase on: a phase that
//! is not complete is a torn tail from its beginning.
//!
//! A generation is left out, with its marks, where a newer one begins at or
//! before the checkpoint: it holds nothing that is wanted, its file may be in
//! the middle of being made the next generation, or its tail may hold records
//! from before an earlier recovery that were cut off then.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::mutation::{Mutation, planted};
use fulgurite_disk::{Disk, DiskFile, OpenOptions};

use super::error::{Error, Result};
use super::header::{self, Header, NUMBER_MAX, RECORDS_START};
use super::lease::{Begin, End, KIND_LEASE, KIND_LEASE_END};
use super::record::{Head, KIND_BEGIN, Kind};
use super::window::Window;

/// Records of one file that are to be replayed, one after the other.
pub(super) struct Run {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) path: PathBuf,
    pub(super) salt: u64,
    pub(super) position: u64,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
}

/// A generation found on disk.
pub(super) struct Found {
    pub(super) header: Header,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// The sequence number of its begin record, if that can be read.
    begins_after: Option<u64>,
}

impl Found {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Finds the generations of a log, oldest first.
pub(super) fn find(disk: &dyn Disk, base: &Path, database: &[u8; 16]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for slot in 0..2 {
        let path = header::path_of(base, slot);
        if !disk.exists(&path)? {
            continue;
        }
        let file = disk.open(&path, OpenOptions::READ)?;
        let header = Header::read(&*file, &path, database)?;
        let mut window = Window::new(Arc::clone(&file), &path, header.salt)?;
        let begin = window.valid_record_at(RECORDS_START)?;
        let begins_after = begin
            .filter(|head| head.kind == KIND_BEGIN)
            .map(|head| head.seq);
        found.push(Found {
            header,
            file,
            path,
            begins_after,
        });
    }
    found.sort_by_key(|generation| generation.header.number);
    match found.as_slice() {
        [older, newer] if older.header.number == newer.header.number => Err(Error::Corrupt {
            file: newer.path.clone(),
            position: 0,
            what: format!("both files claim to be generation {}", newer.header.number),
        }),
        _ => Ok(found),
    }
}

/// What [`survey`] found.
pub(super) struct Survey {
    pub(super) runs: Vec<Run>,
    pub(super) last_seq: u64,
}

/// Decides what of the generations is to be replayed.
/// `boot` names the system that kept what was written, if it can be told.
pub(super) fn survey(found: &[Found], after_seq: u64, boot: Option<[u8; 16]>) -> Result<Survey> {
    let irrelevant = found
        .iter()
        .rposition(|generation| generation.begins_after.is_some_and(|seq| seq <= after_seq))
        .unwrap_or(0);
    let relevant = found.get(irrelevant..).unwrap_or_default();
    let mut walk = Walk::new(after_seq, boot);
    for (index, generation) in relevant.iter().enumerate() {
        let successor = relevant
            .get(index + 1..)
            .unwrap_or_default()
            .iter()
            .find_map(|next| next.begins_after);
        walk.generation(generation, successor)?;
    }
    walk.judge()?;
    Ok(Survey {
        last_seq: walk.wanted - 1,
        runs: walk.runs,
    })
}

/// A file and a position in it.
type Place = (PathBuf, u64);

struct Walk {
    after_seq: u64,
    wanted: u64,
    /// The highest durable mark, and where it was found.
    durable: u64,
    durable_at: Place,
    /// Where the wanted record should have been.
    break_at: Place,
    runs: Vec<Run>,
    /// Whether the next record follows the last one of `runs`.
    in_run: bool,
    boot: Option<[u8; 16]>,
    /// A phase of leases that is taken as a whole or not at all.
    phase: Option<Phase>,
    /// The first record that is not there behind those of a lease that never ended, and
    /// its place.
    unwritten: Option<(u64, Place)>,
}

struct Phase {
    /// What was wanted, and how many runs there were, before it.
    wanted: u64,
    runs: usize,
    /// Its last number, once that is known.
    last: Option<u64>,
}

/// What a valid record means for the walk.
enum Step {
    /// Nothing to replay: the generation's beginning, or covered by the checkpoint.
    Pass,
    Take,
    /// The records from here on do not belong to what is replayed.
    Stop,
}

impl Walk {
    fn new(after_seq: u64, boot: Option<[u8; 16]>) -> Self {
        Self {
            after_seq,
            wanted: after_seq + 1,
            durable: 0,
            durable_at: Place::default(),
            break_at: Place::default(),
            runs: Vec::new(),
            in_run: false,
            boot,
            phase: None,
            unwritten: None,
        }
    }

    fn took_anything(&self) -> bool {
        self.wanted > self.after_seq + 1
    }

    fn note_mark(&mut self, durable: u64, path: &Path, position: u64) {
        if self.durable < durable {
            self.durable = durable;
            self.durable_at = (path.to_owned(), position);
        }
    }

    /// Walks one generation. Its records behind `successor`, the number its
    /// successor begins after, are void.
    fn generation(&mut self, found: &Found, successor: Option<u64>) -> Result<()> {
        let mut window = Window::new(Arc::clone(&found.file), &found.path, found.header.salt)?;
        self.note_mark(found.header.durable, &found.path, 0);
        let continues = found.begins_after.is_some_and(|seq| seq < self.wanted);
        let mut position = RECORDS_START;
        let mut lease = None;
        self.in_run = false;
        let saw_more = loop {
            if let Some(head) = window.valid_record_at(position)? {
                self.note_mark(head.durable, &found.path, position);
                let step = self.step(&head, found, position, successor)?;
                if matches!(step, Step::Stop) {
                    self.look_on(&mut window, position)?;
                    break false;
                }
                let takes = matches!(step, Step::Take);
                let next = position + head.total_bytes();
                position = match head.kind {
                    KIND_LEASE => {
                        lease = Some(self.begin_lease(&mut window, (&head, position), takes)?);
                        next
                    }
                    KIND_LEASE_END => {
                        lease = None;
                        self.end_lease(&mut window, (&head, position), takes)?
                    }
                    _ if takes => {
                        self.take(found, position);
                        next
                    }
                    _ => next,
                };
                continue;
            }
            if let Some(open) = lease.take_if(|lease: &mut Begin| self.keeps(lease)) {
                self.leave_open(&mut window, &open, position)?;
                position = open.end;
                continue;
            }
            let beyond = self.look_on(&mut window, position)?;
            match beyond.resume {
                Some(resume) => position = resume,
                None => break beyond.saw_valid,
            }
        };
        let is_first = self.break_at.0.as_os_str().is_empty();
        if is_first || continues || saw_more {
            self.break_at = (found.path.clone(), position);
        }
        if let Some(phase) = self.phase.take() {
            self.wanted = phase.wanted;
            self.runs.truncate(phase.runs);
        }
        Ok(())
    }

    fn step(
        &self,
        head: &Head,
        found: &Found,
        position: u64,
        successor: Option<u64>,
    ) -> Result<Step> {
        if head.kind == KIND_BEGIN && position == RECORDS_START {
            return Ok(if head.seq < self.wanted {
                Step::Pass
            } else {
                Step::Stop
            });
        }
        if head.seq > NUMBER_MAX {
            return Err(Error::Corrupt {
                file: found.path.clone(),
                position,
                what: format!("a record of number {}, which no log comes to", head.seq),
            });
        }
        let is_lease = matches!(head.kind, KIND_LEASE | KIND_LEASE_END);
        if !is_lease && Kind::from_byte(head.kind).is_none() {
            return Err(Error::Corrupt {
                file: found.path.clone(),
                position,
                what: format!("a record of the unknown kind {}", head.kind),
            });
        }
        let void = successor.is_some_and(|last| head.seq > last);
        Ok(match head.seq.cmp(&self.wanted) {
            Ordering::Less => Step::Pass,
            Ordering::Equal if !void => Step::Take,
            _ => Step::Stop,
        })
    }

    fn take(&mut self, found: &Found, position: u64) {
        let seq = self.wanted;
        self.wanted += 1;
        match self.runs.last_mut() {
            Some(run) if self.in_run => run.last_seq = seq,
            _ => self.runs.push(Run {
                file: Arc::clone(&found.file),
                path: found.path.clone(),
                salt: found.header.salt,
                position,
                first_seq: seq,
                last_seq: seq,
            }),
        }
        self.in_run = true;
    }

    /// Whether the system that kept a lease's records is still there.
    fn keeps(&self, lease: &Begin) -> bool {
        self.boot == Some(lease.boot) && !planted(Mutation::OpenLeaseIsEnd)
    }

    /// The walk has come to the beginning of a lease.
    fn begin_lease(
        &mut self,
        window: &mut Window,
        (head, position): (&Head, u64),
        takes: bool,
    ) -> Result<Begin> {
        let payload = window.payload_at(position, head.len)?;
        let begin = payload.and_then(Begin::decode).filter(|begin| {
            (begin.phase..=begin.last.min(NUMBER_MAX)).contains(&head.seq)
                && begin.last <= NUMBER_MAX
                && is_behind(begin.end, position + head.total_bytes())
        });
        let Some(begin) = begin else {
            return Err(senseless(window, position));
        };
        if takes {
            let is_kept = self.keeps(&begin) || planted(Mutation::TornPhase);
            if !is_kept && self.phase.is_none() {
                self.phase = Some(Phase {
                    wanted: self.wanted,
                    runs: self.runs.len(),
                    last: None,
                });
            }
            self.wanted += 1;
            self.in_run = false;
        }
        Ok(begin)
    }

    /// The walk has come to the end of a lease. Returns where it goes on.
    fn end_lease(
        &mut self,
        window: &mut Window,
        (head, position): (&Head, u64),
        takes: bool,
    ) -> Result<u64> {
        let payload = window.payload_at(position, head.len)?;
        let end = payload.and_then(End::decode).filter(|end| {
            (head.seq..=NUMBER_MAX).contains(&end.last)
                && is_behind(end.end, position + head.total_bytes())
        });
        let Some(end) = end else {
            return Err(senseless(window, position));
        };
        if takes {
            self.wanted = end.last + 1;
            self.in_run = false;
            let completed = |phase: &mut Phase| {
                phase.last = phase
                    .last
                    .or((end.phase_last > 0).then_some(end.phase_last));
                phase.last.is_some_and(|last| last <= end.last)
            };
            self.phase.take_if(completed);
        }
        Ok(end.end)
    }

    /// The records of a lease stop at `position` without its end record: its process
    /// ended before. One committer wrote them one after the other, so any that lies
    /// behind says that this one was there.
    fn leave_open(&mut self, window: &mut Window, lease: &Begin, position: u64) -> Result<()> {
        let mut at = position;
        while let Some((next, _)) = window.next_head(at + 8)?
            && next < lease.end
        {
            at = next;
            if window.valid_record_at(at)?.is_some() {
                return Err(Error::Corrupt {
                    file: window.path().to_owned(),
                    position,
                    what: format!(
                        "record {} is missing, though one behind it, at byte {at}, was written after it",
                        self.wanted
                    ),
                });
            }
        }
        if self.wanted <= lease.last {
            self.unwritten
                .get_or_insert_with(|| (self.wanted, (window.path().to_owned(), position)));
            self.wanted = lease.last + 1;
            self.in_run = false;
        }
        Ok(())
    }

    /// Looks at every aligned position behind `position` for valid records.
    fn look_on(&mut self, window: &mut Window, mut position: u64) -> Result<Beyond> {
        let mut saw_valid = false;
        loop {
            let Some((next, head)) = window.next_head(position + 8)? else {
                return Ok(Beyond {
                    resume: None,
                    saw_valid,
                });
            };
            position = next;
            let resumes = !self.took_anything() && head.seq <= self.wanted;
            let testifies = head.durable >= self.wanted;
            let plausible = head.durable <= head.seq && (resumes || testifies);
            if plausible && window.valid_record_at(position)?.is_some() {
                if resumes {
                    return Ok(Beyond {
                        resume: Some(position),
                        saw_valid: true,
                    });
                }
                saw_valid = true;
                self.note_mark(head.durable, window.path(), position);
                position += head.total_bytes() - 8;
            }
        }
    }

    fn judge(&self) -> Result<()> {
        let break_at = (self.wanted, self.break_at.clone());
        let missing = [self.unwritten.clone(), Some(break_at)];
        let missing = missing.into_iter().flatten();
        let Some((wanted, (file, position))) = missing
            .into_iter()
            .find(|(wanted, _)| *wanted <= self.durable)
        else {
            return Ok(());
        };
        let (witness, witness_position) = &self.durable_at;
        let what = format!(
            "record {wanted} is missing, though everything up to record {} was durable according to {} at byte {witness_position}",
            self.durable,
            witness.display(),
        );
        Err(Error::Corrupt {
            file,
            position,
            what,
        })
    }
}

/// What lies behind a record that is missing or not wanted.
struct Beyond {
    /// A record from which the walk can go on.
    resume: Option<u64>,
    /// Whether any record that testifies is there.
    saw_valid: bool,
}

/// Whether a lease's room ends there, of which everything up to `written` was written.
fn is_behind(end: u64, written: u64) -> bool {
    (written..=i64::MAX as u64).contains(&end) && end.is_multiple_of(8)
}

/// A record that is whole and says of a lease what cannot be.
fn senseless(window: &Window, position: u64) -> Error {
    Error::Corrupt {
        file: window.path().to_owned(),
        position,
        what: "a record says of a lease what cannot be".to_owned(),
    }
}
