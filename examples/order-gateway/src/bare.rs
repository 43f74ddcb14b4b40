//! A control: a server that answers every order at once, reads nothing of it and keeps
//! nothing. What the same clients wait for it is the loopback's part and their own, below
//! which no gateway on this machine comes.

use crate::server::Accepted;
use anyhow::Result;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An order arrives in one piece, as the load client sends it.
const ORDER_BYTES_MAX: usize = 4 << 10;

/// Serves until the process ends.
///
/// # Errors
/// Where the socket fails.
pub async fn serve(listener: TcpListener) -> Result<()> {
    let body = serde_json::to_string(&Accepted {
        lsn: 0,
        parse: 0.0,
        validate: 0.0,
        append: 0.0,
        flush: 0.0,
    })?;
    let head = format!(
        "HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer: &'static [u8] = (head + &body).into_bytes().leak();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that goes away ends its own task.
        tokio::spawn(answer_all(stream, answer));
    }
}

async fn answer_all(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut order = [0; ORDER_BYTES_MAX];
    while stream.read(&mut order).await? > 0 {
        stream.write_all(answer).await?;
    }
    Ok(())
}
