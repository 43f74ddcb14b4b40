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
        let enough = matches!(self.phase, Phase::Settling(_))
            || commits.saturating_sub(self.slice.commits) >= COMMITS_MIN
            || now >= self.slice.began.saturating_add(SLICE_MAX);
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
        self.slice = Slice::new(self.slice.number + 1, now, length, commits);
        self.limit
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

    /// Goes on with a trial's `at`-th slice, or, where that candidate has a rate for this
    /// round, the next one.
    fn set(&mut self, mut at: usize) {
        let count = self.candidates.len();
        while self.candidates[self.candidate(at)].rates.len() > at / count {
            at += 1;
        }
        let limit = self.candidates[self.candidate(at)].limit;
        self.phase = match limit == self.limit {
            true => Phase::Measuring(at),
            false => Phase::Settling(at),
        };
        self.limit = limit;
    }

    /// The best candidate so far.
    fn best(&self) -> usize {
        let mut best = 0;
        for (at, candidate) in self.candidates.iter().enumerate() {
            if candidate.undisturbed() * 100 > self.candidates[best].undisturbed() * BETTER {
                best = at;
            }
        }
        best
    }

    /// Whether a round is over and another one would tell nothing new: one is better
    /// than all that come before it in every slice, and no later one is better enough.
    fn is_decided(&self) -> bool {
        let rounds = self.candidates[0].rates.len();
        let is_round = self.candidates.iter().all(|c| c.rates.len() == rounds);
        let confirmed = self.may_confirm && self.candidates[self.best()].limit == self.chosen;
        if !is_round || (rounds < ROUNDS_MIN && !confirmed) {
            return false;
        }
        let (before, [best, after @ ..]) = self.candidates.split_at(self.best()) else {
            return true;
        };
        let beaten = before.iter().all(|c| c.highest() < best.lowest());
        let kept = |c: &Candidate| c.highest() * 100 <= best.lowest() * BETTER;
        rounds >= ROUNDS_MAX || (beaten && after.iter().all(kept))
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
mod tests {
    use super::*;

    /// A machine on which `rate` tells the commits a second under a limit, at a time in
    /// milliseconds.
    struct Machine<F> {
        trial: Trial,
        now: Duration,
        /// Thousandths of commits.
        made: u64,
        commits: u64,
        limit: u32,
        rate: F,
    }

    impl<F: Fn(u32, u64) -> u64> Machine<F> {
        fn new(processors: u32, rate: F) -> Self {
            Self {
                trial: Trial::new(processors),
                now: Duration::from_secs(1),
                made: 0,
                commits: 0,
                limit: 0,
                rate,
            }
        }

        /// Lets `writers` write for so many milliseconds; in how many of them there was
        /// which limit.
        fn run(&mut self, writers: u32, millis: u64) -> Vec<(u32, u64)> {
            let mut limits: Vec<(u32, u64)> = Vec::new();
            for _ in 0..millis {
                self.now += Duration::from_millis(1);
                self.made += (self.rate)(self.limit, self.now.as_millis() as u64);
                self.commits = self.made / 1000;
                if self.trial.is_over(self.now, self.commits) {
                    let at_once = if self.limit == 0 { writers } else { self.limit };
                    for _ in 0..writers.min(at_once) {
                        self.trial.met_writer();
                    }
                    let waiting = writers.saturating_sub(at_once);
                    self.limit = self.trial.next(self.now, self.commits, waiting, true);
                }
                match limits.iter_mut().find(|(limit, _)| *limit == self.limit) {
                    Some((_, count)) => *count += 1,
                    None => limits.push((self.limit, 1)),
                }
            }
            limits
        }

        fn share(&mut self, writers: u32, millis: u64, limit: u32) -> f64 {
            let limits = self.run(writers, millis);
            let times = limits.iter().filter(|(l, _)| *l == limit).map(|(_, n)| *n);
            times.sum::<u64>() as f64 / millis as f64
        }
    }

    #[test]
    fn what_commits_most_is_found_and_kept() {
        let limits = |processors| -> Vec<u32> {
            let trial = Trial::new(processors);
            trial.candidates.iter().map(|c| c.limit).collect()
        };
        assert_eq!(limits(1), [0, 1]);
        assert_eq!(limits(2), [0, 2, 1]);
        assert_eq!(limits(4), [0, 4, 1]);
        assert_eq!(limits(16), [0, 16, 4, 1]);
        for best in limits(16) {
            let mut machine = Machine::new(16, |limit, _| match limit == best {
                true => 600_000,
                false => 500_000,
            });
            machine.run(16, 100);
            assert!(machine.share(16, 10_000, best) > 0.95, "{best}");
        }
    }

    #[test]
    fn a_limit_that_is_hardly_better_than_none_is_not_kept() {
        let mut machine = Machine::new(2, |limit, _| 500_000 + u64::from(limit == 1) * 40_000);
        machine.run(8, 100);
        assert!(machine.share(8, 10_000, 0) > 0.95);
    }

    #[test]
    fn noise_is_looked_through() {
        // A checkpoint every now and then takes half of the rate, for longer than a
        // slice; the best limit has a third more.
        let rate = |limit, now: u64| {
            let rate = if limit == 1 { 800_000 } else { 600_000 };
            if (now / 37).is_multiple_of(3) {
                rate / 2
            } else {
                rate
            }
        };
        // With the middle slice of each limit it was by chance of when the first trial
        // began: from 0.44 to 0.97.
        for later in 0..112 {
            let mut machine = Machine::new(2, rate);
            machine.now += Duration::from_millis(later);
            machine.run(8, 2_000);
            assert!(machine.share(8, 20_000, 1) > 0.9, "{later} ms later");
        }
    }

    #[test]
    fn what_changes_is_noticed() {
        // First one at a time is best, then, from the second second on, all at once.
        let rate = |limit, now| match (limit, now < 3_000) {
            (1, _) => 800_000,
            (_, true) => 500_000,
            (_, false) => 1_300_000,
        };
        let mut machine = Machine::new(2, rate);
        machine.run(8, 100);
        assert!(machine.share(8, 1_900, 1) > 0.8);
        machine.run(8, 3_000);
        assert!(machine.share(8, 5_000, 0) > 0.9);
    }

    #[test]
    fn one_writer_is_never_limited() {
        let mut machine = Machine::new(2, |limit, _| 100_000 * (1 + u64::from(limit)));
        assert_eq!(machine.run(1, 1_000), [(0, 1_000)]);
        machine.run(8, 1_000);
        assert_ne!(machine.limit, 0);
        machine.run(1, 100);
        assert_eq!(machine.run(1, 1_000), [(0, 1_000)]);
    }

    /// Where each commit takes a while, a slice of a few milliseconds has too few of them
    /// to tell anything, and so nothing was tried: eight threads that insert a hundred rows
    /// each made half the transactions of one.
    #[test]
    fn long_transactions_are_measured_for_longer() {
        let mut machine = Machine::new(2, |limit, _| if limit == 1 { 4_000 } else { 3_000 });
        machine.run(8, 500);
        assert!(machine.share(8, 20_000, 1) > 0.9);
        let over = |commits: [(u64, u64); 2]| {
            let mut trial = Trial::new(2);
            trial.next(Duration::from_millis(100), 1_000, 8, true);
            commits.map(|(millis, made)| trial.is_over(Duration::from_millis(millis), 1_000 + made))
        };
        assert_eq!(over([(105, 1_000), (106, COMMITS_MIN - 1)]), [false, false]);
        assert_eq!(over([(105, 1_000), (106, COMMITS_MIN)]), [false, true]);
        assert_eq!(over([(199, 1), (200, 1)]), [false, true]);
    }

    /// A pause of a fifth of a second made the rate look like another one, so that after
    /// each there was a trial, with the worse limits in the next tenth of a second.
    #[test]
    fn a_pause_calls_nothing_in_question() {
        let mut machine = Machine::new(2, |limit, _| if limit == 1 { 150_000 } else { 75_000 });
        machine.run(8, 100);
        assert_eq!(machine.limit, 1);
        // Longer than it takes until the next trial is due, all in all.
        for burst in 0..20 {
            machine.now += Duration::from_millis(200);
            let limits = machine.run(8, 6);
            assert_eq!(limits, [(1, 6)], "burst {burst}");
        }
    }

    #[test]
    fn who_tells_seldom_is_heard() {
        let mut trial = Trial::new(2);
        let mut over = 0;
        for told in 1..=100 {
            let now = Duration::from_millis(told * 2 * PAUSE.as_millis() as u64);
            if trial.is_over(now, told * 64) {
                trial.next(now, told * 64, 8, true);
                over += 1;
            }
        }
        assert!(over >= 49, "{over}");
    }

    #[test]
    fn work_that_comes_back_has_its_limit_at_once() {
        // Of the kinds of work that come in turn each has its rate and its best limit.
        let kind = |now: u64| now / 250 % 3;
        let rate = |limit, now| match (kind(now), limit) {
            (0, 1) => 150_000,
            (0, _) => 75_000,
            (1, 0) => 900_000,
            (1, _) => 500_000,
            _ => 600_000,
        };
        let mut machine = Machine::new(2, rate);
        machine.run(1, 500);
        let mut best = [Vec::new(), Vec::new()];
        for _ in 0..8 {
            best[0].push(machine.share(8, 200, 1));
            machine.run(1, 50);
            best[1].push(machine.share(8, 200, 0));
            machine.run(1, 300);
        }
        // The first time there is a trial.
        for best in best {
            let later: f64 = best[1..].iter().sum();
            assert!(later / 7.0 > 0.9, "{best:?}");
        }
    }

    #[test]
    fn work_that_was_never_seen_is_tried() {
        let rate = |limit, now| match (limit, now < 3_000) {
            (1, true) | (2, false) => 800_000,
            (0, false) => 200_000,
            _ => 500_000,
        };
        let mut machine = Machine::new(2, rate);
        machine.run(8, 1_000);
        assert_eq!(machine.limit, 1);
        machine.run(1, 1_100);
        machine.run(8, 100);
        assert_eq!(machine.limit, 2);
    }

    #[test]
    fn few_commits_and_those_that_wait_for_syncs_are_never_limited() {
        let mut machine = Machine::new(2, |limit, _| 100 * (1 + u64::from(limit)));
        assert_eq!(machine.run(8, 10_000), [(0, 10_000)]);
        let mut trial = Trial::new(2);
        for slice in 1..1_000 {
            trial.met_writer();
            trial.met_writer();
            let now = Duration::from_secs(slice);
            assert_eq!(trial.next(now, slice * 1_000_000, 6, false), 0);
        }
        // However long a slice becomes, where few come to end it.
        let mut trial = Trial::new(2);
        for slice in 1..1_000 {
            trial.met_writer();
            trial.met_writer();
            let now = Duration::from_millis(slice * 200);
            assert_eq!(trial.next(now, slice * 60, 6, true), 0);
        }
    }
}
