//! The options of a table.
//!
//! The grammar's parser looks at what STRICT and WITHOUT ROWID ask of the columns, and
//! refuses a table before anything else about it, with names as they are written and sizes
//! of types left out. All of that is looked at again where the table's shape is made, so
//! where the parser refused it gets the text without its options.

use sqlite3_parser::dialect::TokenType as T;
use sqlite3_parser::lexer::sql::{Error as Raw, ParserError};

use super::tokens::Tokens;
use crate::error::{Error, Result};

/// What stands behind a table's definitions.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    /// STRICT
    pub strict: bool,
    /// WITHOUT ROWID
    pub without_rowid: bool,
}

impl TableOptions {
    /// Those of a text whose options the parser knows by name.
    ///
    /// # Errors
    /// One that stands in quotes, which the parser takes and SQLite does not.
    pub fn read(tokens: &Tokens<'_>) -> Result<TableOptions> {
        let mut options = TableOptions::default();
        let behind = tokens.list().iter().skip(first_option(tokens));
        let words = behind.filter(|t| !matches!(t.kind, T::TK_COMMA | T::TK_SEMI | T::TK_WITHOUT));
        for word in words {
            let text = tokens.text(*word);
            let is = |option: &str| text.eq_ignore_ascii_case(option);
            if is("strict") {
                options.strict = true;
            } else if is("rowid") {
                options.without_rowid = true;
            } else {
                let error = Error::sql(format!("unknown table option: {text}"));
                return Err(error.with_offset(word.start));
            }
        }
        Ok(options)
    }
}

/// The token behind the parenthesis that closes the definitions.
fn first_option(tokens: &Tokens<'_>) -> usize {
    let definitions = tokens.definitions().first().copied().unwrap_or(0);
    tokens.find_outside(definitions, |_| false) + 1
}

/// Whether the parser refused a table for what its options ask.
pub fn refused(error: &Raw) -> bool {
    let said = |message: &String| {
        [
            "unknown datatype for ",
            "missing datatype for ",
            "PRIMARY KEY missing on table ",
        ]
        .iter()
        .any(|start| message.starts_with(start))
    };
    matches!(error, Raw::ParserError(ParserError::Custom(message), _) if said(message))
}

/// The text with blanks in the place of its options.
pub fn without_options(text: &str, tokens: &Tokens<'_>) -> String {
    let mut text = text.to_owned();
    for token in tokens.list().iter().skip(first_option(tokens)) {
        if token.kind != T::TK_SEMI {
            text.replace_range(token.start..token.end, &" ".repeat(token.end - token.start));
        }
    }
    text
}
