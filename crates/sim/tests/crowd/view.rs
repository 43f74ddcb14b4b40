//! What a snapshot shows, compared with what the writers had made of it.

use super::history::{Front, OWN, Own, Place, RowKey, SHARED, Value, WRITERS};
use fulgurite_store::{Cursor, KeyKind, Result, Seek, Tree, Txn};
use std::collections::BTreeMap;

/// How far each writer had come, as the stamps in the shared trees say.
pub fn front(txn: &mut Txn, trees: &[Tree; OWN]) -> Result<Front> {
    let mut front = Front::default();
    let mut least = Front::default();
    for (writer, newest) in front.iter_mut().enumerate() {
        for place in 0..OWN {
            if let Some((commit, saw)) = stamp(txn, trees, writer, place)? {
                *newest = commit.max(*newest);
                for (least, saw) in least.iter_mut().zip(saw) {
                    *least = saw.max(*least);
                }
            }
        }
    }
    let older = front.iter().zip(least).any(|(there, seen)| *there < seen);
    assert!(!older, "{front:?} is there, and somebody saw {least:?}");
    Ok(front)
}

/// A writer's stamp in a tree.
pub fn stamp(
    txn: &mut Txn,
    trees: &[Tree; OWN],
    writer: usize,
    tree: usize,
) -> Result<Option<(usize, Front)>> {
    let mut bytes = Vec::new();
    let key = RowKey::of(writer, (tree, 0));
    let found = txn.get_into(&trees[tree], key.as_key(), &mut bytes)?;
    Ok(found.then(|| Value::stamped(&bytes)))
}

/// Panics unless the shared trees hold these states and nothing else.
pub fn check_shared(txn: &mut Txn, trees: &[Tree; OWN], states: &[Own; WRITERS]) -> Result<()> {
    for (at, tree) in trees.iter().enumerate() {
        check_tree(txn, tree, SHARED[at].0, (0..WRITERS).zip(states), at)?;
    }
    Ok(())
}

/// The same of one tree, by the place it has in these states.
pub fn check_tree<'s>(
    txn: &mut Txn,
    tree: &Tree,
    name: &str,
    states: impl Iterator<Item = (usize, &'s Own)>,
    place: usize,
) -> Result<()> {
    let mut expected: BTreeMap<Vec<u8>, (usize, Place, &Value)> = BTreeMap::new();
    for (writer, own) in states {
        for (at, value) in own.rows.range((place, 0)..(place + 1, 0)) {
            let key = RowKey::of(writer, *at).ordered();
            expected.insert(key, (writer, *at, value));
        }
    }
    assert_eq!(txn.count(tree)?, expected.len() as u64, "entries of {name}");
    let mut cursor = txn.cursor(tree)?;
    let mut more = cursor.seek(Seek::First)?;
    for (key, (writer, row, value)) in &expected {
        assert!(more, "{name} ends before row {row:?} of writer {writer}");
        assert_eq!(&ordered(&mut cursor, tree)?, key, "row {row:?} of {writer}");
        let same = cursor.value()? == value.bytes().as_slice();
        assert!(same, "row {row:?} of {writer} is not {value:?}");
        more = cursor.next()?;
    }
    assert!(!more, "{name} goes on behind its last row");
    Ok(())
}

fn ordered(cursor: &mut Cursor, tree: &Tree) -> Result<Vec<u8>> {
    Ok(match tree.kind() {
        KeyKind::Int => cursor.key_int().to_be_bytes().to_vec(),
        KeyKind::Bytes => cursor.key_bytes()?.to_vec(),
    })
}
