//! Lowering of windows.

use std::sync::Arc;

use sqlite3_parser::ast as raw;

use super::Lowering;
use crate::ast::{Exclude, Expr, Frame, FrameBound, FrameMode, NamedWindow, Over, Window, Windows};
use crate::error::{Error, Result};

impl Lowering<'_> {
    pub(super) fn over(&mut self, over: &raw::Over<'_>) -> Result<Over> {
        Ok(match over {
            raw::Over::Name(name) => Over::Name(self.name(name.0)),
            raw::Over::Window(window) => Over::Window(Box::new(self.window(window)?)),
        })
    }

    /// The WINDOW clause.
    pub(super) fn windows(&mut self, defined: &[raw::WindowDef<'_>]) -> Result<Windows> {
        let windows = defined.iter().map(|definition| {
            Ok(NamedWindow {
                name: self.name(definition.name.0),
                window: self.window(&definition.window)?,
            })
        });
        Ok(Arc::new(windows.collect::<Result<Vec<_>>>()?))
    }

    fn window(&mut self, window: &raw::Window<'_>) -> Result<Window> {
        let base = window.base.as_ref().map(|name| self.name(name.0));
        let partition_by = self.exprs(window.partition_by.unwrap_or(&[]))?;
        let order_by = self.sort_terms(window.order_by.unwrap_or(&[]))?;
        let frame = window.frame_clause.as_ref().map(|f| self.frame(f));
        Ok(Window {
            base,
            partition_by,
            order_by,
            frame: frame.transpose()?,
        })
    }

    fn frame(&mut self, frame: &raw::FrameClause<'_>) -> Result<Frame<Expr>> {
        let mode = match frame.mode {
            raw::FrameMode::Rows => FrameMode::Rows,
            raw::FrameMode::Range => FrameMode::Range,
            raw::FrameMode::Groups => FrameMode::Groups,
        };
        let start = self.frame_bound(&frame.start)?;
        let end = match &frame.end {
            Some(end) => self.frame_bound(end)?,
            None => FrameBound::CurrentRow,
        };
        let ends_before_it_starts = match (&start, &end) {
            (FrameBound::CurrentRow, FrameBound::Preceding(_)) => true,
            (FrameBound::Following(_), end) => {
                matches!(end, FrameBound::Preceding(_) | FrameBound::CurrentRow)
            }
            _ => false,
        };
        if ends_before_it_starts {
            return Err(Error::sql("unsupported frame specification")
                .with_hint("a frame may not end before it starts"));
        }
        let exclude = match frame.exclude {
            None | Some(raw::FrameExclude::NoOthers) => Exclude::Nothing,
            Some(raw::FrameExclude::CurrentRow) => Exclude::CurrentRow,
            Some(raw::FrameExclude::Group) => Exclude::Group,
            Some(raw::FrameExclude::Ties) => Exclude::Ties,
        };
        Ok(Frame {
            mode,
            start,
            end,
            exclude,
        })
    }

    fn frame_bound(&mut self, bound: &raw::FrameBound<'_>) -> Result<FrameBound<Expr>> {
        Ok(match bound {
            raw::FrameBound::UnboundedPreceding | raw::FrameBound::UnboundedFollowing => {
                FrameBound::Unbounded
            }
            raw::FrameBound::Preceding(offset) => FrameBound::Preceding(self.expr(offset)?),
            raw::FrameBound::CurrentRow => FrameBound::CurrentRow,
            raw::FrameBound::Following(offset) => FrameBound::Following(self.expr(offset)?),
        })
    }
}
