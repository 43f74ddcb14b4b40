//! The free-space map as bytes: `version u8 (1) | end | runs | (gap, length)…`, where
//! all but the version are LEB128 numbers. `gap` counts the used units since the run
//! before (or since unit 0); it is 0 in the first run at most. Zeros may follow.

use crate::codec::ExtentRef;

use super::{ExtentError, FreeMap, Run};

const VERSION: u8 = 1;

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes one number, in its shortest form, off the front.
fn take_number(bytes: &mut &[u8]) -> Result<u64, ExtentError> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes
            .split_first()
            .ok_or(ExtentError::Damaged("it ends early"))?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let redundant = byte == 0 && shift > 0 || shift == 63 && byte > 1;
            return if redundant {
                Err(ExtentError::Damaged("malformed number"))
            } else {
                Ok(number)
            };
        }
    }
    Err(ExtentError::Damaged("malformed number"))
}

/// Sorted, without overlaps, touching runs joined.
fn normalize(mut runs: Vec<Run>) -> Vec<Run> {
    runs.retain(|run| run.len > 0);
    runs.sort_unstable();
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.end() >= run.start => {
                last.len = last.end().max(run.end()) - last.start
            }
            _ => joined.push(run),
        }
    }
    joined
}

/// What of `free` is not in `used`; both normalized.
fn subtract(free: &[Run], used: &[Run]) -> Vec<Run> {
    let mut rest = Vec::with_capacity(free.len() + used.len());
    let mut used = used.iter().peekable();
    for run in free {
        let mut start = run.start;
        while let Some(cut) = used.next_if(|cut| cut.end() <= run.start) {
            debug_assert!(cut.end() <= start);
        }
        while let Some(cut) = used.peek().filter(|cut| cut.start < run.end()) {
            if cut.start > start {
                rest.push(Run {
                    start,
                    len: cut.start - start,
                });
            }
            start = start.max(cut.end());
            if cut.end() > run.end() {
                break;
            }
            used.next();
        }
        if start < run.end() {
            rest.push(Run {
                start,
                len: run.end() - start,
            });
        }
    }
    rest
}

impl FreeMap {
    /// An upper bound of [`encode`](Self::encode)'s length with so many extra runs, also
    /// after room for the result has been allocated.
    pub fn encoded_len_max(&self, extra_runs: usize) -> usize {
        // Two numbers a run, none greater than an end which may still grow a little.
        let number = (64 - self.end.leading_zeros() as usize).div_ceil(7) + 1;
        1 + 2 * 10 + (self.run_count() + extra_runs + 1) * 2 * number
    }

    /// Appends the map to `out`, counting `free` as free and then `used` as used.
    pub fn encode(
        &self,
        free: impl IntoIterator<Item = Run>,
        used: impl IntoIterator<Item = Run>,
        out: &mut Vec<u8>,
    ) {
        let free = normalize(self.runs().chain(free).collect());
        let used = normalize(used.into_iter().collect());
        let runs = subtract(&free, &used);
        out.push(VERSION);
        put_number(out, self.end);
        put_number(out, runs.len() as u64);
        let mut at = 0;
        for run in runs {
            put_number(out, run.start - at);
            put_number(out, run.len);
            at = run.end();
        }
    }

    /// Reads a stored map, verified in full, of a file of at most `end_max` units.
    pub fn decode(mut bytes: &[u8], end_max: u64) -> Result<FreeMap, ExtentError> {
        let (&version, rest) = bytes
            .split_first()
            .ok_or(ExtentError::Damaged("it is empty"))?;
        bytes = rest;
        match version {
            VERSION => {}
            0 => return Err(ExtentError::Damaged("it has no version")),
            newer => return Err(ExtentError::NewerVersion(newer)),
        }
        let end = take_number(&mut bytes)?;
        if end > end_max.min(ExtentRef::POSITION_END) {
            return Err(ExtentError::Damaged("it ends beyond the file"));
        }
        let mut runs = Vec::new();
        let mut at = 0_u64;
        for i in 0..take_number(&mut bytes)? {
            let (gap, len) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
            let start = at.saturating_add(gap);
            let run = Run { start, len };
            if len == 0 || gap == 0 && i > 0 || run.end() > end {
                return Err(ExtentError::Damaged("runs touch or leave the file"));
            }
            runs.push(run);
            at = run.end();
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(ExtentError::Damaged("something follows it"));
        }
        Ok(FreeMap::from_sorted(end, &runs))
    }
}
