//! Reading texts: RFC 8259 and the extensions of JSON5 that SQLite takes.
//!
//! One pass tells a [`Sink`] of the elements.
//!
//! Containers that are open lie on a stack, so that no nesting costs the thread's.
//! Strings and numbers are told as they are written: what of them is not RFC 8259 is said
//! by the element's kind alone.

use super::jsonb::{self, DEPTH_MAX, kind};
use super::sink::{Blob, Sink};
use super::space::{space_len, standard_space_len};
use super::text::{hex, plain_len, separator_len};

/// What parsing tells besides the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// It is RFC 8259 without extensions.
    pub is_strict: bool,
}

/// Where a text stops to be JSON, by its byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong(pub usize);

/// Appends the elements of a text to `out`. A zero byte ends the text.
pub fn parse(text: &[u8], out: &mut Vec<u8>) -> Result<Parsed, Wrong> {
    read(text, &mut Blob(out))
}

/// Tells of the elements of a text. A zero byte ends the text.
pub fn read<S: Sink>(text: &[u8], sink: &mut S) -> Result<Parsed, Wrong> {
    let mut parser = Parser {
        text,
        sink,
        open: Vec::new(),
        is_strict: true,
        mark: 0,
    };
    let outcome = parser.document();
    let (is_strict, mark) = (parser.is_strict, parser.mark);
    match outcome {
        Ok(()) => Ok(Parsed { is_strict }),
        Err(Failed) => Err(Wrong(mark)),
    }
}

/// The text is wrong at the parser's mark.
struct Failed;

type Outcome<T> = Result<T, Failed>;

/// A container that has begun.
struct Open {
    /// What the sink gave for it.
    begun: usize,
    is_object: bool,
    is_empty: bool,
    /// It stands where a label is due, which is looked for there.
    label_at: Option<usize>,
}

/// What stands next, behind space.
enum Next {
    /// An element of this kind that ends there; it has been told.
    Element(usize, u8),
    /// A container begins there.
    Container(usize),
    /// Punctuation that ends or parts elements, at the mark.
    Punctuation(u8),
    /// Nothing.
    End,
}

/// What is due.
enum Due {
    /// A value, or where one may be missing the end of the array.
    Value(usize),
    /// A label or the end of the object.
    Label(usize),
    /// What follows an element.
    Behind(usize),
}

struct Parser<'a, S> {
    text: &'a [u8],
    sink: &'a mut S,
    open: Vec<Open>,
    is_strict: bool,
    /// Where the text was last found wrong, or punctuation behind unusual space.
    mark: usize,
}

impl<'a, S: Sink> Parser<'a, S> {
    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn rest(&self, at: usize) -> &'a [u8] {
        let text: &'a [u8] = self.text;
        text.get(at..).unwrap_or(&[])
    }

    /// The text from `at` to `end`.
    #[inline(always)]
    fn part(&self, at: usize, end: usize) -> &'a [u8] {
        let text: &'a [u8] = self.text;
        text.get(at..end).unwrap_or(&[])
    }

    fn fail<T>(&mut self, at: usize) -> Outcome<T> {
        self.mark = at;
        Err(Failed)
    }

    fn document(&mut self) -> Outcome<()> {
        let mut due = Due::Value(0);
        loop {
            due = match due {
                Due::Value(at) => self.value(at)?,
                Due::Label(at) => self.label(at)?,
                Due::Behind(at) => match self.open.last() {
                    Some(_) => self.behind(at)?,
                    None => return self.end(at),
                },
            };
        }
    }

    /// Nothing but space may follow.
    fn end(&mut self, at: usize) -> Outcome<()> {
        let at = at + standard_space_len(self.rest(at));
        if self.byte(at) == 0 {
            return Ok(());
        }
        self.is_strict = false;
        let at = at + space_len(self.rest(at));
        match self.byte(at) {
            0 => Ok(()),
            _ => Err(Failed),
        }
    }

    fn value(&mut self, at: usize) -> Outcome<Due> {
        match self.next::<false>(at)? {
            Next::Element(end, _) => {
                self.note_element();
                Ok(Due::Behind(end))
            }
            Next::Container(begins) => self.begin(begins, None),
            other => {
                let array = self.open.last().filter(|open| !open.is_object);
                match (other, array) {
                    (Next::Punctuation(b']'), Some(array)) => {
                        self.is_strict &= array.is_empty;
                        self.close(self.mark)
                    }
                    _ if self.open.is_empty() => Err(Failed),
                    _ => self.fail(at),
                }
            }
        }
    }

    fn label(&mut self, at: usize) -> Outcome<Due> {
        let end = match self.next::<true>(at) {
            Ok(Next::Container(container)) => return self.begin(container, Some(at)),
            Ok(Next::Element(end, kind)) => {
                if !jsonb::is_text(kind) {
                    return self.fail(at);
                }
                end
            }
            Ok(Next::Punctuation(b'}')) => {
                self.is_strict &= self.open.last().is_none_or(|open| open.is_empty);
                return self.close(self.mark);
            }
            other => self.bare_label(at, other.is_ok())?,
        };
        self.colon(end)
    }

    /// A label without quotes. `is_plain`: nothing else was wrong before.
    fn bare_label(&mut self, at: usize, is_plain: bool) -> Outcome<usize> {
        let start = at + space_len(self.rest(at));
        let escape = |parser: &Self, at: usize| {
            parser.byte(at) == b'\\'
                && parser.byte(at + 1) == b'u'
                && hex(parser.rest(at + 2), 4).is_some()
        };
        let (mut end, mut kind) = (start, kind::TEXT);
        loop {
            let byte = self.byte(end);
            let is_first = end == start;
            if escape(self, end) {
                kind = kind::TEXTJ;
            } else if !(is_label_byte(byte) || !is_first && byte.is_ascii_digit())
                || !is_first && space_len(self.rest(end)) > 0
            {
                break;
            }
            end += 1;
        }
        if end == start {
            return match is_plain {
                true => self.fail(start),
                false => Err(Failed),
            };
        }
        let label = self.part(start, end);
        self.sink.label(kind, label);
        self.is_strict = false;
        Ok(end)
    }

    /// The colon behind a label.
    #[inline]
    fn colon(&mut self, at: usize) -> Outcome<Due> {
        if self.byte(at) == b':' {
            return Ok(Due::Value(at + 1));
        }
        let at = at + standard_space_len(self.rest(at));
        if self.byte(at) == b':' {
            return Ok(Due::Value(at + 1));
        }
        match self.next::<false>(at)? {
            Next::Punctuation(b':') => Ok(Due::Value(self.mark + 1)),
            Next::Container(container) => self.begin(container, Some(at)),
            _ => self.fail(at),
        }
    }

    /// A comma, or the end of the container.
    #[inline]
    fn behind(&mut self, at: usize) -> Outcome<Due> {
        let is_object = self.open.last().is_some_and(|open| open.is_object);
        let close = if is_object { b'}' } else { b']' };
        if self.byte(at) == b',' {
            return Ok(match is_object {
                true => Due::Label(at + 1),
                false => Due::Value(at + 1),
            });
        }
        let at = at + standard_space_len(self.rest(at));
        let (found, place) = match self.byte(at) {
            byte if byte == b',' || byte == close => (byte, at),
            _ => match self.next::<false>(at) {
                Ok(Next::Punctuation(byte)) if byte == b',' || byte == close => (byte, self.mark),
                _ => return self.fail(at),
            },
        };
        Ok(match (found == close, is_object) {
            (true, _) => self.close(place)?,
            (false, true) => Due::Label(place + 1),
            (false, false) => Due::Value(place + 1),
        })
    }

    /// Begins the container whose bracket is at `at`.
    fn begin(&mut self, at: usize, label_at: Option<usize>) -> Outcome<Due> {
        let is_object = self.byte(at) == b'{';
        let kind = if is_object { kind::OBJECT } else { kind::ARRAY };
        self.note_element();
        let begun = self.sink.begin(kind, self.text.len() - at);
        if self.open.len() >= DEPTH_MAX {
            return self.fail(at);
        }
        self.open.push(Open {
            begun,
            is_object,
            is_empty: true,
            label_at,
        });
        Ok(match is_object {
            true => Due::Label(at + 1),
            false => Due::Value(at + 1),
        })
    }

    /// Ends the innermost container with the bracket at `at`.
    fn close(&mut self, at: usize) -> Outcome<Due> {
        if let Some(open) = self.open.pop() {
            self.sink.end(open.begun);
            if let Some(label_at) = open.label_at {
                return self.fail(label_at);
            }
        }
        Ok(Due::Behind(at + 1))
    }

    /// The innermost container has an element.
    #[inline(always)]
    fn note_element(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.is_empty = false;
        }
    }

    /// Looks behind space and tells of what is no container, as of a label if one is due.
    #[inline]
    fn next<const LABEL: bool>(&mut self, mut at: usize) -> Outcome<Next> {
        loop {
            let byte = self.byte(at);
            let (end, kind) = match byte {
                b'{' | b'[' => return Ok(Next::Container(at)),
                b'"' => self.string::<LABEL>(at)?,
                b'\'' => {
                    self.is_strict = false;
                    self.string::<LABEL>(at)?
                }
                b'-' | b'+' | b'.' | b'0'..=b'9' => self.number(at)?,
                b'}' | b']' | b',' | b':' => {
                    self.mark = at;
                    return Ok(Next::Punctuation(byte));
                }
                0 => return Ok(Next::End),
                b'\t' | b'\n' | b'\r' | b' ' => {
                    at += standard_space_len(self.rest(at));
                    continue;
                }
                0x0b | 0x0c | b'/' | 0xc2 | 0xe1 | 0xe2 | 0xe3 | 0xef => {
                    let len = space_len(self.rest(at));
                    if len == 0 {
                        return self.fail(at);
                    }
                    self.is_strict = false;
                    at += len;
                    continue;
                }
                _ => self.word(at)?,
            };
            return Ok(Next::Element(end, kind));
        }
    }

    /// true, false, null, and the numbers that are words.
    fn word(&mut self, at: usize) -> Outcome<(usize, u8)> {
        const WORDS: [(&[u8], u8); 3] = [
            (b"true", kind::TRUE),
            (b"false", kind::FALSE),
            (b"null", kind::NULL),
        ];
        const NUMBERS: [(&[u8], u8); 5] = [
            (b"inf", kind::FLOAT),
            (b"infinity", kind::FLOAT),
            (b"nan", kind::NULL),
            (b"qnan", kind::NULL),
            (b"snan", kind::NULL),
        ];
        let rest = self.rest(at);
        let is_alone = |len: usize| !rest.get(len).is_some_and(u8::is_ascii_alphanumeric);
        let exact = |(word, _): &&(&[u8], u8)| rest.starts_with(word) && is_alone(word.len());
        if let Some((word, kind)) = WORDS.iter().find(exact) {
            let end = at + word.len();
            self.sink.scalar(*kind, &[]);
            return Ok((end, *kind));
        }
        let any_case = |(word, _): &&(&[u8], u8)| {
            let written = rest.get(..word.len());
            written.is_some_and(|w| w.eq_ignore_ascii_case(word)) && is_alone(word.len())
        };
        let Some((word, kind)) = NUMBERS.iter().find(any_case) else {
            return self.fail(at);
        };
        let end = at + word.len();
        self.is_strict = false;
        match *kind {
            kind::FLOAT => self.sink.scalar(kind::FLOAT, b"9e999"),
            _ => self.sink.scalar(kind::NULL, &[]),
        }
        Ok((end, *kind))
    }

    #[inline]
    fn string<const LABEL: bool>(&mut self, at: usize) -> Outcome<(usize, u8)> {
        let quote = self.byte(at);
        let mut end = at + 1;
        let mut kind = kind::TEXT;
        loop {
            end += plain_len(self.rest(end));
            let byte = self.byte(end);
            if byte == quote {
                break;
            }
            match byte {
                0 => return self.fail(end),
                b'\\' => {
                    end += 1;
                    let len = self.escape(end, &mut kind)?;
                    end += len;
                    continue;
                }
                // A quote of the other kind, or a control character.
                b'\'' => {}
                b'"' => kind = kind::TEXT5,
                _ => {
                    kind = kind::TEXT5;
                    self.is_strict = false;
                }
            }
            end += 1;
        }
        let text = self.part(at + 1, end);
        match LABEL {
            true => self.sink.label(kind, text),
            false => self.sink.scalar(kind, text),
        }
        Ok((end + 1, kind))
    }

    /// How many bytes behind a backslash belong to the escape.
    fn escape(&mut self, at: usize, of: &mut u8) -> Outcome<usize> {
        let rest = self.rest(at);
        let strict = match rest.first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            Some(b'u') => hex(rest.get(1..).unwrap_or(&[]), 4).is_some(),
            _ => false,
        };
        if strict {
            if *of == kind::TEXT {
                *of = kind::TEXTJ;
            }
            return Ok(1);
        }
        let len = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\'' | b'v' | b'\n' | b'\r', ..] => 1,
            [b'0', next, ..] if next.is_ascii_digit() => return self.fail(at),
            [b'0', ..] => 1,
            [b'x', digits @ ..] if hex(digits, 2).is_some() => 1,
            _ if separator_len(rest) > 0 => 1,
            _ => return self.fail(at),
        };
        *of = kind::TEXT5;
        self.is_strict = false;
        Ok(len)
    }

    fn number(&mut self, at: usize) -> Outcome<(usize, u8)> {
        let first = self.byte(at);
        let (mut is_json5, mut is_real) = (false, false);
        if first == b'.' {
            if !self.byte(at + 1).is_ascii_digit() {
                return self.fail(at);
            }
            (is_json5, is_real) = (true, true);
        } else {
            let is_signed = matches!(first, b'+' | b'-');
            let digits = at + usize::from(is_signed);
            if is_signed && !self.byte(digits).is_ascii_digit() {
                if let Some(end) = self.infinity(at) {
                    return Ok((end, kind::FLOAT));
                }
                if self.byte(digits) != b'.' {
                    return self.fail(at);
                }
                is_json5 = true;
            } else if self.byte(digits) == b'0' {
                let is_hex = matches!(self.byte(digits + 1), b'x' | b'X')
                    && self.byte(digits + 2).is_ascii_hexdigit();
                if is_hex {
                    let mut end = digits + 2;
                    while self.byte(end).is_ascii_hexdigit() {
                        end += 1;
                    }
                    return Ok((end, self.tell_number(at, end, true, false)));
                }
                if self.byte(digits + 1).is_ascii_digit() {
                    return self.fail(at + 1);
                }
            }
        }
        let end = self.decimal(at, &mut is_json5, &mut is_real)?;
        Ok((end, self.tell_number(at, end, is_json5, is_real)))
    }

    /// A signed infinity, in any case.
    fn infinity(&mut self, at: usize) -> Option<usize> {
        let word = self.rest(at + 1);
        let begins = |word: &[u8], with: &[u8]| {
            word.get(..with.len())
                .is_some_and(|w| w.eq_ignore_ascii_case(with))
        };
        if !begins(word, b"inf") {
            return None;
        }
        let end = at + if begins(word, b"infinity") { 9 } else { 4 };
        self.is_strict = false;
        match self.byte(at) {
            b'-' => self.sink.scalar(kind::FLOAT, b"-9e999"),
            _ => self.sink.scalar(kind::FLOAT, b"9e999"),
        }
        Some(end)
    }

    /// Where the decimal number at `at` ends.
    fn decimal(&mut self, at: usize, is_json5: &mut bool, is_real: &mut bool) -> Outcome<usize> {
        let mut end = at + 1;
        let mut has_exponent = false;
        loop {
            match self.byte(end) {
                b'0'..=b'9' => {}
                b'.' if *is_real => return self.fail(end),
                b'.' => *is_real = true,
                b'e' | b'E' => {
                    self.check_point(at, end, is_json5)?;
                    if has_exponent {
                        return self.fail(end);
                    }
                    (*is_real, has_exponent) = (true, true);
                    if matches!(self.byte(end + 1), b'+' | b'-') {
                        end += 1;
                    }
                    if !self.byte(end + 1).is_ascii_digit() {
                        return self.fail(end);
                    }
                }
                _ => break,
            }
            end += 1;
        }
        self.check_point(at, end, is_json5)?;
        Ok(end)
    }

    /// Where a point stands before `end`, a digit must stand before the point.
    fn check_point(&mut self, at: usize, end: usize, is_json5: &mut bool) -> Outcome<()> {
        if self.byte(end - 1) != b'.' {
            return Ok(());
        }
        if end < at + 2 || !self.byte(end - 2).is_ascii_digit() {
            return self.fail(end);
        }
        *is_json5 = true;
        Ok(())
    }

    fn tell_number(&mut self, at: usize, end: usize, is_json5: bool, is_real: bool) -> u8 {
        let is_plus = self.byte(at) == b'+';
        self.is_strict &= !is_plus && !is_json5;
        let kind = match (is_real, is_json5) {
            (false, false) => kind::INT,
            (false, true) => kind::INT5,
            (true, false) => kind::FLOAT,
            (true, true) => kind::FLOAT5,
        };
        let start = at + usize::from(is_plus);
        let number = self.part(start, end);
        self.sink.scalar(kind, number);
        kind
    }
}

/// A byte of a label without quotes, but for digits.
fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | 0x80..)
}
