//! Trees, keys and values, drawn at random.

use std::sync::Arc;

use fulgurite_store::KeyKind;

use super::life::Life;
use super::model::RowKey;

impl Life<'_> {
    pub(super) fn any_tree(&mut self) -> Option<u32> {
        let ids: Vec<u32> = self.visible.tables.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[self.rng.index(ids.len())])
    }

    pub(super) fn kind(&mut self) -> KeyKind {
        if self.rng.one_in(2) {
            KeyKind::Int
        } else {
            KeyKind::Bytes
        }
    }

    /// A key that takes little room.
    pub(super) fn short_key(&mut self, kind: KeyKind) -> RowKey {
        let number = self.rng.below(80);
        match kind {
            KeyKind::Int => RowKey::Int(number as i64 - 20),
            KeyKind::Bytes => RowKey::Bytes(format!("key {number:02}").into_bytes()),
        }
    }

    pub(super) fn key(&mut self, kind: KeyKind) -> RowKey {
        let rng = &mut self.rng;
        match kind {
            KeyKind::Int if rng.one_in(10) => RowKey::Int([i64::MIN, i64::MAX][rng.index(2)]),
            KeyKind::Int => RowKey::Int(rng.below(80) as i64 - 20),
            KeyKind::Bytes => {
                let mut key = format!("key {:02}", rng.below(80)).into_bytes();
                if rng.one_in(12) {
                    // Around an eighth of a page, and so long that only what lies
                    // outside of the page tells them apart.
                    match [300, 400, 500, 512, 700, 4_700][rng.index(6)] {
                        length @ ..=512 => key.resize(length, b'x'),
                        length => {
                            key.splice(0..0, std::iter::repeat_n(b'x', length));
                        }
                    }
                }
                RowKey::Bytes(key)
            }
        }
    }

    pub(super) fn value(&mut self) -> Arc<[u8]> {
        if self.rng.one_in(24) {
            return self.forged();
        }
        let len = match self.rng.below(20) {
            0..=8 => self.rng.index(40),
            9..=14 => self.rng.index(300),
            15..=17 => self.rng.index(1_500),
            18 => self.rng.index(9_000),
            _ => self.rng.index(40_000),
        };
        self.filled(len)
    }

    /// What looks like records of the log to come, at every alignment, as somebody
    /// would write them who knows the format and not the salt.
    fn forged(&mut self) -> Arc<[u8]> {
        let newest = self.store.as_ref().map_or(0, |store| store.stats().visible);
        let mut bytes = vec![0xaa; 500];
        for turn in 0..24_u64 {
            let mut record = [0; 33];
            record[4..8].copy_from_slice(&8_u32.to_le_bytes());
            record[8..16].copy_from_slice(&(newest + 1 + turn % 3).to_le_bytes());
            record[16..24].copy_from_slice(&(newest + 2).to_le_bytes());
            record[24] = 1;
            let crc = crc_fast::crc32_iscsi(&record[4..]);
            record[..4].copy_from_slice(&crc.to_le_bytes());
            bytes.extend_from_slice(&record);
            // 41 bytes apart: a new place within eight bytes each time.
            bytes.extend_from_slice(&[0; 8]);
        }
        bytes.into()
    }

    /// Half of it noise, half of it blanks.
    pub(super) fn filled(&mut self, len: usize) -> Arc<[u8]> {
        let mut bytes = vec![b' '; len];
        for chunk in bytes[..len.div_ceil(2)].chunks_mut(8) {
            let noise = self.rng.bits().to_le_bytes();
            chunk.copy_from_slice(&noise[..chunk.len()]);
        }
        bytes.into()
    }
}
