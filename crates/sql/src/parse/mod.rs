//! Text to syntax tree.
//!
//! The grammar is the crate `sqlite3-parser`'s, generated from SQLite's. Its
//! tree is lowered at once into our own ([`crate::ast`]), so that the parser can
//! be replaced. Here too: statement boundaries, places of names, texts of result
//! columns, numbering of parameters, the depth limit, and SQLite's error texts.
//!
//! Whatever the text, parsing ends with a tree or an error: the grammar's parser
//! keeps its stack on the heap, and lowering counts its depth.

pub mod constraint;
mod dml;
mod expr;
mod failure;
mod options;
pub mod places;
mod repeats;
mod schema;
mod select;
pub mod shape;
mod statement;
mod tokens;
mod trigger;
mod window;

use sqlite3_parser::lexer::sql::Parser;
use sqlite3_parser::{Bump, FallibleIterator};

use crate::ast;
use crate::error::{Error, Result};
use tokens::Tokens;

/// The deepest expression, SQLite's limit.
pub const MAX_EXPR_DEPTH: usize = 1000;
/// How deep queries may be within each other.
const MAX_QUERY_DEPTH: usize = 500;
/// Columns in a table, a result or an index, terms of a sort and assignments: SQLite's limit.
pub const MAX_COLUMNS: usize = 2000;
/// The largest parameter number, SQLite's limit.
pub const MAX_PARAMETERS: usize = 32_766;

/// Bytes for the grammar's tree, as many as that of a short statement takes.
const ARENA: usize = 960;

/// What parsing a text gave.
#[derive(Debug)]
pub struct Parsed {
    /// The statement; None for blanks and comments.
    pub statement: Option<ast::Statement>,
    /// Bytes up to and with the statement's semicolon.
    pub consumed: usize,
    /// Names of the parameters by index, None for `?`.
    pub parameters: Vec<Option<String>>,
}

/// Whether a name is a word of the grammar, which many places take for that.
pub fn is_keyword(name: &str) -> bool {
    tokens::keyword(name.as_bytes()).is_some()
}

/// What programs write at the beginning of files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Parses the first statement of `sql`.
pub fn parse(sql: &str) -> Result<Parsed> {
    match sql.trim_ascii_start().strip_prefix(BYTE_ORDER_MARK) {
        None => parse_text(sql),
        // A blank to SQLite, and to the grammar a letter.
        Some(rest) => parse_text(&format!("{}{rest}", " ".repeat(sql.len() - rest.len()))),
    }
}

fn parse_text(sql: &str) -> Result<Parsed> {
    let (tokens, extent) = Tokens::scan(sql);
    if extent.empty && tokens.list().last().map_or(0, |t| t.end) == extent.end {
        return Ok(Parsed {
            statement: None,
            consumed: extent.end,
            parameters: Vec::new(),
        });
    }
    if let Some(name) = tokens.table_wider_than(MAX_COLUMNS) {
        return Err(Error::sql(format!("too many columns on {}", unquote(name))));
    }
    let text = sql.get(..extent.text_end).unwrap_or(sql);
    // BEGIN CONCURRENT is BEGIN to the grammar: the word becomes blanks.
    let blanked = statement::concurrent(&tokens).map(|(from, to)| {
        let mut copy = text.to_owned();
        copy.replace_range(from..to, &" ".repeat(to - from));
        copy
    });
    let text = blanked.as_deref().unwrap_or(text);
    let bump = Bump::with_capacity(ARENA);
    let mut repeats = Vec::new();
    let (without_repeats, without_options);
    let mut parsed = Parser::new(&bump, text.as_bytes()).next();
    if parsed.as_ref().is_err_and(repeats::refused) {
        repeats = repeats::find(&tokens);
        without_repeats = repeats::blanked(text, &tokens, &repeats);
        parsed = Parser::new(&bump, without_repeats.as_bytes()).next();
    }
    if parsed.as_ref().is_err_and(options::refused) {
        without_options = options::without_options(text, &tokens);
        parsed = Parser::new(&bump, without_options.as_bytes()).next();
    }
    let command = match parsed {
        Ok(command) => command,
        Err(error) => return Err(failure::parse_error(error, text, tokens.last_end())),
    };
    let Some(command) = command else {
        return Ok(Parsed {
            statement: None,
            consumed: extent.end,
            parameters: Vec::new(),
        });
    };
    let mut lowering = Lowering {
        tokens,
        repeats,
        parameters: Vec::new(),
        depth: 0,
        queries: 0,
        databases: Vec::new(),
    };
    let statement = lowering.command(&command)?;
    Ok(Parsed {
        statement: Some(statement),
        consumed: extent.end,
        parameters: lowering.parameters,
    })
}

/// State of lowering one statement.
struct Lowering<'a> {
    tokens: Tokens<'a>,
    /// Tokens of names that the parser did not get, in order.
    repeats: Vec<usize>,
    parameters: Vec<Option<String>>,
    depth: usize,
    queries: usize,
    /// Names of databases before those of tables, as far as they were met.
    databases: Vec<ast::Name>,
}

impl Lowering<'_> {
    /// Runs `f` one level deeper, on more stack where little is left.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_EXPR_DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        let result = crate::stack::grow(|| f(self));
        self.depth -= 1;
        result
    }

    /// A name at the position, unquoted.
    fn name(&mut self, raw: &str) -> ast::Name {
        let offset = self.tokens.locate(raw);
        ast::Name {
            text: unquote(raw),
            offset,
            double_quoted: raw.starts_with('"'),
        }
    }
}

fn too_deep() -> Error {
    Error::sql(format!(
        "Expression tree is too large (maximum depth {MAX_EXPR_DEPTH})"
    ))
}

/// A name or string without its quotes.
pub fn unquote(raw: &str) -> String {
    let bytes = raw.as_bytes();
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
    // Most have no quote within, which is sooner seen than replaced.
    let single = |quote: char, double: &str| match inner.contains(quote) {
        true => inner.replace(double, double.get(1..).unwrap_or("")),
        false => inner.to_owned(),
    };
    match bytes.first() {
        Some(b'[') if raw.len() >= 2 => inner.to_owned(),
        Some(b'"') if raw.len() >= 2 => single('"', "\"\""),
        Some(b'`') if raw.len() >= 2 => single('`', "``"),
        Some(b'\'') if raw.len() >= 2 => single('\'', "''"),
        _ => raw.to_owned(),
    }
}

/// Where the text of a CREATE TABLE takes another column, if it is one.
pub fn columns_end(sql: &str) -> Option<usize> {
    Tokens::scan(sql).0.columns_end()
}

/// The text of the DEFAULT whose expression starts at `offset`: a signed literal
/// or what stands in the parentheses there.
pub fn expression_text(sql: &str, offset: usize) -> Option<&str> {
    use sqlite3_parser::dialect::TokenType as T;
    let (tokens, _) = Tokens::scan(sql);
    let mut at = tokens.list().iter().position(|t| t.start >= offset)?;
    while at > 0
        && matches!(
            tokens.kind(at - 1),
            Some(T::TK_LP | T::TK_MINUS | T::TK_PLUS)
        )
    {
        at -= 1;
    }
    match tokens.kind(at)? {
        T::TK_LP => {
            let end = tokens.find_outside(at + 1, |_| false);
            Some(tokens.span(at + 1, end.saturating_sub(1)))
        }
        T::TK_MINUS | T::TK_PLUS => Some(tokens.span(at, at + 1)),
        _ => Some(tokens.span(at, at)),
    }
}
