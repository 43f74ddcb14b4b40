//! Binding of expressions.

use super::Binder;
use super::call::json_of_any;
use super::expr::{
    CaseArm, CompareOp, Comparison, Expr, ExprKind, LikeKind, Props, SubqueryId, UnaryOp,
};
use super::logical::LogicalSubquery;
use super::rows::{RowUse, Rows, may_be_row};
use super::scope::{ColumnName, Level};
use crate::ast;
use crate::ast::{ExprKind as A, Literal};
use crate::error::{Error, Result};
use crate::func::Definition;
use crate::value::{Affinity, Value};

impl Binder<'_> {
    pub(super) fn expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let bound = crate::stack::grow(|| self.expr_inner(e))?;
        Ok(self.noted(bound))
    }

    /// Tells the subquery that is being bound what an expression of it may do.
    pub(super) fn noted(&mut self, bound: Expr) -> Expr {
        if let Some(level) = self.levels.last_mut() {
            level.fallible |= bound.props.fallible;
            level.volatile |= !bound.props.deterministic;
        }
        bound
    }

    fn boxed(&mut self, e: &ast::Expr) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(e)?))
    }

    pub(super) fn exprs(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    /// An arm for each form of an expression; what takes more than a few lines has a function
    /// of its own.
    fn expr_inner(&mut self, e: &ast::Expr) -> Result<Expr> {
        match &e.kind {
            A::Literal(literal) => self.literal(literal),
            A::Column(_) | A::Qualified { .. } => self.column(e),
            A::Parameter(index) => Ok(Expr {
                kind: ExprKind::Parameter(*index),
                props: Props::CONSTANT,
            }),
            A::Negate(operand) => self.unary(UnaryOp::Negate, operand),
            A::BitNot(operand) => self.unary(UnaryOp::BitNot, operand),
            A::Not(operand) => self.unary(UnaryOp::Not, operand),
            A::Plus(operand) => self.plus(operand),
            A::Binary(op, left, right) => {
                let kind = ExprKind::Binary(*op, self.boxed(left)?, self.boxed(right)?);
                Ok(Expr::operator(kind))
            }
            A::Compare(op, left, right) => self.compare(*op, left, right),
            A::And(list) => Ok(Expr::operator(ExprKind::And(self.exprs(list)?))),
            A::Or(list) => Ok(Expr::operator(ExprKind::Or(self.exprs(list)?))),
            A::IsNull { expr, negated } => {
                let kind = ExprKind::IsNull {
                    expr: self.boxed(expr)?,
                    negated: *negated,
                };
                Ok(Expr::operator(kind))
            }
            A::Between {
                expr,
                low,
                high,
                negated,
            } => self.between(expr, low, high, *negated),
            A::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            A::InSelect {
                expr,
                select,
                negated,
            } => self.in_select(expr, select, *negated),
            A::Exists(select) => self.exists(select),
            A::Subquery(select) => {
                let subquery = self.subquery(select)?;
                check_width(&subquery, 1)?;
                Ok(subquery.column(0))
            }
            A::Raise(action, message) => self.raise(*action, message.as_deref(), e.offset),
            A::RowValue(_) => Err(Error::sql("row value misused").with_offset(e.offset)),
            A::Case {
                base,
                whens,
                otherwise,
            } => self.case(base.as_deref(), whens, otherwise.as_deref()),
            A::Cast(operand, type_name) => self.cast(operand, type_name),
            A::Collate(operand, name) => {
                let collation = self.collation(name)?;
                let mut operand = self.expr(operand)?;
                operand.props.collation = Some(collation);
                operand.props.explicit_collation = true;
                Ok(operand)
            }
            A::Like {
                kind,
                expr,
                pattern,
                escape,
                negated,
            } => self.like_or_glob(*kind, expr, pattern, escape.as_deref(), *negated, e.offset),
            A::Function(call) => self.call(call),
        }
    }

    fn literal(&mut self, literal: &Literal) -> Result<Expr> {
        Ok(Expr::literal(match literal {
            Literal::Null => Value::Null,
            Literal::Integer(n) => Value::Integer(*n),
            Literal::Real(r) => Value::real(*r),
            Literal::Text(text) => Value::Text(text.clone().into_bytes()),
            Literal::Blob(bytes) => Value::Blob(bytes.clone()),
            Literal::Current(function) => return self.scalar_call(function, Vec::new(), 0),
        }))
    }

    fn column(&mut self, e: &ast::Expr) -> Result<Expr> {
        let Some(column) = ColumnName::of(e) else {
            return Ok(Expr::null());
        };
        let name = column.name;
        if column.table.is_some()
            && self.frames.last().and_then(|f| f.definition) == Some(Definition::Generated)
        {
            let message = "the \".\" operator prohibited in generated columns";
            return Err(Error::sql(message).with_offset(e.offset));
        }
        if let Some(found) = self.resolve(column)? {
            if column.table.is_some() && self.frames.last().is_some_and(|f| f.is_key) {
                let message = "the \".\" operator prohibited in index expressions";
                return Err(Error::sql(message).with_offset(e.offset));
            }
            return Ok(found.expr);
        }
        if column.table.is_none() {
            if name.double_quoted && !self.frames.is_empty() {
                if let Some(uses) = &mut self.uses {
                    uses.text(name)?;
                }
                return Ok(Expr::literal(Value::Text(name.text.clone().into_bytes())));
            }
            if name.text.eq_ignore_ascii_case("true") {
                return Ok(Expr::literal(Value::Integer(1)));
            }
            if name.text.eq_ignore_ascii_case("false") {
                return Ok(Expr::literal(Value::Integer(0)));
            }
        }
        Err(self.no_such_column(column))
    }

    fn unary(&mut self, op: UnaryOp, operand: &ast::Expr) -> Result<Expr> {
        let operand = self.boxed(operand)?;
        Ok(Expr::operator(ExprKind::Unary(op, operand)))
    }

    /// The value itself, which no longer counts as a column: the planner matches an index
    /// only where the affinity is there.
    fn plus(&mut self, operand: &ast::Expr) -> Result<Expr> {
        let operand = self.expr(operand)?;
        Ok(Expr {
            props: Props {
                affinity: None,
                ..operand.props
            },
            ..operand
        })
    }

    fn cast(&mut self, operand: &ast::Expr, type_name: &str) -> Result<Expr> {
        let operand = self.expr(operand)?;
        let affinity = match type_name {
            "" => Affinity::Numeric,
            name => Affinity::of_declared_type(name),
        };
        let props = Props {
            affinity: Some(affinity),
            ..operand.props
        };
        Ok(Expr {
            kind: ExprKind::Cast(Box::new(operand), affinity),
            props,
        })
    }

    /// LIKE and GLOB; a call where the program has a function of that name.
    fn like_or_glob(
        &mut self,
        kind: LikeKind,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        offset: usize,
    ) -> Result<Expr> {
        let expr = self.boxed(expr)?;
        let pattern = self.boxed(pattern)?;
        let escape = escape.map(|e| self.boxed(e)).transpose()?;
        let name = match kind {
            LikeKind::Like | LikeKind::LikeExact => "like",
            LikeKind::Glob => "glob",
        };
        if self.settings.user.has(name) {
            let mut args = vec![*pattern, *expr];
            args.extend(escape.map(|e| *e));
            let called = self.scalar_call(name, args, offset)?;
            return Ok(match negated {
                true => Expr::operator(ExprKind::Unary(UnaryOp::Not, Box::new(called))),
                false => called,
            });
        }
        let fallible = escape.is_some();
        let kind = match kind {
            LikeKind::Like => self.like(),
            other => other,
        };
        let mut bound = Expr::operator(ExprKind::Like {
            kind,
            expr,
            pattern,
            escape,
            negated,
        });
        bound.props.fallible |= fallible;
        Ok(bound)
    }

    fn compare(&mut self, op: CompareOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let word = without_collate(right);
        if matches!(op, CompareOp::Is | CompareOp::IsNot)
            && let Some(truth) = truth_word(word)
            && !matches!(ColumnName::of(word), Some(name) if self.resolve(name)?.is_some())
        {
            let expr = self.boxed(left)?;
            let negated = op == CompareOp::IsNot;
            return Ok(Expr::operator(ExprKind::IsTruth {
                expr,
                truth,
                negated,
            }));
        }
        if may_be_row(left) || may_be_row(right) {
            return self.compare_rows(op, left, right);
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        Ok(compare(op, left, right))
    }

    fn between(
        &mut self,
        expr: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr> {
        if may_be_row(expr) || may_be_row(low) || may_be_row(high) {
            return self.between_rows(expr, low, high, negated);
        }
        let (expr, low, high) = (self.expr(expr)?, self.expr(low)?, self.expr(high)?);
        Ok(between(expr, low, high, negated))
    }

    fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        if list.is_empty() {
            // To SQLite this is the word TRUE or FALSE; the operand is dropped.
            return Ok(Expr::literal(Value::Integer(negated.into())));
        }
        if let A::RowValue(row) = &expr.kind {
            return self.row_in_list(row, list, negated);
        }
        let expr = self.boxed(expr)?;
        let list = self.exprs(list)?;
        let comparison = Comparison::of_in_list(&expr.props);
        Ok(Expr::operator(ExprKind::InList {
            expr,
            list,
            comparison,
            negated,
        }))
    }

    fn in_select(&mut self, expr: &ast::Expr, select: &ast::Select, negated: bool) -> Result<Expr> {
        let mut rows = Rows::default();
        let exprs = self.row(expr, RowUse::Base, &mut rows)?;
        let subquery = self.subquery(select)?;
        check_width(&subquery, exprs.len())?;
        let comparisons = exprs
            .iter()
            .zip(&subquery.columns)
            .map(|(e, c)| Comparison::of(&e.props, c))
            .collect();
        let mut bound = Expr::operator(ExprKind::InSubquery {
            exprs,
            subquery: subquery.id,
            comparisons,
            negated,
        });
        bound.props.add(&subquery.props);
        Ok(rows.around(bound))
    }

    fn exists(&mut self, select: &ast::Select) -> Result<Expr> {
        let subquery = self.subquery(select)?;
        if let Some(logical) = self.subqueries.get_mut(subquery.id) {
            logical.query.show_nothing();
        }
        Ok(Expr {
            kind: ExprKind::Exists(subquery.id),
            props: subquery.props,
        })
    }

    /// Binds a subquery of an expression.
    pub(super) fn subquery(&mut self, select: &ast::Select) -> Result<Subquery> {
        self.levels.push(Level::default());
        let query = self.query(select);
        let level = self.levels.pop().unwrap_or_default();
        let query = query?;
        // What nothing is handed in to runs once, whatever it calls.
        let once = level.captures.is_empty();
        let props = Props {
            deterministic: once || !level.volatile,
            fallible: level.fallible,
            constant: false,
            ..Props::CONSTANT
        };
        let columns = query.operand_columns();
        self.subqueries.push(LogicalSubquery {
            query,
            bindings: level.captures,
            cacheable: once || !level.volatile,
        });
        Ok(Subquery {
            id: self.subqueries.len() - 1,
            columns,
            props,
            once,
        })
    }

    fn case(
        &mut self,
        base: Option<&ast::Expr>,
        whens: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let base = match base {
            Some(base) if may_be_row(base) => {
                let mut rows = Rows::default();
                let mut columns = self.row(base, RowUse::Base, &mut rows)?;
                if columns.len() != 1 {
                    return self.case_rows(columns, rows, whens, otherwise);
                }
                columns.pop().map(Box::new)
            }
            base => base.map(|b| self.boxed(b)).transpose()?,
        };
        let mut arms = Vec::with_capacity(whens.len());
        for when in whens {
            let condition = self.expr(&when.when)?;
            let comparison = base
                .as_ref()
                .map(|b| Comparison::of(&b.props, &condition.props));
            arms.push(CaseArm {
                when: condition,
                comparison,
                then: self.expr(&when.then)?,
            });
        }
        let otherwise = otherwise.map(|e| self.boxed(e)).transpose()?;
        let results = arms.iter().map(|arm| &arm.then);
        let json = json_of_any(results.chain(otherwise.as_deref()));
        let mut case = Expr::operator(ExprKind::Case {
            base,
            arms,
            otherwise,
        });
        case.props.json = json;
        Ok(case)
    }
}

/// A subquery of an expression.
pub(super) struct Subquery {
    /// Its number.
    pub id: SubqueryId,
    /// What is known of its columns.
    pub columns: Vec<Props>,
    /// What its value has apart from them.
    pub props: Props,
    /// It is the same for the whole statement.
    pub once: bool,
}

impl Subquery {
    /// A column of its first row. That it has the affinity of a column, but no collation,
    /// is as in SQLite.
    pub fn column(&self, column: usize) -> Expr {
        let affinity = self.columns.get(column).and_then(|c| c.affinity);
        Expr {
            kind: ExprKind::ScalarSubquery {
                subquery: self.id,
                column,
            },
            props: Props {
                affinity,
                ..self.props
            },
        }
    }
}

/// Refuses a subquery of another number of columns.
pub(super) fn check_width(subquery: &Subquery, expected: usize) -> Result<()> {
    let width = subquery.columns.len();
    if width == expected {
        return Ok(());
    }
    Err(Error::sql(format!(
        "sub-select returns {width} columns - expected {expected}"
    )))
}

/// A comparison with its pair.
pub(super) fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    let comparison = Comparison::of(&left.props, &right.props);
    Expr::operator(ExprKind::Compare(
        op,
        comparison,
        Box::new(left),
        Box::new(right),
    ))
}

/// BETWEEN with its pairs.
pub(super) fn between(expr: Expr, low: Expr, high: Expr, negated: bool) -> Expr {
    let low_comparison = Comparison::of(&expr.props, &low.props);
    let high_comparison = Comparison::of(&expr.props, &high.props);
    Expr::operator(ExprKind::Between {
        expr: Box::new(expr),
        low: Box::new(low),
        high: Box::new(high),
        low_comparison,
        high_comparison,
        negated,
    })
}

/// COLLATE behind TRUE and FALSE means nothing.
fn without_collate(mut e: &ast::Expr) -> &ast::Expr {
    while let A::Collate(operand, _) = &e.kind {
        e = operand;
    }
    e
}

fn truth_word(e: &ast::Expr) -> Option<bool> {
    match &e.kind {
        A::InList { list, negated, .. } if list.is_empty() => Some(*negated),
        A::Column(name) if name.double_quoted => None,
        A::Column(name) if name.text.eq_ignore_ascii_case("true") => Some(true),
        A::Column(name) if name.text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// AND's operands, or the expression itself.
pub fn conjuncts(expr: Expr) -> Vec<Expr> {
    let mut conjuncts = Vec::new();
    push_conjuncts(expr, &mut conjuncts);
    conjuncts
}

/// The same, behind others.
pub fn push_conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr.kind {
        ExprKind::And(list) => list.into_iter().for_each(|part| push_conjuncts(part, out)),
        _ => out.push(expr),
    }
}
