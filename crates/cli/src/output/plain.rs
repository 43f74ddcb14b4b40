//! Rows one after the other as they come: values between separators (list, tabs, ascii,
//! csv, quote), INSERT statements, rows of an HTML table.

use std::io::{self, Write};

use fulgurite::Rows;
use fulgurite::types::ValueRef;

use super::{Look, Mode, Shown, or_answer};
use crate::dump::as_needed;

pub fn show(look: &Look, columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let mut has_heading = !look.has_headers();
    let target = insert_target(look, columns);
    while let Some(row) = or_answer!(rows.next()) {
        if !has_heading {
            heading(look, columns, out)?;
            has_heading = true;
        }
        let values = (0..columns.len()).map(|i| row.get_ref(i).unwrap_or(ValueRef::Null));
        match look.mode {
            Mode::Html => html_row(look, "TD", values, out)?,
            Mode::Insert => {
                write!(out, "{target}")?;
                separated(
                    values.map(|value| value.to_sql_literal().into_bytes()),
                    ",",
                    out,
                )?;
                out.write_all(b");\n")?;
            }
            _ => {
                let texts = values.map(|value| text(look, value));
                separated(texts, look.separator(), out)?;
                out.write_all(look.row_separator().as_bytes())?;
            }
        }
    }
    Ok(Ok(()))
}

fn heading(look: &Look, columns: &[String], out: &mut dyn Write) -> io::Result<()> {
    let names = columns.iter().map(|name| ValueRef::Text(name.as_bytes()));
    match look.mode {
        Mode::Insert => Ok(()),
        Mode::Html => html_row(look, "TH", names, out),
        _ => {
            separated(names.map(|name| text(look, name)), look.separator(), out)?;
            out.write_all(look.row_separator().as_bytes())
        }
    }
}

fn separated(
    values: impl Iterator<Item = Vec<u8>>,
    separator: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, value) in values.enumerate() {
        if i > 0 {
            out.write_all(separator.as_bytes())?;
        }
        out.write_all(&value)?;
    }
    Ok(())
}

/// A value as the mode writes it.
fn text(look: &Look, value: ValueRef<'_>) -> Vec<u8> {
    match (look.mode, value) {
        (Mode::Quote, _) => value.to_sql_literal().into_bytes(),
        (_, ValueRef::Null) => look.null().as_bytes().to_vec(),
        (Mode::Csv, _) => csv_field(look.separator(), value.to_sql_text()),
        _ => value.to_sql_text(),
    }
}

/// A field as RFC 4180 has it, in quotes where it needs them.
fn csv_field(separator: &str, field: Vec<u8>) -> Vec<u8> {
    let ends = |byte: &u8| b"\"\r\n".contains(byte) || separator.as_bytes().contains(byte);
    if !field.is_empty() && !field.iter().any(ends) {
        return field;
    }
    let mut quoted = vec![b'"'];
    for byte in field {
        if byte == b'"' {
            quoted.push(b'"');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    quoted
}

/// An INSERT statement up to its values.
fn insert_target(look: &Look, columns: &[String]) -> String {
    let table = as_needed(&look.table);
    match look.headers {
        Some(true) => {
            let names: Vec<String> = columns.iter().map(|name| as_needed(name)).collect();
            format!("INSERT INTO {table}({}) VALUES(", names.join(","))
        }
        _ => format!("INSERT INTO {table} VALUES("),
    }
}

fn html_row<'a>(
    look: &Look,
    tag: &str,
    values: impl Iterator<Item = ValueRef<'a>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"<TR>")?;
    for value in values {
        write!(out, "<{tag}>")?;
        for byte in text(look, value) {
            match byte {
                b'<' => out.write_all(b"&lt;")?,
                b'>' => out.write_all(b"&gt;")?,
                b'&' => out.write_all(b"&amp;")?,
                b'"' => out.write_all(b"&quot;")?,
                b'\'' => out.write_all(b"&#39;")?,
                _ => out.write_all(&[byte])?,
            }
        }
        writeln!(out, "</{tag}>")?;
    }
    out.write_all(b"</TR>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        let field = |text: &str| {
            String::from_utf8(csv_field(",", text.as_bytes().to_vec())).expect("UTF-8")
        };
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"it\"\n"), "\"say \"\"it\"\"\n\"");
        // Which NULL is not.
        assert_eq!(field(""), "\"\"");
    }
}
