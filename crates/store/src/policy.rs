//! Which frame to give up: S3-FIFO (Yang et al., "FIFO queues are all you need for cache
//! eviction", SOSP 2023).
//!
//! New frames enter a small queue, a tenth of the cache. Leaving it, those that were
//! used again move to the main queue; the others are evicted, and their keys are
//! remembered in a ghost queue as long as the main queue is: a key that returns while
//! it is remembered enters the main queue at once. In the main queue, used frames go
//! round again. So a scan passes through the small queue and leaves the rest alone.
//!
//! A hit only raises the frame's heat, outside this structure and without its lock
//! (see [`Heat`] and [`touch`]). Everything else happens under the caller's lock.
//! A frame is in one queue at most; queues are linked through arrays, so that all
//! operations but [`evict`](Policy::evict) take constant time.

#[cfg(test)]
mod tests;

use std::collections::{TryReserveError, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};

use rustc_hash::FxHashMap;

/// The highest heat.
pub const HEAT_MAX: u8 = 3;
/// The heat with which a frame moves from the small to the main queue.
const PROMOTED: u8 = 2;
/// No frame.
const NONE: u32 = u32::MAX;

/// Where the frames' heat, 0 to [`HEAT_MAX`], is kept. Losing a concurrent change is harmless.
pub trait Heat {
    /// The heat of a frame.
    fn heat(&self, frame: u32) -> u8;
    /// Sets the heat of a frame.
    fn set_heat(&self, frame: u32, heat: u8);
}

impl Heat for [AtomicU8] {
    fn heat(&self, frame: u32) -> u8 {
        self.get(frame as usize)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    fn set_heat(&self, frame: u32, heat: u8) {
        if let Some(cell) = self.get(frame as usize) {
            cell.store(heat, Ordering::Relaxed);
        }
    }
}

/// Notes a hit. Hot frames are not written to, so that readers do not contend for them.
#[inline]
pub fn touch(heat: &AtomicU8) {
    let now = heat.load(Ordering::Relaxed);
    if now < HEAT_MAX {
        heat.store(now + 1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Small,
    Main,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    key: u64,
    /// Towards the head, which is the newest.
    newer: u32,
    older: u32,
    place: Place,
}

impl Link {
    const NOWHERE: Link = Link {
        key: 0,
        newer: NONE,
        older: NONE,
        place: Place::Nowhere,
    };
}

/// A queue of frames, linked through the frames' links.
#[derive(Debug)]
struct Queue {
    newest: u32,
    oldest: u32,
    len: usize,
}

impl Queue {
    const EMPTY: Queue = Queue {
        newest: NONE,
        oldest: NONE,
        len: 0,
    };

    fn push(&mut self, links: &mut [Link], frame: u32) {
        let at = frame as usize;
        links[at].newer = NONE;
        links[at].older = self.newest;
        match links.get_mut(self.newest as usize) {
            Some(next) => next.newer = frame,
            None => self.oldest = frame,
        }
        self.newest = frame;
        self.len += 1;
    }

    fn unlink(&mut self, links: &mut [Link], frame: u32) {
        let Link { newer, older, .. } = links[frame as usize];
        match links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
        match links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        self.len -= 1;
    }
}

/// Keys that were evicted from the small queue, the newest `capacity` of them.
#[derive(Debug)]
struct Ghost {
    order: VecDeque<(u64, u64)>,
    /// The turn at which a key was remembered last.
    turns: FxHashMap<u64, u64>,
    turn: u64,
    capacity: usize,
}

impl Ghost {
    fn remember(&mut self, key: u64) {
        self.turn += 1;
        self.turns.insert(key, self.turn);
        self.order.push_back((key, self.turn));
        while self.order.len() > self.capacity {
            let Some((key, turn)) = self.order.pop_front() else {
                return;
            };
            if self.turns.get(&key) == Some(&turn) {
                self.turns.remove(&key);
            }
        }
    }

    fn recall(&mut self, key: u64) -> bool {
        self.turns.remove(&key).is_some()
    }
}

/// The eviction policy of a cache of a fixed number of frames.
#[derive(Debug)]
pub struct Policy {
    /// Of the frames up to the highest that was ever taken in.
    links: Vec<Link>,
    small: Queue,
    main: Queue,
    small_target: usize,
    ghost: Ghost,
}

impl Policy {
    /// The policy for the frames `0..frames`, none of which is in the cache.
    ///
    /// # Errors
    /// Where the system has no memory to keep so many in.
    pub fn new(frames: u32) -> Result<Policy, TryReserveError> {
        let count = frames as usize;
        let small_target = (count / 10).max(1);
        let mut links = Vec::new();
        links.try_reserve_exact(count)?;
        Ok(Policy {
            links,
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            small_target,
            ghost: Ghost {
                order: VecDeque::new(),
                turns: FxHashMap::default(),
                turn: 0,
                capacity: count - small_target.min(count),
            },
        })
    }

    /// Frames in the queues.
    pub fn len(&self) -> usize {
        self.small.len + self.main.len
    }

    fn push(&mut self, frame: u32, place: Place) {
        self.links[frame as usize].place = place;
        match place {
            Place::Small => self.small.push(&mut self.links, frame),
            Place::Main => self.main.push(&mut self.links, frame),
            Place::Nowhere => {}
        }
    }

    fn unlink(&mut self, frame: u32) -> Place {
        let Some(link) = self.links.get_mut(frame as usize) else {
            return Place::Nowhere;
        };
        let place = std::mem::replace(&mut link.place, Place::Nowhere);
        match place {
            Place::Small => self.small.unlink(&mut self.links, frame),
            Place::Main => self.main.unlink(&mut self.links, frame),
            Place::Nowhere => {}
        }
        place
    }

    /// Takes in a frame that now holds the page `key`. The caller clears its heat.
    pub fn insert(&mut self, frame: u32, key: u64) {
        self.unlink(frame);
        let at = frame as usize;
        if at >= self.links.len() {
            self.links.resize(at + 1, Link::NOWHERE);
        }
        self.links[at].key = key;
        let place = if self.ghost.recall(key) {
            Place::Main
        } else {
            Place::Small
        };
        self.push(frame, place);
    }

    /// Takes out a frame that was given up otherwise. Its key is not remembered.
    pub fn remove(&mut self, frame: u32) {
        self.unlink(frame);
    }

    /// Takes out the frame to give up next, among those that `can_evict` lets go; a
    /// frame that it lets go is the answer. `None` after every frame was refused.
    ///
    /// Looks at each frame of the small queue once and of the main queue at most as
    /// often as its heat allows, usually at a few frames in all.
    pub fn evict(
        &mut self,
        heat: &(impl Heat + ?Sized),
        mut can_evict: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut small_left = self.small.len;
        let mut main_left = self.main.len * usize::from(HEAT_MAX + 1);
        let mut over_target = self.small.len >= self.small_target;
        while small_left + main_left > 0 {
            if small_left > 0 && (over_target || main_left == 0) {
                small_left -= 1;
                let frame = self.small.oldest;
                self.unlink(frame);
                if heat.heat(frame) >= PROMOTED {
                    heat.set_heat(frame, 0);
                    self.push(frame, Place::Main);
                    main_left += 1;
                } else if can_evict(frame) {
                    self.ghost.remember(self.links[frame as usize].key);
                    return Some(frame);
                } else {
                    self.push(frame, Place::Small);
                }
                over_target = self.small.len >= self.small_target;
            } else if main_left > 0 {
                main_left -= 1;
                let frame = self.main.oldest;
                self.unlink(frame);
                match heat.heat(frame) {
                    0 if can_evict(frame) => return Some(frame),
                    0 => {}
                    warm => heat.set_heat(frame, warm.min(HEAT_MAX) - 1),
                }
                self.push(frame, Place::Main);
            } else {
                over_target = true;
            }
        }
        None
    }
}
