//! Triggers of the rows that a statement writes.
//!
//! A program runs its statements one after the other, each with the plan that was made with
//! the statement's, and these fire programs in turn. So calls nest as programs do, up to
//! SQLite's limit, on stack that grows with them. What a program needs to run is kept for
//! the next row; one that is running already gets it anew.
//!
//! A statement within reads the state in which it begins. What it raises ends the statement
//! around it as RAISE() or the constraint says; RAISE(IGNORE) ends the program, and leaves
//! out the row that fired it.

mod row;
mod step;

use std::sync::Arc;

pub use self::row::Event;
use self::step::Activation;
use super::sink::Outcome;
use super::{Counters, Failure, Written};
use crate::error::Error;
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::plan::trigger::TriggerProgram;
use crate::schema::ConflictAction;
use crate::value::Value;

/// SQLite's limit of triggers within triggers, which actions of foreign keys count for.
pub const DEPTH_MAX: usize = 1_000;

/// How often a program is kept ready: one that nests deep is made anew below that.
const IDLE_MAX: usize = 16;

/// What is kept of a statement's trigger programs, between rows and between runs.
#[derive(Default)]
pub struct TriggerState {
    /// What is ready to run, by program.
    idle: Vec<Vec<Activation>>,
    /// Programs under way, outermost first.
    active: Vec<usize>,
    /// How deep the one under way is, with the actions of foreign keys that led there.
    depth: usize,
    /// Rows that their statements changed.
    changes: u64,
    counters: Counters,
    /// `PRAGMA recursive_triggers`.
    recursive: bool,
}

impl TriggerState {
    /// Before a run of the statement.
    pub fn begin(&mut self, recursive: bool) {
        self.active.clear();
        (self.depth, self.changes) = (0, 0);
        self.recursive = recursive;
    }

    /// Rows that the statements of the programs changed in the last run.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Between two runs: gives back what programs took.
    pub fn let_go(&mut self) {
        self.idle.clear();
    }
}

/// The rows that a program sees: of each the rowid and all columns.
#[derive(Clone, Copy)]
pub struct Shown<'r> {
    /// OLD
    pub old: Option<&'r [Value]>,
    /// NEW
    pub new: Option<&'r [Value]>,
}

/// The trigger programs of a running statement.
pub struct Triggers<'t> {
    programs: &'t [TriggerProgram],
    state: &'t mut TriggerState,
}

impl<'t> Triggers<'t> {
    /// For one statement.
    pub fn new(programs: &'t [TriggerProgram], state: &'t mut TriggerState) -> Self {
        Self { programs, state }
    }

    /// For a statement within this one.
    pub fn reborrow(&mut self) -> Triggers<'_> {
        Triggers {
            programs: self.programs,
            state: self.state,
        }
    }

    /// How deep the statement is.
    pub fn depth(&self) -> usize {
        self.state.depth
    }

    /// Rows without their parent that were counted so far.
    pub fn counters(&self) -> Counters {
        self.state.counters
    }

    /// The same, to go on from there.
    pub fn set_counters(&mut self, counters: Counters) {
        self.state.counters = counters;
    }

    /// Runs programs over a row; Skipped: one of them leaves the row out.
    pub fn run(
        &mut self,
        fires: &[usize],
        rows: Shown<'_>,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
    ) -> Written<Outcome> {
        for number in fires {
            match crate::stack::grow(|| self.run_program(*number, rows, txn, cx)) {
                Ok(()) => {}
                Err(failure) if failure.action == ConflictAction::Ignore => {
                    return Ok(Outcome::Skipped);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Outcome::Written)
    }

    fn run_program(
        &mut self,
        number: usize,
        rows: Shown<'_>,
        txn: &mut Txns,
        cx: &mut Context<'_, '_>,
    ) -> Written<()> {
        let Some(program) = self.programs.get(number) else {
            return Err(Error::misuse("a trigger has no program").into());
        };
        let is_it = |active: &usize| {
            let active = self.programs.get(*active);
            active.is_some_and(|active| Arc::ptr_eq(&active.trigger, &program.trigger))
        };
        if !self.state.recursive && self.state.active.iter().any(is_it) {
            return Ok(());
        }
        if self.state.depth >= DEPTH_MAX {
            return Err(too_deep().into());
        }
        cx.run.check_interrupt()?;
        if self.state.idle.len() <= number {
            self.state.idle.resize_with(number + 1, Vec::new);
        }
        let idle = self.state.idle[number].pop();
        let mut activation = idle.unwrap_or_else(|| Activation::new(program, cx.run));
        self.state.active.push(number);
        self.state.depth += 1;
        let functions = &cx.run.functions;
        let before = (functions.changes, functions.last_insert_rowid);
        let outcome = activation.run(program, rows, txn, self, cx.run);
        let functions = &mut cx.run.functions;
        (functions.changes, functions.last_insert_rowid) = before;
        self.state.depth -= 1;
        self.state.active.pop();
        if self.state.idle[number].len() < IDLE_MAX {
            self.state.idle[number].push(activation);
        }
        outcome
    }
}

/// SQLite's error where triggers, or actions of foreign keys, are too many within each other.
pub fn too_deep() -> Error {
    Error::sql("triggers nested too deep").with_hint(format!(
        "triggers and actions of foreign keys may cause {DEPTH_MAX} others, each within the last"
    ))
}

impl Failure {
    /// Whether what was done before it stays.
    pub fn keeps(&self) -> bool {
        matches!(self.action, ConflictAction::Fail | ConflictAction::Ignore)
    }
}
