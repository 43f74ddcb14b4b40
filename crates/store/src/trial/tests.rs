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

/// With eight writers that have a transaction of some milliseconds under way each, the first
/// of those that another limit let begin were over when its slice was.
#[test]
fn a_slice_begins_when_what_was_under_way_is_over() {
    let mut trial = Trial::new(2);
    let (mut millis, mut made) = (1_000, 0);
    let mut step = |trial: &mut Trial, millis_more, commits| {
        millis += millis_more;
        made += commits;
        let now = Duration::from_millis(millis);
        trial.is_over(now, made) && {
            (0..8).for_each(|_| trial.met_writer());
            trial.next(now, made, 0, true);
            true
        }
    };
    while trial.phase == Phase::Keeping {
        step(&mut trial, 10, 40);
    }
    while matches!(trial.phase, Phase::Measuring(_)) {
        step(&mut trial, 10, 40);
    }
    assert!(matches!(trial.phase, Phase::Settling(_)));
    assert!(!step(&mut trial, 5, 7), "one is left");
    assert!(step(&mut trial, 1, 1));
    assert!(matches!(trial.phase, Phase::Measuring(_)));
}

/// A limit that is twice as good as none is soon all that is measured, though which of the
/// limits is best takes longer to tell.
#[test]
fn what_cannot_win_is_left_out() {
    let rate = |limit, now: u64| match limit {
        0 => 40_000,
        1 => 90_000 + now % 7 * 3_000,
        _ => 90_000 + now % 5 * 4_000,
    };
    let mut machine = Machine::new(2, rate);
    machine.run(8, 100);
    let unlimited = machine.share(8, 400, 0);
    assert!(unlimited < 0.05, "{unlimited}");
}

/// Where transactions take their time, but no processor's, a limit costs most of the commits:
/// a slice of it need not have commits enough to tell.
#[test]
fn what_is_hopeless_is_not_measured_to_its_end() {
    // Eight that take two milliseconds each.
    let rate = |limit, _| 500 * u64::from(if limit == 0 { 8 } else { limit });
    let mut machine = Machine::new(2, rate);
    machine.run(8, 50);
    for (millis, most) in [(500, 220), (500, 110), (3_000, 350)] {
        let limits = machine.run(8, millis);
        let limited: u64 = limits.iter().filter(|(l, _)| *l != 0).map(|(_, n)| n).sum();
        assert!(limited <= most, "{limited} of {millis}");
    }
}
