//! Copies into maps of files, whose pages may be gone.
//!
//! A page of a shared map can be lost: somebody cut the file short, the disk does
//! not deliver it, or a file system that copies on write has no room for the copy.
//! Who touches it gets SIGBUS, which ends the process. [`copy`] returns false
//! instead: a handler puts an empty page in the place of the lost one, so that the
//! copy goes on, and sets a mark, under which the map takes nothing any more.
//!
//! - The handler acts only where the thread that got the signal is within [`copy`]
//!   and the address within its map; everything else goes to the handler that was
//!   there before, or has the effect the signal had.
//! - It is installed once a process, by the first map, and stays. A program that
//!   later installs one of its own without passing the signal on, and a thread that
//!   blocks the signal, end with the process, as they would without it: what was
//!   acknowledged is in the file.
//! - The mark is set before the page is replaced: whoever copied into the empty page
//!   sees the mark after it.

use std::cell::Cell;
use std::io;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use libc::{c_int, c_void, siginfo_t};

/// What SIGBUS did before; set before ours is installed.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

thread_local! {
    /// The copy this thread is at; null for none.
    static COPYING: Cell<*const Copying> = const { Cell::new(ptr::null()) };
}

struct Copying {
    /// The addresses of the map.
    map: Range<usize>,
    lost: *const AtomicBool,
}

/// Installs the handler, the first time it is called.
///
/// # Errors
/// Where the system refuses it.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let refused = INSTALLED.get_or_init(|| set_handler().err()?.raw_os_error());
    match refused {
        None => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(*code)),
    }
}

fn set_handler() -> io::Result<()> {
    // SAFETY: asks for a number.
    if let Ok(bytes) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        && bytes.is_power_of_two()
    {
        PAGE_BYTES.store(bytes, Ordering::Relaxed);
    }
    let mut before = MaybeUninit::uninit();
    // SAFETY: asks what the signal does; `before` is written where it succeeds.
    let before = unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        before.assume_init()
    };
    BEFORE.get_or_init(|| before);
    // SAFETY: a handler of three arguments, as SA_SIGINFO wants it; it calls only
    // what a handler may call. On the alternative stack where the thread has one,
    // which the handler before may rely on.
    let result = unsafe {
        let mut ours: libc::sigaction = mem::zeroed();
        ours.sa_sigaction = on_signal as extern "C" fn(_, _, _) as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Copies `bytes` to the address `to` of a map; false where the map has lost pages,
/// now or before, as `lost` says from then on.
///
/// # Safety
/// `map` is mapped shared, readable and writable, for the time of the call, by whole
/// pages; the copy lies within it; nothing in this process borrows that memory; and
/// [`install`] succeeded.
pub(super) unsafe fn copy(bytes: &[u8], to: usize, map: Range<usize>, lost: &AtomicBool) -> bool {
    let copying = Copying { map, lost };
    COPYING.set(&copying);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as the caller says; the source is borrowed memory of this process, so
    // the two do not overlap.
    unsafe {
        ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            ptr::with_exposed_provenance_mut::<u8>(to),
            bytes.len(),
        );
    }
    compiler_fence(Ordering::SeqCst);
    COPYING.set(ptr::null());
    !lost.load(Ordering::Acquire)
}

/// Calls nothing but what POSIX lets a handler call, and `mmap`, which is a plain
/// system call where this is compiled. Its thread-local was touched by [`copy`]
/// before, or is only read, and has no destructor.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let copying = COPYING.get();
    // SAFETY: the pointer is set while `copy` runs on this very thread, whose frame
    // holds what it points to; `info` is the kernel's.
    unsafe {
        if let Some(copying) = copying.as_ref() {
            let address = (*info).si_addr().addr();
            if copying.map.contains(&address) && replace_page(address, &*copying.lost) {
                return;
            }
        }
        pass_on(signal, info, context);
    }
}

/// Puts an empty page of our own where the lost one was.
///
/// # Safety
/// `address` lies in a map that [`copy`] works at.
unsafe fn replace_page(address: usize, lost: &AtomicBool) -> bool {
    let bytes = PAGE_BYTES.load(Ordering::Relaxed);
    lost.store(true, Ordering::SeqCst);
    // SAFETY: the page lies in a map of ours, to which nobody holds a reference.
    let page = unsafe {
        libc::mmap(
            ptr::with_exposed_provenance_mut(address & !(bytes - 1)),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    page != libc::MAP_FAILED
}

/// Does what the signal did before.
///
/// # Safety
/// To be called by the handler, with its arguments.
unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let sent = |info: *mut siginfo_t| {
        // SAFETY: the kernel's information. Its code is positive for a fault.
        unsafe { (*info).si_code <= 0 }
    };
    match handler {
        libc::SIG_IGN if sent(info) => {}
        // The fault, or the signal we send ourselves, comes again on return and ends
        // the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sets the default and sends a signal, which a handler may do.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if sent(info) {
                    libc::raise(signal);
                }
            }
        }
        handler => {
            let takes_info = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
            // SAFETY: the address was installed as a handler of that kind.
            unsafe {
                if takes_info {
                    type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                    mem::transmute::<usize, Handler>(handler)(signal, info, context);
                } else {
                    mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
                }
            }
        }
    }
}
