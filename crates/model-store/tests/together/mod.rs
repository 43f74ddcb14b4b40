//! Transactions over two stores.

use super::common::Schedulers::All;
use super::common::{explore, open_two};
use super::{get, put};
use fulgurite_sim::SimDisk;
use fulgurite_store_model::{
    ErrorKind, Isolation, Key, Store, Tree, Txn, TxnContext, commit_together, read_together,
};
use shuttle::thread;

const SUM: i64 = 8;

type Both = [(Store, Tree); 2];

fn commit(txns: &mut [Txn; 2]) -> fulgurite_store_model::Result<()> {
    let [first, second] = txns;
    commit_together(&mut [first, second])
}

/// Moves a part from one to the other; the transactions' order is not the stores'.
fn take_from(both: &Both, from: usize) {
    let order = [from, 1 - from];
    let mut txns = order.map(|at| both[at].0.txn());
    for txn in &mut txns {
        txn.begin(Isolation::Serializable).expect("begins");
    }
    let found = [0, 1].map(|at| get(&mut txns[at], &both[order[at]].1, 1).unwrap_or(0));
    put(&mut txns[0], &both[from].1, 1, found[0] - 1);
    put(&mut txns[1], &both[1 - from].1, 1, found[1] + 1);
    if let Err(error) = commit(&mut txns) {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

/// What both hold at one moment.
fn read_both(both: &Both) -> [i64; 2] {
    let mut txns = [0, 1].map(|at: usize| both[at].0.txn());
    for txn in &mut txns {
        txn.begin_read().expect("begins");
    }
    let [first, second] = &mut txns;
    read_together(&mut [first, second]).expect("reads");
    [0, 1].map(|at| get(&mut txns[at], &both[at].1, 1).unwrap_or(0))
}

fn sum(both: &Both) -> i64 {
    read_both(both).iter().sum()
}

/// Two that move in opposite directions, one that writes to one store alone, and one that
/// reads both: nobody waits for ever, and the sum stays.
fn movers() {
    let disk = SimDisk::new(1);
    let both = open_two(&disk);
    let mut txns = [0, 1].map(|at: usize| both[at].0.txn());
    for txn in &mut txns {
        txn.begin(Isolation::Serializable).expect("begins");
    }
    put(&mut txns[0], &both[0].1, 1, SUM);
    put(&mut txns[1], &both[1].1, 1, 0);
    commit(&mut txns).expect("commits");
    drop(txns);
    let mut threads: Vec<_> = [0, 1]
        .map(|from| {
            let both = both.clone();
            thread::spawn(move || take_from(&both, from))
        })
        .into();
    threads.push({
        let both = both.clone();
        thread::spawn(move || {
            let (store, tree) = &both[1];
            let mut txn = store.txn();
            txn.begin_statement(&[tree]).expect("begins");
            txn.put(tree, Key::Int(2), b"alone").expect("a put");
            txn.commit().expect("commits");
        })
    });
    assert_eq!(sum(&both), SUM);
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(sum(&both), SUM);
    drop(both);
    let both = open_two(&disk.crash_image(3));
    assert_eq!(sum(&both), SUM);
}

#[test]
fn transactions_over_two_stores_wait_in_one_order_and_are_seen_whole() {
    explore(60, All, movers);
}

/// Keeps the writers of both stores out, begins in the first ahead of what is acknowledged
/// there, and commits what `acts` does.
fn exclude<R>(both: &Both, acts: impl FnOnce(&mut [Txn; 2]) -> R) -> R {
    let mut txns = [0, 1].map(|at: usize| both[at].0.txn());
    txns[0].begin_immediate_ahead().expect("begins");
    let second = txns[1].begin_after_others(TxnContext::begin_immediate);
    second.expect("begins");
    let told = acts(&mut txns);
    txns[0].confirm().expect("what it builds on is there");
    commit(&mut txns).expect("cannot lose");
    told
}

fn add_to_first(both: &Both) -> i64 {
    exclude(both, |txns| {
        let found = get(&mut txns[0], &both[0].1, 2).unwrap_or(0);
        put(&mut txns[0], &both[0].1, 2, found + 1);
        found
    })
}

/// Writes to the second store alone; what the first one holds for who reads both then.
fn write_second_and_read(both: &Both) -> i64 {
    let (store, tree) = &both[1];
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins");
    put(&mut txn, tree, 1, 1);
    txn.commit().expect("commits");
    let [first, second] = read_both(both);
    assert_eq!(second, 1, "it was told that this is committed");
    first
}

/// One that reads the second store and writes to the first, others that use the first
/// alone, and one that writes to the second and reads both: where the first one read what
/// was there before, it comes before that.
fn excluders() {
    let disk = SimDisk::new(1);
    let both = open_two(&disk);
    let spawn = |does: fn(&Both) -> i64| {
        let both = both.clone();
        thread::spawn(move || does(&both))
    };
    let reads = spawn(|both| {
        exclude(both, |txns| {
            let found = get(&mut txns[1], &both[1].1, 1).unwrap_or(0);
            put(&mut txns[0], &both[0].1, 1, 1);
            found
        })
    });
    let adds = [0, 1].map(|_| spawn(add_to_first));
    let seen = spawn(write_second_and_read).join().expect("no panic");
    let found = reads.join().expect("no panic");
    assert!(
        found == 1 || seen == 1,
        "it read what was there before, and what it wrote is not seen after that"
    );
    for adds in adds {
        adds.join().expect("no panic");
    }
    drop(both);
    let both = open_two(&disk.crash_image(3));
    let (store, tree) = &both[0];
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let kept = [1, 2].map(|key| get(&mut txn, tree, key));
    assert_eq!(kept, [Some(1), Some(2)]);
}

#[test]
fn who_keeps_writers_out_of_two_stores_is_seen_in_their_order() {
    explore(60, All, excluders);
}
