//! Splitting full nodes and merging small ones.
//!
//! A leaf is split together with the entry that did not fit, so that the sides are
//! balanced with it and the separator is right for it. The limits of [`super::max_key`]
//! and [`super::max_inline_value`] guarantee a split after which it fits.
//!
//! A separator is as short as it may be, so that it is long itself only where the keys
//! on both sides share the longest start that a page holds whole. Then the caller
//! writes its rest, and [`super::join_fences`] puts the reference into both pages.

use super::{
    CHILD, Key, Kind, OVERFLOW_REF, OwnedKey, OwnedStored, RestRef, Stored, bytes, common_prefix,
    count, free_space, init, insert_at, int, is_int, kind, level, lower_fence, rest_at, separator,
    set_birth, start_into, stored_key_at, tree, upper_fence, used_bytes, value_at,
};

/// Where to split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitPoint {
    /// Ascending inserts: the new entry alone on the right.
    Append,
    /// In the middle, by bytes.
    Middle,
    /// Descending inserts: the new entry alone on the left.
    Prepend,
}

/// How a leaf was split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The lower fence of the right page and the upper fence of the left one; its
    /// reference is still to be filled in if there is one.
    pub separator: OwnedStored,
    /// What that reference is to lead to.
    pub rest: Option<Vec<u8>>,
    /// Whether the pending entry belongs to the right page.
    pub right: bool,
    /// The pending entry's position there.
    pub index: usize,
}

/// An entry that waits for the split, and where it belongs.
struct Pending<'a> {
    index: usize,
    key: Stored<'a>,
    size: usize,
}

impl Pending<'_> {
    /// Bytes of entry `i` of the leaf with the pending entry in its place.
    fn size_at(&self, src: &[u8], i: usize) -> usize {
        if i == self.index {
            return self.size;
        }
        let i = i - usize::from(i > self.index);
        if is_int(src) {
            int::LEAF + value_at(src, i).0.len()
        } else {
            bytes::LEAF + bytes::slot::<{ bytes::LEAF }>(src, i).stored()
        }
    }

    fn key_at(&self, src: &[u8], i: usize) -> OwnedStored {
        if i == self.index {
            return self.key.to_owned();
        }
        stored_key_at(src, i - usize::from(i > self.index))
    }

    /// The number of entries on the left that balances the sides best.
    fn middle(&self, src: &[u8]) -> usize {
        let n = count(src);
        let total: usize = (0..=n).map(|i| self.size_at(src, i)).sum();
        let mut left = 0;
        for i in 0..n {
            let size = self.size_at(src, i);
            if 2 * left + size >= total {
                return i.max(1);
            }
            left += size;
        }
        n.max(1)
    }
}

/// Splits the full leaf `src`, into which an entry of `key` and `value_len` bytes was
/// to be inserted at `index`, over the pages `left` and `right`. The caller then
/// inserts the entry where the answer says; it fits. `load` reads the rest of a long
/// key, also of `key` itself.
///
/// `None`, with the pages in no defined state, only if the entry exceeds the limits.
#[expect(clippy::too_many_arguments, reason = "pages, entry and how to load")]
pub fn split_leaf<E>(
    src: &[u8],
    left: &mut [u8],
    right: &mut [u8],
    at: SplitPoint,
    index: usize,
    key: Stored<'_>,
    value_len: usize,
    load: &mut impl FnMut(&RestRef) -> Result<Vec<u8>, E>,
) -> Result<Option<Split>, E> {
    let size = value_len
        + match key.key {
            Key::Int(_) => int::LEAF,
            Key::Bytes(start) => {
                let Some(remainder) = start.get(bytes::prefix_len(src)..) else {
                    return Ok(None);
                };
                bytes::LEAF + bytes::tail_of(remainder).len() + key.rest.map_or(0, |r| r.len())
            }
        };
    let pending = Pending { index, key, size };
    let n = count(src);
    let preferred = match at {
        SplitPoint::Append if index == n => Some(n),
        SplitPoint::Prepend if index == 0 => Some(1),
        _ => None,
    };
    if let Some(at) = preferred
        && at > 0
        && let Some(split) = split_leaf_at(src, left, right, at, &pending, load)?
    {
        return Ok(Some(split));
    }
    let middle = pending.middle(src);
    // Nearly always the first one fits; long fences may need a neighbour.
    let points = (0..=n)
        .flat_map(|d| [middle.checked_sub(d), Some(middle + d)])
        .flatten();
    for at in points.filter(|at| (1..=n).contains(at)) {
        if let Some(split) = split_leaf_at(src, left, right, at, &pending, load)? {
            return Ok(Some(split));
        }
    }
    Ok(None)
}

/// The shortest separator between two neighbours, and the rest of a long one.
fn between<E>(
    last: OwnedStored,
    first: OwnedStored,
    load: &mut impl FnMut(&RestRef) -> Result<Vec<u8>, E>,
) -> Result<(OwnedStored, Option<Vec<u8>>), E> {
    let (OwnedKey::Bytes(below), OwnedKey::Bytes(start)) = (&last.key, &first.key) else {
        return Ok((first, None));
    };
    let Some(rest) = first.rest.filter(|_| below == start) else {
        let key = Key::Bytes(separator(below, start)).into();
        return Ok((OwnedStored { key, rest: None }, None));
    };
    let mut rest = load(&rest)?;
    let below = last.rest.map(|rest| load(&rest)).transpose()?;
    let common = common_prefix(&below.unwrap_or_default(), &rest);
    rest.truncate(common + 1);
    let separator = OwnedStored {
        key: first.key,
        rest: Some([0; OVERFLOW_REF]),
    };
    Ok((separator, Some(rest)))
}

fn split_leaf_at<E>(
    src: &[u8],
    left: &mut [u8],
    right: &mut [u8],
    at: usize,
    pending: &Pending<'_>,
    load: &mut impl FnMut(&RestRef) -> Result<Vec<u8>, E>,
) -> Result<Option<Split>, E> {
    let (last, first) = (pending.key_at(src, at - 1), pending.key_at(src, at));
    let (middle, rest) = between(last, first, load)?;
    let goes_right = pending.index >= at;
    let cut = if goes_right { at } else { at - 1 };
    init_like(left, src, lower_fence(src), Some(middle.as_stored()));
    init_like(right, src, Some(middle.as_stored()), upper_fence(src));
    match middle.key {
        // Ascending inserts: the left page is the old one with an upper fence.
        OwnedKey::Int(upper) if cut == count(src) => {
            left.copy_from_slice(src);
            int::set_upper(left, upper);
        }
        _ if copy_entries(left, src, 0..cut) && copy_entries(right, src, cut..count(src)) => {}
        _ => return Ok(None),
    }
    let (side, index) = if goes_right {
        (&*right, pending.index - at)
    } else {
        (&*left, pending.index)
    };
    let grown = match pending.key.key {
        Key::Int(_) => pending.size,
        Key::Bytes(start) => {
            let tail = |page: &[u8]| bytes::tail_of(&start[bytes::prefix_len(page)..]).len();
            pending.size - tail(src) + tail(side)
        }
    };
    Ok((free_space(side, side.len()) >= grown).then_some(Split {
        separator: middle,
        rest,
        right: goes_right,
        index,
    }))
}

/// Makes `page` an empty node with the identity of `src` and these fences.
fn init_like(page: &mut [u8], src: &[u8], lower: Option<Stored<'_>>, upper: Option<Stored<'_>>) {
    init(
        page,
        kind(src).unwrap_or(Kind::IntLeaf),
        level(src),
        tree(src),
        lower,
        upper,
    );
    set_birth(page, super::birth(src));
}

/// Appends entries of a leaf to another; `false` when they do not fit.
fn copy_entries(dst: &mut [u8], src: &[u8], range: std::ops::Range<usize>) -> bool {
    let mut key = Vec::new();
    for i in range {
        let (value, overflow) = value_at(src, i);
        let at = count(dst);
        let fits = if is_int(src) {
            int::insert_at(dst, at, int::leaf_key(src, i), value, overflow)
        } else {
            key.clear();
            start_into(src, i, &mut key);
            let rest = rest_at(src, i);
            let key = Key::Bytes(&key);
            insert_at(dst, at, Stored { key, rest }, value, overflow)
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Whether the entries of two neighbouring leaves fit into one page.
fn fit_one(left: &[u8], right: &[u8], page_size: usize) -> bool {
    if is_int(left) {
        return used_bytes(left) + used_bytes(right) - int::BASE <= page_size;
    }
    let (lower, upper) = (bytes::lower(left).start, bytes::upper(right).start);
    let (prefix, fences) = (
        common_prefix(lower, upper),
        bytes::lower_len(left) + bytes::upper_len(right),
    );
    let room = page_size - super::HEADER - fences;
    // Shared prefixes can only become shorter, so this much is needed at least.
    let now = |page| used_bytes(page) - super::HEADER - bytes::fence_bytes(page);
    let then = |page| bytes::entries_under(page, prefix);
    now(left) + now(right) <= room && then(left) + then(right) <= room
}

/// Merges two neighbouring leaves into the page `dst`. `false`: they do not fit, and
/// `dst` is in no defined state.
pub fn merge_leaves(left: &[u8], right: &[u8], dst: &mut [u8]) -> bool {
    // Known beforehand: a sparse leaf beside a full one is asked about at every deletion.
    if !fit_one(left, right, dst.len()) {
        return false;
    }
    if is_int(left) && (count(left) == 0 || count(right) == 0) {
        // Nothing has to be moved.
        dst.copy_from_slice(if count(left) == 0 { right } else { left });
        int::put_fences(dst, int::fences(left).0, int::fences(right).1);
        set_birth(dst, super::birth(left).min(super::birth(right)));
        return true;
    }
    init_like(dst, left, lower_fence(left), upper_fence(right));
    set_birth(dst, super::birth(left).min(super::birth(right)));
    copy_entries(dst, left, 0..count(left)) && copy_entries(dst, right, 0..count(right))
}

/// Which separator of a full inner node to push up, when separator `index` is to be
/// inserted: children `..=m` go to the left node, the others to the right one.
pub fn split_point(keys: &[u8], at: SplitPoint, index: usize) -> usize {
    let n = count(keys);
    match at {
        SplitPoint::Append if index == n => n.saturating_sub(1),
        SplitPoint::Prepend if index == 0 => 0,
        _ if is_int(keys) => n / 2,
        _ => {
            let size = |i| CHILD + bytes::INNER + bytes::slot::<{ bytes::INNER }>(keys, i).stored();
            let total: usize = (0..n).map(size).sum();
            let mut left = 0;
            let middle = (0..n).find(|&i| {
                left += size(i);
                2 * left >= total
            });
            // At least one separator on either side where there are three.
            if n < 3 {
                n / 2
            } else {
                middle.unwrap_or(0).clamp(1, n - 2)
            }
        }
    }
}

/// Splits an inner node around separator `m`, which is returned to be inserted into
/// the parent. `left` and `right` are the key areas of pages that take `m + 1` and
/// `count - m` children, which the caller moves. A separator pending at `index`
/// belongs left if `index <= m`, otherwise right at `index - m - 1`.
pub fn split_inner(src: &[u8], m: usize, left: &mut [u8], right: &mut [u8]) -> OwnedStored {
    let middle = stored_key_at(src, m);
    init_like(left, src, lower_fence(src), Some(middle.as_stored()));
    init_like(right, src, Some(middle.as_stored()), upper_fence(src));
    let fits = copy_separators(left, src, 0..m) && copy_separators(right, src, m + 1..count(src));
    // The pushed-up separator's slot and child make room for its copy in the fence.
    debug_assert!(fits);
    middle
}

fn push_separator(keys: &mut [u8], separator: Stored<'_>) -> bool {
    let rest = separator.rest;
    match separator.key {
        Key::Int(key) => int::push_separator(keys, key),
        Key::Bytes(start) => bytes::push_separator(keys, bytes::Cell { start, rest }),
    }
}

fn copy_separators(dst: &mut [u8], src: &[u8], mut range: std::ops::Range<usize>) -> bool {
    let mut key = Vec::new();
    range.all(|i| {
        if is_int(src) {
            return int::push_separator(dst, int::separator(src, i));
        }
        key.clear();
        start_into(src, i, &mut key);
        push_separator(
            dst,
            Stored {
                key: Key::Bytes(&key),
                rest: rest_at(src, i),
            },
        )
    })
}

/// Merges two neighbouring inner nodes and the separator between them. `dst` is the
/// key area of a page that takes the children of both, which the caller moves.
/// `false`: they do not fit, and `dst` is in no defined state.
pub fn merge_inner(left: &[u8], right: &[u8], separator: Stored<'_>, dst: &mut [u8]) -> bool {
    let fences = if is_int(left) {
        16
    } else {
        bytes::lower_len(left) + bytes::upper_len(right)
    };
    if dst.len() < super::HEADER + fences {
        return false;
    }
    init_like(dst, left, lower_fence(left), upper_fence(right));
    set_birth(dst, super::birth(left).min(super::birth(right)));
    copy_separators(dst, left, 0..count(left))
        && push_separator(dst, separator)
        && copy_separators(dst, right, 0..count(right))
}
