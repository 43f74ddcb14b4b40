//! Recursion over user input on bounded stack.
//!
//! Everything that recurses over expressions or queries is bounded in depth by
//! the parser; each level goes through [`grow`], which moves to a fresh piece of
//! stack where the thread's own is nearly used up, so that no thread is too
//! small for a legal statement.

/// Stack that must be left before a level starts.
const RED_ZONE: usize = 96 * 1024;
/// Stack to add when it isn't.
const PIECE: usize = 1024 * 1024;

/// Calls `f` with enough stack for one level.
#[inline]
pub fn grow<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, PIECE, f)
}
