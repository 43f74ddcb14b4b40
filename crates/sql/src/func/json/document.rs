//! The documents that functions are called with: their JSONB, or one element of it.

use std::borrow::Cow;

use super::jsonb::is_jsonb;
use super::parse;
use super::seek::Seek;
use super::{bad_path, find, malformed};
use crate::error::Result;
use crate::func::Context;
use crate::value::ValueRef;

/// What is kept from one call to the next.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Where the last text lay: one that comes again is the same column or constant.
    seen: (usize, usize),
    /// The text that `blob` is of, if it is kept.
    text: Option<Vec<u8>>,
    blob: Vec<u8>,
    /// What a path led to.
    found: Vec<u8>,
}

/// Bytes above which a document is not kept.
const KEPT_BYTES: usize = 1 << 20;

impl Document {
    /// Whether a text is the one that came last, so that its JSONB is worth being kept.
    fn is_seen(&mut self, text: &[u8]) -> bool {
        let place = (text.as_ptr().addr(), text.len());
        std::mem::replace(&mut self.seen, place) == place
    }

    /// The JSONB of a text, to be kept or not.
    fn of_text(&mut self, text: &[u8], is_kept: bool) -> Result<&[u8]> {
        if self.text.as_deref() != Some(text) {
            self.text = None;
            self.blob.clear();
            parse::parse(text, &mut self.blob).map_err(|_| malformed())?;
            self.text = is_kept.then(|| text.to_vec());
        }
        Ok(&self.blob)
    }
}

/// Calls `f` with the JSONB that a value is or that its text says; None for NULL.
pub fn with_document<T>(
    context: &mut Context,
    value: ValueRef<'_>,
    f: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<Option<T>> {
    let text: Cow<'_, [u8]> = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Blob(blob) if is_jsonb(blob) => return f(blob).map(Some),
        ValueRef::Text(text) | ValueRef::Blob(text) => Cow::Borrowed(text),
        number => number.to_text().unwrap_or_default(),
    };
    let document = context.document.get_or_insert_default();
    let is_kept = document.is_seen(&text);
    let outcome = document.of_text(&text, is_kept).and_then(f);
    if document.blob.len() > KEPT_BYTES {
        context.document = None;
    }
    outcome.map(Some)
}

/// Calls `f` with the element that the steps of `path` lead to; None where there is none. A
/// text that comes for the first time is read through for it.
pub fn with_element<T>(
    context: &mut Context,
    value: ValueRef<'_>,
    steps: Option<&[u8]>,
    path: &[u8],
    f: impl FnOnce(&[u8], usize) -> Result<T>,
) -> Result<Option<T>> {
    if let (ValueRef::Text(text), Some(steps)) = (value, steps) {
        let document = context.document.get_or_insert_default();
        if !document.is_seen(text)
            && let Some(mut seek) = Seek::new(steps, &mut document.found)
        {
            parse::read(text, &mut seek).map_err(|_| malformed())?;
            return match document.found.is_empty() {
                true => Ok(None),
                false => f(&document.found, 0).map(Some),
            };
        }
    }
    let found = with_document(context, value, |blob| {
        let at = find(blob, steps.ok_or_else(|| bad_path(path))?, path)?;
        at.map(|at| f(blob, at)).transpose()
    })?;
    Ok(found.flatten())
}

/// The JSONB of a value, to be changed; None for NULL.
pub fn owned_document(context: &mut Context, value: ValueRef<'_>) -> Result<Option<Vec<u8>>> {
    match value {
        ValueRef::Text(text) => jsonb_of(text).map(Some),
        value => with_document(context, value, |blob| Ok(blob.to_vec())),
    }
}

/// The JSONB of a text of JSON.
pub fn jsonb_of(text: &[u8]) -> Result<Vec<u8>> {
    let mut blob = Vec::with_capacity(text.len());
    match parse::parse(text, &mut blob) {
        Ok(_) => Ok(blob),
        Err(_) => Err(malformed()),
    }
}
