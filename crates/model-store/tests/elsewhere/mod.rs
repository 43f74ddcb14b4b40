//! Who writes to one store and has read another one, and who changes what was read there.

use super::common::open_two;
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{
    ErrorKind, Isolation, Key, Result, Store, Tree, TxnContext, commit_together, read_together,
};
use shuttle::thread;

type Both = [(Store, Tree); 2];

fn is_there(txn: &mut TxnContext, tree: &Tree, key: i64) -> Result<bool> {
    txn.get_into(tree, Key::Int(key), &mut Vec::new())
}

/// How a transaction begins in a store, to use this tree.
type Begins = fn(&mut TxnContext, &Tree) -> Result<()>;

const BEGINS: [Begins; 3] = [
    |txn, tree| txn.begin_statement(&[tree]),
    |txn, _| txn.begin(Isolation::Serializable),
    |txn, _| txn.begin_immediate(),
];

/// Writes a key to the first store; whether the second one was changed before. None where
/// it lost.
fn reads_and_writes(both: &Both, key: i64, begins: Begins) -> Option<bool> {
    let [(first, written), (second, read)] = both;
    let (mut writes, mut reads) = (first.txn(), second.txn());
    begins(&mut writes, written).expect("begins");
    let begun = reads.begin_after_others(|txn| begins(txn, read));
    begun.expect("begins");
    let found = is_there(&mut reads, read, 0).expect("reads");
    let value = &[1];
    writes.put(written, Key::Int(key), value).expect("a put");
    match commit_together(&mut [&mut writes, &mut reads]) {
        Ok(()) => Some(found),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            None
        }
    }
}

fn changes((store, read): &(Store, Tree), begins: Begins) {
    let mut txn = store.txn();
    begins(&mut txn, read).expect("begins");
    txn.put(read, Key::Int(0), &[1]).expect("a put");
    txn.commit().expect("nobody else changes it");
}

/// Whether the second store was changed, and which keys are in the first one, at one moment.
fn look(both: &Both) -> (bool, [bool; 2]) {
    let [(first, written), (second, read)] = both;
    let (mut reader, mut other) = (first.txn(), second.txn());
    reader.begin_read().expect("begins");
    other.begin_read().expect("begins");
    read_together(&mut [&mut reader, &mut other]).expect("reads");
    let changed = is_there(&mut other, read, 0).expect("reads");
    let there = [0, 1].map(|key| is_there(&mut reader, written, key).expect("reads"));
    (changed, there)
}

/// Two that read the second store and write to the first, one that changes what they read,
/// and one that looks at both: whoever sees the change sees what was written by those who
/// did not.
pub fn readers_and_a_change() {
    let both = open_two(&SimDisk::new(1));
    let drawn = |n| shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..n);
    let writers: Vec<_> = [0, 1]
        .map(|key| {
            let (both, begins) = (both.clone(), BEGINS[drawn(3)]);
            thread::spawn(move || reads_and_writes(&both, key, begins))
        })
        .into();
    let change = {
        let (second, begins) = (both[1].clone(), BEGINS[drawn(3)]);
        thread::spawn(move || changes(&second, begins))
    };
    let mut looks = vec![look(&both), look(&both)];
    change.join().expect("no panic");
    looks.push(look(&both));
    let found = writers
        .into_iter()
        .map(|thread| thread.join().expect("no panic"));
    let found: Vec<Option<bool>> = found.collect();
    looks.push(look(&both));
    for (changed, there) in looks {
        for (key, found) in found.iter().enumerate() {
            assert!(
                !changed || there[key] || *found != Some(false),
                "the change is seen, and not {key}, which comes before it"
            );
        }
    }
}
