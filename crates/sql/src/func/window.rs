//! Functions that exist over windows only.

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// A function over the rows around a row.
#[derive(Debug, PartialEq, Eq)]
pub struct WindowFunction {
    /// Its name in lower case.
    pub name: &'static str,
    /// What it computes.
    pub kind: WindowKind,
    /// Fewest arguments.
    pub arguments_min: usize,
    /// Most arguments.
    pub arguments_max: usize,
}

const fn function(
    name: &'static str,
    kind: WindowKind,
    arguments_min: usize,
    arguments_max: usize,
) -> WindowFunction {
    WindowFunction {
        name,
        kind,
        arguments_min,
        arguments_max,
    }
}

static FUNCTIONS: [WindowFunction; 11] = [
    function("row_number", WindowKind::RowNumber, 0, 0),
    function("rank", WindowKind::Rank, 0, 0),
    function("dense_rank", WindowKind::DenseRank, 0, 0),
    function("percent_rank", WindowKind::PercentRank, 0, 0),
    function("cume_dist", WindowKind::CumeDist, 0, 0),
    function("ntile", WindowKind::Ntile, 1, 1),
    function("lag", WindowKind::Lag, 1, 3),
    function("lead", WindowKind::Lead, 1, 3),
    function("first_value", WindowKind::FirstValue, 1, 1),
    function("last_value", WindowKind::LastValue, 1, 1),
    function("nth_value", WindowKind::NthValue, 2, 2),
];

/// All of them.
pub(super) fn functions() -> &'static [WindowFunction] {
    &FUNCTIONS
}

impl WindowKind {
    /// Asks for values of the frame; the others pay no heed to it.
    pub fn has_frame(self) -> bool {
        use WindowKind::{FirstValue, LastValue, NthValue};
        matches!(self, FirstValue | LastValue | NthValue)
    }
}
