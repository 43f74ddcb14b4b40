//! Sources that are queries themselves: in FROM, or named by WITH.

use crate::expression::{Visible, Writer};
use crate::schema::Table;
use crate::statement::visible;

/// A query as a source: its text, its columns under an alias, and a column that tells
/// its rows apart.
pub struct Derived {
    pub text: String,
    pub columns: Vec<Visible>,
    pub tie: String,
}

/// Draws a query of one table whose rows one column tells apart.
pub fn derived(w: &mut Writer<'_>, table: &Table, alias: &str) -> Derived {
    let outer = std::mem::replace(&mut w.scope, visible(table, None));
    let mut columns: Vec<String> = (0..w.rng.usize(1..4))
        .map(|i| {
            let value = match w.rng.u32(..4) {
                0 => w.expression(2),
                1 => w.expression(1),
                _ => w.leaf(),
            };
            format!("{value} AS e{i}")
        })
        .collect();
    let names: Vec<String> = (0..columns.len()).map(|i| format!("e{i}")).collect();
    let (place, tie) = (table.places()[0], table.ties("").join(", "));
    columns.insert(0, format!("{place} AS k"));
    let filter = if w.chance(50) {
        format!(" WHERE {}", w.condition(2))
    } else {
        String::new()
    };
    let end = match w.rng.u32(..6) {
        0 => format!(" ORDER BY {tie} LIMIT {}", w.rng.u32(..6)),
        1 => format!(" GROUP BY {place}"),
        2 => format!(
            " ORDER BY {}, {tie}",
            w.pick(&["2", "2 DESC", &format!("{place} DESC")])
        ),
        _ => String::new(),
    };
    w.scope = outer;
    Derived {
        text: format!(
            "SELECT {} FROM {}{filter}{end}",
            columns.join(", "),
            table.name
        ),
        columns: names
            .iter()
            .map(String::as_str)
            .chain(["k"])
            .map(|name| Visible {
                text: format!("{alias}.{name}"),
            })
            .collect(),
        tie: format!("{alias}.k COLLATE BINARY"),
    }
}
