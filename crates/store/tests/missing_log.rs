//! Log files that are lost, mixed up or of another moment.
//!
//! Who copied only the database's file of a database in use, or removed its log after a
//! kill, got an older state and no word about it. The files of each stage of a life are
//! put together with all and with none of the log's, with those of other stages, and
//! under each other's names: what is opened then is never older than the stage. (But for
//! an earlier copy of the very generation that is needed, which looks like a torn tail.)

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{ErrorKind, Key, KeyKind, Options, Result, Store};
use std::path::Path;
use std::sync::Arc;

const NAMES: [&str; 3] = ["a.db", "a.db-wal0", "a.db-wal1"];

type File = Option<Vec<u8>>;

/// The files as the end of a process would leave them, and how many keys they hold.
struct Stage {
    what: &'static str,
    files: [File; 3],
    keys: i64,
}

fn read(disk: &MemoryDisk, name: &str) -> File {
    let file = disk.open(Path::new(name), OpenOptions::READ).ok()?;
    let mut bytes = vec![0; file.len().expect("its length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    Some(bytes)
}

fn disk_of(files: [&File; 3]) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::new();
    for (name, bytes) in NAMES.iter().zip(files) {
        if let Some(bytes) = bytes {
            let file = disk.open(Path::new(name), OpenOptions::CREATE_NEW);
            file.expect("is made").write_at(bytes, 0).expect("writes");
        }
    }
    Arc::new(disk)
}

/// Number and salt of the generation in a file of the log.
fn generation(log: &File) -> Option<&[u8]> {
    log.as_ref().map(|bytes| &bytes[32..48])
}

/// Number and salt of the generation that a database needs.
fn needed(database: &File) -> Option<&[u8]> {
    database.as_ref().map(|bytes| &bytes[2048..2064])
}

fn open(disk: &Arc<MemoryDisk>, options: &Options) -> Result<Store> {
    Store::open_on(disk.clone(), NAMES[0], options.clone())
}

fn count(store: &Store) -> i64 {
    let Some(tree) = store.family("t").expect("reads") else {
        return 0;
    };
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut value = Vec::new();
    let mut has = |key| txn.get_into(&tree, Key::Int(key), &mut value);
    let keys = (0..).take_while(|key| has(*key).expect("reads")).count();
    keys as i64
}

/// A life and how far it has come.
struct Life {
    disk: Arc<MemoryDisk>,
    keys: i64,
    stages: Vec<Stage>,
}

impl Life {
    fn note(&mut self, what: &'static str) {
        self.stages.push(Stage {
            what,
            files: NAMES.map(|name| read(&self.disk, name)),
            keys: self.keys,
        });
    }

    fn commit(&mut self, store: &Store) {
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(self.keys), b"x").expect("puts");
        txn.commit().expect("commits");
        self.keys += 1;
    }
}

/// The stages of a life that is closed, one that is killed, and one that recovers.
fn stages() -> Vec<Stage> {
    let mut life = Life {
        disk: Arc::new(MemoryDisk::new()),
        keys: 0,
        stages: Vec::new(),
    };
    let options = Options::default();
    let store = open(&life.disk, &options).expect("opens");
    life.note("made");
    life.commit(&store);
    life.note("with a commit");
    drop(store);
    life.note("closed");
    let store = open(&life.disk, &options).expect("opens");
    life.note("opened again");
    life.commit(&store);
    life.note("with a commit of another life");
    store.checkpoint().expect("a checkpoint");
    life.note("after a checkpoint");
    life.commit(&store);
    life.note("with a commit after a checkpoint");
    store.checkpoint().expect("a checkpoint");
    life.commit(&store);
    life.note("in the first file again");
    let last = life.stages.last().expect("a stage");
    let killed = disk_of(last.files.each_ref());
    drop(store);
    life.note("closed after checkpoints");
    life.disk = killed;
    let store = open(&life.disk, &options).expect("recovers");
    life.note("recovered");
    life.commit(&store);
    life.note("with a commit after recovery");
    drop(store);
    life.note("closed after recovery");
    life.stages
}

#[test]
fn no_log_opens_to_an_older_state() {
    let stages = stages();
    let mut refused = 0;
    for stage in &stages {
        let [file, zero, one] = &stage.files;
        let parts = [zero, one, &None];
        let mut logs: Vec<(&str, [&File; 2])> = Vec::new();
        for first in parts {
            logs.extend(parts.map(|second| ("its own", [first, second])));
        }
        logs.extend(
            stages
                .iter()
                .map(|other| (other.what, [&other.files[1], &other.files[2]])),
        );
        for (whose, [first, second]) in logs {
            for read_only in [false, true] {
                let options = Options {
                    read_only,
                    ..Options::default()
                };
                let what = format!(
                    "{} with the log of {whose} ({} and {})",
                    stage.what,
                    first.is_some(),
                    second.is_some()
                );
                let disk = disk_of([file, first, second]);
                match open(&disk, &options) {
                    Ok(store) => {
                        let keys = count(&store);
                        let has_needed = [first, second].map(|log| generation(log) == needed(file));
                        let may_be_torn = whose != "its own" && has_needed.contains(&true);
                        assert!(
                            keys >= stage.keys || may_be_torn,
                            "{what}: {keys} of {}",
                            stage.keys
                        );
                        let is_whole = whose == "its own" || whose == stage.what;
                        assert!(!is_whole || keys == stage.keys, "{what}: {keys}");
                    }
                    Err(error) => {
                        let kinds = [ErrorKind::MissingLog, ErrorKind::Corrupt];
                        assert!(kinds.contains(&error.kind()), "{what}: {error}");
                        refused += 1;
                        for (name, bytes) in NAMES.iter().zip([file, first, second]) {
                            assert!(read(&disk, name) == *bytes, "{what}: {name} changed");
                        }
                    }
                }
            }
        }
        // All of its files, under their names and under each other's.
        for log in [[zero, one], [one, zero]] {
            let store = open(&disk_of([file, log[0], log[1]]), &Options::default());
            let store = store.unwrap_or_else(|error| panic!("{}: {error}", stage.what));
            assert_eq!(count(&store), stage.keys, "{}", stage.what);
        }
    }
    assert!(refused > 50, "{refused} were refused");
}

/// The message names what is missing; what was committed since is given up only by who
/// says so, and only where no log is there that could belong to another copy.
#[test]
fn a_missing_log_is_abandoned_deliberately() {
    let stages = stages();
    let stage = |what| stages.iter().find(|stage| stage.what == what);
    let stage = |what| stage(what).expect("such a stage");
    let lost = stage("with a commit after a checkpoint");
    let older = stage("with a commit");
    let abandon = Options {
        abandon_missing_log: true,
        ..Options::default()
    };

    let [file, ..] = &lost.files;
    let astray = disk_of([file, &older.files[1], &older.files[2]]);
    let error = open(&astray, &abandon).expect_err("a log of another life");
    assert_eq!(error.kind(), ErrorKind::MissingLog);
    assert!(
        error.message().contains("a.db-wal0 is generation"),
        "{error}"
    );

    let disk = disk_of([file, &None, &None]);
    let error = open(&disk, &Options::default()).expect_err("the log is missing");
    assert_eq!(error.kind(), ErrorKind::MissingLog);
    assert!(
        error.message().contains("a.db-wal0, which is missing"),
        "{error}"
    );
    let reading = Options {
        read_only: true,
        ..abandon.clone()
    };
    assert_eq!(count(&open(&disk, &reading).expect("opens")), lost.keys - 1);
    open(&disk, &Options::default()).expect_err("reading decides nothing");
    assert_eq!(count(&open(&disk, &abandon).expect("opens")), lost.keys - 1);
    // Once that was decided, it is a database as any other.
    let store = open(&disk, &Options::default()).expect("opens");
    assert_eq!(count(&store), lost.keys - 1);
}

/// A database that was closed needs no log, whatever a life did or left undone.
#[test]
fn what_was_closed_needs_no_log() {
    let lives: [&dyn Fn(&Store); 4] = [
        &|_| {},
        &|store| store.checkpoint().expect("a checkpoint"),
        &|store| {
            store.create_family("u", KeyKind::Int).expect("a family");
            store.checkpoint().expect("a checkpoint");
        },
        // Room in the log, and nothing committed.
        &|store| {
            let tree = store.family("t").expect("reads").expect("is there");
            let mut txn = store.txn();
            txn.begin_immediate().expect("begins");
            txn.put(&tree, Key::Int(7), b"x").expect("puts");
            txn.rollback();
        },
    ];
    for life in lives {
        let disk = Arc::new(MemoryDisk::new());
        let store = open(&disk, &Options::default()).expect("opens");
        store.create_family("t", KeyKind::Int).expect("a family");
        drop(store);
        for _ in 0..2 {
            life(&open(&disk, &Options::default()).expect("opens"));
            assert!(NAMES[1..].iter().all(|name| read(&disk, name).is_none()));
        }
        open(&disk, &Options::default()).expect("opens");
    }
}
