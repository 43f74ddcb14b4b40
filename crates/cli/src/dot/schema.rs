//! Commands that tell of the schema.

use std::io::{self, Write};

use fulgurite::types::Value;

use super::usage;
use crate::dump;
use crate::output::{self, Mode};
use crate::shell::Shell;

/// Shows names, one a line.
fn names(shell: &mut Shell, sql: &str, pattern: &str) -> io::Result<()> {
    let names = shell.connection.prepare(sql).and_then(|mut stmt| {
        let names = stmt.query_map([pattern], |row| row.get::<_, String>(0))?;
        names.collect::<fulgurite::Result<Vec<_>>>()
    });
    match names {
        Ok(names) if shell.look.mode == Mode::Objects => {
            let rows: Vec<Vec<Value>> = names.into_iter().map(|n| vec![Value::Text(n)]).collect();
            output::show_values(&shell.look, &["name"], &rows, &mut shell.out)
        }
        Ok(names) => names
            .iter()
            .try_for_each(|name| writeln!(shell.out, "{name}")),
        Err(e) => shell.fail(&e, None),
    }
}

pub fn tables(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let sql = "SELECT name FROM sqlite_schema
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name LIKE ?1 ORDER BY name";
    match arguments {
        [] => names(shell, sql, "%"),
        [pattern] => names(shell, sql, pattern),
        _ => usage(shell, ".tables"),
    }
}

pub fn indexes(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let sql =
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name LIKE ?1 ORDER BY name";
    match arguments {
        [] => names(shell, sql, "%"),
        [table] => names(shell, sql, table),
        _ => usage(shell, ".indexes"),
    }
}

pub fn schema(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let pattern = match arguments {
        [] => None,
        [pattern] => Some(*pattern),
        _ => return usage(shell, ".schema"),
    };
    match dump::schema(&shell.connection, pattern) {
        Ok(statements) => statements
            .iter()
            .try_for_each(|s| writeln!(shell.out, "{};", s.sql)),
        Err(e) => shell.fail(&e, None),
    }
}

pub fn dump(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let pattern = match arguments {
        [] => None,
        [pattern] => Some(*pattern),
        _ => return usage(shell, ".dump"),
    };
    match dump::dump(&shell.connection, pattern, &mut shell.out)? {
        Ok(()) => Ok(()),
        Err(e) => shell.fail(&e, None),
    }
}

pub fn databases(shell: &mut Shell, _: &[&str]) -> io::Result<()> {
    let access = match shell.connection.is_readonly("main") {
        Ok(true) => "r/o",
        Ok(false) => "r/w",
        Err(e) => return shell.fail(&e, None),
    };
    let path = shell.connection.path().unwrap_or_default();
    writeln!(shell.out, "main: {path:?} {access}")
}
