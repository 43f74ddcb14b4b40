//! What is asked of the tables: queries, and changes of rows.

use crate::shape::{FILES, KEYS, letter};
use fastrand::Rng;

fn table(rng: &mut Rng, files: usize) -> String {
    let number = [1, 1, 1, 2, 2, 3, 3, 4][rng.usize(..8)];
    format!("{}{number}", letter(FILES[rng.usize(..files)]))
}

/// Everything of a table.
pub fn all(table: &str) -> String {
    format!("SELECT k, g, v, length(p), substr(p, 1, 8) FROM {table}")
}

/// A query, whose rows may come in any order.
pub fn query(rng: &mut Rng, files: usize) -> String {
    let (t, u) = (table(rng, files), table(rng, files));
    let file = FILES[rng.usize(..files)];
    let (k, g) = (rng.i64(0..KEYS), rng.i64(0..4));
    match rng.u8(..28) {
        0 | 1 => format!("SELECT k, g, v FROM {t} WHERE k = {k}"),
        2 => format!("SELECT count(*) FROM {t}"),
        3 => format!("SELECT count(*), max(k), min(g) FROM {t} WHERE g > {g}"),
        4 => format!("SELECT k, v FROM {t} WHERE g IN ({g}, {k})"),
        5 => format!("SELECT EXISTS(SELECT 1 FROM {t} WHERE g = {g})"),
        6 => format!("SELECT x.k, y.v FROM {t} x LEFT JOIN {u} y ON y.k = x.g"),
        7 => format!("SELECT k FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {u} y WHERE y.g = x.g)"),
        8 => format!("SELECT k, v FROM {t} ORDER BY k DESC LIMIT 1"),
        9 => format!("SELECT (SELECT sum(g) FROM {t}), (SELECT count(*) FROM {u})"),
        10 => format!("SELECT DISTINCT g FROM {t}"),
        11 => format!("SELECT g, count(*), max(v) FROM {t} GROUP BY g HAVING count(*) > 1"),
        12 => format!("SELECT k, v FROM {t} WHERE k BETWEEN {g} AND {k} ORDER BY k LIMIT 1"),
        13 => format!("SELECT g, k FROM {t} WHERE g >= {g} ORDER BY g DESC, k LIMIT 2 OFFSET 1"),
        14 => format!("SELECT max(g) FROM {t} WHERE g < {k}"),
        15 => format!("SELECT k, v FROM {t} WHERE g = {g} OR k = {k}"),
        16 => {
            let with = ["UNION", "EXCEPT", "INTERSECT"][rng.usize(..3)];
            format!("SELECT g FROM {t} {with} SELECT g FROM {u}")
        }
        17 => format!("SELECT k, row_number() OVER (ORDER BY g, k), v FROM {t} WHERE g <> {g}"),
        18 => format!(
            "WITH RECURSIVE reached(n) AS
             (VALUES({k}) UNION SELECT g FROM {t}, reached WHERE k = n) SELECT n FROM reached"
        ),
        19 => format!("SELECT x.k, y.k FROM {t} x JOIN {u} y ON x.g = y.g WHERE x.v <> y.v"),
        20 => format!("SELECT k, g FROM {t} WHERE length(v) = {}", 1 + k),
        21 => format!("SELECT k, v FROM {t} WHERE v LIKE 'i%d%'"),
        22 => format!("SELECT k, g FROM {t} WHERE (g, k) > ({g}, {k}) ORDER BY g, k LIMIT 1"),
        23 => format!("SELECT k, (SELECT max(v) FROM {u} y WHERE y.g = x.k) FROM {t} x"),
        24 => format!("SELECT k, g, v FROM {}w WHERE k = {g}", letter(file)),
        25 => format!("SELECT type, name FROM {file}.sqlite_schema WHERE tbl_name = '{t}'"),
        _ => all(&t),
    }
}

/// A change of rows, each of which says by whom it was.
pub fn change(rng: &mut Rng, files: usize, by: &str) -> String {
    let (t, u) = (table(rng, files), table(rng, files));
    let (k, l, g) = (rng.i64(0..KEYS), rng.i64(0..KEYS), rng.i64(0..4));
    let row = format!("INTO {t}(k, g, v) VALUES ({k}, {g}, '{by}')");
    let said = format!("UPDATE {t} SET v = v || '{by}'");
    match rng.u8(..34) {
        0 | 1 => format!("{said} WHERE k = {k}"),
        2 => format!("{said} WHERE g = {g}"),
        3 => format!("UPDATE OR IGNORE {t} SET g = {g} WHERE k = {k}"),
        4 => format!("UPDATE {t} SET v = (SELECT count(*) FROM {u}) || '{by}' WHERE k = {k}"),
        5 => format!("INSERT {row}"),
        6 => format!("INSERT {row}, ({l}, {g}, '{by}')"),
        7 => format!("INSERT OR REPLACE {row}"),
        8 => format!("INSERT {row} ON CONFLICT(k) DO UPDATE SET v = v || excluded.v"),
        9 => format!("DELETE FROM {t} WHERE k = {k}"),
        10 => format!("DELETE FROM {t} WHERE g = {g}"),
        11 => format!("DELETE FROM {t} WHERE k = (SELECT max(k) FROM {t})"),
        12 => format!("{said} WHERE NOT EXISTS (SELECT 1 FROM {u} WHERE g = {g})"),
        13 => format!("UPDATE {t} SET k = {l} WHERE k = {k}"),
        14 => format!("UPDATE OR REPLACE {t} SET k = {l}, v = v || '{by}' WHERE k = {k}"),
        15 => format!("UPDATE {t} SET v = {t}.v || y.v FROM {u} y WHERE y.k = {t}.g AND y.g = {g}"),
        16 => format!(
            "INSERT OR IGNORE INTO {t}(k, g, v)
             SELECT k, g, '{by}' FROM {u} WHERE g = {g} ORDER BY k"
        ),
        17 => format!("INSERT {row} ON CONFLICT DO NOTHING RETURNING k, v"),
        18 => format!("DELETE FROM {t} WHERE g = {g} RETURNING k, v"),
        19 => format!("{said} WHERE k > {k} RETURNING k, g"),
        20 => format!("DELETE FROM {t} WHERE k IN (SELECT g FROM {u})"),
        21 => format!("DELETE FROM {t}"),
        22 => format!("UPDATE {t} SET p = substr(p, 1, length(p) / 2) WHERE k >= {k}"),
        23 => format!("UPDATE {t} SET p = p || '{by}' || p WHERE k = {k} AND length(p) < 2000"),
        24 => format!("{said} WHERE g = (SELECT min(g) FROM {u} WHERE g > {g})"),
        25 => format!(
            "INSERT INTO {t}(k, g, v) SELECT k + {g}, g, v || '{by}' FROM {u} WHERE k < {k}"
        ),
        // (From children SQLite would read what actions for earlier rows made of them.)
        26 => format!(
            "INSERT OR REPLACE INTO {t}(k, g, v)
             SELECT k, g, v || '{by}' FROM {}2 WHERE k >= '{k}' ORDER BY k",
            letter(FILES[rng.usize(..files)])
        ),
        27 => format!(
            "INSERT INTO {t}(k, g, v) SELECT k, g, '{by}' FROM {u} WHERE g <> {g} ORDER BY k
             ON CONFLICT(k) DO UPDATE SET v = v || excluded.v, g = excluded.g WHERE g < {l}"
        ),
        28 => format!(
            "INSERT {row} ON CONFLICT(k) DO UPDATE SET g = g + 1, v = v || excluded.v
             WHERE EXISTS (SELECT 1 FROM {u} WHERE g = {g}) RETURNING k, g, v"
        ),
        29 => format!("INSERT {row} ON CONFLICT DO UPDATE SET k = {l}, v = v || '{by}'"),
        30 => format!("UPDATE {t} SET g = NULL, v = v || '{by}' WHERE k = {k} RETURNING v"),
        31 => format!("UPDATE {t} SET g = {g} WHERE k = {k} AND g IN (SELECT k FROM {u})"),
        32 => format!("REPLACE {row}"),
        _ => format!("INSERT OR FAIL {row}, ({l}, NULL, '{by}'), ({k}, {g}, 'never')"),
    }
}

/// Whether it is asked for rows.
pub fn is_query(sql: &str) -> bool {
    sql.starts_with("SELECT") || sql.starts_with("WITH") || sql.contains("RETURNING")
}

/// Whether it tells how many rows it changed.
pub fn counts_rows(sql: &str) -> bool {
    let others = ["CREATE", "DROP", "ALTER", "COMMIT", "REINDEX"];
    !others.iter().any(|verb| sql.starts_with(verb))
}
