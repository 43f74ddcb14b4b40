//! The tables that are asked about, of the same shape in each file, and changes of them.

use fastrand::Rng;

/// The files, as their databases are called; the first is the main one.
pub const FILES: [&str; 2] = ["main", "other"];
/// Keys are below this.
pub const KEYS: i64 = 6;

/// The letter with which the names of a file's tables begin.
pub fn letter(file: &str) -> &str {
    &file[..1]
}

/// The tables of the first so many files: of each one with rowids, one without, children
/// of the first, and one that comes and goes, under two names.
pub fn tables(files: usize) -> Vec<String> {
    let of = |file: &&str| (1..=5).map(|n| format!("{}{n}", letter(file))).collect();
    FILES[..files]
        .iter()
        .flat_map(|file| -> Vec<String> { of(file) })
        .collect()
}

/// The columns of a table. What fills `p` makes a leaf hold many rows, four or one, or has
/// extents of its own, and the column that each change says its name in lies before or
/// behind that.
fn columns(rng: &mut Rng, key: &str, group: &str) -> String {
    let length = [0, 0, 300, 900, 5_000][rng.usize(..5)];
    let filler: String = (0..length).map(|_| rng.alphanumeric()).collect();
    let filler = format!("p TEXT DEFAULT '{filler}'");
    match rng.bool() {
        true => format!("k {key} PRIMARY KEY, g INT {group}, v TEXT, {filler}"),
        false => format!("k {key} PRIMARY KEY, {filler}, g INT {group}, v TEXT"),
    }
}

/// What makes the tables of a file.
pub fn schema(file: &str, seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let t = letter(file);
    let action = ["CASCADE ON UPDATE CASCADE", "SET NULL", "RESTRICT"][rng.usize(..3)];
    let unique = ["", "UNIQUE"][rng.usize(..2)];
    let deferred = ["", "DEFERRABLE INITIALLY DEFERRED"][rng.usize(..2)];
    let parent = format!("REFERENCES {t}1(k) ON DELETE {action} {deferred}");
    let mut sql = format!(
        "CREATE TABLE {file}.{t}1({});
         CREATE TABLE {file}.{t}2({}) WITHOUT ROWID;
         CREATE TABLE {file}.{t}3({});
         CREATE TABLE {file}.{t}_ballast(b BLOB);",
        columns(&mut rng, "INTEGER", ""),
        columns(&mut rng, "TEXT", unique),
        columns(&mut rng, "INTEGER", &parent),
    );
    let more = [
        format!("CREATE INDEX {file}.{t}1g ON {t}1(g);"),
        format!("CREATE INDEX {file}.{t}1p ON {t}1(v, g) WHERE g > 1;"),
        format!("CREATE INDEX {file}.{t}1f ON {t}1(g DESC, p);"),
        format!("CREATE INDEX {file}.{t}2v ON {t}2(length(v), k);"),
        format!("CREATE INDEX {file}.{t}3g ON {t}3(g);"),
    ];
    more.iter()
        .filter(|_| rng.u8(..5) < 2)
        .for_each(|it| sql += it);
    sql
}

/// Triggers of a file, some of which there are in a round.
fn triggers(file: &str, t: &str) -> [String; 7] {
    [
        format!(
            "CREATE TRIGGER {file}.{t}i AFTER INSERT ON {t}2
             BEGIN UPDATE {t}3 SET v = v || 't' WHERE g = NEW.g; END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}d AFTER DELETE ON {t}3
             BEGIN UPDATE {t}1 SET v = v || 'd' WHERE k = OLD.k; END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}a BEFORE INSERT ON {t}1 WHEN NEW.g = 3
             BEGIN SELECT RAISE(ABORT, 'no'); END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}b AFTER UPDATE OF g ON {t}2 WHEN NEW.g = 2
             BEGIN SELECT RAISE(ABORT, 'no') FROM {t}1 WHERE g = NEW.g; END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}c BEFORE DELETE ON {t}2 WHEN OLD.g = 1
             BEGIN SELECT RAISE(IGNORE); END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}e AFTER INSERT ON {t}1 WHEN NEW.g < 2 BEGIN
             INSERT INTO {t}2(k, g, v) VALUES (NEW.k, NEW.g, 'e')
             ON CONFLICT(k) DO UPDATE SET v = v || 'e'; END;"
        ),
        format!(
            "CREATE TRIGGER {file}.{t}f AFTER UPDATE OF v ON {t}1 WHEN NEW.k = 2 BEGIN
             INSERT OR REPLACE INTO {t}3(k, g, v) VALUES (NEW.k, NEW.k, NEW.v); END;"
        ),
    ]
}

/// What makes its rows be as at first, with triggers of the round.
pub fn reset(file: &str, seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let t = letter(file);
    let of_letter = |it: char| format!("DROP TRIGGER IF EXISTS {file}.{t}{it};");
    let mut sql: String = "abcdefi".chars().map(of_letter).collect();
    sql += &format!(
        "DROP VIEW IF EXISTS {file}.{t}w; DROP TRIGGER IF EXISTS {file}.{t}z;
         DROP TABLE IF EXISTS {file}.{t}4; DROP TABLE IF EXISTS {file}.{t}5; DROP INDEX IF EXISTS {file}.{t}x;
         DELETE FROM {t}3; DELETE FROM {t}2; DELETE FROM {t}1; DELETE FROM {t}_ballast;"
    );
    let keys: Vec<i64> = (0..KEYS).filter(|_| rng.bool()).collect();
    for k in keys {
        let g = rng.i64(0..4);
        sql += &format!("INSERT INTO {t}1(k, g, v) VALUES ({k}, {g}, 'i');");
        sql += &format!("INSERT INTO {t}2(k, g, v) VALUES ('{k}', {k}, 'i');");
        sql += &format!("INSERT INTO {t}3(k, g, v) VALUES ({k}, {k}, 'i');");
    }
    let triggers = triggers(file, t);
    triggers
        .iter()
        .filter(|_| rng.u8(..5) < 2)
        .for_each(|it| sql += it);
    sql
}

/// What makes a transaction too large for the log, or nearly so. (Nobody reads it: rows
/// without keys are numbered as they come, in no order of transactions.)
pub fn ballast(rng: &mut Rng, files: usize) -> String {
    let t = letter(FILES[rng.usize(..files)]);
    let bytes = [4_300_000, (4 << 20) - rng.i64(0..2_000)][rng.usize(..2)];
    format!("INSERT INTO {t}_ballast VALUES (zeroblob({bytes}))")
}

/// A change of the schema.
pub fn reshape(rng: &mut Rng, files: usize) -> String {
    let file = FILES[rng.usize(..files)];
    let t = letter(file);
    let n = rng.u8(1..5);
    match rng.u8(..22) {
        0 | 1 => format!(
            "CREATE TABLE IF NOT EXISTS {file}.{t}4(k INTEGER PRIMARY KEY, g INT, v TEXT, p TEXT)"
        ),
        2 => format!("DROP TABLE IF EXISTS {t}4"),
        3 => format!("ALTER TABLE {t}4 ADD COLUMN w INT DEFAULT {n}"),
        4 => {
            let columns = ["g", "g DESC, v", "v COLLATE NOCASE", "length(v), g"][rng.usize(..4)];
            format!("CREATE INDEX IF NOT EXISTS {file}.{t}x ON {t}{n}({columns})")
        }
        5 => format!("CREATE UNIQUE INDEX IF NOT EXISTS {file}.{t}x ON {t}{n}(g)"),
        6 => format!("CREATE INDEX IF NOT EXISTS {file}.{t}x ON {t}{n}(g) WHERE g < {n}"),
        7 => format!("DROP INDEX IF EXISTS {file}.{t}x"),
        8 => format!(
            "CREATE VIEW IF NOT EXISTS {file}.{t}w AS
             SELECT k, g, v FROM {t}{n} UNION ALL SELECT g, count(*), max(v) FROM {t}1 GROUP BY g"
        ),
        9 => format!("DROP VIEW IF EXISTS {file}.{t}w"),
        10 => format!(
            "CREATE TRIGGER IF NOT EXISTS {file}.{t}z AFTER UPDATE OF g ON {t}{n}
             BEGIN UPDATE {t}1 SET v = v || 'z' WHERE g = OLD.g; END"
        ),
        11 => format!("DROP TRIGGER IF EXISTS {file}.{t}z"),
        12 => format!("ALTER TABLE {t}4 RENAME COLUMN w TO x"),
        13 => format!(
            "ALTER TABLE {t}4 DROP COLUMN {}",
            ["w", "x"][rng.usize(..2)]
        ),
        14 => format!("ALTER TABLE {t}4 RENAME TO {t}5"),
        15 => format!("ALTER TABLE {t}5 RENAME TO {t}4"),
        16 => format!("REINDEX {file}.{t}{n}"),
        17 => format!("REINDEX {file}.{t}x"),
        18 => "REINDEX".to_owned(),
        19 => format!("DROP TABLE IF EXISTS {t}5"),
        20 => format!(
            "CREATE TRIGGER IF NOT EXISTS {file}.{t}z BEFORE UPDATE ON {t}{n} WHEN NEW.g = 0
             BEGIN SELECT RAISE(ABORT, 'no'); END"
        ),
        _ => "ANALYZE".to_owned(),
    }
}
