//! The options of a table.
//!
//! The grammar's parser looks at the types of a STRICT table's columns and refuses them
//! before anything else about the table, with names as they are written and sizes left out.
//! They are looked at again where the table's shape is made, so where the parser refused it
//! gets the text without the word.

use sqlite3_parser::dialect::TokenType as T;
use sqlite3_parser::lexer::sql::{Error as Raw, ParserError};

use super::tokens::Tokens;

/// Whether the parser met such a type.
pub fn refused(error: &Raw) -> bool {
    let said = |message: &String| {
        ["unknown datatype for ", "missing datatype for "]
            .iter()
            .any(|start| message.starts_with(start))
    };
    matches!(error, Raw::ParserError(ParserError::Custom(message), _) if said(message))
}

/// The text with blanks in the place of STRICT and of the comma beside it.
pub fn without_strict(text: &str, tokens: &Tokens<'_>) -> String {
    let definitions = tokens.definitions().first().copied().unwrap_or(0);
    let end = tokens.find_outside(definitions, |_| false);
    let mut text = text.to_owned();
    for (at, token) in tokens.list().iter().enumerate().skip(end + 1) {
        if !tokens.text(*token).eq_ignore_ascii_case("strict") {
            continue;
        }
        let comma = |at: usize| {
            let beside = tokens.list().get(at).filter(|t| t.kind == T::TK_COMMA);
            beside.map_or(token.start..token.end, |comma| {
                comma.start.min(token.start)..comma.end.max(token.end)
            })
        };
        // The first option has its comma behind it.
        let place = if at == end + 1 {
            comma(at + 1)
        } else {
            comma(at - 1)
        };
        let blanks = " ".repeat(place.len());
        text.replace_range(place, &blanks);
    }
    text
}
