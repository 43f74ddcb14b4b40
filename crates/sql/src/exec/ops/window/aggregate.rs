//! Aggregates over frames.
//!
//! A frame that moves on takes the rows that come in and takes back those that fall out,
//! in the order in which SQLite does, on which the last digits of a sum of reals depend.
//! The least and the greatest value are kept with those that may succeed them, so that
//! no frame is searched; texts are cut off at the front. What can do none of this, and
//! what leaves rows out, takes all rows of its frame anew.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::frame::Bounds;
use super::input::{Input, Source};
use super::rows::Kept;
use super::value::Argument;
use crate::bind::expr::WindowCall;
use crate::error::{Error, Result};
use crate::exec::batch::Vector;
use crate::exec::context::Context;
use crate::func::{Accumulator, AggregateFunction, AggregateKind};
use crate::value::{Collation, LENGTH_MAX, Value, ValueRef, compare};

/// Most arguments that are handed over without a list being made.
const ARGUMENTS_MAX: usize = 2;

/// What is known of a frame's rows.
enum State {
    /// Rows are taken and taken back one by one.
    Running(Accumulator),
    /// The values that are, or may become, the extreme: each better than those behind.
    Extreme(VecDeque<(u64, Value)>, Ordering),
    /// The texts of the frame, one behind the other.
    Concat(Concat),
    /// All rows are taken anew.
    Anew(Accumulator),
}

/// Texts with their separators.
#[derive(Default)]
struct Concat {
    bytes: Vec<u8>,
    /// Bytes at the front that fell out.
    dropped: usize,
    /// Of each text, the bytes of its separator before it and its own.
    lengths: VecDeque<(usize, usize)>,
}

/// See the module.
pub struct Aggregate {
    function: Arc<AggregateFunction>,
    args: Vec<Argument>,
    filter: Option<Argument>,
    collation: Collation,
    state: State,
    /// The rows that the state knows.
    low: u64,
    high: u64,
    /// The rows that were taken anew.
    taken: Option<[Range<u64>; 3]>,
    /// The value for the rows at hand, until they change.
    value: Option<Value>,
}

impl Aggregate {
    /// Over frames with these bounds.
    pub fn new(
        function: &Arc<AggregateFunction>,
        call: &WindowCall,
        bounds: &Bounds,
        cx: &mut Context<'_, '_>,
    ) -> Result<Self> {
        let args = call.args.iter().map(|arg| Argument::new(arg, cx));
        let args = args.collect::<Result<Vec<_>>>()?;
        let filter = call.filter.as_ref().map(|f| Argument::new(f, cx));
        Ok(Self {
            filter: filter.transpose()?,
            args,
            collation: call.collation,
            state: state(function, bounds),
            function: Arc::clone(function),
            low: 0,
            high: 0,
            taken: None,
            value: None,
        })
    }

    /// The first row that it asks for from here on.
    pub fn needs(&self, bounds: &Bounds) -> u64 {
        match self.state {
            State::Anew(_) => bounds.start,
            _ if bounds.starts_with_partition() => self.high,
            _ => self.low,
        }
    }

    /// Bytes that it holds beyond itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Running(a) | State::Anew(a) => a.heap_bytes(),
            State::Extreme(values, _) => {
                let heap = values.iter().map(|(_, value)| value.heap_bytes());
                values.capacity() * size_of::<(u64, Value)>() + heap.sum::<usize>()
            }
            State::Concat(texts) => {
                texts.bytes.capacity() + texts.lengths.capacity() * size_of::<(usize, usize)>()
            }
        }
    }

    /// Appends the value for the row at hand.
    pub fn push(
        &mut self,
        bounds: &Bounds,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        out: &mut Vector,
    ) -> Result<()> {
        if input.row == input.first {
            self.state = state(&self.function, bounds);
            (self.low, self.high) = (input.first, input.first);
            self.taken = None;
            self.value = None;
        }
        if matches!(self.state, State::Anew(_)) {
            self.take_anew(bounds, input, from)?;
        } else {
            self.slide(bounds, input, from)?;
        }
        let value = match &self.value {
            Some(value) => value,
            None => self.value.insert(self.state.value()?),
        };
        out.push(value.as_ref())
    }

    /// Has the state know the rows of the frame.
    fn slide(
        &mut self,
        bounds: &Bounds,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
    ) -> Result<()> {
        let (start, end) = (bounds.start.min(bounds.end), bounds.end);
        let removes = !bounds.starts_with_partition();
        if removes && !bounds.takes_first() {
            self.remove_before(start.min(self.high), input)?;
            if let Some(length) = bounds.length_ahead()
                && start > self.low
            {
                self.step_ahead(bounds, length, input)?;
            }
        }
        if self.high < end {
            from.cx.run.check_interrupt()?;
            self.step(self.high..end, input)?;
            self.high = end;
            self.value = None;
        }
        match removes {
            true => self.remove_before(start, input),
            false => Ok(()),
        }
    }

    /// Takes the rows before a frame that starts behind the row, and takes those back
    /// again as soon as there are as many as it will have.
    fn step_ahead(&mut self, bounds: &Bounds, length: u64, input: &mut Input) -> Result<()> {
        let mut taken = 0;
        while self.high < bounds.end && self.low < bounds.start {
            let next = bounds.next(self.high, bounds.end, input)?;
            self.step(self.high..next, input)?;
            self.high = next;
            self.value = None;
            taken += 1;
            if taken >= length {
                let next = bounds.next(self.low, bounds.end, input)?;
                self.remove_before(next, input)?;
                taken -= 1;
            }
        }
        Ok(())
    }

    fn remove_before(&mut self, start: u64, input: &mut Input) -> Result<()> {
        while self.low < start {
            let (kept, at, left) = input.rows.around(self.low)?;
            let count = left.min((start - self.low) as usize);
            for row in at..at + count {
                if self.filter.as_ref().is_some_and(|f| !f.is_true(kept, row)) {
                    continue;
                }
                let place = self.low + (row - at) as u64;
                with_arguments(&self.args, kept, row, |values| {
                    self.state.remove(place, values)
                })?;
            }
            self.low += count as u64;
            self.value = None;
        }
        Ok(())
    }

    fn step(&mut self, rows: Range<u64>, input: &mut Input) -> Result<()> {
        let mut next = rows.start;
        while next < rows.end {
            let (kept, at, left) = input.rows.around(next)?;
            let count = left.min((rows.end - next) as usize);
            if !self.step_vector(kept, at..at + count)? {
                for row in at..at + count {
                    if self.filter.as_ref().is_some_and(|f| !f.is_true(kept, row)) {
                        continue;
                    }
                    let place = next + (row - at) as u64;
                    let collation = self.collation;
                    with_arguments(&self.args, kept, row, |values| {
                        self.state.step(place, values, collation)
                    })?;
                }
            }
            next += count as u64;
        }
        Ok(())
    }

    /// Takes integers, or rows that are only counted, without a look at each. False: not
    /// done.
    fn step_vector(&mut self, kept: &Kept, rows: Range<usize>) -> Result<bool> {
        let (State::Running(state) | State::Anew(state)) = &mut self.state else {
            return Ok(false);
        };
        if self.filter.is_some() {
            return Ok(false);
        }
        match self.args.as_slice() {
            [] if self.function.kind == AggregateKind::Count => {
                state.step_count(rows.len() as u64);
                Ok(true)
            }
            [Argument::Column(column)] => {
                let integers = kept.batch.columns.get(*column).and_then(Vector::integers);
                let Some(words) = integers.and_then(|words| words.get(rows)) else {
                    return Ok(false);
                };
                state.step_integers(words)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn take_anew(
        &mut self,
        bounds: &Bounds,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
    ) -> Result<()> {
        let pieces = bounds.pieces(input, from)?;
        if self.taken.as_ref() == Some(&pieces) {
            return Ok(());
        }
        self.state = State::Anew(self.function.accumulator());
        self.value = None;
        for piece in pieces.clone() {
            from.cx.run.check_interrupt()?;
            self.step(piece, input)?;
        }
        self.taken = Some(pieces);
        Ok(())
    }
}

fn state(function: &AggregateFunction, bounds: &Bounds) -> State {
    if bounds.excludes() {
        return State::Anew(function.accumulator());
    }
    if bounds.starts_with_partition() || function.takes_back() {
        return State::Running(function.accumulator());
    }
    match function.kind {
        AggregateKind::Min => State::Extreme(VecDeque::new(), Ordering::Less),
        AggregateKind::Max => State::Extreme(VecDeque::new(), Ordering::Greater),
        AggregateKind::GroupConcat => State::Concat(Concat::default()),
        _ => State::Anew(function.accumulator()),
    }
}

/// Calls `f` with the arguments in a row.
fn with_arguments<T>(
    args: &[Argument],
    kept: &Kept,
    row: usize,
    f: impl FnOnce(&[ValueRef<'_>]) -> Result<T>,
) -> Result<T> {
    let mut values = [ValueRef::Null; ARGUMENTS_MAX];
    match values.get_mut(..args.len()) {
        Some(values) => {
            for (value, arg) in values.iter_mut().zip(args) {
                *value = arg.get(kept, row);
            }
            f(values)
        }
        None => {
            let values: Vec<ValueRef<'_>> = args.iter().map(|arg| arg.get(kept, row)).collect();
            f(&values)
        }
    }
}

impl State {
    fn step(&mut self, row: u64, values: &[ValueRef<'_>], collation: Collation) -> Result<()> {
        let value = values.first().copied().unwrap_or(ValueRef::Null);
        match self {
            State::Running(state) | State::Anew(state) => {
                state.step(values, collation)?;
            }
            State::Extreme(_, _) | State::Concat(_) if value.is_null() => {}
            State::Extreme(known, wanted) => {
                // Of equals the last one stays, as in SQLite.
                while let Some((_, last)) = known.back()
                    && compare(last.as_ref(), value, collation) != *wanted
                {
                    known.pop_back();
                }
                known.push_back((row, value.to_value()));
            }
            State::Concat(texts) => texts.push(value, values.get(1).copied())?,
        }
        Ok(())
    }

    fn remove(&mut self, row: u64, values: &[ValueRef<'_>]) -> Result<()> {
        match self {
            State::Running(state) => state.remove(values)?,
            State::Extreme(known, _) => {
                if known.front().is_some_and(|(first, _)| *first <= row) {
                    known.pop_front();
                }
            }
            State::Concat(texts) => {
                if values.first().is_some_and(|value| !value.is_null()) {
                    texts.pop();
                }
            }
            State::Anew(_) => {}
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value> {
        match self {
            State::Running(state) => state.value(),
            State::Anew(state) => state.finish(),
            State::Extreme(known, _) => Ok(known
                .front()
                .map_or(Value::Null, |(_, value)| value.clone())),
            State::Concat(texts) => Ok(texts.value()),
        }
    }
}

impl Concat {
    fn push(&mut self, value: ValueRef<'_>, separator: Option<ValueRef<'_>>) -> Result<()> {
        let start = self.bytes.len();
        if !self.lengths.is_empty() {
            match separator {
                None => self.bytes.push(b','),
                Some(separator) => separator.append_text(&mut self.bytes),
            }
        }
        let middle = self.bytes.len();
        value.append_text(&mut self.bytes);
        let end = self.bytes.len();
        self.lengths.push_back((middle - start, end - middle));
        if end - self.dropped > LENGTH_MAX {
            return Err(Error::too_big());
        }
        Ok(())
    }

    /// Drops the first text, and the separator of the next one.
    fn pop(&mut self) {
        let Some((separator, text)) = self.lengths.pop_front() else {
            return;
        };
        self.dropped += separator + text;
        if let Some((separator, _)) = self.lengths.front_mut() {
            self.dropped += std::mem::take(separator);
        }
        if self.lengths.is_empty() || self.dropped > self.bytes.len() / 2 {
            self.bytes.drain(..self.dropped);
            self.dropped = 0;
        }
    }

    fn value(&self) -> Value {
        if self.lengths.is_empty() {
            return Value::Null;
        }
        Value::Text(self.bytes.get(self.dropped..).unwrap_or(&[]).to_vec())
    }
}
