//! The threading primitives the log is written with, in one place, so that
//! `tests/model.rs` can compile the same sources against a scheduler that
//! explores interleavings.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
