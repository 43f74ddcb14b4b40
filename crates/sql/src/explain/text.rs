//! Operators in words.

use super::expr::{expr_text, list_text, sort_text};
use crate::bind::expr::{AggregateCall, Expr, Register, SortKey};
use crate::plan::physical::{
    Bound, CompoundOp, Grouping, JoinKind, LimitClause, Op, Range, ScanColumn,
};
use crate::schema::{Index, IndexTarget, Table};

/// One line about an operator: an arm for each, long only by their number.
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
            firsts,
            ..
        } => {
            let how = if *covering { "COVERING INDEX" } else { "INDEX" };
            let key = index_key_text(table, index, prefixes, range);
            let verb = if key.is_empty() { "SCAN" } else { "SEARCH" };
            format!(
                "{verb} {} USING {how} {}{}{}{}{}",
                table.name,
                index.name,
                key_text(&key),
                reverse_text(*reverse),
                firsts_text(table, index, *firsts),
                columns_text(table, columns)
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
            format!(
                "NESTED LOOP {}{}{}",
                join_kind(*kind),
                passed_text(bindings),
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
        Op::Distinct { neighbours, .. } => match neighbours {
            true => "DISTINCT IN ORDER".to_owned(),
            false => "DISTINCT".to_owned(),
        },
        Op::Compound { op, .. } => compound(*op).to_owned(),
        Op::Materialize { .. } => "MATERIALIZE".to_owned(),
        Op::Recursion {
            name,
            distinct,
            order,
            ..
        } => recursion_text(name, distinct.is_some(), order),
        Op::TableFunction { function, args, .. } => {
            let args: Vec<String> = args.iter().flatten().map(expr_text).collect();
            format!("CALL {}({})", function.name(), args.join(", "))
        }
        Op::CommonRows { name, subquery } => format!("ROWS OF {name} FROM SUBQUERY {subquery}"),
        Op::RecursiveRows { name, .. } => format!("ROWS OF {name}"),
    }
}

fn passed_text(bindings: &[(Register, Expr)]) -> String {
    if bindings.is_empty() {
        return String::new();
    }
    let binding = |(r, e): &(Register, Expr)| format!("r{r}={}", expr_text(e));
    let bindings: Vec<String> = bindings.iter().map(binding).collect();
    format!(" PASSING {}", bindings.join(", "))
}

fn recursion_text(name: &str, distinct: bool, order: &[SortKey]) -> String {
    let op = match distinct {
        true => CompoundOp::Union,
        false => CompoundOp::UnionAll,
    };
    let keys: Vec<String> = order.iter().map(sort_text).collect();
    let order = match keys.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", keys.join(", ")),
    };
    format!("RECURSION {name} {}{order}", compound(op))
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
        JoinKind::Single => "SINGLE JOIN",
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

fn firsts_text(table: &Table, index: &Index, firsts: usize) -> String {
    let names = (0..firsts).map(|part| part_name(table, index, part));
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" FIRST OF EACH {}", names.join(", ")),
    }
}

/// What a part of an index's key is called.
fn part_name(table: &Table, index: &Index, part: usize) -> String {
    match index.columns.get(part).map(|c| &c.target) {
        Some(IndexTarget::Column(at)) => table
            .columns
            .get(*at)
            .map_or(String::new(), |c| c.name.clone()),
        Some(IndexTarget::Rowid) | None => "rowid".to_owned(),
        Some(IndexTarget::Expr(_)) => "expr".to_owned(),
    }
}

fn columns_text(table: &Table, columns: &[ScanColumn]) -> String {
    let name = |c: &ScanColumn| match c {
        ScanColumn::Rowid => Some("rowid".to_owned()),
        ScanColumn::Column(at) | ScanColumn::Kept(at) => {
            table.columns.get(*at).map(|c| c.name.clone())
        }
        ScanColumn::Property(at, property) => {
            let name = table.columns.get(*at).map(|c| c.name.as_str());
            name.map(|name| format!("{}({name})", property.name()))
        }
        ScanColumn::IsLarge => None,
    };
    let names: Vec<String> = columns.iter().filter_map(name).collect();
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
    let name = |part: usize| part_name(table, index, part);
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
    let call = |(at, call): (usize, &AggregateCall)| {
        let distinct = match call.distinct {
            true if grouping.in_order.contains(&at) => "DISTINCT IN ORDER ",
            true => "DISTINCT ",
            false => "",
        };
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
    let calls: Vec<String> = grouping.aggregates.iter().enumerate().map(call).collect();
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

fn limit_text(clause: &LimitClause) -> String {
    let limit = clause.limit.as_ref().map_or("-1".to_owned(), expr_text);
    let offset = clause
        .offset
        .as_ref()
        .map_or(String::new(), |o| format!(" OFFSET {}", expr_text(o)));
    format!("{limit}{offset}")
}
