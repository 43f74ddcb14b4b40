//! A stand-in for the store: it commits to the log, makes checkpoints whose
//! only content is their sequence number, recovers, and knows what to expect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fulgurite_disk::{Disk, DiskError, OpenOptions};
use fulgurite_sim::{Rng, SimDisk};
use fulgurite_wal::{Durability, Error, GenerationId, Kind, Recovery, TwinLog, WalOptions};

const DATABASE: [u8; 16] = *b"power loss tests";
const BASE: &str = "d/p.db";

/// Says on a panic which run it was.
pub struct Trace(pub String);

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in: {}", self.0);
        }
    }
}

/// What was written, and what was promised about it.
#[derive(Default)]
pub struct Oracle {
    records: BTreeMap<u64, Vec<u8>>,
    /// What must survive a power cut.
    pub promised: u64,
    /// What must survive the end of the process.
    pub acked: u64,
    /// What a later record or begin record says was durable.
    pub testified: u64,
    lives: u64,
}

enum Stop {
    /// The disk failed, as the test wanted.
    Disk,
}

impl From<DiskError> for Stop {
    fn from(_: DiskError) -> Self {
        Self::Disk
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            // Closing that was cut short has closed all the same.
            Error::Disk(_) | Error::Closed => Self::Disk,
            Error::Poisoned(cause) if matches!(*cause, Error::Disk(_)) => Self::Disk,
            other => panic!("{other}"),
        }
    }
}

impl Oracle {
    /// Recovers and compares. The last record that is there.
    pub fn check(&self, disk: &SimDisk) -> Result<u64, Error> {
        let after = read_checkpoint(disk)?;
        let mut recovery = Recovery::open(
            Arc::new(disk.clone()),
            Path::new(BASE),
            DATABASE,
            after,
            false,
        )?;
        let mut expected = after;
        recovery.replay(&mut |record| {
            expected += 1;
            assert_eq!(record.seq, expected, "a gap");
            let placed = self
                .records
                .get(&record.seq)
                .expect("a record nobody placed");
            assert!(
                record.payload == placed,
                "record {} has other bytes than it was given",
                record.seq
            );
            assert_eq!(record.kind, kind_of(placed));
            Ok(())
        })?;
        assert_eq!(recovery.last_seq(), expected);
        Ok(expected)
    }
}

fn kind_of(payload: &[u8]) -> Kind {
    if payload.len().is_multiple_of(5) {
        Kind::Attach
    } else {
        Kind::Commit
    }
}

fn read_checkpoint(disk: &SimDisk) -> Result<u64, DiskError> {
    if !disk.exists(Path::new(BASE))? {
        return Ok(0);
    }
    let file = disk.open(Path::new(BASE), OpenOptions::READ)?;
    let mut newest = 0;
    for slot in 0..2u64 {
        let mut bytes = [0; 16];
        if file.len()? >= slot * 4096 + 16 {
            file.read_at(&mut bytes, slot * 4096)?;
            let (seq, check) = bytes.split_at(8);
            if seq.iter().zip(check).all(|(a, b)| *a == !*b) {
                newest = newest.max(u64::from_le_bytes(seq.try_into().unwrap()));
            }
        }
    }
    Ok(newest)
}

/// Two slots, the older one overwritten, synced: as the store's meta pages.
fn write_checkpoint(disk: &SimDisk, seq: u64, turn: u64) -> Result<(), DiskError> {
    let file = disk.open(Path::new(BASE), OpenOptions::CREATE)?;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    bytes[8..].copy_from_slice(&(!seq).to_le_bytes());
    file.write_at(&bytes, turn % 2 * 4096)?;
    file.sync_data()?;
    disk.sync_dir(Path::new("d"))
}

/// One life of the process: recovery, then random steps until it ends or the
/// disk fails.
pub struct Life {
    disk: SimDisk,
    durability: Durability,
    rng: Rng,
    head: u64,
    turn: u64,
    checkpoint: Option<(GenerationId, u64)>,
    /// What the last durable checkpoint covers. The file may hold a newer one that
    /// could not be synced.
    covered: u64,
}

impl Life {
    pub fn new(disk: &SimDisk, durability: Durability, seed: u64) -> Self {
        Self {
            disk: disk.clone(),
            durability,
            rng: Rng::new(seed),
            head: 0,
            turn: 0,
            checkpoint: None,
            covered: 0,
        }
    }

    /// Lives, and takes down what was promised.
    pub fn run(mut self, oracle: &mut Oracle, steps: usize) {
        oracle.lives += 1;
        // What the disk refused is for the next life to find out.
        let _ = self.try_run(oracle, steps);
    }

    fn try_run(&mut self, oracle: &mut Oracle, steps: usize) -> Result<(), Stop> {
        let mut wal = self.open(oracle)?;
        for _ in 0..steps {
            let result = self.step(&wal, oracle);
            self.note(&wal, oracle);
            if result.is_err() {
                // A program may go on trying; nothing false may come of it.
                for _ in 0..3 {
                    if self.step(&wal, oracle).is_ok_and(|closed| closed) {
                        break;
                    }
                    self.note(&wal, oracle);
                }
            }
            if result? {
                drop(wal);
                wal = self.open(oracle)?;
            }
        }
        Ok(())
    }

    fn note(&self, wal: &TwinLog, oracle: &mut Oracle) {
        oracle.acked = oracle.acked.max(wal.acked());
        let safe = if self.durability == Durability::Full {
            wal.acked()
        } else {
            wal.durable()
        };
        if self.durability != Durability::Off {
            oracle.promised = oracle.promised.max(safe);
        }
    }

    fn open(&mut self, oracle: &mut Oracle) -> Result<TwinLog, Stop> {
        self.checkpoint = None;
        let last = oracle.check(&self.disk)?;
        assert!(
            last >= oracle.promised,
            "recovered up to {last}, promised {}",
            oracle.promised
        );
        oracle.records.split_off(&(last + 1));
        oracle.acked = last;
        self.head = last;
        let after = read_checkpoint(&self.disk)?;
        // The slot that does not hold the newest checkpoint: slots hold
        // different numbers as long as nothing is written twice.
        self.turn = self.slot_of(after)? + 1;
        if after > 0 {
            // The last process may have ended before it could sync this, or its
            // sync may have failed.
            write_checkpoint(&self.disk, after, self.turn - 1)?;
        }
        self.covered = after;
        self.write_checkpoint(oracle, last)?;
        let recovery = Recovery::open(
            Arc::new(self.disk.clone()),
            Path::new(BASE),
            DATABASE,
            last,
            false,
        )?;
        let options = WalOptions {
            durability: self.durability,
            ..WalOptions::default()
        };
        Ok(recovery.start(options, last + 1)?)
    }

    fn slot_of(&self, seq: u64) -> Result<u64, Stop> {
        if !self.disk.exists(Path::new(BASE))? {
            return Ok(1);
        }
        let file = self.disk.open(Path::new(BASE), OpenOptions::READ)?;
        let mut bytes = [0; 8];
        let in_second = file.len()? >= 4096 + 16 && {
            file.read_at(&mut bytes, 4096)?;
            u64::from_le_bytes(bytes) == seq
        };
        Ok(u64::from(in_second))
    }

    fn write_checkpoint(&mut self, oracle: &mut Oracle, seq: u64) -> Result<(), Stop> {
        if seq > self.covered {
            write_checkpoint(&self.disk, seq, self.turn)?;
            self.turn += 1;
            self.covered = seq;
            oracle.promised = oracle.promised.max(seq);
            oracle.testified = oracle.testified.max(seq);
        }
        Ok(())
    }

    /// One step; true if the process is to start again.
    fn step(&mut self, wal: &TwinLog, oracle: &mut Oracle) -> Result<bool, Stop> {
        match self.rng.below(16) {
            0..=8 => self.commit_group(wal, oracle)?,
            9 | 10 => match wal.prepare_switch() {
                Err(Error::NotReady(_)) => assert!(self.checkpoint.is_some()),
                other => other?,
            },
            11 => match wal.switch(self.head + 1) {
                Ok(old) => self.checkpoint = Some((old, self.head)),
                Err(Error::NotReady(_)) => {}
                Err(other) => return Err(other.into()),
            },
            12 | 13 => self.finish_checkpoint(wal, oracle)?,
            14 => wal.sync()?,
            _ => {
                if self.rng.one_in(2) {
                    wal.wait_seq(self.head)?;
                    self.note(wal, oracle);
                    self.write_checkpoint(oracle, self.head)?;
                    wal.close()?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn commit_group(&mut self, wal: &TwinLog, oracle: &mut Oracle) -> Result<(), Stop> {
        let mut permits = Vec::new();
        for _ in 0..=self.rng.below(4) {
            let len = match self.rng.below(40) {
                0 => 200_000 + self.rng.index(200_000),
                1..=3 => 30_000 + self.rng.index(10_000),
                4..=9 => self.rng.index(5_000),
                _ => self.rng.index(300),
            };
            permits.push((wal.reserve(len)?, len));
        }
        let mut group = Vec::new();
        for (permit, len) in permits {
            let seq = self.head + 1;
            let tag = self.rng.bits() ^ oracle.lives;
            let payload: Vec<u8> = (0..len)
                .map(|i| (tag >> (i % 8 * 8)) as u8 ^ i as u8)
                .collect();
            let placed = wal.place(permit, seq);
            self.head = seq;
            oracle.records.insert(seq, payload.clone());
            group.push((placed, payload));
        }
        // One thread may fill small records in any order.
        if group.iter().all(|(_, payload)| payload.len() < 10_000) {
            self.rng.shuffle(&mut group);
        }
        let mark = wal.durable();
        let mut tickets = Vec::new();
        for (placed, payload) in group {
            let cut = self.rng.index(payload.len() + 1);
            tickets.push(wal.fill(
                placed,
                kind_of(&payload),
                &[&payload[..cut], &payload[cut..]],
            )?);
        }
        if self.rng.one_in(4) {
            return Ok(());
        }
        let ticket = tickets[self.rng.index(tickets.len())];
        wal.wait(ticket)?;
        // The record that was waited for is synced, and carries this mark.
        oracle.testified = oracle.testified.max(mark);
        Ok(())
    }

    fn finish_checkpoint(&mut self, wal: &TwinLog, oracle: &mut Oracle) -> Result<(), Stop> {
        match self.checkpoint {
            Some((old, seq)) => {
                wal.wait_seq(seq)?;
                self.note(wal, oracle);
                self.write_checkpoint(oracle, seq)?;
                wal.recycle(old)?;
                self.checkpoint = None;
            }
            None => {
                let acked = wal.acked();
                self.write_checkpoint(oracle, acked)?;
            }
        }
        Ok(())
    }
}
