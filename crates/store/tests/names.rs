//! Conflicts tell the column family by its name.

use fulgurite_disk::MemoryDisk;
use fulgurite_store::{Error, ErrorKind, Isolation, Key, KeyKind, Options, Store, Tree};
use std::sync::Arc;
use std::time::Duration;

fn open(disk: &Arc<MemoryDisk>) -> Store {
    let options = Options {
        busy_timeout: Duration::ZERO,
        ..Options::default()
    };
    Store::open_on(disk.clone(), "names.db", options).expect("opens")
}

/// Two overlapping transactions write the same key: what the later one is told.
fn lose(store: &Store, tree: &Tree) -> Error {
    let [mut first, mut second] = [store.txn(), store.txn()];
    for txn in [&mut first, &mut second] {
        txn.begin(Isolation::Snapshot).expect("begins");
        txn.put(tree, Key::Bytes(b"a"), b"1").expect("puts");
    }
    first.commit().expect("commits");
    let lost = second.commit().expect_err("it lost");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    lost
}

#[test]
fn conflicts_tell_the_family() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let tree = store.create_family("accounts", KeyKind::Bytes);
    let tree = tree.expect("a family");
    assert_eq!(tree.family(), Some("accounts"));
    let lost = lose(&store, &tree);
    let message = "another transaction changed key x'61' of family \"accounts\" first; this one cannot commit, run it again";
    assert_eq!(lost.message(), message);
    let conflict = lost.conflict().expect("what it lost against");
    assert_eq!(conflict.family(), Some("accounts"));
    assert_eq!(conflict.tree(), tree.id());

    let mut writer = store.txn();
    writer.begin_statement(&[&tree]).expect("begins");
    let busy = store.txn().begin_statement(&[&tree]);
    let busy = busy.expect_err("somebody writes to it");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(
        busy.message()
            .contains("family \"accounts\" is being written")
    );
    assert_eq!(store.stats().conflicts, 1);
}

#[test]
fn a_family_has_its_name_again_where_it_is_asked_for() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let id = store.create_family("accounts", KeyKind::Bytes);
    let id = id.expect("a family").id();
    drop(store);
    let store = open(&disk);
    let by_number = store.tree(id).expect("is there");
    assert_eq!(by_number.family(), None);
    let message = lose(&store, &by_number);
    assert!(message.message().contains("of tree "), "{message}");
    let by_name = store.family("accounts").expect("reads").expect("is there");
    assert_eq!(by_name.family(), Some("accounts"));
    assert_eq!(by_number.family(), Some("accounts"));

    // A name that is free again stands for another tree, which has it too.
    assert!(store.drop_family("accounts").expect("drops"));
    let anew = store.create_family("accounts", KeyKind::Bytes);
    let anew = anew.expect("a family");
    assert_ne!(anew.id(), id);
    assert_eq!(anew.family(), Some("accounts"));
}

/// A name may be as long as any key, and went into each message whole.
#[test]
fn a_conflict_shows_the_beginning_of_a_long_name() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk);
    let name = "\u{e4}".repeat(100_000);
    let tree = store.create_family(&name, KeyKind::Bytes);
    let lost = lose(&store, &tree.expect("a family"));
    let shown = format!("of family \"{}\"… first", "\u{e4}".repeat(64));
    assert!(lost.message().contains(&shown), "{lost}");
    assert!(lost.message().len() < 400, "{}", lost.message().len());
    let conflict = lost.conflict().expect("what it lost against");
    assert_eq!(conflict.family(), Some(name.as_str()));
}
