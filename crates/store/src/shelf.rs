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
//!    closes with the last of them: what is kept is dropped then, and so is what is
//!    brought later. A handle that is kept knows the places, no more. Nothing is counted
//!    when something is taken or put back.

use crate::primitives::atomic::{AtomicBool, Ordering::SeqCst, fence};
use crate::primitives::{Mutex, SHELF_PLACES};
use fulgurite_disk::LineStart;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

const KEPT_EACH: usize = 4;

/// What a handle has of a shelf. A clone is another handle's, and owns the shelf. See
/// the module's header.
pub struct Shelf<T>(Share<T>);

enum Share<T> {
    Owned(Arc<Owner<T>>),
    Known(Arc<Places<T>>),
}

/// Closes the shelf.
struct Owner<T>(Arc<Places<T>>);

struct Places<T> {
    /// Each made by who first looks for room there: a short life needs one of them.
    places: Box<[OnceLock<Arc<Place<T>>>]>,
    are_closed: AtomicBool,
    owner: Weak<Owner<T>>,
}

/// A place; where it is shared, the counter lies beside it.
#[repr(C)]
struct Place<T> {
    start: LineStart,
    /// `None` once the shelf is closed.
    kept: Mutex<Option<Vec<T>>>,
}

/// Where something finds room, that knows the shelf itself.
pub struct Room<T>(Arc<Place<T>>);

/// Threads that ever looked for something.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of this thread among them; none before it looked.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}

fn thread() -> usize {
    THREAD.get().unwrap_or_else(|| {
        let thread = THREADS.fetch_add(1, Relaxed);
        THREAD.set(Some(thread));
        thread
    })
}

impl<T> Place<T> {
    fn close(&self) {
        // Things drop when the lock is free again: they may look for the shelf.
        let kept = self.kept.lock().take();
        drop(kept);
    }
}

impl<T> Places<T> {
    fn new(count: usize, owner: Weak<Owner<T>>) -> Self {
        Self {
            places: (0..count).map(|_| OnceLock::new()).collect(),
            are_closed: AtomicBool::new(false),
            owner,
        }
    }

    /// The place there, made if there is none. Who makes one looks then whether the shelf
    /// is closed, and who closes it whether there is one: one of them sees the other.
    fn make_sure_of<'p>(&self, at: &'p OnceLock<Arc<Place<T>>>) -> &'p Arc<Place<T>> {
        if let Some(place) = at.get() {
            return place;
        }
        let place = at.get_or_init(|| {
            Arc::new(Place {
                start: LineStart,
                kept: Mutex::new(Some(Vec::new())),
            })
        });
        fence(SeqCst);
        if self.are_closed.load(Relaxed) {
            place.close();
        }
        place
    }

    fn close(&self) {
        self.are_closed.store(true, Relaxed);
        fence(SeqCst);
        for place in self.places.iter().filter_map(OnceLock::get) {
            place.close();
        }
    }

    /// All places, this thread's first.
    fn around(&self) -> impl Iterator<Item = &OnceLock<Arc<Place<T>>>> {
        let (before, from) = self.places.split_at(thread() % self.places.len());
        from.iter().chain(before)
    }

    fn take(&self) -> Option<T> {
        self.around()
            .find_map(|place| place.get()?.kept.try_lock()?.as_mut()?.pop())
    }

    fn room(&self) -> Option<Room<T>> {
        let has_room = |place: &&Arc<Place<T>>| {
            let kept = place.kept.try_lock();
            kept.is_some_and(|kept| kept.as_ref().is_some_and(|kept| kept.len() < KEPT_EACH))
        };
        self.around()
            .map(|at| self.make_sure_of(at))
            .find(has_room)
            .cloned()
            .map(Room)
    }
}

impl<T> Room<T> {
    /// Puts something back there, unless somebody else did meanwhile.
    pub fn put(self, thing: T) {
        let mut kept = self.0.kept.lock();
        if let Some(kept) = kept.as_mut()
            && kept.len() < KEPT_EACH
        {
            kept.push(thing);
            return;
        }
        // What is dropped may look for the shelf.
        drop(kept);
        drop(thing);
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self::with_places(SHELF_PLACES)
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        let owner = match &self.0 {
            Share::Owned(owner) => Some(owner.clone()),
            Share::Known(places) => places.owner.upgrade(),
        };
        owner.map_or_else(Self::default, |owner| Self(Share::Owned(owner)))
    }
}

impl<T> Shelf<T> {
    /// One place is for who wants to find the same things whichever threads look.
    ///
    /// # Panics
    /// Where `count` is 0.
    #[must_use]
    pub fn with_places(count: usize) -> Self {
        assert!(count > 0, "a shelf has places");
        Self(Share::Owned(Arc::new_cyclic(|owner| {
            Owner(Arc::new(Places::new(count, owner.clone())))
        })))
    }

    fn places(&self) -> &Arc<Places<T>> {
        match &self.0 {
            Share::Owned(owner) => &owner.0,
            Share::Known(places) => places,
        }
    }

    /// The share of a handle that may be kept there.
    #[must_use]
    pub fn known(&self) -> Self {
        Self(Share::Known(self.places().clone()))
    }

    /// Something that was put back, if there is anything.
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.places().take()
    }

    /// Where something can be put back, if there is any room for it.
    #[must_use]
    pub fn room(&self) -> Option<Room<T>> {
        self.places().room()
    }

    /// Puts something back.
    pub fn put(&self, thing: T) {
        if let Some(room) = self.room() {
            room.put(thing);
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
        for thing in 0..2 * SHELF_PLACES * KEPT_EACH {
            shelf.put(thing);
        }
        let kept = std::iter::from_fn(|| shelf.take()).count();
        assert_eq!(kept, SHELF_PLACES * KEPT_EACH);
    }
}
