//! A log for tasks: they append, and wait without a thread of their own until
//! one task has flushed for all of them. What arrives during a flush shares the
//! next one.
//!
//! While syncs are short the flush runs on the event loop: to wake a thread for
//! it and to be woken by that thread takes longer than what the loop could do
//! meanwhile. Whatever else is ready runs first, so that a crowd shares one sync.
//! Where syncs are long a thread takes them, and the loop goes on.

use fulgurite_wal::{Entry, Error, Lsn, Wal};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task;

/// The longest that syncs may take, on average, to run on the event loop.
const ON_LOOP_MAX: Duration = Duration::from_micros(300);
/// How often the flushing task looks for more orders before it flushes.
const LOOKS_MAX: usize = 8;

type Answer = Result<(), Error>;

/// See the module's text.
#[derive(Debug)]
pub struct DurableLog {
    log: Arc<Wal>,
    waiting: UnboundedSender<oneshot::Sender<Answer>>,
}

/// An order's way into the log.
#[derive(Debug, Clone, Copy)]
pub struct Logged {
    /// Where it begins.
    pub lsn: Lsn,
    /// The time of the append.
    pub append: Duration,
    /// The time until it was durable.
    pub flush: Duration,
}

impl DurableLog {
    /// Starts the flushing task; to be called within a runtime of tokio, whose
    /// end is the task's.
    pub fn start(log: Wal) -> Self {
        Self::start_expecting(log, Duration::ZERO)
    }

    /// Starts with a guess of what a flush takes.
    fn start_expecting(log: Wal, usual: Duration) -> Self {
        let log = Arc::new(log);
        let (waiting, queue) = mpsc::unbounded_channel();
        let flusher = Flusher {
            log: Arc::clone(&log),
            queue,
            served: Vec::new(),
            usual,
        };
        task::spawn(flusher.serve());
        Self { log, waiting }
    }

    /// Appends an entry; ready when it is durable.
    ///
    /// # Errors
    /// Those of the log. After `Full` the entry is not in the log; after others
    /// the outcome is unknown until the log is opened again.
    pub async fn commit<E: Entry>(&self, entry: &E) -> Result<Logged, Error> {
        let start = Instant::now();
        let lsn = self.log.append_entry(entry)?;
        let appended = Instant::now();
        let (sender, receiver) = oneshot::channel();
        self.waiting.send(sender).map_err(|_| Error::Closed)?;
        receiver.await.unwrap_or(Err(Error::Closed))?;
        Ok(Logged {
            lsn,
            append: appended - start,
            flush: appended.elapsed(),
        })
    }
}

struct Flusher {
    log: Arc<Wal>,
    queue: UnboundedReceiver<oneshot::Sender<Answer>>,
    /// Those whose entries the next flush covers.
    served: Vec<oneshot::Sender<Answer>>,
    /// What a flush takes, smoothed.
    usual: Duration,
}

impl Flusher {
    /// Flushes for whoever waits, until nobody can come any more.
    async fn serve(mut self) {
        while let Some(first) = self.queue.recv().await {
            self.served.push(first);
            self.gather().await;
            let answer = self.flush().await;
            for one in self.served.drain(..) {
                // One that gave up waiting needs no answer.
                let _ = one.send(answer.clone());
            }
        }
    }

    /// Lets the other tasks run while more of them come to wait.
    async fn gather(&mut self) {
        for _ in 0..LOOKS_MAX {
            let before = self.served.len();
            task::yield_now().await;
            while let Ok(one) = self.queue.try_recv() {
                self.served.push(one);
            }
            if self.served.len() == before {
                break;
            }
        }
    }

    /// Each of those served appended before it came to wait.
    async fn flush(&mut self) -> Answer {
        let start = Instant::now();
        let answer = if self.usual <= ON_LOOP_MAX {
            self.log.flush()
        } else {
            let log = Arc::clone(&self.log);
            let flushed = task::spawn_blocking(move || log.flush()).await;
            flushed.unwrap_or(Err(Error::Closed))
        };
        self.usual = (self.usual * 3 + start.elapsed()) / 4;
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Order, Side};
    use fulgurite_wal::Options;
    use tokio::runtime::Builder;
    use tokio::task::JoinSet;

    /// Both who flushes on the loop and who has a thread do it serves a crowd
    /// with few syncs, and what was answered is there when the log is opened.
    #[test]
    fn a_crowd_shares_syncs_on_the_loop_and_off_it() {
        for usual in [Duration::ZERO, 1000 * ON_LOOP_MAX] {
            let name = format!("durable-{}-{}", std::process::id(), usual.as_nanos());
            let path = std::env::temp_dir().join(name);
            let log = Wal::open(&path, Options::file()).unwrap();
            let runtime = Builder::new_current_thread().build().unwrap();
            let syncs = runtime.block_on(async {
                let log = Arc::new(DurableLog::start_expecting(log, usual));
                let before = log.log.stats().syncs;
                let mut crowd = JoinSet::new();
                for number in 0..32 {
                    let log = Arc::clone(&log);
                    crowd.spawn(async move {
                        let order = Order {
                            id: format!("o-{number}"),
                            symbol: "ACME".into(),
                            side: Side::Buy,
                            price: 10_150,
                            quantity: 100,
                        };
                        log.commit(&order).await.unwrap();
                    });
                }
                crowd.join_all().await;
                log.log.stats().syncs - before
            });
            assert!((1..=2).contains(&syncs), "{syncs} syncs for 32 orders");
            drop(runtime);
            let log = Wal::open(&path, Options::file()).unwrap();
            let mut found = 0;
            log.replay_entries(Lsn::FIRST, |_, _: Order| {
                found += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(found, 32);
            drop(log);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
