//! ORDER BY with a LIMIT over many rows, beside SQLite: rows that come too late in the order
//! are told by its first term.

mod support;

use support::same;

#[test]
fn the_first_rows_of_many() {
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, i INT, r REAL, s TEXT COLLATE NOCASE, n, f INT);
        WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 6000)
            INSERT INTO t SELECT x, x * 7919 % 5003, x * 31 % 977 / 8.0, substr('aAbBcC', 1 + x % 6, 1) || (x % 300),
                CASE x % 5 WHEN 0 THEN NULL WHEN 1 THEN x % 11 WHEN 2 THEN x % 11 * 1.0 WHEN 3 THEN 't' || (x % 50) ELSE x'01' END,
                x % 4 FROM c;";
    let mut sql = table.to_owned();
    for order in [
        "i",
        "i DESC",
        "r",
        "r DESC",
        "s",
        "s DESC",
        "n",
        "n DESC",
        "f",
        "f DESC",
        "n NULLS LAST",
        "n DESC NULLS FIRST",
        "f, i",
        "f DESC, r DESC",
        "s COLLATE BINARY DESC",
        "n, s DESC",
        "-i",
        "i % 10, id DESC",
        "length(s) DESC",
        "NULL",
    ] {
        for limit in ["10", "3 OFFSET 5", "1200", "0", "-1 OFFSET 5990"] {
            sql.push_str(&format!(
                "SELECT id, s, n FROM t ORDER BY {order} LIMIT {limit};"
            ));
        }
    }
    sql.push_str("SELECT f, max(i) FROM t GROUP BY i % 2000 ORDER BY 2 DESC LIMIT 4;");
    sql.push_str("SELECT i FROM t UNION SELECT -i FROM t ORDER BY 1 LIMIT 3;");
    same(&sql);
}
