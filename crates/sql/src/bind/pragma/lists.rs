//! PRAGMAs that list what there is: functions, modules, PRAGMAs, limits.

use std::sync::Arc;

use super::{Rows, SCHEMA, SESSION, int, rows_of};
use crate::bind::dml::text;
use crate::bind::expr::Expr;
use crate::exec::dml::TRIGGER_DEPTH_MAX;
use crate::func::user::UserCode;
use crate::func::{self, UserFunction};
use crate::session::fixed_pragma_names;
use crate::value::{LENGTH_MAX, PATTERN_LENGTH_MAX, Value};

/// Flags of a function in `PRAGMA function_list`: SQLITE_DETERMINISTIC and so on.
const DETERMINISTIC: i64 = 0x800;
const DIRECT_ONLY: i64 = 0x8_0000;
const SUBTYPE: i64 = 0x10_0000;
const INNOCUOUS: i64 = 0x20_0000;

/// What one of these lists.
pub(super) fn of(name: &str, user: &UserCode) -> Rows {
    match name {
        "compile_options" => rows_of(&["compile_options"], one_each(compile_options())),
        "function_list" => functions(user),
        "module_list" => {
            let names = func::table::names().map(str::to_owned);
            rows_of(&["name"], one_each(names.collect()))
        }
        _ => rows_of(&["name"], one_each(pragmas())),
    }
}

fn one_each(names: Vec<String>) -> Vec<Vec<Expr>> {
    names.into_iter().map(|name| vec![text(name)]).collect()
}

/// Limits, in the words of SQLite's options.
fn compile_options() -> Vec<String> {
    vec![
        "ENABLE_COLUMN_METADATA".to_owned(),
        "ENABLE_MATH_FUNCTIONS".to_owned(),
        format!("MAX_COLUMN={}", crate::parse::MAX_COLUMNS),
        format!("MAX_COMPOUND_SELECT={}", crate::bind::select::MAX_COMPOUND),
        format!("MAX_EXPR_DEPTH={}", crate::parse::MAX_EXPR_DEPTH),
        format!("MAX_LENGTH={LENGTH_MAX}"),
        format!("MAX_LIKE_PATTERN_LENGTH={PATTERN_LENGTH_MAX}"),
        format!("MAX_TRIGGER_DEPTH={TRIGGER_DEPTH_MAX}"),
        format!("MAX_VARIABLE_NUMBER={}", crate::parse::MAX_PARAMETERS),
        "THREADSAFE=1".to_owned(),
    ]
}

fn pragmas() -> Vec<String> {
    let all = SCHEMA.iter().chain(SESSION).copied();
    let mut names: Vec<String> = all.chain(fixed_pragma_names()).map(str::to_owned).collect();
    names.push("optimize".to_owned());
    names.sort_unstable();
    names
}

fn functions(user: &UserCode) -> Rows {
    let row = |f: func::Listed| {
        let arguments = f.arguments.and_then(|count| i64::try_from(count).ok());
        let deterministic = if f.deterministic { DETERMINISTIC } else { 0 };
        vec![
            text(f.name),
            int(1),
            text(f.kind),
            text("utf8"),
            Expr::literal(Value::Integer(arguments.unwrap_or(-1))),
            Expr::literal(Value::Integer(INNOCUOUS | deterministic)),
        ]
    };
    let of_program = |f: &Arc<UserFunction>| {
        let arguments = f.arguments().and_then(|count| i64::try_from(count).ok());
        let flags = [
            (f.flags.deterministic, DETERMINISTIC),
            (f.flags.direct_only, DIRECT_ONLY),
            (f.flags.takes_subtypes, SUBTYPE),
            (f.flags.innocuous, INNOCUOUS),
        ];
        let flags = flags.iter().filter(|(is_set, _)| *is_set);
        vec![
            text(f.name()),
            int(0),
            text(f.kind_letter()),
            text("utf8"),
            Expr::literal(Value::Integer(arguments.unwrap_or(-1))),
            Expr::literal(Value::Integer(flags.map(|(_, flag)| flag).sum())),
        ]
    };
    let mut rows: Vec<_> = func::list().into_iter().map(row).collect();
    rows.extend(user.functions().map(of_program));
    rows_of(&["name", "builtin", "type", "enc", "narg", "flags"], rows)
}
