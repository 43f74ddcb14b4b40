//! Bytes as text. Most texts of a database are short and ASCII, for which the
//! general check costs more than the rest of reading a column: its fast way is
//! for long, aligned runs. So ASCII is looked for first.
//!
//! The crate's only module with `unsafe`; its argument: what is ASCII is UTF-8.
#![expect(unsafe_code, reason = "see the module's argument")]

use std::str::Utf8Error;

/// The bytes as text.
///
/// # Errors
/// Where they are not UTF-8, as [`std::str::from_utf8`] says it.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.is_ascii() {
        // SAFETY: every ASCII byte is a UTF-8 character of its own.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn as_the_standard_library_sees_it() {
        let all: Vec<u8> = (0..=255).collect();
        for from in 0..all.len() {
            for len in [0, 1, 2, 3, 7, 8, 9, 31, 64] {
                let bytes = all.get(from..from + len).unwrap_or(&[]);
                assert_eq!(text(bytes), std::str::from_utf8(bytes));
            }
        }
        for whole in ["", "a", "naïve", "grüße, 世界", "ends in ß"] {
            for cut in 0..=whole.len() {
                let bytes = &whole.as_bytes()[..cut];
                assert_eq!(text(bytes), std::str::from_utf8(bytes));
            }
        }
    }
}
