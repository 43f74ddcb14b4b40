//! Rows with large texts and blobs, of which only the start lies beside the key: rows,
//! errors and counts must be SQLite's, whichever columns a statement reads or changes.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Session;
use rusqlite::Connection;

/// Columns of a table by chance; large values come to any of them.
struct Table {
    columns: Vec<String>,
}

impl Table {
    fn create(random: &mut Random) -> (Self, String) {
        let count = *random.pick(&[2, 3, 5, 15, 16, 17, 34]);
        let columns: Vec<String> = (0..count).map(|i| format!("c{i}")).collect();
        let mut sql = "CREATE TABLE t(id INTEGER PRIMARY KEY".to_owned();
        let strict = random.below(5) == 0;
        for column in &columns {
            let kinds = match strict {
                true => ["ANY", "ANY", "ANY NOT NULL DEFAULT 'd'"],
                false => ["", "INT", "TEXT NOT NULL DEFAULT 'd'"],
            };
            sql += &format!(", {column} {}", random.pick(&kinds));
            if random.below(9) == 0 {
                sql += &format!(" CHECK (length({column}) <> 3)");
            }
        }
        sql += if strict { ") STRICT;" } else { ");" };
        for (name, on) in [("a", "c0"), ("b", "substr(c1, 1, 3), c0"), ("c", "c1")] {
            if random.below(3) == 0 {
                let unique = *random.pick(&["", "", "UNIQUE"]);
                let some = *random.pick(&["", "", " WHERE length(c1) > 100"]);
                sql += &format!("CREATE {unique} INDEX t_{name} ON t({on}){some};");
            }
        }
        if random.below(6) == 0 {
            sql += "CREATE TABLE log(old, new);
                CREATE TRIGGER tr AFTER UPDATE OF c0 ON t BEGIN
                    INSERT INTO log VALUES (length(old.c1), length(new.c1)); END;";
        }
        (Self { columns }, sql)
    }

    fn column<'t>(&'t self, random: &mut Random) -> &'t str {
        random.pick::<String>(&self.columns)
    }

    /// What a column may be given.
    fn value(&self, random: &mut Random) -> String {
        let small = |random: &mut Random| match random.below(5) {
            0 => "NULL".to_owned(),
            1 => random.below(9).to_string(),
            2 => (random.next() as i64 / 2).to_string(),
            3 => format!("'text {}'", random.below(1000)),
            _ => format!("{}.25", random.below(100)),
        };
        let length = |random: &mut Random| match random.below(4) {
            0 => random.below(300),
            1 => 900 + random.below(300),
            2 => 4_000 + random.below(300),
            _ => random.below(30_000),
        };
        match random.below(8) {
            0..4 => small(random),
            4 | 5 => format!(
                "replace(hex(zeroblob({})), '00', 'a{}')",
                length(random),
                random.below(10)
            ),
            6 => format!("zeroblob({})", length(random)),
            _ => self.column(random).to_owned(),
        }
    }

    fn condition(&self, random: &mut Random) -> String {
        let column = self.column(random);
        match random.below(7) {
            0..3 => format!("id = {}", 1 + random.below(12)),
            3 => format!("id > {}", random.below(12)),
            4 => format!("length({column}) > {}", random.below(5_000)),
            5 => format!("c0 = {}", random.below(9)),
            _ => format!("{column} IS NOT NULL"),
        }
    }

    fn statement(&self, random: &mut Random) -> String {
        let or = *random.pick(&["", "", "", "OR IGNORE", "OR REPLACE", "OR FAIL"]);
        match random.below(20) {
            0..5 => {
                let values: Vec<_> = self
                    .columns
                    .iter()
                    .map(|_| self.no_column(random))
                    .collect();
                let id = match random.below(2) {
                    0 => "NULL".to_owned(),
                    _ => (1 + random.below(12)).to_string(),
                };
                format!("INSERT {or} INTO t VALUES ({id}, {})", values.join(", "))
            }
            5..14 => {
                let mut sets: Vec<_> = (0..1 + random.below(3))
                    .map(|_| self.column(random).to_owned())
                    .collect();
                sets.sort();
                sets.dedup();
                let set = sets.iter().map(|column| {
                    let value = match random.below(4) {
                        0 => format!("length({})", self.column(random)),
                        _ => self.value(random),
                    };
                    format!("{column} = {value}")
                });
                let set: Vec<_> = set.collect();
                let returning = *random.pick(&["", "", "", " RETURNING id, length(c1)"]);
                // Several rows may meet each other in a unique index: one has an order.
                let or = if returning.is_empty() { or } else { "" };
                format!(
                    "UPDATE {or} t SET {} WHERE {}{returning}",
                    set.join(", "),
                    self.condition(random)
                )
            }
            14 => format!("DELETE FROM t WHERE {}", self.condition(random)),
            15 => "BEGIN".to_owned(),
            16 => (*random.pick(&["COMMIT", "ROLLBACK"])).to_owned(),
            17 => "SAVEPOINT s".to_owned(),
            18 => (*random.pick(&["ROLLBACK TO s", "RELEASE s"])).to_owned(),
            _ => {
                let (first, second) = (self.column(random), self.column(random));
                let what = match random.below(5) {
                    0 => format!("id, {first}"),
                    1 => format!("typeof({first}), length({second})"),
                    2 => format!("substr({first}, 200, 9), substr({second}, -7)"),
                    3 => format!("count({first}), count(DISTINCT {second})"),
                    _ => "*".to_owned(),
                };
                format!("SELECT {what} FROM t WHERE {}", self.condition(random))
            }
        }
    }

    /// A value that reads no column.
    fn no_column(&self, random: &mut Random) -> String {
        loop {
            let value = self.value(random);
            if !value.starts_with('c') {
                return value;
            }
        }
    }
}

fn both(ours: &Session, theirs: &Connection, sql: &str) -> (Vec<String>, Vec<String>) {
    let mut mine = support::run(ours, sql);
    mine.push(format!("changes {}", ours.changes()));
    let mut other = support::sqlite(theirs, sql);
    other.push(format!("changes {}", theirs.changes()));
    (mine, other)
}

fn run_seed(seed: u64) {
    let mut random = Random(seed);
    let (ours, theirs) = (support::session(), Connection::open_in_memory().unwrap());
    let (table, schema) = Table::create(&mut random);
    support::must(&ours, &schema);
    theirs.execute_batch(&schema).unwrap();
    let mut told = vec![schema];
    for _ in 0..60 {
        let sql = table.statement(&mut random);
        told.push(sql.clone());
        let (mine, other) = both(&ours, &theirs, &sql);
        assert_eq!(mine, other, "seed {seed}:\n{}", told.join(";\n"));
        let (mine, other) = both(&ours, &theirs, "SELECT * FROM t ORDER BY id");
        assert!(mine == other, "seed {seed}, rows:\n{}", told.join(";\n"));
    }
    if !ours.is_autocommit() {
        support::must(&ours, "COMMIT");
    }
    assert_eq!(
        support::must(&ours, "PRAGMA integrity_check"),
        ["'ok'"],
        "seed {seed}"
    );
}

#[test]
fn statements_by_chance() {
    let of = |name, default| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let first = of("FULGURITE_LARGE_FIRST", 1);
    for seed in first..first + of("FULGURITE_LARGE_SEEDS", 25) {
        run_seed(seed);
    }
}

/// A row older than a column has no place for it in its start.
#[test]
fn a_column_that_a_large_row_does_not_store_yet() {
    support::same(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, v);
         INSERT INTO t VALUES (1, 7, zeroblob(20000)), (2, 8, 'short');
         ALTER TABLE t ADD COLUMN late TEXT DEFAULT 'later';
         UPDATE t SET n = n + 1;
         SELECT id, n, length(v), late FROM t;
         UPDATE t SET late = 'now' WHERE id = 1;
         SELECT id, n, length(v), late FROM t;
         UPDATE t SET n = 5000000000, late = NULL;
         SELECT id, n, length(v), late FROM t;",
    );
}

/// The start may grow until its leaf cannot hold it, and then has another length.
#[test]
fn a_start_grows_and_shrinks() {
    let mut sql = "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT, v BLOB, c TEXT);
        INSERT INTO t VALUES (1, 'a', 'b', zeroblob(50000), 'c');"
        .to_owned();
    for length in (0..2_000).step_by(90).chain((0..2_000).rev().step_by(170)) {
        sql += &format!(
            "UPDATE t SET a = replace(hex(zeroblob({length})), '00', 'x');
             SELECT length(a), b, length(v), c FROM t;
             UPDATE t SET b = substr(a, 1, 60), c = {length};
             SELECT length(a), b, length(v), c FROM t;"
        );
    }
    support::same(&sql);
}
