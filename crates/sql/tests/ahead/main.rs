//! IMMEDIATE transactions that begin while the commit before them is being synced.
//!
//! They go on with what that commit has not touched, and say nothing of what it has before
//! it is durable. Nor do statements alone.

mod databases;
mod program;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::thread;

use fulgurite_sql::error::code::ABORT;
use fulgurite_sql::session::Step;
use fulgurite_sql::session::blob::BlobColumn;
use support::{drain, must, prepare, row, run};
use world::{ADDS_77, BEGIN, CHANGES_1, Stand, World};

#[test]
fn what_the_commit_did_not_touch_is_told_at_once() {
    let cases = [
        ("SELECT n FROM t WHERE id = 2", "20"),
        ("SELECT count(*) FROM s", "9"),
        ("SELECT sum(n) FROM t WHERE id BETWEEN 5 AND 9", "350"),
        ("SELECT id FROM t WHERE u = 'u4'", "4"),
        ("SELECT id FROM t WHERE n > 80 AND n < 100", "9"),
        ("UPDATE t SET n = n + 1 WHERE id = 3 RETURNING n", "31"),
        ("INSERT INTO t(id, u) VALUES (50, 'x') RETURNING id", "50"),
        ("DELETE FROM s WHERE id < 4 RETURNING id", "1 2 3"),
        (
            "INSERT INTO t(id, u) VALUES (60, 'u5')",
            "error 2067: UNIQUE constraint failed: t.u",
        ),
        (
            "SAVEPOINT a; UPDATE t SET n = 0 WHERE id = 4; ROLLBACK TO a; SELECT n FROM t WHERE id = 4",
            "40",
        ),
    ];
    for (second, told) in cases {
        for first in [CHANGES_1, ADDS_77] {
            assert_eq!(World::at_once(first, second).join(" "), told, "{second}");
        }
    }
}

#[test]
fn what_it_changed_is_not_told_before_it_is_durable() {
    let cases = [
        (CHANGES_1, "SELECT n FROM t WHERE id = 1", "100"),
        (CHANGES_1, "SELECT id FROM t WHERE n = 10", ""),
        (CHANGES_1, "SELECT sum(n) FROM t", "540"),
        (
            CHANGES_1,
            "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n",
            "101",
        ),
        (CHANGES_1, "UPDATE t SET n = 7 WHERE n = 100", ""),
        (CHANGES_1, "DELETE FROM t WHERE id = 1 RETURNING n", "100"),
        (
            CHANGES_1,
            "SAVEPOINT a; DELETE FROM t WHERE id = 1; ROLLBACK TO a",
            "",
        ),
        (ADDS_77, "SELECT count(*) FROM t", "10"),
        (ADDS_77, "SELECT u FROM t WHERE id = 77", "'new'"),
        (
            ADDS_77,
            "INSERT INTO t(id, u) VALUES (78, 'new')",
            "error 2067: UNIQUE constraint failed: t.u",
        ),
        (
            ADDS_77,
            "INSERT OR IGNORE INTO t(id, u) VALUES (78, 'new'); SELECT changes()",
            "0",
        ),
        (
            ADDS_77,
            "INSERT OR FAIL INTO t VALUES (77, 0, 'other')",
            "error 1555: UNIQUE constraint failed: t.id",
        ),
        (
            "DELETE FROM t WHERE id = 5",
            "SELECT 1 FROM t WHERE id = 5",
            "",
        ),
        ("DELETE FROM s", "SELECT EXISTS (SELECT 1 FROM s)", "0"),
    ];
    for (first, second, told) in cases {
        let outcome = World::late(first, (BEGIN, second));
        assert_eq!(outcome.join(" "), told, "{second}");
    }
}

/// A statement that undoes its transaction leaves nothing to compare.
#[test]
fn a_failure_that_undoes_the_transaction_is_told_when_the_commit_is_durable() {
    let world = World::new();
    world.meanwhile(ADDS_77, |session| {
        must(session, BEGIN);
        let told = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            run(session, "INSERT OR ROLLBACK INTO t VALUES (77, 0, 'other')")
        });
        assert_eq!(told, ["error 1555: UNIQUE constraint failed: t.id"]);
        let there = must(&world.engine.session(), "SELECT n FROM t WHERE id = 77");
        assert_eq!(there, ["770"], "told too early");
    });
}

/// What may tell others of rows while it runs, or shows what it rests on, waits first.
#[test]
fn what_cannot_be_confirmed_afterwards_waits_before() {
    let untouched = "SELECT n FROM t WHERE id = 2";
    let plan = format!("EXPLAIN QUERY PLAN {untouched}");
    for (first, second) in [
        (CHANGES_1, plan.as_str()),
        (CHANGES_1, "PRAGMA foreign_key_check"),
        (CHANGES_1, "CREATE TABLE other(x)"),
    ] {
        World::late(first, (BEGIN, second));
    }
    // A schema that is not durable is not even compiled for.
    for change in [
        "CREATE TABLE new(x)",
        "DROP INDEX t_n",
        "ALTER TABLE s ADD x",
    ] {
        World::late(change, ("SELECT 1", &format!("{BEGIN}; {untouched}")));
    }
}

/// Who writes to a value alone does that where it lies in what was committed last, or hears
/// that it was written since once a reader can see that.
#[test]
fn a_handle_of_a_value_knows_of_a_commit_that_is_not_durable_yet() {
    let written = "SELECT u FROM b WHERE id = 1";
    for (first, outcome, there) in [
        (
            "UPDATE b SET n = 'a longer one' WHERE id = 1",
            Ok(()),
            &["'Other'"][..],
        ),
        (
            "UPDATE b SET u = 'theirs' WHERE id = 1",
            Err(ABORT),
            &["'theirs'"],
        ),
        ("UPDATE b SET u = '' WHERE id = 1", Err(ABORT), &["''"]),
        ("DELETE FROM b WHERE id = 1", Err(ABORT), &[]),
        ("DELETE FROM b", Err(ABORT), &[]),
        (
            "BEGIN; DROP TABLE b; CREATE TABLE b(id INTEGER PRIMARY KEY, u TEXT); COMMIT",
            Err(ABORT),
            &[],
        ),
    ] {
        let world = World::new();
        must(
            &world.engine.session(),
            "CREATE TABLE b(id INTEGER PRIMARY KEY, n TEXT, u TEXT);
             INSERT INTO b VALUES (1, 'n', 'other'), (2, 'n', 'more')",
        );
        let [main, table, column] = ["main", "b", "u"].map(str::to_owned);
        let column = BlobColumn::new(main, table, column, true);
        world.meanwhile(first, |session| {
            let mut handle = session.open_blob(&column, 1).unwrap();
            let written_to = thread::scope(|scope| {
                scope.spawn(|| world.gate.set(Stand::Open));
                session.write_blob(&mut handle, 0, b"O")
            });
            assert_eq!(written_to.map_err(|error| error.code()), outcome, "{first}");
            assert_eq!(run(&world.engine.session(), written), there, "{first}");
            let checked = run(session, "PRAGMA integrity_check");
            assert_eq!(checked, ["'ok'"], "{first}");
        });
    }
}

/// The rows of a query that is still open when its transaction is rolled back.
#[test]
fn rows_that_come_after_the_rollback_wait_too() {
    let world = World::new();
    let rows = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9000)
                INSERT INTO s SELECT i + 9, i FROM c";
    must(&world.engine.session(), rows);
    world.meanwhile("UPDATE s SET n = 1 WHERE id = 9009", |session| {
        must(session, BEGIN);
        let mut rows = prepare(session, "SELECT n FROM s");
        assert_eq!(rows.step().unwrap(), Step::Row);
        assert_eq!(row(&rows), "10");
        must(session, "ROLLBACK");
        let rest = thread::scope(|scope| {
            scope.spawn(|| world.gate.set(Stand::Open));
            drain(&mut rows)
        });
        assert_eq!(rest.last().map(String::as_str), Some("1"));
        let there = must(&world.engine.session(), "SELECT n FROM s WHERE id = 9009");
        assert_eq!(there, ["1"], "told too early");
    });
}

/// Many follow each other during one sync: each sees what the ones before wrote, none
/// loses, and what they added up to is there.
#[test]
fn many_share_the_sync() {
    let world = World::new();
    let adds = |own: i64| {
        let session = world.engine.session();
        for _ in 0..20 {
            let own = format!("UPDATE s SET n = n + 1 WHERE id = {own}");
            must(
                &session,
                &format!("{BEGIN}; {own}; UPDATE t SET n = n + 1 WHERE id = 1; COMMIT"),
            );
        }
    };
    world.gate.set(Stand::Open);
    thread::scope(|scope| {
        for own in 1..=4 {
            scope.spawn(move || adds(own));
        }
    });
    let session = world.engine.session();
    assert_eq!(must(&session, "SELECT n FROM t WHERE id = 1"), ["90"]);
    assert_eq!(
        must(&session, "SELECT n FROM s WHERE id < 5"),
        ["30", "40", "50", "60"]
    );
}

/// What it built on is lost: it was told nothing of that, and cannot commit.
#[test]
fn a_failed_sync_ends_who_is_ahead_of_it() {
    let world = World::new();
    world.meanwhile(CHANGES_1, |session| {
        must(session, BEGIN);
        assert_eq!(must(session, "SELECT n FROM t WHERE id = 2"), ["20"]);
        must(session, "UPDATE t SET n = 21 WHERE id = 2");
        world.gate.set(Stand::Fails);
        let failed = |told: Vec<String>| told.len() == 1 && told[0].starts_with("error 1034");
        assert!(failed(run(session, "SELECT n FROM t WHERE id = 1")));
        assert!(failed(run(session, "COMMIT")));
        let reader = world.engine.session();
        assert_eq!(must(&reader, "SELECT n FROM t WHERE id < 3"), ["10", "20"]);
    });
}
