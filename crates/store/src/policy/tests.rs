//! The policy's promises: scan resistance, pins, bounded memory, exact membership.

use std::collections::HashMap;

use super::*;

/// A cache of keys driven by the policy.
struct Cache {
    policy: Policy,
    heat: Vec<AtomicU8>,
    frames: HashMap<u64, u32>,
    keys: Vec<Option<u64>>,
}

impl Cache {
    fn new(frames: u32) -> Cache {
        Cache {
            policy: Policy::new(frames).expect("memory"),
            heat: (0..frames).map(|_| AtomicU8::new(0)).collect(),
            frames: HashMap::new(),
            keys: vec![None; frames as usize],
        }
    }

    fn access(&mut self, key: u64) -> bool {
        if let Some(&frame) = self.frames.get(&key) {
            touch(&self.heat[frame as usize]);
            return true;
        }
        let frame = match self.keys.iter().position(Option::is_none) {
            Some(frame) if self.frames.len() < self.keys.len() => frame as u32,
            _ => self.policy.evict(&self.heat[..], |_| true).unwrap(),
        };
        if let Some(old) = self.keys[frame as usize].replace(key) {
            self.frames.remove(&old);
        }
        self.heat[frame as usize].store(0, Ordering::Relaxed);
        self.policy.insert(frame, key);
        self.frames.insert(key, frame);
        false
    }

    fn visit(&mut self, key: u64) {
        self.access(key);
    }
}

#[test]
fn a_scan_does_not_flush_the_hot_set() {
    let mut cache = Cache::new(1000);
    for _ in 0..5 {
        (0..500).for_each(|key| cache.visit(key));
    }
    (1000..11_000).for_each(|key| cache.visit(key));
    let hot = (0..500).filter(|&key| cache.access(key)).count();
    assert!(
        hot >= 495,
        "{hot} of 500 survived a scan of ten times the cache"
    );
}

#[test]
fn a_scan_beside_traffic_costs_it_little() {
    let mut cache = Cache::new(1000);
    let (mut hits, mut rounds) = (0, 0);
    for i in 0..100_000_u64 {
        cache.access(1_000_000 + i);
        let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let hit = cache.access(key % 600);
        if i > 10_000 {
            rounds += 1;
            hits += usize::from(hit);
        }
    }
    assert!(hits * 100 > rounds * 97, "{hits} of {rounds}");
}

#[test]
fn returning_keys_enter_the_main_queue() {
    let mut cache = Cache::new(100);
    (0..150).for_each(|key| cache.visit(key));
    assert!(!cache.access(0));
    let frame = cache.frames[&0];
    assert_eq!(cache.policy.links[frame as usize].place, Place::Main);
    assert!(cache.policy.ghost.order.len() <= 90 && cache.policy.ghost.turns.len() <= 90);
}

#[test]
fn pinned_frames_stay() {
    let mut cache = Cache::new(100);
    (0..100).for_each(|key| cache.visit(key));
    cache.heat[3].store(3, Ordering::Relaxed);
    let mut asked = 0;
    let refused = cache.policy.evict(&cache.heat[..], |_| {
        asked += 1;
        false
    });
    assert_eq!(refused, None);
    assert!(asked <= 500, "bounded work");
    assert_eq!(cache.policy.len(), 100);
    for only in [0, 3, 57, 99] {
        assert_eq!(
            cache.policy.evict(&cache.heat[..], |frame| frame == only),
            Some(only)
        );
        assert_eq!(
            cache.policy.evict(&cache.heat[..], |frame| frame == only),
            None
        );
    }
    assert_eq!(cache.policy.len(), 96);
}

#[test]
fn queues_hold_what_was_inserted() {
    let mut policy = Policy::new(50).expect("memory");
    let heat: Vec<AtomicU8> = (0..50).map(|_| AtomicU8::new(0)).collect();
    let mut inside = [false; 50];
    let mut state = 7_u64;
    for step in 0..50_000_u64 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let frame = (state >> 40) as u32 % 50;
        match (state >> 33) % 4 {
            0 => {
                policy.insert(frame, step % 97);
                heat[frame as usize].store(0, Ordering::Relaxed);
                inside[frame as usize] = true;
            }
            1 => touch(&heat[frame as usize]),
            2 => {
                policy.remove(frame);
                inside[frame as usize] = false;
            }
            _ => match policy.evict(&heat[..], |frame| frame % 3 != 0) {
                Some(frame) => {
                    assert!(std::mem::replace(&mut inside[frame as usize], false));
                    assert_ne!(frame % 3, 0);
                }
                None => assert!((0..50).all(|frame| frame % 3 == 0 || !inside[frame])),
            },
        }
        assert_eq!(
            policy.len(),
            inside.iter().filter(|inside| **inside).count()
        );
    }
}

#[test]
fn one_frame_is_enough() {
    let mut cache = Cache::new(1);
    (0..10).for_each(|key| assert!(!cache.access(key)));
    assert!(cache.access(9));
    let mut policy = Policy::new(0).expect("memory");
    assert_eq!(policy.len(), 0);
    assert_eq!(policy.evict(&[][..], |_| true), None);
}
