//! UNION, INTERSECT and EXCEPT beside bundled SQLite: their rows come in order, also where
//! that is asked for by ORDER BY, by a compound around them, or by nobody.

mod common;
mod support;

use common::Random;
use support::same;

const TABLES: &str = "CREATE TABLE a(id INTEGER PRIMARY KEY, x INT, s TEXT);
    CREATE TABLE b(id INTEGER PRIMARY KEY, x INT, s TEXT);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
        INSERT INTO a SELECT i, i * 7 % 23, substr('abcdefgh', 1 + i * 5 % 8, 1 + i % 2) FROM c;
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40)
        INSERT INTO b SELECT i, nullif(i * 3 % 19, 4), substr('hgfedcba', 1 + i * 3 % 8, 1 + i % 3) FROM c;";

/// What is around a compound `{}` whose columns are x and s.
const AROUND: [&str; 10] = [
    "{}",
    "SELECT count(*), sum(x), min(s) FROM ({})",
    "SELECT group_concat(x || s, ' ') FROM ({})",
    "SELECT * FROM ({})",
    "SELECT s, x FROM ({}) WHERE x > 3 LIMIT 7",
    "SELECT x % 3, count(*) FROM ({}) GROUP BY 1",
    "SELECT id FROM a WHERE (x, s) IN ({}) ORDER BY id",
    "SELECT id, EXISTS ({}) FROM b WHERE id < 3",
    "SELECT (SELECT x FROM ({})), (SELECT s FROM ({}) LIMIT 1 OFFSET 4)",
    "WITH w AS ({}) SELECT count(*), (SELECT group_concat(s, '') FROM w) FROM w",
];

fn arm(random: &mut Random) -> String {
    let table = random.pick(&["a", "b"]);
    let condition = random.pick(&["", " WHERE id % 3 > 0", " WHERE x < 12", " WHERE s > 'c'"]);
    format!("SELECT x, s FROM {table}{condition}")
}

fn compound(random: &mut Random) -> String {
    let mut text = arm(random);
    for _ in 0..1 + random.below(3) {
        let op = random.pick(&["UNION", "UNION", "INTERSECT", "EXCEPT", "UNION ALL"]);
        text = format!("{text} {op} {}", arm(random));
    }
    text
}

/// Two sorts of the same rows, by their columns and by ORDER BY, became one, and there is
/// none where nobody sees the order.
#[test]
fn compounds_come_in_order() {
    let orders = [
        "",
        "",
        " ORDER BY 1",
        " ORDER BY 2 DESC",
        " ORDER BY 2, 1 DESC",
    ];
    let limits = ["", "", " LIMIT 5", " LIMIT 6 OFFSET 3", " LIMIT 0"];
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut sql = TABLES.to_owned();
        for _ in 0..25 {
            let compound = compound(&mut random);
            // Of equal rows behind a UNION ALL any may come first.
            let order = match compound.contains("UNION ALL") {
                true => random.pick(&["", " ORDER BY 1, 2", " ORDER BY 2 DESC, 1"]),
                false => random.pick(&orders),
            };
            let whole = format!("{compound}{order}{}", random.pick(&limits));
            sql.push_str(&random.pick(&AROUND).replace("{}", &whole));
            sql.push_str(";\n");
        }
        same(&sql);
    }
}
