//! What is no file is refused. A database or log was made where a device was, as in an
//! empty file, and took its name; a pipe was waited for.

#![cfg(target_os = "linux")]

use std::path::Path;

use fulgurite_disk::{Access, Disk, OpenOptions, RealDisk};
use rustix::fs::{CWD, FileType, Mode, mknodat};

#[test]
fn a_device_a_pipe_and_a_folder_are_no_files() {
    let folder = std::env::temp_dir();
    let pipe = folder.join(format!("fulgurite-pipe-{}", std::process::id()));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("makes a pipe");
    for path in [Path::new("/dev/null"), &pipe, &folder] {
        for options in [OpenOptions::WRITE, OpenOptions::READ, OpenOptions::CREATE] {
            for access in [Access::Buffered, Access::Direct, Access::Mapped] {
                let refused = RealDisk.open_with(path, options, access);
                let error = refused.expect_err("it is no file");
                let named = format!("cannot open {}: ", path.display());
                assert!(error.to_string().starts_with(&named), "{error}");
            }
        }
    }
    std::fs::remove_file(&pipe).expect("removes it");
}
