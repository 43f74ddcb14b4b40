//! A commit to two stores of which a write or a sync fails somewhere: whoever reads both sees it in both, or
//! in neither, or is told that they cannot be read together until they are opened again.

use std::sync::Arc;

use fulgurite_sim::{Call, Fault, FaultError, SimDisk, SimDriver};
use fulgurite_sql::exec::txns::Txns;
use fulgurite_store::{
    Durability, ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree, Txn, commit_together,
    read_together,
};

const PATHS: [&str; 2] = ["d/a.db", "d/b.db"];

type Stores = [(Store, Tree); 2];

/// The one that never coordinates comes first: it may have to ask the other one's file.
fn open(disk: &SimDisk, modes: [Durability; 2]) -> Stores {
    let one = |at: usize| {
        let options = Options {
            driver: Some(SimDriver::new(disk)),
            durability: modes[at],
            ..Options::default()
        };
        let store = Store::open_on(Arc::new(disk.clone()), PATHS[at], options).expect("opens");
        let tree = match store.family("t").expect("the names") {
            Some(tree) => tree,
            None => store.create_family("t", KeyKind::Int).expect("a family"),
        };
        (store, tree)
    };
    let b = one(1);
    [one(0), b]
}

/// Of the calls of this kind, that after so many fails.
fn fault(call: Call, after: u64) -> Fault {
    Fault {
        call: Some(call),
        after,
        for_good: false,
        error: FaultError::Io,
    }
}

fn value(txn: &mut Txn, tree: &Tree) -> u8 {
    let mut value = Vec::new();
    let found = txn.get_into(tree, Key::Int(1), &mut value).expect("reads");
    assert!(found);
    value[0]
}

fn put(stores: &Stores, byte: u8) -> fulgurite_store::Result<()> {
    let mut txns = stores.each_ref().map(|(store, _)| store.txn());
    for (txn, (_, tree)) in txns.iter_mut().zip(stores) {
        txn.begin(Isolation::Serializable)?;
        txn.put(tree, Key::Int(1), &[byte])?;
    }
    let [a, b] = &mut txns;
    commit_together(&mut [a, b])
}

/// What both hold at one moment; None where they differ, and that was said.
fn both(stores: &Stores) -> Option<u8> {
    let mut txns = stores.each_ref().map(|(store, _)| store.txn());
    txns.iter_mut()
        .for_each(|txn| txn.begin_read().expect("begins"));
    let [a, b] = &mut txns;
    match read_together(&mut [a, b]) {
        Ok(()) => {
            let values = [0, 1].map(|at| value(&mut txns[at], &stores[at].1));
            assert_eq!(values[0], values[1], "half of a commit");
            Some(values[0])
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Poisoned);
            let said = error.to_string();
            assert!(said.contains("is opened again"), "{said}");
            let failed = ["cannot sync d/", "cannot write d/"];
            assert!(failed.iter().any(|call| said.contains(call)), "{said}");
            None
        }
    }
}

fn each(stores: &Stores) -> [u8; 2] {
    stores.each_ref().map(|(store, tree)| {
        let mut txn = store.txn();
        txn.begin_read().expect("begins");
        value(&mut txn, tree)
    })
}

/// After the commit had been decided, and one of the stores could not complete it, readers
/// saw it in the other one alone, and what they wrote for that was durable. So it was where
/// the sync of a decision failed that `normal` had shown when it was written.
#[test]
fn nobody_reads_half_of_a_commit_that_failed() {
    // Of two syncs in a row: the one of the entry tears nothing, that of the decision where
    // the first store shows what is written. Of three writes the last one tears.
    for (call, modes, (fails, tears)) in [
        (Call::Sync, [Durability::Full, Durability::Full], (2, 0)),
        (Call::Sync, [Durability::Normal, Durability::Full], (2, 1)),
        (Call::Sync, [Durability::Full, Durability::Normal], (2, 0)),
        (Call::Sync, [Durability::Normal, Durability::Normal], (2, 1)),
        (Call::Write, [Durability::Full, Durability::Full], (3, 1)),
        (Call::Write, [Durability::Normal, Durability::Full], (3, 1)),
    ] {
        let (mut failed, mut torn) = (0, 0);
        for after in 0..6 {
            let disk = SimDisk::new(after + 1);
            let stores = open(&disk, modes);
            put(&stores, 1).expect("commits");
            disk.fail(fault(call, after));
            let committed = put(&stores, 2);
            disk.heal();
            failed += u32::from(committed.is_err());
            let seen = both(&stores);
            torn += u32::from(seen.is_none());
            assert_eq!(seen.is_none(), both(&stores).is_none(), "it stays so");
            let alone = each(&stores);
            match seen {
                Some(value) => assert_eq!(alone, [value; 2]),
                None => assert_ne!(alone[0], alone[1], "{modes:?}, {after}"),
            }
            drop(stores);
            let stores = open(&disk, modes);
            let after_all = both(&stores).expect("they are as one again");
            assert!(committed.is_err() || after_all == 2);
            put(&stores, 3).expect("commits");
            assert_eq!(both(&stores), Some(3));
        }
        assert_eq!((failed, torn), (fails, tears), "{call:?}, {modes:?}");
    }
}

/// The second store's own end of it is synced later: a power cut before, or where that sync
/// fails, takes nothing.
#[test]
fn what_is_decided_stays_whenever_the_power_goes() {
    let disk = SimDisk::new(1);
    let stores = open(&disk, [Durability::Full; 2]);
    put(&stores, 1).expect("commits");
    stores
        .iter()
        .for_each(|(store, _)| store.tick().expect("ticks"));
    put(&stores, 2).expect("commits");
    let found_after_cuts = |disk: &SimDisk| {
        for seed in 0..40 {
            let left = disk.crash_image(seed);
            let stores = open(&left, [Durability::Full; 2]);
            assert_eq!(both(&stores), Some(2), "{seed}");
            assert_eq!(each(&stores), [2; 2]);
        }
    };
    found_after_cuts(&disk);
    disk.fail(fault(Call::Sync, 0));
    let failed = stores[1].0.tick().expect_err("its end is not synced");
    assert_eq!(failed.kind(), ErrorKind::Poisoned);
    disk.heal();
    assert_eq!(both(&stores), Some(2), "both show it");
    put(&stores, 3).expect_err("the second one takes no more");
    found_after_cuts(&disk);
    drop(stores);
    assert_eq!(both(&open(&disk, [Durability::Full; 2])), Some(2));
}

/// So it is for a connection that has the second file attached: its explicit transactions,
/// IMMEDIATE or not, go on in the first one, and hear of the failure where they come to use
/// the second.
#[test]
fn explicit_transactions_leave_out_what_differs() {
    let disk = SimDisk::new(1);
    let stores = open(&disk, [Durability::Full; 2]);
    put(&stores, 1).expect("commits");
    disk.fail(fault(Call::Write, 2));
    put(&stores, 2).expect_err("the second one does not write its end");
    disk.heal();
    assert_eq!(each(&stores), [2, 1]);
    let [(main, tree), (attached, _)] = &stores;
    let mut txns = Txns::new(main);
    txns.open(0, attached, false);
    for (was, immediate) in [(2, false), (3, true)] {
        match immediate {
            true => txns.begin_immediate().expect("begins"),
            false => txns.begin(Isolation::Serializable).expect("begins"),
        }
        assert_eq!(value(&mut txns.main, tree), was);
        assert!(!txns.is_begun(attached.number()));
        let joined = txns.join(attached.number(), Isolation::Serializable, [].into_iter());
        let error = joined.expect_err("it differs");
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("can only be read by itself"));
        assert!(!txns.is_begun(attached.number()));
        txns.put(tree, Key::Int(1), &[was + 1]).expect("puts");
        txns.commit().expect("commits");
        assert_eq!(each(&stores), [was + 1, 1]);
    }
}
