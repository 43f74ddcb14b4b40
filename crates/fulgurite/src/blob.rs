//! Blobs and texts of single rows, read and written in parts.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io::{Read, Seek, SeekFrom, Write};
//! use fulgurite::{Connection, MAIN_DB, blob::ZeroBlob};
//!
//! let db = Connection::open_in_memory()?;
//! db.execute_batch("CREATE TABLE picture (body BLOB)")?;
//! db.execute("INSERT INTO picture VALUES (?1)", [ZeroBlob(8)])?;
//! let mut blob = db.blob_open(MAIN_DB, "picture", "body", db.last_insert_rowid(), false)?;
//! blob.write_all(b"fulgur")?;
//! blob.seek(SeekFrom::Start(2))?;
//! let mut end = String::new();
//! blob.read_to_string(&mut end)?;
//! assert_eq!(end, "lgur\0\0");
//! # Ok(()) }
//! ```
//!
//! A part takes time and room for its own bytes, however long the value is. Each write is a
//! transaction of its own unless one is open. No trigger fires, and no constraint is looked
//! at. A handle whose value was written by other means has expired, and fails with
//! `SQLITE_ABORT`. An open handle keeps a state of the database, as a query does that is
//! being stepped.

use std::cell::RefCell;
use std::{fmt, io};

use fulgurite_sql::session::blob::{BlobColumn, BlobHandle, expired};
use fulgurite_sql::value::LENGTH_MAX;

use crate::types::{ToSql, ToSqlOutput};
use crate::{Connection, Error, Name, Result, ffi};

/// A handle of a blob or a text; see the module.
pub struct Blob<'conn> {
    conn: &'conn Connection,
    column: BlobColumn,
    read_only: bool,
    /// None once it has expired.
    handle: RefCell<Option<BlobHandle>>,
    position: usize,
}

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob")
            .field("column", &self.column)
            .field("len", &self.len())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a row's blob or text, to be read, and to be written in place unless that is
    /// not wanted.
    ///
    /// # Errors
    /// A table, column or row that is not there; a value that is neither; for writing, a
    /// column of an index or an enforced foreign key.
    pub fn blob_open<D: Name, N: Name>(
        &self,
        db: D,
        table: N,
        column: N,
        row_id: i64,
        read_only: bool,
    ) -> Result<Blob<'_>> {
        let (table, column) = (table.as_text()?, column.as_text()?);
        let column = BlobColumn::new(db.as_text()?, table, column, !read_only);
        let mut blob = Blob {
            conn: self,
            column,
            read_only,
            handle: RefCell::new(None),
            position: 0,
        };
        blob.load(row_id)?;
        Ok(blob)
    }
}

impl Blob<'_> {
    /// Goes to the same column of another row.
    ///
    /// # Errors
    /// As [`Connection::blob_open`]; the handle has expired then.
    pub fn reopen(&mut self, row: i64) -> Result<()> {
        match self.handle.take() {
            Some(_) => self.load(row),
            None => Err(Error::from_engine(expired())),
        }
    }

    fn load(&mut self, row: i64) -> Result<()> {
        let found = self.conn.session().open_blob(&self.column, row);
        self.handle
            .replace(Some(found.map_err(Error::from_engine)?));
        self.position = 0;
        Ok(())
    }

    /// Does something with the handle, which expires where its value changed.
    fn with_handle<T>(
        &self,
        act: impl FnOnce(&mut BlobHandle) -> fulgurite_sql::error::Result<T>,
    ) -> Result<T> {
        let mut handle = self.handle.borrow_mut();
        let done = match handle.as_mut() {
            Some(open) => act(open),
            None => Err(expired()),
        };
        done.map_err(|error| {
            if error.code() == ffi::SQLITE_ABORT {
                *handle = None;
            }
            Error::from_engine(error)
        })
    }

    /// Its length in bytes, which stays; 0 once it has expired.
    #[must_use]
    pub fn size(&self) -> i32 {
        i32::try_from(self.len()).unwrap_or(i32::MAX)
    }

    /// Its length in bytes, which stays; 0 once it has expired.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handle.borrow().as_ref().map_or(0, BlobHandle::len)
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes it; dropping it does the same.
    ///
    /// # Errors
    /// None.
    pub fn close(self) -> Result<()> {
        drop(self);
        Ok(())
    }

    /// Writes all of `buf` from a place on.
    ///
    /// # Errors
    /// [`Error::BlobSizeError`] where it ends before; a handle that is only read or has
    /// expired; what a statement may fail with.
    pub fn write_at(&mut self, buf: &[u8], write_start: usize) -> Result<()> {
        let end = write_start.saturating_add(buf.len());
        if end > self.len() {
            return Err(Error::BlobSizeError);
        }
        if self.read_only {
            let message = ffi::code_to_str(ffi::SQLITE_READONLY);
            return Err(Error::failure(ffi::SQLITE_READONLY, message));
        }
        let session = self.conn.session();
        self.with_handle(|handle| session.write_blob(handle, write_start, buf))
    }

    /// The same as [`Blob::write_at`].
    ///
    /// # Errors
    /// As [`Blob::write_at`].
    pub fn write_all_at(&mut self, buf: &[u8], write_start: usize) -> Result<()> {
        self.write_at(buf, write_start)
    }

    /// Reads from a place on; how many bytes there were.
    ///
    /// # Errors
    /// A handle that has expired.
    pub fn read_at(&self, buf: &mut [u8], read_start: usize) -> Result<usize> {
        let count = buf.len().min(self.len().saturating_sub(read_start));
        if count == 0 {
            return Ok(0);
        }
        let session = self.conn.session();
        let mut found = Vec::with_capacity(count);
        let part = read_start..read_start + count;
        self.with_handle(|handle| session.read_blob(handle, part, &mut found))?;
        match (buf.get_mut(..count), found.len() == count) {
            (Some(place), true) => place.copy_from_slice(&found),
            _ => return Err(Error::BlobSizeError),
        }
        Ok(count)
    }

    /// Fills `buf` from a place on.
    ///
    /// # Errors
    /// [`Error::BlobSizeError`] where it ends before; as [`Blob::read_at`].
    pub fn read_at_exact(&self, buf: &mut [u8], read_start: usize) -> Result<()> {
        match self.read_at(buf, read_start)? == buf.len() {
            true => Ok(()),
            false => Err(Error::BlobSizeError),
        }
    }
}

impl io::Read for Blob<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buf, self.position);
        let count = count.map_err(io::Error::other)?;
        self.position += count;
        Ok(count)
    }
}

impl io::Write for Blob<'_> {
    /// Writes what fits before the end.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let count = buf.len().min(self.len().saturating_sub(self.position));
        if count == 0 {
            return Ok(0);
        }
        let part = buf.get(..count).unwrap_or(buf);
        let written = self.write_at(part, self.position);
        written.map_err(io::Error::other)?;
        self.position += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Seek for Blob<'_> {
    fn seek(&mut self, pos: io::SeekFrom) -> io::Result<u64> {
        let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        let (from, offset) = match pos {
            io::SeekFrom::Start(offset) => (0, i128::from(offset)),
            io::SeekFrom::Current(offset) => (self.position, i128::from(offset)),
            io::SeekFrom::End(offset) => (self.len(), i128::from(offset)),
        };
        let place = from as i128 + offset;
        if place < 0 {
            return refused("invalid seek to negative position");
        }
        match usize::try_from(place) {
            Ok(place) if place <= self.len() => {
                self.position = place;
                Ok(place as u64)
            }
            _ => refused("invalid seek to position past end of blob"),
        }
    }
}

/// A blob of so many zeros as a parameter, to be written later.
#[derive(Copy, Clone, Debug)]
pub struct ZeroBlob(pub u64);

impl ToSql for ZeroBlob {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::ZeroBlob(self.0))
    }
}

/// So many zeros.
pub(crate) fn zeros(count: u64) -> Result<Vec<u8>> {
    match usize::try_from(count) {
        Ok(count) if count <= LENGTH_MAX => Ok(vec![0; count]),
        _ => {
            let message = ffi::code_to_str(ffi::SQLITE_TOOBIG);
            Err(Error::failure(ffi::SQLITE_TOOBIG, message))
        }
    }
}
