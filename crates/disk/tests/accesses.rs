//! Every way into a file gives the same bytes, and says so where it is not to
//! be had.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disk::{
    Access, AlignedFile, Disk, DiskErrorKind, DiskFile, MemoryDisk, OpenOptions, RealDisk,
};

const LEN: usize = 256 << 10;

/// A file that goes with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("fulgurite-access-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, vec![0; LEN]).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes at places of all alignments, in all three ways, and compares with
/// what is read back through the same file and through `plain`.
fn write_and_compare(file: &dyn DiskFile, plain: &dyn DiskFile) {
    let mut wanted = vec![0u8; LEN];
    let mut random = 0x5eed_u64;
    for turn in 0..300 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let len = (random >> 33) as usize % [40, 700, 9_000, 70_000][turn % 4];
        let at = (random >> 13) as usize % (LEN - len);
        let bytes: Vec<u8> = (0..len).map(|i| (i + turn) as u8).collect();
        let (first, rest) = bytes.split_at(len / 3);
        let parts = [IoSlice::new(first), IoSlice::new(rest)];
        // A hint changes nothing, wherever it points.
        file.will_write(
            [at as u64, LEN as u64 - 5, u64::MAX - 5][turn % 3],
            len as u64,
        );
        match turn % 3 {
            0 => file.write_at(&bytes, at as u64).unwrap(),
            1 => file.write_vectored_at(&parts, at as u64).unwrap(),
            _ => file.write_and_sync_at(&parts, at as u64).unwrap(),
        }
        wanted[at..at + len].copy_from_slice(&bytes);
        let mut part = vec![0; len];
        file.read_at(&mut part, at as u64).unwrap();
        assert!(part == bytes, "turn {turn}");
    }
    file.sync_data().unwrap();
    for reader in [file, plain] {
        let mut found = vec![0; LEN];
        reader.read_at(&mut found, 0).unwrap();
        assert!(found == wanted);
    }
    let mut beyond = [0; 10];
    let error = file.read_at(&mut beyond, LEN as u64 - 5).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::UnexpectedEof);
}

#[test]
fn every_access_gives_the_same_bytes() {
    for access in [
        Access::Buffered,
        Access::Direct,
        Access::Mapped,
        Access::Ring,
        Access::RingPolled,
    ] {
        let scratch = Scratch::new(&format!("{access:?}"));
        let file = match RealDisk.open_with(&scratch.0, OpenOptions::WRITE, access) {
            Ok(file) => file,
            Err(error) => {
                assert_eq!(error.kind, DiskErrorKind::Unsupported, "{error}");
                eprintln!("not available: {error}");
                continue;
            }
        };
        let file: Arc<dyn DiskFile> = match access {
            Access::Direct => Arc::new(AlignedFile::new(file)),
            _ => file,
        };
        let plain = RealDisk.open(&scratch.0, OpenOptions::READ).unwrap();
        write_and_compare(&*file, &*plain);
    }
}

#[test]
fn aligned_blocks_hold_what_was_written_anywhere() {
    let disk = MemoryDisk::new();
    let path = Path::new("aligned");
    let plain = disk.open(path, OpenOptions::CREATE).unwrap();
    plain.truncate(LEN as u64).unwrap();
    write_and_compare(&AlignedFile::new(Arc::clone(&plain)), &*plain);
}

#[test]
fn a_disk_without_an_access_says_so() {
    let disk = MemoryDisk::new();
    let path = Path::new("plain");
    drop(disk.open(path, OpenOptions::CREATE).unwrap());
    let open = |access| disk.open_with(path, OpenOptions::WRITE, access);
    assert!(open(Access::Buffered).is_ok());
    for access in [Access::Direct, Access::Mapped, Access::Ring] {
        assert_eq!(open(access).unwrap_err().kind, DiskErrorKind::Unsupported);
    }
}

/// What is written behind the file's end makes it longer, and then lies in the map.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_grows() {
    let scratch = Scratch::new("grows");
    let Ok(file) = RealDisk.open_with(&scratch.0, OpenOptions::WRITE, Access::Mapped) else {
        return;
    };
    file.write_at(&[1; 10], LEN as u64 - 5).unwrap();
    let bytes = [2; 9_000];
    file.write_vectored_at(&[IoSlice::new(&bytes); 3], LEN as u64 + 1)
        .unwrap();
    file.write_at(&[3; 10], LEN as u64 + 100).unwrap();
    file.truncate(LEN as u64 + 200).unwrap();
    file.truncate(LEN as u64 + 5_000).unwrap();
    file.write_at(&[4; 10], LEN as u64 + 4_990).unwrap();
    file.allocate(0, LEN as u64 + 9_000).unwrap();
    file.write_at(&[5; 10], LEN as u64 + 8_990).unwrap();
    file.sync_all().unwrap();
    let found = std::fs::read(&scratch.0).unwrap();
    let mut wanted = vec![0; LEN + 9_000];
    wanted[LEN - 5..LEN + 5].fill(1);
    wanted[LEN + 1..LEN + 200].fill(2);
    wanted[LEN + 100..LEN + 110].fill(3);
    wanted[LEN + 4_990..LEN + 5_000].fill(4);
    wanted[LEN + 8_990..].fill(5);
    assert!(found == wanted);
}

/// Whether the file was cut short was asked with two lengths read one after the other,
/// between which a writer could make it longer; the sync then failed.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_may_grow_while_it_is_synced() {
    let scratch = Scratch::new("grows-synced");
    let Ok(file) = RealDisk.open_with(&scratch.0, OpenOptions::WRITE, Access::Mapped) else {
        return;
    };
    let file = &*file;
    let grown = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..20_000 {
                file.write_at(&[7; 64], LEN as u64 + 64 * turn).unwrap();
            }
            file.truncate(LEN as u64 + 64).unwrap();
            grown.store(true, std::sync::atomic::Ordering::Release);
        });
        while !grown.load(std::sync::atomic::Ordering::Acquire) {
            file.sync_data().unwrap();
        }
    });
    assert_eq!(file.len().unwrap(), LEN as u64 + 64);
}

/// Pages written through a map count as the process's memory, which a log of many
/// megabytes filled beside the cache's limit.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_keeps_few_pages() {
    let scratch = Scratch::new("resident");
    let Ok(file) = RealDisk.open_with(&scratch.0, OpenOptions::WRITE, Access::Mapped) else {
        return;
    };
    file.truncate(32 << 20).unwrap();
    let mut most = 0;
    for at in (0..32 << 20).step_by(4096) {
        file.write_at(&[9; 4096], at).unwrap();
        if at % (256 << 10) == 0 {
            file.will_write(at + (64 << 10), 64 << 10);
            most = most.max(resident_kib(&scratch.0));
        }
    }
    // The kernel may map up to two megabytes around a page that is touched.
    assert!((4..=4 << 10).contains(&most), "{most} KiB");
}

/// Maps reached 64 MiB: what a longer log got behind that was a system call a commit.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_is_mapped_far() {
    let scratch = Scratch::new("far");
    let Ok(file) = RealDisk.open_with(&scratch.0, OpenOptions::WRITE, Access::Mapped) else {
        return;
    };
    file.truncate(256 << 20).unwrap();
    assert_eq!(resident_kib(&scratch.0), 0);
    file.write_at(&[9; 64], 200 << 20).unwrap();
    assert!(resident_kib(&scratch.0) >= 4);
    let mut found = [0; 64];
    file.read_at(&mut found, 200 << 20).unwrap();
    assert_eq!(found, [9; 64]);
}

/// How much of the file is mapped and present in this process, in KiB.
#[cfg(target_os = "linux")]
fn resident_kib(path: &Path) -> u64 {
    let path = std::fs::canonicalize(path).unwrap();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let of_file = maps
        .lines()
        .skip_while(|line| !line.ends_with(path.to_str().unwrap()));
    let rss = of_file
        .skip(1)
        .find_map(|line| line.strip_prefix("Rss:"))
        .unwrap();
    rss.trim().trim_end_matches(" kB").parse().unwrap()
}
