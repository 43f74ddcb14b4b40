//! BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, ROLLBACK TO.

use super::Engine;
use super::state::{Explicit, Place, State};
use crate::error::{Error, Result};
use crate::plan::physical::{BeginMode, TransactionAction};

/// Runs a transaction statement.
pub fn run(action: &TransactionAction, state: &mut State, engine: &Engine) -> Result<()> {
    state.changed += 1;
    match action {
        TransactionAction::Begin(mode) => begin(*mode, state),
        TransactionAction::Commit => state.commit(engine),
        TransactionAction::Rollback => {
            if state.explicit.is_none() {
                return Err(Error::sql("cannot rollback - no transaction is active"));
            }
            state.abandon();
            Ok(())
        }
        TransactionAction::Savepoint(name) => savepoint(name, state),
        TransactionAction::Release(name) => release(name, state, engine),
        TransactionAction::RollbackTo(name) => rollback_to(name, state),
    }
}

fn begin(mode: BeginMode, state: &mut State) -> Result<()> {
    if state.explicit.is_some() {
        return Err(Error::sql(
            "cannot start a transaction within a transaction",
        ));
    }
    let begun = mode == BeginMode::Immediate;
    if begun {
        state.check_writes()?;
        state.begin_immediate()?;
    }
    state.explicit = Some(Explicit {
        begun,
        writes: begun && state.txn.main.check_writes().is_ok(),
        by_savepoint: false,
        isolation: state.isolation,
        savepoints: Vec::new(),
    });
    Ok(())
}

fn savepoint(name: &str, state: &mut State) -> Result<()> {
    state.make_deferred()?;
    let isolation = state.isolation;
    let explicit = state.explicit.get_or_insert_with(|| Explicit {
        begun: false,
        writes: false,
        by_savepoint: true,
        isolation,
        savepoints: Vec::new(),
    });
    let place = explicit.begun.then(|| state.txn.savepoint()).transpose()?;
    explicit.savepoints.push(Place {
        name: name.to_owned(),
        savepoint: place,
        counters: state.counters,
    });
    Ok(())
}

/// The innermost savepoint of that name, in any case.
fn find(name: &str, explicit: &Explicit) -> Result<usize> {
    explicit
        .savepoints
        .iter()
        .rposition(|place| place.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    Error::sql(format!("no such savepoint: {name}"))
}

fn release(name: &str, state: &mut State, engine: &Engine) -> Result<()> {
    let explicit = state.explicit.as_mut().ok_or_else(|| unknown(name))?;
    let at = find(name, explicit)?;
    if at == 0 && explicit.by_savepoint {
        return state.commit(engine);
    }
    if let Some(place) = &explicit.savepoints[at].savepoint {
        state.txn.release(place)?;
    }
    explicit.savepoints.truncate(at);
    Ok(())
}

fn rollback_to(name: &str, state: &mut State) -> Result<()> {
    let explicit = state.explicit.as_mut().ok_or_else(|| unknown(name))?;
    let at = find(name, explicit)?;
    explicit.savepoints.truncate(at + 1);
    if let Some(place) = explicit.savepoints.last() {
        if let Some(savepoint) = &place.savepoint
            && let Err(error) = state.txn.rollback_to(savepoint)
        {
            // It is between two states.
            state.abandon();
            return Err(error.into());
        }
        state.counters.go_back(&place.counters);
    }
    // Nothing was when the place was taken.
    state.deferred.clear();
    Ok(())
}
