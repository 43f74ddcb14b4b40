//! Order statistics of what was measured: percentiles over all samples of a
//! side, and the quotient of two sides round by round.
//!
//! A round is a short stretch in which each side ran the same inputs once; its
//! two halves lie milliseconds apart, so that a quotient within a round is free
//! of the machine's slower drifts.

use serde::Serialize;

/// Samples of one side, in nanoseconds, a list a round.
#[derive(Debug, Default, Clone)]
pub struct Samples {
    rounds: Vec<Vec<u64>>,
}

/// Three percentiles of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Percentiles {
    /// Applies `f` to each of the pairs of equal rank.
    pub fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            p50: f(self.p50, other.p50),
            p95: f(self.p95, other.p95),
            p99: f(self.p99, other.p99),
        }
    }
}

/// How the quotient of the rounds' medians varied: its quartiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pairs {
    pub low: f64,
    pub median: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Samples {
    /// Appends the samples of one round; an empty one is left out.
    pub fn push_round(&mut self, nanos: Vec<u64>) {
        if !nanos.is_empty() {
            self.rounds.push(nanos);
        }
    }

    /// Percentiles over all rounds together, in microseconds.
    pub fn micros(&self) -> Percentiles {
        let mut all: Vec<u64> = self.rounds.iter().flatten().copied().collect();
        all.sort_unstable();
        let at = |share| rank(&all, share) / 1_000.0;
        Percentiles {
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
        }
    }

    /// The longest of all, in milliseconds.
    pub fn longest_millis(&self) -> f64 {
        let longest = self.rounds.iter().flatten().max();
        longest.map_or(0.0, |nanos| *nanos as f64 / 1e6)
    }

    /// Units a second of each round, where one sample took `units`.
    pub fn rates(&self, units: f64) -> Vec<f64> {
        self.rounds
            .iter()
            .map(|round| {
                let seconds = round.iter().sum::<u64>() as f64 / 1e9;
                round.len() as f64 * units / seconds
            })
            .collect()
    }

    /// The median of each round, in nanoseconds.
    fn medians(&self) -> Vec<f64> {
        self.rounds
            .iter()
            .map(|round| {
                let mut sorted = round.clone();
                sorted.sort_unstable();
                rank(&sorted, 0.50)
            })
            .collect()
    }
}

/// Quartiles of `ours / theirs` taken round by round over the rounds' medians.
pub fn pairs(ours: &Samples, theirs: &Samples) -> Pairs {
    pairs_of(&ours.medians(), &theirs.medians())
}

/// Quartiles of `ours / theirs`, element by element.
pub fn pairs_of(ours: &[f64], theirs: &[f64]) -> Pairs {
    let mut quotients: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .filter(|(_, theirs)| **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    quotients.sort_by(f64::total_cmp);
    let at = |share: f64| pick(&quotients, share).copied().unwrap_or(f64::NAN);
    Pairs {
        low: at(0.25),
        median: at(0.50),
        high: at(0.75),
        rounds: quotients.len(),
    }
}

/// The median of a list; NaN for an empty one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    pick(&sorted, 0.50).copied().unwrap_or(f64::NAN)
}

fn rank(sorted: &[u64], share: f64) -> f64 {
    pick(sorted, share).map_or(f64::NAN, |nanos| *nanos as f64)
}

/// Nearest-rank percentile: the smallest element that at least `share` of the
/// list does not exceed.
fn pick<T>(sorted: &[T], share: f64) -> Option<&T> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let mut samples = Samples::default();
        samples.push_round((1..=50).map(|n| n * 1_000).collect());
        samples.push_round((51..=100).map(|n| n * 1_000).collect());
        let expected = Percentiles {
            p50: 50.0,
            p95: 95.0,
            p99: 99.0,
        };
        assert_eq!(samples.micros(), expected);
    }

    #[test]
    fn quotients_are_taken_round_by_round() {
        let mut ours = Samples::default();
        let mut theirs = Samples::default();
        for (a, b) in [(10, 20), (100, 100), (30, 40)] {
            ours.push_round(vec![a; 3]);
            theirs.push_round(vec![b; 3]);
        }
        let pairs = pairs(&ours, &theirs);
        assert_eq!((pairs.low, pairs.median, pairs.high), (0.5, 0.75, 1.0));
        assert_eq!(pairs.rounds, 3);
    }

    #[test]
    fn nothing_measured_is_not_a_number() {
        assert!(Samples::default().micros().p50.is_nan());
        assert!(median(&[]).is_nan());
    }
}
