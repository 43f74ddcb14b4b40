//! Threads that commit at the same time.

use super::contenders::Contender;
use anyhow::{Result, anyhow};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What a crew did.
pub struct Work {
    /// Every commit's time in nanoseconds.
    pub nanos: Vec<u64>,
    /// Commits a second.
    pub rate: f64,
}

/// Has `committers` threads commit `payload` for `time`. What they do in the
/// first twentieth of it is not counted: threads are still starting.
pub fn work(
    log: &dyn Contender,
    committers: usize,
    payload: &[u8],
    time: Duration,
) -> Result<Work> {
    let barrier = Barrier::new(committers);
    let one = || -> Result<(Vec<u64>, Duration)> {
        let mut nanos = Vec::with_capacity(1 << 14);
        barrier.wait();
        let begun = Instant::now();
        let mut last = begun;
        while last - begun < time / 20 {
            log.commit(payload)?;
            last = Instant::now();
        }
        let start = last;
        while last - begun < time {
            log.commit(payload)?;
            let now = Instant::now();
            nanos.push((now - last).as_nanos() as u64);
            last = now;
        }
        Ok((nanos, last - start))
    };
    let results: Vec<Result<_>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..committers).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a committer panicked"))?)
            .collect()
    });
    let (mut nanos, mut longest) = (Vec::new(), Duration::ZERO);
    for result in results {
        let (times, elapsed) = result?;
        nanos.extend(times);
        longest = longest.max(elapsed);
    }
    let rate = nanos.len() as f64 / longest.as_secs_f64();
    Ok(Work { nanos, rate })
}
