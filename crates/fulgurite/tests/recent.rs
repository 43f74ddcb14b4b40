//! Texts that come again are not compiled again where that would give the same
//! statement. Nobody can tell, but by the time it takes: that is what these look for.

use fulgurite::{Connection, Result, Statement, ffi, params};

fn with_rows(rows: i64) -> Connection {
    let connection = Connection::open_in_memory().expect("opens");
    let made = "CREATE TABLE t (k INTEGER PRIMARY KEY, n)";
    connection.execute(made, []).expect("a table");
    for row in 1..=rows {
        let inserted = connection.execute("INSERT INTO t VALUES (?1, ?1 * 10)", [row]);
        assert_eq!(inserted.expect("a row"), 1);
    }
    connection
}

fn numbers(statement: &mut Statement<'_>) -> Vec<i64> {
    let rows = statement.query_map([], |row| row.get(0)).expect("runs");
    rows.collect::<Result<_>>().expect("reads")
}

#[test]
fn what_was_bound_is_gone() {
    let connection = with_rows(3);
    for n in 1..=4 {
        let sql = "SELECT ?1, ?2";
        let mut bound = connection.prepare(sql).expect("compiles");
        let unbound = bound.raw_query().next().expect("runs").map(|row| {
            let [a, b] = [0, 1].map(|column| row.get::<_, Option<i64>>(column));
            (a.expect("a"), b.expect("b"))
        });
        assert_eq!(unbound, Some((None, None)), "the {n}-th");
        bound.raw_bind_parameter(1, n).expect("binds");
        assert_eq!(bound.expanded_sql(), Some(format!("SELECT {n}, NULL")));
    }
}

#[test]
fn a_statement_left_in_the_middle_begins_at_its_beginning() {
    let connection = with_rows(5);
    for _ in 0..4 {
        let mut select = connection.prepare("SELECT n FROM t").expect("compiles");
        let mut rows = select.query([]).expect("runs");
        for n in [10, 20] {
            let row = rows.next().expect("steps").expect("a row");
            assert_eq!(row.get::<_, i64>(0).expect("a number"), n);
        }
    }
    // Nothing of them is running.
    connection.execute_batch("DROP TABLE t").expect("drops");
}

#[test]
fn one_text_may_be_in_use_many_times() {
    let connection = with_rows(3);
    let sql = "SELECT n FROM t WHERE k >= ?1";
    for _ in 0..4 {
        let mut found = Vec::new();
        let mut outer = connection.prepare(sql).expect("compiles");
        let mut rows = outer.query([1]).expect("runs");
        while let Some(row) = rows.next().expect("steps") {
            let n: i64 = row.get(0).expect("a number");
            let mut inner = connection.prepare(sql).expect("compiles");
            let first: i64 = inner.query_row([n / 10], |row| row.get(0)).expect("runs");
            found.push((n, first));
        }
        assert_eq!(found, [(10, 10), (20, 20), (30, 30)]);
    }
}

#[test]
fn a_changed_schema_is_seen() {
    let connection = with_rows(2);
    let sql = "SELECT * FROM t";
    let columns = || connection.prepare(sql).map(|select| select.column_count());
    for _ in 0..3 {
        assert_eq!(columns(), Ok(2));
    }
    let change = |sql: &str| connection.execute_batch(sql).expect("changes");
    change("ALTER TABLE t ADD COLUMN more");
    assert_eq!(columns(), Ok(3));
    change("BEGIN; ALTER TABLE t ADD COLUMN yet");
    for _ in 0..3 {
        assert_eq!(columns(), Ok(4));
    }
    change("ROLLBACK");
    assert_eq!(columns(), Ok(3));
    change("DROP TABLE t");
    for _ in 0..3 {
        let error = columns().expect_err("it is gone");
        assert_eq!(error.to_string(), "no such table: t");
    }
    change("CREATE TABLE t (only)");
    assert_eq!(columns(), Ok(1));
    let other = connection.database().connect().expect("connects");
    other.execute_batch("DROP TABLE t").expect("drops");
    assert!(columns().is_err(), "another connection's change, too");
}

/// A plan for a table of few rows is none for one of many.
#[test]
fn a_grown_table_is_planned_for_anew() {
    let connection = with_rows(0);
    connection
        .execute_batch("CREATE TABLE few (n); INSERT INTO few VALUES (7), (8)")
        .expect("a table");
    let sql = "SELECT count(*) FROM t JOIN few ON t.n = few.n * 10";
    let joined = || connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    for _ in 0..3 {
        assert_eq!(joined(), Ok(0));
    }
    let mut grown = 0;
    for rows in [100, 1000, 5000] {
        while grown < rows {
            grown += 1;
            let insert = connection.execute("INSERT INTO t VALUES (?1, ?1 * 10)", [grown]);
            insert.expect("a row");
        }
        assert_eq!(joined(), Ok(2));
    }
}

#[test]
fn failures_are_the_same_each_time() {
    let connection = with_rows(1);
    for _ in 0..4 {
        let taken = connection.execute("INSERT INTO t VALUES (?1, 0)", [1]);
        let code = taken.expect_err("taken").sqlite_extended_error_code();
        assert_eq!(code, Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY));
        let two = connection.execute("INSERT INTO t VALUES (2, 0); DELETE FROM t", []);
        assert_eq!(two, Err(fulgurite::Error::MultipleStatement));
        let wrong = connection.execute("INSERT INTO t VALUES (?1, 0)", params![]);
        assert_eq!(wrong, Err(fulgurite::Error::InvalidParameterCount(0, 1)));
        let unknown = connection.prepare("SELECT x FROM t").expect_err("unknown");
        assert_eq!(
            unknown.to_string(),
            "no such column: x in SELECT x FROM t at offset 7"
        );
    }
    let rows = connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows, Ok(1));
}

#[test]
fn transactions_as_texts_come_again() {
    let connection = with_rows(0);
    for round in 1..=4 {
        connection.execute("BEGIN", []).expect("begins");
        let insert = "INSERT INTO t (n) VALUES (1);\n";
        connection.execute(insert, []).expect("a row");
        connection.execute("SAVEPOINT s", []).expect("begins");
        connection.execute(insert, []).expect("a row");
        connection.execute("ROLLBACK TO s", []).expect("undone");
        connection.execute("COMMIT", []).expect("commits");
        connection.execute_batch("BEGIN").expect("begins");
        connection.execute_batch(insert).expect("a row");
        connection
            .execute_batch(" ROLLBACK; ; -- all of it")
            .expect("undone");
        connection.execute_batch("; SELECT ';' ;").expect("reads");
        let again = connection
            .execute_batch("COMMIT")
            .expect_err("none is open");
        assert_eq!(
            again.to_string(),
            "cannot commit - no transaction is active"
        );
        let mut count = connection
            .prepare("SELECT count(*) FROM t ")
            .expect("compiles");
        assert_eq!(numbers(&mut count), [round]);
    }
}

#[test]
fn many_texts_push_out_those_that_came_long_ago() {
    let connection = with_rows(2);
    for _ in 0..3 {
        for n in 0..100 {
            let sql = format!("SELECT n + {n} FROM t WHERE k = 1");
            for _ in 0..2 {
                let sum = connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
                assert_eq!(sum, Ok(10 + n));
            }
        }
    }
    connection.flush_prepared_statement_cache();
    let sum = connection.query_row("SELECT n + 99 FROM t WHERE k = 1", [], |row| row.get(0));
    assert_eq!(sum, Ok(109));
}
