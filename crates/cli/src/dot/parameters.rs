//! `.parameter`: values of parameters in statements, by their names.

use std::io::{self, Write};

use fulgurite::Connection;
use fulgurite::types::{Value, ValueRef};

use super::usage;
use crate::shell::Shell;

pub fn run(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        ["init"] => {}
        ["clear"] => shell.parameters.clear(),
        ["list"] => {
            let width = shell
                .parameters
                .keys()
                .map(|name| name.chars().count())
                .max();
            let width = width.unwrap_or(0);
            for (name, value) in &shell.parameters {
                let literal = ValueRef::from(value).to_sql_literal();
                writeln!(shell.out, "{name:<width$} {literal}")?;
            }
        }
        ["set", name, words @ ..] if !words.is_empty() => {
            let value = value_of(&shell.connection, &words.join(" "));
            shell.parameters.insert((*name).to_owned(), value);
        }
        ["unset", name] => {
            shell.parameters.remove(*name);
        }
        _ => return usage(shell, ".parameter"),
    }
    Ok(())
}

/// What an expression comes to; where it is none, its text.
fn value_of(connection: &Connection, text: &str) -> Value {
    let found = connection.query_one(&format!("SELECT {text}"), [], |row| row.get(0));
    found.unwrap_or_else(|_| Value::Text(text.to_owned()))
}
