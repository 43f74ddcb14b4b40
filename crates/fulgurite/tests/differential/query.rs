//! Random queries, and how far their answers are defined.

use crate::compare::Check;
use crate::derived::derived;
use crate::expression::Writer;
use crate::schema::{Table, World};
use crate::statement::{Statement, visible};

/// Draws a SELECT over up to three tables.
pub fn select(mut writer: Writer<'_>, world: &World) -> Statement {
    let w = &mut writer;
    let mut check = Check::default();
    let sql = if w.chance(8) {
        compound(w, world, &mut check)
    } else {
        let from = sources(w, world);
        let mut filter = filter(w);
        if let Some(table) = &from.only {
            also_indexed(w, world, table, &mut filter);
        }
        let select = if w.chance(30) {
            grouped(w, &from.text, &filter, &mut check)
        } else {
            plain(w, &from, &filter, &mut check)
        };
        format!("{}{select}", from.with())
    };
    check.sums = sql.contains("sum(") || sql.contains("avg(") || sql.contains("total(");
    Statement {
        sql,
        parameters: writer.parameters,
        check,
    }
}

fn filter(w: &mut Writer<'_>) -> String {
    if w.chance(60) {
        format!(" WHERE {}", w.condition(3))
    } else {
        String::new()
    }
}

/// Asks for what a partial index of the table asks for, or for a value of what one
/// computes, if it has any such, now and then.
pub fn also_indexed(w: &mut Writer<'_>, world: &World, table: &str, filter: &mut String) {
    let (conditions, expressions) = (world.conditions(table), world.expressions(table));
    let condition = match w.rng.u32(..100) {
        0..=39 if !conditions.is_empty() => w.pick(&conditions).to_owned(),
        40..=79 if !expressions.is_empty() => {
            let operator = w.pick(&["=", "=", "<", ">=", "IS"]);
            format!("{} {operator} {}", w.pick(&expressions), w.literal())
        }
        _ => return,
    };
    let more = filter.strip_prefix(" WHERE ").map(|f| format!(" AND {f}"));
    *filter = format!(" WHERE {condition}{}", more.unwrap_or_default());
}

/// A FROM clause.
#[derive(Default)]
struct Sources {
    text: String,
    /// For each source, a column that tells its rows apart.
    ties: Vec<String>,
    /// What it needs of WITH.
    named: Vec<String>,
    /// The table, where it is one.
    only: Option<String>,
}

impl Sources {
    fn with(&self) -> String {
        if self.named.is_empty() {
            return String::new();
        }
        format!("WITH {} ", self.named.join(", "))
    }
}

fn sources(w: &mut Writer<'_>, world: &World) -> Sources {
    let count = match w.rng.u32(..100) {
        0..=9 => 0,
        10..=59 => 1,
        60..=93 => 2,
        _ => 3,
    };
    let mut from = Sources::default();
    let mut product = 1;
    for i in 0..count {
        let table: &Table = &world.tables[w.rng.usize(..world.tables.len())];
        product *= world.rows.get(&table.name).copied().unwrap_or(1).max(1);
        if product > 3_000 {
            break;
        }
        let source = source(w, table, &format!("x{i}"), &mut from);
        if i == 0 {
            from.text = format!(" FROM {source}");
            from.only = Some(table.name.clone()).filter(|_| !is_derived(&source));
            continue;
        }
        from.only = None;
        from.text += &match w.rng.u32(..7) {
            0 => format!(", {source}"),
            1 => format!(" CROSS JOIN {source}"),
            2 if !is_derived(&source) => format!(" JOIN {source} USING (a)"),
            2 | 3 => format!(" JOIN {source} ON {}", on(w)),
            5 => format!(" RIGHT JOIN {source} ON {}", on(w)),
            6 => format!(" FULL JOIN {source} ON {}", on(w)),
            _ => format!(" LEFT JOIN {source} ON {}", on(w)),
        };
    }
    from
}

/// A table, or now and then a query of one.
fn source(w: &mut Writer<'_>, table: &Table, alias: &str, from: &mut Sources) -> String {
    if table.places().len() > 1 || w.chance(85) {
        w.scope.extend(visible(table, Some(alias)));
        from.ties.extend(table.ties(&format!("{alias}.")));
        return format!("{} AS {alias}", table.name);
    }
    let derived = derived(w, table, alias);
    w.scope.extend(derived.columns);
    from.ties.push(derived.tie);
    if w.chance(50) {
        return format!("({}) AS {alias}", derived.text);
    }
    from.named.push(format!("w{alias} AS ({})", derived.text));
    format!("w{alias} AS {alias}")
}

/// Two or three queries, and what UNION and the like make of them.
fn compound(w: &mut Writer<'_>, world: &World, check: &mut Check) -> String {
    let width = w.rng.usize(1..4);
    let mut sql = String::new();
    for i in 0..w.rng.usize(2..4) {
        w.scope.clear();
        let table = &world.tables[w.rng.usize(..world.tables.len())];
        w.scope.extend(visible(table, None));
        let columns: Vec<String> = (0..width)
            .map(|_| match w.chance(70) {
                true => w.leaf(),
                false => w.expression(2),
            })
            .collect();
        if i > 0 {
            let union = [" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT "];
            sql += w.pick(&union);
        }
        let filter = filter(w);
        sql += &format!("SELECT {} FROM {}{filter}", columns.join(", "), table.name);
    }
    check.loose = true;
    if w.chance(50) {
        order_by_all(w, &mut sql, width, check);
    }
    sql
}

fn is_derived(source: &str) -> bool {
    source.starts_with(['(', 'w'])
}

fn on(w: &mut Writer<'_>) -> String {
    if w.chance(75) {
        let operator = w.pick(&["=", "=", "=", "<", "IS"]);
        return format!("{} {operator} {}", w.leaf(), w.leaf());
    }
    w.condition(2)
}

fn plain(w: &mut Writer<'_>, from: &Sources, filter: &str, check: &mut Check) -> String {
    let Sources {
        text: from, ties, ..
    } = from;
    let distinct = w.chance(15);
    let width = w.rng.usize(1..5);
    let columns: Vec<String> = (0..width)
        .map(|i| match w.rng.u32(..10) {
            0 if !from.is_empty() && !distinct => "*".into(),
            1 => format!("{} AS n{i}", w.expression(2)),
            2..=4 => w.expression(3),
            5 | 6 => w.expression(1),
            _ => w.leaf(),
        })
        .collect();
    let star = columns.iter().any(|column| column == "*");
    let verb = if distinct {
        "SELECT DISTINCT"
    } else {
        "SELECT"
    };
    let mut sql = format!("{verb} {}{from}{filter}", columns.join(", "));
    if distinct {
        check.loose = true;
        if w.chance(50) {
            order_by_all(w, &mut sql, width, check);
        }
        return sql;
    }
    if ties.is_empty() {
        return sql;
    }
    if w.chance(45) {
        let mut keys: Vec<String> = (0..w.rng.usize(1..3))
            .map(|_| {
                let key = match w.rng.u32(..3) {
                    0 if !star => w.rng.usize(1..=width).to_string(),
                    1 => not_a_position(w.expression(2)),
                    _ => not_a_position(w.leaf()),
                };
                let order = w.pick(&["", "", " DESC", " ASC", " NULLS LAST", " DESC NULLS FIRST"]);
                format!("{key}{order}")
            })
            .collect();
        keys.extend(ties.iter().cloned());
        sql += &format!(" ORDER BY {}", keys.join(", "));
        check.total_order = true;
        limit(w, &mut sql, 40);
    }
    sql
}

fn grouped(w: &mut Writer<'_>, from: &str, filter: &str, check: &mut Check) -> String {
    check.loose = true;
    let keys: Vec<String> = (0..w.rng.usize(..3))
        .map(|_| {
            if w.chance(75) {
                w.leaf()
            } else {
                w.expression(2)
            }
        })
        .map(not_a_position)
        .collect();
    let mut columns = keys.clone();
    for _ in 0..w.rng.usize(1..4) {
        columns.push(aggregate(w));
    }
    let mut sql = format!("SELECT {}{from}{filter}", columns.join(", "));
    if !keys.is_empty() {
        sql += &format!(" GROUP BY {}", keys.join(", "));
        if w.chance(35) {
            let operator = w.pick(&["<", ">", "=", "IS NOT", "<="]);
            sql += &format!(" HAVING {} {operator} {}", aggregate(w), w.literal());
        }
        if w.chance(50) {
            order_by_all(w, &mut sql, columns.len(), check);
        }
    }
    sql
}

/// An integer in ORDER BY or GROUP BY would be taken for a column's position;
/// SQLite's parser makes 0 of some expressions, whatever a person meant.
fn not_a_position(key: String) -> String {
    let number = |first: char| matches!(first, '-' | '?') || first.is_ascii_digit();
    let bare = key.trim_start_matches('(');
    if key.contains("IN ()") || key.contains(" AND ") {
        return format!("({key}) || ''");
    }
    if bare.starts_with(number) && (bare == key || key.contains("COLLATE")) {
        return format!("{key} + 0");
    }
    key
}

fn aggregate(w: &mut Writer<'_>) -> String {
    match w.rng.u32(..10) {
        0 | 1 => "count(*)".into(),
        2 => format!("count({})", w.leaf()),
        3 => match w.rng.u32(..3) {
            0 => format!("count(DISTINCT {})", w.leaf()),
            1 => format!("count(*) FILTER (WHERE {})", w.condition(2)),
            _ => format!(
                "group_concat({}, '/' ORDER BY {} DESC)",
                w.pick(&["1", "'x'", "2.5"]),
                w.leaf()
            ),
        },
        4 | 5 => format!("sum({})", w.leaf()),
        6 => format!("{}({})", w.pick(&["total", "avg"]), w.leaf()),
        7 => format!("min({})", w.expression(1)),
        8 => format!("max({})", w.expression(1)),
        _ => format!(
            "{}({}) {} {}",
            w.pick(&["max", "min"]),
            w.leaf(),
            w.pick(&["+", "||", "="]),
            w.literal()
        ),
    }
}

/// Orders by every column of the answer, so that ties are equal rows.
fn order_by_all(w: &mut Writer<'_>, sql: &mut String, width: usize, check: &mut Check) {
    let mut columns: Vec<usize> = (1..=width).collect();
    w.rng.shuffle(&mut columns);
    let keys: Vec<String> = columns
        .iter()
        .map(|column| format!("{column}{}", w.pick(&["", " DESC"])))
        .collect();
    *sql += &format!(" ORDER BY {}", keys.join(", "));
    check.total_order = true;
    limit(w, sql, 30);
}

fn limit(w: &mut Writer<'_>, sql: &mut String, percent: u32) {
    if w.chance(percent) {
        *sql += &format!(" LIMIT {}", w.pick(&["0", "1", "2", "5", "-1", "1+2"]));
        if w.chance(40) {
            *sql += &format!(" OFFSET {}", w.pick(&["0", "1", "3", "-1"]));
        }
    }
}
