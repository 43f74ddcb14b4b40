//! Constraints in the text of a CREATE TABLE, as ALTER TABLE adds and drops them.

use sqlite3_parser::dialect::TokenType as T;

use super::tokens::Tokens;

/// What became of a constraint that is to be dropped.
#[derive(Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The text without it.
    Text(String),
    /// There is none of the name.
    Unknown,
    /// It is a key or such, which stays.
    Kept,
}

/// The text of a CREATE TABLE without the first constraint of this name.
pub fn without(sql: &str, name: &str) -> Dropped {
    let (tokens, _) = Tokens::scan(sql);
    let Some(first) = tokens.definitions().first().copied() else {
        return Dropped::Unknown;
    };
    let Some(word) = named(&tokens, first, name) else {
        return Dropped::Unknown;
    };
    let end = match tokens.kind(word + 2) {
        // The name is of nothing, or of what has none to SQLite.
        None
        | Some(
            T::TK_CONSTRAINT
            | T::TK_DEFAULT
            | T::TK_COLLATE
            | T::TK_COMMA
            | T::TK_RP
            | T::TK_GENERATED
            | T::TK_AS,
        ) => word + 2,
        Some(T::TK_NOT | T::TK_CHECK | T::TK_REFERENCES | T::TK_FOREIGN) => {
            constraint_end(&tokens, word + 2)
        }
        Some(_) => return Dropped::Kept,
    };
    cut(sql, &tokens, word, end).map_or(Dropped::Unknown, Dropped::Text)
}

/// Whether a CREATE TABLE has a constraint of this name.
pub fn is_there(sql: &str, name: &str) -> bool {
    let (tokens, _) = Tokens::scan(sql);
    let first = tokens.definitions().first().copied();
    first.is_some_and(|first| named(&tokens, first, name).is_some())
}

/// The word CONSTRAINT before this name.
fn named(tokens: &Tokens<'_>, first: usize, name: &str) -> Option<usize> {
    let mut at = first;
    loop {
        at = tokens.find_outside(at, |kind| kind == T::TK_CONSTRAINT);
        if tokens.kind(at) != Some(T::TK_CONSTRAINT) {
            return None;
        }
        let written = tokens.list().get(at + 1).map(|token| tokens.text(*token));
        if written.is_some_and(|written| super::unquote(written).eq_ignore_ascii_case(name)) {
            return Some(at);
        }
        at += 2;
    }
}

/// The text of a CREATE TABLE without a column's first NOT NULL, if it has one.
pub fn without_not_null(sql: &str, column: usize) -> Option<String> {
    let (tokens, _) = Tokens::scan(sql);
    let own = *tokens.definitions().get(column)?;
    let end = tokens.find_outside(own, |kind| kind == T::TK_COMMA);
    let is_it = |at: &usize| {
        (tokens.kind(*at), tokens.kind(*at + 1)) == (Some(T::TK_NOT), Some(T::TK_NULL))
    };
    let mut at = own;
    while at < end {
        at = tokens.find_outside(at, |kind| kind == T::TK_NOT).min(end);
        if is_it(&at) {
            let is_named = at >= own + 2 && tokens.kind(at - 2) == Some(T::TK_CONSTRAINT);
            let from = if is_named { at - 2 } else { at };
            return cut(sql, &tokens, from, constraint_end(&tokens, at));
        }
        at += 1;
    }
    None
}

/// The text of a CREATE TABLE with one more constraint: of a column, or of the table.
pub fn with(sql: &str, column: Option<usize>, constraint: &str) -> Option<String> {
    let (tokens, _) = Tokens::scan(sql);
    let definitions = tokens.definitions();
    let (end, comma) = match column {
        Some(column) => {
            let own = *definitions.get(column)?;
            (tokens.find_outside(own, |kind| kind == T::TK_COMMA), "")
        }
        None => (tokens.find_outside(*definitions.first()?, |_| false), ","),
    };
    let place = tokens.list().get(end)?.start;
    let (head, tail) = sql.split_at_checked(place)?;
    Some(format!("{head}{comma} {constraint}{tail}"))
}

/// The token behind the constraint that begins with this one: the next constraint's first.
fn constraint_end(tokens: &Tokens<'_>, first: usize) -> usize {
    use T::{
        TK_AS, TK_CHECK, TK_COLLATE, TK_COMMA, TK_CONSTRAINT, TK_DEFAULT, TK_DEFERRABLE,
        TK_FOREIGN, TK_GENERATED, TK_NOT, TK_PRIMARY, TK_REFERENCES, TK_SET, TK_UNIQUE,
    };
    let begins = [
        TK_AS,
        TK_CHECK,
        TK_COLLATE,
        TK_COMMA,
        TK_CONSTRAINT,
        TK_DEFAULT,
        TK_FOREIGN,
        TK_GENERATED,
        TK_NOT,
        TK_PRIMARY,
        TK_REFERENCES,
        TK_UNIQUE,
    ];
    let begins = |kind: T| begins.contains(&kind);
    let mut at = first + 1;
    if tokens.kind(first) == Some(TK_FOREIGN) {
        at = tokens.find_outside(at, |kind| kind == TK_REFERENCES) + 1;
    }
    if matches!(tokens.kind(first), Some(TK_FOREIGN | TK_REFERENCES)) {
        // The table's name may be such a word, too.
        at += 1;
    }
    loop {
        at = tokens.find_outside(at, begins);
        let goes_on = match tokens.kind(at) {
            Some(TK_DEFAULT) => tokens.kind(at - 1) == Some(TK_SET),
            Some(TK_NOT) => tokens.kind(at + 1) == Some(TK_DEFERRABLE),
            _ => false,
        };
        if !goes_on {
            return at;
        }
        at += 1;
    }
}

/// A text without some of its tokens, and without the comma before them where nothing else
/// is left behind it.
fn cut(sql: &str, tokens: &Tokens<'_>, from: usize, to: usize) -> Option<String> {
    let before = from.checked_sub(1)?;
    let next = tokens.list().get(to)?;
    let is_last = matches!(next.kind, T::TK_RP | T::TK_COMMA);
    let token = tokens.list().get(before)?;
    let is_comma = token.kind == T::TK_COMMA;
    let start = if is_last && is_comma {
        token.start
    } else {
        token.end
    };
    let blank = if is_last { "" } else { " " };
    Some(format!(
        "{}{blank}{}",
        sql.get(..start)?,
        sql.get(next.start..)?
    ))
}
