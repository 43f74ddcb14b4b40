//! The log's two files and when they come into being.
//!
//! A database that was closed well has none, and opening it makes none: it may only be
//! read. The first one is made for the first reservation, or for the first switch: head,
//! begin record and zeros under a passing name, synced, then renamed and the name
//! synced, all before any record has a place in it. So a crash leaves no log or one
//! that begins where the checkpoint ends. Where a log was left behind, recovery makes
//! the first file at once, since it has to be rid of the old ones. The second file is
//! made with the first switch (`switch.rs`). With the first file comes the log buffer.
//!
//! A file that cannot be made is an error of who asked for room, who may ask again; but
//! a failed sync poisons. Once made, a file stays until the log is closed.

use std::sync::Arc;

use fulgurite_disk::{DiskErrorKind, DiskFile, Due, OpenOptions, Pace};

use super::buffer::Buffer;
use super::error::{Error, Result};
use super::flush::begin_record;
use super::generation::{self, FIRST_CAPACITY_BYTES, ZEROS, extended_capacity};
use super::header::{self, Header, RECORDS_START};
use super::locks::lock;
use super::record::EMPTY_RECORD_BYTES;
use super::twin::{Durability, TwinLog};
use crate::primitives::RING_BYTES;

/// Who writes in place uses the buffer's slots and not its ring.
const RING_BYTES_IN_PLACE: u64 = 8;

impl TwinLog {
    /// The file of a generation that records were placed in.
    #[inline]
    pub(super) fn file(&self, slot: usize) -> Result<&Arc<dyn DiskFile>> {
        let file = self.files[slot].get();
        file.ok_or(Error::Misuse("a record was placed in no file"))
    }

    /// The buffer of records that were placed.
    #[inline]
    pub(super) fn buffer(&self) -> Result<&Buffer> {
        let buffer = self.lazy_buffer.get();
        buffer.ok_or(Error::Misuse("a record was placed in no file"))
    }

    /// Makes the buffer if there is none.
    fn make_sure_of_buffer(&self) -> Result<()> {
        if self.lazy_buffer.get().is_some() {
            return Ok(());
        }
        let buffer = Buffer::new(match self.durability() {
            Durability::Full => RING_BYTES,
            Durability::Normal | Durability::Off => RING_BYTES_IN_PLACE,
        });
        let buffer = buffer.map_err(|cause| Error::no_memory(&self.base, cause))?;
        // Where there is one now it is as good.
        let _ = self.lazy_buffer.set(buffer);
        Ok(())
    }

    /// Whether the record `seq` is filled.
    #[inline]
    pub(super) fn is_filled(&self, seq: u64) -> bool {
        let buffer = self.lazy_buffer.get();
        buffer.is_some_and(|buffer| buffer.is_filled(seq))
    }

    /// Takes in a file that was made, and has its name, for good.
    pub(super) fn keep_file(
        &self,
        slot: usize,
        file: Arc<dyn DiskFile>,
    ) -> Result<&Arc<dyn DiskFile>> {
        if self.files[slot].set(file).is_err() {
            return Err(Error::Misuse("a file of the log was made twice"));
        }
        self.file(slot)
    }

    /// Makes the first generation's file if there is none.
    pub(super) fn make_sure_of_first_file(&self) -> Result<()> {
        let _extending = self.lock_extending();
        let slot = lock(&self.placement).current.slot;
        match self.files[slot].get() {
            Some(_) => Ok(()),
            None => self.make_first_file(FIRST_CAPACITY_BYTES),
        }
    }

    /// Makes the first generation's file, with room for at least so many bytes of
    /// records. For who holds `extending` and has seen that there is none.
    pub(super) fn make_first_file(&self, needed: u64) -> Result<()> {
        self.check_names()?;
        self.make_sure_of_buffer()?;
        let (slot, header, begin) = self.first_head();
        let capacity = match needed {
            ..=FIRST_CAPACITY_BYTES => FIRST_CAPACITY_BYTES,
            _ => extended_capacity(FIRST_CAPACITY_BYTES, needed),
        };
        let file = self.make_named_file(&header, slot, &begin, capacity)?;
        self.tell_of_first_file();
        self.begin_in(file, capacity)
    }

    /// Makes a file and gives it the name of `slot`: head, `first` (the bytes of its first
    /// record, may be empty), zeros to `capacity`, all synced under a passing name before.
    pub(super) fn make_named_file(
        &self,
        header: &Header,
        slot: usize,
        first: &[u8],
        capacity: u64,
    ) -> Result<Arc<dyn DiskFile>> {
        let path = header::new_path(&self.base);
        // What an earlier making left, or a link to something else, is not written to.
        match self.disk.remove(&path) {
            Err(error) if error.kind == DiskErrorKind::NotFound => {}
            removed => removed?,
        }
        let file = self.disk.open(&path, OpenOptions::CREATE_NEW)?;
        self.fill_at_pace(&*file, 0, capacity)?;
        if !first.is_empty() {
            file.write_at(first, RECORDS_START)?;
        }
        header.write(&*file, &|_| Ok(()))?;
        self.sync_file(&*file)?;
        let file = generation::publish_file(&*self.disk, &self.base, slot, self.durability())?;
        self.sync_names()?;
        Ok(file)
    }

    /// Writes zeros over a part of the room for records of a file that no record is placed
    /// in yet, no faster than the device takes them: commits go on meanwhile (ADR 93).
    pub(super) fn fill_at_pace(&self, file: &dyn DiskFile, from: u64, to: u64) -> Result<()> {
        let mut pace = Pace::default();
        let mut at = from;
        while at < to {
            let count = (to - at).min(ZEROS.len() as u64);
            file.write_at(&ZEROS[..count as usize], RECORDS_START + at)?;
            if let Some(due) = pace.wrote(RECORDS_START + at, count) {
                self.keep_pace(file, &due)?;
            }
            at += count;
        }
        Ok(())
    }

    /// Lets a piece of such a file go to the device, and waits for some of those before.
    /// Not for other files: of what is lost this would be told, and not the sync that has
    /// to know.
    fn keep_pace(&self, file: &dyn DiskFile, due: &Due) -> Result<()> {
        due.ask(file);
        if self.options.durability != Durability::Full {
            return Ok(());
        }
        due.wait(file).map_err(|error| self.sync_failed(error))
    }

    /// Fails where another database's log has the names of this one, or may have them.
    pub(super) fn check_names(&self) -> Result<()> {
        match &self.options.moved {
            Some(moved) if moved()? => Err(Error::Moved {
                file: self.base.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// What the first generation's file begins with.
    fn first_head(&self) -> (usize, Header, [u8; EMPTY_RECORD_BYTES as usize]) {
        let first = lock(&self.placement).current;
        let last = self.first.0;
        let header = Header {
            database: self.database,
            number: first.number,
            salt: first.salt,
            durable: last,
        };
        let begin = begin_record(first.salt, RECORDS_START, last, last);
        (first.slot, header, begin)
    }

    /// Lets the first generation's records go to this file.
    fn begin_in(&self, file: Arc<dyn DiskFile>, capacity: u64) -> Result<()> {
        let mut placement = lock(&self.placement);
        self.keep_file(placement.current.slot, file)?;
        placement.current.capacity = capacity;
        self.update_room(&placement);
        Ok(())
    }

    /// A planted bug: begins in the file that was replayed.
    pub(super) fn begin_in_replayed_file(&self) -> Result<()> {
        self.make_sure_of_buffer()?;
        let (slot, header, begin) = self.first_head();
        let path = header::path_of(&self.base, slot);
        let file = self.disk.open(&path, OpenOptions::WRITE)?;
        file.write_at(&begin, RECORDS_START)?;
        header.write(&*file, &|file| self.sync_file(file))?;
        self.begin_in(file, FIRST_CAPACITY_BYTES)
    }

    /// Removes the file of another generation than the first.
    pub(super) fn remove_second_file(&self) -> Result<()> {
        let path = header::path_of(&self.base, 1);
        if self.disk.exists(&path)? {
            self.disk.remove(&path)?;
            self.sync_names()?;
        }
        Ok(())
    }
}
