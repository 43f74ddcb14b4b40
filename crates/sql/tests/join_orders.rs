//! Orders of joins that follow from what conditions without an index let through, which is
//! seen in some of the rows; and from what a disjunction says of each table alone.

mod support;

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::MemoryDisk;
use fulgurite_sql::session::{Engine, Session};
use fulgurite_store::{Options, Store};
use support::{must, run, same};

/// 4,000 parts and ten lines of each, in whose index they may be looked up.
const FILL: &str = "
    CREATE TABLE part(id INTEGER PRIMARY KEY, name TEXT, size INT, brand TEXT, note TEXT, big BLOB);
    CREATE TABLE line(id INTEGER PRIMARY KEY, part INT, supplier INT, quantity INT, mode TEXT);
    CREATE TABLE supplier(id INTEGER PRIMARY KEY, name TEXT, nation INT);
    CREATE TABLE nation(id INTEGER PRIMARY KEY, name TEXT);
    CREATE INDEX line_part ON line(part);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 4000)
        INSERT INTO part SELECT i, iif(i % 500, 'plain', 'brass') || ' part ' || i, i % 400,
            'Brand#' || i % 300, iif(i % 400, NULL, 'noted'), NULL FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 40000)
        INSERT INTO line SELECT i, i * 7919 % 4000 + 1, i % 200 + 1, i % 50,
            iif(i % 7, 'RAIL', 'AIR') FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200)
        INSERT INTO supplier SELECT i, 'supplier ' || i, i % 25 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 25)
        INSERT INTO nation SELECT i, 'nation ' || i FROM n;";

fn filled() -> Session {
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, Path::new("/test.db"), Options::default());
    let session = Engine::open(store.unwrap()).unwrap().session();
    must(&session, FILL);
    session
}

fn plan(session: &Session, sql: &str) -> String {
    run(session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n")
}

/// A table that few rows are left of comes first, and its partners are looked up.
#[test]
fn what_is_rare_comes_first_whatever_the_condition_says() {
    let session = filled();
    let rare = [
        "size = 17",
        "name LIKE '%brass%'",
        "name GLOB 'brass*'",
        "NOT (name LIKE '%plain%')",
        "name NOT LIKE 'plain%'",
        "note IS NOT NULL",
        "note = 'noted'",
        "brand IN ('Brand#7', 'Brand#8')",
        "(brand = 'Brand#7' AND size < 100 OR brand = 'Brand#8')",
        "size BETWEEN 20 AND 22",
        "size > 397",
        "size IS 5",
    ];
    let common = [
        "size <> 17",
        "name LIKE '%plain%'",
        "NOT (name LIKE '%brass%')",
        "note IS NULL",
        "brand NOT IN ('Brand#7', 'Brand#8')",
        "size NOT BETWEEN 20 AND 22",
        "size < 397",
    ];
    for (conditions, is_rare) in [(&rare[..], true), (&common[..], false)] {
        for condition in conditions {
            let sql = format!(
                "SELECT sum(quantity) FROM line JOIN part ON part.id = line.part WHERE {condition}"
            );
            let shown = plan(&session, &sql);
            assert_eq!(shown.contains("line_part"), is_rare, "{condition}: {shown}");
        }
    }
}

/// Of `part` alone this says that its brand is one of two, of `line` that its mode is.
#[test]
fn a_disjunction_says_something_of_each_table() {
    let session = filled();
    let sql = "SELECT count(*), sum(quantity) FROM line, part
         WHERE part.id = part AND brand = 'Brand#12' AND quantity < 20 AND mode IN ('AIR', 'SEA')
            OR part.id = part AND brand = 'Brand#23' AND quantity > 30 AND mode = 'AIR'";
    let shown = plan(&session, sql);
    assert!(shown.contains("line_part"), "{shown}");
    assert!(shown.contains("IN ('Brand#12', 'Brand#23')"), "{shown}");
}

#[test]
fn disjunctions_of_several_tables_choose_the_same_rows_as_in_sqlite() {
    let conditions = [
        "a.x = 1 AND b.y = 2 OR a.x = 3 AND b.y = 4",
        "a.x = 1 AND b.y = 2 OR a.x IS NULL AND b.y IS NULL",
        "a.x = 1 OR b.y = 4",
        "a.x = b.y AND a.x > 1 OR b.y = 2 AND a.x < 2",
        "a.x = 1 AND b.y = 2 OR a.x = 3",
        "NOT (a.x = 1 AND b.y = 2 OR a.x = 3 AND b.y = 4)",
        "a.x = 1 AND b.y = 2 AND c.z = 5 OR a.x = 3 AND c.z IS NULL AND b.y = 4",
        "a.x IN (SELECT z FROM c) AND b.y = 2 OR a.x = 3 AND b.y = 4",
        "a.x = 1 AND c.z = 5 OR c.z IS NULL AND a.x = 3",
    ];
    let fill = "
        CREATE TABLE a(id INTEGER PRIMARY KEY, x INT);
        CREATE TABLE b(id INTEGER PRIMARY KEY, y INT);
        CREATE TABLE c(id INTEGER PRIMARY KEY, z INT);
        INSERT INTO a(x) VALUES (1), (2), (3), (NULL), (1);
        INSERT INTO b(y) VALUES (2), (4), (NULL), (1), (3);
        INSERT INTO c(z) VALUES (5), (NULL), (1), (3);";
    for condition in conditions {
        for join in ["a, b, c", "a JOIN b LEFT JOIN c ON c.z = a.x"] {
            same(&format!(
                "{fill} SELECT a.id, b.id, c.id FROM {join} WHERE {condition} ORDER BY 1, 2, 3"
            ));
        }
    }
}

/// The few nations are next to nothing to pair with, and were paired with the lines before
/// the suppliers between them.
#[test]
fn tables_that_nothing_connects_yet_wait() {
    let session = filled();
    let sql = "SELECT count(*) FROM part, line, supplier, nation
         WHERE part.id = part AND supplier.id = supplier AND nation.id = nation
           AND size = 17 AND nation.name = 'nation 3'";
    let shown = plan(&session, sql);
    let at = |table: &str| shown.find(table);
    let [part, line, supplier, nation] = [
        at("SCAN part"),
        at("line_part"),
        at("SCAN supplier").or(at("LOOKUP supplier")),
        at("SCAN nation").or(at("LOOKUP nation")),
    ];
    assert!(part.is_some() && part < line, "{shown}");
    assert!(line < supplier && supplier < nation, "{shown}");
}

/// What is far larger than a leaf is not read for an estimate; there may be nothing else.
#[test]
fn rows_that_are_larger_than_a_leaf_are_not_looked_at() {
    let session = filled();
    must(
        &session,
        "UPDATE part SET big = zeroblob(100000) WHERE id <= 600",
    );
    let sql = "SELECT sum(quantity) FROM line JOIN part ON part.id = line.part WHERE size = 17";
    let before = plan(&session, sql);
    assert!(before.contains("line_part"), "{before}");
    let expected = run(&session, sql);
    must(&session, "UPDATE part SET big = zeroblob(9000)");
    assert_eq!(run(&session, sql), expected);
}
