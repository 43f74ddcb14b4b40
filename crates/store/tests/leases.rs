//! Writers in `normal` whose statements, or explicit transactions, follow one another,
//! each on a tree of its own: their commits go under leases of the log. Each tells how far it is once a
//! commit has returned, and writes down how far it knows the others to be. So whoever
//! sees a commit must see what its writer knew of the others: a snapshot, and the
//! process that opens the database after this one was killed.
//!
//! Which interleavings occur, and where a kill meets, is up to the machine; what must
//! hold does not depend on it. `FULGURITE_LEASE_KILLS` sets how often the process is
//! killed (6 unless set), `FULGURITE_LEASE_COMMITS` what the threads commit.

mod common;

use common::{Rng, env};
use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Durability, Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;

const WRITERS: usize = 3;
/// Rows of a tree beside the state of its writer.
const ROWS: u64 = 300;
const CHILD: &str = "FULGURITE_LEASE_CHILD";

/// How far each writer is, as one of them writes it down: of itself the commit's number.
type State = [u64; WRITERS];

fn options() -> Options {
    Options {
        durability: Durability::Normal,
        cache_bytes: 4 << 20,
        checkpoint_bytes: 1 << 20,
        ..Options::default()
    }
}

fn trees_of(store: &Store) -> [Tree; WRITERS] {
    std::array::from_fn(|writer| {
        let name = format!("writer {writer}");
        store.create_family(&name, KeyKind::Int).expect("a family")
    })
}

fn read_state(txn: &mut Txn, tree: &Tree) -> State {
    let mut value = Vec::new();
    txn.get_into(tree, Key::Int(-1), &mut value).expect("reads");
    std::array::from_fn(|at| {
        let bytes = value
            .get(at * 8..at * 8 + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    })
}

/// What the writers wrote down, as one snapshot shows it.
fn states(txn: &mut Txn, trees: &[Tree; WRITERS]) -> [State; WRITERS] {
    std::array::from_fn(|writer| read_state(txn, &trees[writer]))
}

fn check_causes(states: &[State; WRITERS]) {
    for (writer, state) in states.iter().enumerate() {
        for (other, known) in state.iter().enumerate() {
            let is = states[other][other];
            assert!(
                *known <= is,
                "writer {writer} knew {known} of {other}, at {is}"
            );
        }
    }
}

/// One commit: the state, and a row that says which commit it is of.
fn write(txn: &mut Txn, tree: &Tree, writer: usize, state: &State) {
    let number = state[writer];
    let bytes: Vec<u8> = state.iter().flat_map(|count| count.to_le_bytes()).collect();
    match writer {
        0 => txn.begin_statement(&[tree]),
        _ => txn.begin(Isolation::Serializable),
    }
    .expect("begins");
    txn.put(tree, Key::Int(-1), &bytes).expect("puts");
    let row = Key::Int((number % ROWS) as i64);
    txn.put(tree, row, &number.to_le_bytes()).expect("puts");
    txn.commit().expect("commits");
}

/// Each row is of the last commit that wrote it.
fn check_rows(txn: &mut Txn, tree: &Tree, last: u64) {
    for number in (last + 1).saturating_sub(ROWS).max(1)..=last {
        let mut value = Vec::new();
        let row = Key::Int((number % ROWS) as i64);
        assert!(txn.get_into(tree, row, &mut value).expect("reads"));
        assert_eq!(value, number.to_le_bytes(), "commit {number} of {last}");
    }
}

#[test]
fn snapshots_show_what_leases_hold_and_nothing_without_its_cause() {
    let disk = MemoryDisk::new();
    let open = || Store::open_on(Arc::new(disk.clone()), Path::new("l.db"), options());
    let store = open().expect("opens");
    let trees = trees_of(&store);
    let told: [AtomicU64; WRITERS] = Default::default();
    let commits = env("FULGURITE_LEASE_COMMITS", 6000);
    let done = AtomicBool::new(false);
    let tell = || -> State { std::array::from_fn(|writer| told[writer].load(SeqCst)) };
    thread::scope(|scope| {
        let (store, trees, told) = (&store, &trees, &told);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut txn = store.txn();
                    for number in 1..=commits {
                        let mut state = tell();
                        state[writer] = number;
                        write(&mut txn, &trees[writer], writer, &state);
                        told[writer].store(number, SeqCst);
                    }
                })
            })
            .collect();
        let done = &done;
        scope.spawn(move || {
            let mut rng = Rng::new(1);
            let mut txn = store.txn();
            while !done.load(SeqCst) {
                let least = tell();
                txn.begin_read().expect("reads");
                let seen = states(&mut txn, trees);
                (0..WRITERS).for_each(|at| assert!(least[at] <= seen[at][at]));
                check_causes(&seen);
                let writer = rng.below(WRITERS as u64) as usize;
                check_rows(&mut txn, &trees[writer], seen[writer][writer]);
                assert_eq!(states(&mut txn, trees), seen, "a snapshot changed");
                txn.commit().expect("ends");
                // Until all have gone on for a while, so that leases pay off.
                let goal = least.map(|count| (count + rng.below(400)).min(commits));
                while (0..WRITERS).any(|at| told[at].load(SeqCst) < goal[at]) {
                    thread::yield_now();
                }
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        done.store(true, SeqCst);
    });
    let log = store.stats().log.expect("a log");
    assert!(log.leases > 0, "{log:?}");
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    drop((trees, store));
    let store = open().expect("opens again");
    let trees = trees_of(&store);
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    for tree in &trees {
        check_rows(&mut txn, tree, commits);
    }
}

/// Not a test of its own: the process that is killed.
#[test]
fn child_writer() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Store::open(PathBuf::from(path), options()).expect("opens");
    let trees = trees_of(&store);
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let seen = states(&mut txn, &trees);
    drop(txn);
    let told: [AtomicU64; WRITERS] = std::array::from_fn(|at| AtomicU64::new(seen[at][at]));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, trees, told) = (&store, &trees, &told);
            scope.spawn(move || {
                let mut txn = store.txn();
                loop {
                    let mut state: State = std::array::from_fn(|at| told[at].load(SeqCst));
                    state[writer] += 1;
                    write(&mut txn, &trees[writer], writer, &state);
                    told[writer].store(state[writer], SeqCst);
                    // One write a line: it is either there or not.
                    let line = format!("ack {writer} {}\n", state[writer]);
                    let told = std::io::stdout().write_all(line.as_bytes());
                    told.expect("the parent listens");
                }
            });
        }
    });
}

/// Runs a process until it has told of so many commits, kills it, and returns the
/// last that it told of.
fn run_and_kill(path: &Path, after: u64) -> State {
    let mut child = Command::new(std::env::current_exe().expect("this binary has a path"))
        .args(["--exact", "child_writer", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut acknowledged = State::default();
    let mut seen = 0;
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).split(b'\n');
    // After the kill, the pipe still holds what was told before it.
    for line in lines {
        let line = String::from_utf8_lossy(&line.expect("the pipe can be read")).into_owned();
        let mut words = line
            .split(' ')
            .skip_while(|word| !word.ends_with("ack"))
            .skip(1);
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        if let (Some(writer), Some(count)) = (number(), number()) {
            acknowledged[writer as usize] = count;
            seen += 1;
            if seen == after {
                child.kill().expect("the child can be killed");
            }
        }
    }
    child.wait().expect("the child can be waited for");
    assert!(
        seen >= after,
        "the child ended by itself after {seen} commits"
    );
    acknowledged
}

#[test]
fn a_killed_process_leaves_all_that_it_acknowledged() {
    let folder = std::env::temp_dir().join(format!("fulgurite-leases-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("l.db");
    let mut rng = Rng::new(7);
    let mut found = State::default();
    for _ in 0..env("FULGURITE_LEASE_KILLS", 6) {
        let acknowledged = run_and_kill(&path, 500 + rng.below(12_000));
        // Its lock goes with it, a moment later.
        let store = Store::open(&path, options()).expect("opens after a kill");
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        let trees = trees_of(&store);
        let mut txn = store.txn();
        txn.begin_read().expect("reads");
        let seen = states(&mut txn, &trees);
        check_causes(&seen);
        for (writer, state) in seen.iter().enumerate() {
            // A writer may not have had its turn in this process.
            let least = acknowledged[writer].max(found[writer]);
            let is = state[writer];
            assert!((least..=least + 1).contains(&is), "{is}, {least} told");
            check_rows(&mut txn, &trees[writer], is);
            found[writer] = is;
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}
