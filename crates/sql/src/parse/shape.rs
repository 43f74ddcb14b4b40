//! The shape of a statement: its text with parameters in the places of values.
//!
//! Programs that write values into their texts send texts that never come again, and
//! shapes that come all the time. A statement compiled for the shape, with the values
//! bound, does what the text says:
//!
//! 1. A value is replaced only where nothing but an expression can stand: between
//!    parentheses, commas and operators of VALUES, and beside operators in SET and WHERE.
//!    There a literal and a parameter are both one operand without an affinity.
//! 2. Nothing asks for the text of such an expression: it is not before the WHERE of a
//!    query (names of columns), nor behind it (GROUP BY, ORDER BY), and not within
//!    parentheses of either.
//! 3. A plan may be better for the value itself. Whoever compiles a shape takes it only
//!    where that cannot be (`plan/any_value.rs`).
//!
//! Rows of VALUES that differ in nothing but their values have the shape of two such rows,
//! however many they are, and their texts may be as long as they like: compiled, the two
//! stand for any number (`plan/repeated.rs`).
//!
//! The literal -0.0 has a sign, what comes of negating the value 0.0 has none: it stays.
//! What is not certain stays as it is; then texts with other values have other shapes. A
//! text with parameters or comments has none, nor has one that does not scan.

mod rows;

use self::rows::Rows;
use super::expr;
use super::tokens::{is_in_word, word_length};
use super::unquote;
use crate::ast::Literal;
use crate::value::Value;

/// The longest text that is looked at, rows that are like two others aside: to compile a
/// longer one takes long in any case.
const TEXT_MAX: usize = 4096;
/// Values whose memory is kept for the next text.
const VALUES_KEPT: usize = 64;
/// Digits of an integer that surely fits.
const DIGITS_MAX: usize = 18;

/// See the module's header. Its memory is used again by the next one.
#[derive(Debug, Default)]
pub struct Shape {
    text: String,
    values: Vec<Value>,
    count: usize,
    read: usize,
    rows: Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name or a keyword without quotes.
    Word,
    Number,
    /// A text between single quotes.
    Text,
    /// A blob, as `x'00'`.
    Blob,
    Operator,
    Open,
    Close,
    Comma,
    /// A semicolon, or nothing any more.
    End,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

/// Where values may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere, until this word comes.
    Before(&'static str),
    /// In parentheses of VALUES.
    Values,
    /// In SET or WHERE.
    Operands,
    /// Nowhere any more.
    Behind,
}

impl Shape {
    /// The text with the parameters, up to and with its semicolon.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many rows of VALUES the text has, where the shape has two for any number.
    pub fn repeated_rows(&self) -> Option<usize> {
        self.rows.repeated()
    }

    /// Gives what its parameters stand for, in order, in exchange for other values, of which
    /// nothing is kept: more than it has, where it is of any number of rows.
    pub fn exchange_values(&mut self, others: &mut Vec<Value>) {
        others.resize(self.count, Value::Null);
        let pairs = self.values.iter_mut().zip(others);
        pairs.for_each(|(value, other)| std::mem::swap(value, other));
    }

    /// Gives back the memory of many values.
    pub fn let_go(&mut self) {
        if self.values.len() > VALUES_KEPT {
            self.values.truncate(VALUES_KEPT);
            self.values.shrink_to(VALUES_KEPT);
        }
    }

    /// Bytes of the text that has this shape, up to and with its semicolon.
    pub fn read(&self) -> usize {
        self.read
    }

    /// Takes the shape of the first statement of `sql`; false, if it has none.
    pub fn take(&mut self, sql: &str) -> bool {
        self.rows = Rows::default();
        let mut taken = self.scan(sql);
        if self.rows.are_lost() {
            self.rows = Rows::never_repeated();
            taken = self.scan(sql);
        }
        taken.is_some() && self.count > 0
    }

    fn scan(&mut self, sql: &str) -> Option<()> {
        self.text.clear();
        self.count = 0;
        self.read = 0;
        let bytes = sql.as_bytes();
        let first = next(bytes, 0)?;
        let mut place = beginning(sql.get(first.start..first.end)?)?;
        let (mut before, mut token) = (first, next(bytes, first.end)?);
        let (mut depth, mut copied) = (0_u32, first.start);
        // Where the minus of a number in VALUES stands.
        let mut sign = None;
        loop {
            let text = sql.get(token.start..token.end)?;
            let within = place;
            match token.kind {
                Kind::End if depth > 0 => return None,
                Kind::End => {}
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.checked_sub(1)?,
                Kind::Word if depth == 0 => place = place.after(text)?,
                _ => {}
            }
            if within == Place::Values {
                self.follow_rows(sql, &mut copied, depth, before.kind, token)?;
            }
            if token.kind == Kind::End {
                break;
            }
            let following = next(bytes, token.end)?;
            let around = (before.kind, following);
            if place.takes(depth, around, sql)
                && let Some(value) = value(token.kind, text, place, around)
                && !(value == Value::Real(0.0) && bytes.get(before.start) == Some(&b'-'))
            {
                let sign = sign.filter(|_| following.kind.ends_value());
                let (start, value) = match (sign, negated(&value)) {
                    (Some(sign), Some(negated)) => (sign, negated),
                    _ => (token.start, value),
                };
                self.text.push_str(sql.get(copied..start)?);
                self.text.push('?');
                self.push(value);
                copied = token.end;
            }
            let is_sign = text == "-" && place == Place::Values && depth == 1;
            sign = (is_sign && before.kind.begins_value()).then_some(token.start);
            (before, token) = (token, following);
            if self.rows.are_lost() || token.end > TEXT_MAX && self.rows.repeated().is_none() {
                return None;
            }
        }
        self.text.push_str(sql.get(copied..token.end)?);
        self.read = token.end;
        Some(())
    }

    /// Notes where rows begin and end; of those behind the second that are like it nothing
    /// stays in the shape.
    fn follow_rows(
        &mut self,
        sql: &str,
        copied: &mut usize,
        depth: u32,
        before: Kind,
        token: Token,
    ) -> Option<()> {
        match (token.kind, depth) {
            (Kind::Open, 1) => {
                self.text.push_str(sql.get(*copied..token.start)?);
                *copied = token.start;
                self.rows.begin(self.text.len(), self.count, before);
            }
            (Kind::Close, 0) => {
                self.text.push_str(sql.get(*copied..token.end)?);
                *copied = token.end;
                self.rows.end(&mut self.text, self.count);
            }
            (Kind::Open | Kind::Close, _) => self.rows.differ(),
            (_, 0) => self.rows.between(token.kind, before),
            _ => {}
        }
        Some(())
    }

    fn push(&mut self, value: Value) {
        match self.values.get_mut(self.count) {
            Some(slot) => *slot = value,
            None => self.values.push(value),
        }
        self.count += 1;
    }
}

/// By a statement's first word; `None` if it has no shape.
fn beginning(word: &str) -> Option<Place> {
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    match word.len() {
        6 if is("INSERT") => Some(Place::Before("VALUES")),
        6 if is("UPDATE") => Some(Place::Before("SET")),
        6 if is("DELETE") || is("SELECT") => Some(Place::Before("WHERE")),
        7 if is("REPLACE") => Some(Place::Before("VALUES")),
        _ => None,
    }
}

impl Place {
    /// Behind a word outside of parentheses; `None` if the statement has no shape.
    fn after(self, word: &str) -> Option<Place> {
        let is_one_of = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        match self {
            Place::Before("VALUES") if is_one_of(&["VALUES"]) => Some(Place::Values),
            Place::Before("VALUES") if is_one_of(&["SELECT", "WITH", "DEFAULT"]) => None,
            Place::Before(begin) if is_one_of(&[begin]) => Some(Place::Operands),
            Place::Values if is_one_of(&["ON", "RETURNING"]) => Some(Place::Behind),
            Place::Values => None,
            Place::Operands if is_one_of(BEHIND) => Some(Place::Behind),
            _ if is_one_of(&["UNION", "EXCEPT", "INTERSECT"]) => None,
            place => Some(place),
        }
    }

    /// Whether a value can be replaced that stands between these two.
    fn takes(self, depth: u32, (before, following): (Kind, Token), sql: &str) -> bool {
        match self {
            Place::Values => {
                depth == 1
                    && (before.begins_value() || before == Kind::Operator)
                    && (following.kind.ends_value() || following.kind == Kind::Operator)
            }
            Place::Operands => {
                depth == 0
                    && before == Kind::Operator
                    && match following.kind {
                        Kind::Comma | Kind::Operator | Kind::End => true,
                        Kind::Word => {
                            let word = sql.get(following.start..following.end);
                            let is = |other: &&str| {
                                word.is_some_and(|word| word.eq_ignore_ascii_case(other))
                            };
                            ["WHERE", "AND", "OR"].iter().chain(BEHIND).any(is)
                        }
                        _ => false,
                    }
            }
            Place::Before(_) | Place::Behind => false,
        }
    }
}

/// Words that end a WHERE.
const BEHIND: &[&str] = &["GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "RETURNING"];

impl Kind {
    /// Whether a value of VALUES begins behind it.
    fn begins_value(self) -> bool {
        matches!(self, Kind::Open | Kind::Comma)
    }

    /// Whether one ends before it.
    fn ends_value(self) -> bool {
        matches!(self, Kind::Close | Kind::Comma)
    }
}

/// The value of a literal, if it is one that can be told without doubt.
fn value(kind: Kind, text: &str, place: Place, around: (Kind, Token)) -> Option<Value> {
    match kind {
        // A text ends with its first zero byte elsewhere.
        Kind::Text if !text.as_bytes().contains(&0) => {
            Some(Value::Text(unquote(text).into_bytes()))
        }
        Kind::Blob => {
            let digits = text.get(2..text.len() - 1)?;
            let is_blob = digits.len().is_multiple_of(2)
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_blob.then(|| Value::Blob(expr::blob(digits)))
        }
        // A condition with it could be decided beforehand.
        Kind::Word if place == Place::Values && text.eq_ignore_ascii_case("NULL") => {
            let (before, following) = around;
            (before.begins_value() && following.kind.ends_value()).then_some(Value::Null)
        }
        Kind::Number => {
            let is_integer = text.bytes().all(|byte| byte.is_ascii_digit());
            if is_integer && text.len() > DIGITS_MAX {
                return None;
            }
            match expr::number(text) {
                // The one number that a minus before it makes an error.
                Ok(Literal::Integer(i64::MIN)) => None,
                Ok(Literal::Integer(i)) => Some(Value::Integer(i)),
                Ok(Literal::Real(r)) => Some(Value::Real(r)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value of a number with a minus before it.
fn negated(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(i) => i.checked_neg().map(Value::Integer),
        Value::Real(r) => Some(Value::Real(-r)),
        _ => None,
    }
}

/// The token at or after a place; `None` for a parameter, a comment, and what does not
/// scan.
fn next(bytes: &[u8], from: usize) -> Option<Token> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    let rest = bytes.get(from..)?;
    let start = from
        + rest
            .iter()
            .position(|byte| !blank(byte))
            .unwrap_or(rest.len());
    let rest = bytes.get(start..)?;
    let Some(&byte) = rest.first() else {
        return Some(Token {
            kind: Kind::End,
            start,
            end: start,
        });
    };
    let second = rest.get(1).copied().unwrap_or(0);
    let (kind, length) = match byte {
        b'\'' => (Kind::Text, quoted(rest, byte)?),
        b'"' | b'`' => (Kind::Other, quoted(rest, byte)?),
        b'[' => (Kind::Other, 1 + rest.iter().position(|b| *b == b']')?),
        b'x' | b'X' if second == b'\'' => (Kind::Blob, 1 + quoted(rest.get(1..)?, b'\'')?),
        b'0'..=b'9' => (Kind::Number, number(rest)?),
        b'.' if second.is_ascii_digit() => (Kind::Number, number(rest)?),
        b'.' | b'~' => (Kind::Other, 1),
        b'(' => (Kind::Open, 1),
        b')' => (Kind::Close, 1),
        b',' => (Kind::Comma, 1),
        b';' => (Kind::End, 1),
        b'-' if second == b'-' => return None,
        b'-' if second == b'>' => (Kind::Other, 2 + usize::from(rest.get(2) == Some(&b'>'))),
        b'/' if second == b'*' => return None,
        b'+' | b'-' | b'*' | b'/' | b'%' | b'&' => (Kind::Operator, 1),
        b'|' | b'<' | b'>' | b'=' | b'!' => {
            let length = rest.iter().take_while(|b| b"|<>=!".contains(b)).count();
            (Kind::Operator, length)
        }
        b'?' | b':' | b'@' | b'$' | b'#' | 0 => return None,
        byte if is_in_word(byte) => (Kind::Word, word_length(rest)),
        _ => return None,
    };
    let end = start + length;
    Some(Token { kind, start, end })
}

/// The length of what is quoted, with the quotes, in which a double one stands for one.
fn quoted(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        at += 1 + rest.get(at..)?.iter().position(|byte| *byte == quote)?;
        if rest.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// The length of a decimal number; `None` for any other.
fn number(rest: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if rest.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits(exponent);
        if end == exponent {
            return None;
        }
    }
    let follows = rest.get(end).copied().unwrap_or(b' ');
    (!is_in_word(follows) && follows != b'.').then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape, and the values as SQL.
    fn shape(sql: &str) -> Option<(String, String)> {
        let mut shape = Shape::default();
        // Nothing of an earlier one is left.
        shape.take("INSERT INTO other VALUES (1, 'x', 2.5)");
        shape.take(sql).then(|| {
            let mut values = Vec::new();
            for value in shape.values.iter().take(shape.count) {
                crate::value::quote(value.as_ref(), &mut values);
                values.push(b' ');
            }
            let values = String::from_utf8(values).expect("text");
            (shape.text().to_owned(), values.trim_end().to_owned())
        })
    }

    fn is(sql: &str, text: &str, values: &str) {
        assert_eq!(
            shape(sql),
            Some((text.to_owned(), values.to_owned())),
            "{sql}"
        );
    }

    #[test]
    fn values_are_replaced_where_only_expressions_can_stand() {
        is(
            "INSERT INTO t VALUES(1,'it''s',2.5)",
            "INSERT INTO t VALUES(?,?,?)",
            "1 'it''s' 2.5",
        );
        is(
            "  replace into t (a) values (-7), ( 1e3 ) ;",
            "replace into t (a) values (?), ( ? ) ;",
            "-7 1000.0",
        );
        is(
            "INSERT INTO t VALUES (x'01', NULL, abs(-5), 3 - -5, null + 1, - 2.5)",
            "INSERT INTO t VALUES (?, ?, abs(-5), ? - -?, null + ?, ?)",
            "X'01' NULL 3 5 1 -2.5",
        );
        is(
            "INSERT INTO t(k,n) VALUES (1,2) ON CONFLICT (k) DO UPDATE SET n = 3",
            "INSERT INTO t(k,n) VALUES (?,?) ON CONFLICT (k) DO UPDATE SET n = 3",
            "1 2",
        );
        is(
            "INSERT INTO t VALUES (-0.0, 0.0, -0)",
            "INSERT INTO t VALUES (-0.0, ?, ?)",
            "0.0 0",
        );
        is(
            "UPDATE t SET a = 'x', b=b+5 WHERE k = 7",
            "UPDATE t SET a = ?, b=b+? WHERE k = ?",
            "'x' 5 7",
        );
        is(
            "DELETE FROM t WHERE k=7 AND a<>'b' AND b=-7 AND c IS NOT NULL AND d > X'0a'",
            "DELETE FROM t WHERE k=? AND a<>? AND b=-? AND c IS NOT NULL AND d > ?",
            "7 'b' 7 X'0A'",
        );
        is(
            "SELECT a, 5 = 5, 'x' FROM t WHERE k = 7 LIMIT 1",
            "SELECT a, 5 = 5, 'x' FROM t WHERE k = ? LIMIT 1",
            "7",
        );
        is(
            "SELECT a FROM t WHERE k = 7 AND b IN (1, 2) ORDER BY 1 = 1",
            "SELECT a FROM t WHERE k = ? AND b IN (1, 2) ORDER BY 1 = 1",
            "7",
        );
    }

    /// The shape, the rows that it stands for, and how many values they have.
    fn rows(sql: &str) -> Option<(String, Option<usize>, usize)> {
        let mut shape = Shape::default();
        shape
            .take(sql)
            .then(|| (shape.text().to_owned(), shape.repeated_rows(), shape.count))
    }

    #[test]
    fn rows_that_are_alike_have_the_shape_of_two() {
        let two = "INSERT INTO t VALUES (?, ?),\n(?, ?) RETURNING a";
        for count in [2, 3, 20, 5_000] {
            let mut sql = "INSERT INTO t VALUES ".to_owned();
            for row in 1..=count {
                sql.push_str(if row > 1 { ",\n" } else { "" });
                let number = if row % 2 == 0 { "NULL" } else { "-7" };
                sql.push_str(&format!("({number}, 'row ''{row}''')"));
            }
            sql.push_str(" RETURNING a");
            let expected = (two.to_owned(), Some(count), 2 * count);
            assert_eq!(rows(&sql), Some(expected));
        }
    }

    #[test]
    fn rows_that_differ_stay_apart() {
        for (sql, shape) in [
            ("VALUES (1)", "VALUES (?)"),
            ("VALUES (1), (2), (3,4)", "VALUES (?), (?), (?,?)"),
            ("VALUES (1), (2), ( 3)", "VALUES (?), (?), ( ?)"),
            ("VALUES (1), (2), (3), (a)", "VALUES (?), (?), (?), (a)"),
            ("VALUES (1), (2) (3)", "VALUES (?), (?) (?)"),
            ("VALUES (1), (2), (3),", "VALUES (?), (?), (?),"),
            ("VALUES (1), (2), (3), 4", "VALUES (?), (?), (?), 4"),
            ("VALUES (1), (2), +(3)", "VALUES (?), (?), +(?)"),
            ("VALUES (1,(2)), (1,(2))", "VALUES (?,(2)), (?,(2))"),
            ("VALUES (1+1), (2+2), (3-3)", "VALUES (?+?), (?+?), (?-?)"),
        ] {
            let (text, repeated, _) = rows(&format!("INSERT INTO t {sql}")).expect("a shape");
            assert_eq!(text, format!("INSERT INTO t {shape}"));
            assert_eq!(repeated, None, "{sql}");
        }
        let many = ", (1)".repeat(2 * TEXT_MAX);
        assert_eq!(rows(&format!("INSERT INTO t VALUES (1){many}, (a)")), None);
        // Without values there is nothing to bind.
        assert_eq!(rows("INSERT INTO t VALUES (a), (a), (a)"), None);
    }

    #[test]
    fn only_the_first_statement_is_looked_at() {
        let mut shape = Shape::default();
        let sql = "DELETE FROM t WHERE k = ';'; SELECT";
        assert!(shape.take(sql));
        assert_eq!(shape.text(), "DELETE FROM t WHERE k = ?;");
        assert_eq!(&sql[shape.read()..], " SELECT");
    }

    #[test]
    fn what_is_not_certain_stays() {
        for sql in [
            "",
            "SELECT 1",
            "SELECT a FROM t",
            "CREATE TABLE t (a DEFAULT 5)",
            "PRAGMA cache_size = 5",
            "EXPLAIN DELETE FROM t WHERE k = 7",
            "WITH w AS (VALUES (1)) INSERT INTO t SELECT * FROM w",
            "INSERT INTO t SELECT a FROM u WHERE k = 7",
            "INSERT INTO t VALUES (1) UNION SELECT 2",
            "SELECT a FROM t WHERE k = 7 UNION SELECT 2",
            "SELECT a FROM t WHERE k = ?1 AND a = 7",
            "DELETE FROM t WHERE k = 7 -- the seventh",
            "DELETE FROM t WHERE /* all */ k = 7",
            "DELETE FROM t WHERE k = 0x10",
            "DELETE FROM t WHERE k = 7and 1",
            "DELETE FROM t WHERE k = 1_000",
            "DELETE FROM t WHERE k = 9223372036854775808",
            "DELETE FROM t WHERE k = 'open",
            "DELETE FROM t WHERE k = 'a\0b'",
            "DELETE FROM t WHERE k = \"a\"",
            "DELETE FROM t WHERE k = 'a' COLLATE nocase",
            "DELETE FROM t WHERE k BETWEEN 1 AND 2",
            "DELETE FROM t WHERE a ->> 'k'",
            "UPDATE t SET (a, b) = (1, 2)",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES (1))",
            "INSERT INTO t DEFAULT VALUES",
        ] {
            assert_eq!(shape(sql), None, "{sql}");
        }
        let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(TEXT_MAX));
        assert_eq!(shape(&long), None);
    }
}
