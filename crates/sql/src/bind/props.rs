//! Properties of expressions, by SQLite's rules (datatype3.html, 3.3, 4.2, 7.1).

use super::expr::{Comparison, Expr, ExprKind, Props, RowSource, SubqueryId};
use crate::func::JsonText;
use crate::value::{Affinity, Collation, Value};

impl Props {
    /// Of a literal: no affinity, no collation.
    pub const CONSTANT: Props = Props {
        affinity: None,
        collation: None,
        explicit_collation: false,
        deterministic: true,
        fallible: false,
        constant: true,
        json: JsonText::Never,
    };

    /// Of a column.
    pub fn column(affinity: Option<Affinity>, collation: Option<Collation>) -> Props {
        Props {
            affinity,
            collation,
            constant: false,
            ..Props::CONSTANT
        }
    }

    /// Of what is a column of a subquery or view: it has a collation as any column has,
    /// BINARY where its expression brings none.
    pub fn as_column(&self) -> Props {
        Props {
            collation: Some(self.collation.unwrap_or_default()),
            explicit_collation: false,
            json: JsonText::Never,
            ..*self
        }
    }

    /// Of an operator's result: no affinity; a collation only where an operand
    /// carries a COLLATE operator, the first such counting.
    pub fn of_operator<'a>(operands: impl IntoIterator<Item = &'a Expr>) -> Props {
        let mut props = Props::CONSTANT;
        for operand in operands {
            props.add(&operand.props);
        }
        props
    }

    /// Adds what one more operand brings.
    pub fn add(&mut self, operand: &Props) {
        self.deterministic &= operand.deterministic;
        self.fallible |= operand.fallible;
        self.constant &= operand.constant;
        if operand.explicit_collation && !self.explicit_collation {
            self.explicit_collation = true;
            self.collation = operand.collation;
        }
    }
}

impl Comparison {
    /// How two expressions compare.
    pub fn of(left: &Props, right: &Props) -> Comparison {
        let collation = if left.explicit_collation {
            left.collation
        } else if right.explicit_collation {
            right.collation
        } else {
            left.collation.or(right.collation)
        };
        let affinity = Affinity::of_comparison(left.affinity, right.affinity);
        Comparison {
            affinity,
            collation: collation.unwrap_or_default(),
        }
    }

    /// How the left side of IN compares with each value of a list.
    pub fn of_in_list(left: &Props) -> Comparison {
        Comparison::of(left, &Props::CONSTANT)
    }
}

impl Expr {
    /// A literal.
    pub fn literal(value: Value) -> Expr {
        Expr {
            kind: ExprKind::Literal(value),
            props: Props::CONSTANT,
        }
    }

    /// NULL.
    pub fn null() -> Expr {
        Expr::literal(Value::Null)
    }

    /// An operator over operands that are already in `kind`.
    pub fn operator(kind: ExprKind) -> Expr {
        let mut props = Props::CONSTANT;
        kind.for_each_child(&mut |child| props.add(&child.props));
        Expr { kind, props }
    }

    /// A column of the input row.
    pub fn input(at: usize, props: Props) -> Expr {
        Expr {
            kind: ExprKind::Input(at),
            props,
        }
    }

    /// Whether its value depends on nothing but its inputs, so that it may be had before
    /// other rows are written.
    pub fn is_same_in_any_order(&self) -> bool {
        let mut asks = matches!(
            self.kind,
            ExprKind::InSubquery { .. }
                | ExprKind::Exists(_)
                | ExprKind::ScalarSubquery { .. }
                | ExprKind::WithRow { .. }
        );
        self.kind
            .for_each_child(&mut |child| asks |= !child.is_same_in_any_order());
        self.props.deterministic && !asks
    }

    /// Whether it stands for any number of values.
    pub fn is_many(&self) -> bool {
        matches!(self.kind, ExprKind::Members { .. })
    }

    /// Whether it asks for a bound value: what the schema keeps may not.
    pub fn has_parameter(&self) -> bool {
        let mut has = matches!(self.kind, ExprKind::Parameter(_));
        self.kind
            .for_each_child(&mut |child| has |= child.has_parameter());
        has
    }

    /// Whether it has the same value at any time, so that an index may keep it.
    pub fn may_be_indexed(&self) -> bool {
        let mut may = match &self.kind {
            ExprKind::Function { function, .. } => function.may_be_indexed(),
            ExprKind::UserFunction { function, .. } => function.flags.deterministic,
            _ => true,
        };
        self.kind
            .for_each_child(&mut |child| may &= child.may_be_indexed());
        may
    }

    /// How texts compare when this expression is sorted or grouped.
    pub fn collation(&self) -> Collation {
        self.props.collation.unwrap_or_default()
    }
}

impl ExprKind {
    /// The subquery that it is about itself, those of its operands apart.
    pub fn subquery(&self) -> Option<SubqueryId> {
        match self {
            ExprKind::Exists(id)
            | ExprKind::ScalarSubquery { subquery: id, .. }
            | ExprKind::InSubquery { subquery: id, .. }
            | ExprKind::Members { subquery: id, .. }
            | ExprKind::WithRow {
                row: RowSource::Subquery(id),
                ..
            } => Some(*id),
            _ => None,
        }
    }

    /// The same to be changed.
    pub fn subquery_mut(&mut self) -> Option<&mut SubqueryId> {
        match self {
            ExprKind::Exists(id)
            | ExprKind::ScalarSubquery { subquery: id, .. }
            | ExprKind::InSubquery { subquery: id, .. }
            | ExprKind::Members { subquery: id, .. }
            | ExprKind::WithRow {
                row: RowSource::Subquery(id),
                ..
            } => Some(id),
            _ => None,
        }
    }

    /// Calls `f` for each operand, in order of evaluation.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Column(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Window(..)
            | ExprKind::Input(_)
            | ExprKind::Register(_)
            | ExprKind::Members { .. }
            | ExprKind::Exists(_)
            | ExprKind::ScalarSubquery { .. } => {}
            ExprKind::Unary(_, e) | ExprKind::Cast(e, _) => f(e),
            ExprKind::IsNull { expr, .. } | ExprKind::IsTruth { expr, .. } => f(expr),
            ExprKind::Binary(_, a, b) | ExprKind::Compare(_, _, a, b) => {
                f(a);
                f(b);
            }
            ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Function { args: list, .. }
            | ExprKind::UserFunction { args: list, .. }
            | ExprKind::RefusedFunction { args: list, .. } => list.iter().for_each(f),
            ExprKind::InSubquery { exprs, .. } => exprs.iter().for_each(f),
            ExprKind::WithRow { row, body, .. } => {
                if let RowSource::Exprs(exprs) = row {
                    exprs.iter().for_each(&mut *f);
                }
                f(body);
            }
            ExprKind::Between {
                expr, low, high, ..
            } => {
                f(expr);
                f(low);
                f(high);
            }
            ExprKind::InList { expr, list, .. } => {
                f(expr);
                list.iter().for_each(f);
            }
            ExprKind::Case {
                base,
                arms,
                otherwise,
            } => {
                base.iter().for_each(|e| f(e));
                for arm in arms {
                    f(&arm.when);
                    f(&arm.then);
                }
                otherwise.iter().for_each(|e| f(e));
            }
            ExprKind::Like {
                expr,
                pattern,
                escape,
                ..
            } => {
                f(expr);
                f(pattern);
                escape.iter().for_each(|e| f(e));
            }
        }
    }

    /// As [`ExprKind::for_each_child`], to change them.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Column(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Window(..)
            | ExprKind::Input(_)
            | ExprKind::Register(_)
            | ExprKind::Members { .. }
            | ExprKind::Exists(_)
            | ExprKind::ScalarSubquery { .. } => {}
            ExprKind::Unary(_, e) | ExprKind::Cast(e, _) => f(e),
            ExprKind::IsNull { expr, .. } | ExprKind::IsTruth { expr, .. } => f(expr),
            ExprKind::Binary(_, a, b) | ExprKind::Compare(_, _, a, b) => {
                f(a);
                f(b);
            }
            ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Function { args: list, .. }
            | ExprKind::UserFunction { args: list, .. }
            | ExprKind::RefusedFunction { args: list, .. } => list.iter_mut().for_each(f),
            ExprKind::InSubquery { exprs, .. } => exprs.iter_mut().for_each(f),
            ExprKind::WithRow { row, body, .. } => {
                if let RowSource::Exprs(exprs) = row {
                    exprs.iter_mut().for_each(&mut *f);
                }
                f(body);
            }
            ExprKind::Between {
                expr, low, high, ..
            } => {
                f(expr);
                f(low);
                f(high);
            }
            ExprKind::InList { expr, list, .. } => {
                f(expr);
                list.iter_mut().for_each(f);
            }
            ExprKind::Case {
                base,
                arms,
                otherwise,
            } => {
                base.iter_mut().for_each(|e| f(e));
                for arm in arms {
                    f(&mut arm.when);
                    f(&mut arm.then);
                }
                otherwise.iter_mut().for_each(|e| f(e));
            }
            ExprKind::Like {
                expr,
                pattern,
                escape,
                ..
            } => {
                f(expr);
                f(pattern);
                escape.iter_mut().for_each(|e| f(e));
            }
        }
    }
}
