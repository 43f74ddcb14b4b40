//! `json_group_array()` and `json_group_object()`, and the same as JSONB.
//!
//! A value that may be a text of JSON comes through `json_quote()`: an aggregate's
//! arguments are evaluated for many rows at once, and what of them counts as JSON would
//! be lost.

use super::document::jsonb_of;
use super::space::until_zero;
use super::text::push_string;
use super::write::push_value;
use crate::error::{Error, Result};
use crate::value::{LENGTH_MAX, Value, ValueRef};

/// Which of the aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonGroup {
    /// An object of names and values, not an array.
    pub is_object: bool,
    /// JSONB.
    pub is_blob: bool,
    /// The last argument is the value as a text of JSON.
    pub is_encoded: bool,
}

/// The state of one group.
#[derive(Debug, Clone)]
pub struct Group {
    of: JsonGroup,
    /// The text without its end.
    text: Vec<u8>,
}

impl Group {
    /// Of a group without rows.
    pub fn new(of: JsonGroup) -> Self {
        Self {
            of,
            text: Vec::new(),
        }
    }

    /// Takes one row's arguments. An object takes no row whose name is NULL.
    ///
    /// # Errors
    /// `JSON cannot hold BLOB values`, `SQLITE_TOOBIG`.
    pub fn step(&mut self, arguments: &[ValueRef<'_>]) -> Result<()> {
        let value = arguments.last().copied().unwrap_or(ValueRef::Null);
        let name = match self.of.is_object {
            false => None,
            true => match arguments.first().and_then(|name| name.to_text()) {
                None => return Ok(()),
                some => some,
            },
        };
        let separator = match (self.text.is_empty(), self.of.is_object) {
            (false, _) => b',',
            (true, true) => b'{',
            (true, false) => b'[',
        };
        self.text.push(separator);
        if let Some(name) = name {
            push_string(until_zero(&name), &mut self.text);
            self.text.push(b':');
        }
        push_value(value, self.of.is_encoded, &mut self.text)?;
        match self.text.len() > LENGTH_MAX {
            true => Err(Error::too_big()),
            false => Ok(()),
        }
    }

    /// The array or object.
    ///
    /// # Errors
    /// `malformed JSON`.
    pub fn finish(&self) -> Result<Value> {
        let mut text = Vec::with_capacity(self.text.len() + 2);
        text.extend_from_slice(&self.text);
        let (begin, end) = match self.of.is_object {
            true => (b'{', b'}'),
            false => (b'[', b']'),
        };
        if text.is_empty() {
            text.push(begin);
        }
        text.push(end);
        match self.of.is_blob {
            true => jsonb_of(&text).map(Value::Blob),
            false => Ok(Value::Text(text)),
        }
    }

    /// Bytes held beyond the state itself.
    pub fn heap_bytes(&self) -> usize {
        self.text.capacity()
    }
}
