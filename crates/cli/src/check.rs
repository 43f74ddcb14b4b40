//! `fulgurite check`: walks a whole database file.

use std::io::{self, Write};
use std::path::Path;

use fulgurite::{Database, Options};

use crate::output::Mode;
use crate::report;

/// Says what is wrong with the file; true if nothing is. Its log may be missing where
/// that is to be abandoned.
pub fn run(path: &Path, json: bool, abandon_missing_log: bool) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let options = Options {
        read_only: true,
        create: false,
        abandon_missing_log,
        ..Options::default()
    };
    let problems =
        match Database::open_with_options(path, options).and_then(|db| db.integrity_check()) {
            Ok(problems) => problems,
            Err(e) => {
                report::failure(
                    if json { Mode::Objects } else { Mode::Box },
                    &e,
                    None,
                    &mut out,
                )?;
                return Ok(false);
            }
        };
    let sound = problems.is_empty();
    if json {
        let problems = serde_json::Value::from(problems);
        writeln!(out, r#"{{"ok":{sound},"problems":{problems}}}"#)?;
    } else if sound {
        writeln!(out, "{}: ok", path.display())?;
    } else {
        for problem in &problems {
            writeln!(out, "{}: {problem}", path.display())?;
        }
        writeln!(out, "{} problems found", problems.len())?;
    }
    Ok(sound)
}
