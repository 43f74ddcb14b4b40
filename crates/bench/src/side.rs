//! What a side of the comparison can be asked to do. Both sides run the same
//! source ([`workload`](crate::ours)); only opening and checkpointing differ.

use crate::data::Person;
use crate::measure::Laps;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a commit lock was held.
pub type CommitLock = fulgurite_store::CommitLockStats;

/// A sum over the answers, so that the sides can be compared.
pub type Sum = Option<u64>;

/// When a commit is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it returns.
    Full,
    /// At a later sync; never corrupt.
    Normal,
}

/// The settings that both sides are opened with.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub cache_bytes: usize,
    pub durability: Durability,
    pub busy_timeout: Duration,
}

impl Settings {
    pub fn new(cache_bytes: usize, durability: Durability) -> Self {
        Self {
            cache_bytes,
            durability,
            busy_timeout: Duration::from_secs(10),
        }
    }
}

/// What explicit transactions do, so many times each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transactions {
    /// Update random rows, out of so many, of `accounts`.
    Updates { each: usize, rows: u64 },
    /// The same, begun IMMEDIATE on either side.
    Immediate { each: usize, rows: u64 },
    /// Insert rows without keys into one table.
    Inserts { each: usize },
    /// The same into `indexed`, whose three indexes have them anywhere.
    Indexed { each: usize },
}

/// What is done over two attached files, `east` and `west`, each with a table of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// An autocommitted update of a row in `east` by one in `west`.
    OneWay,
    /// The same, and as often the other way.
    BothWays,
    /// A transaction that takes from a row in one and gives to a row in the other.
    Transaction,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Commit,
    /// What that takes does not count.
    Rollback,
}

/// Where the commits of several statements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commits {
    /// One behind them all.
    One,
    /// One behind each.
    Each,
}

/// A large value.
#[derive(Debug, Clone)]
pub enum Body {
    Blob(Vec<u8>),
    Text(String),
}

/// What is read of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// So many bytes from the middle on.
    Middle(usize),
    /// All, so many bytes at a time.
    All(usize),
}

/// One warm connection. Every measured method laps once an operation.
pub trait Side: Send {
    fn batch(&mut self, sql: &str) -> Result<()>;
    /// Brings the log into the database file.
    fn checkpoint(&mut self) -> Result<()>;
    /// Inserts all rows in one transaction, by INSERT or INSERT OR REPLACE; the time
    /// includes the commit.
    fn load_people(&mut self, verb: &str, people: &[Person]) -> Result<Duration>;
    /// The same by INSERTs of so many rows.
    fn load_people_by(&mut self, rows: usize, people: &[Person]) -> Result<Duration>;
    /// Unmeasured: inserts rows of three numbers in one transaction.
    fn load_numbers(&mut self, sql: &str, rows: &[(i64, i64, i64)]) -> Result<()>;
    /// Autocommitted single-row updates by key.
    fn update(&mut self, changes: &[(i64, String)], laps: &mut Laps) -> Result<Sum>;
    /// Point reads of three columns, text materialized.
    fn read(&mut self, keys: &[i64], laps: &mut Laps) -> Result<Sum>;
    /// Point reads of a text, each from the statement's text.
    fn read_text(&mut self, keys: &[i64], laps: &mut Laps) -> Result<Sum>;
    /// The same with the keys in the texts.
    fn read_literal(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum>;
    /// Inserts in one transaction, by texts with values in them.
    fn insert_literal(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum>;
    /// A transaction of the statement for each key; one lap in all.
    fn statements(&mut self, sql: &str, keys: &[i64], end: End, laps: &mut Laps) -> Result<Sum>;
    /// Compiles texts.
    fn compile(&mut self, texts: &[String], laps: &mut Laps) -> Result<Sum>;
    /// Unmeasured: all rows of a query, as texts.
    fn rows(&mut self, sql: &str) -> Result<Vec<String>>;
    /// A query whose rows are read to the last value; one lap. The sum tells in which order
    /// they came where it is asked to.
    fn query(&mut self, sql: &str, ordered: bool, laps: &mut Laps) -> Result<Sum>;
    /// A query for each key, read as the one above.
    fn lookups(&mut self, sql: &str, keys: &[i64], laps: &mut Laps) -> Result<Sum>;
    /// A statement for each row, of its key `?1` and, where it has one, its body `?2`. A lap
    /// a commit.
    fn changes(
        &mut self,
        sql: &str,
        rows: &[(i64, Option<Body>)],
        commits: Commits,
        laps: &mut Laps,
    ) -> Result<Sum>;
    /// Reads bodies of `documents` through a handle each: so many bytes of the middle, or all
    /// in parts of that length.
    fn read_parts(&mut self, keys: &[i64], part: Part, laps: &mut Laps) -> Result<Sum>;
    /// Writes into the middle of bodies of `documents` through a handle each.
    fn write_parts(
        &mut self,
        keys: &[i64],
        bytes: &[u8],
        commits: Commits,
        laps: &mut Laps,
    ) -> Result<Sum>;
    /// Unmeasured: a digest of all bytes of all rows of a query.
    fn digest(&mut self, sql: &str) -> Result<u64>;
    /// Point reads of three columns by a unique text, which is materialized, too.
    fn read_unique(&mut self, handles: &[String], laps: &mut Laps) -> Result<Sum>;
    /// Scans of the hundred keys from each start.
    fn range(&mut self, starts: &[i64], laps: &mut Laps) -> Result<Sum>;
    /// Filtered sum and count over the whole of `sales`.
    fn aggregate(&mut self, bounds: &[(i64, i64)], laps: &mut Laps) -> Result<Sum>;
    /// Changes the amount of one order, unmeasured, and runs the join.
    fn join(&mut self, sql: &str, change: (i64, i64), times: usize, laps: &mut Laps)
    -> Result<Sum>;
    /// Autocommitted statements on the thousand keys from each start, after another one on
    /// the same keys, if any, which does not count.
    fn thousands(
        &mut self,
        before: Option<&str>,
        sql: &str,
        starts: &[i64],
        laps: &mut Laps,
    ) -> Result<Sum>;
    /// Autocommitted single-row inserts.
    fn insert_events(&mut self, people: &[Person], laps: &mut Laps) -> Result<Sum>;
    /// Autocommitted single-row inserts by `sql` until a moment.
    fn insert_until(&mut self, sql: &str, actor: i64, end: Instant, laps: &mut Laps) -> Result<()>;
    /// The same now and then: 50 to 250 µs after the one before, which do not count.
    fn insert_now_and_then(
        &mut self,
        sql: &str,
        actor: i64,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<()>;
    /// Runs an autocommitted statement until a moment.
    fn update_until(&mut self, sql: &str, end: Instant, laps: &mut Laps) -> Result<()>;
    /// Transactions until a moment; one that lost is run again. How often that was.
    fn transactions_until(
        &mut self,
        kind: Transactions,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<u64>;
    /// Crossings until a moment, on random rows out of so many; one that lost is run again.
    /// How often that was.
    fn cross_until(
        &mut self,
        kind: Crossing,
        rows: u64,
        seed: u64,
        end: Instant,
        laps: &mut Laps,
    ) -> Result<u64>;
    /// How long commits held the lock that all share, if the engine tells.
    fn commit_lock(&self) -> Option<CommitLock>;
    /// Unmeasured: inserts rows with slices of `payload` in one transaction.
    fn grow(&mut self, first: i64, rows: usize, payload: &[u8]) -> Result<()>;
    /// Unmeasured: reads the payloads of some keys.
    fn visit(&mut self, keys: &[i64]) -> Result<u64>;
}

/// One of the two libraries.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    pub name: &'static str,
    pub open: fn(&Path, &Settings) -> Result<Box<dyn Side>>,
}

/// Ours first, SQLite second: the order of every pair in this program.
pub const ENGINES: [Engine; 2] = [
    Engine {
        name: "ours",
        open: crate::ours::open,
    },
    Engine {
        name: "sqlite",
        open: crate::sqlite::open,
    },
];

/// A folder for the databases of one run, removed at its end.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Makes a fresh folder under `parent`, one of its own for each call: tests share a
    /// process.
    pub fn create(parent: &Path) -> Result<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), CREATED.fetch_add(1, Ordering::Relaxed));
        let root = parent.join(format!("fulgurite-bench-{process}-{number}"));
        for engine in ENGINES {
            std::fs::create_dir_all(root.join(engine.name))?;
        }
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where `engine` keeps the database called `name`.
    pub fn database(&self, engine: &Engine, name: &str) -> PathBuf {
        self.root.join(engine.name).join(name)
    }

    /// Opens both sides' databases of that name.
    pub fn open(&self, name: &str, settings: &Settings) -> Result<[Box<dyn Side>; 2]> {
        let open = |engine: &Engine| (engine.open)(&self.database(engine, name), settings);
        Ok([open(&ENGINES[0])?, open(&ENGINES[1])?])
    }

    /// Bytes of all files of the database called `name`, its logs included.
    pub fn bytes(&self, engine: &Engine, name: &str) -> Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.root.join(engine.name))? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(name) {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    }

    /// Removes the files of both sides' databases of that name.
    pub fn remove(&self, name: &str) -> Result<()> {
        for engine in ENGINES {
            for entry in std::fs::read_dir(self.root.join(engine.name))? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(name) {
                    std::fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed is left behind; there is nobody to tell.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
