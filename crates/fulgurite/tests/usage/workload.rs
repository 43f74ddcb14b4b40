// Everyday use of the interface, written once. Included into modules in which
// `db` is either crate. Each chapter answers with what it printed; an error a
// chapter does not expect is printed too, so that a difference shows where it
// arises.

use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use db::types::{
    FromSql, FromSqlError, FromSqlResult, Null, ToSql, ToSqlOutput, Type, Value, ValueRef,
};
use db::{
    CachedStatement, Connection, DropBehavior, Error, ErrorCode, OptionalExtension, Result, Row,
    Statement, Transaction, TransactionBehavior, ffi, named_params, params, params_from_iter,
};

macro_rules! say {
    ($out:expr, $($arg:tt)*) => {
        writeln!($out, $($arg)*).expect("writing to a String")
    };
}

type Chapter = fn(&Path, &mut String) -> Result<()>;

/// Runs all chapters; each has the path of a database file to itself, or not at
/// all.
pub fn run(path: &Path) -> Vec<(&'static str, String)> {
    let chapters: [(&str, Chapter); 17] = [
        ("people", people),
        ("conversions", conversions),
        ("own types", own_types),
        ("wrong types", wrong_types),
        ("parameters", parameters),
        ("named parameters", named),
        ("nulls and blobs", nulls_and_blobs),
        ("errors", errors),
        ("constraints", constraints),
        ("transactions", transactions),
        ("savepoints", savepoints),
        ("cached statements", cached),
        ("columns", columns),
        ("rows", rows),
        ("threads", threads),
        ("files", files),
        ("generic code", generic),
    ];
    chapters
        .into_iter()
        .enumerate()
        .map(|(i, (name, chapter))| {
            let mut out = String::new();
            if let Err(e) = chapter(&path.with_extension(format!("{i}.db")), &mut out) {
                say!(out, "chapter ended with {e:?}");
            }
            (name, out)
        })
        .collect()
}

#[derive(Debug)]
struct Person {
    id: i64,
    name: String,
    age: Option<u8>,
    photo: Option<Vec<u8>>,
}

impl Person {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            name: row.get("name")?,
            age: row.get("AGE")?,
            photo: row.get(3)?,
        })
    }
}

fn with_people() -> Result<Connection> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(
        "-- a comment first
         CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, photo BLOB);
         CREATE UNIQUE INDEX person_name ON person (name);
         INSERT INTO person (name, age, photo) VALUES ('Ada', 36, x'0102');
         INSERT INTO person (name, age) VALUES ('Béla', NULL), ('Cleo', 200);
         ",
    )?;
    Ok(conn)
}

fn people(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    say!(
        out,
        "{} changes, {} in all, last {}",
        conn.changes(),
        conn.total_changes(),
        conn.last_insert_rowid()
    );
    let n = conn.execute(
        "INSERT INTO person (name, age) VALUES (?1, ?2)",
        ("Dora", 4),
    )?;
    say!(out, "{n} inserted, last {}", conn.last_insert_rowid());
    let n = conn.execute("UPDATE person SET age = age + 1 WHERE age < ?", [100])?;
    say!(out, "{n} updated");

    let mut stmt = conn.prepare("SELECT id, name, age, photo FROM person ORDER BY id")?;
    for person in stmt.query_map([], Person::from_row)? {
        let person = person?;
        say!(
            out,
            "{} {} {:?} {:?}",
            person.id,
            person.name,
            person.age,
            person.photo
        );
    }
    let mut stmt = conn.prepare("SELECT name FROM person WHERE age > ?1 ORDER BY name")?;
    let names = stmt
        .query_map([1], |row| row.get(0))?
        .collect::<Result<Vec<String>>>()?;
    say!(out, "{names:?}");
    let id = conn
        .prepare("INSERT INTO person (name) VALUES (?)")?
        .insert(["Emil"])?;
    say!(out, "emil is {id}");
    let gone = conn
        .prepare("DELETE FROM person WHERE name > 'B'")?
        .execute(())?;
    say!(out, "{gone} gone, {} changed in all", conn.total_changes());
    let found: Option<i64> = conn
        .query_row("SELECT id FROM person WHERE name = 'Emil'", [], |r| {
            r.get(0)
        })
        .optional()?;
    say!(
        out,
        "{found:?} {}",
        conn.prepare("SELECT 1 FROM person")?.exists([])?
    );
    Ok(())
}

fn conversions(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    let echo = |value: &dyn ToSql| -> Result<(Value, String)> {
        conn.query_row("SELECT ?1, typeof(?1)", [value], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    };
    say!(
        out,
        "{:?} {:?} {:?}",
        echo(&true)?,
        echo(&-7i8)?,
        echo(&u32::MAX)?
    );
    say!(
        out,
        "{:?} {:?} {:?}",
        echo(&1.5f32)?,
        echo(&f64::MAX)?,
        echo(&f64::NAN)?
    );
    say!(
        out,
        "{:?} {:?} {:?}",
        echo(&"text")?,
        echo(&String::from("owned"))?,
        echo(&'x'.to_string().as_str())?
    );
    say!(
        out,
        "{:?} {:?} {:?}",
        echo(&vec![1u8, 2])?,
        echo(&[3u8, 4, 5])?,
        echo(&&b"bytes"[..])?
    );
    say!(
        out,
        "{:?} {:?} {:?}",
        echo(&None::<i32>)?,
        echo(&Some("some"))?,
        echo(&Null)?
    );
    say!(
        out,
        "{:?} {:?}",
        echo(&Box::new(5i64))?,
        echo(&Rc::new(String::from("rc")))?
    );
    say!(
        out,
        "{:?} {:?}",
        echo(&Arc::<str>::from("arc"))?,
        echo(&std::borrow::Cow::Borrowed("cow"))?
    );
    say!(
        out,
        "{:?} {:?}",
        echo(&Value::Real(2.5))?,
        echo(&std::num::NonZeroU8::MIN)?
    );

    conn.query_row("SELECT 300, -1, 2.5, 'héllo', x'00ff', NULL", [], |row| {
        say!(
            out,
            "{} {} {}",
            row.get::<_, i16>(0)?,
            row.get::<_, f64>(0)?,
            row.get::<_, bool>(0)?
        );
        say!(
            out,
            "{} {} {}",
            row.get::<_, i64>(1)?,
            row.get::<_, isize>(1)?,
            row.get::<_, f32>(2)?
        );
        say!(
            out,
            "{} {} {}",
            row.get::<_, Box<str>>(3)?,
            row.get::<_, Rc<str>>(3)?,
            row.get::<_, Arc<str>>(3)?
        );
        say!(
            out,
            "{:?} {:?}",
            row.get::<_, [u8; 2]>(4)?,
            row.get::<_, Box<[u8]>>(4)?
        );
        say!(
            out,
            "{:?} {:?}",
            row.get::<_, Option<i32>>(5)?,
            row.get::<_, Option<String>>(3)?
        );
        say!(out, "{:?}", row.get::<_, std::borrow::Cow<'_, str>>(3)?);
        say!(
            out,
            "{:?} {:?}",
            row.get_ref(3)?,
            row.get_ref_unwrap("NULL")
        );
        say!(
            out,
            "{:?} {:?}",
            row.get_ref(3)?.as_str()?,
            row.get_ref(4)?.as_bytes()?
        );
        let all: Vec<Value> = (0..6).map(|i| row.get_unwrap(i)).collect();
        say!(out, "{all:?}");
        Ok(())
    })?;
    let pair: (i64, String) = conn.query_row("SELECT 7, 'seven'", [], |row| {
        <(i64, String)>::try_from(row)
    })?;
    say!(out, "{pair:?}");
    Ok(())
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum Priority {
    Low,
    High,
}

impl ToSql for Priority {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(match self {
            Priority::Low => "low".into(),
            Priority::High => "high".into(),
        })
    }
}

impl FromSql for Priority {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "low" => Ok(Priority::Low),
            "high" => Ok(Priority::High),
            other => Err(FromSqlError::Other(
                format!("unknown priority {other:?}").into(),
            )),
        }
    }
}

/// Cents as an integer; refuses to be written when negative.
#[derive(Debug)]
struct Price(i64);

impl ToSql for Price {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        if self.0 < 0 {
            return Err(Error::ToSqlConversionFailure(
                "a price is never negative".into(),
            ));
        }
        Ok(ToSqlOutput::Owned(Value::Integer(self.0)))
    }
}

impl FromSql for Price {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Price)
    }
}

fn own_types(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    conn.execute(
        "CREATE TABLE task (id INTEGER PRIMARY KEY, priority TEXT, cost INTEGER)",
        [],
    )?;
    let mut insert = conn.prepare("INSERT INTO task (priority, cost) VALUES (?, ?)")?;
    insert.execute(params![Priority::High, Price(1250)])?;
    insert.execute((Priority::Low, None::<Price>))?;
    say!(
        out,
        "{:?}",
        insert
            .execute((Priority::Low, Price(-1)))
            .map_err(|e| e.to_string())
    );
    conn.execute(
        "INSERT INTO task (priority, cost) VALUES ('urgent', 'many')",
        [],
    )?;

    let mut stmt = conn.prepare("SELECT priority, cost FROM task ORDER BY id")?;
    let tasks = stmt.query_map([], |row| {
        Ok((row.get::<_, Priority>(0)?, row.get::<_, Option<Price>>(1)?))
    })?;
    for task in tasks {
        match task {
            Ok(task) => say!(out, "{task:?}"),
            Err(Error::FromSqlConversionFailure(column, kind, cause)) => {
                say!(out, "{column} {kind} {cause}")
            }
            Err(e) => say!(out, "unexpected: {e:?}"),
        }
    }
    Ok(())
}

fn wrong_types(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    let mut stmt =
        conn.prepare("SELECT 300 AS number, 'text' AS word, x'ff' AS bytes, NULL AS nothing")?;
    let mut rows = stmt.query([])?;
    let row = rows.next()?.expect("a row");
    let mut tell = |e: Error| say!(out, "{e} | {e:?}");
    tell(row.get::<_, u8>(0).expect_err("too large"));
    tell(row.get::<_, String>("number").expect_err("an integer"));
    tell(row.get::<_, i64>("word").expect_err("a text"));
    tell(row.get::<_, Vec<u8>>("word").expect_err("a text"));
    tell(row.get::<_, String>("bytes").expect_err("a blob"));
    tell(row.get::<_, [u8; 3]>(2).expect_err("one byte"));
    tell(row.get::<_, i64>(3).expect_err("null"));
    tell(row.get::<_, i64>(4).expect_err("no column"));
    tell(row.get::<_, i64>("missing").expect_err("no column"));
    tell(row.get_ref(9).expect_err("no column"));
    match row.get::<_, i64>("word") {
        Err(Error::InvalidColumnType(1, ref name, Type::Text)) if name == "word" => {}
        other => say!(out, "unexpected {other:?}"),
    }
    let bad: String = match conn.query_row("SELECT CAST(x'fffe' AS TEXT)", [], |row| row.get(0)) {
        Err(e) => e.to_string(),
        Ok(text) => text,
    };
    say!(out, "{bad}");
    Ok(())
}

fn parameters(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    let sum = "SELECT ?1 + ?2 + ?3";
    let get = |row: &Row<'_>| row.get::<_, i64>(0);
    say!(out, "{}", conn.query_row(sum, [1, 2, 3], get)?);
    say!(out, "{}", conn.query_row(sum, (1, 2u8, "3"), get)?);
    say!(
        out,
        "{}",
        conn.query_row(sum, params![1i64, 2i32, 3.0 as i64], get)?
    );
    say!(out, "{}", conn.query_row(sum, &[&1, &2, &3], get)?);
    say!(
        out,
        "{}",
        conn.query_row(sum, params_from_iter(vec![4, 5, 6]), get)?
    );
    say!(
        out,
        "{}",
        conn.query_row(sum, params_from_iter([7, 8, 9].iter()), get)?
    );
    let dynamic: Vec<Box<dyn ToSql>> = vec![Box::new(1), Box::new("2"), Box::new(3i64)];
    let borrowed: Vec<&dyn ToSql> = dynamic.iter().map(|p| p.as_ref()).collect();
    say!(out, "{}", conn.query_row(sum, borrowed.as_slice(), get)?);

    say!(out, "{:?}", conn.query_row(sum, [1], get));
    say!(out, "{:?}", conn.query_row(sum, [1, 2, 3, 4], get));
    say!(out, "{:?}", conn.query_row(sum, [], get));
    say!(out, "{:?}", conn.query_row(sum, (1, 2), get));
    say!(
        out,
        "{:?}",
        conn.execute("SELECT ?", params_from_iter([1, 2]))
    );

    let mut stmt = conn.prepare("SELECT ?5, ?")?;
    say!(
        out,
        "{} {:?} {:?}",
        stmt.parameter_count(),
        stmt.parameter_name(5),
        stmt.parameter_name(6)
    );
    stmt.raw_bind_parameter(6, "six")?;
    let row: (Option<i64>, String) = {
        let mut rows = stmt.raw_query();
        let row = rows.next()?.expect("a row");
        (row.get(0)?, row.get(1)?)
    };
    say!(out, "{row:?}");
    let error = stmt.raw_bind_parameter(7, 1).expect_err("there are six");
    say!(out, "{:?}", error.sqlite_error_code());
    stmt.clear_bindings();
    let all: (Option<i64>, Option<String>) = {
        let mut rows = stmt.raw_query();
        let row = rows.next()?.expect("a row");
        (row.get(0)?, row.get(1)?)
    };
    say!(out, "{all:?}");
    Ok(())
}

fn named(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    conn.execute(
        "CREATE TABLE setting (key TEXT PRIMARY KEY, value)",
        named_params! {},
    )?;
    let mut insert = conn.prepare("INSERT INTO setting (key, value) VALUES (:key, @value)")?;
    insert.execute(named_params! { ":key": "colour", "@value": "red" })?;
    insert.execute(&[(":key", "size"), ("@value", "12")])?;
    insert.execute(&[(":key", &"weight" as &dyn ToSql), ("@value", &7.5)])?;
    say!(
        out,
        "{:?} {:?}",
        insert.parameter_index(":key")?,
        insert.parameter_index("key")?
    );
    say!(
        out,
        "{:?} {:?}",
        insert.parameter_name(1),
        insert.parameter_name(2)
    );
    say!(out, "{:?}", insert.execute(&[(":nokey", "x")]));
    let mut stmt =
        conn.prepare("SELECT value FROM setting WHERE key = $key OR key = :other ORDER BY key")?;
    let values = stmt
        .query_map(
            named_params! { "$key": "size", ":other": "weight" },
            |row| row.get::<_, Value>(0),
        )?
        .collect::<Result<Vec<_>>>()?;
    say!(out, "{values:?}");
    say!(out, "{:?}", stmt.expanded_sql());
    Ok(())
}

fn nulls_and_blobs(_: &Path, out: &mut String) -> Result<()> {
    let conn = Connection::open_in_memory()?;
    conn.execute("CREATE TABLE file (name TEXT, data BLOB)", [])?;
    let large: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let mut insert = conn.prepare("INSERT INTO file VALUES (?1, ?2)")?;
    insert.execute(("large", &large))?;
    insert.execute(("empty", [0u8; 0].as_slice()))?;
    insert.execute(("none", None::<Vec<u8>>))?;
    insert.execute((None::<&str>, "text\0with zero"))?;
    let mut stmt =
        conn.prepare("SELECT name, data, length(data), typeof(data) FROM file ORDER BY rowid")?;
    let mut rows = stmt.query([])?;
    while let Some(row) = rows.next()? {
        let name: Option<String> = row.get(0)?;
        let length: Option<usize> = row.get::<_, Option<i64>>(2)?.map(|n| n as usize);
        let kind = match row.get_ref(1)? {
            ValueRef::Null => "null".to_owned(),
            ValueRef::Blob(b) => format!("blob of {} {}", b.len(), b == large.as_slice()),
            ValueRef::Text(t) => format!("text of {}", t.len()),
            other => format!("{other:?}"),
        };
        say!(
            out,
            "{name:?} {kind} {length:?} {}",
            row.get::<_, String>(3)?
        );
    }
    let total: i64 = conn.query_row("SELECT count(*) FROM file WHERE data IS NULL", [], |r| {
        r.get(0)
    })?;
    say!(out, "{total}");
    Ok(())
}

/// What a program would log and decide by.
fn describe(error: &Error) -> String {
    match error {
        Error::SqliteFailure(
            ffi::Error {
                code: ErrorCode::ConstraintViolation,
                extended_code,
            },
            message,
        ) => {
            let kind = match *extended_code {
                ffi::SQLITE_CONSTRAINT_UNIQUE => "unique",
                ffi::SQLITE_CONSTRAINT_PRIMARYKEY => "primary key",
                ffi::SQLITE_CONSTRAINT_NOTNULL => "not null",
                _ => "other",
            };
            format!("{kind}: {}", message.as_deref().unwrap_or("no message"))
        }
        Error::SqliteFailure(e, message) => {
            format!("{:?} {} {message:?} = {error}", e.code, e.extended_code)
        }
        Error::SqlInputError {
            error: e,
            msg,
            sql,
            offset,
        } => {
            format!(
                "{:?} {} {msg} | {sql} | {offset} = {error}",
                e.code, e.extended_code
            )
        }
        other => format!("{other:?} = {other}"),
    }
}

fn errors(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    for sql in [
        "SELEKT 1",
        "SELECT * FROM nobody",
        "SELECT nam FROM person",
        "SELECT person.nam FROM person WHERE 1",
        "SELECT nosuch(1)",
        "SELECT abs(1, 2)",
        "INSERT INTO person (nam) VALUES (1)",
        "INSERT INTO person (name) VALUES (1, 2)",
        "CREATE TABLE person (x)",
        "DROP TABLE nobody",
        "SELECT 'open",
        "SELECT (1",
        "SELECT 1; SELECT 2",
        "INSERT INTO person SELECT 1",
        "COMMIT",
    ] {
        match conn.execute(sql, []) {
            Ok(n) => say!(out, "{sql}: {n}"),
            Err(e) => say!(out, "{}", describe(&e)),
        }
    }
    say!(out, "{:?}", conn.execute("SELECT 1", []));
    say!(
        out,
        "{:?}",
        conn.query_row("SELECT 1 WHERE 0", [], |row| row.get::<_, i64>(0))
    );
    say!(
        out,
        "{:?}",
        conn.query_one("SELECT id FROM person", [], |row| row.get::<_, i64>(0))
    );
    say!(
        out,
        "{:?}",
        conn.query_one("SELECT 5", [], |row| row.get::<_, i64>(0))
    );
    say!(
        out,
        "{:?}",
        conn.prepare("DELETE FROM person WHERE 0")?.insert([])
    );
    say!(
        out,
        "{:?}",
        conn.execute_batch("SELECT 1; SELEKT 2; SELECT 3")
            .map_err(|e| describe(&e))
    );
    let text = "SELECT abs(-9223372036854775807 - 1)";
    match conn.query_row(text, [], |row| row.get::<_, i64>(0)) {
        Ok(n) => say!(out, "{n}"),
        Err(e) => say!(out, "{} {:?}", describe(&e), e.sqlite_extended_error_code()),
    }
    Ok(())
}

fn constraints(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    conn.execute(
        "CREATE TABLE pair (a, b, c INTEGER NOT NULL DEFAULT 5, PRIMARY KEY (a, b))",
        [],
    )?;
    conn.execute("INSERT INTO pair (a, b) VALUES (1, 'x')", [])?;
    for sql in [
        "INSERT INTO person (name) VALUES ('Ada')",
        "INSERT INTO person (id, name) VALUES (1, 'Other')",
        "INSERT INTO person (id) VALUES (9)",
        "UPDATE person SET name = 'Cleo' WHERE id = 1",
        "INSERT INTO pair VALUES (1, 'x', 1)",
        "INSERT INTO pair VALUES (2, 'x', NULL)",
        "INSERT INTO person (name) VALUES ('New'), ('Newer'), ('Ada')",
        "INSERT INTO person (id, name) VALUES ('no number', 'x')",
    ] {
        match conn.execute(sql, []) {
            Ok(n) => say!(out, "{n}"),
            Err(e) => say!(out, "{} {}", describe(&e), conn.is_autocommit()),
        }
    }
    let counts: (i64, i64) = conn.query_row(
        "SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM pair)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    say!(out, "{counts:?}");
    say!(
        out,
        "{}",
        conn.query_row("SELECT c FROM pair", [], |row| row.get::<_, i64>(0))?
    );
    Ok(())
}

fn count(conn: &Connection) -> Result<i64> {
    conn.query_row("SELECT count(*) FROM person", [], |row| row.get(0))
}

fn transactions(_: &Path, out: &mut String) -> Result<()> {
    let mut conn = with_people()?;
    {
        let tx = conn.transaction()?;
        tx.execute("DELETE FROM person", [])?;
        say!(out, "inside {} {}", count(&tx)?, tx.is_autocommit());
    }
    say!(out, "dropped {} {}", count(&conn)?, conn.is_autocommit());
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("DELETE FROM person WHERE id = 1", [])?;
    tx.commit()?;
    say!(out, "committed {}", count(&conn)?);
    let tx = conn.transaction()?;
    tx.execute("DELETE FROM person", [])?;
    tx.rollback()?;
    say!(out, "rolled back {}", count(&conn)?);
    {
        let mut tx = conn.transaction()?;
        tx.set_drop_behavior(DropBehavior::Commit);
        say!(out, "{:?}", tx.drop_behavior());
        tx.execute("INSERT INTO person (name) VALUES ('Kept')", [])?;
    }
    say!(out, "kept {}", count(&conn)?);
    let tx = conn.unchecked_transaction()?;
    say!(
        out,
        "{:?}",
        conn.execute("BEGIN", []).map_err(|e| describe(&e))
    );
    insert_many(&tx, &["x", "y", "z"])?;
    tx.finish()?;
    say!(out, "finished {}", count(&conn)?);
    conn.execute_batch("BEGIN; INSERT INTO person (name) VALUES ('b1'); COMMIT;")?;
    say!(out, "batch {}", count(&conn)?);
    say!(
        out,
        "{:?}",
        conn.execute("ROLLBACK", []).map_err(|e| describe(&e))
    );
    let failed = conn.transaction().and_then(|tx| {
        tx.execute("INSERT INTO person (name) VALUES ('once')", [])?;
        tx.execute("INSERT INTO person (name) VALUES ('once')", [])?;
        tx.commit()
    });
    say!(
        out,
        "{:?} {}",
        failed.map_err(|e| describe(&e)),
        count(&conn)?
    );
    Ok(())
}

fn insert_many(tx: &Transaction<'_>, names: &[&str]) -> Result<()> {
    let mut stmt = tx.prepare("INSERT INTO person (name) VALUES (?)")?;
    for name in names {
        stmt.execute([name])?;
    }
    Ok(())
}

fn savepoints(_: &Path, out: &mut String) -> Result<()> {
    let mut conn = with_people()?;
    let mut tx = conn.transaction()?;
    tx.execute("INSERT INTO person (name) VALUES ('outer')", [])?;
    {
        let mut sp = tx.savepoint()?;
        sp.execute("INSERT INTO person (name) VALUES ('undone')", [])?;
        say!(out, "in savepoint {}", count(&sp)?);
        sp.rollback()?;
        say!(out, "rolled back {}", count(&sp)?);
        sp.execute("INSERT INTO person (name) VALUES ('kept')", [])?;
        let inner = sp.savepoint_with_name("inner \"one\"")?;
        inner.execute("DELETE FROM person", [])?;
        drop(inner);
        say!(out, "inner dropped {}", count(&sp)?);
        sp.commit()?;
    }
    {
        let sp = tx.savepoint_with_name("second")?;
        sp.execute("DELETE FROM person", [])?;
    }
    say!(out, "second dropped {}", count(&tx)?);
    tx.commit()?;
    say!(
        out,
        "{:?}",
        rows_of(&conn, "SELECT name FROM person ORDER BY name", [])?
    );
    let sp = conn.savepoint()?;
    sp.execute("DELETE FROM person WHERE id = 1", [])?;
    say!(out, "alone {} {}", count(&sp)?, sp.is_autocommit());
    sp.commit()?;
    say!(out, "{} {}", count(&conn)?, conn.is_autocommit());
    say!(
        out,
        "{:?}",
        conn.execute_batch("RELEASE nothing")
            .map_err(|e| describe(&e))
    );
    Ok(())
}

fn name_of(conn: &Connection, id: i64) -> Result<Option<String>> {
    let mut stmt: CachedStatement<'_> =
        conn.prepare_cached("SELECT name FROM person WHERE id = ?1")?;
    stmt.query_row([id], |row| row.get(0)).optional()
}

fn cached(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    conn.set_prepared_statement_cache_capacity(2);
    for id in 0..5 {
        say!(out, "{:?}", name_of(&conn, id)?);
    }
    {
        let mut first = conn.prepare_cached("SELECT ?1")?;
        let mut second = conn.prepare_cached(" SELECT ?1 ")?;
        let get = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
        say!(
            out,
            "{:?} {:?}",
            first.query_row([1], get)?,
            second.query_row([2], get)?
        );
    }
    let mut again = conn.prepare_cached("SELECT ?1")?;
    say!(
        out,
        "{:?}",
        again
            .raw_query()
            .next()?
            .map(|row| row.get::<_, Option<i64>>(0))
    );
    again.discard();
    conn.execute("DROP TABLE IF EXISTS person", [])?;
    conn.execute(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, extra, name)",
        [],
    )?;
    conn.execute("INSERT INTO person VALUES (3, 'extra', 'Renewed')", [])?;
    say!(out, "{:?}", name_of(&conn, 3)?);
    conn.flush_prepared_statement_cache();
    say!(out, "{:?}", name_of(&conn, 3)?);
    conn.execute("DROP TABLE person", [])?;
    say!(out, "{:?}", name_of(&conn, 3).map_err(|e| describe(&e)));
    Ok(())
}

fn columns(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    let stmt = conn.prepare("SELECT id, name AS label, age + 1, photo, count(*) FROM person")?;
    say!(
        out,
        "{} {:?}",
        stmt.column_count(),
        stmt.column_names().collect::<Vec<_>>()
    );
    for column in stmt.columns() {
        say!(out, "{} {:?}", column.name(), column.decl_type());
    }
    say!(out, "{:?} {:?}", stmt.column_name(1)?, stmt.column_name(7));
    say!(
        out,
        "{:?} {:?}",
        stmt.column_index("LABEL")?,
        stmt.column_index("name")
    );
    say!(out, "{} {}", stmt.readonly(), stmt.is_explain());
    let insert = conn.prepare("INSERT INTO person (name) VALUES (1)")?;
    say!(
        out,
        "{} {} {:?}",
        insert.column_count(),
        insert.readonly(),
        insert.column_names().next()
    );
    let star = conn.prepare("SELECT * FROM person AS p JOIN person AS q ON q.id = p.id")?;
    say!(out, "{:?}", star.column_names().collect::<Vec<_>>());
    say!(
        out,
        "{} {}",
        conn.table_exists(None, "PERSON")?,
        conn.table_exists(Some("main"), "nobody")?
    );
    say!(
        out,
        "{} {}",
        conn.column_exists(None, "person", "Age")?,
        conn.column_exists(None, "person", "x")?
    );
    let empty = conn.prepare(" -- nothing here\n ")?;
    say!(out, "{} {}", empty.column_count(), empty.parameter_count());
    Ok(())
}

/// An error type of the program's own.
enum AppError {
    Db(String),
    TooYoung(i64),
}

impl std::fmt::Debug for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AppError::Db(message) => write!(f, "db: {message}"),
            AppError::TooYoung(age) => write!(f, "only {age}"),
        }
    }
}

impl From<Error> for AppError {
    fn from(e: Error) -> Self {
        AppError::Db(e.to_string())
    }
}

fn rows(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    let mut stmt = conn.prepare("SELECT id, age, name, photo FROM person ORDER BY id")?;
    {
        let mut rows = stmt.query([])?;
        say!(out, "{:?}", rows.as_ref().map(Statement::column_count));
        while let Some(row) = rows.next()? {
            say!(out, "{row:?} {}", row.as_ref().column_count());
        }
        say!(out, "{}", rows.next()?.is_none());
    }
    let adults: Vec<std::result::Result<i64, AppError>> = stmt
        .query_and_then([], |row| {
            let id: i64 = row.get(0)?;
            let age: i64 = row.get(1)?;
            if age < 40 {
                Err(AppError::TooYoung(age))
            } else {
                Ok(id)
            }
        })?
        .collect();
    say!(out, "{adults:?}");
    let ids = stmt
        .query([])?
        .mapped(|row| row.get::<_, i64>(0))
        .sum::<Result<i64>>()?;
    say!(out, "{ids}");
    let first = stmt
        .query([])?
        .and_then(|row| row.get::<_, String>("name"))
        .next();
    say!(out, "{first:?}");
    let bad: std::result::Result<i64, AppError> =
        conn.query_row_and_then("SELECT name FROM person", [], |row| {
            row.get(0).map_err(AppError::from)
        });
    say!(out, "{bad:?}");
    // A loop left early, then the same statement again.
    if let Some(id) = stmt.query_map([], |row| row.get::<_, i64>(0))?.next() {
        say!(out, "{}", id?);
    }
    say!(
        out,
        "{}",
        stmt.query_map([], |row| row.get::<_, i64>(0))?.count()
    );
    Ok(())
}

fn threads(_: &Path, out: &mut String) -> Result<()> {
    let conn = with_people()?;
    conn.prepare_cached("SELECT 1")?.exists([])?;
    let mover = std::thread::spawn(move || -> Result<(Connection, i64)> {
        conn.execute("INSERT INTO person (name) VALUES ('from a thread')", [])?;
        let rowid = conn.last_insert_rowid();
        Ok((conn, rowid))
    });
    let (conn, rowid) = mover.join().expect("the thread ends well")?;
    say!(out, "{rowid} {}", count(&conn)?);
    let shared = Arc::new(std::sync::Mutex::new(conn));
    let workers: Vec<_> = (0..4)
        .map(|i| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || -> Result<usize> {
                let conn = shared.lock().expect("no panic under the lock");
                conn.execute(
                    "INSERT INTO person (name) VALUES (?1)",
                    [format!("worker {i}")],
                )
            })
        })
        .collect();
    for worker in workers {
        say!(out, "{:?}", worker.join().expect("the thread ends well"));
    }
    say!(
        out,
        "{}",
        count(&shared.lock().expect("no panic under the lock"))?
    );
    let handle = shared
        .lock()
        .expect("no panic under the lock")
        .get_interrupt_handle();
    std::thread::spawn(move || handle.interrupt())
        .join()
        .expect("the thread ends well");
    say!(
        out,
        "{}",
        count(&shared.lock().expect("no panic under the lock"))?
    );
    Ok(())
}

fn files(path: &Path, out: &mut String) -> Result<()> {
    let flags = db::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let absent = Connection::open_with_flags(path, flags).map(|_| ());
    say!(out, "{:?}", absent.map_err(|e| e.sqlite_error_code()));
    let conn = Connection::open(path)?;
    say!(out, "{}", conn.path().is_some_and(|p| p.ends_with(".db")));
    conn.busy_timeout(std::time::Duration::from_secs(2))?;
    conn.execute_batch("CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)")?;
    let second = Connection::open(path)?;
    second.execute("INSERT INTO note (body) VALUES ('from the second')", [])?;
    let body: String = conn.query_row("SELECT body FROM note", [], |row| row.get(0))?;
    say!(
        out,
        "{body} {} {}",
        conn.last_insert_rowid(),
        second.last_insert_rowid()
    );
    say!(out, "{} {}", conn.total_changes(), second.total_changes());
    second.close().map_err(|(_, e)| e)?;
    conn.close().map_err(|(_, e)| e)?;
    let conn = Connection::open_with_flags(path, flags)?;
    say!(
        out,
        "{}",
        conn.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0))?
    );
    let refused = conn.execute("DELETE FROM note", []);
    say!(
        out,
        "{:?} {:?}",
        refused.as_ref().map_err(|e| e.to_string()),
        refused.as_ref().map_err(Error::sqlite_error_code)
    );
    say!(out, "{}", conn.is_readonly("main")?);
    let folder = Connection::open(path.with_file_name("absent").join("x.db")).map(|_| ());
    say!(out, "{:?}", folder.map_err(|e| e.sqlite_error_code()));
    Ok(())
}

/// Code that takes any kind of connection and any kind of parameters.
fn rows_of<P: db::Params>(conn: &Connection, sql: &str, params: P) -> Result<Vec<Vec<Value>>> {
    let mut stmt = conn.prepare(sql)?;
    let width = stmt.column_count();
    let mut rows = stmt.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(
            (0..width)
                .map(|i| row.get(i))
                .collect::<Result<Vec<Value>>>()?,
        );
    }
    Ok(all)
}

fn column<T: FromSql, I: db::RowIndex>(row: &Row<'_>, index: I) -> Result<T> {
    row.get(index)
}

fn generic(_: &Path, out: &mut String) -> Result<()> {
    let mut conn = with_people()?;
    say!(
        out,
        "{:?}",
        rows_of(
            &conn,
            "SELECT id, name FROM person WHERE id >= ? ORDER BY id DESC",
            [2]
        )?
    );
    say!(out, "{:?}", rows_of(&conn, "SELECT 1.5, x'41', NULL", ())?);
    let tx = conn.transaction()?;
    say!(
        out,
        "{:?}",
        rows_of(
            &tx,
            "SELECT count(*) FROM person WHERE name = :n",
            named_params! { ":n": "Ada" }
        )?
    );
    drop(tx);
    let both: (String, i64) =
        conn.query_row("SELECT name, id FROM person WHERE id = 2", [], |row| {
            Ok((column(row, "name")?, column(row, 1)?))
        })?;
    say!(out, "{both:?}");
    let ids = [1, 3];
    let marks = vec!["?"; ids.len()].join(",");
    let sql = format!("SELECT name FROM person WHERE id IN ({marks}) ORDER BY name");
    say!(out, "{:?}", rows_of(&conn, &sql, params_from_iter(ids))?);
    let e: Box<dyn std::error::Error + Send + Sync> =
        conn.execute("nonsense", []).expect_err("nonsense").into();
    say!(
        out,
        "{e} / {}",
        e.source().map(ToString::to_string).unwrap_or_default()
    );
    Ok(())
}
