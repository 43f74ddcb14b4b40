//! Changes of JSONB in place: elements removed, replaced and added along a path, and the
//! merging of patches (RFC 7396).
//!
//! What changes is spliced, and then the headers of the containers around it are put
//! right, from the innermost outwards. Where an element is replaced by one that is up to
//! eight bytes shorter and a longer header can make up for that, it does, and nothing
//! moves.

use super::jsonb::{self, DEPTH_MAX, element, kind};
use super::path::{Astray, Index, Place, Step, follow, step};
use super::text::Label;

/// What is done at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The element goes.
    Remove,
    /// An element is added where there is none.
    Insert,
    /// An element that is there is replaced.
    Replace,
    /// One of the two.
    Set,
    /// An element is added to an array, before the one at the path.
    ArrayInsert,
}

/// Changes the document at the end of a path, which is without its `$`.
pub fn edit(blob: &mut Vec<u8>, path: &[u8], how: Edit, new: &[u8]) -> Result<(), Astray> {
    let mut trail = Vec::new();
    let grown = match follow(blob, 0, path, |at| trail.push(at))? {
        Place::Found { at, label } => {
            let end = element(blob, at).ok_or(Astray::Malformed)?.end;
            match how {
                Edit::Insert => 0,
                Edit::Remove => splice(blob, label.unwrap_or(at), end, None),
                Edit::Replace | Edit::Set => splice(blob, at, end, Some(new)),
                Edit::ArrayInsert if path.last() != Some(&b']') => return Err(Astray::NotArray),
                Edit::ArrayInsert => splice(blob, at, at, Some(new)),
            }
        }
        Place::Addable { at, label, rest } => {
            if matches!(how, Edit::Remove | Edit::Replace) {
                return Err(Astray::Missing);
            }
            if how == Edit::ArrayInsert && label.is_some() && rest.last() != Some(&b']') {
                return Err(Astray::NotArray);
            }
            let mut added = Vec::new();
            if let Some(label) = label {
                push_label(&mut added, label);
            }
            added.extend(within_steps(rest, trail.len(), how, new)?);
            splice(blob, at, at, Some(&added))
        }
    };
    adjust(blob, &trail, grown);
    Ok(())
}

fn push_label(out: &mut Vec<u8>, label: Label<'_>) {
    let kind = match label.is_raw {
        true => kind::TEXTRAW,
        false => kind::TEXT5,
    };
    jsonb::push(out, kind, label.text);
}

/// The element within the containers that the steps ask for, each with it alone.
fn within_steps(mut path: &[u8], depth: usize, how: Edit, new: &[u8]) -> Result<Vec<u8>, Astray> {
    let mut steps = Vec::new();
    while !path.is_empty() {
        if depth + steps.len() >= DEPTH_MAX {
            return Err(Astray::TooDeep);
        }
        let found = step(&mut path)?;
        match found {
            Step::Index(Index::FromStart(0) | Index::FromEnd(0)) => {}
            Step::Index(_) => return Err(Astray::Missing),
            Step::Label(_) if how == Edit::ArrayInsert && path.last() != Some(&b']') => {
                return Err(Astray::NotArray);
            }
            Step::Label(_) => {}
        }
        steps.push(found);
    }
    let mut inner = new.to_vec();
    for step in steps.into_iter().rev() {
        let mut payload = Vec::with_capacity(inner.len() + 8);
        let kind = match step {
            Step::Label(label) => {
                push_label(&mut payload, label);
                kind::OBJECT
            }
            Step::Index(_) => kind::ARRAY,
        };
        payload.append(&mut inner);
        jsonb::push(&mut inner, kind, &payload);
    }
    Ok(inner)
}

/// Replaces what is from `at` to `end`; by how many bytes the blob grew.
fn splice(blob: &mut Vec<u8>, at: usize, end: usize, new: Option<&[u8]>) -> isize {
    let old = end.saturating_sub(at);
    let Some(new) = new else {
        blob.drain(at..end);
        return -(old as isize);
    };
    let less = old.saturating_sub(new.len());
    if (1..=8).contains(&less)
        && let Some(same_size) = jsonb::lengthened(new, less)
    {
        blob.splice(at..end, same_size);
        return 0;
    }
    blob.splice(at..end, new.iter().copied());
    new.len() as isize - old as isize
}

/// Puts the headers of containers right, the innermost last in the list, in which
/// something grew.
fn adjust(blob: &mut Vec<u8>, containers: &[usize], grown: isize) {
    let mut grown = grown;
    for at in containers.iter().rev() {
        if grown == 0 {
            return;
        }
        grown += resize(blob, *at, grown);
    }
}

/// Makes a header's payload longer by so much; by how much the header itself grew.
fn resize(blob: &mut Vec<u8>, at: usize, grown: isize) -> isize {
    let payload = payload_len(blob, at).saturating_add_signed(grown);
    jsonb::set_payload(blob, at, payload)
}

/// The length that a header tells, be it within the blob or not.
fn payload_len(blob: &[u8], at: usize) -> usize {
    let Some(header) = blob.get(at..) else {
        return 0;
    };
    let number = |bytes: Option<&[u8]>| {
        let bytes = bytes.unwrap_or(&[]).iter();
        bytes.fold(0usize, |n, b| n.wrapping_shl(8) | usize::from(*b))
    };
    match header.first().map_or(0, |b| b >> 4) {
        high @ 0..=11 => usize::from(high),
        12 => number(header.get(1..2)),
        13 => number(header.get(1..3)),
        14 => number(header.get(1..5)),
        _ => number(header.get(1..9)),
    }
}

/// Why a patch cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmergeable {
    /// One of the two is no JSONB.
    Malformed,
    /// Objects are too deep within each other.
    TooDeep,
}

/// A member of an object.
struct Member<'a> {
    /// Where its label begins and ends.
    at: usize,
    value: usize,
    end: usize,
    label: Label<'a>,
}

/// The member at `at` of an object that ends at `end`.
fn member(blob: &[u8], at: usize, end: usize) -> Result<Member<'_>, Unmergeable> {
    let label = element(blob, at).filter(|l| jsonb::is_text(l.kind) && l.end < end);
    let label = label.ok_or(Unmergeable::Malformed)?;
    let value = element(blob, label.end).filter(|value| value.end <= end);
    let value = value.ok_or(Unmergeable::Malformed)?;
    Ok(Member {
        at,
        value: label.end,
        end: value.end,
        label: Label {
            text: label.payload(blob),
            is_raw: jsonb::is_unescaped(label.kind),
        },
    })
}

/// Merges a patch into the whole of a document.
pub fn merge(target: &mut Vec<u8>, patch: &[u8]) -> Result<(), Unmergeable> {
    merge_at(target, 0, patch, 0, 0).map(|_| ())
}

/// Merges the patch at `from` into the element at `at`; by how much that grew.
fn merge_at(
    target: &mut Vec<u8>,
    at: usize,
    patch: &[u8],
    from: usize,
    depth: usize,
) -> Result<isize, Unmergeable> {
    let whole = element(patch, from).ok_or(Unmergeable::Malformed)?;
    let old = element(target, at).ok_or(Unmergeable::Malformed)?;
    if whole.kind != kind::OBJECT {
        let new = patch.get(from..whole.end);
        return Ok(splice(target, at, old.end, new));
    }
    let mut grown = 0;
    let mut end = old.end;
    if old.kind != kind::OBJECT {
        grown = splice(target, old.start, old.end, None);
        end = old.start;
        if let Some(header) = target.get_mut(at) {
            *header = *header & 0xf0 | kind::OBJECT;
        }
    }
    let mut next = whole.start;
    while next < whole.end {
        let new = member(patch, next, whole.end)?;
        next = new.end;
        let value_kind = patch.get(new.value).map_or(kind::NULL, |b| b & 0x0f);
        let change = match find_member(target, old.start, end, new.label)? {
            Some((from, _, to)) if value_kind == kind::NULL => splice(target, from, to, None),
            Some((_, value, _)) => merge_below(target, value, patch, new.value, depth)?,
            None if value_kind == kind::NULL => 0,
            None if value_kind != kind::OBJECT => {
                splice(target, end, end, patch.get(new.at..new.end))
            }
            None => {
                let mut empty = patch.get(new.at..new.value).unwrap_or(&[]).to_vec();
                let value = end + empty.len();
                empty.push(kind::NULL);
                splice(target, end, end, Some(&empty))
                    + merge_below(target, value, patch, new.value, depth)?
            }
        };
        end = end.saturating_add_signed(change);
        grown += change;
    }
    if grown != 0 {
        grown += resize(target, at, grown);
    }
    Ok(grown)
}

fn merge_below(
    target: &mut Vec<u8>,
    at: usize,
    patch: &[u8],
    from: usize,
    depth: usize,
) -> Result<isize, Unmergeable> {
    if depth >= DEPTH_MAX {
        return Err(Unmergeable::TooDeep);
    }
    crate::stack::grow(|| merge_at(target, at, patch, from, depth + 1))
}

/// The first member of this label: where it begins, its value, and where it ends.
fn find_member(
    blob: &[u8],
    start: usize,
    end: usize,
    label: Label<'_>,
) -> Result<Option<(usize, usize, usize)>, Unmergeable> {
    let mut at = start;
    while at < end {
        let found = member(blob, at, end)?;
        if found.label.is_same(label) {
            return Ok(Some((found.at, found.value, found.end)));
        }
        at = found.end;
    }
    Ok(None)
}
