//! A prepared statement.
//!
//! A statement is ready, or in the middle of its rows. Its first step checks the
//! plan's schema version against the transaction's (one comparison) and compiles
//! the text again where they differ, keeping bindings. An error resets it.

use super::body::{Body, Phase};
use super::{Session, expand};
use crate::error::{Error, Result, code};
use crate::exec::kind::Kind;
use crate::func::user::UserCode;
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

impl Prepared {
    /// Compiles the first statement of a text; the bytes that it takes.
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
        let (body, consumed) = Body::compile(session, sql, suits)?;
        let prepared = body.map(|body| Prepared {
            session: session.clone(),
            body,
        });
        Ok((prepared, consumed))
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
        if matches!(self.body.program.plan.action, Action::Transaction(_)) {
            return self.body.program.plan.settings == state.settings;
        }
        let within = state.explicit.as_ref().is_some_and(|e| e.begun);
        let version = match within {
            true => state.txn.stamp(tree).ok(),
            false => engine.store().stamp(tree),
        };
        let program = &self.body.program;
        if program.plan.settings != state.settings || !program.fits_sizes() {
            return false;
        }
        let is_current = version == Some(program.plan.schema_version)
            && (state.is_alone(&program.plan.beside)
                || state.has_beside(&program.plan.beside).unwrap_or(false));
        is_current || matches!(self.body.untouched(engine, &mut state), Ok(Some(_)))
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
        self.columns().get(i)?.decl_type()
    }

    /// Where a column comes from, where it is a table's.
    pub fn column_origin(&self, i: usize) -> Option<&Origin> {
        self.columns().get(i)?.origin()
    }

    /// It writes nothing to the database.
    pub fn is_readonly(&self) -> bool {
        match &self.body.program.plan.action {
            Action::Pragma(pragma) => !pragma.writes(),
            Action::Query(_) | Action::Analyze(_) | Action::Attachment(_) | Action::Nothing => true,
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
        if plan.calls_user {
            self.body.outer = Some(collate::enter(plan.settings.user.collations()));
        }
        let mut outcome = self.body.step(&self.session.0);
        if let Some(outer) = self.body.outer.take()
            && let Some(failure) = collate::leave(outer)
        {
            outcome = Err(failure);
        }
        if !self.body.replaced.is_empty() {
            self.body.replaced.clear();
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
    /// for who keeps it without knowing whether it is used again. False: it holds code of
    /// the program that the connection has no more, and is not to be kept.
    pub fn put_away(&mut self) -> bool {
        self.reset();
        self.clear_bindings();
        self.body.let_go();
        let user = &self.body.program.plan.settings.user;
        *user == UserCode::NONE
            || self
                .session
                .read(true, |state| state.settings.user == *user)
    }

    /// As [`put_away`](Self::put_away), for who runs one that was compiled for a shape only
    /// once it has [taken on](Self::take_on) a text: what large values took is given back.
    pub fn put_away_for_others(&mut self) -> bool {
        let is_kept = self.put_away();
        if self.body.shape.is_some() {
            self.body.let_go_of_text();
        }
        is_kept
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.body.reset(&self.session.0);
    }
}
