//! Comma-separated values as RFC 4180 has them: a heading, quotes where needed,
//! NULL as nothing.

use std::io::{self, Write};

use fulgurite::Rows;
use fulgurite::types::ValueRef;

use super::{Shown, or_answer};

pub fn show(columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::Any(b'\n'))
        .from_writer(out);
    writer.write_record(columns).map_err(io_error)?;
    while let Some(row) = or_answer!(rows.next()) {
        for i in 0..columns.len() {
            let value = row.get_ref(i).unwrap_or(ValueRef::Null);
            writer.write_field(value.to_sql_text()).map_err(io_error)?;
        }
        writer.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    writer.flush().map(Ok)
}

fn io_error(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    }
}
