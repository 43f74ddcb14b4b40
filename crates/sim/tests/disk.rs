//! The simulated disk does what its fault model says.

use std::collections::BTreeSet;
use std::path::Path;

use fulgurite_disk::{Disk, DiskErrorKind, OpenOptions};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};

fn named_file(disk: &SimDisk, bytes: &[u8]) -> std::sync::Arc<dyn fulgurite_disk::DiskFile> {
    let file = disk.open(Path::new("d/a"), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("d")).unwrap();
    file
}

/// All that power cuts could leave of the file, by many seeds.
fn images(disk: &SimDisk) -> BTreeSet<Vec<u8>> {
    (0..400)
        .filter_map(|seed| disk.crash_image(seed).contents(Path::new("d/a")))
        .collect()
}

#[test]
fn synced_bytes_survive_and_unsynced_sectors_each_may() {
    let disk = SimDisk::new(1);
    let file = named_file(&disk, &[1; 1024]);
    assert_eq!(images(&disk), BTreeSet::from([vec![1; 1024]]));
    file.write_at(&[2; 600], 0).unwrap();
    let whole = |first: u8, second: u8| {
        let mut bytes = vec![1; 1024];
        bytes[..512].fill(first);
        bytes[512..600].fill(second);
        bytes
    };
    let expected = BTreeSet::from([whole(1, 1), whole(1, 2), whole(2, 1), whole(2, 2)]);
    assert_eq!(images(&disk), expected);
    file.sync_data().unwrap();
    assert_eq!(images(&disk), BTreeSet::from([whole(2, 2)]));
}

#[test]
fn lengths_go_their_own_way() {
    let disk = SimDisk::new(1);
    let file = named_file(&disk, &[1; 100]);
    file.write_at(&[2; 100], 512).unwrap();
    let lens: BTreeSet<_> = images(&disk).iter().map(Vec::len).collect();
    assert_eq!(lens, BTreeSet::from([100, 612]));
    assert!(images(&disk).iter().all(|bytes| bytes[..100] == [1; 100]));
}

#[test]
fn names_survive_in_order_of_their_changes() {
    let disk = SimDisk::new(1);
    named_file(&disk, b"a");
    disk.open(Path::new("d/b"), OpenOptions::CREATE).unwrap();
    disk.rename(Path::new("d/b"), Path::new("d/a")).unwrap();
    let seen: BTreeSet<_> = (0..200)
        .map(|seed| disk.crash_image(seed))
        .map(|image| (image.files(), image.contents(Path::new("d/a"))))
        .collect();
    let (a, b) = (Path::new("d/a").to_owned(), Path::new("d/b").to_owned());
    let expected = BTreeSet::from([
        (vec![a.clone()], Some(b"a".to_vec())),
        (vec![a.clone(), b], Some(b"a".to_vec())),
        (vec![a], Some(Vec::new())),
    ]);
    assert_eq!(seen, expected);
    disk.sync_dir(Path::new("d")).unwrap();
    assert!(
        (0..50).all(|seed| disk.crash_image(seed).contents(Path::new("d/a")) == Some(Vec::new()))
    );
}

#[test]
fn a_failed_sync_may_have_lost_what_is_still_seen() {
    let (mut lost, mut kept) = (false, false);
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        let file = named_file(&disk, &[1; 512]);
        file.write_at(&[2; 512], 0).unwrap();
        disk.fail(Fault {
            call: Some(Call::Sync),
            after: 0,
            for_good: false,
            error: FaultError::Io,
        });
        assert_eq!(file.sync_data().unwrap_err().kind, DiskErrorKind::Other);
        file.sync_data().unwrap();
        assert_eq!(disk.contents(Path::new("d/a")), Some(vec![2; 512]));
        let left = disk.crash_image(0).contents(Path::new("d/a"));
        lost |= left == Some(vec![1; 512]);
        kept |= left == Some(vec![2; 512]);
    }
    assert!(lost && kept);
}

#[test]
fn power_goes_at_the_call_asked_for_and_stays_away() {
    let disk = SimDisk::new(1);
    let file = named_file(&disk, &[1; 512]);
    disk.stop_at(disk.calls() + 1);
    file.write_at(&[2; 512], 0).unwrap();
    assert!(file.sync_data().is_err());
    assert!(disk.is_stopped());
    assert!(file.write_at(&[3; 512], 0).is_err());
    assert!(file.read_at(&mut [0], 0).is_err());
    assert!(disk.open(Path::new("d/a"), OpenOptions::READ).is_err());
    assert_eq!(images(&disk), BTreeSet::from([vec![1; 512], vec![2; 512]]));
    let image = disk.crash_image(3);
    assert!(image.open(Path::new("d/a"), OpenOptions::READ).is_ok());
}

#[test]
fn faults_hit_the_nth_call_once_or_for_good() {
    let disk = SimDisk::new(1);
    let file = named_file(&disk, &[1; 10]);
    disk.fail(Fault {
        call: Some(Call::Write),
        after: 2,
        for_good: false,
        error: FaultError::NoSpace,
    });
    let kinds: Vec<_> = (0..4)
        .map(|_| file.write_at(&[2; 10], 0).map_err(|error| error.kind))
        .collect();
    assert_eq!(kinds, [Ok(()), Ok(()), Err(DiskErrorKind::NoSpace), Ok(())]);
    disk.fail(Fault {
        call: None,
        after: 1,
        for_good: true,
        error: FaultError::Io,
    });
    file.write_at(&[2; 10], 0).unwrap();
    assert!(file.sync_data().is_err());
    assert!(disk.sync_dir(Path::new("d")).is_err());
    file.read_at(&mut [0; 10], 0).unwrap();
    disk.heal();
    file.sync_data().unwrap();
}

#[test]
fn the_same_seeds_give_the_same_disk() {
    let image = |seed: u64| {
        let disk = SimDisk::new(7);
        let file = named_file(&disk, &[1; 4096]);
        for step in 0..20u8 {
            file.write_at(&[step; 700], u64::from(step) * 300).unwrap();
        }
        disk.crash_image(seed).contents(Path::new("d/a"))
    };
    assert_eq!(image(5), image(5));
    assert_ne!(image(5), image(6));
}

#[test]
fn rot_stays() {
    let disk = SimDisk::new(1);
    named_file(&disk, &[1; 10]);
    assert!(disk.rot(Path::new("d/a"), 3, &mut |byte| *byte ^= 1));
    assert!(!disk.rot(Path::new("d/a"), 10, &mut |byte| *byte ^= 1));
    assert!(!disk.rot(Path::new("d/b"), 0, &mut |byte| *byte ^= 1));
    assert_eq!(
        disk.crash_image(0).contents(Path::new("d/a")),
        Some(vec![1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
    );
}
