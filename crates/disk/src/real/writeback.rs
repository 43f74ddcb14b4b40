//! Starting write-back without waiting for it: Linux's `sync_file_range`.
//! A hint only, so failures are nobody's business.

use std::fs::File;

#[cfg(target_os = "linux")]
pub(super) fn start(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return;
    };
    // SAFETY: the call takes no pointers; the descriptor is open for as long as
    // `file` is borrowed, and a bad range is an error return.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start(_file: &File, _offset: u64, _len: u64) {}
