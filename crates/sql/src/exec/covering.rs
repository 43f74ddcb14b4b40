//! What an index entry has of its row: columns that are parts of the key, and the rowid.
//! Whoever wants no more need not look into the table.

use crate::error::{Error, Result};
use crate::exec::range::key_column;
use crate::key::{self, KeyColumn, Residues};
use crate::plan::physical::ScanColumn;
use crate::schema::{Index, IndexTarget};
use crate::value::{Collation, ValueRef};

/// Where the wanted columns are found.
pub struct Covering {
    name: String,
    unique: bool,
    parts: Vec<KeyColumn>,
    /// (key part, place), by part.
    columns: Vec<(usize, usize)>,
    rowids: Vec<usize>,
    /// A column may have more bytes than its entry: spaces that RTRIM leaves out, as many as
    /// the entry says.
    grows: bool,
}

impl Covering {
    /// Of columns that are all in the index.
    pub fn new(index: &Index, wanted: &[ScanColumn]) -> Self {
        let part_of = |column: ScanColumn| {
            let mut parts = index.columns.iter();
            parts.position(|part| match (&part.target, column) {
                (IndexTarget::Column(c), ScanColumn::Column(wanted)) => *c == wanted,
                _ => false,
            })
        };
        let (mut columns, mut rowids) = (Vec::new(), Vec::new());
        for (place, column) in wanted.iter().enumerate() {
            match part_of(*column) {
                Some(part) => columns.push((part, place)),
                None => rowids.push(place),
            }
        }
        columns.sort_unstable();
        let last = columns.last().map_or(0, |c| c.0 + 1);
        let parts: Vec<KeyColumn> = index.columns.iter().take(last).map(key_column).collect();
        Self {
            name: index.name.clone(),
            unique: index.unique,
            grows: parts.iter().any(|part| part.collation == Collation::RTrim),
            parts,
            columns,
            rowids,
        }
    }

    /// As [`each`](Self::each); the bytes that the columns take.
    pub fn each_counted(
        &self,
        key: &[u8],
        value: &[u8],
        mut f: impl FnMut(usize, ValueRef<'_>) -> Result<()>,
    ) -> Result<usize> {
        let mut bytes = key.len();
        match self.grows {
            false => self.each(key, value, f)?,
            true => self.each(key, value, |place, value| {
                if let ValueRef::Text(text) = value {
                    bytes += text.len();
                }
                f(place, value)
            })?,
        }
        Ok(bytes)
    }

    /// Calls `f` with place and value of each wanted column of an entry.
    pub fn each(
        &self,
        key: &[u8],
        value: &[u8],
        f: impl FnMut(usize, ValueRef<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each_of(key, value, f)
            .map_err(|error| in_index(error, &self.name))
    }

    #[inline(always)]
    fn each_of(
        &self,
        key: &[u8],
        value: &[u8],
        mut f: impl FnMut(usize, ValueRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut rowid, mut rest) = (0, value);
        if self.unique {
            rowid = key::decode_rowid(&mut rest)?;
        } else if !self.rowids.is_empty() {
            rowid = key::rowid_suffix(key)?;
        }
        let mut residues = Residues::new(rest)?;
        let mut rest = key;
        let mut wanted = self.columns.iter().peekable();
        for (i, part) in self.parts.iter().enumerate() {
            if wanted.peek().is_none_or(|(p, _)| *p != i) {
                key::skip(&mut rest)?;
                continue;
            }
            let residue = residues.take(i)?;
            if residue.is_none()
                && !part.real
                && let Some(integer) = key::take_integer(&mut rest, part.descending)
            {
                while let Some((_, place)) = wanted.next_if(|(p, _)| *p == i) {
                    f(*place, ValueRef::Integer(integer))?;
                }
                continue;
            }
            let column = key::decode(&mut rest, *part, residue)?;
            while let Some((_, place)) = wanted.next_if(|(p, _)| *p == i) {
                f(*place, column.as_ref())?;
            }
        }
        for place in &self.rowids {
            f(*place, ValueRef::Integer(rowid))?;
        }
        Ok(())
    }
}

/// Says of what was found damaged that it is an entry of this index.
#[cold]
pub fn in_index(error: Error, index: &str) -> Error {
    error.within(format_args!("an entry of index {index}"))
}
