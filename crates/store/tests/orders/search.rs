//! The search for an order, by running transactions on the model and going back where one
//! was told something else.

use crate::ask::{Ask, Told};
use crate::history::{Ends, Transaction};
use crate::model::{Run, State};
use std::collections::{HashMap, HashSet};

/// How many places in the order are tried before the search gives up.
const STEPS_MAX: usize = 60_000;

/// How a search ended.
pub enum Found {
    /// What is there at its end.
    Order(State),
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
    began: u64,
    ended: u64,
}

/// See the module.
pub struct Search<'h> {
    /// Those of each thread.
    events: Vec<Vec<Event<'h>>>,
    placed: Vec<usize>,
    /// What each thread has read at an earlier moment and is to end.
    open: Vec<Option<Run>>,
    /// When the first who was told of it ended, by each tree that was made.
    made: HashMap<u32, u64>,
    vain: HashSet<(Vec<usize>, u64, Vec<u64>)>,
    steps: usize,
    deepest: (usize, Vec<String>),
}

fn events(transactions: &[Transaction]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    for of in transactions {
        let mut event = |what, began| {
            events.push(Event {
                what,
                of,
                began,
                ended: of.ended,
            });
        };
        match of.ends {
            Ends::Later => {
                event(What::Reads, of.began);
                event(What::Ends, of.commits);
            }
            Ends::AtOnce | Ends::Undone => event(What::Whole, of.began),
        }
    }
    events
}

fn made(history: &[Vec<Transaction>]) -> HashMap<u32, u64> {
    let mut made: HashMap<u32, u64> = HashMap::new();
    for of in history
        .iter()
        .flatten()
        .filter(|of| of.ends != Ends::Undone)
    {
        for step in &of.steps {
            if let (Ask::CreateTree(_) | Ask::CreateFamily(..), Told::Tree(Some(id))) =
                (&step.ask, &step.told)
            {
                let first = made.entry(*id).or_insert(of.ended);
                *first = of.ended.min(*first);
            }
        }
    }
    made
}

impl<'h> Search<'h> {
    pub fn new(history: &'h [Vec<Transaction>]) -> Self {
        let events: Vec<_> = history.iter().map(|of| events(of)).collect();
        Self {
            placed: vec![0; events.len()],
            open: vec![None; events.len()],
            events,
            made: made(history),
            vain: HashSet::new(),
            steps: 0,
            deepest: (0, Vec::new()),
        }
    }

    pub fn run(&mut self, first: &State) -> Found {
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
    /// tried first.
    fn candidates(&self) -> Vec<usize> {
        let next = |thread: usize| self.events[thread].get(self.placed[thread]);
        let mut left: Vec<_> = (0..self.events.len())
            .filter_map(|thread| Some((next(thread)?, thread)))
            .collect();
        left.sort_by_key(|(next, _)| next.ended);
        let first_end = left.first().map_or(0, |(next, _)| next.ended);
        left.retain(|(next, _)| next.began <= first_end);
        left.into_iter().map(|(_, thread)| thread).collect()
    }

    fn goes_on(&mut self, state: &State) -> Option<State> {
        let candidates = self.candidates();
        if candidates.is_empty() {
            return Some(state.clone());
        }
        let open = self
            .open
            .iter()
            .map(|run| run.as_ref().map_or(0, |run| run.base().hash()));
        let here = (self.placed.clone(), state.hash(), open.collect());
        self.steps += 1;
        if self.steps > STEPS_MAX || self.vain.contains(&here) {
            return None;
        }
        for thread in candidates {
            let before = self.open[thread].clone();
            match self.place(thread, state) {
                Ok((after, leaves_nothing)) => {
                    self.placed[thread] += 1;
                    if let Some(end) = self.goes_on(&after) {
                        return Some(end);
                    }
                    self.placed[thread] -= 1;
                    self.open[thread] = before;
                    // Where one that leaves nothing has its place is the same to all others.
                    if leaves_nothing {
                        break;
                    }
                }
                Err(why) => self.note(thread, why),
            }
        }
        self.vain.insert(here);
        None
    }

    fn note(&mut self, thread: usize, why: String) {
        let depth = self.placed.iter().sum();
        if depth > self.deepest.0 {
            self.deepest = (depth, Vec::new());
        }
        if depth == self.deepest.0 && self.deepest.1.len() < 12 {
            let text = format!("behind {:?}, thread {thread}: {why}", self.placed);
            self.deepest.1.push(text);
        }
    }

    /// What is there behind the next event of a thread, and whether that is what was there.
    fn place(&mut self, thread: usize, state: &State) -> Result<(State, bool), String> {
        let event = &self.events[thread][self.placed[thread]];
        let explained = || {
            let is_young = |ended: &u64| *ended > event.of.began;
            let young = self.made.iter().filter(|(_, ended)| is_young(ended));
            let mut run = Run::new(state, young.map(|(id, _)| *id).collect());
            run.explain(&event.of.steps)?;
            if event.of.how == "statement" {
                // Nothing that it read lasts but what it locked.
                run.lets_go();
            }
            Ok::<_, String>(run)
        };
        match event.what {
            What::Whole => {
                let run = explained()?;
                let end = match event.of.ends {
                    Ends::Undone => state.clone(),
                    _ => run.ends()?,
                };
                let leaves_nothing = end == *state;
                Ok((end, leaves_nothing))
            }
            What::Reads => {
                self.open[thread] = Some(explained()?);
                Ok((state.clone(), false))
            }
            What::Ends => {
                let run = self.open[thread].take().ok_or("it has not read")?;
                let end = run.ends_on(state);
                if end.is_err() {
                    self.open[thread] = Some(run);
                }
                Ok((end?, false))
            }
        }
    }
}
