//! Operators and expressions in words.

use crate::bind::expr::{
    BinaryOp, CompareOp, Expr, ExprKind, LikeKind, RowSource, SortKey, UnaryOp,
};
use crate::plan::physical::{
    Bound, CompoundOp, Grouping, JoinKind, LimitClause, Op, Range, ScanColumn,
};
use crate::schema::{Index, IndexTarget, Table};
use crate::value::Collation;

/// Most expressions of a list that are shown.
const SHOWN: usize = 16;

/// One line about an operator.
pub fn operator(op: &Op) -> String {
    match op {
        Op::Values(rows) => format!("VALUES ({} rows)", rows.len()),
        Op::RepeatedRow { parameters, .. } => {
            format!("VALUES (a row for {parameters} values)")
        }
        Op::TableScan {
            table,
            columns,
            range,
            reverse,
        } => {
            let bounds = range_text("rowid", range);
            let verb = if bounds.is_empty() { "SCAN" } else { "SEARCH" };
            let (key, back) = (key_text(&bounds), reverse_text(*reverse));
            format!(
                "{verb} {}{key}{back}{}",
                table.name,
                columns_text(table, columns)
            )
        }
        Op::RowidLookup {
            table,
            columns,
            keys,
            reverse,
        } => {
            let key = match keys.as_slice() {
                [one] => format!("rowid={}", expr_text(one)),
                many => format!("rowid IN ({})", list_text(many)),
            };
            format!(
                "LOOKUP {} ({key}){}{}",
                table.name,
                reverse_text(*reverse),
                columns_text(table, columns)
            )
        }
        Op::RowidUnion { table, columns, .. } => {
            let columns = columns_text(table, columns);
            format!("LOOKUP {} (any of rowids){columns}", table.name)
        }
        Op::IndexScan {
            table,
            index,
            columns,
            covering,
            prefixes,
            range,
            reverse,
            ..
        } => {
            let covering = if *covering { " COVERING" } else { "" };
            let key = index_key_text(table, index, prefixes, range);
            let verb = if key.is_empty() { "SCAN" } else { "SEARCH" };
            let (reverse, columns) = (reverse_text(*reverse), columns_text(table, columns));
            format!(
                "{verb} {} USING{covering} INDEX {}{}{reverse}{columns}",
                table.name,
                index.name,
                key_text(&key)
            )
        }
        Op::CountRows(table) => format!("COUNT {} FROM COUNTER", table.name),
        Op::Filter { predicate, .. } => format!("FILTER {}", expr_text(predicate)),
        Op::Generate { columns, .. } => {
            let columns: Vec<String> = columns.iter().map(|(e, _)| expr_text(e)).collect();
            format!("GENERATE {}", columns.join(", "))
        }
        Op::Project { exprs, .. } => format!("PROJECT {}", list_text(exprs)),
        Op::NestedLoopJoin {
            kind,
            bindings,
            condition,
            ..
        } => {
            let bindings: Vec<String> = bindings
                .iter()
                .map(|(r, e)| format!("r{r}={}", expr_text(e)))
                .collect();
            let passed = if bindings.is_empty() {
                String::new()
            } else {
                format!(" PASSING {}", bindings.join(", "))
            };
            format!(
                "NESTED LOOP {}{passed}{}",
                join_kind(*kind),
                on_text(condition.as_ref())
            )
        }
        Op::HashJoin {
            kind,
            left_keys,
            right_keys,
            condition,
            ..
        } => {
            let pair = |(l, r): (&Expr, &Expr)| format!("{}={}", expr_text(l), expr_text(r));
            let keys: Vec<String> = left_keys.iter().zip(right_keys).map(pair).collect();
            format!(
                "HASH {} ({}){}",
                join_kind(*kind),
                keys.join(", "),
                on_text(condition.as_ref())
            )
        }
        Op::HashAggregate { grouping, .. } => format!("HASH AGGREGATE {}", grouping_text(grouping)),
        Op::SortedAggregate { grouping, .. } => format!("AGGREGATE {}", grouping_text(grouping)),
        Op::Sort { keys, top, .. } => {
            let keys: Vec<String> = keys.iter().map(sort_text).collect();
            let top = top
                .as_ref()
                .map_or(String::new(), |t| format!(" TOP {}", limit_text(t)));
            format!("SORT {}{top}", keys.join(", "))
        }
        Op::Limit { clause, .. } => format!("LIMIT {}", limit_text(clause)),
        Op::Window { window, .. } => super::window::window_text(window),
        Op::Distinct { .. } => "DISTINCT".to_owned(),
        Op::Compound { op, .. } => compound(*op).to_owned(),
        Op::Materialize { .. } => "MATERIALIZE".to_owned(),
        Op::Recursion {
            name,
            distinct,
            order,
            ..
        } => {
            let op = match distinct {
                Some(_) => CompoundOp::Union,
                None => CompoundOp::UnionAll,
            };
            let keys: Vec<String> = order.iter().map(sort_text).collect();
            let order = match keys.is_empty() {
                true => String::new(),
                false => format!(" ORDER BY {}", keys.join(", ")),
            };
            format!("RECURSION {name} {}{order}", compound(op))
        }
        Op::TableFunction { function, args, .. } => {
            let args: Vec<String> = args.iter().flatten().map(expr_text).collect();
            format!("CALL {}({})", function.name(), args.join(", "))
        }
        Op::RecursiveRows { name, .. } => format!("ROWS OF {name}"),
    }
}

fn compound(op: CompoundOp) -> &'static str {
    match op {
        CompoundOp::UnionAll => "UNION ALL",
        CompoundOp::Union => "UNION",
        CompoundOp::Intersect => "INTERSECT",
        CompoundOp::Except => "EXCEPT",
    }
}

fn join_kind(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "JOIN",
        JoinKind::Left => "LEFT JOIN",
        JoinKind::Right => "RIGHT JOIN",
        JoinKind::Full => "FULL JOIN",
        JoinKind::Semi => "SEMI JOIN",
        JoinKind::Anti => "ANTI JOIN",
    }
}

fn on_text(condition: Option<&Expr>) -> String {
    condition.map_or(String::new(), |c| format!(" ON {}", expr_text(c)))
}

fn key_text(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!(" ({key})")
    }
}

fn reverse_text(reverse: bool) -> &'static str {
    if reverse { " BACKWARDS" } else { "" }
}

fn columns_text(table: &Table, columns: &[ScanColumn]) -> String {
    let name = |c: &ScanColumn| match c {
        ScanColumn::Rowid => "rowid".to_owned(),
        ScanColumn::Column(at) => table
            .columns
            .get(*at)
            .map_or(String::new(), |c| c.name.clone()),
    };
    let names: Vec<String> = columns.iter().map(name).collect();
    format!(" [{}]", names.join(", "))
}

fn range_text(name: &str, range: &Range) -> String {
    let bound = |b: &Bound, strict: &str, inclusive: &str| {
        format!(
            "{name}{}{}",
            if b.inclusive { inclusive } else { strict },
            expr_text(&b.expr)
        )
    };
    let low = range.low.as_ref().map(|b| bound(b, ">", ">="));
    let high = range.high.as_ref().map(|b| bound(b, "<", "<="));
    let ends: Vec<String> = low.into_iter().chain(high).collect();
    let ends = ends.join(" AND ");
    match range.blobs {
        true => format!("({ends} OR {name} IS BLOB)"),
        false => ends,
    }
}

fn index_key_text(table: &Table, index: &Index, prefixes: &[Vec<Expr>], range: &Range) -> String {
    let name = |part: usize| match index.columns.get(part).map(|c| &c.target) {
        Some(IndexTarget::Column(at)) => table
            .columns
            .get(*at)
            .map_or(String::new(), |c| c.name.clone()),
        Some(IndexTarget::Rowid) => "rowid".to_owned(),
        Some(IndexTarget::Expr(_)) | None => "expr".to_owned(),
    };
    let length = prefixes.first().map_or(0, Vec::len);
    let mut parts: Vec<String> = match prefixes {
        [one] => one
            .iter()
            .enumerate()
            .map(|(i, e)| format!("{}={}", name(i), expr_text(e)))
            .collect(),
        many => vec![format!(
            "{} keys of {}",
            many.len(),
            (0..length).map(name).collect::<Vec<_>>().join(", ")
        )],
    };
    let bounds = range_text(&name(length), range);
    if !bounds.is_empty() {
        parts.push(bounds);
    }
    parts.join(" AND ")
}

fn grouping_text(grouping: &Grouping) -> String {
    let keys: Vec<String> = grouping.keys.iter().map(|(e, _)| expr_text(e)).collect();
    let call = |call: &crate::bind::expr::AggregateCall| {
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let args = if call.args.is_empty() {
            "*".to_owned()
        } else {
            list_text(&call.args)
        };
        let filter = call
            .filter
            .as_ref()
            .map_or(String::new(), |f| format!(" FILTER {}", expr_text(f)));
        format!("{}({distinct}{args}){filter}", call.function.name)
    };
    let calls: Vec<String> = grouping.aggregates.iter().map(call).collect();
    let mut parts = vec![calls.join(", ")];
    if !keys.is_empty() {
        parts.push(format!("BY {}", keys.join(", ")));
    }
    if !grouping.bare.is_empty() {
        parts.push(format!("BARE {}", list_text(&grouping.bare)));
    }
    parts.retain(|p| !p.is_empty());
    parts.join(" ")
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

fn limit_text(clause: &LimitClause) -> String {
    let limit = clause.limit.as_ref().map_or("-1".to_owned(), expr_text);
    let offset = clause
        .offset
        .as_ref()
        .map_or(String::new(), |o| format!(" OFFSET {}", expr_text(o)));
    format!("{limit}{offset}")
}

pub(super) fn list_text(list: &[Expr]) -> String {
    let mut parts: Vec<String> = list.iter().take(SHOWN).map(expr_text).collect();
    if list.len() > SHOWN {
        parts.push(format!("… {} more", list.len() - SHOWN));
    }
    parts.join(", ")
}

/// An expression: `$n` is the n-th column of the operator's input, `rn` a
/// register, `?n` a parameter.
pub fn expr_text(expr: &Expr) -> String {
    crate::stack::grow(|| kind_text(&expr.kind))
}

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
        } => {
            let row = match row {
                RowSource::Exprs(exprs) => format!("({})", list_text(exprs)),
                RowSource::Subquery(id) => format!("subquery {id}"),
            };
            let registers: Vec<String> = registers.iter().map(|r| format!("r{r}")).collect();
            format!("({}) = {row}: {}", registers.join(", "), expr_text(body))
        }
        ExprKind::Case {
            base,
            arms,
            otherwise,
        } => {
            let base = base
                .as_ref()
                .map_or(String::new(), |b| format!(" {}", expr_text(b)));
            let arm = |a: &crate::bind::expr::CaseArm| {
                format!(" WHEN {} THEN {}", expr_text(&a.when), expr_text(&a.then))
            };
            let arms: String = arms.iter().map(arm).collect();
            let otherwise = otherwise
                .as_ref()
                .map_or(String::new(), |e| format!(" ELSE {}", expr_text(e)));
            format!("CASE{base}{arms}{otherwise} END")
        }
        ExprKind::Cast(e, affinity) => format!("CAST({} AS {affinity:?})", expr_text(e)),
        ExprKind::Like {
            kind,
            expr,
            pattern,
            negated,
            ..
        } => {
            let word = match kind {
                LikeKind::Like | LikeKind::LikeExact => "LIKE",
                LikeKind::Glob => "GLOB",
            };
            format!(
                "{} {}{word} {}",
                expr_text(expr),
                not(negated),
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
