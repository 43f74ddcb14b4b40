//! The calls of a window: a value for each row.

use super::aggregate::Aggregate;
use super::frame::Bounds;
use super::input::{Input, Source};
use super::value::Argument;
use crate::bind::expr::{OverWindow, WindowCall};
use crate::error::{Error, Result};
use crate::exec::batch::Vector;
use crate::exec::context::Context;
use crate::func::WindowKind;
use crate::value::{Affinity, Value, ValueRef, add, subtract};

/// A call.
pub enum Call {
    /// An aggregate of the rows of a frame.
    Aggregate(Aggregate),
    /// A function of the row's place in the partition, or of other rows' values.
    Function(Function),
}

/// A function that exists over windows only.
pub struct Function {
    kind: WindowKind,
    args: Vec<Argument>,
    /// The parts of ntile() in this partition.
    parts: i64,
    /// The first value of a frame that starts with its partition.
    first: Option<Value>,
}

impl Call {
    /// Over frames with these bounds.
    pub fn new(call: &WindowCall, bounds: &Bounds, cx: &mut Context<'_, '_>) -> Result<Self> {
        match &call.function {
            OverWindow::Aggregate(function) => {
                Aggregate::new(function, call, bounds, cx).map(Call::Aggregate)
            }
            OverWindow::Function(function) => {
                let args = call.args.iter().map(|arg| Argument::new(arg, cx));
                Ok(Call::Function(Function {
                    kind: function.kind,
                    args: args.collect::<Result<_>>()?,
                    parts: 0,
                    first: None,
                }))
            }
        }
    }

    /// The first row that it asks for from here on.
    pub fn needs(&self, bounds: &Bounds, input: &Input) -> u64 {
        match self {
            Call::Aggregate(aggregate) => aggregate.needs(bounds),
            Call::Function(function) => function.needs(bounds, input),
        }
    }

    /// Bytes that it holds beyond itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Call::Aggregate(aggregate) => aggregate.heap_bytes(),
            Call::Function(function) => function.first.as_ref().map_or(0, Value::heap_bytes),
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
        match self {
            Call::Aggregate(aggregate) => aggregate.push(bounds, input, from, out),
            Call::Function(function) => function.push(bounds, input, from, out),
        }
    }
}

impl Function {
    fn needs(&self, bounds: &Bounds, input: &Input) -> u64 {
        match self.kind {
            WindowKind::FirstValue if self.is_first_kept(bounds) => input.row,
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => bounds.start,
            WindowKind::Lag | WindowKind::Lead => match self.args.get(1) {
                None if self.kind == WindowKind::Lag => input.row.saturating_sub(1),
                None => input.row,
                Some(Argument::Constant(Value::Integer(n))) => {
                    let back = if self.kind == WindowKind::Lag {
                        *n
                    } else {
                        n.saturating_neg()
                    };
                    input.row.saturating_sub(u64::try_from(back).unwrap_or(0))
                }
                Some(_) => input.first,
            },
            _ => input.row,
        }
    }

    fn is_first_kept(&self, bounds: &Bounds) -> bool {
        bounds.starts_with_partition() && !bounds.excludes()
    }

    fn push(
        &mut self,
        bounds: &Bounds,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        out: &mut Vector,
    ) -> Result<()> {
        let place = input.row - input.first;
        match self.kind {
            WindowKind::RowNumber => out.push_integer(place as i64 + 1),
            WindowKind::Rank => out.push_integer((input.peers - input.first) as i64 + 1),
            WindowKind::DenseRank => out.push_integer(input.group as i64 + 1),
            WindowKind::PercentRank => {
                let others = input.end(from)? - input.first - 1;
                let before = input.peers - input.first;
                out.push_real(before as f64 / others.max(1) as f64);
            }
            WindowKind::CumeDist => {
                let rows = input.end(from)? - input.first;
                let up_to = input.peers_end(from)? - input.first;
                out.push_real(up_to as f64 / rows as f64);
            }
            WindowKind::Ntile => return self.ntile(input, from, out),
            WindowKind::Lag | WindowKind::Lead => return self.beside(input, from, out),
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                return self.of_frame(bounds, input, from, out);
            }
        }
        Ok(())
    }

    /// An argument in a row.
    fn argument<'a>(&'a self, at: usize, row: u64, input: &'a mut Input) -> Result<ValueRef<'a>> {
        match self.args.get(at) {
            Some(Argument::Column(column)) => input.rows.value(*column, row),
            Some(Argument::Constant(value)) => Ok(value.as_ref()),
            None => Ok(ValueRef::Null),
        }
    }

    /// Of so many parts, of which the first ones have a row more, the row's.
    fn ntile(
        &mut self,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        out: &mut Vector,
    ) -> Result<()> {
        if input.row == input.first {
            self.parts = self.argument(0, input.row, input)?.to_integer();
            if self.parts <= 0 {
                return Err(Error::sql("argument of ntile must be a positive integer"));
            }
        }
        let rows = (input.end(from)? - input.first) as i64;
        let place = (input.row - input.first) as i64;
        let (size, larger) = (rows / self.parts, rows % self.parts);
        let in_larger = larger * (size + 1);
        out.push_integer(if place < in_larger {
            1 + place / (size + 1)
        } else {
            1 + larger + (place - in_larger) / size.max(1)
        });
        Ok(())
    }

    /// lag() and lead().
    fn beside(
        &mut self,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        out: &mut Vector,
    ) -> Result<()> {
        let place = ValueRef::Integer((input.row - input.first) as i64);
        let back = self.kind == WindowKind::Lag;
        let offset = match self.args.len() {
            0 | 1 => ValueRef::Integer(1),
            _ => self.argument(1, input.row, input)?,
        };
        let wanted = if back {
            subtract(place, offset)
        } else {
            add(place, offset)
        };
        let wanted = Affinity::Numeric.apply(wanted.as_ref()).as_ref().to_value();
        if let Value::Integer(wanted) = wanted
            && let Ok(wanted) = u64::try_from(wanted)
            // lag() knows no row behind the next one, as in SQLite.
            && (!back || wanted <= input.row - input.first + 1)
            && let Some(row) = input.first.checked_add(wanted)
            && input.has(row, from)?
        {
            return out.push(self.argument(0, row, input)?);
        }
        out.push(self.argument(2, input.row, input)?)
    }

    /// first_value(), last_value() and nth_value().
    fn of_frame(
        &mut self,
        bounds: &Bounds,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
        out: &mut Vector,
    ) -> Result<()> {
        if input.row == input.first {
            self.first = None;
        }
        let pieces = bounds.pieces(input, from)?;
        let mut pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        let row = match self.kind {
            WindowKind::LastValue => pieces.next_back().map(|piece| piece.end - 1),
            WindowKind::NthValue => {
                let nth = self.argument(1, input.row, input)?;
                let nth = match Affinity::Numeric.apply(nth).as_ref() {
                    ValueRef::Integer(nth) if nth > 0 => nth as u64,
                    _ => {
                        let message = "second argument to nth_value must be a positive integer";
                        return Err(Error::sql(message));
                    }
                };
                let mut left = nth - 1;
                pieces.find_map(|piece| {
                    let rows = piece.end - piece.start;
                    match left < rows {
                        true => Some(piece.start + left),
                        false => {
                            left -= rows;
                            None
                        }
                    }
                })
            }
            _ => pieces.next().map(|piece| piece.start),
        };
        let Some(row) = row else {
            out.push_null();
            return Ok(());
        };
        if self.kind != WindowKind::FirstValue || !self.is_first_kept(bounds) {
            return out.push(self.argument(0, row, input)?);
        }
        let first = match self.first.take() {
            Some(first) => first,
            None => self.argument(0, row, input)?.to_value(),
        };
        out.push(self.first.insert(first).as_ref())
    }
}
