//! Commands that say how the shell is to behave.

use std::io::{self, Write};
use std::time::Duration;

use clap::ValueEnum;

use super::{switch, usage};
use crate::output::{Look, Mode};
use crate::shell::Shell;

/// Sets what `field` is in the shell by `on` or `off`.
fn set(
    shell: &mut Shell,
    name: &str,
    arguments: &[&str],
    field: impl Fn(&mut Shell, bool),
) -> io::Result<()> {
    match arguments {
        [word] if switch(word).is_some() => {
            field(shell, switch(word) == Some(true));
            Ok(())
        }
        _ => usage(shell, name),
    }
}

pub fn bail(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    set(shell, ".bail", arguments, |shell, on| shell.bail = on)
}

pub fn changes(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    set(shell, ".changes", arguments, |shell, on| shell.changes = on)
}

pub fn echo(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    set(shell, ".echo", arguments, |shell, on| shell.echo = on)
}

pub fn headers(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    set(shell, ".headers", arguments, |shell, on| {
        shell.look.headers = Some(on);
    })
}

pub fn timer(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    set(shell, ".timer", arguments, |shell, on| shell.timer = on)
}

pub fn mode(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [] => writeln!(
            shell.out,
            "current output mode: {}",
            name_of(shell.look.mode)
        ),
        [name, rest @ ..] => match Mode::from_str(name, true) {
            Ok(mode) => {
                shell.look.set_mode(mode);
                shell.look.table = rest.first().map_or("table", |table| *table).to_owned();
                Ok(())
            }
            Err(_) => usage(shell, ".mode"),
        },
    }
}

fn name_of(mode: Mode) -> String {
    let value = mode.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

pub fn null_value(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [text] => {
            shell.look.null = Some((*text).to_owned());
            Ok(())
        }
        _ => usage(shell, ".nullvalue"),
    }
}

pub fn separator(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let owned = |text: &str| Some(unescaped(text));
    match arguments {
        [column] => shell.look.separator = owned(column),
        [column, row] => {
            shell.look.separator = owned(column);
            shell.look.row_separator = owned(row);
        }
        _ => return usage(shell, ".separator"),
    }
    Ok(())
}

/// `\t`, `\n` and the like as the characters that they stand for.
pub fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(super::escaped(chars.next())),
            _ => out.push(c),
        }
    }
    out
}

pub fn width(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    let widths = arguments.iter().map(|width| width.parse::<i16>());
    match widths.collect::<Result<Vec<_>, _>>() {
        Ok(widths) => {
            shell.look.widths = widths.into_iter().map(i32::from).collect();
            Ok(())
        }
        Err(_) => usage(shell, ".width"),
    }
}

pub fn timeout(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [ms] if ms.parse::<u32>().is_ok() => {
            let ms = ms.parse().unwrap_or(0);
            match shell.connection.busy_timeout(Duration::from_millis(ms)) {
                Ok(()) => Ok(()),
                Err(e) => shell.fail(&e, None),
            }
        }
        _ => usage(shell, ".timeout"),
    }
}

pub fn prompt(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [main] | [main, _] => {
            shell.prompt = (*main).to_owned();
            Ok(())
        }
        _ => usage(shell, ".prompt"),
    }
}

pub fn print(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    writeln!(shell.out, "{}", arguments.join(" "))
}

pub fn quit(shell: &mut Shell, _: &[&str]) -> io::Result<()> {
    shell.quit(None);
    Ok(())
}

pub fn exit(shell: &mut Shell, arguments: &[&str]) -> io::Result<()> {
    match arguments {
        [] => shell.quit(None),
        [code] if code.parse::<u8>().is_ok() => shell.quit(code.parse().ok()),
        _ => return usage(shell, ".exit"),
    }
    Ok(())
}

pub fn version(shell: &mut Shell, _: &[&str]) -> io::Result<()> {
    writeln!(shell.out, "fulgurite {}", env!("CARGO_PKG_VERSION"))
}

pub fn show(shell: &mut Shell, _: &[&str]) -> io::Result<()> {
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let Look { widths, .. } = &shell.look;
    let widths: Vec<String> = widths.iter().map(ToString::to_string).collect();
    let path = shell.connection.path().filter(|path| !path.is_empty());
    let lines = [
        ("bail", on(shell.bail)),
        ("changes", on(shell.changes)),
        ("echo", on(shell.echo)),
        ("headers", on(shell.look.has_headers())),
        ("mode", name_of(shell.look.mode)),
        ("nullvalue", format!("{:?}", shell.look.null())),
        ("output", shell.output_name().to_owned()),
        ("colseparator", format!("{:?}", shell.look.separator())),
        ("rowseparator", format!("{:?}", shell.look.row_separator())),
        ("timer", on(shell.timer)),
        ("width", widths.join(" ")),
        ("filename", path.unwrap_or(":memory:").to_owned()),
    ];
    let mut lines = lines.iter();
    lines.try_for_each(|(name, value)| writeln!(shell.out, "{name:>12}: {value}"))
}
