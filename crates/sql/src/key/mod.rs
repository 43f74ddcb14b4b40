//! Keys as stored: bytes whose memcmp order is SQL's order.
//!
//! NULL < numbers < text < blobs; integers and reals order exactly together,
//! text by the column's collation. Each column's encoding is self-delimiting
//! and prefix-free, also complemented for DESC, so that columns are simply put
//! one after the other. The layout is normative in `docs/file-format.md`,
//! section Keys.
//!
//! What the order cannot tell (1 or 1.0, -0.0, letter case under NOCASE, spaces
//! under RTRIM) is the **residue**, kept in the index entry's value, from which
//! an index-only scan restores the exact column.
//!
//! An **index entry** of a plain index has the key `columns, rowid` and the
//! value `residue`. In a UNIQUE index the value starts with the rowid, and the
//! rowid is in the key only where a column is NULL (NULLs are all distinct).
//!
//! No encoding starts with [`AFTER`]: a prefix followed by it is greater than
//! every key with that prefix. Decoding checks everything: bytes that no writer
//! can have made give `SQLITE_CORRUPT`.

mod decode;
mod encode;
mod order;
mod residue;
mod rowid;

pub use decode::{KeyValue, decode, skip, take_integer};
pub use encode::{encode, encode_entry, encode_prefix};
pub use order::{Order, any_of_program};
pub use residue::{Residue, Residues, encode_residue};
pub use rowid::{decode_rowid, encode_rowid, entry_rowid, rowid_suffix};

use crate::error::Error;
use crate::value::Collation;

/// A byte above the first byte of every encoded column or rowid.
pub const AFTER: u8 = 0xff;

/// How a column of a key is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyColumn {
    /// Orders texts.
    pub collation: Collation,
    /// DESC.
    pub descending: bool,
    /// The column has REAL affinity: integral numbers are reals unless the
    /// residue says otherwise, so that they need none.
    pub real: bool,
}

/// First bytes of an encoded column, and what delimits texts.
mod tag {
    pub(super) const NULL: u8 = 0x08;
    /// A real below -2^63.
    pub(super) const NEGATIVE_BIG: u8 = 0x10;
    /// `ZERO ± n`: n bytes of magnitude.
    pub(super) const ZERO: u8 = 0x1a;
    /// Most bytes of magnitude.
    pub(super) const MAGNITUDE_MAX: u8 = 9;
    /// A real above 2^63.
    pub(super) const POSITIVE_BIG: u8 = 0x24;
    pub(super) const TEXT: u8 = 0x30;
    pub(super) const BLOB: u8 = 0x38;
    /// Complemented first bytes are this or more.
    pub(super) const COMPLEMENTED: u8 = 0x80;
    /// Ends a text or blob.
    pub(super) const END: u8 = 0x00;
    /// Stands before 1 (for a zero byte) or 2 (for a one byte).
    pub(super) const ESCAPE: u8 = 0x01;
}

#[cold]
fn malformed(what: &'static str) -> Error {
    Error::corrupt(what)
}
