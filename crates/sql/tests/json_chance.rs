//! JSON by chance: documents with what JSON5 allows and what nothing does, paths, edits
//! and damaged JSONB. What SQLite answers, errors included, is what is expected here.

mod common;
mod support;

use common::Random;
use fulgurite_sql::session::Session;
use fulgurite_sql::value::Value;
use rusqlite::Connection;

/// What is put between the parts of a document, mostly nothing.
const SPACES: [&str; 14] = [
    "", "", "", "", "", "", " ", "\n", "\t ", "/*c*/", "// c\n", "\u{a0}", "\u{b}", "\u{2028}",
];

const LABELS: [&str; 14] = [
    "\"a\"",
    "\"b\"",
    "\"a\"",
    "\"c d\"",
    "\"\\u0061\"",
    "\"\"",
    "'b'",
    "a",
    "$x_1",
    "\"ä\"",
    "b\\u0061",
    "1",
    "null",
    "\"x.y\"",
];

const SCALARS: [&str; 58] = [
    "0",
    "1",
    "-1",
    "12",
    "1.5",
    "-0",
    "0.0",
    "1e5",
    "1E-2",
    "-1.25e+3",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e400",
    "0x1F",
    "-0xab",
    "0xFFFFFFFFFFFFFFFF",
    "0x10000000000000000",
    "+5",
    ".5",
    "-.5",
    "5.",
    "5.e1",
    "1e",
    "01",
    "-",
    "+",
    "--1",
    "1.2.3",
    "true",
    "false",
    "null",
    "truex",
    "Infinity",
    "-infinity",
    "+inf",
    "NaN",
    "nan",
    "QNaN",
    "\"x\"",
    "\"it's\"",
    "'x'",
    "'say \"x\"'",
    "\"\\n\\u00e9\\\"\"",
    "\"\\x41\\v\\0\"",
    "\"\\q\"",
    "\"\\u12\"",
    "\"a\\\nb\"",
    "\"a\tb\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"ünï\"",
    "\"",
    "'",
    "\"\\01\"",
    "x",
    "\"a\\\u{2028}b\"",
    "",
];

fn space(random: &mut Random, out: &mut String) {
    out.push_str(random.pick::<&str>(&SPACES));
}

/// Appends a document of at most so many levels.
fn document(random: &mut Random, depth: usize, out: &mut String) {
    space(random, out);
    let kind = if depth == 0 { 0 } else { random.below(4) };
    match kind {
        2 => {
            out.push('[');
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(',');
                }
                document(random, depth - 1, out);
            }
            stop(random, "]", out);
        }
        3 => {
            out.push('{');
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(',');
                }
                space(random, out);
                out.push_str(random.pick::<&str>(&LABELS));
                space(random, out);
                out.push(':');
                document(random, depth - 1, out);
            }
            stop(random, "}", out);
        }
        // Mostly well-formed ones, or hardly a document would be.
        _ => {
            let many = if random.below(8) == 0 {
                SCALARS.len()
            } else {
                24
            };
            let at = random.below(many as u64) as usize;
            out.push_str(SCALARS[at]);
        }
    }
    space(random, out);
}

/// Ends a container, at times with a comma too many or not at all.
fn stop(random: &mut Random, end: &str, out: &mut String) {
    if random.below(12) == 0 {
        out.push(',');
    }
    if random.below(60) > 0 {
        out.push_str(end);
    }
}

fn path(random: &mut Random) -> String {
    const STEPS: [&str; 22] = [
        ".a",
        ".b",
        ".a",
        "[0]",
        "[1]",
        "[#-1]",
        "[#]",
        "[2]",
        ".\"c d\"",
        ".\"\\u0061\"",
        ".ä",
        ".",
        "[",
        "[x]",
        "[-1]",
        ".\"a",
        "[#-0]",
        ".$x_1",
        ".\"\"",
        "[0]",
        ".new",
        ".a.b",
    ];
    let mut path = String::new();
    if random.below(20) > 0 {
        path.push('$');
    }
    for _ in 0..random.below(4) {
        let many = if random.below(6) == 0 {
            STEPS.len()
        } else {
            10
        };
        path.push_str(STEPS[random.below(many as u64) as usize]);
    }
    path
}

/// Both sides.
struct Both {
    ours: Session,
    theirs: Connection,
    seed: u64,
}

impl Both {
    fn new(seed: u64) -> Self {
        Both {
            ours: support::session(),
            theirs: Connection::open_in_memory().unwrap(),
            seed,
        }
    }

    fn ours(&self, sql: &str, values: &[Value]) -> Vec<String> {
        let mut prepared = support::prepare(&self.ours, sql);
        for (i, value) in values.iter().enumerate() {
            prepared.bind(i + 1, value.as_ref()).unwrap();
        }
        let rows = support::drain(&mut prepared).into_iter();
        let message = |row: String| match row.split_once(": ") {
            Some((code, message)) if code.starts_with("error ") => message.to_owned(),
            _ => row,
        };
        rows.map(message).collect()
    }

    fn theirs(&self, sql: &str, values: &[Value]) -> Vec<String> {
        let mut statement = self.theirs.prepare_cached(sql).unwrap();
        let width = statement.column_count();
        for (i, value) in values.iter().enumerate() {
            let value = common::Bound(value.as_ref());
            statement.raw_bind_parameter(i + 1, value).unwrap();
        }
        let mut rows = statement.raw_query();
        let mut out = Vec::new();
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let cell = |i| support::show(common::ours(row.get_ref(i).unwrap()).as_ref());
                    out.push((0..width).map(cell).collect::<Vec<_>>().join(","));
                }
                Ok(None) => return out,
                Err(rusqlite::Error::SqliteFailure(_, message)) => {
                    out.push(message.unwrap_or_default());
                    return out;
                }
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn same(&self, sql: &str, values: &[Value]) {
        let (ours, theirs) = (self.ours(sql, values), self.theirs(sql, values));
        let shown: Vec<String> = values.iter().map(|v| support::show(v.as_ref())).collect();
        assert_eq!(ours, theirs, "seed {}: {sql} with {shown:?}", self.seed);
    }
}

const OF_ONE: [&str; 11] = [
    "SELECT json(?1)",
    "SELECT jsonb(?1)",
    "SELECT json_valid(?1), json_valid(?1, 2), json_valid(?1, 4), json_valid(?1, 8)",
    "SELECT json_error_position(?1)",
    "SELECT json_type(?1), json_array_length(?1)",
    "SELECT json_pretty(?1, '.')",
    "SELECT json_array(?1, json(?1), jsonb(?1))",
    "SELECT json_quote(?1), json_quote(json(?1))",
    "SELECT * FROM json_each(?1)",
    "SELECT * FROM json_tree(?1)",
    "SELECT key, value, atom FROM jsonb_each(?1)",
];

const OF_A_PATH: [&str; 11] = [
    "SELECT json_extract(?1, ?2)",
    "SELECT jsonb_extract(?1, ?2)",
    "SELECT json_extract(?1, ?2, '$.a')",
    "SELECT ?1 -> ?2",
    "SELECT ?1 ->> ?2",
    "SELECT json_type(?1, ?2), json_array_length(?1, ?2)",
    "SELECT json_remove(?1, ?2)",
    "SELECT jsonb_remove(?1, ?2, '$.b')",
    "SELECT * FROM json_each(?1, ?2)",
    "SELECT * FROM json_tree(?1, ?2)",
    "SELECT json_array(json_extract(?1, ?2))",
];

const OF_A_CHANGE: [&str; 10] = [
    "SELECT json_set(?1, ?2, ?3)",
    "SELECT jsonb_set(?1, ?2, ?3)",
    "SELECT json_insert(?1, ?2, ?3, '$.z', 1)",
    "SELECT jsonb_insert(?1, ?2, ?3)",
    "SELECT json_replace(?1, ?2, ?3)",
    "SELECT jsonb_replace(?1, ?2, ?3, '$[0]', ?3)",
    "SELECT json_array_insert(?1, ?2, ?3)",
    "SELECT jsonb_array_insert(?1, ?2, ?3)",
    "SELECT json_set(?1, ?2, json(?3))",
    "SELECT jsonb_set(?1, ?2, jsonb(?3))",
];

const OF_TWO: [&str; 2] = ["SELECT json_patch(?1, ?2)", "SELECT jsonb_patch(?1, ?2)"];

fn text(random: &mut Random) -> Value {
    let mut text = String::new();
    document(random, 4, &mut text);
    Value::from(text.as_str())
}

fn value(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => Value::Integer(random.below(3000) as i64 - 5),
        2 => Value::Real(0.25),
        3 => Value::from("long text that needs a header of two bytes"),
        4 => Value::from("[1]"),
        _ => text(random),
    }
}

/// How many seeds.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("FULGURITE_JSON_SEEDS").map_or(usual, |s| s.parse().unwrap());
    println!("seeds 0 to {}", seeds - 1);
    0..seeds
}

#[test]
fn texts_paths_and_changes_by_chance() {
    for seed in seeds(60) {
        let mut random = Random(seed);
        let both = Both::new(seed);
        for _ in 0..250 {
            let json = text(&mut random);
            both.same(random.pick::<&str>(&OF_ONE), std::slice::from_ref(&json));
            let path = Value::from(path(&mut random).as_str());
            both.same(
                random.pick::<&str>(&OF_A_PATH),
                &[json.clone(), path.clone()],
            );
            let new = value(&mut random);
            both.same(
                random.pick::<&str>(&OF_A_CHANGE),
                &[json.clone(), path, new],
            );
            let patch = text(&mut random);
            both.same(random.pick::<&str>(&OF_TWO), &[json, patch]);
        }
    }
}

/// What a damaged blob gives is as it is in SQLite where the blob is read as a whole; no
/// function takes harm from it.
#[test]
fn damaged_jsonb_by_chance() {
    for seed in seeds(60) {
        let mut random = Random(seed);
        let both = Both::new(seed);
        for _ in 0..250 {
            let Some(blob) = damaged(&mut random, &both) else {
                continue;
            };
            let blob = Value::Blob(blob);
            for sql in [
                "SELECT json(?1)",
                "SELECT json_valid(?1, 4), json_valid(?1, 8)",
                "SELECT json_error_position(?1)",
                "SELECT json_type(?1)",
            ] {
                both.same(sql, std::slice::from_ref(&blob));
            }
            let path = Value::from(path(&mut random).as_str());
            for sql in OF_ONE {
                both.ours(sql, std::slice::from_ref(&blob));
            }
            for sql in OF_A_PATH {
                both.ours(sql, &[blob.clone(), path.clone()]);
            }
            for sql in OF_A_CHANGE {
                both.ours(sql, &[blob.clone(), path.clone(), value(&mut random)]);
            }
            for sql in OF_TWO {
                both.ours(sql, &[blob.clone(), text(&mut random)]);
                both.ours(sql, &[text(&mut random), blob.clone()]);
            }
        }
    }
}

/// The JSONB of a document with some bytes changed, cut off or doubled.
fn damaged(random: &mut Random, both: &Both) -> Option<Vec<u8>> {
    let json = text(random);
    let sql = "SELECT hex(jsonb(?1)) WHERE json_valid(?1, 2)";
    let rows = both.ours(sql, std::slice::from_ref(&json));
    let hex = rows.first()?.trim_matches('\'').to_owned();
    let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16));
    let mut blob: Vec<u8> = bytes.collect::<Result<_, _>>().ok()?;
    for _ in 0..1 + random.below(3) {
        let at = random.below(blob.len() as u64) as usize;
        match random.below(6) {
            0 => blob.truncate(at + 1),
            1 => blob.insert(at, random.next() as u8),
            2 => blob[at] ^= 1 << random.below(8),
            3 => blob[at] = blob[at] & 0x0f | (12 + random.below(4) as u8) << 4,
            4 => blob[at] = blob[at] & 0xf0 | random.below(16) as u8,
            _ => blob[at] = random.next() as u8,
        }
    }
    Some(blob)
}

/// As deep as documents may be, and deeper.
#[test]
fn nesting_is_bounded() {
    let both = Both::new(0);
    for depth in [999, 1000, 1001, 100_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let (label, end) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        for json in [format!("{open}{close}"), format!("{label}1{end}"), open] {
            let json = [Value::from(json.as_str())];
            both.same("SELECT json(?1) = ?1", &json);
            both.same("SELECT json_valid(?1), json_error_position(?1)", &json);
            both.same("SELECT json_pretty(?1, '') IS NULL", &json);
            both.same("SELECT count(*) FROM json_tree(?1)", &json);
            both.same("SELECT json_patch(?1, ?1) = ?1", &json);
        }
        let path = Value::from(format!("${}", ".a".repeat(depth)).as_str());
        both.same(
            "SELECT length(json_set('{}', ?1, 1))",
            std::slice::from_ref(&path),
        );
        both.same("SELECT json_extract('{\"a\":1}', ?1)", &[path]);
        // Blobs may nest without end, three bytes a level.
        let mut blob = vec![0x0b];
        while blob.len() < depth * 3 {
            let payload = blob.len();
            let mut outer = match payload {
                0..=11 => vec![(payload as u8) << 4 | 0x0b],
                12..=255 => vec![0xcb, payload as u8],
                256..=0xffff => vec![0xdb, (payload >> 8) as u8, payload as u8],
                _ => break,
            };
            outer.append(&mut blob);
            blob = outer;
        }
        let blob = [Value::Blob(blob)];
        both.same("SELECT length(json(?1)), json_valid(?1, 8)", &blob);
        both.same("SELECT json_error_position(?1)", &blob);
        both.same("SELECT count(*) FROM json_tree(?1)", &blob);
    }
}
