//! Errors, for people and for programs.

use std::io::{self, Write};

use fulgurite::Error;
use fulgurite::ffi::code_name;

use crate::output::{Mode, json};

/// Where a failed statement came from.
pub struct Place<'a> {
    /// The statement's text.
    pub sql: &'a str,
    /// Line of the script on which it starts, from 1; 0 where there is no script.
    pub line: usize,
}

/// Says that something failed: a JSON object among the results, or text on
/// standard error.
pub fn failure(
    mode: Mode,
    error: &Error,
    place: Option<&Place<'_>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if mode == Mode::Objects {
        return json::write_error(error, out);
    }
    // What was printed before comes first, also on a terminal.
    out.flush()?;
    say(&text(error, place));
    Ok(())
}

/// Writes to standard error, which may be full or gone: the results go on without it,
/// and the exit status says that something failed.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn text(error: &Error, place: Option<&Place<'_>>) -> String {
    let mut text = String::from("Error");
    if let Some(Place {
        line: line @ 1.., ..
    }) = place
    {
        text.push_str(&format!(" near line {line}"));
    }
    text.push_str(&format!(
        ": {} ({})\n",
        error.message(),
        code_name(error.result_code())
    ));
    if let Some(place) = place {
        let sql = match error {
            Error::SqlInputError { sql, .. } => sql.as_str(),
            _ => place.sql,
        };
        text.push_str(
            &error
                .offset()
                .map(|offset| caret(sql, offset))
                .unwrap_or_default(),
        );
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!("  hint: {hint}\n"));
    }
    text
}

/// Columns shown on either side of the place.
const CONTEXT: usize = 60;

/// The line of `sql` that holds byte `offset`, with a caret under it.
fn caret(sql: &str, offset: usize) -> String {
    let (Some(before), Some(after)) = (sql.get(..offset), sql.get(offset..)) else {
        return String::new();
    };
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let skipped = before.chars().count().saturating_sub(CONTEXT);
    let before: String = before.chars().skip(skipped).map(printable).collect();
    let before = if skipped == 0 {
        before.trim_start()
    } else {
        &before
    };
    let after: String = after.chars().take(CONTEXT).map(printable).collect();
    format!(
        "  {before}{}\n  {}^\n",
        after.trim_end(),
        " ".repeat(before.chars().count())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_place() {
        assert_eq!(
            caret("SELECT totl\nFROM t", 7),
            "  SELECT totl\n         ^\n"
        );
        assert_eq!(
            caret("SELECT 1,\n  'é' ox FROM t", 17),
            "  'é' ox FROM t\n      ^\n"
        );
        assert_eq!(caret("SELECT", 6), "  SELECT\n        ^\n");
        assert_eq!(caret("SELECT", 99), "");
        assert_eq!(caret("é", 1), "");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let sql = format!("{}here{}", "a".repeat(100), "b".repeat(100));
        let shown = caret(&sql, 100);
        assert!(
            shown.lines().all(|l| l.chars().count() <= 2 + 2 * CONTEXT),
            "{shown}"
        );
        assert_eq!(
            shown.lines().next().and_then(|l| l.find("here")),
            shown.lines().nth(1).and_then(|l| l.find('^'))
        );
    }
}
