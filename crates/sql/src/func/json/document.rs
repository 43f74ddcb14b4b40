//! The documents that functions are called with: their JSONB, or one element of it.
//!
//! Several calls of a statement may have the same text: a constant, or a column, of which one
//! call has a whole batch of rows before the next has the same rows. So texts are remembered
//! by where they lie, and one that comes again is kept as JSONB with a copy of itself, which
//! tells whether what lies there is still the same. Once texts have come again, new ones are
//! kept at once, as long as that proves worth it.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::jsonb::is_jsonb;
use super::parse;
use super::seek::Seek;
use super::{bad_path, find, malformed};
use crate::error::Result;
use crate::func::Context;
use crate::value::ValueRef;

/// Bytes of all that is kept, and of one text that is.
const KEPT_BYTES: usize = 4 << 20;
const TEXT_BYTES: usize = 512 << 10;
/// Bytes that a statement holds between its runs.
const IDLE_BYTES: usize = 64 << 10;
/// Texts that are remembered: as many as a batch has rows, and as many places again.
const SLOTS_MIN: usize = 16;
const SLOTS_MAX: usize = 2_048;
/// Slots that are tried for a text: it takes the one that was used least lately.
const PROBES: usize = 8;
/// How sure it may become, or not, that new texts will come again.
const WORTH_MAX: i8 = 8;

/// A text that was there.
#[derive(Debug, Clone, Default)]
struct Slot {
    /// Where it lay; 0 in an empty slot.
    address: usize,
    len: usize,
    /// What tells it from another one, where it is not kept.
    hash: u64,
    /// The text and, behind it, its JSONB; empty where it is not kept.
    kept: Vec<u8>,
    /// It came again since it is kept.
    is_used: bool,
    /// When it was last looked for.
    looked: u32,
}

/// What is kept from one call to the next.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    slots: Vec<Slot>,
    /// What the slots' buffers take.
    bytes: usize,
    /// Counts what is looked for.
    looked: u32,
    /// Above 0: new texts are kept at once.
    worth: i8,
    /// The JSONB of a text that is not kept.
    once: Vec<u8>,
    /// What a path led to.
    found: Vec<u8>,
}

impl Documents {
    /// Whether it takes more than is worth being held from one run to the next. What it
    /// remembers may be of another run: a text is the same only where all of it is.
    pub fn is_large(&self) -> bool {
        self.slots.len() > SLOTS_MIN || self.bytes > IDLE_BYTES
    }
}

/// How a text was found.
enum Seen {
    New(usize),
    /// Before, but it was not kept.
    Before(usize),
    Kept(usize),
}

impl Documents {
    /// Looks for a text among those that were there, and makes place for it.
    fn look(&mut self, text: &[u8]) -> Seen {
        let address = text.as_ptr().addr();
        self.looked = self.looked.wrapping_add(1);
        let looked = self.looked;
        loop {
            let mask = self.slots.len().wrapping_sub(1);
            let spread = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let first = spread as usize & mask;
            let (mut oldest, mut age) = (first, 0);
            for at in (first..first + PROBES).map(|at| at & mask) {
                let Some(slot) = self.slots.get_mut(at) else {
                    break;
                };
                if slot.address == 0 {
                    return self.begin(at, text);
                }
                let own_age = looked.wrapping_sub(slot.looked);
                if (slot.address, slot.len) != (address, text.len()) {
                    if own_age > age {
                        (oldest, age) = (at, own_age);
                    }
                    continue;
                }
                slot.looked = looked;
                return match slot.kept.get(..text.len()) {
                    Some(kept) if kept == text => Seen::Kept(at),
                    None if slot.hash == hash(text) => Seen::Before(at),
                    _ => self.begin(at, text),
                };
            }
            if self.slots.len() >= SLOTS_MAX {
                return self.begin(oldest, text);
            }
            self.grow();
        }
    }

    /// Gives a slot to a text that is new.
    fn begin(&mut self, at: usize, text: &[u8]) -> Seen {
        if let Some(slot) = self.slots.get_mut(at) {
            if !slot.kept.is_empty() {
                let more = if slot.is_used { 1 } else { -1 };
                self.worth = (self.worth + more).clamp(-WORTH_MAX, WORTH_MAX);
            }
            slot.address = text.as_ptr().addr();
            slot.len = text.len();
            slot.looked = self.looked;
            slot.is_used = false;
            slot.kept.clear();
            if self.worth <= 0 {
                slot.hash = hash(text);
            }
        }
        Seen::New(at)
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.slots.len() * 4).clamp(SLOTS_MIN, SLOTS_MAX);
        // Where they lie in the new table is found out as they come again.
        self.slots = vec![Slot::default(); count];
        self.bytes = 0;
    }

    /// The slot in which a text is kept, where it is.
    fn kept(&mut self, text: &[u8]) -> Result<Option<usize>> {
        if text.is_empty() || text.len() > TEXT_BYTES {
            return Ok(None);
        }
        let (at, is_used) = match self.look(text) {
            Seen::Kept(at) => {
                if let Some(slot) = self.slots.get_mut(at) {
                    slot.is_used = true;
                }
                return Ok(Some(at));
            }
            Seen::Before(at) => {
                self.worth = (self.worth + 1).min(WORTH_MAX);
                (at, true)
            }
            Seen::New(at) if self.worth > 0 => (at, false),
            Seen::New(_) => return Ok(None),
        };
        let Some(slot) = self.slots.get_mut(at) else {
            return Ok(None);
        };
        let before = slot.kept.capacity();
        slot.kept.reserve(2 * text.len() + 16);
        slot.kept.extend_from_slice(text);
        let parsed = parse::parse(text, &mut slot.kept);
        self.bytes += slot.kept.capacity() - before;
        slot.is_used = is_used;
        if parsed.is_err() {
            slot.kept.clear();
            return Err(malformed());
        }
        if self.bytes > KEPT_BYTES {
            let kept = std::mem::take(slot);
            self.slots.fill_with(Slot::default);
            self.bytes = kept.kept.capacity();
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = kept;
            }
        }
        Ok(Some(at))
    }

    /// The JSONB in a slot, or of a text that is not kept.
    fn blob(&mut self, at: Option<usize>, text: &[u8]) -> Result<&[u8]> {
        if let Some(at) = at {
            let slot = self.slots.get(at);
            return Ok(slot.and_then(|s| s.kept.get(s.len..)).unwrap_or(&[]));
        }
        self.once.clear();
        parse::parse(text, &mut self.once).map_err(|_| malformed())?;
        Ok(&self.once)
    }

    /// Gives back what a large document took.
    fn let_go_of_large(&mut self) {
        if self.once.capacity().max(self.found.capacity()) > TEXT_BYTES {
            self.once = Vec::new();
            self.found = Vec::new();
        }
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
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
    let documents = context.documents.get_or_insert_default();
    let kept = documents.kept(&text)?;
    let outcome = documents.blob(kept, &text).and_then(f);
    documents.let_go_of_large();
    outcome.map(Some)
}

/// Calls `f` with the element that the steps of `path` lead to; None where there is none. A
/// text that is not kept is read through for it.
pub fn with_element<T>(
    context: &mut Context,
    value: ValueRef<'_>,
    steps: Option<&[u8]>,
    path: &[u8],
    f: impl FnOnce(&[u8], usize) -> Result<T>,
) -> Result<Option<T>> {
    let ValueRef::Text(text) = value else {
        let found = with_document(context, value, |blob| at_end(blob, steps, path, f))?;
        return Ok(found.flatten());
    };
    let documents = context.documents.get_or_insert_default();
    let kept = documents.kept(text)?;
    let found = if let (None, Some(steps)) = (kept, steps)
        && let Some(mut seek) = Seek::new(steps, &mut documents.found)
    {
        parse::read(text, &mut seek).map_err(|_| malformed())?;
        match documents.found.is_empty() {
            true => Ok(None),
            false => f(&documents.found, 0).map(Some),
        }
    } else {
        let blob = documents.blob(kept, text)?;
        at_end(blob, steps, path, f)
    };
    documents.let_go_of_large();
    found
}

/// Calls `f` with what is at the end of a path.
fn at_end<T>(
    blob: &[u8],
    steps: Option<&[u8]>,
    path: &[u8],
    f: impl FnOnce(&[u8], usize) -> Result<T>,
) -> Result<Option<T>> {
    let at = find(blob, steps.ok_or_else(|| bad_path(path))?, path)?;
    at.map(|at| f(blob, at)).transpose()
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
