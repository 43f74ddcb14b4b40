//! The order gateway, its load client, and both in one command.

use anyhow::{Context, Result, anyhow};
use clap::{Parser, Subcommand};
use order_gateway::bare;
use order_gateway::load::{self, Figures, STAGES};
use order_gateway::server::{self, Gateway};
use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// How often the numbers of clients take turns.
const TURNS: u32 = 8;
/// The control runs for one of so many parts of the gateway's time.
const CONTROL_SHARE: u32 = 4;

/// Takes orders over HTTP and loses none that it answered. Without a command:
/// serves on loopback and measures itself with 1 and 64 clients.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder of the log for the run without a command
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seconds of load a number of clients
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves until it is ended
    Serve {
        /// The log; made if it is not there
        log: PathBuf,
        /// Where to listen
        #[arg(long, default_value = "127.0.0.1:7070")]
        listen: SocketAddr,
    },
    /// Sends orders to a gateway
    Load {
        /// Where it listens
        #[arg(long, default_value = "127.0.0.1:7070")]
        connect: SocketAddr,
        /// Connections
        #[arg(long, default_value_t = 64)]
        clients: usize,
    },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let time = Duration::from_secs_f64(cli.seconds);
    match cli.command {
        Some(Command::Serve { log, listen }) => runtime()?.block_on(async {
            let gateway = Gateway::recover(&log)?;
            let listener = TcpListener::bind(listen).await?;
            let orders = gateway.orders();
            println!("listening on {}, {orders} orders", listener.local_addr()?);
            server::serve(gateway, listener).await
        }),
        Some(Command::Load { connect, clients }) => {
            let run = std::process::id().to_string();
            print(clients, load::run(connect, clients, time, &run)?);
            Ok(())
        }
        None => {
            let dir = cli.dir.unwrap_or_else(std::env::temp_dir);
            let folder = dir.join(format!("order-gateway-{}", std::process::id()));
            std::fs::create_dir_all(&folder)?;
            let result = measure(&folder, time);
            std::fs::remove_dir_all(&folder)?;
            result
        }
    }
}

/// Serves and loads in one process, beside a bare write and sync and a server that
/// only answers.
fn measure(folder: &Path, time: Duration) -> Result<()> {
    let log = folder.join("orders.log");
    let gateway =
        Served::start(
            |listener| async move { server::serve(Gateway::recover(&log)?, listener).await },
        )?;
    let bare = Served::start(bare::serve)?;
    let measured = load_it(gateway.address, bare.address, folder, time);
    bare.stop()?;
    gateway.stop()?;
    measured
}

/// A server on a thread of its own.
struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Served {
    fn start<F: Future<Output = Result<()>>>(
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> Result<Self> {
        let runtime = runtime()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    result = serve(listener) => result,
                    // Both ways of being told mean the same.
                    _ = stopped => Ok(()),
                }
            })
        });
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    fn stop(self) -> Result<()> {
        drop(self.stop);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow!("the server panicked"))?
    }
}

/// A runtime for the service. Where there are two processors or fewer, the
/// kernel's part and the clients fill what one thread leaves over, and tasks
/// that move between threads cost more than they gain.
fn runtime() -> Result<Runtime> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let mut builder = if processors <= 2 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    Ok(builder.enable_io().build()?)
}

/// One client and 64, of the gateway and of the bare server, and a bare write and sync
/// take turns, since a disk's sync time drifts.
fn load_it(gateway: SocketAddr, bare: SocketAddr, folder: &Path, time: Duration) -> Result<()> {
    load::run(gateway, 1, time / 10, "warm-up")?;
    let raw = RawSync::create(folder)?;
    let mut sync = Vec::new();
    let mut sides = [1, 64].map(|clients| (clients, Figures::default(), Figures::default()));
    for turn in 0..TURNS {
        for (clients, figures, control) in &mut sides {
            raw.measure(&mut sync)?;
            let run = format!("{turn}-{clients}");
            figures.add(load::run(gateway, *clients, time / TURNS, &run)?);
            control.add(load::run(
                bare,
                *clients,
                time / TURNS / CONTROL_SHARE,
                &run,
            )?);
        }
    }
    let sync = load::summary(&mut sync)[2];
    println!("a bare write of 128 bytes and its fdatasync: p50 {sync:.0} µs\n");
    let mut rates = Vec::new();
    for (clients, figures, mut control) in sides {
        rates.push(figures.rate());
        let p50 = print(clients, figures);
        println!(
            "  the round trip takes {:.0} µs more than the bare sync; to a server that only answers {:.0} µs ({:.0} orders/s)\n",
            p50 - sync,
            load::summary(&mut control.round_trip)[2],
            control.rate()
        );
    }
    if let [one, many] = rates[..] {
        println!("64 clients: {:.1} × the throughput of one", many / one);
    }
    Ok(())
}

/// Prints the figures; the median of the round trip.
fn print(clients: usize, mut figures: Figures) -> f64 {
    println!("{clients} clients: {:.0} orders/s; µs:", figures.rate());
    println!(
        "  {:<12}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "min", "avg", "p50", "p90", "p99"
    );
    let row = |name: &str, times: &mut [f64]| {
        let summary = load::summary(times);
        print!("  {name:<12}");
        for value in summary {
            print!("{value:>9.1}");
        }
        println!();
        summary[2]
    };
    let p50 = row("round trip", &mut figures.round_trip);
    for (name, times) in STAGES.iter().zip(&mut figures.stages) {
        row(name, times);
    }
    p50
}

/// A file that is ready for bare writes of 128 bytes.
struct RawSync(File);

impl RawSync {
    const BYTES: u64 = 1 << 20;

    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join("raw");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        file.write_all_at(&vec![0; Self::BYTES as usize], 0)?;
        file.sync_all()?;
        Ok(Self(file))
    }

    /// Adds the times of some writes with their syncs, in microseconds.
    fn measure(&self, times: &mut Vec<f64>) -> Result<()> {
        for _ in 0..100 {
            let start = Instant::now();
            let offset = times.len() as u64 * 128 % Self::BYTES;
            self.0.write_all_at(&[1; 128], offset)?;
            self.0.sync_data()?;
            times.push(start.elapsed().as_nanos() as f64 / 1_000.0);
        }
        Ok(())
    }
}
