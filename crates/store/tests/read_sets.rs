//! What a transaction has read, as those who meet it feel it.
//!
//! More reads than a list of them may take: beyond a megabyte they became "the whole
//! table", so that a long report lost to any writer of any row. And a context's next
//! transaction, which is given the list of the one before, empty.

use fulgurite_store::{
    Cursor, ErrorKind, Isolation, Key, KeyKind, Options, Seek, Store, Tree, Txn,
};

const ROWS: i64 = 300_000;

fn change(store: &Store, tree: &Tree, row: i64) {
    change_to(store, tree, row, b"changed");
}

fn change_to(store: &Store, tree: &Tree, row: i64, value: &[u8]) {
    let mut txn = store.txn();
    txn.begin_statement(&[tree]).expect("begins");
    txn.put(tree, Key::Int(row), value).expect("puts");
    txn.commit().expect("commits");
}

/// Reads 50,000 rows of the middle third, none of them beside another, and writes
/// one; then `row` is changed by somebody else.
fn commit_against(store: &Store, tree: &Tree, row: i64) -> Result<(), ErrorKind> {
    let mut txn: Txn = store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    let mut value = Vec::new();
    for i in 0..50_000 {
        let key = ROWS / 3 + (i * 7919) % 50_000 * 2;
        txn.get_into(tree, Key::Int(key), &mut value)
            .expect("reads");
    }
    txn.put(tree, Key::Int(ROWS / 3), b"the sum").expect("puts");
    change(store, tree, row);
    txn.commit().map_err(|error| error.kind())
}

#[test]
fn many_reads_depend_on_what_lies_around_them_alone() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for row in 0..ROWS {
        txn.put(&tree, Key::Int(row), b"as it was").expect("puts");
    }
    txn.commit().expect("commits");

    assert_eq!(commit_against(&store, &tree, 7), Ok(()));
    assert_eq!(commit_against(&store, &tree, ROWS - 7), Ok(()));
    assert_eq!(
        commit_against(&store, &tree, ROWS / 3 + 50_000),
        Err(ErrorKind::Conflict)
    );
}

#[test]
fn what_was_read_before_does_not_count() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let other = store.create_family("u", KeyKind::Int).expect("a family");
    for row in 0..100 {
        change(&store, &tree, row);
    }
    let mut txn = store.txn();
    let mut value = Vec::new();
    let mut left: Vec<Cursor> = Vec::new();
    for round in 0..40_u8 {
        txn.begin(Isolation::Serializable).expect("begins");
        txn.put(&other, Key::Int(0), b"written").expect("puts");
        // What the cursors of transactions before reach belongs to none.
        for cursor in &mut left {
            assert!(cursor.next().expect("goes on"));
        }
        change_to(&store, &tree, 50, &[round, 0]);
        txn.commit().expect("depends on nothing");

        txn.begin(Isolation::Serializable).expect("begins");
        txn.get_into(&tree, Key::Int(50), &mut value)
            .expect("reads");
        let scans = round % 2 == 1;
        if scans {
            let mut cursor = txn.cursor(&tree).expect("opens");
            assert!(cursor.seek(Seek::AtLeast(Key::Int(10))).expect("seeks"));
            left.push(cursor);
        }
        txn.put(&other, Key::Int(0), b"written").expect("puts");
        let changed = if scans { 10 } else { 50 };
        change_to(&store, &tree, changed, &[round, 1]);
        let lost = txn.commit().map_err(|error| error.kind());
        assert_eq!(lost, Err(ErrorKind::Conflict), "round {round}");
    }
}

enum Write {
    Put(i64),
    Delete(i64),
}

/// One reads a tree and writes what it learned to another, while a second one reads that
/// one and writes to the first: the first loses.
fn write_skew(rows: &[i64], write: Write, read: impl FnOnce(&mut Txn, &Tree) -> Vec<u8>) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let other = store.create_family("u", KeyKind::Int).expect("a family");
    for row in rows {
        change_to(&store, &tree, *row, b"as it was");
    }
    let [mut first, mut second] = [store.txn(), store.txn()];
    first.begin(Isolation::Serializable).expect("begins");
    let learned = read(&mut first, &tree);
    let put = first.put(&other, Key::Int(0), &learned);
    put.expect("puts");

    second.begin(Isolation::Serializable).expect("begins");
    let found = second.get_into(&other, Key::Int(0), &mut Vec::new());
    assert!(!found.expect("reads"), "it was not committed");
    match write {
        Write::Put(key) => second.put(&tree, Key::Int(key), b"changed"),
        Write::Delete(key) => second.delete(&tree, Key::Int(key)),
    }
    .expect("writes");
    second.commit().expect("commits");
    let lost = first.commit().expect_err("they cannot be put in order");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
}

/// The key beside which a cursor was put lay outside of what it had read, and when it
/// turned round and came to it, it was taken for where that range had ended anyway.
#[test]
fn a_cursor_that_turns_round_reads_what_it_was_put_beside() {
    let before = (Seek::Before(Key::Int(5)), 3);
    let after = (Seek::After(Key::Int(5)), 7);
    for (seek, found) in [before, after] {
        write_skew(&[3, 5, 7], Write::Put(5), |txn, tree| {
            let mut cursor = txn.cursor(tree).expect("a cursor");
            assert!(cursor.seek(seek).expect("seeks"));
            assert_eq!(cursor.key_int(), found);
            let turned = match found < 5 {
                true => cursor.next(),
                false => cursor.prev(),
            };
            assert!(turned.expect("moves") && cursor.key_int() == 5);
            cursor.value().expect("a value").to_vec()
        });
    }
}

/// Who only asked whether rows are there, one after the other or apart, lost against every
/// change of what they hold: a transaction that inserts children against all that happens
/// to their parents.
#[test]
fn who_asked_for_presence_depends_on_that_alone() {
    type Ask = fn(&mut Txn, &Tree, i64) -> bool;
    let asks: [Ask; 4] = [
        |txn, tree, row| txn.contains(tree, Key::Int(row)).expect("reads"),
        |txn, tree, row| txn.is_taken(tree, Key::Int(row)).expect("reads"),
        |txn, tree, row| !txn.insert(tree, Key::Int(row), b"own").expect("refused"),
        |txn, tree, row| {
            let savepoint = txn.savepoint().expect("a savepoint");
            let was_there = txn.delete(tree, Key::Int(row)).expect("deletes");
            txn.rollback_to(&savepoint).expect("goes back");
            was_there
        },
    ];
    type Act = fn(&mut Txn, &Tree) -> bool;
    let change: Act = |txn, tree| txn.put(tree, Key::Int(6), b"changed").expect("puts");
    let remove: Act = |txn, tree| txn.delete(tree, Key::Int(6)).expect("deletes");
    for ask in asks {
        for rows in [[5, 6, 7], [6, 100, 200]] {
            for (act, expected) in [(change, Ok(())), (remove, Err(ErrorKind::Conflict))] {
                let store = Store::in_memory(Options::default()).expect("opens");
                let tree = store.create_family("t", KeyKind::Int).expect("a family");
                let other = store.create_family("u", KeyKind::Int).expect("a family");
                for row in rows {
                    change_to(&store, &tree, row, b"as it was");
                }
                let mut txn = store.txn();
                txn.begin(Isolation::Serializable).expect("begins");
                assert!(rows.iter().all(|row| ask(&mut txn, &tree, *row)));
                txn.put(&other, Key::Int(0), b"written").expect("puts");
                let mut beside = store.txn();
                beside.begin_statement(&[&tree]).expect("begins");
                assert!(act(&mut beside, &tree));
                beside.commit().expect("commits");
                assert_eq!(txn.commit().map_err(|error| error.kind()), expected);
            }
        }
    }
}

/// A put says whether there was an entry, which only its place in the redo had
/// validated: rolled back to a savepoint, the answer stayed and nothing stood for it.
#[test]
fn what_an_undone_write_said_was_read() {
    for (rows, write) in [(&[][..], Write::Put(5)), (&[5], Write::Delete(5))] {
        write_skew(rows, write, |txn, tree| {
            let savepoint = txn.savepoint().expect("a savepoint");
            let replaced = txn.put(tree, Key::Int(5), b"own").expect("puts");
            assert_eq!(replaced, rows.contains(&5));
            txn.rollback_to(&savepoint).expect("goes back");
            vec![u8::from(replaced)]
        });
    }
}

/// That a value is too short for what was to be replaced of it was told, and nothing stood
/// for it; nor for that it is long enough, where that write was undone.
#[test]
fn what_a_write_to_a_part_said_of_the_length_was_read() {
    type Put = fn(&mut Txn, &Tree, usize) -> fulgurite_store::Result<bool>;
    let puts: [Put; 2] = [
        |txn, tree, from| txn.put_part(tree, Key::Int(5), from, b"own"),
        |txn, tree, until| txn.put_start(tree, Key::Int(5), until, b"own"),
    ];
    for put in puts {
        write_skew(&[5], Write::Put(5), |txn, tree| {
            let refused = put(txn, tree, 12).expect_err("it is too short");
            assert_eq!(refused.kind(), ErrorKind::Misuse);
            b"shorter than 12".to_vec()
        });
        write_skew(&[5], Write::Put(5), |txn, tree| {
            let savepoint = txn.savepoint().expect("a savepoint");
            assert!(put(txn, tree, 6).expect("it is long enough"));
            txn.rollback_to(&savepoint).expect("goes back");
            b"at least 6 long".to_vec()
        });
    }
}

/// A family counted as one as long as its name was there, also where another transaction
/// had dropped the tree without it.
#[test]
fn that_a_name_stands_for_a_tree_was_read() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let other = store.create_family("u", KeyKind::Int).expect("a family");
    let [mut first, mut second] = [store.txn(), store.txn()];
    first.begin(Isolation::Serializable).expect("begins");
    assert_eq!(first.families().expect("a list").len(), 2);
    let put = first.put(&other, Key::Int(0), b"2 families");
    put.expect("puts");

    second.begin(Isolation::Serializable).expect("begins");
    let found = second.contains(&other, Key::Int(0));
    assert!(!found.expect("reads"), "it was not committed");
    second.drop_tree(&tree).expect("drops");
    second.commit().expect("commits");
    let lost = first.commit().expect_err("they cannot be put in order");
    assert_eq!(lost.kind(), ErrorKind::Conflict);
    // What the tree holds is another matter.
    first.begin(Isolation::Serializable).expect("begins");
    assert_eq!(first.families().expect("a list").len(), 1);
    let put = first.put(&other, Key::Int(1), b"1 family");
    put.expect("puts");
    change(&store, &other, 2);
    first.commit().expect("commits");
}

/// Samples for planning are no reads, unless they are taken with a cursor that reads.
#[test]
fn samples_are_reads_where_they_are_said_to_be() {
    for estimates in [true, false] {
        let store = Store::in_memory(Options::default()).expect("opens");
        let tree = store.create_family("t", KeyKind::Int).expect("a family");
        let other = store.create_family("u", KeyKind::Int).expect("a family");
        let mut txn = store.txn();
        txn.begin_statement(&[&tree]).expect("begins");
        let rows = (0..ROWS).map(|row| (row, b"as it was".as_slice()));
        txn.put_all(&tree, rows).expect("puts");
        txn.commit().expect("commits");

        txn.begin(Isolation::Serializable).expect("begins");
        let mut cursor = match estimates {
            true => txn.cursor_to_estimate(&tree),
            false => txn.cursor(&tree),
        }
        .expect("a cursor");
        // The leaves are alike, so a share of them is about one of the rows.
        for part in 0..16 {
            assert!(cursor.seek_share(part << 28).expect("seeks"));
            let expected = ROWS * i64::from(part) / 16;
            let off = (cursor.key_int() - expected).abs();
            assert!(off < ROWS / 8, "{part}: {off} off");
            let share = cursor.share_before(Key::Int(expected)).expect("is told");
            let off = (share - f64::from(part) / 16.0).abs();
            assert!(off < 0.125, "{part}: {off} off");
        }
        txn.put(&other, Key::Int(0), b"written").expect("puts");
        change(&store, &tree, 7);
        assert_eq!(txn.commit().is_ok(), estimates);
    }
}
