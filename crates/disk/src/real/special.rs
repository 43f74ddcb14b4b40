//! The ways into a file that Linux has beside the usual one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::mapped::MappedFile;
use super::uring::RingFile;
use super::{DiskError, DiskErrorKind, DiskFile, OpenOptions, RealFile, Result};
use crate::Access;
use crate::access::unsupported;

pub(super) fn open(path: &Path, options: OpenOptions, access: Access) -> Result<Arc<dyn DiskFile>> {
    match access {
        Access::Buffered => Ok(Arc::new(RealFile::open(path, options, 0)?)),
        Access::Direct => match RealFile::open(path, options, libc::O_DIRECT) {
            // What a file system without direct access answers.
            Err(error) if error.source.raw_os_error() == Some(libc::EINVAL) => {
                Err(unsupported(path, access))
            }
            other => Ok(Arc::new(other?)),
        },
        Access::Mapped => {
            let file = RealFile::open(path, options, 0)?;
            Ok(Arc::new(MappedFile::new(file)?))
        }
        Access::Ring | Access::RingPolled => {
            let file = RealFile::open(path, options, 0)?;
            let polled = access == Access::RingPolled;
            match RingFile::new(file, polled) {
                Ok(file) => Ok(Arc::new(file)),
                Err(error) => Err(DiskError::with_kind(
                    "set up io_uring for",
                    path,
                    DiskErrorKind::Unsupported,
                    io::Error::new(
                        error.kind(),
                        format!("{error}; open it with buffered access"),
                    ),
                )),
            }
        }
    }
}
