//! Foreign keys of several connections at once: a child that comes while an overlapping
//! transaction takes its parent away. One of the two must lose or be refused; statements
//! alone never lose.

mod common;
mod support;

use std::path::Path;
use std::sync::Arc;

use common::Random;
use fulgurite_disk::MemoryDisk;
use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Durability, Options, Store};
use support::{must, run};

const LEVELS: [&str; 2] = ["serializable", "snapshot"];
const LOST: &str = "error 517: database is locked";
const REFUSED: &str = "error 787: FOREIGN KEY constraint failed";

fn engine(durability: Durability) -> Engine {
    let options = Options {
        durability,
        ..Options::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    Engine::open(Store::open_on(disk, Path::new("/test.db"), options).unwrap()).unwrap()
}

fn session(engine: &Engine, level: &str) -> Session {
    let session = engine.session();
    must(
        &session,
        &format!("PRAGMA isolation_level = {level}; PRAGMA foreign_keys = ON"),
    );
    session
}

/// Parents by rowid and by a unique key, children found by an index and by a scan.
const FAMILIES: [&str; 4] = [
    "CREATE TABLE p(id INTEGER PRIMARY KEY, n INT); CREATE TABLE c(id INTEGER PRIMARY KEY, p INT REFERENCES p ACTION)",
    "CREATE TABLE p(id INTEGER PRIMARY KEY, n INT); CREATE TABLE c(id INTEGER PRIMARY KEY, p INT REFERENCES p ACTION); CREATE INDEX i ON c(p)",
    "CREATE TABLE p(id INT PRIMARY KEY, n INT); CREATE TABLE c(id INTEGER PRIMARY KEY, p INT REFERENCES p ACTION); CREATE INDEX i ON c(p, id)",
    "CREATE TABLE p(id INT UNIQUE, n INT); CREATE TABLE c(id INTEGER PRIMARY KEY, p TEXT REFERENCES p(id) ACTION)",
];

#[test]
fn a_child_and_the_removal_of_its_parent_do_not_both_commit() {
    let removals = [
        "DELETE FROM p WHERE id = 1",
        "DELETE FROM p",
        "UPDATE p SET id = 9 WHERE id = 1",
    ];
    let arrivals = [
        "INSERT INTO c VALUES (2, 1)",
        "INSERT INTO c VALUES (2, 1), (3, 2)",
        "UPDATE c SET p = 1 WHERE id = 1",
        "INSERT INTO c VALUES (1, 1) ON CONFLICT DO UPDATE SET p = 1",
    ];
    let actions = [
        "",
        "ON DELETE CASCADE ON UPDATE CASCADE",
        "ON DELETE SET NULL ON UPDATE SET NULL",
        "ON DELETE RESTRICT ON UPDATE RESTRICT",
        "DEFERRABLE INITIALLY DEFERRED",
    ];
    for durability in [Durability::Full, Durability::Off] {
        for level in LEVELS {
            for family in FAMILIES {
                for action in actions {
                    for removal in removals {
                        for arrival in arrivals {
                            let engine = engine(durability);
                            let (a, b) = (session(&engine, level), session(&engine, level));
                            must(&a, &family.replace("ACTION", action));
                            must(
                                &a,
                                "INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, NULL)",
                            );
                            overlap(&a, &b, removal, arrival);
                        }
                    }
                }
            }
        }
    }
}

/// Either way round, with both in transactions and with the second one alone.
fn overlap(a: &Session, b: &Session, removal: &str, arrival: &str) {
    let check = "PRAGMA foreign_key_check";
    let label = format!("{removal} beside {arrival}");
    let mut outcomes = Vec::new();
    for (first, second) in [(removal, arrival), (arrival, removal)] {
        must(a, &format!("SAVEPOINT outer_; {first}"));
        must(b, &format!("BEGIN; {second}"));
        outcomes.push(run(a, "RELEASE outer_"));
        outcomes.push(run(b, "COMMIT"));
        assert_eq!(run(a, check), [""; 0], "{label}");
        must(
            a,
            "DELETE FROM c; DELETE FROM p; INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, NULL)",
        );
        must(a, &format!("BEGIN; {first}"));
        let alone = run(b, second);
        assert!(alone.is_empty(), "{label}: {alone:?}");
        outcomes.push(run(a, "COMMIT"));
        assert_eq!(run(a, check), [""; 0], "{label}");
        must(
            a,
            "DELETE FROM c; DELETE FROM p; INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, NULL)",
        );
    }
    let lost = outcomes.iter().filter(|outcome| outcome[..] == [LOST]);
    assert_eq!(lost.count(), 4, "{label}: {outcomes:?}");
}

/// A parent whose key is its rowid was read as a row, so that a transaction which inserts
/// children lost against any change of it.
#[test]
fn children_come_beside_changes_of_their_parents() {
    for level in LEVELS {
        for family in FAMILIES {
            let engine = engine(Durability::Full);
            let (a, b) = (session(&engine, level), session(&engine, level));
            must(&a, &family.replace("ACTION", "ON DELETE CASCADE"));
            must(&a, "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)");
            must(
                &b,
                "BEGIN; INSERT INTO c VALUES (1, 1), (2, 2), (3, 1), (4, 3)",
            );
            must(&a, "UPDATE p SET n = n + 10");
            must(&b, "COMMIT");
            must(&b, "BEGIN; UPDATE p SET n = n + 10 WHERE id < 3");
            must(&a, "INSERT INTO c VALUES (5, 2)");
            must(&b, "COMMIT");
            let sum = "SELECT sum(p.n), count(*) FROM p JOIN c ON c.p = p.id";
            assert_eq!(run(&a, sum), ["99,5"], "{level}: {family}");
        }
    }
}

#[test]
fn threads_never_leave_an_orphan() {
    let actions = [
        "",
        "ON DELETE CASCADE ON UPDATE CASCADE",
        "ON DELETE SET NULL ON UPDATE SET NULL",
        "DEFERRABLE INITIALLY DEFERRED",
    ];
    for (seed, action) in actions.iter().enumerate() {
        for durability in [Durability::Full, Durability::Normal, Durability::Off] {
            for (number, family) in FAMILIES.iter().enumerate() {
                println!("seed {seed}, family {number}, {durability:?}");
                let engine = engine(durability);
                let setup = session(&engine, "serializable");
                must(&setup, &family.replace("ACTION", action));
                must(
                    &setup,
                    "CREATE TABLE d(c REFERENCES c ON DELETE CASCADE ON UPDATE CASCADE, n)",
                );
                std::thread::scope(|scope| {
                    for thread in 0..4u64 {
                        let session = session(&engine, LEVELS[(thread % 2) as usize]);
                        let mut random = Random(seed as u64 * 100 + thread);
                        scope.spawn(move || work(&session, &mut random, thread));
                    }
                });
                assert_eq!(run(&setup, "PRAGMA foreign_key_check"), [""; 0]);
                assert_eq!(run(&setup, "PRAGMA integrity_check"), ["'ok'"]);
            }
        }
    }
}

/// Statements alone, and transactions that may lose.
fn work(session: &Session, random: &mut Random, thread: u64) {
    for round in 0..120 {
        let statement = |random: &mut Random| {
            let (parent, other) = (random.below(6), random.below(6));
            match random.below(8) {
                0..=1 => format!("INSERT OR IGNORE INTO p VALUES ({parent}, {round})"),
                2 => format!("DELETE FROM p WHERE id = {parent}"),
                3 => format!("UPDATE OR IGNORE p SET id = {parent} WHERE id = {other}"),
                4..=5 => format!("INSERT INTO c(p) VALUES ({parent})"),
                6 => format!("UPDATE c SET p = {parent} WHERE id = {}", random.below(50)),
                _ => format!("INSERT INTO d SELECT max(id), {thread} FROM c"),
            }
        };
        if random.below(2) == 0 {
            let sql = statement(random);
            let outcome = run(session, &sql);
            let is_fine = outcome.is_empty() || outcome[..] == [REFUSED];
            assert!(is_fine, "{sql}: {outcome:?}");
            continue;
        }
        must(session, "BEGIN");
        for _ in 0..=random.below(3) {
            let outcome = run(session, &statement(random));
            assert!(
                outcome.is_empty() || outcome[..] == [REFUSED],
                "{outcome:?}"
            );
        }
        let outcome = run(session, "COMMIT");
        if outcome[..] == [REFUSED] {
            must(session, "ROLLBACK");
        } else {
            assert!(outcome.is_empty() || outcome[..] == [LOST], "{outcome:?}");
        }
    }
}
