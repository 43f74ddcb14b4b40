//! Paths: `$`, `.label`, `."label"`, `[5]`, `[#]` and `[#-2]`.
//!
//! A path is read step by step while it is followed: what is wrong with it shows only as
//! far as the document goes along. Each step looks through one container's elements from
//! the first; of labels that are there twice the first counts.

use super::jsonb::{self, DEPTH_MAX, element, kind};
use super::text::Label;
use crate::error::Error;

/// Why a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Astray {
    /// It is well-formed, as far as it goes, but there is no such element.
    Missing,
    /// It is no path.
    BadPath,
    /// The JSONB is none.
    Malformed,
    /// More steps than containers may nest.
    TooDeep,
    /// What is inserted into an array is to stand in none.
    NotArray,
}

impl Astray {
    /// The error for this path; None where the element is merely missing.
    pub fn error(self, path: &[u8]) -> Option<Error> {
        let quoted = || String::from_utf8_lossy(path).replace('\'', "''");
        let message = match self {
            Astray::Missing => return None,
            Astray::BadPath => format!("bad JSON path: '{}'", quoted()),
            Astray::NotArray => format!("not an array element: '{}'", quoted()),
            Astray::Malformed => return Some(super::malformed()),
            Astray::TooDeep => "JSON path too deep".to_owned(),
        };
        Some(Error::sql(message))
    }
}

/// A step of a path.
#[derive(Debug, Clone, Copy)]
pub enum Step<'p> {
    /// The value under a label.
    Label(Label<'p>),
    /// An element of an array.
    Index(Index),
}

/// Which element of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Counted from 0.
    FromStart(u64),
    /// Counted from 0, the place behind the last.
    FromEnd(u64),
}

/// Takes a step from the front of a path.
pub fn step<'p>(path: &mut &'p [u8]) -> Result<Step<'p>, Astray> {
    let text: &'p [u8] = path;
    let (step, len) = match text {
        [b'.', b'"', rest @ ..] => {
            let end = quoted_end(rest).ok_or(Astray::BadPath)?;
            let (label, _) = rest.split_at(end);
            let is_raw = !label.contains(&b'\\');
            let label = Label {
                text: label,
                is_raw,
            };
            (Step::Label(label), end + 3)
        }
        [b'.', rest @ ..] => {
            let ends = |b: &u8| matches!(b, b'.' | b'[');
            let end = rest.iter().position(ends).unwrap_or(rest.len());
            if end == 0 {
                return Err(Astray::BadPath);
            }
            let label = Label {
                text: &rest[..end],
                is_raw: true,
            };
            (Step::Label(label), end + 1)
        }
        [b'[', rest @ ..] => {
            let (index, len) = index(rest).ok_or(Astray::BadPath)?;
            (Step::Index(index), len + 1)
        }
        _ => return Err(Astray::BadPath),
    };
    *path = text.get(len..).unwrap_or(&[]);
    Ok(step)
}

/// Where the quote is that ends a label.
fn quoted_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' if at + 1 < text.len() => at += 2,
            _ => at += 1,
        }
    }
}

/// An index and its length, the closing bracket included.
fn index(text: &[u8]) -> Option<(Index, usize)> {
    let number = |text: &[u8]| {
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let more = |n: u64, b: &u8| n.saturating_mul(10).saturating_add(u64::from(b - b'0'));
        (text.iter().take(digits).fold(0, more), digits)
    };
    let (found, len) = match text {
        [b'#', b'-', rest @ ..] => match number(rest) {
            (_, 0) => return None,
            (n, digits) => (Index::FromEnd(n), digits + 2),
        },
        [b'#', ..] => (Index::FromEnd(0), 1),
        text => match number(text) {
            (_, 0) => return None,
            (n, digits) => (Index::FromStart(n), digits),
        },
    };
    (text.get(len) == Some(&b']')).then_some((found, len + 1))
}

/// Where a path has led.
#[derive(Debug, Clone, Copy)]
pub enum Place<'p> {
    /// To an element, and its label if it has one.
    Found {
        /// Where it is.
        at: usize,
        /// Where its label is.
        label: Option<usize>,
    },
    /// To where an element could be added to a container: behind its last.
    Addable {
        /// Behind the last.
        at: usize,
        /// The label that it would have.
        label: Option<Label<'p>>,
        /// The steps that are left.
        rest: &'p [u8],
    },
}

/// Follows a path, which is without its `$`, from the element at `root`. The containers on
/// the way are told to `passes`.
pub fn follow<'p>(
    blob: &[u8],
    root: usize,
    mut path: &'p [u8],
    mut passes: impl FnMut(usize),
) -> Result<Place<'p>, Astray> {
    let (mut at, mut label) = (root, None);
    let mut depth = 0;
    while !path.is_empty() {
        let of = element(blob, at).ok_or(Astray::Malformed)?;
        let found = match path.first() {
            Some(b'.') => {
                let Step::Label(wanted) = step(&mut path)? else {
                    return Err(Astray::BadPath);
                };
                if of.kind != kind::OBJECT {
                    return Err(Astray::Missing);
                }
                passes(at);
                member(blob, of, wanted)?.ok_or((of.end, Some(wanted)))
            }
            Some(b'[') => {
                if of.kind != kind::ARRAY {
                    return Err(Astray::Missing);
                }
                let Step::Index(wanted) = step(&mut path)? else {
                    return Err(Astray::BadPath);
                };
                passes(at);
                match item(blob, of, wanted)? {
                    Some(item) => Ok((item, None)),
                    None => Err((of.end, None)),
                }
            }
            _ => return Err(Astray::BadPath),
        };
        depth += 1;
        match found {
            Ok(_) if depth >= DEPTH_MAX => return Err(Astray::TooDeep),
            Ok(found) => (at, label) = found,
            Err((at, label)) => {
                return Ok(Place::Addable {
                    at,
                    label,
                    rest: path,
                });
            }
        }
    }
    Ok(Place::Found { at, label })
}

/// The element at the end of a path from the whole document's.
pub fn find(blob: &[u8], path: &[u8]) -> Result<usize, Astray> {
    match follow(blob, 0, path, |_| {})? {
        Place::Found { at, .. } => Ok(at),
        Place::Addable { .. } => Err(Astray::Missing),
    }
}

/// The value under a label and that label.
fn member(
    blob: &[u8],
    of: jsonb::Element,
    wanted: Label<'_>,
) -> Result<Option<(usize, Option<usize>)>, Astray> {
    let mut at = of.start;
    while at < of.end {
        let label = element(blob, at).filter(|l| jsonb::is_text(l.kind) && l.end < of.end);
        let label = label.ok_or(Astray::Malformed)?;
        let value = element(blob, label.end).filter(|v| v.kind <= kind::OBJECT);
        let is_wanted = wanted.is_same(Label {
            text: label.payload(blob),
            is_raw: jsonb::is_unescaped(label.kind),
        });
        let value = value.ok_or(Astray::Malformed)?;
        if is_wanted {
            return match value.end <= of.end {
                true => Ok(Some((label.end, Some(at)))),
                false => Err(Astray::Malformed),
            };
        }
        at = value.end;
    }
    match at == of.end {
        true => Ok(None),
        false => Err(Astray::Malformed),
    }
}

/// An element of an array; None: the one behind the last.
fn item(blob: &[u8], of: jsonb::Element, wanted: Index) -> Result<Option<usize>, Astray> {
    let mut left = match wanted {
        Index::FromStart(n) => n,
        Index::FromEnd(n) => count(blob, of).checked_sub(n).ok_or(Astray::Missing)?,
    };
    let mut at = of.start;
    while at < of.end {
        if left == 0 {
            return Ok(Some(at));
        }
        left -= 1;
        at = element(blob, at).ok_or(Astray::Malformed)?.end;
    }
    match (at == of.end, left) {
        (false, _) => Err(Astray::Malformed),
        (true, 0) => Ok(None),
        (true, _) => Err(Astray::Missing),
    }
}

/// How many elements an array has, as far as they can be told apart.
pub fn count(blob: &[u8], array: jsonb::Element) -> u64 {
    let (mut at, mut count) = (array.start, 0);
    while at < array.end {
        count += 1;
        match element(blob, at) {
            Some(found) => at = found.end,
            None => break,
        }
    }
    count
}
