//! The free-space map: which units of the file are free.
//!
//! Everything below [`FreeMap::end`] that is not free is in use. Free runs are
//! maximal: two never touch. A run is indexed by its start and, within its size
//! class, by its start again: exact classes up to 128 units, then one a power of two,
//! so that the lowest and the tightest fit are found without a walk over all runs.
//!
//! Misuse that rot or a bug can cause (freeing what is free, reserving what is in use)
//! is a typed error and leaves the map as it was.

mod persist;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::ExtentRef;

/// Consecutive units of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// The first unit.
    pub start: u64,
    /// How many.
    pub len: u64,
}

impl Run {
    /// The unit behind the last one.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// The run as one reference, if it is short enough for one.
    pub fn extent(self) -> Option<ExtentRef> {
        ExtentRef::new(self.start, u32::try_from(self.len).ok()?)
    }
}

impl From<ExtentRef> for Run {
    fn from(extent: ExtentRef) -> Run {
        Run {
            start: extent.position(),
            len: u64::from(extent.units()),
        }
    }
}

/// Why the map refuses an operation or a stored map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtentError {
    /// Part of what is to be freed is free already.
    #[error("units {} to {} are freed twice", .0.start, .0.end())]
    DoubleFree(Run),
    /// What is to be freed or truncated lies outside the file, or is empty.
    #[error("units {} to {} are not part of the file", .0.start, .0.end())]
    Outside(Run),
    /// What is to be reserved is in use.
    #[error("units {} to {} are used twice", .0.start, .0.end())]
    InUse(Run),
    /// The stored map is not one.
    #[error("damaged free-space map: {0}")]
    Damaged(&'static str),
    /// Written by a later version.
    #[error("free-space map of version {0}, which is newer than this library")]
    NewerVersion(u8),
}

const EXACT: u64 = 128;
const CLASSES: usize = EXACT as usize + 48;
/// How many runs of a class, not all of which fit, are looked at.
const LOOK: usize = 32;
/// Runs from 32 KiB on take a write of their own without regret.
pub(crate) const LONG: u64 = 512;
/// How many runs that are too short a batch passes over, for each of its pieces.
const PATIENCE: usize = 8;

/// The class of runs of this length, counted from the shortest.
fn class_of(len: u64) -> usize {
    if len <= EXACT {
        return len.saturating_sub(1) as usize;
    }
    (EXACT as usize + (len.ilog2() - EXACT.ilog2()) as usize).min(CLASSES - 1)
}

/// Whether every run of the class of `len` is at least that long.
fn all_fit(len: u64) -> bool {
    len <= EXACT || len.is_power_of_two()
}

/// Places the next pieces in a run, as many as it holds. Returns what they take of it.
fn fill(run: Run, pieces: &[u32], places: &mut Vec<Run>) -> u64 {
    let mut used = 0;
    while let Some(&units) = pieces.get(places.len())
        && used + u64::from(units) <= run.len
    {
        places.push(Run {
            start: run.start + used,
            len: u64::from(units),
        });
        used += u64::from(units);
    }
    used
}

/// The free-space map.
#[derive(Debug, Clone)]
pub struct FreeMap {
    runs: BTreeMap<u64, u64>,
    /// Up to the longest run that there has been: of a small file they are few.
    classes: Vec<BTreeSet<u64>>,
    end: u64,
    free: u64,
}

impl FreeMap {
    /// A map of a file of `end` units, all in use.
    pub fn new(end: u64) -> FreeMap {
        FreeMap {
            runs: BTreeMap::new(),
            classes: Vec::new(),
            end,
            free: 0,
        }
    }

    /// A map with these runs, ascending and apart, built in one go.
    fn from_sorted(end: u64, runs: &[Run]) -> FreeMap {
        let longest = runs.iter().map(|run| class_of(run.len)).max();
        let mut classes = vec![Vec::new(); longest.map_or(0, |class| class + 1)];
        for run in runs {
            classes[class_of(run.len)].push(run.start);
        }
        FreeMap {
            runs: runs.iter().map(|run| (run.start, run.len)).collect(),
            classes: classes.into_iter().map(BTreeSet::from_iter).collect(),
            end,
            free: runs.iter().map(|run| run.len).sum(),
        }
    }

    /// The file's length in units.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many units are free.
    pub fn free_units(&self) -> u64 {
        self.free
    }

    /// How many free runs there are.
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The free runs, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().map(|(&start, &len)| Run { start, len })
    }

    fn add(&mut self, run: Run) {
        if run.len > 0 {
            self.runs.insert(run.start, run.len);
            let class = class_of(run.len);
            if class >= self.classes.len() {
                self.classes.resize(class + 1, BTreeSet::new());
            }
            self.classes[class].insert(run.start);
            self.free += run.len;
        }
    }

    fn take_out(&mut self, run: Run) {
        self.runs.remove(&run.start);
        self.classes[class_of(run.len)].remove(&run.start);
        self.free -= run.len;
    }

    /// The first `units` of a free run.
    fn take_front(&mut self, run: Run, units: u64) -> Run {
        self.take_out(run);
        self.add(Run {
            start: run.start + units,
            len: run.len - units,
        });
        Run {
            start: run.start,
            len: units,
        }
    }

    /// New units at the end of the file, with the free run that ends there.
    fn grow(&mut self, units: u64) -> Run {
        let start = match self.tail() {
            Some(tail) if tail.len < units => {
                self.take_out(tail);
                tail.start
            }
            Some(tail) => return self.take_front(tail, units),
            None => self.end,
        };
        self.end = start + units;
        Run { start, len: units }
    }

    /// The free run at the end of the file.
    fn tail(&self) -> Option<Run> {
        let (&start, &len) = self.runs.last_key_value()?;
        (start + len == self.end).then_some(Run { start, len })
    }

    fn run_at(&self, start: u64) -> Run {
        Run {
            start,
            len: self.runs.get(&start).copied().unwrap_or(0),
        }
    }

    /// Runs of the class of `units` that are long enough, among the lowest [`LOOK`].
    fn fitting(&self, units: u64) -> impl Iterator<Item = Run> + '_ {
        let look = if all_fit(units) { 1 } else { LOOK };
        let class = self.classes.get(class_of(units));
        let class = class.into_iter().flatten().take(look);
        class
            .map(|&start| self.run_at(start))
            .filter(move |run| run.len >= units)
    }

    /// The lowest run that holds `units`.
    fn lowest(&self, units: u64) -> Option<Run> {
        let longer = self
            .classes
            .get(class_of(units) + 1..)
            .unwrap_or_default()
            .iter()
            .filter_map(|class| class.first().copied());
        let fitting = self.fitting(units).next().map(|run| run.start);
        let lowest = longer.chain(fitting).min();
        lowest.map(|start| self.run_at(start))
    }

    /// The lowest place that holds `units`; the file grows if there is none.
    pub fn allocate(&mut self, units: u32) -> Run {
        let units = u64::from(units);
        match self.lowest(units) {
            Some(run) => self.take_front(run, units),
            None => self.grow(units),
        }
    }

    /// Places for the pieces of a batch, in their order and one behind the other as
    /// far as the free runs allow: first in the long runs, from the lowest up, then in
    /// whatever is free, then at the end of the file. Looks at as many runs as it takes,
    /// and some that are too short.
    pub fn allocate_many(&mut self, pieces: &[u32]) -> Vec<Run> {
        let mut places = Vec::with_capacity(pieces.len());
        let total: u64 = pieces.iter().copied().map(u64::from).sum();
        while let Some(&next) = pieces.get(places.len())
            && let Some(run) = self.lowest(LONG.min(total).max(u64::from(next)))
        {
            let used = fill(run, pieces, &mut places);
            self.take_front(run, used);
        }
        let (taken, all_seen) = self.lowest_that_hold(pieces, &mut places);
        for (run, used) in taken {
            self.take_front(run, used);
        }
        while let Some(&units) = pieces.get(places.len()) {
            let place = match all_seen {
                true => self.grow(u64::from(units)),
                false => self.allocate(units),
            };
            places.push(place);
        }
        places
    }

    /// The runs that the next pieces go to, from the lowest up, how much of each, and
    /// whether there are no others. After many that are too short it looks no further.
    fn lowest_that_hold(&self, pieces: &[u32], places: &mut Vec<Run>) -> (Vec<(Run, u64)>, bool) {
        let mut taken = Vec::new();
        let mut patience = PATIENCE * pieces.len();
        for run in self.runs() {
            let Some(&next) = pieces.get(places.len()) else {
                break;
            };
            if run.len >= u64::from(next) {
                taken.push((run, fill(run, pieces, places)));
            } else if patience == 0 {
                return (taken, false);
            } else {
                patience -= 1;
            }
        }
        (taken, true)
    }

    /// Places for the pieces of a batch at the end of the file, whatever is free below,
    /// behind a gap of free units.
    pub fn allocate_at_end(&mut self, pieces: &[u32], gap: u64) -> Vec<Run> {
        let total: u64 = pieces.iter().copied().map(u64::from).sum();
        let grown = self.grow(gap + total);
        self.add(Run {
            start: grown.start,
            len: gap,
        });
        let mut places = Vec::with_capacity(pieces.len());
        let run = Run {
            start: grown.start + gap,
            len: total,
        };
        fill(run, pieces, &mut places);
        places
    }

    /// Gives units back.
    pub fn free(&mut self, run: impl Into<Run>) -> Result<(), ExtentError> {
        let run = run.into();
        if run.len == 0 || run.end() > self.end {
            return Err(ExtentError::Outside(run));
        }
        let before = self
            .runs
            .range(..run.end())
            .next_back()
            .map(|(&start, &len)| Run { start, len });
        if before.is_some_and(|before| before.end() > run.start) {
            return Err(ExtentError::DoubleFree(run));
        }
        let mut joined = run;
        if let Some(before) = before.filter(|before| before.end() == run.start) {
            self.take_out(before);
            joined = Run {
                start: before.start,
                len: before.len + joined.len,
            };
        }
        let after = self.run_at(run.end());
        if after.len > 0 {
            self.take_out(after);
            joined.len += after.len;
        }
        self.add(joined);
        Ok(())
    }

    /// Marks units as used, wherever they lie; those between the end of the file and a
    /// run behind it become free.
    pub fn reserve(&mut self, run: impl Into<Run>) -> Result<(), ExtentError> {
        let run = run.into();
        if run.len == 0 || run.end() > ExtentRef::POSITION_END {
            return Err(ExtentError::Outside(run));
        }
        let holder = self
            .runs
            .range(..=run.start)
            .next_back()
            .map(|(&start, &len)| Run { start, len });
        // A run behind the end may begin in the free tail.
        let holder = holder.filter(|holder| holder.end() > run.start);
        let reach = match holder {
            Some(holder) if holder.end() == self.end => u64::MAX,
            Some(holder) => holder.end(),
            None if run.start >= self.end => u64::MAX,
            None => return Err(ExtentError::InUse(run)),
        };
        if run.end() > reach {
            return Err(ExtentError::InUse(run));
        }
        let old_end = self.end;
        self.end = self.end.max(run.end());
        if let Some(holder) = holder {
            self.take_out(holder);
            self.add(Run {
                start: holder.start,
                len: run.start - holder.start,
            });
            self.add(Run {
                start: run.end(),
                len: holder.end().saturating_sub(run.end()),
            });
        } else if run.start > old_end {
            return self.free(Run {
                start: old_end,
                len: run.start - old_end,
            });
        }
        Ok(())
    }

    /// Where the file could end: before the free run at its end.
    pub fn truncatable_end(&self) -> u64 {
        self.tail().map_or(self.end, |tail| tail.start)
    }

    /// Ends the file at `end`, which must not cut off what is in use.
    pub fn truncate_to(&mut self, end: u64) -> Result<(), ExtentError> {
        if end < self.truncatable_end() || end > self.end {
            return Err(ExtentError::Outside(Run {
                start: end,
                len: self.end.saturating_sub(end),
            }));
        }
        if let Some(tail) = self.tail() {
            self.take_out(tail);
            self.add(Run {
                start: tail.start,
                len: end - tail.start,
            });
        }
        self.end = end;
        Ok(())
    }
}
