//! Orders of joins that follow from what conditions without an index let through, which is
//! seen in some of the rows; from what a disjunction says of each table alone; from columns
//! that are equal because both equal a third one.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Session;
use support::{must, run, same, session};

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
    let session = session();
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

/// Nothing compares nation with customer, but both equal supplier.
#[test]
fn columns_that_equal_a_third_one_are_equal() {
    let session = filled();
    must(
        &session,
        "CREATE TABLE customer(id INTEGER PRIMARY KEY, nation INT, name TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
             INSERT INTO customer SELECT i, i % 25, 'customer ' || i FROM n",
    );
    let sql = "SELECT count(*) FROM customer, supplier, nation
         WHERE customer.nation = supplier.nation AND supplier.nation = nation.id
           AND customer.name = 'customer 17'";
    let shown = plan(&session, sql);
    let [customer, nation, supplier] =
        ["SCAN customer", "nation", "supplier"].map(|table| shown.find(table));
    assert!(customer < nation && nation < supplier, "{shown}");
    assert_eq!(run(&session, sql), ["8"]);
}

/// Equality goes on only where all are compared alike: '1' equals 1 in a column of numbers,
/// and 'A' equals 'a' without regard to case, but not what these are equal to otherwise.
#[test]
fn what_is_compared_otherwise_is_not_equal_to_a_third_one() {
    let columns = ["INT", "TEXT", "TEXT COLLATE NOCASE", "", "REAL"];
    for a in columns {
        for b in columns {
            for c in columns {
                same(&format!(
                    "CREATE TABLE a(x {a}); CREATE TABLE b(y {b}); CREATE TABLE c(z {c});
                     CREATE INDEX az ON a(x); CREATE INDEX cz ON c(z);
                     INSERT INTO a VALUES (1), ('1'), ('a'), ('A'), (1.0), (NULL), ('01');
                     INSERT INTO b SELECT x FROM a; INSERT INTO c SELECT x FROM a;
                     SELECT count(*), sum(x = z), min(typeof(x)), max(typeof(z))
                         FROM a, b, c WHERE x = y AND y = z;
                     SELECT count(*) FROM a, b, c WHERE x = y AND y = z AND z = x;
                     SELECT count(*) FROM a LEFT JOIN b ON x = y LEFT JOIN c ON y = z
                         WHERE x = z OR z IS NULL"
                ));
            }
        }
    }
}

fn shuffle<T>(random: &mut Random, list: &mut [T]) {
    for at in (1..list.len()).rev() {
        list.swap(at, random.below(at as u64 + 1) as usize);
    }
}

/// Joins that cost enough for rows to be looked at and all orders to be weighed.
#[test]
fn joins_of_several_tables_choose_the_same_rows_as_in_sqlite() {
    const TABLES: [(&str, usize); 5] = [("a", 3000), ("b", 2500), ("c", 900), ("d", 60), ("e", 9)];
    let mut text = String::new();
    for (at, (table, rows)) in TABLES.iter().enumerate() {
        let by = [7919, 6007, 4001, 37, 5][at];
        text += &format!(
            "CREATE TABLE {table}(id INTEGER PRIMARY KEY, k INT, l INT, s TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows})
                 INSERT INTO {table} SELECT i, iif(i % 41, i * {by} % 1000, NULL), i % 97,
                     'text ' || i % 13 FROM n;"
        );
    }
    text +=
        "CREATE INDEX ak ON a(k, l); CREATE INDEX bl ON b(l); CREATE UNIQUE INDEX cu ON c(id, k);";
    let mut random = Random(82);
    for _ in 0..120 {
        let mut tables = TABLES.map(|(table, _)| table);
        shuffle(&mut random, &mut tables);
        let tables = &tables[..3 + random.below(3) as usize];
        let mut conditions = Vec::new();
        for (at, table) in tables.iter().enumerate().skip(1) {
            let other = *random.pick(&tables[..at]);
            let column = *random.pick(&["id", "k", "k"]);
            conditions.push(match random.below(2) {
                0 => format!("{table}.k = {other}.{column}"),
                _ => format!("{other}.{column} = {table}.id"),
            });
        }
        for _ in 0..random.below(3) {
            let table = *random.pick(tables);
            let other = *random.pick(tables);
            conditions.push(match random.below(6) {
                0 => format!("{table}.l = {}", random.below(97)),
                1 => format!("{table}.s LIKE '%{}'", random.below(13)),
                2 => format!("{table}.id < {}", random.below(3000)),
                3 => format!(
                    "({table}.l < 30 AND {other}.l = 5 OR {table}.l = 40 AND {other}.l > 50)"
                ),
                4 => format!("EXISTS (SELECT 1 FROM c AS x WHERE x.k = {table}.k AND x.l < 50)"),
                _ => format!("{table}.l <> {other}.l"),
            });
        }
        shuffle(&mut random, &mut conditions);
        let sums = tables.iter().map(|table| format!("sum({table}.l)"));
        text += &format!(
            "SELECT count(*), {} FROM {} WHERE {};",
            sums.collect::<Vec<_>>().join(", "),
            tables.join(", "),
            conditions.join(" AND ")
        );
    }
    same(&text);
}

/// A view of all customers' sums was made as a whole for the sake of one customer, who was
/// asked for by name of the other table.
#[test]
fn a_grouped_query_is_asked_for_what_it_equals() {
    let session = filled();
    let grouped = "(SELECT supplier, sum(quantity) AS sizes FROM line GROUP BY supplier)";
    for (sql, of) in [
        (
            format!(
                "SELECT sizes FROM supplier JOIN {grouped} g ON g.supplier = supplier.id WHERE supplier.id = 7"
            ),
            "SELECT sum(quantity) FROM line WHERE supplier = 7",
        ),
        (
            format!(
                "SELECT sizes FROM {grouped} g, supplier WHERE 7 = supplier.id AND supplier.id = g.supplier"
            ),
            "SELECT sum(quantity) FROM line WHERE supplier = 7",
        ),
    ] {
        let shown = plan(&session, &sql);
        assert!(shown.contains("FILTER $0=7"), "{shown}");
        assert_eq!(run(&session, &sql), run(&session, of), "{sql}");
    }
}

/// What is equal to a value is equal to what that equals, if all are compared alike.
#[test]
fn what_is_compared_otherwise_has_not_the_value_of_another_one() {
    let columns = ["INT", "TEXT", "TEXT COLLATE NOCASE", "", "REAL"];
    let values = ["1", "'1'", "1.0", "'a'", "'A'", "'01'", "NULL"];
    for a in columns {
        for b in columns {
            let tables = format!(
                "CREATE TABLE a(x {a}); CREATE TABLE b(y {b});
                 INSERT INTO a VALUES (1), ('1'), ('a'), ('A'), (1.0), (NULL), ('01');
                 INSERT INTO b SELECT x FROM a; INSERT INTO b SELECT x FROM a"
            );
            let queries = values.map(|value| {
                format!(
                    "SELECT count(*), sum(n), min(typeof(y)) FROM a, \
                         (SELECT y, count(*) AS n FROM b GROUP BY y) WHERE x = y AND x = {value};
                     SELECT count(*) FROM a, (SELECT DISTINCT y FROM b) \
                         WHERE y = x AND {value} = y;
                     SELECT count(*) FROM a LEFT JOIN (SELECT DISTINCT y FROM b) ON y = x \
                         WHERE x = {value};
                     SELECT count(*) FROM a, (SELECT y FROM b UNION ALL SELECT x FROM a) \
                         WHERE y = x AND x = {value} COLLATE NOCASE"
                )
            });
            same(&format!("{tables}; {}", queries.join("; ")));
        }
    }
}

/// A thousand rows were guessed of any query in FROM: for two values a table was read and
/// hashed.
#[test]
fn few_rows_of_a_query_are_joined_by_lookups() {
    let session = filled();
    for few in [
        "(VALUES (3), (4))",
        "(SELECT 3 UNION ALL SELECT 4)",
        "(WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n)",
        "(SELECT max(id) FROM nation)",
    ] {
        let sql = format!(
            "WITH few(id) AS (SELECT * FROM {few}) SELECT count(*) FROM few JOIN part USING (id)"
        );
        let shown = plan(&session, &sql);
        assert!(shown.contains("LOOKUP part"), "{sql}: {shown}");
    }
    // The more there are, the more they cost.
    let many: Vec<String> = (0..500).map(|i| format!("({i})")).collect();
    let sql = format!(
        "WITH many(id) AS (VALUES {}) SELECT count(*) FROM many JOIN supplier USING (id)",
        many.join(", ")
    );
    assert!(!plan(&session, &sql).contains("LOOKUP supplier"));
}
