//! A map that loses pages while the program writes to it. One test, since what a
//! process does with a signal is one thing for all its threads.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fulgurite_disk::{Access, Disk, OpenOptions, RealDisk};

static SEEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    SEEN.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_lost_page_is_an_error_and_other_signals_go_where_they_went() {
    // SAFETY: the handler adds to an atomic number.
    unsafe {
        libc::signal(
            libc::SIGBUS,
            count as extern "C" fn(_) as libc::sighandler_t,
        )
    };
    let name = format!("fulgurite-lost-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    let file = RealDisk
        .open_with(&path, OpenOptions::WRITE, Access::Mapped)
        .unwrap();
    let other = RealDisk
        .open_with(&path, OpenOptions::WRITE, Access::Mapped)
        .unwrap();
    file.write_at(&[1; 100], 500_000).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(8_192)
        .unwrap();

    // To make ready what is gone raises nothing.
    file.will_write(450_000, 100_000);
    assert_eq!(SEEN.load(Ordering::SeqCst), 0);
    file.write_at(&[1; 100], 100).unwrap();

    // The page is lost once, whoever meets it first; nobody is told that a write went
    // well after that.
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for at in 0..4 {
            let (file, barrier) = (&file, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let error = file.write_at(&[2; 100], 500_000 + 100 * at).unwrap_err();
                assert!(error.to_string().contains("cut short"), "{error}");
            });
        }
    });
    assert!(file.write_at(&[3; 100], 100).is_err());
    assert!(file.sync_data().is_err());
    assert!(file.sync_all().is_err());

    // Another map of the file has lost none of the pages it writes to. Its sync knows
    // all the same that somebody cut the file.
    other.write_at(&[4; 100], 4_000).unwrap();
    assert!(other.sync_data().is_err());
    assert_eq!(fs::read(&path).unwrap()[4_000..4_100], [4; 100]);

    assert_eq!(SEEN.load(Ordering::SeqCst), 0);
    // SAFETY: sends the signal to this thread.
    unsafe { libc::raise(libc::SIGBUS) };
    assert_eq!(SEEN.load(Ordering::SeqCst), 1);
    fs::remove_file(&path).unwrap();
}
