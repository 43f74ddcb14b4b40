//! Parse failures in SQLite's words.

use sqlite3_parser::lexer::sql::{Error as Raw, ParserError};

use crate::error::Error;

/// SQLite's error for what the parser said. `scanned` is the end of the last
/// token that scanned.
pub fn parse_error(raw: Raw, sql: &str, scanned: usize) -> Error {
    match raw {
        Raw::ParserError(error, position) => {
            let offset = position.map(|p| offset_of(sql, p.line, p.column));
            let (message, hint) = match error {
                ParserError::SyntaxError(near) if near.is_empty() => {
                    ("incomplete input".to_owned(), None)
                }
                ParserError::SyntaxError(near) => {
                    let near = whole_token(sql, offset, near);
                    (format!("near \"{near}\": syntax error"), None)
                }
                ParserError::UnexpectedEof => {
                    let hint = "the statement ends too early: something is missing at its end";
                    ("incomplete input".to_owned(), Some(hint))
                }
                ParserError::Custom(message) => (as_in_sqlite(message), None),
            };
            let mut error = Error::sql(message);
            if let Some(offset) = offset {
                error = error.with_offset(offset);
            }
            match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        }
        Raw::UnterminatedBlockComment(_) => {
            Error::sql("incomplete input").with_hint("a comment is not closed with */")
        }
        other => unrecognized(&other, sql, scanned),
    }
}

/// The parser names a duplicate column as it is written, SQLite as it is called, and has
/// spaces behind a join of fewer than three words.
fn as_in_sqlite(message: String) -> String {
    let what = "duplicate column name: ";
    match message.strip_prefix(what) {
        Some(name) => format!("{what}{}", super::unquote(name)),
        None => message.trim_end().to_owned(),
    }
}

/// The scanner gives variables and blobs without their marks.
fn whole_token(sql: &str, offset: Option<usize>, near: String) -> String {
    match offset.and_then(|o| sql.get(o..)) {
        Some(rest) if rest.starts_with('?') => format!("?{near}"),
        Some(rest) if rest.starts_with(['x', 'X']) && rest.get(1..2) == Some("'") => {
            let end = rest
                .get(2..)
                .and_then(|r| r.find('\''))
                .map_or(rest.len(), |i| i + 3);
            rest.get(..end).unwrap_or(rest).to_owned()
        }
        _ => near,
    }
}

fn unrecognized(raw: &Raw, sql: &str, scanned: usize) -> Error {
    let rest = sql.get(scanned..).unwrap_or("");
    let start = scanned + skip_blanks(rest);
    let rest = sql.get(start..).unwrap_or("");
    let word = |s: &str| {
        s.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(s.len())
    };
    let end = match raw {
        Raw::UnterminatedLiteral(_) | Raw::UnterminatedBracket(_) => rest.len(),
        Raw::BadNumber(_) | Raw::MalformedHexInteger(_) => word(rest),
        Raw::MalformedBlobLiteral(_) => rest
            .get(2..)
            .and_then(|r| r.find('\''))
            .map_or(rest.len(), |i| i + 3),
        _ => rest.chars().next().map_or(0, char::len_utf8),
    };
    let token = rest.get(..end).unwrap_or(rest);
    Error::sql(format!("unrecognized token: \"{token}\"")).with_offset(start)
}

/// Length of the blanks and comments that `text` starts with.
fn skip_blanks(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        at += rest.len() - trimmed.len();
        let comment = if trimmed.starts_with("--") {
            trimmed.find('\n').map(|i| i + 1)
        } else if trimmed.starts_with("/*") {
            trimmed.get(2..).and_then(|t| t.find("*/")).map(|i| i + 4)
        } else {
            None
        };
        match comment {
            Some(n) => at += n,
            None => return at,
        }
    }
}

/// Byte offset of a line and column, both counted from 1.
fn offset_of(sql: &str, line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(n) => sql.match_indices('\n').nth(n).map_or(0, |(i, _)| i + 1),
    };
    (start + column.saturating_sub(1)).min(sql.len())
}
