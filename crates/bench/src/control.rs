//! The floor under a durable commit: one small write and one `fdatasync` on a
//! zero-filled, synced file, at ascending positions.

use crate::measure::Laps;
use anyhow::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const RECORD: [u8; 128] = [0x5A; 128];
const FILE_BYTES: u64 = 8 << 20;

/// A file prepared as a write-ahead log is.
#[derive(Debug)]
pub struct Control {
    file: File,
    offset: u64,
}

impl Control {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path)?;
        let zeroes = vec![0; 1 << 20];
        for offset in (0..FILE_BYTES).step_by(zeroes.len()) {
            file.write_all_at(&zeroes, offset)?;
        }
        file.sync_all()?;
        Ok(Self { file, offset: 0 })
    }

    /// Writes and syncs `times` records.
    pub fn run(&mut self, times: usize, laps: &mut Laps) -> Result<()> {
        laps.start();
        for _ in 0..times {
            self.file.write_all_at(&RECORD, self.offset)?;
            self.file.sync_data()?;
            laps.lap();
            self.offset = (self.offset + RECORD.len() as u64) % FILE_BYTES;
        }
        Ok(())
    }
}
