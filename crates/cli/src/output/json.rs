//! One JSON object a statement: `{"columns":[…],"rows":[[…]]}` or
//! `{"error":{"code":…,"name":…,"message":…}}`.
//!
//! Integers and reals are numbers (infinities `9e999`, as SQLite writes them),
//! text is a string (bytes that are not UTF-8 become U+FFFD), NULL is null and a
//! blob `{"blob":"hex"}`. An object is written when its statement has ended, so
//! that it is either a result or an error.

use std::io::{self, Write};

use fulgurite::ffi::code_name;
use fulgurite::types::{Value, ValueRef};
use fulgurite::{Error, Rows};

use super::{Shown, hex, or_answer};

pub fn show(columns: &[String], rows: &mut Rows<'_>, out: &mut dyn Write) -> Shown {
    let mut object = Object::new(columns);
    while let Some(row) = or_answer!(rows.next()) {
        object.row((0..columns.len()).map(|i| row.get_ref(i).unwrap_or(ValueRef::Null)));
    }
    object.write(out).map(Ok)
}

pub fn show_values(columns: &[String], rows: &[Vec<Value>], out: &mut dyn Write) -> io::Result<()> {
    let mut object = Object::new(columns);
    for row in rows {
        object.row(row.iter().map(ValueRef::from));
    }
    object.write(out)
}

/// A statement without a result.
pub fn write_empty(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, r#"{{"columns":[],"rows":[]}}"#)?;
    out.flush()
}

pub fn write_error(error: &Error, out: &mut dyn Write) -> io::Result<()> {
    let code = error.result_code();
    let fields =
        serde_json::json!({ "code": code, "name": code_name(code), "message": error.message() });
    // By hand, because a map would put the names in another order.
    writeln!(
        out,
        r#"{{"error":{{"code":{},"name":{},"message":{}}}}}"#,
        fields["code"], fields["name"], fields["message"]
    )?;
    out.flush()
}

struct Object {
    text: String,
    rows: usize,
}

impl Object {
    fn new(columns: &[String]) -> Self {
        let mut text = String::from(r#"{"columns":["#);
        for (i, column) in columns.iter().enumerate() {
            push_comma(&mut text, i);
            push_string(&mut text, column);
        }
        text.push_str(r#"],"rows":["#);
        Self { text, rows: 0 }
    }

    fn row<'a>(&mut self, values: impl Iterator<Item = ValueRef<'a>>) {
        push_comma(&mut self.text, self.rows);
        self.rows += 1;
        self.text.push('[');
        for (i, value) in values.enumerate() {
            push_comma(&mut self.text, i);
            push_value(&mut self.text, value);
        }
        self.text.push(']');
    }

    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.text.push_str("]}\n");
        out.write_all(self.text.as_bytes())?;
        out.flush()
    }
}

pub fn push_comma(text: &mut String, i: usize) {
    if i > 0 {
        text.push(',');
    }
}

pub fn push_string(text: &mut String, s: &str) {
    text.push_str(&serde_json::Value::from(s).to_string());
}

pub fn push_value(text: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => text.push_str("null"),
        ValueRef::Integer(i) => text.push_str(&i.to_string()),
        ValueRef::Real(r) => match serde_json::Number::from_f64(r) {
            Some(number) => text.push_str(&number.to_string()),
            None => text.push_str(if r > 0.0 { "9e999" } else { "-9e999" }),
        },
        ValueRef::Text(t) => push_string(text, &String::from_utf8_lossy(t)),
        ValueRef::Blob(b) => {
            text.push_str(r#"{"blob":""#);
            text.push_str(&hex(b));
            text.push_str(r#""}"#);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value() {
        let row = vec![
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(1.0),
            Value::Real(f64::INFINITY),
            Value::Text("a\"b\u{1}é".into()),
            Value::Blob(vec![0, 0xab]),
        ];
        let columns: Vec<String> = ["n", "i", "r", "f", "t\"", "b"].map(String::from).to_vec();
        let mut out = Vec::new();
        show_values(&columns, &[row], &mut out).expect("writing to memory");
        assert_eq!(
            String::from_utf8_lossy(&out),
            concat!(
                r#"{"columns":["n","i","r","f","t\"","b"],"#,
                r#""rows":[[null,-9223372036854775808,1.0,9e999,"a\"b\u0001é",{"blob":"00ab"}]]}"#,
                "\n"
            )
        );
    }
}
