//! VACUUM, which makes the file as short as what it holds; and VACUUM INTO, a copy of the
//! database in a file of its own.

use std::path::Path;
use std::sync::Arc;

use fulgurite_store::Txn;

use super::Engine;
use super::backup::copy_to_file;
use super::body::Body;
use super::state::State;
use crate::error::{Error, Result, code};
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::ops::build;
use crate::plan::physical::Action;
use crate::value::Value;

/// Bytes between two looks at whether it is interrupted.
const STEP_BYTES: u64 = 4 << 20;

impl Body {
    /// Runs it.
    pub(super) fn vacuum(&mut self, engine: &Engine, state: &mut State) -> Result<()> {
        if !state.is_autocommit() {
            return Err(Error::sql("cannot VACUUM from within a transaction"));
        }
        if state.running > 0 {
            return Err(Error::sql("cannot VACUUM - SQL statements in progress"));
        }
        let (store, copies) = match &self.program.plan.action {
            Action::Vacuum(store, into) => (*store, into.is_some()),
            _ => return Ok(()),
        };
        if !copies {
            state.check_writes()?;
            let store = store.unwrap_or_else(|| engine.store().number());
            return self.compact(state.txn.in_store(store));
        }
        let other = store.and_then(|store| state.engine_in(store)).cloned();
        self.start_reading(engine, state)?;
        let name = self.file_name(state);
        state.txn.rollback();
        let Value::Text(name) = name? else {
            return Err(Error::sql("non-text filename"));
        };
        let from = other.as_ref().unwrap_or(engine);
        self.vacuum_into(&String::from_utf8_lossy(&name), from)
    }

    fn compact(&self, txn: &mut Txn) -> Result<()> {
        let mut goes_on = Ok(());
        txn.compact(|| {
            goes_on = self.run.check_interrupt();
            goes_on.is_ok()
        })?;
        goes_on
    }

    /// What the file is to be called.
    fn file_name(&mut self, state: &mut State) -> Result<Value> {
        let plan = Arc::clone(&self.program.plan);
        let Action::Vacuum(_, Some(query)) = &plan.action else {
            return Ok(Value::Null);
        };
        for subquery in self.run.subqueries.iter_mut().flatten() {
            subquery.attach(&mut state.txn)?;
        }
        let mut source = build(query);
        source.attach(&mut state.txn)?;
        let mut cx = Context {
            parameters: &self.parameters,
            run: &mut self.run,
        };
        source.open(&mut cx)?;
        let mut batch = Batch::default();
        let mut value = Value::Null;
        if source.next(&mut cx, 1, &mut batch)?
            && let Some(row) = batch.row_at(0)
        {
            value = batch.get(0, row).to_value();
        }
        Ok(value)
    }

    fn vacuum_into(&self, name: &str, engine: &Engine) -> Result<()> {
        // A database in memory, or a passing one: gone as soon as it is there.
        if name.is_empty() || name == ":memory:" {
            return Ok(());
        }
        let cannot_open = |hint: &str| {
            let message = format!("unable to open database: {name}");
            Error::new(code::CANTOPEN, message).with_hint(hint)
        };
        if name.starts_with("file:") || name.contains('\0') {
            return Err(cannot_open("VACUUM INTO takes a path, not a URI"));
        }
        let go_on = || self.run.check_interrupt();
        let copied = copy_to_file(engine, Path::new(name), STEP_BYTES, |_| Ok(()), go_on);
        copied.map_err(|error| match error.code() {
            code::CANTOPEN => cannot_open(error.hint().unwrap_or_default()),
            _ => error,
        })
    }
}
