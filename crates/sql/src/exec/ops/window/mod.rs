//! Window: what is computed over the rows around each row.
//!
//! Rows come in order of the window's keys and leave in the same order, each as soon as
//! what its calls look at has come: a running sum streams, a rank does, and a moving
//! average holds as many rows as it is wide. Rows are dropped when no call asks for them
//! any more ([`rows`]).

mod aggregate;
mod call;
mod frame;
mod input;
mod rows;
mod value;

use super::{BoxOperator, Delayed, Operator};
use crate::bind::expr::{SortKey, WindowCall, Windowing};
use crate::error::Result;
use crate::exec::batch::{Batch, ROWS_MAX};
use crate::exec::context::Context;
use crate::exec::memory::Held;
use crate::exec::txns::Txns;
use call::Call;
use frame::Bounds;
use input::{Input, Source};

/// See the module.
pub struct Window {
    operator: BoxOperator,
    width: usize,
    window: Windowing,
    run: Option<Run>,
    delayed: Delayed,
    held: Held,
}

/// One pass over the input.
struct Run {
    input: Input,
    /// The next row.
    row: u64,
    /// Frames are known with the first row: what they are told may be refused, but not
    /// where there are no rows.
    calls: Option<Calls>,
}

struct Calls {
    frames: Vec<Bounds>,
    /// Each with the number of its frame.
    calls: Vec<(usize, Call)>,
}

impl Calls {
    fn new(calls: &[WindowCall], order: &[SortKey], cx: &mut Context<'_, '_>) -> Result<Self> {
        let mut this = Calls {
            frames: Vec::new(),
            calls: Vec::with_capacity(calls.len()),
        };
        let mut known: Vec<&WindowCall> = Vec::new();
        for call in calls {
            let same = known.iter().position(|k| k.frame == call.frame);
            let at = match same {
                Some(at) => at,
                None => {
                    this.frames.push(Bounds::new(&call.frame, order, cx)?);
                    known.push(call);
                    known.len() - 1
                }
            };
            if let Some(bounds) = this.frames.get(at) {
                let call = Call::new(call, bounds, cx)?;
                this.calls.push((at, call));
            }
        }
        Ok(this)
    }

    /// Appends the results for the row at hand.
    fn push(
        &mut self,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        width: usize,
        out: &mut Batch,
    ) -> Result<()> {
        for frame in &mut self.frames {
            frame.go(input, from)?;
        }
        let results = out.columns.iter_mut().skip(width);
        for ((frame, call), column) in self.calls.iter_mut().zip(results) {
            if let Some(bounds) = self.frames.get(*frame) {
                call.push(bounds, input, from, column)?;
            }
        }
        Ok(())
    }

    /// The first row that is asked for from here on.
    fn needs(&self, input: &Input) -> u64 {
        let calls = self.calls.iter().filter_map(|(frame, call)| {
            let bounds = self.frames.get(*frame)?;
            Some(call.needs(bounds, input).min(bounds.needs(input.row)))
        });
        calls.fold(input.row, u64::min)
    }

    fn heap_bytes(&self) -> usize {
        self.calls.iter().map(|(_, call)| call.heap_bytes()).sum()
    }
}

impl Window {
    /// Over `operator` of `width` columns.
    pub fn new(operator: BoxOperator, width: usize, window: &Windowing) -> Self {
        Self {
            operator,
            width,
            window: window.clone(),
            run: None,
            delayed: Delayed::default(),
            held: Held::default(),
        }
    }
}

impl Run {
    /// Appends the results of the next rows, at most `most`.
    fn results(
        &mut self,
        window: &Windowing,
        width: usize,
        most: usize,
        from: &mut Source<'_, '_, '_>,
        out: &mut Batch,
    ) -> Result<()> {
        for _ in 0..most {
            if !self.input.go_to(self.row, from)? {
                return Ok(());
            }
            let calls = match &mut self.calls {
                Some(calls) => calls,
                None => self
                    .calls
                    .insert(Calls::new(&window.calls, &window.order, from.cx)?),
            };
            calls.push(&mut self.input, from, width, out)?;
            self.row += 1;
        }
        Ok(())
    }
}

impl Operator for Window {
    fn attach(&mut self, txn: &mut Txns) -> Result<()> {
        self.operator.attach(txn)
    }

    fn open(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        self.delayed.clear();
        self.run = Some(Run {
            input: Input::new(self.width, &self.window, &cx.run.memory),
            row: 0,
            calls: None,
        });
        self.operator.open(cx)
    }

    fn next(&mut self, cx: &mut Context<'_, '_>, want: usize, out: &mut Batch) -> Result<bool> {
        self.delayed.raise()?;
        cx.run.check_interrupt()?;
        out.reset(self.width + self.window.calls.len());
        let Some(run) = &mut self.run else {
            return Ok(false);
        };
        let first = run.row;
        let most = want.clamp(1, ROWS_MAX);
        let mut from = Source {
            operator: self.operator.as_mut(),
            cx,
            want,
        };
        let outcome = run.results(&self.window, self.width, most, &mut from, out);
        let rows = (run.row - first) as usize;
        let (columns, results) = out.columns.split_at_mut(self.width);
        run.input.rows.copy(first..run.row, columns)?;
        for column in results {
            column.truncate(rows);
        }
        out.set_rows(rows);
        if let Some(calls) = &run.calls {
            run.input.rows.release(calls.needs(&run.input));
            self.held.force(&cx.run.memory, calls.heap_bytes());
        }
        match outcome {
            Ok(()) => Ok(rows > 0),
            Err(error) => self.delayed.after(rows, error),
        }
    }

    fn detach(&mut self) {
        self.run = None;
        self.held.release();
        self.operator.detach();
    }
}
