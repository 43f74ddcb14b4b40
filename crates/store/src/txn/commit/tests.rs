//! Moving a transaction's work to a newer head: by grafting where only it changed its
//! leaves, by moving those that only it changed, by replaying the rest; with the same
//! outcome.

use super::*;
use crate::node::{Key, OwnedKey};
use crate::options::Options;
use crate::primitives::BUDGET_MIN;
use crate::store::Store;
use crate::tree::cursor::Seek;
use crate::tree::fork::Fork;
use crate::tree::{KeyKind, TreeId};
use crate::txn::{Isolation, Txn};
use fulgurite_disk::MemoryDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: u64 = 12_000;

/// A number in `0..below` that follows from `state`.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
    (*state >> 33) % below
}

fn key(kind: KeyKind, number: u64) -> OwnedKey {
    match kind {
        KeyKind::Int => OwnedKey::Int(number as i64),
        KeyKind::Bytes => OwnedKey::Bytes(format!("key of entry {number:08}").into_bytes()),
    }
}

fn open() -> Store {
    open_with(Options::default())
}

fn open_with(options: Options) -> Store {
    let disk = Arc::new(MemoryDisk::new());
    Store::open_on(disk, "grafts.db", options).expect("opens")
}

/// A tree of three levels.
fn tree_of(store: &Store, kind: KeyKind) -> (Tree, BTreeMap<u64, Vec<u8>>) {
    let tree = store.create_family("t", kind).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    let rows: BTreeMap<u64, Vec<u8>> = (0..ROWS).map(|at| (2 * at, vec![1; 100])).collect();
    for (number, value) in &rows {
        let key = key(kind, *number);
        txn.put(&tree, key.as_key(), value).expect("a put");
    }
    txn.commit().expect("commits");
    (tree, rows)
}

fn assert_holds(store: &Store, tree: &Tree, rows: &BTreeMap<u64, Vec<u8>>) {
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    assert_eq!(txn.count(tree).expect("counts"), rows.len() as u64);
    let mut cursor = txn.cursor(tree).expect("a cursor");
    let mut more = cursor.seek(Seek::First).expect("a seek");
    for (number, value) in rows {
        assert!(more, "row {number} is missing");
        let found = match tree.kind() {
            KeyKind::Int => OwnedKey::Int(cursor.key_int()),
            KeyKind::Bytes => OwnedKey::Bytes(cursor.key_bytes().expect("a key").to_vec()),
        };
        assert_eq!(found, key(tree.kind(), *number));
        assert_eq!(cursor.value().expect("a value"), *value, "row {number}");
        more = cursor.next().expect("a step");
    }
    assert!(!more);
}

/// Begins, and overwrites some rows.
fn overwriting(store: &Store, tree: &Tree, numbers: &[u64], value: &[u8]) -> Txn {
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    for number in numbers {
        let key = key(tree.kind(), *number);
        assert!(txn.put(tree, key.as_key(), value).expect("a put"));
    }
    txn
}

#[test]
fn leaves_that_only_one_changed_are_grafted() {
    for kind in [KeyKind::Int, KeyKind::Bytes] {
        let store = open();
        let (tree, mut rows) = tree_of(&store, kind);
        // Under the same inner nodes and others, one leaf twice.
        let mut first = overwriting(&store, &tree, &[100, 9000, 20_000], &[2; 100]);
        let mut second = overwriting(&store, &tree, &[700, 702, 9600, 23_000], &[3; 90]);
        first.commit().expect("commits");
        let leaves = second.forks[0].own.clone();
        second.graft(0).expect("a graft");
        assert!(!second.forks[0].has_moved_on(), "replayed");
        let kept = second.forks[0].own.iter();
        let kept = kept.filter(|node| leaves.contains(node)).count();
        assert!((3..leaves.len()).contains(&kept), "{kept} of {leaves:?}");
        second.commit().expect("commits");
        for (numbers, value) in [
            (&[100, 9000, 20_000][..], vec![2; 100]),
            (&[700, 702, 9600, 23_000], vec![3; 90]),
        ] {
            rows.extend(numbers.iter().map(|number| (*number, value.clone())));
        }
        assert_holds(&store, &tree, &rows);
    }
}

/// What was written in leaves that nobody else changed need not be looked at again if it
/// was read, too; what was only read must, also where others lie beside it.
#[test]
fn a_graft_vouches_for_what_was_written_alone() {
    for kind in [KeyKind::Int, KeyKind::Bytes] {
        let store = open();
        let (tree, _) = tree_of(&store, kind);
        let read_and_write = |read: &[u64], written: &[u64], with: u8| {
            let mut txn = store.txn();
            txn.begin(Isolation::Serializable).expect("begins");
            let mut value = Vec::new();
            for number in read {
                let key = key(kind, *number);
                txn.get_into(&tree, key.as_key(), &mut value)
                    .expect("a get");
            }
            for number in written {
                let key = key(kind, *number);
                txn.put(&tree, key.as_key(), &[with; 100]).expect("a put");
            }
            txn
        };
        // What another one changes meanwhile, and whether the first may commit then.
        let cases: [(&[u64], u64, bool); 6] = [
            (&[10, 20_000], 12_000, true),
            (&[10, 20_000, 12_000], 4_000, true),
            (&[10, 20_000, 12_000], 12_000, false),
            // A key that neither is there, nor was before.
            (&[10, 20_000, 12_001], 12_001, false),
            (&[10, 20_000, 12_003], 12_002, true),
            (&[10, 20_000, 12], 12, false),
        ];
        for (value, (read, changed, may_commit)) in (3..).zip(cases) {
            let mut txn = read_and_write(read, &[10, 20_000], 2);
            let mut other = read_and_write(&[], &[changed], value);
            other.commit().expect("commits");
            let committed = txn.commit();
            assert_eq!(committed.is_ok(), may_commit, "{kind:?} {read:?} {changed}");
        }
    }
}

#[test]
fn a_leaf_that_both_changed_is_not() {
    let store = open();
    let (tree, mut rows) = tree_of(&store, KeyKind::Int);
    let mut first = overwriting(&store, &tree, &[100], &[2; 100]);
    let mut second = overwriting(&store, &tree, &[9000, 102], &[3; 100]);
    first.commit().expect("commits");
    let (root, own) = (second.forks[0].root, second.forks[0].own.clone());
    let replaced = second.forks[0].replaced.len();
    second.graft(0).expect("a graft");
    let fork = &second.forks[0];
    assert!(fork.has_moved_on());
    assert_eq!((fork.root, &fork.own), (root, &own));
    assert_eq!(fork.replaced.len(), replaced);
    second.commit().expect("commits");
    rows.extend([
        (100, vec![2; 100]),
        (102, vec![3; 100]),
        (9000, vec![3; 100]),
    ]);
    assert_holds(&store, &tree, &rows);
}

/// What moves of a transaction's only fork: how many leaves, and operations.
fn moving(txn: &Txn) -> (usize, usize) {
    let mut replays = txn.replays(|_| true).expect("sorted");
    let replay = replays.remove(0).expect("all start over");
    replay.moving.map_or((0, 0), |moving| {
        let ops = (0..ROWS as usize).filter(|op| moving.covers(*op)).count();
        (moving.leaves().len(), ops)
    })
}

/// A large transaction, one that split leaves and one that changed a leaf which another
/// one changed too replayed all that they did.
#[test]
fn leaves_that_only_one_changed_move() {
    for kind in [KeyKind::Int, KeyKind::Bytes] {
        let store = open();
        let (tree, mut rows) = tree_of(&store, kind);
        let mut first = overwriting(&store, &tree, &[100, 12_000], &[2; 100]);
        // Two in each of a hundred leaves, one of them beside what the first changed.
        let own: Vec<u64> = (0..100)
            .flat_map(|at| [at * 240 + 102, at * 240 + 104])
            .collect();
        let mut second = overwriting(&store, &tree, &own, &[3; 90]);
        // And one that splits, of rows between the others.
        let new: Vec<u64> = (0..60).map(|at| 20_001 + 2 * at).collect();
        for number in &new {
            let key = key(kind, *number);
            assert!(!second.put(&tree, key.as_key(), &[4; 100]).expect("a put"));
        }
        first.commit().expect("commits");
        let made = second.forks[0].own.clone();
        second.graft(0).expect("no graft");
        assert_eq!(second.forks[0].own, made, "too many to be grafted");
        // Not the leaf of row 102, nor what was split of the rows from 20,001 on.
        let (leaves, ops) = moving(&second);
        assert!((97..=102).contains(&leaves), "{leaves}");
        assert!((194..=225).contains(&ops), "{ops}");
        second.commit().expect("commits");
        rows.extend([100, 12_000].map(|number| (number, vec![2; 100])));
        rows.extend(own.iter().map(|number| (*number, vec![3; 90])));
        rows.extend(new.iter().map(|number| (*number, vec![4; 100])));
        assert_holds(&store, &tree, &rows);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        store.checkpoint().expect("a checkpoint");
        assert_eq!(store.stats().cache.unwritten, 0);
    }
}

/// Nothing may be said to move of what a transaction did not do in a copy of its own.
#[test]
fn what_was_copied_twice_merged_or_is_large_does_not_move() {
    type Change = fn(&mut Txn, &Tree);
    let tried: [(&str, Change); 4] = [
        ("put back", |txn, tree| {
            let savepoint = txn.savepoint().expect("a savepoint");
            let put = txn.put(tree, Key::Int(9_000), &[5; 100]);
            assert!(put.expect("a put"));
            txn.rollback_to(&savepoint).expect("goes back");
        }),
        ("copied again after a savepoint", |txn, tree| {
            txn.savepoint().expect("a savepoint");
            txn.keep_nodes().expect("keeps");
            let put = txn.put(tree, Key::Int(9_000), &[5; 100]);
            assert!(put.expect("a put"));
        }),
        ("merged", |txn, tree| {
            for number in 9_000..9_100 {
                txn.delete(tree, Key::Int(number)).expect("a delete");
            }
        }),
        ("large", |txn, tree| {
            let put = txn.put(tree, Key::Int(9_000), &[5; 9_000]);
            assert!(put.expect("a put"));
        }),
    ];
    for (what, change) in tried {
        let store = open();
        let (tree, mut rows) = tree_of(&store, KeyKind::Int);
        let mut first = overwriting(&store, &tree, &[100], &[2; 100]);
        let mut second = overwriting(&store, &tree, &[102, 9_000], &[3; 100]);
        change(&mut second, &tree);
        let mut found = Vec::new();
        let left: Vec<u64> = (9_000..9_100).step_by(2).collect();
        rows.retain(|number, _| !left.contains(number));
        for number in left {
            let there = second.get_into(&tree, Key::Int(number as i64), &mut found);
            if there.expect("reads") {
                rows.insert(number, found.clone());
            }
        }
        first.commit().expect("commits");
        assert_eq!(moving(&second), (0, 0), "{what}");
        second.commit().expect("commits");
        rows.extend([(100, vec![2; 100]), (102, vec![3; 100])]);
        assert_holds(&store, &tree, &rows);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    }
}

/// A spill keeps a list of the nodes it passed by, and a graft left in it those that it
/// freed. Where replaying the next tree's changes spilled again, whatever had come into
/// their frames was written in their name, and taken out of them.
#[test]
fn a_graft_leaves_nothing_to_spill_that_is_gone() {
    let store = open();
    let (tree, mut rows) = tree_of(&store, KeyKind::Int);
    let mut first = overwriting(&store, &tree, &[100], &[2; 100]);
    let mut second = overwriting(&store, &tree, &[9000], &[3; 100]);
    first.commit().expect("commits");
    let fork = &mut second.forks[0];
    fork.passed_by = fork.own.clone();
    fork.spilled_to = fork.own.len();
    second.graft(0).expect("a graft");
    let fork = &second.forks[0];
    assert!(!fork.has_moved_on(), "replayed");
    let left = fork.passed_by.iter().chain(&fork.own[fork.spilled_to..]);
    let pool = &store.core().pool;
    for node in left {
        let held = pool.frames.holding(node.hint(), node.reference);
        assert!(held.is_some(), "{node:?} of {:?}", fork.own);
    }
    second.commit().expect("commits");
    rows.extend([(100, vec![2; 100]), (9000, vec![3; 100])]);
    assert_holds(&store, &tree, &rows);
}

/// Transactions that have not committed, and whose nodes fill half of the cache.
fn fill_half(store: &Store) -> Vec<Txn> {
    let pool = &store.core().pool;
    let mut fillers = Vec::new();
    while pool.unwritten() <= pool.usable() / 2 {
        let family = store.create_family(&format!("{}", fillers.len()), KeyKind::Int);
        let family = family.expect("a family");
        let mut txn = store.txn();
        txn.begin(Isolation::Snapshot).expect("begins");
        for number in 0..100 {
            let put = txn.put(&family, Key::Int(number), &[4; 3_000]);
            assert!(!put.expect("a put"));
        }
        fillers.push(txn);
    }
    fillers
}

/// To try a graft made room first, as every edit does: so a commit handed nodes to the
/// thread that writes them, and then freed them to replay what had made them. That
/// thread wrote what came into their frames, and took it out of them.
#[test]
fn a_commit_frees_nothing_that_is_being_written() {
    for grafts in [true, false] {
        let store = open_with(Options {
            cache_bytes: 4 << 20,
            ..Options::default()
        });
        let (tree, mut rows) = tree_of(&store, KeyKind::Int);
        store.checkpoint().expect("a checkpoint");
        let own: Vec<u64> = (1..=35).map(|at| 600 * at).collect();
        let mut late = overwriting(&store, &tree, &own, &[2; 100]);
        let others = [if grafts { 0 } else { own[0] + 2 }];
        overwriting(&store, &tree, &others, &[3; 100])
            .commit()
            .expect("nobody was before it");
        assert!(late.forks[0].own.len() > BUDGET_MIN);
        // So much of the cache that `late` ought to give nodes up.
        let fillers = fill_half(&store);
        late.commit().expect("the same rows nobody wrote");
        rows.extend(own.iter().map(|number| (*number, vec![2; 100])));
        rows.insert(others[0], vec![3; 100]);
        for mut filler in fillers {
            filler.commit().expect("commits");
        }
        assert_holds(&store, &tree, &rows);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    }
}

/// What is to be moved may be handed over to be written while another tree's changes are
/// replayed: its frames are others' then.
#[test]
fn what_was_spilled_meanwhile_does_not_move() {
    let store = open_with(Options {
        cache_bytes: 4 << 20,
        ..Options::default()
    });
    let small = store.create_family("small", KeyKind::Int).expect("made");
    let (tree, mut rows) = tree_of(&store, KeyKind::Int);
    let mut txn = store.txn();
    txn.begin_statement(&[&small]).expect("begins");
    for number in 0..1_000 {
        let put = txn.put(&small, Key::Int(number), &[1; 100]);
        assert!(!put.expect("a put"));
    }
    txn.commit().expect("commits");
    store.checkpoint().expect("a checkpoint");
    let own: Vec<u64> = (1..=35).map(|at| 600 * at).collect();
    let mut late = overwriting(&store, &small, &[500], &[2; 100]);
    for number in &own {
        let put = late.put(&tree, key(KeyKind::Int, *number).as_key(), &[2; 100]);
        assert!(put.expect("a put"));
    }
    // A leaf of each is changed by somebody else, too, so that neither is grafted.
    for (tree, number) in [(&small, 501), (&tree, own[0] + 2)] {
        let mut first = overwriting(&store, tree, &[number], &[3; 100]);
        first.commit().expect("nobody was before it");
    }
    let fillers = fill_half(&store);
    let trees: Vec<TreeId> = late.forks.iter().map(|fork| fork.tree.id()).collect();
    assert_eq!(trees, [small.id(), tree.id()], "in this order");
    let replays = late.replays(|_| true).expect("sorted");
    let moves = |of: &Replay| of.moving.as_ref().map(|moving| moving.leaves().len());
    assert!(replays[1].as_ref().and_then(moves) > Some(30));
    late.commit().expect("the same rows nobody wrote");
    rows.extend(own.iter().map(|number| (*number, vec![2; 100])));
    rows.insert(own[0] + 2, vec![3; 100]);
    for mut filler in fillers {
        filler.commit().expect("commits");
    }
    assert_holds(&store, &tree, &rows);
    assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
}

/// What a transaction did: its keys, and their values if it did not delete them.
type Did = BTreeMap<u64, Option<Vec<u8>>>;

/// Updates, inserts and deletes at random, at times up to splits and merges.
fn at_random(txn: &mut Txn, tree: &Tree, state: &mut u64) -> Did {
    let mut did = Did::new();
    txn.begin(Isolation::Snapshot).expect("begins");
    let dense = random(state, 4) == 0;
    let start = random(state, 2 * ROWS);
    let most = match random(state, 8) {
        0 => 300,
        _ if dense => 60,
        _ => 6,
    };
    for _ in 0..1 + random(state, most) {
        let number = match dense {
            true => start + random(state, 150),
            false => random(state, 2 * ROWS),
        };
        let key = key(tree.kind(), number);
        let value = match random(state, 4) {
            0 => None,
            _ => Some(vec![*state as u8; 20 + random(state, 200) as usize]),
        };
        match &value {
            Some(value) => {
                txn.put(tree, key.as_key(), value).expect("a put");
            }
            // It saw none, and does nothing about one that comes meanwhile.
            None if !txn.delete(tree, key.as_key()).expect("a delete") => continue,
            None => {}
        }
        did.insert(number, value);
    }
    did
}

#[test]
fn grafting_and_replaying_are_the_same_as_one_after_the_other() {
    for (kind, seed) in [(KeyKind::Int, 1), (KeyKind::Bytes, 2)] {
        let state = &mut seed.clone();
        let store = open();
        let (tree, mut rows) = tree_of(&store, kind);
        let [mut first, mut second] = [store.txn(), store.txn()];
        let (mut outcomes, mut moved, mut moved_of) = ([0; 3], 0, 0);
        for round in 0..400 {
            let did = [&mut first, &mut second].map(|txn| at_random(txn, &tree, state));
            first.commit().expect("nobody was before it");
            if second.forks.iter().any(Fork::has_moved_on) {
                second.graft(0).expect("a graft");
                let is_left = second.forks[0].has_moved_on();
                outcomes[usize::from(is_left)] += 1;
                if is_left {
                    moved += moving(&second).1;
                    moved_of += did[1].len();
                }
            }
            let mut committed = vec![&did[0]];
            match second.commit() {
                Ok(()) => committed.push(&did[1]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    outcomes[2] += 1;
                }
            }
            for (number, value) in committed.into_iter().flatten() {
                match value {
                    Some(value) => rows.insert(*number, value.clone()),
                    None => rows.remove(number),
                };
            }
            if round % 50 == 49 {
                assert_holds(&store, &tree, &rows);
            }
        }
        println!("{kind:?}, seed {seed}: grafted, not, conflicts {outcomes:?}");
        println!("{moved} of {moved_of} operations moved where not");
        assert!(outcomes[0] > 100 && outcomes[1] > 20, "{outcomes:?}");
        assert!(
            moved > 500 && moved_of - moved > 100,
            "{moved} of {moved_of}"
        );
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
        // What was dropped and replaced is free: all that is left is written.
        store.checkpoint().expect("a checkpoint");
        assert_eq!(store.stats().cache.unwritten, 0);
    }
}

/// Makes some of these rows, which are not there; now and then one is put a second time or
/// taken back. All keys that were written under.
fn make_at_random(txn: &mut Txn, tree: &Tree, numbers: &[u64], state: &mut u64) -> Did {
    let mut did = Did::new();
    txn.begin(Isolation::Snapshot).expect("begins");
    for _ in 0..1 + random(state, 30) {
        let number = numbers[random(state, numbers.len() as u64) as usize];
        let key = key(tree.kind(), number);
        let long = random(state, 20) == 0;
        let value = vec![*state as u8; if long { 9_000 } else { 20 }];
        let has_it = did.get(&number).is_some_and(Option::is_some);
        match random(state, 30) {
            0 if has_it => {
                assert!(txn.delete(tree, key.as_key()).expect("a delete"));
                did.insert(number, None);
            }
            1 if has_it => {
                let made = txn.insert(tree, key.as_key(), &value);
                assert!(!made.expect("an insert"));
            }
            _ => {
                let found = txn.put(tree, key.as_key(), &value);
                assert_eq!(found.expect("a put"), has_it);
                did.insert(number, Some(value));
            }
        }
    }
    did
}

/// Where a transaction only made entries, their keys are not compared before it is replayed:
/// the replay finds what another one has made under them.
#[test]
fn who_makes_an_entry_that_another_one_made_loses_and_nobody_else() {
    for (kind, seed) in [(KeyKind::Int, 3), (KeyKind::Bytes, 4)] {
        let state = &mut seed.clone();
        let store = open();
        let (tree, mut rows) = tree_of(&store, kind);
        let [mut first, mut second] = [store.txn(), store.txn()];
        // Of those that made entries alone and of others: how many were replayed, and lost.
        let mut outcomes = [[0; 2]; 2];
        for round in 0..250 {
            let start = random(state, ROWS - 1_000);
            let between = (start..start + 1_000).map(|at| 2 * at + 1);
            let absent: Vec<u64> = between.filter(|row| !rows.contains_key(row)).collect();
            let mut did = [&mut first, &mut second]
                .map(|txn| make_at_random(txn, &tree, &absent, state))
                .to_vec();
            first.commit().expect("nobody was before it");
            let replays = second.replays(Fork::has_moved_on).expect("sorted");
            let only_inserts = replays.iter().flatten().any(|replay| replay.only_inserts);
            // What was made and taken back is not in the way.
            let is_there = |key: &u64| did[0].get(key).is_some_and(Option::is_some);
            let loses = did[1].keys().any(is_there);
            let committed = second.commit();
            assert_eq!(committed.is_err(), loses, "round {round}, seed {seed}");
            if let Err(error) = committed {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                did.truncate(1);
            }
            outcomes[usize::from(only_inserts)][usize::from(loses)] += 1;
            for (number, value) in did.into_iter().flatten() {
                if let Some(value) = value {
                    rows.insert(number, value);
                }
            }
        }
        println!("{kind:?}, seed {seed}: others and only inserts, replayed and lost {outcomes:?}");
        let counts = outcomes.as_flattened();
        assert!(counts.iter().all(|count| *count > 10), "{outcomes:?}");
        assert_holds(&store, &tree, &rows);
        assert_eq!(store.integrity_check().expect("a check"), [""; 0]);
    }
}
