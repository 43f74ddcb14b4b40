//! The service.

use crate::book::Book;
use crate::durable::DurableLog;
use crate::order::Order;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as UrlPath, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fulgurite_wal::{Error, Lsn, Options, Wal};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// How many bytes of orders the log holds.
const LIMIT_BYTES: u64 = 1 << 30;

/// The running service's state.
#[derive(Debug)]
pub struct Gateway {
    log: DurableLog,
    book: Book,
}

/// Where an order is in the log, and what each stage took, in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Accepted {
    /// The order's position in the log.
    pub lsn: u64,
    /// JSON to order.
    pub parse: f64,
    /// Is it one that can be taken?
    pub validate: f64,
    /// Into the log's buffer.
    pub append: f64,
    /// Until it is durable.
    pub flush: f64,
}

impl Gateway {
    /// Opens the log and reads the orders back; to be called within a runtime,
    /// on which the log's flushing task then runs.
    ///
    /// # Errors
    /// Those of opening and replaying the log.
    pub fn recover(log: &Path) -> Result<Self> {
        let mut options = Options::auto().limit_bytes(LIMIT_BYTES);
        // An append waits on a thread of the service.
        options.append_timeout = Duration::from_millis(20);
        let log = Wal::open(log, options)?;
        let book = Book::default();
        log.replay_entries(Lsn::FIRST, |_, order: Order| {
            book.accept(order);
            Ok(())
        })?;
        Ok(Self {
            log: DurableLog::start(log),
            book,
        })
    }

    /// How many orders there are.
    pub fn orders(&self) -> usize {
        self.book.len()
    }

    async fn take(&self, body: &[u8]) -> Result<Accepted, Refusal> {
        let start = Instant::now();
        let order: Order = serde_json::from_slice(body)
            .map_err(|error| Refusal(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
        let parsed = Instant::now();
        order
            .validate()
            .map_err(|what| Refusal(StatusCode::UNPROCESSABLE_ENTITY, what.to_owned()))?;
        if !self.book.claim(&order.id) {
            let what = format!("there is an order {} already", order.id);
            return Err(Refusal(StatusCode::CONFLICT, what));
        }
        let validated = Instant::now();
        let logged = match self.log.commit(&order).await {
            Ok(logged) => logged,
            Err(error) => {
                if matches!(error, Error::Full { .. }) {
                    self.book.release(&order.id);
                }
                return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, error.to_string()));
            }
        };
        self.book.accept(order);
        let micros = |time: Duration| time.as_nanos() as f64 / 1_000.0;
        Ok(Accepted {
            lsn: logged.lsn.to_u64(),
            parse: micros(parsed - start),
            validate: micros(validated - parsed),
            append: micros(logged.append),
            flush: micros(logged.flush),
        })
    }
}

/// An order that was not taken, and why.
struct Refusal(StatusCode, String);

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json(self.0, &serde_json::json!({ "error": self.1 }))
    }
}

async fn post_order(State(gateway): State<Arc<Gateway>>, body: Bytes) -> Response {
    match gateway.take(&body).await {
        Ok(accepted) => json(StatusCode::CREATED, &accepted),
        Err(refusal) => refusal.into_response(),
    }
}

async fn get_order(State(gateway): State<Arc<Gateway>>, UrlPath(id): UrlPath<String>) -> Response {
    match gateway.book.get(&id) {
        Some(order) => json(StatusCode::OK, &order),
        None => Refusal(StatusCode::NOT_FOUND, format!("no order {id}")).into_response(),
    }
}

/// Serves until the process ends.
///
/// # Errors
/// Where the socket fails.
pub async fn serve(gateway: Gateway, listener: TcpListener) -> Result<()> {
    let service = Router::new()
        .route("/orders", post(post_order))
        .route("/orders/{id}", get(get_order))
        .with_state(Arc::new(gateway));
    axum::serve(NoDelay(listener), service)
        .await
        .context("the server stopped")
}

/// Answers are small and wait for nothing.
struct NoDelay(TcpListener);

impl axum::serve::Listener for NoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        // Slower, not wrong, where it is refused.
        let _ = stream.set_nodelay(true);
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}
