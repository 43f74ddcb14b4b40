//! JSONB: the binary form of JSON, as <https://sqlite.org/jsonb.html> describes it.
//!
//! An element is a header and a payload. The header's first byte has the kind in its low
//! half; its high half is the payload's length, or 12 to 15 where the length follows in 1,
//! 2, 4 or 8 bytes, the highest first. The payload of an array is its elements one behind
//! the other, that of an object its labels and values in turn.
//!
//! What is made here has the shortest headers. A blob that somebody hands in may be
//! anything: [`element`] tells where an element ends within the blob or that it does not,
//! and [`is_jsonb`] only looks at the outermost one.

use super::text::{is_plain, unescape_one};

/// Deepest nesting.
pub const DEPTH_MAX: usize = 1000;

/// The kinds of elements, as the low half of a header names them.
#[allow(missing_docs)]
pub mod kind {
    pub const NULL: u8 = 0;
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    /// An integer as RFC 8259 writes it.
    pub const INT: u8 = 3;
    /// A hexadecimal one.
    pub const INT5: u8 = 4;
    /// Another number as RFC 8259 writes it.
    pub const FLOAT: u8 = 5;
    /// One that starts or ends with its point.
    pub const FLOAT5: u8 = 6;
    /// A text without escapes that needs none.
    pub const TEXT: u8 = 7;
    /// One with escapes of RFC 8259.
    pub const TEXTJ: u8 = 8;
    /// One with escapes of JSON5.
    pub const TEXT5: u8 = 9;
    /// One without escapes that may need some.
    pub const TEXTRAW: u8 = 10;
    pub const ARRAY: u8 = 11;
    pub const OBJECT: u8 = 12;
}

/// What `json_type()` says of each kind.
const TYPES: [&str; 13] = [
    "null", "true", "false", "integer", "integer", "real", "real", "text", "text", "text", "text",
    "array", "object",
];

/// An element's place in its blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Its kind.
    pub kind: u8,
    /// Where the payload starts.
    pub start: usize,
    /// Where the element ends.
    pub end: usize,
}

impl Element {
    /// Its payload.
    pub fn payload<'a>(&self, blob: &'a [u8]) -> &'a [u8] {
        blob.get(self.start..self.end).unwrap_or(&[])
    }

    /// An array or an object.
    pub fn is_container(&self) -> bool {
        matches!(self.kind, kind::ARRAY | kind::OBJECT)
    }

    /// What `json_type()` says; None for a kind that there is not.
    pub fn type_name(&self) -> Option<&'static str> {
        TYPES.get(usize::from(self.kind)).copied()
    }
}

/// Whether a kind is one of texts, as labels are.
pub fn is_text(kind: u8) -> bool {
    (kind::TEXT..=kind::TEXTRAW).contains(&kind)
}

/// Whether a text of this kind has no escapes.
pub fn is_unescaped(kind: u8) -> bool {
    matches!(kind, kind::TEXT | kind::TEXTRAW)
}

/// The length of a header by the high half of its first byte.
fn header_len(high: u8) -> usize {
    match high {
        0..=11 => 1,
        12 => 2,
        13 => 3,
        14 => 5,
        _ => 9,
    }
}

/// The element at `at`; None where it does not end within the blob.
#[inline]
pub fn element(blob: &[u8], at: usize) -> Option<Element> {
    let first = *blob.get(at)?;
    let (kind, high) = (first & 0x0f, first >> 4);
    let (start, len) = match high {
        0..=11 => (at + 1, usize::from(high)),
        12 => (at + 2, usize::from(*blob.get(at + 1)?)),
        _ => {
            let start = at + header_len(high);
            let mut len = 0u64;
            for byte in blob.get(at + 1..start)? {
                len = len.checked_mul(256)? | u64::from(*byte);
            }
            (
                start,
                usize::try_from(len)
                    .ok()
                    .filter(|len| *len <= u32::MAX as usize)?,
            )
        }
    };
    let end = start + len;
    (end <= blob.len()).then_some(Element { kind, start, end })
}

/// Where the header at `at` ends.
#[inline]
pub fn header_end(blob: &[u8], at: usize) -> usize {
    at + header_len(blob.get(at).map_or(0, |first| first >> 4))
}

/// How many bytes the shortest header takes for so long a payload.
pub fn header_len_for(payload: usize) -> usize {
    match payload {
        0..=11 => 1,
        12..=0xff => 2,
        0x100..=0xffff => 3,
        _ => 5,
    }
}

/// Writes a header of this length to the start of `out`.
fn write_header(out: &mut [u8], kind: u8, payload: usize, len: usize) {
    let high = match len {
        1 => payload as u8,
        2 => 12,
        3 => 13,
        5 => 14,
        _ => 15,
    };
    let mut rest = payload as u64;
    for byte in out.iter_mut().take(len).skip(1).rev() {
        *byte = rest as u8;
        rest >>= 8;
    }
    if let Some(first) = out.first_mut() {
        *first = high << 4 | kind;
    }
}

/// Appends the shortest header.
#[inline]
pub fn push_header(out: &mut Vec<u8>, kind: u8, payload: usize) {
    if payload <= 11 {
        out.push((payload as u8) << 4 | kind);
        return;
    }
    let (at, len) = (out.len(), header_len_for(payload));
    out.resize(at + len, 0);
    write_header(&mut out[at..], kind, payload, len);
}

/// Appends an element.
#[inline]
pub fn push(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    push_header(out, kind, payload.len());
    out.extend_from_slice(payload);
}

/// Makes the header of the element at `at` say that its payload, which is in place behind
/// the header, has this length. By how much the header became longer.
pub fn set_payload(blob: &mut Vec<u8>, at: usize, payload: usize) -> isize {
    let Some(first) = blob.get(at).copied() else {
        return 0;
    };
    let (before, after) = (header_len(first >> 4), header_len_for(payload));
    if before < after {
        blob.splice(at..at, std::iter::repeat_n(0, after - before));
    } else if before > after {
        blob.drain(at..at + before - after);
    }
    if let Some(header) = blob.get_mut(at..) {
        write_header(header, first & 0x0f, payload, after);
    }
    after as isize - before as isize
}

/// The same element with a header that is `more` bytes longer, where there is one.
pub fn lengthened(element: &[u8], more: usize) -> Option<Vec<u8>> {
    let first = *element.first()?;
    let before = header_len(first >> 4);
    let after = before + more;
    if first & 0x0f <= kind::FALSE || !matches!(after, 2 | 3 | 5 | 9) {
        return None;
    }
    let payload = element.get(before..)?;
    let mut out = vec![0; after];
    write_header(&mut out, first & 0x0f, payload.len(), after);
    out.extend_from_slice(payload);
    Some(out)
}

/// Whether a blob looks like JSONB: its outermost element fills it. One that could as well
/// be a short text of JSON must be valid altogether.
pub fn is_jsonb(blob: &[u8]) -> bool {
    let Some(whole) = element(blob, 0) else {
        return false;
    };
    let first = blob.first().copied().unwrap_or(0);
    let len = whole.end - whole.start;
    whole.kind <= kind::OBJECT
        && whole.end == blob.len()
        && (whole.kind > kind::FALSE || len == 0)
        && (len > 7
            || !matches!(first, b'{' | b'[' | b'0'..=b'9')
            || error_position(blob).is_none())
}

/// A container that is being checked.
struct Open {
    end: usize,
    is_object: bool,
    elements: usize,
}

/// Where valid JSONB ends to be that, counted from 1; None: it is valid altogether.
pub fn error_position(blob: &[u8]) -> Option<usize> {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    loop {
        let Some(found) = element(blob, at) else {
            return Some(at + 1);
        };
        if let Some(parent) = open.last_mut() {
            let is_label = parent.is_object && parent.elements.is_multiple_of(2);
            if found.end > parent.end || is_label && !is_text(found.kind) {
                return Some(at + 1);
            }
            parent.elements += 1;
        }
        if open.len() >= DEPTH_MAX {
            return Some(at + 1);
        }
        if found.is_container() {
            open.push(Open {
                end: found.end,
                is_object: found.kind == kind::OBJECT,
                elements: 0,
            });
            at = found.start;
        } else {
            if let Some(wrong) = scalar_error(blob, at, found) {
                return Some(wrong + 1);
            }
            at = found.end;
        }
        while let Some(parent) = open.last()
            && at == parent.end
        {
            if parent.is_object && !parent.elements.is_multiple_of(2) {
                return Some(at + 1);
            }
            open.pop();
        }
        if open.is_empty() {
            return None;
        }
    }
}

/// Where an element that is no container is wrong.
fn scalar_error(blob: &[u8], at: usize, element: Element) -> Option<usize> {
    let payload = element.payload(blob);
    let behind = |wrong: Option<usize>| wrong.map(|i| element.start + i);
    match element.kind {
        kind::NULL | kind::TRUE | kind::FALSE => (element.end != at + 1).then_some(at),
        kind::INT | kind::INT5 | kind::FLOAT | kind::FLOAT5 => {
            match number_error(element.kind, payload) {
                Ok(()) => None,
                Err(None) => Some(at),
                Err(wrong) => behind(wrong),
            }
        }
        kind::TEXT => behind(payload.iter().position(|b| !is_plain(*b) && *b != b'\'')),
        kind::TEXTJ | kind::TEXT5 => behind(escape_error(payload, element.kind == kind::TEXT5)),
        kind::TEXTRAW => None,
        _ => Some(at),
    }
}

/// Err(None): the number as a whole is wrong.
fn number_error(of: u8, payload: &[u8]) -> Result<(), Option<usize>> {
    let sign = usize::from(payload.first() == Some(&b'-'));
    let digits = payload.get(sign..).unwrap_or(&[]);
    let least = match of {
        kind::INT => 1,
        kind::INT5 => 3,
        _ => 2,
    };
    if digits.len() < least {
        return Err(None);
    }
    match of {
        kind::INT => match digits.iter().position(|b| !b.is_ascii_digit()) {
            None => Ok(()),
            Some(i) => Err(Some(sign + i)),
        },
        kind::INT5 => match digits {
            [b'0', b'x' | b'X', hex @ ..] => {
                match hex.iter().position(|b| !b.is_ascii_hexdigit()) {
                    None => Ok(()),
                    Some(i) => Err(Some(sign + 2 + i)),
                }
            }
            [b'0', ..] => Err(Some(sign + 1)),
            _ => Err(None),
        },
        _ => real_error(digits, of == kind::FLOAT).map_err(|at| at.map(|i| sign + i)),
    }
}

fn real_error(digits: &[u8], is_strict: bool) -> Result<(), Option<usize>> {
    let byte = |i: usize| digits.get(i).copied().unwrap_or(0);
    let last = digits.len() - 1;
    let (mut at, mut point, mut exponent) = (0, false, false);
    if byte(0) == b'.' {
        if is_strict || !byte(1).is_ascii_digit() {
            return Err(Some(0));
        }
        (at, point) = (2, true);
    } else if byte(0) == b'0' && is_strict {
        if digits.len() < 3 || !matches!(byte(1), b'.' | b'e' | b'E') {
            return Err(Some(0));
        }
        at = 1;
    }
    while at <= last {
        match byte(at) {
            b'0'..=b'9' => {}
            b'.' => {
                if point || exponent || is_strict && !byte(at + 1).is_ascii_digit() {
                    return Err(Some(at));
                }
                point = true;
            }
            b'e' | b'E' => {
                if exponent || at == last {
                    return Err(Some(at));
                }
                if matches!(byte(at + 1), b'+' | b'-') {
                    at += 1;
                    if at == last {
                        return Err(Some(at));
                    }
                }
                exponent = true;
            }
            _ => return Err(Some(at)),
        }
        at += 1;
    }
    if point || exponent { Ok(()) } else { Err(None) }
}

/// Where an escaped text is wrong.
fn escape_error(text: &[u8], is_json5: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if is_plain(byte) || byte == b'\'' {
            at += 1;
            continue;
        }
        if byte != b'\\' {
            // A quote or a control character as it is.
            if !is_json5 {
                return Some(at);
            }
            at += 1;
            continue;
        }
        match text.get(at + 1) {
            None => return Some(at),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | 0) => at += 2,
            Some(b'u') => {
                let hex = text.get(at + 2..at + 6);
                if at + 6 > text.len() || !hex.is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit))
                {
                    return Some(at);
                }
                at += 2;
            }
            Some(_) if !is_json5 => return Some(at),
            Some(_) => match unescape_one(&text[at..]) {
                (None, _) => return Some(at),
                (Some(_), len) => at += len,
            },
        }
    }
    None
}
