//! Verification of pages from outside.
//!
//! The argument that the other functions cannot panic on a page that passed: slots
//! lie within the key area, every entry within the heap and apart from the others,
//! sizes sum up, keys ascend within the fences and share the page's prefix.

use super::bytes::{self, Slot, Tail};
use super::{
    AT_FLAGS, HEADER, Kind, OVERFLOW_REF, PAGE_SIZE_MAX, PAGE_SIZE_MIN, Regions, Stored, count,
    garbage, get16, has_long, heap, int, is_int, kind, level, lower_fence, max_inline_value,
    max_key, overflow_payload, regions, stored_key_at, tree, upper_fence,
};

type Verdict = Result<(), &'static str>;

fn ensure(holds: bool, otherwise: &'static str) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Verifies everything the other functions rely on, of a whole page.
pub fn check(page: &[u8]) -> Verdict {
    let size = page.len();
    ensure(
        (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&size) && size.is_power_of_two(),
        "page size out of range",
    )?;
    let header = page
        .first_chunk::<HEADER>()
        .ok_or("page without a header")?;
    let kind = kind(header).ok_or("unknown page kind")?;
    ensure(
        (level(page) > 0) == kind.is_inner() || kind == Kind::Overflow,
        "page level contradicts its kind",
    )?;
    let regions = regions(header, size).ok_or("slots, heap and children overlap")?;
    ensure(
        kind.is_inner() || kind == Kind::Overflow || regions.heap_end == size,
        "heap of a leaf ends early",
    )?;
    match kind {
        Kind::IntLeaf => int_leaf(page),
        Kind::IntInner => int_inner(page),
        Kind::BytesLeaf => byte_keys::<{ bytes::LEAF }>(page, regions),
        Kind::BytesInner => byte_keys::<{ bytes::INNER }>(page, regions),
        Kind::Overflow => ensure(
            heap(page) == 0
                && get16(page, AT_FLAGS) == 0
                && (count(page) > 0) == (level(page) > 0)
                && (level(page) == 0 || overflow_payload(page).is_empty()),
            "large value's node with the wrong contents",
        ),
    }
}

/// What a pass over the entries found, without branches: the questions that only some
/// pages raise are looked into by a second pass.
struct Totals {
    /// Negative if an entry lies below the end of the one before it.
    order: isize,
    /// The greatest distance.
    end: usize,
    sum: usize,
    longest: usize,
    any_reference: bool,
}

impl Totals {
    fn new(used: usize, garbage: usize) -> Totals {
        Totals {
            order: 0,
            end: used,
            sum: used + garbage,
            longest: 0,
            any_reference: false,
        }
    }

    /// Notes an entry of `len` bytes, of which the value and the key make up `size`.
    #[inline]
    fn add(&mut self, distance: usize, len: usize, size: usize, reference: bool) {
        let least = if len == 0 { 0 } else { self.end + len };
        self.order |= distance.wrapping_sub(least) as isize;
        self.end = self.end.max(distance);
        self.sum += len;
        self.longest = self.longest.max(size);
        self.any_reference |= reference;
    }

    fn verdict(&self, heap: usize, size_max: usize, apart: impl FnOnce() -> bool) -> Verdict {
        ensure(self.end <= heap, "entry outside the heap")?;
        ensure(self.sum == heap, "heap sizes do not sum up")?;
        ensure(self.longest <= size_max, "entry too long")?;
        ensure(self.order >= 0 || apart(), "entries overlap")
    }
}

fn int_leaf(page: &[u8]) -> Verdict {
    ensure(
        get16(page, AT_FLAGS) <= int::FLAGS_ALL,
        "unknown fence flags",
    )?;
    let slots = int::leaf_slots(page);
    let mut totals = Totals::new(0, garbage(page));
    let (mut ascending, mut previous) = (true, None);
    for slot in slots {
        let key = int::slot_key(slot);
        let (distance, len, overflow) = int::slot_value(slot);
        totals.add(distance, len, len, overflow);
        ascending &= previous.is_none_or(|previous| previous < key);
        previous = Some(key);
    }
    let values = || slots.iter().map(int::slot_value);
    let size_max = max_inline_value(page.len(), 0);
    totals.verdict(heap(page), size_max, || {
        apart(0, values().map(|(distance, len, _)| (distance, len)))
    })?;
    ensure(
        !totals.any_reference
            || values().all(|(_, len, overflow)| !overflow || len >= OVERFLOW_REF),
        "overflow reference cut short",
    )?;
    ensure(ascending, "keys out of order")?;
    ensure(
        slots
            .first()
            .is_none_or(|slot| int::covers(page, int::slot_key(slot)))
            && slots
                .last()
                .is_none_or(|slot| int::covers(page, int::slot_key(slot))),
        "key outside the fences",
    )
}

fn int_inner(page: &[u8]) -> Verdict {
    ensure(
        get16(page, AT_FLAGS) <= int::FLAGS_ALL,
        "unknown fence flags",
    )?;
    ensure(
        heap(page) == 0 && garbage(page) == 0,
        "heap in a page without values",
    )?;
    let mut keys = int::separators(page).iter().map(|s| i64::from_le_bytes(*s));
    ensure(
        keys.clone().is_sorted_by(|a, b| a < b),
        "separators out of order",
    )?;
    let ends = keys.clone().next().into_iter().chain(keys.next_back());
    ensure(
        ends.into_iter().all(|key| int::covers(page, key)),
        "separator outside the fences",
    )
}

/// Whether entries (distance, length) leave out the first `used` bytes and do not overlap.
#[cold]
fn apart(used: usize, entries: impl Iterator<Item = (usize, usize)>) -> bool {
    let mut entries: Vec<_> = entries.filter(|(_, len)| *len > 0).collect();
    entries.sort_unstable();
    let mut end = used;
    entries.into_iter().all(|(distance, len)| {
        let free = distance >= end + len;
        end = distance;
        free
    })
}

fn byte_fences(page: &[u8]) -> Verdict {
    ensure(
        bytes::fence_bytes(page) <= heap(page),
        "fences outside the heap",
    )?;
    let (lower, upper) = (bytes::lower(page), bytes::upper(page));
    ensure(
        lower.start.len().max(upper.start.len()) <= max_key(page.len()),
        "fence too long",
    )?;
    for fence in [lower, upper] {
        ensure(
            fence.rest.is_none() || (has_long(page) && fence.start.len() == max_key(page.len())),
            "long fence with a short start",
        )?;
    }
    let prefix = bytes::prefix_len(page);
    ensure(
        prefix <= lower.start.len().min(upper.start.len()),
        "prefix longer than the fences",
    )?;
    ensure(
        lower.start[..prefix] == upper.start[..prefix],
        "fences do not share the prefix",
    )?;
    // Where the starts are the same, only the rests could tell.
    ensure(
        upper.start.is_empty()
            || lower.start < upper.start
            || (lower.start == upper.start && upper.rest.is_some()),
        "fences out of order",
    )
}

fn byte_keys<const S: usize>(page: &[u8], regions: Regions) -> Verdict {
    byte_fences(page)?;
    let fences = bytes::fence_bytes(page);
    let prefix = bytes::prefix_len(page);
    let slots = bytes::slots::<S>(page);
    let mut totals = Totals::new(fences, garbage(page));
    let (mut shortest, mut longest) = (usize::MAX, 0);
    let (mut ascending_heads, mut previous) = (true, 0);
    let mut any_long = false;
    for raw in slots {
        let slot = Slot::decode(raw);
        totals.add(
            slot.distance,
            slot.stored(),
            slot.remainder + slot.stored() - slot.tail(),
            slot.overflow,
        );
        shortest = shortest.min(slot.remainder);
        longest = longest.max(slot.remainder);
        any_long |= slot.long;
        let head = u64::from(u32::from_be_bytes(slot.head)) + 1;
        ascending_heads &= previous < head;
        previous = head;
    }
    let each = || slots.iter().map(Slot::decode);
    let size_max = max_inline_value(page.len(), prefix);
    totals.verdict(heap(page), size_max, || {
        apart(fences, each().map(|slot| (slot.distance, slot.stored())))
    })?;
    ensure(longest + prefix <= max_key(page.len()), "key too long")?;
    ensure(
        !any_long
            || (has_long(page)
                && each().all(|slot| !slot.long || slot.remainder + prefix == max_key(page.len()))),
        "long key with a short start",
    )?;
    ensure(
        !totals.any_reference || each().all(|slot| !slot.overflow || slot.value >= OVERFLOW_REF),
        "overflow reference cut short",
    )?;
    ensure(
        shortest >= 4 || each().all(|slot| slot.is_padded()),
        "key head not padded with zeros",
    )?;
    ensure(
        ascending_heads || ascending(slots, page, regions.heap_end),
        "keys out of order",
    )?;
    let Some(first) = each().next() else {
        return Ok(());
    };
    let (lower, upper) = (bytes::lower(page), bytes::upper(page));
    let order = bytes::compare_at::<S>(page, 0, lower.start);
    ensure(
        order.is_gt() || (order.is_eq() && (lower.rest.is_none() || first.long)),
        "key below the lower fence",
    )?;
    let order = bytes::compare_at::<S>(page, slots.len() - 1, upper.start);
    ensure(
        upper.start.is_empty() || order.is_lt() || (order.is_eq() && upper.rest.is_some()),
        "key beyond the upper fence",
    )
}

/// As far as the page alone tells: the order of long keys with the same start is in
/// their rests.
fn ascending<const S: usize>(slots: &[[u8; S]], page: &[u8], heap_end: usize) -> bool {
    let tail = |slot: &Slot| Tail::stored(page, heap_end, slot);
    slots.is_sorted_by(|a, b| {
        let (a, b) = (Slot::decode(a), Slot::decode(b));
        let (x, y) = (u32::from_be_bytes(a.head), u32::from_be_bytes(b.head));
        (x < y)
            | ((x == y) && tail(&a).less(&tail(&b)))
            | ((x == y) && b.long && !tail(&b).less(&tail(&a)))
    })
}

/// Why a page is not the node that what refers to it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It has another tree's number.
    #[error("the page belongs to another tree")]
    Tree,
    /// It is not one level below its parent.
    #[error("the page is not of the level its parent says")]
    Level,
    /// It has keys of another kind, or none.
    #[error("the page is of another kind than what refers to it")]
    Kind,
    /// Its fences are others than its parent has around it.
    #[error("the page covers other keys than its parent says")]
    Fences,
}

fn expect(holds: bool, otherwise: Mismatch) -> Result<(), Mismatch> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Whether two fences are the same, as far as the pages tell: the rests of long ones are
/// not read.
fn is_same(a: Option<Stored<'_>>, b: Option<Stored<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.key == b.key && a.rest.is_some() == b.rest.is_some(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Verifies what a walk relies on that goes from a node to its child `index`, of two pages
/// that are sound by themselves.
pub fn check_child(parent: &[u8], index: usize, child: &[u8]) -> Result<(), Mismatch> {
    expect(tree(parent) == tree(child), Mismatch::Tree)?;
    expect(
        level(parent).checked_sub(1) == Some(level(child)),
        Mismatch::Level,
    )?;
    let is_value = |page| kind(page) == Some(Kind::Overflow);
    expect(
        is_int(parent) == is_int(child) && is_value(parent) == is_value(child),
        Mismatch::Kind,
    )?;
    if is_value(parent) {
        return Ok(());
    }
    let separator = |at: usize| stored_key_at(parent, at);
    let low = index.checked_sub(1).map(separator);
    let high = (index < count(parent)).then(|| separator(index));
    let low = low
        .as_ref()
        .map_or(lower_fence(parent), |it| Some(it.as_stored()));
    let high = high
        .as_ref()
        .map_or(upper_fence(parent), |it| Some(it.as_stored()));
    expect(
        is_same(low, lower_fence(child)) && is_same(high, upper_fence(child)),
        Mismatch::Fences,
    )
}

/// Verifies the same of a tree's root: there is nothing that it does not cover.
pub fn check_root(page: &[u8], has_int_keys: bool) -> Result<(), Mismatch> {
    let is_node = kind(page) != Some(Kind::Overflow);
    expect(is_node && is_int(page) == has_int_keys, Mismatch::Kind)?;
    let is_unbounded = lower_fence(page).is_none() && upper_fence(page).is_none();
    expect(is_unbounded, Mismatch::Fences)
}

/// Verifies the same of the topmost node of a large value, or of a long key's rest.
pub fn check_value(page: &[u8]) -> Result<(), Mismatch> {
    expect(kind(page) == Some(Kind::Overflow), Mismatch::Kind)
}

/// Whether the leaf or inner node has no garbage and its entries lie in slot order.
pub fn is_compact(page: &[u8]) -> bool {
    if garbage(page) != 0 {
        return false;
    }
    let mut end = 0;
    let mut follows = |distance: usize, len: usize| {
        let ok = len == 0 || distance >= end;
        end = end.max(distance);
        ok
    };
    match kind(page) {
        Some(Kind::IntLeaf) => int::leaf_slots(page).iter().all(|s| {
            let (distance, len, _) = int::slot_value(s);
            follows(distance, len)
        }),
        Some(Kind::BytesLeaf) => bytes::slots::<{ bytes::LEAF }>(page).iter().all(|s| {
            let slot = Slot::decode(s);
            follows(slot.distance, slot.stored())
        }),
        Some(Kind::BytesInner) => bytes::slots::<{ bytes::INNER }>(page).iter().all(|s| {
            let slot = Slot::decode(s);
            follows(slot.distance, slot.stored())
        }),
        _ => true,
    }
}
