//! `Prepared::is_current`: whether compiling a text again would give the same.

use fulgurite_sql::session::{Engine, Prepared, Session, Step};
use fulgurite_store::{Options, Store};

fn session() -> Session {
    let store = Store::in_memory(Options::default()).expect("opens");
    Engine::open(store).expect("a schema").session()
}

fn prepare(session: &Session, sql: &str) -> Prepared {
    let (prepared, _) = session.prepare(sql).expect("compiles");
    prepared.expect("a statement")
}

fn run(session: &Session, sql: &str) {
    let mut prepared = prepare(session, sql);
    while prepared.step().expect("runs") == Step::Row {}
}

fn insert(session: &Session, rows: usize) {
    let mut prepared = prepare(session, "INSERT INTO t (n) VALUES (1)");
    for _ in 0..rows {
        assert_eq!(prepared.step(), Ok(Step::Done));
    }
}

#[test]
fn a_plan_is_made_for_about_so_many_rows() {
    let session = session();
    run(&session, "CREATE TABLE t (n)");
    let of_none = prepare(&session, "SELECT n FROM t");
    insert(&session, 129);
    assert!(of_none.is_current(), "few rows are as good as none");
    let of_some = prepare(&session, "SELECT n FROM t");
    insert(&session, 1);
    assert!(!of_none.is_current());
    insert(&session, 129);
    assert!(of_some.is_current());
    insert(&session, 1);
    assert!(!of_some.is_current());
    run(&session, "DELETE FROM t WHERE rowid > 100");
    assert!(of_none.is_current() && of_some.is_current());
}

#[test]
fn a_plan_is_made_for_one_schema() {
    let session = session();
    run(&session, "CREATE TABLE t (n)");
    let before = prepare(&session, "SELECT n FROM t");
    assert!(before.is_current());
    run(&session, "BEGIN");
    insert(&session, 1);
    assert!(before.is_current());
    run(&session, "CREATE TABLE u (n)");
    assert!(!before.is_current());
    let within = prepare(&session, "SELECT n FROM t");
    assert!(within.is_current());
    run(&session, "ROLLBACK");
    assert!(before.is_current());
    assert!(!within.is_current());
    run(&session, "CREATE INDEX i ON t (n)");
    assert!(!before.is_current());
}
