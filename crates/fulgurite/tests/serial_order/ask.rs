//! What is asked: statements over tables of the same shape in each file.

use fastrand::Rng;

/// The files, as their databases are called; the first is the main one.
pub const FILES: [&str; 2] = ["main", "other"];
/// Keys are below this.
const KEYS: i64 = 6;

/// The letter with which the names of a file's tables begin.
fn letter(file: &str) -> &str {
    &file[..1]
}

/// The tables of the first so many files: of each one with rowids, one without, children
/// of the first, and one that comes and goes.
pub fn tables(files: usize) -> Vec<String> {
    let of = |file: &&str| (1..=4).map(|n| format!("{}{n}", letter(file))).collect();
    FILES[..files]
        .iter()
        .flat_map(|file| -> Vec<String> { of(file) })
        .collect()
}

/// What makes the tables of a file.
pub fn schema(file: &str, seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let t = letter(file);
    let action = ["CASCADE ON UPDATE CASCADE", "SET NULL", "RESTRICT"][rng.usize(..3)];
    let unique = ["", "UNIQUE"][rng.usize(..2)];
    let mut sql = format!(
        "CREATE TABLE {file}.{t}1(k INTEGER PRIMARY KEY, g INT, v TEXT);
         CREATE TABLE {file}.{t}2(k TEXT PRIMARY KEY, g INT {unique}, v TEXT) WITHOUT ROWID;
         CREATE TABLE {file}.{t}3(k INTEGER PRIMARY KEY, g INT REFERENCES {t}1(k) ON DELETE {action}, v TEXT);"
    );
    let more = [
        format!("CREATE INDEX {file}.{t}1g ON {t}1(g);"),
        format!("CREATE INDEX {file}.{t}1p ON {t}1(v, g) WHERE g > 1;"),
        format!("CREATE INDEX {file}.{t}3g ON {t}3(g);"),
        format!(
            "CREATE TRIGGER {file}.{t}i AFTER INSERT ON {t}2
             BEGIN UPDATE {t}3 SET v = v || 't' WHERE g = NEW.g; END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}d AFTER DELETE ON {t}3
             BEGIN UPDATE {t}1 SET v = v || 'd' WHERE k = OLD.k; END;"
        ),
    ];
    more.iter().filter(|_| rng.bool()).for_each(|it| sql += it);
    sql
}

/// What makes its rows be as at first.
pub fn reset(file: &str, seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let t = letter(file);
    let mut sql = format!(
        "DROP TABLE IF EXISTS {file}.{t}4; DROP INDEX IF EXISTS {file}.{t}x;
         DELETE FROM {t}3; DELETE FROM {t}2; DELETE FROM {t}1;"
    );
    let keys: Vec<i64> = (0..KEYS).filter(|_| rng.bool()).collect();
    for k in keys {
        sql += &format!("INSERT INTO {t}1 VALUES ({k}, {}, 'i');", rng.i64(0..4));
        sql += &format!("INSERT INTO {t}2 VALUES ('{k}', {k}, 'i');");
        sql += &format!("INSERT INTO {t}3 VALUES ({k}, {k}, 'i');");
    }
    sql
}

fn table(rng: &mut Rng, files: usize) -> String {
    let number = [1, 1, 1, 2, 2, 3, 3, 4][rng.usize(..8)];
    format!("{}{number}", letter(FILES[rng.usize(..files)]))
}

/// A query, whose rows may come in any order.
pub fn query(rng: &mut Rng, files: usize) -> String {
    let (t, u) = (table(rng, files), table(rng, files));
    let (k, g) = (rng.i64(0..KEYS), rng.i64(0..4));
    match rng.u8(..10) {
        0 => format!("SELECT k, g, v FROM {t} WHERE k = {k}"),
        1 => format!("SELECT count(*) FROM {t}"),
        2 => format!("SELECT count(*), max(k), min(g) FROM {t} WHERE g > {g}"),
        3 => format!("SELECT k, v FROM {t} WHERE g IN ({g}, {k})"),
        4 => format!("SELECT EXISTS(SELECT 1 FROM {t} WHERE g = {g})"),
        5 => format!("SELECT x.k, y.v FROM {t} x LEFT JOIN {u} y ON y.k = x.g"),
        6 => format!("SELECT k FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {u} y WHERE y.g = x.g)"),
        7 => format!("SELECT k, v FROM {t} ORDER BY k DESC LIMIT 1"),
        8 => format!("SELECT (SELECT sum(g) FROM {t}), (SELECT count(*) FROM {u})"),
        _ => format!("SELECT k, g, v FROM {t}"),
    }
}

/// A change of rows, each of which says by whom it was.
pub fn change(rng: &mut Rng, files: usize, by: &str) -> String {
    let (t, u) = (table(rng, files), table(rng, files));
    let (k, l, g) = (rng.i64(0..KEYS), rng.i64(0..KEYS), rng.i64(0..4));
    match rng.u8(..13) {
        0 | 1 => format!("UPDATE {t} SET v = v || '{by}' WHERE k = {k}"),
        2 => format!("UPDATE {t} SET v = v || '{by}' WHERE g = {g}"),
        3 => format!("UPDATE OR IGNORE {t} SET g = {g} WHERE k = {k}"),
        4 => format!("UPDATE {t} SET v = (SELECT count(*) FROM {u}) || '{by}' WHERE k = {k}"),
        5 => format!("INSERT INTO {t} VALUES ({k}, {g}, '{by}')"),
        6 => format!("INSERT INTO {t} VALUES ({k}, {g}, '{by}'), ({l}, {g}, '{by}')"),
        7 => format!("INSERT OR REPLACE INTO {t} VALUES ({k}, {g}, '{by}')"),
        8 => format!(
            "INSERT INTO {t} VALUES ({k}, {g}, '{by}') ON CONFLICT(k) DO UPDATE SET v = v || excluded.v"
        ),
        9 => format!("DELETE FROM {t} WHERE k = {k}"),
        10 => format!("DELETE FROM {t} WHERE g = {g}"),
        11 => format!("DELETE FROM {t} WHERE k = (SELECT max(k) FROM {t})"),
        _ => format!(
            "UPDATE {t} SET v = v || '{by}' WHERE NOT EXISTS (SELECT 1 FROM {u} WHERE g = {g})"
        ),
    }
}

/// A change of the schema.
pub fn reshape(rng: &mut Rng, files: usize) -> String {
    let file = FILES[rng.usize(..files)];
    let t = letter(file);
    match rng.u8(..5) {
        0 | 1 => {
            format!("CREATE TABLE IF NOT EXISTS {file}.{t}4(k INTEGER PRIMARY KEY, g INT, v TEXT)")
        }
        2 => format!("DROP TABLE IF EXISTS {t}4"),
        3 => format!(
            "CREATE INDEX IF NOT EXISTS {file}.{t}x ON {t}{}(g)",
            rng.u8(1..4)
        ),
        _ => format!("DROP INDEX IF EXISTS {file}.{t}x"),
    }
}
