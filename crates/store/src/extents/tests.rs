//! The free-space map against a bitmap, and damaged maps.

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// One flag a unit: in use.
struct Bitmap(Vec<bool>);

impl Bitmap {
    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for unit in (0..self.0.len()).filter(|&unit| !self.0[unit]) {
            match runs.last_mut() {
                Some(run) if run.end() == unit as u64 => run.len += 1,
                _ => runs.push(Run {
                    start: unit as u64,
                    len: 1,
                }),
            }
        }
        runs
    }

    fn set(&mut self, run: Run, used: bool) {
        if self.0.len() < run.end() as usize {
            self.0.resize(run.end() as usize, false);
        }
        for unit in run.start..run.end() {
            assert_ne!(self.0[unit as usize], used, "{run:?}");
            self.0[unit as usize] = used;
        }
    }
}

fn assert_same(map: &FreeMap, bitmap: &Bitmap) {
    assert_eq!(map.runs().collect::<Vec<_>>(), bitmap.runs());
    assert_eq!(map.end(), bitmap.0.len() as u64);
    assert_eq!(
        map.free,
        bitmap.0.iter().filter(|used| !**used).count() as u64
    );
    for (class, starts) in map.classes.iter().enumerate() {
        assert!(
            starts
                .iter()
                .all(|start| class_of(map.runs[start]) == class)
        );
    }
    assert_eq!(
        map.classes.iter().map(BTreeSet::len).sum::<usize>(),
        map.run_count()
    );
}

#[test]
fn operations_match_a_bitmap() {
    let mut random = Random(1);
    let mut map = FreeMap::new(8);
    let mut bitmap = Bitmap(vec![true; 8]);
    let mut live: Vec<Run> = Vec::new();
    for round in 0..30_000 {
        let shrinking = round / 3000 % 2 == 1;
        match random.below(if shrinking { 20 } else { 12 }) {
            0..6 => {
                let most = if random.below(10) == 0 { 200 } else { 9 };
                let units = 1 + random.below(most) as u32;
                let lowest = bitmap
                    .runs()
                    .into_iter()
                    .find(|run| run.len >= u64::from(units));
                let before = map.end();
                let run = map.allocate(units);
                match lowest {
                    Some(lowest) if u64::from(units) <= EXACT => {
                        assert_eq!(run.start, lowest.start)
                    }
                    Some(_) => {}
                    None => assert!(run.end() > before),
                }
                live.push(run);
                bitmap.set(run, true);
            }
            6 => {
                let pieces: Vec<u32> = (0..random.below(40))
                    .map(|_| 1 + random.below(9) as u32)
                    .collect();
                let runs = map.allocate_many(&pieces);
                assert_eq!(runs.len(), pieces.len());
                for (run, units) in runs.into_iter().zip(pieces) {
                    assert_eq!(run.len, u64::from(units));
                    live.push(run);
                    bitmap.set(run, true);
                }
            }
            7 if random.below(20) == 0 => {
                let start = (map.end() as usize + random.below(60)).saturating_sub(20) as u64;
                let run = Run {
                    start,
                    len: 1 + random.below(30) as u64,
                };
                let free = (run.start..run.end())
                    .all(|unit| !bitmap.0.get(unit as usize).copied().unwrap_or(false));
                assert_eq!(
                    map.reserve(run),
                    if free {
                        Ok(())
                    } else {
                        Err(ExtentError::InUse(run))
                    }
                );
                if free {
                    live.push(run);
                    bitmap.set(run, true);
                }
            }
            8 => {
                let end = map.truncatable_end();
                assert!(end == 0 || bitmap.0[end as usize - 1]);
                if end > 8 {
                    assert!(map.truncate_to(end - 1).is_err());
                }
                map.truncate_to(end).unwrap();
                bitmap.0.truncate(end as usize);
            }
            _ if !live.is_empty() => {
                let run = live.swap_remove(random.below(live.len()));
                map.free(run).unwrap();
                bitmap.set(run, false);
                assert_eq!(map.free(run), Err(ExtentError::DoubleFree(run)));
                let behind = Run {
                    start: map.end(),
                    len: 1,
                };
                assert_eq!(map.free(behind), Err(ExtentError::Outside(behind)));
            }
            _ => {}
        }
        if round % 50 == 0 {
            assert_same(&map, &bitmap);
        }
        if round % 1000 == 0 {
            stored_maps_are_the_same(&map, &bitmap, &live, &mut random);
        }
    }
    assert_same(&map, &bitmap);
}

fn stored_maps_are_the_same(map: &FreeMap, bitmap: &Bitmap, live: &[Run], random: &mut Random) {
    let mut expected = Bitmap(bitmap.0.clone());
    let free: Vec<Run> = live
        .iter()
        .copied()
        .filter(|_| random.below(3) == 0)
        .collect();
    free.iter().for_each(|run| expected.set(*run, false));
    let inner = |run: Run| Run {
        start: run.start + run.len / 3,
        len: run.len.div_ceil(2),
    };
    let used: Vec<Run> = expected
        .runs()
        .into_iter()
        .filter(|_| random.below(3) == 0)
        .map(inner)
        .collect();
    used.iter().for_each(|run| expected.set(*run, true));
    let extra = free.len() + used.len();
    let mut bytes = Vec::new();
    map.encode(free, used, &mut bytes);
    assert!(bytes.len() <= map.encoded_len_max(extra));
    bytes.resize(bytes.len() + 9, 0);
    let decoded = FreeMap::decode(&bytes, map.end()).unwrap();
    assert_same(&decoded, &expected);
    assert!(FreeMap::decode(&bytes, map.end() - 1).is_err());
}

#[test]
fn batches_are_packed() {
    let mut map = FreeMap::new(10_000);
    for start in [100, 200, 1000, 3000] {
        map.free(Run {
            start,
            len: if start < 500 { 64 } else { 800 },
        })
        .unwrap();
    }
    let places = map.allocate_many(&[64; 30]);
    let starts: Vec<u64> = places.iter().map(|run| run.start).collect();
    let run_of = |start: u64, n: u64| (0..n).map(move |i| start + 64 * i);
    let expected: Vec<u64> = run_of(1000, 12)
        .chain(run_of(3000, 12))
        .chain([100, 200])
        .chain(run_of(10_000, 4))
        .collect();
    assert_eq!(starts, expected);
    assert_eq!(map.end(), 10_256);
}

/// However many runs are too short: a batch that passed over all of them took
/// milliseconds where a large file was in small pieces.
#[test]
fn short_runs_hide_no_long_ones() {
    let mut map = FreeMap::new(1_000_000);
    for run in 0..20_000 {
        let len = if run % 500 == 499 { 20 } else { 3 };
        map.free(Run {
            start: 16 + run * 40,
            len,
        })
        .unwrap();
    }
    let places = map.allocate_many(&[20; 30]);
    for (place, number) in places.iter().zip(0..) {
        assert_eq!(place.start, 16 + (500 * number + 499) * 40);
    }
    let places = map.allocate_many(&[20; 20]);
    assert_eq!(places.last().map(|run| run.end()), Some(map.end()));
    assert_eq!(map.end(), 1_000_000 + 10 * 20);
}

#[test]
fn stored_bytes() {
    let mut map = FreeMap::new(300);
    map.free(Run { start: 16, len: 4 }).unwrap();
    map.free(Run {
        start: 150,
        len: 149,
    })
    .unwrap();
    let mut bytes = Vec::new();
    map.encode([], [], &mut bytes);
    assert_eq!(bytes, [1, 0xac, 2, 2, 16, 4, 0x82, 1, 0x95, 1]);
}

#[test]
fn damaged_maps_are_refused_or_consistent() {
    let mut map = FreeMap::new(100_000);
    (0..200).for_each(|i| {
        map.free(Run {
            start: 16 + i * 90,
            len: 1 + i % 80,
        })
        .unwrap()
    });
    let mut bytes = Vec::new();
    map.encode([], [], &mut bytes);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(decoded) = FreeMap::decode(&damaged, 100_000) {
            let runs: Vec<Run> = decoded.runs().collect();
            assert!(runs.windows(2).all(|pair| pair[0].end() < pair[1].start));
            assert!(runs.last().is_none_or(|run| run.end() <= decoded.end()));
        }
    }
    for len in 0..bytes.len() {
        assert!(FreeMap::decode(&bytes[..len], 100_000).is_err());
    }
    assert!(matches!(
        FreeMap::decode(&[2, 1, 0], 9),
        Err(ExtentError::NewerVersion(2))
    ));
    let huge = [
        1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 1, 1, 0xff, 0xff, 1, 1,
    ];
    assert!(FreeMap::decode(&huge, u64::MAX).is_err());
}
