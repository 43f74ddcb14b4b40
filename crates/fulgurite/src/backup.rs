//! Copies of a database that is in use, into another one or into a new file.
//!
//! ```
//! # fn main() -> fulgurite::Result<()> {
//! use std::time::Duration;
//! use fulgurite::{Connection, backup};
//!
//! let shop = Connection::open_in_memory()?;
//! shop.execute_batch("CREATE TABLE person (name); INSERT INTO person VALUES ('Ada')")?;
//! let mut copy = Connection::open_in_memory()?;
//! backup::Backup::new(&shop, &mut copy)?.run_to_completion(100, Duration::ZERO, None)?;
//! let name: String = copy.query_row("SELECT name FROM person", [], |row| row.get(0))?;
//! assert_eq!(name, "Ada");
//! # Ok(()) }
//! ```
//!
//! A copy is of the state at its first step: writers of the source go on, and nothing has
//! to begin anew because of them, as it has in SQLite. In the destination all of it comes
//! to be at once, at the last step; a copy that is dropped before has done nothing.
//! [`Connection::backup`] makes a file that is there whole and durable, or not at all.

use std::cell::RefCell;
use std::ffi::c_int;
use std::path::Path;
use std::time::Duration;

use fulgurite_sql::session::{Engine, Held, backup as engine};

use crate::open::Target;
use crate::{Connection, Error, MAIN_DB, Name, OpenFlags, Result, ffi};

/// For calls that take a function to tell of progress: none.
pub const NO_PROGRESS: Option<fn(_: Progress)> = None;

/// Pages of a step of [`Connection::backup`] and [`Connection::restore`].
const PAGES_AT_ONCE: c_int = 100;
/// How often [`Connection::restore`] waits for a busy database, and for how long.
const BUSY_MAX: u32 = 3;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// What a step came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepResult {
    /// All is copied.
    Done,
    /// There is more to copy.
    More,
    /// Writers of the destination did not end within the busy timeout, or the source's
    /// connection is in a transaction that has written to it. To be tried again.
    Busy,
    /// Never answered; here because programs name it.
    Locked,
}

/// How far a copy has come, counted in rows and entries of indexes, or where these are too
/// many for the type in equal shares of them.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    /// What is left to copy.
    pub remaining: c_int,
    /// All there is.
    pub pagecount: c_int,
}

impl Progress {
    fn of(backup: &engine::Backup) -> Self {
        let bits = u64::BITS - backup.total().leading_zeros();
        let share = bits.saturating_sub(c_int::BITS - 1);
        let shown = |count: u64| c_int::try_from(count >> share).unwrap_or(c_int::MAX);
        Self {
            remaining: shown(backup.left()),
            pagecount: shown(backup.total()),
        }
    }
}

/// A copy from one database to another.
pub struct Backup<'a, 'b> {
    from: &'a Connection,
    to: &'b Connection,
    from_name: String,
    /// The databases.
    engines: (Engine, Engine),
    /// Keeps the source from being detached.
    _held: Option<Held>,
    /// None before the first step.
    copy: RefCell<Option<engine::Backup>>,
}

impl Backup<'_, '_> {
    /// A copy of all that is in `from` to `to`, in place of what is there.
    ///
    /// # Errors
    /// A destination with a transaction that has read or written something.
    #[inline]
    pub fn new<'a, 'b>(from: &'a Connection, to: &'b mut Connection) -> Result<Backup<'a, 'b>> {
        Backup::new_with_names(from, MAIN_DB, to, MAIN_DB)
    }

    /// As [`Backup::new`], with the names that the connections have for the databases.
    ///
    /// # Errors
    /// As [`Backup::new`], and an unknown name.
    pub fn new_with_names<'a, 'b, F: Name, T: Name>(
        from: &'a Connection,
        from_name: F,
        to: &'b mut Connection,
        to_name: T,
    ) -> Result<Backup<'a, 'b>> {
        let (source, held) = named(from, &from_name)?;
        let engines = (source, named(to, &to_name)?.0);
        if engines.0.store().ptr_eq(engines.1.store()) {
            let message = "source and destination must be distinct";
            return Err(Error::failure(ffi::SQLITE_ERROR, message));
        }
        if to.session().has_begun() {
            let message = "destination database is in use";
            return Err(Error::failure(ffi::SQLITE_ERROR, message));
        }
        Ok(Backup {
            from,
            to,
            from_name: from_name.as_text()?,
            engines,
            _held: held,
            copy: RefCell::new(None),
        })
    }

    /// How far it has come by the last step.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let none = Progress {
            remaining: 0,
            pagecount: 0,
        };
        self.copy.borrow().as_ref().map_or(none, Progress::of)
    }

    /// Copies about as much as so many pages of the source hold, or where the number is
    /// negative all that is left.
    ///
    /// # Errors
    /// A destination that may only be read, or whose disk fails; a source that is damaged.
    pub fn step(&self, num_pages: c_int) -> Result<StepResult> {
        match self.step_on(num_pages) {
            Err(error) if error.result_code() == ffi::SQLITE_BUSY => Ok(StepResult::Busy),
            outcome => outcome,
        }
    }

    fn step_on(&self, num_pages: c_int) -> Result<StepResult> {
        if has_written(self.from, &self.from_name) {
            return Ok(StepResult::Busy);
        }
        let mut copy = self.copy.borrow_mut();
        let copy = match &mut *copy {
            Some(copy) => copy,
            none => {
                let (from, to) = &self.engines;
                let timeout = self.to.session().busy_timeout();
                let begun = engine::Backup::begin(from, to, timeout);
                none.insert(begun.map_err(Error::from_engine)?)
            }
        };
        let page_bytes = self.engines.0.store().page_size() as u64;
        let bytes = u64::try_from(num_pages).map_or(u64::MAX, |pages| pages * page_bytes);
        let done = copy.step(bytes, || Ok(())).map_err(Error::from_engine)?;
        Ok(match done {
            true => StepResult::Done,
            false => StepResult::More,
        })
    }

    /// Copies all, so many pages at a step, with a pause behind each.
    ///
    /// # Errors
    /// As [`Backup::step`]; no page at a step.
    pub fn run_to_completion(
        &self,
        pages_per_step: c_int,
        pause_between_pages: Duration,
        progress: Option<fn(Progress)>,
    ) -> Result<()> {
        if pages_per_step <= 0 {
            let message = "pages_per_step must be positive";
            return Err(Error::failure(ffi::SQLITE_MISUSE, message));
        }
        loop {
            let result = self.step(pages_per_step)?;
            if let Some(progress) = progress {
                progress(self.progress());
            }
            if result == StepResult::Done {
                return Ok(());
            }
            std::thread::sleep(pause_between_pages);
        }
    }
}

impl Connection {
    /// Copies a database of the connection into a file. A new one is there whole and durable, or not at
    /// all; in the database that a file holds already the copy takes the place of all else
    /// at once.
    ///
    /// # Errors
    /// An unknown name; a file that cannot be opened or written, or that is
    /// no database of ours; `SQLITE_BUSY` as [`StepResult::Busy`] says.
    pub fn backup<N: Name, P: AsRef<Path>, F: Fn(Progress)>(
        &self,
        name: N,
        dst_path: P,
        progress: Option<F>,
    ) -> Result<()> {
        let (from, _held) = named(self, &name)?;
        let target = Target::new(dst_path.as_ref(), OpenFlags::default())?;
        if let Target::File { path, .. } = &target
            && path.metadata().map_or(true, |file| file.len() == 0)
        {
            if has_written(self, &name.as_text()?) {
                return Err(busy());
            }
            return backup_to_new(&from, path, progress);
        }
        let mut to = Self::open(dst_path)?;
        let backup = Backup::new_with_names(self, name, &mut to, MAIN_DB)?;
        loop {
            let result = backup.step(PAGES_AT_ONCE)?;
            if let Some(progress) = &progress {
                progress(backup.progress());
            }
            match result {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                StepResult::Busy | StepResult::Locked => return Err(busy()),
            }
        }
    }

    /// Replaces all that is in a database of the connection by what is in that of a file,
    /// at once.
    ///
    /// # Errors
    /// An unknown name; a file that is not there, cannot be read or is no database of ours;
    /// an open transaction; `SQLITE_BUSY` as [`StepResult::Busy`] says.
    pub fn restore<N: Name, P: AsRef<Path>, F: Fn(Progress)>(
        &mut self,
        name: N,
        src_path: P,
        progress: Option<F>,
    ) -> Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let from = Self::open_with_flags(src_path, flags)?;
        let restore = Backup::new_with_names(&from, MAIN_DB, self, name)?;
        let mut busy_count = 0;
        loop {
            let result = restore.step(PAGES_AT_ONCE)?;
            if let Some(progress) = &progress {
                progress(restore.progress());
            }
            match result {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                StepResult::Busy | StepResult::Locked => {
                    busy_count += 1;
                    if busy_count == BUSY_MAX {
                        return Err(busy());
                    }
                    std::thread::sleep(BUSY_PAUSE);
                }
            }
        }
    }
}

#[cold]
fn busy() -> Error {
    Error::failure(ffi::SQLITE_BUSY, ffi::code_to_str(ffi::SQLITE_BUSY))
}

fn backup_to_new<F: Fn(Progress)>(from: &Engine, path: &Path, progress: Option<F>) -> Result<()> {
    let bytes = PAGES_AT_ONCE as u64 * from.store().page_size() as u64;
    let each = |backup: &engine::Backup| {
        if let Some(progress) = &progress {
            progress(Progress::of(backup));
        }
        Ok(())
    };
    engine::copy_to_file(from, path, bytes, each, || Ok(())).map_err(Error::from_engine)
}

/// Whether the connection's transaction has written to the database of that name.
fn has_written(db: &Connection, name: &str) -> bool {
    db.session()
        .uses_of(name)
        .is_none_or(|(written, _)| written)
}

/// The database of a connection's name, and what keeps it from being detached.
fn named<N: Name>(db: &Connection, name: &N) -> Result<(Engine, Option<Held>)> {
    let found = db.session().database(&name.as_text()?);
    found.map_err(Error::from_engine)
}
