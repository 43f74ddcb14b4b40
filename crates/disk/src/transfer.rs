//! Whole transfers out of system calls that may do less: short counts are gone
//! on from, interrupted calls repeated. The real disk and the simulator's share
//! these, so that what is proved on the one holds for the other.

use std::io::{self, IoSlice};

use crate::mutation::{Mutation, planted};

/// The most slices one vectored call takes (`IOV_MAX` on every system we run on).
const SLICES_MAX: usize = 1024;

/// Fills `buf` from `offset` on by calls of `read`, which says how many bytes it
/// read at the offset it was given.
///
/// # Errors
/// `UnexpectedEof` where `read` says 0; whatever else it fails with.
pub fn read_whole(
    mut buf: &mut [u8],
    mut offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buf.is_empty() {
        match read(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buf = buf.get_mut(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `buf` at `offset` by calls of `write`, which says how many
/// bytes it wrote.
///
/// # Errors
/// `WriteZero` where `write` says 0; whatever else it fails with.
pub fn write_whole(
    mut buf: &[u8],
    mut offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buf.is_empty() {
        match write(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) if planted(Mutation::IgnoreShortWrite) => return Ok(()),
            Ok(count) => {
                buf = buf.get(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bufs`, one after the other, from `offset` on, by calls of
/// `vectored` and, for the rest of a slice that was cut short, of `write`.
///
/// # Errors
/// As [`write_whole`].
pub fn write_vectored_whole(
    bufs: &[IoSlice<'_>],
    mut offset: u64,
    mut vectored: impl FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut rest = bufs;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(rest.len().min(SLICES_MAX));
        let mut count = match vectored(batch, offset) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut batch = batch.iter();
        for buf in batch.by_ref() {
            if count < buf.len() {
                // Cut short inside this slice (or before it): finish it alone,
                // and let the loop go on behind it.
                let left = buf.get(count..).unwrap_or_default();
                write_whole(left, offset + count as u64, &mut write)?;
                offset += buf.len() as u64;
                break;
            }
            count -= buf.len();
            offset += buf.len() as u64;
        }
        let left_in_batch = batch.len();
        rest = rest
            .get(rest.len() - later.len() - left_in_batch..)
            .unwrap_or_default();
    }
    Ok(())
}
