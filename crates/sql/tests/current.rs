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

/// What had nothing to do when it was compiled did nothing ever after.
#[test]
fn what_had_nothing_to_do_looks_again() {
    let session = session();
    let count = |kind: &str| {
        let text = format!("SELECT count(*) FROM sqlite_schema WHERE type = '{kind}'");
        let mut count = prepare(&session, &text);
        assert_eq!(count.step(), Ok(Step::Row));
        count.column(0).to_integer()
    };
    let mut drop = prepare(&session, "DROP TABLE IF EXISTS t");
    let mut again = || while drop.step().expect("runs") == Step::Row {};
    again();
    run(&session, "CREATE TABLE t (n)");
    let mut create = prepare(&session, "CREATE TABLE IF NOT EXISTS t (n)");
    let mut index = prepare(&session, "CREATE INDEX IF NOT EXISTS i ON t (n)");
    assert_eq!(create.step(), Ok(Step::Done));
    assert_eq!(index.step(), Ok(Step::Done));
    assert_eq!(index.step(), Ok(Step::Done), "it is there");
    assert_eq!((count("table"), count("index")), (1, 1));
    again();
    assert_eq!(count("table"), 0, "dropped");
    run(&session, "BEGIN");
    assert_eq!(create.step(), Ok(Step::Done));
    assert_eq!(index.step(), Ok(Step::Done));
    assert_eq!((count("table"), count("index")), (1, 1));
    again();
    assert_eq!((count("table"), count("index")), (0, 0));
    run(&session, "ROLLBACK");
    again();
    assert_eq!(create.step(), Ok(Step::Done));
    assert_eq!(count("table"), 1);
}
