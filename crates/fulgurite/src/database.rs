//! An open database, from which connections are made.

use std::path::Path;
use std::sync::Arc;

use fulgurite_sql::session::Engine;
use fulgurite_store::{Options, Shelf, Stats, Store};

use crate::open::{Target, locate};
use crate::{Connection, Error, OpenFlags, Result, Transaction};

/// An open database. Cheap to clone; all clones, all their connections and
/// every other open of the same file in this process are one database.
///
/// ```
/// # fn main() -> fulgurite::Result<()> {
/// let database = fulgurite::Database::in_memory()?;
/// database.connect()?.execute_batch("CREATE TABLE t (a)")?;
/// let threads: Vec<_> = (0..4)
///     .map(|i| {
///         let connection = database.connect();
///         std::thread::spawn(move || connection?.execute("INSERT INTO t VALUES (?)", [i]))
///     })
///     .collect();
/// for thread in threads {
///     assert_eq!(thread.join().expect("no panic")?, 1);
/// }
/// let rows: i64 = database.connect()?.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
/// assert_eq!(rows, 4);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Database {
    engine: Engine,
    /// Connections of [`Database::transact`], for its next calls.
    idle: Shelf<Connection>,
    /// What each new connection begins with.
    init: Option<Init>,
}

type Init = Arc<dyn Fn(&Connection) -> Result<()> + Send + Sync>;

impl Database {
    /// Opens a file, creating it if it is absent.
    ///
    /// # Errors
    /// A file that cannot be opened, is held by another process for longer than the
    /// busy timeout (5 s), is no database or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with_options(path, Options::default())
    }

    /// As [`Database::open`] with the store's options: cache size, durability,
    /// page size, compression, read-only.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with_options(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::on_store(Store::open(path.as_ref(), options))
    }

    /// A new database in memory, gone with its last handle.
    ///
    /// # Errors
    /// None in practice.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with_options(Options::default())
    }

    /// As [`Database::in_memory`] with the store's options.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub fn in_memory_with_options(options: Options) -> Result<Self> {
        Self::on_store(Store::in_memory(options))
    }

    pub(crate) fn open_target(path: &Path, flags: OpenFlags) -> Result<Self> {
        match Target::new(path, flags)? {
            Target::Memory => Self::in_memory(),
            Target::File {
                path,
                read_only,
                create,
            } => Self::open_with_options(
                path,
                Options {
                    read_only,
                    create,
                    ..Options::default()
                },
            ),
        }
    }

    /// The database in a store that was opened by itself, such as one on a disk
    /// that is not the operating system's.
    ///
    /// # Errors
    /// Those of opening the store; a schema that cannot be read.
    pub fn on_store(store: fulgurite_store::Result<Store>) -> Result<Self> {
        let store = store.map_err(|e| Error::from_engine(e.into()))?;
        let engine = Engine::open_with(store, locate).map_err(Error::from_engine)?;
        let idle = Shelf::default();
        let init = None;
        Ok(Self { engine, idle, init })
    }

    /// A handle whose connections, those of [`Database::transact`] too, each begin with
    /// `init`: the settings that they are to have. It holds for this handle and its
    /// clones; another one's connections are as they were.
    ///
    /// ```
    /// # fn main() -> fulgurite::Result<()> {
    /// let database = fulgurite::Database::in_memory()?
    ///     .with_init(|connection| connection.execute_batch("PRAGMA foreign_keys = ON"));
    /// database.transact(|tx| {
    ///     tx.execute_batch("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)")?;
    ///     assert!(tx.execute("INSERT INTO c VALUES (1)", []).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_init(
        self,
        init: impl Fn(&Connection) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            engine: self.engine,
            // The idle connections began without it.
            idle: Shelf::default(),
            init: Some(Arc::new(init)),
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// Those of what [`Database::with_init`] was given.
    pub fn connect(&self) -> Result<Connection> {
        self.initialized(Connection::new(Self {
            engine: self.engine.clone(),
            idle: self.idle.known(),
            init: self.init.clone(),
        }))
    }

    fn initialized(&self, connection: Connection) -> Result<Connection> {
        if let Some(init) = &self.init {
            init(&connection)?;
        }
        Ok(connection)
    }

    /// The file's path; None in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.store().path()
    }

    /// Whether it was opened for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.store().is_read_only()
    }

    /// The key-value store under the tables.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.engine.store()
    }

    /// Counters and sizes: commits, log, cache, file.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.store().stats()
    }

    /// Runs `work` in a transaction on a connection of its own and commits it; see
    /// [`Connection::transact`]. The connection may be one of an earlier call, as good
    /// as new but for the statements that it has compiled. Settings that stay as they are
    /// within a transaction, such as `PRAGMA foreign_keys`, are for [`Database::with_init`].
    ///
    /// # Errors
    /// As [`Connection::transact`], and [`Database::connect`].
    pub fn transact<T>(&self, work: impl FnMut(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = match self.idle.take() {
            Some(connection) => self.initialized(connection)?,
            None => self.connect()?,
        };
        let outcome = connection.transact(work);
        if connection.renew() {
            self.idle.put(connection);
        }
        outcome
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Writes everything committed so far into the database file.
    ///
    /// # Errors
    /// A failing disk.
    pub fn checkpoint(&self) -> Result<()> {
        self.store()
            .checkpoint()
            .map_err(|e| Error::from_engine(e.into()))
    }

    /// Does what there is to do in the background, of a database that was opened
    /// with [`Options::driver`]: see [`Store::tick`].
    ///
    /// # Errors
    /// A failing disk.
    pub fn tick(&self) -> Result<()> {
        self.store()
            .tick()
            .map_err(|e| Error::from_engine(e.into()))
    }

    /// Walks the whole file and compares all indexes with their tables, as
    /// `PRAGMA integrity_check` does; what is wrong, a line each. Empty means sound.
    ///
    /// # Errors
    /// Damage that keeps the walk from going on.
    pub fn integrity_check(&self) -> Result<Vec<String>> {
        let connection = self.connect()?;
        let mut statement = connection.prepare("PRAGMA integrity_check")?;
        let lines = statement.query_map([], |row| row.get(0))?;
        let lines = lines.collect::<Result<Vec<String>>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path())
            .finish()
    }
}
