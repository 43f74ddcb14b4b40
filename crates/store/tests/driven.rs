//! A store without a thread of its own: what its thread would do is done when it
//! is told to, or by whoever cannot go on without it, and no time passes but its
//! driver's.

use fulgurite_disk::{DiskError, Driver, Intercepted, Interceptor, Machine, MemoryDisk, Result};
use fulgurite_store::{Durability, ErrorKind, Isolation, Key, KeyKind, Options, Store};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

/// A clock on which time passes only where somebody waits.
#[derive(Debug, Default)]
struct Counted {
    micros: AtomicU64,
    waits: AtomicU64,
}

impl Driver for Counted {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(Relaxed))
    }

    fn pass(&self, time: Duration) {
        self.waits.fetch_add(1, Relaxed);
        self.micros.fetch_add(time.as_micros() as u64, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

fn options(driver: &Arc<Counted>) -> Options {
    Options {
        cache_bytes: 1 << 20,
        checkpoint_bytes: 64 << 10,
        log_limit_bytes: Some(256 << 10),
        driver: Some(driver.clone()),
        ..Options::default()
    }
}

fn open(options: Options) -> Store {
    Store::open_on(Arc::new(MemoryDisk::new()), "driven.db", options).expect("opens")
}

/// Neither the log nor the cache holds a tenth of it.
#[test]
fn who_needs_a_checkpoint_makes_it() {
    let driver = Arc::new(Counted::default());
    let store = open(options(&driver));
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    for key in 0..3_000 {
        txn.begin_statement(&[&tree]).expect("begins");
        let value = [key as u8; 1_500];
        txn.put(&tree, Key::Int(key), &value).expect("a put");
        txn.commit().expect("commits");
    }
    let stats = store.stats();
    assert!(stats.checkpoint > 0 && stats.visible >= 3_000, "{stats:?}");
    assert_eq!(
        driver.waits.load(Relaxed),
        0,
        "nobody had to wait for anybody"
    );
    assert_eq!(
        store.integrity_check().expect("a check"),
        Vec::<String>::new()
    );
}

/// A reservation that the log's file has no room for extends it, and its commit takes
/// longer. From half a megabyte on that is done between commits.
#[test]
fn a_tick_lets_the_log_grow_ahead_of_commits() {
    let driver = Arc::new(Counted::default());
    let store = open(Options {
        cache_bytes: 64 << 20,
        checkpoint_bytes: 8 << 20,
        log_limit_bytes: None,
        ..options(&driver)
    });
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let extensions = || store.stats().log.expect("there is a log").extensions;
    let (mut by_commits, mut by_ticks) = (0, 0);
    let mut txn = store.txn();
    for key in 0..500 {
        let before = extensions();
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &[1; 10_000]).expect("a put");
        txn.commit().expect("commits");
        let committed = extensions();
        by_commits += committed - before;
        store.tick().expect("a tick");
        by_ticks += extensions() - committed;
    }
    assert_eq!((by_commits, by_ticks), (4, 5));
}

#[test]
fn a_tick_makes_the_checkpoint_that_was_asked_for() {
    let driver = Arc::new(Counted::default());
    let store = open(options(&driver));
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    let commit = |txn: &mut fulgurite_store::Txn, key| {
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &[1; 1_000]).expect("a put");
        txn.commit().expect("commits");
    };
    commit(&mut txn, 0);
    store.tick().expect("a tick");
    assert_eq!(store.stats().checkpoint, 0, "nobody asked");
    for key in 0..80 {
        commit(&mut txn, key);
        driver.pass(Duration::from_millis(1));
    }
    assert_eq!(store.stats().checkpoint, 0, "it is not done by itself");
    store.tick().expect("a tick");
    assert_eq!(store.stats().checkpoint, store.stats().visible);
}

/// What is written to the file while the same keys are changed on is written again soon.
#[test]
fn a_checkpoint_is_put_off_while_the_log_fills_fast() {
    let driver = Arc::new(Counted::default());
    let store = open(options(&driver));
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    let mut fill = |kib: i64| {
        for key in 0..kib {
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(key), &[1; 1_000]).expect("a put");
            txn.commit().expect("commits");
            store.tick().expect("a tick");
        }
    };
    fill(150);
    assert_eq!(store.stats().checkpoint, 0, "no time has passed");
    fill(60);
    let at_most = store.stats().checkpoint;
    assert!(at_most > 0, "three quarters of the log are full");
    fill(100);
    assert_eq!(store.stats().checkpoint, at_most, "it begins anew");
    driver.pass(Duration::from_secs(1));
    store.tick().expect("a tick");
    let stats = store.stats();
    assert_eq!(stats.checkpoint, stats.visible, "nobody writes any more");
}

#[test]
fn a_tick_syncs_in_normal() {
    let driver = Arc::new(Counted::default());
    let store = open(Options {
        durability: Durability::Normal,
        ..options(&driver)
    });
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let syncs = || store.stats().log.expect("a log").syncs;
    let before = syncs();
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    txn.put(&tree, Key::Int(1), b"one").expect("a put");
    txn.commit().expect("commits");
    assert_eq!(syncs(), before);
    store.tick().expect("a tick");
    assert_eq!(syncs(), before + 1);
}

/// Somebody asks to look whether a checkpoint is due, and none is, since what died is
/// only to be freed: what is done when nobody asks must not be left out for that.
/// Where it was, in `normal`, commits were lost that a tick should have made durable.
#[test]
fn a_tick_that_finds_no_checkpoint_due_syncs_too() {
    let driver = Arc::new(Counted::default());
    let store = open(Options {
        durability: Durability::Normal,
        checkpoint_bytes: 1 << 30,
        log_limit_bytes: Some(1 << 31),
        ..options(&driver)
    });
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    store.checkpoint().expect("a checkpoint");
    let change_all = |txn: &mut fulgurite_store::Txn| {
        for key in 0..80 {
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(key), &[1; 900]).expect("a put");
            txn.commit().expect("commits");
        }
    };
    let mut txn = store.txn();
    change_all(&mut txn);
    let before = store.stats();
    let log = |stats: &fulgurite_store::Stats| stats.log.expect("a log");
    let half = before.cache.frames / 2;
    // Each reader keeps the table as it is once more, until it fills half of the cache.
    let mut readers = Vec::new();
    while store.stats().cache.unwritten <= half {
        let mut reader = store.txn();
        reader.begin_read().expect("begins");
        readers.push(reader);
        change_all(&mut txn);
    }
    drop(readers);
    store.tick().expect("a tick");
    let after = store.stats();
    assert_eq!(after.checkpoint, before.checkpoint, "{after:?}");
    assert!(after.cache.unwritten < half, "{after:?}");
    assert_eq!(log(&after).syncs, log(&before).syncs + 1, "{after:?}");
}

/// An hour of busy timeout, in which no time passes but the driver's.
#[test]
fn a_wait_ends_by_the_drivers_clock() {
    let driver = Arc::new(Counted::default());
    let hour = Duration::from_secs(3_600);
    let store = open(Options {
        busy_timeout: hour,
        ..options(&driver)
    });
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut first = store.txn();
    first.begin_immediate().expect("begins");
    let mut second = store.txn();
    let refused = second.begin_immediate().expect_err("the first is at work");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert_eq!(driver.now(), hour);
    let refused = second.begin_statement(&[&tree]).expect_err("still");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert_eq!(driver.now(), 2 * hour);
    drop(first);
    second.begin(Isolation::Serializable).expect("begins");
    second.put(&tree, Key::Int(1), b"one").expect("a put");
    second.commit().expect("commits");
}

/// Where a checkpoint stops in its first write, until somebody cannot go on, and then
/// fails.
#[derive(Debug)]
struct Stop {
    is_near: AtomicBool,
    reached: Barrier,
    passed: Barrier,
    done: Barrier,
    micros: AtomicU64,
    long_waits: AtomicU64,
}

impl Stop {
    /// `waiters` for the end of the checkpoint, itself included.
    fn new(waiters: usize) -> Arc<Self> {
        Arc::new(Self {
            is_near: AtomicBool::new(false),
            reached: Barrier::new(2),
            passed: Barrier::new(2),
            done: Barrier::new(waiters),
            micros: AtomicU64::new(0),
            long_waits: AtomicU64::new(0),
        })
    }
}

impl Interceptor for Stop {
    fn before_write(&self, path: &Path) -> Result<()> {
        let is_log = path.to_string_lossy().contains("-wal");
        if is_log || !self.is_near.swap(false, Relaxed) {
            return Ok(());
        }
        self.reached.wait();
        self.passed.wait();
        let source = std::io::Error::other("it failed once");
        Err(DiskError::new("write", path, source))
    }
}

impl Driver for Stop {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(Relaxed))
    }

    /// The first long wait, not one that keeps a pace, lets the checkpoint go on, and
    /// ends when that has failed.
    fn pass(&self, time: Duration) {
        let mut passed = time;
        if time >= Duration::from_secs(1) && self.long_waits.fetch_add(1, Relaxed) == 0 {
            self.passed.wait();
            self.done.wait();
            passed = Duration::from_millis(1);
        }
        self.micros.fetch_add(passed.as_micros() as u64, Relaxed);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

/// Another thread is making one, so nobody makes the checkpoint that was asked for;
/// and that one brings no frames.
#[test]
fn who_waits_for_frames_is_told_that_anothers_checkpoint_failed() {
    let stop = Stop::new(2);
    let options = Options {
        cache_bytes: 0,
        driver: Some(stop.clone()),
        ..Options::default()
    };
    let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &stop));
    let store = Store::open_on(disk, "driven.db", options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let mut txn = store.txn();
    for key in 0..20 {
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &[1; 1_000]).expect("a put");
        txn.commit().expect("commits");
    }
    stop.is_near.store(true, Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            store.checkpoint().expect_err("its first write fails");
            stop.done.wait();
        });
        stop.reached.wait();
        for key in 20..400 {
            txn.begin_statement(&[&tree]).expect("begins");
            txn.put(&tree, Key::Int(key), &[1; 1_000]).expect("a put");
            txn.commit().expect("commits");
        }
    });
    let waits = stop.long_waits.load(Relaxed);
    assert_eq!(waits, 1, "it ran out of frames once, and waited no longer");
}

/// While another thread's checkpoint stands still, nothing makes space in the log. Waits
/// for that took the store's busy timeout, whatever the context's was, and after them
/// what an explicit transaction had written was gone, although it was only busy.
#[test]
fn who_finds_no_space_in_the_log_waits_as_long_as_it_likes_and_has_lost_nothing() {
    let stop = Stop::new(1);
    let driver = Arc::new(Counted::default());
    let options = Options {
        busy_timeout: Duration::from_secs(2),
        ..options(&driver)
    };
    let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &stop));
    let store = Store::open_on(disk, "driven.db", options).expect("opens");
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let [mut hasty, mut patient, mut alone] = [store.txn(), store.txn(), store.txn()];
    hasty.set_busy_timeout(Duration::ZERO);
    patient.set_busy_timeout(Duration::from_secs(5));
    alone.set_busy_timeout(Duration::ZERO);
    stop.is_near.store(true, Relaxed);
    let mut refusals = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| store.checkpoint().expect_err("its first write fails"));
        stop.reached.wait();
        let mut put = |key| {
            hasty.begin_statement(&[&tree])?;
            hasty.put(&tree, Key::Int(key), &[1; 1_000])?;
            hasty.commit()
        };
        let refused = (1..).find_map(|key| put(key).err());
        refusals.extend(refused.map(|error| (error.kind(), driver.now())));
        for (txn, key) in [(&mut patient, -1), (&mut alone, -2)] {
            let begun = match key {
                -1 => txn.begin(Isolation::Serializable),
                _ => txn.begin_immediate(),
            };
            begun.expect("begins");
            txn.put(&tree, Key::Int(key), &[2; 1_000]).expect("a put");
            let refused = txn.commit().err();
            refusals.extend(refused.map(|error| (error.kind(), driver.now())));
        }
        stop.passed.wait();
    });
    let times = [0, 5, 5].map(|seconds| (ErrorKind::Busy, Duration::from_secs(seconds)));
    assert_eq!(refusals, times);
    // Each makes the checkpoint itself where that is due.
    alone.commit().expect("commits what it had written");
    patient.commit().expect("commits what it had written");
    patient.begin_read().expect("reads");
    for key in [-1, -2] {
        assert!(patient.contains(&tree, Key::Int(key)).expect("looks"));
    }
}

/// A clock that lets something happen while the next one waits.
#[derive(Default)]
struct Meanwhile {
    clock: Counted,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

impl Driver for Meanwhile {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn pass(&self, time: Duration) {
        let act = self.act.lock().expect("no panic").take();
        if let Some(act) = act {
            act();
        }
        self.clock.pass(time);
    }

    fn random(&self) -> u64 {
        Machine.random()
    }
}

/// An explicit transaction found space in the log, waited for its locks, and found the
/// space taken: it waited once more, with the locks, and when there was none in time what
/// it had written was gone, although it was only busy.
#[test]
fn who_finds_its_space_taken_when_it_has_its_locks_has_lost_nothing() {
    let stop = Stop::new(1);
    let driver = Arc::new(Meanwhile::default());
    let options = Options {
        driver: Some(driver.clone()),
        ..options(&Arc::default())
    };
    let disk = Arc::new(Intercepted::new(MemoryDisk::new(), &stop));
    let store = Store::open_on(disk, "driven.db", options).expect("opens");
    let [tree, other] = ["t", "u"].map(|name| {
        let family = store.create_family(name, KeyKind::Int);
        family.expect("a family")
    });
    let [mut txn, mut holder, mut filler] = [store.txn(), store.txn(), store.txn()];
    txn.set_busy_timeout(Duration::from_secs(5));
    filler.set_busy_timeout(Duration::ZERO);
    let mut fill = move |bytes: usize| {
        let mut put = |key| {
            filler.begin_statement(&[&other])?;
            filler.put(&other, Key::Int(key), &vec![1; bytes])?;
            filler.commit()
        };
        let refused = (1..).find_map(|key| put(key).err());
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::Busy));
    };
    stop.is_near.store(true, Relaxed);
    let (mut refused, mut has_lock) = (Ok(()), false);
    std::thread::scope(|scope| {
        scope.spawn(|| store.checkpoint().expect_err("its first write fails"));
        stop.reached.wait();
        fill(1_000);
        holder.begin_statement(&[&tree]).expect("begins");
        txn.begin(Isolation::Serializable).expect("begins");
        txn.put(&tree, Key::Int(1), b"one").expect("a put");
        *driver.act.lock().expect("no panic") = Some(Box::new(move || {
            fill(1);
            drop(holder);
        }));
        refused = txn
            .commit()
            .map_err(|error| (error.kind(), driver.now().as_secs()));
        let mut another = store.txn();
        has_lock = another.begin_statement(&[&tree]).is_err();
        stop.passed.wait();
    });
    assert_eq!(refused, Err((ErrorKind::Busy, 5)), "as long as it likes");
    assert!(!has_lock);
    assert!(driver.act.lock().expect("no panic").is_none(), "it waited");
    txn.commit().expect("commits what it had written");
    txn.begin_read().expect("reads");
    assert!(txn.contains(&tree, Key::Int(1)).expect("looks"));
}

/// Each put into a leaf that was not in memory took two frames, one for the page as it
/// was and one for its copy, so that twice as many pages were evicted as were read.
#[test]
fn a_leaf_that_is_read_to_be_changed_takes_one_frame() {
    let driver = Arc::new(Counted::default());
    let store = open(Options {
        checkpoint_bytes: 64 << 20,
        log_limit_bytes: Some(128 << 20),
        ..options(&driver)
    });
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let rows = 8_000;
    let mut txn = store.txn();
    for key in 0..rows {
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), &[key as u8; 900])
            .expect("a put");
        txn.commit().expect("commits");
    }
    store.checkpoint().expect("a checkpoint");
    let before = store.stats().cache;
    let changed = 50;
    for key in (0..rows).step_by((rows / changed) as usize) {
        txn.begin_statement(&[&tree]).expect("begins");
        txn.put(&tree, Key::Int(key), b"changed").expect("a put");
        txn.commit().expect("commits");
    }
    let after = store.stats().cache;
    let (loads, evictions) = (
        after.loads - before.loads,
        after.evictions - before.evictions,
    );
    assert!(loads >= changed as u64, "the leaves were not in memory");
    // Evicted are some at a time.
    let surplus = 32;
    assert!(evictions <= loads + surplus, "{evictions} for {loads}");
}

/// What was rolled back was read from disk again by the next transaction, and whatever
/// needed it as it was read it a second time, though most frames were free: each leaf was
/// read into the transaction's own frame.
#[test]
fn a_leaf_that_is_read_to_be_changed_stays_after_a_rollback_while_frames_are_free() {
    let disk = Arc::new(MemoryDisk::new());
    let open = || Store::open_on(disk.clone(), "driven.db", Options::default()).expect("opens");
    let store = open();
    let tree = store.create_family("t", KeyKind::Int).expect("a family");
    let rows = 2_000;
    let mut txn = store.txn();
    txn.begin_statement(&[&tree]).expect("begins");
    for key in 0..rows {
        txn.put(&tree, Key::Int(key), &[key as u8; 900])
            .expect("a put");
    }
    txn.commit().expect("commits");
    drop((txn, tree, store));

    let store = open();
    let tree = store.family("t").expect("reads").expect("the family");
    let mut txn = store.txn();
    let mut change = || {
        let before = store.stats().cache.loads;
        txn.begin_statement(&[&tree]).expect("begins");
        let keys = (0..rows).step_by(100);
        for key in keys {
            txn.put(&tree, Key::Int(key), b"changed").expect("a put");
        }
        txn.rollback();
        store.stats().cache.loads - before
    };
    assert!(change() >= 20, "the leaves were not in memory");
    assert_eq!(change(), 0, "they are");
}
