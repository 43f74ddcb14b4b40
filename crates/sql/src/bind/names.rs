//! What the columns of a query are called where it is a source: a subquery, what WITH
//! names, a view, or what a table is made of. There each has a name of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use super::logical::QueryColumn;
use crate::ast;
use crate::ast::ExprKind as A;

/// What a query's columns are called by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Naming {
    /// As a statement shows them: expressions by their text.
    #[default]
    Shown,
    /// Columns of tables by the name that the query writes, as in subqueries.
    Written,
    /// Columns of tables by their own name, as in views and tables.
    Stored,
}

/// TRUE or FALSE.
pub fn is_truth(name: &str) -> bool {
    name.eq_ignore_ascii_case("true") || name.eq_ignore_ascii_case("false")
}

/// The expression that names a result column: without COLLATE, and in what is stored
/// without the functions that do nothing.
pub fn naming_expr(expr: &ast::Expr, naming: Naming) -> &ast::Expr {
    let inner = match &expr.kind {
        A::Collate(operand, _) if naming != Naming::Shown => operand,
        A::Function(call) if naming == Naming::Stored => {
            let name = call.name.text.as_str();
            match call.args.as_deref() {
                Some([only])
                    if name.eq_ignore_ascii_case("likely")
                        || name.eq_ignore_ascii_case("unlikely") =>
                {
                    only
                }
                Some([first, _]) if name.eq_ignore_ascii_case("likelihood") => first,
                _ => return expr,
            }
        }
        _ => return expr,
    };
    crate::stack::grow(|| naming_expr(inner, naming))
}

/// Gives a source's columns their names: those that are words for truth a number, those
/// that another one before them has a number behind them.
pub fn name_columns(columns: &mut [QueryColumn]) {
    for (i, column) in columns.iter_mut().enumerate() {
        if is_truth(&column.output.name) {
            column.output.name = format!("column{}", i + 1);
        }
    }
    // Most have few columns and no two of a name.
    let same =
        |a: &QueryColumn, b: &QueryColumn| a.output.name.eq_ignore_ascii_case(&b.output.name);
    let mut rest = &*columns;
    let mut distinct = columns.len() <= 16;
    while let (true, [first, others @ ..]) = (distinct, rest) {
        distinct = !others.iter().any(|other| same(first, other));
        rest = others;
    }
    if distinct {
        return;
    }
    let mut taken: FxHashSet<String> = FxHashSet::default();
    // The last number behind each name.
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    for column in columns {
        let mut unique = column.output.name.clone();
        if taken.contains(&unique.to_ascii_lowercase()) {
            let stem = without_number(&unique).to_owned();
            let number = numbers.entry(stem.to_ascii_lowercase()).or_default();
            while taken.contains(&unique.to_ascii_lowercase()) {
                *number += 1;
                unique = format!("{stem}:{number}");
            }
            column.output.name.clone_from(&unique);
        }
        taken.insert(unique.to_ascii_lowercase());
    }
}

/// A name without a colon and digits at its end.
fn without_number(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.strip_suffix(':').unwrap_or(name)
}
