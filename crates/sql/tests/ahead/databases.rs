//! Other databases of the connection: temporary tables, and attached files.

use std::thread;

use crate::support::{must, run};
use crate::world::{BEGIN, CHANGES_1, Stand, World};

/// A temporary table is its connection's alone, and keeps nobody from going ahead; what is
/// copied into it is told of when that is durable.
#[test]
fn who_has_a_temporary_table_goes_ahead_too() {
    let temporary = "CREATE TEMP TABLE own(n INT); INSERT INTO own VALUES (1)";
    for (second, told) in [
        ("SELECT n FROM t WHERE id = 2", "20"),
        (
            "INSERT INTO own SELECT n FROM t WHERE id = 3 RETURNING n",
            "30",
        ),
        ("UPDATE t SET n = (SELECT max(n) FROM own) WHERE id = 4", ""),
        (
            "CREATE TEMP TABLE more(n); CREATE INDEX temp.more_n ON more(n); DROP TABLE more",
            "",
        ),
        (
            "CREATE TEMP TABLE more AS SELECT n FROM t WHERE id = 3; ALTER TABLE more ADD o; SELECT * FROM more",
            "30,NULL",
        ),
        ("DROP TABLE own", ""),
    ] {
        let world = World::new();
        world.meanwhile(CHANGES_1, |session| {
            must(session, temporary);
            must(session, BEGIN);
            assert_eq!(run(session, second).join(" "), told, "{second}");
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
        });
    }
    let copies = "INSERT INTO own SELECT n FROM t WHERE id = 1 RETURNING n";
    let begin = format!("{temporary}; {BEGIN}");
    assert_eq!(World::late(CHANGES_1, (&begin, copies)), ["100"]);
    let copies = "CREATE TEMP TABLE more AS SELECT n FROM t WHERE id = 1; SELECT n FROM more";
    assert_eq!(World::late(CHANGES_1, (BEGIN, copies)), ["100"]);
}

/// The copy of what was lost is lost with it.
#[test]
fn a_temporary_table_keeps_nothing_of_a_commit_that_failed() {
    let world = World::new();
    world.meanwhile(CHANGES_1, |session| {
        must(session, "CREATE TEMP TABLE own(n INT)");
        must(session, BEGIN);
        world.gate.set(Stand::Fails);
        let failed = |told: Vec<String>| told.len() == 1 && told[0].starts_with("error 1034");
        let copies = "INSERT INTO own SELECT n FROM t WHERE id = 1";
        assert!(failed(run(session, copies)));
        assert!(failed(run(session, "COMMIT")));
        assert_eq!(must(session, "SELECT count(*) FROM own"), ["0"]);
    });
}

/// A file to attach, which is one of the file system on whatever disk the main database is:
/// the directory that it is in, and the statement.
fn attachable() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let attach = format!("ATTACH '{}' AS o", dir.path().join("o.db").display());
    (dir, attach)
}

/// What is attached keeps nobody from going ahead in the main database; who has used it
/// commits when all is durable that the transaction builds on there.
#[test]
fn who_has_attached_a_file_goes_ahead_in_main() {
    let used = [
        ("SELECT n FROM s WHERE id = 2", "1"),
        ("SELECT n FROM o.x", "1"),
        ("UPDATE o.x SET n = 2", "2"),
    ];
    // Whether the one before it has used the file, too, and is published.
    for (first_uses, (used, there)) in used.iter().flat_map(|used| [(false, used), (true, used)]) {
        let (_dir, attach) = attachable();
        let world = World::new();
        let makes = "CREATE TABLE o.x(n INT); INSERT INTO o.x VALUES (1)";
        must(&world.engine.session(), &format!("{attach}; {makes}"));
        let first = match first_uses {
            true => format!("{attach}; {BEGIN}; SELECT n FROM o.x; {CHANGES_1}; COMMIT"),
            false => CHANGES_1.to_owned(),
        };
        world.meanwhile(&first, |session| {
            must(session, &format!("{attach}; {BEGIN}; {used}"));
            let updates = "UPDATE t SET n = 21 WHERE id = 2 RETURNING n";
            assert_eq!(must(session, updates), ["21"]);
            assert_eq!(*world.gate.state.lock().unwrap(), (Stand::Shut, true));
            world.gate.set(Stand::Open);
            must(session, "COMMIT");
            let rows = "SELECT n FROM t WHERE id < 3; SELECT n FROM o.x";
            assert_eq!(must(session, rows), ["100", "21", *there], "{used}");
        });
    }
}

/// All attached files are free again when a transaction is published. What is written to one
/// that it has used is shown when it is durable: who read that then, and main as it was
/// before, would see what no order explains.
#[test]
fn what_is_written_to_an_attached_file_comes_after_who_has_used_it() {
    for (used, waits) in [
        ("SELECT n FROM t WHERE id = 2", false),
        ("SELECT n FROM o.x", true),
        // It was looked for there, too.
        ("SELECT n FROM nowhere", true),
        ("SAVEPOINT a; DELETE FROM o.x; ROLLBACK TO a", true),
    ] {
        let (_dir, attach) = attachable();
        let world = World::new();
        let [beside, reader] = [0, 1].map(|_| world.engine.session());
        let makes = "PRAGMA busy_timeout = 0; CREATE TABLE o.x(n INT)";
        must(&beside, &format!("{attach}; {makes}"));
        must(&reader, &attach);
        let first = format!("{attach}; {BEGIN}; {used}; {CHANGES_1}; COMMIT");
        world.meanwhile(&first, |_| {
            thread::scope(|scope| {
                let writes = scope.spawn(|| {
                    let told = run(&beside, "INSERT INTO o.x VALUES (1)");
                    (told, world.gate.state.lock().unwrap().0)
                });
                let shows = || !must(&reader, "SELECT n FROM o.x").is_empty();
                let is_early = waits && (0..50).any(|_| shows());
                if waits {
                    world.gate.set(Stand::Open);
                }
                let (told, stand) = writes.join().unwrap();
                assert!(!is_early, "{used}");
                assert_eq!(told, [""; 0], "{used}: nobody refuses it");
                assert_eq!(stand == Stand::Open, waits, "{used}");
            });
        });
    }
}
