//! Statements that are kept for the next use of their text keep no large rows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fulgurite::{Connection, Result, params};

/// The system's memory, counted.
struct Counting;

thread_local! {
    /// Bytes that this thread allocated and did not give back: other threads of the
    /// process do so whenever they like.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's, called as this one is called.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const LARGE: usize = 4 << 20;

const TEXTS: [&str; 10] = [
    "SELECT b FROM t WHERE k = 1",
    "SELECT upper(b) FROM t WHERE k = 1",
    "SELECT b FROM t WHERE u = 'one'",
    "SELECT k, b FROM t",
    "SELECT k, b || 'x' FROM t WHERE length(b) > 3",
    "SELECT u, max(b) FROM t GROUP BY u ORDER BY u",
    "SELECT count(*) FROM t a JOIN t b ON a.b = b.b",
    "UPDATE t SET b = b || 'x' WHERE k = 1",
    "UPDATE t SET b = substr(b, 1, length(b) - 1) WHERE k >= 1",
    "INSERT INTO t SELECT 7, 'seven', b FROM t WHERE k = 1 RETURNING b",
];

/// Runs a text to its end.
fn run(connection: &Connection, text: &str, cached: bool) -> Result<()> {
    let lengths = |rows: &mut fulgurite::Rows<'_>| -> Result<()> {
        while rows.next()?.is_some() {}
        Ok(())
    };
    match cached {
        true => lengths(&mut connection.prepare_cached(text)?.query([])?),
        false => lengths(&mut connection.prepare(text)?.query([])?),
    }
}

#[test]
fn statements_that_are_kept_keep_no_large_rows() -> Result<()> {
    for cached in [false, true] {
        for text in TEXTS {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, u UNIQUE, b)")?;
            let insert = "INSERT INTO t VALUES (?1, ?2, ?3)";
            let large = "l".repeat(LARGE);
            connection.execute(insert, params![1, "one", large])?;
            connection.execute(insert, params![2, "two", "small"])?;
            connection.execute(insert, params![3, "three", large])?;
            for _ in 0..3 {
                run(&connection, text, cached)?;
                connection.execute("DELETE FROM t WHERE k = 7", [])?;
            }
            let kept = BYTES.get();
            connection.flush_prepared_statement_cache();
            let let_go = kept - BYTES.get();
            assert!(let_go > 0, "{text}: nothing was kept");
            assert!(let_go < (LARGE / 4).cast_signed(), "{text}: {let_go} bytes");
        }
    }
    Ok(())
}
