//! The sessions as SQL connections.

use super::{Rows, Sessions};
use fulgurite::{Connection, Database, Error, ErrorCode, OptionalExtension, Params};
use fulgurite_store::Isolation;

pub struct Sql {
    connections: Vec<Connection>,
    lost: [bool; 4],
}

impl Sql {
    pub fn new(isolation: Isolation, indexed: bool) -> Self {
        let database = Database::in_memory().expect("a database");
        let setup = database.connect().expect("a connection");
        setup
            .execute_batch(
                "CREATE TABLE test (id INT PRIMARY KEY, value INT);
                 INSERT INTO test VALUES (1, 10), (2, 20);",
            )
            .expect("the table");
        if indexed {
            setup
                .execute_batch("CREATE INDEX by_value ON test (value)")
                .expect("the index");
        }
        let level = match isolation {
            Isolation::Serializable => "serializable",
            Isolation::Snapshot => "snapshot",
        };
        let connect = |_| {
            let connection = database.connect().expect("a connection");
            connection
                .pragma_update(None, "isolation_level", level)
                .expect("the level");
            connection
        };
        Self {
            connections: (0..4).map(connect).collect(),
            lost: [false; 4],
        }
    }

    fn rows(&self, session: usize, sql: &str, params: impl Params) -> Rows {
        let connection = &self.connections[session];
        let mut statement = connection.prepare(sql).expect("a statement");
        let rows = statement.query_map(params, |row| Ok((row.get(0)?, row.get(1)?)));
        let rows: Result<Rows, Error> = rows.expect("rows").collect();
        rows.expect("rows")
    }

    fn run(&mut self, session: usize, sql: &str, params: impl Params) {
        if !self.lost[session] {
            self.connections[session].execute(sql, params).expect(sql);
        }
    }
}

impl Sessions for Sql {
    fn begin(&mut self, session: usize) {
        self.connections[session]
            .execute_batch("BEGIN")
            .expect("BEGIN");
    }

    fn all(&mut self, session: usize) -> Rows {
        self.rows(session, "SELECT id, value FROM test ORDER BY id", [])
    }

    fn read(&mut self, session: usize, id: i64) -> Option<i64> {
        self.connections[session]
            .query_row("SELECT value FROM test WHERE id = ?", [id], |row| {
                row.get(0)
            })
            .optional()
            .expect("a row or none")
    }

    fn multiples(&mut self, session: usize, of: i64) -> Rows {
        let sql = "SELECT id, value FROM test WHERE value % ? = 0 ORDER BY id";
        self.rows(session, sql, [of])
    }

    fn holding(&mut self, session: usize, value: i64) -> Rows {
        let sql = "SELECT id, value FROM test WHERE value = ? ORDER BY id";
        self.rows(session, sql, [value])
    }

    fn insert(&mut self, session: usize, id: i64, value: i64) {
        self.run(session, "INSERT INTO test VALUES (?, ?)", (id, value));
    }

    fn write(&mut self, session: usize, id: i64, value: i64) {
        let sql = "UPDATE test SET value = ?2 WHERE id = ?1";
        self.run(session, sql, (id, value));
    }

    fn add_to_all(&mut self, session: usize, by: i64) {
        self.run(session, "UPDATE test SET value = value + ?", [by]);
    }

    fn delete_holding(&mut self, session: usize, value: i64) {
        self.run(session, "DELETE FROM test WHERE value = ?", [value]);
    }

    fn commit(&mut self, session: usize) -> bool {
        let connection = &self.connections[session];
        match connection.execute_batch("COMMIT") {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
                assert_eq!(
                    error.sqlite_extended_error_code(),
                    Some(fulgurite::ffi::SQLITE_BUSY_SNAPSHOT)
                );
                let hint = error.hint().expect("what it lost against");
                assert!(hint.contains("test"), "{hint}");
                assert!(connection.is_autocommit(), "it has rolled back");
                self.lost[session] = true;
                false
            }
        }
    }

    fn rollback(&mut self, session: usize) {
        self.connections[session]
            .execute_batch("ROLLBACK")
            .expect("ROLLBACK");
    }
}
