//! The columns of each source that are read.

use super::few::Few;
use crate::bind::expr::ColumnRef;

/// Columns that are needed, of all sources.
#[derive(Clone, Default)]
pub struct Needed(Vec<ColumnRef>);

impl Needed {
    /// Those among these.
    pub fn new(mut columns: Vec<ColumnRef>) -> Needed {
        columns.sort_unstable();
        columns.dedup();
        Needed(columns)
    }

    /// Those of a source.
    pub fn of(&self, source: usize) -> Few<usize> {
        let first = self.0.partition_point(|column| column.source < source);
        let from = self.0.get(first..).unwrap_or(&[]).iter();
        let own = from.take_while(|column| column.source == source);
        own.map(|column| column.column).collect()
    }
}
