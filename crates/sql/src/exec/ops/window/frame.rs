//! Frames: which rows of its partition a call looks at, for one row after the other.
//!
//! Both ends of a frame only ever move on within a partition. Ends that are counted in
//! groups of peers or in differences of values go row by row until they are where they
//! belong.

use std::ops::Range;

use super::input::{Input, Source};
use crate::bind::expr::{Exclude, ExprKind, Frame, FrameBound, FrameMode, SortKey};
use crate::error::{Error, Result};
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::value::{Affinity, Collation, Value, ValueRef, add, compare, subtract};

/// How far an end is from the row, with what RANGE adds.
type End = FrameBound<(u64, Value)>;

/// The value that orders the rows, where RANGE measures distances of it.
struct Measure {
    column: usize,
    collation: Collation,
    descending: bool,
    /// NULL counts as larger than all values.
    nulls_last: bool,
}

/// See the module.
pub struct Bounds {
    mode: FrameMode,
    start_at: End,
    end_at: End,
    exclude: Exclude,
    measure: Option<Measure>,
    /// It ends before it starts, for every row.
    is_empty: bool,
    /// The first row of the frame, if that is before `end`.
    pub start: u64,
    /// The row behind its last.
    pub end: u64,
    /// The groups that they are in.
    start_group: u64,
    end_group: u64,
}

/// An end as it is for all rows, refused where it cannot be one.
fn end_of(
    frame: &Frame,
    bound: &FrameBound<crate::bind::expr::Expr>,
    which: &str,
    cx: &mut Context<'_, '_>,
) -> Result<End> {
    let mut offset = |expr| {
        let value = eval(expr, Row::Empty, cx)?.as_ref().to_value();
        let number = Affinity::Numeric.apply(value.as_ref()).as_ref().to_value();
        let (what, is_one) = match (frame.mode, &number) {
            (FrameMode::Range, Value::Integer(n)) => ("number", *n >= 0),
            (FrameMode::Range, Value::Real(r)) => ("number", *r >= 0.0),
            (FrameMode::Range, _) => ("number", false),
            (_, Value::Integer(n)) => ("integer", *n >= 0),
            (_, _) => ("integer", false),
        };
        if !is_one {
            let message = format!("frame {which} offset must be a non-negative {what}");
            return Err(Error::sql(message));
        }
        let rows = u64::try_from(number.as_ref().to_integer()).unwrap_or(0);
        Ok((rows, number))
    };
    Ok(match bound {
        FrameBound::Unbounded => End::Unbounded,
        FrameBound::Preceding(expr) => End::Preceding(offset(expr)?),
        FrameBound::CurrentRow => End::CurrentRow,
        FrameBound::Following(expr) => End::Following(offset(expr)?),
    })
}

impl Bounds {
    /// Of a frame over rows in this order.
    ///
    /// # Errors
    /// `frame starting offset must be a non-negative integer` and the like.
    pub fn new(frame: &Frame, order: &[SortKey], cx: &mut Context<'_, '_>) -> Result<Self> {
        let start_at = end_of(frame, &frame.start, "starting", cx)?;
        let end_at = end_of(frame, &frame.end, "ending", cx)?;
        let measure = order.first().and_then(|key| match key.expr.kind {
            ExprKind::Input(column) => Some(Measure {
                column,
                collation: key.collation,
                descending: key.descending,
                nulls_last: key.nulls_first == key.descending,
            }),
            _ => None,
        });
        let is_empty = frame.mode != FrameMode::Range
            && match (&start_at, &end_at) {
                (End::Preceding((start, _)), End::Preceding((end, _))) => start < end,
                (End::Following((start, _)), End::Following((end, _))) => start > end,
                _ => false,
            };
        Ok(Self {
            mode: frame.mode,
            start_at,
            end_at,
            exclude: frame.exclude,
            measure,
            is_empty,
            start: 0,
            end: 0,
            start_group: 0,
            end_group: 0,
        })
    }

    /// The first row stays in until the partition ends.
    pub fn starts_with_partition(&self) -> bool {
        self.start_at == End::Unbounded
    }

    /// Rows come in before others fall out, as SQLite has it; else it is the other way
    /// round.
    pub fn takes_first(&self) -> bool {
        let is_beside_row = matches!(
            (&self.start_at, &self.end_at),
            (End::Following(_), _) | (End::Preceding(_), End::Preceding(_))
        );
        self.mode == FrameMode::Range && is_beside_row
    }

    /// It leaves rows out.
    pub fn excludes(&self) -> bool {
        self.exclude != Exclude::Nothing
    }

    /// How many rows, or groups of them, it has where the partition goes on for long
    /// enough, if it starts behind the row.
    pub fn length_ahead(&self) -> Option<u64> {
        match (&self.start_at, &self.end_at) {
            (End::Following((start, _)), End::Following((end, _))) => {
                Some(end.saturating_sub(*start).saturating_add(1))
            }
            _ => None,
        }
    }

    /// Behind a row, where the next one begins that the frame takes by itself: the next
    /// row, or the first one of the next group.
    pub fn next(&self, row: u64, end: u64, input: &mut Input) -> Result<u64> {
        let mut next = row + 1;
        while self.mode == FrameMode::Groups && next < end && !input.begins_peers(next)? {
            next += 1;
        }
        Ok(next)
    }

    /// The first row that is asked for from here on, but for the rows of the frame.
    pub fn needs(&self, row: u64) -> u64 {
        match self.mode {
            FrameMode::Rows => row,
            FrameMode::Range | FrameMode::Groups => {
                // An end that does not go row by row stays where the partition begins.
                let start = match self.start_at {
                    End::Preceding(_) | End::Following(_) => self.start,
                    _ => row,
                };
                let end = match self.end_at {
                    End::Preceding(_) | End::Following(_) => self.end,
                    _ => row,
                };
                row.min(start).min(end)
            }
        }
    }

    /// Moves to the row at hand.
    pub fn go(&mut self, input: &mut Input, from: &mut Source<'_, '_, '_>) -> Result<()> {
        if input.row == input.first {
            (self.start, self.end) = (input.first, input.first);
            (self.start_group, self.end_group) = (0, 0);
        }
        if self.is_empty {
            return Ok(());
        }
        match self.mode {
            FrameMode::Rows => self.by_rows(input, from),
            // The frame is the same for all peers.
            _ if input.row != input.peers => Ok(()),
            FrameMode::Groups => self.by_groups(input, from),
            FrameMode::Range => self.by_range(input, from),
        }
    }

    fn by_rows(&mut self, input: &mut Input, from: &mut Source<'_, '_, '_>) -> Result<()> {
        let (row, first) = (input.row, input.first);
        let ahead = |input: &mut Input, offset: u64, from: &mut Source<'_, '_, '_>| {
            let at = row.saturating_add(offset);
            Ok::<u64, Error>(match input.has(at, from)? {
                true => at,
                false => input.end(from)?,
            })
        };
        self.start = match &self.start_at {
            End::Unbounded => first,
            End::Preceding((offset, _)) => row.saturating_sub(*offset).max(first),
            End::CurrentRow => row,
            End::Following((offset, _)) => ahead(input, *offset, from)?,
        };
        self.end = match &self.end_at {
            End::Unbounded => input.end(from)?,
            End::Preceding((offset, _)) => (row + 1).saturating_sub(*offset).max(first),
            End::CurrentRow => row + 1,
            End::Following((offset, _)) => {
                let last = ahead(input, *offset, from)?;
                if input.has(last, from)? {
                    last + 1
                } else {
                    last
                }
            }
        };
        Ok(())
    }

    fn by_groups(&mut self, input: &mut Input, from: &mut Source<'_, '_, '_>) -> Result<()> {
        let group = input.group;
        match &self.start_at {
            End::Unbounded => {}
            End::CurrentRow => self.start = input.peers,
            End::Preceding((offset, _)) => {
                let wanted = group.saturating_sub(*offset);
                (self.start, self.start_group) =
                    to_group(self.start, self.start_group, wanted, input, from)?;
            }
            End::Following((offset, _)) => {
                let wanted = group.saturating_add(*offset);
                (self.start, self.start_group) =
                    to_group(self.start, self.start_group, wanted, input, from)?;
            }
        }
        let wanted = match &self.end_at {
            End::Unbounded => {
                self.end = input.end(from)?;
                return Ok(());
            }
            End::CurrentRow => {
                self.end = input.peers_end(from)?;
                return Ok(());
            }
            End::Preceding((offset, _)) => (group + 1).saturating_sub(*offset),
            End::Following((offset, _)) => group.saturating_add(*offset).saturating_add(1),
        };
        (self.end, self.end_group) = to_group(self.end, self.end_group, wanted, input, from)?;
        Ok(())
    }

    fn by_range(&mut self, input: &mut Input, from: &mut Source<'_, '_, '_>) -> Result<()> {
        match (&self.start_at, &self.measure) {
            (End::Unbounded, _) => {}
            (End::Preceding((_, offset)), Some(measure)) => {
                let value = input.rows.value(measure.column, input.row)?.to_value();
                while self.start < input.row {
                    let there = input.rows.value(measure.column, self.start)?;
                    if measure.reaches(there, offset, value.as_ref()) {
                        break;
                    }
                    self.start += 1;
                }
            }
            (End::Following((_, offset)), Some(measure)) => {
                let value = input.rows.value(measure.column, input.row)?.to_value();
                let limit = measure.shifted(value.as_ref(), offset);
                while input.has(self.start, from)? {
                    let there = input.rows.value(measure.column, self.start)?;
                    if !measure.is_before(there, limit.as_ref()) {
                        break;
                    }
                    self.start += 1;
                }
            }
            _ => self.start = input.peers,
        }
        match (&self.end_at, &self.measure) {
            (End::Unbounded, _) => self.end = input.end(from)?,
            (End::Preceding((_, offset)), Some(measure)) => {
                let value = input.rows.value(measure.column, input.row)?.to_value();
                while input.has(self.end, from)? {
                    let there = input.rows.value(measure.column, self.end)?;
                    let shifted = measure.shifted(there, offset);
                    if measure.is_before(value.as_ref(), shifted.as_ref()) {
                        break;
                    }
                    self.end += 1;
                }
            }
            (End::Following((_, offset)), Some(measure)) => {
                let value = input.rows.value(measure.column, input.row)?.to_value();
                let limit = measure.shifted(value.as_ref(), offset);
                while input.has(self.end, from)? {
                    let there = input.rows.value(measure.column, self.end)?;
                    if measure.is_before(limit.as_ref(), there) {
                        break;
                    }
                    self.end += 1;
                }
            }
            _ => self.end = input.peers_end(from)?,
        }
        Ok(())
    }

    /// The rows of the frame that are not left out, in up to three stretches.
    pub fn pieces(
        &self,
        input: &mut Input,
        from: &mut Source<'_, '_, '_>,
    ) -> Result<[Range<u64>; 3]> {
        let (start, end) = (self.start, self.end);
        let row = input.row;
        let (out, kept) = match self.exclude {
            Exclude::Nothing => return Ok([start..end, end..end, end..end]),
            Exclude::CurrentRow => (row..row + 1, row..row),
            Exclude::Group => (input.peers..input.peers_end(from)?, row..row),
            Exclude::Ties => (input.peers..input.peers_end(from)?, row..row + 1),
        };
        let within = |piece: Range<u64>| {
            let from = piece.start.max(start);
            from..piece.end.min(end).max(from)
        };
        Ok([within(start..out.start), within(kept), within(out.end..end)])
    }
}

/// From a row and its group on to the first row of the group wanted, or to the end of
/// the partition.
fn to_group(
    mut row: u64,
    mut group: u64,
    wanted: u64,
    input: &mut Input,
    from: &mut Source<'_, '_, '_>,
) -> Result<(u64, u64)> {
    while group < wanted && input.has(row, from)? {
        row += 1;
        // Behind the last row there is one more group, which has none.
        if !input.has(row, from)? || input.begins_peers(row)? {
            group += 1;
        }
    }
    Ok((row, group))
}

impl Measure {
    /// A value moved on by an offset, in the direction of the order; what is no number
    /// stays where it is.
    fn shifted(&self, value: ValueRef<'_>, offset: &Value) -> Value {
        match (value, self.descending) {
            (ValueRef::Integer(_) | ValueRef::Real(_), false) => add(value, offset.as_ref()),
            (ValueRef::Integer(_) | ValueRef::Real(_), true) => subtract(value, offset.as_ref()),
            _ => value.to_value(),
        }
    }

    /// Whether a value moved on is not before another one.
    fn reaches(&self, value: ValueRef<'_>, offset: &Value, other: ValueRef<'_>) -> bool {
        !self.is_before(self.shifted(value, offset).as_ref(), other)
    }

    /// Whether a value comes before another one in the order.
    fn is_before(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
        let order = match (a.is_null(), b.is_null()) {
            (true, false) if self.nulls_last => std::cmp::Ordering::Greater,
            (false, true) if self.nulls_last => std::cmp::Ordering::Less,
            _ => compare(a, b, self.collation),
        };
        match self.descending {
            false => order.is_lt(),
            true => order.is_gt(),
        }
    }
}
