//! Tables drawn with lines; numbers to the right.

use std::io::{self, IsTerminal, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use fulgurite::Rows;
use fulgurite::types::{Value, ValueRef};

use super::{Look, Shown, for_people, is_number, or_answer};

pub fn show(look: &Look, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let mut table = Drawing::new(columns, look.null(), look.has_headers());
    while let Some(row) = or_answer!(rows.next()) {
        table.add((0..columns.len()).map(|i| row.get_ref(i).unwrap_or(ValueRef::Null)));
    }
    table.draw(out).map(Ok)
}

pub fn show_values(
    look: &Look,
    columns: &[String],
    rows: &[Vec<Value>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = Drawing::new(columns, look.null(), look.has_headers());
    for row in rows {
        table.add(row.iter().map(ValueRef::from));
    }
    table.draw(out)
}

/// A table in the making. A result without rows is not drawn.
struct Drawing<'l> {
    table: Table,
    null: &'l str,
    empty: bool,
}

impl<'l> Drawing<'l> {
    fn new(columns: &[String], null: &'l str, has_headers: bool) -> Self {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        if has_headers {
            table.set_header(columns.iter().map(|c| super::visible(c)));
        }
        if io::stdout().is_terminal() {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        Self {
            table,
            null,
            empty: true,
        }
    }

    fn add<'a>(&mut self, values: impl Iterator<Item = ValueRef<'a>>) {
        self.empty = false;
        let null = self.null;
        self.table.add_row(values.map(|value| {
            let alignment = if is_number(value) {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            };
            Cell::new(for_people(value, null)).set_alignment(alignment)
        }));
    }

    fn draw(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.empty {
            Ok(())
        } else {
            writeln!(out, "{}", self.table)
        }
    }
}
