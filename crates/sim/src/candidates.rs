//! The states that a power cut may leave, or the end of a process.

use std::iter::{Rev, Take};
use std::slice::Iter;

/// Oldest first, never empty. The last is the one that readers of the running
/// database see, unless a commit's outcome is unknown.
#[derive(Debug, Clone)]
pub struct Candidates<S> {
    states: Vec<S>,
    /// So many older ones were ruled out.
    ruled_out: usize,
    /// So many of the newest belong to commits that are under way.
    under_way: usize,
    /// Whether the running process has seen which one it is.
    seen: bool,
    /// Where a process that had seen it ended: it is one of so many of the newest,
    /// as long as the power stays.
    left: Option<usize>,
}

impl<S: Default> Default for Candidates<S> {
    fn default() -> Self {
        Self {
            states: vec![S::default()],
            ruled_out: 0,
            under_way: 0,
            seen: true,
            left: None,
        }
    }
}

impl<S> Candidates<S> {
    /// All of them, oldest first.
    pub fn iter(&self) -> Iter<'_, S> {
        self.states.iter()
    }

    /// Those that may be found now, newest first.
    pub(crate) fn to_be_found(&self) -> Take<Rev<Iter<'_, S>>> {
        let count = self.left.unwrap_or(self.states.len());
        self.states.iter().rev().take(count)
    }

    /// The process ended, and all it wrote is with the operating system.
    pub(crate) fn killed(&mut self) {
        if self.seen {
            self.left = Some(self.under_way + 1);
        }
        self.seen = false;
    }

    /// The power went.
    pub(crate) fn power_cut(&mut self) {
        self.seen = false;
        self.left = None;
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, S> {
        self.states.iter_mut()
    }

    /// The state with everything in it.
    ///
    /// # Panics
    /// Never: there is always one.
    pub fn newest(&self) -> &S {
        self.states.last().expect("there is always one")
    }

    /// How many there ever were.
    pub(crate) fn count(&self) -> usize {
        self.ruled_out + self.states.len()
    }

    /// It is this one, as somebody has seen.
    pub(crate) fn settle_on(&mut self, state: S) {
        self.states = vec![state];
        self.under_way = 0;
        self.seen = true;
        self.left = None;
    }

    /// A commit to this state is under way.
    pub(crate) fn under_way(&mut self, state: S) {
        self.states.push(state);
        self.under_way += 1;
    }

    /// The commit that was under way led to `state` and was acknowledged:
    /// durable, or only with the operating system.
    pub(crate) fn acknowledge(&mut self, state: S, durable: bool) {
        if durable {
            self.ruled_out += self.states.len() - 1;
            self.states.clear();
        } else {
            self.states.pop();
        }
        self.states.push(state);
        self.under_way = 0;
    }

    /// What was under way had no effect, if anything was.
    pub(crate) fn take_back(&mut self, visible: &S)
    where
        S: PartialEq,
    {
        if self.newest() != visible {
            self.states.pop();
        }
        self.under_way = 0;
        assert!(
            self.states.last() == Some(visible),
            "what failed had an effect nevertheless"
        );
    }

    /// The states older than the newest `kept` are ruled out.
    pub(crate) fn keep(&mut self, kept: usize) {
        let ruled_out = self.states.len().saturating_sub(kept.max(1));
        self.states.drain(..ruled_out);
        self.ruled_out += ruled_out;
    }

    /// So are those older than the newest when there had been `count`.
    pub(crate) fn keep_since(&mut self, count: usize) {
        self.keep((self.count() + 1).saturating_sub(count));
    }
}
