//! What the figures were taken on.

use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::Path;

/// The machine and the file system under the databases.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub filesystem: String,
    pub build: &'static str,
}

impl Machine {
    /// Describes this machine; what cannot be found out is "unknown".
    pub fn of(dir: &Path) -> Self {
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().into()),
            filesystem: filesystem(dir).unwrap_or_else(unknown),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {} GiB, Linux {}, {} ({} build)",
            self.cpu,
            self.cores,
            self.memory_bytes >> 30,
            self.kernel,
            self.filesystem,
            self.build
        )
    }
}

fn unknown() -> String {
    "unknown".into()
}

/// The value of the first `name : value` line of a file under /proc.
pub fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().into())
    })
}

/// The type of the file system that holds `dir`.
pub fn filesystem(dir: &Path) -> Option<String> {
    let dir = fs::canonicalize(dir).ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(point, _)| dir.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.into())
}

/// Bytes written so far by the block device under `dir`, if there is one.
pub fn written_bytes(dir: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(dir).ok()?.dev();
    // As glibc's `major` and `minor` take them apart.
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    let text = fs::read_to_string("/proc/diskstats").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let same = fields.first()?.parse() == Ok(major) && fields.get(1)?.parse() == Ok(minor);
        // The tenth field counts sectors of 512 bytes.
        same.then(|| {
            fields
                .get(9)?
                .parse::<u64>()
                .ok()
                .map(|sectors| sectors * 512)
        })?
    })
}
