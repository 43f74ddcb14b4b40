//! Calls that make no sense are refused, and what they were about stays as it was.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{
    ErrorKind, Isolation, Key, KeyKind, Options, Result, Savepoint, Seek, Store, Tree, TreeId, Txn,
    TxnState, commit_together, exclude_together,
};
use std::sync::Arc;
use std::time::Duration;

fn store() -> (Store, Tree) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("f", KeyKind::Bytes).expect("a family");
    (store, tree)
}

fn begun(store: &Store) -> Txn {
    let mut txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    txn
}

fn put(txn: &mut Txn, tree: &Tree, keys: std::ops::Range<u32>) {
    for key in keys {
        // Not all of one length, so that a redo cut at a wrong place ends in one.
        let key = format!("key {key:06} {}", "z".repeat(key as usize % 7));
        txn.put(tree, Key::Bytes(key.as_bytes()), &[7; 40])
            .expect("a put");
    }
}

fn misused<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.expect_err("it makes no sense");
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    error.message().to_owned()
}

/// What was put before and after the refusal is there, and no other keys.
fn ends_with(mut txn: Txn, tree: &Tree, keys: u64) {
    txn.commit().expect("commits");
    let store = txn.store().clone();
    txn.begin_read().expect("begins");
    assert_eq!(txn.count(tree).expect("a count"), keys);
    let unsound = store.integrity_check().expect("checks");
    assert!(unsound.is_empty(), "{unsound:?}");
}

fn taken_after(txn: &mut Txn, tree: &Tree, keys: std::ops::Range<u32>) -> Savepoint {
    put(txn, tree, keys);
    txn.savepoint().expect("a savepoint")
}

/// Its place in the redo was taken for one in that of the other transaction: what was
/// cut off there was a log record that recovery could not read, and the tree had pages
/// that it had lost.
#[test]
fn a_savepoint_is_of_one_transaction() {
    let (store, tree) = store();
    let mut first = begun(&store);
    let savepoint = taken_after(&mut first, &tree, 0..500);
    let mut other = begun(&store);
    put(&mut other, &tree, 1000..4000);
    misused(other.rollback_to(&savepoint));
    ends_with(other, &tree, 3000);

    first.rollback();
    misused(first.rollback_to(&savepoint));
    first.begin(Isolation::Serializable).expect("begins");
    put(&mut first, &tree, 0..2000);
    misused(first.rollback_to(&savepoint));
    ends_with(first, &tree, 4000);
}

#[test]
fn a_savepoint_is_of_one_store() {
    let ((one, its), (other, tree)) = (store(), store());
    let (mut first, mut second) = (begun(&one), begun(&other));
    let savepoint = taken_after(&mut first, &its, 0..500);
    put(&mut second, &tree, 1000..4000);
    misused(second.rollback_to(&savepoint));
    ends_with(second, &tree, 3000);
}

#[test]
fn a_savepoint_is_gone_once_an_earlier_one_was_gone_back_to() {
    let (store, tree) = store();
    let mut txn = begun(&store);
    let first = taken_after(&mut txn, &tree, 0..10);
    let second = taken_after(&mut txn, &tree, 10..500);
    let third = taken_after(&mut txn, &tree, 500..600);
    txn.rollback_to(&second).expect("goes back");
    misused(txn.rollback_to(&third));
    txn.rollback_to(&second).expect("goes back again");
    txn.rollback_to(&first).expect("goes back further");
    put(&mut txn, &tree, 1000..4000);
    misused(txn.rollback_to(&second));
    misused(txn.rollback_to(&third));
    let fourth = taken_after(&mut txn, &tree, 4000..4010);
    put(&mut txn, &tree, 5000..6000);
    txn.rollback_to(&fourth).expect("it was taken since");
    ends_with(txn, &tree, 3020);
}

#[test]
fn a_savepoint_is_gone_once_it_or_an_earlier_one_was_let_go_of() {
    let (store, tree) = store();
    let mut txn = begun(&store);
    let first = taken_after(&mut txn, &tree, 0..10);
    let second = taken_after(&mut txn, &tree, 10..500);
    let third = taken_after(&mut txn, &tree, 500..600);
    let mut other = begun(&store);
    misused(other.release(&first));
    drop(other);
    txn.release(&second).expect("lets go");
    misused(txn.release(&second));
    misused(txn.rollback_to(&second));
    misused(txn.rollback_to(&third));
    misused(txn.release(&third));
    put(&mut txn, &tree, 1000..4000);
    let fourth = taken_after(&mut txn, &tree, 4000..4010);
    put(&mut txn, &tree, 0..4010);
    txn.rollback_to(&fourth).expect("it was taken since");
    txn.rollback_to(&first).expect("it stays");
    misused(txn.release(&fourth));
    txn.release(&first).expect("lets go");
    misused(txn.rollback_to(&first));
    put(&mut txn, &tree, 10..30);
    ends_with(txn, &tree, 30);
}

/// However often a transaction goes back, its first savepoint stays good.
#[test]
fn the_first_savepoint_stays() {
    let (store, tree) = store();
    let mut txn = begun(&store);
    let first = taken_after(&mut txn, &tree, 0..10);
    for round in 0..300 {
        let outer = taken_after(&mut txn, &tree, 10 + round..11 + round);
        let inner = taken_after(&mut txn, &tree, 5000..5001);
        txn.rollback_to(&outer).expect("goes back");
        misused(txn.rollback_to(&inner));
    }
    txn.rollback_to(&first).expect("goes back");
    ends_with(txn, &tree, 10);
}

/// Its pages were looked for among those of the store at hand: reading failed with
/// "checksum mismatch", and what was written to an empty one went to both stores.
#[test]
fn a_tree_is_of_one_store() {
    let ((store, own), (other, alike)) = (store(), store());
    let theirs = other.create_family("g", KeyKind::Bytes).expect("a family");
    assert_eq!(own.id(), alike.id());
    let mut txn = begun(&store);
    put(&mut txn, &own, 0..10);
    let key = Key::Bytes(b"key");
    misused(txn.put(&theirs, key, b"value"));
    misused(txn.insert(&theirs, key, b"value"));
    misused(txn.delete(&theirs, key));
    misused(txn.get_into(&theirs, key, &mut Vec::new()));
    misused(txn.contains(&theirs, key));
    misused(txn.count(&theirs));
    misused(txn.drop_tree(&theirs));
    misused(txn.cursor(&theirs).map(|_| ()));
    ends_with(txn, &own, 10);
    misused(store.txn().begin_statement(&[&own, &theirs]));

    // One that has the number of a tree that was only read.
    let mut txn = begun(&store);
    assert_eq!(txn.count(&own).expect("a count"), 10);
    misused(txn.put(&alike, key, b"value"));
    ends_with(txn, &own, 10);
    assert!(
        !other
            .transact(Isolation::Snapshot, |txn| txn.contains(&alike, key))
            .expect("reads")
    );
}

/// An integer was sought among byte keys, and found.
#[test]
fn keys_are_of_their_trees_kind() {
    let (store, bytes) = store();
    let numbers = store.create_family("n", KeyKind::Int).expect("a family");
    let mut txn = begun(&store);
    put(&mut txn, &bytes, 0..10);
    txn.put(&numbers, Key::Int(7), b"").expect("a put");
    let seeks = |key| {
        [
            Seek::AtLeast(key),
            Seek::After(key),
            Seek::AtMost(key),
            Seek::Before(key),
        ]
    };
    for (tree, key) in [(&bytes, Key::Int(7)), (&numbers, Key::Bytes(b"key"))] {
        misused(txn.put(tree, key, b""));
        misused(txn.get_into(tree, key, &mut Vec::new()));
        let mut cursor = txn.cursor(tree).expect("a cursor");
        for to in seeks(key) {
            misused(cursor.seek(to));
        }
        assert!(cursor.seek(Seek::First).expect("seeks"));
    }
    misused(txn.allocate_rowid(&bytes));
    ends_with(txn, &bytes, 10);
}

/// Without it no family was found any more, and none could be made.
#[test]
fn the_tree_of_names_is_not_dropped() {
    let (store, _) = store();
    let names = store.tree(TreeId(0)).expect("it is there");
    let dropped = store.transact(Isolation::Serializable, |txn| txn.drop_tree(&names));
    misused(dropped);
    assert_eq!(store.families().expect("the names"), ["f"]);
}

/// Its name led to nothing ever after: it could be neither found, nor removed, nor given to
/// another tree.
#[test]
fn the_name_of_a_tree_that_was_dropped_can_be_given_anew() {
    let (store, tree) = store();
    let mut txn = begun(&store);
    txn.drop_tree(&tree).expect("drops");
    txn.commit().expect("commits");
    assert!(store.family("f").expect("a look").is_none());
    assert_eq!(store.families().expect("a list"), Vec::<String>::new());
    assert!(!store.drop_family("f").expect("there is nothing to drop"));
    let anew = store.create_family("f", KeyKind::Int).expect("a family");
    assert_eq!(anew.kind(), KeyKind::Int);

    let mut txn = begun(&store);
    txn.drop_tree(&anew).expect("drops");
    txn.commit().expect("commits");
    let anew = store.create_family("f", KeyKind::Bytes).expect("a family");
    assert_eq!(store.families().expect("a list"), ["f"]);
    let found = store.family("f").expect("a look").expect("a family");
    assert_eq!(found.id(), anew.id());
}

/// A statement that has not locked the names made the tree, or dropped it, before it was
/// refused the name: it committed a tree without one, or a name without its tree.
#[test]
fn a_family_comes_and_goes_whole_or_not_at_all() {
    let (store, tree) = store();
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    misused(txn.create_family("g", KeyKind::Int));
    misused(txn.drop_family("f"));
    put(&mut txn, &tree, 0..3);
    txn.commit().expect("commits");
    assert_eq!(store.families().expect("a list"), ["f"]);
    let mut txn = begun(&store);
    assert_eq!(txn.count(&tree).expect("it is there"), 3);
    let next = txn.create_tree(KeyKind::Int).expect("makes one");
    assert_eq!(next.id().0, tree.id().0 + 1);
}

/// It still stood for that tree in the transaction that had dropped it: the tree was listed,
/// and given to who asked for the name anew, to be refused with every write.
#[test]
fn a_name_stands_for_nothing_at_once() {
    let (store, tree) = store();
    let mut txn = begun(&store);
    txn.drop_tree(&tree).expect("drops");
    assert_eq!(txn.families().expect("a list"), []);
    let anew = txn.create_family("f", KeyKind::Int).expect("a family");
    txn.put(&anew, Key::Int(1), b"anew").expect("a put");
    txn.drop_tree(&anew).expect("drops");
    assert_eq!(txn.drop_family("f").expect("drops"), Some(false));
    assert_eq!(txn.drop_family("f").expect("drops"), None);
    txn.commit().expect("commits");
    assert!(store.family("f").expect("a look").is_none());
}

/// Whoever read it in the transaction that had dropped it was told that it was empty.
#[test]
fn a_tree_is_not_read_once_it_was_dropped() {
    let (store, tree) = store();
    let key = Key::Bytes(b"key");
    for begin in [begin_immediate, begin_snapshot] {
        let mut txn = store.txn();
        begin(&mut txn).expect("begins");
        put(&mut txn, &tree, 0..10);
        let savepoint = txn.savepoint().expect("a savepoint");
        txn.drop_tree(&tree).expect("drops");
        misused(txn.get_into(&tree, key, &mut Vec::new()));
        misused(txn.get_part(&tree, key, 0..1, &mut Vec::new()));
        misused(txn.contains(&tree, key));
        misused(txn.count(&tree));
        misused(txn.stamp(&tree));
        misused(txn.cursor(&tree).map(|_| ()));
        misused(txn.put(&tree, key, b"value"));
        txn.rollback_to(&savepoint).expect("goes back");
        assert_eq!(txn.count(&tree).expect("a count"), 10);
    }
}

fn begin_immediate(txn: &mut Txn) -> Result<()> {
    txn.begin_immediate()
}

fn begin_snapshot(txn: &mut Txn) -> Result<()> {
    txn.begin(Isolation::Snapshot)
}

type Step = fn(&mut Txn, &Savepoint, &Tree);
type Begin = fn(&mut Txn, &Tree) -> Result<()>;

/// A handle of such a tree, which `step` leaves to another transaction.
fn use_unborn(step: Step, begin: Begin) {
    let disk = Arc::new(MemoryDisk::new());
    let open = |disk| Store::open_on(disk, "m.db", Options::default()).expect("opens");
    let store = open(disk.clone());
    let mut maker = begun(&store);
    let savepoint = maker.savepoint().expect("a savepoint");
    let made = maker.create_family("made", KeyKind::Int);
    let made = made.expect("a family");
    maker.put(&made, Key::Int(1), b"own").expect("a put");
    step(&mut maker, &savepoint, &made);
    let commits = maker.state() != TxnState::Idle && maker.has_written();

    let mut other = store.txn();
    begin(&mut other, &made).expect("begins");
    misused(other.contains(&made, Key::Int(1)));
    misused(other.put(&made, Key::Int(2), b"another's"));
    misused(other.clear(&made, || true));
    misused(other.drop_tree(&made));
    other.commit().expect("commits");
    if maker.state() != TxnState::Idle {
        maker.commit().expect("commits");
    }
    // As the end of the process would leave it.
    let store = open(Arc::new(disk.copied()));
    let families = store.families().expect("the names");
    assert_eq!(families.is_empty(), !commits);
    if let Some(made) = store.family("made").expect("a look") {
        assert_eq!(made.estimate(), 1);
    }
}

/// It was taken for an empty one and written to: the commit was acknowledged, and its record
/// named a tree that the log had not made, so that the database could not be opened any more.
#[test]
fn a_tree_is_not_there_before_what_made_it_commits() {
    let steps: [Step; 4] = [
        |_, _, _| (),
        |txn, _, _| txn.rollback(),
        |txn, savepoint, _| txn.rollback_to(savepoint).expect("goes back"),
        |txn, _, _| {
            txn.drop_family("made").expect("drops");
            txn.commit().expect("commits");
        },
    ];
    let begins: [Begin; 4] = [
        |txn, _| txn.begin(Isolation::Serializable),
        |txn, _| txn.begin(Isolation::Snapshot),
        |txn, _| txn.begin_immediate(),
        |txn, made| txn.begin_statement(&[made]),
    ];
    for step in steps {
        begins.iter().for_each(|begin| use_unborn(step, *begin));
    }
}

/// The list of what is in the cache was to have room for all of it at once, and the process
/// ended where there is no such memory.
#[test]
fn a_cache_larger_than_any_memory_is_refused_or_never_filled() {
    for cache_bytes in [1 << 50, usize::MAX] {
        let store = Store::in_memory(Options {
            cache_bytes,
            ..Options::default()
        });
        let made = store.and_then(|store| store.create_family("f", KeyKind::Int));
        if let Err(error) = made {
            assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        }
    }
}

/// IMMEDIATE transactions and statements were told the stamp of a tree of their own that has
/// its number; to claim it, and to rely on it, seemed to have had an effect.
#[test]
fn nothing_is_said_of_another_stores_tree() {
    let ((store, tree), (other, _)) = (store(), store());
    let theirs = other.create_family("g", KeyKind::Bytes).expect("a family");
    assert_eq!(store.stamp(&theirs), None);
    for begin in [begin_immediate, begin_snapshot] {
        let mut txn = store.txn();
        begin(&mut txn).expect("begins");
        misused(txn.stamp(&theirs));
        misused(txn.claim(&theirs));
        misused(txn.rely_on(&theirs));
        put(&mut txn, &tree, 0..3);
        ends_with(txn, &tree, 3);
    }
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    misused(txn.stamp(&theirs));
}

/// It was told that its transaction only reads.
#[test]
fn who_writes_without_a_transaction_is_told_that_there_is_none() {
    let (store, tree) = store();
    let numbers = store.create_family("n", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    let (key, none) = (Key::Bytes(b"key"), "no transaction is under way");
    assert_eq!(misused(txn.put(&tree, key, b"value")), none);
    assert_eq!(misused(txn.delete(&tree, key)), none);
    assert_eq!(misused(txn.clear(&tree, || true)), none);
    assert_eq!(misused(txn.create_tree(KeyKind::Int)), none);
    assert_eq!(misused(txn.allocate_rowid(&numbers)), none);
    assert_eq!(misused(txn.savepoint()), none);
    txn.begin_read().expect("begins");
    assert_ne!(misused(txn.put(&tree, key, b"value")), none);
}

/// They named the number of a tree, of which who works with families knows nothing.
#[test]
fn refusals_name_the_family() {
    let (store, _) = store();
    let tree = store.create_family("users", KeyKind::Bytes).expect("one");
    let (other, _) = self::store();
    let theirs = other.create_family("orders", KeyKind::Bytes).expect("one");
    let numbers = store.create_family("n", KeyKind::Int).expect("a family");
    let mut txn = begun(&store);
    let named = |message: String, name: &str| assert!(message.contains(name), "{message}");
    named(misused(txn.put(&tree, Key::Int(1), b"")), "\"users\"");
    named(misused(txn.allocate_rowid(&tree)), "\"users\"");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    named(
        misused(cursor.seek(Seek::AtLeast(Key::Int(1)))),
        "\"users\"",
    );
    named(misused(txn.count(&theirs)), "\"orders\"");
    txn.rollback();
    txn.begin_statement(&[&tree]).expect("begins");
    named(misused(txn.put(&numbers, Key::Int(1), b"")), "\"n\"");
}

/// Ten million characters of a name came back in the message.
#[test]
fn a_refusal_shows_the_start_of_a_long_name() {
    let (store, _) = store();
    let name = "name ".repeat(2_000);
    store.create_family(&name, KeyKind::Bytes).expect("one");
    let message = misused(store.create_family(&name, KeyKind::Int));
    assert!(
        message.contains("name name ") && message.len() < 200,
        "{message}"
    );
    let message = misused(store.family(&format!("\0{name}")));
    assert!(message.len() < 200, "{message}");
}

/// The second waited for the first, which is its own caller, until the busy timeout, and was
/// told that another writer is at work.
#[test]
fn two_transactions_of_one_store_do_not_commit_as_one() {
    let (store, tree) = store();
    let (mut first, mut second) = (begun(&store), begun(&store));
    put(&mut first, &tree, 0..10);
    put(&mut second, &tree, 10..20);
    second.set_busy_timeout(Duration::from_millis(20));
    misused(commit_together(&mut [&mut first, &mut second]));
    misused(exclude_together(&mut [&mut first, &mut second]));
    second.commit().expect("commits");
    ends_with(first, &tree, 20);
}
