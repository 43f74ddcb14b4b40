//! The scenarios. Each runs its steps and answers whether the forbidden outcome
//! came about.

use super::{Rows, Sessions};

pub struct Scenario {
    pub name: &'static str,
    /// How many sessions have begun, from 1 on, before it runs.
    sessions: usize,
    steps: fn(&mut dyn Sessions) -> bool,
    /// It comes about under `snapshot`.
    pub under_snapshot: bool,
}

const fn prevented(
    name: &'static str,
    sessions: usize,
    steps: fn(&mut dyn Sessions) -> bool,
) -> Scenario {
    Scenario {
        name,
        sessions,
        steps,
        under_snapshot: false,
    }
}

const fn happens(
    name: &'static str,
    sessions: usize,
    steps: fn(&mut dyn Sessions) -> bool,
) -> Scenario {
    Scenario {
        name,
        sessions,
        steps,
        under_snapshot: true,
    }
}

impl Scenario {
    /// Whether the forbidden outcome came about.
    pub fn run(&self, s: &mut dyn Sessions) -> bool {
        for session in 1..=self.sessions {
            s.begin(session);
        }
        (self.steps)(s)
    }
}

pub const ALL: &[Scenario] = &[
    prevented("G0", 2, dirty_write),
    prevented("G1a", 2, aborted_read),
    prevented("G1b", 2, intermediate_read),
    prevented("G1c", 2, circular_flow),
    prevented("OTV", 3, observed_vanishes),
    prevented("PMP", 2, predicate_many_preceders),
    prevented("PMP-write", 2, predicate_write),
    prevented("P4", 2, lost_update),
    prevented("G-single", 2, read_skew),
    prevented("G-single-pred", 2, read_skew_by_predicate),
    prevented("G-single-write", 2, read_skew_by_write),
    happens("G2-item", 2, write_skew),
    happens("G2-one-read", 2, write_skew_with_one_read),
    happens("G2", 2, predicate_cycle),
    happens("G2-two-edges", 0, two_edges),
];

const BEFORE: [(i64, i64); 2] = [(1, 10), (2, 20)];

fn both_commit(s: &mut dyn Sessions) -> bool {
    let first = s.commit(1);
    s.commit(2) && first
}

/// What is there at the end.
fn outcome(s: &mut dyn Sessions) -> Rows {
    s.begin(0);
    let rows = s.all(0);
    s.commit(0);
    rows
}

fn dirty_write(s: &mut dyn Sessions) -> bool {
    s.write(1, 1, 11);
    s.write(2, 1, 12);
    s.write(1, 2, 21);
    s.commit(1);
    s.write(2, 2, 22);
    s.commit(2);
    let rows = outcome(s);
    rows == [(1, 11), (2, 22)] || rows == [(1, 12), (2, 21)]
}

fn aborted_read(s: &mut dyn Sessions) -> bool {
    s.write(1, 1, 101);
    let before = s.all(2);
    s.rollback(1);
    let after = s.all(2);
    s.commit(2);
    before != BEFORE || after != BEFORE
}

fn intermediate_read(s: &mut dyn Sessions) -> bool {
    s.write(1, 1, 101);
    let before = s.all(2);
    s.write(1, 1, 11);
    s.commit(1);
    let after = s.all(2);
    s.commit(2);
    before.contains(&(1, 101)) || after.contains(&(1, 101))
}

fn circular_flow(s: &mut dyn Sessions) -> bool {
    s.write(1, 1, 11);
    s.write(2, 2, 22);
    let seen = (s.read(1, 2), s.read(2, 1));
    s.commit(1);
    s.commit(2);
    seen == (Some(22), Some(11))
}

fn observed_vanishes(s: &mut dyn Sessions) -> bool {
    s.write(1, 1, 11);
    s.write(1, 2, 19);
    s.write(2, 1, 12);
    s.commit(1);
    let first = s.read(3, 1);
    s.write(2, 2, 18);
    let second = s.read(3, 2);
    s.commit(2);
    let again = (s.read(3, 2), s.read(3, 1));
    s.commit(3);
    let states = [(10, 20), (11, 19), (12, 18)];
    let is_a_state = states.contains(&(first.unwrap_or(0), second.unwrap_or(0)));
    !is_a_state || again != (second, first)
}

fn predicate_many_preceders(s: &mut dyn Sessions) -> bool {
    let none = s.holding(1, 30);
    s.insert(2, 3, 30);
    s.commit(2);
    let seen = s.multiples(1, 3);
    s.commit(1);
    !none.is_empty() || !seen.is_empty()
}

fn predicate_write(s: &mut dyn Sessions) -> bool {
    s.add_to_all(1, 10);
    s.delete_holding(2, 20);
    s.commit(1);
    s.commit(2)
}

fn lost_update(s: &mut dyn Sessions) -> bool {
    s.read(1, 1);
    s.read(2, 1);
    s.write(1, 1, 11);
    s.write(2, 1, 12);
    both_commit(s)
}

fn read_skew(s: &mut dyn Sessions) -> bool {
    s.read(1, 1);
    s.read(2, 1);
    s.read(2, 2);
    s.write(2, 1, 12);
    s.write(2, 2, 18);
    s.commit(2);
    let seen = s.read(1, 2);
    s.commit(1);
    seen == Some(18)
}

fn read_skew_by_predicate(s: &mut dyn Sessions) -> bool {
    s.multiples(1, 5);
    for (id, _) in s.holding(2, 10) {
        s.write(2, id, 12);
    }
    s.commit(2);
    let seen = s.multiples(1, 3);
    s.commit(1);
    !seen.is_empty()
}

fn read_skew_by_write(s: &mut dyn Sessions) -> bool {
    s.read(1, 1);
    s.all(2);
    s.write(2, 1, 12);
    s.write(2, 2, 18);
    s.commit(2);
    s.delete_holding(1, 20);
    s.commit(1)
}

fn write_skew(s: &mut dyn Sessions) -> bool {
    for session in [1, 2] {
        s.read(session, 1);
        s.read(session, 2);
    }
    s.write(1, 1, 11);
    s.write(2, 2, 21);
    both_commit(s)
}

fn write_skew_with_one_read(s: &mut dyn Sessions) -> bool {
    s.read(1, 2);
    s.write(1, 1, 11);
    s.read(2, 1);
    s.write(2, 2, 21);
    both_commit(s)
}

fn predicate_cycle(s: &mut dyn Sessions) -> bool {
    s.multiples(1, 3);
    s.multiples(2, 3);
    s.insert(1, 3, 30);
    s.insert(2, 4, 42);
    both_commit(s)
}

fn two_edges(s: &mut dyn Sessions) -> bool {
    s.begin(1);
    s.all(1);
    s.begin(2);
    let value = s.read(2, 2).unwrap_or(0);
    s.write(2, 2, value + 5);
    s.commit(2);
    s.begin(3);
    s.all(3);
    s.commit(3);
    s.write(1, 1, 0);
    s.commit(1)
}
