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
//! A handle holds the whole value: it is read when the handle is opened, and again where
//! the connection may see another state since, because it wrote or somebody committed.
//! Each write writes the whole value anew, as an UPDATE does; so large values are best
//! written in few parts, and in a transaction. No trigger fires, and no constraint is looked
//! at. A handle whose value changed by other means has expired, and fails with `SQLITE_ABORT`.

use std::cell::{Cell, RefCell};
use std::io;

use fulgurite_sql::session::blob::{BlobColumn, Mark, expired};
use fulgurite_sql::value::LENGTH_MAX;

use crate::types::{ToSql, ToSqlOutput};
use crate::{Connection, Error, Name, Result, ffi};

/// A handle of a blob or a text; see the module.
#[derive(Debug)]
pub struct Blob<'conn> {
    conn: &'conn Connection,
    column: BlobColumn,
    read_only: bool,
    rowid: i64,
    mark: Cell<Option<Mark>>,
    /// None once it has expired.
    bytes: RefCell<Option<Vec<u8>>>,
    /// 0 once it has expired.
    len: Cell<usize>,
    position: usize,
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
            rowid: row_id,
            mark: Cell::new(None),
            bytes: RefCell::new(None),
            len: Cell::new(0),
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
        let was_open = self.bytes.borrow().is_some();
        self.expire(&mut self.bytes.borrow_mut());
        match was_open {
            true => self.load(row),
            false => Err(Error::from_engine(expired())),
        }
    }

    fn load(&mut self, row: i64) -> Result<()> {
        let found = self.conn.session().read_blob(&self.column, row);
        let (bytes, mark) = found.map_err(Error::from_engine)?;
        self.rowid = row;
        self.len.set(bytes.len());
        self.position = 0;
        self.mark.set(Some(mark));
        self.bytes.replace(Some(bytes));
        Ok(())
    }

    fn expire(&self, bytes: &mut Option<Vec<u8>>) {
        *bytes = None;
        self.len.set(0);
    }

    /// Fails, for good, if the value is not what the handle knows.
    fn check(&self) -> Result<()> {
        let session = self.conn.session();
        let mut bytes = self.bytes.borrow_mut();
        if bytes.is_some() && self.mark.get() != Some(session.mark(&self.column)) {
            match session.read_blob(&self.column, self.rowid) {
                Ok((found, mark)) if bytes.as_ref() == Some(&found) => self.mark.set(Some(mark)),
                _ => self.expire(&mut bytes),
            }
        }
        match *bytes {
            Some(_) => Ok(()),
            None => Err(Error::from_engine(expired())),
        }
    }

    /// Its length in bytes, which stays; 0 once it has expired.
    #[must_use]
    pub fn size(&self) -> i32 {
        i32::try_from(self.len.get()).unwrap_or(i32::MAX)
    }

    /// Its length in bytes, which stays; 0 once it has expired.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.get() == 0
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
        if end > self.len.get() {
            return Err(Error::BlobSizeError);
        }
        if self.read_only {
            let message = ffi::code_to_str(ffi::SQLITE_READONLY);
            return Err(Error::failure(ffi::SQLITE_READONLY, message));
        }
        self.check()?;
        let mut bytes = self.bytes.borrow_mut();
        let Some(before) = bytes.as_mut() else {
            return Err(Error::from_engine(expired()));
        };
        let mut after = before.clone();
        if let Some(place) = after.get_mut(write_start..end) {
            place.copy_from_slice(buf);
        }
        let session = self.conn.session();
        match session.write_blob(&self.column, self.rowid, before, &after) {
            Ok(mark) => {
                self.mark.set(Some(mark));
                *before = after;
                Ok(())
            }
            Err(error) => {
                if error.code() == ffi::SQLITE_ABORT {
                    self.expire(&mut bytes);
                }
                Err(Error::from_engine(error))
            }
        }
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
        let count = buf.len().min(self.len.get().saturating_sub(read_start));
        if count == 0 {
            return Ok(0);
        }
        self.check()?;
        let bytes = self.bytes.borrow();
        let found = bytes
            .as_ref()
            .and_then(|it| it.get(read_start..read_start + count));
        if let (Some(found), Some(place)) = (found, buf.get_mut(..count)) {
            place.copy_from_slice(found);
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
        let count = buf.len().min(self.len.get().saturating_sub(self.position));
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
            io::SeekFrom::End(offset) => (self.len.get(), i128::from(offset)),
        };
        let place = from as i128 + offset;
        if place < 0 {
            return refused("invalid seek to negative position");
        }
        match usize::try_from(place) {
            Ok(place) if place <= self.len.get() => {
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
