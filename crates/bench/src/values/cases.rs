//! What is measured of each kind and size of body, in this order. In `documents` the body is
//! the last column, in `records` the second.

use crate::side::Commits;

pub const TABLES: &str = "
    CREATE TABLE documents (id INTEGER PRIMARY KEY, n INTEGER, title TEXT, body);
    CREATE TABLE records (id INTEGER PRIMARY KEY, body, title TEXT, n INTEGER);
    CREATE TABLE copies (id INTEGER PRIMARY KEY, n INTEGER, title TEXT, body)";

pub const INSERT: &str = "INSERT INTO documents (id, n, title, body) \
                          VALUES (?1, ?1 % 1000, 'title ' || ?1, ?2)";
pub const INSERT_RECORD: &str = "INSERT INTO records (id, n, title, body) \
                                 VALUES (?1, ?1 % 1000, 'title ' || ?1, ?2)";
pub const DELETE: &str = "DELETE FROM documents WHERE id = ?1";

/// Whose keys a case is given.
#[derive(Debug, Clone, Copy)]
pub enum Table {
    Documents,
    Records,
}

/// What a case does.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// The bytes of the database file, after a checkpoint.
    Size,
    /// Rows behind the last key, which go after the case.
    Insert(Commits),
    /// A statement of a key, which changes a row.
    Change(Table, &'static str, Commits),
    /// The same with a new body.
    Replace(&'static str, Commits),
    /// Rows that came right before.
    Delete(Commits),
    /// A query of a key.
    Lookup(Table, &'static str),
    /// A query over all rows.
    Scan(&'static str),
    /// How many bodies have something rare in them.
    Search,
    /// INSERT ... SELECT into an empty table.
    Copy,
    /// All of a body through a handle, part after part.
    ReadParts,
    /// A part from the middle of a body through a handle.
    ReadPart,
    /// The same, written.
    WritePart(Commits),
    /// VACUUM INTO a new file. (VACUUM itself has nothing to do on one side.)
    Vacuum,
}

/// Name, what is said of it, and what it does.
pub const CASES: [(&str, &str, Work); 28] = {
    use Commits::{Each, One};
    use Table::{Documents, Records};
    use Work::{
        Change, Copy, Delete, Insert, Lookup, ReadPart, ReadParts, Replace, Scan, Search, Size,
        Vacuum, WritePart,
    };
    const NUMBER: &str = "UPDATE documents SET n = n + 1 WHERE id = ?1";
    const BEHIND: &str = "UPDATE records SET n = n + 1 WHERE id = ?1";
    const BODY: &str = "UPDATE documents SET body = ?2 WHERE id = ?1";
    [
        ("size_loaded", "the file after loading", Size),
        ("insert", "INSERTs in a transaction", Insert(One)),
        ("insert_each", "INSERT, one a commit", Insert(Each)),
        ("replace", "new bodies in a transaction", Replace(BODY, One)),
        (
            "replace_each",
            "a new body, one a commit",
            Replace(BODY, Each),
        ),
        (
            "same_each",
            "UPDATE of a body to what it is, one a commit",
            Change(
                Documents,
                "UPDATE documents SET body = body WHERE id = ?1",
                Each,
            ),
        ),
        (
            "size_replaced",
            "the file after the changes so far that were wanted",
            Size,
        ),
        (
            "number",
            "UPDATEs of a number beside the body in a transaction",
            Change(Documents, NUMBER, One),
        ),
        (
            "number_each",
            "UPDATE of a number beside the body, one a commit",
            Change(Documents, NUMBER, Each),
        ),
        (
            "behind",
            "UPDATEs of the last column, behind the body, in a transaction",
            Change(Records, BEHIND, One),
        ),
        (
            "behind_each",
            "UPDATE of the last column, behind the body, one a commit",
            Change(Records, BEHIND, Each),
        ),
        (
            "read",
            "a whole row by key",
            Lookup(
                Documents,
                "SELECT id, n, title, body FROM documents WHERE id = ?1",
            ),
        ),
        (
            "read_number",
            "a number beside the body by key",
            Lookup(Documents, "SELECT n FROM documents WHERE id = ?1"),
        ),
        (
            "read_behind",
            "a number behind the body by key",
            Lookup(Records, "SELECT n FROM records WHERE id = ?1"),
        ),
        (
            "read_substr",
            "ten characters of the body by key",
            Lookup(
                Documents,
                "SELECT substr(body, 100, 10) FROM documents WHERE id = ?1",
            ),
        ),
        (
            "read_length",
            "length(body) by key",
            Lookup(
                Documents,
                "SELECT length(body) FROM documents WHERE id = ?1",
            ),
        ),
        (
            "sum_number",
            "sum() of the numbers beside all bodies",
            Scan("SELECT sum(n) FROM documents"),
        ),
        (
            "sum_behind",
            "sum() of the numbers behind all bodies",
            Scan("SELECT sum(n) FROM records"),
        ),
        (
            "sum_length",
            "sum(length(body)) over all rows",
            Scan("SELECT sum(length(body)) FROM documents"),
        ),
        (
            "search",
            "LIKE over all texts, or instr() over all blobs",
            Search,
        ),
        ("copy", "INSERT ... SELECT", Copy),
        (
            "handle_read",
            "a body through a handle in 16 KiB parts",
            ReadParts,
        ),
        (
            "handle_part",
            "1 KiB from the middle through a handle",
            ReadPart,
        ),
        (
            "handle_write",
            "1 KiB into the middle through handles, in a transaction",
            WritePart(One),
        ),
        (
            "handle_write_each",
            "1 KiB into the middle through a handle, one a commit",
            WritePart(Each),
        ),
        ("delete", "DELETEs by key in a transaction", Delete(One)),
        ("delete_each", "DELETE by key, one a commit", Delete(Each)),
        ("vacuum_into", "VACUUM INTO a new file", Vacuum),
    ]
};
