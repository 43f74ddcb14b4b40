//! Aggregates of columns that hold integers and NULLs, or other kinds among them, beside
//! SQLite: a batch at a time, of one group and of many.

mod support;

use support::same;

#[test]
fn nulls_among_values_do_not_count() {
    let columns = [
        "i",
        "n",
        "x",
        "t",
        "r",
        "coalesce(nullif(i, 3), 7)",
        "nullif(i, 3)",
        "iif(n > 5, n, t)",
        "NULL",
        "5",
    ];
    let mut all = String::from(
        "CREATE TABLE d(id INTEGER PRIMARY KEY, g INT, i INT, n INT, x, t TEXT, r REAL);
         WITH RECURSIVE c(c) AS (SELECT 1 UNION ALL SELECT c + 1 FROM c LIMIT 3000)
            INSERT INTO d SELECT c, c % 40, c % 9, iif(c % 4, c, NULL), iif(c BETWEEN 1200 AND 1300, 't' || c, iif(c % 5, c, NULL)),
                iif(c % 3, 'text ' || c % 20, NULL), iif(c % 7, c / 4.0, NULL) FROM c;
         INSERT INTO d (id, g) SELECT 5000 + id, 99 FROM d;",
    );
    for column in columns {
        for rows in [
            "",
            "WHERE id % 3 = 0",
            "WHERE id > 4000",
            "WHERE id < 0",
            "WHERE g = 7",
        ] {
            let results = format!(
                "count({column}), sum({column}), total({column}), avg({column}), min({column}), max({column}), \
                 count(DISTINCT {column}), sum(DISTINCT {column}), count({column}) FILTER (WHERE id % 2)"
            );
            all += &format!(
                "SELECT {results} FROM d {rows};
                 SELECT g, {results} FROM d {rows} GROUP BY g ORDER BY g;
                 SELECT max({column}), g IS NOT NULL FROM d {rows};"
            );
        }
    }
    all += "UPDATE d SET n = 9223372036854775807 WHERE id IN (8, 9, 10); SELECT count(n), max(n), total(n) FROM d; SELECT sum(n) FROM d;";
    same(&all);
}

/// Few rows are taken for the first groups, and more and more for those behind: groups that
/// end where what was taken does, before it and after it.
#[test]
fn groups_in_order_end_anywhere() {
    let mut sql = String::from(
        "CREATE TABLE t(g INT, v INT, s TEXT);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
             INSERT INTO t SELECT i, i * 7 % 11, 'v' || i % 5 FROM n;",
    );
    for size in [1, 15, 16, 17, 63, 64, 80, 336, 1024, 1360, 5000] {
        sql.push_str(&format!(
            "DROP INDEX IF EXISTS tg; UPDATE t SET g = rowid / {size}; CREATE INDEX tg ON t(g, v);
             SELECT g, count(*), sum(v), min(v), count(DISTINCT v) FROM t GROUP BY g;
             SELECT g, max(v) FROM t GROUP BY g HAVING count(*) % 2 LIMIT 3;
             SELECT g, count(*) FROM t GROUP BY g LIMIT 2 OFFSET 1;
             SELECT g, group_concat(s) FROM t WHERE g < 3 GROUP BY g;"
        ));
    }
    same(&sql);
}
