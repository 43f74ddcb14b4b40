//! The log on its own, on a disk that loses power: every device, and a mirror,
//! cut at every call of seeded workloads; with each call failing, once and for
//! good; and a mirror with each call on each side failing.
//!
//! `FULGURITE_SIM_FACTOR=20` runs twenty times as many workloads.

use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, OpenOptions};
use fulgurite_sim::{Call, Fault, FaultError, LogSize, SimDisk};
use fulgurite_sim::{cut_log_everywhere, log_after_a_failing_call, lose_each_side_everywhere};
use fulgurite_wal::{Device, Error, Lone, Lsn, Options, Preallocation, Wal};

fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("FULGURITE_SIM_FACTOR")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    first..first + count * factor
}

fn cut(device: Device, mirrored: bool, size: LogSize, seeds: std::ops::Range<u64>) -> u64 {
    let mut cuts = 0;
    for seed in seeds {
        let found = cut_log_everywhere(device, mirrored, size, seed);
        assert!(found.losses.is_empty(), "{:#?}", found.losses);
        cuts += found.cuts;
    }
    cuts
}

#[test]
fn no_device_loses_what_it_acknowledged() {
    for device in Device::DURABLE {
        let cuts = cut(device, false, LogSize::Small, seeds(500_000, 4));
        assert!(cuts >= 400, "{device}: {cuts} power cuts");
    }
}

#[test]
fn no_log_loses_anything_as_its_file_grows() {
    for device in [Device::File, Device::Direct, Device::Mmap] {
        let cuts = cut(device, false, LogSize::Roomy, seeds(540_000, 3));
        assert!(cuts >= 300, "{device}: {cuts} power cuts");
    }
    let cuts = cut(Device::File, true, LogSize::Roomy, seeds(550_000, 1));
    assert!(cuts >= 100, "{cuts} power cuts under a mirror");
}

#[test]
fn no_mirror_loses_what_it_acknowledged() {
    for device in [Device::File, Device::Direct] {
        let cuts = cut(device, true, LogSize::Small, seeds(510_000, 2));
        assert!(cuts >= 400, "{device}: {cuts} power cuts");
    }
}

#[test]
fn a_failing_call_loses_nothing_acknowledged() {
    for mirrored in [false, true] {
        for (size, seeds) in [
            (LogSize::Small, seeds(520_000, 6)),
            (LogSize::Roomy, seeds(560_000, 2)),
        ] {
            for seed in seeds {
                let found = log_after_a_failing_call(Device::File, mirrored, size, seed);
                assert!(found.losses.is_empty(), "{:#?}", found.losses);
            }
        }
    }
}

#[test]
fn a_mirror_goes_on_whichever_call_fails_on_a_side() {
    for device in [Device::File, Device::Direct] {
        for seed in seeds(530_000, 3) {
            let found = lose_each_side_everywhere(device, seed);
            assert!(found.losses.is_empty(), "{:#?}", found.losses);
            assert!(found.cuts >= 100, "{device}: {} faults", found.cuts);
        }
    }
}

/// The record with which a life begins has the number of the record before it.
/// Opening took that one's durability for its own and did not write it anew
/// after a sync that had failed; with the power it went, and all behind it.
#[test]
fn the_beginning_of_a_life_is_written_anew_after_a_failed_sync() {
    for seed in 1..40 {
        let disk = SimDisk::new(seed);
        let open = |disk: &SimDisk| {
            Wal::open(SIDES[0], alone_or_mirrored(disk, false, Lone::Refuse)).unwrap()
        };
        // So long that the next life's beginning ends with a sector.
        open(&disk).commit(&[1; 400]).unwrap();
        let log = open(&disk);
        log.append(&[2; 100]).unwrap();
        disk.fail(Fault {
            call: Some(Call::Sync),
            after: 0,
            for_good: false,
            error: FaultError::Io,
        });
        assert!(log.flush().is_err());
        drop(log);
        // What this life finds, it may rely on: it is durable from here on.
        let log = open(&disk);
        assert_eq!(log.replay(Lsn::FIRST).unwrap().count(), 2, "seed {seed}");
        drop(log);
        disk.power_off();
        let log = open(&disk.crash_image(seed));
        assert_eq!(log.replay(Lsn::FIRST).unwrap().count(), 2, "seed {seed}");
    }
}

const SIDES: [&str; 2] = ["d/a.log", "e/b.log"];

fn alone_or_mirrored(disk: &SimDisk, mirrored: bool, lone: Lone) -> Options {
    Options {
        background: false,
        mirror: mirrored.then(|| SIDES[1].into()),
        mirror_in_parallel: false,
        lone,
        ..Options::memory()
            .disk(Arc::new(disk.clone()))
            .limit_bytes(64 << 10)
    }
}

/// A process that makes a log may end before it has synced the folder. The next
/// one found the log and acknowledged commits; with the power went the name.
#[test]
fn a_log_whose_maker_was_killed_keeps_its_name() {
    for mirrored in [false, true] {
        for call in 0.. {
            let disk = SimDisk::new(call);
            disk.stop_at(call);
            let made = Wal::open(SIDES[0], alone_or_mirrored(&disk, mirrored, Lone::Refuse));
            if made.is_ok() {
                assert!(call > 10);
                break;
            }
            let disk = disk.kill_image();
            let options = alone_or_mirrored(&disk, mirrored, Lone::Refuse);
            Wal::open(SIDES[0], options)
                .unwrap()
                .commit(b"kept")
                .unwrap();
            for seed in 0..6 {
                let disk = disk.crash_image(seed);
                let options = alone_or_mirrored(&disk, mirrored, Lone::Refuse);
                let log = Wal::open(SIDES[0], options).unwrap();
                assert_eq!(log.replay(Lsn::FIRST).unwrap().count(), 1, "call {call}");
            }
        }
    }
}

/// Rebuilding a side was cut short when the copy had its name and the truth did
/// not say yet that it had been alone. So the side that had been lost, should it
/// come back as it was, passed for a whole one, and what was acknowledged
/// without it was written over; or, if the truth did say so, both sides named
/// the same only member and the log was not opened any more.
#[test]
fn a_side_that_comes_back_after_a_rebuilding_cut_short_is_stale() {
    for lost in SIDES {
        for was_alone in [false, true] {
            for call in 0.. {
                let disk = SimDisk::new(call);
                let open =
                    |disk: &SimDisk, lone| Wal::open(SIDES[0], alone_or_mirrored(disk, true, lone));
                open(&disk, Lone::Refuse).unwrap().commit(b"1").unwrap();
                let stale = disk.contents(Path::new(lost)).unwrap();
                disk.remove(Path::new(lost)).unwrap();
                if was_alone {
                    open(&disk, Lone::Open).unwrap().commit(b"2").unwrap();
                }
                disk.stop_at(disk.calls() + call);
                let done = open(&disk, Lone::Rebuild).is_ok();
                let disk = disk.kill_image();
                open(&disk, Lone::Rebuild).unwrap().commit(b"3").unwrap();
                let side = disk.open(Path::new(lost), OpenOptions::WRITE).unwrap();
                side.truncate(0).unwrap();
                side.write_at(&stale, 0).unwrap();
                drop(side);
                let log = open(&disk, Lone::Refuse).unwrap();
                let held = log.replay(Lsn::FIRST).unwrap().count();
                assert_eq!(held, 2 + usize::from(was_alone), "{lost}, call {call}");
                if done {
                    assert!(call > 10);
                    break;
                }
            }
        }
    }
}

/// A log of one file becomes a side of a mirror, and one that lost its head is replaced,
/// whichever call that is cut short at.
#[test]
fn making_a_side_anew_may_be_cut_short() {
    for was_mirrored in [false, true] {
        for call in 0.. {
            let disk = SimDisk::new(call);
            let open = |disk: &SimDisk, mirrored, lone| {
                Wal::open(SIDES[0], alone_or_mirrored(disk, mirrored, lone))
            };
            let log = open(&disk, was_mirrored, Lone::Refuse).unwrap();
            log.commit(b"1").unwrap();
            drop(log);
            if was_mirrored {
                let side = disk.open(Path::new(SIDES[1]), OpenOptions::WRITE).unwrap();
                side.write_at(&[0xff; 8192], 0).unwrap();
                side.sync_all().unwrap();
            }
            disk.stop_at(disk.calls() + call);
            let done = open(&disk, true, Lone::Rebuild).is_ok();
            for seed in 0..4 {
                let disk = match seed {
                    0 => disk.kill_image(),
                    _ => disk.crash_image(seed),
                };
                let log = open(&disk, true, Lone::Rebuild).unwrap();
                assert_eq!(log.stats().sides, 2, "call {call}");
                let held = log.replay(Lsn::FIRST).unwrap().count();
                assert_eq!(held, 1, "call {call}");
            }
            if done {
                assert!(call > 10);
                break;
            }
        }
    }
}

/// A side that failed at its first write holds nothing. Where the other one was missing
/// later, it passed for a log whose making had been cut short, and was opened, empty.
#[test]
fn a_side_that_was_never_written_to_is_no_log_in_the_making() {
    for lost in [0, 1] {
        let mut went_on = 0;
        for after in 0.. {
            let disk = SimDisk::new(after);
            let fault = Fault {
                call: None,
                after,
                for_good: true,
                error: FaultError::Io,
            };
            disk.fail_under(Path::new(SIDES[lost]).parent().unwrap(), fault);
            let open = || Wal::open(SIDES[0], alone_or_mirrored(&disk, true, Lone::Refuse));
            // Before it is made on both sides, a failure is one of the opening.
            let Ok(log) = open() else { continue };
            let Ok(_) = log.commit(b"on the other side") else {
                continue;
            };
            let alone = log.stats().sides == 1;
            drop(log);
            disk.heal();
            if !alone {
                break;
            }
            went_on += 1;
            disk.remove(Path::new(SIDES[1 - lost])).unwrap();
            let error = open().unwrap_err();
            assert!(
                matches!(error, Error::SideMissing { .. }),
                "call {after}: {error}"
            );
        }
        assert!(went_on > 2, "{went_on}");
    }
}

/// What is given up before it is written leaves no trace if the process ends
/// then: the second lap may begin in a file that is shorter than one. Opening
/// took the file's length for the end of the log's first lap, and found none of
/// the records behind that.
#[test]
fn a_file_may_be_shorter_than_a_lap_on_the_second() {
    for reopened_with in [Preallocation::None, Preallocation::ZeroFill] {
        let disk = SimDisk::new(1);
        let open = |disk: &SimDisk, how| {
            let options = alone_or_mirrored(disk, false, Lone::Refuse).preallocation(how);
            Wal::open(SIDES[0], options).unwrap()
        };
        let log = open(&disk, Preallocation::None);
        log.commit(&[1; 10_000]).unwrap();
        // Most of a lap, and no more than may stay unwritten.
        for _ in 0..2 {
            for _ in 0..66 {
                log.append(&[1; 400]).unwrap();
            }
            log.truncate(log.end()).unwrap();
        }
        let disk = disk.kill_image();
        let log = open(&disk, Preallocation::None);
        assert!(log.end().to_u64() > 64 << 10);
        let len = disk.contents(Path::new(SIDES[0])).unwrap().len();
        assert!(len < 64 << 10, "{len}");
        let kept: Vec<Vec<u8>> = (1..9).map(|number| vec![number; 300]).collect();
        for payload in &kept {
            log.commit(payload).unwrap();
        }
        drop(log);
        let held = |log: &Wal| -> Vec<Vec<u8>> {
            let records = log.replay(Lsn::FIRST).unwrap();
            records.map(|record| record.unwrap().1).collect()
        };
        let log = open(&disk, reopened_with);
        assert!(held(&log) == kept);
        log.commit(b"more").unwrap();
        drop(log);
        assert_eq!(held(&open(&disk, Preallocation::None)).len(), 9);
    }
}

/// A trial whose file could not be made ended the making of the log, and left the files of
/// those before it; a file that could not be removed left those behind it.
#[test]
fn a_failing_probe_leaves_no_files() {
    let trials = |disk: &SimDisk| -> usize {
        let files = disk.files();
        let names = files.iter().filter_map(|path| path.to_str());
        names.filter(|name| name.contains("-probe")).count()
    };
    for call in [Call::Open, Call::Write, Call::Sync, Call::Remove] {
        for (after, for_good) in (0..4).flat_map(|after| [(after, false), (after, true)]) {
            let disk = SimDisk::new(after);
            let fault = Fault {
                call: Some(call),
                after,
                for_good,
                error: FaultError::Io,
            };
            disk.fail(fault);
            let options = || Options {
                device: None,
                ..alone_or_mirrored(&disk, false, Lone::Refuse)
            };
            let opened = Wal::open(SIDES[0], options());
            let what = format!("{call:?} {after}, for good: {for_good}");
            if call == Call::Remove {
                assert!(opened.is_err(), "{what}");
                let kept = if for_good { 4 - after } else { 1 };
                assert_eq!(trials(&disk) as u64, kept, "{what}");
            } else {
                // The fault is met in a trial or, where it stays, by the log.
                assert_eq!(opened.is_err(), for_good, "{what}");
                assert_eq!(disk.files().len(), usize::from(!for_good), "{what}");
            }
            drop(opened);
            disk.heal();
            drop(Wal::open(SIDES[0], options()).unwrap());
            assert_eq!(trials(&disk), 0, "{what}");
            assert_eq!(disk.files().len(), 1, "{what}");
        }
    }
}

/// Making a log emptied and removed whatever had the name for a device's trial.
#[test]
fn a_probe_leaves_alone_what_is_not_its_own() {
    let disk = SimDisk::new(1);
    let path = Path::new("d/a.log-probe0");
    let file = disk.open(path, OpenOptions::CREATE).unwrap();
    file.write_at(b"somebody else's", 0).unwrap();
    let options = Options {
        device: None,
        ..alone_or_mirrored(&disk, false, Lone::Refuse)
    };
    let log = Wal::open(SIDES[0], options).unwrap();
    let plain = &log.measured()[0];
    assert_eq!(plain.device, Device::File);
    let why = plain.commit.as_ref().unwrap_err();
    assert!(why.contains("another file's"), "{why}");
    assert_eq!(disk.contents(path).unwrap(), b"somebody else's");
}

/// Where a side failed as the file was to grow, and the other one as that was to be
/// written down, the append failed and the log went on: with the next flush, which
/// succeeded, it acknowledged what the failed sync had lost.
#[test]
fn nothing_is_acknowledged_after_both_sides_failed() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let options = Options {
            limit_bytes: 8 << 20,
            ..alone_or_mirrored(&disk, true, Lone::Refuse)
        };
        let options = options.preallocation(Preallocation::Allocate);
        let log = Wal::open(SIDES[0], options).unwrap();
        log.append(&[1; 2000]).unwrap();
        log.flush_async().unwrap();
        for (side, call, for_good) in [(1, Call::Allocate, true), (0, Call::Sync, false)] {
            let fault = Fault {
                call: Some(call),
                after: 0,
                for_good,
                error: FaultError::Io,
            };
            disk.fail_under(Path::new(SIDES[side]).parent().unwrap(), fault);
        }
        assert!(log.append(&[2; 2 << 20]).is_err());
        assert!(log.flush().is_err(), "seed {seed}");
        assert_eq!(log.stats().sides, 0);
    }
}
