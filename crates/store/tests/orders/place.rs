//! Where the stores of a seed are, and what they are opened with.

use crate::common::Rng;
use crate::power::Power;
use fulgurite_disk::{Disk, MemoryDisk, OpenOptions};
use fulgurite_store::{Compression, Durability, Options, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where the stores of a seed are.
pub struct Place {
    files: Files,
    page_size: u32,
    /// Where power may be cut, that may take the newest commits back.
    loses: bool,
}

pub enum Files {
    Memory(Arc<MemoryDisk>),
    /// It tells what a power cut leaves. One disk for both stores: who asks the other one
    /// about a commit finds it open.
    Power(Arc<Power>),
    Folder(PathBuf),
}

pub const NAMES: [&str; 2] = ["orders.db", "others.db"];

impl Place {
    /// `what` and the seed tell it apart from others of this process.
    pub fn new(what: &str, seed: u64, rng: &mut Rng) -> Self {
        let files = match rng.below(10) {
            0..5 => Files::Memory(Arc::default()),
            5..8 => Files::Power(Arc::new(Power::new(seed))),
            _ => {
                let name = format!("fulgurite-orders-{what}-{}-{seed}", std::process::id());
                let folder = std::env::temp_dir().join(name);
                std::fs::create_dir_all(&folder).expect("a folder");
                Files::Folder(folder)
            }
        };
        let page_size = if rng.chance(2, 3) { 4096 } else { 8192 };
        // What two stores lose is not of one moment.
        let loses = what == "one" && rng.chance(1, 6);
        Self {
            files,
            page_size,
            loses,
        }
    }

    pub fn options(&self, rng: &mut Rng) -> Options {
        let mut one_of = |these: &[u64]| these[rng.below(these.len() as u64) as usize];
        let cache_bytes = one_of(&[128, 300, 10_000]) as usize * self.page_size as usize;
        let log = one_of(&[0, 64 << 10, 2 << 20]);
        let durability = [Durability::Full, Durability::Normal, Durability::Off];
        let durability = durability[one_of(&[0, 0, 1, 1, 2]) as usize];
        Options {
            cache_bytes,
            page_size: self.page_size,
            durability: match self.power() {
                // The others promise less of a power cut.
                Some(_) if !self.loses => Durability::Full,
                Some(_) => Durability::Normal,
                None => durability,
            },
            compression: [Compression::None, Compression::Lz4][one_of(&[0, 1]) as usize],
            busy_timeout: Duration::from_secs(60),
            checkpoint_bytes: one_of(&[32 << 10, 1 << 20, 24 << 20]),
            log_limit_bytes: Some(log).filter(|log| *log > 0),
            ..Options::default()
        }
    }

    pub fn power(&self) -> Option<&Power> {
        match &self.files {
            Files::Power(power) => Some(power),
            Files::Memory(_) | Files::Folder(_) => None,
        }
    }

    /// The first store, or the second.
    pub fn open(&self, at: usize, options: Options) -> Store {
        match &self.files {
            Files::Memory(disk) => Store::open_on(disk.clone(), NAMES[at], options),
            Files::Power(power) => Store::open_on(power.clone(), NAMES[at], options),
            Files::Folder(folder) => Store::open(folder.join(NAMES[at]), options),
        }
        .expect("opens")
    }

    /// The next life begins with what a power cut leaves of this one, now and then.
    pub fn may_lose_power(&mut self, rng: &mut Rng) {
        if let Files::Power(power) = &mut self.files
            && rng.chance(1, 2)
        {
            *power = Arc::new(power.cut());
        }
    }

    /// A handle of it for reading only.
    pub fn join_to_read(&self, at: usize) -> Option<Store> {
        let Files::Folder(folder) = &self.files else {
            return None;
        };
        let options = Options {
            read_only: true,
            ..Options::default()
        };
        Some(Store::open(folder.join(NAMES[at]), options).expect("joins"))
    }

    /// What is in the files now, as if the process had ended.
    pub fn copy(&self) -> Arc<dyn Disk> {
        let folder = match &self.files {
            Files::Memory(disk) => return Arc::new(disk.copied()),
            Files::Power(power) => return Arc::new(power.copied()),
            Files::Folder(folder) => folder,
        };
        let copy = MemoryDisk::new();
        let sides = ["", "-wal0", "-wal1"];
        let names = NAMES
            .iter()
            .flat_map(|name| sides.map(|side| format!("{name}{side}")));
        for name in names {
            if let Ok(bytes) = std::fs::read(folder.join(&name)) {
                let file = copy.open(Path::new(&name), OpenOptions::CREATE);
                file.expect("makes").write_at(&bytes, 0).expect("writes");
            }
        }
        Arc::new(copy)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Files::Folder(folder) = &self.files {
            // What is left is in the way of nobody.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
