//! Commands of the shell itself, which begin with a dot.

use std::fs::File;
use std::io::{self, BufReader, Write};

use clap::ValueEnum;
use fulgurite::types::{Value, ValueRef};
use fulgurite::{Connection, Error, params_from_iter};

use crate::dump::{self, quoted};
use crate::output::{self, Mode};
use crate::shell::Shell;

const HELP: &str = "\
.dump [TABLE]           the database, or one table, as SQL
.help                   this list
.import FILE TABLE      append a CSV file's rows; makes the table from the heading if it is absent
.mode box|json|csv|line how results are shown
.print TEXT             show a text
.quit                   leave
.read FILE              run a script
.schema [TABLE]         the statements that made the tables
.tables [PATTERN]       tables and views, by a LIKE pattern
.timer on|off           show how long statements take
";

/// Scripts that read scripts, at most.
const DEPTH_MAX: usize = 16;

/// Runs one command line.
pub fn run(shell: &mut Shell, line: &str) -> io::Result<()> {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [".quit" | ".exit"] => {
            shell.quit();
            Ok(())
        }
        [".help"] => shell.out.write_all(HELP.as_bytes()),
        [".print", rest @ ..] => writeln!(shell.out, "{}", rest.join(" ")),
        [".timer", on @ ("on" | "off")] => {
            shell.timer = *on == "on";
            Ok(())
        }
        [".mode", name] => match Mode::from_str(name, true) {
            Ok(mode) => {
                shell.mode = mode;
                Ok(())
            }
            Err(_) => shell.fail_with(format!("no mode {name:?}: box, json, csv or line")),
        },
        [".tables"] => tables(shell, "%"),
        [".tables", pattern] => tables(shell, pattern),
        [".schema"] => schema(shell, None),
        [".schema", table] => schema(shell, Some(table)),
        [".dump"] => dump_to_out(shell, None),
        [".dump", table] => dump_to_out(shell, Some(table)),
        [".read", path] => read(shell, path),
        [".import", path, table] => match import(&shell.connection, path, table)? {
            Ok(_) => Ok(()),
            Err(e) => shell.fail(&e, None),
        },
        [command, ..] => shell.fail_with(format!(
            "no command {command} with these arguments; .help lists them"
        )),
        [] => Ok(()),
    }
}

/// The words of a line; quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.trim().trim_end_matches(';').chars().peekable();
    while let Some(&first) = chars.peek() {
        if first.is_whitespace() {
            chars.next();
            continue;
        }
        let word: String = if first == '\'' || first == '"' {
            chars.next();
            chars.by_ref().take_while(|&c| c != first).collect()
        } else {
            std::iter::from_fn(|| chars.next_if(|c| !c.is_whitespace())).collect()
        };
        words.push(word);
    }
    words
}

fn tables(shell: &mut Shell, pattern: &str) -> io::Result<()> {
    let sql = "SELECT name FROM sqlite_schema
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name LIKE ?1 ORDER BY name";
    let names = shell.connection.prepare(sql).and_then(|mut stmt| {
        let names = stmt.query_map([pattern], |row| row.get::<_, String>(0))?;
        names.collect::<fulgurite::Result<Vec<_>>>()
    });
    match names {
        Ok(names) if shell.mode == Mode::Json => {
            let rows: Vec<Vec<Value>> = names.into_iter().map(|n| vec![Value::Text(n)]).collect();
            output::show_values(shell.mode, &["name"], &rows, &mut shell.out)
        }
        Ok(names) => names
            .iter()
            .try_for_each(|name| writeln!(shell.out, "{name}")),
        Err(e) => shell.fail(&e, None),
    }
}

fn schema(shell: &mut Shell, table: Option<&str>) -> io::Result<()> {
    match dump::schema(&shell.connection, table) {
        Ok(statements) => statements
            .iter()
            .try_for_each(|s| writeln!(shell.out, "{};", s.sql)),
        Err(e) => shell.fail(&e, None),
    }
}

fn dump_to_out(shell: &mut Shell, table: Option<&str>) -> io::Result<()> {
    match dump::dump(&shell.connection, table, &mut shell.out)? {
        Ok(()) => Ok(()),
        Err(e) => shell.fail(&e, None),
    }
}

fn read(shell: &mut Shell, path: &str) -> io::Result<()> {
    if shell.depth == DEPTH_MAX {
        return shell.fail_with(format!(
            "{path} is not read: scripts are {DEPTH_MAX} deep already"
        ));
    }
    match open_file(path) {
        Ok(file) => {
            shell.depth += 1;
            let outcome = shell.run_reader(&mut BufReader::new(file));
            shell.depth -= 1;
            outcome
        }
        Err(e) => shell.fail_with(format!("cannot open {path}: {e}")),
    }
}

/// A file to read; a folder can be opened, but fails later and without its name.
fn open_file(path: &str) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

/// Appends the rows of a CSV file, all or none; how many there were.
fn import(connection: &Connection, path: &str, table: &str) -> io::Result<fulgurite::Result<u64>> {
    let file = match open_file(path) {
        Ok(file) => file,
        Err(e) => return Ok(Err(failure(format!("cannot open {path}: {e}")))),
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file);
    let savepoint = "SAVEPOINT fulgurite_import";
    if let Err(e) = connection.execute_batch(savepoint) {
        return Ok(Err(e));
    }
    let outcome = append(connection, &mut reader, table);
    let end = match outcome {
        Ok(_) => "RELEASE fulgurite_import",
        Err(_) => "ROLLBACK TO fulgurite_import; RELEASE fulgurite_import",
    };
    Ok(connection.execute_batch(end).and(outcome))
}

fn append(
    connection: &Connection,
    reader: &mut csv::Reader<File>,
    table: &str,
) -> fulgurite::Result<u64> {
    let mut records = reader.byte_records();
    if !connection.table_exists(None, table)? {
        let heading = match records.next() {
            Some(Ok(heading)) => heading,
            Some(Err(e)) => return Err(failure(e.to_string())),
            None => {
                return Err(failure(format!(
                    "no table {table}, and no heading to make it from"
                )));
            }
        };
        let columns: Vec<String> = heading
            .iter()
            .map(|c| format!("{} TEXT", quoted(&String::from_utf8_lossy(c))))
            .collect();
        connection.execute_batch(&format!(
            "CREATE TABLE {} ({})",
            quoted(table),
            columns.join(", ")
        ))?;
    }
    let width = connection
        .prepare(&format!("SELECT * FROM {}", quoted(table)))?
        .column_count();
    let marks = vec!["?"; width].join(", ");
    let mut insert =
        connection.prepare(&format!("INSERT INTO {} VALUES ({marks})", quoted(table)))?;
    let mut rows = 0;
    for record in records {
        let record = record.map_err(|e| failure(e.to_string()))?;
        if record.len() != width {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(failure(format!(
                "line {line} has {} values, {table} has {width} columns",
                record.len()
            )));
        }
        let values = record
            .iter()
            .map(|field| fulgurite::types::ToSqlOutput::Borrowed(ValueRef::Text(field)));
        insert.execute(params_from_iter(values))?;
        rows += 1;
    }
    Ok(rows)
}

fn failure(message: String) -> Error {
    Error::SqliteFailure(
        fulgurite::ffi::Error::new(fulgurite::ffi::SQLITE_ERROR),
        Some(message),
    )
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words(".read  'my file.sql' "), [".read", "my file.sql"]);
        assert_eq!(words(".import \"a b\" t;"), [".import", "a b", "t"]);
        assert_eq!(words(".print ''"), [".print", ""]);
    }
}
