//! `Prepared::is_current`: whether compiling a text again would give the same.

use fulgurite_sql::session::{Engine, Prepared, Session, Step};
use fulgurite_sql::value::ValueRef;
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

/// A statement kept its plan as long as it was kept itself, and `prepare_cached` keeps it for as
/// long as the connection.
#[test]
fn a_kept_statement_is_planned_for_the_rows_there_are_when_it_runs() {
    let session = session();
    run(&session, "CREATE TABLE t (n)");
    run(&session, "CREATE TABLE log (n)");
    run(
        &session,
        "CREATE TRIGGER after_log AFTER INSERT ON log BEGIN
             DELETE FROM t WHERE n = new.n;
         END",
    );
    let texts = [
        "SELECT n FROM t WHERE n = ?",
        "UPDATE t SET n = ? WHERE n = 7",
        "DELETE FROM t WHERE rowid = (SELECT rowid FROM t WHERE n = ? LIMIT 1) RETURNING n",
        "INSERT INTO log SELECT 8 FROM t WHERE n = ?",
        "INSERT INTO log VALUES (?)",
    ];
    let mut kept = texts.map(|text| prepare(&session, text));
    insert(&session, 130);
    for (prepared, text) in kept.iter_mut().zip(texts) {
        prepared.bind(1, ValueRef::Integer(9)).expect("bound");
        assert!(!prepared.is_current(), "{text}");
        assert_eq!(prepared.step(), Ok(Step::Done), "{text}");
        assert!(prepared.is_current(), "{text}");
    }
    // What is bound stays bound.
    insert(&session, 400);
    run(&session, "INSERT INTO t (n) VALUES (9)");
    assert_eq!(kept[0].step(), Ok(Step::Row));
    assert_eq!(kept[2].step(), Ok(Step::Row));
    kept.iter_mut().for_each(Prepared::reset);

    run(&session, "BEGIN");
    run(&session, "DELETE FROM t");
    assert_eq!(kept[1].step(), Ok(Step::Done));
    run(&session, "COMMIT");
    assert_eq!(kept[1].step(), Ok(Step::Done));
    assert!(kept[1].is_current());
    run(&session, "DROP TABLE t");
    let error = kept[0].step().expect_err("no table");
    assert_eq!(error.to_string(), "no such table: t");
}

/// One row is found by its key in a table of any size.
#[test]
fn what_finds_one_row_by_its_key_is_not_planned_again() {
    let session = session();
    run(&session, "CREATE TABLE t (n, k PRIMARY KEY)");
    let texts = [
        "SELECT n FROM t WHERE rowid = ?",
        "SELECT n FROM t WHERE k = ?",
        "UPDATE t SET n = 1 WHERE k = ?",
        "DELETE FROM t WHERE rowid = ?",
    ];
    let kept = texts.map(|text| prepare(&session, text));
    insert(&session, 300);
    assert!(kept.iter().all(Prepared::is_current));
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
    assert!(before.is_current(), "it does not name u");
    run(&session, "CREATE INDEX j ON t (n)");
    assert!(!before.is_current());
    let within = prepare(&session, "SELECT n FROM t");
    assert!(within.is_current());
    run(&session, "ROLLBACK");
    assert!(before.is_current());
    assert!(!within.is_current());
    run(&session, "CREATE INDEX i ON t (n)");
    assert!(!before.is_current());
}

/// What a text does not name it may mean all the same, where something stands for it.
#[test]
fn a_plan_by_a_view_or_a_trigger_is_of_all_that_is_there() {
    let cases = [
        ("CREATE VIEW v AS SELECT n FROM t", "SELECT n FROM v"),
        (
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM w; END",
            "INSERT INTO t VALUES (1)",
        ),
        ("CREATE TABLE c (n REFERENCES t)", "DELETE FROM t"),
        ("CREATE TEMP VIEW v AS SELECT n FROM t", "SELECT n FROM v"),
        ("SELECT 1", "SELECT name FROM sqlite_schema"),
        ("SELECT 1", "SELECT name FROM pragma_table_list"),
    ];
    for (first, text) in cases {
        let session = session();
        run(&session, "CREATE TABLE t (n)");
        run(&session, "CREATE TABLE w (n)");
        run(&session, first);
        for change in [
            "CREATE TABLE x (y)",
            "ALTER TABLE x ADD z",
            "CREATE TEMP TABLE q (y)",
            "DROP TABLE x",
        ] {
            let kept = prepare(&session, text);
            run(&session, change);
            assert!(!kept.is_current(), "{text} behind {change}");
        }
    }
}

/// A statement goes on over tables that are made and dropped beside its own, here and by
/// others, and ends with its own: what one of that name was made of is forgotten.
#[test]
fn what_is_not_named_leaves_statements_alone() {
    let session = session();
    let other = session.engine().session();
    run(&session, "CREATE TABLE t (n)");
    run(&session, "INSERT INTO t VALUES (7)");
    run(&session, "CREATE TEMP TABLE own (n)");
    let mut kept = prepare(&session, "SELECT n FROM t");
    let beside = [
        (&session, "CREATE TABLE x (y)"),
        (&other, "CREATE INDEX x_y ON x (y)"),
        (&session, "BEGIN"),
        (&session, "CREATE TEMP TABLE x (y)"),
        (&session, "SAVEPOINT a"),
        (&session, "DROP TABLE x"),
        (&session, "DROP TABLE own"),
        (&session, "COMMIT"),
        (&other, "DROP TABLE x"),
    ];
    for (by, change) in beside {
        run(by, change);
        assert!(kept.is_current(), "behind {change}");
        assert_eq!(kept.step(), Ok(Step::Row), "behind {change}");
        assert_eq!(kept.column(0), ValueRef::Integer(7));
        assert_eq!(kept.step(), Ok(Step::Done));
    }
    run(&session, "CREATE TEMP TABLE t (n)");
    assert!(!kept.is_current());
    assert_eq!(kept.step(), Ok(Step::Done), "the temporary one has no row");
    run(&session, "DROP TABLE temp.t");
    assert_eq!(kept.step(), Ok(Step::Row));
    kept.reset();
    run(&other, "DROP TABLE t");
    run(&other, "CREATE TABLE t (m, n)");
    run(&other, "INSERT INTO t VALUES (1, 8)");
    assert_eq!(kept.step(), Ok(Step::Row));
    assert_eq!(kept.column(0), ValueRef::Integer(8));
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
