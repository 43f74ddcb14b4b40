//! Lowering of statements: which kind, and the small ones.

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;

use super::tokens::{Token, behind_explain};
use super::{Lowering, unquote};
use crate::ast::{ExprKind, Literal, Pragma, QualifiedName, Select, SelectCore, Statement};
use crate::error::Result;
use crate::plan::physical::{BeginMode, TransactionAction};

impl Lowering<'_> {
    pub(super) fn command(&mut self, command: &raw::Cmd<'_>) -> Result<Statement> {
        let (query_plan, stmt) = match command {
            raw::Cmd::Stmt(stmt) => return self.statement(stmt),
            raw::Cmd::Explain(stmt) => (false, stmt),
            raw::Cmd::ExplainQueryPlan(stmt) => (true, stmt),
        };
        Ok(Statement::Explain {
            query_plan,
            statement: Box::new(self.statement(stmt)?),
        })
    }

    fn statement(&mut self, stmt: &raw::Stmt<'_>) -> Result<Statement> {
        let transaction = |action| Ok(Statement::Transaction(action));
        match stmt {
            raw::Stmt::Select(select) => Ok(Statement::Select(Box::new(self.select(select)?))),
            raw::Stmt::Insert { .. } => self.insert(stmt),
            raw::Stmt::Update { .. } => self.update(stmt),
            raw::Stmt::Delete { .. } => self.delete(stmt),
            raw::Stmt::CreateTable { .. } => self.create_table(stmt),
            raw::Stmt::CreateIndex { .. } => self.create_index(stmt),
            raw::Stmt::DropTable {
                if_exists,
                tbl_name,
            } => Ok(Statement::DropTable {
                name: self.qualified(tbl_name),
                if_exists: *if_exists,
            }),
            raw::Stmt::DropIndex {
                if_exists,
                idx_name,
            } => Ok(Statement::DropIndex {
                name: self.qualified(idx_name),
                if_exists: *if_exists,
            }),
            raw::Stmt::AlterTable(name, body) => self.alter(name, body),
            raw::Stmt::Begin(kind, _) => transaction(TransactionAction::Begin(match kind {
                Some(raw::TransactionType::Immediate | raw::TransactionType::Exclusive) => {
                    BeginMode::Immediate
                }
                Some(raw::TransactionType::Deferred) | None => BeginMode::Deferred,
            })),
            raw::Stmt::Commit(_) => transaction(TransactionAction::Commit),
            raw::Stmt::Rollback {
                savepoint_name: Some(name),
                ..
            } => transaction(TransactionAction::RollbackTo(unquote(name.0))),
            raw::Stmt::Rollback { .. } => transaction(TransactionAction::Rollback),
            raw::Stmt::Savepoint(name) => {
                transaction(TransactionAction::Savepoint(unquote(name.0)))
            }
            raw::Stmt::Release(name) => transaction(TransactionAction::Release(unquote(name.0))),
            raw::Stmt::Pragma(name, body) => self.pragma(name, body.as_ref()),
            raw::Stmt::Analyze(name) => Ok(Statement::Analyze(
                name.as_ref().map(|name| self.qualified(name)),
            )),
            raw::Stmt::Reindex { obj_name } => Ok(Statement::Reindex(
                obj_name.as_ref().map(|name| self.qualified(name)),
            )),
            raw::Stmt::Vacuum(schema, into) => self.vacuum(schema.as_ref(), into.as_ref()),
            raw::Stmt::Attach { expr, db_name, .. } => {
                let both = [self.expr(expr)?, self.expr(db_name)?];
                Ok(Statement::Attach(Box::new(both)))
            }
            raw::Stmt::Detach(name) => Ok(Statement::Detach(Box::new(self.expr(name)?))),
            raw::Stmt::CreateTrigger { .. } => self.create_trigger(stmt),
            raw::Stmt::CreateView { .. } => self.create_view(stmt),
            raw::Stmt::CreateVirtualTable { .. } => {
                Ok(Statement::Unsupported("CREATE VIRTUAL TABLE"))
            }
            raw::Stmt::DropTrigger {
                if_exists,
                trigger_name,
            } => Ok(Statement::DropTrigger {
                name: self.qualified(trigger_name),
                if_exists: *if_exists,
            }),
            raw::Stmt::DropView {
                if_exists,
                view_name,
            } => Ok(Statement::DropView {
                name: self.qualified(view_name),
                if_exists: *if_exists,
            }),
        }
    }

    fn vacuum(
        &mut self,
        schema: Option<&raw::Name<'_>>,
        into: Option<&raw::Expr<'_>>,
    ) -> Result<Statement> {
        let schema = schema.map(|name| self.name(name.0));
        let into = match into {
            None => None,
            Some(file) => Some(Box::new(Select {
                ctes: Vec::new(),
                first: SelectCore::Values(vec![vec![self.expr(file)?]]),
                compounds: Vec::new(),
                order_by: Vec::new(),
                limit: None,
                offset: None,
            })),
        };
        Ok(Statement::Vacuum { schema, into })
    }

    fn pragma(
        &mut self,
        name: &raw::QualifiedName<'_>,
        body: Option<&raw::PragmaBody<'_>>,
    ) -> Result<Statement> {
        let QualifiedName { schema, name } = self.qualified(name);
        let value = match body {
            None => None,
            Some(raw::PragmaBody::Equals(expr) | raw::PragmaBody::Call(expr)) => {
                Some(match self.expr(expr)?.kind {
                    ExprKind::Literal(literal) => literal,
                    ExprKind::Column(name) => Literal::Text(name.text),
                    ExprKind::Negate(inner) => match inner.kind {
                        ExprKind::Literal(Literal::Integer(n)) => {
                            Literal::Integer(n.wrapping_neg())
                        }
                        ExprKind::Literal(Literal::Real(r)) => Literal::Real(-r),
                        _ => Literal::Null,
                    },
                    ExprKind::Plus(inner) => match inner.kind {
                        ExprKind::Literal(literal) => literal,
                        _ => Literal::Null,
                    },
                    _ => Literal::Null,
                })
            }
        };
        Ok(Statement::Pragma(Pragma {
            schema,
            name,
            value,
        }))
    }
}

/// `BEGIN CONCURRENT` is BEGIN to the grammar: the byte range of the word that
/// is to be left out.
pub(super) fn concurrent(tokens: &super::Tokens<'_>) -> Option<(usize, usize)> {
    let mut rest = behind_explain(tokens.list()).iter();
    let (begin, word) = (rest.next()?, rest.next()?);
    let is_another_way = |next: &Token| {
        let ways = [T::TK_DEFERRED, T::TK_IMMEDIATE, T::TK_EXCLUSIVE];
        ways.contains(&next.kind)
    };
    let found = begin.kind == T::TK_BEGIN
        && tokens.text(*word).eq_ignore_ascii_case("concurrent")
        && !rest.next().is_some_and(is_another_way);
    found.then_some((word.start, word.end))
}
