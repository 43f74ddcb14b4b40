//! One line a value, an empty line between rows.

use std::io::Write;

use fulgurite::Rows;
use fulgurite::types::ValueRef;

use super::{Look, Shown, for_people, or_answer};

pub fn show(look: &Look, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let width = columns.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let mut first = true;
    while let Some(row) = or_answer!(rows.next()) {
        if !std::mem::take(&mut first) {
            writeln!(out)?;
        }
        for (i, column) in columns.iter().enumerate() {
            writeln!(
                out,
                "{column:>width$} = {}",
                for_people(row.get_ref(i).unwrap_or(ValueRef::Null), look.null())
            )?;
        }
    }
    Ok(Ok(()))
}
