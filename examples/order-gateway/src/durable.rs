//! A log for tasks: they append, and wait without a thread of their own until
//! one thread has flushed. What arrives during a flush shares the next one.

use fulgurite_wal::{Entry, Error, Lsn, Wal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Answer = Result<(), Error>;

/// See the module's text.
#[derive(Debug)]
pub struct DurableLog {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    log: Wal,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<oneshot::Sender<Answer>>,
    closed: bool,
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

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes for whoever waits, until the log is closed.
    fn serve(&self) {
        loop {
            let mut queue = self.queue();
            while queue.waiting.is_empty() {
                if queue.closed {
                    return;
                }
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            // Each of them appended before it queued up.
            let result = self.log.flush();
            for one in waiting {
                // One that gave up waiting needs no answer.
                let _ = one.send(result.clone());
            }
        }
    }
}

impl DurableLog {
    /// Starts the flushing thread.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(log: Wal) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            log,
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        let flusher = thread::Builder::new()
            .name("flusher".into())
            .spawn(move || served.serve())?;
        Ok(Self {
            shared,
            flusher: Some(flusher),
        })
    }

    /// Appends an entry; ready when it is durable.
    ///
    /// # Errors
    /// Those of the log. After `Full` the entry is not in the log; after others
    /// the outcome is unknown until the log is opened again.
    pub async fn commit<E: Entry>(&self, entry: &E) -> Result<Logged, Error> {
        let start = Instant::now();
        let lsn = self.shared.log.append_entry(entry)?;
        let appended = Instant::now();
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.shared.queue();
            queue.waiting.push(sender);
            if queue.waiting.len() == 1 {
                self.shared.changed.notify_one();
            }
        }
        receiver.await.unwrap_or(Err(Error::Closed))?;
        Ok(Logged {
            lsn,
            append: appended - start,
            flush: appended.elapsed(),
        })
    }
}

impl Drop for DurableLog {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_one();
        if let Some(flusher) = self.flusher.take() {
            // It has no result.
            let _ = flusher.join();
        }
    }
}
