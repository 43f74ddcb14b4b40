//! What a path given to `open` means: a file, a database in memory, or a
//! `file:` URI; and the flags that go with it.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use fulgurite_sql::session;

use crate::{Error, Result, ffi};

bitflags::bitflags! {
    /// How a database is opened.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    #[repr(C)]
    pub struct OpenFlags: c_int {
        /// For reading only; the file must exist.
        const SQLITE_OPEN_READ_ONLY = 0x0000_0001;
        /// For reading and writing.
        const SQLITE_OPEN_READ_WRITE = 0x0000_0002;
        /// Create the file if it is absent.
        const SQLITE_OPEN_CREATE = 0x0000_0004;
        /// The path may be a `file:` URI.
        const SQLITE_OPEN_URI = 0x0000_0040;
        /// In memory, whatever the path.
        const SQLITE_OPEN_MEMORY = 0x0000_0080;
        /// Accepted; connections are always safe to move between threads.
        const SQLITE_OPEN_NO_MUTEX = 0x0000_8000;
        /// Accepted; connections are always safe to move between threads.
        const SQLITE_OPEN_FULL_MUTEX = 0x0001_0000;
        /// Accepted; all connections to a file share one cache.
        const SQLITE_OPEN_SHARED_CACHE = 0x0002_0000;
        /// Accepted; all connections to a file share one cache.
        const SQLITE_OPEN_PRIVATE_CACHE = 0x0004_0000;
        /// Refuse a path that is a symbolic link.
        const SQLITE_OPEN_NOFOLLOW = 0x0100_0000;
        /// Accepted; result codes are always extended.
        const SQLITE_OPEN_EXRESCODE = 0x0200_0000;
    }
}

impl Default for OpenFlags {
    #[inline]
    fn default() -> Self {
        Self::SQLITE_OPEN_READ_WRITE
            | Self::SQLITE_OPEN_CREATE
            | Self::SQLITE_OPEN_NO_MUTEX
            | Self::SQLITE_OPEN_URI
    }
}

/// What is to be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Memory,
    File {
        path: PathBuf,
        read_only: bool,
        create: bool,
    },
}

impl Target {
    /// Reads path and flags as SQLite does.
    pub(crate) fn new(path: &Path, flags: OpenFlags) -> Result<Self> {
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(Error::InvalidPath(path.to_owned()));
        }
        let creates = OpenFlags::SQLITE_OPEN_CREATE;
        let writes = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let (read_only, create) =
            match flags & (OpenFlags::SQLITE_OPEN_READ_ONLY | writes | creates) {
                OpenFlags::SQLITE_OPEN_READ_ONLY => (true, false),
                asked if asked == writes => (false, false),
                asked if asked == writes | creates => (false, true),
                _ => {
                    let message = ffi::code_to_str(ffi::SQLITE_MISUSE);
                    return Err(Error::failure(ffi::SQLITE_MISUSE, message));
                }
            };
        if flags.contains(OpenFlags::SQLITE_OPEN_MEMORY)
            || path == Path::new(":memory:")
            || path.as_os_str().is_empty()
        {
            return Ok(Target::Memory);
        }
        let file = match path.to_str().and_then(|p| p.strip_prefix("file:")) {
            Some(uri) if flags.contains(OpenFlags::SQLITE_OPEN_URI) => {
                Self::from_uri(uri, read_only, create)?
            }
            _ => Target::File {
                path: path.to_owned(),
                read_only,
                create,
            },
        };
        if let Target::File { path, .. } = &file
            && flags.contains(OpenFlags::SQLITE_OPEN_NOFOLLOW)
            && path.is_symlink()
        {
            return Err(Error::failure(
                ffi::SQLITE_CANTOPEN_SYMLINK,
                ffi::code_to_str(ffi::SQLITE_CANTOPEN),
            ));
        }
        Ok(file)
    }

    /// `uri` is what follows `file:`.
    fn from_uri(uri: &str, read_only: bool, create: bool) -> Result<Self> {
        let uri = uri.split_once('#').map_or(uri, |(before, _)| before);
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let path = match path.strip_prefix("//") {
            Some(rest) => match rest.find('/') {
                Some(0) => rest,
                Some(at) if rest.get(..at) == Some("localhost") => {
                    rest.get(at..).unwrap_or_default()
                }
                at => {
                    let host = rest.get(..at.unwrap_or(rest.len())).unwrap_or_default();
                    let message = format!("invalid uri authority: {host}");
                    return Err(Error::failure(ffi::SQLITE_ERROR, message));
                }
            },
            None => path,
        };
        let path = percent_decoded(path)?;
        let (mut memory, mut shared) = (path == ":memory:" || path.is_empty(), false);
        let (mut read_only, mut create, mut immutable) = (read_only, create, false);
        for option in query.split('&').filter(|o| !o.is_empty()) {
            match option.split_once('=').unwrap_or((option, "")) {
                ("mode", "memory") => memory = true,
                ("mode", "ro") => (read_only, create) = (true, false),
                ("mode", "rw") if !read_only => create = false,
                ("mode", "rwc") if !read_only && create => {}
                ("mode", mode @ ("rw" | "rwc")) => {
                    let message = format!("access mode not allowed: {mode}");
                    return Err(Error::failure(ffi::SQLITE_PERM, message));
                }
                ("mode", other) => {
                    let message = format!("no such access mode: {other}");
                    return Err(Error::failure(ffi::SQLITE_ERROR, message));
                }
                ("cache", "shared") => shared = true,
                ("cache", "private") => shared = false,
                ("cache", other) => {
                    let message = format!("no such cache mode: {other}");
                    return Err(Error::failure(ffi::SQLITE_ERROR, message));
                }
                ("vfs", other) if other != "unix" => {
                    let message = format!("no such vfs: {other}");
                    return Err(Error::failure(ffi::SQLITE_ERROR, message));
                }
                ("immutable", value) => immutable = is_on(value),
                _ => {}
            }
        }
        match (memory, shared) {
            // What nobody changes is not changed here either.
            (false, _) => Ok(Target::File {
                path: PathBuf::from(path),
                read_only: read_only || immutable,
                create: create && !immutable,
            }),
            (true, false) => Ok(Target::Memory),
            (true, true) => Err(Error::failure_with_hint(
                ffi::SQLITE_CANTOPEN,
                "unable to open database file",
                "a database in memory is shared by connect(), not by its name: Database::in_memory()?.connect()",
            )),
        }
    }
}

/// What the name of a file in ATTACH means: what it would to
/// [`Connection::open`](crate::Connection::open).
pub(crate) fn locate(name: &str) -> fulgurite_sql::Result<session::Target> {
    match Target::new(Path::new(name), OpenFlags::default()) {
        Ok(Target::Memory) => Ok(session::Target::Memory),
        Ok(Target::File {
            path,
            read_only,
            create,
        }) => Ok(session::Target::File {
            path,
            read_only,
            create,
        }),
        Err(Error::SqliteFailure(code, message)) => Err(fulgurite_sql::Error::new(
            code.extended_code,
            message.unwrap_or_default(),
        )),
        Err(other) => Err(fulgurite_sql::Error::new(
            ffi::SQLITE_CANTOPEN,
            other.to_string(),
        )),
    }
}

fn percent_decoded(text: &str) -> Result<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) if high + low > 0 => out.push((high * 16 + low) as u8),
            _ => return Err(bad_uri("invalid percent escape in the uri")),
        }
    }
    String::from_utf8(out).map_err(|_| bad_uri("the uri's path is not UTF-8"))
}

/// What SQLite takes for yes.
fn is_on(value: &str) -> bool {
    let words = ["on", "yes", "true"];
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
        || value.parse::<i64>().is_ok_and(|number| number != 0)
}

#[cold]
fn bad_uri(hint: &str) -> Error {
    Error::failure_with_hint(ffi::SQLITE_CANTOPEN, "unable to open database file", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, read_only: bool, create: bool) -> Target {
        Target::File {
            path: path.into(),
            read_only,
            create,
        }
    }

    #[test]
    fn paths_and_uris_are_read_as_sqlite_does() {
        let open = |p: &str| Target::new(Path::new(p), OpenFlags::default());
        assert_eq!(open("a.db"), Ok(file("a.db", false, true)));
        assert_eq!(open(":memory:"), Ok(Target::Memory));
        assert_eq!(open(""), Ok(Target::Memory));
        assert_eq!(open("file:a.db"), Ok(file("a.db", false, true)));
        assert_eq!(
            open("file:///x/a%20b.db?mode=ro#part"),
            Ok(file("/x/a b.db", true, false))
        );
        assert_eq!(
            open("file://localhost/x?mode=rw"),
            Ok(file("/x", false, false))
        );
        assert_eq!(
            open("file:/x?immutable=1&mode=rw"),
            Ok(file("/x", true, false))
        );
        assert_eq!(open("file:/x?immutable=no"), Ok(file("/x", false, true)));
        assert_eq!(open("file::memory:"), Ok(Target::Memory));
        assert_eq!(open("file:x?mode=memory&cache=private"), Ok(Target::Memory));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let open = |p: &str, flags| Target::new(Path::new(p), flags).expect_err(p).result_code();
        let all = OpenFlags::default();
        assert_eq!(open("file://host/x", all), ffi::SQLITE_ERROR);
        assert_eq!(open("file:a?cache=x", all), ffi::SQLITE_ERROR);
        assert_eq!(open("file:a?vfs=x", all), ffi::SQLITE_ERROR);
        assert_eq!(open("file:a%zz", all), ffi::SQLITE_CANTOPEN);
        assert_eq!(open("file:a?mode=x", all), ffi::SQLITE_ERROR);
        assert_eq!(
            open("file:a?mode=memory&cache=shared", all),
            ffi::SQLITE_CANTOPEN
        );
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        assert_eq!(open("file:a?mode=rwc", read_only), ffi::SQLITE_PERM);
        assert_eq!(open("a", OpenFlags::empty()), ffi::SQLITE_MISUSE);
        let both = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_CREATE;
        assert_eq!(open("a", both), ffi::SQLITE_MISUSE);
        assert_eq!(open("a\0b", all), ffi::SQLITE_CANTOPEN);
    }

    #[test]
    fn flags_have_sqlites_values() {
        for (name, flag) in OpenFlags::all().iter_names() {
            let theirs = rusqlite::OpenFlags::from_name(name).map(|f| f.bits());
            assert_eq!(Some(flag.bits()), theirs, "{name}");
        }
        assert_eq!(
            OpenFlags::default().bits(),
            rusqlite::OpenFlags::default().bits()
        );
    }
}
