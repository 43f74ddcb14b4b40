//! The search for an order, by running transactions on the model and going back where one
//! was told something else.

use crate::history::{Ends, Transaction};
use crate::model::{Run, State, World};
use std::collections::HashSet;

/// How many places in the order are tried before the search gives up.
const STEPS_MAX: usize = 60_000;

/// How a search ended.
pub enum Found {
    /// What is there at its end.
    Order(World),
    None,
    Undecided,
}

/// Moments of a transaction.
#[derive(Clone, Copy)]
enum What {
    /// It reads and ends at one.
    Whole,
    Reads,
    Ends,
}

struct Event<'h> {
    what: What,
    of: &'h Transaction,
    /// Which transaction that is.
    number: usize,
    began: u64,
    ended: u64,
}

impl Event<'_> {
    /// Whether it is about the first of two stores, and about the second. One that ends
    /// later than it has read does so in the stores of its commit alone: those that it only
    /// read under `snapshot` have no part in that.
    fn concerns(&self) -> [bool; 2] {
        let second = !self.of.beside.is_empty();
        let about = [!self.of.steps.is_empty() || !second, second];
        let commits = [&self.of.steps, &self.of.beside]
            .map(|steps| steps.iter().any(|step| !step.ask.is_over_before_commit()));
        match self.what {
            What::Ends if commits.contains(&true) => commits,
            _ => about,
        }
    }
}

/// The events of a thread in one store.
struct Lane {
    store: usize,
    events: Vec<usize>,
}

/// See the module.
pub struct Search<'h> {
    events: Vec<Event<'h>>,
    /// Who ended before another one began comes before it if they share a store. (A commit
    /// to two stores shows in one of them before it does in the other, until it is
    /// acknowledged, to who reads one and then the other.)
    lanes: Vec<Lane>,
    /// How many of each lane have a place.
    placed: Vec<usize>,
    /// What each transaction has read at an earlier moment and is to end.
    open: Vec<Option<[Run; 2]>>,
    vain: HashSet<(Vec<usize>, u64, Vec<u64>)>,
    steps: usize,
    deepest: (usize, Vec<String>),
}

fn events(of: &Transaction, number: usize) -> Vec<Event<'_>> {
    let event = |what, began| Event {
        what,
        of,
        number,
        began,
        ended: of.ended,
    };
    match of.ends {
        Ends::Later => vec![event(What::Reads, of.began), event(What::Ends, of.commits)],
        Ends::AtOnce | Ends::Undone => vec![event(What::Whole, of.began)],
    }
}

impl<'h> Search<'h> {
    pub fn new(history: &'h [Vec<Transaction>]) -> Self {
        let (mut all, mut lanes, mut number) = (Vec::new(), Vec::new(), 0);
        for thread in history {
            let mut own = [0, 1].map(|store| Lane {
                store,
                events: Vec::new(),
            });
            for event in thread.iter().flat_map(|of| {
                number += 1;
                events(of, number - 1)
            }) {
                for lane in own.iter_mut().filter(|lane| event.concerns()[lane.store]) {
                    lane.events.push(all.len());
                }
                all.push(event);
            }
            lanes.extend(own.into_iter().filter(|lane| !lane.events.is_empty()));
        }
        Self {
            placed: vec![0; lanes.len()],
            lanes,
            open: vec![None; number],
            events: all,
            vain: HashSet::new(),
            steps: 0,
            deepest: (0, Vec::new()),
        }
    }

    pub fn run(&mut self, first: &World) -> Found {
        match self.goes_on(first) {
            Some(end) => Found::Order(end),
            None if self.steps > STEPS_MAX => Found::Undecided,
            None => Found::None,
        }
    }

    /// What was in the way of those that came furthest.
    pub fn deepest(&self) -> &[String] {
        &self.deepest.1
    }

    /// Who may come next: who began before any that has no place ended. Who ended first is
    /// tried first, but what is behind a power cut before all: that leaves nothing.
    fn candidates(&self) -> Vec<usize> {
        let mut first_end = [u64::MAX; 2];
        let mut left = Vec::new();
        for (lane, placed) in self.lanes.iter().zip(&self.placed) {
            let Some(next) = lane.events.get(*placed) else {
                continue;
            };
            let first_end = &mut first_end[lane.store];
            *first_end = self.events[*next].ended.min(*first_end);
            left.push(*next);
        }
        // One in two stores comes up in both.
        let is_next = |event: &usize| {
            let concerns = self.events[*event].concerns();
            let lanes = concerns.iter().filter(|it| **it).count();
            left.iter().filter(|it| *it == event).count() == lanes
                && (0..2).all(|at| !concerns[at] || self.events[*event].began <= first_end[at])
        };
        let mut next: Vec<usize> = left.iter().copied().filter(is_next).collect();
        next.sort_by_key(|event| (self.events[*event].ended.wrapping_add(1), *event));
        next.dedup();
        next
    }

    /// It has a place, or has none any more.
    fn step(&mut self, event: usize, by: isize) {
        let at = |lane: &Lane, placed: usize| lane.events.get(placed) == Some(&event);
        for (lane, placed) in self.lanes.iter().zip(&mut self.placed) {
            match by {
                1 if at(lane, *placed) => *placed += 1,
                -1 if placed.checked_sub(1).is_some_and(|last| at(lane, last)) => *placed -= 1,
                _ => {}
            }
        }
    }

    fn goes_on(&mut self, state: &World) -> Option<World> {
        let candidates = self.candidates();
        if candidates.is_empty() {
            return Some(state.clone());
        }
        let hash = |of: [&State; 2]| of[0].hash() ^ of[1].hash().rotate_left(1);
        let open = self.open.iter().map(|runs| {
            let bases = runs.as_ref().map(|runs| runs.each_ref().map(Run::base));
            bases.map_or(0, hash)
        });
        let here = (self.placed.clone(), hash(state.each_ref()), open.collect());
        self.steps += 1;
        if self.steps > STEPS_MAX || self.vain.contains(&here) {
            return None;
        }
        for event in candidates {
            let number = self.events[event].number;
            let before = self.open[number].clone();
            match self.place(event, state) {
                Ok((after, leaves_nothing)) => {
                    self.step(event, 1);
                    if let Some(end) = self.goes_on(&after) {
                        return Some(end);
                    }
                    self.step(event, -1);
                    self.open[number] = before;
                    // Where one that leaves nothing has its place is the same to all others.
                    if leaves_nothing {
                        break;
                    }
                }
                Err(why) => self.note(event, why),
            }
        }
        self.vain.insert(here);
        None
    }

    fn note(&mut self, event: usize, why: String) {
        let depth = self.placed.iter().sum();
        if depth > self.deepest.0 {
            self.deepest = (depth, Vec::new());
        }
        if depth == self.deepest.0 && self.deepest.1.len() < 12 {
            let Event { of, began, .. } = &self.events[event];
            let text = format!("behind {:?}, {} of {began}: {why}", self.placed, of.how);
            self.deepest.1.push(text);
        }
    }

    /// What is there behind an event, and whether that is what was there.
    fn place(&mut self, event: usize, state: &World) -> Result<(World, bool), String> {
        let event = &self.events[event];
        let explained = || {
            let mut runs = state.each_ref().map(Run::new);
            for (run, steps) in runs.iter_mut().zip([&event.of.steps, &event.of.beside]) {
                run.explain(steps)?;
                if event.of.how == "statement" {
                    // Nothing that it read lasts but what it locked.
                    run.lets_go();
                }
            }
            Ok::<_, String>(runs)
        };
        match event.what {
            What::Whole => {
                let runs = explained()?;
                let end = match event.of.ends {
                    Ends::Undone => state.clone(),
                    _ => both(&runs, |_, run| run.ends())?,
                };
                let leaves_nothing = end == *state;
                Ok((end, leaves_nothing))
            }
            What::Reads => {
                self.open[event.number] = Some(explained()?);
                Ok((state.clone(), false))
            }
            What::Ends => {
                let runs = self.open[event.number].take().ok_or("it has not read")?;
                let end = both(&runs, |at, run| run.ends_on(&state[at]));
                if end.is_err() {
                    self.open[event.number] = Some(runs);
                }
                Ok((end?, false))
            }
        }
    }
}

fn both(
    runs: &[Run; 2],
    end: impl Fn(usize, &Run) -> Result<State, String>,
) -> Result<World, String> {
    Ok([end(0, &runs[0])?, end(1, &runs[1])?])
}
