//! Commands that read and write files, and run programs.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::process::Command;

use fulgurite::backup::NO_PROGRESS;
use fulgurite::{Connection, OpenFlags};

use super::{open_file, usage};
use crate::shell::Shell;

/// Scripts that read scripts, at most.
const DEPTH_MAX: usize = 16;

/// The database and the file of `[DB] FILE`.
fn named<'a>(arguments: &[&'a str]) -> Option<(&'a str, &'a str)> {
    match arguments {
        [file] => Some(("main", file)),
        [name, file] => Some((name, file)),
        _ => None,
    }
}

pub fn backup(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let Some((name, file)) = named(arguments) else {
        return usage(shell, ".backup");
    };
    match shell.connection.backup(name, file, NO_PROGRESS) {
        Ok(()) => Ok(()),
        Err(e) => shell.fail(&e, None),
    }
}

pub fn restore(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let Some((name, file)) = named(arguments) else {
        return usage(shell, ".restore");
    };
    match shell.connection.restore(name, file, NO_PROGRESS) {
        Ok(()) => Ok(()),
        Err(e) => shell.fail(&e, None),
    }
}

pub fn open(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let (access, path) = match arguments {
        [] => (OpenFlags::default(), ":memory:"),
        ["--readonly"] => return usage(shell, ".open"),
        ["--readonly", path] => (OpenFlags::SQLITE_OPEN_READ_ONLY, *path),
        [path] => (OpenFlags::default(), *path),
        _ => return usage(shell, ".open"),
    };
    match Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_URI) {
        Ok(connection) => {
            shell.set_connection(connection);
            Ok(())
        }
        Err(e) => shell.fail(&e, None),
    }
}

pub fn cd(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let [folder] = arguments else {
        return usage(shell, ".cd");
    };
    match std::env::set_current_dir(folder) {
        Ok(()) => Ok(()),
        Err(e) => shell.fail_with(format!("cannot go to {folder}: {e}")),
    }
}

pub fn output(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [] | ["stdout" | "off"] => shell.write_to_standard_output(),
        [path] => write_to(shell, path, false),
        _ => usage(shell, ".output"),
    }
}

pub fn once(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [path] => write_to(shell, path, true),
        _ => usage(shell, ".once"),
    }
}

fn write_to(shell: &mut Shell, path: &str, once: bool) -> io::Result<()> {
    if path.starts_with('|') {
        return shell.fail_with("output to another program is not supported; write to a file");
    }
    match File::create(path) {
        Ok(file) => shell.write_to(Box::new(BufWriter::new(file)), path, once),
        Err(e) => shell.fail_with(format!("cannot write {path}: {e}")),
    }
}

pub fn read(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let [path] = arguments else {
        return usage(shell, ".read");
    };
    if shell.depth == DEPTH_MAX {
        return shell.fail_with(format!(
            "{path} is not read: scripts are {DEPTH_MAX} deep already"
        ));
    }
    match open_file(path) {
        Ok(file) => {
            shell.depth += 1;
            let outcome = shell.run_reader(&mut BufReader::new(file));
            shell.depth -= 1;
            outcome
        }
        Err(e) => shell.fail_with(format!("cannot open {path}: {e}")),
    }
}

pub fn shell(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let [program, arguments @ ..] = arguments else {
        return usage(shell, ".shell");
    };
    // What was shown before comes first.
    shell.out.flush()?;
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => shell.fail_with(format!("{program}: {status}")),
        Err(e) => shell.fail_with(format!("cannot run {program}: {e}")),
    }
}
