//! Forged rows of sqlite_schema.

use fulgurite_sql::row::{RowReader, RowWriter};
use fulgurite_sql::{Value, ValueRef};
use fulgurite_store::Store;

use super::forge;
use super::trees::{self, Contents, OwnedKey};
use crate::Rng;

/// The columns of a row, by their places.
const KIND: usize = 0;
const NAME: usize = 1;
const TABLE: usize = 2;
const ROOT: usize = 3;
const SQL: usize = 4;

pub(super) fn forge(store: &Store, contents: &Contents, tree: u32, rng: &mut Rng) -> String {
    let rows = &contents[&tree];
    if rows.is_empty() {
        return String::new();
    }
    let (key, row) = rows[rng.index(rows.len())].clone();
    let other = values(&rows[rng.index(rows.len())].1);
    let mut forged = values(&row);
    let changes = match rng.below(14) {
        0 => vec![(key, None)],
        1 => vec![(OwnedKey::Int(99), Some(row))],
        2 => {
            let (second, swapped) = rows[rng.index(rows.len())].clone();
            vec![(key, Some(swapped)), (second, Some(row))]
        }
        3 => vec![(OwnedKey::Int(100 + rng.below(9) as i64), Some(made_up(rng)))],
        4 => {
            let place = rng.index(8);
            forged.resize(forged.len().max(place + 1), Value::Null);
            forged[place] = forge::value(rng);
            vec![(key, Some(encoded(&forged)))]
        }
        5 => {
            let place = rng.index(5);
            let value = other.get(place).cloned().unwrap_or(Value::Null);
            set(&mut forged, place, value);
            vec![(key, Some(encoded(&forged)))]
        }
        6..9 => {
            let root = root(contents, tree, rng);
            let place = if forged.len() > 6 { 6 } else { ROOT };
            set(&mut forged, place, Value::Integer(root));
            vec![(key, Some(encoded(&forged)))]
        }
        9 => {
            let kind = ["table", "index", "view", "trigger", "TABLE", "", "tablex"][rng.index(7)];
            set(&mut forged, KIND, Value::from(kind));
            vec![(key, Some(encoded(&forged)))]
        }
        10 => {
            let name = NAMES[rng.index(NAMES.len())];
            let place = [NAME, TABLE][rng.index(2)];
            set(&mut forged, place, Value::from(name));
            vec![(key, Some(encoded(&forged)))]
        }
        _ => {
            let text = text(&forged, rng);
            set(&mut forged, SQL, Value::from(&*text));
            vec![(key, Some(encoded(&forged)))]
        }
    };
    trees::change(store, tree, &changes);
    let mut told: Vec<String> = Vec::new();
    for (key, row) in &changes {
        let mut text = format!("{key:?}: {:?}", row.as_deref().map(values));
        let mut end = text.len().min(400);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        told.push(text);
    }
    format!("schema: {}", told.join("; "))
}

fn values(row: &[u8]) -> Vec<Value> {
    let Ok(reader) = RowReader::new(row) else {
        return Vec::new();
    };
    let values = reader.values().map_while(Result::ok);
    values.map(ValueRef::to_value).collect()
}

fn set(row: &mut Vec<Value>, place: usize, value: Value) {
    row.resize(row.len().max(place + 1), Value::Null);
    row[place] = value;
}

fn encoded(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    RowWriter::encode(&mut out, values.iter().map(Value::as_ref)).expect("these are few");
    out
}

fn root(contents: &Contents, schema: u32, rng: &mut Rng) -> i64 {
    let numbers: Vec<u32> = contents.keys().copied().collect();
    match rng.below(6) {
        0 => [0, -1, i64::MAX, i64::MIN, 200, 1 << 32, (1 << 32) - 1][rng.index(7)],
        1 => i64::from(schema),
        _ => i64::from(numbers[rng.index(numbers.len())]),
    }
}

const NAMES: [&str; 16] = [
    "a",
    "w",
    "va",
    "vv",
    "A",
    "",
    "sqlite_schema",
    "sqlite_sequence",
    "a_i",
    "a\"b",
    "a\0b",
    "q",
    "sqlite_autoindex_p_1",
    "\u{ff}\u{10ffff}",
    "log",
    "missing",
];

/// Texts that parse, and mean something else than what is stored.
const TEXTS: [&str; 36] = [
    "",
    ";",
    "SELECT 1",
    "DROP TABLE a",
    "CREATE TABLE a (id INTEGER PRIMARY KEY)",
    "CREATE TABLE a (i)",
    "CREATE TABLE a (t, i, id INTEGER PRIMARY KEY, b, n, r)",
    "CREATE TABLE a (id TEXT PRIMARY KEY, i UNIQUE) WITHOUT ROWID",
    "CREATE TABLE a AS SELECT 1",
    "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, i, t, r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i CHECK (i IN (SELECT i FROM a)), t, r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i AS (t), t AS (i), r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i AS (nothing), t, r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i DEFAULT (abs(-9223372036854775808)), t, r, n, b, z)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i NOT NULL, t CHECK (t > missing), r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i COLLATE none, t, r, n, b)",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, i REFERENCES a (t), t REFERENCES va, r, n, b)",
    "CREATE TABLE sqlite_schema (x)",
    "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES c (up) ON DELETE CASCADE, up)",
    "CREATE TEMP TABLE a (id)",
    "CREATE TABLE other.a (id)",
    "CREATE INDEX a_i ON a (t, i)",
    "CREATE INDEX a_i ON w (m)",
    "CREATE UNIQUE INDEX a_i ON a (i) WHERE i > (SELECT max(i) FROM a)",
    "CREATE INDEX a_i ON a (random())",
    "CREATE INDEX a_i ON a (i + missing)",
    "CREATE INDEX a_i ON a (json(t))",
    "CREATE INDEX a_i ON missing (i)",
    "CREATE VIEW va AS SELECT * FROM va",
    "CREATE VIEW va AS SELECT * FROM vv",
    "CREATE VIEW va (x) AS SELECT 1, 2",
    "CREATE VIEW vv AS SELECT * FROM va UNION SELECT * FROM vv",
    "CREATE VIEW va AS SELECT i, (SELECT n FROM vv) AS n FROM a WHERE i IN (SELECT m FROM vv)",
    "CREATE TRIGGER a_ai AFTER INSERT ON a BEGIN INSERT INTO a (i) VALUES (new.i); END",
    "CREATE TRIGGER a_ai AFTER INSERT ON a BEGIN INSERT INTO va (i) VALUES (new.i); END",
    "CREATE TRIGGER va_ii INSTEAD OF INSERT ON va BEGIN INSERT INTO va (i) VALUES (new.i); END",
];

fn text(row: &[Value], rng: &mut Rng) -> String {
    let own = match row.get(SQL) {
        Some(Value::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    match rng.below(8) {
        0 => deep(rng),
        1 => {
            let mut end = rng.index(own.len() + 1);
            while !own.is_char_boundary(end) {
                end -= 1;
            }
            own[..end].to_owned()
        }
        2 | 3 => {
            let mut words: Vec<&str> = own.split(' ').collect();
            for _ in 0..1 + rng.below(3) {
                let (at, from) = (rng.index(words.len()), rng.index(words.len()));
                match rng.below(3) {
                    0 => words[at] = words[from],
                    1 if words.len() > 1 => {
                        words.remove(at);
                    }
                    _ => words.insert(at, words[from]),
                }
            }
            words.join(" ")
        }
        _ => TEXTS[rng.index(TEXTS.len())].to_owned(),
    }
}

/// A text that is long, or deep within itself.
fn deep(rng: &mut Rng) -> String {
    let depth = [10, 400, 990, 20_000][rng.index(4)];
    let (open, close) = ("(".repeat(depth), ")".repeat(depth));
    match rng.below(8) {
        0 => format!("CREATE VIEW va AS SELECT {open}1{close} AS i"),
        1 => format!("CREATE VIEW va AS {}1", "SELECT (".repeat(depth)),
        2 => format!("CREATE VIEW va AS SELECT * FROM {open}a{close}"),
        3 => format!("CREATE TABLE a (i CHECK ({}i))", "NOT ".repeat(depth)),
        4 => format!("CREATE TABLE a (i DEFAULT ({open}1{close}))"),
        5 => {
            let columns: Vec<String> = (0..depth).map(|at| format!("c{at}")).collect();
            format!("CREATE TABLE a ({})", columns.join(", "))
        }
        6 => format!(
            "CREATE INDEX a_i ON a ({}i)",
            "-".repeat(depth).replace("--", "- -")
        ),
        _ => format!(
            "CREATE VIEW va AS SELECT 1 AS i{}",
            " UNION ALL SELECT 1".repeat(depth)
        ),
    }
}

fn made_up(rng: &mut Rng) -> Vec<u8> {
    let kind = ["table", "index", "view", "trigger"][rng.index(4)];
    let name = NAMES[rng.index(NAMES.len())];
    let table = NAMES[rng.index(NAMES.len())];
    let text = text(&[], rng);
    let root = Value::Integer(rng.below(60) as i64);
    let mut row = vec![
        kind.into(),
        name.into(),
        table.into(),
        root,
        text.as_str().into(),
    ];
    match rng.below(4) {
        0 => row.push(Value::from(["main", "temp", ""][rng.index(3)])),
        1 => row.extend([
            Value::Integer(rng.below(4) as i64),
            Value::Integer(rng.below(60) as i64),
        ]),
        _ => {}
    }
    encoded(&row)
}
