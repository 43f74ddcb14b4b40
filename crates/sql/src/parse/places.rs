//! Exact places of names in the texts that the schema keeps, and changes of such texts.
//!
//! Lowering looks for a name from where it found the one before, which is good enough for
//! messages. Who changes a text must be sure. So the words that may be the name get a mark
//! each and the text is parsed once more: where a name of its tree has a mark now, that word
//! is the name's. All else in the tree must be as it was.

use std::collections::BTreeMap;

use sqlite3_parser::dialect::TokenType as T;

use super::tokens::Tokens;
use super::unquote;
use crate::ast::{Statement, for_each_name};
use crate::error::{Error, Result};

/// The place of a name that is none of those looked for.
pub const UNKNOWN: usize = usize::MAX;

/// How often a text is parsed to find its names; those not found by then are unknown.
const PARSES_MAX: usize = 1000;

/// The statement of a text, with exact places of the names that are `wanted`, in any case,
/// and of those in double quotes; all others are [`UNKNOWN`].
///
/// # Errors
/// What the parser says.
pub fn placed(sql: &str, wanted: &str) -> Result<Statement> {
    let parsed = super::parse(sql)?.statement;
    let mut statement = parsed.ok_or_else(|| Error::corrupt("a schema object without a text"))?;
    let mut names = Vec::new();
    for_each_name(&mut statement, &mut |text, place| {
        names.push(text.to_owned());
        *place = UNKNOWN;
    });
    let (tokens, _) = Tokens::scan(sql);
    let words = (0..tokens.list().len()).filter(|at| may_be(&tokens, *at, wanted));
    let mut found: Vec<Option<usize>> = vec![None; names.len()];
    // A word of the grammar may be a name or what it is there for: where the text is another
    // one with all these marks, each half of the words is looked at by itself.
    let mut groups = vec![words.collect::<Vec<_>>()];
    let mut left = PARSES_MAX;
    while let Some(group) = groups.pop().filter(|_| left > 0) {
        left -= 1;
        match marked(sql, &tokens, &group, &names) {
            Some(places) => {
                for (known, place) in found.iter_mut().zip(places) {
                    *known = known.or(place);
                }
            }
            None if group.len() > 1 => {
                let (one, other) = group.split_at(group.len() / 2);
                groups.extend([one.to_vec(), other.to_vec()]);
            }
            None => {}
        }
    }
    let mut found = found.into_iter();
    for_each_name(&mut statement, &mut |_, place| {
        *place = found.next().flatten().unwrap_or(UNKNOWN);
    });
    Ok(statement)
}

fn may_be(tokens: &Tokens<'_>, at: usize, wanted: &str) -> bool {
    let text = tokens.list().get(at).map_or("", |t| tokens.text(*t));
    text.starts_with('"') || unquote(text).eq_ignore_ascii_case(wanted)
}

/// Where names stand by the marks that these words got, if nothing else changed by them.
fn marked(
    sql: &str,
    tokens: &Tokens<'_>,
    words: &[usize],
    names: &[String],
) -> Option<Vec<Option<usize>>> {
    if words.is_empty() {
        return Some(vec![None; names.len()]);
    }
    let mut text = String::with_capacity(sql.len() + 8 * words.len());
    let mut done = 0;
    for (number, word) in words.iter().enumerate() {
        let token = tokens.list().get(*word)?;
        text.push_str(sql.get(done..token.start)?);
        done = token.end;
        // In brackets a word stays a name; quotes stay what they are.
        let written = tokens.text(*token);
        let (open, close) = match written.as_bytes() {
            [b'"' | b'\'' | b'`' | b'[', .., _] => written.split_at(written.len() - 1),
            _ => ("", "]"),
        };
        match open {
            "" => text.push_str(&format!("[{written}")),
            open => text.push_str(open),
        }
        text.push_str(&mark(number));
        text.push_str(close);
    }
    text.push_str(sql.get(done..)?);
    let mut statement = super::parse(&text).ok()?.statement?;
    let mut places = Vec::with_capacity(names.len());
    let (mut is_same, mut left) = (true, names.iter());
    for_each_name(&mut statement, &mut |text, _| {
        let before = left.next().map_or("", String::as_str);
        let number = text
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix(MARK))
            .and_then(|digits| digits.parse::<usize>().ok());
        is_same &= text == before || number.is_some();
        let word = number.and_then(|number| words.get(number));
        let token = word.and_then(|word| tokens.list().get(*word));
        places.push(token.map(|token| token.start));
    });
    (is_same && places.len() == names.len()).then_some(places)
}

/// What no name ends with, a number behind it.
const MARK: &str = "\u{1}#";

fn mark(number: usize) -> String {
    format!("{MARK}{number}")
}

/// A foreign key's names and where they stand.
#[derive(Debug, Default)]
pub struct ForeignKey {
    /// The columns that a table's constraint lists.
    pub columns: Vec<(String, usize)>,
    /// The table referred to.
    pub parent: (String, usize),
    /// Its columns, if they are given.
    pub parent_columns: Vec<(String, usize)>,
}

/// The foreign keys in the text of a CREATE TABLE.
pub fn foreign_keys(sql: &str) -> Vec<ForeignKey> {
    let (tokens, _) = Tokens::scan(sql);
    let (mut keys, mut columns) = (Vec::new(), Vec::new());
    let is = |at: usize, kind: T| tokens.kind(at) == Some(kind);
    for at in 0..tokens.list().len() {
        // Neither word can be a name.
        if is(at, T::TK_FOREIGN) && is(at + 2, T::TK_LP) {
            columns = names_in(&tokens, at + 2);
        } else if is(at, T::TK_REFERENCES) {
            let Some(parent) = name_at(&tokens, at + 1) else {
                continue;
            };
            keys.push(ForeignKey {
                columns: std::mem::take(&mut columns),
                parent,
                parent_columns: match is(at + 2, T::TK_LP) {
                    true => names_in(&tokens, at + 2),
                    false => Vec::new(),
                },
            });
        }
    }
    keys
}

fn name_at(tokens: &Tokens<'_>, at: usize) -> Option<(String, usize)> {
    let token = tokens.list().get(at)?;
    Some((unquote(tokens.text(*token)), token.start))
}

/// The names of a list in parentheses, of which the first stands here.
fn names_in(tokens: &Tokens<'_>, open: usize) -> Vec<(String, usize)> {
    let close = tokens.find_outside(open + 1, |_| false);
    let begins = |at: &usize| *at == open || tokens.kind(*at) == Some(T::TK_COMMA);
    let starts = (open..close).filter(begins);
    starts.filter_map(|at| name_at(tokens, at + 1)).collect()
}

/// The text of a CREATE TABLE without one of its columns, of which there are `count`: with
/// what stands between it and the next, or for the last with the comma before it.
pub fn without_column(sql: &str, column: usize, count: usize) -> Option<String> {
    let (tokens, _) = Tokens::scan(sql);
    let definitions = tokens.definitions();
    let start = |at: usize| tokens.list().get(at).map(|token| token.start);
    let own = *definitions.get(column)?;
    let (from, to) = match column + 1 < count {
        true => (start(own)?, start(*definitions.get(column + 1)?)?),
        false => (start(own.checked_sub(1)?)?, tokens.columns_end()?),
    };
    Some(format!("{}{}", sql.get(..from)?, sql.get(to..)?))
}

/// Changes of a text, by place.
#[derive(Debug, Default)]
pub struct Edits(BTreeMap<usize, Edit>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// The new name.
    Name,
    /// A text in double quotes, which gets single ones.
    Text,
}

/// A name that takes another's place.
#[derive(Debug, Clone, Copy)]
pub struct Renaming<'a> {
    /// What it was called.
    pub old: &'a str,
    /// What it is called now.
    pub new: &'a str,
    /// In quotes also where the old one has none.
    pub quoted: bool,
}

impl Edits {
    /// The new name is to stand here.
    pub fn name(&mut self, place: usize) {
        self.0.insert(place, Edit::Name);
    }

    /// The names among these that are `old`.
    pub fn names(&mut self, list: &[(String, usize)], old: &str) {
        for (_, place) in list.iter().filter(|(n, _)| n.eq_ignore_ascii_case(old)) {
            self.name(*place);
        }
    }

    /// What stands here in double quotes is a text.
    pub fn text(&mut self, place: usize) {
        self.0.insert(place, Edit::Text);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with all changes; None where there is something else in one of the places.
    pub fn apply(&self, sql: &str, renaming: &Renaming<'_>) -> Option<String> {
        let (tokens, _) = Tokens::scan(sql);
        let (mut out, mut done) = (String::with_capacity(sql.len() + 64), 0);
        let mut left = tokens.list().iter();
        for (place, edit) in &self.0 {
            let token = left.find(|token| token.start == *place)?;
            out.push_str(sql.get(done..token.start)?);
            done = token.end;
            let written = tokens.text(*token);
            let next = sql.as_bytes().get(token.end);
            out.push_str(&match edit {
                Edit::Name => renamed(written, next, renaming)?,
                Edit::Text => text_in_quotes(written, next)?,
            });
        }
        out.push_str(sql.get(done..)?);
        Some(out)
    }
}

/// The new name as it replaces what is written, with `next` behind it.
fn renamed(written: &str, next: Option<&u8>, renaming: &Renaming<'_>) -> Option<String> {
    let is_old = unquote(written).eq_ignore_ascii_case(renaming.old);
    let is_bare = !written.starts_with(['"', '\'', '`', '[']);
    is_old.then(|| match is_bare && !renaming.quoted {
        true => renaming.new.to_owned(),
        false => {
            let name = renaming.new.replace('"', "\"\"");
            let blank = if next == Some(&b'"') { " " } else { "" };
            format!("\"{name}\"{blank}")
        }
    })
}

fn text_in_quotes(written: &str, next: Option<&u8>) -> Option<String> {
    written.starts_with('"').then(|| {
        let text = unquote(written).replace('\'', "''");
        let blank = if next == Some(&b'\'') { " " } else { "" };
        format!("'{text}'{blank}")
    })
}
