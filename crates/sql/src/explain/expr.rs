//! Expressions in words.

use crate::bind::expr::{
    BinaryOp, CaseArm, CompareOp, Expr, ExprKind, LikeKind, Register, RowSource, SortKey, UnaryOp,
};
use crate::value::Collation;

/// Most expressions of a list that are shown.
const SHOWN: usize = 16;

/// An expression: `$n` is the n-th column of the operator's input, `rn` a
/// register, `?n` a parameter.
pub fn expr_text(expr: &Expr) -> String {
    crate::stack::grow(|| kind_text(&expr.kind))
}

/// An arm for each kind, long only by their number.
fn kind_text(kind: &ExprKind) -> String {
    let not = |negated: &bool| if *negated { "NOT " } else { "" };
    match kind {
        ExprKind::Literal(value) => {
            let mut out = Vec::new();
            crate::value::quote(value.as_ref(), &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        ExprKind::Parameter(n) => format!("?{}", n + 1),
        ExprKind::Column(column) => format!("{}.{}", column.source, column.column),
        ExprKind::Aggregate(n) => format!("aggregate {n}"),
        ExprKind::Window(n, m) => format!("window {n} call {m}"),
        ExprKind::Input(n) => format!("${n}"),
        ExprKind::Register(n) => format!("r{n}"),
        ExprKind::Unary(op, e) => format!("{}{}", unary(*op), expr_text(e)),
        ExprKind::Binary(op, a, b) => format!("({}{}{})", expr_text(a), binary(*op), expr_text(b)),
        ExprKind::Compare(op, _, a, b) => {
            format!("{}{}{}", expr_text(a), compare(*op), expr_text(b))
        }
        ExprKind::And(list) => join(list, " AND "),
        ExprKind::Or(list) => join(list, " OR "),
        ExprKind::IsNull { expr, negated } => {
            format!("{} IS {}NULL", expr_text(expr), not(negated))
        }
        ExprKind::IsTruth {
            expr,
            truth,
            negated,
        } => {
            format!(
                "{} IS {}{}",
                expr_text(expr),
                not(negated),
                if *truth { "TRUE" } else { "FALSE" }
            )
        }
        ExprKind::Between {
            expr,
            low,
            high,
            negated,
            ..
        } => {
            format!(
                "{} {}BETWEEN {} AND {}",
                expr_text(expr),
                not(negated),
                expr_text(low),
                expr_text(high)
            )
        }
        ExprKind::InList {
            expr,
            list,
            negated,
            ..
        } => {
            format!(
                "{} {}IN ({})",
                expr_text(expr),
                not(negated),
                list_text(list)
            )
        }
        ExprKind::InSubquery {
            exprs,
            subquery,
            negated,
            ..
        } => {
            format!(
                "({}) {}IN subquery {subquery}",
                list_text(exprs),
                not(negated)
            )
        }
        ExprKind::Members { subquery, .. } => format!("each of subquery {subquery}"),
        ExprKind::Exists(id) => format!("EXISTS subquery {id}"),
        ExprKind::ScalarSubquery {
            subquery,
            column: 0,
        } => format!("subquery {subquery}"),
        ExprKind::ScalarSubquery { subquery, column } => {
            format!("subquery {subquery} column {}", column + 1)
        }
        ExprKind::WithRow {
            row,
            registers,
            body,
        } => row_text(row, registers, body),
        ExprKind::Case {
            base,
            arms,
            otherwise,
        } => case_text(base.as_deref(), arms, otherwise.as_deref()),
        ExprKind::Cast(e, affinity) => format!("CAST({} AS {affinity:?})", expr_text(e)),
        ExprKind::Like {
            kind,
            expr,
            pattern,
            negated,
            ..
        } => {
            format!(
                "{} {}{} {}",
                expr_text(expr),
                not(negated),
                like(*kind),
                expr_text(pattern)
            )
        }
        ExprKind::Function { function, args, .. } => {
            format!("{}({})", function.name, list_text(args))
        }
        ExprKind::UserFunction { function, args, .. } => {
            format!("{}({})", function.name(), list_text(args))
        }
        ExprKind::RefusedFunction { name, args, .. } => format!("{name}({})", list_text(args)),
    }
}

/// An expression over the values of a row, which are named by registers.
fn row_text(row: &RowSource, registers: &[Register], body: &Expr) -> String {
    let row = match row {
        RowSource::Exprs(exprs) => format!("({})", list_text(exprs)),
        RowSource::Subquery(id) => format!("subquery {id}"),
    };
    let registers: Vec<String> = registers.iter().map(|r| format!("r{r}")).collect();
    format!("({}) = {row}: {}", registers.join(", "), expr_text(body))
}

fn case_text(base: Option<&Expr>, arms: &[CaseArm], otherwise: Option<&Expr>) -> String {
    let base = base.map_or(String::new(), |b| format!(" {}", expr_text(b)));
    let arm = |a: &CaseArm| format!(" WHEN {} THEN {}", expr_text(&a.when), expr_text(&a.then));
    let arms: String = arms.iter().map(arm).collect();
    let otherwise = otherwise.map_or(String::new(), |e| format!(" ELSE {}", expr_text(e)));
    format!("CASE{base}{arms}{otherwise} END")
}

pub(super) fn list_text(list: &[Expr]) -> String {
    let mut parts: Vec<String> = list.iter().take(SHOWN).map(expr_text).collect();
    if list.len() > SHOWN {
        parts.push(format!("… {} more", list.len() - SHOWN));
    }
    parts.join(", ")
}

pub(super) fn sort_text(key: &SortKey) -> String {
    let collation = match key.collation {
        Collation::Binary => String::new(),
        other => format!(" COLLATE {}", other.name()),
    };
    let direction = if key.descending { " DESC" } else { "" };
    let nulls = match (key.descending, key.nulls_first) {
        (false, false) => " NULLS LAST",
        (true, true) => " NULLS FIRST",
        _ => "",
    };
    format!("{}{collation}{direction}{nulls}", expr_text(&key.expr))
}

fn join(list: &[Expr], word: &str) -> String {
    format!(
        "({})",
        list.iter().map(expr_text).collect::<Vec<_>>().join(word)
    )
}

fn unary(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Negate => "-",
        UnaryOp::BitNot => "~",
        UnaryOp::Not => "NOT ",
    }
}

fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Concat => "||",
    }
}

fn compare(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "=",
        CompareOp::NotEqual => "<>",
        CompareOp::Less => "<",
        CompareOp::LessEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterEqual => ">=",
        CompareOp::Is => " IS ",
        CompareOp::IsNot => " IS NOT ",
    }
}

fn like(kind: LikeKind) -> &'static str {
    match kind {
        LikeKind::Like | LikeKind::LikeExact => "LIKE",
        LikeKind::Glob => "GLOB",
    }
}
