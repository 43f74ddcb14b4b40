//! A database file with all that refers to something in it by a checksum.

use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use std::path::Path;
use std::sync::Arc;

/// Where the data begins, behind the meta slots.
const DATA: usize = 8192;
const UNIT: usize = 64;

/// An extent that was found by the references to it.
#[derive(Debug, Clone)]
pub struct Extent {
    pub at: usize,
    pub len: usize,
    /// Where the words are that refer to it, each with the checksum behind it.
    pub refs: Vec<usize>,
    /// A parent is less deep than its children.
    depth: usize,
}

/// The bytes of a file, and the extents in it but for the free-space map.
pub struct File {
    pub bytes: Vec<u8>,
    pub extents: Vec<Extent>,
}

fn extent_of(word: u64) -> Option<(usize, usize)> {
    let at = (word & ((1 << 44) - 1)) as usize * UNIT;
    let len = (word >> 44) as usize * UNIT;
    (word >> 63 == 0 && len > 0).then_some((at, len))
}

/// The reference to an extent.
pub fn word_of(at: usize, len: usize) -> u64 {
    (at / UNIT) as u64 | ((len / UNIT) as u64) << 44
}

impl File {
    pub fn read(disk: &MemoryDisk, name: &str) -> Self {
        let file = disk.open(Path::new(name), OpenOptions::READ);
        let file = file.expect("is there");
        let mut bytes = vec![0; file.len().expect("its length") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        let mut read = Self {
            bytes,
            extents: Vec::new(),
        };
        read.find();
        read
    }

    /// A disk with this file alone, whose checksums are all right.
    pub fn sealed(mut self, name: &str) -> Arc<MemoryDisk> {
        self.seal();
        let disk = MemoryDisk::new();
        let file = disk.open(Path::new(name), OpenOptions::CREATE_NEW);
        let written = file.expect("is made").write_at(&self.bytes, 0);
        written.expect("writes");
        Arc::new(disk)
    }

    pub fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.bytes[at..].first_chunk().expect("in the file"))
    }

    pub fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.bytes[at..].first_chunk().expect("in the file"))
    }

    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn checksum(&self, at: usize, len: usize) -> u32 {
        crc_fast::crc32_iscsi(&self.bytes[at..at + len])
    }

    /// The newer meta slot.
    pub fn slot(&self) -> usize {
        match self.u64_at(4096 + 32) > self.u64_at(32) {
            true => 4096,
            false => 0,
        }
    }

    /// The catalog's entry of a tree.
    pub fn entry(&self, tree: u32) -> usize {
        let catalog = self.extents[0].at;
        let mut entries = (0..self.u32_at(catalog + 4) as usize).map(|at| catalog + 16 + 32 * at);
        let found = entries.find(|entry| self.u32_at(*entry) == tree);
        found.expect("a tree of this number")
    }

    /// The pages of a kind and a tree.
    pub fn pages(&self, kind: u8, tree: u32) -> impl Iterator<Item = &Extent> {
        let pages = self.extents[1..].iter();
        pages.filter(move |page| self.bytes[page.at] == kind && self.u32_at(page.at + 16) == tree)
    }

    /// Whatever looks like a reference with the right checksum is one.
    fn find(&mut self) {
        let slot = self.slot();
        let (at, len) = extent_of(self.u64_at(slot + 64)).expect("a catalog");
        self.extents.push(Extent {
            at,
            len,
            refs: vec![slot + 64],
            depth: 0,
        });
        let mut next = 0;
        while let Some(Extent { at, len, depth, .. }) = self.extents.get(next).cloned() {
            next += 1;
            for place in at..at + len - 12 {
                self.note(place, depth + 1);
            }
        }
    }

    fn note(&mut self, place: usize, depth: usize) {
        let Some((at, len)) = extent_of(self.u64_at(place)) else {
            return;
        };
        let is_there = at >= DATA && len <= 1 << 16 && at + len <= self.bytes.len();
        if !is_there || self.checksum(at, len) != self.u32_at(place + 8) {
            return;
        }
        let mut known = self.extents.iter_mut();
        match known.find(|extent| (extent.at, extent.len) == (at, len)) {
            Some(extent) => {
                extent.refs.push(place);
                extent.depth = extent.depth.max(depth);
            }
            None => self.extents.push(Extent {
                at,
                len,
                refs: vec![place],
                depth,
            }),
        }
    }

    fn seal(&mut self) {
        let mut extents = self.extents.clone();
        extents.sort_by_key(|extent| std::cmp::Reverse(extent.depth));
        for extent in extents {
            let checksum = self.checksum(extent.at, extent.len);
            for place in extent.refs {
                if extent_of(self.u64_at(place)) == Some((extent.at, extent.len)) {
                    self.put(place + 8, &checksum.to_le_bytes());
                }
            }
        }
        let slot = self.slot();
        if let Some((at, len)) = extent_of(self.u64_at(slot + 80)) {
            let checksum = self.checksum(at, len);
            self.put(slot + 88, &checksum.to_le_bytes());
        }
        let mut sealed = self.bytes[slot..slot + 4096].to_vec();
        sealed[2048..2560].fill(0);
        let checksum = crc_fast::crc32_iscsi(&sealed[..4092]);
        sealed[4092..].copy_from_slice(&checksum.to_le_bytes());
        self.put(0, &sealed);
        self.put(4096, &sealed);
    }
}
