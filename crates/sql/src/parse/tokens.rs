//! The statement's tokens with their places.
//!
//! The grammar's tree keeps no positions and drops the text of expressions,
//! which SQLite uses to name result columns. The tokens give both back: lowering
//! visits the tree in text order and advances a position in this list as it
//! meets names and literals.

use sqlite3_parser::dialect::{TokenType, keyword_token};
use sqlite3_parser::lexer::Splitter;
use sqlite3_parser::lexer::sql::Tokenizer;

/// How far [`Tokens::locate`] looks for a text before it gives up.
const LOOK_AHEAD: usize = 256;

/// A token is rarely shorter, with the blank behind it; and for how many there is place at once.
const BYTES_A_TOKEN: usize = 3;
const TOKENS_MAX: usize = 42;

/// No keyword is longer.
const KEYWORD_MAX: usize = "CURRENT_TIMESTAMP".len();

/// One token.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// What it is.
    pub kind: TokenType,
}

/// The tokens of one statement and a position among them.
#[derive(Debug)]
pub struct Tokens<'a> {
    sql: &'a str,
    list: Vec<Token>,
    at: usize,
}

/// Where the first statement of a text ends.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Byte after its semicolon, or the end of the text.
    pub end: usize,
    /// The same, without a comment that nothing closes, which goes to the end of the text.
    pub text_end: usize,
    /// Nothing but blanks, comments and the semicolon.
    pub empty: bool,
}

impl<'a> Tokens<'a> {
    /// Tokens of the first statement in `sql`, up to and with its semicolon. A
    /// text that doesn't scan ends the list early: the parser reports it.
    pub fn scan(sql: &'a str) -> (Tokens<'a>, Extent) {
        let bytes = sql.as_bytes();
        let mut tokenizer = Tokenizer::new();
        let mut list = Vec::with_capacity(TOKENS_MAX.min(bytes.len() / BYTES_A_TOKEN + 1));
        let mut trigger = false;
        let mut end = None;
        let mut at = 0;
        while let Some(token) = next(&mut tokenizer, bytes, at) {
            let Token { kind, end: to, .. } = token;
            at = to;
            list.push(token);
            if kind == TokenType::TK_TRIGGER {
                trigger |= begins_trigger(&list);
            }
            if kind == TokenType::TK_SEMI {
                // Another END is one of CASE.
                let ends = [TokenType::TK_SEMI, TokenType::TK_END, TokenType::TK_SEMI];
                let last = list.iter().rev().map(|t| t.kind);
                if !trigger || last.take(3).eq(ends) {
                    end = Some(to);
                    break;
                }
            }
        }
        let extent = Extent {
            end: end.unwrap_or(sql.len()),
            text_end: end.unwrap_or_else(|| before_open_comment(sql, at)),
            empty: list.iter().all(|t| t.kind == TokenType::TK_SEMI),
        };
        (Tokens { sql, list, at: 0 }, extent)
    }

    /// Whether the scan reached the end of the statement.
    pub fn last_end(&self) -> usize {
        self.list.last().map_or(0, |t| t.end)
    }

    /// Where a CREATE TABLE takes another column: behind the last one it has, before
    /// its constraints.
    pub fn columns_end(&self) -> Option<usize> {
        use TokenType::*;
        let definitions = self.definitions();
        let constraints = [TK_CONSTRAINT, TK_PRIMARY, TK_UNIQUE, TK_CHECK, TK_FOREIGN];
        let is_constraint = |at: &usize| self.kind(*at).is_some_and(|k| constraints.contains(&k));
        let end = match definitions.iter().copied().find(is_constraint) {
            Some(constraint) => constraint - 1,
            None => self.find_outside(*definitions.first()?, |_| false),
        };
        self.list.get(end).map(|token| token.start)
    }

    /// Moves behind the words that a statement about a schema object of this kind begins
    /// with, to the object's name: its own words may be names, too.
    pub fn move_behind_head(&mut self, kind: TokenType, if_not_exists: bool) {
        if let Some(word) = self.find(&[kind]) {
            self.at = word + if if_not_exists { 4 } else { 1 };
        }
    }

    /// The name of a table that is to be made with more than so many columns. The grammar's
    /// parser compares each with all before it.
    pub fn table_wider_than(&self, columns: usize) -> Option<&str> {
        use TokenType::*;
        let mut kinds = behind_explain(&self.list).iter().map(|token| token.kind);
        let is_create = kinds.next() == Some(TK_CREATE)
            && kinds.find(|kind| *kind != TK_TEMP) == Some(TK_TABLE);
        if self.list.len() <= columns || !is_create {
            return None;
        }
        let constraints = [TK_CONSTRAINT, TK_PRIMARY, TK_UNIQUE, TK_CHECK, TK_FOREIGN];
        let is_column = |at: &&usize| self.kind(**at).is_some_and(|k| !constraints.contains(&k));
        let definitions = self.definitions();
        let (count, first) = (
            definitions.iter().filter(is_column).count(),
            definitions.first()?,
        );
        let name = first.checked_sub(2).filter(|_| count > columns)?;
        Some(self.span(name, name))
    }

    /// Where the definitions of a CREATE TABLE begin: of its columns, then its constraints.
    pub fn definitions(&self) -> Vec<usize> {
        use TokenType::*;
        let (mut depth, mut starts) = (0, Vec::new());
        for (at, token) in self.list.iter().enumerate() {
            match token.kind {
                TK_LP => depth += 1,
                TK_RP => depth -= 1,
                _ => {}
            }
            match (token.kind, depth) {
                (TK_LP, 1) if starts.is_empty() => starts.push(at + 1),
                (TK_COMMA, 1) => starts.push(at + 1),
                (TK_RP, 0) => break,
                _ => {}
            }
        }
        starts
    }

    /// All tokens.
    pub fn list(&self) -> &[Token] {
        &self.list
    }

    /// Text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        self.sql.get(token.start..token.end).unwrap_or("")
    }

    /// Text between two tokens, both included.
    pub fn span(&self, from: usize, to: usize) -> &'a str {
        let (Some(a), Some(b)) = (self.list.get(from), self.list.get(to)) else {
            return "";
        };
        self.sql.get(a.start..b.end).unwrap_or("")
    }

    /// Where the tokens before the n-th end.
    pub fn end_of(&self, at: usize) -> usize {
        let last = at.min(self.list.len()).checked_sub(1);
        last.and_then(|last| self.list.get(last))
            .map_or(0, |t| t.end)
    }

    /// Text from a token to the statement's end, without the semicolon: with comments at
    /// its end, but for those that a line's end ends or nothing, which would take in what is
    /// written behind the text one day.
    pub fn text_to_end(&self, from: usize) -> String {
        let semicolon = self.list.last().filter(|t| t.kind == TokenType::TK_SEMI);
        let count = self.list.len() - usize::from(semicolon.is_some());
        let behind = semicolon.map_or(self.sql.len(), |t| t.start);
        let mut end = self.end_of(count);
        let mut rest = self.sql.get(end..behind).unwrap_or("");
        loop {
            rest = rest.trim_ascii_start();
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some((_, behind_it)) = comment.split_once("*/") else {
                    break;
                };
                rest = behind_it;
                end = behind - rest.len();
            } else if let Some(comment) = rest.strip_prefix("--") {
                rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else {
                break;
            }
        }
        let start = self.list.get(from).map_or(end, |t| t.start);
        self.sql.get(start..end).unwrap_or("").to_owned()
    }

    /// The position.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves the position.
    pub fn move_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Kind of the n-th token.
    pub fn kind(&self, at: usize) -> Option<TokenType> {
        self.list.get(at).map(|t| t.kind)
    }

    /// Offset of the token at the position.
    pub fn offset(&self) -> usize {
        self.list.get(self.at).map_or(self.sql.len(), |t| t.start)
    }

    /// Offset of the next token with this text, which the position passes.
    pub fn locate(&mut self, text: &str) -> usize {
        let to = self.list.len().min(self.at + LOOK_AHEAD);
        for i in self.at..to {
            let Some(token) = self.list.get(i).copied() else {
                break;
            };
            let found = self.text(token);
            if found == text
                || (found.len() > text.len()
                    && found.len() <= text.len() + 3
                    && value_of(found) == text)
            {
                self.at = i + 1;
                return token.start;
            }
        }
        self.offset()
    }

    /// Index of the next token of a kind, at or after the position.
    pub fn find(&self, kinds: &[TokenType]) -> Option<usize> {
        (self.at..self.list.len()).find(|i| self.kind(*i).is_some_and(|k| kinds.contains(&k)))
    }

    /// Index of the first token at or after `from`, outside parentheses opened
    /// there, for which `stop` holds; or of the parenthesis that closes the
    /// surrounding ones; or the end.
    pub fn find_outside(&self, from: usize, stop: impl Fn(TokenType) -> bool) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.list.iter().enumerate().skip(from) {
            match token.kind {
                TokenType::TK_LP => depth += 1,
                TokenType::TK_RP if depth == 0 => return i,
                TokenType::TK_RP => depth -= 1,
                TokenType::TK_SEMI => return i,
                kind if depth == 0 && stop(kind) => return i,
                _ => {}
            }
        }
        self.list.len()
    }
}

/// The first token at or behind `at`, if there is one and it scans. Blanks and words, most of
/// a text, are told here as the tokenizer tells them, which takes a step for each byte.
fn next(tokenizer: &mut Tokenizer, bytes: &[u8], mut at: usize) -> Option<Token> {
    loop {
        let rest = bytes.get(at..)?;
        let first = *rest.first()?;
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let may_be_blob = matches!(first, b'x' | b'X') && rest.get(1) == Some(&b'\'');
        if is_word_start(first) && !may_be_blob {
            let length = word_length(rest);
            let kind = rest.get(..length).and_then(keyword);
            return Some(Token {
                start: at,
                end: at + length,
                kind: kind.unwrap_or(TokenType::TK_ID),
            });
        }
        match tokenizer.split(rest) {
            Ok((Some((text, kind)), length)) => {
                let end = at + length;
                return Some(Token {
                    start: start_of(bytes, text, kind, end),
                    end,
                    kind,
                });
            }
            // A comment.
            Ok((None, length)) if length > 0 => at += length,
            Ok((None, _)) | Err(_) => return None,
        }
    }
}

/// Where a comment begins, behind the last token and others, that nothing closes; the end of
/// the text where there is none.
fn before_open_comment(sql: &str, from: usize) -> usize {
    let mut rest = sql.get(from..).unwrap_or("");
    loop {
        rest = rest.trim_ascii_start();
        let behind = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n')
        } else if let Some(comment) = rest.strip_prefix("/*") {
            match comment.split_once("*/") {
                // Two signs at the end are these signs.
                None if comment.is_empty() => return sql.len(),
                None => return sql.len() - rest.len(),
                closed => closed,
            }
        } else {
            None
        };
        match behind {
            Some((_, behind)) => rest = behind,
            None => return sql.len(),
        }
    }
}

/// What words consist of, by byte.
static IN_WORDS: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < bytes.len() {
        let it = byte as u8;
        bytes[byte] = it.is_ascii_alphanumeric() || matches!(it, b'_' | b'$' | 0x80..);
        byte += 1;
    }
    bytes
};

/// Whether a name or a keyword may have this byte.
pub(super) fn is_in_word(byte: u8) -> bool {
    IN_WORDS[usize::from(byte)]
}

/// Whether one may begin with it.
fn is_word_start(byte: u8) -> bool {
    is_in_word(byte) && !matches!(byte, b'0'..=b'9' | b'$')
}

/// How many bytes of a text are of its first word.
pub(super) fn word_length(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !is_in_word(*byte));
    end.unwrap_or(text.len())
}

/// The keyword that a word is.
pub(super) fn keyword(word: &[u8]) -> Option<TokenType> {
    // The table of words takes no others.
    let may_be = (2..=KEYWORD_MAX).contains(&word.len()) && word.is_ascii();
    may_be.then(|| keyword_token(word)).flatten()
}

/// Whether these tokens begin a CREATE TRIGGER.
fn begins_trigger(tokens: &[Token]) -> bool {
    use TokenType::*;
    let kinds = behind_explain(tokens).iter().map(|token| token.kind);
    let kinds = kinds.filter(|kind| *kind != TK_TEMP);
    kinds.eq([TK_CREATE, TK_TRIGGER])
}

/// The statement that these tokens explain, or are.
pub(super) fn behind_explain(tokens: &[Token]) -> &[Token] {
    use TokenType::*;
    let explains = |token: &&Token| matches!(token.kind, TK_EXPLAIN | TK_QUERY | TK_PLAN);
    let count = tokens.iter().take_while(explains).count();
    tokens.get(count..).unwrap_or(&[])
}

/// Where a token begins whose text the scanner hands out: of numbered variables and of blobs
/// without their marks.
fn start_of(bytes: &[u8], text: &[u8], kind: TokenType, end: usize) -> usize {
    let offset = (text.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    let start = if offset <= end { offset } else { end };
    let marks = match kind {
        TokenType::TK_BLOB => 2,
        TokenType::TK_VARIABLE if text.first().is_none_or(u8::is_ascii_digit) => 1,
        _ => 0,
    };
    start.saturating_sub(marks)
}

/// A variable's or blob's text without its marks.
fn value_of(text: &str) -> &str {
    match text.as_bytes() {
        [b'?', ..] => text.get(1..).unwrap_or(""),
        [b'x' | b'X', b'\'', .., b'\''] => text.get(2..text.len() - 1).unwrap_or(""),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use sqlite3_parser::lexer::Scanner;

    use super::*;

    /// What texts are put together from.
    const PARTS: [&str; 36] = [
        " ",
        "\n",
        "\t",
        "\x0b",
        "select",
        "SELECT",
        "x",
        "X",
        "x'0a'",
        "x'0",
        "'it''s'",
        "'",
        "\"a b\"",
        "[a]",
        "`b`",
        "a$1",
        "$a",
        "?",
        "?12",
        ":name",
        "@v",
        "1.5e3",
        "0x1F",
        "12a",
        "é",
        "_ü9",
        "-- c\n",
        "/* c */",
        "/*",
        "->>",
        "||",
        "(",
        ";",
        "a.b",
        "current_timestamp",
        "\0",
    ];

    #[test]
    fn tokens_are_those_of_the_grammar() {
        let mut state = 11_usize;
        let mut next_below = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let count = next_below(8);
            let text: String = (0..count).map(|_| PARTS[next_below(PARTS.len())]).collect();
            let bytes = text.as_bytes();
            let mut scanner = Scanner::new(Tokenizer::new());
            let mut at = 0;
            loop {
                let expected = match scanner.scan(bytes) {
                    Ok((_, Some((token, kind)), end)) => {
                        Some((start_of(bytes, token, kind, end), end, kind))
                    }
                    _ => None,
                };
                let token = next(&mut Tokenizer::new(), bytes, at);
                let found = token.map(|token| (token.start, token.end, token.kind));
                assert_eq!(found, expected, "{text:?} behind {at}");
                let Some(token) = token else { break };
                at = token.end;
            }
        }
    }
}
