//! Rows as stored: one tag byte a column, then the columns' bytes.
//!
//! The layout is normative in `docs/file-format.md`, section Rows. A tag tells
//! type and length, so that a column's place is a sum over a table of 256
//! lengths; rows of more than 16 columns carry an offset every 16 columns,
//! which bounds that sum. Columns added to the table later are missing at the
//! end and read as their default.
//!
//! Encoding loses nothing: a value comes back with its type and its bits.
//! Decoding checks everything it touches: bytes that no writer can have made
//! give `SQLITE_CORRUPT`, never a panic and never a read beyond the row.

mod columns;
mod narrow;
mod patch;
mod property;
mod read;
mod tag;
mod write;

pub use columns::RowBlock;
pub use narrow::{Columns, Kind, Large};
pub use patch::patch;
pub use property::{Property, length, octets};
pub use read::RowReader;
pub use write::{COLUMNS_MAX, FEW, RowWriter};
