//! A checkpoint fails and ends writing. What is still written after that, by a
//! transaction that began before and grows out of the cache, must not lie where the
//! failed checkpoint's pages do: its meta slot may have arrived.

use super::{PATH, open, options};
use fulgurite_sim::{Call, Fault, FaultError, Gate, SimDisk};
use fulgurite_store::{Durability, Isolation, Key, KeyKind, Store, Tree};
use std::path::Path;
use std::sync::mpsc;

const ROWS: i64 = 60;

/// Gives every row another value; no page stays as it was.
fn change(store: &Store, tree: &Tree, value: u8) {
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins");
    for row in 0..ROWS {
        txn.put(tree, Key::Int(row), &[value; 700]).expect("a put");
    }
    txn.commit().expect("commits");
}

/// Makes a checkpoint on a thread of its own, and calls `meanwhile` before each of
/// its calls on the data file. True if it succeeded.
fn checkpoint_beside(disk: &SimDisk, store: &Store, mut meanwhile: impl FnMut()) -> bool {
    std::thread::scope(|scope| {
        let (sender, gates) = mpsc::channel::<std::sync::Arc<Gate>>();
        let guest = scope.spawn(move || {
            let gate = gates.recv().expect("a gate");
            let done = store.checkpoint();
            gate.open();
            done.is_ok()
        });
        let gate = Gate::for_thread(guest.thread().id());
        disk.set_gate(Some(gate.clone()));
        sender.send(gate.clone()).expect("it waits");
        while gate.wait_for_guest() {
            meanwhile();
            gate.let_go();
        }
        disk.set_gate(None);
        guest.join().expect("no panic")
    })
}

/// Lets the checkpoint's write with this number fail. False if it has fewer.
fn with_failing_write(number: u64) -> bool {
    let disk = SimDisk::new(number);
    let store = open(&disk, &options()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut value = 1;
    change(&store, &tree, value);
    let mut large = store.txn();
    large.begin(Isolation::Snapshot).expect("begins");
    // The checkpoint is of a newer state than the one that `large` keeps.
    value += 1;
    change(&store, &tree, value);
    let fault = Fault {
        call: Some(Call::Write),
        after: number,
        for_good: false,
        error: FaultError::Io,
    };
    disk.fail_under(Path::new(PATH), fault);
    let done = checkpoint_beside(&disk, &store, || {
        value += 1;
        change(&store, &tree, value);
    });
    // Once it is reclaimed, what nobody needs is free.
    drop(store.integrity_check());
    for row in 0..4_000 {
        if large
            .put(&tree, Key::Int(ROWS + row), &[0xee; 900])
            .is_err()
        {
            break;
        }
    }
    let mut left = vec![disk.kill_image()];
    left.extend((0..8).map(|seed| disk.crash_image(seed)));
    drop((large, tree, store));
    for disk in left {
        comes_back(&disk, value);
    }
    !done
}

fn comes_back(disk: &SimDisk, value: u8) {
    let store = open(disk, &options()).expect("opens");
    let problems = store.integrity_check().expect("a check");
    assert_eq!(problems, Vec::<String>::new());
    let tree = store.family("t").expect("reads").expect("is there");
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(&tree).expect("reads"), ROWS as u64);
    for row in 0..ROWS {
        let mut found = Vec::new();
        assert!(
            txn.get_into(&tree, Key::Int(row), &mut found)
                .expect("reads")
        );
        assert_eq!(found, [value; 700]);
    }
}

#[test]
fn nothing_is_written_over_a_failed_checkpoint() {
    assert_eq!(options().durability, Durability::Full);
    let failing = (0..)
        .take_while(|number| with_failing_write(*number))
        .count();
    assert!(failing >= 5, "{failing} writes failed");
}
