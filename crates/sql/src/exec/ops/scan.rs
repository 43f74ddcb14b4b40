//! Table scan: rows in rowid order.

use std::ops::Bound;
use std::sync::Arc;

use fulgurite_store::{Cursor, Key, Seek};

use super::Operator;
use crate::error::{Error, Result};
use crate::exec::batch::{BYTES_MAX, Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::fetch::{Fetch, Narrow};
use crate::exec::range::rowid_range;
use crate::exec::txns::Txns;
use crate::plan::physical::{Range, ScanColumn};
use crate::schema::Table;

/// See the module.
pub struct TableScan {
    fetch: Fetch,
    narrow: Narrow,
    range: Range,
    reverse: bool,
    cursor: Option<Cursor>,
    /// The last rowid to deliver; None: nothing is left.
    last: Option<i64>,
}

impl TableScan {
    /// Of the rows in `range`.
    pub fn new(table: &Arc<Table>, columns: &[ScanColumn], range: Range, reverse: bool) -> Self {
        Self {
            fetch: Fetch::new(table, columns),
            narrow: Narrow::default(),
            range,
            reverse,
            cursor: None,
            last: None,
        }
    }
}

/// A run without its cursors: a bug of the caller, told as an error.
#[cold]
pub fn detached() -> Error {
    Error::misuse("an operator was pulled outside a run")
}

impl Operator for TableScan {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.cursor = Some(txn.cursor(&self.fetch.table().tree)?);
        self.last = None;
        Ok(())
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.last = None;
        let Some((low, high)) = rowid_range(&self.range, cx)? else {
            return Ok(());
        };
        let cursor = self.cursor.as_mut().ok_or_else(detached)?;
        cursor.narrow(
            Bound::Included(Key::Int(low)),
            Bound::Included(Key::Int(high)),
        );
        let (from, last) = if self.reverse {
            (Seek::AtMost(Key::Int(high)), low)
        } else {
            (Seek::AtLeast(Key::Int(low)), high)
        };
        if cursor.seek(from)? {
            self.last = Some(last);
        }
        Ok(())
    }

    fn next(&mut self, _cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(self.fetch.width());
        let Some(last) = self.last else {
            return Ok(false);
        };
        let cursor = self.cursor.as_mut().ok_or_else(detached)?;
        let most = want.clamp(1, ROWS_MAX);
        let (mut rows, mut bytes) = (0, 0);
        while rows < most && bytes < BYTES_MAX {
            // As many rows of the leaf as can be decoded together.
            let run = match self.reverse {
                false => cursor.run().up_to(last).first(most - rows),
                true => cursor.run_back().down_to(last).last(most - rows),
            };
            let (taken, size) = self.fetch.push_run(run, self.reverse, &mut out.columns)?;
            if taken > 0 {
                rows += taken;
                bytes += size;
                let (end, more) = match self.reverse {
                    false => {
                        let end = run.keys().nth(taken - 1);
                        (end, cursor.skip(taken - usize::from(end == Some(last)))?)
                    }
                    true => {
                        let end = run.keys().nth_back(taken - 1);
                        (
                            end,
                            cursor.skip_back(taken - usize::from(end == Some(last)))?,
                        )
                    }
                };
                if end == Some(last) || !more {
                    self.last = None;
                    break;
                }
                continue;
            }
            let rowid = cursor.key_int();
            if if self.reverse {
                rowid < last
            } else {
                rowid > last
            } {
                self.last = None;
                break;
            }
            let value = self.fetch.row(cursor, &mut self.narrow)?;
            bytes += value.row.len();
            self.fetch.push(rowid, value, &mut out.columns)?;
            rows += 1;
            // At its last rowid a scan is done without looking further.
            let more = rowid != last
                && if self.reverse {
                    cursor.prev()?
                } else {
                    cursor.next()?
                };
            if !more {
                self.last = None;
                break;
            }
        }
        out.set_rows(rows);
        Ok(rows > 0)
    }

    fn skip(&mut self, cx: &mut Context<'_, '_>, rows: u64) -> Result<u64> {
        let mut skipped = 0;
        while let Some(last) = self.last.filter(|_| skipped < rows) {
            cx.run.check_interrupt()?;
            let cursor = self.cursor.as_mut().ok_or_else(detached)?;
            let most = usize::try_from(rows - skipped).unwrap_or(usize::MAX);
            let (run, end) = if self.reverse {
                let run = cursor.run_back().down_to(last).last(most);
                (run, run.keys().next())
            } else {
                let run = cursor.run().up_to(last).first(most);
                (run, run.keys().next_back())
            };
            let (passed, ends) = (run.len(), end.is_none_or(|end| end == last));
            let steps = passed - usize::from(ends && passed > 0);
            let more = match self.reverse {
                true => cursor.skip_back(steps)?,
                false => cursor.skip(steps)?,
            };
            if ends || !more {
                self.last = None;
            }
            skipped += passed as u64;
        }
        Ok(skipped)
    }

    fn detach(&mut self) {
        self.narrow.let_go();
        self.cursor = None;
        self.last = None;
    }
}
