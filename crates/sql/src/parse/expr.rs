//! Lowering of expressions.

use sqlite3_parser::ast as raw;

use super::dml::conflict;
use super::{Lowering, MAX_PARAMETERS, unquote};
use crate::ast::{
    CaseWhen, CompareOp, Expr, ExprKind, FunctionCall, Literal, Name, Select, SelectTable, SortTerm,
};
use crate::bind::expr::{BinaryOp, LikeKind};
use crate::error::{Error, Result};

impl Lowering<'_> {
    pub(super) fn exprs(&mut self, list: &[raw::Expr<'_>]) -> Result<Vec<Expr>> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    pub(super) fn boxed(&mut self, e: &raw::Expr<'_>) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(e)?))
    }

    pub(super) fn expr(&mut self, e: &raw::Expr<'_>) -> Result<Expr> {
        // Parentheses are no level of the tree, as in SQLite.
        let e = unwrapped(e, false);
        self.deeper(|this| {
            let offset = this.tokens.offset();
            let kind = this.expr_kind(e)?;
            // A name knows its place better than the position before it.
            let offset = match &kind {
                ExprKind::Column(name) => name.offset,
                ExprKind::Qualified { table, .. } => table.offset,
                ExprKind::Function(call) => call.name.offset,
                _ => offset,
            };
            Ok(Expr { kind, offset })
        })
    }

    /// An arm for each form of the grammar, long only by their number.
    fn expr_kind(&mut self, e: &raw::Expr<'_>) -> Result<ExprKind> {
        Ok(match e {
            raw::Expr::Parenthesized(list) => ExprKind::RowValue(self.exprs(list.as_slice())?),
            raw::Expr::Literal(literal) => ExprKind::Literal(self.literal(literal)?),
            raw::Expr::Id(raw::Id(text)) | raw::Expr::Name(raw::Name(text)) => {
                ExprKind::Column(self.name(text))
            }
            raw::Expr::Qualified(table, column) => self.qualified_column(None, table, column),
            raw::Expr::DoublyQualified(schema, table, column) => {
                let schema = self.name(schema.0);
                self.qualified_column(Some(schema), table, column)
            }
            raw::Expr::Variable(text) => ExprKind::Parameter(self.parameter(text)?),
            raw::Expr::Unary(op, operand) => self.unary(*op, operand)?,
            raw::Expr::Binary(_, op, _) => self.binary(*op, e)?,
            raw::Expr::IsNull(operand) => is_null(self.boxed(operand)?, false),
            raw::Expr::NotNull(operand) => is_null(self.boxed(operand)?, true),
            raw::Expr::Between {
                lhs,
                not,
                start,
                end,
            } => ExprKind::Between {
                expr: self.boxed(lhs)?,
                low: self.boxed(start)?,
                high: self.boxed(end)?,
                negated: *not,
            },
            raw::Expr::InList { lhs, not, rhs } => {
                let expr = self.boxed(lhs)?;
                in_list(expr, self.exprs(rhs.unwrap_or(&[]))?, *not)
            }
            raw::Expr::InSelect { lhs, not, rhs } => {
                let expr = self.boxed(lhs)?;
                ExprKind::InSelect {
                    expr,
                    select: Box::new(self.select(rhs)?),
                    negated: *not,
                }
            }
            raw::Expr::InTable {
                lhs,
                not,
                rhs,
                args,
            } => {
                let expr = self.boxed(lhs)?;
                ExprKind::InSelect {
                    expr,
                    select: Box::new(self.table_of_in(rhs, *args)?),
                    negated: *not,
                }
            }
            raw::Expr::Exists(select) => ExprKind::Exists(Box::new(self.select(select)?)),
            raw::Expr::Subquery(select) => ExprKind::Subquery(Box::new(self.select(select)?)),
            raw::Expr::Case {
                base,
                when_then_pairs,
                else_expr,
            } => self.case(*base, when_then_pairs, *else_expr)?,
            raw::Expr::Cast { expr, type_name } => {
                let expr = self.boxed(expr)?;
                ExprKind::Cast(
                    expr,
                    type_name
                        .as_ref()
                        .map_or(String::new(), |t| t.name.to_owned()),
                )
            }
            raw::Expr::Collate(operand, name) => {
                let operand = self.boxed(operand)?;
                ExprKind::Collate(operand, self.name(name))
            }
            raw::Expr::Like {
                lhs,
                not,
                op,
                rhs,
                escape,
            } => self.like(lhs, *not, *op, rhs, *escape)?,
            raw::Expr::FunctionCall {
                name,
                distinctness,
                args,
                order_by,
                filter_over,
            } => {
                let name = self.name(name.0);
                let args = self.exprs(args.unwrap_or(&[]))?;
                let order_by = match order_by {
                    Some(raw::FunctionCallOrder::SortList(terms)) => self.sort_terms(terms)?,
                    None => Vec::new(),
                };
                let distinct = *distinctness == Some(raw::Distinctness::Distinct);
                self.call(name, Some(args), distinct, order_by, filter_over.as_ref())?
            }
            raw::Expr::FunctionCallStar { name, filter_over } => {
                let name = self.name(name.0);
                self.call(name, None, false, Vec::new(), filter_over.as_ref())?
            }
            raw::Expr::Raise(action, message) => {
                let message = message.map(|e| self.boxed(e)).transpose()?;
                ExprKind::Raise(conflict(*action), message)
            }
        })
    }

    fn qualified_column(
        &mut self,
        schema: Option<Name>,
        table: &raw::Name<'_>,
        column: &raw::Name<'_>,
    ) -> ExprKind {
        ExprKind::Qualified {
            schema,
            table: self.name(table.0),
            column: self.name(column.0),
        }
    }

    /// The rows that `IN table` and `IN function(…)` look among.
    fn table_of_in(
        &mut self,
        name: &raw::QualifiedName<'_>,
        args: Option<&[raw::Expr<'_>]>,
    ) -> Result<Select> {
        let name = self.qualified(name);
        Ok(match args {
            None => super::select::whole_table(name),
            Some(args) => super::select::whole(SelectTable::Function {
                name,
                args: self.exprs(args)?,
                alias: None,
            }),
        })
    }

    fn case(
        &mut self,
        base: Option<&raw::Expr<'_>>,
        pairs: &[(raw::Expr<'_>, raw::Expr<'_>)],
        otherwise: Option<&raw::Expr<'_>>,
    ) -> Result<ExprKind> {
        let base = base.map(|b| self.boxed(b)).transpose()?;
        let mut whens = Vec::with_capacity(pairs.len());
        for (when, then) in pairs {
            whens.push(CaseWhen {
                when: self.expr(when)?,
                then: self.expr(then)?,
            });
        }
        Ok(ExprKind::Case {
            base,
            whens,
            otherwise: otherwise.map(|e| self.boxed(e)).transpose()?,
        })
    }

    fn call(
        &mut self,
        name: Name,
        args: Option<Vec<Expr>>,
        distinct: bool,
        order_by: Vec<SortTerm>,
        tail: Option<&raw::FunctionTail<'_>>,
    ) -> Result<ExprKind> {
        let filter = tail
            .and_then(|t| t.filter_clause)
            .map(|f| self.boxed(f))
            .transpose()?;
        let over = tail.and_then(|t| t.over_clause);
        let over = over.map(|o| self.over(o)).transpose()?;
        if over.is_some() && distinct {
            return Err(Error::sql("DISTINCT is not supported for window functions")
                .with_offset(name.offset));
        }
        Ok(ExprKind::Function(Box::new(FunctionCall {
            name,
            args,
            distinct,
            filter,
            order_by,
            over,
        })))
    }

    fn like(
        &mut self,
        lhs: &raw::Expr<'_>,
        negated: bool,
        op: raw::LikeOperator,
        rhs: &raw::Expr<'_>,
        escape: Option<&raw::Expr<'_>>,
    ) -> Result<ExprKind> {
        let expr = self.boxed(lhs)?;
        let pattern = self.boxed(rhs)?;
        let escape = escape.map(|e| self.boxed(e)).transpose()?;
        let kind = match op {
            raw::LikeOperator::Like => LikeKind::Like,
            raw::LikeOperator::Glob => LikeKind::Glob,
            raw::LikeOperator::Match | raw::LikeOperator::Regexp => {
                let name = if op == raw::LikeOperator::Match {
                    "MATCH"
                } else {
                    "REGEXP"
                };
                let kind = operator_call(name, expr.offset, vec![*pattern, *expr]);
                return Ok(if negated {
                    ExprKind::Not(Box::new(Expr { kind, offset: 0 }))
                } else {
                    kind
                });
            }
        };
        Ok(ExprKind::Like {
            kind,
            expr,
            pattern,
            escape,
            negated,
        })
    }

    fn unary(&mut self, op: raw::UnaryOperator, operand: &raw::Expr<'_>) -> Result<ExprKind> {
        let operand = match op {
            raw::UnaryOperator::Negative | raw::UnaryOperator::Positive => unwrapped(operand, true),
            _ => operand,
        };
        if op == raw::UnaryOperator::Negative
            && let raw::Expr::Literal(raw::Literal::Numeric(text)) = operand
        {
            self.tokens.locate(text);
            return Ok(ExprKind::Literal(signed_number(text, true)?));
        }
        let operand = self.boxed(operand)?;
        Ok(match op {
            raw::UnaryOperator::BitwiseNot => ExprKind::BitNot(operand),
            raw::UnaryOperator::Negative => negated(operand),
            raw::UnaryOperator::Not => ExprKind::Not(operand),
            raw::UnaryOperator::Positive => ExprKind::Plus(operand),
        })
    }

    /// A chain of one left-associative operator becomes one flat AND or OR; the
    /// depth of the chain counts as it does for SQLite.
    fn binary(&mut self, op: raw::Operator, e: &raw::Expr<'_>) -> Result<ExprKind> {
        if matches!(op, raw::Operator::And | raw::Operator::Or) {
            let mut operands = Vec::new();
            let mut at = e;
            while let raw::Expr::Binary(left, o, right) = at
                && *o == op
            {
                operands.push(*right);
                at = left;
                if self.depth + operands.len() > super::MAX_EXPR_DEPTH {
                    return Err(super::too_deep());
                }
            }
            operands.push(at);
            let mut list = Vec::with_capacity(operands.len());
            for operand in operands.into_iter().rev() {
                list.push(self.expr(operand)?);
            }
            return Ok(if op == raw::Operator::And {
                ExprKind::And(list)
            } else {
                ExprKind::Or(list)
            });
        }
        let raw::Expr::Binary(left, _, right) = e else {
            return Err(Error::misuse("not a binary expression"));
        };
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        let compare = match op {
            raw::Operator::Equals => CompareOp::Equal,
            raw::Operator::NotEquals => CompareOp::NotEqual,
            raw::Operator::Less => CompareOp::Less,
            raw::Operator::LessEquals => CompareOp::LessEqual,
            raw::Operator::Greater => CompareOp::Greater,
            raw::Operator::GreaterEquals => CompareOp::GreaterEqual,
            raw::Operator::Is => CompareOp::Is,
            raw::Operator::IsNot => CompareOp::IsNot,
            raw::Operator::ArrowRight | raw::Operator::ArrowRightShift => {
                let name = if op == raw::Operator::ArrowRight {
                    "->"
                } else {
                    "->>"
                };
                return Ok(operator_call(name, left.offset, vec![*left, *right]));
            }
            _ => return Ok(ExprKind::Binary(arithmetic(op)?, left, right)),
        };
        let null = matches!(right.kind, ExprKind::Literal(Literal::Null));
        Ok(match compare {
            CompareOp::Is if null => is_null(left, false),
            CompareOp::IsNot if null => is_null(left, true),
            _ => ExprKind::Compare(compare, left, right),
        })
    }

    fn literal(&mut self, literal: &raw::Literal<'_>) -> Result<Literal> {
        Ok(match literal {
            raw::Literal::Numeric(text) => {
                self.tokens.locate(text);
                number(text)?
            }
            raw::Literal::String(text) => {
                self.tokens.locate(text);
                Literal::Text(unquote(text))
            }
            raw::Literal::Keyword(text) => {
                self.tokens.locate(text);
                Literal::Text((*text).to_owned())
            }
            raw::Literal::Blob(text) => {
                self.tokens.locate(text);
                Literal::Blob(blob(text))
            }
            raw::Literal::Null => Literal::Null,
            raw::Literal::CurrentDate => Literal::Current("current_date"),
            raw::Literal::CurrentTime => Literal::Current("current_time"),
            raw::Literal::CurrentTimestamp => Literal::Current("current_timestamp"),
        })
    }

    /// Numbers a parameter as SQLite does: `?` is one more than the largest so
    /// far, a name is the number it got first.
    fn parameter(&mut self, text: &str) -> Result<usize> {
        let offset = self.tokens.locate(text);
        let too_many = || Error::sql("too many SQL variables").with_offset(offset);
        if text.is_empty() || text == "?" {
            if self.parameters.len() >= MAX_PARAMETERS {
                return Err(too_many());
            }
            self.parameters.push(None);
            return Ok(self.parameters.len() - 1);
        }
        // The grammar's parser takes these for what SQLite has for itself alone.
        let number_of_register = text.strip_prefix('#').and_then(|rest| rest.chars().next());
        if number_of_register.is_some_and(|c| c.is_ascii_digit()) {
            let message = format!("near \"{text}\": syntax error");
            return Err(Error::sql(message).with_offset(offset));
        }
        let digits = text.strip_prefix('?').unwrap_or(text);
        let (name, index) = if digits.starts_with(|c: char| c.is_ascii_digit()) {
            let number = digits
                .parse::<usize>()
                .ok()
                .filter(|n| (1..=MAX_PARAMETERS).contains(n));
            let Some(number) = number else {
                let message = format!("variable number must be between ?1 and ?{MAX_PARAMETERS}");
                return Err(Error::sql(message).with_offset(offset));
            };
            (format!("?{digits}"), Some(number - 1))
        } else {
            let known = self
                .parameters
                .iter()
                .position(|p| p.as_deref() == Some(text));
            (text.to_owned(), known)
        };
        let index = index.unwrap_or(self.parameters.len());
        if index >= MAX_PARAMETERS {
            return Err(too_many());
        }
        if index >= self.parameters.len() {
            self.parameters.resize(index + 1, None);
        }
        if let Some(slot) = self.parameters.get_mut(index)
            && slot.is_none()
        {
            *slot = Some(name);
        }
        Ok(index)
    }

    pub(super) fn sort_terms(&mut self, terms: &[raw::SortedColumn<'_>]) -> Result<Vec<SortTerm>> {
        terms
            .iter()
            .map(|term| {
                Ok(SortTerm {
                    expr: self.expr(&term.expr)?,
                    descending: term.order == Some(raw::SortOrder::Desc),
                    nulls_first: term.nulls.map(|n| n == raw::NullsOrder::First),
                })
            })
            .collect()
    }
}

/// The call that an operator stands for.
fn operator_call(name: &str, offset: usize, args: Vec<Expr>) -> ExprKind {
    ExprKind::Function(Box::new(FunctionCall {
        name: Name {
            text: name.to_owned(),
            offset,
            double_quoted: false,
        },
        args: Some(args),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        over: None,
    }))
}

/// A list of nothing but a subquery is the subquery: its parentheses count for nothing.
fn in_list(expr: Box<Expr>, mut list: Vec<Expr>, negated: bool) -> ExprKind {
    match list.pop() {
        Some(Expr {
            kind: ExprKind::Subquery(select),
            ..
        }) if list.is_empty() => ExprKind::InSelect {
            expr,
            select,
            negated,
        },
        last => {
            list.extend(last);
            ExprKind::InList {
                expr,
                list,
                negated,
            }
        }
    }
}

/// `5 IS NULL` is the number 0, also where a number counts columns.
fn is_null(expr: Box<Expr>, negated: bool) -> ExprKind {
    let mut inner = &expr.kind;
    while let ExprKind::Negate(operand) | ExprKind::Plus(operand) = inner {
        inner = &operand.kind;
    }
    match inner {
        ExprKind::Literal(Literal::Null | Literal::Current(_)) => {
            ExprKind::IsNull { expr, negated }
        }
        ExprKind::Literal(_) => ExprKind::Literal(Literal::Integer(negated.into())),
        _ => ExprKind::IsNull { expr, negated },
    }
}

/// What stands in parentheses, and behind plus signs where they mean nothing more.
fn unwrapped<'e, 'b>(mut e: &'e raw::Expr<'b>, pluses: bool) -> &'e raw::Expr<'b> {
    loop {
        e = match e {
            raw::Expr::Parenthesized(list) => match list.as_slice() {
                [one] => one,
                _ => return e,
            },
            raw::Expr::Unary(raw::UnaryOperator::Positive, operand) if pluses => operand,
            _ => return e,
        }
    }
}

/// A minus before a number is part of the number: -0.0 keeps its sign.
fn negated(operand: Box<Expr>) -> ExprKind {
    match operand.kind {
        ExprKind::Literal(Literal::Real(r)) => ExprKind::Literal(Literal::Real(-r)),
        ExprKind::Literal(Literal::Integer(n)) if n != i64::MIN => {
            ExprKind::Literal(Literal::Integer(-n))
        }
        _ => ExprKind::Negate(operand),
    }
}

fn arithmetic(op: raw::Operator) -> Result<BinaryOp> {
    Ok(match op {
        raw::Operator::Add => BinaryOp::Add,
        raw::Operator::Subtract => BinaryOp::Subtract,
        raw::Operator::Multiply => BinaryOp::Multiply,
        raw::Operator::Divide => BinaryOp::Divide,
        raw::Operator::Modulus => BinaryOp::Remainder,
        raw::Operator::BitwiseAnd => BinaryOp::BitAnd,
        raw::Operator::BitwiseOr => BinaryOp::BitOr,
        raw::Operator::LeftShift => BinaryOp::ShiftLeft,
        raw::Operator::RightShift => BinaryOp::ShiftRight,
        raw::Operator::Concat => BinaryOp::Concat,
        _ => return Err(Error::misuse("not an arithmetic operator")),
    })
}

/// A numeric literal; integers beyond 64 bits are reals.
pub(super) fn number(text: &str) -> Result<Literal> {
    signed_number(text, false)
}

/// The same with a minus before it, which counts for what fits in 64 bits.
fn signed_number(text: &str, negative: bool) -> Result<Literal> {
    let mut text = text.replace('_', "");
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let n = u64::from_str_radix(digits, 16).map(|n| n as i64);
        return match n.ok().filter(|n| !negative || *n != i64::MIN) {
            Some(n) => Ok(Literal::Integer(if negative { -n } else { n })),
            None => {
                let sign = if negative { "-" } else { "" };
                Err(Error::sql(format!("hex literal too big: {sign}{text}")))
            }
        };
    }
    if negative {
        text.insert(0, '-');
    }
    if let Ok(n) = text.parse::<i64>() {
        return Ok(Literal::Integer(n));
    }
    match text.parse::<f64>() {
        Ok(r) => Ok(Literal::Real(r)),
        Err(_) => Err(Error::sql(format!("unrecognized token: \"{text}\""))),
    }
}

/// The bytes of a blob's digits.
pub(super) fn blob(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter_map(|b| (b as char).to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |n, d| (n << 4) | d))
        .collect()
}
