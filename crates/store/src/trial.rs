//! Which limit of writers lets most transactions commit.
//!
//! The time is cut in slices, each longer where commits are few, and what commits in
//! each is counted. In a trial the candidates have their slices in turn, there and back,
//! so that what changes slowly meanwhile counts for all alike, until one is better in
//! every slice or there were [`ROUNDS_MAX`] of each; the better half of a candidate's
//! slices counts, since what comes between only ever takes time. The best is kept, for
//! longer and longer while trials confirm it, for which one slice of each other candidate
//! may do, and tried again sooner where the rate is no longer what it was. Where fewer
//! write at a time some wait for longer, so a lower limit must be better by a tenth.
//!
//! With one writer, few commits or where commits wait for syncs, nothing is tried and
//! nobody limited. What trials found is remembered beside the rate without a limit: where
//! several write again and that is as it was, the limit is what it was then, until the
//! next trial. A slice in which nobody wrote for a while tells nothing and begins anew.
//! This is a state machine without clock or threads, which are `admission.rs`'s.

use crate::primitives::{COMMITS_MIN, PAUSE, SETTLING, SLICE, SLICE_MAX};
use std::cmp::Ordering;
use std::ops::Range;
use std::time::Duration;

/// Fewer commits a second do not hold each other up.
const RATE_MIN: u64 = (COMMITS_MIN as u128 * 1_000_000_000 / SLICE_MAX.as_nanos()) as u64;
/// Slices of each candidate in a trial, at least and at most.
const ROUNDS_MIN: usize = 2;
const ROUNDS_MAX: usize = 6;
/// Slices that a limit is kept: before the first trial, after a trial that chose
/// another one than that before, and at most.
const KEPT_FIRST: u32 = 2;
const KEPT_MIN: u32 = 32;
const KEPT_MAX: u32 = 1024;
/// One of which another candidate has made more than so many times as many commits a second
/// is not measured to the end of its slice.
const HOPELESS: u64 = 3;
/// After so many slices with too few commits, or with one writer, there is nothing to
/// limit.
const QUIET_MAX: u32 = 4;
/// Hundredths of a higher limit's rate that a lower one must exceed.
const BETTER: u64 = 110;
/// Hundredths of a rate that are not another one, and those that are not quite another one.
const AS_BEFORE: Range<u64> = 75..133;
const NEARLY: Range<u64> = 50..200;
/// Kinds of work of which it is remembered what the last trial found.
const KNOWN_MAX: usize = 4;

/// See the module's header.
pub(crate) struct Trial {
    candidates: Vec<Candidate>,
    phase: Phase,
    limit: u32,
    /// What the last trial chose, at which rate, and the rate lately.
    chosen: u32,
    chosen_for: u64,
    lately: u64,
    /// How many slices it is to be kept, and has been.
    keep: u32,
    kept: u32,
    quiet: u32,
    /// Whether a trial may end after its first round.
    may_confirm: bool,
    /// Whether work has just begun, without a limit: the rate lately is that of one slice.
    begins: bool,
    /// The latest last.
    known: Vec<Known>,
    /// Contexts that committed in the slice before or waited at its end: each may be in a
    /// transaction that another limit let begin.
    before: u32,
    slice: Slice,
}

/// What a trial found.
struct Known {
    limit: u32,
    /// For how many slices.
    keep: u32,
    rate: u64,
    /// The rate without a limit, which tells one kind of work from another.
    unlimited: u64,
}

/// A limit that is tried, and the commits a second of its slices.
struct Candidate {
    limit: u32,
    rates: Vec<u64>,
    /// Another one is better whatever this trial may still find.
    out: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Keeping,
    /// A trial's `n`-th slice is about to begin.
    Settling(usize),
    Measuring(usize),
}

struct Slice {
    number: u64,
    began: Duration,
    ends: Duration,
    /// When somebody last told of commits, or it began.
    heard: Duration,
    /// Commits there were when it began.
    commits: u64,
    /// Contexts that committed in it.
    writers: u32,
}

impl Candidate {
    fn lowest(&self) -> u64 {
        self.rates.iter().copied().min().unwrap_or(0)
    }

    fn highest(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    /// The mean of the better half: without a checkpoint or another program between.
    fn undisturbed(&self) -> u64 {
        let mut rates = self.rates.clone();
        rates.sort_unstable();
        let better = &rates[rates.len() / 2..];
        better.iter().sum::<u64>() / better.len().max(1) as u64
    }
}

impl Trial {
    /// For a machine of so many processors.
    pub(crate) fn new(processors: u32) -> Self {
        let mut limits = vec![0];
        for limit in [processors, processors / 4, 1] {
            if limit > 0 && !limits.contains(&limit) {
                limits.push(limit);
            }
        }
        let candidate = |limit| Candidate {
            limit,
            rates: Vec::with_capacity(ROUNDS_MAX),
            out: false,
        };
        Self {
            candidates: limits.into_iter().map(candidate).collect(),
            phase: Phase::Keeping,
            limit: 0,
            chosen: 0,
            chosen_for: 0,
            lately: 0,
            keep: KEPT_FIRST,
            kept: 0,
            quiet: QUIET_MAX,
            may_confirm: false,
            begins: true,
            known: Vec::with_capacity(KNOWN_MAX + 1),
            before: 0,
            slice: Slice::new(1, Duration::ZERO, Duration::ZERO, 0),
        }
    }

    /// The number of the slice.
    pub(crate) fn slice(&self) -> u64 {
        self.slice.number
    }

    /// Counts a context that commits in this slice.
    pub(crate) fn met_writer(&mut self) {
        self.slice.writers += 1;
    }

    /// Whether the slice is over, now that somebody tells of commits; `commits` is how many
    /// there ever were.
    pub(crate) fn is_over(&mut self, now: Duration, commits: u64) -> bool {
        // Those who seldom tell, since they commit seldom, begin it anew once at most.
        let is_new = self.slice.heard == self.slice.began;
        if !is_new && now >= self.slice.heard.saturating_add(PAUSE) {
            self.slice = Slice::new(self.slice.number + 1, now, self.slice.length(), commits);
            return false;
        }
        self.slice.heard = now;
        let wanted = match self.phase {
            Phase::Settling(_) => u64::from(self.before),
            Phase::Keeping | Phase::Measuring(_) => COMMITS_MIN,
        };
        let most = match self.phase {
            Phase::Keeping => SLICE_MAX,
            Phase::Settling(_) | Phase::Measuring(_) => self.patience(),
        };
        let enough = commits.saturating_sub(self.slice.commits) >= wanted
            || now >= self.slice.began.saturating_add(most);
        now >= self.slice.ends && enough
    }

    /// Ends a slice: the limit for the next one, 0 for none. `commits` is how many there
    /// ever were, `waiting` how many contexts wait for the limit's sake.
    pub(crate) fn next(
        &mut self,
        now: Duration,
        commits: u64,
        waiting: u32,
        may_limit: bool,
    ) -> u32 {
        let made = commits.saturating_sub(self.slice.commits);
        let took = now.saturating_sub(self.slice.began).as_nanos().max(1);
        let rate = (u128::from(made) * 1_000_000_000 / took) as u64;
        self.quiet = match self.slice.writers + waiting > 1 && rate >= RATE_MIN {
            true => 0,
            false => self.quiet.saturating_add(1),
        };
        if may_limit && self.quiet < QUIET_MAX {
            self.step(rate);
        } else {
            self.stop();
        }
        let length = match self.phase {
            Phase::Settling(_) => SETTLING,
            Phase::Keeping | Phase::Measuring(_) => SLICE,
        };
        self.before = self.slice.writers + waiting;
        self.slice = Slice::new(self.slice.number + 1, now, length, commits);
        self.limit
    }

    /// The time in which a candidate that is not hopeless has commits enough.
    fn patience(&self) -> Duration {
        let best = self
            .in_play()
            .map(|(_, candidate)| candidate.lowest())
            .max();
        let nanos = HOPELESS * COMMITS_MIN * 1_000_000_000;
        let nanos = best.and_then(|rate| nanos.checked_div(rate));
        nanos.map_or(SLICE_MAX, |nanos| {
            Duration::from_nanos(nanos).min(SLICE_MAX)
        })
    }

    /// Back to no limit.
    fn stop(&mut self) {
        self.phase = Phase::Keeping;
        self.limit = 0;
        self.chosen = 0;
        self.keep = KEPT_FIRST;
        self.kept = 0;
        self.begins = true;
    }

    fn step(&mut self, rate: u64) {
        match self.phase {
            Phase::Keeping => {
                self.kept += 1;
                // Work may have begun in the middle of a slice, but not of the next one.
                self.lately = match self.begins {
                    true => rate,
                    false => (self.lately * 3 + rate) / 4,
                };
                if self.is_due() && !self.recognizes() {
                    self.begin_trial();
                }
            }
            Phase::Settling(at) => self.phase = Phase::Measuring(at),
            Phase::Measuring(at) => {
                let candidate = self.candidate(at);
                self.candidates[candidate].rates.push(rate);
                match self.is_decided() {
                    true => self.choose(),
                    false => self.set(at + 1),
                }
            }
        }
    }

    /// Whether the limit has been kept for long enough: for less where the rate is not what
    /// it was chosen for.
    fn is_due(&self) -> bool {
        let hundredths = hundredths(self.lately, self.chosen_for);
        let for_now = match hundredths {
            _ if self.begins => self.keep,
            h if AS_BEFORE.contains(&h) => self.keep,
            h if NEARLY.contains(&h) => self.keep / 4 + 1,
            _ => KEPT_MIN / 4 + 1,
        };
        self.kept >= for_now
    }

    /// Whether work that has just begun is of a kind that is known: then its limit is.
    fn recognizes(&mut self) -> bool {
        let (begins, lately) = (self.begins, self.lately);
        let is_known =
            |known: &&Known| begins && AS_BEFORE.contains(&hundredths(lately, known.unlimited));
        let Some(known) = self.known.iter().rev().find(is_known) else {
            return false;
        };
        let (limit, rate, keep) = (known.limit, known.rate, known.keep);
        self.keep_from_now(limit, rate, keep);
        true
    }

    /// From now on the limit is this one, for so many slices and as long as it has such a
    /// rate.
    fn keep_from_now(&mut self, limit: u32, rate: u64, keep: u32) {
        self.phase = Phase::Keeping;
        self.begins = false;
        self.limit = limit;
        self.keep = keep;
        self.kept = 0;
        self.chosen = limit;
        self.chosen_for = rate;
        self.lately = rate;
    }

    /// Where the rate is what the limit was chosen for, that is the limit's first one in the
    /// trial, and one slice of each other candidate may confirm it.
    fn begin_trial(&mut self) {
        let hundredths = hundredths(self.lately, self.chosen_for);
        self.may_confirm = !self.begins && AS_BEFORE.contains(&hundredths);
        self.begins = false;
        for candidate in &mut self.candidates {
            candidate.rates.clear();
            candidate.out = false;
            if self.may_confirm && candidate.limit == self.chosen {
                candidate.rates.push(self.lately);
            }
        }
        self.set(0);
    }

    /// Which candidate has a trial's `at`-th slice: there and back.
    fn candidate(&self, at: usize) -> usize {
        let count = self.candidates.len();
        match (at / count).is_multiple_of(2) {
            true => at % count,
            false => count - 1 - at % count,
        }
    }

    /// Goes on with a trial's `at`-th slice, or, where that candidate is out or has a rate
    /// for this round, the next one.
    fn set(&mut self, mut at: usize) {
        let count = self.candidates.len();
        let is_done = |candidate: &Candidate, at| candidate.rates.len() > at / count;
        let passes = |candidate: &Candidate, at| candidate.out || is_done(candidate, at);
        while passes(&self.candidates[self.candidate(at)], at) {
            at += 1;
        }
        let limit = self.candidates[self.candidate(at)].limit;
        self.phase = match limit == self.limit {
            true => Phase::Measuring(at),
            false => Phase::Settling(at),
        };
        self.limit = limit;
    }

    /// Those that are not out, with their places.
    fn in_play(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let all = self.candidates.iter().enumerate();
        all.filter(|(_, candidate)| !candidate.out)
    }

    /// The best candidate so far.
    fn best(&self) -> usize {
        let mut in_play = self.in_play();
        let Some((mut best, first)) = in_play.next() else {
            return 0;
        };
        let mut rate = first.undisturbed();
        for (at, candidate) in in_play {
            if candidate.undisturbed() * 100 > rate * BETTER {
                (best, rate) = (at, candidate.undisturbed());
            }
        }
        best
    }

    /// Whether a round is over and another one would tell nothing new: one is better in
    /// every slice than all that come before it, and no later one is better enough. Those
    /// of which that holds are out after it, and the next round is without them.
    fn is_decided(&mut self) -> bool {
        let rounds = self.in_play().map(|(_, c)| c.rates.len());
        let (least, most) = rounds.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        let at = self.best();
        let confirmed = self.may_confirm && self.candidates[at].limit == self.chosen;
        if least < most || (most < ROUNDS_MIN && !confirmed) {
            return false;
        }
        let lowest = self.candidates[at].lowest();
        for (other, candidate) in self.candidates.iter_mut().enumerate() {
            candidate.out |= match other.cmp(&at) {
                Ordering::Less => candidate.highest() < lowest,
                Ordering::Equal => false,
                Ordering::Greater => candidate.highest() * 100 <= lowest * BETTER,
            };
        }
        most >= ROUNDS_MAX || self.in_play().count() == 1
    }

    /// Ends a trial.
    fn choose(&mut self) {
        let best = &self.candidates[self.best()];
        let found = Known {
            limit: best.limit,
            rate: best.undisturbed(),
            unlimited: self.candidates[0].undisturbed(),
            keep: match best.limit == self.chosen && self.keep >= KEPT_MIN {
                true => (self.keep * 2).min(KEPT_MAX),
                false => KEPT_MIN,
            },
        };
        self.keep_from_now(found.limit, found.rate, found.keep);
        let is_other =
            |known: &Known| !AS_BEFORE.contains(&hundredths(found.unlimited, known.unlimited));
        self.known.retain(is_other);
        self.known.push(found);
        let forgotten = self.known.len().saturating_sub(KNOWN_MAX);
        self.known.drain(..forgotten);
    }
}

impl Slice {
    fn new(number: u64, now: Duration, length: Duration, commits: u64) -> Self {
        Self {
            number,
            began: now,
            ends: now.saturating_add(length),
            heard: now,
            commits,
            writers: 0,
        }
    }

    fn length(&self) -> Duration {
        self.ends.saturating_sub(self.began)
    }
}

fn hundredths(rate: u64, of: u64) -> u64 {
    rate.saturating_mul(100) / of.max(1)
}

#[cfg(test)]
mod tests;
