//! Code of the program that is called, and values of the program that are dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of the program; None: it panicked. What it panicked with is the program's as
/// well, and where it panics when it is dropped, it is left where it is.
pub fn caught<T>(code: impl FnOnce() -> T) -> Option<T> {
    let payload = match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    None
}

/// A value of the program that the engine keeps, which may do anything when it is dropped:
/// a panic ends there, and not in the midst of what the engine is about.
pub struct Owned<T>(Option<T>);

impl<T> Owned<T> {
    /// Takes it.
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value; None only while it is being dropped.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// As [`get`](Self::get), to be changed.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }
}

impl<T: Clone> Clone for Owned<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        caught(|| drop(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a value of the program");
        }
    }

    /// What a panic carries was dropped behind the catch, and could panic there.
    #[test]
    fn no_panic_gets_out() {
        assert_eq!(caught(|| 1), Some(1));
        assert_eq!(caught(|| drop(Owned::new(Bomb))), Some(()));
        let panicked = caught(|| std::panic::panic_any(Bomb));
        assert!(panicked.is_none());
    }
}
