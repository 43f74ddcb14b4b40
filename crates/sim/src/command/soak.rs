//! `soak`: seeds, one after the other, in a few processes at once (closing a
//! store takes a lock of its process, so threads would wait for one another).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fulgurite_sim::proof::{self, Case, Kind, Tally};
use fulgurite_sim::seed;

use super::replay::again;

/// Every how many seeds a workload is run again, to see that it does the same.
const REPEATED_EVERY: u64 = 8;

/// How long, from which seed on, in how many processes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Minutes to run
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Stops after so many seeds
    #[arg(long, default_value_t = u64::MAX)]
    seeds: u64,
    /// Processes [default: one a core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Only the cases over several stores
    #[arg(long)]
    together: bool,
    /// Which of the processes this is
    #[arg(long, hide = true)]
    job: Option<usize>,
}

#[derive(Debug, Default)]
struct Found {
    tally: Tally,
    repeated: u64,
    failed: u64,
}

impl Found {
    fn line(&self) -> String {
        let Tally {
            seeds,
            cuts,
            again,
            kills,
            faults,
            faulted_steps,
            damages,
            executions,
        } = self.tally;
        format!(
            "TALLY {seeds} {cuts} {again} {kills} {faults} {faulted_steps} {damages} {executions} {} {}",
            self.repeated, self.failed
        )
    }

    fn add_line(&mut self, line: &str) {
        let numbers: Vec<u64> = line.split(' ').skip(1).flat_map(str::parse).collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        self.tally.add(&Tally {
            seeds: number(0),
            cuts: number(1),
            again: number(2),
            kills: number(3),
            faults: number(4),
            faulted_steps: number(5),
            damages: number(6),
            executions: number(7),
        });
        self.repeated += number(8);
        self.failed += number(9);
    }
}

/// Says whether all was well.
///
/// # Errors
/// Processes that cannot be started.
pub fn run(args: &Args) -> Result<bool, String> {
    let jobs = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    if let Some(job) = args.job {
        work(args, job as u64, jobs as u64);
        return Ok(true);
    }
    let started = Instant::now();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut children = Vec::new();
    for job in 0..jobs {
        let child = Command::new(&program)
            .arg("soak")
            .args(["--minutes", &args.minutes.to_string()])
            .args(["--first", &args.first.to_string()])
            .args(["--seeds", &args.seeds.to_string()])
            .args(["--jobs", &jobs.to_string()])
            .args(args.together.then_some("--together"))
            .args(["--job", &job.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        children.push(child);
    }
    let mut found = Found::default();
    for mut child in children {
        let Some(output) = child.stdout.take() else {
            continue;
        };
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.starts_with("TALLY ") {
                found.add_line(&line);
            } else {
                println!("{line}");
            }
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            println!("FAILED a process of the soak ended with {status}");
            found.failed += 1;
        }
    }
    report(&found, started.elapsed());
    Ok(found.failed == 0 && found.tally.seeds > 0)
}

fn report(found: &Found, time: Duration) {
    let tally = &found.tally;
    let second = |count: u64| count as f64 / time.as_secs_f64();
    println!("{:>12}  seeds", tally.seeds);
    println!(
        "{:>12}  power cuts, each recovered from and checked",
        tally.cuts
    );
    println!(
        "{:>12}  of them during or soon after such a recovery",
        tally.again
    );
    println!(
        "{:>12}  processes killed, and the power cut under the next one",
        tally.kills
    );
    println!("{:>12}  calls failed on purpose", tally.faults);
    println!(
        "{:>12}  steps of workloads whose calls fail",
        tally.faulted_steps
    );
    println!(
        "{:>12}  bytes flipped, writes lost or misdirected",
        tally.damages
    );
    println!(
        "{:>12}  workloads run again, to see that they do the same",
        found.repeated
    );
    println!("{:>12}  failures", found.failed);
    println!(
        "{:>12.0}  seconds: {:.1} seeds and {:.0} power cuts a second",
        time.as_secs_f64(),
        second(tally.seeds),
        second(tally.cuts)
    );
}

/// One process: every `jobs`-th seed.
fn work(args: &Args, job: u64, jobs: u64) {
    let end = Instant::now() + Duration::from_secs_f64(args.minutes.max(0.0) * 60.0);
    let mut found = Found::default();
    let mut number = job;
    while number < args.seeds && Instant::now() < end {
        for case in seed::cases(args.first.wrapping_add(number)) {
            if !args.together || case.kind == Kind::Together {
                one(&case, &mut found);
            }
        }
        number += jobs;
    }
    println!("{}", found.line());
}

fn one(case: &Case, found: &mut Found) {
    if let Err(failure) = seed::prove(case, &mut found.tally) {
        found.failed += 1;
        println!("FAILED {failure}");
        let (smaller, failure) = seed::shrink(case, failure);
        println!("shrunk: {failure}\n{}", again(&smaller));
        return;
    }
    if case.seed.is_multiple_of(REPEATED_EVERY)
        && let (Ok(one), Ok(other)) = (proof::journal(case), proof::journal(case))
    {
        found.repeated += 1;
        if let Some(difference) = one.difference(&other) {
            found.failed += 1;
            println!("FAILED seed {} is not one run: {difference}", case.seed);
        }
    }
}
