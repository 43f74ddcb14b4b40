//! Rows in columns: column, table and markdown. All rows are read before the first is shown,
//! to know how wide they are.

use std::io::{self, Write};

use fulgurite::Rows;
use fulgurite::types::ValueRef;

use super::{Look, Mode, Shown, for_people, or_answer};

pub fn show(look: &Look, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let mut cells: Vec<Vec<String>> = Vec::new();
    while let Some(row) = or_answer!(rows.next()) {
        let values = (0..columns.len()).map(|i| row.get_ref(i).unwrap_or(ValueRef::Null));
        // One line a row, so that the lines stay what they are.
        cells.push(
            values
                .map(|value| for_people(value, look.null()).replace('\n', "\\n"))
                .collect(),
        );
    }
    if cells.is_empty() {
        return Ok(Ok(()));
    }
    let names: Vec<String> = columns.iter().map(|name| super::visible(name)).collect();
    let widths: Vec<Width> = (0..columns.len())
        .map(|i| Width::of(look, i, &names, &cells))
        .collect();
    write(look, &names, &cells, &widths, out).map(Ok)
}

struct Width {
    chars: usize,
    to_the_right: bool,
}

impl Width {
    fn of(look: &Look, column: usize, names: &[String], cells: &[Vec<String>]) -> Self {
        let asked = look.widths.get(column).copied().unwrap_or(0);
        let chars = |text: &String| text.chars().count();
        let name = names.get(column).filter(|_| look.has_headers());
        let own = cells.iter().filter_map(|row| row.get(column)).chain(name);
        Self {
            chars: match asked {
                0 => own.map(chars).max().unwrap_or(0),
                asked => asked.unsigned_abs() as usize,
            },
            to_the_right: asked < 0,
        }
    }

    fn pad(&self, text: &str) -> String {
        let width = self.chars;
        match self.to_the_right {
            true => format!("{text:>width$.width$}"),
            false => format!("{text:<width$.width$}"),
        }
    }

    fn center(&self, text: &str) -> String {
        let width = self.chars;
        format!("{text:^width$.width$}")
    }

    fn line(&self, around: usize) -> String {
        "-".repeat(self.chars + around)
    }
}

fn write(
    look: &Look,
    names: &[String],
    cells: &[Vec<String>],
    widths: &[Width],
    out: &mut dyn Write,
) -> io::Result<()> {
    let all = |one: &dyn Fn(&Width) -> String| widths.iter().map(one).collect::<Vec<_>>();
    let each = |row: &[String], one: &dyn Fn(&Width, &str) -> String| {
        let pairs = widths.iter().zip(row);
        pairs
            .map(|(width, text)| one(width, text))
            .collect::<Vec<_>>()
    };
    let piped = |row: Vec<String>| format!("| {} |", row.join(" | "));
    if look.mode == Mode::Column {
        if look.has_headers() {
            writeln!(out, "{}", each(names, &Width::pad).join("  "))?;
            writeln!(out, "{}", all(&|width| width.line(0)).join("  "))?;
        }
        for row in cells {
            writeln!(out, "{}", each(row, &Width::pad).join("  "))?;
        }
        return Ok(());
    }
    let lines = all(&|width| width.line(2));
    let is_table = look.mode == Mode::Table;
    let ruler = match is_table {
        true => format!("+{}+", lines.join("+")),
        false => format!("|{}|", lines.join("|")),
    };
    if is_table {
        writeln!(out, "{ruler}")?;
    }
    // A table of Markdown has a heading, or is none.
    if look.has_headers() || !is_table {
        writeln!(out, "{}", piped(each(names, &Width::center)))?;
        writeln!(out, "{ruler}")?;
    }
    for row in cells {
        let cells = each(row, &|width, text| match is_table {
            true => width.pad(text),
            false => width.pad(&text.replace('|', "\\|")),
        });
        writeln!(out, "{}", piped(cells))?;
    }
    if is_table {
        writeln!(out, "{ruler}")?;
    }
    Ok(())
}
