//! Who holds a lock: Linux lists the locks of all processes in `/proc/locks`.
//! Only for the error message, so whatever cannot be read is "unknown".

use crate::FileId;

/// Room for what the system tells of its locks in one piece.
#[cfg(target_os = "linux")]
const ONE_READ: usize = 16 << 10;

#[cfg(target_os = "linux")]
pub(super) fn of_lock(file: FileId) -> Option<u32> {
    use std::io::Read as _;
    // A lock given up between two reads makes the second one pass over another, and a
    // vector that is empty at first is filled by small reads.
    let mut locks = Vec::with_capacity(ONE_READ);
    let list = std::fs::File::open("/proc/locks");
    list.ok()?.read_to_end(&mut locks).ok()?;
    find_in(std::str::from_utf8(&locks).ok()?, file)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn of_lock(_file: FileId) -> Option<u32> {
    None
}

/// Lines look like `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`, the
/// device in hexadecimal; `->` after the number marks one who waits.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has the list")
)]
fn find_in(locks: &str, file: FileId) -> Option<u32> {
    let device = (
        rustix::fs::major(file.device),
        rustix::fs::minor(file.device),
    );
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let pid = words.nth(2)?.parse::<u32>().ok()?;
        let mut place = words.next()?.split(':');
        let major = u32::from_str_radix(place.next()?, 16).ok()?;
        let minor = u32::from_str_radix(place.next()?, 16).ok()?;
        let inode = place.next()?.parse::<u64>().ok()?;
        ((major, minor) == device && inode == file.inode).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::find_in;
    use crate::FileId;

    #[test]
    fn finds_the_holder_and_skips_what_it_does_not_know() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:99 0 EOF\n\
                     nonsense\n\
                     2: -> FLOCK  ADVISORY  WRITE 8 fd:01:99 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 fd:01:98 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 10 fd:01:99 0 EOF\n";
        let file = FileId {
            device: rustix::fs::makedev(0xfd, 1),
            inode: 99,
        };
        assert_eq!(find_in(locks, file), Some(10));
        assert_eq!(find_in(locks, FileId { inode: 97, ..file }), None);
    }
}
