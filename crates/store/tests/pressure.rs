//! Writers of every kind with a log and a cache that are far too small: each of
//! them waits for checkpoints again and again, for log space and for frames, some
//! of them holding the writers' lock or trees' locks. If any held what a
//! checkpoint needs, none of this would end.

use fulgurite_store::{Error, Isolation, Key, KeyKind, Options, Store, Tree};
use std::time::Duration;

const ROUNDS: i64 = 60;

fn small() -> Options {
    Options {
        cache_bytes: 0,
        checkpoint_bytes: 16 << 10,
        log_limit_bytes: Some(32 << 10),
        busy_timeout: Duration::from_secs(60),
        ..Options::default()
    }
}

/// Values that compress badly, so that they take their room.
fn value(key: i64, round: i64) -> Vec<u8> {
    let mut word = (key as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round as u64;
    let mut value = Vec::with_capacity(904);
    while value.len() < 900 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        value.extend_from_slice(&word.to_le_bytes());
    }
    value
}

fn statements(store: &Store, tree: &Tree) -> Result<(), Error> {
    let mut txn = store.txn();
    for round in 0..ROUNDS {
        txn.begin_statement(&[tree])?;
        for key in 0..6 {
            txn.put(tree, Key::Int(key * 31 + round % 7), &value(key, round))?;
        }
        txn.commit()?;
    }
    Ok(())
}

fn optimistic(store: &Store, trees: &[Tree]) -> Result<(), Error> {
    for round in 0..ROUNDS {
        store.transact(Isolation::Serializable, |txn| {
            for (at, tree) in trees.iter().enumerate() {
                let key = 1000 + round + at as i64;
                let mut old = Vec::new();
                txn.get_into(tree, Key::Int(key - 1), &mut old)?;
                txn.put(tree, Key::Int(key), &value(key, round))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn immediate(store: &Store, tree: &Tree) -> Result<(), Error> {
    let mut txn = store.txn();
    for round in 0..ROUNDS / 4 {
        txn.begin_immediate()?;
        for key in 0..12 {
            txn.put(tree, Key::Int(5000 + key * 17), &value(key, round))?;
        }
        txn.commit()?;
    }
    Ok(())
}

#[test]
fn who_waits_holds_nothing_that_the_checkpoint_needs() {
    let dir = std::env::temp_dir().join(format!("fulgurite-pressure-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("p.db");
    let store = Store::open(&path, small()).expect("opens");
    let trees: Vec<Tree> = ["a", "b"]
        .iter()
        .map(|name| store.create_family(name, KeyKind::Int).expect("a family"))
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| statements(&store, &trees[0]).expect("statements"));
        scope.spawn(|| statements(&store, &trees[1]).expect("statements"));
        scope.spawn(|| optimistic(&store, &trees).expect("transactions"));
        scope.spawn(|| immediate(&store, &trees[0]).expect("IMMEDIATE"));
    });
    let stats = store.stats();
    let log = stats.log.expect("a log");
    println!("{stats:?}");
    assert!(log.pressure_waits > 0, "nobody ever waited for log space");
    assert!(log.switches > 2, "no checkpoint went on meanwhile");
    assert_eq!(
        store.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
    drop((trees, store));
    std::fs::remove_dir_all(&dir).expect("removed");
}
