//! Runs SQL logic files: the project's own in `tests/slt`, and, where
//! `FULGURITE_SLT_DIR` names a folder, all `*.test` files below it.
//!
//! `FULGURITE_SLT_ENGINE=sqlite` runs the same files against bundled SQLite,
//! which validates the files and this runner. `FULGURITE_SLT_SKIP` names a file
//! of `path reason` lines: paths (or their beginnings) below the folder that are
//! not run. Every file has a fresh database in memory.

mod common;

use common::{Engine, Open, Value};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

const ENGINE: &str = "sqlite";
const SHOWN_FAILURES: usize = 20;

/// What a record wants of its statement.
#[derive(Debug)]
enum Expect<'a> {
    Success,
    Error,
    Rows {
        types: &'a str,
        sort: Sort,
        label: Option<&'a str>,
        lines: Option<Vec<&'a str>>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Sort {
    None,
    Rows,
    Values,
}

#[derive(Debug)]
enum Record<'a> {
    Run {
        line: usize,
        sql: String,
        expect: Expect<'a>,
    },
    HashThreshold(usize),
    Halt,
}

/// Cuts a file into the records that run for our engine's name.
fn parse(text: &str) -> Result<Vec<Record<'_>>, String> {
    let mut lines = text.lines().enumerate();
    let mut records = Vec::new();
    let mut wanted = true;
    while let Some((number, line)) = lines.next() {
        let mut words = line.split_whitespace();
        let Some(head) = words.next() else { continue };
        let record = match head {
            _ if head.starts_with('#') => continue,
            "skipif" => {
                wanted &= words.next() != Some(ENGINE);
                continue;
            }
            "onlyif" => {
                wanted &= words.next() == Some(ENGINE);
                continue;
            }
            "hash-threshold" => {
                let limit = words.next().and_then(|word| word.parse().ok());
                Record::HashThreshold(limit.ok_or(format!("line {}: no threshold", number + 1))?)
            }
            "halt" => Record::Halt,
            "statement" | "query" => {
                let mut body = Vec::new();
                for (_, line) in lines.by_ref() {
                    let line = line.trim_end();
                    if line.is_empty() {
                        break;
                    }
                    body.push(line);
                }
                let (sql, rows) = match body.iter().position(|line| *line == "----") {
                    Some(at) => (&body[..at], Some(body[at + 1..].to_vec())),
                    None => (&body[..], None),
                };
                let words: Vec<&str> = words.collect();
                Record::Run {
                    line: number + 1,
                    sql: sql.join("\n"),
                    expect: expectation(head, &words, rows)
                        .ok_or(format!("line {}: {line}", number + 1))?,
                }
            }
            _ => return Err(format!("line {}: unknown record {line}", number + 1)),
        };
        if std::mem::replace(&mut wanted, true) {
            records.push(record);
        }
    }
    Ok(records)
}

fn expectation<'a>(
    head: &str,
    words: &[&'a str],
    lines: Option<Vec<&'a str>>,
) -> Option<Expect<'a>> {
    let first = *words.first()?;
    if head == "statement" {
        return match first {
            "ok" => Some(Expect::Success),
            "error" => Some(Expect::Error),
            _ => None,
        };
    }
    let sort = match words.get(1).copied() {
        None | Some("nosort") => Sort::None,
        Some("rowsort") => Sort::Rows,
        Some("valuesort") => Sort::Values,
        Some(_) => return None,
    };
    Some(Expect::Rows {
        types: first,
        sort,
        label: words.get(2).copied(),
        lines,
    })
}

/// The text of a value under a type letter of the record.
fn render(value: &Value, letter: u8) -> String {
    match (letter, value) {
        (_, Value::Null) => "NULL".into(),
        (b'I', Value::Integer(value)) => (*value as i32).to_string(),
        (b'I', Value::Real(value)) => (*value as i64 as i32).to_string(),
        (b'I', Value::Text(bytes) | Value::Blob(bytes)) => {
            (number_prefix(bytes) as i64 as i32).to_string()
        }
        (b'R', Value::Integer(value)) => fixed(*value as f64),
        (b'R', Value::Real(value)) => fixed(*value),
        (b'R', Value::Text(bytes) | Value::Blob(bytes)) => fixed(number_prefix(bytes)),
        (_, Value::Integer(value)) => value.to_string(),
        (_, Value::Real(value)) => format!("{value:?}"),
        (_, Value::Text(bytes) | Value::Blob(bytes)) if bytes.is_empty() => "(empty)".into(),
        (_, Value::Text(bytes) | Value::Blob(bytes)) => bytes
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '@',
            })
            .collect(),
    }
}

/// Three decimals, of which SQLite's formatting makes sixteen digits count.
fn fixed(value: f64) -> String {
    if value.abs() < 1e16 {
        return format!("{value:.3}");
    }
    let scientific = format!("{value:.15e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let zeroes = exponent.parse::<usize>().map_or(0, |power| power - 15);
    format!("{}{}.000", digits.replace('.', ""), "0".repeat(zeroes))
}

/// The number that a text begins with, or zero.
fn number_prefix(bytes: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start();
    (0..=text.len())
        .rev()
        .filter_map(|end| text.get(..end))
        .filter(|prefix| !prefix.ends_with(|last: char| last.is_ascii_alphabetic()))
        .find_map(|prefix| prefix.parse().ok())
        .unwrap_or(0.0)
}

/// The rows as the file would hold them, one value a line.
fn layout(rows: &[Vec<Value>], types: &str, sort: Sort) -> Vec<String> {
    let mut rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let letters = types.bytes().chain(std::iter::repeat(b'T'));
            row.iter()
                .zip(letters)
                .map(|(value, letter)| render(value, letter))
                .collect()
        })
        .collect();
    if let Sort::Rows = sort {
        rows.sort();
    }
    let mut values: Vec<String> = rows.into_iter().flatten().collect();
    if let Sort::Values = sort {
        values.sort();
    }
    values
}

fn digest(values: &[String]) -> String {
    let mut context = md5::Context::new();
    for value in values {
        context.consume(value);
        context.consume("\n");
    }
    format!(
        "{} values hashing to {:x}",
        values.len(),
        context.finalize()
    )
}

/// Counts and complaints of one or many files.
#[derive(Debug, Default)]
struct Tally {
    statements: usize,
    queries: usize,
    failures: Vec<String>,
}

/// Runs one file on a fresh database.
fn run_file(name: &str, text: &str, open: Open) -> Tally {
    let mut tally = Tally::default();
    let records = match parse(text) {
        Ok(records) => records,
        Err(error) => {
            tally.failures.push(format!("{name}: {error}"));
            return tally;
        }
    };
    let mut engine = open(None);
    let mut threshold = 8;
    let mut labels = HashMap::new();
    for record in &records {
        match record {
            Record::Halt => break,
            Record::HashThreshold(limit) => threshold = *limit,
            Record::Run { line, sql, expect } => {
                match expect {
                    Expect::Rows { .. } => tally.queries += 1,
                    Expect::Success | Expect::Error => tally.statements += 1,
                }
                if let Err(problem) = check(engine.as_mut(), sql, expect, threshold, &mut labels) {
                    tally
                        .failures
                        .push(format!("{name}:{line}: {problem}\n    {sql}"));
                }
            }
        }
    }
    tally
}

fn check<'a>(
    engine: &mut dyn Engine,
    sql: &str,
    expect: &Expect<'a>,
    threshold: usize,
    labels: &mut HashMap<&'a str, String>,
) -> Result<(), String> {
    let Expect::Rows {
        types,
        sort,
        label,
        lines,
    } = expect
    else {
        return match (expect, engine.run_script(sql)) {
            (Expect::Error, None) => Err("no error".into()),
            (Expect::Success, Some(failure)) => Err(failure.to_string()),
            _ => Ok(()),
        };
    };
    let answer = engine.run(sql, &[]);
    if let Some(failure) = &answer.failure
        && (failure.preparing || answer.columns.is_empty())
    {
        return Err(failure.to_string());
    }
    let values = layout(&answer.rows, types, *sort);
    let hash = digest(&values);
    if let Some(label) = label {
        let first = labels.entry(*label).or_insert_with(|| hash.clone());
        if *first != hash {
            return Err(format!("label {label}: {hash}, but {first} before"));
        }
    }
    let Some(lines) = lines else { return Ok(()) };
    let values = if threshold > 0 && values.len() > threshold {
        vec![hash]
    } else {
        values
    };
    if &values == lines {
        return Ok(());
    }
    Err(format!("gave {values:?}, expected {lines:?}"))
}

/// All logic files below a folder, with their names relative to it.
fn files_below(root: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "test")
            {
                let name = path.strip_prefix(root).unwrap_or(&path);
                found.push((name.to_string_lossy().into_owned(), path));
            }
        }
    }
    found.sort();
    found
}

/// Runs files on all cores and panics with the failures.
fn run_all(files: &[(String, PathBuf)], open: Open) {
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Tally::default());
    let broken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = fs::read_to_string(path).expect("the file can be read");
                    let tally = run_file(name, &text, open);
                    if !tally.failures.is_empty() {
                        broken.fetch_add(1, Ordering::Relaxed);
                        println!("{name}: {} failed", tally.failures.len());
                    }
                    let mut total = total.lock().expect("no thread panicked");
                    total.statements += tally.statements;
                    total.queries += tally.queries;
                    total.failures.extend(tally.failures);
                }
            });
        }
    });
    let total = total.into_inner().expect("no thread panicked");
    let mut report = format!(
        "{} files ({} broken), {} statements and {} queries run, {} failed",
        files.len(),
        broken.into_inner(),
        total.statements,
        total.queries,
        total.failures.len()
    );
    println!("{report}");
    for failure in total.failures.iter().take(SHOWN_FAILURES) {
        let _ = write!(report, "\n{failure}");
    }
    assert!(total.failures.is_empty(), "{report}");
}

fn engine() -> Open {
    match env::var("FULGURITE_SLT_ENGINE").as_deref() {
        Ok("sqlite") => common::sqlite,
        _ => common::ours,
    }
}

#[test]
fn own_logic_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let files = files_below(&root);
    assert!(!files.is_empty());
    run_all(&files, engine());
}

#[test]
fn given_logic_files() {
    let Some(root) = env::var_os("FULGURITE_SLT_DIR") else {
        println!("FULGURITE_SLT_DIR is not set: nothing to run");
        return;
    };
    let skips = env::var_os("FULGURITE_SLT_SKIP").map_or(String::new(), |path| {
        fs::read_to_string(path).expect("the list of skipped files can be read")
    });
    let mut files = files_below(Path::new(&root));
    for line in skips.lines().filter(|line| !line.starts_with('#')) {
        let Some((path, reason)) = line.split_once(' ') else {
            continue;
        };
        let before = files.len();
        files.retain(|(name, _)| !name.starts_with(path));
        println!(
            "skipped {} of {path}: {}",
            before - files.len(),
            reason.trim()
        );
    }
    assert!(!files.is_empty());
    run_all(&files, engine());
}
