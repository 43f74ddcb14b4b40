//! Recursion: a recursive common table expression.
//!
//! The initial rows fill a queue. Each row that leaves it is a row of the result, and then
//! the step, which reads it as [`RecursiveRows`](super::recursive_rows), adds rows to the
//! queue, until it is empty. A row is handed out before its step runs, so that whoever
//! wants no more rows ends a recursion that has no end.

mod known;
mod ordered;
mod queue;

use self::known::Known;
use self::ordered::OrderedQueue;
use self::queue::Queue;
use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::SortKey;
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_FIRST, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::txns::Txns;
use crate::value::Collation;

/// What a plan says about a recursion.
pub struct Spec {
    /// The number of its table, and of its pass.
    pub table: usize,
    /// UNION: how the rows' texts compare.
    pub distinct: Option<Vec<Collation>>,
    /// In which order rows leave the queue; empty: as they came.
    pub order: Vec<SortKey>,
    /// The step takes several rows at once.
    pub by_batch: bool,
    /// Columns of a row.
    pub width: usize,
}

/// The rows whose step has still to run.
#[expect(
    clippy::large_enum_variant,
    reason = "one a recursion, never in numbers"
)]
enum Waiting {
    InOrderOfArrival(Queue),
    Ordered(OrderedQueue),
}

/// See the module.
pub struct Recursion {
    initial: BoxOperator,
    step: BoxOperator,
    table: usize,
    by_batch: bool,
    width: usize,
    waiting: Waiting,
    known: Option<Known>,
    /// What a part yields, on its way to the queue.
    rows: Batch,
    begun: bool,
    /// The rows at hand have been handed out, and their step has still to run.
    due: bool,
    /// Rows of the next batch at most.
    most: usize,
    delayed: Delayed,
}

impl Recursion {
    /// Of the two parts.
    pub fn new(initial: BoxOperator, step: BoxOperator, spec: Spec) -> Self {
        let waiting = match spec.order.is_empty() {
            true => Waiting::InOrderOfArrival(Queue::new(spec.width)),
            false => Waiting::Ordered(OrderedQueue::new(spec.order, spec.width)),
        };
        Self {
            initial,
            step,
            table: spec.table,
            by_batch: spec.by_batch,
            width: spec.width,
            waiting,
            known: spec.distinct.map(Known::new),
            rows: Batch::default(),
            begun: false,
            due: false,
            most: ROWS_FIRST,
            delayed: Delayed::default(),
        }
    }

    /// Lets the rows of the initial part, or of the step, wait.
    fn gather(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        let part = match self.begun {
            true => &mut self.step,
            false => &mut self.initial,
        };
        part.open(cx)?;
        while part.next(cx, usize::MAX, &mut self.rows)? {
            cx.run.check_interrupt()?;
            if let Some(known) = &mut self.known {
                known.keep_new(&mut self.rows, cx)?;
            }
            match &mut self.waiting {
                Waiting::InOrderOfArrival(queue) => queue.push(&mut self.rows, cx)?,
                Waiting::Ordered(queue) => queue.push(&self.rows, cx)?,
            }
        }
        Ok(())
    }

    /// Takes at most `want` rows, which are at hand then; false: none are left.
    fn take(&mut self, cx: &mut Context<'_, '_>, want: usize) -> Result<bool> {
        let want = if self.by_batch { want } else { 1 };
        let rows = cx.run.recursive_rows(self.table);
        match &mut self.waiting {
            Waiting::InOrderOfArrival(queue) => queue.take(want, rows),
            Waiting::Ordered(queue) => queue.take(rows),
        }
    }

    fn fill(&mut self, cx: &mut Context<'_, '_>, most: usize, out: &mut Batch) -> Result<()> {
        while out.rows() < most {
            if !self.begun {
                self.gather(cx)?;
                self.begun = true;
            }
            if self.due {
                cx.run.check_interrupt()?;
                self.due = false;
                self.gather(cx)?;
            }
            if !self.take(cx, most - out.rows())? {
                break;
            }
            out.append(cx.run.recursive_rows(self.table))?;
            self.due = true;
        }
        Ok(())
    }

    fn clear(&mut self) {
        match &mut self.waiting {
            Waiting::InOrderOfArrival(queue) => queue.clear(),
            Waiting::Ordered(queue) => queue.clear(),
        }
        if let Some(known) = &mut self.known {
            known.clear();
        }
        self.begun = false;
        self.due = false;
        self.delayed.clear();
    }
}

impl Operator for Recursion {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.initial.attach(txn)?;
        self.step.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        cx.run.begin_pass(self.table);
        self.clear();
        self.most = ROWS_FIRST;
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        out.reset(self.width);
        let most = want.clamp(1, self.most);
        self.most = (self.most * 4).min(ROWS_MAX);
        match self.fill(cx, most, out) {
            Ok(()) => Ok(!out.is_empty()),
            Err(error) => self.delayed.after(out.rows(), error),
        }
    }

    fn detach(&mut self) {
        self.clear();
        self.rows.let_go();
        self.initial.detach();
        self.step.detach();
    }
}
