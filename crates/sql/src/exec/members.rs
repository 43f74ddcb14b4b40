//! The rows of an IN's right side: what a subquery yields, each value once, and which values
//! are among them.

use crate::bind::expr::{CompareOp, Comparison};
use crate::error::Result;
use crate::exec::batch::{Batch, Selection, Vector, tag};
use crate::exec::expr::{Datum, Operand, compare};
use crate::exec::hash::{GroupTable, NONE};
use crate::exec::memory::{Held, Memory};
use crate::value::{Affinity, Value, ValueRef};

/// See the module.
pub struct Members {
    /// Rows without NULLs, as the comparisons see them.
    table: GroupTable,
    /// Rows with NULLs.
    partial: Vec<Vec<Value>>,
    empty: bool,
    held: Held,
    groups: Vec<u32>,
}

/// Whether a comparison sees all values of a vector as they are.
fn as_it_is(vector: &Vector, how: Comparison) -> bool {
    let changed = match how.affinity {
        Affinity::Blob => 0,
        Affinity::Text => tag::INTEGER | tag::REAL,
        _ => tag::TEXT,
    };
    vector.kinds() & changed == 0
}

/// Appends to `out` the selected rows of which `x` is a key of the table, or, `negated`, is
/// none and not NULL.
pub fn select_found(
    table: &mut GroupTable,
    x: &Operand<'_>,
    (how, negated): (Comparison, bool),
    selection: Selection<'_>,
    groups: &mut Vec<u32>,
    out: &mut Vec<u32>,
) -> Result<()> {
    let converted;
    let rows = match x.vector() {
        Some(vector) if as_it_is(vector, how) => [Operand::Column(vector)],
        _ => {
            let mut vector = Vector::new();
            for row in 0..selection.end() {
                vector.push(how.affinity.apply_comparison(x.get(row)).as_ref())?;
            }
            converted = vector;
            [Operand::Column(&converted)]
        }
    };
    table.find(&rows, selection, groups);
    let mut found = groups.iter().map(|group| *group != NONE);
    selection.each(|row| {
        if found.next() == Some(!negated) && !x.get(row).is_null() {
            out.push(row as u32);
        }
    });
    Ok(())
}

impl Members {
    /// None so far.
    pub fn new(comparisons: &[Comparison]) -> Self {
        Self {
            table: GroupTable::new(comparisons.iter().map(|c| c.collation).collect()),
            partial: Vec::new(),
            empty: true,
            held: Held::default(),
            groups: Vec::new(),
        }
    }

    /// Takes rows.
    pub fn add(
        &mut self,
        batch: &Batch,
        comparisons: &[Comparison],
        memory: &Memory,
    ) -> Result<()> {
        self.empty &= batch.is_empty();
        match (batch.columns.as_slice(), comparisons) {
            ([column], [how]) if column.kinds() & tag::NULL == 0 && as_it_is(column, *how) => {
                let keys = [Operand::Column(column)];
                self.table
                    .insert(&keys, batch.selection(), &mut self.groups)?;
            }
            _ => self.add_converted(batch, comparisons)?,
        }
        // Asked in any order, it cannot go to disk.
        self.held.force(memory, self.table.memory());
        Ok(())
    }

    fn add_converted(&mut self, batch: &Batch, comparisons: &[Comparison]) -> Result<()> {
        let mut columns = vec![Vector::new(); comparisons.len()];
        let mut rows = 0;
        batch.selection().try_each(|row| {
            if batch.columns.iter().any(|c| c.get(row).is_null()) {
                // One NULL says as much as many.
                if comparisons.len() == 1 && !self.partial.is_empty() {
                    return Ok(());
                }
                let values = batch.columns.iter().map(|c| c.get(row).to_value());
                self.partial.push(values.collect());
                return Ok(());
            }
            rows += 1;
            columns
                .iter_mut()
                .zip(&batch.columns)
                .zip(comparisons)
                .try_for_each(|((to, from), how)| {
                    to.push(how.affinity.apply_comparison(from.get(row)).as_ref())
                })
        })?;
        let keys: Vec<Operand<'_>> = columns.iter().map(Operand::Column).collect();
        self.table
            .insert(&keys, Selection::All(rows), &mut self.groups)
    }

    /// Calls `f` with each row's value of a column, but for rows with NULLs.
    pub fn each(&self, column: usize, f: &mut dyn FnMut(ValueRef<'_>)) {
        if let Some(keys) = self.table.keys().get(column) {
            for group in 0..self.table.len() {
                f(keys.get(group));
            }
        }
    }

    /// Appends to `out` the selected rows of which `x` is among the members of one column,
    /// or, `negated`, is not.
    pub fn select(
        &mut self,
        x: &Operand<'_>,
        (how, negated): (Comparison, bool),
        selection: Selection<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if self.empty {
            selection.each(|row| out.extend(negated.then_some(row as u32)));
            return Ok(());
        }
        // What is not found is unknown beside a NULL.
        if negated && !self.partial.is_empty() {
            return Ok(());
        }
        let asked = (how, negated);
        select_found(&mut self.table, x, asked, selection, &mut self.groups, out)
    }

    /// Whether a row is among them. None is NULL.
    pub fn contains(&mut self, values: &[Datum<'_>], comparisons: &[Comparison]) -> Option<bool> {
        if self.empty {
            return Some(false);
        }
        let keys: Vec<Operand<'_>> = values
            .iter()
            .zip(comparisons)
            .map(|(value, how)| Operand::Constant(how.affinity.apply_comparison(value.as_ref())))
            .collect();
        let nulls = values.iter().any(|v| v.as_ref().is_null());
        if !nulls {
            self.table.find(&keys, Selection::All(1), &mut self.groups);
            if self.groups.first().is_some_and(|g| *g != NONE) {
                return Some(true);
            }
        }
        // NULL where some row differs in nothing that is known.
        let unknown = |stored: &dyn Fn(usize) -> Value| {
            let mut parts = values.iter().zip(comparisons).enumerate();
            parts.all(|(i, (value, how))| {
                let stored = stored(i);
                let equal = CompareOp::Equal;
                compare::test(equal, *how, value.as_ref(), stored.as_ref()) != Some(false)
            })
        };
        let partial = self
            .partial
            .iter()
            .any(|row| unknown(&|i| row.get(i).cloned().unwrap_or_default()));
        let whole = nulls
            && (0..self.table.len()).any(|group| {
                unknown(&|i| {
                    let keys = self.table.keys().get(i);
                    keys.map_or(Value::Null, |k| k.get(group).to_value())
                })
            });
        if partial || whole { None } else { Some(false) }
    }
}
