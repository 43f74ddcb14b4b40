//! Several writers at once on a disk that loses power: commits are grouped, put
//! on top of one another, and checkpointed meanwhile.
//!
//! Each writer has keys of its own in the same two families, and knows what it
//! was told. After the cut its keys show all it was told was committed, and of
//! what was under way all or nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use fulgurite_sim::{Rng, SimDisk};
use fulgurite_store::{Durability, Isolation, Key, KeyKind, Options, Result, Seek, Store, Tree};

use super::{Trace, assert_no_background_panic, open, options, seeds, watch_background};

const WRITERS: usize = 3;
const FAMILIES: [&str; 2] = ["first", "second"];

/// A writer's entries: (family, number of the key) to value.
type Entries = BTreeMap<(usize, u64), Vec<u8>>;

/// What a writer's entries may be: as acknowledged, or as they would be with
/// the commit whose outcome is unknown.
#[derive(Debug, Clone, Default)]
struct Writer {
    acknowledged: Entries,
    under_way: Option<Entries>,
}

fn key(writer: usize, number: u64) -> Vec<u8> {
    // The writers' keys lie among each other's.
    format!("{number:03} of writer {writer}").into_bytes()
}

fn families(store: &Store) -> Result<Vec<Tree>> {
    FAMILIES
        .iter()
        .map(|name| store.create_family(name, KeyKind::Bytes))
        .collect()
}

/// Commits until it is told to stop, or cannot any more.
fn write(
    store: &Store,
    trees: &[Tree],
    writer: usize,
    seed: u64,
    known: &mut Writer,
) -> Result<()> {
    let mut rng = Rng::new(seed);
    let mut txn = store.txn();
    for _ in 0..25 {
        match rng.below(4) {
            0 => txn.begin_statement(&[&trees[0], &trees[1]])?,
            1 => txn.begin_immediate()?,
            _ => txn.begin(Isolation::Snapshot)?,
        }
        let mut entries = known.acknowledged.clone();
        for _ in 0..1 + rng.below(5) {
            let family = rng.index(2);
            let number = rng.below(40);
            let key = key(writer, number);
            if rng.one_in(4) {
                let deleted = txn.delete(&trees[family], Key::Bytes(&key))?;
                let known = entries.remove(&(family, number)).is_some();
                assert_eq!(deleted, known);
            } else {
                let long = if rng.one_in(8) { 3_000 } else { 60 };
                let value = vec![rng.bits() as u8; rng.index(long)];
                txn.put(&trees[family], Key::Bytes(&key), &value)?;
                entries.insert((family, number), value);
            }
        }
        match txn.commit() {
            Ok(()) => known.acknowledged = entries,
            Err(error) => {
                known.under_way = Some(entries);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Finds each writer's entries in one of its two states.
fn settle(store: &Store, trees: &[Tree], writers: &mut [Writer]) -> Result<()> {
    let mut found = vec![Entries::new(); WRITERS];
    let mut txn = store.txn();
    txn.begin_read()?;
    for (family, tree) in trees.iter().enumerate() {
        let mut cursor = txn.cursor(tree)?;
        let mut more = cursor.seek(Seek::First)?;
        while more {
            let key = String::from_utf8_lossy(cursor.key_bytes()?).into_owned();
            let (number, writer) = key.split_once(" of writer ").expect("a key of ours");
            let number = number.parse().expect("a number");
            let writer: usize = writer.parse().expect("a number");
            found[writer].insert((family, number), cursor.value()?.to_vec());
            more = cursor.next()?;
        }
    }
    for (number, (writer, found)) in writers.iter_mut().zip(found).enumerate() {
        let whole = found == writer.acknowledged || writer.under_way.as_ref() == Some(&found);
        assert!(whole, "writer {number} lost something or has half of it");
        *writer = Writer {
            acknowledged: found,
            under_way: None,
        };
    }
    Ok(())
}

/// One life: all writers at work, and a thread that makes checkpoints.
fn live(disk: &SimDisk, options: &Options, writers: &mut [Writer], seed: u64) -> Result<()> {
    let store = open(disk, options)?;
    let trees = families(&store)?;
    settle(&store, &trees, writers)?;
    assert_eq!(store.integrity_check()?, Vec::<String>::new());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, trees) = (&store, &trees);
        let handles: Vec<_> = writers
            .iter_mut()
            .enumerate()
            .map(|(writer, known)| {
                let seed = seed ^ (writer as u64 + 1) << 48;
                scope.spawn(move || write(store, trees, writer, seed, known))
            })
            .collect();
        let done = &done;
        let checkpoints = scope.spawn(move || {
            while !done.load(SeqCst) && store.checkpoint().is_ok() {
                std::thread::yield_now();
            }
        });
        let outcomes: Vec<Result<()>> = handles
            .into_iter()
            .map(|handle| handle.join().expect("a writer panicked"))
            .collect();
        done.store(true, SeqCst);
        checkpoints
            .join()
            .expect("the checkpoints' thread panicked");
        outcomes.into_iter().collect::<Result<()>>()
    })?;
    Ok(())
}

#[test]
fn several_writers_lose_nothing_acknowledged() {
    watch_background();
    let mut cuts = 0;
    for seed in seeds(500_000, 60) {
        let _trace = Trace(format!("seed {seed}"));
        let mut rng = Rng::new(seed);
        let options = Options {
            durability: [Durability::Full, Durability::Full, Durability::Normal][rng.index(3)],
            busy_timeout: std::time::Duration::from_secs(60),
            ..options()
        };
        let mut writers = vec![Writer::default(); WRITERS];
        let mut disk = SimDisk::new(seed);
        for _ in 0..3 {
            disk.stop_at(15 + rng.below(150));
            if let Err(error) = live(&disk, &options, &mut writers, rng.bits()) {
                assert!(disk.is_stopped(), "{error}");
            }
            disk.power_off();
            cuts += 1;
            // What `normal` keeps at a power cut is another test's; here the
            // process ends.
            disk = match options.durability {
                Durability::Full => disk.crash_image(rng.bits()),
                _ => disk.kill_image(),
            };
        }
        live(&disk, &options, &mut writers, rng.bits()).expect("nothing fails any more");
        live(&disk, &options, &mut writers, rng.bits()).expect("nor after that");
        assert_no_background_panic();
    }
    println!("{cuts} cuts under several writers");
}
