//! Texts to programs.
//!
//! A program is out of date where the schema or a setting is not as its plan has it; then
//! the text is compiled again, in the transaction that it runs in. Where the trees that it
//! reads have grown or shrunk by far, it is compiled again before it begins.

use std::sync::Arc;

use super::body::{Body, Phase};
use super::databases::Versions;
use super::estimates::Estimates;
use super::program::Program;
use super::state::State;
use super::{Engine, Session, Shared};
use crate::ast::Statement;
use crate::error::{Error, Result};
use crate::exec::batch::Batch;
use crate::exec::context::Run;
use crate::exec::dml::{Buffers, TriggerState};
use crate::exec::effects::Effects;
use crate::exec::subquery::SubqueryRun;
use crate::parse::Parsed;
use crate::plan::physical::{Action, Plan};
use crate::value::Value;

/// The plan of a parsed statement in the transaction's state; in the newest, if there is none
/// under way.
fn plan(parsed: &mut Parsed, engine: &Engine, state: &mut State) -> Result<Option<Plan>> {
    if let Some(Statement::Transaction(action)) = &parsed.statement {
        // A schema that cannot be read must keep nobody from ending a transaction.
        let action = Action::Transaction(action.clone());
        return Ok(Some(Plan::of_no_names(action, &state.settings)));
    }
    loop {
        let catalog = state.catalog(engine)?;
        let mut estimates = Estimates {
            engine,
            databases: &state.databases,
            txn: &mut state.txn,
        };
        match crate::plan::prepare(&catalog, &mut estimates, parsed, &state.settings) {
            Err(_) if catalog.wants_temp() && catalog.temp().is_none() => {
                state.open_temp(engine)?;
            }
            Ok(Some(mut plan)) => {
                plan.parameters = std::mem::take(&mut parsed.parameters);
                return Ok(Some(plan));
            }
            Ok(None) => return Ok(None),
            Err(error) => {
                // What a transaction under way was told depends on what is not there.
                if state.explicit.as_ref().is_some_and(|it| it.begun) {
                    state.join(&catalog.searched())?;
                }
                return Err(error);
            }
        }
    }
}

/// What a statement was before it was compiled again with other functions or collations: it
/// may hold the last of those that the connection has no more.
pub(super) type Replaced = (Program, Vec<Option<Box<SubqueryRun>>>, TriggerState);

fn subqueries(plan: &Plan) -> Vec<Option<Box<SubqueryRun>>> {
    plan.subqueries
        .iter()
        .map(|s| Some(Box::new(SubqueryRun::new(s))))
        .collect()
}

impl Body {
    /// Compiles the first statement of a text, of what `suits` makes of its plan; None where
    /// that is false. Also the bytes that it takes.
    pub(super) fn compile(
        session: &Session,
        sql: &str,
        suits: impl FnOnce(&mut Plan) -> bool,
    ) -> Result<(Option<Box<Body>>, usize)> {
        let mut parsed = crate::parse::parse(sql)?;
        let consumed = parsed.consumed;
        let mut state = session.0.state()?;
        let state = &mut *state;
        let engine = session.engine();
        // A transaction that has not begun keeps its snapshot for later.
        let mut plan = plan(&mut parsed, engine, state)?;
        let Some(plan) = plan.take_if(suits) else {
            return Ok((None, consumed));
        };
        let mut run = Run::new(
            state.functions.of_statement(),
            Arc::clone(&session.0.interrupt),
            state.memory.clone(),
        );
        run.subqueries = subqueries(&plan);
        let parameters = vec![Value::Null; plan.parameters.len()];
        let body = Body {
            sql: sql.get(..consumed).unwrap_or(sql).to_owned(),
            shape: None,
            program: Program::new(plan),
            parameters,
            run,
            phase: Phase::Ready,
            ahead_of: None,
            out: Batch::default(),
            position: 0,
            row: 0,
            want: 0,
            effects: Effects::default(),
            buffers: Buffers::default(),
            triggers: TriggerState::default(),
            explain: matches!(parsed.statement, Some(Statement::Explain { .. })),
            outer: None,
            replaced: Vec::new(),
        };
        Ok((Some(Box::new(body)), consumed))
    }

    /// Compiles the text again if the schema, or a setting, is not as the plan has it. True:
    /// it was.
    #[inline(always)]
    pub(super) fn revalidate(&mut self, engine: &Engine, state: &mut State) -> Result<bool> {
        let plan = &self.program.plan;
        let is_current = state.txn.main.stamp(engine.schema_tree())? == plan.schema_version
            && plan.settings == state.settings;
        match is_current && state.is_alone(&plan.beside) {
            true => Ok(false),
            false => self.revalidate_beside(is_current, engine, state),
        }
    }

    /// The same where there are other databases, or the main one has changed.
    #[cold]
    fn revalidate_beside(
        &mut self,
        is_current: bool,
        engine: &Engine,
        state: &mut State,
    ) -> Result<bool> {
        if is_current && state.has_beside(&self.program.plan.beside)? {
            return Ok(false);
        }
        if let Some((main, beside)) = self.untouched(engine, state)?
            && let Some(plan) = Arc::get_mut(&mut self.program.plan)
        {
            plan.schema_version = main;
            plan.beside = beside;
            return Ok(false);
        }
        self.recompile(engine, state)?;
        Ok(true)
    }

    /// The versions that the schemas have now, where what has changed of them since the text
    /// was compiled is nothing that it can mean.
    pub(super) fn untouched(&self, engine: &Engine, state: &mut State) -> Result<Option<Versions>> {
        let plan = &self.program.plan;
        let is_of_rows = matches!(
            plan.action,
            Action::Query(_) | Action::Insert(_) | Action::Update(_) | Action::Delete(_)
        );
        if !is_of_rows || self.explain || plan.settings != state.settings {
            return Ok(None);
        }
        let text = self.sql.to_ascii_lowercase();
        // What shows or stands for tables that are named nowhere.
        if text.contains("sqlite_") || text.contains("pragma") {
            return Ok(None);
        }
        state.versions_if_untouched(engine, (plan.schema_version, &plan.beside), &text)
    }

    /// Compiles the text again for as many rows as there are now: who keeps a statement that
    /// was prepared when the tables were empty would read all of them by its plan for ever. A
    /// text that does not compile any more keeps the plan: what is wrong is found, and told, in
    /// the transaction that it runs in.
    #[cold]
    pub(super) fn fit_sizes(&mut self, shared: &Shared) -> Result<()> {
        let mut state = shared.state()?;
        let _ = self.compile_again(&shared.engine, &mut state);
        Ok(())
    }

    /// Compiles the text again. An explicit transaction takes in the other databases that it
    /// uses then; whose statement is alone begins again with all that it uses.
    fn recompile(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        self.compile_again(engine, state)?;
        match state.is_autocommit() {
            true => Ok(()),
            false => state.join(&self.program.stores),
        }
    }

    fn compile_again(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        let mut parsed = crate::parse::parse(&self.sql)?;
        let plan = plan(&mut parsed, engine, state)?;
        let plan = plan.ok_or_else(|| Error::misuse("a statement became empty"))?;
        let subqueries = subqueries(&plan);
        self.shape = None;
        self.parameters.resize(plan.parameters.len(), Value::Null);
        let replaced = (
            std::mem::replace(&mut self.program, Program::new(plan)),
            std::mem::replace(&mut self.run.subqueries, subqueries),
            std::mem::take(&mut self.triggers),
        );
        if replaced.0.plan.settings.user != self.program.plan.settings.user {
            self.replaced.push(replaced);
        }
        if self.program.plan.calls_user {
            self.ask_collations(state);
        }
        self.buffers = Buffers::default();
        Ok(())
    }
}
