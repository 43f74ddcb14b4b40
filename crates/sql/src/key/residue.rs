//! What a key's order cannot tell about its columns.
//!
//! A sequence of entries, columns ascending: the column's number (varint), a
//! kind byte, and what the kind needs. Most columns have none, so most
//! sequences are empty.

use super::{KeyColumn, malformed};
use crate::error::Result;
use crate::value::{Collation, ValueRef, trim_spaces};

const OTHER_NUMBER: u8 = 1;
const NEGATIVE_ZERO: u8 = 2;
const UPPER_CASE: u8 = 3;
const SPACES: u8 = 4;

/// The residue of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residue<'a> {
    /// An integral number that is a real; in a column of REAL affinity, one
    /// that is an integer.
    OtherNumber,
    /// -0.0
    NegativeZero,
    /// Bit i (lowest first) tells that byte i was an upper-case letter.
    UpperCase(&'a [u8]),
    /// As many spaces stood at the end.
    Spaces(usize),
}

/// Appends the residue of column number `index`; nothing where it has none.
#[inline]
pub fn encode_residue(out: &mut Vec<u8>, index: usize, value: ValueRef<'_>, column: KeyColumn) {
    match value {
        ValueRef::Integer(_) if column.real => entry(out, index, OTHER_NUMBER),
        ValueRef::Real(r) => real(out, index, r, column.real),
        ValueRef::Text(text) => match column.collation {
            Collation::Binary | Collation::Program(_) => {}
            Collation::NoCase => upper_case(out, index, text),
            Collation::RTrim => {
                let count = text.len() - trim_spaces(text).len();
                if count > 0 {
                    entry(out, index, SPACES);
                    varint(out, count);
                }
            }
        },
        _ => {}
    }
}

fn real(out: &mut Vec<u8>, index: usize, r: f64, real_column: bool) {
    if r == 0.0 && r.is_sign_negative() {
        entry(out, index, NEGATIVE_ZERO);
    } else if !real_column && r.fract() == 0.0 && r.abs() <= 9_223_372_036_854_775_808.0 {
        entry(out, index, OTHER_NUMBER);
    }
}

fn upper_case(out: &mut Vec<u8>, index: usize, text: &[u8]) {
    let Some(last) = text.iter().rposition(u8::is_ascii_uppercase) else {
        return;
    };
    entry(out, index, UPPER_CASE);
    let len = last / 8 + 1;
    varint(out, len);
    for chunk in text.chunks(8).take(len) {
        out.push(chunk.iter().enumerate().fold(0, |bits, (i, b)| {
            bits | (u8::from(b.is_ascii_uppercase()) << i)
        }));
    }
}

fn entry(out: &mut Vec<u8>, index: usize, kind: u8) {
    varint(out, index);
    out.push(kind);
}

/// LEB128
fn varint(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(0x80 | n as u8);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take_varint(input: &mut &[u8]) -> Result<usize> {
    let mut n = 0u64;
    for shift in (0..35).step_by(7) {
        let [b, rest @ ..] = *input else { break };
        *input = rest;
        n |= u64::from(b & 0x7f) << shift;
        if *b < 0x80 {
            return Ok(n as usize);
        }
    }
    Err(malformed("index residue with a wrong number"))
}

/// The residues of an entry, handed out by column.
#[derive(Debug, Clone, Copy)]
pub struct Residues<'a> {
    rest: &'a [u8],
    next: Option<usize>,
}

impl<'a> Residues<'a> {
    /// Over an index entry's value (without the rowid of a UNIQUE one).
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut out = Self {
            rest: bytes,
            next: None,
        };
        if !bytes.is_empty() {
            out.peek()?;
        }
        Ok(out)
    }

    fn peek(&mut self) -> Result<()> {
        self.next = if self.rest.is_empty() {
            None
        } else {
            Some(take_varint(&mut self.rest)?)
        };
        Ok(())
    }

    /// The residue of column number `index`; columns are asked for in ascending
    /// order, and those left out are passed over.
    ///
    /// # Errors
    /// `SQLITE_CORRUPT`.
    #[inline]
    pub fn take(&mut self, index: usize) -> Result<Option<Residue<'a>>> {
        while let Some(next) = self.next {
            if next > index {
                return Ok(None);
            }
            let residue = self.read()?;
            self.peek()?;
            if next == index {
                return Ok(Some(residue));
            }
        }
        Ok(None)
    }

    fn read(&mut self) -> Result<Residue<'a>> {
        let [kind, rest @ ..] = self.rest else {
            return Err(malformed("index residue cut short"));
        };
        self.rest = rest;
        match *kind {
            OTHER_NUMBER => Ok(Residue::OtherNumber),
            NEGATIVE_ZERO => Ok(Residue::NegativeZero),
            UPPER_CASE => {
                let len = take_varint(&mut self.rest)?;
                let Some((bits, rest)) = self.rest.split_at_checked(len) else {
                    return Err(malformed("index residue cut short"));
                };
                self.rest = rest;
                Ok(Residue::UpperCase(bits))
            }
            SPACES => Ok(Residue::Spaces(take_varint(&mut self.rest)?)),
            _ => Err(malformed("index residue of an unknown kind")),
        }
    }
}
