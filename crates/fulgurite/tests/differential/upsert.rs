//! ON CONFLICT clauses of INSERT.

use crate::expression::{Visible, Writer};
use crate::schema::Table;

/// Draws one, over the scope of the table's columns.
pub fn on_conflict(w: &mut Writer<'_>, table: &Table) -> String {
    let at = |w: &mut Writer<'_>| w.rng.usize(..table.columns.len());
    let key = match table.columns.iter().find(|column| column.rowid) {
        Some(column) if w.chance(70) => column.name.clone(),
        _ => table.columns[at(w)].name.clone(),
    };
    let target = match w.rng.u32(..4) {
        0 => String::new(),
        _ => format!(" ({key})"),
    };
    if w.chance(25) {
        return format!(" ON CONFLICT{target} DO NOTHING");
    }
    // Where the rowid is in the way, SQLite's new values are not converted yet.
    let converted = table.columns.iter().all(|column| !column.rowid);
    if converted {
        let new = table.columns.iter().map(|column| Visible {
            text: format!("excluded.{}", column.name),
        });
        w.scope.extend(new);
    }
    let sets: Vec<String> = (0..w.rng.usize(1..3))
        .map(|_| {
            let column = &table.columns[at(w)];
            let value = match w.rng.u32(..3) {
                _ if column.rowid => column.name.clone(),
                0 if converted => format!("excluded.{}", table.columns[at(w)].name),
                _ => w.expression(2),
            };
            format!("{} = {value}", column.name)
        })
        .collect();
    let filter = if w.chance(40) {
        format!(" WHERE {}", w.condition(2))
    } else {
        String::new()
    };
    w.scope
        .retain(|column| !column.text.starts_with("excluded."));
    format!(
        " ON CONFLICT{target} DO UPDATE SET {}{filter}",
        sets.join(", ")
    )
}
