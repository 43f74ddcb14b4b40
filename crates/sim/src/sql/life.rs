//! One life of a process that uses a database by SQL: it opens it, compares it
//! with what it may hold, works at random, and ends where the disk does.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Error, ErrorCode, Options, Result, ffi};
use fulgurite_store::{Durability, Store};

use super::change;
use super::model::{Oracle, State};
use crate::frame::{Frame, among_commits};
use crate::proof::{Lives, Timeline, step_rng};
use crate::{PATH, Rng, SimDisk};

/// SQL workloads.
#[derive(Debug)]
pub struct Sql;

impl Lives for Sql {
    type Oracle = Oracle;

    fn live(
        disk: &SimDisk,
        options: &Options,
        oracle: &mut Oracle,
        timeline: Option<&mut Timeline<Oracle>>,
        seed: u64,
        steps: &[u64],
    ) -> bool {
        let mut session = Session::new(disk, options, oracle, timeline);
        let done = session
            .start()
            .and_then(|()| session.check())
            .and_then(|()| {
                steps.iter().try_for_each(|step| {
                    let mut rng = step_rng(seed, *step);
                    session.step(&mut rng)
                })
            })
            .and_then(|()| session.check())
            .and_then(|()| session.stop());
        if let Err(error) = &done {
            assert!(disk.is_stopped(), "{error}");
        }
        done.is_ok()
    }
}

/// Opens the database of all workloads.
///
/// # Errors
/// The engine's.
pub fn open(disk: &SimDisk, options: &Options) -> Result<Database> {
    Database::on_store(Store::open_on(
        Arc::new(disk.clone()),
        Path::new(PATH),
        options.clone(),
    ))
}

/// An open database, and what it holds. See the module's header.
pub struct Session<'a> {
    frame: Frame<'a, Oracle>,
    open: Option<Open>,
    /// What readers see.
    pub visible: State,
}

struct Open {
    /// A snapshot kept open, and what it shows.
    reader: Option<(Connection, State)>,
    other: Connection,
    main: Connection,
    database: Database,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// A life that has not begun.
    pub fn new(
        disk: &'a SimDisk,
        options: &Options,
        oracle: &'a mut Oracle,
        timeline: Option<&'a mut Timeline<Oracle>>,
    ) -> Self {
        Self {
            frame: Frame::new(disk, options, oracle, timeline),
            open: None,
            visible: State::default(),
        }
    }

    fn main(&self) -> &Connection {
        &self
            .open
            .as_ref()
            .expect("it is open between its steps")
            .main
    }

    /// Opens it and finds out which of its possible states it is in.
    ///
    /// # Errors
    /// The engine's.
    pub fn start(&mut self) -> Result<()> {
        let database = open(self.frame.disk, &self.frame.options)?;
        let main = database.connect()?;
        self.visible = self.frame.oracle.adopt(&main)?;
        self.frame.note();
        self.open = Some(Open {
            reader: None,
            other: database.connect()?,
            main,
            database,
        });
        Ok(())
    }

    /// Reads everything, and checks structure and indexes.
    ///
    /// # Errors
    /// The engine's.
    pub fn check(&mut self) -> Result<()> {
        assert_eq!(self.visible.difference(self.main())?, None);
        let sql = "PRAGMA integrity_check";
        let found: String = self.main().query_row(sql, [], |row| row.get(0))?;
        if found != "ok" && self.frame.disk.is_stopped() {
            let code = ffi::Error::new(ffi::SQLITE_IOERR);
            return Err(Error::SqliteFailure(code, Some(found)));
        }
        assert_eq!(found, "ok");
        Ok(())
    }

    /// Closes it.
    ///
    /// # Errors
    /// The engine's.
    pub fn stop(&mut self) -> Result<()> {
        self.end_reader()?;
        let open = self.open.take();
        self.frame.closes(|| drop(open));
        Ok(())
    }

    /// After a failure: whether writing goes on. If it does, what failed had no
    /// effect. Reading goes on in any case.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn look_around(&mut self) -> Result<bool> {
        let Some(open) = &mut self.open else {
            return Ok(true);
        };
        open.reader = None;
        for connection in [&open.main, &open.other] {
            if !connection.is_autocommit() {
                // One that failed may have rolled back by itself.
                let _ = connection.execute_batch("ROLLBACK");
            }
        }
        let begun = open.main.execute_batch("BEGIN IMMEDIATE");
        let goes_on = begun.is_ok();
        if goes_on {
            open.main.execute_batch("ROLLBACK")?;
            self.frame.had_no_effect(&self.visible);
        }
        // A commit that others may see, and that could not be synced, has failed.
        let newest = self.frame.oracle.candidates.newest().clone();
        let is_shown =
            !goes_on && !self.frame.is_synced() && newest.difference(self.main())?.is_none();
        if !is_shown {
            assert_eq!(self.visible.difference(self.main())?, None);
        }
        Ok(goes_on)
    }

    /// Lets time pass and does something at random; opens the database where it
    /// is not open.
    ///
    /// # Errors
    /// The engine's.
    pub fn step(&mut self, rng: &mut Rng) -> Result<()> {
        if self.open.is_none() {
            return self.start();
        }
        if self.frame.elapse(rng) {
            let busy = rng.one_in(3);
            self.in_the_background(rng, Database::tick, busy)?;
        }
        match rng.below(25) {
            0..=6 => self.autocommit(rng, change::rows),
            7 | 8 => self.autocommit(rng, change::schema),
            9..=13 => self.transaction(rng),
            14 => self.autocommit_load(rng),
            15 | 16 => self.overlap(rng),
            17 | 18 => self.in_the_background(rng, Database::checkpoint, false),
            19 | 20 => self.in_the_background(rng, Database::checkpoint, true),
            21 => {
                self.stop()?;
                self.start()
            }
            22 => self.end_reader().and_then(|()| self.begin_reader()),
            23 if rng.one_in(2) => self.relax(),
            24 => self.in_the_background(rng, vacuum, false),
            _ => self.end_reader(),
        }
    }

    /// Runs what commits `next`; if that fails its outcome is unknown.
    fn commit(&mut self, next: State, sql: &str) -> Result<()> {
        self.frame.under_way(next.clone());
        self.main().execute_batch(sql)?;
        self.committed(next);
        Ok(())
    }

    /// By the connection whose commits are as durable as the database was opened.
    fn committed(&mut self, next: State) {
        // What changes nothing is not synced.
        let synced = self.frame.options.durability == Durability::Full && next != self.visible;
        self.frame.acknowledged(next.clone(), synced);
        self.visible = next;
    }

    /// The other connection may lose its commits from now on.
    fn relax(&mut self) -> Result<()> {
        self.frame.relaxed();
        let open = self.open.as_ref().expect("it is open");
        open.other.execute_batch("PRAGMA synchronous = NORMAL")
    }

    /// One statement that commits by itself. What it leads to is found out on a
    /// copy in a transaction that is rolled back, so that the oracle knows it
    /// before the first call.
    fn autocommit(
        &mut self,
        rng: &mut Rng,
        work: fn(&mut Rng, &Connection, &mut State) -> Result<()>,
    ) -> Result<()> {
        let mut next = self.visible.clone();
        let again = rng.clone();
        self.main().execute_batch("BEGIN")?;
        let tried = work(rng, self.main(), &mut next);
        self.main().execute_batch("ROLLBACK")?;
        tried?;
        self.frame.under_way(next.clone());
        let mut same = self.visible.clone();
        work(&mut again.clone(), self.main(), &mut same)?;
        assert!(same == next, "the same statement did something else");
        self.committed(next);
        Ok(())
    }

    fn autocommit_load(&mut self, rng: &mut Rng) -> Result<()> {
        let mut next = self.visible.clone();
        self.main().execute_batch("BEGIN IMMEDIATE")?;
        change::load(rng, self.main(), &mut next)?;
        self.commit(next, "COMMIT")
    }

    /// Several statements, with savepoints and an end of either kind.
    fn transaction(&mut self, rng: &mut Rng) -> Result<()> {
        let begin = ["BEGIN", "BEGIN IMMEDIATE"][rng.index(2)];
        self.main().execute_batch(begin)?;
        let mut next = self.visible.clone();
        for _ in 0..1 + rng.below(6) {
            match rng.below(8) {
                0 => {
                    let kept = next.clone();
                    self.main().execute_batch("SAVEPOINT s")?;
                    change::rows(rng, self.main(), &mut next)?;
                    if rng.one_in(2) {
                        self.main().execute_batch("ROLLBACK TO s")?;
                        next = kept;
                    }
                    self.main().execute_batch("RELEASE s")?;
                }
                1 => change::schema(rng, self.main(), &mut next)?,
                _ => change::rows(rng, self.main(), &mut next)?,
            }
        }
        if rng.one_in(5) {
            return self.main().execute_batch("ROLLBACK");
        }
        self.commit(next, "COMMIT")
    }

    /// Two transactions at once on rows of their own: the second is put on top
    /// of the first, or loses.
    fn overlap(&mut self, rng: &mut Rng) -> Result<()> {
        let Some((name, table)) = self.visible.tables.iter().next() else {
            return Ok(());
        };
        let (name, added) = (name.clone(), table.added);
        let open = self.open.as_ref().expect("it is open");
        let (ours, theirs) = (2_000 + rng.below(9) as i64, 3_000 + rng.below(9) as i64);
        let insert = |id: i64| format!("INSERT OR REPLACE INTO {name} (id, a) VALUES ({id}, {id})");
        open.other.execute_batch("BEGIN")?;
        open.other.execute_batch(&insert(theirs))?;
        let put = |state: &mut State, id: i64| {
            let mut row = vec![fulgurite::types::Value::Integer(id)];
            row.resize(3 + added, fulgurite::types::Value::Null);
            let table = state.table(&name).expect("it is there");
            table.rows.insert(id, row);
        };
        let mut next = self.visible.clone();
        put(&mut next, ours);
        self.commit(next, &insert(ours))?;
        let mut next = self.visible.clone();
        put(&mut next, theirs);
        self.frame.under_way(next.clone());
        let open = self.open.as_ref().expect("it is open");
        match open.other.execute_batch("COMMIT") {
            Ok(()) => {
                self.frame.acknowledged(next.clone(), false);
                self.visible = next;
            }
            Err(error) if is_conflict(&error) => self.frame.had_no_effect(&self.visible),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A statement that commits by itself, of either kind.
    ///
    /// # Errors
    /// The engine's.
    pub fn autocommit_any(&mut self, rng: &mut Rng) -> Result<()> {
        if rng.one_in(3) {
            self.autocommit(rng, change::schema)
        } else {
            self.autocommit(rng, change::rows)
        }
    }

    /// Makes a checkpoint.
    ///
    /// # Errors
    /// The engine's.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.in_the_background(&mut Rng::new(0), Database::checkpoint, false)
    }

    /// Does what makes all that was acknowledged before durable; if `busy`, with
    /// commits between its calls.
    fn in_the_background(
        &mut self,
        rng: &mut Rng,
        work: fn(&Database) -> Result<()>,
        busy: bool,
    ) -> Result<()> {
        let database = self.open.as_ref().expect("it is open").database.clone();
        let mark = self.frame.mark();
        if busy {
            let disk = self.frame.disk;
            let commit = |session: &mut Self| session.commit_or_not(rng);
            among_commits(self, disk, || work(&database), commit)?;
        } else {
            work(&database)?;
        }
        self.frame.covered(&mark);
        Ok(())
    }

    fn commit_or_not(&mut self, rng: &mut Rng) -> Result<()> {
        match rng.below(10) {
            0 => self.open.as_ref().expect("it is open").database.tick(),
            1 => self.transaction(rng),
            2 | 3 => self.autocommit(rng, change::rows),
            _ => Ok(()),
        }
    }

    fn begin_reader(&mut self) -> Result<()> {
        let open = self.open.as_mut().expect("it is open");
        let reader = open.database.connect()?;
        reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        open.reader = Some((reader, self.visible.clone()));
        Ok(())
    }

    /// The snapshot still shows what it showed.
    fn end_reader(&mut self) -> Result<()> {
        if let Some((reader, state)) = self.open.as_mut().and_then(|open| open.reader.take()) {
            assert_eq!(state.difference(&reader)?, None);
        }
        Ok(())
    }
}

/// Whether this is the refusal of a commit that lost, or for which no room was made
/// in time.
pub(crate) fn is_conflict(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Writes the file anew.
fn vacuum(database: &Database) -> Result<()> {
    database.connect()?.execute_batch("VACUUM")
}
