//! What is kept from one use to the next: contexts and connections, which cost something
//! to make, and are best taken again by the thread that left them.
//!
//! 1. A shelf has some places, each on cache lines of its own. A thread begins to look,
//!    and to put back, at a place that it has for itself while there are no more threads
//!    than places. So who comes back finds what it left, and meets nobody; others take
//!    what they find on their way around.
//! 2. Nobody waits: a place into which somebody looks is passed by. Each keeps a few
//!    things; what finds no room is dropped by who brings it.
//! 3. What is kept is itself a handle of what it is kept for, and must not keep that
//!    open. So a shelf belongs to the other handles, all clones of one together, and
//!    goes with the last of them. A handle that is kept knows the shelf, no more.

use crate::primitives::Mutex;
use fulgurite_disk::LineStart;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

const PLACES: usize = 32;
const KEPT_EACH: usize = 4;

/// What a handle has of a shelf. A clone is another handle's, and owns the shelf. See
/// the module's header.
pub struct Shelf<T>(Share<T>);

enum Share<T> {
    Owned(Arc<Places<T>>),
    Known(Weak<Places<T>>),
}

struct Places<T>(Box<[Place<T>]>);

#[repr(C)]
struct Place<T> {
    start: LineStart,
    kept: Mutex<Vec<T>>,
}

/// Threads that ever looked for something.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where this thread looks first; none before it did.
    static HOME: Cell<Option<usize>> = const { Cell::new(None) };
}

fn home() -> usize {
    HOME.get().unwrap_or_else(|| {
        let home = THREADS.fetch_add(1, Relaxed) % PLACES;
        HOME.set(Some(home));
        home
    })
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        let place = |_| Place {
            start: LineStart,
            kept: Mutex::new(Vec::new()),
        };
        Self((0..PLACES).map(place).collect())
    }
}

impl<T> Places<T> {
    /// All places, this thread's first.
    fn around(&self) -> impl Iterator<Item = &Place<T>> {
        let (before, from) = self.0.split_at(home());
        from.iter().chain(before)
    }

    fn take(&self) -> Option<T> {
        self.around().find_map(|place| place.kept.try_lock()?.pop())
    }

    fn put(&self, thing: T) {
        for place in self.around() {
            if let Some(mut kept) = place.kept.try_lock()
                && kept.len() < KEPT_EACH
            {
                kept.push(thing);
                return;
            }
        }
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Share::Owned(Arc::default()))
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Share::Owned(places) => Self(Share::Owned(places.clone())),
            Share::Known(places) => places
                .upgrade()
                .map_or_else(Self::default, |places| Self(Share::Owned(places))),
        }
    }
}

impl<T> Shelf<T> {
    /// The share of a handle that may be kept there.
    #[must_use]
    pub fn known(&self) -> Self {
        Self(Share::Known(match &self.0 {
            Share::Owned(places) => Arc::downgrade(places),
            Share::Known(places) => places.clone(),
        }))
    }

    /// Something that was put back, if there is anything.
    #[must_use]
    pub fn take(&self) -> Option<T> {
        match &self.0 {
            Share::Owned(places) => places.take(),
            Share::Known(places) => places.upgrade()?.take(),
        }
    }

    /// Puts something back.
    pub fn put(&self, thing: T) {
        match &self.0 {
            Share::Owned(places) => places.put(thing),
            Share::Known(places) => {
                if let Some(places) = places.upgrade() {
                    places.put(thing);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_takes_what_it_left_before_what_others_did() {
        let shelf = Shelf::default();
        thread::scope(|scope| {
            for thread in 0..4 {
                let shelf = &shelf;
                scope.spawn(move || {
                    shelf.put(thread);
                    for _ in 0..100 {
                        // Another one may look in at the moment.
                        if shelf.take() == Some(thread) {
                            shelf.put(thread);
                        }
                    }
                });
            }
        });
        shelf.put(4);
        assert_eq!(shelf.take(), Some(4));
    }

    #[test]
    fn what_others_left_is_found_and_each_thing_once() {
        let shelf = Shelf::default();
        for thing in 0..8 {
            thread::scope(|scope| scope.spawn(|| shelf.put(thing)).join().expect("put"));
        }
        let mut found: Vec<i32> = std::iter::from_fn(|| shelf.take()).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(shelf.take().is_none());
    }

    /// A handle that counts those that are left.
    struct Handle {
        shelf: Shelf<Handle>,
        _count: Arc<()>,
    }

    #[test]
    fn what_is_kept_goes_with_the_last_handle_that_is_not() {
        let count = Arc::new(());
        let shelf: Shelf<Handle> = Shelf::default();
        let clone = shelf.clone();
        for _ in 0..3 {
            shelf.put(Handle {
                shelf: shelf.known(),
                _count: count.clone(),
            });
        }
        drop(shelf);
        assert_eq!(Arc::strong_count(&count), 4);
        let kept = clone.take().expect("they are kept");
        let owned = kept.shelf.clone();
        drop(clone);
        assert_eq!(Arc::strong_count(&count), 4, "a clone is no kept handle's");
        drop(owned);
        assert_eq!(Arc::strong_count(&count), 2, "the one that is in use");
        assert!(kept.shelf.take().is_none());
        let known = kept.shelf.known();
        known.put(kept);
        assert_eq!(Arc::strong_count(&count), 1);
        assert!(known.clone().take().is_none(), "another shelf");
    }

    #[test]
    fn what_finds_no_room_is_dropped() {
        let shelf = Shelf::default();
        for thing in 0..2 * PLACES * KEPT_EACH {
            shelf.put(thing);
        }
        let kept = std::iter::from_fn(|| shelf.take()).count();
        assert_eq!(kept, PLACES * KEPT_EACH);
    }
}
