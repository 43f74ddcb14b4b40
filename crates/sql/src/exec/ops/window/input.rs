//! The input of a window: its rows, the partitions they are divided into, and the
//! groups of rows that are equal in the order, the row's peers.
//!
//! Rows are taken from the input as they are asked for, so that where a partition ends
//! is known no sooner than somebody wants to know.

use std::collections::VecDeque;

use super::rows::Rows;
use crate::bind::expr::{ExprKind, SortKey, Windowing};
use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::memory::Memory;
use crate::exec::ops::Operator;
use crate::value::{Collation, Value, ValueRef, not_distinct};

/// The row is the first of its partition.
const PARTITION: u8 = 1;
/// The row is the first of its peers.
const PEERS: u8 = 2;

/// Where rows come from.
pub struct Source<'s, 'p, 'r> {
    /// The operator.
    pub operator: &'s mut dyn Operator,
    /// The run.
    pub cx: &'s mut Context<'p, 'r>,
    /// How many rows the caller can use.
    pub want: usize,
}

/// A column that rows are compared by.
struct Key {
    column: usize,
    collation: Collation,
}

/// See the module.
pub struct Input {
    partition: Vec<Key>,
    order: Vec<Key>,
    /// The rows that are needed still.
    pub rows: Rows,
    batch: Batch,
    marks: Vec<u8>,
    /// The keys of the last row that came.
    last: Vec<Value>,
    /// First rows of the partitions from the current one on, as far as they came.
    starts: VecDeque<u64>,
    ended: bool,
    /// The row at hand.
    pub row: u64,
    /// The first row of its partition.
    pub first: u64,
    /// The first of its peers.
    pub peers: u64,
    /// The number of its group of peers in the partition.
    pub group: u64,
    /// Where its peers end, once that is known.
    peers_end: Option<u64>,
}

fn keys(terms: &[SortKey]) -> Vec<Key> {
    let column = |key: &SortKey| match key.expr.kind {
        ExprKind::Input(column) => Some(Key {
            column,
            collation: key.collation,
        }),
        _ => None,
    };
    terms.iter().filter_map(column).collect()
}

impl Input {
    /// No rows yet.
    pub fn new(width: usize, window: &Windowing, memory: &Memory) -> Self {
        Self {
            partition: keys(&window.partition),
            order: keys(&window.order),
            rows: Rows::new(width, memory),
            batch: Batch::default(),
            marks: Vec::new(),
            last: Vec::new(),
            starts: VecDeque::new(),
            ended: false,
            row: 0,
            first: 0,
            peers: 0,
            group: 0,
            peers_end: None,
        }
    }

    /// Takes more rows from the input.
    fn pull(&mut self, from: &mut Source<'_, '_, '_>) -> Result<()> {
        from.cx.run.check_interrupt()?;
        // Who asks for more than the caller can use asks for many.
        let came = usize::try_from(self.rows.end()).unwrap_or(usize::MAX);
        let want = from.want.max(came);
        if !from.operator.next(from.cx, want, &mut self.batch)? {
            self.ended = true;
            return Ok(());
        }
        self.marks.clear();
        let mut before = None;
        for at in 0..self.batch.len() {
            let Some(row) = self.batch.row_at(at) else {
                break;
            };
            let marks = self.marks_of(before, row);
            if marks & PARTITION != 0 {
                self.starts.push_back(self.rows.end() + at as u64);
            }
            self.marks.push(marks);
            before = Some(row);
        }
        if let Some(row) = before {
            self.last.clear();
            for key in self.partition.iter().chain(&self.order) {
                self.last.push(self.batch.get(key.column, row).to_value());
            }
        }
        self.rows.append(&mut self.batch, &self.marks)
    }

    /// What is to be noted of a row of the batch behind `before`, or behind the last
    /// one of the batch before.
    fn marks_of(&self, before: Option<usize>, row: usize) -> u8 {
        if before.is_none() && self.rows.end() == 0 {
            return PARTITION | PEERS;
        }
        let is_same = |at: usize, key: &Key| {
            let have = match before {
                Some(before) => self.batch.get(key.column, before),
                None => self.last.get(at).map_or(ValueRef::Null, Value::as_ref),
            };
            not_distinct(have, self.batch.get(key.column, row), key.collation)
        };
        let partition = self.partition.iter().enumerate();
        if !partition.into_iter().all(|(at, key)| is_same(at, key)) {
            return PARTITION | PEERS;
        }
        let order = self.order.iter().enumerate();
        let base = self.partition.len();
        let are_peers = order.into_iter().all(|(at, key)| is_same(base + at, key));
        if are_peers { 0 } else { PEERS }
    }

    /// Where the partition ends, if that is known.
    fn known_end(&self) -> Option<u64> {
        match self.starts.get(1) {
            Some(next) => Some(*next),
            None => self.ended.then(|| self.rows.end()),
        }
    }

    /// Goes to a row; false at the end of the input.
    pub fn go_to(&mut self, row: u64, from: &mut Source<'_, '_, '_>) -> Result<bool> {
        while row >= self.rows.end() {
            if self.ended {
                return Ok(false);
            }
            self.pull(from)?;
        }
        self.row = row;
        if self.starts.get(1).is_some_and(|next| *next <= row) {
            self.starts.pop_front();
        }
        let marks = self.rows.marks(row)?;
        if marks & PARTITION != 0 {
            self.first = row;
            self.group = 0;
        } else if marks & PEERS != 0 {
            self.group += 1;
        }
        if marks & PEERS != 0 {
            self.peers = row;
            self.peers_end = None;
        }
        Ok(true)
    }

    /// Whether the partition has this row, behind the one at hand.
    #[inline]
    pub fn has(&mut self, row: u64, from: &mut Source<'_, '_, '_>) -> Result<bool> {
        loop {
            match self.known_end() {
                Some(end) => return Ok(row < end),
                None if row < self.rows.end() => return Ok(true),
                None => self.pull(from)?,
            }
        }
    }

    /// Where the partition ends.
    pub fn end(&mut self, from: &mut Source<'_, '_, '_>) -> Result<u64> {
        loop {
            match self.known_end() {
                Some(end) => return Ok(end),
                None => self.pull(from)?,
            }
        }
    }

    /// Whether a row of the partition is the first of its peers.
    pub fn begins_peers(&mut self, row: u64) -> Result<bool> {
        Ok(self.rows.marks(row)? & PEERS != 0)
    }

    /// Where the peers of the row end.
    pub fn peers_end(&mut self, from: &mut Source<'_, '_, '_>) -> Result<u64> {
        if let Some(end) = self.peers_end {
            return Ok(end);
        }
        let end = if self.order.is_empty() {
            self.end(from)?
        } else {
            let mut row = self.row + 1;
            while self.has(row, from)? && !self.begins_peers(row)? {
                row += 1;
            }
            row
        };
        self.peers_end = Some(end);
        Ok(end)
    }
}
