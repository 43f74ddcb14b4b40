//! The load client: keeps one connection a client busy and reports percentiles
//! of the round trip and of its stages.

use crate::server::Accepted;
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A kept-alive connection to the gateway.
#[derive(Debug)]
pub struct Client {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    line: String,
    body: Vec<u8>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let writer = TcpStream::connect(address)?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            reader: BufReader::new(writer.try_clone()?),
            writer,
            line: String::new(),
            body: Vec::new(),
        })
    }

    /// Sends a request; the status and the body of the answer.
    ///
    /// # Errors
    /// Where the connection breaks or the answer is none.
    pub fn request(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, &[u8])> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.writer.write_all(request.as_bytes())?;
        let status = self
            .next_line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .context("an answer without a status")?;
        let mut length = 0;
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        self.body.resize(length, 0);
        self.reader.read_exact(&mut self.body)?;
        Ok((status, &self.body))
    }

    fn next_line(&mut self) -> Result<&str> {
        self.line.clear();
        if self.reader.read_line(&mut self.line)? == 0 {
            bail!("the gateway closed the connection");
        }
        Ok(self.line.trim_end())
    }

    /// Sends an order; what the gateway answered once it was durable.
    ///
    /// # Errors
    /// As [`request`](Self::request), and where the order was refused.
    pub fn order(&mut self, id: &str) -> Result<Accepted> {
        let body =
            format!(r#"{{"id":"{id}","symbol":"ACME","side":"buy","price":10150,"quantity":100}}"#);
        let (status, answer) = self.request("POST", "/orders", &body)?;
        if status != 201 {
            bail!("{status}: {}", String::from_utf8_lossy(answer));
        }
        Ok(serde_json::from_slice(answer)?)
    }
}

/// What a run of the load found: microseconds a stage, and the rate.
#[derive(Debug, Default)]
pub struct Figures {
    /// Times of the whole round trip.
    pub round_trip: Vec<f64>,
    /// Times of parsing, validating, appending, flushing.
    pub stages: [Vec<f64>; 4],
    /// Orders a second.
    pub rate: f64,
}

/// Names of [`Figures::stages`].
pub const STAGES: [&str; 4] = ["parse", "validate", "append", "flush"];

/// Has `clients` clients send orders for `time`. `run` makes the ids unique.
///
/// # Errors
/// The first that any client met.
pub fn run(address: SocketAddr, clients: usize, time: Duration, run: &str) -> Result<Figures> {
    let start = Instant::now();
    let results: Vec<Result<Figures>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || one_client(address, client, start + time, run)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
            .collect()
    });
    let mut all = Figures::default();
    for result in results {
        let one = result?;
        all.round_trip.extend(one.round_trip);
        for (all, one) in all.stages.iter_mut().zip(one.stages) {
            all.extend(one);
        }
    }
    all.rate = all.round_trip.len() as f64 / start.elapsed().as_secs_f64();
    Ok(all)
}

fn one_client(address: SocketAddr, client: usize, end: Instant, run: &str) -> Result<Figures> {
    let mut connection = Client::connect(address)?;
    let mut figures = Figures::default();
    for number in 0u64.. {
        let start = Instant::now();
        if start >= end {
            break;
        }
        let answer = connection.order(&format!("{run}-{client}-{number}"))?;
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
