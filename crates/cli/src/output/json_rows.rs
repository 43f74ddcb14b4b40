//! A result as an array of objects, as the sqlite3 shell writes it: a blob is a text of one
//! character a byte. An array that its query failed to end ends there.

use std::io::Write;

use fulgurite::Rows;
use fulgurite::types::ValueRef;

use super::{Shown, json};

pub fn show(columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let names: Vec<String> = columns
        .iter()
        .map(|name| serde_json::Value::from(name.as_str()).to_string())
        .collect();
    let mut count = 0;
    let mut text = String::new();
    let outcome = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(e) => break Err(e),
        };
        text.push_str(if count == 0 { "[{" } else { ",\n{" });
        count += 1;
        for (i, name) in names.iter().enumerate() {
            json::push_comma(&mut text, i);
            text.push_str(name);
            text.push(':');
            match row.get_ref(i).unwrap_or(ValueRef::Null) {
                ValueRef::Blob(bytes) => {
                    let chars: String = bytes.iter().copied().map(char::from).collect();
                    json::push_string(&mut text, &chars);
                }
                value => json::push_value(&mut text, value),
            }
        }
        text.push('}');
        out.write_all(text.as_bytes())?;
        text.clear();
    };
    if count > 0 {
        out.write_all(b"]\n")?;
    }
    Ok(outcome)
}
