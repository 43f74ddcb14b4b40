//! What the integrity check says of a damaged file.

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{Key, KeyKind, Options, Result, Store};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "rot.db";

fn open(disk: &Arc<MemoryDisk>, read_only: bool) -> Result<Store> {
    let options = Options {
        page_size: 4096,
        cache_bytes: 1 << 20,
        read_only,
        ..Options::default()
    };
    Store::open_on(disk.clone(), NAME, options)
}

/// Of a page that could not be read, all that lies below it was reported as well, as space
/// that nobody used.
#[test]
fn a_damaged_page_is_reported_and_not_what_lies_below_it() {
    let disk = Arc::new(MemoryDisk::new());
    let store = open(&disk, false).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    txn.begin_immediate().expect("begins");
    for key in 0..400 {
        // Nothing to compress, so that there are many leaves.
        let value: Vec<u8> = (0..120_u64)
            .map(|i| ((key as u64 * 1009 + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        txn.put(&tree, Key::Int(key), &value).expect("puts");
    }
    txn.commit().expect("commits");
    drop((txn, tree, store));
    let file = disk
        .open(Path::new(NAME), OpenOptions::WRITE)
        .expect("opens");
    let mut reported = 0;
    for at in (8192..file.len().expect("a length")).step_by(97) {
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ 0x20], at).expect("writes");
        if let Ok(store) = open(&disk, true) {
            let problems = store.integrity_check().expect("checks");
            reported += problems.len();
            let lost = problems
                .iter()
                .find(|p| p.contains("neither used nor free"));
            assert_eq!(lost, None, "byte {at}: {problems:?}");
        }
        file.write_at(&byte, at).expect("writes");
    }
    assert!(reported > 100, "{reported}");
    let problems = open(&disk, true).expect("opens").integrity_check();
    assert_eq!(problems.expect("checks"), Vec::<String>::new());
}
