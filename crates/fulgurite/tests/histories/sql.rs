//! The objects as tables: a list is a text that is appended to, a register a
//! column, the set a table's rows, found through an index or a scan.

use crate::history::{Event, Value};
use crate::run::{Ask, Begin, Beginning, KEYS, Session, Target, USED_AFTER, store};
use fulgurite::{Connection, Database, ffi, params};
use fulgurite_store::Isolation;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Sql {
    database: Database,
    isolation: Isolation,
    beginning: Beginning,
    sessions: AtomicUsize,
}

impl Sql {
    pub fn new(isolation: Isolation, beginning: Beginning, indexed: bool) -> Self {
        let database = Database::on_store(store(beginning)).expect("a database");
        let connection = database.connect().expect("a connection");
        connection
            .execute_batch(
                "CREATE TABLE lists (k INTEGER PRIMARY KEY, items TEXT NOT NULL);
                 CREATE TABLE registers (k TEXT PRIMARY KEY, v INT NOT NULL);
                 CREATE TABLE rows (v INT NOT NULL);",
            )
            .expect("the tables");
        if indexed {
            connection
                .execute_batch("CREATE INDEX rows_by_v ON rows (v)")
                .expect("the index");
        }
        for key in 0..KEYS {
            connection
                .execute("INSERT INTO lists VALUES (?, '')", [key])
                .expect("a list");
            connection
                .execute("INSERT INTO registers VALUES ('r' || ?, 0)", [key])
                .expect("a register");
        }
        Self {
            database,
            isolation,
            beginning,
            sessions: AtomicUsize::new(0),
        }
    }
}

impl Target for Sql {
    fn session(&self) -> Box<dyn Session> {
        let number = self.sessions.fetch_add(1, Relaxed);
        let session = SqlSession {
            connection: connect(&self.database, self.isolation),
            database: self.database.clone(),
            isolation: self.isolation,
            beginning: self.beginning,
            number,
            explicit: false,
        };
        let own = format!(
            "CREATE TABLE own{number} (k INTEGER PRIMARY KEY, v INT);
             INSERT INTO own{number} VALUES (1, 0);"
        );
        session.connection.execute_batch(&own).expect("a table");
        Box::new(session)
    }
}

fn connect(database: &Database, isolation: Isolation) -> Connection {
    let connection = database.connect().expect("a connection");
    let level = match isolation {
        Isolation::Serializable => "serializable",
        Isolation::Snapshot => "snapshot",
    };
    connection
        .pragma_update(None, "isolation_level", level)
        .expect("the level");
    connection
}

struct SqlSession {
    connection: Connection,
    database: Database,
    isolation: Isolation,
    beginning: Beginning,
    /// Of the table that nobody else writes to.
    number: usize,
    explicit: bool,
}

impl SqlSession {
    /// A new connection, used to small transactions.
    fn get_used(&mut self) {
        self.connection = connect(&self.database, self.isolation);
        let sql = format!("UPDATE own{} SET v = v + 1 WHERE k = 1", self.number);
        for _ in 0..USED_AFTER {
            self.connection.execute_batch("BEGIN").expect("BEGIN");
            self.change(&sql, []);
            self.connection.execute_batch("COMMIT").expect("COMMIT");
        }
    }

    fn change(&self, sql: &str, params: impl fulgurite::Params) {
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        assert_eq!(statement.execute(params).expect("a change"), 1);
    }

    fn value(&self, key: usize) -> Value {
        let sql = "SELECT v FROM registers WHERE k = 'r' || ?";
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        statement
            .query_row([key], |row| row.get(0))
            .expect("a register")
    }

    fn list(&self, key: usize) -> Vec<Value> {
        let sql = "SELECT items FROM lists WHERE k = ?";
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        let items: String = statement
            .query_row([key], |row| row.get(0))
            .expect("a list");
        items
            .split_terminator(',')
            .map(|item| item.parse().expect("a number"))
            .collect()
    }

    fn rows(&self, low: u64, high: u64) -> Vec<Value> {
        let sql = "SELECT v FROM rows WHERE v BETWEEN ? AND ?";
        let mut statement = self.connection.prepare_cached(sql).expect("a statement");
        let rows = statement.query_map([low, high], |row| row.get(0));
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    }
}

impl Session for SqlSession {
    fn begin(&mut self, how: Begin) {
        let sql = match how {
            Begin::Optimistic => "BEGIN",
            Begin::Immediate => "BEGIN IMMEDIATE",
            Begin::Autocommit => "",
        };
        if how == Begin::Optimistic && self.beginning == Beginning::Hold {
            self.get_used();
        }
        self.connection.execute_batch(sql).expect("BEGIN");
        self.explicit = how != Begin::Autocommit;
    }

    fn run(&mut self, ask: Ask) -> Vec<Event> {
        match ask {
            Ask::ReadList(key) => vec![Event::ReadList(key, self.list(key))],
            Ask::Append(key, value) => {
                let sql = "UPDATE lists SET items = items || ?2 || ',' WHERE k = ?1";
                self.change(sql, params![key, value]);
                vec![Event::Append(key, value)]
            }
            Ask::Read(key) => vec![Event::Read(key, self.value(key))],
            // A statement of its own cannot say what it replaced.
            Ask::Write(key, _) if !self.explicit => self.run(Ask::Read(key)),
            Ask::Write(key, value) => {
                let before = self.value(key);
                let sql = "UPDATE registers SET v = ?2 WHERE k = 'r' || ?1";
                self.change(sql, params![key, value]);
                vec![Event::Read(key, before), Event::Write(key, value)]
            }
            Ask::ReadSet(low, high) => vec![Event::ReadSet(low, high, self.rows(low, high))],
            Ask::Add(value) => {
                self.change("INSERT INTO rows VALUES (?)", [value]);
                vec![Event::Add(value)]
            }
        }
    }

    fn commit(&mut self) -> bool {
        if !self.explicit {
            return true;
        }
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => true,
            Err(error) => {
                let code = error.sqlite_extended_error_code();
                assert_eq!(code, Some(ffi::SQLITE_BUSY_SNAPSHOT), "{error}");
                false
            }
        }
    }

    fn rollback(&mut self) {
        self.connection.execute_batch("ROLLBACK").expect("ROLLBACK");
    }
}
