//! A connection that writes rows of its own, and knows them.

use std::collections::BTreeMap;

use fulgurite::{Connection, Error, Result, ffi};
use fulgurite_sim::{Rng, SimDisk};

use super::Tally;

/// Rows by their ids: the version of each, from which its text follows.
pub type Rows = BTreeMap<i64, i64>;

/// Ids of one writer.
const SPAN: i64 = 1_000_000;

/// What a writer's part of the database is, with the number of the commit that made it so.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct State {
    pub commit: i64,
    pub rows: Rows,
}

/// A part that may be in one of two states.
#[derive(Debug, Default, Clone)]
pub struct Part {
    pub acknowledged: State,
    /// What a commit would have made of it whose outcome is unknown.
    pub in_doubt: Option<State>,
}

/// What a call that failed on the disk may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// Somebody else is at work.
    Busy,
    /// The call had no effect.
    Refused,
    /// Writing has ended.
    Ended,
    /// A row is there already.
    Constraint,
}

/// What an error is, which has to say what failed.
pub fn judge(error: &Error, disk: &SimDisk) -> Failed {
    let hint = error.hint().unwrap_or_default();
    let what = format!("{error} ({}): {hint}", error.result_code());
    let kind = match error.result_code() {
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => return Failed::Constraint,
        code if code & 0xff == ffi::SQLITE_BUSY => return Failed::Busy,
        ffi::SQLITE_IOERR_FSYNC => {
            assert!(hint.contains("open the database again"), "{what}");
            Failed::Ended
        }
        ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_CANTOPEN => Failed::Refused,
        _ => panic!("{what}"),
    };
    assert!(disk.faults_met() > 0, "nothing failed: {what}");
    assert!(hint.contains("cannot "), "not said where: {what}");
    kind
}

struct Open {
    rows: Rows,
    steps: u64,
}

pub struct Writer {
    number: i64,
    pub connection: Connection,
    pub part: Part,
    open: Option<Open>,
    /// Writing has ended.
    pub ended: bool,
}

/// Many bytes of which no two stretches are alike.
fn text() -> String {
    let mut rng = Rng::new(1);
    (0..4_000).map(|_| format!("{:016x}", rng.bits())).collect()
}

/// What a row's columns are made of, from its id `i` and a version.
const COLUMNS: &str = "?2, substr(?1, 1 + (i * 131 + ?2 * 977) % 60000, 20 + (i * 7 + ?2) % 700)";

impl Writer {
    pub fn new(number: usize, connection: Connection, part: Part) -> Self {
        Self {
            number: number as i64,
            connection,
            part,
            open: None,
            ended: false,
        }
    }

    fn ids(&self) -> (i64, i64) {
        (self.number * SPAN, (self.number + 1) * SPAN - 1)
    }

    /// Does a part of a transaction, which others may be at work between.
    pub fn step(&mut self, disk: &SimDisk, rng: &mut Rng, tally: &mut Tally) {
        match self.open.take() {
            None => self.begin(disk, rng),
            Some(open) if open.steps == 0 => self.commit(open, disk, rng, tally),
            Some(open) => self.go_on(open, disk, rng, tally),
        }
    }

    fn begin(&mut self, disk: &SimDisk, rng: &mut Rng) {
        let sql = ["BEGIN", "BEGIN IMMEDIATE"][usize::from(rng.one_in(3))];
        match self.connection.execute_batch(sql) {
            Ok(()) => {
                self.open = Some(Open {
                    rows: self.part.acknowledged.rows.clone(),
                    steps: 1 + rng.below(4),
                });
            }
            Err(error) => {
                self.ended |= judge(&error, disk) == Failed::Ended;
                assert!(self.connection.is_autocommit(), "{sql} failed: {error}");
            }
        }
    }

    fn go_on(&mut self, mut open: Open, disk: &SimDisk, rng: &mut Rng, tally: &mut Tally) {
        open.steps -= 1;
        let before = open.rows.clone();
        if let Err(error) = self.change(&mut open.rows, rng) {
            open.rows = before;
            let failed = judge(&error, disk);
            tally.told += u64::from(failed != Failed::Constraint);
            if self.connection.is_autocommit() {
                assert_ne!(failed, Failed::Constraint, "it ended a transaction");
                return;
            }
            if failed != Failed::Constraint {
                if failed == Failed::Busy || rng.one_in(2) {
                    return self.roll_back();
                }
                tally.went_on += 1;
            }
        }
        self.open = Some(open);
    }

    /// One statement, of one row or of hundreds.
    fn change(&self, rows: &mut Rows, rng: &mut Rng) -> Result<()> {
        let many = [1, 5, 250][rng.index(3)];
        let first = self.ids().0 + rng.below(400) as i64;
        let last = first + rng.below(many) as i64;
        let version = rng.below(1 << 20) as i64;
        let own = text();
        let is_there = rows.range(first..=last).next().is_some();
        let (set, done) = match rng.below(5) {
            0 | 1 => (true, self.insert("INSERT", &own, (version, first, last))),
            2 => (true, self.insert("REPLACE", &own, (version, first, last))),
            3 => {
                let sql = format!(
                    "UPDATE t SET (version, body) = (SELECT {COLUMNS} FROM (SELECT id AS i))
                         WHERE id BETWEEN ?3 AND ?4"
                );
                let done = self.connection.execute(&sql, (&own, version, first, last));
                let found = rows.range_mut(first..=last);
                found.for_each(|(_, known)| *known = version);
                (false, done)
            }
            _ => {
                let sql = "DELETE FROM t WHERE id BETWEEN ? AND ?";
                let done = self.connection.execute(sql, (first, last));
                rows.retain(|id, _| !(first..=last).contains(id));
                (false, done)
            }
        };
        if set {
            rows.extend((first..=last).map(|id| (id, version)));
        }
        done.map(|changed| assert!(changed > 0 || !is_there, "it changed nothing"))
    }

    fn insert(
        &self,
        verb: &str,
        own: &str,
        (version, first, last): (i64, i64, i64),
    ) -> Result<usize> {
        let sql = format!(
            "WITH RECURSIVE n (i) AS (SELECT ?3 UNION ALL SELECT i + 1 FROM n WHERE i < ?4)
                 {verb} INTO t SELECT i, {COLUMNS} FROM n"
        );
        self.connection.execute(&sql, (own, version, first, last))
    }

    fn commit(&mut self, open: Open, disk: &SimDisk, rng: &mut Rng, tally: &mut Tally) {
        if rng.one_in(6) {
            return self.roll_back();
        }
        let next = State {
            commit: self.part.acknowledged.commit + 1,
            rows: open.rows,
        };
        let stamp = "UPDATE stamps SET last = ? WHERE writer = ?";
        let stamped = self.connection.execute(stamp, (next.commit, self.number));
        let committed = match stamped {
            Ok(_) => self.connection.execute_batch("COMMIT"),
            Err(error) => Err(error),
        };
        match committed {
            Ok(()) => {
                self.part.acknowledged = next;
                tally.commits += 1;
            }
            Err(error) => {
                tally.told += 1;
                if judge(&error, disk) == Failed::Ended {
                    self.ended = true;
                    self.part.in_doubt = Some(next);
                }
                self.roll_back();
            }
        }
    }

    /// Gives up what it is in the middle of.
    pub fn roll_back(&mut self) {
        self.open = None;
        if !self.connection.is_autocommit() {
            let done = self.connection.execute_batch("ROLLBACK");
            done.expect("a transaction can be rolled back");
        }
    }

    /// Its part as a connection shows it.
    pub fn read(&self, connection: &Connection) -> Result<State> {
        let sql = "SELECT last FROM stamps WHERE writer = ?";
        let commit = connection.query_row(sql, [self.number], |row| row.get(0))?;
        let own = text();
        // The text is compared as it was made.
        let sql = "SELECT i, v, body = substr(?1, 1 + (i * 131 + v * 977) % 60000, 20 + (i * 7 + v) % 700)
                   FROM (SELECT id AS i, version AS v, body FROM t WHERE id BETWEEN ?2 AND ?3)";
        let mut statement = connection.prepare(sql)?;
        let (first, last) = self.ids();
        let mut found = statement.query((own, first, last))?;
        let mut rows = Rows::new();
        while let Some(row) = found.next()? {
            let id = row.get(0)?;
            assert!(row.get::<_, bool>(2)?, "row {id} has another text");
            rows.insert(id, row.get(1)?);
        }
        Ok(State { commit, rows })
    }
}
