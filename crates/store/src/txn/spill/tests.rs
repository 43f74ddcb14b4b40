//! What a transaction holds where it writes to very many trees.

use crate::{Isolation, Key, KeyKind, Options, Store, Tree};

const TREES: u32 = 3_000;

fn families(store: &Store, keys: i64) -> Vec<Tree> {
    let made = store.transact(Isolation::Serializable, |txn| {
        let mut made = Vec::new();
        for number in 0..TREES {
            let tree = txn.create_family(&format!("{number}"), KeyKind::Int)?;
            for key in 0..keys {
                txn.put(&tree, Key::Int(key), &[1; 100])?;
            }
            made.push(tree);
        }
        Ok(made)
    });
    made.expect("they are made")
}

/// The leaf that each had edited last was never written out, and a tree that is one leaf has
/// no other: the transaction held all, however much of the cache that was, and looked for
/// what it could write at each put.
#[test]
fn trees_of_a_few_nodes_are_written_out_as_large_ones_are() {
    for keys in [1, 100] {
        let store = Store::in_memory(Options::default()).expect("opens");
        let trees = families(&store, keys);
        let mut txn = store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        for (tree, number) in trees.iter().zip(1..) {
            txn.put(tree, Key::Int(0), &[2; 100]).expect("a put");
            let held = txn.held();
            assert_eq!(held, txn.forks.iter().map(super::unwritten).sum::<usize>());
            let budget = txn.budget(held);
            assert!(
                held <= budget + budget / 4,
                "{held} nodes of {number} trees"
            );
        }
        txn.commit().expect("nobody else wrote");
        txn.begin_read().expect("begins");
        for tree in &trees {
            let mut value = Vec::new();
            assert!(txn.get_into(tree, Key::Int(0), &mut value).expect("reads"));
            assert_eq!(value, [2; 100]);
            assert_eq!(txn.count(tree).expect("a count"), keys as u64);
        }
        assert_eq!(store.integrity_check().expect("checks"), [""; 0]);
    }
}
