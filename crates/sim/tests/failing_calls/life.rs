//! One life of a process: writers, and what else a database is asked for, beside each other.

use std::path::Path;
use std::sync::Arc;

use fulgurite::{Connection, Database, Options, Result};
use fulgurite_sim::{Call, Fault, FaultError, PATH, Rng, SimDisk, SimDriver};
use fulgurite_store::{Compression, Store};

use super::Tally;
use super::writer::{Failed, Part, Writer, judge};

pub const WRITERS: usize = 3;
const STEPS: u64 = 90;

fn open(disk: &SimDisk, options: Options) -> Result<Database> {
    let options = Options {
        driver: Some(SimDriver::new(disk)),
        busy_timeout: std::time::Duration::from_millis(20),
        compression: Compression::None,
        ..options
    };
    let store = Store::open_on(Arc::new(disk.clone()), Path::new(PATH), options);
    Database::on_store(store)
}

/// Makes the database.
pub fn schema(disk: &SimDisk) {
    let database = open(disk, Options::default()).expect("opens");
    let connection = database.connect().expect("connects");
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, version, body);
               CREATE INDEX bodies ON t (body);
               CREATE TABLE stamps (writer INTEGER PRIMARY KEY, last INT);
               INSERT INTO stamps VALUES (0, 0), (1, 0), (2, 0);";
    connection.execute_batch(sql).expect("a schema");
}

/// A call to fail, once or from then on.
fn fault(rng: &mut Rng) -> Fault {
    let calls = [
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::Open,
        Call::Remove,
        Call::Rename,
        Call::SyncDir,
        Call::Truncate,
    ];
    let call = match rng.below(12) {
        0..=3 => Some(Call::Read),
        4..=6 => Some(Call::Write),
        7 => None,
        _ => Some(calls[rng.index(calls.len())]),
    };
    let room = 1 << rng.below(9);
    Fault {
        call,
        after: rng.below(room),
        for_good: rng.one_in(2),
        error: match call {
            Some(Call::Read) => FaultError::Io,
            _ => [FaultError::Io, FaultError::NoSpace][rng.index(2)],
        },
    }
}

pub struct Life<'a> {
    disk: SimDisk,
    database: Database,
    writers: Vec<Writer>,
    other: Connection,
    rng: &'a mut Rng,
    tally: &'a mut Tally,
}

impl<'a> Life<'a> {
    /// Opens the database, which is what it may be.
    pub fn new(
        disk: &SimDisk,
        parts: [Part; WRITERS],
        rng: &'a mut Rng,
        tally: &'a mut Tally,
    ) -> Self {
        let options = Options {
            cache_bytes: [64, 96, 160][rng.index(3)] * 4096,
            checkpoint_bytes: [64 << 10, 24 << 20][rng.index(2)],
            log_limit_bytes: Some([256 << 10, 32 << 20][rng.index(2)]),
            ..Options::default()
        };
        let database = open(disk, options).expect("opens");
        let connect = || database.connect().expect("connects");
        let writers = parts.into_iter().enumerate();
        let writers = writers.map(|(at, part)| Writer::new(at, connect(), part));
        let mut this = Self {
            disk: disk.clone(),
            writers: writers.collect(),
            other: connect(),
            database,
            rng,
            tally,
        };
        for writer in &mut this.writers {
            let found = writer.read(&this.other).expect("reads");
            if writer.part.in_doubt.take().is_some_and(|it| it == found) {
                writer.part.acknowledged = found;
            } else {
                assert!(writer.part.acknowledged == found, "it is another state");
            }
        }
        assert_eq!(this.database.integrity_check().expect("a check"), [""; 0]);
        this
    }

    /// Lives it; what it leaves behind.
    pub fn run(mut self) -> (SimDisk, [Part; WRITERS]) {
        let faults_before = self.disk.faults_met();
        let starts = self.rng.below(STEPS);
        for step in 0..STEPS {
            if step == starts {
                self.disk.fail(fault(self.rng));
            }
            match self.rng.below(8) {
                0 => self.ask(),
                at => {
                    let writer = &mut self.writers[at as usize % WRITERS];
                    if !writer.ended {
                        writer.step(&self.disk, self.rng, self.tally);
                    }
                }
            }
        }
        self.writers.iter_mut().for_each(Writer::roll_back);
        self.disk.heal();
        self.tally.failed += self.disk.faults_met() - faults_before;
        self.look_around();
        self.leave()
    }

    /// Something that writers take no part in.
    fn ask(&mut self) {
        let sql = [
            "SELECT sum(length(body)) FROM (SELECT body FROM t ORDER BY body DESC, id LIMIT -1 OFFSET 1)",
            "SELECT count(*) FROM (SELECT DISTINCT body, version FROM t)",
            "DROP TABLE IF EXISTS passing; CREATE TABLE passing AS SELECT * FROM t ORDER BY body",
            "CREATE TEMP TABLE IF NOT EXISTS own (x); INSERT INTO own SELECT body FROM t; DELETE FROM own",
            "DROP TABLE IF EXISTS passing; REINDEX bodies",
            "PRAGMA wal_checkpoint",
        ];
        let at = self.rng.index(sql.len() + 1);
        let done = match sql.get(at) {
            Some(sql) => self.other.execute_batch(sql),
            None => self.copy(),
        };
        if let Err(error) = done {
            self.tally.told += 1;
            judge(&error, &self.disk);
            assert!(self.other.is_autocommit(), "{error}");
        }
    }

    /// A copy is there, or it is not.
    fn copy(&mut self) -> Result<()> {
        let name = format!("d/copy{:x}.db", self.rng.bits());
        let done = self.other.execute(&format!("VACUUM INTO '{name}'"), []);
        let is_there = self.disk.contents(Path::new(&name)).is_some();
        assert_eq!(is_there, done.is_ok(), "{done:?}");
        done.map(drop)
    }

    /// On a disk that is sound again: reading goes on, and writing unless it has ended.
    fn look_around(&mut self) {
        let mut txn = self.database.store().txn();
        let ended = txn.begin_immediate().is_err();
        drop(txn);
        self.tally.ended += u64::from(ended);
        for writer in &mut self.writers {
            let connections = [&writer.connection, &self.other];
            for found in connections.map(|it| writer.read(it)) {
                let found = found.expect("reading goes on");
                assert!(found == writer.part.acknowledged, "it is another state");
            }
            if !ended {
                assert!(!writer.ended && writer.part.in_doubt.is_none());
                while writer.connection.is_autocommit() {
                    writer.step(&self.disk, self.rng, self.tally);
                }
                writer.roll_back();
            } else {
                let begun = writer.connection.execute_batch("BEGIN IMMEDIATE");
                let error = begun.expect_err("writing has ended");
                assert_eq!(judge(&error, &self.disk), Failed::Ended, "{error}");
            }
        }
        assert_eq!(self.database.integrity_check().expect("a check"), [""; 0]);
    }

    /// The database is closed, or its process ends, or the power goes.
    fn leave(self) -> (SimDisk, [Part; WRITERS]) {
        let left = match self.rng.below(3) {
            0 => None,
            1 => Some(self.disk.kill_image()),
            _ => Some(self.disk.crash_image(self.rng.bits())),
        };
        let mut writers = self.writers.into_iter().map(|writer| writer.part);
        let parts = std::array::from_fn(|_| writers.next().unwrap_or_default());
        drop((writers, self.other, self.database));
        (left.unwrap_or(self.disk), parts)
    }
}
