//! Which of the records that were passed no durable mark reaches.
//!
//! A log whose records were never flushed may hold hundreds of millions of them. So not
//! all are remembered once there are many, and what is asked for is told too early rather
//! than too late.

use std::collections::VecDeque;

/// So many are remembered before every other one is forgotten.
const REMEMBERED_MAX: usize = 8192;

/// The highest durable mark passed, and records that it does not reach.
#[derive(Default)]
pub(super) struct Marks {
    mark: u64,
    /// The number of the last record. The beginning of a life has the number before it
    /// in its head, and here that of the record after it, as which it is written.
    last: u64,
    /// Numbers of records and where they begin.
    passed: VecDeque<(u64, u64)>,
    /// One of `2^sparsity` records is remembered.
    sparsity: u32,
    /// How many have come since the last of those, with it.
    since: u64,
}

impl Marks {
    /// Takes note of a record and its mark.
    pub(super) fn note(&mut self, mark: u64, seq: u64, position: u64) {
        self.mark = self.mark.max(mark);
        self.last = seq;
        if self.since == 0 {
            self.make_room();
            self.passed.push_back((seq, position));
        }
        self.since = (self.since + 1) % (1 << self.sparsity);
        self.forget_reached();
    }

    /// Where the first of them begins that the mark does not reach, or one before it;
    /// `end` if it reaches all.
    pub(super) fn unreached(&self, end: u64) -> u64 {
        match self.passed.front() {
            Some((_, position)) if self.last > self.mark => *position,
            _ => end,
        }
    }

    fn forget_reached(&mut self) {
        // Of what lies behind one that was remembered, the next one tells.
        let tells = usize::from(self.sparsity > 0);
        let is_reached = |(seq, _): &(u64, u64)| *seq <= self.mark;
        while self.passed.get(tells).is_some_and(is_reached) {
            self.passed.pop_front();
        }
    }

    fn make_room(&mut self) {
        if self.passed.len() < REMEMBERED_MAX {
            return;
        }
        let mut number = 0;
        self.passed.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        self.sparsity += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opening a log of a gigabyte of small records that were never flushed took half of
    /// that again in memory.
    #[test]
    fn few_are_remembered_and_none_is_told_too_late() {
        for (flushed_every, lag) in [(u64::MAX, 0), (1, 1), (7, 3), (40_000, 20_000)] {
            let mut marks = Marks::default();
            let mut mark = 0;
            for seq in 1..100_000_u64 {
                if seq % flushed_every == 0 {
                    mark = seq.saturating_sub(lag);
                }
                marks.note(mark, seq, seq * 32);
                assert!(marks.passed.len() <= REMEMBERED_MAX);
                let told = marks.unreached((seq + 1) * 32) / 32;
                let exact = (mark + 1).min(seq + 1);
                assert!(told <= exact, "{told} of {exact}");
                // No more is written anew than a part of what has to be, or nothing.
                let slack = (seq - mark) / 1024 + (1 << marks.sparsity) - 1;
                assert!(told + slack >= exact, "{told} of {exact}");
            }
        }
    }
}
