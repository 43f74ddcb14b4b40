//! A trigger program as it runs: its WHEN and its statements made ready, and their values.

use std::sync::Arc;

use super::{Shown, Triggers};
use crate::exec::batch::Batch;
use crate::exec::context::{Context, Run};
use crate::exec::dml::statement::{KeptBack, Statement, attach, detach};
use crate::exec::dml::{Buffers, Deferred, Failure, Written};
use crate::exec::effects::Effects;
use crate::exec::expr::{Row, condition};
use crate::exec::kind::Kind;
use crate::exec::ops::build;
use crate::exec::subquery::SubqueryRun;
use crate::exec::txns::Txns;
use crate::plan::physical::{Action, Op, Plan};
use crate::plan::trigger::TriggerProgram;
use crate::schema::ConflictAction;
use crate::value::{Value, ValueRef};

/// See the module.
pub struct Activation {
    /// OLD and NEW; see `plan/trigger.rs`.
    parameters: Vec<Value>,
    when: Option<Step>,
    steps: Vec<Step>,
}

/// A statement of it, with memory of its own.
struct Step {
    run: Run,
    kind: Kind,
    buffers: Buffers,
    effects: Effects,
}

impl Step {
    fn new(plan: &Plan, outer: &Run) -> Self {
        let interrupt = Arc::clone(&outer.interrupt);
        let mut run = Run::new(
            outer.functions.of_statement(),
            interrupt,
            outer.memory.clone(),
        );
        let subqueries = plan.subqueries.iter();
        run.subqueries = subqueries
            .map(|subquery| Some(Box::new(SubqueryRun::new(subquery))))
            .collect();
        run.registers = vec![Value::Null; plan.registers];
        let kind = match &plan.action {
            // Its rows are gone through, not read one by one.
            Action::Query(root) => Kind::Query(build(root)),
            _ => Kind::of(plan),
        };
        Self {
            run,
            kind,
            buffers: Buffers::default(),
            effects: Effects::default(),
        }
    }
}

impl Activation {
    /// Of a program, for a statement whose run this is.
    pub fn new(program: &TriggerProgram, outer: &Run) -> Self {
        let step = |plan: &Plan| Step::new(plan, outer);
        Self {
            parameters: Vec::new(),
            when: program.when.as_ref().map(step),
            steps: program.steps.iter().map(step).collect(),
        }
    }

    /// Runs it over a row.
    pub fn run(
        &mut self,
        program: &TriggerProgram,
        rows: Shown<'_>,
        txn: &mut Txns,
        triggers: &mut Triggers<'_>,
        outer: &mut Run,
    ) -> Written<()> {
        self.fill(rows);
        if let (Some(plan), Some(step)) = (&program.when, &mut self.when)
            && !step.holds(plan, &self.parameters, txn, outer)?
        {
            return Ok(());
        }
        for (plan, step) in program.steps.iter().zip(&mut self.steps) {
            step.run(plan, &self.parameters, txn, triggers, outer)?;
        }
        Ok(())
    }

    fn fill(&mut self, rows: Shown<'_>) {
        let width = rows.old.or(rows.new).map_or(0, <[Value]>::len);
        self.parameters.resize(2 * width, Value::Null);
        let (old, new) = self.parameters.split_at_mut(width);
        for (slots, row) in [(old, rows.old), (new, rows.new)] {
            for (at, slot) in slots.iter_mut().enumerate() {
                let value = row.and_then(|row| row.get(at));
                slot.assign(value.map_or(ValueRef::Null, Value::as_ref));
            }
        }
    }
}

impl Step {
    /// Within the run of the statement around, whose functions go on counting here.
    fn within<T>(&mut self, outer: &mut Run, f: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.run.functions, &mut outer.functions);
        let result = f(self);
        std::mem::swap(&mut self.run.functions, &mut outer.functions);
        result
    }

    /// Whether WHEN is true.
    fn holds(
        &mut self,
        plan: &Plan,
        parameters: &[Value],
        txn: &mut Txns,
        outer: &mut Run,
    ) -> Written<bool> {
        let Action::Query(root) = &plan.action else {
            return Ok(true);
        };
        let Op::Values(rows) = &root.op else {
            return Ok(true);
        };
        let Some(when) = rows.first().and_then(|row| row.first()) else {
            return Ok(true);
        };
        self.within(outer, |step| {
            let run = &mut step.run;
            let mut cx = Context { parameters, run };
            attach(&mut step.kind, txn, &mut cx)?;
            let holds = condition(when, Row::Empty, &mut cx);
            detach(&mut step.kind, &mut cx);
            Ok(holds? == Some(true))
        })
    }

    fn run(
        &mut self,
        plan: &Plan,
        parameters: &[Value],
        txn: &mut Txns,
        triggers: &mut Triggers<'_>,
        outer: &mut Run,
    ) -> Written<()> {
        self.within(outer, |step| match &plan.action {
            Action::Query(_) => step.read(parameters, txn),
            _ => step.write(plan, parameters, txn, triggers),
        })
    }

    /// A SELECT, whose rows nobody sees.
    fn read(&mut self, parameters: &[Value], txn: &mut Txns) -> Written<()> {
        let run = &mut self.run;
        let mut cx = Context { parameters, run };
        let mut outcome = attach(&mut self.kind, txn, &mut cx);
        if outcome.is_ok()
            && let Kind::Query(root) = &mut self.kind
        {
            let mut batch = Batch::default();
            outcome = root.open(&mut cx);
            while outcome.is_ok() {
                match root.next(&mut cx, usize::MAX, &mut batch) {
                    Ok(true) => outcome = cx.run.check_interrupt(),
                    Ok(false) => break,
                    Err(error) => outcome = Err(error),
                }
            }
        }
        detach(&mut self.kind, &mut cx);
        Ok(outcome?)
    }

    fn write(
        &mut self,
        plan: &Plan,
        parameters: &[Value],
        txn: &mut Txns,
        triggers: &mut Triggers<'_>,
    ) -> Written<()> {
        self.effects.clear();
        let run = &mut self.run;
        let mut cx = Context { parameters, run };
        let mut own = Deferred::default();
        let kept_back = KeptBack {
            deferred: &mut own,
            unique: false,
        };
        let statement = Statement {
            plan,
            kind: &mut self.kind,
            buffers: &mut self.buffers,
            effects: &mut self.effects,
        };
        let mut counters = triggers.counters();
        let within = Some(triggers.reborrow());
        let mut torn = false;
        let counted = &mut counters;
        let outcome = statement.run(txn, kept_back, counted, within, &mut torn, &mut cx);
        triggers.set_counters(counters);
        let functions = &mut self.run.functions;
        let mut changes = self.effects.by_actions;
        if outcome.is_ok() {
            changes = changes.saturating_add(self.effects.changes);
            functions.changes = i64::try_from(self.effects.changes).unwrap_or(i64::MAX);
        }
        functions.total_changes = functions.total_changes.saturating_add_unsigned(changes);
        triggers.state.changes = triggers.state.changes.saturating_add(changes);
        if let Some(rowid) = self.effects.last_rowid {
            functions.last_insert_rowid = rowid;
        }
        outcome.map_err(|failure| match failure.keeps() && torn {
            true => Failure {
                action: ConflictAction::Abort,
                ..failure
            },
            false => failure,
        })
    }
}
