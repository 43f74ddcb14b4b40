//! That a tree is not there is an answer like any other, which a commit is validated for.
//! It was none: two transactions each found the other one's tree to be missing, both
//! committed, and no order explained it.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{
    Durability, Error, ErrorKind, Isolation, Key, KeyKind, Options, Result, Store, Tree, TreeId,
    Txn,
};
use std::sync::Arc;
use std::time::Duration;

const KEY: Key<'static> = Key::Int(1);

fn store() -> Store {
    let options = Options {
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    Store::in_memory(options).expect("opens")
}

fn begun(store: &Store, isolation: Isolation) -> Txn {
    let mut txn = store.txn();
    txn.begin(isolation).expect("begins");
    txn
}

fn family(store: &Store, name: &str) -> Tree {
    store.create_family(name, KeyKind::Int).expect("a family")
}

fn fails<T>(outcome: Result<T>, kind: ErrorKind) -> Error {
    let error = outcome.err().expect("it fails");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

fn absent<T>(outcome: Result<T>) {
    let error = fails(outcome, ErrorKind::Misuse);
    assert!(error.to_string().contains("is not there"), "{error}");
}

type Ask = fn(&mut Txn, &Tree);

/// All that a transaction can be told of a tree.
const ASKS: [Ask; 10] = [
    |txn, tree| absent(txn.get_into(tree, KEY, &mut Vec::new())),
    |txn, tree| absent(txn.get_part(tree, KEY, 0..1, &mut Vec::new())),
    |txn, tree| absent(txn.contains(tree, KEY)),
    |txn, tree| absent(txn.count(tree)),
    |txn, tree| absent(txn.cursor(tree)),
    |txn, tree| absent(txn.put(tree, KEY, b"value")),
    |txn, tree| absent(txn.delete(tree, KEY)),
    |txn, tree| absent(txn.allocate_rowid(tree)),
    |txn, tree| absent(txn.clear(tree, || true)),
    |txn, tree| absent(txn.drop_tree(tree)),
];

/// What a transaction only plans by, or does not come to depend on.
const ASKS_IN_VAIN: [Ask; 3] = [
    |txn, tree| absent(txn.estimate(tree)),
    |txn, tree| absent(txn.cursor_to_estimate(tree)),
    |txn, tree| absent(txn.stamp(tree)),
];

fn ask_each_other(asks: &[Ask], isolation: Isolation) -> impl Iterator<Item = Result<()>> {
    asks.iter().map(move |ask| {
        let store = store();
        let [mut one, mut other] = [(); 2].map(|()| begun(&store, isolation));
        let made = one.create_family("one", KeyKind::Int).expect("makes one");
        let others = other.create_tree(KeyKind::Int).expect("makes one");
        ask(&mut one, &others);
        ask(&mut other, &made);
        one.commit().expect("the first commits");
        let outcome = other.commit();
        let there = store.tree(others.id()).is_ok();
        assert_eq!(there, outcome.is_ok());
        outcome
    })
}

#[test]
fn of_two_that_do_not_find_each_others_trees_one_loses() {
    for outcome in ask_each_other(&ASKS, Isolation::Serializable) {
        let lost = fails(outcome, ErrorKind::Conflict);
        let over = lost.conflict().expect("it says over what");
        assert_eq!(over.tree(), TreeId(1));
    }
    for outcome in ask_each_other(&ASKS_IN_VAIN, Isolation::Serializable) {
        outcome.expect("it depends on nothing");
    }
    for outcome in ask_each_other(&ASKS, Isolation::Snapshot) {
        // As what it reads of trees that are there.
        outcome
            .or_else(|lost| match lost.kind() {
                ErrorKind::Conflict => Ok(()),
                _ => Err(lost),
            })
            .expect("commits, unless that decided about a row");
    }
}

/// By name, too: that reads the tree of the names.
#[test]
fn of_two_that_do_not_find_each_others_names_one_loses() {
    let store = store();
    let [mut one, mut other] = [(); 2].map(|()| begun(&store, Isolation::Serializable));
    for (txn, own) in [(&mut one, "one"), (&mut other, "other")] {
        assert_eq!(txn.families().expect("a list"), []);
        txn.create_family(own, KeyKind::Int).expect("makes one");
    }
    one.commit().expect("the first commits");
    fails(other.commit(), ErrorKind::Conflict);
    assert_eq!(store.families().expect("a list"), ["one"]);
}

/// It was told that the tree is not there, and then that it is there and empty.
#[test]
fn what_is_not_there_is_not_there_to_the_end() {
    let store = store();
    let begins: [fn(&mut Txn) -> Result<()>; 3] = [
        |txn| txn.begin_read(),
        |txn| txn.begin(Isolation::Snapshot),
        |txn| txn.begin(Isolation::Serializable),
    ];
    for begin in begins {
        let mut maker = begun(&store, Isolation::Serializable);
        let made = maker.create_tree(KeyKind::Int).expect("makes one");
        let mut txn = store.txn();
        begin(&mut txn).expect("begins");
        absent(txn.contains(&made, KEY));
        maker.put(&made, KEY, b"value").expect("a put");
        maker.commit().expect("commits");
        absent(txn.contains(&made, KEY));
        absent(txn.stamp(&made));
        txn.commit().expect("it only read");
        txn.begin_read().expect("reads");
        assert!(txn.contains(&made, KEY).expect("it is there"));
    }
}

/// Who holds the trees that it touches commits without being validated.
#[test]
fn what_is_not_there_is_not_held() {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let store = Store::open_on(disk, "s.db", options).expect("opens");
    let own = family(&store, "own");
    let mut txn = store.txn();
    let put = |txn: &mut Txn, value: u8| {
        txn.begin(Isolation::Serializable).expect("begins");
        txn.put(&own, KEY, &[value]).expect("a put");
    };
    for value in 0..100 {
        put(&mut txn, value);
        txn.commit().expect("commits");
    }
    let mut maker = begun(&store, Isolation::Serializable);
    let made = maker.create_tree(KeyKind::Int).expect("makes one");
    put(&mut txn, 100);
    absent(txn.contains(&made, KEY));
    maker.commit().expect("commits");
    fails(txn.commit(), ErrorKind::Conflict);
}

/// A statement cannot lose. What it has named is as it found it until it ends.
#[test]
fn a_statement_keeps_what_it_named_from_being_made() {
    let store = store();
    let row = family(&store, "row");
    let mut maker = begun(&store, Isolation::Serializable);
    let made = maker.create_tree(KeyKind::Int).expect("makes one");
    assert!(!maker.contains(&row, KEY).expect("reads"));
    let mut statement = store.txn();
    statement.begin_statement(&[&row, &made]).expect("begins");
    absent(statement.contains(&made, KEY));
    statement.put(&row, KEY, b"first").expect("a put");
    fails(maker.commit(), ErrorKind::Busy);
    statement.commit().expect("commits");
    fails(maker.commit(), ErrorKind::Conflict);

    // Nor is it there before the one that makes it has ended.
    let names = store.tree(TreeId(0)).expect("it is there");
    let mut maker = store.txn();
    maker.begin_statement(&[&names]).expect("begins");
    let made = maker
        .create_family("made", KeyKind::Int)
        .expect("makes one");
    fails(statement.begin_statement(&[&row, &made]), ErrorKind::Busy);
    maker.commit().expect("commits");
    statement.begin_statement(&[&row, &made]).expect("begins");
    assert!(!statement.contains(&made, KEY).expect("it is there"));
}

/// A stamp of 0 was told of a tree that nobody had committed, and one of what was dropped.
#[test]
fn no_stamp_is_told_of_what_is_not_there() {
    let store = store();
    let mut maker = begun(&store, Isolation::Serializable);
    let made = maker.create_tree(KeyKind::Int).expect("makes one");
    assert_eq!(store.stamp(&made), None);
    let begins: [fn(&mut Txn, &Tree) -> Result<()>; 5] = [
        |txn, _| txn.begin_read(),
        |txn, _| txn.begin(Isolation::Serializable),
        |txn, _| txn.begin_immediate(),
        |txn, _| txn.begin_statement(&[]),
        |txn, made| txn.begin_statement(&[made]),
    ];
    for begin in begins {
        let mut txn = store.txn();
        begin(&mut txn, &made).expect("begins");
        absent(txn.stamp(&made));
        absent(txn.contains(&made, KEY));
        txn.rollback();
    }
    maker.commit().expect("commits");
    let stamp = store.stamp(&made).expect("a stamp");
    let mut txn = begun(&store, Isolation::Serializable);
    assert_eq!(txn.stamp(&made).expect("a stamp"), stamp);
    txn.drop_tree(&made).expect("drops");
    txn.commit().expect("commits");
    assert_eq!(store.stamp(&made), None);
}
