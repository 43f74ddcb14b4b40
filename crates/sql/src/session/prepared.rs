//! A prepared statement.
//!
//! A statement is ready, or in the middle of its rows. Its first step checks the
//! plan's schema version against the transaction's (one comparison) and compiles
//! the text again where they differ, keeping bindings. An error resets it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::estimates::Estimates;
use super::program::Program;
use super::state::State;
use super::{Engine, Session, Shared, expand, pragma, transaction};
use crate::ast::Statement;
use crate::error::{Error, Result, code};
use crate::exec::batch::Batch;
use crate::exec::context::Run;
use crate::exec::dml::{Buffers, TriggerState};
use crate::exec::effects::Effects;
use crate::exec::kind::Kind;
use crate::exec::memory::let_go_of_large;
use crate::exec::rows::RowStore;
use crate::exec::subquery::SubqueryRun;
use crate::parse::Parsed;
use crate::parse::shape::Shape;
use crate::plan::physical::{Action, BeginMode, Origin, OutputColumn, Plan, TransactionAction};
use crate::plan::repeated::repeat_row;
use crate::value::{Value, ValueRef, collate};

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A row is there to be read.
    Row,
    /// The statement has run; stepping again runs it again.
    Done,
}

/// Where a statement is.
pub(super) enum Phase {
    /// Before its first step.
    Ready,
    /// On the one row of a point read.
    Point,
    /// On a row of a query.
    Rows,
    /// On a row that was made beforehand: RETURNING, PRAGMA.
    Kept(RowStore, u64),
}

/// A statement without its session.
pub(super) struct Body {
    pub(super) sql: String,
    /// The shape that it was compiled for, with the text's values as parameters.
    shape: Option<Box<str>>,
    pub(super) program: Program,
    pub(super) parameters: Vec<Value>,
    pub(super) run: Run,
    pub(super) phase: Phase,
    pub(super) out: Batch,
    /// The row at hand, by position among those of `out` that count.
    pub(super) position: usize,
    pub(super) row: usize,
    pub(super) want: usize,
    pub(super) effects: Effects,
    pub(super) buffers: Buffers,
    pub(super) triggers: TriggerState,
    explain: bool,
}

/// A compiled statement with its bindings.
pub struct Prepared {
    session: Session,
    body: Box<Body>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("sql", &self.body.sql)
            .finish_non_exhaustive()
    }
}

/// The plan of a parsed statement in the transaction's state; in the newest, if there is none
/// under way.
fn plan(parsed: &Parsed, engine: &Engine, state: &mut State) -> Result<Option<Plan>> {
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
            plan => return plan,
        }
    }
}

fn subqueries(plan: &Plan) -> Vec<Option<Box<SubqueryRun>>> {
    plan.subqueries
        .iter()
        .map(|s| Some(Box::new(SubqueryRun::new(s))))
        .collect()
}

impl Prepared {
    pub(super) fn compile(session: &Session, sql: &str) -> Result<(Option<Prepared>, usize)> {
        Self::compile_for(session, sql, |_| true)
    }

    /// As [`compile`](Self::compile), of what `suits` makes of the plan; None where that is
    /// false.
    fn compile_for(
        session: &Session,
        sql: &str,
        suits: impl FnOnce(&mut Plan) -> bool,
    ) -> Result<(Option<Prepared>, usize)> {
        let parsed = crate::parse::parse(sql)?;
        let consumed = parsed.consumed;
        let mut state = session.0.state()?;
        let state = &mut *state;
        let engine = session.engine();
        // A transaction that has not begun keeps its snapshot for later.
        let mut plan = plan(&parsed, engine, state)?;
        let Some(plan) = plan.take_if(suits) else {
            return Ok((None, consumed));
        };
        let mut run = Run::new(
            state.functions.clone(),
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
            out: Batch::default(),
            position: 0,
            row: 0,
            want: 0,
            effects: Effects::default(),
            buffers: Buffers::default(),
            triggers: TriggerState::default(),
            explain: matches!(parsed.statement, Some(Statement::Explain { .. })),
        };
        Ok((
            Some(Prepared {
                session: session.clone(),
                body: Box::new(body),
            }),
            consumed,
        ))
    }

    /// Compiles a text by its shape. `None` where one compiled for the text itself might
    /// be better.
    pub(super) fn compile_shape(
        session: &Session,
        sql: &str,
        shape: &mut Shape,
    ) -> Result<Option<Prepared>> {
        let is_repeated = shape.repeated_rows().is_some();
        let suits = |plan: &mut Plan| !is_repeated || repeat_row(plan);
        let (prepared, _) = Self::compile_for(session, shape.text(), suits)?;
        let suitable = prepared.filter(|it| it.body.program.suits_any_value());
        Ok(suitable.map(|mut prepared| {
            prepared.body.shape = Some(shape.text().into());
            prepared.take_on(sql, shape);
            prepared
        }))
    }

    /// The shape that it was compiled for; None if it was for its text.
    pub fn shape(&self) -> Option<&str> {
        self.body.shape.as_deref()
    }

    /// Becomes the statement of a text of the shape that it was compiled for.
    /// The shape's values are exchanged for those of the text before.
    pub fn take_on(&mut self, sql: &str, shape: &mut Shape) {
        let body = &mut *self.body;
        debug_assert_eq!(body.shape.as_deref(), Some(shape.text()));
        body.sql.clear();
        body.sql.push_str(sql.get(..shape.read()).unwrap_or(sql));
        shape.exchange_values(&mut body.parameters);
    }

    /// The parameters that its text has, with their names.
    fn parameters(&self) -> &[Option<String>] {
        match self.body.shape {
            None => &self.body.program.plan.parameters,
            Some(_) => &[],
        }
    }

    /// Whether compiling the text now would give the same, but for what is bound.
    pub fn is_current(&self) -> bool {
        let engine = self.session.engine();
        let tree = engine.schema_tree();
        let Ok(mut state) = self.session.0.state() else {
            return false;
        };
        let within = state.explicit.as_ref().is_some_and(|e| e.begun);
        let version = match within {
            true => state.txn.stamp(tree).ok(),
            false => engine.store().stamp(tree),
        };
        let program = &self.body.program;
        version == Some(program.plan.schema_version)
            && program.plan.settings == state.settings
            && program.fits_sizes()
            && (state.is_alone(&program.plan.beside)
                || state.has_beside(&program.plan.beside).unwrap_or(false))
    }

    /// Collations that its tables name and the connection lacks.
    pub fn lacks(&self) -> impl Iterator<Item = &'static str> {
        self.body.program.plan.lacks.iter().map(|name| name.text())
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// How many parameters it has.
    pub fn parameter_count(&self) -> usize {
        self.parameters().len()
    }

    /// The name of a parameter, counted from 1, with its prefix; None for `?`.
    pub fn parameter_name(&self, i: usize) -> Option<&str> {
        self.parameters().get(i.checked_sub(1)?)?.as_deref()
    }

    /// The number of the parameter of that name (with its prefix).
    pub fn parameter_index(&self, name: &str) -> Option<usize> {
        let mut names = self.parameters().iter();
        names
            .position(|p| p.as_deref() == Some(name))
            .map(|i| i + 1)
    }

    /// Binds a parameter, counted from 1.
    ///
    /// # Errors
    /// `SQLITE_RANGE` for one that does not exist, `SQLITE_MISUSE` in the middle
    /// of the statement's rows.
    #[inline]
    pub fn bind(&mut self, i: usize, value: ValueRef<'_>) -> Result<()> {
        if !matches!(self.body.phase, Phase::Ready) {
            return Err(Error::misuse("bad parameter or other API misuse"));
        }
        let slot = i
            .checked_sub(1)
            .and_then(|i| self.body.parameters.get_mut(i));
        match slot.filter(|_| self.body.shape.is_none()) {
            Some(slot) => {
                slot.assign(value);
                Ok(())
            }
            None => Err(Error::new(code::RANGE, "column index out of range")),
        }
    }

    /// Makes all parameters NULL.
    pub fn clear_bindings(&mut self) {
        if self.body.shape.is_none() {
            self.body.parameters.fill(Value::Null);
        }
    }

    /// Columns of a row; 0 for statements without rows.
    pub fn column_count(&self) -> usize {
        self.columns().len()
    }

    #[inline]
    fn columns(&self) -> &[OutputColumn] {
        &self.body.program.plan.columns
    }

    /// A column's name, counted from 0.
    pub fn column_name(&self, i: usize) -> Option<&str> {
        self.columns().get(i).map(|c| c.name.as_str())
    }

    /// A column's declared type, where it comes from a table.
    pub fn column_decltype(&self, i: usize) -> Option<&str> {
        self.columns().get(i).and_then(|c| c.decl_type.as_deref())
    }

    /// Where a column comes from, where it is a table's.
    pub fn column_origin(&self, i: usize) -> Option<&Origin> {
        self.columns().get(i)?.origin.as_ref()
    }

    /// It writes nothing to the database.
    pub fn is_readonly(&self) -> bool {
        match &self.body.program.plan.action {
            Action::Query(_)
            | Action::Pragma(_)
            | Action::Analyze(_)
            | Action::Attachment(_)
            | Action::Nothing => true,
            Action::Transaction(action) => {
                *action != TransactionAction::Begin(BeginMode::Immediate)
            }
            Action::Insert(_)
            | Action::Update(_)
            | Action::Delete(_)
            | Action::ViewChange(_)
            | Action::Vacuum(..)
            | Action::Schema(_) => false,
        }
    }

    /// It is an EXPLAIN.
    pub fn is_explain(&self) -> bool {
        self.body.explain
    }

    /// The statement's text.
    pub fn sql(&self) -> &str {
        &self.body.sql
    }

    /// The text with the bound values in the parameters' places.
    pub fn expanded_sql(&self) -> String {
        expand::expand(&self.body.sql, self.parameters(), &self.body.parameters)
    }

    /// Runs up to the next row.
    ///
    /// # Errors
    /// Whatever the statement meets; it is reset then.
    #[inline(always)]
    pub fn step(&mut self) -> Result<Step> {
        if self.body.next_of_batch() {
            return Ok(Step::Row);
        }
        self.step_on()
    }

    fn step_on(&mut self) -> Result<Step> {
        let plan = &self.body.program.plan;
        let collations = || plan.settings.user.collations();
        let outer = plan.calls_user.then(|| collate::exchange(collations()));
        let mut outcome = self.body.step(&self.session.0);
        if outer.is_some() || self.body.program.plan.calls_user {
            collate::exchange(outer.unwrap_or_default());
            if let Some(failure) = collate::take_failure() {
                outcome = Err(failure);
            }
        }
        if outcome.is_err() {
            self.body.reset(&self.session.0);
        }
        outcome
    }

    /// Rows that the last run changed; None if it is no INSERT, UPDATE or DELETE.
    #[inline]
    pub fn changes(&self) -> Option<u64> {
        match self.body.program.kind {
            Kind::PointInsert(_) | Kind::PointWrite(_) | Kind::Write(_) => {
                Some(self.body.effects.changes)
            }
            Kind::PointRead(_) | Kind::Query(_) | Kind::Other => None,
        }
    }

    /// A column of the row at hand, counted from 0; NULL where there is none.
    /// Valid until the next step or reset.
    #[inline(always)]
    pub fn column(&self, i: usize) -> ValueRef<'_> {
        match &self.body.phase {
            Phase::Rows | Phase::Kept(..) => self.body.out.value(i, self.body.row),
            Phase::Point => match &self.body.program.kind {
                Kind::PointRead(point) => point.column(i),
                _ => ValueRef::Null,
            },
            Phase::Ready => ValueRef::Null,
        }
    }

    /// Goes back to the start; bindings survive.
    #[inline]
    pub fn reset(&mut self) {
        self.body.reset(&self.session.0);
    }

    /// As [`reset`](Self::reset), without bindings, and gives back what large rows took:
    /// for who keeps it without knowing whether it is used again.
    pub fn put_away(&mut self) {
        self.reset();
        self.clear_bindings();
        self.body.let_go();
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.body.reset(&self.session.0);
    }
}

impl Body {
    #[inline]
    fn step(&mut self, shared: &Shared) -> Result<Step> {
        match &mut self.phase {
            Phase::Ready => self.start(shared),
            Phase::Point => {
                self.phase = Phase::Ready;
                Ok(Step::Done)
            }
            Phase::Rows => self.next_row(shared),
            Phase::Kept(..) => self.next_kept(),
        }
    }

    fn start(&mut self, shared: &Shared) -> Result<Step> {
        if self.run.interrupt.load(Ordering::Relaxed) {
            self.heed_interrupt(&mut *shared.state()?)?;
        }
        if !self.program.plan.pragmas.is_empty() {
            self.ask_pragmas(shared)?;
        }
        match self.program.kind {
            Kind::PointRead(_) => self.read_point(shared),
            Kind::Query(_) => self.start_query(shared),
            Kind::PointInsert(_) | Kind::PointWrite(_) | Kind::Write(_) => {
                self.write(shared)?;
                self.hand_out()
            }
            Kind::Other => {
                self.other(shared)?;
                self.hand_out()
            }
        }
    }

    /// Goes on with the rows that the statement left, if it did.
    fn hand_out(&mut self) -> Result<Step> {
        match self.effects.rows.take() {
            None => Ok(Step::Done),
            Some(rows) => {
                self.out.clear();
                self.position = 0;
                self.phase = Phase::Kept(rows, 0);
                self.next_kept()
            }
        }
    }

    fn next_kept(&mut self) -> Result<Step> {
        let Phase::Kept(rows, read) = &mut self.phase else {
            return Ok(Step::Done);
        };
        if self.position >= self.out.len() {
            self.position = 0;
            if !rows.read(read, usize::MAX, &mut self.out)? {
                self.phase = Phase::Ready;
                return Ok(Step::Done);
            }
        }
        self.row = self.out.row_at(self.position).unwrap_or(0);
        self.position += 1;
        Ok(Step::Row)
    }

    /// Back to the start.
    #[inline]
    pub(super) fn reset(&mut self, shared: &Shared) {
        if matches!(self.phase, Phase::Rows) {
            self.end_query(shared);
        }
        self.phase = Phase::Ready;
        self.run.functions.forget_kept();
    }

    fn let_go(&mut self) {
        // Those of many rows: the next text that it takes on has its own.
        if self.shape.is_some() && self.parameters.len() > self.program.plan.parameters.len() {
            self.parameters = Vec::new();
        }
        let_go_of_large(&mut self.parameters);
        self.out.let_go();
        self.effects.let_go();
        self.buffers.let_go();
        self.triggers.let_go();
        self.run.functions.let_go();
        if let Kind::PointRead(point) | Kind::PointWrite(point) = &mut self.program.kind {
            point.let_go();
        }
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
        self.recompile(engine, state)?;
        Ok(true)
    }

    /// What it uses then is ready to be read.
    fn recompile(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        let parsed = crate::parse::parse(&self.sql)?;
        let plan = plan(&parsed, engine, state)?;
        let plan = plan.ok_or_else(|| Error::misuse("a statement became empty"))?;
        self.run.subqueries = subqueries(&plan);
        self.shape = None;
        self.parameters.resize(plan.parameters.len(), Value::Null);
        self.program = Program::new(plan);
        state.join(&self.program.others)?;
        if self.program.plan.calls_user {
            collate::exchange(state.settings.user.collations());
        }
        self.buffers = Buffers::default();
        self.triggers = TriggerState::default();
        Ok(())
    }

    /// An interrupt that was asked for ends all that is under way, and what begins meanwhile:
    /// with a change, its transaction, as in SQLite.
    #[cold]
    fn heed_interrupt(&self, state: &mut State) -> Result<()> {
        if state.running == 0 {
            self.run.interrupt.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let is_query = matches!(
            &self.program.plan.action,
            Action::Query(_)
                | Action::Pragma(_)
                | Action::Attachment(_)
                | Action::Transaction(_)
                | Action::Analyze(_)
                | Action::Nothing
        );
        if !is_query && !state.is_autocommit() {
            state.abandon();
        }
        Err(Error::interrupted())
    }

    /// Answers the PRAGMAs that its table-valued functions show.
    #[cold]
    fn ask_pragmas(&mut self, shared: &Shared) -> Result<()> {
        let mut state = shared.state()?;
        let _calling = shared.calls();
        let (engine, state) = (&shared.engine, &mut *state);
        // Which ones it asks may depend on the tables that there are.
        let ends = state.start_reading(&self.program.others)?;
        let known = self.revalidate(engine, state);
        if ends {
            state.txn.rollback();
        }
        known?;
        let plan = Arc::clone(&self.program.plan);
        let outer = collate::exchange(state.settings.user.collations());
        let answers = plan.pragmas.iter().map(|pragma| {
            let rows = pragma::answer(pragma, engine, state, &mut self.run)?;
            Ok((pragma.clone(), Arc::new(rows.unwrap_or_default())))
        });
        let answers: Result<Vec<_>> = answers.collect();
        collate::exchange(outer);
        if let Some(failure) = collate::take_failure() {
            return Err(failure);
        }
        self.run.functions.answers = answers?;
        Ok(())
    }

    /// What every statement does first under the session's lock.
    #[inline(always)]
    pub(super) fn begin_run(&mut self, state: &mut State) {
        // The session's random numbers move on, the statement's go on from there.
        state.functions.random();
        self.run.functions.begin_in(&state.functions);
        if self.run.registers.len() != self.program.plan.registers {
            self.run
                .registers
                .resize(self.program.plan.registers, Value::Null);
        }
    }

    /// Transactions, PRAGMAs and changes of the schema.
    fn other(&mut self, shared: &Shared) -> Result<()> {
        let mut state = shared.state()?;
        let _calling = shared.calls();
        let state = &mut *state;
        self.effects.clear();
        self.begin_run(state);
        state.changed += 1;
        let plan = Arc::clone(&self.program.plan);
        let outer = collate::exchange(state.settings.user.collations());
        let mut outcome = match &plan.action {
            Action::Transaction(action) => transaction::run(action, state, &shared.engine),
            Action::Pragma(pragma) => {
                let (run, effects) = (&mut self.run, &mut self.effects);
                pragma::run(pragma, &shared.engine, state, run, effects)
            }
            Action::Schema(_) => self.change_schema(&shared.engine, state),
            Action::Analyze(indexes) => {
                for index in indexes {
                    let other = state.engine_in(index.store_number());
                    let engine = other.unwrap_or(&shared.engine);
                    engine.samples().forget(index.id());
                }
                Ok(())
            }
            Action::Attachment(texts) => self.attach_or_detach(texts, &shared.engine, state),
            Action::Vacuum(..) => self.vacuum(&shared.engine, state),
            _ => self.look_again(&shared.engine, state),
        };
        collate::exchange(outer);
        if let Some(failure) = collate::take_failure() {
            outcome = Err(failure);
        }
        outcome
    }

    /// By the schema that it was compiled with there was nothing to do: that one still
    /// stands, or there may be something now.
    fn look_again(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        let ends = state.start_reading(&[])?;
        let looked = self.revalidate(engine, state);
        if ends {
            state.txn.rollback();
        }
        looked?;
        match &self.program.plan.action {
            Action::Schema(_) => self.change_schema(engine, state),
            _ => Ok(()),
        }
    }
}
