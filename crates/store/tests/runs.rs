//! A cursor's runs: the entries of a leaf at once.

use fulgurite_store::{Cursor, Isolation, Key, KeyKind, Options, Seek, Store, Tree};

const ROWS: i64 = 3_000;

fn value(key: i64) -> Vec<u8> {
    // Now and then one that lies outside its leaf.
    let len = if key % 97 == 0 { 20_000 } else { key % 40 };
    vec![key as u8; len as usize]
}

fn filled() -> (Store, Tree) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store.create_family("rows", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..ROWS {
        txn.put(&tree, Key::Int(key * 2), &value(key))
            .expect("puts");
    }
    txn.commit().expect("commits");
    (store, tree)
}

/// Reads up to `last` by runs, checks every entry, and says how many there were.
fn read(cursor: &mut Cursor, from: i64, last: i64) -> i64 {
    let mut key = from;
    let mut more = cursor.seek(Seek::AtLeast(Key::Int(from))).expect("seeks");
    while more {
        let run = cursor.run().up_to(last).first(50);
        for (found, place) in run.keys().zip(run.places()) {
            assert_eq!(found, key);
            let expected = value(key / 2);
            match place {
                Some((start, end)) => assert_eq!(run.page()[start..end], expected),
                None => assert!(expected.len() > 10_000),
            }
            key += 2;
        }
        let taken = run.len();
        more = taken > 0 && cursor.skip(taken).expect("skips");
    }
    (key - from) / 2
}

#[test]
fn runs_give_what_steps_give() {
    let (store, tree) = filled();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.run().is_empty());
    assert_eq!(read(&mut cursor, 0, i64::MAX), ROWS);
    assert!(!cursor.valid());
    assert_eq!(read(&mut cursor, 1_000, 1_999), 500);
    assert_eq!(cursor.key_int(), 2_000);
    assert!(cursor.skip(usize::MAX).expect("skips"));
}

#[test]
fn runs_go_back_as_steps_do() {
    let (store, tree) = filled();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.run_back().is_empty());
    for (from, last) in [(ROWS * 2 - 2, i64::MIN), (4_001, 1_001), (998, 998)] {
        let mut key = from - from % 2;
        let mut more = cursor.seek(Seek::AtMost(Key::Int(from))).expect("seeks");
        while more {
            let run = cursor.run_back().down_to(last).last(50);
            for found in run.keys().rev() {
                assert_eq!(found, key);
                key -= 2;
            }
            let taken = run.len();
            more = taken > 0 && cursor.skip_back(taken).expect("skips");
        }
        assert_eq!(key, last.max(0) - 2 + last.max(0) % 2);
        assert_eq!(cursor.valid(), last > 0);
        assert!(last < 0 || cursor.key_int() == key);
    }
    assert!(cursor.seek(Seek::Last).expect("seeks"));
    assert!(cursor.skip_back(usize::MAX).expect("skips"));
}

fn word(key: i64) -> Vec<u8> {
    format!("{}{key:06}", "ab".repeat((key % 5) as usize)).into_bytes()
}

/// A store with a family of words.
fn words() -> (Store, Tree) {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store
        .create_family("words", KeyKind::Bytes)
        .expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..ROWS {
        txn.put(&tree, Key::Bytes(&word(key)), &value(key))
            .expect("puts");
    }
    txn.commit().expect("commits");
    drop(txn);
    (store, tree)
}

#[test]
fn entries_give_what_steps_give() {
    let (store, tree) = words();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let end = b"abab001502";
    let mut steps = txn.cursor(&tree).expect("a cursor");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.entries().is_empty());
    let mut more = steps.seek(Seek::First).expect("seeks");
    cursor.seek(Seek::First).expect("seeks");
    let mut count = 0;
    while more {
        let within = cursor.entries();
        let run = within.before(end).first(50);
        if run.is_empty() {
            break;
        }
        for entry in run.iter() {
            let mut key = run.prefix().to_vec();
            entry.append_to(&mut key);
            assert_eq!(key, steps.key_bytes().expect("a key"));
            match entry.value {
                Some(stored) => assert_eq!(stored, steps.value().expect("a value")),
                None => assert!(steps.value().expect("a value").len() > 10_000),
            }
            count += 1;
            more = steps.next().expect("steps");
        }
        assert_eq!(within.first(run.len()).before(&[0xff]).len(), run.len());
        cursor.skip(run.len()).expect("skips");
    }
    assert_eq!(steps.key_bytes().expect("a key"), end);
    assert_eq!(
        count,
        (0..ROWS).filter(|key| word(*key).as_slice() < end).count()
    );
}

#[test]
fn entries_go_back_as_steps_do() {
    let (store, tree) = words();
    let mut txn = store.txn();
    txn.begin_read().expect("begins");
    let mut steps = txn.cursor(&tree).expect("a cursor");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.entries_back().is_empty());
    for (most, start) in [(50, "abab001502"), (7, ""), (usize::MAX, "abab0015")] {
        let start = start.as_bytes();
        let mut more = steps.seek(Seek::Last).expect("seeks");
        cursor.seek(Seek::Last).expect("seeks");
        let mut count = 0;
        loop {
            let run = cursor.entries_back().last(most).at_least(start);
            if run.is_empty() {
                break;
            }
            assert!(run.len() <= most);
            for entry in run.iter().rev() {
                let mut key = run.prefix().to_vec();
                entry.append_to(&mut key);
                assert!(more && key.as_slice() >= start);
                assert_eq!(key, steps.key_bytes().expect("a key"));
                count += 1;
                more = steps.prev().expect("steps");
            }
            let there = cursor.skip_back(run.len()).expect("skips");
            assert_eq!(there, more);
            if !there {
                break;
            }
        }
        let within = (0..ROWS).filter(|key| word(*key).as_slice() >= start);
        assert_eq!(count, within.count());
    }
}

#[test]
fn leaves_of_long_keys_give_no_entries() {
    let store = Store::in_memory(Options::default()).expect("opens");
    let tree = store
        .create_family("words", KeyKind::Bytes)
        .expect("a family");
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in [vec![b'a'; 20_000], b"b".to_vec()] {
        txn.put(&tree, Key::Bytes(&key), b"").expect("puts");
    }
    txn.commit().expect("commits");
    txn.begin_read().expect("begins");
    let mut cursor = txn.cursor(&tree).expect("a cursor");
    assert!(cursor.seek(Seek::First).expect("seeks"));
    assert!(cursor.entries().is_empty());
    assert!(cursor.entries_back().is_empty());
}

#[test]
fn what_a_run_passed_was_read() {
    for (inserted, conflicts) in [(501, true), (601, true), (999, false)] {
        let (store, tree) = filled();
        let other = store
            .create_family("notes", KeyKind::Int)
            .expect("a family");
        let mut reader = store.txn();
        reader.begin(Isolation::Serializable).expect("begins");
        let mut cursor = reader.cursor(&tree).expect("a cursor");
        // The entry after the last one wanted, 602, is looked at too.
        assert_eq!(read(&mut cursor, 400, 600), 101);
        drop(cursor);
        reader.put(&other, Key::Int(1), b"sum").expect("puts");

        let mut writer = store.txn();
        writer.begin_statement(&[&tree]).expect("begins");
        writer.put(&tree, Key::Int(inserted), b"new").expect("puts");
        writer.commit().expect("commits");
        assert_eq!(reader.commit().is_err(), conflicts, "key {inserted}");
    }
}
