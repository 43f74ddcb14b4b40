//! Databases that rot: a closed one, and one that a process left behind with its
//! log, each with bytes changed all over, and cut off at every 512 bytes.
//!
//! Opening, reading everything and the integrity check then give a typed error,
//! or what was committed; never a panic, never anything else. Of a log, rot in
//! the last record looks like a tail torn by the crash: then the commit before
//! it is the newest.
//!
//! `FULGURITE_SIM_FACTOR=20` looks at twenty times as many bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{PATH, Trace, assert_no_background_panic, factor, open, options, watch_background};
use fulgurite_disk::{Disk, OpenOptions};
use fulgurite_sim::kv::Life;
use fulgurite_sim::kv::{Oracle, State};
use fulgurite_sim::{Rng, SimDisk};
use fulgurite_store::{Error, ErrorKind, Options, Store};

/// Where a database is, and what it may show: newest first.
struct Sample {
    disk: SimDisk,
    states: Vec<State>,
}

#[derive(Debug, Default)]
struct Tally {
    /// Opening reported it.
    refused: usize,
    /// Reading or checking reported it.
    reported: usize,
    /// Everything was there, and nothing found amiss.
    harmless: usize,
    /// The last commit of the log was taken for torn, or the last ones that were not synced.
    older: usize,
}

fn settings() -> Options {
    Options {
        cache_bytes: 512 << 10,
        ..options()
    }
}

/// A database with something of everything, closed or left behind.
fn sample(seed: u64, closed: bool) -> Sample {
    let disk = SimDisk::new(seed);
    let mut oracle = Oracle::default();
    let settings = settings();
    let mut life = Life::new(&disk, &settings, &mut oracle, seed);
    life.start().expect("nothing fails");
    for _ in 0..40 {
        life.step().expect("nothing fails");
    }
    if closed {
        life.stop().expect("nothing fails");
        let states = vec![life.visible.clone()];
        drop(life);
        return Sample { disk, states };
    }
    life.checkpoint().expect("nothing fails");
    // What the log holds beyond the checkpoint.
    let mut states = vec![life.visible.clone()];
    while states.len() < 6 {
        life.commit_something().expect("nothing fails");
        states.insert(0, life.visible.clone());
    }
    // Of commits that were synced only the last has no witness behind it.
    if life.is_synced() {
        states.truncate(2);
    }
    let disk = disk.settled_image();
    drop(life);
    Sample { disk, states }
}

fn is_report(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Corrupt | ErrorKind::NotADatabase | ErrorKind::NewerFormat
    )
}

/// Looks at everything. Which of the states it shows, or what is wrong.
fn look(store: &Store, states: &[State]) -> Result<usize, Error> {
    let mut differences = Vec::new();
    for (index, state) in states.iter().enumerate() {
        match state.difference(store)? {
            None => return Ok(index),
            Some(difference) => differences.push(difference),
        }
    }
    panic!("a wrong answer: {differences:#?}");
}

fn judge(disk: &SimDisk, options: &Options, states: &[State], tally: &mut Tally) {
    let store = match open(disk, options) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_report(&error), "{:?}: {error}", error.kind());
            assert!(error.message().contains("p.db"), "names no file: {error}");
            tally.refused += 1;
            return;
        }
    };
    let seen = look(&store, states);
    let checked = store.integrity_check();
    for error in [seen.as_ref().err(), checked.as_ref().err()] {
        assert!(error.is_none_or(is_report), "{error:?}");
    }
    match (seen, checked) {
        (Err(_), Ok(problems)) if problems.is_empty() => panic!("the check found nothing"),
        (Err(_), _) | (_, Err(_)) => tally.reported += 1,
        (_, Ok(problems)) if !problems.is_empty() => tally.reported += 1,
        (Ok(0), _) => tally.harmless += 1,
        (Ok(_), _) => tally.older += 1,
    }
}

/// Some bytes of a file: all of the heads, and of the rest one in `stride`.
fn bytes_of(len: usize, stride: usize) -> Vec<usize> {
    let stride = (stride / factor() as usize).max(1);
    let head = |start: usize| start..(start + 100).min(len);
    let mut bytes: Vec<usize> = head(0).chain(head(4096.min(len))).collect();
    bytes.extend((0..len).step_by(stride));
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

fn flip_all(sample: &Sample, path: &Path, len: usize, stride: usize, tally: &mut Tally) {
    let mut rng = Rng::new(len as u64);
    for (turn, offset) in bytes_of(len, stride).into_iter().enumerate() {
        let flip = match rng.below(3) {
            0 => 0xff,
            _ => 1 << rng.below(8),
        };
        let read_only = turn % 4 != 0;
        let _trace = Trace(format!(
            "{} byte {offset} ^ {flip:#x}, read only: {read_only}",
            path.display()
        ));
        let image = sample.disk.settled_image();
        assert!(image.rot(path, offset, &mut |byte| *byte ^= flip));
        let options = Options {
            read_only,
            ..settings()
        };
        judge(&image, &options, &sample.states, tally);
    }
    assert_no_background_panic();
}

fn log_files(disk: &SimDisk) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.to_string_lossy().contains("-wal");
    disk.files().into_iter().filter(is_log).collect()
}

/// Up to where a log file holds anything but zeros.
fn used_len(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte != 0);
    last.map_or(0, |last| last + 1)
}

#[test]
fn flipped_bytes_of_a_closed_database() {
    watch_background();
    let mut tally = Tally::default();
    for seed in 1..3 {
        let sample = sample(seed, true);
        assert_eq!(log_files(&sample.disk), Vec::<PathBuf>::new());
        let len = sample.disk.contents(Path::new(PATH)).expect("there").len();
        flip_all(&sample, Path::new(PATH), len, 7, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.refused > 50 && tally.reported > 1_000 && tally.older == 0);
}

#[test]
fn flipped_bytes_of_a_database_with_its_log() {
    watch_background();
    let mut tally = Tally::default();
    for seed in 12..14 {
        let sample = sample(seed, false);
        let len = sample.disk.contents(Path::new(PATH)).expect("there").len();
        flip_all(&sample, Path::new(PATH), len, 11, &mut tally);
        let files = log_files(&sample.disk);
        assert_eq!(files.len(), 2);
        for file in files {
            let len = used_len(&sample.disk.contents(&file).expect("there"));
            flip_all(&sample, &file, len, 7, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.refused > 500 && tally.reported > 1_000 && tally.older > 0);
}

/// Files that end too early, or are gone.
#[test]
fn truncated_files() {
    watch_background();
    let mut tally = Tally::default();
    for (seed, closed) in [(21, true), (22, false)] {
        let sample = sample(seed, closed);
        let len = sample.disk.contents(Path::new(PATH)).expect("there").len();
        // An empty file is one to be made a database of.
        for end in (512..len).step_by(512) {
            let _trace = Trace(format!("cut off at {end} of {len}, closed: {closed}"));
            let image = sample.disk.settled_image();
            let file = image.open(Path::new(PATH), OpenOptions::WRITE);
            file.and_then(|file| file.truncate(end as u64))
                .expect("truncates");
            let options = Options {
                read_only: end % 1024 == 0,
                ..settings()
            };
            judge(&image, &options, &sample.states, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.refused > 20);
    assert_no_background_panic();
}

/// What is no database, or one of a version to come.
#[test]
fn other_files() {
    for (bytes, kind) in [
        (vec![b'x'], ErrorKind::NotADatabase),
        (b"SQLite format 3\0".repeat(600), ErrorKind::NotADatabase),
        (vec![0; 8192], ErrorKind::NotADatabase),
    ] {
        let disk = SimDisk::new(1);
        let path = Path::new(PATH);
        let file = disk.open(path, OpenOptions::CREATE).expect("creates");
        file.write_at(&bytes, 0).expect("writes");
        drop(file);
        let opened = Store::open_on(Arc::new(disk.clone()), path, settings());
        let error = opened.expect_err("it is no database");
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(disk.contents(path), Some(bytes), "the file was touched");
        assert_eq!(disk.files().len(), 1, "{:?}", disk.files());
    }
}
