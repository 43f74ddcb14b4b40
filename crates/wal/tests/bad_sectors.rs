//! Logs on a disk that has lost sectors: reading them fails, until they are written to.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fulgurite_disk::{
    Disk, DiskError, DiskFile, MemoryDisk, OpenOptions, Result as DiskResult, forward,
};
use fulgurite_wal::{Error, Lone, Lsn, Options, Wal};

const SECTOR: u64 = 512;

/// Files and the numbers of their bad sectors.
type Bad = Arc<Mutex<Vec<(PathBuf, u64)>>>;

#[derive(Debug, Clone)]
struct BadDisk {
    inner: MemoryDisk,
    bad: Bad,
}

#[derive(Debug)]
struct BadFile {
    inner: Arc<dyn DiskFile>,
    path: PathBuf,
    bad: Bad,
}

impl Disk for BadDisk {
    forward!(inner: exists, remove, rename, sync_dir, temp_file, canonical);

    fn open(&self, path: &Path, options: OpenOptions) -> DiskResult<Arc<dyn DiskFile>> {
        Ok(Arc::new(BadFile {
            inner: self.inner.open(path, options)?,
            path: path.to_owned(),
            bad: Arc::clone(&self.bad),
        }))
    }
}

impl BadFile {
    fn is_hit(&self, bad: &(PathBuf, u64), offset: u64, len: usize) -> bool {
        let (path, at) = (&bad.0, bad.1 * SECTOR);
        *path == self.path && at < offset + len as u64 && offset < at + SECTOR
    }
}

impl DiskFile for BadFile {
    forward!(inner: len, identity, sync_data, sync_all, start_writeback, allocate, truncate);
    forward!(inner: lock_exclusive, lock_shared, unlock);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        let bad = self.bad.lock().unwrap();
        if bad.iter().any(|bad| self.is_hit(bad, offset, buf.len())) {
            let source = io::Error::other("a bad sector");
            return Err(DiskError::new("read", &self.path, source));
        }
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> DiskResult<()> {
        let mut bad = self.bad.lock().unwrap();
        bad.retain(|bad| !self.is_hit(bad, offset, buf.len()));
        self.inner.write_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> DiskResult<()> {
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.to_vec()).collect();
        self.write_at(&bytes, offset)
    }
}

/// A disk with a log of ten records at "a", and at "b" where it is mirrored.
fn with_log(mirrored: bool) -> (BadDisk, Vec<Vec<u8>>) {
    let disk = BadDisk {
        inner: MemoryDisk::new(),
        bad: Bad::default(),
    };
    let log = Wal::open("a", options(&disk, mirrored, Lone::Refuse)).unwrap();
    let payloads: Vec<Vec<u8>> = (0..10).map(|number| vec![number; 700]).collect();
    for payload in &payloads {
        log.commit(payload).unwrap();
    }
    drop(log);
    (disk, payloads)
}

fn options(disk: &BadDisk, mirrored: bool, lone: Lone) -> Options {
    Options {
        mirror: mirrored.then(|| "b".into()),
        lone,
        ..Options::memory()
            .disk(Arc::new(disk.clone()))
            .limit_bytes(64 << 10)
    }
}

fn lose(disk: &BadDisk, side: &str, sectors: &[u64]) {
    let lost = sectors.iter().map(|sector| (side.into(), *sector));
    disk.bad.lock().unwrap().extend(lost);
}

fn contents(log: &Wal) -> Vec<Vec<u8>> {
    let records = log.replay(Lsn::FIRST).unwrap();
    records.map(|record| record.unwrap().1).collect()
}

/// The head is stored twice; a log could not be opened where one of the two was lost.
#[test]
fn a_head_may_lose_a_sector() {
    for sector in 0..16 {
        let (disk, payloads) = with_log(false);
        lose(&disk, "a", &[sector]);
        let log = Wal::open("a", options(&disk, false, Lone::Refuse)).unwrap();
        assert!(contents(&log) == payloads);
        assert_eq!(disk.bad.lock().unwrap().is_empty(), matches!(sector, 0 | 8));
    }
    let (disk, _) = with_log(false);
    lose(&disk, "a", &[0, 8]);
    let error = Wal::open("a", options(&disk, false, Lone::Refuse)).unwrap_err();
    assert!(error.to_string().contains("a bad sector"), "{error}");
}

/// A mirror was not opened where a sector of one side was lost, though the other had it.
#[test]
fn what_one_side_lost_comes_from_the_other() {
    for side in ["a", "b"] {
        for sectors in (0..32).map(|sector| vec![sector]).chain([vec![0, 8]]) {
            let (disk, payloads) = with_log(true);
            lose(&disk, side, &sectors);
            let log = Wal::open("a", options(&disk, true, Lone::Refuse)).unwrap();
            assert_eq!(log.stats().sides, 2);
            assert!(contents(&log) == payloads);
            // Of records and heads none is left bad, be it the truth that lost it.
            let bad = disk.bad.lock().unwrap();
            assert!(bad.iter().all(|bad| !matches!(bad.1, 0 | 8 | 16..)));
        }
    }
}

/// Where each side had lost a sector, neither was whole, and the mirror was refused though
/// there was another copy of all.
#[test]
fn each_side_has_the_sectors_that_the_other_lost() {
    for on_first in 0..34 {
        for on_second in 0..34 {
            let (disk, payloads) = with_log(true);
            lose(&disk, "a", &[on_first]);
            lose(&disk, "b", &[on_second]);
            let opened = Wal::open("a", options(&disk, true, Lone::Refuse));
            if on_first == on_second && on_first >= 16 {
                let error = opened.unwrap_err();
                assert!(error.to_string().contains("a bad sector"), "{error}");
                assert_eq!(disk.bad.lock().unwrap().len(), 2);
                continue;
            }
            let log = opened.unwrap();
            assert_eq!(log.stats().sides, 2);
            assert!(contents(&log) == payloads, "{on_first}, {on_second}");
            let bad = disk.bad.lock().unwrap();
            assert!(bad.iter().all(|bad| bad.1 < 16), "{on_first}, {on_second}");
        }
    }
}

/// The same while the log is open.
#[test]
fn an_open_mirror_is_read_where_each_side_lost_sectors() {
    let (disk, payloads) = with_log(true);
    let log = Wal::open("a", options(&disk, true, Lone::Refuse)).unwrap();
    lose(&disk, "a", &[17, 24]);
    lose(&disk, "b", &[16, 20, 28]);
    assert!(contents(&log) == payloads);
    assert!(log.stats().turns_to_other_side > 0);
    lose(&disk, "b", &[24]);
    let error = log.replay(Lsn::FIRST).unwrap().find_map(|read| read.err());
    assert!(error.unwrap().to_string().contains("a bad sector"));
}

/// A megabyte was read ahead or nothing: no record before a bad sector could be replayed.
#[test]
fn what_lies_before_a_bad_sector_is_replayed() {
    let (disk, payloads) = with_log(false);
    let log = Wal::open("a", options(&disk, false, Lone::Refuse)).unwrap();
    lose(&disk, "a", &[24]);
    let read: Vec<_> = log.replay(Lsn::FIRST).unwrap().collect();
    let (last, before) = read.split_last().unwrap();
    assert!(
        last.as_ref()
            .unwrap_err()
            .to_string()
            .contains("a bad sector")
    );
    // The sector begins 4,096 bytes behind the first record's place.
    assert_eq!(before.len(), 5);
    let replayed = before.iter().map(|read| &read.as_ref().unwrap().1);
    assert!(replayed.eq(&payloads[..5]));
}

/// With both copies of its label, a side has lost whether it went on alone.
#[test]
fn a_side_that_lost_its_label_is_as_a_missing_one() {
    for side in ["a", "b"] {
        for sectors in [vec![4, 12], (0..200).collect()] {
            let (disk, payloads) = with_log(true);
            lose(&disk, side, &sectors);
            let error = Wal::open("a", options(&disk, true, Lone::Refuse)).unwrap_err();
            let is_told = matches!(error, Error::SideUnreadable { .. } | Error::Disk(_));
            assert!(is_told, "{error}");
            let log = Wal::open("a", options(&disk, true, Lone::Open)).unwrap();
            assert_eq!(log.stats().sides, 1);
            assert!(contents(&log) == payloads);
        }
    }
}
