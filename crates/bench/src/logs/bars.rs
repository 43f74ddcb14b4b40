//! The bars of the log on its own.

use super::contenders::{Commitlog, Contender, Okay, Ours, Raw, RawOverlapped};
use super::crew;
use super::slow_disk::SlowDisk;
use crate::machine;
use crate::measure::{Laps, Plan, interleave, toss};
use crate::report::{Bar, Better, Figures, Metric, Report};
use crate::stats::{Percentiles, Samples, median};
use anyhow::Result;
use fulgurite_wal::{Device, Options, Wal};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAYLOAD: [u8; 128] = [0x5A; 128];
/// What the log's ring in memory holds.
const LOG_BUFFER_BYTES: usize = 4 << 20;
const CROWD: usize = 64;
const CROWD_TIME: Duration = Duration::from_millis(300);
const TURN_TIME: Duration = Duration::from_millis(100);

/// Measures every bar and adds it to the report.
pub fn run(effort: f64, seed: u64, folder: &Path, report: &mut Report) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let rounds = ((8.0 * effort) as usize).max(2);
    let ours = Ours::open(&folder.join("bars.log"), Options::file())?;
    ours.warm_up()?;
    let raw = Raw::create(&folder.join("bars.raw"))?;
    commit(effort, &mut rng, &ours, &raw, report)?;
    appends(effort, folder, &ours, report)?;
    block_bytes(folder, &ours, report)?;
    crowd(rounds, &mut rng, &ours, &raw, report)?;
    overlapped(rounds, folder, &ours, report)?;
    for micros in [60, 200, 1_000] {
        simulated_crowd(rounds, micros, report)?;
    }
    peers(rounds, folder, &ours, report)?;
    judge(folder, report);
    Ok(())
}

/// What the figures were to reach.
fn judge(folder: &Path, report: &mut Report) {
    let on_disk = machine::written_bytes(folder).is_some();
    let ratio = |name: &str| {
        let metric = report.metrics.iter().find(|metric| metric.name == name)?;
        Some(match metric.ratio {
            Figures::Distribution(p) => (p.p50, p.p95),
            Figures::Single { value } => (value, value),
        })
    };
    let mut bars = Vec::new();
    if let Some((p50, p95)) = ratio("wal_commit_128") {
        if on_disk {
            bars.push(Bar::at_most("commit, × raw, p50", 1.10, p50));
            bars.push(Bar::at_most("commit, × raw, p95", 1.10, p95));
        } else {
            bars.push(Bar::at_most("commit on tmpfs, × raw, p50", 1.7, p50));
        }
    }
    let at_least = [
        ("append, × bare loop", "wal_append_128", 0.4),
        (
            "8 committers, sync 60 µs, × one",
            "wal_crowd_8_sync_60us",
            3.4,
        ),
        (
            "8 committers, sync 200 µs, × one",
            "wal_crowd_8_sync_200us",
            3.6,
        ),
        (
            "8 committers, sync 1 ms, × one",
            "wal_crowd_8_sync_1000us",
            6.5,
        ),
    ];
    for (case, name, bar) in at_least {
        bars.extend(ratio(name).map(|(figure, _)| Bar::at_least(case, bar, figure)));
    }
    if on_disk {
        let crowd = ratio("wal_crowd_64");
        bars.extend(crowd.map(|(x, _)| Bar::at_least("64 committers, × one", 12.0, x)));
        let p99 = ratio("wal_crowd_64_p99");
        bars.extend(p99.map(|(x, _)| Bar::at_most("64 committers, p99 / sync", 4.0, x)));
        let bytes = ratio("wal_block_bytes");
        bars.extend(bytes.map(|(x, _)| Bar::at_most("KiB written a commit", 4.2, x * 4.0)));
    }
    report.bars.extend(bars);
}

/// One committer beside the raw control.
fn commit(
    effort: f64,
    rng: &mut fastrand::Rng,
    ours: &Ours,
    raw: &Raw,
    report: &mut Report,
) -> Result<()> {
    let plan = Plan::new(effort, 60, 50);
    let run = |log: &dyn Contender, laps: &mut Laps| -> Result<Option<u64>> {
        laps.start();
        for _ in 0..plan.operations {
            log.commit(&PAYLOAD)?;
            laps.lap();
        }
        Ok(None)
    };
    let [a, b] = interleave(
        plan,
        rng,
        |_| (),
        [
            Box::new(|(), laps: &mut Laps| run(ours, laps)),
            Box::new(|(), laps: &mut Laps| run(raw, laps)),
        ],
    )?;
    let what = "commit of 128 bytes, one committer, and a bare write and fdatasync";
    report.push(Metric::latency("wal_commit_128", what, &a, &b).beside("raw pwrite + fdatasync"));
    Ok(())
}

/// Appends without a flush, beside a loop that copies and checksums.
fn appends(effort: f64, folder: &Path, ours: &Ours, report: &mut Report) -> Result<()> {
    let rounds = ((40.0 * effort) as usize).max(5);
    // A burst that the log's buffer takes, and one it has to write on the way.
    for (name, records, what) in [
        (
            "wal_append_128",
            15_000,
            "appends of 128 bytes in bursts of 15,000, flushed in between",
        ),
        (
            "wal_append_128_sustained",
            150_000,
            "appends of 128 bytes in bursts of 150,000",
        ),
    ] {
        burst(name, what, rounds, records, report, |records| {
            ours.log.truncate(ours.log.end())?;
            let rate = append_loop(&ours.log, records)?;
            ours.log.flush()?;
            Ok(rate)
        })?;
    }
    let what = "150,000 appends of 128 bytes to a log just made";
    burst(
        "wal_append_128_fresh",
        what,
        rounds / 4 + 1,
        150_000,
        report,
        |records| {
            let path = folder.join("fresh.log");
            let rate = {
                let log = Wal::open(&path, Options::file())?;
                append_loop(&log, records)?
            };
            std::fs::remove_file(&path)?;
            Ok(rate)
        },
    )
}

/// Rounds of `append`, which says how many records a second, each beside the
/// bare loop.
fn burst(
    name: &str,
    what: &str,
    rounds: usize,
    records: usize,
    report: &mut Report,
    mut append: impl FnMut(usize) -> Result<f64>,
) -> Result<()> {
    let (mut rates, mut bare) = (Vec::new(), Vec::new());
    // As large as the log's buffer in memory, and touched: neither side meets a
    // page fault, but for the log just made.
    let mut buffer = vec![1u8; LOG_BUFFER_BYTES];
    for _ in 0..rounds {
        rates.push(append(records)?);
        bare.push(bare_loop(&mut buffer, records));
    }
    report.push(Metric::rate(name, what, "records/s", &rates, &bare).beside("bare copy + CRC-32C"));
    Ok(())
}

/// Appends a second, of so many.
fn append_loop(log: &Wal, records: usize) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..records {
        log.append(black_box(&PAYLOAD))?;
    }
    Ok(records as f64 / start.elapsed().as_secs_f64())
}

/// Copies the records one behind the other, around and around the buffer, and
/// checksums each copy. Records a second.
fn bare_loop(buffer: &mut [u8], records: usize) -> f64 {
    let (mut sum, mut at) = (0, 0);
    let start = Instant::now();
    for _ in 0..records {
        if at + PAYLOAD.len() > buffer.len() {
            at = 0;
        }
        let place = &mut buffer[at..at + PAYLOAD.len()];
        place.copy_from_slice(black_box(&PAYLOAD));
        sum ^= crc_fast::crc32_iscsi(place);
        at += PAYLOAD.len();
    }
    let rate = records as f64 / start.elapsed().as_secs_f64();
    black_box(sum);
    rate
}

/// What a commit costs the disk, as the block layer counts it. That count is the
/// whole device's, so the quietest of many short stretches is taken.
fn block_bytes(folder: &Path, ours: &Ours, report: &mut Report) -> Result<()> {
    const STRETCHES: usize = 60;
    const COMMITS: u64 = 52;
    let mut quietest = None;
    for _ in 0..STRETCHES {
        let before = machine::written_bytes(folder);
        for _ in 0..COMMITS {
            ours.log.commit(&PAYLOAD)?;
        }
        let after = machine::written_bytes(folder);
        let written = before.zip(after).map(|(a, b)| b.saturating_sub(a));
        quietest = match (quietest, written) {
            (Some(a), Some(b)) => Some(std::cmp::min(a, b)),
            (a, b) => a.or(b),
        };
    }
    let Some(written) = quietest else {
        eprintln!("  wal_block_bytes: this file system has no block device to count at");
        return Ok(());
    };
    let bytes = written as f64 / COMMITS as f64;
    let what = "bytes the device wrote a commit of 128 bytes, in the quietest of 60 stretches";
    let metric = Metric::single(
        "wal_block_bytes",
        what,
        Better::Lower,
        "bytes",
        bytes,
        4096.0,
    );
    report.push(metric.beside("one block"));
    Ok(())
}

/// Many committers beside one, and beside the sync time: the median of what a
/// bare write of 128 bytes and its `fdatasync` take one thread that is alone.
/// All three take turns of a tenth of a second, since a disk's sync time drifts.
fn crowd(
    rounds: usize,
    rng: &mut fastrand::Rng,
    ours: &Ours,
    raw: &Raw,
    report: &mut Report,
) -> Result<()> {
    let (mut rates, mut samples) = ([Vec::new(), Vec::new()], Samples::default());
    let (mut sync, mut quotients) = (Samples::default(), Vec::new());
    for _ in 0..rounds * 4 {
        let mut round = [Samples::default(), Samples::default()];
        for side in toss(rng) {
            let committers = [CROWD, 1][side];
            let nanos = crew::work(raw, 1, &PAYLOAD, TURN_TIME / 4)?.nanos;
            round[1].push_round(nanos.clone());
            sync.push_round(nanos);
            let work = crew::work(ours, committers, &PAYLOAD, TURN_TIME)?;
            rates[side].push(work.rate);
            if side == 0 {
                round[0].push_round(work.nanos.clone());
                samples.push_round(work.nanos);
            }
        }
        let [crowd, sync] = round.map(|side| side.micros());
        quotients.push(crowd.p99 / sync.p50);
    }
    let what = "64 committers and one";
    let metric = Metric::rate("wal_crowd_64", what, "commits/s", &rates[0], &rates[1]);
    report.push(metric.beside("one committer"));
    // The bar: the crowd's p99 over the median sync.
    let (crowd, sync) = (samples.micros(), sync.micros());
    let what = "p99 of a commit among 64, and the median of a bare write and sync, in turns";
    let metric = Metric::single(
        "wal_crowd_64_p99",
        what,
        Better::Lower,
        "µs",
        crowd.p99,
        sync.p50,
    );
    report.push(metric.beside("raw sync"));
    report.note(format!(
        "64 committers, in sync times (the median of a bare write of 128 bytes and its fdatasync, \
         {:.0} µs): p50 {:.1}, p99 {:.1}, p99 of a turn of 100 ms {:.1} at the median; the bare \
         sync's own p99 is {:.1}",
        sync.p50,
        crowd.p50 / sync.p50,
        crowd.p99 / sync.p50,
        median(&quotients),
        sync.p99 / sync.p50,
    ));
    let mut one = 0.0;
    for committers in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        let rate = crew::work(ours, committers, &PAYLOAD, CROWD_TIME)?.rate;
        if committers == 1 {
            one = rate;
        }
        let name = format!("wal_committers_{committers}");
        let what = "committers on one log, once each";
        let metric = Metric::single(&name, what, Better::Higher, "commits/s", rate, one);
        report.push(metric.beside("one committer"));
    }
    Ok(())
}

/// What overlapping syncs could bring: bare writes and syncs by eight threads
/// at once, each its own blocks, beside eight committers that share one sync.
fn overlapped(rounds: usize, folder: &Path, ours: &Ours, report: &mut Report) -> Result<()> {
    let raw = RawOverlapped::create(&folder.join("overlapped.raw"))?;
    let (mut shared, mut apart) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        shared.push(crew::work(ours, 8, &PAYLOAD, CROWD_TIME)?.rate);
        apart.push(crew::work(&raw, 8, &PAYLOAD, CROWD_TIME)?.rate);
    }
    let what = "8 committers, and 8 threads that each write and sync alone, at once";
    let metric = Metric::rate("wal_overlapped_8", what, "commits/s", &shared, &apart);
    report.push(metric.beside("raw overlapped syncs"));
    Ok(())
}

/// Eight committers beside one where a sync takes `micros`.
fn simulated_crowd(rounds: usize, micros: u64, report: &mut Report) -> Result<()> {
    let disk = Arc::new(SlowDisk::new(Duration::from_micros(micros)));
    let options = Options::device(Device::Memory).disk(disk);
    let ours = Ours::open(Path::new("simulated.log"), options)?;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (side, committers) in [8, 1].into_iter().enumerate() {
            let work = crew::work(&ours, committers, &PAYLOAD, CROWD_TIME)?;
            rates[side].push(work.rate);
        }
    }
    let name = format!("wal_crowd_8_sync_{micros}us");
    let what = "8 committers and one, where a sync takes that long";
    report
        .push(Metric::rate(&name, what, "commits/s", &rates[0], &rates[1]).beside("one committer"));
    let stats = ours.log.stats();
    eprintln!(
        "    mean group {:.2}, {} waits for a crowd",
        stats.records as f64 / stats.syncs.max(1) as f64,
        stats.crowd_waits
    );
    Ok(())
}

/// Beside published logs, at the same durability.
fn peers(rounds: usize, folder: &Path, ours: &Ours, report: &mut Report) -> Result<()> {
    let okay = Okay::create(&folder.join("okaywal"))?;
    let commitlog = Commitlog::create(&folder.join("commitlog"))?;
    let peers: [(&str, &dyn Contender); 2] = [("okaywal", &okay), ("commitlog", &commitlog)];
    for (name, peer) in peers {
        for committers in [1, 8, 64] {
            let (mut rates, mut samples) = (
                [Vec::new(), Vec::new()],
                [(); 2].map(|()| Samples::default()),
            );
            for _ in 0..rounds {
                for (side, log) in [ours as &dyn Contender, peer].into_iter().enumerate() {
                    let work = crew::work(log, committers, &PAYLOAD, CROWD_TIME)?;
                    rates[side].push(work.rate);
                    samples[side].push_round(work.nanos);
                }
            }
            let what = "durable commits of 128 bytes";
            let metric = format!("wal_{committers}_vs_{name}");
            report
                .push(Metric::rate(&metric, what, "commits/s", &rates[0], &rates[1]).beside(name));
            let [a, b]: [Percentiles; 2] = [samples[0].micros(), samples[1].micros()];
            let metric = format!("{metric}_latency");
            report.push(Metric::distribution(&metric, what, "µs", a, b).beside(name));
        }
    }
    Ok(())
}
