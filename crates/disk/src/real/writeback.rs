//! Hints to the operating system: starting write-back without waiting for it
//! (Linux's `sync_file_range`) and how long bytes will live (`F_SET_RW_HINT`).
//! Hints only, so failures are nobody's business.

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

/// `F_LINUX_SPECIFIC_BASE + 12`, from fcntl(2).
#[cfg(target_os = "linux")]
const F_SET_RW_HINT: libc::c_int = 1036;

#[cfg(target_os = "linux")]
pub(super) fn hint_lifetime(file: &File, lifetime: crate::Lifetime) {
    use std::os::fd::AsRawFd;
    // The values of RWH_WRITE_LIFE_SHORT and its neighbours in fcntl(2).
    let hint: u64 = match lifetime {
        crate::Lifetime::NotSet => 0,
        crate::Lifetime::Short => 2,
        crate::Lifetime::Medium => 3,
        crate::Lifetime::Long => 4,
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the
    // pointer is to an integer that outlives the call.
    unsafe {
        libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const hint);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn hint_lifetime(_file: &File, _lifetime: crate::Lifetime) {}
