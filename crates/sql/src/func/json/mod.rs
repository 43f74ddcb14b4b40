//! JSON: SQLite's functions over texts of JSON and over JSONB.
//!
//! A text is turned into JSONB (`parse`), in one pass and without a tree; everything else
//! works on that: following paths (`path`), changes in place (`edit`), writing text
//! (`write`) and values (`value`). Where all that is asked for is one element, a text is
//! only read through for it (`seek`); those that come again are kept as JSONB
//! (`document`).
//!
//! A text that a JSON function made counts as JSON to another one that gets it as its
//! argument: SQLite's subtype. It belongs to the expression, not to the value, and no
//! column or subquery has it. [`JsonText`](super::JsonText) says which expressions may
//! have it, and the [`Context`] carries it from the call that made the text to the one
//! that takes it.
//!
//! Whatever a text or blob holds, nothing here panics or recurses without bound.

pub mod aggregate;
mod document;
pub mod each;
mod edit;
mod jsonb;
mod parse;
mod path;
mod seek;
mod sink;
mod space;
mod text;
mod value;
mod write;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use super::registry::{fallible, plain};
use super::{Context, GivesJson, ScalarFunction, argument};
use crate::error::{Error, Result};
use crate::value::{Value, ValueRef};
pub use document::Documents;
use document::{jsonb_of, owned_document, with_document, with_element};
use edit::{Edit, Unmergeable};
use jsonb::{element, is_jsonb, kind};
use path::Astray;
use sink::Nothing;
use space::until_zero;
use text::push_string;
use value::{element_of, sql_value};
use write::{Layout, push_text, push_value};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    gives(fallible("json", 1, 1, remove::<false>)),
    fallible("jsonb", 1, 1, remove::<true>),
    gives(takes("json_array", array::<false>)),
    gives(takes("jsonb_array", array::<true>)),
    gives(takes("json_object", object::<false>)),
    gives(takes("jsonb_object", object::<true>)),
    gives(ScalarFunction {
        takes_json: true,
        ..fallible("json_quote", 1, 1, quote)
    }),
    fallible("json_array_length", 1, 2, array_length),
    plain("json_error_position", 1, 1, error_position),
    ScalarFunction {
        gives_json: GivesJson::Maybe,
        ..fallible("json_extract", 0, usize::MAX, extract)
    },
    fallible("jsonb_extract", 0, usize::MAX, extract_blob),
    gives(fallible("->", 2, 2, arrow)),
    fallible("->>", 2, 2, double_arrow),
    gives(takes("json_insert", insert::<false>)),
    takes("jsonb_insert", insert::<true>),
    gives(takes("json_replace", replace::<false>)),
    takes("jsonb_replace", replace::<true>),
    gives(takes("json_set", set::<false>)),
    takes("jsonb_set", set::<true>),
    gives(takes("json_array_insert", array_insert::<false>)),
    takes("jsonb_array_insert", array_insert::<true>),
    gives(fallible("json_remove", 0, usize::MAX, remove::<false>)),
    fallible("jsonb_remove", 0, usize::MAX, remove::<true>),
    gives(fallible("json_patch", 2, 2, patch::<false>)),
    fallible("jsonb_patch", 2, 2, patch::<true>),
    fallible("json_pretty", 1, 2, pretty),
    fallible("json_type", 1, 2, json_type),
    fallible("json_valid", 1, 2, valid),
];

/// The function that makes its first argument count as JSON where the second is true. It
/// has no name that a text could call it by.
pub static AS_JSON: LazyLock<Arc<ScalarFunction>> = LazyLock::new(|| {
    Arc::new(ScalarFunction {
        gives_json: GivesJson::Maybe,
        ..plain("json", 2, 2, as_json)
    })
});

/// Its result is a text of JSON.
const fn gives(f: ScalarFunction) -> ScalarFunction {
    ScalarFunction {
        gives_json: GivesJson::Always,
        ..f
    }
}

/// Any number of arguments, of which texts of JSON count as JSON.
const fn takes(name: &'static str, call: super::ScalarCall) -> ScalarFunction {
    ScalarFunction {
        takes_json: true,
        ..fallible(name, 0, usize::MAX, call)
    }
}

#[cold]
fn malformed() -> Error {
    Error::sql("malformed JSON")
}

#[cold]
fn too_deep() -> Error {
    Error::sql("JSON nested too deep")
}

#[cold]
fn blob_value() -> Error {
    Error::sql("JSON cannot hold BLOB values")
}

/// The text of a path, which ends at a zero byte; None for NULL.
fn path_text(value: ValueRef<'_>) -> Option<Cow<'_, [u8]>> {
    Some(match value.to_text()? {
        Cow::Borrowed(text) => Cow::Borrowed(until_zero(text)),
        owned => owned,
    })
}

#[cold]
fn bad_path(path: &[u8]) -> Error {
    Astray::BadPath.error(path).unwrap_or_else(malformed)
}

/// What follows a path's `$`.
fn behind_dollar(path: &[u8]) -> Result<&[u8]> {
    path.strip_prefix(b"$").ok_or_else(|| bad_path(path))
}

/// The element at the end of `steps`, which stand for `path`; None where there is none.
fn find(blob: &[u8], steps: &[u8], path: &[u8]) -> Result<Option<usize>> {
    match path::find(blob, steps) {
        Ok(at) => Ok(Some(at)),
        Err(astray) => astray.error(path).map_or(Ok(None), Err),
    }
}

/// A whole document as a function's result.
fn given<const BLOB: bool>(context: &mut Context, blob: Vec<u8>) -> Result<Value> {
    if BLOB {
        return Ok(Value::Blob(blob));
    }
    let mut text = Vec::with_capacity(blob.len() + 16);
    push_text(&blob, 0, Layout::Dense, &mut text)?;
    context.gave_json = true;
    Ok(Value::Text(text))
}

/// A text of JSON as a function's result.
fn given_text<const BLOB: bool>(context: &mut Context, text: Vec<u8>) -> Result<Value> {
    context.gave_json = true;
    if !BLOB {
        return Ok(Value::Text(text));
    }
    jsonb_of(&text).map(Value::Blob)
}

fn array<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut text = vec![b'['];
    for (i, value) in arguments.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        push_value(*value, context.takes_json(i), &mut text)?;
    }
    text.push(b']');
    given_text::<BLOB>(context, text)
}

fn object<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    if !arguments.len().is_multiple_of(2) {
        let message = "json_object() requires an even number of arguments";
        return Err(Error::sql(message));
    }
    let mut text = vec![b'{'];
    for (i, pair) in arguments.chunks(2).enumerate() {
        let [ValueRef::Text(label), value] = pair else {
            return Err(Error::sql("json_object() labels must be TEXT"));
        };
        if i > 0 {
            text.push(b',');
        }
        push_string(label, &mut text);
        text.push(b':');
        push_value(*value, context.takes_json(2 * i + 1), &mut text)?;
    }
    text.push(b'}');
    given_text::<BLOB>(context, text)
}

fn quote(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut text = Vec::new();
    push_value(argument(arguments, 0), context.takes_json(0), &mut text)?;
    given_text::<false>(context, text)
}

fn as_json(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    context.gave_json = argument(arguments, 1).truth() == Some(true);
    Ok(argument(arguments, 0).to_value())
}

fn array_length(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let path = arguments.get(1).map(|path| path_text(*path));
    let length = with_document(context, argument(arguments, 0), |blob| {
        let at = match &path {
            None => Some(0),
            Some(None) => None,
            Some(Some(path)) => find(blob, behind_dollar(path)?, path)?,
        };
        Ok(at.and_then(|at| element(blob, at)).map(|of| match of.kind {
            kind::ARRAY => path::count(blob, of),
            _ => 0,
        }))
    })?;
    Ok(length
        .flatten()
        .map_or(Value::Null, |n| Value::Integer(n as i64)))
}

fn error_position(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let value = argument(arguments, 0);
    let text = match value {
        ValueRef::Blob(blob) if is_jsonb(blob) => {
            let wrong = jsonb::error_position(blob).unwrap_or(0);
            return Ok(Value::Integer(wrong as i64));
        }
        value => value.to_text(),
    };
    let Some(text) = text else {
        return Ok(Value::Null);
    };
    let text = until_zero(&text);
    let position = match parse::read(text, &mut Nothing) {
        Ok(_) => 0,
        // In characters, not bytes.
        Err(wrong) => {
            let before = text.get(..wrong.0).unwrap_or(text).iter();
            1 + before.filter(|b| **b & 0xc0 != 0x80).count()
        }
    };
    Ok(Value::Integer(position as i64))
}

/// Whether what was extracted is an array or object.
fn is_container_at(blob: &[u8], at: usize) -> bool {
    element(blob, at).is_some_and(|of| of.is_container())
}

/// What a path that is NULL gives: NULL, but the document must be one.
fn whole_or_null(context: &mut Context, document: ValueRef<'_>) -> Result<Value> {
    with_document(context, document, |_| Ok(Value::Null)).map(Option::unwrap_or_default)
}

fn extract(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let [document, paths @ ..] = arguments else {
        return Ok(Value::Null);
    };
    let [path] = paths else {
        return extract_all::<false>(context, *document, paths);
    };
    let path = path_text(*path);
    let Some(path) = path else {
        return whole_or_null(context, *document);
    };
    let steps = path.strip_prefix(b"$");
    let found = with_element(context, *document, steps, &path, |blob, at| {
        let value = sql_value(blob, at, false)?;
        Ok((value, is_container_at(blob, at)))
    })?;
    let (value, is_json) = found.unwrap_or_default();
    context.gave_json = is_json;
    Ok(value)
}

fn extract_blob(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let [document, paths @ ..] = arguments else {
        return Ok(Value::Null);
    };
    let [path] = paths else {
        return extract_all::<true>(context, *document, paths);
    };
    let path = path_text(*path);
    let Some(path) = path else {
        return whole_or_null(context, *document);
    };
    let steps = path.strip_prefix(b"$");
    let found = with_element(context, *document, steps, &path, |blob, at| {
        sql_value(blob, at, true)
    })?;
    Ok(found.unwrap_or_default())
}

/// The elements at several paths, as an array; NULL where there is no path.
fn extract_all<const BLOB: bool>(
    context: &mut Context,
    document: ValueRef<'_>,
    paths: &[ValueRef<'_>],
) -> Result<Value> {
    if paths.is_empty() {
        return Ok(Value::Null);
    }
    let text = with_document(context, document, |blob| {
        let mut text = Vec::new();
        for path in paths {
            let Some(path) = path_text(*path) else {
                return Ok(None);
            };
            text.push(if text.is_empty() { b'[' } else { b',' });
            match find(blob, behind_dollar(&path)?, &path)? {
                Some(at) => push_text(blob, at, Layout::Dense, &mut text)?,
                None => text.extend_from_slice(b"null"),
            }
        }
        text.push(b']');
        Ok(Some(text))
    })?;
    match text.flatten() {
        None => Ok(Value::Null),
        Some(text) if BLOB => jsonb_of(&text).map(Value::Blob),
        Some(text) => given_text::<false>(context, text),
    }
}

/// The steps that the right side of an arrow stands for: a path, or a label or index alone.
fn arrow_steps<'a>(path: &'a [u8], is_integer: bool) -> Cow<'a, [u8]> {
    if let Some(steps) = path.strip_prefix(b"$") {
        return Cow::Borrowed(steps);
    }
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let (before, behind): (&[u8], &[u8]) = match path {
        [b'-', ..] if is_integer => (b"[#", b"]"),
        _ if is_integer => (b"[", b"]"),
        path if path.iter().all(is_name) => (b".", b""),
        [b'[', _, .., b']'] => return Cow::Borrowed(path),
        _ => (b".\"", b"\""),
    };
    Cow::Owned([before, path, behind].concat())
}

/// Calls `f` with the element that an arrow points to.
fn pointed_to(
    context: &mut Context,
    arguments: &[ValueRef<'_>],
    f: impl FnOnce(&[u8], usize) -> Result<Value>,
) -> Result<Option<Value>> {
    let is_integer = matches!(argument(arguments, 1), ValueRef::Integer(_));
    let path = path_text(argument(arguments, 1));
    let document = argument(arguments, 0);
    let Some(path) = path else {
        return whole_or_null(context, document).map(|_| None);
    };
    let steps = arrow_steps(&path, is_integer);
    with_element(context, document, Some(&steps), &path, f)
}

fn arrow(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let found = pointed_to(context, arguments, |blob, at| {
        let mut text = Vec::new();
        push_text(blob, at, Layout::Dense, &mut text)?;
        Ok(Value::Text(text))
    })?;
    context.gave_json = found.is_some();
    Ok(found.unwrap_or_default())
}

fn double_arrow(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let found = pointed_to(context, arguments, |blob, at| sql_value(blob, at, false))?;
    Ok(found.unwrap_or_default())
}

fn insert<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    change::<BLOB>(context, arguments, Edit::Insert, "insert")
}

fn replace<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    change::<BLOB>(context, arguments, Edit::Replace, "replace")
}

fn set<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    change::<BLOB>(context, arguments, Edit::Set, "set")
}

fn array_insert<const BLOB: bool>(
    context: &mut Context,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    change::<BLOB>(context, arguments, Edit::ArrayInsert, "array_insert")
}

/// Changes a document at each of the paths, which their values follow.
fn change<const BLOB: bool>(
    context: &mut Context,
    arguments: &[ValueRef<'_>],
    how: Edit,
    name: &str,
) -> Result<Value> {
    let [document, changes @ ..] = arguments else {
        return Ok(Value::Null);
    };
    if !changes.len().is_multiple_of(2) {
        let message = format!("json_{name}() needs an odd number of arguments");
        return Err(Error::sql(message));
    }
    let Some(mut blob) = owned_document(context, *document)? else {
        return Ok(Value::Null);
    };
    for (i, pair) in changes.chunks(2).enumerate() {
        let [path, value] = pair else { continue };
        let Some(path) = path_text(*path) else {
            continue;
        };
        let steps = behind_dollar(&path)?;
        let new = element_of(*value, context.takes_json(2 * i + 2))?;
        let outcome = match (steps.is_empty(), how) {
            // The document itself stands in no array.
            (true, Edit::ArrayInsert) => Ok(()),
            _ => edit::edit(&mut blob, steps, how, &new),
        };
        if let Some(error) = outcome.err().and_then(|astray| astray.error(&path)) {
            return Err(error);
        }
    }
    given::<BLOB>(context, blob)
}

/// `json()`, which removes nothing, too.
fn remove<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let [document, paths @ ..] = arguments else {
        return Ok(Value::Null);
    };
    if paths.is_empty() {
        if BLOB {
            let blob = owned_document(context, *document)?;
            return Ok(blob.map_or(Value::Null, Value::Blob));
        }
        let whole = with_document(context, *document, |blob| {
            let mut text = Vec::with_capacity(blob.len() + 16);
            push_text(blob, 0, Layout::Dense, &mut text)?;
            Ok(Value::Text(text))
        })?;
        context.gave_json = true;
        return Ok(whole.unwrap_or_default());
    }
    let Some(mut blob) = owned_document(context, *document)? else {
        return Ok(Value::Null);
    };
    for path in paths {
        let Some(path) = path_text(*path) else {
            return Ok(Value::Null);
        };
        let steps = behind_dollar(&path)?;
        if steps.is_empty() {
            return Ok(Value::Null);
        }
        let outcome = edit::edit(&mut blob, steps, Edit::Remove, &[]);
        if let Some(error) = outcome.err().and_then(|astray| astray.error(&path)) {
            return Err(error);
        }
    }
    given::<BLOB>(context, blob)
}

fn patch<const BLOB: bool>(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(mut target) = owned_document(context, argument(arguments, 0))? else {
        return Ok(Value::Null);
    };
    let merged = with_document(context, argument(arguments, 1), |patch| {
        edit::merge(&mut target, patch).map_err(|why| match why {
            Unmergeable::Malformed => malformed(),
            Unmergeable::TooDeep => too_deep(),
        })
    })?;
    match merged {
        None => Ok(Value::Null),
        Some(()) => given::<BLOB>(context, target),
    }
}

fn pretty(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let indent = arguments.get(1).and_then(|indent| path_text(*indent));
    let indent = indent.as_deref().unwrap_or(b"    ");
    let text = with_document(context, argument(arguments, 0), |blob| {
        let mut text = Vec::new();
        push_text(blob, 0, Layout::Lines(indent), &mut text)?;
        Ok(Value::Text(text))
    })?;
    Ok(text.unwrap_or_default())
}

fn json_type(context: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let path = arguments.get(1).map(|path| path_text(*path));
    let name = with_document(context, argument(arguments, 0), |blob| {
        let at = match &path {
            None => Some(0),
            Some(None) => None,
            Some(Some(path)) => find(blob, behind_dollar(path)?, path)?,
        };
        let kind = at.and_then(|at| element(blob, at));
        Ok(kind.map(|of| Value::from(of.type_name().unwrap_or_default())))
    })?;
    Ok(name.flatten().unwrap_or_default())
}

/// `json_valid(x, flags)`: 1 RFC 8259, 2 JSON5, 4 JSONB by its outermost element, 8 JSONB.
fn valid(_: &mut Context, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let flags = arguments.get(1).map_or(1, |flags| flags.to_integer());
    if !(1..=15).contains(&flags) {
        let message = "FLAGS parameter to json_valid() must be between 1 and 15";
        return Err(Error::sql(message));
    }
    let value = argument(arguments, 0);
    if let ValueRef::Blob(blob) = value
        && is_jsonb(blob)
    {
        let is_valid = flags & 4 != 0 || flags & 8 != 0 && jsonb::error_position(blob).is_none();
        return Ok(Value::from(is_valid));
    }
    let Some(text) = value.to_text() else {
        return Ok(Value::Null);
    };
    if flags & 3 == 0 {
        return Ok(Value::from(false));
    }
    let parsed = parse::read(&text, &mut Nothing);
    Ok(Value::from(
        parsed.is_ok_and(|p| p.is_strict || flags & 2 != 0),
    ))
}
