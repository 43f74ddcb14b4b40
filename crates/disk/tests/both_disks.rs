//! What every disk must do, run on the real one and the one in memory.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fulgurite_disk::{Disk, DiskErrorKind, MemoryDisk, OpenOptions, RealDisk};

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "fulgurite-disk-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn on_both(test: impl Fn(&dyn Disk, &Path)) {
    let folder = Folder::new();
    test(&RealDisk, &folder.0);
    test(&MemoryDisk::new(), &folder.0);
}

fn kind<T: std::fmt::Debug>(result: fulgurite_disk::Result<T>) -> DiskErrorKind {
    result.unwrap_err().kind
}

#[test]
fn open_options_decide_about_absent_and_present_files() {
    on_both(|disk, folder| {
        let path = folder.join("a");
        assert_eq!(
            kind(disk.open(&path, OpenOptions::WRITE)),
            DiskErrorKind::NotFound
        );
        assert_eq!(
            kind(disk.open(&path, OpenOptions::READ)),
            DiskErrorKind::NotFound
        );
        assert!(!disk.exists(&path).unwrap());
        disk.open(&path, OpenOptions::CREATE_NEW)
            .unwrap()
            .write_at(b"abc", 0)
            .unwrap();
        assert!(disk.exists(&path).unwrap());
        assert_eq!(
            kind(disk.open(&path, OpenOptions::CREATE_NEW)),
            DiskErrorKind::AlreadyExists
        );
        assert_eq!(
            disk.open(&path, OpenOptions::CREATE)
                .unwrap()
                .len()
                .unwrap(),
            3
        );
        let emptied = disk
            .open(
                &path,
                OpenOptions {
                    truncate: true,
                    ..OpenOptions::WRITE
                },
            )
            .unwrap();
        assert!(emptied.is_empty().unwrap());
    });
}

#[test]
fn reads_are_exact_and_holes_are_zero() {
    on_both(|disk, folder| {
        let file = disk.open(&folder.join("a"), OpenOptions::CREATE).unwrap();
        file.write_at(b"xyz", 200_000).unwrap();
        let mut buf = [1u8; 5];
        file.read_at(&mut buf, 199_998).unwrap();
        assert_eq!(&buf, b"\0\0xyz");
        assert_eq!(
            kind(file.read_at(&mut buf, 199_999)),
            DiskErrorKind::UnexpectedEof
        );
        assert_eq!(
            kind(file.read_at(&mut buf, 1 << 40)),
            DiskErrorKind::UnexpectedEof
        );
        file.read_at(&mut [], 1 << 40).unwrap();
    });
}

#[test]
fn cutting_and_growing_again_leaves_zeros() {
    on_both(|disk, folder| {
        let file = disk.open(&folder.join("a"), OpenOptions::CREATE).unwrap();
        file.write_at(&[7; 100_000], 0).unwrap();
        file.truncate(70_000).unwrap();
        file.allocate(60_000, 40_000).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
        file.allocate(0, 10).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
        let mut buf = vec![1; 100_000];
        file.read_at(&mut buf, 0).unwrap();
        assert!(buf[..70_000].iter().all(|byte| *byte == 7));
        assert!(buf[70_000..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn vectored_writes_pass_the_systems_slice_limit() {
    on_both(|disk, folder| {
        let file = disk.open(&folder.join("a"), OpenOptions::CREATE).unwrap();
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
        let mut slices = Vec::new();
        let mut at = 0;
        for i in 0..2500 {
            let len = i % 3;
            slices.push(IoSlice::new(&bytes[at..at + len]));
            at += len;
        }
        file.write_vectored_at(&slices, 10).unwrap();
        let mut back = vec![0; at];
        file.read_at(&mut back, 10).unwrap();
        assert_eq!(back, bytes[..at]);
        assert_eq!(file.len().unwrap(), 10 + at as u64);
        file.write_vectored_at(&[], 0).unwrap();
    });
}

#[test]
fn read_only_handles_refuse_writes() {
    on_both(|disk, folder| {
        let path = folder.join("a");
        disk.open(&path, OpenOptions::CREATE)
            .unwrap()
            .write_at(b"abc", 0)
            .unwrap();
        let file = disk.open(&path, OpenOptions::READ).unwrap();
        assert_eq!(kind(file.write_at(b"x", 0)), DiskErrorKind::ReadOnly);
        assert_eq!(
            kind(file.write_vectored_at(&[IoSlice::new(b"x")], 0)),
            DiskErrorKind::ReadOnly
        );
        assert_eq!(kind(file.truncate(0)), DiskErrorKind::ReadOnly);
        assert_eq!(kind(file.allocate(0, 10)), DiskErrorKind::ReadOnly);
        let mut buf = [0; 3];
        file.read_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"abc");
    });
}

#[test]
fn names_move_and_vanish_but_handles_stay() {
    on_both(|disk, folder| {
        let (a, b) = (folder.join("a"), folder.join("b"));
        let file = disk.open(&a, OpenOptions::CREATE).unwrap();
        file.write_at(b"abc", 0).unwrap();
        let id = file.identity().unwrap();
        disk.open(&b, OpenOptions::CREATE).unwrap();
        disk.rename(&a, &b).unwrap();
        disk.sync_dir(folder).unwrap();
        assert_eq!(
            disk.open(&b, OpenOptions::READ)
                .unwrap()
                .identity()
                .unwrap(),
            id
        );
        assert_eq!(kind(disk.rename(&a, &b)), DiskErrorKind::NotFound);
        disk.remove(&b).unwrap();
        assert_eq!(kind(disk.remove(&b)), DiskErrorKind::NotFound);
        let mut buf = [0; 3];
        file.read_at(&mut buf, 0).unwrap();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        file.start_writeback(0, 3);
        assert_eq!(&buf, b"abc");
    });
}

#[test]
fn locks_exclude_handles_and_name_the_holder() {
    on_both(|disk, folder| {
        let path = folder.join("a");
        let first = disk.open(&path, OpenOptions::CREATE).unwrap();
        let second = disk.open(&path, OpenOptions::WRITE).unwrap();
        first.lock_exclusive().unwrap();
        first.lock_exclusive().unwrap();
        let error = second.lock_shared().unwrap_err();
        // Not every file system lists its locks under the file's own device.
        let DiskErrorKind::Busy { pid } = error.kind else {
            panic!("{error}")
        };
        assert!(pid.is_none_or(|pid| pid == std::process::id()), "{error}");
        assert!(error.to_string().contains("locked by"), "{error}");
        first.lock_shared().unwrap();
        second.lock_shared().unwrap();
        assert!(matches!(
            kind(second.lock_exclusive()),
            DiskErrorKind::Busy { .. }
        ));
        drop(first);
        second.lock_exclusive().unwrap();
    });
}

#[test]
fn temporary_files_have_no_name() {
    on_both(|disk, folder| {
        let one = disk.temp_file(&folder.join("a.db")).unwrap();
        let two = disk.temp_file(&folder.join("a.db")).unwrap();
        one.write_at(b"one", 0).unwrap();
        two.write_at(b"two", 0).unwrap();
        let mut buf = [0; 3];
        one.read_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"one");
        assert_ne!(one.identity().unwrap(), two.identity().unwrap());
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    });
}

#[test]
fn real_paths_are_resolved_even_where_the_file_is_absent() {
    let folder = Folder::new();
    let real = std::fs::canonicalize(&folder.0).unwrap();
    std::os::unix::fs::symlink(&real, folder.0.join("link")).unwrap();
    let via_link = RealDisk
        .canonical(&folder.0.join("link").join("absent.db"))
        .unwrap();
    assert_eq!(via_link, real.join("absent.db"));
    let missing = RealDisk.canonical(&folder.0.join("no").join("absent.db"));
    assert_eq!(kind(missing), DiskErrorKind::NotFound);
}

#[test]
fn errors_name_the_file_and_the_operation() {
    let error = RealDisk
        .open(Path::new("/nonexistent/x.db"), OpenOptions::WRITE)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot open /nonexistent/x.db: "),
        "{error}"
    );
    assert!(
        RealDisk
            .open(&std::env::temp_dir(), OpenOptions::READ)
            .is_err()
    );
}

#[test]
fn a_name_tells_which_file_has_it() {
    on_both(|disk, folder| {
        let (path, other) = (folder.join("a"), folder.join("b"));
        let file = disk.open(&path, OpenOptions::CREATE).unwrap();
        let identity = file.identity().unwrap();
        assert_eq!(disk.identity_at(&path).unwrap(), identity);
        assert_eq!(kind(disk.identity_at(&other)), DiskErrorKind::NotFound);
        disk.rename(&path, &other).unwrap();
        disk.open(&path, OpenOptions::CREATE).unwrap();
        assert_eq!(disk.identity_at(&other).unwrap(), identity);
        assert_ne!(disk.identity_at(&path).unwrap(), identity);
    });
}
