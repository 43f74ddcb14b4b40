//! The queue of a recursion: rows leave it in the order in which they came.
//!
//! One batch is held as it came; what comes behind it is kept in a [`RowStore`], and goes
//! to disk where the budget ends. While one store is read, the rows that come go to
//! another, so that each is given back once it has been read.

use crate::error::Result;
use crate::exec::batch::Batch;
use crate::exec::context::Context;
use crate::exec::rows::RowStore;

/// See the module. In order: the rest of `front`, that of `older`, `held`, `newer`.
pub struct Queue {
    width: usize,
    front: Batch,
    /// How many of the front's rows have left.
    left: usize,
    older: Option<RowStore>,
    position: u64,
    held: Batch,
    newer: Option<RowStore>,
}

impl Queue {
    /// An empty one for rows of `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            front: Batch::default(),
            left: 0,
            older: None,
            position: 0,
            held: Batch::default(),
            newer: None,
        }
    }

    /// Forgets all rows and gives memory back.
    pub fn clear(&mut self) {
        self.front.let_go();
        self.left = 0;
        self.held.let_go();
        self.older = None;
        self.newer = None;
    }

    /// Adds the rows of a batch that count; the batch may be another one behind it.
    pub fn push(&mut self, rows: &mut Batch, cx: &Context<'_, '_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.held.is_empty() && self.newer.as_ref().is_none_or(RowStore::is_empty) {
            std::mem::swap(&mut self.held, rows);
            return Ok(());
        }
        let (width, memory) = (self.width, &cx.run.memory);
        self.newer
            .get_or_insert_with(|| RowStore::new(width, memory))
            .append(rows)
    }

    /// Moves at most `want` rows to `out`; false: there are none.
    pub fn take(&mut self, want: usize, out: &mut Batch) -> Result<bool> {
        if self.left >= self.front.len() && !self.refill()? {
            out.reset(self.width);
            return Ok(false);
        }
        if self.left == 0 && want >= self.front.len() {
            std::mem::swap(&mut self.front, out);
            self.front.clear();
            return Ok(true);
        }
        out.reset(self.width);
        let end = self.front.len().min(self.left.saturating_add(want));
        for row in (self.left..end).filter_map(|at| self.front.row_at(at)) {
            for (to, from) in out.columns.iter_mut().zip(&self.front.columns) {
                to.push_from(from, row)?;
            }
        }
        out.set_rows(end - self.left);
        self.left = end;
        Ok(true)
    }

    /// Has the next rows in front; false: there are none.
    fn refill(&mut self) -> Result<bool> {
        self.left = 0;
        if let Some(older) = &mut self.older {
            if older.read(&mut self.position, usize::MAX, &mut self.front)? {
                return Ok(true);
            }
            older.clear();
        }
        if !self.held.is_empty() {
            std::mem::swap(&mut self.front, &mut self.held);
            self.held.clear();
            return Ok(true);
        }
        std::mem::swap(&mut self.older, &mut self.newer);
        self.position = 0;
        match &mut self.older {
            Some(older) => older.read(&mut self.position, usize::MAX, &mut self.front),
            None => {
                self.front.clear();
                Ok(false)
            }
        }
    }
}
