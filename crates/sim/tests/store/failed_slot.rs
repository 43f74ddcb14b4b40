//! A sync of the database file fails, the database is opened again on the same system,
//! and the power goes in that life.
//!
//! It came from a soak. The sync of the second meta slot failed, so the medium had the
//! slot of the checkpoint before; the system showed the new one, and does not write it
//! again by itself. The next life found both slots equal and wrote over pages that only
//! the old checkpoint has. Then the power went while it wrote the first slot, and what
//! was left was the old slot, without its pages.

use super::{PATH, Trace, factor, open, options};
use fulgurite_sim::{Call, Fault, FaultError, SimDisk};
use fulgurite_store::{Key, KeyKind, Result, Store, Tree};
use std::path::Path;

const KEYS: i64 = 12;
/// Syncs of the database file in a checkpoint: its pages and both slots.
const SYNCS: u64 = 3;

/// Every key has the number of the round that wrote it last.
#[derive(Debug, Default, Clone)]
struct Known {
    acknowledged: u8,
    tried: u8,
    rounds: u8,
}

impl Known {
    fn write_round(&mut self, store: &Store, tree: &Tree) -> Result<()> {
        self.rounds += 1;
        self.tried = self.rounds;
        let mut txn = store.txn();
        txn.begin_statement(&[tree])?;
        for key in 0..KEYS {
            txn.put(tree, Key::Int(key), &[self.rounds; 700])?;
        }
        txn.commit()?;
        self.acknowledged = self.rounds;
        Ok(())
    }

    fn compare(&mut self, store: &Store, tree: &Tree) -> Result<()> {
        let mut txn = store.txn();
        txn.begin_read()?;
        let mut seen = None;
        for key in 0..KEYS {
            let mut value = Vec::new();
            let found = txn.get_into(tree, Key::Int(key), &mut value)?;
            let round = if found { value[0] } else { 0 };
            assert_eq!(*seen.get_or_insert(round), round, "key {key}");
        }
        let round = seen.unwrap_or_default();
        let possible = [self.acknowledged, self.tried];
        assert!(possible.contains(&round), "{round} of {self:?}");
        (self.acknowledged, self.tried) = (round, round);
        Ok(())
    }
}

/// A life with two checkpoints; that sync of the last one fails.
fn live(disk: &SimDisk, failing: Option<u64>, known: &mut Known) -> Result<()> {
    let store = open(disk, &options())?;
    let tree = store.create_family("t", KeyKind::Int)?;
    known.compare(&store, &tree)?;
    known.write_round(&store, &tree)?;
    store.checkpoint()?;
    known.write_round(&store, &tree)?;
    if let Some(after) = failing {
        let fault = Fault {
            call: Some(Call::Sync),
            after,
            for_good: false,
            error: FaultError::Io,
        };
        disk.fail_under(Path::new(PATH), fault);
    }
    store.checkpoint()?;
    known.write_round(&store, &tree)
}

/// Cuts the power at every call of a life on this disk, and looks at what is left.
fn cut_everywhere(disk: &SimDisk, known: &Known) -> u64 {
    let mut cuts = 0;
    for call in 0.. {
        let (disk, mut known) = (disk.kill_image(), known.clone());
        disk.stop_at(call);
        let done = live(&disk, None, &mut known);
        if !disk.is_stopped() {
            done.expect("nothing fails any more");
            return cuts;
        }
        for seed in 0..3 * factor() {
            let _trace = Trace(format!("cut at call {call}, left by {seed}"));
            let left = disk.crash_image(seed << 32 | call);
            let mut known = known.clone();
            live(&left, None, &mut known).expect("everything is there");
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn what_a_failed_sync_left_with_the_system_is_not_relied_upon() {
    let mut cuts = 0;
    for first in 0..SYNCS {
        let (disk, mut known) = (SimDisk::new(first), Known::default());
        live(&disk, Some(first), &mut known).expect_err("a sync fails");
        disk.heal();
        let trace = Trace(format!("sync {first} failed"));
        cuts += cut_everywhere(&disk, &known);
        for second in 0..SYNCS {
            let (disk, mut known) = (disk.kill_image(), known.clone());
            live(&disk, Some(second), &mut known).expect_err("a sync fails");
            disk.heal();
            let _trace = Trace(format!("then sync {second}"));
            cuts += cut_everywhere(&disk, &known);
        }
        drop(trace);
    }
    println!("{cuts} power cuts");
}
