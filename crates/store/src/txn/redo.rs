//! Row operations as bytes: what a transaction appends to the log, and what a
//! rebase and recovery replay.
//!
//! ```text
//! put      1 | tree | key | length of value | value
//! delete   2 | tree | key
//! create   3 | tree | kind u8
//! drop     4 | tree
//! start    5 | tree | key | bytes replaced | length of start | start
//! part     6 | tree | key | from | length of part | part
//! clear    7 | tree
//! ```
//! Tree numbers and lengths are LEB128. A key is 8 little-endian bytes in trees
//! of integers (op codes as above), or a length and bytes in trees of byte
//! strings (op code + 16). Decoding never panics; it reports where the bytes
//! stop making sense.

use crate::node::Key;
use crate::tree::KeyKind;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CREATE: u8 = 3;
const DROP: u8 = 4;
const PUT_START: u8 = 5;
const PUT_PART: u8 = 6;
const CLEAR: u8 = 7;
const BYTES: u8 = 16;
const PUT_BYTES: u8 = PUT + BYTES;
const DELETE_BYTES: u8 = DELETE + BYTES;
const PUT_START_BYTES: u8 = PUT_START + BYTES;
const PUT_PART_BYTES: u8 = PUT_PART + BYTES;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Put {
        tree: u32,
        key: Key<'a>,
        value: &'a [u8],
    },
    Delete {
        tree: u32,
        key: Key<'a>,
    },
    Create {
        tree: u32,
        kind: KeyKind,
    },
    Drop {
        tree: u32,
    },
    /// The first bytes of a value, up to `until`, become `start`.
    PutStart {
        tree: u32,
        key: Key<'a>,
        until: u64,
        start: &'a [u8],
    },
    /// The bytes of a value from `from` on become these.
    PutPart {
        tree: u32,
        key: Key<'a>,
        from: u64,
        bytes: &'a [u8],
    },
    /// All entries of a tree go.
    Clear {
        tree: u32,
    },
}

impl<'a> Op<'a> {
    pub(crate) fn tree(&self) -> u32 {
        match *self {
            Op::Put { tree, .. }
            | Op::Delete { tree, .. }
            | Op::Create { tree, .. }
            | Op::Drop { tree }
            | Op::PutStart { tree, .. }
            | Op::PutPart { tree, .. }
            | Op::Clear { tree } => tree,
        }
    }

    /// The key of the entry that it changes.
    pub(crate) fn key(&self) -> Option<Key<'a>> {
        match *self {
            Op::Put { key, .. }
            | Op::Delete { key, .. }
            | Op::PutStart { key, .. }
            | Op::PutPart { key, .. } => Some(key),
            Op::Create { .. } | Op::Drop { .. } | Op::Clear { .. } => None,
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn head(out: &mut Vec<u8>, op: u8, tree: u32, key: Key<'_>) {
    match key {
        Key::Int(key) => {
            out.push(op);
            varint(out, u64::from(tree));
            out.extend_from_slice(&key.to_le_bytes());
        }
        Key::Bytes(key) => {
            out.push(op + BYTES);
            varint(out, u64::from(tree));
            varint(out, key.len() as u64);
            out.extend_from_slice(key);
        }
    }
}

/// Appends an operation.
pub(crate) fn encode(out: &mut Vec<u8>, op: Op<'_>) {
    match op {
        Op::Put { tree, key, value } => {
            out.reserve(value.len() + 32);
            head(out, PUT, tree, key);
            varint(out, value.len() as u64);
            out.extend_from_slice(value);
        }
        Op::Delete { tree, key } => head(out, DELETE, tree, key),
        Op::Create { tree, kind } => {
            out.push(CREATE);
            varint(out, u64::from(tree));
            out.push(kind.to_byte());
        }
        Op::Drop { tree } => {
            out.push(DROP);
            varint(out, u64::from(tree));
        }
        Op::Clear { tree } => {
            out.push(CLEAR);
            varint(out, u64::from(tree));
        }
        Op::PutStart {
            tree,
            key,
            until,
            start,
        } => {
            head(out, PUT_START, tree, key);
            varint(out, until);
            varint(out, start.len() as u64);
            out.extend_from_slice(start);
        }
        Op::PutPart {
            tree,
            key,
            from,
            bytes,
        } => {
            out.reserve(bytes.len() + 40);
            head(out, PUT_PART, tree, key);
            varint(out, from);
            varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads operations one after the other; an `Err` holds the position of bytes
/// that are no operation, and ends the sequence.
pub(crate) struct Ops<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Ops<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::from(bytes, 0)
    }

    /// From a place on where one begins.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next one begins.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn op(&mut self) -> Option<Op<'a>> {
        let code = self.byte()?;
        let tree = u32::try_from(self.varint()?).ok()?;
        let key = |ops: &mut Self| -> Option<Key<'a>> {
            if code >= BYTES {
                let length = usize::try_from(ops.varint()?).ok()?;
                Some(Key::Bytes(ops.take(length)?))
            } else {
                Some(Key::Int(i64::from_le_bytes(ops.take(8)?.try_into().ok()?)))
            }
        };
        match code {
            PUT | PUT_BYTES => {
                let key = key(self)?;
                let length = usize::try_from(self.varint()?).ok()?;
                let value = self.take(length)?;
                Some(Op::Put { tree, key, value })
            }
            DELETE | DELETE_BYTES => Some(Op::Delete {
                tree,
                key: key(self)?,
            }),
            CREATE => Some(Op::Create {
                tree,
                kind: KeyKind::from_byte(self.byte()?)?,
            }),
            DROP => Some(Op::Drop { tree }),
            CLEAR => Some(Op::Clear { tree }),
            PUT_PART | PUT_PART_BYTES => {
                let key = key(self)?;
                let from = self.varint()?;
                let length = usize::try_from(self.varint()?).ok()?;
                let bytes = self.take(length)?;
                Some(Op::PutPart {
                    tree,
                    key,
                    from,
                    bytes,
                })
            }
            PUT_START | PUT_START_BYTES => {
                let key = key(self)?;
                let until = self.varint()?;
                let length = usize::try_from(self.varint()?).ok()?;
                let start = self.take(length)?;
                Some(Op::PutStart {
                    tree,
                    key,
                    until,
                    start,
                })
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let start = self.at;
        let op = self.op();
        if op.is_none() {
            self.at = self.bytes.len();
        }
        Some(op.ok_or(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back_as_written() {
        let ops = [
            Op::Put {
                tree: 3,
                key: Key::Int(-7),
                value: b"value",
            },
            Op::Put {
                tree: 300,
                key: Key::Bytes(b""),
                value: b"",
            },
            Op::Delete {
                tree: u32::MAX,
                key: Key::Int(i64::MIN),
            },
            Op::Delete {
                tree: 0,
                key: Key::Bytes(&[9; 500]),
            },
            Op::Create {
                tree: 17,
                kind: KeyKind::Int,
            },
            Op::Drop { tree: 17 },
            Op::PutStart {
                tree: 4,
                key: Key::Int(8),
                until: 1 << 40,
                start: b"start",
            },
            Op::PutStart {
                tree: 4,
                key: Key::Bytes(b"key"),
                until: 0,
                start: b"",
            },
            Op::PutPart {
                tree: 5,
                key: Key::Bytes(b"key"),
                from: 300,
                bytes: b"part",
            },
            Op::Clear { tree: 300 },
        ];
        let mut bytes = Vec::new();
        for op in ops {
            encode(&mut bytes, op);
        }
        let read: Result<Vec<_>, _> = Ops::new(&bytes).collect();
        assert_eq!(read, Ok(ops.to_vec()));
    }

    #[test]
    fn broken_bytes_end_with_their_position() {
        let mut bytes = Vec::new();
        encode(&mut bytes, Op::Drop { tree: 5 });
        let good = bytes.len();
        encode(
            &mut bytes,
            Op::Put {
                tree: 1,
                key: Key::Int(1),
                value: b"abc",
            },
        );
        for cut in good + 1..bytes.len() {
            let read: Vec<_> = Ops::new(&bytes[..cut]).collect();
            assert_eq!(read, [Ok(Op::Drop { tree: 5 }), Err(good)], "cut at {cut}");
        }
        for first in 0..=255u8 {
            let noise = [
                first, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            ];
            assert!(Ops::new(&noise).count() <= noise.len());
        }
    }
}
