//! Plans that follow from how many rows share a key. Nothing was known of that: any key of
//! an index that is not unique counted as ten rows.

mod support;

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::MemoryDisk;
use fulgurite_sql::session::{Engine, Session, Step};
use fulgurite_store::{Options, Store};
use support::{must, run};

fn engine() -> Engine {
    let disk = Arc::new(MemoryDisk::new());
    let store = Store::open_on(disk, Path::new("/test.db"), Options::default());
    Engine::open(store.unwrap()).unwrap()
}

const ORDERS: i64 = 20_000;

/// 3 statuses, 10 regions and 2,000 customers; 20 cities.
fn fill(session: &Session) {
    must(
        session,
        &format!(
            "CREATE TABLE orders(id INTEGER PRIMARY KEY, status INT, customer INT, region INT, amount INT);
             CREATE INDEX by_status ON orders(status);
             CREATE INDEX by_customer ON orders(customer);
             CREATE INDEX by_region ON orders(region, amount);
             CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, city INT);
             CREATE INDEX by_city ON customers(city);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ORDERS})
                 INSERT INTO orders SELECT i, i % 3, i * 7919 % 2000, i % 10, i FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)
                 INSERT INTO customers SELECT i, 'name ' || i, i % 20 FROM n"
        ),
    );
}

fn plan(session: &Session, sql: &str) -> String {
    run(session, &format!("EXPLAIN QUERY PLAN {sql}")).join("\n")
}

#[test]
fn the_index_whose_keys_fewer_rows_share_is_taken() {
    let engine = engine();
    let session = engine.session();
    fill(&session);
    let cases = [
        ("status = 1 AND customer = 7", "by_customer"),
        ("customer = 7 AND status = 1", "by_customer"),
        ("status = 1 AND region = 3", "by_region"),
        (
            "status IN (1, 2) AND customer IN (1, 2, 3, 4)",
            "by_customer",
        ),
        // Which rows one asks for need not be like most: an index is better than none.
        ("status = 1", "by_status"),
    ];
    for (condition, index) in cases {
        let shown = plan(
            &session,
            &format!("SELECT amount FROM orders WHERE {condition}"),
        );
        assert!(shown.contains(index), "{condition}: {shown}");
    }
}

#[test]
fn joins_are_ordered_by_how_many_rows_a_key_has() {
    let engine = engine();
    let session = engine.session();
    fill(&session);
    let few = "SELECT sum(amount) FROM orders JOIN customers ON customer = customers.id \
               WHERE status = 1 AND city = 7";
    let shown = plan(&session, few);
    let [city, customer] = ["by_city", "by_customer"].map(|index| shown.find(index));
    assert!(city.is_some() && city < customer, "{shown}");
    let many = "SELECT sum(amount) FROM customers JOIN orders ON region = city \
                WHERE customers.id < 1000";
    let shown = plan(&session, many);
    assert!(shown.contains("HASH JOIN"), "{shown}");
    // Both parts of the index together are one row's.
    let one = "SELECT sum(amount) FROM orders JOIN customers ON customer = customers.id \
               WHERE region = 3 AND amount = 13";
    let shown = plan(&session, one);
    let [region, customer] = ["by_region", "LOOKUP customers"].map(|part| shown.find(part));
    assert!(region.is_some() && region < customer, "{shown}");
}

/// The entries of an index that an open transaction has made, too, and without reading them
/// for its commit.
#[test]
fn samples_are_of_what_a_transaction_sees_and_no_reads() {
    let engine = engine();
    let (session, other) = (engine.session(), engine.session());
    must(&session, "BEGIN");
    fill(&session);
    let choice = "SELECT amount FROM orders WHERE status = 1 AND customer = 7";
    assert!(plan(&session, choice).contains("by_customer"));
    must(
        &session,
        "COMMIT; CREATE INDEX both ON orders(status, customer)",
    );

    must(
        &session,
        "BEGIN; UPDATE customers SET name = 'new' WHERE id = 1",
    );
    assert!(plan(&session, choice).contains("both"));
    must(
        &other,
        "UPDATE orders SET status = 5, customer = 9 WHERE id = 77",
    );
    must(&session, "COMMIT");
}

/// Made for a small table, a plan is made anew for a large one, and so is what is known.
#[test]
fn what_is_known_follows_the_table() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE INDEX j ON t(b)",
    );
    let grow = |a: &str, b: &str| {
        let sql = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
             INSERT INTO t SELECT {a}, {b} FROM n"
        );
        must(&session, &sql);
    };
    grow("i", "1");
    let choice = "SELECT * FROM t WHERE a = 1 AND b = 1";
    assert!(plan(&session, choice).contains("INDEX i"));
    must(&session, "DELETE FROM t");
    grow("1", "i");
    grow("1", "-i");
    grow("1", "i + 0.5");
    assert!(plan(&session, choice).contains("INDEX j"));
}

/// A statement that finds the schema changed is compiled again, and samples, while it holds
/// its locks.
#[test]
fn statements_that_are_compiled_again_sample_too() {
    let engine = engine();
    let (session, other) = (engine.session(), engine.session());
    fill(&session);
    let sql = "UPDATE orders SET amount = -1 WHERE status = 1 AND customer = 7";
    let mut update = session.prepare(sql).unwrap().0.unwrap();
    for columns in ["status, customer", "customer, status"] {
        must(
            &other,
            &format!("DROP INDEX IF EXISTS both; CREATE INDEX both ON orders({columns})"),
        );
        while update.step().unwrap() == Step::Row {}
        update.reset();
        assert!(plan(&session, sql).contains("both"));
    }
    let changed = "SELECT count(*) FROM orders WHERE amount = -1";
    assert_eq!(run(&session, changed), ["4"]);
    assert_eq!(run(&session, "PRAGMA integrity_check"), ["'ok'"]);
}

/// A quarter of the rows counted as within any bound, so that the last minute of a year was
/// worth a scan where it was an alternative, and a whole year worth an index.
#[test]
fn a_range_costs_what_lies_in_it() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE events(id INTEGER PRIMARY KEY, at INT, back INT, kind INT, note TEXT);
         CREATE INDEX by_at ON events(at);
         CREATE INDEX by_back ON events(back DESC);
         CREATE INDEX by_kind ON events(kind);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
             INSERT INTO events SELECT i, i, iif(i > 10000, i), i % 2000, 'note' FROM n",
    );
    let cases: &[(&str, &[&str])] = &[
        ("at > 19900", &["by_at"]),
        ("at > '19900'", &["by_at"]),
        ("at > 300", &[]),
        ("at BETWEEN 300 AND 320", &["by_at"]),
        ("at BETWEEN 300 AND 19000", &[]),
        ("at < 30", &["by_at"]),
        ("at < 19000", &[]),
        // Half of these are NULL, which no bound lets through.
        ("back < 10030", &["by_back"]),
        ("back <= 19000", &[]),
        ("back > 19900", &["by_back"]),
        ("back > 10001", &[]),
        ("back > 12000 AND back < 12010", &["by_back"]),
        ("kind = 5 OR at > 19990", &["by_kind", "by_at"]),
        ("kind = 5 OR at > 100", &[]),
        ("kind = 5 AND id < 10000", &["by_kind"]),
        ("id > 19995 AND at < 15000", &[]),
        ("id > 10 AND at > 19000", &["by_at"]),
        ("at > 19990 AND back > 15000", &["by_at"]),
        ("at > 15000 AND back > 19990", &["by_back"]),
    ];
    for (condition, indexes) in cases {
        let sql = format!("SELECT count(note) FROM events WHERE {condition}");
        let shown = plan(&session, &sql);
        for index in ["by_at", "by_back", "by_kind"] {
            let is_used = shown.contains(index);
            assert_eq!(is_used, indexes.contains(&index), "{condition}: {shown}");
        }
    }
}

/// Entries are counted where they lie: in a tree that grows at its end the last of two
/// halves has just begun.
#[test]
fn what_is_newest_is_little() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE log(id INTEGER PRIMARY KEY, at TEXT, note TEXT);
         CREATE INDEX by_at ON log(at)",
    );
    let mut rows = 0;
    for _ in 0..12 {
        must(
            &session,
            &format!(
                "WITH RECURSIVE n(i) AS (SELECT {rows} UNION ALL SELECT i + 1 FROM n LIMIT 5000)
                 INSERT INTO log SELECT i, format('the time was %09d', i), 'note' FROM n"
            ),
        );
        rows += 5000;
        let of_last = |count: i64| {
            let at = format!("the time was {:09}", rows - count);
            let sql = format!("SELECT count(note) FROM log WHERE at >= '{at}'");
            plan(&session, &sql)
        };
        let (few, most) = (of_last(20), of_last(rows - 20));
        assert!(few.contains("by_at"), "{rows}: {few}");
        assert!(!most.contains("by_at"), "{rows}: {most}");
    }
}

/// A LIMIT was left out of account: of the rows that a subquery could find, the next few of a
/// queue, each was taken to be a key, so that the whole table was read in place of these.
#[test]
fn a_limit_tells_how_many_keys_a_subquery_brings() {
    let engine = engine();
    let session = engine.session();
    fill(&session);
    let next = "SELECT id FROM orders WHERE status = 1 ORDER BY id";
    for limit in ["1", "10 OFFSET 5", "?", "2 * 5"] {
        let found = format!("SELECT amount FROM orders WHERE id IN ({next} LIMIT {limit})");
        let shown = plan(&session, &found);
        assert!(shown.contains("each of subquery"), "{limit}: {shown}");
        let taken = format!("UPDATE orders SET status = 2 WHERE id IN ({next} LIMIT {limit})");
        let shown = plan(&session, &taken);
        assert!(shown.contains("each of subquery"), "{limit}: {shown}");
    }
    for limit in ["-1", "15000"] {
        let all = format!("SELECT amount FROM orders WHERE id IN ({next} LIMIT {limit})");
        let shown = plan(&session, &all);
        assert!(!shown.contains("each of subquery"), "{limit}: {shown}");
    }
}

/// While most of a table's rows were in an index of some of them, the first ones were looked
/// for in the table, where those that are in it no more pile up before them.
#[test]
fn the_first_rows_of_a_partial_index_are_found_in_it() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE job(id INTEGER PRIMARY KEY, state TEXT, payload TEXT);
         CREATE INDEX ready ON job(id) WHERE state = 'ready'",
    );
    let next = "SELECT id FROM job WHERE state = 'ready' ORDER BY id LIMIT 1";
    for _ in 0..3 {
        let shown = plan(&session, next);
        assert!(shown.contains("USING COVERING INDEX ready"), "{shown}");
        must(
            &session,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 150)
                 INSERT INTO job(state, payload) SELECT 'ready', 'a job' FROM n",
        );
    }
    let all = plan(&session, "SELECT payload FROM job WHERE state = 'ready'");
    assert!(all.contains("SCAN job ["), "{all}");
}

/// A bound without a value let a quarter of the rows through, so that whoever asks for what is
/// new since he last asked read whole tables: through no index, and into a hash table.
#[test]
fn a_range_that_nobody_knows_yet_is_small() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE events(id INTEGER PRIMARY KEY, at INT, kind INT, note TEXT);
         CREATE INDEX by_at ON events(at);
         CREATE INDEX by_kind ON events(kind);
         CREATE TABLE kinds(id INTEGER PRIMARY KEY, name TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
             INSERT INTO events SELECT i, i, i % 2000, 'note' FROM n;
         INSERT INTO kinds SELECT id, 'kind ' || id FROM events",
    );
    let newest = "(SELECT max(id) - 5 FROM events)";
    let cases = [
        ("SELECT note FROM events WHERE at > ?1", "INDEX by_at"),
        (
            "SELECT note FROM events WHERE at BETWEEN ?1 AND ?1 + 60",
            "INDEX by_at",
        ),
        (
            "SELECT id FROM events WHERE kind = 5 AND id > ?1",
            "INDEX by_kind",
        ),
        (
            "SELECT e.id, name FROM events e JOIN kinds k ON k.id = e.kind WHERE e.id > ?1",
            "LOOKUP kinds",
        ),
        (
            &format!(
                "SELECT name FROM events e JOIN kinds k ON k.id = e.kind WHERE e.id > {newest}"
            ),
            "LOOKUP kinds",
        ),
        (
            &format!("SELECT name FROM kinds k JOIN events e ON k.id = e.kind WHERE at > {newest}"),
            "LOOKUP kinds",
        ),
        ("DELETE FROM events WHERE at < 100", "INDEX by_at"),
        (
            "UPDATE events SET note = 'old' WHERE at < ?1",
            "INDEX by_at",
        ),
        // One that is another for each row is not.
        (
            "SELECT (SELECT count(note) FROM events e WHERE e.at > k.id) FROM kinds k",
            "SCAN events",
        ),
        (
            "SELECT name FROM events e JOIN kinds k ON k.id = e.kind",
            "HASH JOIN",
        ),
    ];
    for (sql, part) in cases {
        let shown = plan(&session, sql);
        assert!(shown.contains(part), "{sql}: {shown}");
    }
}

/// A way up a tree of 1,000 nodes read them all, twice: it was planned for as many rows as
/// a recursion of which nothing is known.
#[test]
fn a_walk_over_a_small_table_looks_up_what_it_reaches() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE node(id INTEGER PRIMARY KEY, parent INT, n INT);
         CREATE INDEX children ON node(parent);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)
             INSERT INTO node SELECT i, i / 2, 1 FROM n",
    );
    let up = "WITH RECURSIVE up(id) AS (SELECT 1000 UNION ALL \
              SELECT parent FROM node JOIN up USING (id) WHERE parent > 0)";
    let down = "WITH RECURSIVE down(id) AS (SELECT 100 UNION ALL \
                SELECT node.id FROM node JOIN down ON parent = down.id)";
    let cases = [
        (
            up,
            "SELECT sum(n) FROM node WHERE id IN (SELECT id FROM up)",
            "10",
        ),
        (up, "SELECT sum(n) FROM up JOIN node USING (id)", "10"),
        (
            down,
            "SELECT sum(n) FROM node WHERE id IN (SELECT id FROM down)",
            "15",
        ),
        (down, "SELECT sum(n) FROM down JOIN node USING (id)", "15"),
    ];
    for (walk, query, sum) in cases {
        let sql = format!("{walk} {query}");
        let shown = plan(&session, &sql);
        assert!(!shown.contains("SCAN node"), "{sql}: {shown}");
        assert_eq!(run(&session, &sql), [sum], "{sql}");
    }
    // Nor is a table of a few rows read again for each that a walk comes by.
    must(&session, "DELETE FROM node WHERE id > 100");
    let shown = plan(&session, &format!("{up} SELECT count(*) FROM up"));
    assert!(!shown.contains("MATERIALIZE"), "{shown}");
}

/// EXPLAIN of what only guesses knew the values it was asked about, and showed an index that
/// was not the one that was gone by. A subquery of it, which writes nothing, knows them.
#[test]
fn explain_shows_what_runs() {
    let engine = engine();
    let session = engine.session();
    must(
        &session,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, up INT, down INT, found INT);
         CREATE INDEX by_up ON t(up); CREATE INDEX by_down ON t(down);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)
             INSERT INTO t SELECT i, i, -i, 0 FROM n",
    );
    let few = "up > 10 AND down > -14";
    assert!(plan(&session, &format!("SELECT id FROM t WHERE {few}")).contains("by_down"));
    let delete = format!("DELETE FROM t WHERE {few} RETURNING id");
    let shown = plan(&session, &delete);
    assert!(shown.contains("by_up"), "{shown}");
    assert_eq!(run(&session, &delete), ["11", "12", "13"]);
    let update = format!("UPDATE t SET found = (SELECT count(*) FROM t WHERE {few}) WHERE id = 1");
    let shown = plan(&session, &update);
    assert!(shown.contains("by_down"), "{shown}");
}
