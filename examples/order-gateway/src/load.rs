//! The load client: keeps one connection a client busy and reports percentiles
//! of the round trip and of its stages. All clients share one thread, so that
//! they take little from a gateway on the same machine.

use crate::server::Accepted;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// An answer is shorter than this.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A kept-alive connection to the gateway.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    /// What was received: an answer's head, then its body.
    answer: Vec<u8>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody listens.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: Vec::new(),
            answer: Vec::with_capacity(1 << 10),
        })
    }

    /// Sends a request; the status and the body of the answer.
    ///
    /// # Errors
    /// Where the connection breaks or the answer is none.
    pub async fn request(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, &[u8])> {
        self.request.clear();
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        let head = loop {
            if let Some(head) = Head::parse(&self.answer)? {
                break head;
            }
            self.receive().await?;
        };
        while self.answer.len() < head.bytes + head.body_bytes {
            self.receive().await?;
        }
        let body = self.answer.get(head.bytes..head.bytes + head.body_bytes);
        Ok((head.status, body.unwrap_or_default()))
    }

    async fn receive(&mut self) -> Result<()> {
        if self.answer.len() > ANSWER_BYTES_MAX {
            bail!("an answer of more than {ANSWER_BYTES_MAX} bytes");
        }
        if self.stream.read_buf(&mut self.answer).await? == 0 {
            bail!("the gateway closed the connection");
        }
        Ok(())
    }

    /// Sends an order; what the gateway answered once it was durable.
    ///
    /// # Errors
    /// As [`request`](Self::request), and where the order was refused.
    pub async fn order(&mut self, id: &str) -> Result<Accepted> {
        let body =
            format!(r#"{{"id":"{id}","symbol":"ACME","side":"buy","price":10150,"quantity":100}}"#);
        let (status, answer) = self.request("POST", "/orders", &body).await?;
        if status != 201 {
            bail!("{status}: {}", String::from_utf8_lossy(answer));
        }
        Ok(serde_json::from_slice(answer)?)
    }
}

/// What an answer's head says.
struct Head {
    /// How long it is.
    bytes: usize,
    status: u16,
    body_bytes: usize,
}

impl Head {
    /// `None` where its end was not received yet.
    fn parse(received: &[u8]) -> Result<Option<Self>> {
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(received.get(..end).unwrap_or_default())?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .context("an answer without a status")?;
        let mut body_bytes = 0;
        for line in lines {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                body_bytes = value.trim().parse()?;
            }
        }
        if body_bytes > ANSWER_BYTES_MAX {
            bail!("an answer of {body_bytes} bytes");
        }
        Ok(Some(Self {
            bytes: end + 4,
            status,
            body_bytes,
        }))
    }
}

/// What runs of the load found: microseconds a stage, and how long they took.
#[derive(Debug, Default)]
pub struct Figures {
    /// Times of the whole round trip.
    pub round_trip: Vec<f64>,
    /// Times of parsing, validating, appending, flushing.
    pub stages: [Vec<f64>; 4],
    /// The time of all runs.
    pub time: Duration,
}

impl Figures {
    /// Orders a second.
    pub fn rate(&self) -> f64 {
        self.round_trip.len() as f64 / self.time.as_secs_f64()
    }

    /// Adds what another client, or another run, found.
    pub fn add(&mut self, other: Self) {
        self.round_trip.extend(other.round_trip);
        for (all, one) in self.stages.iter_mut().zip(other.stages) {
            all.extend(one);
        }
        self.time += other.time;
    }
}

/// Names of [`Figures::stages`].
pub const STAGES: [&str; 4] = ["parse", "validate", "append", "flush"];

/// Has `clients` clients send orders for `time`. `run` makes the ids unique.
///
/// # Errors
/// The first that any client met.
pub fn run(address: SocketAddr, clients: usize, time: Duration, run: &str) -> Result<Figures> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let start = Instant::now();
    let results = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            tasks.spawn(one_client(address, client, start + time, run.to_owned()));
        }
        tasks.join_all().await
    });
    let mut all = Figures::default();
    for result in results {
        all.add(result?);
    }
    all.time = start.elapsed();
    Ok(all)
}

async fn one_client(
    address: SocketAddr,
    client: usize,
    end: Instant,
    run: String,
) -> Result<Figures> {
    let mut connection = Client::connect(address).await?;
    let mut figures = Figures::default();
    for number in 0u64.. {
        let start = Instant::now();
        if start >= end {
            break;
        }
        let answer = connection
            .order(&format!("{run}-{client}-{number}"))
            .await?;
        figures
            .round_trip
            .push(start.elapsed().as_nanos() as f64 / 1_000.0);
        let stages = [answer.parse, answer.validate, answer.append, answer.flush];
        for (all, one) in figures.stages.iter_mut().zip(stages) {
            all.push(one);
        }
    }
    Ok(figures)
}

/// min, avg, p50, p90 and p99 of some times.
pub fn summary(times: &mut [f64]) -> [f64; 5] {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (times.len().max(1) - 1) * percent / 100;
        times.get(rank).copied().unwrap_or(f64::NAN)
    };
    let average = times.iter().sum::<f64>() / times.len() as f64;
    [at(0), average, at(50), at(90), at(99)]
}
