//! Commands of the shell itself, which begin with a dot.
//!
//! A name may be cut short where it stays clear which one is meant. Arguments are words;
//! quotes hold words together.

mod files;
mod import;
mod parameters;
mod schema;
mod settings;

use std::fs::File;
use std::io::{self, Write};

use crate::shell::Shell;

/// A command: its name, its arguments as `.help` shows them, what it does, and how.
type Command = (
    &'static str,
    &'static str,
    &'static str,
    fn(&mut Shell, &[&str]) -> io::Result<()>,
);

const COMMANDS: [Command; 35] = [
    (
        ".backup",
        "[DB] FILE",
        "copy the database into a file",
        files::backup,
    ),
    (".bail", "on|off", "stop at the first error", settings::bail),
    (".cd", "FOLDER", "go to another folder", files::cd),
    (
        ".changes",
        "on|off",
        "show how many rows statements change",
        settings::changes,
    ),
    (
        ".databases",
        "",
        "the files that are open",
        schema::databases,
    ),
    (
        ".dump",
        "[PATTERN]",
        "the database, or tables by a LIKE pattern, as SQL",
        schema::dump,
    ),
    (
        ".echo",
        "on|off",
        "show statements before they run",
        settings::echo,
    ),
    (
        ".exit",
        "[CODE]",
        "leave with an exit status",
        settings::exit,
    ),
    (
        ".headers",
        "on|off",
        "show the columns' names",
        settings::headers,
    ),
    (".help", "[PATTERN]", "this list", help),
    (
        ".import",
        "[--csv] [--ascii] [--skip N] FILE TABLE",
        "append a file's rows; makes the table from the heading if it is absent",
        import::run,
    ),
    (".indexes", "[TABLE]", "names of indexes", schema::indexes),
    (".indices", "[TABLE]", "the same", schema::indexes),
    (
        ".mode",
        "MODE [TABLE]",
        "how results are shown: ascii, box, column, csv, html, insert, json, line, list, markdown, objects, quote, table, tabs",
        settings::mode,
    ),
    (
        ".nullvalue",
        "TEXT",
        "what stands for NULL",
        settings::null_value,
    ),
    (
        ".once",
        "FILE",
        "the next result goes to a file",
        files::once,
    ),
    (
        ".open",
        "[--readonly] [FILE]",
        "close the database and open another one",
        files::open,
    ),
    (
        ".output",
        "[FILE]",
        "results go to a file, or to standard output again",
        files::output,
    ),
    (
        ".parameter",
        "init|list|set NAME VALUE|unset NAME|clear",
        "values of parameters in statements",
        parameters::run,
    ),
    (".print", "TEXT", "show a text", settings::print),
    (
        ".prompt",
        "MAIN [CONTINUE]",
        "what the prompt says",
        settings::prompt,
    ),
    (".quit", "", "leave", settings::quit),
    (".read", "FILE", "run a script", files::read),
    (
        ".restore",
        "[DB] FILE",
        "replace all that is there by a copy",
        files::restore,
    ),
    (
        ".save",
        "FILE",
        "copy the database into a file",
        files::backup,
    ),
    (
        ".schema",
        "[PATTERN]",
        "the statements that made the tables",
        schema::schema,
    ),
    (
        ".separator",
        "TEXT [ROW]",
        "what stands between values, and behind rows",
        settings::separator,
    ),
    (".shell", "COMMAND", "run a program", files::shell),
    (".show", "", "these settings", settings::show),
    (".system", "COMMAND", "the same as .shell", files::shell),
    (
        ".tables",
        "[PATTERN]",
        "tables and views, by a LIKE pattern",
        schema::tables,
    ),
    (
        ".timeout",
        "MS",
        "how long to wait for locks",
        settings::timeout,
    ),
    (
        ".timer",
        "on|off",
        "show how long statements take",
        settings::timer,
    ),
    (".version", "", "the program's version", settings::version),
    (
        ".width",
        "N…",
        "widths of columns; below 0: to the right",
        settings::width,
    ),
];

pub use settings::unescaped;

/// Runs a script.
pub fn read(shell: &mut Shell, path: &str) -> io::Result<()> {
    files::read(shell, &[path])
}

/// Runs one command line.
pub fn run(shell: &mut Shell, line: &str) -> io::Result<()> {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [name, arguments @ ..] = words.as_slice() else {
        return Ok(());
    };
    let mut found = COMMANDS.iter().filter(|it| it.0.starts_with(name));
    let exact = COMMANDS.iter().find(|it| it.0 == *name);
    match exact.or_else(|| found.next().filter(|_| name.len() > 1)) {
        Some((_, _, _, command)) => command(shell, arguments),
        None => shell.fail_with(format!("no command {name}; .help lists them")),
    }
}

/// What a command answers to arguments that it does not take.
fn usage(shell: &mut Shell, name: &str) -> io::Result<()> {
    let arguments = COMMANDS
        .iter()
        .find(|it| it.0 == name)
        .map_or("", |it| it.1);
    shell.fail_with(format!("usage: {name} {arguments}"))
}

fn help(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let wanted = arguments
        .first()
        .map_or("", |it| it.trim_start_matches('.'));
    let mut lines = COMMANDS.iter().filter(|it| it.0.contains(wanted));
    lines.try_for_each(|(name, arguments, what, _)| {
        let usage = format!("{name} {arguments}");
        writeln!(shell.out, "{usage:<28} {what}")
    })
}

/// The words of a line; quotes hold words together, and within double ones a backslash
/// stands before a quote, or for a tab, a line feed and the like.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.trim().trim_end_matches(';').chars().peekable();
    while let Some(&first) = chars.peek() {
        if first.is_whitespace() {
            chars.next();
            continue;
        }
        let mut word = String::new();
        if first == '\'' || first == '"' {
            chars.next();
            while let Some(next) = chars.next() {
                match next {
                    '\\' if first == '"' => word.extend(escaped(chars.next())),
                    '\'' if first == '\'' && chars.next_if_eq(&'\'').is_some() => word.push('\''),
                    _ if next == first => break,
                    _ => word.push(next),
                }
            }
        } else {
            word.extend(std::iter::from_fn(|| chars.next_if(|c| !c.is_whitespace())));
        }
        words.push(word);
    }
    words
}

fn escaped(letter: Option<char>) -> Option<char> {
    Some(match letter? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        other => other,
    })
}

/// A file to read; a folder can be opened, but fails later and without its name.
fn open_file(path: &str) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

/// What `on` and `off` mean.
fn switch(word: &str) -> Option<bool> {
    match word {
        "on" | "yes" | "true" | "1" => Some(true),
        "off" | "no" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words(".read  'my file.sql' "), [".read", "my file.sql"]);
        assert_eq!(words(".import \"a b\" t;"), [".import", "a b", "t"]);
        assert_eq!(words(".print ''"), [".print", ""]);
        assert_eq!(
            words(".print 'it''s' \"a\\t\\\"b\""),
            [".print", "it's", "a\t\"b"]
        );
    }

    #[test]
    fn commands_are_in_order() {
        assert!(COMMANDS.is_sorted_by_key(|it| it.0));
    }
}
