//! Files without a name.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{DiskError, DiskErrorKind, DiskFile, Result};

use super::RealFile;

/// Whether a folder takes no files, of this file system or from this user.
pub(super) fn takes_none(error: &DiskError) -> bool {
    let kinds = [DiskErrorKind::ReadOnly, DiskErrorKind::PermissionDenied];
    kinds.contains(&error.kind)
}

/// Makes a file in a folder and takes its name away. Until then no other user may open
/// it, and a name that is there already, a link too, is passed by.
pub(super) fn make(dir: &Path) -> Result<Arc<dyn DiskFile>> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(".fulgurite-{}-{number}.tmp", std::process::id()));
        let opened = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| DiskError::new("open", &path, e));
        match opened {
            Ok(file) => {
                fs::remove_file(&path).map_err(|e| DiskError::new("remove", &path, e))?;
                return Ok(Arc::new(RealFile {
                    file,
                    path,
                    read_only: false,
                    locked_by: AtomicU32::new(0),
                }));
            }
            // Left by a process of the same number that was killed.
            Err(error) if error.kind == DiskErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
