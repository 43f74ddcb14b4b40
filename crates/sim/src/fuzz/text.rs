//! SQL text: the statements of the corpus, whole, cut up, and put together.
//!
//! A text may ask for rows without end (a recursion that counts on under an aggregate). It
//! is interrupted then, as whoever asked it would.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use fulgurite::{Connection, InterruptHandle, Result};

use crate::Rng;

const CORPUS: &str = include_str!("../../corpus/statements.sql");
const SCHEMA: &str = include_str!("../../corpus/schema.sql");
/// SQLite's code of a damaged database.
const CORRUPT: i32 = 11;
/// Rows looked at of a result.
const ROWS_MAX: usize = 200;

pub(super) fn statements() -> Vec<&'static str> {
    CORPUS
        .split(";\n")
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect()
}

/// How long an input may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Interrupts what takes too long.
pub(super) struct Watch(Arc<Watched>);

/// The connection at work, and since when.
type Watched = Mutex<Option<(Instant, InterruptHandle)>>;

impl Watch {
    pub(super) fn new() -> Self {
        let watched = Arc::new(Mutex::new(None));
        let weak = Arc::downgrade(&watched);
        thread::spawn(move || while look(&weak) {});
        Self(watched)
    }

    pub(super) fn set(&self, watched: Option<(Instant, InterruptHandle)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = watched;
    }
}

/// False once nobody is at work any more.
fn look(watched: &Weak<Watched>) -> bool {
    thread::sleep(PATIENCE / 8);
    let Some(watched) = watched.upgrade() else {
        return false;
    };
    if let Some((since, handle)) = &*watched.lock().unwrap_or_else(PoisonError::into_inner)
        && since.elapsed() > PATIENCE
    {
        handle.interrupt();
    }
    true
}

pub(super) fn run(statements: &[&str], watch: &Watch, rng: &mut Rng) {
    let connection = Connection::open_in_memory().expect("memory is there");
    watch.set(Some((Instant::now(), connection.get_interrupt_handle())));
    connection
        .execute_batch(SCHEMA)
        .expect("the schema is valid");
    let mut texts = Vec::new();
    for _ in 0..3 {
        let text = made_up(statements, rng);
        if let Err(error) = execute(&connection, &text, rng) {
            assert!(error.result_code() != 0, "an error without a code: {text}");
            let is_corrupt = error.result_code() & 0xff == CORRUPT;
            // A name that the text to be kept cannot have (CREATE TABLE IF NOT EXISTS IF) is
            // refused as in SQLite, and nothing is kept.
            let is_refused = error.to_string().starts_with("malformed database schema (");
            assert!(!is_corrupt || is_refused, "{error}: {text}");
        }
        texts.push(text);
    }
    watch.set(None);
    let sql = "PRAGMA integrity_check";
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").expect("it rolls back");
    }
    let found: String = connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("the check fails: {error}, after {texts:#?}"));
    assert_eq!(found, "ok", "after {texts:#?}");
}

fn execute(connection: &Connection, text: &str, rng: &mut Rng) -> Result<()> {
    if rng.one_in(4) {
        return connection.execute_batch(text);
    }
    let mut statement = connection.prepare(text)?;
    for number in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(number, rng.below(5) as i64)?;
    }
    let mut rows = statement.raw_query();
    for _ in 0..ROWS_MAX {
        if rows.next()?.is_none() {
            break;
        }
    }
    Ok(())
}

fn made_up(statements: &[&str], rng: &mut Rng) -> String {
    let one = statements[rng.index(statements.len())];
    match rng.below(6) {
        0 => one.to_owned(),
        1 => {
            // Bytes that need not be text any more.
            let mut bytes = one.as_bytes().to_vec();
            for _ in 0..1 + rng.below(3) {
                let at = rng.index(bytes.len());
                bytes[at] = rng.bits() as u8;
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        2 => {
            let mut at = rng.index(one.len() + 1);
            while !one.is_char_boundary(at) {
                at -= 1;
            }
            one[..at].to_owned()
        }
        _ => {
            let other = statements[rng.index(statements.len())];
            let mut words = words(one);
            let others = self::words(other);
            for _ in 0..1 + rng.below(4) {
                let at = rng.index(words.len() + 1);
                let from = rng.index(others.len());
                let end = others.len().min(from + 1 + rng.index(6));
                match rng.below(4) {
                    0 if at < words.len() => {
                        words.remove(at);
                    }
                    1 if at < words.len() => words[at] = others[from],
                    2 => {
                        words.splice(at..at, ["(", "SELECT", "1", ")"]);
                    }
                    _ => {
                        words.splice(at..at, others[from..end].iter().copied());
                    }
                }
            }
            words.join(" ")
        }
    }
}

/// Roughly SQL's words: names and numbers, strings, and single signs.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        } else if first == '\'' {
            rest[1..].find('\'').map(|at| at + 2)
        } else {
            Some(first.len_utf8())
        };
        let (word, later) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = later.trim_start();
    }
    words
}
