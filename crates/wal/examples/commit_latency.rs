//! What the log adds to a commit: `commit_latency [FOLDER] [COMMITS] [THREADS]`.
//!
//! With one thread, every turn times one commit through the log and one bare
//! write + sync of as many bytes to a zero-filled file beside it, and prints the
//! percentiles of both. With more, it prints commits a second for 1, 2, 4, …
//! threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fulgurite_disk::{Disk, DiskFile, OpenOptions, RealDisk};
use fulgurite_wal::{Kind, Recovery, TwinLog, WalOptions};

const PAYLOAD: [u8; 105] = [7; 105];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let commits: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let threads: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let base = folder.join(format!("commit-latency-{}", std::process::id()));
    if threads == 1 {
        latency(&base, commits)?
    } else {
        throughput(&base, commits, threads)?
    }
    Ok(())
}

fn open(base: &Path) -> fulgurite_wal::Result<TwinLog> {
    let options = WalOptions {
        limit_bytes: 1 << 30,
        ..WalOptions::default()
    };
    Recovery::open(Arc::new(RealDisk), base, [0; 16], 0, false)?.start(options, 1)
}

fn commit(wal: &TwinLog, seq: u64) -> fulgurite_wal::Result<()> {
    let permit = wal.reserve(PAYLOAD.len())?;
    let placed = wal.place(permit, seq);
    let ticket = wal.fill(placed, Kind::Commit, &[&PAYLOAD])?;
    wal.wait(ticket)
}

fn latency(base: &Path, commits: usize) -> Result<(), Box<dyn std::error::Error>> {
    let wal = open(base)?;
    let mut control_path = base.as_os_str().to_owned();
    control_path.push("-control");
    let control = RealDisk.open(Path::new(&control_path), OpenOptions::CREATE)?;
    let record = [7; 136];
    for index in 0..commits as u64 {
        control.write_at(&[0; 136], index * 136)?;
    }
    control.sync_all()?;
    let (mut ours, mut bare) = (Vec::with_capacity(commits), Vec::with_capacity(commits));
    for index in 0..commits as u64 {
        let start = Instant::now();
        commit(&wal, index + 1)?;
        let middle = Instant::now();
        bare_commit(&*control, &record, index)?;
        ours.push(middle - start);
        bare.push(middle.elapsed());
    }
    wal.close()?;
    RealDisk.remove(Path::new(&control_path))?;
    let (ours, bare) = (percentiles(ours), percentiles(bare));
    println!("                 p50        p95        p99");
    println!(
        "log       {:>10.2?} {:>10.2?} {:>10.2?}",
        ours[0], ours[1], ours[2]
    );
    println!(
        "bare      {:>10.2?} {:>10.2?} {:>10.2?}",
        bare[0], bare[1], bare[2]
    );
    let ratio = |at: usize| ours[at].as_secs_f64() / bare[at].as_secs_f64();
    println!(
        "ratio     {:>10.2} {:>10.2} {:>10.2}",
        ratio(0),
        ratio(1),
        ratio(2)
    );
    Ok(())
}

fn bare_commit(
    control: &dyn DiskFile,
    record: &[u8; 136],
    index: u64,
) -> fulgurite_disk::Result<()> {
    control.write_at(record, index * 136)?;
    control.sync_data()
}

fn percentiles(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    [50, 95, 99].map(|percent| times[(times.len() - 1) * percent / 100])
}

fn throughput(
    base: &Path,
    commits: usize,
    threads_max: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut threads = 1;
    while threads <= threads_max {
        let wal = open(base)?;
        let next = Mutex::new(1u64);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..commits / threads {
                        concurrent_commit(&wal, &next).expect("the disk works");
                    }
                });
            }
        });
        let seconds = start.elapsed().as_secs_f64();
        let stats = wal.stats();
        println!(
            "{threads:>3} threads {:>9.0} commits/s, {:.2} records a sync, {} parks",
            stats.records as f64 / seconds,
            stats.records as f64 / stats.syncs as f64,
            stats.parks,
        );
        wal.close()?;
        threads *= 2;
    }
    Ok(())
}

fn concurrent_commit(wal: &TwinLog, next: &Mutex<u64>) -> fulgurite_wal::Result<()> {
    let permit = wal.reserve(PAYLOAD.len())?;
    let placed = {
        let Ok(mut next) = next.lock() else {
            return Err(fulgurite_wal::Error::Closed);
        };
        let placed = wal.place(permit, *next);
        *next += 1;
        placed
    };
    let ticket = wal.fill(placed, Kind::Commit, &[&PAYLOAD])?;
    wal.wait(ticket)
}
