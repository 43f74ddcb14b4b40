//! What cursors have passed is what a transaction depends on: no less, or it would commit
//! on answers that are not true any more, and no more, or it would lose for nothing. Within
//! a leaf a cursor tells only how far it is, and the keys are looked up when they are asked
//! for, so this goes on in both directions, turns round, ends in the midst of leaves, and
//! leaves cursors open at the commit, beside a plain model.

mod common;

use common::Rng;
use fulgurite_store::{Cursor, ErrorKind, Isolation, Key, KeyKind, Options, Seek, Store, Tree};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Keys are numbers below this.
const END: u64 = 1_500;

#[derive(Clone, Copy, Debug)]
enum Keys {
    Int,
    Short,
    /// Every 200th is long, so some leaves have such and others have not.
    Long,
}

impl Keys {
    fn bytes(self, number: u64) -> Vec<u8> {
        let mut key = format!("key {number:05}").into_bytes();
        if matches!(self, Keys::Long) && number.is_multiple_of(200) {
            key.resize(3_000, b'x');
        }
        key
    }

    fn with<T>(self, number: u64, then: impl FnOnce(Key<'_>) -> T) -> T {
        match self {
            Keys::Int => then(Key::Int(number as i64)),
            Keys::Short | Keys::Long => then(Key::Bytes(&self.bytes(number))),
        }
    }
}

/// A cursor, and what is known of it.
struct Known {
    cursor: Cursor,
    at: Option<u64>,
    low: u64,
    high: u64,
}

struct Model {
    keys: Keys,
    tree: Tree,
    present: BTreeSet<u64>,
    read: Vec<bool>,
}

impl Model {
    fn change(&mut self, store: &Store, number: u64, value: u64) {
        let mut txn = store.txn();
        txn.begin_statement(&[&self.tree]).unwrap();
        let value = format!("{value:040}");
        let put = |key: Key<'_>| txn.put(&self.tree, key, value.as_bytes());
        self.keys.with(number, put).unwrap();
        txn.commit().unwrap();
        self.present.insert(number);
    }

    fn note_read(&mut self, known: &Known, from: u64, to: u64) {
        let to = to.min(END - 1).min(known.high);
        for number in from.max(known.low)..=to {
            self.read[number as usize] = true;
        }
    }

    fn check_place(&self, known: &mut Known, found: bool) {
        assert_eq!(found, known.at.is_some());
        let Some(at) = known.at else {
            return;
        };
        match self.keys {
            Keys::Int => assert_eq!(known.cursor.key_int(), at as i64),
            _ => assert_eq!(known.cursor.key_bytes().unwrap(), self.keys.bytes(at)),
        }
    }

    /// Puts the cursor somewhere, mostly within bounds that it says before.
    fn seek(&mut self, known: &mut Known, rng: &mut Rng) {
        (known.low, known.high) = (0, END);
        if rng.chance(1, 2) {
            known.low = rng.below(END);
            known.high = (known.low + rng.below(300)).min(END);
        }
        let (low, high) = (self.keys.bytes(known.low), self.keys.bytes(known.high));
        let (low, high) = match self.keys {
            Keys::Int => (Key::Int(known.low as i64), Key::Int(known.high as i64)),
            _ => (Key::Bytes(&low), Key::Bytes(&high)),
        };
        let bounds = (Bound::Included(low), Bound::Included(high));
        known.cursor.narrow(bounds.0, bounds.1);
        let to = known.low + rng.below(known.high - known.low + 1);
        let after = self.present.range(to + 1..).next().copied();
        let before = self.present.range(..to).next_back().copied();
        let itself = self.present.get(&to).copied();
        let which = rng.below(4);
        known.at = match which {
            0 => itself.or(after),
            1 => after,
            2 => itself.or(before),
            _ => before,
        };
        let cursor = &mut known.cursor;
        let found = self.keys.with(to, |key| match which {
            0 => cursor.seek(Seek::AtLeast(key)),
            1 => cursor.seek(Seek::After(key)),
            2 => cursor.seek(Seek::AtMost(key)),
            _ => cursor.seek(Seek::Before(key)),
        });
        self.check_place(known, found.unwrap());
        match which {
            0 => self.note_read(known, to, known.at.unwrap_or(END)),
            1 => self.note_read(known, to + 1, known.at.unwrap_or(END)),
            2 => self.note_read(known, known.at.unwrap_or(0), to),
            _ if to > 0 => self.note_read(known, known.at.unwrap_or(0), to - 1),
            _ => {}
        }
    }

    fn go_on(&mut self, known: &mut Known, rng: &mut Rng) {
        let forward = rng.chance(1, 2);
        let skips = forward && rng.chance(1, 4);
        for _ in 0..rng.below(120) {
            let Some(at) = known.at else {
                return;
            };
            if forward {
                known.at = self.present.range(at + 1..).next().copied();
                let found = match skips {
                    true => known.cursor.skip(1),
                    false => known.cursor.next(),
                };
                self.check_place(known, found.unwrap());
                self.note_read(known, at, known.at.unwrap_or(END));
            } else {
                known.at = self.present.range(..at).next_back().copied();
                let found = known.cursor.prev().unwrap();
                self.check_place(known, found);
                self.note_read(known, known.at.unwrap_or(0), at);
            }
        }
    }

    /// A number beside which what was read begins or ends, or any one.
    fn pick(&self, rng: &mut Rng) -> u64 {
        let from = rng.below(END - 1) as usize;
        let edge = (from..END as usize - 1).find(|at| self.read[*at] != self.read[*at + 1]);
        match edge {
            Some(edge) if rng.chance(4, 5) => edge as u64 + rng.below(2),
            _ => from as u64,
        }
    }
}

fn run(keys: Keys, seed: u64, rounds: u64) {
    let mut rng = Rng::new(seed);
    let store = Store::in_memory(Options::default()).unwrap();
    let kind = match keys {
        Keys::Int => KeyKind::Int,
        Keys::Short | Keys::Long => KeyKind::Bytes,
    };
    let tree = store.create_family("t", kind).unwrap();
    let other = store.create_family("u", KeyKind::Int).unwrap();
    let mut model = Model {
        keys,
        tree,
        present: BTreeSet::new(),
        read: vec![false; END as usize],
    };
    for number in (0..END).filter(|number| number % 3 != 1 && !(600..700).contains(number)) {
        model.change(&store, number, 0);
    }
    let mut conflicts = 0;
    let mut txn = store.txn();
    for round in 1..=rounds {
        model.read.fill(false);
        txn.begin(Isolation::Serializable).unwrap();
        txn.put(&other, Key::Int(0), b"written").unwrap();
        let mut open: Vec<Known> = Vec::new();
        for _ in 0..1 + rng.below(8) {
            if open.is_empty() || rng.chance(1, 6) {
                open.push(Known {
                    cursor: txn.cursor(&model.tree).unwrap(),
                    at: None,
                    low: 0,
                    high: END,
                });
            }
            let which = rng.below(open.len() as u64) as usize;
            match rng.below(8) {
                0 if open.len() > 1 => drop(open.swap_remove(which)),
                1..4 => model.seek(&mut open[which], &mut rng),
                _ => model.go_on(&mut open[which], &mut rng),
            }
        }
        let number = model.pick(&mut rng);
        model.change(&store, number, round);
        let outcome = txn.commit().map_err(|error| error.kind());
        let expected = match model.read[number as usize] {
            true => Err(ErrorKind::Conflict),
            false => Ok(()),
        };
        assert_eq!(outcome, expected, "{keys:?}, round {round}: {number}");
        conflicts += u64::from(outcome.is_err());
    }
    println!("{keys:?}, seed {seed}: {conflicts} conflicts of {rounds}");
    assert!((rounds / 10..rounds / 10 * 9).contains(&conflicts));
}

#[test]
fn a_transaction_depends_on_what_its_cursors_passed() {
    let first = common::env("FULGURITE_PASSED_SEED", 1);
    let rounds = common::env("FULGURITE_PASSED_ROUNDS", 2_000);
    run(Keys::Int, first, rounds);
    run(Keys::Short, first, rounds);
    run(Keys::Long, first, rounds / 4);
}
