//! Write-back, begun without waiting for it and waited for (Linux's `sync_file_range`),
//! and how long bytes will live (`F_SET_RW_HINT`). To begin it and the bytes' lives are
//! hints, whose failures are nobody's business. Who waits for it may be told of bytes
//! that could not be written, as a sync is, and once only.

use std::fs::File;
use std::io;

#[cfg(target_os = "linux")]
pub(super) fn start(file: &File, offset: u64, len: u64) {
    // A failure is told by whoever waits for the bytes, or syncs them.
    let _ = sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start(_file: &File, _offset: u64, _len: u64) {}

#[cfg(target_os = "linux")]
pub(super) fn finish(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let waited = sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WAIT_BEFORE);
    match waited.as_ref().map_err(io::Error::raw_os_error) {
        // There is none of it here.
        Err(Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EINVAL | libc::ESPIPE)) => Ok(()),
        _ => waited,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn finish(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn sync_range(file: &File, offset: u64, len: u64, flags: libc::c_uint) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the call takes no pointers; the descriptor is open for as long as
    // `file` is borrowed, and a bad range is an error return.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

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
