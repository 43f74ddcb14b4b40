//! Generated columns of rows that are written, or read as a whole.
//!
//! Here a row is rowid and all columns. Those that are VIRTUAL are stored as NULL.

use std::sync::Arc;

use super::sink::Sink;
use crate::error::Result;
use crate::exec::context::Context;
use crate::exec::expr::{Row, eval};
use crate::exec::fetch::read_whole_row;
use crate::plan::physical::GeneratedColumn;
use crate::schema::Table;
use crate::value::Value;

/// Reads a stored row.
pub fn read_row(
    table: &Arc<Table>,
    generated: &[GeneratedColumn],
    (rowid, record): (i64, &[u8]),
    out: &mut Vec<Value>,
    cx: &mut Context<'_, '_>,
) -> Result<()> {
    read_whole_row(table, rowid, record, out)?;
    for column in generated.iter().filter(|column| !column.stored) {
        compute(column, out, cx)?;
    }
    Ok(())
}

fn compute(column: &GeneratedColumn, row: &mut [Value], cx: &mut Context<'_, '_>) -> Result<()> {
    let value = eval(&column.expr, Row::Values(row), cx)?.into_value();
    if let Some(slot) = row.get_mut(column.column + 1) {
        *slot = column.affinity.apply_owned(value);
    }
    Ok(())
}

impl Sink<'_> {
    /// Computes the generated columns of the row being written, whose rowid and other
    /// columns are set.
    #[inline]
    pub(super) fn generate(&mut self, cx: &mut Context<'_, '_>) -> Result<()> {
        for column in &self.target.generated {
            compute(column, &mut self.buffers.row, cx)?;
        }
        Ok(())
    }
}
