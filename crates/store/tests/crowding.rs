//! When unwritten pages call for a checkpoint. A table that changes all over and takes
//! more than a quarter of the cache was written again and again, one checkpoint after
//! the other, which took a processor for nothing.

use fulgurite_disk::{Driver, Machine, MemoryDisk};
use fulgurite_store::{Isolation, Key, KeyKind, Options, Store, Tree, Txn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const VALUE: [u8; 500] = [7; 500];
/// Rows of a leaf.
const ROWS: i64 = 7;

/// A clock that stands while somebody commits, and otherwise goes on by a millisecond
/// whenever somebody looks.
#[derive(Debug, Default)]
struct Looked {
    millis: AtomicU64,
    stands: AtomicBool,
}

impl Driver for Looked {
    fn now(&self) -> Duration {
        let step = u64::from(!self.stands.load(Relaxed));
        Duration::from_millis(self.millis.fetch_add(step, Relaxed))
    }

    fn pass(&self, time: Duration) {
        self.millis.fetch_add(time.as_millis() as u64, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

/// A store of a little less than 2,048 frames, or as many times that, whose log calls for
/// nothing.
struct Table {
    clock: Arc<Looked>,
    store: Store,
    tree: Tree,
    txn: Txn,
}

impl Table {
    fn new() -> Self {
        Self::in_cache_of(1)
    }

    fn in_cache_of(times: usize) -> Self {
        let clock = Arc::new(Looked::default());
        let options = Options {
            cache_bytes: times * (8 << 20),
            checkpoint_bytes: 1 << 30,
            log_limit_bytes: Some(1 << 31),
            driver: Some(clock.clone()),
            ..Options::default()
        };
        let disk = Arc::new(MemoryDisk::new());
        let store = Store::open_on(disk, "crowding.db", options).expect("opens");
        Self {
            clock,
            tree: store.create_family("t", KeyKind::Int).expect("a family"),
            txn: store.txn(),
            store,
        }
    }

    /// Writes every row of so many leaves, a leaf a commit, and then does what there is
    /// to do. Whether that was a checkpoint.
    fn change_all(&mut self, leaves: i64) -> bool {
        self.clock.stands.store(true, Relaxed);
        for leaf in 0..leaves {
            self.txn.begin_statement(&[&self.tree]).expect("begins");
            for key in leaf * ROWS..(leaf + 1) * ROWS {
                let put = self.txn.put(&self.tree, Key::Int(key), &VALUE);
                put.expect("a put");
            }
            self.txn.commit().expect("commits");
        }
        self.clock.stands.store(false, Relaxed);
        let before = self.store.stats().checkpoint;
        self.store.tick().expect("a tick");
        self.store.stats().checkpoint != before
    }
}

#[test]
fn a_table_that_changes_all_over_is_not_written_without_end() {
    let mut table = Table::new();
    let checkpoints = (0..30).filter(|_| table.change_all(550)).count();
    assert!((1..=10).contains(&checkpoints), "{checkpoints} of 30 times");
}

#[test]
fn what_a_snapshot_needs_comes_on_top() {
    let mut table = Table::new();
    assert!(!table.change_all(400));
    let mut reader = table.store.txn();
    reader.begin_read().expect("begins");
    let made = table.change_all(400);
    let held = table.store.stats();
    assert!(held.cache.unwritten >= 800, "{held:?}");
    assert!(!made, "{held:?}");
    let mut value = Vec::new();
    let found = reader.get_into(&table.tree, Key::Int(0), &mut value);
    assert!(found.expect("reads"));
}

#[test]
fn what_fills_half_of_the_cache_is_written_at_once() {
    let mut table = Table::new();
    for _ in 0..3 {
        assert!(table.change_all(1_200), "{:?}", table.store.stats());
    }
}

/// Where unwritten pages filled half of the cache, whosever they were, every transaction
/// wrote its own out from the seventeenth on, with a thread for each, and read them back
/// to change them again: eight threads that update a hundred rows each made a fourth
/// of the transactions.
#[test]
fn a_transaction_keeps_its_share_where_others_fill_half_of_the_cache() {
    const LEAVES: i64 = 1_200;
    const CHANGED: i64 = 20;
    let mut table = Table::new();
    table.clock.stands.store(true, Relaxed);
    table.txn.begin_statement(&[&table.tree]).expect("begins");
    for key in 0..LEAVES * ROWS {
        let put = table.txn.put(&table.tree, Key::Int(key), &VALUE);
        put.expect("a put");
    }
    table.txn.commit().expect("commits");
    for leaf in 0..LEAVES {
        table.txn.begin_statement(&[&table.tree]).expect("begins");
        let key = Key::Int(leaf * ROWS);
        table.txn.put(&table.tree, key, &VALUE).expect("a put");
        table.txn.commit().expect("commits");
    }
    let before = table.store.stats().cache.unwritten;
    assert!(before > 1_024, "{:?}", table.store.stats());
    let mut txn = table.store.txn();
    txn.begin(Isolation::Serializable).expect("begins");
    for leaf in 0..CHANGED {
        let key = Key::Int(leaf * 59 * ROWS);
        txn.put(&table.tree, key, &VALUE).expect("a put");
    }
    let held = table.store.stats().cache.unwritten - before;
    assert!(held >= CHANGED as u64, "{held} pages, and the way to them");
    txn.commit().expect("nobody else wrote");
}

impl Table {
    /// A tree of so many leaves, written.
    fn tree_of(&self, name: &str, leaves: i64) -> Tree {
        let tree = self.store.create_family(name, KeyKind::Int);
        let tree = tree.expect("a family");
        let mut txn = self.store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        for key in 0..leaves * ROWS {
            txn.put(&tree, Key::Int(key), &VALUE).expect("a put");
        }
        txn.commit().expect("commits");
        self.store.checkpoint().expect("a checkpoint");
        tree
    }

    /// A transaction that changes a row of each leaf, all over, some times.
    fn change_in_no_order(&self, tree: &Tree, leaves: i64) -> Txn {
        let mut txn = self.store.txn();
        txn.begin(Isolation::Serializable).expect("begins");
        for row in 0..4 {
            for number in 0..leaves {
                let key = number * 7_919 % leaves * ROWS + row;
                txn.put(tree, Key::Int(key), &[7; 20]).expect("a put");
            }
        }
        txn
    }

    fn unwritten(&self) -> u64 {
        self.store.stats().cache.unwritten
    }
}

/// It held a third of the cache and wrote the rest again and again, though there was room
/// for it: 1,000,000 rows with a scattered index in a cache of 64 MiB were 1,500 MB of
/// pages, for a file of 72, and took twice as long as SQLite.
#[test]
fn scattered_changes_are_written_seldom_where_most_of_them_fit() {
    const LEAVES: i64 = 801;
    let table = Table::new();
    let index = table.tree_of("index", LEAVES);
    let before = table.store.stats().writes.pages;
    let mut txn = table.change_in_no_order(&index, LEAVES);
    // A table that grows at its end beside it gives its pages away first.
    for row in 0..2_000 {
        let put = txn.put(&table.tree, Key::Int(row), &VALUE);
        put.expect("a put");
        let key = row * 7_919 % LEAVES * ROWS + 5;
        txn.put(&index, Key::Int(key), &[7; 20]).expect("a put");
    }
    txn.commit().expect("commits");
    table.store.checkpoint().expect("a checkpoint");
    let written = table.store.stats().writes.pages - before;
    assert!(written < 2_000, "{written} pages for 1,100");
}

/// Who does not commit would otherwise call for one checkpoint after the other, none of
/// which can write what it holds, and hold up all others.
#[test]
fn what_a_large_transaction_holds_calls_for_no_checkpoint() {
    const LEAVES: i64 = 4_001;
    let mut table = Table::in_cache_of(2);
    let tree = table.tree_of("large", LEAVES);
    let held = table.change_in_no_order(&tree, LEAVES);
    assert!(table.unwritten() > 1_500, "{}", table.unwritten());
    table.store.checkpoint().expect("a checkpoint");
    let before = table.store.stats().checkpoint;
    (0..20).for_each(|_| _ = table.change_all(80));
    assert_eq!(table.store.stats().checkpoint, before);
    // What the others change is written as in a cache of what is left.
    table.change_all(1_000);
    assert!(table.store.stats().checkpoint > before);
    drop(held);
    assert!(!table.change_all(500), "{:?}", table.store.stats());
}

#[test]
fn large_transactions_share_what_is_set_aside() {
    const LEAVES: i64 = 4_001;
    let table = Table::in_cache_of(2);
    let trees = ["first", "second", "third"].map(|name| table.tree_of(name, LEAVES));
    let first = table.change_in_no_order(&trees[0], LEAVES);
    let alone = table.unwritten();
    assert!((1_500..2_600).contains(&alone), "{alone}");
    // The first one rests and keeps what it has; the second one makes do with little.
    let second = table.change_in_no_order(&trees[1], LEAVES);
    let both = table.unwritten();
    assert!((alone - 100..3_000).contains(&both), "{alone}, {both}");
    drop(first);
    let less = table.unwritten();
    let third = table.change_in_no_order(&trees[2], LEAVES);
    let both = table.unwritten();
    assert!((less + 500..2_000).contains(&both), "{less}, {both}");
    drop((second, third));
    assert_eq!(table.unwritten(), 0);
}
