//! What was appended to a log and promised, call by call.

use fulgurite_sim::Rng;
use std::collections::BTreeMap;

/// Who appended a record, and which of its own that was.
pub type Name = (u8, u32);

/// A record's bytes: they say whose it is, and follow from that.
pub fn payload((writer, number): Name, len: usize) -> Vec<u8> {
    let mut bytes = vec![writer];
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&(len as u32).to_le_bytes());
    let mut rng = Rng::new(u64::from(number) << 8 | u64::from(writer));
    bytes.extend((0..len).map(|_| rng.bits() as u8));
    bytes
}

/// Whose it is; panics if nobody appended it.
pub fn name(bytes: &[u8]) -> Name {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
    let name = (bytes[0], word(1));
    assert!(
        bytes == payload(name, word(5) as usize),
        "a record that nobody appended: {name:?}"
    );
    name
}

/// See the module's header. Positions are those of records.
#[derive(Debug, Default)]
pub struct Notes {
    /// The records whose append returned.
    appended: BTreeMap<u64, Name>,
    /// From which call on everything up to a position is durable, and written.
    durable: Vec<(u64, u64)>,
    written: Vec<(u64, u64)>,
    /// From which call on what is before a position may be gone, and is.
    asked: Vec<(u64, u64)>,
    given_up: Vec<(u64, u64)>,
}

fn highest(notes: &[(u64, u64)], call: u64) -> u64 {
    let until = notes.iter().filter(|(from, _)| *from <= call);
    until.map(|(_, position)| *position).max().unwrap_or(0)
}

impl Notes {
    pub fn append(&mut self, position: u64, name: Name) {
        let before = self.appended.insert(position, name);
        assert_eq!(before, None, "two records at {position}");
    }

    pub fn durable(&mut self, call: u64, position: u64) {
        self.durable.push((call, position));
        self.written.push((call, position));
    }

    pub fn written(&mut self, call: u64, position: u64) {
        self.written.push((call, position));
    }

    pub fn asked(&mut self, call: u64, position: u64) {
        self.asked.push((call, position));
    }

    pub fn given_up(&mut self, call: u64, position: u64) {
        self.given_up.push((call, position));
    }

    /// Up to where a power cut in this call leaves everything, or the end of the
    /// process alone.
    pub fn least(&self, call: u64, power_cut: bool) -> u64 {
        let notes = if power_cut {
            &self.durable
        } else {
            &self.written
        };
        highest(notes, call)
    }

    /// Panics if these records are not what a log that ended in this call may hold,
    /// with everything up to `least`.
    pub fn check(&self, call: u64, least: u64, found: &[(u64, Vec<u8>)]) {
        let asked = highest(&self.asked, call);
        let given_up = highest(&self.given_up, call);
        let mut last: BTreeMap<u8, u32> = BTreeMap::new();
        for (position, bytes) in found {
            let (writer, number) = name(bytes);
            assert!(*position >= given_up, "{position} was given up");
            if let Some(known) = self.appended.get(position) {
                assert_eq!((writer, number), *known, "at {position}");
            }
            let before = last.insert(writer, number);
            assert!(
                before.is_none_or(|before| before + 1 == number),
                "record {number} of {writer} after {before:?}"
            );
        }
        let is_there = |position| found.binary_search_by_key(&position, |(at, _)| *at).is_ok();
        let first = found.first().map_or(u64::MAX, |(position, _)| *position);
        let end = found.last().map_or(0, |(position, _)| *position);
        for (position, name) in &self.appended {
            let must = *position >= asked && *position <= least;
            let lies_within = (first..end).contains(position);
            assert!(
                is_there(*position) || !(must || lies_within),
                "record {name:?} at {position} is missing; {least} is promised, {asked} given up"
            );
        }
    }
}
