//! A transactional key-value store with column families.
//!
//! Trees of ordered keys, kept in one file beside a write-ahead log. Many
//! transactions overlap: each works on a private fork of a snapshot and is
//! validated when it commits; writers of different trees share nothing but a
//! short critical section and the log's sync.
//!
//! * [`Store`]: an open database. [`Txn`]: a transaction. [`Cursor`]: ordered
//!   access. [`Tree`]: a column family.
//! * `cache`: pages in memory, with a hard limit.
//! * `tree`: copy-on-write B+trees.
//! * `txn`: transactions, validation, commit.
//! * `reclaim`, `space`, `extents`: what is dead, what is free.
//! * `checkpoint`, `open`, `recovery`: making a state durable, and finding it again. `making`: a file
//!   that gets its name once it is whole.
//! * `node`, `codec`: pages in memory and on disk. `dictionaries`: what they are
//!   compressed with.
//! * `check`: the integrity check.
//!
//! What holds: acknowledged commits survive as the durability says; readers see
//! only acknowledged states; every byte that is read back is verified by a
//! checksum its parent holds; nothing live is overwritten in place; a failed
//! sync ends all writing. Nothing read from a file can panic: it is a typed
//! [`Error`] with file and position.
//!
//! ```
//! use fulgurite_store::{Key, KeyKind, Options, Store};
//!
//! # fn main() -> fulgurite_store::Result<()> {
//! let store = Store::in_memory(Options::default())?;
//! let users = store.create_family("users", KeyKind::Bytes)?;
//! let mut txn = store.txn();
//! txn.begin_statement(&[&users])?;
//! txn.put(&users, Key::Bytes(b"ada"), b"1815")?;
//! txn.commit()?;
//!
//! txn.begin_read()?;
//! let mut born = Vec::new();
//! assert!(txn.get_into(&users, Key::Bytes(b"ada"), &mut born)?);
//! assert_eq!(born, b"1815");
//! # Ok(())
//! # }
//! ```

mod admission;
mod background;
mod cache;
mod caught;
mod check;
mod checkpoint;
mod chunks;
mod codec;
mod dictionaries;
mod error;
mod extents;
mod holds;
mod lanes;
mod leases;
mod log_length;
mod making;
mod names;
mod node;
mod open;
mod options;
mod overlay;
mod passing;
mod pins;
mod policy;
#[cfg_attr(fulgurite_model, path = "../../model-store/primitives.rs")]
mod primitives;
mod reclaim;
mod recovery;
mod registry;
mod shelf;
mod space;
mod stats;
mod store;
#[cfg(not(fulgurite_model))]
mod table;
mod tree;
mod trial;
mod txn;
mod waits;

pub use cache::{CacheStats, MemoryCharge, MemoryCounter};
pub use caught::{Owned, caught};
pub use checkpoint::WriteStats;
pub use error::{Conflict, Error, ErrorKind, Result};
pub use making::Making;
pub use node::{Entries, Entry, Key, Run};
pub use options::{Compression, Durability, InDoubt, Isolation, Options};
pub use shelf::Shelf;
pub use stats::Stats;
pub use store::Store;
pub use tree::cursor::{Cursor, Seek};
pub use tree::{KeyKind, Tree, TreeId};
pub use txn::{
    Appending, BusyHandler, CommitLockStats, LOSSES_MAX, Savepoint, Suspended, Txn, TxnContext,
    TxnState, commit_together, exclude_together, pause_after, read_together,
};
