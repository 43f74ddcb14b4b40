//! Windows as written: OVER clauses and the WINDOW clause.

use std::sync::Arc;

use super::{Expr, Name, SortTerm};

/// What stands behind OVER.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// `OVER name`
    Name(Name),
    /// `OVER (…)`
    Window(Box<Window>),
}

/// What stands in the parentheses of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The window that it adds to.
    pub base: Option<Name>,
    /// PARTITION BY: empty where absent.
    pub partition_by: Vec<Expr>,
    /// ORDER BY: empty where absent.
    pub order_by: Vec<SortTerm>,
    /// The frame, if one is written.
    pub frame: Option<Frame<Expr>>,
}

/// `name AS (window)` of a WINDOW clause.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedWindow {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub window: Window,
}

/// The windows of a WINDOW clause, in order.
pub type Windows = Arc<Vec<NamedWindow>>;

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameMode {
    /// ROWS: rows.
    Rows,
    /// RANGE: differences of the one value that orders the rows.
    Range,
    /// GROUPS: groups of rows that are equal in the order.
    Groups,
}

/// A bound of a frame, `E` being what says how far it is.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound<E> {
    /// UNBOUNDED PRECEDING where it starts, UNBOUNDED FOLLOWING where it ends.
    Unbounded,
    /// `x PRECEDING`
    Preceding(E),
    /// CURRENT ROW
    CurrentRow,
    /// `x FOLLOWING`
    Following(E),
}

impl<E> FrameBound<E> {
    /// How far it is from the row.
    pub fn offset(&self) -> Option<&E> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }

    /// The same to be changed.
    pub fn offset_mut(&mut self) -> Option<&mut E> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }
}

/// The rows that a frame leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exclude {
    /// EXCLUDE NO OTHERS: none.
    #[default]
    Nothing,
    /// EXCLUDE CURRENT ROW
    CurrentRow,
    /// EXCLUDE GROUP: the row and those equal to it in the order.
    Group,
    /// EXCLUDE TIES: those equal to it.
    Ties,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame<E> {
    /// What its bounds count.
    pub mode: FrameMode,
    /// Where it begins.
    pub start: FrameBound<E>,
    /// Where it ends.
    pub end: FrameBound<E>,
    /// What is left out.
    pub exclude: Exclude,
}
