//! Replaying the log into a transaction, at recovery.
//!
//! All records go into one transaction, which is published under the last
//! record's number. It holds no more than its share of the cache, as any other.

use super::redo::{Op, Ops};
use super::{TxnContext, TxnState, bulk};
use crate::error::{Error, ErrorKind, Result};
use crate::tree::{EMPTY, TreeId};
use fulgurite_wal::{Kind, Record};

impl TxnContext {
    pub(crate) fn begin_replay(&mut self) -> Result<()> {
        self.idle()?;
        self.pin_head()?;
        self.state = TxnState::Immediate;
        // What is replayed is in the log already.
        self.bulk = true;
        Ok(())
    }

    /// A first pass over the log: what attach records use is not free.
    pub(crate) fn reserve(&self, record: Record<'_>) -> Result<()> {
        match record.kind {
            Kind::Attach => bulk::reserve(&self.core, record.payload),
            _ => Ok(()),
        }
    }

    /// Applies one record.
    pub(crate) fn replay(&mut self, record: Record<'_>) -> Result<()> {
        match record.kind {
            Kind::Commit => self.replay_operations(record.payload),
            Kind::Attach => {
                self.core.checkpoint_pins.attach(record.seq);
                self.attach(record.payload)
            }
            kind => Err(Error::corrupt(format!(
                "database disk image is malformed: log record {} is of kind {kind:?}, which nothing wrote",
                record.seq
            ))),
        }
    }

    pub(super) fn replay_operations(&mut self, payload: &[u8]) -> Result<()> {
        for op in Ops::new(payload) {
            let op = op.map_err(|at| {
                Error::corrupt(format!(
                    "database disk image is malformed: byte {at} of a log record is no operation"
                ))
            })?;
            self.apply(op)?;
        }
        Ok(())
    }

    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        if let Op::Create { tree, kind } = op {
            let tree = self.core.add_tree(TreeId(tree), kind);
            let mut fork = self.new_fork(&tree, EMPTY);
            fork.created = true;
            fork.changed = true;
            self.forks.push(fork);
            return Ok(());
        }
        let tree = self.core.tree(TreeId(op.tree())).ok_or_else(|| {
            Error::corrupt(format!(
                "database disk image is malformed: the log writes to tree {}, which does not exist",
                op.tree()
            ))
        })?;
        let there = |is_there| match is_there {
            true => Ok(()),
            false => Err(Error::misuse("a part of a value that is not there")),
        };
        let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
        let applied = match op {
            Op::Put { key, value, .. } => self.put(&tree, key, value).map(drop),
            Op::Delete { key, .. } => self.delete(&tree, key).map(drop),
            Op::PutStart {
                key, until, start, ..
            } => self
                .put_start(&tree, key, place(until), start)
                .and_then(there),
            Op::PutPart {
                key, from, bytes, ..
            } => self
                .put_part(&tree, key, place(from), bytes)
                .and_then(there),
            Op::Drop { .. } => self.drop_tree(&tree),
            Op::Clear { .. } => self.clear(&tree, || true).map(drop),
            Op::Create { .. } => Ok(()),
        };
        // What a transaction would have been refused is in no log that is whole.
        applied.map_err(|error| match error.kind() {
            ErrorKind::Misuse | ErrorKind::TooBig => Error::corrupt(format!(
                "database disk image is malformed: the log holds what was never committed: {error}"
            )),
            _ => error,
        })
    }

    /// Publishes what was replayed as the state of commit `last`.
    pub(crate) fn finish_replay(&mut self, last: u64) -> Result<()> {
        self.settle_spills()?;
        self.discard_unborn();
        self.bulk = false;
        self.core.commit.lock().head = last - 1;
        self.publish_and_wait(Vec::new(), None, |_| ())
    }
}
