// Values of JSON as parameters and out of columns, written once. Included into modules in
// which `db` is either crate.

use std::fmt::Write as _;

use db::{Connection, Result};
use serde_json::{Value as Json, json};

pub fn run() -> String {
    let mut out = String::new();
    if let Err(e) = values(&mut out) {
        writeln!(out, "ended with {e:?}").expect("writing to a String");
    }
    out
}

fn values(out: &mut String) -> Result<()> {
    let db = Connection::open_in_memory()?;
    for value in [
        json!(null), json!(true), json!(7), json!(-9223372036854775808_i64), json!(18446744073709551615_u64),
        json!(0.5), json!(2.0), json!("te\"xt"), json!([1, "a", null]), json!({"k": [1.5], "é": {}}), json!(""),
    ] {
        let (text, kind): (Option<String>, String) =
            db.query_row("SELECT CAST(?1 AS TEXT), typeof(?1)", [&value], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let back = db.query_row("SELECT ?1", [&value], |row| row.get::<_, Json>(0));
        writeln!(out, "{text:?} {kind} {back:?}").expect("writing to a String");
    }
    for sql in ["'{\"a\": [1, 2]}'", "x'5b315d'", "'no json'", "''", "1e999", "NULL", "x'ff'"] {
        let found = db.query_row(&format!("SELECT {sql}"), [], |row| row.get::<_, Json>(0));
        writeln!(out, "{sql} {found:?}").expect("writing to a String");
    }
    Ok(())
}
