//! RAISE() of trigger programs, as functions that only ever fail. No name finds them.

use super::{Context, ScalarCall, ScalarFunction, Volatility, argument, registry};
use crate::error::{Error, Result};
use crate::schema::ConflictAction;
use crate::value::{Value, ValueRef};

/// RAISE with this action, over the message where it has one.
pub fn raise(action: ConflictAction) -> ScalarFunction {
    let (name, call): (_, ScalarCall) = match action {
        ConflictAction::Ignore => ("raise_ignore", ignore),
        ConflictAction::Rollback => ("raise_rollback", rollback),
        ConflictAction::Fail => ("raise_fail", fail),
        ConflictAction::Abort | ConflictAction::Replace => ("raise_abort", abort),
    };
    ScalarFunction {
        volatility: Volatility::Volatile,
        fallible: true,
        ..registry::plain(name, 0, 1, call)
    }
}

fn ignore(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    raised(ConflictAction::Ignore, arguments)
}

fn rollback(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    raised(ConflictAction::Rollback, arguments)
}

fn abort(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    raised(ConflictAction::Abort, arguments)
}

fn fail(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    raised(ConflictAction::Fail, arguments)
}

fn raised(action: ConflictAction, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let message = argument(arguments, 0).to_text().unwrap_or_default();
    Err(Error::raised(action, String::from_utf8_lossy(&message)))
}
