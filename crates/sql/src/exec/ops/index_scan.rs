//! Index scan: rows through an index, in key order.
//!
//! The alternatives of the leading parts become key ranges, sorted and without
//! duplicates; ranges of one scan never overlap because their prefixes have one
//! length.
//!
//! Where the plan leaves the order open, rowids are *gathered*: so many at a time are
//! taken from the index, sorted, and their rows fetched in the order of the table.
//! Elsewhere they are looked up a batch at a time ([`NamedRows`]).

use std::ops::Bound;
use std::sync::Arc;

use fulgurite_store::{Cursor, Entries, Key, Seek};

use super::Operator;
use super::entry_run::{each_entry, each_rowid};
use super::named_rows::{NamedRows, push_row};
use super::scan::detached;
use crate::bind::expr::{Expr, ExprKind};
use crate::error::{Error, Result};
use crate::exec::batch::{BYTES_MAX, Batch, ROWS_MAX, Vector};
use crate::exec::context::Context;
use crate::exec::covering::{Covering, in_index};
use crate::exec::expr::{Row, eval};
use crate::exec::fetch::{Fetch, Narrow};
use crate::exec::memory::Held;
use crate::exec::range::{KeyRange, blob_range, key_column, key_range};
use crate::exec::subquery::each_member;
use crate::exec::txns::Txns;
use crate::key::{self, AFTER};
use crate::plan::physical::{Range, ScanColumn};
use crate::schema::{Index, Table};
use crate::value::Affinity;

/// Rowids that are gathered at a time: a megabyte of them.
const GATHERED_MAX: usize = 1 << 17;

/// See the module.
pub struct IndexScan {
    fetch: Fetch,
    index: Arc<Index>,
    covering: Option<Covering>,
    /// The value of the entry at hand, where that is all there is to look at, and memory for
    /// the keys of many.
    value: Vec<u8>,
    key: Vec<u8>,
    prefixes: Vec<Vec<Expr>>,
    null_matches: Vec<bool>,
    range: Range,
    reverse: bool,
    firsts: usize,
    entries: Option<Cursor>,
    rows: Option<Cursor>,
    ranges: Vec<KeyRange>,
    /// Memory for ranges.
    spare: Vec<KeyRange>,
    /// Some of the prefixes stand for what a subquery yields; what their ranges take.
    of_subquery: bool,
    held: Held,
    /// The range being read; `placed`: the cursor is on the entry of it that was handed out
    /// last.
    position: usize,
    placed: bool,
    /// Rows to come where they are neither gathered nor covered.
    named: NamedRows,
    narrow: Narrow,
    /// Rowids gathered, where they are, and how many of them were fetched.
    gathers: bool,
    rowids: Vec<i64>,
    fetched: usize,
}

/// What a plan says about an index scan.
pub struct Spec<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The index.
    pub index: &'a Arc<Index>,
    /// Wanted columns.
    pub columns: &'a [ScanColumn],
    /// They are all in the key.
    pub covering: bool,
    /// Alternatives of the leading parts.
    pub prefixes: &'a [Vec<Expr>],
    /// Parts for which NULL finds NULLs.
    pub null_matches: &'a [bool],
    /// Bounds on the part after them.
    pub range: &'a Range,
    /// Backwards.
    pub reverse: bool,
    /// Of entries with the same values in so many leading parts only the first one; 0: all.
    pub firsts: usize,
    /// Rows may come in any order. Not where `covering`.
    pub gathered: bool,
}

impl IndexScan {
    /// As the plan says.
    pub fn new(spec: &Spec<'_>) -> Self {
        Self {
            fetch: Fetch::new(spec.table, spec.columns),
            index: Arc::clone(spec.index),
            covering: if spec.covering {
                Some(Covering::new(spec.index, spec.columns))
            } else {
                None
            },
            value: Vec::new(),
            key: Vec::new(),
            prefixes: spec.prefixes.to_vec(),
            null_matches: spec.null_matches.to_vec(),
            range: spec.range.clone(),
            reverse: spec.reverse,
            firsts: spec.firsts,
            entries: None,
            rows: None,
            ranges: Vec::new(),
            spare: Vec::new(),
            of_subquery: spec.prefixes.iter().flatten().any(Expr::is_many),
            held: Held::default(),
            position: 0,
            placed: false,
            named: NamedRows::default(),
            narrow: Narrow::default(),
            gathers: spec.gathered,
            rowids: Vec::new(),
            fetched: 0,
        }
    }

    /// The beginnings of keys that these values make, one of which stands for all that a
    /// subquery yields.
    fn key_prefixes(&self, values: &[Expr], cx: &mut Context<'_, '_>) -> Result<Vec<Vec<u8>>> {
        let many = values.iter().position(Expr::is_many);
        let at = many.unwrap_or(values.len());
        let (before, rest) = values.split_at(at);
        let (mut start, mut end) = (Vec::new(), Vec::new());
        let ([many, after @ ..], Some(column)) = (rest, self.index.columns.get(at)) else {
            return Ok(Vec::new());
        };
        if !self.prefix(&mut start, 0, before, cx)? || !self.prefix(&mut end, at + 1, after, cx)? {
            return Ok(Vec::new());
        }
        let mut prefixes = Vec::new();
        if let ExprKind::Members {
            subquery,
            column: of,
            comparisons,
        } = &many.kind
        {
            let affinity = column.affinity.unwrap_or(Affinity::Blob);
            each_member(*subquery, *of, comparisons, cx, &mut |value| {
                let value = affinity.apply_comparison(value);
                let mut prefix = start.clone();
                key::encode(&mut prefix, value.as_ref(), key_column(column));
                prefix.extend_from_slice(&end);
                prefixes.push(prefix);
            })?;
        }
        Ok(prefixes)
    }

    /// Appends these values, those of the parts from `first` on; false: no entry has them.
    fn prefix(
        &self,
        out: &mut Vec<u8>,
        first: usize,
        values: &[Expr],
        cx: &mut Context<'_, '_>,
    ) -> Result<bool> {
        let parts = self.index.columns.iter().enumerate().skip(first);
        for (expr, (i, column)) in values.iter().zip(parts) {
            let value = eval(expr, Row::Empty, cx)?;
            if value.as_ref().is_null() && !self.null_matches.get(i).copied().unwrap_or(false) {
                return Ok(false);
            }
            let affinity = column.affinity.unwrap_or(Affinity::Blob);
            let value = affinity.apply_comparison(value.as_ref());
            key::encode(out, value.as_ref(), key_column(column));
        }
        Ok(true)
    }

    /// Moves to the next entry; false at the end of all ranges.
    fn advance(&mut self) -> Result<bool> {
        let cursor = self.entries.as_mut().ok_or_else(detached)?;
        while let Some(range) = self.ranges.get(self.position) {
            let there = if self.placed {
                match self.reverse {
                    false if self.firsts > 0 => pass_same(cursor, self.firsts, &mut self.key)
                        .map_err(|error| in_index(error, &self.index.name))?,
                    false => cursor.next()?,
                    true => cursor.prev()?,
                }
            } else {
                enter(cursor, range, self.reverse)?
            };
            if there {
                let key = cursor.key_bytes()?;
                let inside = if self.reverse {
                    key >= range.start.as_slice()
                } else {
                    range.end.is_empty() || key < range.end.as_slice()
                };
                if inside {
                    self.placed = true;
                    return Ok(true);
                }
            }
            self.placed = false;
            self.position += 1;
        }
        Ok(false)
    }

    /// The entries of the range that lie in the leaf of the one at hand, from that one on in
    /// the scan's direction, at most `most`, where they can be read together, and whether the
    /// range ends behind them. They are in ascending order.
    fn run(&self, most: usize) -> (Entries<'_>, bool) {
        let (Some(cursor), Some(range)) = (&self.entries, self.ranges.get(self.position)) else {
            return (Entries::EMPTY, false);
        };
        // One alone is the one at hand.
        if self.firsts > 0 || most == 1 {
            return (Entries::EMPTY, false);
        }
        if self.reverse {
            let run = cursor.entries_back().last(most);
            let inside = run.at_least(&range.start);
            return (inside, inside.len() < run.len());
        }
        let run = cursor.entries().first(most);
        if range.end.is_empty() {
            return (run, false);
        }
        let inside = run.before(&range.end);
        (inside, inside.len() < run.len())
    }

    /// So many entries from the one at hand on were handed out; `ends`: they are the last
    /// ones of their range.
    fn pass(&mut self, count: usize, ends: bool) -> Result<()> {
        let cursor = self.entries.as_mut().ok_or_else(detached)?;
        let steps = count - usize::from(!ends && count > 0);
        match self.reverse {
            _ if steps == 0 => {}
            false => {
                cursor.skip(steps)?;
            }
            true => {
                cursor.skip_back(steps)?;
            }
        }
        if ends {
            self.placed = false;
            self.position += 1;
        }
        Ok(())
    }

    /// Appends what entries have of their rows, from the one at hand on; how many, and the
    /// bytes they took. None: the one at hand is to be looked at alone.
    fn push_run(&mut self, most: usize, out: &mut [Vector]) -> Result<(usize, usize)> {
        let mut memory = std::mem::take(&mut self.key);
        let (run, ends) = self.run(most);
        let (wanted, mut bytes) = (run.len(), 0);
        let taken = match &self.covering {
            // Where no column is wanted, the entries only count.
            Some(covering) if self.fetch.width() > 0 => {
                each_entry(run, self.reverse, &mut memory, |key, value| {
                    bytes += covering.each_counted(key, value, |place, value| {
                        out.get_mut(place).map_or(Ok(()), |slot| slot.push(value))
                    })?;
                    Ok(bytes < BYTES_MAX)
                })?
            }
            _ => wanted,
        };
        self.key = memory;
        if taken > 0 {
            self.pass(taken, ends && taken == wanted)?;
        }
        Ok((taken, bytes))
    }

    /// Appends the rowids of entries, from the one at hand on, at most `most`.
    fn push_rowids(&mut self, most: usize, rowids: &mut Vec<i64>) -> Result<()> {
        let mut memory = std::mem::take(&mut self.key);
        let (run, ends) = self.run(most);
        let (wanted, is_unique) = (run.len(), self.index.unique);
        let place = |error| in_index(error, &self.index.name);
        let push = |rowid| rowids.push(rowid);
        let taken = each_rowid(run, self.reverse, is_unique, &mut memory, push);
        let taken = taken.map_err(place)?;
        self.key = memory;
        if taken > 0 {
            return self.pass(taken, ends && taken == wanted);
        }
        let entry = self.entries.as_mut().ok_or_else(detached)?;
        let rowid = match is_unique {
            true => key::decode_rowid(&mut entry.value()?),
            false => key::rowid_suffix(entry.key_bytes()?),
        };
        rowids.push(rowid.map_err(|error| in_index(error, &self.index.name))?);
        Ok(())
    }

    /// Appends what the entry has of its row; the bytes it took.
    fn push_covered(&mut self, out: &mut [Vector]) -> Result<usize> {
        let covering = self.covering.as_ref().ok_or_else(detached)?;
        let entry = self.entries.as_mut().ok_or_else(detached)?;
        let value = entry.value()?;
        self.value.clear();
        self.value.extend_from_slice(value);
        let key = entry.key_bytes()?;
        covering.each_counted(key, &self.value, |place, value| {
            out.get_mut(place).map_or(Ok(()), |slot| slot.push(value))
        })
    }

    /// Appends rows that entries cover; how many.
    fn next_covered(&mut self, most: usize, out: &mut Batch) -> Result<usize> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < most && bytes < BYTES_MAX && self.advance()? {
            let (taken, size) = self.push_run(most - rows, &mut out.columns)?;
            if taken > 0 {
                rows += taken;
                bytes += size;
                continue;
            }
            if self.fetch.width() > 0 {
                bytes += self.push_covered(&mut out.columns)?;
            }
            rows += 1;
        }
        Ok(rows)
    }

    /// Appends rows in the order of their entries; how many.
    fn next_named(&mut self, most: usize, out: &mut Batch) -> Result<usize> {
        if self.named.is_empty() {
            let mut named = std::mem::take(&mut self.named);
            while named.len() < most && self.advance()? {
                self.push_rowids(most - named.len(), named.rowids())?;
            }
            self.named = named;
        }
        let rows = self.rows.as_mut().ok_or_else(detached)?;
        let index = &self.index.name;
        self.named.fetch(&self.fetch, index, rows, most, out)
    }

    /// Appends rows in the order of the table; how many.
    fn next_in_order(&mut self, most: usize, out: &mut Batch) -> Result<usize> {
        let (mut count, mut bytes) = (0, 0);
        while count < most && bytes < BYTES_MAX {
            let Some(rowid) = self.next_gathered()? else {
                break;
            };
            let rows = self.rows.as_mut().ok_or_else(detached)?;
            bytes += push_row(
                &self.fetch,
                &self.index.name,
                rows,
                rowid,
                &mut self.narrow,
                out,
            )?;
            count += 1;
        }
        Ok(count)
    }

    /// The next of the rowids gathered; gathers more where there is none.
    fn next_gathered(&mut self) -> Result<Option<i64>> {
        if self.fetched == self.rowids.len() {
            let mut rowids = std::mem::take(&mut self.rowids);
            rowids.clear();
            self.fetched = 0;
            while rowids.len() < GATHERED_MAX && self.advance()? {
                self.push_rowids(GATHERED_MAX - rowids.len(), &mut rowids)?;
            }
            rowids.sort_unstable();
            self.rowids = rowids;
        }
        let next = self.rowids.get(self.fetched).copied();
        self.fetched += usize::from(next.is_some());
        Ok(next)
    }
}

/// Moves behind all entries that have the same values in so many leading parts as the one at
/// hand. `end` is memory for a key.
fn pass_same(cursor: &mut Cursor, parts: usize, end: &mut Vec<u8>) -> Result<bool> {
    let key = cursor.key_bytes()?;
    let mut rest = key;
    for _ in 0..parts {
        key::skip(&mut rest)?;
    }
    end.clear();
    end.extend_from_slice(key.get(..key.len() - rest.len()).unwrap_or(key));
    end.push(AFTER);
    let run = cursor.entries();
    let same = run.before(end).len();
    if same > 0 && same < run.len() {
        return Ok(cursor.skip(same)?);
    }
    let found = cursor.seek(Seek::AtLeast(Key::Bytes(end)))?;
    end.pop();
    // It would be found again and again.
    match found && cursor.key_bytes()?.starts_with(end) {
        true => Err(Error::corrupt("a key that no value has")),
        false => Ok(found),
    }
}

/// Puts the cursor on the range's first entry or, backwards, on its last one, or near it
/// where the range has none.
fn enter(cursor: &mut Cursor, range: &KeyRange, reverse: bool) -> Result<bool> {
    let start = Key::Bytes(&range.start);
    let end = match range.end.as_slice() {
        [] => None,
        end => Some(Key::Bytes(end)),
    };
    cursor.narrow(
        Bound::Included(start),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    );
    Ok(match end {
        _ if !reverse => cursor.seek(Seek::AtLeast(start))?,
        None => cursor.seek(Seek::Last)?,
        Some(end) => cursor.seek(Seek::Before(end))?,
    })
}

impl Operator for IndexScan {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.entries = Some(txn.cursor(&self.index.tree)?);
        if self.covering.is_none() {
            self.rows = Some(txn.cursor(&self.fetch.table().tree)?);
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.position = 0;
        self.placed = false;
        self.named.clear();
        self.rowids.clear();
        self.fetched = 0;
        let mut ranges = std::mem::take(&mut self.ranges);
        let mut spare = std::mem::take(&mut self.spare);
        if self.of_subquery {
            ranges.clear();
        } else {
            spare.append(&mut ranges);
        }
        for values in &self.prefixes {
            let next = self.index.columns.get(values.len());
            let blobs = next.filter(|_| self.range.blobs);
            if self.of_subquery {
                for start in self.key_prefixes(values, cx)? {
                    if let Some(column) = blobs {
                        ranges.push(blob_range(start.clone(), column));
                    }
                    let end = Vec::new();
                    let mut keys = KeyRange { start, end };
                    if key_range(&mut keys, next, &self.range, cx)? {
                        ranges.push(keys);
                    }
                }
                continue;
            }
            let mut keys = spare.pop().unwrap_or_default();
            keys.start.clear();
            let found = self.prefix(&mut keys.start, 0, values, cx)?;
            if let Some(column) = blobs.filter(|_| found) {
                ranges.push(blob_range(keys.start.clone(), column));
            }
            let some = found && key_range(&mut keys, next, &self.range, cx)?;
            match some {
                true => ranges.push(keys),
                false => spare.push(keys),
            }
        }
        self.spare = spare;
        if self.of_subquery {
            let bytes = ranges.iter().map(|r| r.start.capacity() + r.end.capacity());
            let bytes = bytes.sum::<usize>() + size_of_val(&ranges[..]);
            self.held.force(&cx.run.memory, bytes);
        }
        if ranges.len() > 1 {
            ranges.sort_unstable();
            ranges.dedup();
            if self.reverse {
                ranges.reverse();
            }
        }
        self.ranges = ranges;
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        out.reset(self.fetch.width());
        cx.run.check_interrupt()?;
        let most = want.clamp(1, ROWS_MAX);
        let rows = if self.covering.is_some() {
            self.next_covered(most, out)?
        } else if self.gathers {
            self.next_in_order(most, out)?
        } else {
            self.next_named(most, out)?
        };
        out.set_rows(rows);
        Ok(rows > 0)
    }

    fn skip(&mut self, cx: &mut Context<'_, '_>, rows: u64) -> Result<u64> {
        let mut skipped = 0;
        // Rows that were named already come first.
        let passes = !self.gathers && self.named.is_empty();
        while passes && skipped < rows && self.advance()? {
            cx.run.check_interrupt()?;
            let most = usize::try_from(rows - skipped).unwrap_or(usize::MAX);
            let (run, ends) = self.run(most);
            let passed = run.len();
            if passed > 0 {
                self.pass(passed, ends)?;
            }
            skipped += passed.max(1) as u64;
        }
        Ok(skipped)
    }

    fn detach(&mut self) {
        self.narrow.let_go();
        self.entries = None;
        self.rows = None;
        self.held.release();
        self.named.let_go();
        self.rowids = Vec::new();
        self.fetched = 0;
    }
}
