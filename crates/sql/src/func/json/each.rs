//! `json_each` and `json_tree`, and `jsonb_each` and `jsonb_tree`, whose arrays and objects
//! are JSONB: the elements of a document as rows.
//!
//! A row is an element's place in the JSONB, its label's where it has one. On the way down
//! a tree the containers around the row lie on a stack, with the paths that lead to them.

use super::jsonb::{Element, element, is_jsonb, kind};
use super::path::{self, Astray, Place};
use super::space::until_zero;
use super::value::sql_value_in;
use super::{bad_path, malformed};
use crate::bind::expr::ROWID;
use crate::error::Result;
use crate::func::Context;
use crate::func::table::{TableFunction, TableRows};
use crate::value::{Applied, Value, ValueRef, integer_prefix, render_integer};

/// The columns in order, the hidden ones and the one of [`JsonEach::json_column`] last.
const KEY: usize = 0;
const VALUE: usize = 1;
const TYPE: usize = 2;
const ATOM: usize = 3;
const ID: usize = 4;
const PARENT: usize = 5;
const FULLKEY: usize = 6;
const PATH: usize = 7;
const JSON: usize = 8;
const ROOT: usize = 9;
const IS_JSON: usize = 10;

const COLUMNS: [&str; 8] = [
    "key", "value", "type", "atom", "id", "parent", "fullkey", "path",
];

/// One of the functions.
#[derive(Debug, Clone, Copy)]
pub struct JsonEach {
    name: &'static str,
    is_tree: bool,
    is_blob: bool,
}

/// Those that there are: the name, whether it goes all the way down, and whether what it
/// shows of JSON is JSONB.
const ALL: [(&str, bool, bool); 4] = [
    ("json_each", false, false),
    ("json_tree", true, false),
    ("jsonb_each", false, true),
    ("jsonb_tree", true, true),
];

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().map(|(name, ..)| name)
}

impl JsonEach {
    /// The function of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = ALL.into_iter();
        let (name, is_tree, is_blob) = all.find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
        Some(Self {
            name,
            is_tree,
            is_blob,
        })
    }
}

impl TableFunction for JsonEach {
    fn name(&self) -> &str {
        self.name
    }

    fn columns(&self) -> &[&'static str] {
        &COLUMNS
    }

    fn hidden(&self) -> &[&'static str] {
        &["json", "root"]
    }

    fn json_column(&self) -> Option<(usize, usize)> {
        Some((VALUE, IS_JSON))
    }

    fn rows_estimate(&self) -> f64 {
        25.0
    }

    fn rows(&self) -> Box<dyn TableRows> {
        Box::new(Elements {
            is_tree: self.is_tree,
            is_blob: self.is_blob,
            json: Value::Null,
            blob: Vec::new(),
            path: Vec::new(),
            full: Vec::new(),
            root_len: 0,
            at: 0,
            end: 0,
            within: kind::NULL,
            parents: Vec::new(),
            row: None,
        })
    }
}

/// A container around the row.
struct Parent {
    /// Where its row is.
    row: usize,
    /// Where it is itself.
    at: usize,
    end: usize,
    /// The length of the path that leads to its parent.
    path_len: usize,
    /// The number of the row's element, in an array.
    key: i64,
}

/// The rows of one document.
struct Elements {
    is_tree: bool,
    is_blob: bool,
    /// The first argument.
    json: Value,
    blob: Vec<u8>,
    /// The path of the innermost container around the row.
    path: Vec<u8>,
    /// Space for the path of the row's element.
    full: Vec<u8>,
    /// The length of the path that was asked for.
    root_len: usize,
    /// The row's element, or its label.
    at: usize,
    /// Where the rows end.
    end: usize,
    /// The kind of the container that the row is in; `NULL` where it is the document.
    within: u8,
    parents: Vec<Parent>,
    /// The row's number; None before the first.
    row: Option<i64>,
}

impl TableRows for Elements {
    fn start(&mut self, arguments: &[Option<ValueRef<'_>>], _: &Context) -> Result<()> {
        self.row = None;
        (self.at, self.end) = (0, 0);
        self.parents.clear();
        self.path.clear();
        let given = |at: usize| arguments.get(at).copied().flatten();
        let Some(json) = given(0) else { return Ok(()) };
        if !self.read(json)? {
            return Ok(());
        }
        let root = match given(1) {
            Some(root) => match root.to_text() {
                Some(text) => until_zero(&text).to_vec(),
                None => return Ok(()),
            },
            None => b"$".to_vec(),
        };
        let steps = root.strip_prefix(b"$").ok_or_else(|| bad_path(&root))?;
        let (at, label) = match path::follow(&self.blob, 0, steps, |_| {}) {
            Ok(Place::Found { at, label }) => (at, label),
            Ok(Place::Addable { .. }) | Err(Astray::Missing) => return Ok(()),
            Err(_) => return Err(bad_path(&root)),
        };
        self.within = match (steps.is_empty(), label) {
            (true, _) => kind::NULL,
            (false, Some(_)) => kind::OBJECT,
            (false, None) => kind::ARRAY,
        };
        self.root_len = root.len();
        self.path = root;
        self.at = label.unwrap_or(at);
        let whole = element(&self.blob, at).ok_or_else(malformed)?;
        self.end = whole.end;
        if whole.is_container() && !self.is_tree {
            self.at = whole.start;
            self.within = whole.kind;
            self.parents.push(Parent {
                row: whole.start,
                at,
                end: whole.end,
                path_len: 0,
                key: 0,
            });
        }
        Ok(())
    }

    fn next(&mut self) -> Result<bool> {
        match self.row {
            None => self.row = Some(0),
            Some(row) => {
                self.advance()?;
                self.row = Some(row + 1);
            }
        }
        Ok(self.at < self.end)
    }

    fn column(&mut self, column: usize) -> Result<Applied<'_>> {
        let integer = |i: i64| Applied::Same(ValueRef::Integer(i));
        let place = |at: usize| integer(i64::try_from(at).unwrap_or(i64::MAX));
        Ok(match column {
            KEY => self.key()?,
            VALUE => sql_value_in(&self.blob, self.value(), self.is_blob)?,
            TYPE => {
                let of = element(&self.blob, self.value());
                let name = of.and_then(|of| of.type_name()).unwrap_or_default();
                Applied::Same(ValueRef::Text(name.as_bytes()))
            }
            ATOM => match self.is_container() {
                true => Applied::Same(ValueRef::Null),
                false => sql_value_in(&self.blob, self.value(), false)?,
            },
            ID => place(self.at),
            PARENT => match self.parents.last().filter(|_| self.is_tree) {
                Some(parent) => place(parent.row),
                None => Applied::Same(ValueRef::Null),
            },
            FULLKEY => {
                let mut full = std::mem::take(&mut self.full);
                full.clear();
                full.extend_from_slice(&self.path);
                self.push_name(&mut full);
                self.full = full;
                Applied::Same(ValueRef::Text(&self.full))
            }
            PATH => Applied::Same(self.path_text(self.path_len())),
            JSON => Applied::Same(self.json.as_ref()),
            ROOT => Applied::Same(self.path_text(self.root_len)),
            IS_JSON => integer(self.is_container().into()),
            ROWID => integer(self.row.unwrap_or(0)),
            _ => Applied::Same(ValueRef::Null),
        })
    }
}

impl Elements {
    /// Takes the document; false: it is NULL.
    fn read(&mut self, json: ValueRef<'_>) -> Result<bool> {
        match json {
            ValueRef::Null => return Ok(false),
            ValueRef::Blob(blob) if is_jsonb(blob) => {
                self.blob.clear();
                self.blob.extend_from_slice(blob);
                self.json.assign(json);
            }
            json => {
                let text = json.to_text().unwrap_or_default();
                let text = until_zero(&text);
                self.blob.clear();
                super::parse::parse(text, &mut self.blob).map_err(|_| malformed())?;
                self.json.assign(ValueRef::Text(text));
            }
        }
        Ok(true)
    }

    /// Where the row's element is, behind its label.
    fn value(&self) -> usize {
        if self.within != kind::OBJECT {
            return self.at;
        }
        let label = element(&self.blob, self.at).map(|label| label.end);
        label
            .filter(|end| *end < self.blob.len())
            .unwrap_or(self.at)
    }

    fn is_container(&self) -> bool {
        self.blob
            .get(self.value())
            .is_some_and(|first| first & 0x0f >= kind::ARRAY)
    }

    fn advance(&mut self) -> Result<()> {
        let value = self.value();
        let of = element(&self.blob, value).ok_or_else(malformed)?;
        match of.is_container() && self.is_tree {
            true => self.descend(value, of),
            false => self.at = of.end,
        }
        if self.is_tree {
            let mut is_left = false;
            while let Some(parent) = self.parents.last().filter(|parent| self.at >= parent.end) {
                self.path.truncate(parent.path_len);
                self.parents.pop();
                is_left = true;
            }
            if is_left || of.is_container() {
                let first = |parent: &Parent| self.blob.get(parent.at).map(|b| b & 0x0f);
                self.within = self.parents.last().and_then(first).unwrap_or(kind::NULL);
            }
        }
        if self.within == kind::ARRAY
            && let Some(parent) = self.parents.last_mut()
        {
            parent.key += 1;
        }
        Ok(())
    }

    /// Goes on with what is in a container.
    fn descend(&mut self, at: usize, of: Element) {
        let path_len = self.path.len();
        let mut path = std::mem::take(&mut self.path);
        if self.within != kind::NULL {
            self.push_name(&mut path);
        }
        self.path = path;
        self.parents.push(Parent {
            row: self.at,
            at,
            end: of.end,
            path_len,
            key: -1,
        });
        self.at = of.start;
    }

    /// Appends the step from the container around the row to it.
    fn push_name(&self, path: &mut Vec<u8>) {
        let Some(parent) = self.parents.last() else {
            return;
        };
        if self.within == kind::ARRAY {
            path.push(b'[');
            render_integer(parent.key, path);
            path.push(b']');
            return;
        }
        let label = element(&self.blob, self.at);
        let label = label.map_or(&[][..], |label| label.payload(&self.blob));
        let is_plain = label.first().is_some_and(u8::is_ascii_alphabetic)
            && label.iter().all(u8::is_ascii_alphanumeric);
        let quote: &[u8] = if is_plain { b"" } else { b"\"" };
        path.push(b'.');
        path.extend_from_slice(quote);
        path.extend_from_slice(until_zero(label));
        path.extend_from_slice(quote);
    }

    fn path_text(&self, len: usize) -> ValueRef<'_> {
        ValueRef::Text(self.path.get(..len).unwrap_or(&self.path))
    }

    /// How much of the path leads to the container around the row: all of it, but for the
    /// element that a tree was asked for, which is at the path's end itself.
    fn path_len(&self) -> usize {
        let mut len = self.path.len();
        if self.row != Some(0) || !self.is_tree || len < 2 {
            return len;
        }
        while len > 1 {
            len -= 1;
            if !matches!(self.path.get(len), Some(b'[' | b'.')) {
                continue;
            }
            let steps = self.path.get(1..len).unwrap_or(&[]);
            let parent = path::find(&self.blob, steps).ok();
            let parent = parent.and_then(|at| element(&self.blob, at));
            if parent.is_some_and(|parent| parent.start == self.at) {
                break;
            }
        }
        len
    }

    fn key(&self) -> Result<Applied<'_>> {
        if let Some(parent) = self.parents.last() {
            return Ok(match self.within {
                kind::OBJECT => sql_value_in(&self.blob, self.at, false)?,
                _ => Applied::Same(ValueRef::Integer(parent.key)),
            });
        }
        if self.root_len == 1 {
            return Ok(Applied::Same(ValueRef::Null));
        }
        let root = self.path.get(..self.root_len).unwrap_or(&self.path);
        Ok(Applied::Same(match root.get(self.path_len()..) {
            None | Some([]) => ValueRef::Null,
            Some([b'[', index @ ..]) => ValueRef::Integer(integer_prefix(index).value),
            Some([_, b'"', label @ ..]) => {
                ValueRef::Text(label.get(..label.len().saturating_sub(1)).unwrap_or(label))
            }
            Some([_, label @ ..]) => ValueRef::Text(label),
        }))
    }
}
