//! Table-valued functions in FROM.
//!
//! An argument may read any table of its FROM: it is bound once they all are known. What
//! was given no argument is looked for among the conditions, as an equality with the
//! hidden column.

use std::sync::Arc;

use super::Binder;
use super::call::called;
use super::expr::{ColumnRef, CompareOp, Expr, ExprKind, Props};
use super::join::reads_source;
use super::logical::{Block, Source, SourceKind, TableCall};
use super::scope::{Found, ScopeColumns, ScopeTable};
use crate::ast::{self, Name};
use crate::error::{Error, Result};
use crate::func::JsonText;
use crate::func::json::AS_JSON;
use crate::func::table::{self, TableFunction};
use crate::value::{Affinity, Collation};

/// The arguments of a call in FROM, still to be bound.
#[derive(Debug)]
pub struct PendingCall {
    source: usize,
    args: Vec<ast::Expr>,
}

impl Binder<'_> {
    /// A source that is written as a call.
    pub(super) fn function_source(
        &mut self,
        name: &ast::QualifiedName,
        args: &[ast::Expr],
        alias: Option<&Name>,
        block: &mut Block,
    ) -> Result<()> {
        let written = &name.name;
        let schema = self.schema_of(name);
        let key = written.text.to_ascii_lowercase();
        let is_known = self.cte_named(&written.text).is_some()
            || schema.is_some_and(|schema| schema.holds(&key));
        if is_known {
            let message = format!("'{}' is not a function", written.text);
            return Err(Error::sql(message).with_offset(written.offset));
        }
        match self.table_function(name, args)? {
            Some(function) => self.called_source(function, args, alias, block),
            None => self.table(name).map(|_| ()),
        }
    }

    /// The table-valued function of a name.
    pub(super) fn table_function(
        &mut self,
        name: &ast::QualifiedName,
        args: &[ast::Expr],
    ) -> Result<Option<Arc<dyn TableFunction>>> {
        match table::find(&name.name.text) {
            Some(function) => Ok(Some(function)),
            None => self.pragma_function(&name.name.text, args),
        }
    }

    /// Adds a call to the block.
    pub(super) fn called_source(
        &mut self,
        function: Arc<dyn TableFunction>,
        args: &[ast::Expr],
        alias: Option<&Name>,
        block: &mut Block,
    ) -> Result<()> {
        let most = function.hidden().len();
        if args.len() > most {
            let name = function.name();
            let message = format!("too many arguments on {name}() - max {most}");
            return Err(Error::sql(message));
        }
        let id = self.new_source()?;
        if let Some((_, flag)) = function.json_column() {
            self.json_columns.push((id, flag));
        }
        let shown = alias.map_or_else(|| function.name().to_owned(), |alias| alias.text.clone());
        self.frame().tables.push(ScopeTable {
            name: shown.clone(),
            source: id,
            columns: ScopeColumns::Function(Arc::clone(&function)),
            merged: Vec::new(),
            database: None,
        });
        let args = args.to_vec();
        self.frame().calls.push(PendingCall { source: id, args });
        let call = TableCall {
            args: vec![None; most],
            function,
        };
        let kind = SourceKind::Function(Box::new(call));
        block.sources.push(Source::new(id, shown, kind));
        Ok(())
    }

    /// Binds the arguments of the frame's calls, after its conditions.
    pub(super) fn call_arguments(&mut self, block: &mut Block) -> Result<()> {
        for PendingCall { source, args } in std::mem::take(&mut self.frame().calls) {
            let mut given = self.exprs(&args)?.into_iter();
            let Some(at) = block.sources.iter().position(|s| s.id == source) else {
                continue;
            };
            let own = block.sources.get(at);
            let is_outer = own.is_some_and(|s| s.outer.is_some());
            let later = block.sources.iter().skip(at + 1);
            let later = later.filter(|s| is_outer || s.outer.is_some());
            let later: Vec<usize> = later.map(|s| s.id).collect();
            if given.as_slice().iter().any(|arg| reads_source(arg, &later)) {
                let message = "table-function argument references tables to its right";
                return Err(Error::sql(message));
            }
            let Block {
                sources, filter, ..
            } = &mut *block;
            let Some(Source {
                kind: SourceKind::Function(call),
                outer,
                ..
            }) = sources.get_mut(at)
            else {
                continue;
            };
            let conditions = match outer {
                Some(outer) => &mut outer.on,
                None => filter,
            };
            let first = call.function.columns().len();
            for (i, arg) in call.args.iter_mut().enumerate() {
                // What it yields itself is known too late, so that there is no argument.
                *arg = match given.next() {
                    Some(given) => Some(given).filter(|e| !reads_source(e, &[source])),
                    None => take_equal(conditions, source, first + i),
                };
            }
        }
        Ok(())
    }

    /// A column of a function that may be a text of JSON, to a function that asks: with
    /// what says whether it is. False: it is none.
    pub(super) fn asked_json(&mut self, level: usize, found: &mut Found) -> bool {
        let ExprKind::Column(column) = found.expr.kind else {
            return false;
        };
        if found.expr.props.json != JsonText::Maybe {
            return false;
        }
        let mut columns = self.json_columns.iter();
        let flag = columns.find(|(source, _)| *source == column.source);
        let Some((_, flag)) = flag else {
            return false;
        };
        let flag = Expr {
            kind: ExprKind::Column(ColumnRef {
                source: column.source,
                column: *flag,
            }),
            props: Props::column(None, None),
        };
        let value = self.capture(level, found.expr.clone());
        let flag = self.capture(level, flag);
        let props = value.props;
        found.expr = called(AS_JSON.clone(), vec![value, flag]);
        found.expr.props = Props {
            json: JsonText::Maybe,
            ..props
        };
        true
    }
}

/// Takes an equality with a column of a source out of the conditions: what it equals.
fn take_equal(conditions: &mut Vec<Expr>, source: usize, column: usize) -> Option<Expr> {
    let is_column = |e: &Expr| matches!(&e.kind, ExprKind::Column(c) if (c.source, c.column) == (source, column));
    let is_other = |e: &Expr| !reads_source(e, &[source]);
    let at = conditions.iter().position(|e| match &e.kind {
        ExprKind::Compare(CompareOp::Equal, _, left, right) => {
            is_column(left) && is_other(right) || is_column(right) && is_other(left)
        }
        _ => false,
    })?;
    match conditions.remove(at).kind {
        ExprKind::Compare(_, _, left, right) => Some(if is_column(&left) { *right } else { *left }),
        _ => None,
    }
}

/// A column of a function as names see it, the hidden ones behind those of `*`.
pub(super) fn column(function: &dyn TableFunction, source: usize, column: usize) -> Found {
    let is_json = function.json_column().is_some_and(|(at, _)| at == column);
    let json = match is_json {
        true => JsonText::Maybe,
        false => JsonText::Never,
    };
    let props = Props {
        json,
        ..Props::column(Some(Affinity::Blob), Some(Collation::Binary))
    };
    let kind = ExprKind::Column(ColumnRef { source, column });
    Found::named(Expr { kind, props }, column_name(function, column))
}

/// The name of a column, hidden ones included.
pub(super) fn column_name(function: &dyn TableFunction, column: usize) -> &'static str {
    let mut names = function.columns().iter().chain(function.hidden());
    names.nth(column).copied().unwrap_or_default()
}
