//! Values that are read and written through handles, asked for in words like a statement.

use crate::session::Told;
use crate::shape::{FILES, KEYS, letter};
use fastrand::Rng;

/// Of which row of which table, and what is written, if anything.
pub struct Asked<'a> {
    pub file: &'static str,
    pub table: &'a str,
    pub row: i64,
    pub written: Option<&'a str>,
}

/// One of some kind; what is written says by whom.
pub fn any(rng: &mut Rng, files: usize, by: &str) -> String {
    let table = letter(FILES[rng.usize(..files)]);
    let (n, row) = ([1, 1, 3, 2, 4][rng.usize(..5)], rng.i64(0..KEYS));
    let written = if rng.bool() { by.trim_end() } else { "" };
    format!("BLOB {table}{n} {row} {written}")
}

/// Whether that is asked for.
pub fn parse(sql: &str) -> Option<Asked<'_>> {
    let mut words = sql.strip_prefix("BLOB ")?.split(' ');
    let (table, row) = (words.next()?, words.next()?.parse().ok()?);
    let file = FILES.iter().find(|file| table.starts_with(letter(file)))?;
    let written = words.next().filter(|it| !it.is_empty());
    Some(Asked {
        file,
        table,
        row,
        written,
    })
}

/// What a handle answers: how long the value is, and how it begins.
pub fn shown(len: usize, start: &[u8]) -> Told {
    Told::Rows(vec![format!("{len} {}", String::from_utf8_lossy(start))])
}

/// Asks a connection, ours or the model's.
macro_rules! through_handle {
    ($connection:expr, $asked:expr) => {{
        let asked: &$crate::blob::Asked<'_> = $asked;
        let is_read = asked.written.is_none();
        let handle = $connection.blob_open(asked.file, asked.table, "p", asked.row, is_read);
        handle.and_then(|mut handle| match asked.written {
            Some(written) => {
                let wrote = handle.write_at(written.as_bytes(), 0);
                wrote.map(|()| $crate::session::Told::Changed(0))
            }
            None => {
                let mut start = [0; 8];
                let read = handle.read_at(&mut start, 0)?;
                Ok($crate::blob::shown(handle.len(), &start[..read]))
            }
        })
    }};
}
pub(crate) use through_handle;
