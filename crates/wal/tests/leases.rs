//! Leases: what is written under them comes back after the end of the process; after
//! that of the system, whole phases do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disk::{Disk, DiskFile, MemoryDisk, OpenOptions, forward};
use fulgurite_wal::{Durability, Error, Kind, Lease, Recovery, TwinLog, WalOptions};

const DATABASE: [u8; 16] = [7; 16];
const PATH: &str = "l.db";

/// The same files under a system that was started later.
struct Restarted(MemoryDisk);

impl Disk for Restarted {
    forward!(0: open, exists, remove, rename, sync_dir, temp_file, canonical);

    fn boot_id(&self) -> Option<[u8; 16]> {
        Some([1; 16])
    }
}

fn opened(disk: Arc<dyn Disk>, after_seq: u64) -> fulgurite_wal::Result<Recovery> {
    Recovery::open(disk, Path::new(PATH), DATABASE, after_seq, true)
}

fn start(disk: &MemoryDisk, durability: Durability) -> TwinLog {
    let recovery = Recovery::open(Arc::new(disk.clone()), Path::new(PATH), DATABASE, 0, false);
    let options = WalOptions {
        durability,
        ..WalOptions::default()
    };
    let wal = recovery.unwrap().start(options, 1).unwrap();
    // The first record makes the file.
    commit(&wal, 1, b"first");
    wal
}

fn commit(wal: &TwinLog, seq: u64, payload: &[u8]) {
    let placed = wal.place(wal.reserve(payload.len()).unwrap(), seq);
    let ticket = wal.fill(placed, Kind::Commit, &[payload]).unwrap();
    wal.wait(ticket).unwrap();
}

/// A lease that begins with `first`; the number behind it.
fn lease(wal: &TwinLog, first: u64) -> (Lease, u64) {
    let permit = wal.reserve_lease(10, 8, Duration::ZERO).unwrap().unwrap();
    let next = first + permit.numbers();
    let lease = wal.begin_lease(wal.place_lease(permit, first)).unwrap();
    (lease, next)
}

fn write(wal: &TwinLog, lease: &mut Lease, payload: &[u8]) -> u64 {
    wal.write_leased(lease, Kind::Commit, payload).unwrap()
}

/// What a process finds that opens the log after this one ended.
fn replayed(disk: Arc<dyn Disk>) -> Vec<(u64, String)> {
    let mut records = Vec::new();
    let mut recovery = opened(disk, 0).unwrap();
    recovery
        .replay(&mut |record| {
            let payload = String::from_utf8_lossy(record.payload).into_owned();
            records.push((record.seq, payload));
            Ok(())
        })
        .unwrap();
    records
}

fn in_same_system(disk: &MemoryDisk) -> Vec<(u64, String)> {
    replayed(Arc::new(disk.copied()))
}

fn in_next_system(disk: &MemoryDisk) -> Vec<(u64, String)> {
    replayed(Arc::new(Restarted(disk.copied())))
}

fn texts(records: &[(u64, String)]) -> Vec<&str> {
    records.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn what_is_leased_is_acknowledged_when_all_before_it_has_ended() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    let (mut two, last) = lease(&wal, next);
    assert_eq!(write(&wal, &mut two, b"b1"), next + 1);
    assert_eq!(write(&wal, &mut one, b"a1"), 3);
    assert_eq!(write(&wal, &mut one, b"a2"), 4);
    assert_eq!(wal.acked(), 1);
    wal.end_lease(two, false);
    assert_eq!(wal.acked(), 1, "the first one is open");
    assert_eq!(texts(&in_same_system(&disk)), ["first", "a1", "a2", "b1"]);
    wal.end_lease(one, true);
    assert_eq!(wal.acked(), last - 1);
    commit(&wal, last, b"after");
    let records = in_same_system(&disk);
    assert_eq!(texts(&records), ["first", "a1", "a2", "b1", "after"]);
    let numbers: Vec<u64> = records.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, [1, 3, 4, next + 1, last]);
    assert_eq!(texts(&in_next_system(&disk)), texts(&records));
    assert_eq!(wal.stats().records, 5);
}

#[test]
fn open_leases_are_no_gap_as_long_as_the_system_runs() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    let (mut two, next) = lease(&wal, next);
    let (mut three, _) = lease(&wal, next);
    write(&wal, &mut three, b"c1");
    write(&wal, &mut one, b"a1");
    let _ = &mut two;
    assert_eq!(texts(&in_same_system(&disk)), ["first", "a1", "c1"]);
    // Of records without an order in time a power cut could leave any.
    assert_eq!(texts(&in_next_system(&disk)), ["first"]);
}

#[test]
fn a_phase_counts_from_its_end_on_where_the_system_was_another_one() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    write(&wal, &mut one, b"a1");
    wal.end_lease(one, true);
    let (mut two, next) = lease(&wal, next);
    let (mut three, next) = lease(&wal, next);
    write(&wal, &mut two, b"b1");
    wal.end_lease(two, false);
    let (mut four, _) = lease(&wal, next);
    write(&wal, &mut three, b"c1");
    write(&wal, &mut four, b"d1");
    wal.end_lease(three, false);
    assert_eq!(texts(&in_next_system(&disk)), ["first", "a1"]);
    assert_eq!(
        texts(&in_same_system(&disk)),
        ["first", "a1", "b1", "c1", "d1"]
    );
    wal.end_lease(four, true);
    assert_eq!(texts(&in_next_system(&disk)), texts(&in_same_system(&disk)));
}

/// The file that has the records.
fn log_file(disk: &MemoryDisk) -> Arc<dyn DiskFile> {
    disk.open(Path::new("l.db-wal0"), OpenOptions::WRITE)
        .unwrap()
}

/// Changes a byte of the record that holds `text`.
fn rot(disk: &MemoryDisk, text: &[u8]) {
    let file = log_file(disk);
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let at = bytes.windows(text.len()).position(|part| part == text);
    file.write_at(b"?", at.unwrap() as u64).unwrap();
}

#[test]
fn rot_within_a_lease_is_reported_where_anything_testifies_for_it() {
    // What its committer wrote behind it does, as long as the system runs.
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, _) = lease(&wal, 2);
    write(&wal, &mut one, b"rotten");
    write(&wal, &mut one, b"a2");
    rot(&disk, b"rotten");
    let error = opened(Arc::new(disk.copied()), 0).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("record 3 is missing"), "{error}");
    // A later sync does, whatever became of the system.
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    write(&wal, &mut one, b"rotten");
    wal.end_lease(one, true);
    wal.sync().unwrap();
    commit(&wal, next, b"after");
    rot(&disk, b"rotten");
    for disk in [
        Arc::new(disk.copied()) as Arc<dyn Disk>,
        Arc::new(Restarted(disk.copied())),
    ] {
        let error = opened(disk, 0).unwrap_err();
        assert!(error.to_string().contains("is missing"), "{error}");
    }
    // The last record of a lease that nothing testifies for looks like a torn tail.
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, _) = lease(&wal, 2);
    write(&wal, &mut one, b"a1");
    write(&wal, &mut one, b"rotten");
    rot(&disk, b"rotten");
    assert_eq!(texts(&in_same_system(&disk)), ["first", "a1"]);
}

#[test]
fn a_rotten_end_loses_nothing() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    write(&wal, &mut one, b"a1");
    let (mut two, _) = lease(&wal, next);
    write(&wal, &mut two, b"b1");
    wal.end_lease(one, false);
    let file = log_file(&disk);
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let end = (8192..bytes.len())
        .step_by(8)
        .find(|at| bytes[at + 24] == 66 && bytes[at + 4] == 24)
        .expect("the end record");
    file.write_at(b"?", end as u64).unwrap();
    assert_eq!(texts(&in_same_system(&disk)), ["first", "a1", "b1"]);
}

#[test]
fn a_log_that_syncs_gives_none_and_one_that_failed_takes_nothing_back() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Full);
    assert!(wal.reserve_lease(10, 8, Duration::ZERO).unwrap().is_none());
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    write(&wal, &mut one, b"a1");
    wal.poison(Error::Misuse("another one's failure"));
    assert!(wal.write_leased(&mut one, Kind::Commit, b"a2").is_err());
    assert!(wal.reserve_lease(10, 8, Duration::ZERO).is_err());
    wal.end_lease(one, true);
    assert_eq!(wal.acked(), next - 1);
    assert_eq!(texts(&in_same_system(&disk)), ["first", "a1"]);
}

#[test]
fn a_lease_ends_where_its_room_or_its_numbers_do() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Off);
    let (mut one, next) = lease(&wal, 2);
    let mut written = 0;
    while one.has_room(0) {
        write(&wal, &mut one, b"");
        written += 1;
    }
    assert!(written >= 10, "{written} short ones");
    assert!(one.next_seq() < next);
    assert!(wal.write_leased(&mut one, Kind::Commit, b"").is_err());
    wal.end_lease(one, true);
    let (mut two, _) = lease(&wal, next);
    assert!(!two.has_room(1000));
    write(&wal, &mut two, &[b'x'; 100]);
    assert_eq!(in_same_system(&disk).len(), 2 + written);
}

#[test]
fn the_records_of_a_lease_lie_where_the_page_says() {
    let disk = MemoryDisk::new();
    let wal = start(&disk, Durability::Normal);
    let (mut one, next) = lease(&wal, 2);
    write(&wal, &mut one, b"hello");
    wal.end_lease(one, true);
    let file = log_file(&disk);
    let mut bytes = vec![0; 1024];
    // Behind the generation's begin record and the first commit.
    file.read_at(&mut bytes, 8192 + 64).unwrap();
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((bytes[24], u64_at(8), bytes[4]), (65, 2, 40));
    assert_eq!(bytes[25..41], [0; 16], "the disk's number");
    let end = 8256 + 72 + 10 * 40 + 56;
    assert_eq!([41, 49, 57].map(u64_at), [2, next - 1, end]);
    let (commit, last) = (72, 72 + 32);
    assert_eq!((bytes[commit + 24], u64_at(commit + 8)), (1, 3));
    assert_eq!((bytes[last + 24], u64_at(last + 8)), (66, 4));
    let said = [last + 25, last + 33, last + 41].map(u64_at);
    assert_eq!(said, [next - 1, end, next - 1]);
}

/// Forwards, and names no system: nobody can tell whether what was written is there.
struct Nameless(MemoryDisk);

impl Disk for Nameless {
    forward!(0: open, exists, remove, rename, sync_dir, temp_file, canonical);
}

#[test]
fn a_disk_without_a_name_for_its_system_gives_none() {
    let disk = Arc::new(Nameless(MemoryDisk::new()));
    let recovery = Recovery::open(disk, Path::new(PATH), DATABASE, 0, false);
    let options = WalOptions {
        durability: Durability::Normal,
        ..WalOptions::default()
    };
    let wal = recovery.unwrap().start(options, 1).unwrap();
    commit(&wal, 1, b"first");
    assert!(!wal.gives_leases());
    assert!(wal.reserve_lease(10, 8, Duration::ZERO).unwrap().is_none());
}
