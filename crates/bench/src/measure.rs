//! Interleaved measuring: in each round every contestant runs the same inputs,
//! in an order drawn for the round, so that no drift of the machine favours one.

use crate::report::{Metric, Report};
use crate::side::{Side, Sum};
use crate::stats::Samples;
use anyhow::{Result, ensure};
use std::time::Instant;

/// A stopwatch that reads the clock once an operation: the end of one is the
/// start of the next.
#[derive(Debug)]
pub struct Laps {
    last: Instant,
    nanos: Vec<u64>,
}

impl Laps {
    /// Room for so many samples without allocating.
    pub fn with_capacity(operations: usize) -> Self {
        Self {
            last: Instant::now(),
            nanos: Vec::with_capacity(operations),
        }
    }

    /// Starts timing; what went before is not measured.
    pub fn start(&mut self) {
        self.last = Instant::now();
    }

    /// Ends one operation and starts the next.
    pub fn lap(&mut self) {
        let now = Instant::now();
        self.nanos
            .push(now.duration_since(self.last).as_nanos() as u64);
        self.last = now;
    }

    /// What was measured, in nanoseconds.
    pub fn into_nanos(self) -> Vec<u64> {
        self.nanos
    }
}

/// Runs the inputs of one round and returns a sum over the answers, or None
/// where there is nothing to compare.
pub type Contestant<'a, I> = Box<dyn FnMut(&I, &mut Laps) -> Result<Option<u64>> + 'a>;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub rounds: usize,
    pub operations: usize,
}

impl Plan {
    /// `rounds` of `operations` each, the former scaled by the effort asked for.
    pub fn new(effort: f64, rounds: usize, operations: usize) -> Self {
        Self {
            rounds: ((rounds as f64 * effort) as usize).max(3),
            operations,
        }
    }
}

/// Measures the contestants against each other. The first twentieth of the
/// rounds warms them up and is not counted.
pub fn interleave<I, const N: usize>(
    plan: Plan,
    rng: &mut fastrand::Rng,
    mut inputs: impl FnMut(&mut fastrand::Rng) -> I,
    mut contestants: [Contestant<'_, I>; N],
) -> Result<[Samples; N]> {
    let mut samples = [(); N].map(|()| Samples::default());
    let warmup = plan.rounds.div_ceil(20);
    for round in 0..plan.rounds + warmup {
        let input = inputs(rng);
        let mut order: Vec<usize> = (0..N).collect();
        rng.shuffle(&mut order);
        let mut sums = Vec::new();
        for side in order {
            let mut laps = Laps::with_capacity(plan.operations);
            sums.extend(contestants[side](&input, &mut laps)?);
            if round >= warmup {
                samples[side].push_round(laps.nanos);
            }
        }
        ensure!(
            sums.windows(2).all(|pair| pair[0] == pair[1]),
            "the sides answered differently in round {round}"
        );
    }
    Ok(samples)
}

/// Both sides, and where it is told what they took.
pub struct Pair<'a> {
    pub sides: [Box<dyn Side>; 2],
    pub rng: fastrand::Rng,
    pub report: &'a mut Report,
}

impl Pair<'_> {
    /// Has both sides do the same work and adds their latencies to the report.
    pub fn measure<I>(
        &mut self,
        (name, what): (&str, &str),
        plan: Plan,
        inputs: impl FnMut(&mut fastrand::Rng) -> I,
        run: impl Fn(&mut dyn Side, &I, &mut Laps) -> Result<Sum> + Copy,
    ) -> Result<()> {
        let contestants = self.sides.each_mut().map(|side| {
            let contestant: Contestant<'_, I> =
                Box::new(move |input, laps| run(side.as_mut(), input, laps));
            contestant
        });
        let [ours, sqlite] = interleave(plan, &mut self.rng, inputs, contestants)?;
        self.report
            .push(Metric::latency(name, what, &ours, &sqlite));
        Ok(())
    }
}

/// An order of the two sides, drawn anew each time.
pub fn toss(rng: &mut fastrand::Rng) -> [usize; 2] {
    if rng.bool() { [0, 1] } else { [1, 0] }
}
