//! Who waits for log space writes pages of the checkpoint that it waits for. The disk
//! holds the checkpoint's thread at its first pages until another thread has come to
//! write some: if nobody took part, none of this would end.

use fulgurite_disk::{DiskError, Intercepted, Interceptor, MemoryDisk, Result as Done};
use fulgurite_store::{Compression, Durability, ErrorKind, Key, KeyKind, Options, Store};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What becomes of the first pages that another thread than the checkpoint's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    IsWritten,
    Fails,
}

#[derive(Debug, Default)]
struct Gate {
    /// While there is one, the checkpoint's thread is held.
    first: Mutex<Option<First>>,
    opened: Condvar,
}

impl Interceptor for Gate {
    fn before_write(&self, path: &Path) -> Done<()> {
        if !path.ends_with("c.db") {
            return Ok(());
        }
        let mut first = self.first.lock().unwrap();
        if std::thread::current().name() == Some("fulgurite-checkpoint") {
            while first.is_some() {
                first = self.opened.wait(first).unwrap();
            }
            return Ok(());
        }
        let was = first.take();
        self.opened.notify_all();
        match was {
            Some(First::Fails) => {
                let cause = std::io::Error::other("not this one");
                Err(DiskError::new("write", path, cause))
            }
            _ => Ok(()),
        }
    }
}

const ROWS: i64 = 6_000;

fn options() -> Options {
    Options {
        durability: Durability::Normal,
        compression: Compression::None,
        checkpoint_bytes: 1 << 20,
        log_limit_bytes: Some(2 << 20),
        busy_timeout: Duration::from_secs(60),
        ..Options::default()
    }
}

fn fill_and_read_back(first: First) {
    if std::thread::available_parallelism().map_or(1, usize::from) == 1 {
        // Nobody helps where there is one processor.
        return;
    }
    let gate = Arc::<Gate>::default();
    let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &gate));
    let open = || Store::open_on(disk.clone(), "c.db", options()).expect("opens");
    let store = open();
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    store.checkpoint().expect("a checkpoint");
    *gate.first.lock().unwrap() = Some(first);
    let mut txn = store.txn();
    let mut put = |key| {
        txn.begin_statement(&[&tree])?;
        txn.put(&tree, Key::Int(key), &[key as u8; 900])?;
        txn.commit()
    };
    // Who asked for log space before the checkpoint began that fails is told of that,
    // and can try again; who came later waits for the next one.
    let mut may_fail = first == First::Fails;
    for key in 0..ROWS {
        if let Err(error) = put(key) {
            assert!(
                std::mem::take(&mut may_fail) && error.kind() == ErrorKind::Io,
                "{error}"
            );
            put(key).expect("commits");
        }
    }
    drop(txn);
    assert_eq!(*gate.first.lock().unwrap(), None);
    assert!(first == First::Fails || store.stats().writes.helped > 0);
    drop((tree, store));
    let store = open();
    assert_eq!(
        store.integrity_check().expect("checks"),
        Vec::<String>::new()
    );
    let tree = store.family("t").expect("reads").expect("is there");
    let mut txn = store.txn();
    txn.begin_read().expect("reads");
    let mut value = Vec::new();
    for key in 0..ROWS {
        assert!(
            txn.get_into(&tree, Key::Int(key), &mut value)
                .expect("a get")
        );
        assert_eq!(value, [key as u8; 900]);
    }
}

#[test]
fn who_waits_for_log_space_writes_pages() {
    fill_and_read_back(First::IsWritten);
}

/// The checkpoint fails with it, and gives back what the portion was to have; the next
/// one writes its pages.
#[test]
fn a_portion_that_fails_is_written_by_the_next_checkpoint() {
    fill_and_read_back(First::Fails);
}
