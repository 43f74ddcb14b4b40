//! Bytes that rot: flipped bits, zeroed sectors, writes that were lost or went
//! elsewhere although they were reported done.
//!
//! Whatever is damaged, the answer is right or an error that names the file.
//! One thing may be lost without a report, as `docs/durability.md` says: the
//! last flush of the log, for which no later record testifies, and those before
//! it that are lost with it: by a sector that they share, or by the last flush
//! itself, where it went over them. Then the state before them is shown, whole.

use std::path::{Path, PathBuf};

use fulgurite_store::{Compression, Durability, ErrorKind, Options};

use crate::kv::{self, Life, State};
use crate::proof::{Failure, Tally, guarded, step_rng};
use crate::sql::{self, Session};
use crate::{Call, Fault, FaultError, PATH, Rng, SimDisk};

/// How many there were of each outcome.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// Opening reported it.
    pub refused: u64,
    /// Reading or checking reported it.
    pub reported: u64,
    /// Everything was there.
    pub harmless: u64,
    /// The last flush of the log was taken for torn.
    pub older: u64,
}

impl Counts {
    /// How many cases there were.
    pub fn total(&self) -> u64 {
        self.refused + self.reported + self.harmless + self.older
    }
}

/// What a damaged database may show, newest first.
#[derive(Debug, Clone)]
enum States {
    KeyValue(Vec<kv::State>),
    Sql(Vec<sql::State>),
}

/// A database to be damaged.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What it is, in words.
    pub name: &'static str,
    disk: SimDisk,
    states: States,
    /// How long each file was when each of the states was the newest.
    ends: Vec<Lengths>,
    options: Options,
}

/// Files' lengths without the zeros at their ends.
pub(crate) type Lengths = Vec<(PathBuf, usize)>;

pub(crate) fn lengths(disk: &SimDisk) -> Lengths {
    let used = |path: PathBuf| {
        let bytes = disk.contents(&path).unwrap_or_default();
        let last = bytes.iter().rposition(|byte| *byte != 0);
        (path, last.map_or(0, |last| last + 1))
    };
    disk.files().into_iter().map(used).collect()
}

enum Seen {
    Whole(usize),
    Reported,
}

/// Bytes that are lost together.
const SECTOR: usize = 512;

/// Which damage.
#[derive(Debug, Clone, Copy)]
enum Damage {
    /// A byte is changed by this mask.
    Flip(usize, u8),
    /// The sector that begins here is zero.
    Zero(usize),
}

fn options(compression: Compression) -> Options {
    Options {
        cache_bytes: 512 << 10,
        compression,
        ..Options::default()
    }
}

/// A small database with SQL tables, left behind with its log, or closed.
pub fn small(seed: u64, closed: bool) -> Sample {
    let options = options(Compression::None);
    let disk = SimDisk::new(seed);
    let mut oracle = sql::Oracle::default();
    let mut session = Session::new(&disk, &options, &mut oracle, None);
    session.start().expect("nothing fails");
    for step in 0..6 {
        let mut rng = step_rng(seed, step);
        session.autocommit_any(&mut rng).expect("nothing fails");
    }
    let mut states = vec![session.visible.clone()];
    let mut ends = Vec::new();
    if closed {
        session.stop().expect("nothing fails");
    } else {
        session.checkpoint().expect("nothing fails");
        ends.push(lengths(&disk));
        for step in 10..16 {
            let mut rng = step_rng(seed, step);
            session.autocommit_any(&mut rng).expect("nothing fails");
            if states.first() != Some(&session.visible) {
                states.insert(0, session.visible.clone());
                ends.insert(0, lengths(&disk));
            }
        }
    }
    let disk_left = disk.settled_image();
    drop(session);
    Sample {
        name: "a small SQL database",
        disk: disk_left,
        states: States::Sql(states),
        ends,
        options,
    }
}

/// A compressed one with several families.
pub fn families(seed: u64, closed: bool) -> Sample {
    key_value(
        "a compressed database of several families",
        seed,
        closed,
        false,
    )
}

/// A compressed one of several megabytes, most of them attached in bulk, left behind
/// with its log.
pub fn large(seed: u64) -> Sample {
    key_value("a large compressed database", seed, false, true)
}

fn key_value(name: &'static str, seed: u64, closed: bool, bulk: bool) -> Sample {
    let options = options(Compression::Lz4);
    let disk = SimDisk::new(seed);
    let mut oracle = kv::Oracle::default();
    let mut life = Life::new(&disk, &options, &mut oracle, seed);
    life.all_synced = true;
    life.start().expect("nothing fails");
    for step in 0..40 {
        life.step_or_start_at(step).expect("nothing fails");
    }
    if bulk {
        life.bulk().expect("nothing fails");
    }
    let mut states = vec![life.visible.clone()];
    let mut ends = Vec::new();
    if closed {
        life.stop().expect("nothing fails");
    } else {
        life.checkpoint().expect("nothing fails");
        ends.push(lengths(&disk));
        while states.len() < 6 {
            life.commit_something().expect("nothing fails");
            states.insert(0, life.visible.clone());
            ends.insert(0, lengths(&disk));
        }
    }
    let disk_left = disk.settled_image();
    drop(life);
    Sample {
        name,
        disk: disk_left,
        states: States::KeyValue(states),
        ends,
        options,
    }
}

impl Sample {
    /// A copy to be damaged.
    pub(crate) fn image(&self) -> SimDisk {
        self.disk.fork()
    }

    /// Opens a damaged copy, reads and checks everything: whatever it shows,
    /// failures are typed, and what opens has a sound structure.
    pub(crate) fn survive(&self, image: &SimDisk) {
        let store = match kv::open(image, &self.options) {
            Ok(store) => store,
            Err(error) => {
                let message = error.to_string();
                assert!(
                    is_report(error.kind()) || message.contains("another"),
                    "{error:?}"
                );
                return;
            }
        };
        assert_eq!(store.integrity_check().ok(), Some(Vec::new()));
        drop(store);
        let database = sql::open(image, &self.options);
        if let Ok(connection) = database.and_then(|database| database.connect()) {
            let sql = "PRAGMA integrity_check";
            // A schema of nonsense is refused; which rows it has, nobody knows.
            let _ = connection.query_row(sql, [], |row| row.get::<_, String>(0));
        }
    }

    /// Its files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.disk.files()
    }

    /// A file's length, without the zeros at its end.
    pub fn used_len(&self, path: &Path) -> usize {
        length_of(&lengths(&self.disk), path)
    }

    /// Flips bytes of a file, one at a time: every `stride`-th, and all of the
    /// heads.
    ///
    /// # Errors
    /// What was wrong.
    pub fn flip(
        &self,
        path: &Path,
        stride: usize,
        counts: &mut Counts,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let len = self.used_len(path);
        let mut rng = Rng::new(len as u64);
        let heads = (0..len.min(128)).chain(4096.min(len)..len.min(4096 + 128));
        let rest = (0..len).step_by(stride.max(1));
        for (turn, offset) in heads.chain(rest).enumerate() {
            let mask = match rng.below(3) {
                0 => 0xff,
                _ => 1 << rng.below(8),
            };
            // Writing is tried now and then: it recovers and closes.
            self.damage(
                path,
                Damage::Flip(offset, mask),
                turn % 8 != 0,
                counts,
                tally,
            )?;
        }
        Ok(())
    }

    /// Zeroes each sector of a file in turn.
    ///
    /// # Errors
    /// What was wrong.
    pub fn zero(&self, path: &Path, counts: &mut Counts, tally: &mut Tally) -> Result<(), Failure> {
        for start in (0..self.used_len(path)).step_by(SECTOR) {
            self.damage(path, Damage::Zero(start), true, counts, tally)?;
        }
        Ok(())
    }

    fn damage(
        &self,
        path: &Path,
        damage: Damage,
        read_only: bool,
        counts: &mut Counts,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let image = self.disk.fork();
        match damage {
            Damage::Flip(offset, mask) => {
                image.rot(path, offset, &mut |byte| *byte ^= mask);
            }
            Damage::Zero(start) => {
                for offset in start..start + SECTOR {
                    image.rot(path, offset, &mut |byte| *byte = 0);
                }
            }
        }
        tally.damages += 1;
        let at = format!("{}, {} {damage:?}", self.name, path.display());
        let newest = self.may_show(path, damage);
        guarded(&at, || self.judge(&image, read_only, newest, counts))
    }

    /// How many of the states, newest first, the damaged file may show. The last
    /// flush may be lost; with a sector of a log that reaches into it, all flushes
    /// that have a part in that sector, since nothing behind it testifies.
    fn may_show(&self, path: &Path, damage: Damage) -> usize {
        let end = |state: usize| self.ends.get(state).map_or(0, |ends| length_of(ends, path));
        match damage {
            Damage::Zero(start) if path != Path::new(PATH) && end(1) < start + SECTOR => {
                let touched = (0..self.ends.len()).take_while(|state| end(*state) > start);
                1 + touched.count().max(1)
            }
            _ => 2,
        }
    }

    /// Opens and reads an image, which may show one of the `newest` states.
    pub(crate) fn judge(
        &self,
        image: &SimDisk,
        read_only: bool,
        newest: usize,
        counts: &mut Counts,
    ) {
        let options = Options {
            read_only,
            ..self.options.clone()
        };
        let seen = match &self.states {
            States::KeyValue(states) => {
                let states = &states[..newest.min(states.len())];
                see_families(image, &options, states, counts)
            }
            States::Sql(states) => {
                let states = &states[..newest.min(states.len())];
                see_tables(image, &options, states, counts)
            }
        };
        match seen {
            None => {}
            Some(Seen::Reported) => counts.reported += 1,
            Some(Seen::Whole(0)) => counts.harmless += 1,
            Some(Seen::Whole(_)) => counts.older += 1,
        }
    }
}

fn length_of(files: &Lengths, path: &Path) -> usize {
    let found = files.iter().find(|(file, _)| file == path);
    found.map_or(0, |(_, length)| *length)
}

fn seen(index: usize, checked: &Option<String>) -> Seen {
    match checked {
        Some(_) => Seen::Reported,
        None => Seen::Whole(index),
    }
}

fn is_report(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Corrupt | ErrorKind::NotADatabase | ErrorKind::NewerFormat
    )
}

fn see_families(
    image: &SimDisk,
    options: &Options,
    states: &[kv::State],
    counts: &mut Counts,
) -> Option<Seen> {
    let store = match kv::open(image, options) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_report(error.kind()), "{:?}: {error}", error.kind());
            assert!(error.message().contains("p.db"), "names no file: {error}");
            counts.refused += 1;
            return None;
        }
    };
    let checked = match store.integrity_check() {
        Ok(problems) => (!problems.is_empty()).then(|| problems.join("; ")),
        Err(error) => {
            assert!(is_report(error.kind()), "{:?}: {error}", error.kind());
            Some(error.to_string())
        }
    };
    let mut differences = Vec::new();
    for (index, state) in states.iter().enumerate() {
        match state.difference(&store) {
            Ok(None) => return Some(seen(index, &checked)),
            Ok(Some(difference)) => differences.push(difference),
            Err(error) => {
                assert!(is_report(error.kind()), "{:?}: {error}", error.kind());
                assert!(checked.is_some(), "the check found nothing, but: {error}");
                return Some(Seen::Reported);
            }
        }
    }
    panic!("a wrong answer: {differences:?}");
}

fn see_tables(
    image: &SimDisk,
    options: &Options,
    states: &[sql::State],
    counts: &mut Counts,
) -> Option<Seen> {
    let is_report = |error: &fulgurite::Error| {
        use fulgurite::ffi::{SQLITE_CORRUPT, SQLITE_NOTADB};
        let code = error.result_code() & 0xff;
        let known = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
        assert!(known || error.to_string().contains("version"), "{error:?}");
    };
    let connection = match sql::open(image, options).and_then(|database| database.connect()) {
        Ok(connection) => connection,
        Err(error) => {
            is_report(&error);
            counts.refused += 1;
            return None;
        }
    };
    let sql = "PRAGMA integrity_check";
    let checked = match connection.query_row(sql, [], |row| row.get::<_, String>(0)) {
        Ok(found) => (found != "ok").then_some(found),
        Err(error) => {
            is_report(&error);
            Some(error.to_string())
        }
    };
    let mut differences = Vec::new();
    for (index, state) in states.iter().enumerate() {
        match state.difference(&connection) {
            Ok(None) => return Some(seen(index, &checked)),
            Ok(Some(difference)) => differences.push(difference),
            Err(error) => {
                is_report(&error);
                assert!(checked.is_some(), "the check found nothing, but: {error}");
                return Some(Seen::Reported);
            }
        }
    }
    panic!("a wrong answer: {differences:?}");
}

/// Loses or misdirects each write of a workload in turn; then the process is
/// gone, and what is there is looked at.
///
/// # Errors
/// What was wrong.
pub fn lying_writes(
    seed: u64,
    every: usize,
    counts: &mut Counts,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let calls = lie(seed, u64::MAX, FaultError::Lost, &mut Counts::default());
    for after in (0..calls).step_by(every.max(1)) {
        for error in [FaultError::Lost, FaultError::Misdirected] {
            tally.damages += 1;
            let at = format!("seed {seed}, write {after} is {error:?}");
            guarded(&at, || lie(seed, after, error, counts))?;
        }
    }
    Ok(())
}

/// How many of the last flushes a lie may take without a report: the last one, and if
/// that went over others that reach to the log's end, those too.
fn lost_with_the_last(disk: &SimDisk, flushes: &[(State, Lengths)]) -> usize {
    let before: Vec<&Lengths> = flushes.iter().rev().skip(1).map(|(_, ends)| ends).collect();
    let Some(lie) = disk.misdirected() else {
        return 1;
    };
    let was_last = before
        .first()
        .is_some_and(|ends| length_of(ends, &lie.path) <= lie.meant);
    if lie.path == Path::new(PATH) || !was_last {
        return 1;
    }
    let reaches = |ends: &&&Lengths| length_of(ends, &lie.path) > lie.landed;
    1 + before.iter().take_while(reaches).count()
}

/// Returns how many writes there were.
fn lie(seed: u64, after: u64, error: FaultError, counts: &mut Counts) -> u64 {
    let options = Options {
        durability: Durability::Full,
        ..options(Compression::Lz4)
    };
    let disk = SimDisk::new(seed);
    disk.fail(Fault {
        call: Some(Call::Write),
        after,
        for_good: false,
        error,
    });
    let mut oracle = kv::Oracle::default();
    let mut life = Life::new(&disk, &options, &mut oracle, seed);
    life.all_synced = true;
    life.flushes = Some(Vec::new());
    let mut cut_short = false;
    for step in 0..14 {
        // Reading back what was lost reports it; that ends the life.
        if let Err(error) = life.step_or_start_at(step) {
            // The write that took the log's mark away is the one that was lost, and so would
            // whoever opens it next be told.
            if error.kind() == ErrorKind::MissingLog {
                counts.refused += 1;
                return disk.calls();
            }
            let known = is_report(error.kind()) || error.kind() == ErrorKind::Poisoned;
            assert!(known, "{error}");
            cut_short = true;
            break;
        }
    }
    let image = disk.settled_image();
    let flushes = life.flushes.take().unwrap_or_default();
    let states = std::iter::once(State::default());
    let states = states.chain(flushes.iter().map(|(state, _)| state.clone()));
    let may_show = 1 + lost_with_the_last(&disk, &flushes);
    let mut states: Vec<State> = states.rev().take(may_show).collect();
    drop(life);
    if cut_short {
        states.extend(oracle.candidates.iter().cloned());
    }
    let sample = Sample {
        name: "a database of a lying disk",
        disk: image.clone(),
        states: States::KeyValue(states),
        ends: Vec::new(),
        options,
    };
    sample.judge(&image, false, usize::MAX, counts);
    disk.calls()
}
