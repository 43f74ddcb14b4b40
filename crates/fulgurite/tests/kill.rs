//! A process that writes at full speed is killed with SIGKILL at random moments,
//! over and over on the same file: while it opens the database and recovers from
//! the kill before, while it makes a checkpoint, and in between. After each kill
//! the database is opened and must hold every commit that was acknowledged, at
//! most one more a writer, and no half of any. That holds for `normal` as for `full`:
//! each process gets one of the two.
//!
//! `FULGURITE_KILLS` sets how many kills (15 unless set), `FULGURITE_KILL_SEED`
//! the seed. The page cache outlives a killed process, so this proves the order
//! of writes and the recovery, not the syncs: those are the simulator's part.

use fastrand::Rng;
use fulgurite::{Connection, Database, Durability, Options, Result, params};
use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const WRITERS: i64 = 3;
const KILLS_PER_FILE: u64 = 25;
const CHECKPOINT_EVERY: i64 = 40;
const CHILD_PATH: &str = "FULGURITE_KILL_CHILD";
const CHILD_NORMAL: &str = "FULGURITE_KILL_CHILD_NORMAL";

/// What a row must hold, so that a mixed-up one shows.
fn payload(writer: i64, number: i64) -> Vec<u8> {
    let mut rng = Rng::with_seed((writer << 40 | number) as u64);
    let length = if number % 97 == 0 {
        40_000
    } else {
        rng.usize(..600)
    };
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Not a test of its own: the process that is killed.
#[test]
fn child_writer() {
    let Some(path) = env::var_os(CHILD_PATH) else {
        return;
    };
    let mut options = Options::default();
    if env::var_os(CHILD_NORMAL).is_some() {
        options.durability = Durability::Normal;
    }
    println!("\nopening");
    let database =
        Database::open_with_options(Path::new(&path), options).expect("the database opens");
    println!("open");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let database = database.clone();
            thread::spawn(move || write(&database, writer).expect("the writer goes on"))
        })
        .collect();
    for writer in writers {
        writer.join().expect("no writer panics");
    }
}

/// Commits numbered rows for ever and says so after each.
fn write(database: &Database, writer: i64) -> Result<()> {
    let mut connection = database.connect()?;
    connection.busy_timeout(Duration::from_secs(60))?;
    let sql = "SELECT coalesce(max(number), 0) FROM log WHERE writer = ?1";
    let mut number: i64 = connection.query_row(sql, [writer], |row| row.get(0))?;
    loop {
        number += 1;
        match number % 3 {
            0 => one_row(&connection, writer, number)?,
            _ => several_tables(&mut connection, writer, number)?,
        }
        say(&format!("ack {writer} {number}"));
        if writer == 0 && number % CHECKPOINT_EVERY == 0 {
            say("checkpoint begins");
            database.checkpoint()?;
            say("checkpoint ends");
        }
    }
}

/// One write a line: a line is either there or not.
fn say(line: &str) {
    std::io::stdout()
        .write_all(format!("{line}\n").as_bytes())
        .expect("the parent listens");
}

fn one_row(connection: &Connection, writer: i64, number: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO log (writer, number, payload) VALUES (?1, ?2, ?3)",
        params![writer, number, payload(writer, number)],
    )?;
    Ok(())
}

/// A row in the log, one in a table of its own, an update, and a delete: what
/// hangs together must come back together.
fn several_tables(connection: &mut Connection, writer: i64, number: i64) -> Result<()> {
    use fulgurite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(Immediate)?;
    one_row(&transaction, writer, number)?;
    transaction.execute(
        &format!("INSERT INTO own{writer} (number, half) VALUES (?1, ?2)"),
        params![number, number / 2],
    )?;
    let sql = format!("DELETE FROM own{writer} WHERE number = ?1");
    transaction.execute(&sql, [number - 50])?;
    let sql = "UPDATE latest SET number = ?2 WHERE writer = ?1";
    transaction.execute(sql, params![writer, number])?;
    transaction.commit()
}

fn create(path: &Path) {
    let connection = Connection::open(path).expect("the database is created");
    let mut sql = String::from(
        "CREATE TABLE log (writer INTEGER, number INTEGER, payload BLOB, UNIQUE (writer, number));
         CREATE TABLE latest (writer INTEGER PRIMARY KEY, number INTEGER);",
    );
    for writer in 0..WRITERS {
        sql += &format!(
            "CREATE TABLE own{writer} (number INTEGER PRIMARY KEY, half INTEGER);
             CREATE INDEX own{writer}_half ON own{writer} (half);
             INSERT INTO latest VALUES ({writer}, 0);"
        );
    }
    connection
        .execute_batch(&sql)
        .expect("the tables are created");
}

/// When to kill.
#[derive(Debug)]
enum Moment {
    /// So many microseconds after the child began to open a database that one before it
    /// left behind.
    Opening(u64),
    /// After so many acknowledgements.
    Acknowledged(u64),
    /// So many microseconds after so many checkpoints began.
    Checkpoint(u64, u64),
}

/// What a kill interrupted.
#[derive(Debug, Default)]
struct Interrupted {
    recoveries: u64,
    checkpoints: u64,
}

fn moment(rng: &mut Rng) -> Moment {
    match rng.u32(..8) {
        0 | 1 => Moment::Opening(rng.u64(..2_000)),
        2..=4 => Moment::Checkpoint(rng.u64(1..4), rng.u64(..3_000)),
        _ => Moment::Acknowledged(rng.u64(..400)),
    }
}

fn spawn(path: &Path, durability: Durability) -> Child {
    let mut command = Command::new(env::current_exe().expect("this binary has a path"));
    if durability == Durability::Normal {
        command.env(CHILD_NORMAL, "1");
    }
    command
        .args(["--exact", "child_writer", "--nocapture"])
        .env(CHILD_PATH, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child starts")
}

/// Runs a child until its moment, kills it, and returns the last number that
/// each writer acknowledged.
fn run_and_kill(
    path: &Path,
    durability: Durability,
    moment: &Moment,
    interrupted: &mut Interrupted,
) -> HashMap<i64, i64> {
    let mut child = spawn(path, durability);
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).split(b'\n');
    let mut acknowledged = HashMap::new();
    let (mut seen, mut checkpoints) = (0, 0);
    let (mut opening, mut checkpointing) = (false, false);
    let mut killed = false;
    // After the kill, the pipe still holds what was acknowledged before it.
    for line in lines {
        let line = String::from_utf8_lossy(&line.expect("the pipe can be read")).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let mut wait = None;
        match words.as_slice() {
            ["opening"] => {
                opening = true;
                if let Moment::Opening(micros) = moment {
                    wait = Some(*micros);
                }
            }
            ["open"] => opening = false,
            ["ack", writer, number] => {
                if let (Ok(writer), Ok(number)) = (writer.parse(), number.parse()) {
                    acknowledged.insert(writer, number);
                }
                seen += 1;
            }
            ["checkpoint", "begins"] => {
                (checkpointing, checkpoints) = (true, checkpoints + 1);
                match moment {
                    Moment::Checkpoint(count, micros) if checkpoints == *count => {
                        wait = Some(*micros);
                    }
                    _ => {}
                }
            }
            ["checkpoint", "ends"] => checkpointing = false,
            _ => {}
        }
        if matches!(moment, Moment::Acknowledged(count) if seen >= *count && line == "open" || seen > *count)
        {
            wait = Some(0);
        }
        if let (false, Some(micros)) = (killed, wait) {
            thread::sleep(Duration::from_micros(micros));
            child.kill().expect("the child can be killed");
            killed = true;
        }
    }
    interrupted.recoveries += u64::from(opening);
    interrupted.checkpoints += u64::from(checkpointing);
    let output = child
        .wait_with_output()
        .expect("the child can be waited for");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        killed && complaint.is_empty(),
        "the child failed: {complaint}"
    );
    acknowledged
}

/// Checks the whole database against what was acknowledged; how many rows each
/// writer has. Each of the `kills` since the last check may have come between a commit
/// and its acknowledgement.
fn check(path: &Path, acknowledged: &HashMap<i64, i64>, kills: i64) -> HashMap<i64, i64> {
    let database = Database::open(path).expect("the database opens after a kill");
    let complaints = database.integrity_check().expect("the check runs");
    assert!(complaints.is_empty(), "{complaints:?}");
    let connection = database.connect().expect("a connection");
    let mut found = HashMap::new();
    for writer in 0..WRITERS {
        let rows = rows_of(&connection, writer).expect("the rows can be read");
        let last = rows.len() as i64;
        let acknowledged = acknowledged.get(&writer).copied().unwrap_or(0);
        assert!(
            (acknowledged..=acknowledged + kills).contains(&last),
            "writer {writer} has {last} rows, {acknowledged} were acknowledged"
        );
        found.insert(writer, last);
        // The newest number whose transaction wrote the other tables too.
        let paired = (1..=last).rev().find(|number| number % 3 != 0).unwrap_or(0);
        let number = |sql: &str| -> i64 {
            connection
                .query_row(sql, [], |row| row.get(0))
                .expect("the query runs")
        };
        assert_eq!(
            number(&format!(
                "SELECT number FROM latest WHERE writer = {writer}"
            )),
            paired
        );
        let own = format!("SELECT coalesce(max(number), 0) FROM own{writer}");
        assert_eq!(number(&own), paired);
        let kept = (1..=last)
            .filter(|n| n % 3 != 0 && !deleted(*n, last))
            .count() as i64;
        assert_eq!(number(&format!("SELECT count(*) FROM own{writer}")), kept);
        let by_index = format!("SELECT count(*) FROM own{writer} WHERE half >= 0");
        assert_eq!(number(&by_index), kept);
    }
    found
}

/// Whether row `number` of an own table was removed by a later transaction.
fn deleted(number: i64, last: i64) -> bool {
    number + 50 <= last && (number + 50) % 3 != 0
}

/// The rows of a writer, which must be numbered without a gap and unharmed.
fn rows_of(connection: &Connection, writer: i64) -> Result<Vec<i64>> {
    let sql = "SELECT number, payload FROM log WHERE writer = ?1 ORDER BY number";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([writer], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut numbers = Vec::new();
    for row in rows {
        let (number, bytes): (i64, Vec<u8>) = row?;
        assert_eq!(
            number,
            numbers.len() as i64 + 1,
            "writer {writer} lost a row"
        );
        assert!(
            bytes == payload(writer, number),
            "row {number} of {writer} is damaged"
        );
        numbers.push(number);
    }
    Ok(numbers)
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn a_killed_writer_loses_no_acknowledged_commit() {
    let kills = setting("FULGURITE_KILLS", 15);
    let seed = setting("FULGURITE_KILL_SEED", 1);
    let mut rng = Rng::with_seed(seed);
    let (mut done, mut commits) = (0, 0);
    let mut interrupted = Interrupted::default();
    while done < kills {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("killed.db");
        create(&path);
        let mut known: HashMap<i64, i64> = HashMap::new();
        for _ in 0..KILLS_PER_FILE.min(kills - done) {
            let moment = moment(&mut rng);
            let durability = [Durability::Full, Durability::Normal][rng.usize(..2)];
            let mut unchecked = 1;
            if matches!(moment, Moment::Opening(_)) {
                // Looking would recover, and leave nothing to do so from.
                let left = Moment::Acknowledged(rng.u64(..400));
                known.extend(run_and_kill(&path, durability, &left, &mut interrupted));
                done += 1;
                unchecked += 1;
            }
            known.extend(run_and_kill(&path, durability, &moment, &mut interrupted));
            known = check(&path, &known, unchecked);
            done += 1;
        }
        commits += known.values().sum::<i64>();
    }
    println!("seed {seed}: {done} kills, {commits} commits, none lost; {interrupted:?}");
}
