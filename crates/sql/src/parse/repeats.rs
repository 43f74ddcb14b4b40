//! Names that a list of columns has more than once.
//!
//! SQLite takes `INSERT INTO t(a, a)`, `SET (a, a) = (1, 2)` and `USING (a, a)`; the
//! grammar's parser refuses them. So where it did it gets the text with blanks in the
//! places of all such names but the first, and lowering puts them in again.

use std::collections::HashMap;

use sqlite3_parser::ast as raw;
use sqlite3_parser::dialect::TokenType as T;
use sqlite3_parser::lexer::sql::{Error as Raw, ParserError};

use super::tokens::Tokens;
use super::{Lowering, unquote};
use crate::ast::Name;

/// Whether the parser met such a name.
pub fn refused(error: &Raw) -> bool {
    let said = |message: &String| message.ends_with(" specified more than once");
    matches!(error, Raw::ParserError(ParserError::Custom(message), _) if said(message))
}

/// The tokens of such names, in order.
pub fn find(tokens: &Tokens<'_>) -> Vec<usize> {
    let mut repeats = Vec::new();
    let (mut depth, mut in_set) = (0_usize, false);
    let inserted = inserted_columns(tokens);
    for at in 0..tokens.list().len() {
        let before = at.checked_sub(1).and_then(|before| tokens.kind(before));
        match tokens.kind(at) {
            Some(T::TK_LP) => {
                let begins = match before {
                    Some(T::TK_USING) => true,
                    Some(T::TK_SET | T::TK_COMMA) => in_set && depth == 0,
                    _ => inserted == Some(at),
                };
                if begins {
                    in_list(tokens, at + 1, &mut repeats);
                }
                depth += 1;
            }
            Some(T::TK_RP) => depth = depth.saturating_sub(1),
            Some(T::TK_SET) if depth == 0 => in_set = true,
            Some(T::TK_FROM | T::TK_WHERE | T::TK_RETURNING) if depth == 0 => in_set = false,
            _ => {}
        }
    }
    repeats
}

/// The parenthesis before the columns of an INSERT.
fn inserted_columns(tokens: &Tokens<'_>) -> Option<usize> {
    let mut at = tokens.find(&[T::TK_INTO])? + 2;
    for word in [T::TK_DOT, T::TK_AS] {
        if tokens.kind(at) == Some(word) {
            at += 2;
        }
    }
    Some(at).filter(|at| tokens.kind(*at) == Some(T::TK_LP))
}

/// Those of the list that begins with this token.
fn in_list(tokens: &Tokens<'_>, mut at: usize, repeats: &mut Vec<usize>) {
    let mut seen = HashMap::new();
    while let Some(token) = tokens.list().get(at) {
        let name = unquote(tokens.text(*token)).to_ascii_lowercase();
        let first = *seen.entry(name).or_insert(at);
        // What need not be a name is one where it is the same word as the first.
        let is_name =
            matches!(token.kind, T::TK_ID | T::TK_STRING) || tokens.kind(first) == Some(token.kind);
        if first != at && is_name {
            repeats.push(at);
        }
        if tokens.kind(at + 1) != Some(T::TK_COMMA) {
            break;
        }
        at += 2;
    }
}

/// The text with blanks in the places of these names and of the commas before them.
pub fn blanked(text: &str, tokens: &Tokens<'_>, repeats: &[usize]) -> String {
    let mut blanked = String::with_capacity(text.len());
    for at in repeats {
        let comma = at.checked_sub(1).and_then(|comma| tokens.list().get(comma));
        if let (Some(comma), Some(name)) = (comma, tokens.list().get(*at)) {
            blanked.push_str(text.get(blanked.len()..comma.start).unwrap_or(""));
            blanked.extend(std::iter::repeat_n(' ', name.end - comma.start));
        }
    }
    blanked.push_str(text.get(blanked.len()..).unwrap_or(""));
    blanked
}

impl<'a> Lowering<'a> {
    /// A list of columns, with the names that the parser did not get.
    pub(super) fn names(&mut self, list: &[raw::Name<'_>]) -> Vec<Name> {
        let mut names = Vec::with_capacity(list.len());
        for name in list {
            names.push(self.name(name.0));
            while let Some(text) = self.repeated() {
                names.push(self.name(text));
            }
        }
        names
    }

    /// The name behind the comma at the position, if the parser did not get it.
    fn repeated(&self) -> Option<&'a str> {
        let at = self.tokens.position() + 1;
        self.repeats.binary_search(&at).ok()?;
        Some(self.tokens.text(*self.tokens.list().get(at)?))
    }
}
