//! What entries were before they were written.
//!
//! Who may go back to a place in a transaction either keeps the nodes that it had there,
//! which are copied again before they are edited, or notes what each entry was that is
//! written since. Of few entries the note is the cheaper by far: what they take, against
//! the pages in which they lie. So it is taken until it has grown by [`LIMIT`]: what some
//! thousand entries take, which may lie in as many pages.

use super::TreeId;
use crate::node::{Key, OwnedKey};

/// Bytes that are noted of what was written since nodes were kept last.
const LIMIT: usize = 256 << 10;
/// Bytes that a list keeps room for between transactions.
const KEPT: usize = 128 << 10;
/// Bytes of all notes together.
const LIMIT_OF_ALL: usize = 1 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Undo {
    notes: Vec<Note>,
    /// Keys and values, each note's behind that of the one before it.
    bytes: Vec<u8>,
    /// How much of it was there when nodes were kept last.
    kept: usize,
    /// Whether what is written is noted.
    pub(crate) is_on: bool,
}

struct Note {
    tree: TreeId,
    key: NotedKey,
    /// Where its bytes begin.
    from: usize,
    existed: bool,
}

enum NotedKey {
    Int(i64),
    /// Of so many bytes.
    Bytes(usize),
}

/// What an entry was.
pub(crate) struct Before {
    pub(crate) tree: TreeId,
    pub(crate) key: OwnedKey,
    pub(crate) value: Option<Vec<u8>>,
}

impl Undo {
    /// An entry is about to be written, which has this value.
    #[inline]
    pub(crate) fn note(&mut self, tree: TreeId, key: Key<'_>, value: Option<&[u8]>) {
        let from = self.bytes.len();
        let noted = match key {
            Key::Int(key) => NotedKey::Int(key),
            Key::Bytes(key) => {
                self.bytes.extend_from_slice(key);
                NotedKey::Bytes(key.len())
            }
        };
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.notes.push(Note {
            tree,
            key: noted,
            from,
            existed: value.is_some(),
        });
    }

    /// How many entries are noted.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.notes.len()
    }

    /// Whether enough is noted of what was written since nodes were kept.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_on && self.size_of(self.notes.len()) >= self.kept + LIMIT
    }

    /// Whether so much is noted that nothing more should be.
    pub(crate) fn is_crowded(&self) -> bool {
        self.size_of(self.notes.len()) >= LIMIT_OF_ALL
    }

    /// Bytes that so many notes take.
    #[inline]
    fn size_of(&self, notes: usize) -> usize {
        let bytes = self.notes.get(notes).map_or(self.bytes.len(), |it| it.from);
        bytes + notes * size_of::<Note>()
    }

    /// What was written before so many notes is undone by nodes that are kept.
    #[inline]
    pub(crate) fn set_kept(&mut self, notes: usize) {
        self.kept = self.size_of(notes);
    }

    /// What was noted last.
    pub(crate) fn last(&self) -> Option<Before> {
        let note = self.notes.last()?;
        let bytes = &self.bytes[note.from..];
        let (key, value) = match note.key {
            NotedKey::Int(key) => (OwnedKey::Int(key), bytes),
            NotedKey::Bytes(len) => {
                let (key, value) = bytes.split_at(len);
                (OwnedKey::Bytes(key.to_vec()), value)
            }
        };
        Some(Before {
            tree: note.tree,
            key,
            value: note.existed.then(|| value.to_vec()),
        })
    }

    /// Forgets all but so many.
    #[inline]
    pub(crate) fn truncate(&mut self, notes: usize) {
        if let Some(note) = self.notes.get(notes) {
            self.bytes.truncate(note.from);
            self.notes.truncate(notes);
        }
    }

    /// Forgets everything, and lets go of what much took.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.notes.clear();
        self.bytes.clear();
        self.is_on = false;
        self.kept = 0;
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        if self.notes.capacity() * size_of::<Note>() > KEPT {
            self.notes = Vec::new();
        }
    }
}
