//! Texts with values in them run as the statements of their shapes. Nobody can tell:
//! what they do and say is what SQLite does and says, and what a connection does that
//! never saw the shape before.

use fulgurite::{Connection, Database, Result, Statement, ffi};

/// A small generator: the same values on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn key(&mut self) -> String {
        match self.below(8) {
            // With the largest key there is no next one.
            0 => Some(self.value()).filter(|key| !key.starts_with("92233")),
            _ => None,
        }
        .unwrap_or_else(|| (1 + self.below(12)).to_string())
    }

    /// A value as it may be written in a statement.
    fn value(&mut self) -> String {
        let small = self.below(5);
        match self.below(16) {
            0..=5 => small.to_string(),
            6 | 7 => format!("-{small}"),
            8 => self
                .one_of(&[
                    "999999999999999999",
                    "9223372036854775807",
                    "-9223372036854775808",
                    "9223372036854775808",
                    "007",
                    "0x1F",
                ])
                .to_owned(),
            9 | 10 => self
                .one_of(&["1.5", ".5", "2.", "-0.0", "1e3", "1.0", "-2.5e-3", "1e400"])
                .to_owned(),
            11..=13 => self
                .one_of(&[
                    "''", "'a'", "'it''s'", "'12'", "' 1.0 '", "'x;y'", "'é'", "'-- no'",
                ])
                .to_owned(),
            14 => self.one_of(&["x'00ff'", "X''", "NULL", "TRUE"]).to_owned(),
            _ => self
                .one_of(&["1 + 1", "'a' || 'b'", "abs(-3)", "(4)", "- 5"])
                .to_owned(),
        }
    }

    /// An INSERT of rows that are alike but for their values, or nearly.
    fn many_rows(&mut self) -> String {
        let into = self.one_of(&[
            "INSERT INTO t (k, a, b)",
            "INSERT OR IGNORE INTO t (k, a, b)",
            "INSERT OR FAIL INTO t (k, a, c)",
            "REPLACE INTO v (rowid, i, s)",
            "INSERT INTO u (rowid, n, b)",
        ]);
        let last = self.one_of(&[
            "",
            ";",
            " RETURNING *",
            " ON CONFLICT DO NOTHING",
            " ON CONFLICT DO UPDATE SET rowid = rowid + 100",
            ", (NULL, abs(-1), 'last')",
            ", (8 9, 1, 1)",
            ",",
        ]);
        let mut rows = Vec::new();
        for _ in 0..2 + self.below(30) {
            let key = match self.below(3) {
                0 => "NULL".to_owned(),
                _ => self.below(60).to_string(),
            };
            let (a, b) = (self.below(9).to_string(), self.value());
            let a = self
                .one_of(&[&a, "-3", "x'01'", "NULL", "'a'", "1.5"])
                .to_owned();
            rows.push(format!("({key}, {a}, {b})"));
        }
        format!("{into} VALUES {}{last}", rows.join(", "))
    }

    fn statement(&mut self) -> String {
        let (key, other) = (self.key(), self.key());
        let (a, b, c) = (self.value(), self.value(), self.value());
        match self.below(36) {
            33..=35 => self.many_rows(),
            0 | 1 => format!("INSERT INTO t VALUES ({key}, {a}, {b}, {c})"),
            2 => format!("INSERT OR REPLACE INTO t(k, a, b) VALUES({key},{a},{b});"),
            3 => format!("REPLACE INTO t (a, k) VALUES ({a} , {key})"),
            4 => format!(
                "INSERT OR IGNORE INTO t VALUES ({key}, {a}, {b}, {c}), ({other}, {b}, {c}, {a})"
            ),
            5 => format!("INSERT INTO u (n, b) VALUES ({a}, {b})"),
            6 => format!("INSERT INTO t (k) VALUES ({key}, {a})"),
            7 => format!("UPDATE t SET a = {a} WHERE k = {key}"),
            8 => format!("UPDATE t SET a = {a}, b = b || {b} WHERE k = {key} AND c <> {c}"),
            9 => format!("UPDATE t SET a = a + {a} WHERE u.k = {key}"),
            10 => format!("UPDATE u SET n = n - {a} WHERE b = {b}"),
            11 => format!("UPDATE t SET b = {b} WHERE {a} = k"),
            12 => format!("DELETE FROM t WHERE k = {key}"),
            13 => format!("DELETE FROM t WHERE a = {a} OR b = {b}"),
            14 => format!("SELECT k, a, b, c, {a} = {b} FROM t WHERE k = {key}"),
            15 => format!("SELECT {a}, a = {a}, typeof(b) FROM t WHERE k={key} AND a >= {b}"),
            16 => format!("SELECT b FROM u WHERE n = {a} ORDER BY rowid LIMIT 3"),
            17 => format!("SELECT k FROM t WHERE c = {c} GROUP BY a = {a}, k ORDER BY k"),
            18 => format!("SELECT k FROM t WHERE c = {c} AND a = {a} ORDER BY k"),
            19 => format!("SELECT count(*) FROM t WHERE a IN ({a}, {b}) AND k < {key}"),
            20 => format!(
                "SELECT k FROM t WHERE k = {key} UNION SELECT n FROM u WHERE n = {a} ORDER BY 1"
            ),
            21 | 22 => format!("INSERT OR REPLACE INTO v VALUES ({a}, {b})"),
            23 => format!("UPDATE OR IGNORE v SET i = {a} WHERE s = {b}"),
            24 => format!("DELETE FROM v WHERE i = {a}"),
            25 => format!("SELECT i, s FROM v WHERE s = {b} AND i <> {a}"),
            26 => format!(
                "SELECT t.k, s FROM t JOIN v ON t.a = v.i WHERE t.c <> {a} AND i > {b} ORDER BY 1, 2"
            ),
            27 => format!("SELECT count(*), max(b), {c} FROM t WHERE a < {a} AND b >= {b}"),
            28 => format!("UPDATE t SET b = {b} || a WHERE a = {a} OR k > {key}"),
            29 => format!("DELETE FROM v WHERE s = {b} AND i IN (SELECT a FROM t WHERE k = {key})"),
            30 => format!("SELECT DISTINCT a FROM t WHERE a > {a} AND {b} <> b ORDER BY a LIMIT 3"),
            31 => format!(
                "SELECT a FROM (SELECT a, b FROM t WHERE k < {key}) WHERE b = {b} ORDER BY a"
            ),
            _ => format!("SELECT k, b FROM t WHERE k = {key} COLLATE nocase"),
        }
    }
}

/// The index `p` is there for some values of `n` only.
const TABLES: &str = "
    CREATE TABLE t (k INTEGER PRIMARY KEY, a INT, b TEXT, c UNIQUE);
    CREATE TABLE u (n NUMERIC, b, CHECK (n <> 3));
    CREATE UNIQUE INDEX p ON u (b) WHERE n = 1;
    CREATE TABLE v (i INT UNIQUE, s TEXT COLLATE NOCASE UNIQUE);
";

/// Names of columns and rows, or how many rows changed, or the error; both libraries
/// are asked alike.
macro_rules! ask {
    ($library:ident, $connection:expr, $sql:expr, $look:expr) => {{
        let run = || -> $library::Result<String> {
            let mut statement = $connection.prepare($sql)?;
            $look(&statement);
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            if statement.column_count() == 0 {
                return Ok(format!("{} changed", statement.execute([])?));
            }
            let count = statement.column_count();
            let rows = statement.query_map([], |row| {
                let values = (0..count).map(|at| row.get(at));
                values.collect::<$library::Result<Vec<$library::types::Value>>>()
            })?;
            let rows = rows.collect::<$library::Result<Vec<_>>>()?;
            Ok(format!("{names:?} {rows:?}"))
        };
        run().unwrap_or_else(|error| match error {
            $library::Error::SqlInputError {
                error, msg, offset, ..
            } => format!("{} {msg} at {offset}", error.extended_code),
            $library::Error::SqliteFailure(error, message) => {
                format!("{} {}", error.extended_code, message.unwrap_or_default())
            }
            other => format!("{other:?}"),
        })
    }};
}

fn ours(connection: &Connection, sql: &str) -> String {
    let shows_its_text = |statement: &Statement<'_>| {
        assert_eq!(statement.parameter_count(), 0, "{sql}");
        let expanded = statement.expanded_sql().expect("a statement");
        assert_eq!(expanded, sql.trim_end());
    };
    ask!(fulgurite, connection, sql, shows_its_text)
}

fn sqlite(connection: &rusqlite::Connection, sql: &str) -> String {
    ask!(rusqlite, connection, sql, |_: &_| ())
}

#[test]
fn they_do_and_say_what_sqlite_does_and_says() {
    let seeds = std::env::var("FULGURITE_SHAPE_SEEDS");
    let seeds = seeds.map_or(40, |seeds| seeds.parse().expect("a number"));
    for seed in 1..=seeds {
        let mut random = Random(seed);
        let one = Connection::open_in_memory().expect("opens");
        let fresh = Database::in_memory().expect("opens");
        let other = rusqlite::Connection::open_in_memory().expect("opens");
        one.execute_batch(TABLES).expect("tables");
        fresh
            .connect()
            .expect("connects")
            .execute_batch(TABLES)
            .expect("tables");
        other.execute_batch(TABLES).expect("tables");
        for step in 0..400 {
            let sql = random.statement();
            let said = ours(&one, &sql);
            assert_eq!(
                said,
                sqlite(&other, &sql),
                "seed {seed}, step {step}: {sql}"
            );
            let unseen = ours(&fresh.connect().expect("connects"), &sql);
            assert_eq!(said, unseen, "seed {seed}, step {step}: {sql}");
        }
        for table in ["t", "u", "v"] {
            let all = format!("SELECT rowid, * FROM {table} ORDER BY rowid");
            assert_eq!(ours(&one, &all), sqlite(&other, &all), "seed {seed}");
        }
    }
}

fn with_rows() -> Connection {
    let connection = Connection::open_in_memory().expect("opens");
    let script = "CREATE TABLE t (k INTEGER PRIMARY KEY, n);
        INSERT INTO t VALUES (1, 10); INSERT INTO t VALUES (2, 20); INSERT INTO t VALUES (3, 30);";
    connection.execute_batch(script).expect("a table");
    connection
}

#[test]
fn values_are_not_parameters() {
    let connection = with_rows();
    for k in 1..=3 {
        let sql = format!("SELECT n FROM t WHERE k = {k}");
        let mut statement = connection.prepare(&sql).expect("compiles");
        let refused = statement
            .raw_bind_parameter(1, 2)
            .expect_err("there is none");
        let code = refused.sqlite_error_code();
        assert_eq!(code, Some(fulgurite::ErrorCode::ParameterOutOfRange));
        statement.clear_bindings();
        for _ in 0..2 {
            let n: i64 = statement.query_row([], |row| row.get(0)).expect("a row");
            assert_eq!(n, 10 * k);
        }
        let given = statement.query_row([1], |row| row.get::<_, i64>(0));
        assert!(matches!(
            given,
            Err(fulgurite::Error::InvalidParameterCount(1, 0))
        ));
    }
}

#[test]
fn a_text_with_parameters_is_another_one_than_a_shape_that_reads_so() {
    let connection = with_rows();
    let n = |sql: &str, params: &[i64]| -> Result<i64> {
        connection.query_row(sql, fulgurite::params_from_iter(params), |row| row.get(0))
    };
    for _ in 0..3 {
        assert_eq!(n("SELECT n FROM t WHERE k = 2", &[]), Ok(20));
        assert_eq!(n("SELECT n FROM t WHERE k = ?", &[3]), Ok(30));
        assert!(n("SELECT n FROM t WHERE k = ?", &[]).is_err());
        assert_eq!(n("SELECT n FROM t WHERE k = 1", &[]), Ok(10));
    }
}

#[test]
fn a_statement_that_is_held_outlives_changes_of_the_schema() {
    let connection = with_rows();
    for k in [1, 2, 3] {
        let sql = format!("UPDATE t SET n = n + 1 WHERE k = {k}");
        let mut update = connection.prepare(&sql).expect("compiles");
        assert_eq!(update.execute([]), Ok(1));
        let alter = format!("ALTER TABLE t ADD COLUMN more{k} DEFAULT 'more'");
        connection.execute(&alter, []).expect("alters");
        assert_eq!(update.execute([]), Ok(1), "compiled again");
    }
    let sum = connection.query_row("SELECT sum(n) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(sum, Ok(66));
}

#[test]
fn the_same_shape_may_be_in_use_many_times() {
    let connection = with_rows();
    let text = |k: i64| format!("SELECT n FROM t WHERE k = {k}");
    for _ in 0..3 {
        let (first, second, third) = (text(1), text(2), text(3));
        let mut statements =
            [first, second, third].map(|sql| connection.prepare(&sql).expect("compiles"));
        for (at, statement) in statements.iter_mut().enumerate() {
            let n = statement.query_row([], |row| row.get::<_, usize>(0));
            assert_eq!(n, Ok(10 * (at + 1)));
        }
    }
}

#[test]
fn a_script_ends_with_its_first_error() {
    let connection = with_rows();
    let script = "BEGIN; INSERT INTO t VALUES (4, 'four;'); INSERT INTO t VALUES (5, 'it''s');
        INSERT INTO t VALUES (6, -1.5); INSERT INTO t VALUES (4, 'again'); INSERT INTO t VALUES (7, 7);";
    let error = connection.execute_batch(script).expect_err("4 is there");
    let code = error.sqlite_error().map(|error| error.extended_code);
    assert_eq!(code, Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY));
    connection.execute_batch("COMMIT").expect("commits");
    let texts = connection.query_row("SELECT group_concat(n, ' ') FROM t", [], |row| {
        row.get::<_, String>(0)
    });
    assert_eq!(texts.expect("a text"), "10 20 30 four; it's -1.5");
    let error = connection.execute("DELETE FROM t WHERE k = 1; DELETE FROM t WHERE k = 2", []);
    assert!(matches!(error, Err(fulgurite::Error::MultipleStatement)));
}

/// A statement that goes back into the cache of `prepare_cached` is found by its text, and has
/// to have the values of that still. It lost them where the text has many rows, or large
/// values: the second run of such an INSERT inserted nothing, or NULL, and said that it did
/// well.
#[test]
fn a_statement_of_the_cache_keeps_the_values_of_its_text() {
    let connection = Connection::open_in_memory().expect("opens");
    let table = "CREATE TABLE t (k, n)";
    connection.execute_batch(table).expect("a table");
    let rows: Vec<String> = (1..=40).map(|k| format!("({k}, 'n{k}')")).collect();
    let many = format!("INSERT INTO t VALUES {}", rows.join(", "));
    let large = format!("INSERT INTO t VALUES (1, '{}')", "x".repeat(1 << 20));
    for (sql, expected) in [(many, (40, 820, 111)), (large, (1, 1, 1 << 20))] {
        for round in 0..4 {
            let inserted = connection
                .prepare_cached(&sql)
                .expect("compiles")
                .execute([])
                .expect("inserts");
            let sums = "SELECT count(*), sum(k), sum(length(n)) FROM t";
            let found: (i64, i64, i64) = connection
                .query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .expect("counts");
            let (count, ..) = expected;
            assert_eq!((inserted as i64, found), (count, expected), "round {round}");
            connection.execute("DELETE FROM t", []).expect("empties");
        }
    }
}
